//! Quotas of users: exact, also for concurrent transactions, and without a count for each new row (SEC-5).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use model::UserId;
use model::conversation::{Conversation, Message};
use model::quota::{QuotaKind, QuotaReached, Quotas};
use model::reminder::{Reminder, ReminderStatus};
use model::schedule::{ScheduleDraft, ScheduleSource};
use model::session::{Session, SessionState};
use model::task::{Task, TaskDraft};
use store::data::{FullConversation, import_conversations, import_reminders, import_tasks};
use store::executions::{OutputSummary, enqueue_or_claim, release_slot};
use store::outbox::{NewDelivery, claim, next_attempt_at, release_all};
use store::schedules::NewSchedule;
use store::undo::UndoStep;
use store::{Durability, Error, Store};
use uuid::Uuid;

use crate::{Bench, on_both, write};

on_both!(
    the_number_of_tasks_is_limited,
    concurrent_tasks_do_not_exceed_the_limit,
    a_new_task_does_not_count_all_tasks,
    completing_and_undoing_may_exceed_the_limit,
    a_rollback_does_not_raise_the_limit,
    an_import_beyond_the_limit_fails,
    reminders_are_limited_per_user_and_per_task,
    schedules_are_limited_except_those_of_the_file,
    conversations_are_limited,
    runs_of_a_day_are_limited,
    a_user_has_a_share_of_the_queue,
    sessions_are_limited_per_user_and_per_agent,
    deliveries_beyond_the_rate_are_delayed,
);

mod nodes {
    use super::tasks_of_two_nodes_do_not_exceed_the_limit;
    crate::on_postgres!(tasks_of_two_nodes_do_not_exceed_the_limit);
}

async fn tasks_of_two_nodes_do_not_exceed_the_limit(bench: Bench) {
    // SEC-5
    let other = Store::open(&bench.location, Durability::Normal).await.unwrap();
    for store in [&bench.store, &other] {
        store.set_quotas(Quotas { tasks: Some(10), ..Quotas::UNLIMITED });
    }
    let adds = (0..30).map(|n| add_to([&bench.store, &other][n % 2], bench.alice, bench.titled("x")));
    let added = futures::future::join_all(adds).await;
    assert_eq!(added.iter().filter(|added| added.is_ok()).count(), 10);
}

/// Returns the refusal of a quota.
fn refusal<T: std::fmt::Debug>(result: store::Result<T>) -> QuotaReached {
    match result {
        Err(Error::QuotaReached(reached)) => reached,
        other => panic!("not refused: {other:?}"),
    }
}

async fn add_to(store: &Store, owner: UserId, task: Task) -> store::Result<()> {
    store
        .owner_transaction(owner, async move |tx| {
            let mut step = UndoStep::begin(tx, owner).await?;
            store::tasks::create(tx, &mut step, &task).await
        })
        .await
}

async fn try_add(bench: &Bench, owner: UserId) -> store::Result<()> {
    add_to(&bench.store, owner, bench.titled("x")).await
}

async fn the_number_of_tasks_is_limited(bench: Bench) {
    // SEC-5
    bench.store.set_quotas(Quotas { tasks: Some(3), ..Quotas::UNLIMITED });
    let first = bench.add(bench.alice, bench.titled("first")).await;
    for _ in 0..2 {
        try_add(&bench, bench.alice).await.unwrap();
    }
    for _ in 0..2 {
        assert_eq!(refusal(try_add(&bench, bench.alice).await), QuotaReached::new(QuotaKind::Tasks, 3));
    }
    assert_eq!(bench.titles(bench.alice).await.len(), 3);
    try_add(&bench, bench.bob).await.unwrap();
    bench.delete(bench.alice, first.id).await.unwrap();
    try_add(&bench, bench.alice).await.unwrap();
    refusal(try_add(&bench, bench.alice).await);
    let alice = bench.alice;
    write!(bench, alice, tx => store::data::erase(tx, alice)).unwrap();
    try_add(&bench, bench.alice).await.unwrap();
    bench.store.set_quotas(Quotas::UNLIMITED);
    for _ in 0..5 {
        try_add(&bench, bench.alice).await.unwrap();
    }
    bench.store.set_quotas(Quotas { tasks: Some(2), ..Quotas::UNLIMITED });
    refusal(try_add(&bench, bench.alice).await);
}

async fn concurrent_tasks_do_not_exceed_the_limit(bench: Bench) {
    // SEC-5
    bench.store.set_quotas(Quotas { tasks: Some(12), ..Quotas::UNLIMITED });
    for _ in 0..7 {
        try_add(&bench, bench.alice).await.unwrap();
    }
    let added = futures::future::join_all((0..20).map(|_| try_add(&bench, bench.alice))).await;
    assert_eq!(added.iter().filter(|added| added.is_ok()).count(), 5);
    assert_eq!(bench.titles(bench.alice).await.len(), 12);
}

async fn a_new_task_does_not_count_all_tasks(bench: Bench) {
    // SEC-5: an upper bound replaces the count until the limit is near.
    bench.store.set_quotas(Quotas::default());
    try_add(&bench, bench.alice).await.unwrap();
    let before = bench.store.quota_counts();
    assert_eq!(before, 1);
    for _ in 0..50 {
        try_add(&bench, bench.alice).await.unwrap();
    }
    let counts = bench.store.quota_counts() - before;
    // With PostgreSQL a bound is valid for half a second.
    assert!(counts < if bench.store.is_shared() { 20 } else { 1 }, "{counts} counts");
}

async fn completing_and_undoing_may_exceed_the_limit(bench: Bench) {
    // SEC-5
    let daily = TaskDraft {
        title: "daily".to_owned(),
        due_date: Some("2026-01-11".to_owned()),
        recurrence: Some("FREQ=DAILY".to_owned()),
        ..TaskDraft::default()
    };
    let daily = bench.add(bench.alice, bench.draft(daily)).await;
    let other = bench.add(bench.alice, bench.titled("other")).await;
    bench.store.set_quotas(Quotas { tasks: Some(2), ..Quotas::UNLIMITED });
    let clock = bench.clock.clone();
    let complete = bench.change(bench.alice, move |tx, step| {
        Box::pin(async move {
            let change = model::task::TaskChange::complete();
            store::recurring::change(tx, step, daily.id, &change, &clock, &jiff::tz::TimeZone::UTC).await
        })
    });
    assert!(complete.await.unwrap().next_task.flatten().is_some(), "the next task is created");
    assert_eq!(bench.titles(bench.alice).await.len(), 3);
    bench.delete(bench.alice, other.id).await.unwrap();
    refusal(try_add(&bench, bench.alice).await);
    let alice = bench.alice;
    write!(bench, alice, tx => store::undo::undo(tx, alice)).unwrap();
    assert_eq!(bench.titles(bench.alice).await.len(), 3, "the deletion is undone");
    refusal(try_add(&bench, bench.alice).await);
}

async fn a_rollback_does_not_raise_the_limit(bench: Bench) {
    // SEC-5: a count that includes a deletion is void if the deletion is rolled back.
    bench.store.set_quotas(Quotas { tasks: Some(2), ..Quotas::UNLIMITED });
    let first = bench.add(bench.alice, bench.titled("first")).await;
    try_add(&bench, bench.alice).await.unwrap();
    let task = bench.titled("new");
    let rolled_back = bench.change(bench.alice, move |tx, step| {
        Box::pin(async move {
            store::tasks::delete(tx, step, first.id).await?;
            store::tasks::create(tx, step, &task).await?;
            store::tasks::delete(tx, step, task.id).await?;
            Err::<(), _>(Error::NotEnded)
        })
    });
    assert!(matches!(rolled_back.await, Err(Error::NotEnded)));
    refusal(try_add(&bench, bench.alice).await);
}

async fn an_import_beyond_the_limit_fails(bench: Bench) {
    // SEC-5: all or nothing
    bench.store.set_quotas(Quotas { tasks: Some(5), ..Quotas::UNLIMITED });
    let known = bench.add(bench.alice, bench.titled("known")).await;
    let mut tasks: Vec<_> = (0..4).map(|_| bench.titled("x")).collect();
    tasks.push(known);
    let import = async |tasks: Vec<Task>| {
        let now = bench.now();
        let import = bench
            .change(bench.alice, move |tx, step| Box::pin(async move { import_tasks(tx, step, &tasks, now).await }));
        import.await
    };
    let mut more = tasks.clone();
    more.push(bench.titled("one more"));
    assert_eq!(refusal(import(more).await), QuotaReached::new(QuotaKind::Tasks, 5));
    assert_eq!(bench.titles(bench.alice).await, ["known"], "nothing was imported");
    assert_eq!(import(tasks.clone()).await.unwrap().added, 4);
    assert_eq!(import(tasks).await.unwrap().skipped, 5, "nothing is added");
}

async fn remind(bench: &Bench, owner: UserId, task: Uuid) -> store::Result<Uuid> {
    let reminder = reminder(bench, task);
    let id = reminder.id;
    let now = bench.now();
    let create = bench.change(owner, move |tx, step| {
        Box::pin(async move { store::reminders::create(tx, step, &reminder, now).await })
    });
    create.await.map(|_| id)
}

fn reminder(bench: &Bench, task_id: Uuid) -> Reminder {
    Reminder {
        id: bench.clock.id(),
        task_id,
        remind_at: bench.now() + SignedDuration::from_hours(1),
        repeat_interval_minutes: None,
        repeat_count: None,
        fired_count: 0,
        status: ReminderStatus::Scheduled,
        recurrence: None,
        before_minutes: None,
        time_zone: None,
        snoozed_until: None,
        next_at: None,
    }
}

async fn reminders_are_limited_per_user_and_per_task(bench: Bench) {
    // SEC-5
    let alice = bench.alice;
    let tasks = [bench.add(alice, bench.titled("a")).await.id, bench.add(alice, bench.titled("b")).await.id];
    let other = bench.add(bench.bob, bench.titled("c")).await.id;
    bench.store.set_quotas(Quotas { reminders: Some(3), reminders_per_task: Some(2), ..Quotas::UNLIMITED });
    let first = remind(&bench, alice, tasks[0]).await.unwrap();
    remind(&bench, alice, tasks[0]).await.unwrap();
    let per_task = QuotaReached::new(QuotaKind::RemindersPerTask, 2);
    assert_eq!(refusal(remind(&bench, alice, tasks[0]).await), per_task);
    remind(&bench, alice, tasks[1]).await.unwrap();
    assert_eq!(refusal(remind(&bench, alice, tasks[1]).await), QuotaReached::new(QuotaKind::Reminders, 3));
    remind(&bench, bench.bob, other).await.unwrap();
    let delete =
        bench.change(alice, move |tx, step| Box::pin(async move { store::reminders::delete(tx, step, first).await }));
    delete.await.unwrap();
    remind(&bench, alice, tasks[1]).await.unwrap();
    // Reminders of a completed task are dropped and do not count.
    bench.complete(alice, tasks[1]).await.unwrap();
    let imported = [reminder(&bench, tasks[0]), reminder(&bench, tasks[0])];
    let now = bench.now();
    let import = write!(bench, alice, tx => import_reminders(tx, alice, &imported, now));
    assert_eq!(refusal(import), per_task);
    let imported = [reminder(&bench, tasks[0])];
    assert_eq!(write!(bench, alice, tx => import_reminders(tx, alice, &imported, now)).unwrap().added, 1);
}

async fn schedules_are_limited_except_those_of_the_file(bench: Bench) {
    // SEC-5
    bench.store.set_quotas(Quotas { schedules: Some(2), ..Quotas::UNLIMITED });
    let create = async |owner: UserId, name: &str, source: ScheduleSource| {
        let draft = ScheduleDraft {
            name: Some(name.to_owned()),
            agent_id: Some("a".to_owned()),
            every: Some("1h".to_owned()),
            ..ScheduleDraft::default()
        };
        let settings = draft.check(&jiff::tz::TimeZone::UTC).unwrap();
        let new = NewSchedule { id: bench.clock.id(), settings, source, paused_reason: None, next: None };
        let now = bench.now();
        write!(bench, owner, tx => store::schedules::create(tx, owner, &new, now)).map(|schedule| schedule.id)
    };
    create(bench.alice, "file", ScheduleSource::File).await.unwrap();
    let first = create(bench.alice, "one", ScheduleSource::Api).await.unwrap();
    create(bench.alice, "two", ScheduleSource::Api).await.unwrap();
    let refused = refusal(create(bench.alice, "three", ScheduleSource::Api).await);
    assert_eq!(refused, QuotaReached::new(QuotaKind::Schedules, 2));
    create(bench.alice, "second file", ScheduleSource::File).await.unwrap();
    create(bench.bob, "other", ScheduleSource::Api).await.unwrap();
    let scope = store::executions::OwnerScope::User(bench.alice);
    write!(bench, tx => store::schedules::remove(tx, scope, first)).unwrap();
    create(bench.alice, "three", ScheduleSource::Api).await.unwrap();
}

async fn conversations_are_limited(bench: Bench) {
    // SEC-5
    bench.store.set_quotas(Quotas { conversations: Some(2), ..Quotas::UNLIMITED });
    let turn = async |owner: UserId, id: &str| {
        let id = id.parse().unwrap();
        let now = bench.now();
        let message = message(&bench);
        bench
            .store
            .owner_transaction(owner, async move |tx| {
                store::conversations::open(tx, owner, &id, 10).await?;
                store::conversations::append(tx, owner, &id, &[message], now).await
            })
            .await
    };
    turn(bench.alice, "conv_one").await.unwrap();
    turn(bench.alice, "conv_two").await.unwrap();
    let reached = QuotaReached::new(QuotaKind::Conversations, 2);
    assert_eq!(refusal(turn(bench.alice, "conv_three").await), reached);
    turn(bench.alice, "conv_one").await.unwrap();
    turn(bench.bob, "conv_other").await.unwrap();
    let alice = bench.alice;
    let full = FullConversation {
        conversation: Conversation {
            id: "conv_imported".parse().unwrap(),
            title: String::new(),
            created_at: bench.now(),
            updated_at: bench.now(),
            message_count: 1,
        },
        messages: vec![message(&bench)],
    };
    let import = write!(bench, alice, tx => import_conversations(tx, alice, &[full]));
    assert_eq!(refusal(import), reached);
    let two = "conv_two".parse().unwrap();
    write!(bench, alice, tx => store::conversations::delete(tx, alice, &two)).unwrap();
    turn(bench.alice, "conv_three").await.unwrap();
}

fn message(bench: &Bench) -> Message {
    Message {
        id: bench.clock.id(),
        role: model::conversation::MessageRole::User,
        content: "hello".to_owned(),
        timestamp: bench.now(),
        tool_calls: Vec::new(),
        pending: None,
    }
}

async fn runs_of_a_day_are_limited(bench: Bench) {
    // SEC-5
    bench.store.set_quotas(Quotas { runs_per_day: Some(2), ..Quotas::UNLIMITED });
    bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    bench.clock.advance(Duration::from_secs(3600));
    bench.enqueue(bench.new_execution(bench.alice, "b")).await.unwrap();
    bench.clock.advance(Duration::from_secs(3600));
    let refused = refusal(bench.enqueue(bench.new_execution(bench.alice, "c")).await);
    assert_eq!((refused.kind, refused.limit), (QuotaKind::RunsPerDay, 2));
    let wait = refused.retry_after.unwrap();
    assert!((22 * 3600 - 60..=22 * 3600 + 1).contains(&wait), "{wait}");
    bench.enqueue(bench.new_execution(bench.bob, "c")).await.unwrap();
    bench.clock.advance(Duration::from_secs(wait));
    bench.enqueue(bench.new_execution(bench.alice, "c")).await.unwrap();
    refusal(bench.enqueue(bench.new_execution(bench.alice, "c")).await);
    // Concurrent requests for different agents share the limit.
    bench.store.set_quotas(Quotas { runs_per_day: Some(5), ..Quotas::UNLIMITED });
    let agents: Vec<_> = (0..20).map(|n| format!("agent-{n}")).collect();
    let runs = agents.iter().map(|agent| bench.enqueue(bench.new_execution(bench.alice, agent)));
    let done = futures::future::join_all(runs).await;
    assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 3);
}

async fn a_user_has_a_share_of_the_queue(bench: Bench) {
    // SEC-5, SUP-4: one slot, ten queued executions, five of them for each user
    bench.store.set_quotas(Quotas { queue_share: Some(0.5), ..Quotas::UNLIMITED });
    let node = bench.node().await;
    let run = async |owner: UserId| {
        let mut new = bench.new_execution(owner, "a");
        new.slots = 1;
        new.queue_depth = 10;
        write!(bench, owner, tx => enqueue_or_claim(tx, &new, Some(node)))
    };
    let running = run(bench.alice).await.unwrap().unwrap();
    for _ in 0..5 {
        assert!(run(bench.alice).await.unwrap().is_none());
    }
    let refused = refusal(run(bench.alice).await);
    assert_eq!((refused.kind, refused.limit), (QuotaKind::QueueShare, 5));
    assert!(refused.retry_after.is_some());
    for _ in 0..5 {
        run(bench.bob).await.unwrap();
    }
    assert!(matches!(run(bench.bob).await, Err(Error::QueueFull { waiting: 10, depth: 10 })));
    bench.finish(&running, OutputSummary::default()).await;
    bench.claim(node, "a", 1, 1).await;
    run(bench.alice).await.unwrap();
    refusal_or_full(run(bench.alice).await);
}

/// Asserts that a request was refused, by the share of the user or by the depth of the queue.
fn refusal_or_full<T: std::fmt::Debug>(result: store::Result<T>) {
    assert!(matches!(result, Err(Error::QuotaReached(_) | Error::QueueFull { .. })), "{result:?}");
}

async fn sessions_are_limited_per_user_and_per_agent(bench: Bench) {
    // SEC-5
    bench.store.set_quotas(Quotas { queue_share: Some(0.5), sessions: Some(6), ..Quotas::UNLIMITED });
    let node = bench.node().await;
    let open = async |owner: UserId, agent: &str| {
        let now = bench.now();
        let session = Session {
            id: bench.clock.id(),
            agent_id: agent.to_owned(),
            state: SessionState::Ready,
            created_at: now,
            last_activity: now,
            expires_at: now + Duration::from_secs(600),
            ended_at: None,
            error_message: None,
        };
        let opened = session.clone();
        write!(bench, owner, tx => store::sessions::open(tx, owner, &opened, node, 9)).map(|()| session)
    };
    let mut first = open(bench.alice, "a").await.unwrap();
    for _ in 0..4 {
        open(bench.alice, "a").await.unwrap();
    }
    assert_eq!(refusal(open(bench.alice, "a").await), QuotaReached::new(QuotaKind::SessionShare, 5));
    for _ in 0..4 {
        open(bench.bob, "a").await.unwrap();
    }
    assert!(matches!(open(bench.bob, "a").await, Err(Error::NoFreeSlot)), "all nine slots are in use");
    open(bench.alice, "b").await.unwrap();
    assert_eq!(refusal(open(bench.alice, "b").await), QuotaReached::new(QuotaKind::Sessions, 6));
    first.ended_at = Some(bench.now());
    let id = first.id;
    write!(bench, tx => store::sessions::save(tx, node, &first)).unwrap();
    write!(bench, tx => release_slot(tx, id, node)).unwrap();
    open(bench.alice, "a").await.unwrap();
}

async fn deliveries_beyond_the_rate_are_delayed(bench: Bench) {
    // SEC-5, TASK-4: delayed and never lost
    bench.store.set_quotas(Quotas { deliveries_per_minute: Some(2), ..Quotas::UNLIMITED });
    let add = async |owner: UserId, channel: &str, is_notification: bool| {
        let new = NewDelivery {
            id: bench.clock.id(),
            owner,
            notification_id: is_notification.then(|| bench.clock.id()),
            channel: channel.to_owned(),
            target: None,
            payload: "{}".to_owned(),
        };
        let now = bench.now();
        write!(bench, tx => store::outbox::add(tx, &new, now)).unwrap();
    };
    let claim_due = async || {
        let now = bench.now();
        let until = now + SignedDuration::from_hours(9);
        write!(bench, tx => claim(tx, "a", 99, now, until)).unwrap().len()
    };
    let start = bench.now();
    for _ in 0..5 {
        add(bench.alice, "a", true).await;
    }
    add(bench.alice, "b", true).await;
    add(bench.bob, "a", true).await;
    assert_eq!(claim_due().await, 3, "two of alice and one of bob");
    let next = async || next_attempt_at(&mut bench.store.reader().await.unwrap(), "a").await.unwrap().unwrap();
    let minute = |n: i64| -> Timestamp { start + SignedDuration::from_mins(n) };
    assert_eq!(next().await, minute(1));
    let now = bench.now();
    write!(bench, tx => release_all(tx, now)).unwrap();
    assert_eq!(claim_due().await, 3, "a restart repeats claims, but does not shorten the delay");
    bench.clock.advance(Duration::from_secs(60));
    assert_eq!(claim_due().await, 2);
    assert_eq!(next().await, minute(2));
    add(bench.alice, "a", false).await;
    assert_eq!(claim_due().await, 1, "a callback is not a notification");
    bench.clock.advance(Duration::from_secs(60));
    assert_eq!(claim_due().await, 1);
}
