//! Who is told of tasks: kept under their task and their owner, told in order, by one of many nodes.

use std::time::Duration;

use model::UserId;
use model::execution::{Outcome, Status};
use store::a2a::pushes::{Due, MOST, New, Told, due, find, get, give_up, list, remove, rest, set, tell};
use store::a2a::withdraw;
use store::housekeeping::{Retention, sweep};
use store::{Error, data, outbox};
use uuid::Uuid;

use crate::a2a::{AGENT, first, next, ran, sent};
use crate::{Bench, on_both, write};

on_both!(
    kept_and_replaced,
    no_more_than_there_may_be,
    of_one_user_and_one_agent,
    told_one_after_the_other,
    told_by_one_of_many,
    woken_when_the_task_goes_on,
    nothing_is_missed_when_it_goes_on_meanwhile,
    given_up_and_set_again,
    dropped_with_their_task,
);

fn new(id: &str) -> New {
    New {
        id: id.into(),
        url: "https://hooks.example".into(),
        sealed: format!("sealed {id}"),
        scheme: Some("Bearer".into()),
        version: "1.0".into(),
    }
}

async fn put(bench: &Bench, owner: UserId, task: Uuid, new: New) -> store::Result<()> {
    let now = bench.now();
    write!(bench, tx => set(tx, owner, AGENT, task, &new, now))
}

async fn all_due(bench: &Bench) -> Vec<Due> {
    due(&mut bench.store.reader().await.unwrap(), None, 100).await.unwrap()
}

fn delivery(bench: &Bench, due: &Due) -> outbox::New {
    outbox::New {
        id: bench.clock.id(),
        owner: due.owner,
        notification_id: None,
        channel: "a2a:push:https://hooks.example".into(),
        target: None,
        payload: "{}".into(),
    }
}

/// Tells them so far; the delivery is under way then.
async fn say(bench: &Bench, due: &Due, seq: i64) -> bool {
    let delivery = delivery(bench, due);
    let due = due.clone();
    let now = bench.now();
    let told = Told { execution: due.execution.unwrap(), seq };
    write!(bench, tx => tell(tx, &due, told, &delivery, now)).unwrap()
}

/// What is under way arrives.
async fn arrive(bench: &Bench) -> usize {
    let now = bench.now();
    let lease = bench.now() + Duration::from_secs(60);
    let channel = "a2a:push:https://hooks.example";
    let claimed = write!(bench, tx => outbox::claim(tx, channel, 100, now, lease)).unwrap();
    let count = claimed.len();
    for claimed in claimed {
        assert!(write!(bench, tx => outbox::done(tx, &claimed, now)).unwrap());
    }
    count
}

async fn kept_and_replaced(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let task = sent(&bench, first(&bench, alice, "c", "x")).await.unwrap().id;
    for id in ["b", "a", "c"] {
        bench.clock.advance(Duration::from_secs(1));
        put(&bench, alice, task, new(id)).await.unwrap();
    }
    let at = bench.now() - Duration::from_secs(1);
    let mut reader = bench.store.reader().await.unwrap();
    let kept = get(&mut reader, alice, AGENT, task, "a").await.unwrap();
    assert_eq!(
        (kept.sealed.as_str(), kept.version.as_str(), kept.dead, kept.created_at),
        ("sealed a", "1.0", false, at)
    );
    bench.clock.advance(Duration::from_secs(1));
    put(&bench, alice, task, New { sealed: "another".into(), version: "0.3".into(), ..new("a") }).await.unwrap();
    let kept = get(&mut reader, alice, AGENT, task, "a").await.unwrap();
    assert_eq!((kept.sealed.as_str(), kept.version.as_str(), kept.created_at), ("another", "0.3", at));
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
    assert_eq!(ids, ["b", "a", "c"], "the oldest first, page by page");
    assert!(find(&mut reader, task, "a", at).await.unwrap().is_some());
    assert!(write!(bench, tx => remove(tx, alice, AGENT, task, "a")).unwrap());
    assert!(!write!(bench, tx => remove(tx, alice, AGENT, task, "a")).unwrap());
    assert!(matches!(get(&mut reader, alice, AGENT, task, "a").await, Err(Error::NotFound)));
    // What is on its way to the one before is not for its successor.
    put(&bench, alice, task, new("a")).await.unwrap();
    assert_eq!(find(&mut reader, task, "a", at).await.unwrap(), None);
}

async fn no_more_than_there_may_be(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let task = sent(&bench, first(&bench, alice, "c", "x")).await.unwrap().id;
    let many = (0..2 * MOST).map(|n| put(&bench, alice, task, new(&n.to_string())));
    let many = futures::future::join_all(many).await;
    assert_eq!(many.iter().filter(|one| one.is_ok()).count() as i64, MOST);
    assert!(
        many.iter().filter_map(|one| one.as_ref().err()).all(|error| matches!(error, Error::TooMany { limit: 20 }))
    );
    let kept = list(&mut bench.store.reader().await.unwrap(), alice, AGENT, task, None, 100).await.unwrap().rows;
    put(&bench, alice, task, new(&kept[0].id)).await.unwrap();
}

async fn of_one_user_and_one_agent(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let bob = bench.bob;
    let task = sent(&bench, first(&bench, alice, "c", "x")).await.unwrap().id;
    put(&bench, alice, task, new("a")).await.unwrap();
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
    assert!(matches!(put(&bench, alice, Uuid::from_u128(9), new("a")).await, Err(Error::NotFound)));
}

async fn told_one_after_the_other(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let node = bench.node().await;
    let task = sent(&bench, first(&bench, alice, "c", "x")).await.unwrap().id;
    put(&bench, alice, task, new("a")).await.unwrap();
    assert_eq!(all_due(&bench).await, [], "that it waits is not told");
    let claimed = bench.claim(node, AGENT, 9, 1).await.remove(0);
    let working = all_due(&bench).await.remove(0);
    assert_eq!((working.told.seq, working.execution, working.given_up.as_ref()), (Told::NOTHING, Some(task), None));
    assert!(say(&bench, &working, Told::WORKING).await);
    assert!(!say(&bench, &working, Told::WORKING).await, "once");
    assert_eq!(all_due(&bench).await, []);
    bench.finish(&claimed, Default::default()).await;
    assert_eq!(all_due(&bench).await, [], "what comes next waits for what is under way");
    assert_eq!(arrive(&bench).await, 1);
    let ended = all_due(&bench).await.remove(0);
    assert_eq!(ended.told, Told { execution: task, seq: Told::WORKING });
    assert!(say(&bench, &ended, Told::WORKING + 1).await);
    assert_eq!((all_due(&bench).await, arrive(&bench).await), (vec![], 1));
    let last = all_due(&bench).await.remove(0);
    assert!(say(&bench, &last, Told::END).await);
    assert_eq!((all_due(&bench).await, arrive(&bench).await), (vec![], 1));
    let done = all_due(&bench).await.remove(0);
    assert_eq!(done.told.seq, Told::END);
    assert!(write!(bench, tx => rest(tx, &done)).unwrap());
    assert_eq!(all_due(&bench).await, []);
    // One that comes too late is told nothing.
    put(&bench, alice, task, new("late")).await.unwrap();
    let late = all_due(&bench).await.remove(0);
    assert_eq!((late.id.as_str(), late.told.seq), ("late", Told::END));
    assert!(write!(bench, tx => rest(tx, &late)).unwrap());
}

async fn told_by_one_of_many(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let node = bench.node().await;
    for n in 0..5 {
        let task = sent(&bench, first(&bench, alice, "c", "x")).await.unwrap().id;
        put(&bench, alice, task, new(&n.to_string())).await.unwrap();
    }
    bench.claim(node, AGENT, 9, 9).await;
    let found = all_due(&bench).await;
    assert_eq!(found.len(), 5);
    let mut reader = bench.store.reader().await.unwrap();
    let page = due(&mut reader, None, 2).await.unwrap();
    assert_eq!(page, found[..2]);
    assert_eq!(due(&mut reader, page.last(), 9).await.unwrap(), found[2..]);
    let steps = (0..40).map(|n| say(&bench, &found[n % 5], Told::WORKING));
    let steps = futures::future::join_all(steps).await;
    assert_eq!(steps.iter().filter(|told| **told).count(), 5);
    assert_eq!(arrive(&bench).await, 5, "no delivery without the step, no step without the delivery");
}

async fn woken_when_the_task_goes_on(bench: Bench) {
    // A2A-1: after a question nothing is looked at until it is answered or withdrawn
    let alice = bench.alice;
    let node = bench.node().await;
    for withdrawn in [false, true] {
        let of = sent(&bench, first(&bench, alice, "c", "x")).await.unwrap();
        ran(&bench, node, Status::Success, Some(Outcome::Asks)).await;
        put(&bench, alice, of.id, new("a")).await.unwrap();
        let asked = all_due(&bench).await.remove(0);
        assert_eq!(asked.told.seq, Told::ASKED);
        assert!(write!(bench, tx => rest(tx, &asked)).unwrap());
        assert_eq!(all_due(&bench).await, []);
        let now = bench.now();
        if withdrawn {
            write!(bench, tx => withdraw(tx, alice, AGENT, of.id, now)).unwrap();
            assert_eq!(all_due(&bench).await.remove(0).told.seq, Told::ASKED);
        } else {
            let answer = next(&bench, alice, &of, "yes");
            let second = answer.execution.id;
            sent(&bench, answer).await.unwrap();
            // Whoever was answered goes on, also while they wait for their turn.
            let working = all_due(&bench).await.remove(0);
            assert_eq!((working.told.execution, working.execution), (of.id, Some(second)));
            let claimed = bench.claim(node, AGENT, 9, 1).await.remove(0);
            bench.finish(&claimed, Default::default()).await;
            let ended = all_due(&bench).await.remove(0);
            assert!(say(&bench, &ended, Told::END).await);
            arrive(&bench).await;
            let ended = all_due(&bench).await.remove(0);
            assert!(write!(bench, tx => rest(tx, &ended)).unwrap());
        }
    }
}

async fn nothing_is_missed_when_it_goes_on_meanwhile(bench: Bench) {
    // A2A-1: whoever saw that there is nothing to tell does not overlook what began since
    let alice = bench.alice;
    let node = bench.node().await;
    let of = sent(&bench, first(&bench, alice, "c", "x")).await.unwrap();
    ran(&bench, node, Status::Success, Some(Outcome::Asks)).await;
    put(&bench, alice, of.id, new("a")).await.unwrap();
    let asked = all_due(&bench).await.remove(0);
    sent(&bench, next(&bench, alice, &of, "yes")).await.unwrap();
    assert!(!write!(bench, tx => rest(tx, &asked)).unwrap());
    ran(&bench, node, Status::Success, None).await;
    assert_eq!(all_due(&bench).await.len(), 1);
}

async fn given_up_and_set_again(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let node = bench.node().await;
    let task = sent(&bench, first(&bench, alice, "c", "x")).await.unwrap().id;
    put(&bench, alice, task, new("a")).await.unwrap();
    let claimed = bench.claim(node, AGENT, 9, 1).await.remove(0);
    let working = all_due(&bench).await.remove(0);
    assert!(say(&bench, &working, Told::WORKING).await);
    let now = bench.now();
    let lease = bench.now() + Duration::from_secs(60);
    let taken =
        write!(bench, tx => outbox::claim(tx, "a2a:push:https://hooks.example", 1, now, lease)).unwrap().remove(0);
    assert!(write!(bench, tx => outbox::give_up(tx, &taken, "it answers 410 Gone", now)).unwrap());
    let dead = all_due(&bench).await.remove(0);
    assert_eq!(dead.given_up.as_deref(), Some("it answers 410 Gone"));
    let kept = dead.clone();
    assert!(write!(bench, tx => give_up(tx, &kept, "it answers 410 Gone")).unwrap());
    assert!(!write!(bench, tx => give_up(tx, &dead, "again")).unwrap());
    bench.finish(&claimed, Default::default()).await;
    assert_eq!(all_due(&bench).await, [], "nobody is told any more");
    let mut reader = bench.store.reader().await.unwrap();
    let push = get(&mut reader, alice, AGENT, task, "a").await.unwrap();
    assert_eq!((push.dead, push.last_error.as_deref()), (true, Some("it answers 410 Gone")));
    assert_eq!(find(&mut reader, task, "a", push.created_at).await.unwrap(), None);
    put(&bench, alice, task, new("a")).await.unwrap();
    let push = get(&mut reader, alice, AGENT, task, "a").await.unwrap();
    assert_eq!((push.dead, push.last_error), (false, None));
    assert_eq!(all_due(&bench).await.remove(0).told.seq, Told::WORKING, "what was missed is told there");
}

async fn dropped_with_their_task(bench: Bench) {
    // OPS-7, A2A-1
    let alice = bench.alice;
    let bob = bench.bob;
    let node = bench.node().await;
    for owner in [alice, bob] {
        let of = sent(&bench, first(&bench, owner, "c", "x")).await.unwrap();
        put(&bench, owner, of.id, new("a")).await.unwrap();
        ran(&bench, node, Status::Success, None).await;
    }
    let pushes = "SELECT COUNT(*) FROM a2a_pushes";
    write!(bench, tx => data::erase(tx, bob)).unwrap();
    assert_eq!(bench.count(pushes).await, 1);
    bench.clock.advance(Duration::from_secs(31 * 24 * 3600));
    sweep(&bench.store, Retention::default(), bench.now()).await.unwrap();
    assert_eq!(bench.count(pushes).await, 0);
}
