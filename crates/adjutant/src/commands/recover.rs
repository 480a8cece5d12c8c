//! `adjutant recover`: saves the readable data of a damaged SQLite database as a backup. Works without a server.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use serde_json::{Value, json};
use store::backup::{Backup, RecoveredTable, recover};
use store::lock::DataDirLock;
use store::{Error, StorageFault};
use tokio::io::AsyncWriteExt;

use crate::cli::GlobalOptions;
use crate::exit::{ExitError, ExitStatus};
use crate::output;

/// Writes every readable row of the database to `file`, by default a file in the current directory with the time in its
/// name. `adjutant restore` accepts it. Prints the number of saved and lost rows of each table. The damaged database stays
/// unchanged. Needs as much free space beside `file` as the database has. Fails if a server or another command uses the data
/// directory, with PostgreSQL, without a database, and if nothing can be read or written.
pub(crate) async fn run(global: &GlobalOptions, file: Option<PathBuf>) -> anyhow::Result<()> {
    let config = super::load_config(global, None)?;
    let store::Location::Sqlite(database) = config.location() else {
        let message = "recovers SQLite databases only; restore a backup of PostgreSQL with its own tools";
        return Err(ExitError::new(ExitStatus::Usage, message).into());
    };
    if !database.exists() {
        let message = format!("there is no database {}", database.display());
        return Err(ExitError::new(ExitStatus::NotFound, message).into());
    }
    let _lock = DataDirLock::acquire(&config.data_dir)?;
    let file = file.unwrap_or_else(|| {
        let now = model::Clock::system().now().strftime("%Y%m%dT%H%M%SZ").to_string();
        PathBuf::from(format!("adjutant-recovered-{now}.jsonl"))
    });
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let scratch = tempfile::Builder::new().prefix(".adjutant-").tempdir_in(directory);
    let scratch = scratch.with_context(|| format!("cannot create a directory in {}", directory.display()))?;
    let recovered = recover(&database, scratch.path().join("recovered.db")).await;
    let (store, tables) = recovered.map_err(|error| match error {
        // The text of this error recommends this command.
        Error::Storage(StorageFault::Damaged) => {
            anyhow!("cannot recover {}: its list of tables is damaged; restore a backup", database.display())
        }
        other => anyhow::Error::new(other).context(format!("cannot recover {}", database.display())),
    })?;
    let partial = scratch.path().join("backup.jsonl");
    write_backup(&store, &partial).await.with_context(|| format!("failed to write {}", file.display()))?;
    std::fs::rename(&partial, &file).with_context(|| format!("failed to write {}", file.display()))?;
    print_tables(global, &tables)?;
    output::note(&format!("wrote the readable rows to {0}; `adjutant restore {0}` loads them", file.display()));
    Ok(())
}

async fn write_backup(store: &store::Store, path: &Path) -> anyhow::Result<()> {
    let mut backup = Backup::begin(store, model::Clock::system().now()).await?;
    let mut out = tokio::fs::File::create(path).await?;
    while let Some(chunk) = backup.next().await? {
        out.write_all(chunk.as_bytes()).await?;
    }
    out.sync_all().await?;
    Ok(())
}

/// Prints the rows of each table, with `--json` as one document.
fn print_tables(global: &GlobalOptions, tables: &[RecoveredTable]) -> anyhow::Result<()> {
    if global.json {
        let list: Vec<Value> = tables
            .iter()
            .map(|t| json!({"table": t.name, "saved": t.saved, "lost": t.lost, "damaged": t.is_damaged}))
            .collect();
        return output::print_line(&json!({ "tables": list }).to_string());
    }
    let row = |table: &RecoveredTable| {
        let lost = match (table.is_damaged, table.lost) {
            (true, 0) => "unknown".to_owned(),
            (true, lost) => format!("at least {lost}"),
            (false, lost) => lost.to_string(),
        };
        vec![table.name.to_owned(), table.saved.to_string(), lost]
    };
    output::print_table(&["TABLE", "SAVED", "LOST"], &tables.iter().map(row).collect::<Vec<_>>())
}
