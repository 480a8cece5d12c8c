//! Housekeeping removes what is past its time, and only that.

use std::time::Duration;

use model::conversation::{Id, Message, Role};
use model::session::{self, Session};
use store::executions::{Event, Kind, Left, Whose, append, events, output, result, size_of_output};
use store::housekeeping::{Removed, Retention, sweep};
use store::idempotency::{Key, claim};
use store::outbox::{self, New};
use store::{conversations, sessions, tokens};
use uuid::Uuid;

use crate::executions::said;
use crate::{Bench, notifications, on_both, write};

on_both!(old_things_go, everything_can_be_kept, old_executions_go, output_has_its_limit, old_notifications_go);

const DAY: u64 = 24 * 3600;

async fn converse(bench: &Bench, id: &str) {
    let alice = bench.alice;
    let now = bench.now();
    let id: Id = id.parse().unwrap();
    let message = Message {
        id: bench.clock.id(),
        role: Role::User,
        content: "hi".into(),
        timestamp: now,
        tool_calls: Vec::new(),
        pending: None,
    };
    write!(bench, tx => conversations::append(tx, alice, &id, &[message], now)).unwrap();
}

async fn old_things_go(bench: Bench) {
    // OPS-7
    let alice = bench.alice;
    let now = bench.now();
    for n in 0..3 {
        converse(&bench, &format!("conv_{n}")).await;
    }
    let key = Key { key: "k".into(), fingerprint: "f".into() };
    write!(bench, tx => claim(tx, alice, &key, now)).unwrap();
    write!(bench, tx => tokens::revoke(tx, "t", now + Duration::from_secs(60), now)).unwrap();
    let task = bench.add(alice, bench.titled("tasks are never swept")).await;

    bench.clock.advance(Duration::from_secs(30 * DAY - 10));
    converse(&bench, "conv_1").await;
    bench.clock.advance(Duration::from_secs(20));
    let retention = Retention::default();
    let removed = sweep(&bench.store, retention, bench.now()).await.unwrap();
    assert_eq!(removed, Removed { conversations: 2, idempotency_keys: 1, revoked_tokens: 1, ..Removed::default() });
    assert_eq!(sweep(&bench.store, retention, bench.now()).await.unwrap(), Removed::default());
    let mut reader = bench.store.reader().await.unwrap();
    let left = conversations::list(&mut reader, alice, None, None, 50).await.unwrap().rows;
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].id.to_string().as_str(), left[0].message_count), ("conv_1", 2));
    store::tasks::get(&mut reader, alice, task.id).await.unwrap();
}

async fn everything_can_be_kept(bench: Bench) {
    converse(&bench, "conv_1").await;
    ran(&bench, "a", "said").await;
    bench.clock.advance(Duration::from_secs(1000 * DAY));
    let retention = Retention { conversations: None, executions: None, output_bytes: None, notifications: None };
    let removed = sweep(&bench.store, retention, bench.now()).await.unwrap();
    assert_eq!(removed, Removed::default());
}

/// An execution that has said something and ended.
async fn ran(bench: &Bench, agent: &str, text: &str) -> Uuid {
    let node = bench.node().await;
    let id = bench.submit(bench.run(bench.alice, agent)).await.unwrap();
    let claimed = bench.claim(node, agent, 9, 1).await.remove(0);
    let events = vec![said(3, "stdout", 0, text), said(4, "stderr", 0, "!")];
    write!(bench, tx => append(tx, id, &events)).unwrap();
    let output_bytes = text.len() as i64 + 1;
    bench.finish(&claimed, Left { output_bytes, ..Left::default() }).await;
    id
}

async fn old_executions_go(bench: Bench) {
    // OPS-7; more than one batch
    for _ in 0..30 {
        ran(&bench, "a", "old").await;
    }
    let node = bench.node().await;
    let at_work = bench.submit(bench.run(bench.alice, "b")).await.unwrap();
    bench.claim(node, "b", 1, 1).await;
    let waits = bench.submit(bench.run(bench.alice, "b")).await.unwrap();
    let now = bench.now();
    let session = Session {
        id: bench.clock.id(),
        agent_id: "s".into(),
        state: session::State::Ready,
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
    let young = ran(&bench, "a", "young").await;
    bench.clock.advance(Duration::from_secs(DAY + 60));
    let removed = sweep(&bench.store, Retention::default(), bench.now()).await.unwrap();
    assert_eq!(removed, Removed { executions: 30, sessions: 1, ..Removed::default() });
    assert_eq!(sweep(&bench.store, Retention::default(), bench.now()).await.unwrap(), Removed::default());
    for id in [at_work, waits, young] {
        bench.execution(id).await;
    }
    assert_eq!(bench.count("SELECT COUNT(*) FROM executions").await, 3);
    assert_eq!(bench.count("SELECT COUNT(*) FROM execution_events").await, 2 + 1 + 4, "theirs go with them");
    let mut reader = bench.store.reader().await.unwrap();
    let left = sessions::list(&mut reader, Whose::Everyones, true, None, 9).await.unwrap().rows;
    assert_eq!(left, [open]);
    assert_eq!(bench.count("SELECT COUNT(*) FROM nodes").await, 0, "nobody has heard of them for a day");
}

async fn output_has_its_limit(bench: Bench) {
    // OPS-7: by size the oldest lose what they said, not what became of them
    let ids = [
        ran(&bench, "a", &"1".repeat(99)).await,
        ran(&bench, "a", &"2".repeat(99)).await,
        ran(&bench, "a", &"3".repeat(99)).await,
    ];
    let first = ids[0];
    let gap = Event { kind: Kind::Gap, ..said(9, "stdout", 99, "1000") };
    write!(bench, tx => append(tx, first, &[gap])).unwrap();
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
    assert_eq!(size_of_output(&mut reader).await.unwrap(), 0);
    assert_eq!(bench.execution(first).await, before);
    let result = result(&mut reader, Whose::Everyones, first).await.unwrap();
    assert!(result.truncated);
    let left: Vec<_> = events(&mut reader, first, 0, 99).await.unwrap().iter().map(|event| event.kind).collect();
    assert_eq!(left, [Kind::State, Kind::State, Kind::Gap, Kind::Gap], "both streams have their mark");
}

async fn old_notifications_go(bench: Bench) {
    // OPS-7; and their deliveries, of which those that nobody makes are given up first
    let put = async |channel: &str| {
        let new = New {
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
        notifications::tell(&bench, bench.alice, notifications::note(&bench, &n.to_string())).await;
        put("gone").await;
    }
    put("there").await;
    let now = bench.now();
    let until = bench.now() + Duration::from_secs(60);
    let claimed = write!(bench, tx => outbox::claim(tx, "there", 1, now, until)).unwrap().remove(0);
    write!(bench, tx => outbox::done(tx, &claimed, now)).unwrap();

    bench.clock.advance(Duration::from_secs(7 * DAY));
    let removed = sweep(&bench.store, Retention::default(), bench.now()).await.unwrap();
    assert_eq!(removed, Removed { given_up: 3, ..Removed::default() });
    bench.clock.advance(Duration::from_secs(22 * DAY));
    notifications::tell(&bench, bench.alice, notifications::note(&bench, "young")).await;
    bench.clock.advance(Duration::from_secs(DAY));
    let removed = sweep(&bench.store, Retention::default(), bench.now()).await.unwrap();
    assert_eq!(removed, Removed { notifications: 3, deliveries: 1, ..Removed::default() });
    bench.clock.advance(Duration::from_secs(7 * DAY));
    let removed = sweep(&bench.store, Retention::default(), bench.now()).await.unwrap();
    assert_eq!(removed, Removed { deliveries: 3, ..Removed::default() });
    let mut reader = bench.store.reader().await.unwrap();
    let left = store::notifications::list(&mut reader, bench.alice, false, None, 9).await.unwrap().rows;
    assert_eq!(left[0].notification.title, "young");
}
