//! Backups are restored completely or not at all, also into the other database.

use model::audit::{Actor, AuditAction, AuditRecord};
use model::execution::StateName;
use model::task::TaskFilter;
use sha2::Digest;
use store::audit::AuditFilter;
use store::backup::{Backup, restore, table_columns};
use store::executions::{OutputSummary, OwnerScope, append_events, lock_abandoned, output, recover, release_slot};
use store::{Error, Location, sessions, tasks};

use crate::executions::output_event;
use crate::{Bench, on_both, write};

on_both!(
    a_restore_returns_all_rows,
    a_backup_of_an_older_schema_can_be_restored,
    a_backup_without_notifications_can_be_restored,
    an_invalid_backup_changes_nothing,
    a_backup_contains_every_table,
    a_backup_excludes_later_writes,
    restored_executions_have_no_holder,
    a_restore_keeps_the_audit_log_and_a_stop
);

async fn backup(bench: &Bench) -> String {
    let mut backup = Backup::begin(&bench.store, bench.now()).await.unwrap();
    let mut text = String::new();
    while let Some(chunk) = backup.next().await.unwrap() {
        text.push_str(&chunk);
    }
    text
}

async fn restored(bench: &Bench, text: &str) -> store::Result<u64> {
    let file = bench.dir().join("backup.jsonl");
    std::fs::write(&file, text).unwrap();
    restore(&bench.store, file, None).await
}

async fn titles(bench: &Bench) -> Vec<String> {
    let mut reader = bench.store.reader().await.unwrap();
    let page = tasks::list(&mut reader, bench.alice, &TaskFilter::default(), None, 2000).await.unwrap();
    page.rows.into_iter().map(|task| task.title).collect()
}

async fn a_restore_returns_all_rows(bench: Bench) {
    // OPS-7
    let before = fill(&bench).await;
    let text = backup(&bench).await;
    let alice = bench.alice;
    write!(bench, alice, tx => store::data::erase(tx, alice)).unwrap();
    let late = bench.add(alice, bench.titled("written after the backup")).await;
    assert_eq!(restored(&bench, &text).await.unwrap(), 1001 + 50, "tasks and undo steps");
    assert_eq!(titles(&bench).await, before);
    assert!(!before.contains(&late.title));
    let first_row = text.lines().find(|line| line.starts_with('[')).unwrap();
    let appended = format!("{text}{}\n", first_row.replace("\"0 ", "\"x "));
    assert_eq!(restored(&bench, &appended).await.unwrap(), 1051, "lines after the end are not read");
    assert_eq!(titles(&bench).await, before);
}

#[tokio::test]
async fn sqlite_restores_into_postgres() {
    // OPS-7
    restores_into(Bench::sqlite().await, Bench::postgres().await).await;
}

#[tokio::test]
async fn postgres_restores_into_sqlite() {
    // OPS-7
    restores_into(Bench::postgres().await, Bench::sqlite().await).await;
}

/// Restores a backup of one database into the other; a backup of that one must have the same rows.
async fn restores_into(from: Bench, into: Bench) {
    let before = fill(&from).await;
    let text = backup(&from).await;
    restored(&into, &text).await.unwrap();
    assert_eq!(titles(&into).await, before);
    assert_eq!(rows(&backup(&into).await), rows(&text));
}

/// Stores more tasks than one chunk of a backup holds and returns their titles.
async fn fill(bench: &Bench) -> Vec<String> {
    for n in 0..1001 {
        bench.add(bench.alice, bench.titled(&format!("{n} “quoted”\u{2028}"))).await;
    }
    titles(bench).await
}

/// Returns the lines of a backup without the header, which has the time, and the digest, which depends on it.
fn rows(backup: &str) -> Vec<&str> {
    let mut lines: Vec<_> = backup.lines().skip(1).collect();
    lines.pop();
    lines
}

async fn a_backup_of_an_older_schema_can_be_restored(bench: Bench) {
    // OPS-7; the first schema had no reminders and no executions
    bench.add(bench.alice, bench.titled("kept")).await;
    bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    let text = backup(&bench).await;
    let header = format!(
        "\"schema\":{}",
        serde_json::from_str::<serde_json::Value>(text.lines().next().unwrap()).unwrap()["schema"]
    );
    let mut is_known = true;
    let old: Vec<_> = text
        .lines()
        .filter(|line| {
            if let Some(table) = line.strip_prefix("{").filter(|line| line.contains("\"table\"")) {
                let later = [
                    "reminders",
                    "notifications",
                    "deliveries",
                    "agents",
                    "executions",
                    "execution_events",
                    "sessions",
                ];
                is_known = !later.iter().any(|later| table.contains(&format!("\"table\":\"{later}\"")));
            }
            is_known || line.contains("\"sha256\"")
        })
        .collect();
    let old = resealed(&format!("{}\n", old.join("\n")).replacen(&header, "\"schema\":1", 1));
    assert_ne!(old, text);
    restored(&bench, &old).await.unwrap();
    assert_eq!(titles(&bench).await, ["kept"]);
    assert_eq!(
        bench.count("SELECT COUNT(*) FROM executions").await,
        0,
        "tables that are not in the backup become empty"
    );
}

async fn a_backup_without_notifications_can_be_restored(bench: Bench) {
    // OPS-7, TASK-4: the fourth schema had no next firing time of reminders and no notifications
    let alice = bench.alice;
    let now = bench.now();
    for due_date in ["2026-01-10T12:00:02Z", "2026-01-10T13:00:00Z"] {
        let draft = model::task::TaskDraft { title: "a".into(), due_date: Some(due_date.into()), ..Default::default() };
        bench.add(alice, bench.draft(draft)).await;
    }
    let task = bench.add(alice, bench.titled("reminded")).await;
    let reminder = model::reminder::Reminder {
        id: bench.clock.id(),
        task_id: task.id,
        remind_at: now,
        repeat_interval_minutes: None,
        repeat_count: None,
        fired_count: 0,
        status: model::reminder::ReminderStatus::Scheduled,
        recurrence: None,
        before_minutes: None,
        time_zone: None,
        snoozed_until: None,
        next_at: None,
    };
    write!(bench, alice, tx => store::data::import_reminders(tx, alice, &[reminder], now)).unwrap();
    let text = backup(&bench).await;
    let mut removed = 0;
    let mut old = String::new();
    for line in text.lines() {
        let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
        if value["adjutant_backup"].is_number() {
            value["schema"] = 4.into();
        }
        if let Some(table) = value["table"].as_str() {
            // The columns of later schemas are the last ones.
            removed = match table {
                "tasks" => 3,
                "reminders" => 6,
                "task_changes" => 1,
                _ => 0,
            };
            let columns = value["columns"].as_array_mut().unwrap();
            columns.truncate(columns.len() - removed);
        } else if let Some(row) = value.as_array_mut() {
            row.truncate(row.len() - removed);
        }
        old.push_str(&format!("{value}\n"));
    }
    restored(&bench, &resealed(&old)).await.unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    assert_eq!(store::reminders::next_due_at(&mut reader).await.unwrap(), Some(now));
    let left = store::due::next_due_at(&mut reader).await.unwrap().unwrap();
    assert_eq!(left.to_string(), "2026-01-10T13:00:00Z", "past due times cause no notification");
}

async fn an_invalid_backup_changes_nothing(bench: Bench) {
    // OPS-7
    for n in 0..3 {
        bench.add(bench.alice, bench.titled(&n.to_string())).await;
    }
    let text = backup(&bench).await;
    let lines: Vec<_> = text.lines().collect();
    let without_a_row = text.replacen(lines[3], "", 1).replacen("\n\n", "\n", 1);
    let edited = text.replace("\"pending\"", "\"completed\"");
    let newer = text.replacen("\"schema\":", "\"schema\":99", 1);
    let foreign = text.replace("\"table\":\"tasks\"", "\"table\":\"users; DROP TABLE tasks\"");
    let cut = &text[..text.len() / 2];
    let short = resealed(&text.replacen("\"pending\",", "", 1));
    let mistyped = resealed(&text.replacen("\"pending\"", "7", 1));
    let against_the_rules = resealed(&text.replacen("\"pending\"", "null", 1));
    for wrong in
        ["", "{}", "hello", cut, &without_a_row, &edited, &newer, &foreign, &short, &mistyped, &against_the_rules]
    {
        let error = restored(&bench, wrong).await.unwrap_err();
        assert!(matches!(error, Error::Backup(_) | Error::NewerSchema { .. }), "{error}");
        assert_eq!(titles(&bench).await, ["0", "1", "2"]);
    }
}

/// Returns an edited backup with a correct digest.
fn resealed(text: &str) -> String {
    let (body, _) = text.trim_end().rsplit_once('\n').unwrap();
    let rows = body.lines().filter(|line| line.starts_with('[')).count();
    let digest = model::text::hex(&sha2::Sha256::digest(format!("{body}\n")));
    format!("{body}\n{}\n", serde_json::json!({"rows": rows, "sha256": digest}))
}

async fn a_backup_contains_every_table(bench: Bench) {
    // OPS-7
    let mut known: Vec<(String, String)> = table_columns()
        .flat_map(|(t, columns)| columns.into_iter().map(move |c| (t.to_owned(), c.to_owned())))
        .collect();
    let mut existing = match &bench.location {
        Location::Sqlite(path) => {
            let sql = "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name) p WHERE m.type = 'table'";
            let conn = rusqlite::Connection::open(path).unwrap();
            let mut listing = conn.prepare(sql).unwrap();
            let rows = listing.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
            rows.collect::<Result<Vec<(String, String)>, _>>().unwrap()
        }
        Location::Postgres(settings) => {
            let sql = "SELECT table_name::text, column_name::text FROM information_schema.columns \
                       WHERE table_schema = 'public'";
            let mut conn = <sqlx::PgConnection as sqlx::Connection>::connect(&settings.url).await.unwrap();
            sqlx::query_as::<_, (String, String)>(sql).fetch_all(&mut conn).await.unwrap()
        }
    };
    // These tables describe running processes, or are an index, and are not part of a backup.
    existing.retain(|(table, _)| {
        !["schema_steps", "turns", "nodes", "places"].contains(&table.as_str()) && !table.starts_with("task_index")
    });
    known.sort();
    existing.sort();
    assert_eq!(known, existing);
}

async fn a_backup_excludes_later_writes(bench: Bench) {
    // OPS-7
    bench.add(bench.alice, bench.titled("before")).await;
    let mut running = Backup::begin(&bench.store, bench.now()).await.unwrap();
    let mut text = running.next().await.unwrap().unwrap();
    text.push_str(&running.next().await.unwrap().unwrap());
    bench.add(bench.alice, bench.titled("meanwhile")).await;
    while let Some(chunk) = running.next().await.unwrap() {
        text.push_str(&chunk);
    }
    assert!(text.contains("before") && !text.contains("meanwhile"));
}

async fn a_restore_keeps_the_audit_log_and_a_stop(bench: Bench) {
    // SEC-6, OPS-7
    crate::audit::add(&bench, AuditAction::AgentCreated, "in the backup").await;
    let text = backup(&bench).await;
    crate::audit::add(&bench, AuditAction::AgentRemoved, "after the backup").await;
    let alice = bench.alice;
    let now = bench.now();
    write!(bench, tx => store::stop_state::stop(tx, alice, Some("why"), now)).unwrap();
    let file = bench.dir().join("backup.jsonl");
    std::fs::write(&file, &text).unwrap();
    bench.clock.advance(std::time::Duration::from_secs(1));
    let actor = Actor::tool_user(alice);
    let record = AuditRecord::new(&bench.clock, actor.clone(), AuditAction::BackupRestored, "the restore");
    restore(&bench.store, file.clone(), Some(record)).await.unwrap();
    let expected = ["the restore", "after the backup", "in the backup"];
    assert_eq!(crate::audit::subjects(&bench, AuditFilter::default()).await, expected);
    let mut reader = bench.store.reader().await.unwrap();
    let stop = store::stop_state::current(&mut reader).await.unwrap();
    assert_eq!(stop.unwrap().reason.as_deref(), Some("why"), "a restore does not resume");

    std::fs::write(&file, &text[..text.len() / 2]).unwrap();
    let record = AuditRecord::new(&bench.clock, actor, AuditAction::BackupRestored, "failed");
    assert!(restore(&bench.store, file, Some(record)).await.is_err());
    assert_eq!(
        crate::audit::subjects(&bench, AuditFilter::default()).await,
        expected,
        "a failed restore has no record"
    );
}

async fn restored_executions_have_no_holder(bench: Bench) {
    // OPS-7, SUP-11; while a node runs
    let alice = bench.alice;
    let node = bench.node().await;
    let now = bench.now();
    let session = model::session::Session {
        id: bench.clock.id(),
        agent_id: "s".into(),
        state: model::session::SessionState::Ready,
        created_at: now,
        last_activity: now,
        expires_at: now,
        ended_at: None,
        error_message: None,
    };
    let open = session.clone();
    write!(bench, alice, tx => sessions::open(tx, alice, &open, node, 1)).unwrap();
    for _ in 0..4 {
        bench.enqueue(bench.new_execution(alice, "a")).await.unwrap();
    }
    let ended = bench.finish(&bench.claim(node, "a", 1, 1).await[0], OutputSummary::default()).await;
    let held = bench.claim(node, "a", 1, 1).await.remove(0);
    let id = held.fence.id;
    let mut running = held.row.execution.clone();
    running.start(None, bench.now()).unwrap();
    write!(bench, tx => append_events(tx, id, &[output_event(3, "stdout", 0, "half")])).unwrap();
    assert!(bench.save(held.fence, &running, None).await);
    let text = backup(&bench).await;
    // Meanwhile the next execution starts.
    let held = (held.fence, running);
    write!(bench, tx => release_slot(tx, id, node)).unwrap();
    let later = bench.claim(node, "a", 1, 1).await.remove(0);

    restored(&bench, &text).await.unwrap();
    assert_eq!(bench.execution(ended.id).await, ended);
    assert_eq!(bench.execution(later.fence.id).await.state_name(), StateName::Idle);
    assert_eq!(bench.count("SELECT COUNT(*) FROM places").await, 0);
    assert!(!bench.save(held.0, &held.1, None).await, "a restored execution has no holder");
    let again = bench.claim(node, "a", 1, 1).await.remove(0);
    assert_eq!(again.fence.id, later.fence.id);
    assert_ne!(again.fence, later.fence);
    assert!(!bench.save(later.fence, &later.row.execution, None).await, "an earlier claim is invalid");
    assert!(bench.save(again.fence, &again.row.execution, None).await);

    let now = bench.now();
    let found = write!(bench, tx => lock_abandoned(tx, 9)).unwrap();
    assert_eq!(found.iter().map(|row| row.execution.id).collect::<Vec<_>>(), [id]);
    let row = found[0].clone();
    let failed = write!(bench, tx => recover(tx, row, "restored", None, now)).unwrap();
    crate::queue::assert_legal_transitions(&failed);
    let mut reader = bench.store.reader().await.unwrap();
    assert_eq!(output(&mut reader, id, "stdout").await.unwrap(), "half");
    assert_eq!(write!(bench, tx => sessions::fail_abandoned(tx, now)).unwrap(), 1);
    let session = sessions::get(&mut reader, OwnerScope::User(alice), session.id).await.unwrap();
    assert_eq!(session.state, model::session::SessionState::Failed);
}
