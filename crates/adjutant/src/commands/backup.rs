//! `adjutant backup` and `adjutant restore`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use api::data::Restored;

use crate::cli::Global;
use crate::client::{Client, open};
use crate::output;

pub(crate) async fn backup(client: &Client, file: Option<PathBuf>) -> anyhow::Result<()> {
    let file = file.unwrap_or_else(|| {
        let now = model::Clock::system().now().strftime("%Y%m%dT%H%M%SZ").to_string();
        PathBuf::from(format!("adjutant-backup-{now}.jsonl"))
    });
    save(client, "/api/backup", &file).await
}

pub(crate) async fn restore(global: &Global, file: &Path) -> anyhow::Result<()> {
    let backup = open(file).await?;
    let question = format!("Replace everything, for all users, with {}?", file.display());
    output::confirm(&question, global.yes)?;
    let answer = Client::connect(global).await?.upload("/api/restore", backup).await?;
    answer.show(|restored: Restored| {
        output::note(&format!("restored {} rows", restored.rows));
        Ok(())
    })
}

/// Writes an answer to `file`, `-` being standard output: a whole file or none, readable by its owner only.
pub(super) async fn save(client: &Client, path: &str, file: &Path) -> anyhow::Result<()> {
    if file == Path::new("-") {
        client.download(path, &mut tokio::io::stdout()).await?;
        return Ok(());
    }
    let beside = PathBuf::from(format!("{}.part", file.display()));
    let written = async {
        let mut options = tokio::fs::OpenOptions::new();
        let mut out = options.write(true).create(true).truncate(true).mode(0o600).open(&beside).await?;
        let written = client.download(path, &mut out).await?;
        out.sync_all().await?;
        tokio::fs::rename(&beside, file).await?;
        anyhow::Ok(written)
    }
    .await;
    match written {
        Ok(written) => {
            output::note(&format!("wrote {written} bytes to {}", file.display()));
            Ok(())
        }
        Err(error) => {
            let _ = tokio::fs::remove_file(&beside).await;
            Err(error).with_context(|| format!("failed to write {}", file.display()))
        }
    }
}
