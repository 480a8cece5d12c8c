//! The audit log. A record is written in the transaction of its change, so neither exists without the other. Records
//! belong to the operator. They are never changed, and only housekeeping removes them.

use jiff::Timestamp;
use model::audit::{Actor, AuditAction, AuditInterface, AuditRecord};
use uuid::Uuid;

use crate::conn::{Conn, DbRow, Statement};
use crate::executions::replace_nul;
use crate::page::{Cursor, Page};
use crate::{Error, Result};

const COLUMNS: &str =
    "id, at, action, subject, user_id, user_name, token_id, interface, request_id, client_address, before, after";

/// The filter of a list of records.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuditFilter {
    /// Only records at this time or later.
    pub since: Option<Timestamp>,
    pub action: Option<AuditAction>,
}

/// Adds a record. NUL characters in texts are replaced by U+FFFD. Fails with [`Error::Corrupt`] if a value cannot be
/// encoded.
pub async fn record(conn: &mut Conn, record: &AuditRecord) -> Result<()> {
    let json = |value: &Option<serde_json::Value>| {
        let text = value.as_ref().map(serde_json::to_string).transpose();
        text.map_err(|error| Error::Corrupt(error.to_string()))
    };
    let text = |value: &Option<String>| value.as_deref().map(|text| replace_nul(text).into_owned());
    let Actor { user_id, user_name, token_id, interface, request_id, client_address } = &record.actor;
    let mut insert = Statement::default();
    insert.push("INSERT INTO audit_records (").push(COLUMNS).push(") VALUES (").bind(record.id);
    insert.push(", ").bind(record.at).push(", ").bind(record.action.as_str()).push(", ").bind(text(&record.subject));
    insert.push(", ").bind(user_id.map(|id| id.to_string())).push(", ").bind(text(user_name));
    insert.push(", ").bind(text(token_id)).push(", ").bind(interface.as_str());
    insert.push(", ").bind(text(request_id)).push(", ").bind(text(client_address));
    insert.push(", ").bind(json(&record.before)?).push(", ").bind(json(&record.after)?).push(")");
    conn.run(insert).await.map(drop)
}

/// Returns one page of the records that match the filter, newest first.
pub async fn list(
    conn: &mut Conn,
    filter: AuditFilter,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Page<AuditRecord>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM audit_records WHERE 1 = 1");
    if let Some(action) = filter.action {
        select.push(" AND action = ").bind(action.as_str());
    }
    if let Some(since) = filter.since {
        select.push(" AND at >= ").bind(since);
    }
    if let Some(cursor) = after {
        select.push(" AND (at, id) < (").bind(cursor.sort).push(", ").bind(cursor.id.as_str()).push(")");
    }
    select.push(" ORDER BY at DESC, id DESC LIMIT ").bind(limit + 1);
    let records = conn.all(select).await?.iter().map(read).collect::<Result<Vec<_>>>()?;
    let cursor = |record: &AuditRecord| Cursor { sort: record.at.as_microsecond(), id: record.id.to_string() };
    Ok(Page::from_rows(records, limit, cursor))
}

/// Reads [`COLUMNS`]. Fails with [`Error::Corrupt`] if a column is invalid.
fn read(row: &DbRow) -> Result<AuditRecord> {
    let corrupt = |error: serde_json::Error| Error::Corrupt(error.to_string());
    let json = |at: usize| row.maybe_text(at)?.map(|text| serde_json::from_str(&text).map_err(corrupt)).transpose();
    let user_id = row.maybe_text(4)?.map(|text| text.parse()).transpose();
    Ok(AuditRecord {
        id: row.parsed(0, Uuid::try_parse)?,
        at: row.time(1)?,
        action: row.parsed(2, |word| AuditAction::parse("action", word))?,
        subject: row.maybe_text(3)?,
        actor: Actor {
            user_id: user_id.map_err(|invalid: model::Invalid| Error::Corrupt(invalid.to_string()))?,
            user_name: row.maybe_text(5)?,
            token_id: row.maybe_text(6)?,
            interface: row.parsed(7, |word| AuditInterface::parse("interface", word))?,
            request_id: row.maybe_text(8)?,
            client_address: row.maybe_text(9)?,
        },
        before: json(10)?,
        after: json(11)?,
    })
}
