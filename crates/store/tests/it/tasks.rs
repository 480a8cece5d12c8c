//! Tasks: kept whole, listed by filter and page, and out of reach of other users.

use model::task::{Draft, Filter, FilterDraft, Patch, Priority, Status, Task};
use model::{User, UserId};
use store::page::Cursor;
use store::{Error, tasks};

use crate::{Bench, on_both};

on_both!(kept_as_written, filters, pages, changes, others_reach_nothing, a_failed_job_leaves_nothing);

async fn titles(bench: &Bench, owner: UserId, filter: FilterDraft<'_>) -> Vec<String> {
    let user = User::local(jiff::tz::TimeZone::get("Europe/Berlin").unwrap());
    let filter = filter.check(bench.now(), &user).unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    let page = tasks::list(&mut reader, owner, &filter, None, 50).await.unwrap();
    page.rows.into_iter().map(|task| task.title).collect()
}

async fn get(bench: &Bench, owner: UserId, task: &Task) -> store::Result<Task> {
    tasks::get(&mut bench.store.reader().await.unwrap(), owner, task.id).await
}

async fn kept_as_written(bench: Bench) {
    let task = bench.draft(Draft {
        title: "Zahlen “ü” \\ % _ ☐ 日本 🎉".into(),
        description: Some("line one\nline 'two'; DROP TABLE tasks; --".into()),
        priority: Some("high".into()),
        due_date: Some("2026-01-31T15:00:00-05:00".into()),
        recurrence: Some("FREQ=MONTHLY;BYMONTHDAY=1".into()),
        tags: Some(vec!["Home".into(), "two words".into()]),
    });
    let task = bench.add(bench.alice, task).await;
    assert_eq!(get(&bench, bench.alice, &task).await.unwrap(), task);
    let plain = bench.add(bench.alice, bench.titled("plain")).await;
    assert_eq!(get(&bench, bench.alice, &plain).await.unwrap(), plain);
}

async fn filters(bench: Bench) {
    let draft = |title: &str| Draft { title: title.into(), ..Draft::default() };
    let today = Draft { due_date: Some("2026-01-10".into()), tags: Some(vec!["Work".into()]), ..draft("today") };
    let tonight = Draft { due_date: Some("2026-01-10T23:30".into()), ..draft("tonight") };
    let sunday = Draft { due_date: Some("2026-01-11".into()), priority: Some("high".into()), ..draft("sunday") };
    let past = Draft { due_date: Some("2026-01-09".into()), description: Some("Größe 100%".into()), ..draft("past") };
    let monday =
        Draft { due_date: Some("2026-01-12T00:00".into()), tags: Some(vec!["workshop".into()]), ..draft("monday") };
    for task in [today, tonight, sunday, past, monday, draft("someday")] {
        bench.add(bench.alice, bench.draft(task)).await;
    }
    let done = bench.add(bench.alice, bench.titled("done")).await;
    let alice = bench.alice;
    bench.complete(alice, done.id).await.unwrap();

    let none = FilterDraft::default();
    let all = ["today", "tonight", "sunday", "past", "monday", "someday"];
    assert_eq!(titles(&bench, alice, none.clone()).await, all);
    let shown = async |filter| titles(&bench, alice, filter).await;
    assert_eq!(shown(FilterDraft { status: Some("completed"), ..none }).await, ["done"]);
    assert_eq!(shown(FilterDraft { status: Some("all"), ..none }).await.len(), 7);
    assert_eq!(shown(FilterDraft { priority: Some("high"), ..none }).await, ["sunday"]);
    assert_eq!(shown(FilterDraft { due: Some("today"), ..none }).await, ["today", "tonight"]);
    assert_eq!(shown(FilterDraft { due: Some("2026-01-11"), ..none }).await, ["sunday"]);
    assert_eq!(shown(FilterDraft { due: Some("this_week"), ..none }).await, ["today", "tonight", "sunday", "past"]);
    assert_eq!(shown(FilterDraft { due: Some("overdue"), ..none }).await, ["past"]);
    let tags = ["#WORK".to_owned()];
    assert_eq!(shown(FilterDraft { tags: &tags, ..none }).await, ["today"], "not the workshop");
    let tags = ["work".to_owned(), "home".to_owned()];
    assert!(shown(FilterDraft { tags: &tags, ..none }).await.is_empty(), "all of them");
    assert_eq!(shown(FilterDraft { q: Some("GRÖSSE"), ..none }).await, [""; 0], "ß is not ss");
    assert_eq!(shown(FilterDraft { q: Some("GRÖ"), ..none }).await, ["past"]);
    assert_eq!(shown(FilterDraft { q: Some("100%"), ..none }).await, ["past"]);
    assert_eq!(shown(FilterDraft { q: Some("%"), ..none }).await, ["past"], "a wildcard is a character");
    let id = done.id.to_string();
    assert_eq!(shown(FilterDraft { status: Some("all"), reference: Some(&id[28..]), ..none }).await, ["done"]);
    assert_eq!(shown(FilterDraft { reference: Some("ToNight"), ..none }).await, ["tonight"]);
    assert_eq!(shown(FilterDraft { reference: Some("Größe"), ..none }).await, [""; 0], "a description is no name");
}

async fn pages(bench: Bench) {
    for n in 0..7 {
        bench.add(bench.alice, bench.titled(&format!("task {n}"))).await;
    }
    let mut reader = bench.store.reader().await.unwrap();
    let mut seen = Vec::new();
    let mut cursor = None::<Cursor>;
    loop {
        let page = tasks::list(&mut reader, bench.alice, &Filter::default(), cursor.as_ref(), 3).await.unwrap();
        seen.extend(page.rows.into_iter().map(|task| task.title));
        match page.next {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    assert_eq!(seen, (0..7).map(|n| format!("task {n}")).collect::<Vec<_>>());
    let whole = tasks::list(&mut reader, bench.alice, &Filter::default(), None, 7).await.unwrap();
    assert_eq!(whole.next, None, "a page that is exactly full is the last");
}

async fn changes(bench: Bench) {
    let task = bench.add(bench.alice, bench.titled("old")).await;
    let patch = Patch { title: Some("new".into()), priority: Some("low".into()), ..Patch::default() };
    let user = User::local(jiff::tz::TimeZone::UTC);
    let change = patch.check(model::task::Limits::default(), &user).unwrap();
    let alice = bench.alice;
    let now = bench.now();
    let changed = bench
        .change(alice, move |tx, step| Box::pin(async move { tasks::change(tx, step, task.id, &change, now).await }));
    let changed = changed.await.unwrap();
    assert_eq!((changed.title.as_str(), changed.priority, changed.status), ("new", Priority::Low, Status::Pending));
    assert_eq!(get(&bench, alice, &task).await.unwrap(), changed);
    assert_eq!(bench.delete(alice, task.id).await.unwrap(), changed);
    assert!(matches!(get(&bench, alice, &task).await, Err(Error::NotFound)));
    assert!(matches!(bench.delete(alice, task.id).await, Err(Error::NotFound)));
}

async fn others_reach_nothing(bench: Bench) {
    // AGENT-3
    let task = bench.add(bench.alice, bench.titled("secret")).await;
    let bob = bench.bob;
    assert!(matches!(get(&bench, bob, &task).await, Err(Error::NotFound)));
    assert_eq!(titles(&bench, bob, FilterDraft { status: Some("all"), ..FilterDraft::default() }).await, [""; 0]);
    let id = task.id.to_string();
    assert_eq!(titles(&bench, bob, FilterDraft { reference: Some(&id), ..FilterDraft::default() }).await, [""; 0]);
    assert!(matches!(bench.complete(bob, task.id).await, Err(Error::NotFound)));
    assert!(matches!(bench.delete(bob, task.id).await, Err(Error::NotFound)));
    assert_eq!(get(&bench, bench.alice, &task).await.unwrap(), task);
}

async fn a_failed_job_leaves_nothing(bench: Bench) {
    let alice = bench.alice;
    let task = bench.titled("half");
    let stored = task.clone();
    let failed: store::Result<()> = bench
        .change(alice, |tx, step| {
            Box::pin(async move {
                tasks::create(tx, step, &stored).await?;
                Err(Error::NotFound)
            })
        })
        .await;
    assert!(failed.is_err());
    assert!(matches!(get(&bench, alice, &task).await, Err(Error::NotFound)));
}
