//! Push configurations: stored with their task and owner, notified in order, by one node only.

use std::time::Duration;

use model::UserId;
use model::execution::{ExecutionOutcome, ExecutionStatus};
use store::a2a::pushes::{
    DuePush, MAX_PER_TASK, NewPushConfig, PushProgress, due_pushes, enqueue_delivery, find, get, give_up, list,
    mark_idle, remove, set,
};
use store::a2a::withdraw;
use store::housekeeping::{Retention, sweep};
use store::{Error, data, outbox};
use uuid::Uuid;

use crate::a2a::{AGENT, first, next, run_next, send};
use crate::{Bench, on_both, write};

on_both!(
    configurations_are_stored_and_replaced,
    the_number_of_configurations_is_limited,
    configurations_are_visible_only_to_their_user_and_agent,
    deliveries_of_a_configuration_are_sequential,
    only_one_node_adds_a_delivery,
    an_idle_configuration_becomes_due_when_the_task_continues,
    a_concurrent_change_prevents_idling,
    a_configuration_that_was_given_up_can_be_set_again,
    configurations_are_removed_with_their_task,
);

fn new(id: &str) -> NewPushConfig {
    NewPushConfig {
        id: id.into(),
        url: "https://hooks.example".into(),
        sealed: format!("sealed {id}"),
        scheme: Some("Bearer".into()),
        version: "1.0".into(),
    }
}

async fn set_config(bench: &Bench, owner: UserId, task: Uuid, new: NewPushConfig) -> store::Result<()> {
    let now = bench.now();
    write!(bench, tx => set(tx, owner, AGENT, task, &new, now))
}

async fn all_due(bench: &Bench) -> Vec<DuePush> {
    due_pushes(&mut bench.store.reader().await.unwrap(), None, 100).await.unwrap()
}

fn delivery(bench: &Bench, due: &DuePush) -> outbox::NewDelivery {
    outbox::NewDelivery {
        id: bench.clock.id(),
        owner: due.owner,
        notification_id: None,
        channel: "a2a:push:https://hooks.example".into(),
        target: None,
        payload: "{}".into(),
    }
}

/// Advances the progress to `seq` with a new delivery. Returns false if another node was faster.
async fn enqueue(bench: &Bench, due: &DuePush, seq: i64) -> bool {
    let delivery = delivery(bench, due);
    let due = due.clone();
    let now = bench.now();
    let progress = PushProgress { execution: due.execution.unwrap(), seq };
    write!(bench, tx => enqueue_delivery(tx, &due, progress, &delivery, now)).unwrap()
}

/// Marks all pending deliveries as delivered. Returns their number.
async fn deliver_all(bench: &Bench) -> usize {
    let now = bench.now();
    let lease = bench.now() + Duration::from_secs(60);
    let channel = "a2a:push:https://hooks.example";
    let claimed = write!(bench, tx => outbox::claim(tx, channel, 100, now, lease)).unwrap();
    let count = claimed.len();
    for claimed in claimed {
        assert!(write!(bench, tx => outbox::mark_delivered(tx, &claimed, now)).unwrap());
    }
    count
}

async fn configurations_are_stored_and_replaced(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let task = send(&bench, first(&bench, alice, "c", "x")).await.unwrap().id;
    for id in ["b", "a", "c"] {
        bench.clock.advance(Duration::from_secs(1));
        set_config(&bench, alice, task, new(id)).await.unwrap();
    }
    let at = bench.now() - Duration::from_secs(1);
    let mut reader = bench.store.reader().await.unwrap();
    let stored = get(&mut reader, alice, AGENT, task, "a").await.unwrap();
    assert_eq!(
        (stored.sealed.as_str(), stored.version.as_str(), stored.dead, stored.created_at),
        ("sealed a", "1.0", false, at)
    );
    bench.clock.advance(Duration::from_secs(1));
    set_config(&bench, alice, task, NewPushConfig { sealed: "another".into(), version: "0.3".into(), ..new("a") })
        .await
        .unwrap();
    let stored = get(&mut reader, alice, AGENT, task, "a").await.unwrap();
    assert_eq!((stored.sealed.as_str(), stored.version.as_str(), stored.created_at), ("another", "0.3", at));
    let mut ids = Vec::new();
    let mut cursor = None;
    loop {
        let page = list(&mut reader, alice, AGENT, task, cursor.as_ref(), 2).await.unwrap();
        ids.extend(page.rows.into_iter().map(|push| push.id));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(ids, ["b", "a", "c"], "oldest first, page by page");
    assert!(find(&mut reader, task, "a", at).await.unwrap().is_some());
    assert!(write!(bench, tx => remove(tx, alice, AGENT, task, "a")).unwrap());
    assert!(!write!(bench, tx => remove(tx, alice, AGENT, task, "a")).unwrap());
    assert!(matches!(get(&mut reader, alice, AGENT, task, "a").await, Err(Error::NotFound)));
    // A pending delivery of the old configuration is not sent to the new one.
    set_config(&bench, alice, task, new("a")).await.unwrap();
    assert_eq!(find(&mut reader, task, "a", at).await.unwrap(), None);
}

async fn the_number_of_configurations_is_limited(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let task = send(&bench, first(&bench, alice, "c", "x")).await.unwrap().id;
    let many = (0..2 * MAX_PER_TASK).map(|n| set_config(&bench, alice, task, new(&n.to_string())));
    let many = futures::future::join_all(many).await;
    assert_eq!(many.iter().filter(|result| result.is_ok()).count() as i64, MAX_PER_TASK);
    assert!(
        many.iter()
            .filter_map(|result| result.as_ref().err())
            .all(|error| matches!(error, Error::TooMany { limit: 20 }))
    );
    let stored = list(&mut bench.store.reader().await.unwrap(), alice, AGENT, task, None, 100).await.unwrap().rows;
    set_config(&bench, alice, task, new(&stored[0].id)).await.unwrap();
}

async fn configurations_are_visible_only_to_their_user_and_agent(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let bob = bench.bob;
    let task = send(&bench, first(&bench, alice, "c", "x")).await.unwrap().id;
    set_config(&bench, alice, task, new("a")).await.unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    for (owner, agent) in [(bob, AGENT), (alice, "b")] {
        let another = new("a");
        let now = bench.now();
        let refused = write!(bench, tx => set(tx, owner, agent, task, &another, now));
        assert!(matches!(refused, Err(Error::NotFound)));
        assert!(matches!(get(&mut reader, owner, agent, task, "a").await, Err(Error::NotFound)));
        assert_eq!(list(&mut reader, owner, agent, task, None, 9).await.unwrap().rows, []);
        assert!(!write!(bench, tx => remove(tx, owner, agent, task, "a")).unwrap());
    }
    assert_eq!(get(&mut reader, alice, AGENT, task, "a").await.unwrap().sealed, "sealed a");
    assert!(matches!(set_config(&bench, alice, Uuid::from_u128(9), new("a")).await, Err(Error::NotFound)));
}

async fn deliveries_of_a_configuration_are_sequential(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let node = bench.node().await;
    let task = send(&bench, first(&bench, alice, "c", "x")).await.unwrap().id;
    set_config(&bench, alice, task, new("a")).await.unwrap();
    assert_eq!(all_due(&bench).await, [], "a queued task causes no notification");
    let claimed = bench.claim(node, AGENT, 9, 1).await.remove(0);
    let working = all_due(&bench).await.remove(0);
    assert_eq!(
        (working.progress.seq, working.execution, working.delivery_error.as_ref()),
        (PushProgress::NONE, Some(task), None)
    );
    assert!(enqueue(&bench, &working, PushProgress::WORKING).await);
    assert!(!enqueue(&bench, &working, PushProgress::WORKING).await, "once");
    assert_eq!(all_due(&bench).await, []);
    bench.finish(&claimed, Default::default()).await;
    assert_eq!(all_due(&bench).await, [], "the next delivery waits for the current one");
    assert_eq!(deliver_all(&bench).await, 1);
    let ended = all_due(&bench).await.remove(0);
    assert_eq!(ended.progress, PushProgress { execution: task, seq: PushProgress::WORKING });
    assert!(enqueue(&bench, &ended, PushProgress::WORKING + 1).await);
    assert_eq!((all_due(&bench).await, deliver_all(&bench).await), (vec![], 1));
    let last = all_due(&bench).await.remove(0);
    assert!(enqueue(&bench, &last, PushProgress::ENDED).await);
    assert_eq!((all_due(&bench).await, deliver_all(&bench).await), (vec![], 1));
    let done = all_due(&bench).await.remove(0);
    assert_eq!(done.progress.seq, PushProgress::ENDED);
    assert!(write!(bench, tx => mark_idle(tx, &done)).unwrap());
    assert_eq!(all_due(&bench).await, []);
    // A configuration that is set after the end gets no notification.
    set_config(&bench, alice, task, new("late")).await.unwrap();
    let late = all_due(&bench).await.remove(0);
    assert_eq!((late.id.as_str(), late.progress.seq), ("late", PushProgress::ENDED));
    assert!(write!(bench, tx => mark_idle(tx, &late)).unwrap());
}

async fn only_one_node_adds_a_delivery(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let node = bench.node().await;
    for n in 0..5 {
        let task = send(&bench, first(&bench, alice, "c", "x")).await.unwrap().id;
        set_config(&bench, alice, task, new(&n.to_string())).await.unwrap();
    }
    bench.claim(node, AGENT, 9, 9).await;
    let found = all_due(&bench).await;
    assert_eq!(found.len(), 5);
    let mut reader = bench.store.reader().await.unwrap();
    let page = due_pushes(&mut reader, None, 2).await.unwrap();
    assert_eq!(page, found[..2]);
    assert_eq!(due_pushes(&mut reader, page.last(), 9).await.unwrap(), found[2..]);
    let steps = (0..40).map(|n| enqueue(&bench, &found[n % 5], PushProgress::WORKING));
    let steps = futures::future::join_all(steps).await;
    assert_eq!(steps.iter().filter(|added| **added).count(), 5);
    assert_eq!(deliver_all(&bench).await, 5, "progress and delivery are written together");
}

async fn an_idle_configuration_becomes_due_when_the_task_continues(bench: Bench) {
    // A2A-1: while the task requests input, the configuration is idle
    let alice = bench.alice;
    let node = bench.node().await;
    for withdrawn in [false, true] {
        let task = send(&bench, first(&bench, alice, "c", "x")).await.unwrap();
        run_next(&bench, node, ExecutionStatus::Success, Some(ExecutionOutcome::InputRequired)).await;
        set_config(&bench, alice, task.id, new("a")).await.unwrap();
        let asked = all_due(&bench).await.remove(0);
        assert_eq!(asked.progress.seq, PushProgress::INPUT_REQUIRED);
        assert!(write!(bench, tx => mark_idle(tx, &asked)).unwrap());
        assert_eq!(all_due(&bench).await, []);
        let now = bench.now();
        if withdrawn {
            write!(bench, tx => withdraw(tx, alice, AGENT, task.id, now)).unwrap();
            assert_eq!(all_due(&bench).await.remove(0).progress.seq, PushProgress::INPUT_REQUIRED);
        } else {
            let answer = next(&bench, alice, &task, "yes");
            let second = answer.execution.id;
            send(&bench, answer).await.unwrap();
            // The task counts as working as soon as it has an answer.
            let working = all_due(&bench).await.remove(0);
            assert_eq!((working.progress.execution, working.execution), (task.id, Some(second)));
            let claimed = bench.claim(node, AGENT, 9, 1).await.remove(0);
            bench.finish(&claimed, Default::default()).await;
            let ended = all_due(&bench).await.remove(0);
            assert!(enqueue(&bench, &ended, PushProgress::ENDED).await);
            deliver_all(&bench).await;
            let ended = all_due(&bench).await.remove(0);
            assert!(write!(bench, tx => mark_idle(tx, &ended)).unwrap());
        }
    }
}

async fn a_concurrent_change_prevents_idling(bench: Bench) {
    // A2A-1: a configuration is not marked as idle if the task has changed meanwhile
    let alice = bench.alice;
    let node = bench.node().await;
    let task = send(&bench, first(&bench, alice, "c", "x")).await.unwrap();
    run_next(&bench, node, ExecutionStatus::Success, Some(ExecutionOutcome::InputRequired)).await;
    set_config(&bench, alice, task.id, new("a")).await.unwrap();
    let asked = all_due(&bench).await.remove(0);
    send(&bench, next(&bench, alice, &task, "yes")).await.unwrap();
    assert!(!write!(bench, tx => mark_idle(tx, &asked)).unwrap());
    run_next(&bench, node, ExecutionStatus::Success, None).await;
    assert_eq!(all_due(&bench).await.len(), 1);
}

async fn a_configuration_that_was_given_up_can_be_set_again(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let node = bench.node().await;
    let task = send(&bench, first(&bench, alice, "c", "x")).await.unwrap().id;
    set_config(&bench, alice, task, new("a")).await.unwrap();
    let claimed = bench.claim(node, AGENT, 9, 1).await.remove(0);
    let working = all_due(&bench).await.remove(0);
    assert!(enqueue(&bench, &working, PushProgress::WORKING).await);
    let now = bench.now();
    let lease = bench.now() + Duration::from_secs(60);
    let taken =
        write!(bench, tx => outbox::claim(tx, "a2a:push:https://hooks.example", 1, now, lease)).unwrap().remove(0);
    assert!(write!(bench, tx => outbox::give_up(tx, &taken, "the server responded with 410 Gone", now)).unwrap());
    let dead = all_due(&bench).await.remove(0);
    assert_eq!(dead.delivery_error.as_deref(), Some("the server responded with 410 Gone"));
    let stored = dead.clone();
    assert!(write!(bench, tx => give_up(tx, &stored, "the server responded with 410 Gone")).unwrap());
    assert!(!write!(bench, tx => give_up(tx, &dead, "again")).unwrap());
    bench.finish(&claimed, Default::default()).await;
    assert_eq!(all_due(&bench).await, [], "the configuration is dead");
    let mut reader = bench.store.reader().await.unwrap();
    let push = get(&mut reader, alice, AGENT, task, "a").await.unwrap();
    assert_eq!((push.dead, push.last_error.as_deref()), (true, Some("the server responded with 410 Gone")));
    assert_eq!(find(&mut reader, task, "a", push.created_at).await.unwrap(), None);
    set_config(&bench, alice, task, new("a")).await.unwrap();
    let push = get(&mut reader, alice, AGENT, task, "a").await.unwrap();
    assert_eq!((push.dead, push.last_error), (false, None));
    assert_eq!(
        all_due(&bench).await.remove(0).progress.seq,
        PushProgress::WORKING,
        "missed updates are sent to the new configuration"
    );
}

async fn configurations_are_removed_with_their_task(bench: Bench) {
    // OPS-7, A2A-1
    let alice = bench.alice;
    let bob = bench.bob;
    let node = bench.node().await;
    for owner in [alice, bob] {
        let task = send(&bench, first(&bench, owner, "c", "x")).await.unwrap();
        set_config(&bench, owner, task.id, new("a")).await.unwrap();
        run_next(&bench, node, ExecutionStatus::Success, None).await;
    }
    let pushes = "SELECT COUNT(*) FROM a2a_pushes";
    write!(bench, tx => data::erase(tx, bob)).unwrap();
    assert_eq!(bench.count(pushes).await, 1);
    bench.clock.advance(Duration::from_secs(31 * 24 * 3600));
    sweep(&bench.store, Retention::default(), bench.now()).await.unwrap();
    assert_eq!(bench.count(pushes).await, 0);
}
