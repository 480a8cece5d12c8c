//! The audit log: records are listed newest first, belong to their transaction and outlive a restore.

use std::time::Duration;

use model::audit::{Actor, AuditAction, AuditInterface, AuditRecord};
use serde_json::json;
use store::audit::{AuditFilter, list, record};
use store::housekeeping::{Retention, sweep};
use store::page::Cursor;

use crate::{Bench, on_both, write};

on_both!(
    records_are_read_as_written,
    records_are_filtered_and_paged,
    a_rolled_back_change_has_no_record,
    old_records_are_removed
);

/// Adds a record, one second after the previous one.
pub(crate) async fn add(bench: &Bench, action: AuditAction, subject: &str) -> AuditRecord {
    bench.clock.advance(Duration::from_secs(1));
    let new = AuditRecord::new(&bench.clock, Actor::tool_user(bench.alice), action, subject);
    let stored = new.clone();
    write!(bench, tx => record(tx, &stored)).unwrap();
    new
}

/// Returns the subjects of all records that match the filter.
pub(crate) async fn subjects(bench: &Bench, filter: AuditFilter) -> Vec<String> {
    let mut reader = bench.store.reader().await.unwrap();
    let page = list(&mut reader, filter, None, 100).await.unwrap();
    page.rows.into_iter().map(|record| record.subject.unwrap()).collect()
}

async fn records_are_read_as_written(bench: Bench) {
    // SEC-6
    let actor = Actor {
        user_id: Some(bench.alice),
        user_name: Some("alice".into()),
        token_id: Some("t1".into()),
        interface: AuditInterface::Http,
        request_id: Some("req_1".into()),
        client_address: Some("192.0.2.7".into()),
    };
    let full = AuditRecord::new(&bench.clock, actor, AuditAction::AgentUpdated, "codex")
        .with_before(&json!({"name": "Codex"}))
        .with_after(&json!({"name": "Codex 2"}));
    bench.clock.advance(Duration::from_secs(1));
    let empty = AuditRecord::new(&bench.clock, Actor::configuration(), AuditAction::ConfigurationReloaded, "");
    for new in [full.clone(), empty.clone()] {
        write!(bench, tx => record(tx, &new)).unwrap();
    }
    let page = list(&mut bench.store.reader().await.unwrap(), AuditFilter::default(), None, 9).await.unwrap();
    assert_eq!((page.rows, page.next), (vec![empty, full], None));
}

async fn records_are_filtered_and_paged(bench: Bench) {
    // SEC-6
    for n in 0..5 {
        let action = if n == 2 { AuditAction::AgentRemoved } else { AuditAction::AgentCreated };
        add(&bench, action, &n.to_string()).await;
    }
    let mut seen = Vec::new();
    let mut cursor: Option<Cursor> = None;
    loop {
        let mut reader = bench.store.reader().await.unwrap();
        let page = list(&mut reader, AuditFilter::default(), cursor.as_ref(), 2).await.unwrap();
        assert!(page.rows.len() <= 2);
        seen.extend(page.rows.into_iter().map(|record| record.subject.unwrap()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["4", "3", "2", "1", "0"]);
    let since = Some(bench.now() - Duration::from_secs(2));
    assert_eq!(subjects(&bench, AuditFilter { since, action: None }).await, ["4", "3", "2"]);
    let action = Some(AuditAction::AgentRemoved);
    assert_eq!(subjects(&bench, AuditFilter { since: None, action }).await, ["2"]);
}

async fn a_rolled_back_change_has_no_record(bench: Bench) {
    // SEC-6
    let new = AuditRecord::new(&bench.clock, Actor::tool_user(bench.alice), AuditAction::StoppedAll, "");
    let failed: store::Result<()> = bench
        .transaction(async move |tx| {
            record(tx, &new).await?;
            Err(store::Error::NotFound)
        })
        .await;
    assert!(failed.is_err());
    assert!(subjects(&bench, AuditFilter::default()).await.is_empty());
}

async fn old_records_are_removed(bench: Bench) {
    // SEC-6, OPS-7
    add(&bench, AuditAction::AgentCreated, "old").await;
    bench.clock.advance(Duration::from_secs(364 * 24 * 3600));
    add(&bench, AuditAction::AgentCreated, "new").await;
    assert_eq!(sweep(&bench.store, Retention::default(), bench.now()).await.unwrap().audit_records, 0);
    bench.clock.advance(Duration::from_secs(24 * 3600));
    let keep = Retention { audit: None, ..Retention::default() };
    assert_eq!(sweep(&bench.store, keep, bench.now()).await.unwrap().audit_records, 0);
    assert_eq!(sweep(&bench.store, Retention::default(), bench.now()).await.unwrap().audit_records, 1);
    assert_eq!(subjects(&bench, AuditFilter::default()).await, ["new"]);
}
