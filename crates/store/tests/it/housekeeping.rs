//! Housekeeping removes rows after their retention period, and no other rows.

use std::time::Duration;

use model::conversation::{ConversationId, Message, MessageRole};
use model::session::{self, Session};
use store::executions::{
    ExecutionEvent, ExecutionEventKind, OutputSummary, OwnerScope, append_events, events, output, result,
    total_output_bytes,
};
use store::housekeeping::{RemovedRows, Retention, sweep};
use store::idempotency::{IdempotencyKey, claim};
use store::outbox::{self, NewDelivery};
use store::{conversations, sessions, tokens};
use uuid::Uuid;

use crate::executions::output_event;
use crate::{Bench, notifications, on_both, write};

on_both!(
    old_rows_are_removed,
    retention_can_be_disabled,
    old_executions_are_removed,
    output_is_limited_by_size,
    old_notifications_and_deliveries_are_removed
);

const DAY: u64 = 24 * 3600;

async fn converse(bench: &Bench, id: &str) {
    let alice = bench.alice;
    let now = bench.now();
    let id: ConversationId = id.parse().unwrap();
    let message = Message {
        id: bench.clock.id(),
        role: MessageRole::User,
        content: "hi".into(),
        timestamp: now,
        tool_calls: Vec::new(),
        pending: None,
    };
    write!(bench, tx => conversations::append(tx, alice, &id, &[message], now)).unwrap();
}

async fn old_rows_are_removed(bench: Bench) {
    // OPS-7
    let alice = bench.alice;
    let now = bench.now();
    for n in 0..3 {
        converse(&bench, &format!("conv_{n}")).await;
    }
    let key = IdempotencyKey { key: "k".into(), fingerprint: "f".into() };
    write!(bench, tx => claim(tx, alice, &key, now)).unwrap();
    write!(bench, tx => tokens::revoke(tx, "t", now + Duration::from_secs(60), now)).unwrap();
    let task = bench.add(alice, bench.titled("tasks are never swept")).await;

    bench.clock.advance(Duration::from_secs(30 * DAY - 10));
    converse(&bench, "conv_1").await;
    bench.clock.advance(Duration::from_secs(20));
    let retention = Retention::default();
    let removed = sweep(&bench.store, retention, bench.now()).await.unwrap();
    assert_eq!(
        removed,
        RemovedRows { conversations: 2, idempotency_keys: 1, revoked_tokens: 1, ..RemovedRows::default() }
    );
    assert_eq!(sweep(&bench.store, retention, bench.now()).await.unwrap(), RemovedRows::default());
    let mut reader = bench.store.reader().await.unwrap();
    let left = conversations::list(&mut reader, alice, None, None, 50).await.unwrap().rows;
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].id.to_string().as_str(), left[0].message_count), ("conv_1", 2));
    store::tasks::get(&mut reader, alice, task.id).await.unwrap();
}

async fn retention_can_be_disabled(bench: Bench) {
    // OPS-7
    converse(&bench, "conv_1").await;
    run_execution(&bench, "a", "text").await;
    bench.clock.advance(Duration::from_secs(1000 * DAY));
    let retention =
        Retention { conversations: None, executions: None, output_bytes: None, notifications: None, audit: None };
    let removed = sweep(&bench.store, retention, bench.now()).await.unwrap();
    assert_eq!(removed, RemovedRows::default());
}

/// Runs an execution with output and returns its id.
async fn run_execution(bench: &Bench, agent: &str, text: &str) -> Uuid {
    let node = bench.node().await;
    let id = bench.enqueue(bench.new_execution(bench.alice, agent)).await.unwrap();
    let claimed = bench.claim(node, agent, 9, 1).await.remove(0);
    let events = vec![output_event(3, "stdout", 0, text), output_event(4, "stderr", 0, "!")];
    write!(bench, tx => append_events(tx, id, &events)).unwrap();
    let output_bytes = text.len() as i64 + 1;
    bench.finish(&claimed, OutputSummary { output_bytes, ..OutputSummary::default() }).await;
    id
}

async fn old_executions_are_removed(bench: Bench) {
    // OPS-7; more than one batch
    for _ in 0..30 {
        run_execution(&bench, "a", "old").await;
    }
    let node = bench.node().await;
    let running = bench.enqueue(bench.new_execution(bench.alice, "b")).await.unwrap();
    bench.claim(node, "b", 1, 1).await;
    let waits = bench.enqueue(bench.new_execution(bench.alice, "b")).await.unwrap();
    let now = bench.now();
    let session = Session {
        id: bench.clock.id(),
        agent_id: "s".into(),
        state: session::SessionState::Ready,
        created_at: now,
        last_activity: now,
        expires_at: now,
        ended_at: None,
        error_message: None,
    };
    let alice = bench.alice;
    let mut closed = session.clone();
    let open = Session { id: bench.clock.id(), ..session };
    let both = [closed.clone(), open.clone()];
    for session in both {
        write!(bench, tx => sessions::open(tx, alice, &session, node, 2)).unwrap();
    }
    closed.ended_at = Some(now);
    assert!(write!(bench, tx => sessions::save(tx, node, &closed)).unwrap());

    bench.clock.advance(Duration::from_secs(29 * DAY));
    let young = run_execution(&bench, "a", "young").await;
    bench.clock.advance(Duration::from_secs(DAY + 60));
    let removed = sweep(&bench.store, Retention::default(), bench.now()).await.unwrap();
    assert_eq!(removed, RemovedRows { executions: 30, sessions: 1, ..RemovedRows::default() });
    assert_eq!(sweep(&bench.store, Retention::default(), bench.now()).await.unwrap(), RemovedRows::default());
    for id in [running, waits, young] {
        bench.execution(id).await;
    }
    assert_eq!(bench.count("SELECT COUNT(*) FROM executions").await, 3);
    assert_eq!(bench.count("SELECT COUNT(*) FROM execution_events").await, 2 + 1 + 4, "their events are removed, too");
    let mut reader = bench.store.reader().await.unwrap();
    let left = sessions::list(&mut reader, OwnerScope::AllUsers, true, None, 9).await.unwrap().rows;
    assert_eq!(left, [open]);
    assert_eq!(bench.count("SELECT COUNT(*) FROM nodes").await, 0, "their leases expired more than a day ago");
}

async fn output_is_limited_by_size(bench: Bench) {
    // OPS-7: the oldest executions lose their output, but not their record
    let ids = [
        run_execution(&bench, "a", &"1".repeat(99)).await,
        run_execution(&bench, "a", &"2".repeat(99)).await,
        run_execution(&bench, "a", &"3".repeat(99)).await,
    ];
    let first = ids[0];
    let gap = ExecutionEvent { kind: ExecutionEventKind::Gap, ..output_event(9, "stdout", 99, "1000") };
    write!(bench, tx => append_events(tx, first, &[gap])).unwrap();
    let before = bench.execution(first).await;
    let at_most = |bytes| Retention { output_bytes: Some(bytes), ..Retention::default() };
    let swept = async |bytes| sweep(&bench.store, at_most(bytes), bench.now()).await.unwrap().outputs;
    assert_eq!(swept(300).await, 0);
    assert_eq!(swept(299).await, 1);
    assert_eq!(swept(299).await, 0);
    let mut reader = bench.store.reader().await.unwrap();
    let mut text = async |id| output(&mut reader, id, "stdout").await.unwrap();
    assert_eq!(text(ids[0]).await, "\n[… 1099 bytes left out …]\n");
    assert_eq!(text(ids[1]).await, "2".repeat(99));
    assert_eq!(swept(50).await, 2);
    assert_eq!(text(ids[2]).await, "\n[… 99 bytes left out …]\n");
    assert_eq!(total_output_bytes(&mut reader).await.unwrap(), 0);
    assert_eq!(bench.execution(first).await, before);
    let result = result(&mut reader, OwnerScope::AllUsers, first).await.unwrap();
    assert!(result.truncated);
    let left: Vec<_> = events(&mut reader, first, 0, 99).await.unwrap().iter().map(|event| event.kind).collect();
    assert_eq!(
        left,
        [ExecutionEventKind::State, ExecutionEventKind::State, ExecutionEventKind::Gap, ExecutionEventKind::Gap],
        "each stream has a gap"
    );
}

async fn old_notifications_and_deliveries_are_removed(bench: Bench) {
    // OPS-7; pending deliveries are given up first
    let put = async |channel: &str| {
        let new = NewDelivery {
            id: bench.clock.id(),
            owner: bench.alice,
            notification_id: None,
            channel: channel.into(),
            target: None,
            payload: "{}".into(),
        };
        let now = bench.now();
        write!(bench, tx => outbox::add(tx, &new, now)).unwrap();
    };
    for n in 0..3 {
        notifications::add_note(&bench, bench.alice, notifications::note(&bench, &n.to_string())).await;
        put("gone").await;
    }
    put("there").await;
    let now = bench.now();
    let until = bench.now() + Duration::from_secs(60);
    let claimed = write!(bench, tx => outbox::claim(tx, "there", 1, now, until)).unwrap().remove(0);
    write!(bench, tx => outbox::mark_delivered(tx, &claimed, now)).unwrap();

    bench.clock.advance(Duration::from_secs(7 * DAY));
    let removed = sweep(&bench.store, Retention::default(), bench.now()).await.unwrap();
    assert_eq!(removed, RemovedRows { stale_deliveries: 3, ..RemovedRows::default() });
    bench.clock.advance(Duration::from_secs(22 * DAY));
    notifications::add_note(&bench, bench.alice, notifications::note(&bench, "young")).await;
    bench.clock.advance(Duration::from_secs(DAY));
    let removed = sweep(&bench.store, Retention::default(), bench.now()).await.unwrap();
    assert_eq!(removed, RemovedRows { notifications: 3, deliveries: 1, ..RemovedRows::default() });
    bench.clock.advance(Duration::from_secs(7 * DAY));
    let removed = sweep(&bench.store, Retention::default(), bench.now()).await.unwrap();
    assert_eq!(removed, RemovedRows { deliveries: 3, ..RemovedRows::default() });
    let mut reader = bench.store.reader().await.unwrap();
    let left = store::notifications::list(&mut reader, bench.alice, false, None, 9).await.unwrap().rows;
    assert_eq!(left[0].notification.title, "young");
}
