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
/// output without a note. The file is replaced only when the response is complete: until then, the data is in a new
/// temporary file beside it, which is removed on failure. The file is readable by its owner only. A link is replaced,
/// not followed. Fails if the request fails or the file cannot be written.
pub(super) async fn save(client: &Client, path: &str, file: &Path) -> anyhow::Result<()> {
    if file == Path::new("-") {
        output::mark_printed();
        client.download(path, &mut tokio::io::stdout()).await?;
        return Ok(());
    }
    let written = async {
        // The name is random and the file must not exist, so that another user cannot prepare it as a link.
        let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let partial = tempfile::Builder::new().prefix(".adjutant-").tempfile_in(directory);
        // The error of the library names the temporary file, which means nothing to the user.
        let partial = partial
            .map_err(|error| std::io::Error::from(error.kind()))
            .with_context(|| format!("cannot create a file in {}", directory.display()))?;
        let mut out = tokio::fs::File::from_std(partial.reopen()?);
        let written = client.download(path, &mut out).await?;
        out.sync_all().await?;
        partial.persist(file)?;
        anyhow::Ok(written)
    };
    let written = written.await.with_context(|| format!("failed to write {}", file.display()))?;
    output::note(&format!("wrote {written} bytes to {}", file.display()));
    Ok(())
}
