//! `adjutant audit`.

use api::audit::{Actor, AuditAction, AuditRecord, ListAudit};

use super::listing::{self, limit_param, local_time, named, or_empty};
use crate::cli::GlobalOptions;
use crate::client::Client;
use crate::exit::{ExitError, ExitStatus};
use crate::output;

const PATH: &str = "/api/audit";
/// The number of changes shown by default.
const DEFAULT_LIMIT: usize = 50;

named!("record": AuditRecord, |record| record.id, record.action);

/// Prints administrative changes as ids (`quiet`), as a table, or one page as JSON with `--json`. A note follows a table
/// that ends at the default limit. Fails with a usage error if `action` is unknown, and if the server refuses.
pub(crate) async fn list(
    global: &GlobalOptions,
    since: Option<String>,
    action: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
    quiet: bool,
) -> anyhow::Result<()> {
    let action = action.map(|word| AuditAction::parse("--action", &word)).transpose();
    let action = action.map_err(|invalid| ExitError::new(ExitStatus::Usage, invalid.to_string()))?;
    let client = Client::connect(global).await?;
    let list = ListAudit { since, action, limit: limit.map(limit_param), cursor };
    let records =
        listing::items_to_show(&client, PATH, list, DEFAULT_LIMIT, quiet, "no administrative changes").await?;
    let Some(records) = records else { return Ok(()) };
    let rows: Vec<_> = records.iter().map(row).collect();
    output::print_table(&["TIME", "WHO", "ACTION", "SUBJECT"], &rows)?;
    if limit.is_none() && records.len() == DEFAULT_LIMIT {
        output::note(&format!("the newest {DEFAULT_LIMIT}; --limit N shows more"));
    }
    Ok(())
}

/// Returns the row of a record in a table. The user has a name if the token has one, otherwise an id. A change without a
/// user shows its interface.
fn row(record: &AuditRecord) -> Vec<String> {
    let Actor { user_id, user_name, interface, .. } = &record.actor;
    let who = user_name.clone().or_else(|| user_id.map(|id| id.to_string()));
    vec![
        local_time(record.at),
        who.unwrap_or_else(|| interface.to_string()),
        record.action.to_string(),
        or_empty(record.subject.as_deref()),
    ]
}
