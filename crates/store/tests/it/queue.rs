//! The queue: in order, bounded, one run a place, and nothing lost or done twice when a node dies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;
use model::execution::{Category, Execution, ExecutionRecord, Exit, FollowUp, StateName, Status};
use store::executions::{
    Claimed, Kind, Left, New, Stored, Whose, abandoned, agents_waiting, cancel, cancelled, claim, counts, events,
    followed_up, give_back, queue_again, recover, save, size_of_output, submit_to, to_follow_up, too_late,
};
use store::{Durability, Error, Store, nodes};
use uuid::Uuid;

use crate::{Bench, on_both, write};

on_both!(
    in_their_order,
    begun_as_it_comes,
    no_deeper_than_allowed,
    depth_holds_against_many,
    one_run_a_place,
    places_that_were_taken_away,
    where_its_spool_is,
    only_who_holds_it_writes,
    tried_again_later,
    held_between_two_attempts,
    waited_too_long,
    abandoned_and_failed,
    abandoned_and_tried_again,
    abandoned_and_cancelled,
    recovered_once,
    the_dead_claim_nothing,
    cancelled_or_claimed,
    claimed_once_by_many,
    an_end_is_followed_up_once
);

/// Every step is one of the table, and follows the one before.
pub(crate) fn legal(execution: &Execution) {
    let mut at = StateName::Idle;
    for step in execution.state_transitions() {
        assert_eq!(step.from, at, "{:?}", execution.state_transitions());
        assert!(step.from.may_become(step.to), "{} -> {}", step.from, step.to);
        at = step.to;
    }
    let rests = if execution.is_ended() { StateName::Idle } else { execution.state_name() };
    assert_eq!(at, rests, "{:?}", execution.state_transitions());
}

fn ids(claimed: &[Claimed]) -> Vec<Uuid> {
    claimed.iter().map(|claimed| claimed.fence.id).collect()
}

async fn waiting(bench: &Bench) -> Vec<String> {
    agents_waiting(&mut bench.store.reader().await.unwrap(), bench.now()).await.unwrap()
}

async fn in_their_order(bench: Bench) {
    // SUP-4
    let node = bench.node().await;
    assert!(waiting(&bench).await.is_empty());
    let mut queued = Vec::new();
    for n in 0..6 {
        queued.push(bench.submit(bench.run(bench.alice, if n == 5 { "b" } else { "a" })).await.unwrap());
    }
    assert_eq!(waiting(&bench).await, ["a", "b"]);
    for (position, id) in [1, 2, 3, 4, 5, 1].into_iter().zip(&queued) {
        assert_eq!(bench.record(*id).await.queue_position, Some(position));
    }
    let first = bench.claim(node, "a", 3, 2).await;
    assert_eq!(ids(&first), queued[..2]);
    assert_eq!(first[0].stored.execution.state_name(), StateName::Starting);
    assert_eq!(bench.record(queued[0]).await.queue_position, None);
    assert_eq!(bench.record(queued[2]).await.queue_position, Some(1));
    assert_eq!(ids(&bench.claim(node, "a", 3, 2).await), queued[2..3], "one place is left");
    assert!(bench.claim(node, "a", 3, 2).await.is_empty());
    assert_eq!(ids(&bench.claim(node, "b", 1, 2).await), queued[5..]);
    assert_eq!(waiting(&bench).await, ["a"]);
    bench.finish(&first[0], Left::default()).await;
    assert_eq!(ids(&bench.claim(node, "a", 3, 9).await), queued[3..4]);
}

async fn begun_as_it_comes(bench: Bench) {
    // SUP-4
    let submit = async |new: New, node: Uuid| write!(bench, tx => submit_to(tx, &new, Some(node)));
    let stranger = bench.clock.id();
    let one = bench.run(bench.alice, "a");
    assert!(submit(one, stranger).await.unwrap().is_none(), "nobody knows that node");
    let node = bench.node().await;
    let two = bench.run(bench.alice, "a");
    assert!(submit(two, node).await.unwrap().is_none(), "another one waits");
    let first = bench.claim(node, "a", 1, 1).await.remove(0);
    bench.finish(&first, Left::default()).await;
    let second = bench.claim(node, "a", 1, 1).await.remove(0);
    let mut three = bench.run(bench.alice, "a");
    three.depth = 0;
    assert!(matches!(submit(three, node).await, Err(Error::QueueFull { waiting: 0, depth: 0 })), "its place is taken");
    bench.finish(&second, Left::default()).await;

    // Nothing waits, and there is a place.
    let mut new = bench.run(bench.bob, "a");
    (new.spool, new.depth) = (Some("here".to_owned()), 0);
    let begun = submit(new.clone(), node).await.unwrap().unwrap();
    // As the tables have it.
    let stored = bench.execution(new.execution.id).await;
    assert_eq!(begun.stored.execution, stored);
    let record = ExecutionRecord::from(stored.clone());
    assert_eq!((record.state, record.previous_state), (StateName::Starting, Some(StateName::Idle)));
    legal(&stored);
    assert_eq!((begun.stored.owner, begun.stored.request.as_deref()), (bench.bob, None), "its request is in the spool");
    let mut reader = bench.store.reader().await.unwrap();
    let told = events(&mut reader, stored.id, 0, 10).await.unwrap();
    let told: Vec<_> = told.iter().map(|event| (event.seq, event.text.as_str())).collect();
    assert_eq!(told, [(1, "idle"), (begun.seq, "starting")]);
    assert_eq!(counts(&mut reader, "a").await.unwrap(), (0, 1));
    drop(reader);
    assert!(bench.claim(node, "a", 1, 1).await.is_empty());
    legal(&bench.finish(&begun, Left::default()).await);
    assert_eq!(counts(&mut bench.store.reader().await.unwrap(), "a").await.unwrap(), (0, 0));
}

async fn no_deeper_than_allowed(bench: Bench) {
    // SUP-4
    let node = bench.node().await;
    let run = || {
        let mut new = bench.run(bench.alice, "a");
        (new.places, new.depth) = (2, 1);
        new
    };
    for _ in 0..3 {
        bench.submit(run()).await.unwrap();
    }
    assert!(matches!(bench.submit(run()).await, Err(Error::QueueFull { waiting: 3, depth: 1 })));
    let claimed = bench.claim(node, "a", 2, 9).await;
    let now = counts(&mut bench.store.reader().await.unwrap(), "a").await.unwrap();
    assert_eq!(now, (1, 2), "one waits, two are at work");
    assert!(matches!(bench.submit(run()).await, Err(Error::QueueFull { waiting: 1, depth: 1 })));
    bench.submit(bench.run(bench.bob, "b")).await.unwrap();
    bench.finish(&claimed[0], Left::default()).await;
    bench.submit(run()).await.unwrap();
    assert!(bench.submit(run()).await.is_err());
}

async fn depth_holds_against_many(bench: Bench) {
    // SUP-4
    let submits = (0..40).map(|_| {
        let mut new = bench.run(bench.alice, "a");
        (new.places, new.depth) = (1, 4);
        bench.submit(new)
    });
    let done = futures::future::join_all(submits).await;
    assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 5);
    assert!(done.iter().flat_map(|done| done.as_ref().err()).all(|error| matches!(error, Error::QueueFull { .. })));
}

async fn one_run_a_place(bench: Bench) {
    // SUP-4
    let node = bench.node().await;
    let other = bench.node().await;
    for _ in 0..2 {
        bench.submit(bench.run(bench.alice, "a")).await.unwrap();
    }
    let claimed = bench.claim(node, "a", 1, 9).await.remove(0);
    assert!(bench.claim(other, "a", 1, 9).await.is_empty());
    let holder = claimed.fence.id;
    write!(bench, tx => give_back(tx, holder, other)).unwrap();
    assert!(bench.claim(other, "a", 1, 9).await.is_empty(), "it was not theirs to give back");
    write!(bench, tx => give_back(tx, holder, node)).unwrap();
    assert_eq!(bench.claim(other, "a", 1, 9).await.len(), 1);
}

async fn places_that_were_taken_away(bench: Bench) {
    // SUP-4: the configuration changes while they run
    let node = bench.node().await;
    for _ in 0..10 {
        bench.submit(bench.run(bench.alice, "a")).await.unwrap();
    }
    let claimed = bench.claim(node, "a", 4, 9).await;
    assert_eq!(claimed.len(), 4);
    assert!(bench.claim(node, "a", 2, 9).await.is_empty());
    // The first two places are free, the last two are taken: as many as there may be.
    bench.finish(&claimed[0], Left::default()).await;
    bench.finish(&claimed[1], Left::default()).await;
    assert!(bench.claim(node, "a", 2, 9).await.is_empty());
    bench.finish(&claimed[2], Left::default()).await;
    assert_eq!(bench.claim(node, "a", 2, 9).await.len(), 1);
    assert_eq!(bench.claim(node, "a", 5, 9).await.len(), 3, "and more than before");
    assert!(bench.claim(node, "a", 0, 9).await.is_empty());
}

async fn where_its_spool_is(bench: Bench) {
    // SUP-9: what has secrets is on the disk of one node only
    let node = bench.node().await;
    let mut there = bench.run(bench.alice, "a");
    (there.spool, there.request) = (Some("there".into()), String::new());
    let there = bench.submit(there).await.unwrap();
    let mut here = bench.run(bench.alice, "a");
    (here.spool, here.request) = (Some("here".into()), String::new());
    let here = bench.submit(here).await.unwrap();
    let anywhere = bench.submit(bench.run(bench.alice, "a")).await.unwrap();
    let claimed = bench.claim(node, "a", 9, 9).await;
    assert_eq!(ids(&claimed), [here, anywhere]);
    let requests = claimed.iter().map(|claimed| (claimed.stored.request.as_deref(), claimed.stored.spool.as_deref()));
    assert_eq!(requests.collect::<Vec<_>>(), [(None, Some("here")), (Some("{}"), None)]);
    assert_eq!(bench.execution(there).await.state_name(), StateName::Idle);
}

async fn only_who_holds_it_writes(bench: Bench) {
    // SUP-11
    let node = bench.node().await;
    let id = bench.submit(bench.run(bench.alice, "a")).await.unwrap();
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    assert_eq!((claimed.stored.owner, claimed.fence.token), (bench.alice, 1));
    let fence = claimed.fence;
    let mut execution = claimed.stored.execution;
    execution.start(None, bench.now()).unwrap();
    for wrong in [
        store::executions::Fence { token: 0, ..fence },
        store::executions::Fence { token: 2, ..fence },
        store::executions::Fence { node: Uuid::from_u128(5), ..fence },
        store::executions::Fence { id: Uuid::from_u128(5), ..fence },
    ] {
        assert!(!bench.save(wrong, &execution, None).await, "{wrong:?}");
    }
    assert_eq!(bench.execution(id).await.state_name(), StateName::Starting);
    assert!(bench.save(fence, &execution, None).await);
    let mut late = execution.clone();
    execution.end(Status::Success, Exit::default(), bench.now()).unwrap();
    assert!(bench.save(fence, &execution, None).await);
    late.end(Status::Failure, Exit::with_error("too late", None), bench.now()).unwrap();
    assert!(!bench.save(fence, &late, None).await, "it has ended");
    assert_eq!(bench.execution(id).await, execution);
}

async fn tried_again_later(bench: Bench) {
    // SUP-6
    let node = bench.node().await;
    let id = bench.submit(bench.run(bench.alice, "a")).await.unwrap();
    // Longer than it might have waited at first.
    bench.clock.advance(Duration::from_secs(1700));
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    let fence = claimed.fence;
    let mut execution = claimed.stored.execution;
    bench.clock.advance(Duration::from_secs(1700));
    let now = bench.now();
    let again = now + Duration::from_secs(60);
    execution.start(None, now).unwrap();
    execution.queue_again(Exit::default(), now).unwrap();
    let left = Left { output_bytes: 10, ..Left::default() };
    let queued = bench.transaction(async move |tx| {
        assert!(save(tx, fence, &execution, Some(&left)).await?);
        assert!(queue_again(tx, fence, again).await?);
        queue_again(tx, fence, again).await
    });
    assert!(!queued.await.unwrap(), "it is nobody's any more");
    assert!(bench.claim(node, "a", 1, 1).await.is_empty());
    assert!(waiting(&bench).await.is_empty(), "not yet");
    bench.clock.advance(Duration::from_secs(60));
    let now = bench.now();
    assert!(write!(bench, tx => too_late(tx, now, 9)).unwrap().is_empty(), "it may wait as long as the first time");
    assert!(bench.claim(node, "a", 1, 1).await.is_empty(), "its place was not given back yet");
    write!(bench, tx => give_back(tx, id, node)).unwrap();
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    assert_eq!((claimed.fence.id, claimed.fence.token), (id, 2));
    assert_eq!((claimed.stored.execution.attempt(), claimed.stored.execution.previous_retries().len()), (2, 1));
    assert!(!bench.save(fence, &claimed.stored.execution, None).await, "the first claim counts no more");
    bench.finish(&claimed, Left { output_bytes: 5, ..Left::default() }).await;
    legal(&bench.execution(id).await);
    let size = size_of_output(&mut bench.store.reader().await.unwrap()).await.unwrap();
    assert_eq!(size, 15, "what both tries said is kept");
}

async fn held_between_two_attempts(bench: Bench) {
    // SUP-6, SUP-11: its node holds it, is asked to cancel it, and may die meanwhile
    let node = bench.node().await;
    let id = bench.submit(bench.run(bench.alice, "a")).await.unwrap();
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    let fence = claimed.fence;
    let mut execution = claimed.stored.execution;
    let now = bench.now();
    execution.retry(Exit::with_error("it broke", Some(Category::Transient)), now).unwrap();
    assert!(bench.save(fence, &execution, None).await);
    assert_eq!(bench.execution(id).await, execution);
    write!(bench, tx => cancel(tx, Whose::Everyones, id, now)).unwrap();
    assert_eq!(cancelled(&mut bench.store.reader().await.unwrap(), node).await.unwrap(), [id]);
    execution.retry(Exit::default(), now).unwrap();
    assert!(bench.save(fence, &execution, None).await, "the next attempt");
    write!(bench, tx => nodes::leave(tx, node)).unwrap();
    let ended = recovered(&bench, None).await.remove(0);
    assert_eq!((ended.id, ended.state_name(), ended.attempt()), (id, StateName::Cancelled, 3));
    assert_eq!(bench.execution(id).await, ended);
    legal(&ended);
}

async fn waited_too_long(bench: Bench) {
    // SUP-4: queue_timeout; SUP-5: Idle→Timeout
    let node = bench.node().await;
    let late = bench.submit(bench.run(bench.alice, "a")).await.unwrap();
    let mut patient = bench.run(bench.alice, "a");
    patient.wait_until += Duration::from_secs(10);
    let patient = bench.submit(patient).await.unwrap();
    let at_work = bench.submit(bench.run(bench.alice, "b")).await.unwrap();
    bench.claim(node, "b", 1, 1).await;
    bench.clock.advance(Duration::from_secs(1801));
    let now = bench.now();
    let ended = write!(bench, tx => too_late(tx, now, 9)).unwrap();
    assert_eq!(ended.iter().map(|execution| execution.id).collect::<Vec<_>>(), [late]);
    let kept = bench.execution(late).await;
    let end = kept.ended().unwrap();
    assert_eq!((end.status, end.at, end.started), (Status::Timeout, now, None));
    legal(&kept);
    assert_eq!(bench.record(patient).await.queue_position, Some(1));
    assert_eq!(bench.execution(at_work).await.state_name(), StateName::Starting);
    let told = events(&mut bench.store.reader().await.unwrap(), late, 1, 9).await.unwrap();
    assert_eq!((told[0].kind, told[0].text.as_str()), (Kind::State, "timeout"));
}

/// What the sweep of a node does.
async fn recovered(bench: &Bench, retry_at: Option<Timestamp>) -> Vec<Execution> {
    let now = bench.now();
    let sweep = bench.transaction(async move |tx| {
        nodes::bury(tx, now).await?;
        let mut done = Vec::new();
        for stored in abandoned(tx, 100).await? {
            done.push(recover(tx, stored, "adjutant was stopped", retry_at, now).await?);
        }
        Ok(done)
    });
    sweep.await.unwrap()
}

async fn abandoned_and_failed(bench: Bench) {
    // SUP-11
    let node = bench.node().await;
    for _ in 0..2 {
        bench.submit(bench.run(bench.alice, "a")).await.unwrap();
    }
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    assert!(recovered(&bench, None).await.is_empty(), "it lives");
    bench.clock.advance(Duration::from_secs(31));
    let other = bench.node().await;
    let ended = recovered(&bench, None).await.remove(0);
    assert_eq!((ended.id, ended.state_name()), (claimed.fence.id, StateName::Failed));
    let kept = bench.execution(ended.id).await;
    assert_eq!(kept, ended);
    legal(&kept);
    let error = kept.ended().and_then(|end| end.exit.error.as_ref()).unwrap();
    assert_eq!((error.message.as_str(), error.category), ("adjutant was stopped", Some(Category::SystemError)));
    assert!(recovered(&bench, None).await.is_empty(), "once");
    // The dead node wakes up and knows nothing of it.
    let mut late = claimed.stored.execution;
    late.start(None, bench.now()).unwrap();
    assert!(!bench.save(claimed.fence, &late, None).await);
    assert_eq!(bench.claim(other, "a", 1, 1).await.len(), 1, "its place is free");
}

async fn abandoned_and_tried_again(bench: Bench) {
    // SUP-11, SUP-6
    let node = bench.node().await;
    let id = bench.submit(bench.run(bench.alice, "a")).await.unwrap();
    bench.clock.advance(Duration::from_secs(29));
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    let mut running = claimed.stored.execution;
    running.start(Some(1), bench.now()).unwrap();
    let left = Left { output_bytes: 3, ..Left::default() };
    assert!(bench.save(claimed.fence, &running, Some(left)).await);
    bench.clock.advance(Duration::from_secs(1800));
    let other = bench.node().await;
    let again = bench.now() + Duration::from_secs(5);
    let waits = recovered(&bench, Some(again)).await.remove(0);
    assert_eq!((waits.state_name(), waits.retry_count(), waits.attempt()), (StateName::Idle, 1, 2));
    let kept = bench.execution(id).await;
    legal(&kept);
    let before = &kept.previous_retries()[0];
    assert_eq!((before.attempt, before.status, before.process_id), (1, Status::Failure, Some(1)));
    assert_eq!(before.error_category, Some(Category::SystemError));
    assert!(bench.claim(other, "a", 1, 1).await.is_empty(), "not yet");
    assert!(!bench.save(claimed.fence, &running, None).await);
    bench.clock.advance(Duration::from_secs(5));
    let now = bench.now();
    assert!(write!(bench, tx => too_late(tx, now, 9)).unwrap().is_empty());
    let second = bench.claim(other, "a", 1, 1).await.remove(0);
    assert_eq!((second.fence.id, second.fence.token), (id, 2));
    assert!(!bench.save(claimed.fence, &running, None).await, "somebody else has it");
    let late = claimed.fence;
    write!(bench, tx => give_back(tx, late.id, late.node)).unwrap();
    bench.submit(bench.run(bench.alice, "a")).await.unwrap();
    assert!(bench.claim(other, "a", 1, 1).await.is_empty(), "the dead node gives nobody's place back");
    legal(&bench.finish(&second, Left::default()).await);
    let told = events(&mut bench.store.reader().await.unwrap(), id, 0, 9).await.unwrap();
    let told: Vec<_> = told.iter().map(|event| event.text.as_str()).collect();
    assert_eq!(told, ["idle", "starting", "idle", "starting"], "runs tell the rest themselves");
}

async fn abandoned_and_cancelled(bench: Bench) {
    // SUP-7: nobody wants it tried again
    let node = bench.node().await;
    let id = bench.submit(bench.run(bench.alice, "a")).await.unwrap();
    bench.claim(node, "a", 1, 1).await;
    let now = bench.now();
    write!(bench, tx => cancel(tx, Whose::Everyones, id, now)).unwrap();
    write!(bench, tx => nodes::leave(tx, node)).unwrap();
    let ended = recovered(&bench, Some(now)).await.remove(0);
    assert_eq!((ended.state_name(), ended.retry_count()), (StateName::Cancelled, 0));
    legal(&bench.execution(id).await);
}

async fn recovered_once(bench: Bench) {
    // SUP-11: two nodes have found the same, and the second comes late
    let node = bench.node().await;
    let id = bench.submit(bench.run(bench.alice, "a")).await.unwrap();
    bench.claim(node, "a", 1, 1).await;
    write!(bench, tx => nodes::leave(tx, node)).unwrap();
    let found: Stored = write!(bench, tx => abandoned(tx, 9)).unwrap().remove(0);
    let twice = found.clone();
    let now = bench.now();
    let other = bench.node().await;
    write!(bench, tx => recover(tx, found, "why", Some(now), now)).unwrap();
    let late = twice.clone();
    assert!(matches!(write!(bench, tx => recover(tx, late, "why", None, now)), Err(Error::Ended)));
    let claimed = bench.claim(other, "a", 1, 1).await.remove(0);
    assert!(matches!(write!(bench, tx => recover(tx, twice, "why", None, now)), Err(Error::Ended)));
    assert_eq!(bench.execution(id).await.state_name(), StateName::Starting);
    bench.finish(&claimed, Left::default()).await;
}

async fn the_dead_claim_nothing(bench: Bench) {
    // SUP-11: a node that was frozen does not know yet that it was taken for dead
    let node = bench.node().await;
    bench.submit(bench.run(bench.alice, "a")).await.unwrap();
    write!(bench, tx => nodes::leave(tx, node)).unwrap();
    assert!(bench.claim(node, "a", 1, 1).await.is_empty());
    assert_eq!(bench.count("SELECT COUNT(*) FROM places").await, 0);
}

async fn cancelled_or_claimed(bench: Bench) {
    // SUP-5: at the same moment; one of them comes first, and both are told the truth
    let node = bench.node().await;
    for _ in 0..20 {
        let id = bench.submit(bench.run(bench.alice, "a")).await.unwrap();
        let now = bench.now();
        let cancel = bench.transaction(async move |tx| cancel(tx, Whose::Everyones, id, now).await);
        let (cancelled, claimed) = futures::join!(cancel, bench.claim(node, "a", 1, 1));
        let cancelled = cancelled.unwrap();
        assert_eq!(cancelled.state_name(), if claimed.is_empty() { StateName::Cancelled } else { StateName::Starting });
        assert_eq!(bench.execution(id).await.state_name(), cancelled.state_name());
        for claimed in claimed {
            bench.finish(&claimed, Left::default()).await;
        }
    }
}

async fn claimed_once_by_many(bench: Bench) {
    // SUP-4: on several nodes where there can be several
    const AGENTS: [(&str, i64); 5] = [("a", 1), ("b", 2), ("c", 3), ("d", 1), ("e", 2)];
    let mut stores = vec![bench.store.clone()];
    if bench.store.is_shared() {
        for _ in 0..2 {
            stores.push(Store::open(&bench.location, Durability::Normal).await.unwrap());
        }
    }
    for n in 0..200 {
        bench.submit(bench.run(bench.alice, AGENTS[n % 5].0)).await.unwrap();
    }
    let now = bench.now();
    let busy = Mutex::new(BTreeMap::<&str, i64>::new());
    let most = Mutex::new(BTreeMap::<&str, i64>::new());
    let done = Mutex::new(Vec::new());
    let workers = (0..8).map(|n| {
        let store = &stores[n % stores.len()];
        let bench = &bench;
        let busy = &busy;
        let most = &most;
        let done = &done;
        async move {
            let node = bench.node().await;
            while done.lock().unwrap().len() < 200 {
                for (agent, places) in AGENTS {
                    let limit = 1 + (n % 3) as i64;
                    let claimed =
                        store.transaction(async move |tx| claim(tx, node, "here", agent, places, limit, now).await);
                    let claimed = claimed.await.unwrap();
                    for _ in &claimed {
                        let mut busy = busy.lock().unwrap();
                        let now = busy.entry(agent).or_default();
                        *now += 1;
                        let mut most = most.lock().unwrap();
                        let most = most.entry(agent).or_default();
                        *most = (*most).max(*now);
                    }
                    tokio::task::yield_now().await;
                    for claimed in claimed {
                        *busy.lock().unwrap().get_mut(agent).unwrap() -= 1;
                        bench.finish(&claimed, Left::default()).await;
                        done.lock().unwrap().push((agent, claimed.fence));
                    }
                }
            }
        }
    });
    futures::future::join_all(workers).await;
    let done = done.into_inner().unwrap();
    assert_eq!(done.len(), 200);
    assert_eq!(done.iter().map(|(_, fence)| fence.id).collect::<BTreeSet<_>>().len(), 200, "each of them once");
    assert!(done.iter().all(|(_, fence)| fence.token == 1));
    for (agent, places) in AGENTS {
        let most = most.lock().unwrap()[agent];
        assert!((1..=places).contains(&most), "{agent}: {most} at once");
    }
    assert_eq!(bench.count("SELECT COUNT(*) FROM executions WHERE state = 'completed'").await, 200);
    assert_eq!(bench.count("SELECT COUNT(*) FROM places").await, 0);
}

async fn an_end_is_followed_up_once(bench: Bench) {
    let new = |follow_up| New { follow_up, ..bench.run(bench.alice, "a") };
    let id = bench.submit(new(Some(FollowUp::Chat))).await.unwrap();
    let quiet = bench.submit(new(None)).await.unwrap();
    let found = async |who| {
        let found = to_follow_up(&mut bench.store.reader().await.unwrap(), who, 10).await.unwrap();
        found.iter().map(|stored| (stored.owner, stored.execution.id)).collect::<Vec<_>>()
    };
    assert_eq!(found(FollowUp::Chat).await, [], "it has not ended");
    let now = bench.now();
    for id in [id, quiet] {
        write!(bench, tx => cancel(tx, Whose::Everyones, id, now)).unwrap();
    }
    assert_eq!(found(FollowUp::Schedule).await, []);
    assert_eq!(found(FollowUp::Chat).await, [(bench.alice, id)]);
    assert!(write!(bench, tx => followed_up(tx, id)).unwrap());
    assert!(!write!(bench, tx => followed_up(tx, id)).unwrap(), "not twice");
    assert_eq!(found(FollowUp::Chat).await, []);
}
