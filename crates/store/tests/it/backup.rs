//! Backups: whole or refused, and from either database into the other.

use model::execution::StateName;
use model::task::Filter;
use sha2::Digest;
use store::backup::{Backup, restore, tables};
use store::executions::{Left, Whose, abandoned, append, give_back, output, recover};
use store::{Error, Location, sessions, tasks};

use crate::executions::said;
use crate::{Bench, on_both, write};

on_both!(
    everything_comes_back,
    one_of_an_older_schema_comes_back,
    one_without_notifications_comes_back,
    half_a_backup_changes_nothing,
    every_table_is_in_it,
    a_snapshot_stands_still,
    executions_come_back_without_their_holders
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
    restore(&bench.store, file).await
}

async fn titles(bench: &Bench) -> Vec<String> {
    let mut reader = bench.store.reader().await.unwrap();
    let page = tasks::list(&mut reader, bench.alice, &Filter::default(), None, 2000).await.unwrap();
    page.rows.into_iter().map(|task| task.title).collect()
}

async fn everything_comes_back(bench: Bench) {
    // OPS-7
    let before = fill(&bench).await;
    let text = backup(&bench).await;
    let alice = bench.alice;
    write!(bench, tx => store::data::erase(tx, alice)).unwrap();
    let late = bench.add(alice, bench.titled("written after the backup")).await;
    assert_eq!(restored(&bench, &text).await.unwrap(), 1001 + 50, "tasks and the steps that can be undone");
    assert_eq!(titles(&bench).await, before);
    assert!(!before.contains(&late.title));
    let first_row = text.lines().find(|line| line.starts_with('[')).unwrap();
    let smuggled = format!("{text}{}\n", first_row.replace("\"0 ", "\"x "));
    assert_eq!(restored(&bench, &smuggled).await.unwrap(), 1051, "lines after the end are not read");
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

async fn one_of_an_older_schema_comes_back(bench: Bench) {
    // OPS-7; the first schema had no reminders, nor executions
    bench.add(bench.alice, bench.titled("kept")).await;
    bench.submit(bench.run(bench.alice, "a")).await.unwrap();
    let text = backup(&bench).await;
    let header = format!(
        "\"schema\":{}",
        serde_json::from_str::<serde_json::Value>(text.lines().next().unwrap()).unwrap()["schema"]
    );
    let mut known = true;
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
                known = !later.iter().any(|later| table.contains(&format!("\"table\":\"{later}\"")));
            }
            known || line.contains("\"sha256\"")
        })
        .collect();
    let old = resealed(&format!("{}\n", old.join("\n")).replacen(&header, "\"schema\":1", 1));
    assert_ne!(old, text);
    restored(&bench, &old).await.unwrap();
    assert_eq!(titles(&bench).await, ["kept"]);
    assert_eq!(bench.count("SELECT COUNT(*) FROM executions").await, 0, "what a backup does not have is not there");
}

async fn one_without_notifications_comes_back(bench: Bench) {
    // OPS-7, TASK-4: the fourth schema did not know when a reminder is next, nor of what users were told
    let alice = bench.alice;
    let now = bench.now();
    for due_date in ["2026-01-10T12:00:02Z", "2026-01-10T13:00:00Z"] {
        let draft = model::task::Draft { title: "a".into(), due_date: Some(due_date.into()), ..Default::default() };
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
        status: model::reminder::Status::Scheduled,
    };
    write!(bench, tx => store::data::import_reminders(tx, alice, &[reminder], now)).unwrap();
    let text = backup(&bench).await;
    let mut in_one = false;
    let mut old = String::new();
    for line in text.lines() {
        let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
        if value["adjutant_backup"].is_number() {
            value["schema"] = 4.into();
        }
        if let Some(table) = value["table"].as_str() {
            in_one = ["tasks", "reminders", "task_changes"].contains(&table);
            if in_one {
                value["columns"].as_array_mut().unwrap().pop().unwrap();
            }
        } else if let Some(row) = value.as_array_mut().filter(|_| in_one) {
            row.pop().unwrap();
        }
        old.push_str(&format!("{value}\n"));
    }
    restored(&bench, &resealed(&old)).await.unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    assert_eq!(store::reminders::next(&mut reader).await.unwrap(), Some(now));
    let left = store::due::next(&mut reader).await.unwrap().unwrap();
    assert_eq!(left.to_string(), "2026-01-10T13:00:00Z", "what was past is not told any more");
}

async fn half_a_backup_changes_nothing(bench: Bench) {
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

/// A backup written by hand: with the right digest, whatever is in it.
fn resealed(text: &str) -> String {
    let (body, _) = text.trim_end().rsplit_once('\n').unwrap();
    let rows = body.lines().filter(|line| line.starts_with('[')).count();
    let digest = model::text::hex(&sha2::Sha256::digest(format!("{body}\n")));
    format!("{body}\n{}\n", serde_json::json!({"rows": rows, "sha256": digest}))
}

async fn every_table_is_in_it(bench: Bench) {
    let mut known: Vec<(String, String)> =
        tables().flat_map(|(t, columns)| columns.into_iter().map(move |c| (t.to_owned(), c.to_owned()))).collect();
    let mut there = match &bench.location {
        Location::Sqlite(path) => {
            let sql = "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name) p WHERE m.type = 'table'";
            let conn = rusqlite::Connection::open(path).unwrap();
            let mut listing = conn.prepare(sql).unwrap();
            let rows = listing.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
            rows.collect::<Result<Vec<(String, String)>, _>>().unwrap()
        }
        Location::Postgres(url) => {
            let sql = "SELECT table_name::text, column_name::text FROM information_schema.columns \
                       WHERE table_schema = 'public'";
            let mut conn = <sqlx::PgConnection as sqlx::Connection>::connect(url).await.unwrap();
            sqlx::query_as::<_, (String, String)>(sql).fetch_all(&mut conn).await.unwrap()
        }
    };
    // Whose turn it is and who is at work say nothing any more when a backup is read again.
    there.retain(|(table, _)| !["schema_steps", "turns", "nodes", "places"].contains(&table.as_str()));
    known.sort();
    there.sort();
    assert_eq!(known, there);
}

async fn a_snapshot_stands_still(bench: Bench) {
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

async fn executions_come_back_without_their_holders(bench: Bench) {
    // OPS-7, SUP-11; while a node is at work
    let alice = bench.alice;
    let node = bench.node().await;
    let now = bench.now();
    let session = model::session::Session {
        id: bench.clock.id(),
        agent_id: "s".into(),
        state: model::session::State::Ready,
        created_at: now,
        last_activity: now,
        expires_at: now,
        ended_at: None,
        error_message: None,
    };
    let open = session.clone();
    write!(bench, tx => sessions::open(tx, alice, &open, node, 1)).unwrap();
    for _ in 0..4 {
        bench.submit(bench.run(alice, "a")).await.unwrap();
    }
    let ended = bench.finish(&bench.claim(node, "a", 1, 1).await[0], Left::default()).await;
    let at_work = bench.claim(node, "a", 1, 1).await.remove(0);
    let id = at_work.fence.id;
    let mut running = at_work.stored.execution.clone();
    running.start(None, bench.now()).unwrap();
    write!(bench, tx => append(tx, id, &[said(3, "stdout", 0, "half")])).unwrap();
    assert!(bench.save(at_work.fence, &running, None).await);
    let text = backup(&bench).await;
    // Meanwhile the next one begins.
    let at_work = (at_work.fence, running);
    write!(bench, tx => give_back(tx, id, node)).unwrap();
    let later = bench.claim(node, "a", 1, 1).await.remove(0);

    restored(&bench, &text).await.unwrap();
    assert_eq!(bench.execution(ended.id).await, ended);
    assert_eq!(bench.execution(later.fence.id).await.state_name(), StateName::Idle);
    assert_eq!(bench.count("SELECT COUNT(*) FROM places").await, 0);
    assert!(!bench.save(at_work.0, &at_work.1, None).await, "what was before has no holder");
    let again = bench.claim(node, "a", 1, 1).await.remove(0);
    assert_eq!(again.fence.id, later.fence.id);
    assert_ne!(again.fence, later.fence);
    assert!(!bench.save(later.fence, &later.stored.execution, None).await, "nor can an earlier claim be used");
    assert!(bench.save(again.fence, &again.stored.execution, None).await);

    let now = bench.now();
    let found = write!(bench, tx => abandoned(tx, 9)).unwrap();
    assert_eq!(found.iter().map(|stored| stored.execution.id).collect::<Vec<_>>(), [id]);
    let stored = found[0].clone();
    let failed = write!(bench, tx => recover(tx, stored, "restored", None, now)).unwrap();
    crate::queue::legal(&failed);
    let mut reader = bench.store.reader().await.unwrap();
    assert_eq!(output(&mut reader, id, "stdout").await.unwrap(), "half");
    assert_eq!(write!(bench, tx => sessions::abandon(tx, now)).unwrap(), 1);
    let session = sessions::get(&mut reader, Whose::Users(alice), session.id).await.unwrap();
    assert_eq!(session.state, model::session::State::Failed);
}
