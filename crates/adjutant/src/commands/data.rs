//! `adjutant export`, `import` and `erase`: one user's data.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use reqwest::Method;

use super::backup::{read, write};
use crate::cli::Global;
use crate::client::Client;
use crate::output;

pub(crate) async fn export(client: &Client, file: Option<PathBuf>) -> anyhow::Result<()> {
    let answer = client.get("/api/data").await?;
    match file {
        Some(file) if file != Path::new("-") => {
            write(&file, &answer)?;
            output::note(&format!("wrote {} bytes to {}", answer.bytes.len(), file.display()));
            Ok(())
        }
        _ => output::put(&answer.bytes),
    }
}

pub(crate) async fn import(global: &Global, file: &Path) -> anyhow::Result<()> {
    let document = if file == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).context("failed to read standard input")?;
        bytes
    } else {
        read(file)?
    };
    let client = Client::connect(global).await?;
    let answer = client.send(Method::POST, "/api/data", Some(document.into())).await?;
    if global.json {
        return output::say(&String::from_utf8_lossy(&answer.bytes));
    }
    let imported = answer.json()?;
    for things in ["tasks", "conversations"] {
        let (added, skipped) = (&imported[things]["added"], &imported[things]["skipped"]);
        output::note(&format!("{things}: {added} added, {skipped} already there"));
    }
    Ok(())
}

pub(crate) async fn erase(global: &Global) -> anyhow::Result<()> {
    let question = "Delete all your tasks and conversations? This cannot be undone.";
    output::confirm(question, global.yes)?;
    Client::connect(global).await?.send(Method::DELETE, "/api/data", None).await?;
    output::note("everything is deleted");
    Ok(())
}
