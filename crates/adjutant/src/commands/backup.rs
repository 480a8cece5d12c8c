//! `adjutant backup` and `adjutant restore`.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use reqwest::Method;

use crate::cli::Global;
use crate::client::{Answer, Client};
use crate::exit::{Code, Exit};
use crate::output;

pub(crate) async fn backup(client: &Client, file: Option<PathBuf>) -> anyhow::Result<()> {
    let answer = client.get("/api/backup").await?;
    if file.as_deref() == Some(Path::new("-")) {
        return output::put(&answer.bytes);
    }
    let file = file.unwrap_or_else(|| {
        let now = model::Clock::system().now().strftime("%Y%m%dT%H%M%SZ").to_string();
        PathBuf::from(format!("adjutant-backup-{now}.jsonl"))
    });
    write(&file, &answer)?;
    output::note(&format!("wrote {} bytes to {}", answer.bytes.len(), file.display()));
    Ok(())
}

pub(crate) async fn restore(global: &Global, file: &Path) -> anyhow::Result<()> {
    let backup = read(file)?;
    let question = format!("Replace everything, for all users, with {}?", file.display());
    output::confirm(&question, global.yes)?;
    let client = Client::connect(global).await?;
    let answer = client.send(Method::POST, "/api/restore", Some(backup.into())).await?;
    if global.json {
        return output::say(&String::from_utf8_lossy(&answer.bytes));
    }
    output::note(&format!("restored {} rows", answer.json()?["rows"]));
    Ok(())
}

/// A whole file or none, readable by its owner only.
pub(super) fn write(file: &Path, answer: &Answer) -> anyhow::Result<()> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".part");
    let beside = PathBuf::from(beside);
    let put = || {
        let mut out = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        out.write_all(&answer.bytes)?;
        out.sync_all()?;
        std::fs::rename(&beside, file)
    };
    put().with_context(|| format!("failed to write {}", file.display()))
}

pub(super) fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file).map_err(|error| {
        let code = if error.kind() == std::io::ErrorKind::NotFound { Code::NotFound } else { Code::Failed };
        Exit::new(code, format!("failed to read {}: {error}", file.display())).into()
    })
}
