//! Tasks: stored completely, listed by filter and page, and visible only to their user.

use model::task::{Priority, Task, TaskDraft, TaskFilter, TaskFilterDraft, TaskPatch, TaskStatus};
use model::{User, UserId};
use store::page::Cursor;
use store::{Error, tasks};

use crate::{Bench, on_both};

on_both!(
    tasks_are_read_as_written,
    filters_select_tasks,
    searches_find_tasks_before_and_after_they_are_indexed,
    references_are_parts_of_titles_or_ids,
    tasks_are_paged,
    tasks_are_sorted_across_pages,
    tasks_are_changed_and_deleted,
    tasks_of_other_users_are_not_found,
    a_failed_transaction_leaves_no_task
);

async fn titles(bench: &Bench, owner: UserId, filter: TaskFilterDraft<'_>) -> Vec<String> {
    let user = User::local(jiff::tz::TimeZone::get("Europe/Berlin").unwrap());
    let filter = filter.check(bench.now(), &user).unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    let page = tasks::list(&mut reader, owner, &filter, None, 50).await.unwrap();
    page.rows.into_iter().map(|task| task.title).collect()
}

async fn get(bench: &Bench, owner: UserId, task: &Task) -> store::Result<Task> {
    tasks::get(&mut bench.store.reader().await.unwrap(), owner, task.id).await
}

async fn tasks_are_read_as_written(bench: Bench) {
    // SUP-9, TASK-5
    let task = bench.draft(TaskDraft {
        title: "Zahlen “ü” \\ % _ ☐ 日本 🎉".into(),
        description: Some("line one\nline 'two'; DROP TABLE tasks; --".into()),
        priority: Some("high".into()),
        due_date: Some("2026-01-31T15:00:00-05:00".into()),
        recurrence: Some("FREQ=MONTHLY;BYMONTHDAY=1".into()),
        tags: Some(vec!["Home".into(), "two words".into()]),
        ..TaskDraft::default()
    });
    let task = bench.add(bench.alice, task).await;
    assert_eq!(get(&bench, bench.alice, &task).await.unwrap(), task);
    let plain = bench.add(bench.alice, bench.titled("plain")).await;
    assert_eq!(get(&bench, bench.alice, &plain).await.unwrap(), plain);
}

async fn filters_select_tasks(bench: Bench) {
    // TASK-1
    let draft = |title: &str| TaskDraft { title: title.into(), ..TaskDraft::default() };
    let today = TaskDraft { due_date: Some("2026-01-10".into()), tags: Some(vec!["Work".into()]), ..draft("today") };
    let tonight = TaskDraft { due_date: Some("2026-01-10T23:30".into()), ..draft("tonight") };
    let sunday = TaskDraft { due_date: Some("2026-01-11".into()), priority: Some("high".into()), ..draft("sunday") };
    let past =
        TaskDraft { due_date: Some("2026-01-09".into()), description: Some("Größe 100%".into()), ..draft("past") };
    let monday =
        TaskDraft { due_date: Some("2026-01-12T00:00".into()), tags: Some(vec!["workshop".into()]), ..draft("monday") };
    for task in [today, tonight, sunday, past, monday, draft("someday")] {
        bench.add(bench.alice, bench.draft(task)).await;
    }
    let done = bench.add(bench.alice, bench.titled("done")).await;
    let alice = bench.alice;
    bench.complete(alice, done.id).await.unwrap();

    let none = TaskFilterDraft::default();
    let all = ["today", "tonight", "sunday", "past", "monday", "someday"];
    assert_eq!(titles(&bench, alice, none.clone()).await, all);
    let shown = async |filter| titles(&bench, alice, filter).await;
    assert_eq!(shown(TaskFilterDraft { status: Some("completed"), ..none }).await, ["done"]);
    assert_eq!(shown(TaskFilterDraft { status: Some("all"), ..none }).await.len(), 7);
    assert_eq!(shown(TaskFilterDraft { priority: Some("high"), ..none }).await, ["sunday"]);
    assert_eq!(shown(TaskFilterDraft { due: Some("today"), ..none }).await, ["today", "tonight"]);
    assert_eq!(shown(TaskFilterDraft { due: Some("2026-01-11"), ..none }).await, ["sunday"]);
    assert_eq!(shown(TaskFilterDraft { due: Some("this_week"), ..none }).await, ["today", "tonight", "sunday", "past"]);
    assert_eq!(shown(TaskFilterDraft { due: Some("overdue"), ..none }).await, ["past"]);
    let tags = ["#WORK".to_owned()];
    assert_eq!(shown(TaskFilterDraft { tags: &tags, ..none }).await, ["today"], "not the workshop");
    let tags = ["work".to_owned(), "home".to_owned()];
    assert!(shown(TaskFilterDraft { tags: &tags, ..none }).await.is_empty(), "all tags must match");
    assert_eq!(shown(TaskFilterDraft { q: Some("GRÖSSE"), ..none }).await, [""; 0], "ß is not ss");
    assert_eq!(shown(TaskFilterDraft { q: Some("GRÖ"), ..none }).await, ["past"]);
    assert_eq!(shown(TaskFilterDraft { q: Some("100%"), ..none }).await, ["past"]);
    assert_eq!(shown(TaskFilterDraft { q: Some("%"), ..none }).await, ["past"], "wildcards are escaped");
    let id = done.id.to_string();
    assert_eq!(shown(TaskFilterDraft { status: Some("all"), reference: Some(&id[28..]), ..none }).await, ["done"]);
    assert_eq!(shown(TaskFilterDraft { reference: Some("ToNight"), ..none }).await, ["tonight"]);
    assert_eq!(
        shown(TaskFilterDraft { reference: Some("Größe"), ..none }).await,
        [""; 0],
        "a reference does not match the description"
    );
}

async fn searches_find_tasks_before_and_after_they_are_indexed(bench: Bench) {
    // TASK-1
    let found = async |text| titles(&bench, bench.alice, TaskFilterDraft { q: Some(text), ..Default::default() }).await;
    let index = async || while store::task_index::update(&bench.store).await.unwrap() {};
    let milk = bench.add(bench.alice, bench.titled("Buy oat milk")).await;
    bench.add(bench.alice, bench.titled("100% \"quoted\" c_d")).await;
    bench.add(bench.bob, bench.titled("Buy oat milk, too")).await;
    for round in ["queued", "indexed"] {
        assert_eq!(found("OAT MI").await, ["Buy oat milk"], "{round}");
        assert_eq!(found("k").await, ["Buy oat milk"], "{round}");
        assert_eq!(found("0% \"q").await, ["100% \"quoted\" c_d"], "{round}");
        assert_eq!(found("c_d").await, ["100% \"quoted\" c_d"], "{round}");
        assert!(found("c%d").await.is_empty() && found("oat-milk").await.is_empty(), "{round}");
        index().await;
    }
    rename(&bench, &milk, "Buy rice").await;
    for round in ["queued", "indexed"] {
        assert!(found("oat milk").await.is_empty(), "{round}");
        assert_eq!(found("rice").await, ["Buy rice"], "{round}");
        index().await;
    }
    bench.delete(bench.alice, milk.id).await.unwrap();
    assert!(found("rice").await.is_empty());
    // A new row may get the number of the deleted one.
    bench.add(bench.alice, bench.titled("Buy beans")).await;
    for round in ["queued", "indexed"] {
        assert!(found("rice").await.is_empty(), "{round}");
        assert_eq!(found("beans").await, ["Buy beans"], "{round}");
        index().await;
    }
}

async fn rename(bench: &Bench, task: &Task, title: &str) {
    let user = User::local(jiff::tz::TimeZone::UTC);
    let patch = TaskPatch { title: Some(title.to_owned()), ..TaskPatch::default() };
    let change = patch.check(model::task::TaskLimits::default(), &user).unwrap();
    let id = task.id;
    let now = bench.now();
    let renamed = bench
        .change(bench.alice, move |tx, step| Box::pin(async move { tasks::change(tx, step, id, &change, now).await }));
    renamed.await.unwrap();
}

async fn references_are_parts_of_titles_or_ids(bench: Bench) {
    // TASK-1
    let face = bench.add(bench.alice, bench.titled("Call Ada-Face")).await;
    let other = TaskDraft { title: "other".into(), description: Some("call ada-face".into()), ..TaskDraft::default() };
    bench.add(bench.alice, bench.draft(other)).await;
    while store::task_index::update(&bench.store).await.unwrap() {}
    let id = face.id.to_string();
    for reference in ["call ada", "ADA-FACE", "-face", &id, &id[..20], &id[id.len() - 8..]] {
        let filter = TaskFilter { reference: Some(reference.to_owned()), ..TaskFilter::default() };
        let page = tasks::list(&mut bench.store.reader().await.unwrap(), bench.alice, &filter, None, 50).await.unwrap();
        assert_eq!(page.rows.iter().map(|task| task.id).collect::<Vec<_>>(), [face.id], "{reference}");
    }
}

async fn tasks_are_paged(bench: Bench) {
    for n in 0..7 {
        bench.add(bench.alice, bench.titled(&format!("task {n}"))).await;
    }
    let mut reader = bench.store.reader().await.unwrap();
    let mut seen = Vec::new();
    let mut cursor = None::<Cursor>;
    loop {
        let page = tasks::list(&mut reader, bench.alice, &TaskFilter::default(), cursor.as_ref(), 3).await.unwrap();
        seen.extend(page.rows.into_iter().map(|task| task.title));
        match page.next {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    assert_eq!(seen, (0..7).map(|n| format!("task {n}")).collect::<Vec<_>>());
    let whole = tasks::list(&mut reader, bench.alice, &TaskFilter::default(), None, 7).await.unwrap();
    assert_eq!(whole.next, None, "an exactly full page has no next page");
}

async fn tasks_are_sorted_across_pages(bench: Bench) {
    // TASK-1
    let add = async |title: &str, due: Option<&str>, priority: &str| {
        let due_date = due.map(str::to_owned);
        let priority = Some(priority.to_owned());
        let draft = TaskDraft { title: title.to_owned(), due_date, priority, ..TaskDraft::default() };
        bench.add(bench.alice, bench.draft(draft)).await;
    };
    add("undated high", None, "high").await;
    add("noon", Some("2026-01-31T12:00:00+01:00"), "medium").await;
    add("day", Some("2026-01-31"), "low").await;
    add("nine", Some("2026-01-31T09:00:00+01:00"), "high").await;
    add("before", Some("2025-12-31"), "medium").await;
    add("undated", None, "medium").await;
    for (sort, expected) in [
        ("created", ["undated high", "noon", "day", "nine", "before", "undated"]),
        ("due", ["before", "day", "nine", "noon", "undated high", "undated"]),
        ("priority", ["nine", "undated high", "before", "noon", "undated", "day"]),
    ] {
        let user = User::local(jiff::tz::TimeZone::UTC);
        let draft = TaskFilterDraft { sort: Some(sort), ..TaskFilterDraft::default() };
        let filter = draft.check(bench.now(), &user).unwrap();
        let mut found = Vec::new();
        let mut cursor = None;
        loop {
            let mut reader = bench.store.reader().await.unwrap();
            let page = tasks::list(&mut reader, bench.alice, &filter, cursor.as_ref(), 2).await.unwrap();
            found.extend(page.rows.into_iter().map(|task| task.title));
            cursor = page.next.map(|next| Cursor::parse(&next.encode()).unwrap());
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(found, expected, "{sort}");
    }
}

async fn tasks_are_changed_and_deleted(bench: Bench) {
    // TASK-1
    let task = bench.add(bench.alice, bench.titled("old")).await;
    let patch = TaskPatch { title: Some("new".into()), priority: Some("low".into()), ..TaskPatch::default() };
    let user = User::local(jiff::tz::TimeZone::UTC);
    let change = patch.check(model::task::TaskLimits::default(), &user).unwrap();
    let alice = bench.alice;
    let now = bench.now();
    let changed = bench
        .change(alice, move |tx, step| Box::pin(async move { tasks::change(tx, step, task.id, &change, now).await }));
    let changed = changed.await.unwrap();
    assert_eq!((changed.title.as_str(), changed.priority, changed.status), ("new", Priority::Low, TaskStatus::Pending));
    assert_eq!(get(&bench, alice, &task).await.unwrap(), changed);
    assert_eq!(bench.delete(alice, task.id).await.unwrap(), changed);
    assert!(matches!(get(&bench, alice, &task).await, Err(Error::NotFound)));
    assert!(matches!(bench.delete(alice, task.id).await, Err(Error::NotFound)));
}

async fn tasks_of_other_users_are_not_found(bench: Bench) {
    // AGENT-3
    let task = bench.add(bench.alice, bench.titled("secret")).await;
    let bob = bench.bob;
    assert!(matches!(get(&bench, bob, &task).await, Err(Error::NotFound)));
    assert_eq!(
        titles(&bench, bob, TaskFilterDraft { status: Some("all"), ..TaskFilterDraft::default() }).await,
        [""; 0]
    );
    let id = task.id.to_string();
    assert_eq!(
        titles(&bench, bob, TaskFilterDraft { reference: Some(&id), ..TaskFilterDraft::default() }).await,
        [""; 0]
    );
    assert!(matches!(bench.complete(bob, task.id).await, Err(Error::NotFound)));
    assert!(matches!(bench.delete(bob, task.id).await, Err(Error::NotFound)));
    assert_eq!(get(&bench, bench.alice, &task).await.unwrap(), task);
}

async fn a_failed_transaction_leaves_no_task(bench: Bench) {
    // TASK-5
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
