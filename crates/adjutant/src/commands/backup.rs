//! `adjutant backup` and `adjutant restore`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use api::data::RestoreSummary;

use crate::cli::GlobalOptions;
use crate::client::{Client, open_file};
use crate::output;

/// Writes the data of all users to `file`, or to standard output for `-`. The default is a file in the current
/// directory with the time in its name. An existing file is replaced. Fails if the server refuses or the file cannot be
/// written.
pub(crate) async fn backup(client: &Client, file: Option<PathBuf>) -> anyhow::Result<()> {
    let file = file.unwrap_or_else(|| {
        let now = model::Clock::system().now().strftime("%Y%m%dT%H%M%SZ").to_string();
        PathBuf::from(format!("adjutant-backup-{now}.jsonl"))
    });
    save(client, "/api/backup", &file).await
}

/// Replaces the data of all users with a backup, after a confirmation, unless `--yes` is given. Prints a note with the
/// number of rows, or with `--json` the response of the server. `file` is opened before the question; `-` is not
/// standard input. Fails if the file cannot be opened, without a confirmation, or if the server rejects the backup.
pub(crate) async fn restore(global: &GlobalOptions, file: &Path) -> anyhow::Result<()> {
    let backup = open_file(file).await?;
    let question = format!("Replace all data of all users with {}?", file.display());
    output::confirm(&question, global.yes)?;
    let answer = Client::connect(global).await?.upload("/api/restore", backup).await?;
    answer.show(|restored: RestoreSummary| {
        output::note(&format!("restored {} rows", restored.rows));
        Ok(())
    })
}

/// Writes a response to `file` and prints a note with its size, also with `--json`. For `-`, writes it to standard
/// output without a note. The file is replaced only when the response is complete: until then, the data is in
/// `FILE.part`, which is removed on failure. A new `FILE.part` is readable by its owner only; an existing one is
/// overwritten. Fails if the request fails or the file cannot be written.
pub(super) async fn save(client: &Client, path: &str, file: &Path) -> anyhow::Result<()> {
    if file == Path::new("-") {
        client.download(path, &mut tokio::io::stdout()).await?;
        return Ok(());
    }
    let partial = PathBuf::from(format!("{}.part", file.display()));
    let written = async {
        let mut options = tokio::fs::OpenOptions::new();
        let mut out = options.write(true).create(true).truncate(true).mode(0o600).open(&partial).await?;
        let written = client.download(path, &mut out).await?;
        out.sync_all().await?;
        tokio::fs::rename(&partial, file).await?;
        anyhow::Ok(written)
    }
    .await;
    match written {
        Ok(written) => {
            output::note(&format!("wrote {written} bytes to {}", file.display()));
            Ok(())
        }
        Err(error) => {
            let _ = tokio::fs::remove_file(&partial).await;
            Err(error).with_context(|| format!("failed to write {}", file.display()))
        }
    }
}
