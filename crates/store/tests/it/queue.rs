//! The queue: ordered and bounded, one run for each slot. If a node dies, no execution is lost or run twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;
use model::execution::{AttemptExit, ErrorCategory, Execution, ExecutionRecord, ExecutionStatus, FollowUp, StateName};
use store::executions::{
    ClaimedExecution, ExecutionEventKind, ExecutionRow, NewExecution, OutputSummary, OwnerScope, agents_with_queued,
    cancel, cancel_requests, claim, claimed_by, enqueue_or_claim, events, expire_queued, has_abandoned, lock_abandoned,
    mark_followed_up, pending_follow_ups, queue_counts, recover, release_slot, requeue, save, total_output_bytes,
};
use store::{Durability, Error, Store, nodes};
use uuid::Uuid;

use crate::{Bench, on_both, write};

on_both!(
    executions_are_claimed_in_order,
    an_execution_is_claimed_directly_if_a_slot_is_free,
    the_queue_depth_is_limited,
    the_queue_depth_holds_for_concurrent_submissions,
    a_slot_has_one_holder,
    fewer_slots_delay_further_claims,
    a_spooled_request_is_claimed_only_with_its_spool,
    only_a_valid_fence_can_save,
    a_requeued_execution_waits_and_keeps_its_output,
    an_execution_stays_held_between_attempts,
    queued_executions_expire,
    an_abandoned_execution_fails,
    an_abandoned_execution_is_requeued,
    an_abandoned_execution_with_a_cancel_request_is_cancelled,
    an_abandoned_execution_is_recovered_once,
    abandoned_executions_are_found_until_they_are_recovered,
    claims_of_a_node_are_found_until_they_run,
    a_removed_node_cannot_claim,
    concurrent_cancel_and_claim_are_consistent,
    concurrent_claims_respect_slots_and_are_disjoint,
    a_follow_up_is_marked_once
);

/// Asserts that all recorded transitions are legal and form a chain.
pub(crate) fn assert_legal_transitions(execution: &Execution) {
    let mut at = StateName::Idle;
    for step in execution.state_transitions() {
        assert_eq!(step.from, at, "{:?}", execution.state_transitions());
        assert!(step.from.can_become(step.to), "{} -> {}", step.from, step.to);
        at = step.to;
    }
    let last = if execution.is_ended() { StateName::Idle } else { execution.state_name() };
    assert_eq!(at, last, "{:?}", execution.state_transitions());
}

fn ids(claimed: &[ClaimedExecution]) -> Vec<Uuid> {
    claimed.iter().map(|claimed| claimed.fence.id).collect()
}

async fn agents_with_work(bench: &Bench) -> Vec<String> {
    agents_with_queued(&mut bench.store.reader().await.unwrap(), bench.now()).await.unwrap()
}

async fn executions_are_claimed_in_order(bench: Bench) {
    // SUP-4
    let node = bench.node().await;
    assert!(agents_with_work(&bench).await.is_empty());
    let mut queued = Vec::new();
    for n in 0..6 {
        queued.push(bench.enqueue(bench.new_execution(bench.alice, if n == 5 { "b" } else { "a" })).await.unwrap());
    }
    assert_eq!(agents_with_work(&bench).await, ["a", "b"]);
    for (position, id) in [1, 2, 3, 4, 5, 1].into_iter().zip(&queued) {
        assert_eq!(bench.record(*id).await.queue_position, Some(position));
    }
    let first = bench.claim(node, "a", 3, 2).await;
    assert_eq!(ids(&first), queued[..2]);
    assert_eq!(first[0].row.execution.state_name(), StateName::Starting);
    assert_eq!(bench.record(queued[0]).await.queue_position, None);
    assert_eq!(bench.record(queued[2]).await.queue_position, Some(1));
    assert_eq!(ids(&bench.claim(node, "a", 3, 2).await), queued[2..3], "one slot is free");
    assert!(bench.claim(node, "a", 3, 2).await.is_empty());
    assert_eq!(ids(&bench.claim(node, "b", 1, 2).await), queued[5..]);
    assert_eq!(agents_with_work(&bench).await, ["a"]);
    bench.finish(&first[0], OutputSummary::default()).await;
    assert_eq!(ids(&bench.claim(node, "a", 3, 9).await), queued[3..4]);
}

async fn an_execution_is_claimed_directly_if_a_slot_is_free(bench: Bench) {
    // SUP-4
    let enqueue = async |new: NewExecution, node: Uuid| write!(bench, tx => enqueue_or_claim(tx, &new, Some(node)));
    let stranger = bench.clock.id();
    let one = bench.new_execution(bench.alice, "a");
    assert!(enqueue(one, stranger).await.unwrap().is_none(), "the node is unknown");
    let node = bench.node().await;
    let two = bench.new_execution(bench.alice, "a");
    assert!(enqueue(two, node).await.unwrap().is_none(), "another execution is queued");
    let first = bench.claim(node, "a", 1, 1).await.remove(0);
    bench.finish(&first, OutputSummary::default()).await;
    let second = bench.claim(node, "a", 1, 1).await.remove(0);
    let mut three = bench.new_execution(bench.alice, "a");
    three.queue_depth = 0;
    assert!(matches!(enqueue(three, node).await, Err(Error::QueueFull { waiting: 0, depth: 0 })), "the slot is in use");
    bench.finish(&second, OutputSummary::default()).await;

    // The queue is empty and the slot is free.
    let mut new = bench.new_execution(bench.bob, "a");
    (new.spool, new.queue_depth) = (Some("here".to_owned()), 0);
    let begun = enqueue(new.clone(), node).await.unwrap().unwrap();
    // The claim equals the stored rows.
    let stored = bench.execution(new.execution.id).await;
    assert_eq!(begun.row.execution, stored);
    let record = ExecutionRecord::from(stored.clone());
    assert_eq!((record.state, record.previous_state), (StateName::Starting, Some(StateName::Idle)));
    assert_legal_transitions(&stored);
    assert_eq!((begun.row.owner, begun.row.request.as_deref()), (bench.bob, None), "its request is in the spool");
    let mut reader = bench.store.reader().await.unwrap();
    let recorded = events(&mut reader, stored.id, 0, 10).await.unwrap();
    let recorded: Vec<_> = recorded.iter().map(|event| (event.seq, event.text.as_str())).collect();
    assert_eq!(recorded, [(1, "idle"), (begun.seq, "starting")]);
    assert_eq!(queue_counts(&mut reader, "a").await.unwrap(), (0, 1));
    drop(reader);
    assert!(bench.claim(node, "a", 1, 1).await.is_empty());
    assert_legal_transitions(&bench.finish(&begun, OutputSummary::default()).await);
    assert_eq!(queue_counts(&mut bench.store.reader().await.unwrap(), "a").await.unwrap(), (0, 0));
}

async fn the_queue_depth_is_limited(bench: Bench) {
    // SUP-4
    let node = bench.node().await;
    let run = || {
        let mut new = bench.new_execution(bench.alice, "a");
        (new.slots, new.queue_depth) = (2, 1);
        new
    };
    for _ in 0..3 {
        bench.enqueue(run()).await.unwrap();
    }
    assert!(matches!(bench.enqueue(run()).await, Err(Error::QueueFull { waiting: 3, depth: 1 })));
    let claimed = bench.claim(node, "a", 2, 9).await;
    let now = queue_counts(&mut bench.store.reader().await.unwrap(), "a").await.unwrap();
    assert_eq!(now, (1, 2), "one is queued, two are running");
    assert!(matches!(bench.enqueue(run()).await, Err(Error::QueueFull { waiting: 1, depth: 1 })));
    bench.enqueue(bench.new_execution(bench.bob, "b")).await.unwrap();
    bench.finish(&claimed[0], OutputSummary::default()).await;
    bench.enqueue(run()).await.unwrap();
    assert!(bench.enqueue(run()).await.is_err());
}

async fn the_queue_depth_holds_for_concurrent_submissions(bench: Bench) {
    // SUP-4
    let enqueues = (0..40).map(|_| {
        let mut new = bench.new_execution(bench.alice, "a");
        (new.slots, new.queue_depth) = (1, 4);
        bench.enqueue(new)
    });
    let done = futures::future::join_all(enqueues).await;
    assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 5);
    assert!(done.iter().flat_map(|done| done.as_ref().err()).all(|error| matches!(error, Error::QueueFull { .. })));
}

async fn a_slot_has_one_holder(bench: Bench) {
    // SUP-4
    let node = bench.node().await;
    let other = bench.node().await;
    for _ in 0..2 {
        bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    }
    let claimed = bench.claim(node, "a", 1, 9).await.remove(0);
    assert!(bench.claim(other, "a", 1, 9).await.is_empty());
    let holder = claimed.fence.id;
    write!(bench, tx => release_slot(tx, holder, other)).unwrap();
    assert!(bench.claim(other, "a", 1, 9).await.is_empty(), "another node cannot release the slot");
    write!(bench, tx => release_slot(tx, holder, node)).unwrap();
    assert_eq!(bench.claim(other, "a", 1, 9).await.len(), 1);
}

async fn fewer_slots_delay_further_claims(bench: Bench) {
    // SUP-4: the configuration changes while they run
    let node = bench.node().await;
    for _ in 0..10 {
        bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    }
    let claimed = bench.claim(node, "a", 4, 9).await;
    assert_eq!(claimed.len(), 4);
    assert!(bench.claim(node, "a", 2, 9).await.is_empty());
    // The first two slots are free, the last two are in use: the limit is reached.
    bench.finish(&claimed[0], OutputSummary::default()).await;
    bench.finish(&claimed[1], OutputSummary::default()).await;
    assert!(bench.claim(node, "a", 2, 9).await.is_empty());
    bench.finish(&claimed[2], OutputSummary::default()).await;
    assert_eq!(bench.claim(node, "a", 2, 9).await.len(), 1);
    assert_eq!(bench.claim(node, "a", 5, 9).await.len(), 3, "the number of slots can also grow");
    assert!(bench.claim(node, "a", 0, 9).await.is_empty());
}

async fn a_spooled_request_is_claimed_only_with_its_spool(bench: Bench) {
    // SUP-9: a request with secrets is on the disk of one node only
    let node = bench.node().await;
    let mut there = bench.new_execution(bench.alice, "a");
    (there.spool, there.request) = (Some("there".into()), String::new());
    let there = bench.enqueue(there).await.unwrap();
    let mut here = bench.new_execution(bench.alice, "a");
    (here.spool, here.request) = (Some("here".into()), String::new());
    let here = bench.enqueue(here).await.unwrap();
    let anywhere = bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    let claimed = bench.claim(node, "a", 9, 9).await;
    assert_eq!(ids(&claimed), [here, anywhere]);
    let requests = claimed.iter().map(|claimed| (claimed.row.request.as_deref(), claimed.row.spool.as_deref()));
    assert_eq!(requests.collect::<Vec<_>>(), [(None, Some("here")), (Some("{}"), None)]);
    assert_eq!(bench.execution(there).await.state_name(), StateName::Idle);
}

async fn only_a_valid_fence_can_save(bench: Bench) {
    // SUP-11
    let node = bench.node().await;
    let id = bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    assert_eq!((claimed.row.owner, claimed.fence.token), (bench.alice, 1));
    let fence = claimed.fence;
    let mut execution = claimed.row.execution;
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
    execution.end(ExecutionStatus::Success, AttemptExit::default(), bench.now()).unwrap();
    assert!(bench.save(fence, &execution, None).await);
    late.end(ExecutionStatus::Failure, AttemptExit::with_error("too late", None), bench.now()).unwrap();
    assert!(!bench.save(fence, &late, None).await, "it has ended");
    assert_eq!(bench.execution(id).await, execution);
}

async fn a_requeued_execution_waits_and_keeps_its_output(bench: Bench) {
    // SUP-6
    let node = bench.node().await;
    let id = bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    // Together longer than the queue timeout.
    bench.clock.advance(Duration::from_secs(1700));
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    let fence = claimed.fence;
    let mut execution = claimed.row.execution;
    bench.clock.advance(Duration::from_secs(1700));
    let now = bench.now();
    let again = now + Duration::from_secs(60);
    execution.start(None, now).unwrap();
    execution.requeue(AttemptExit::default(), now).unwrap();
    let summary = OutputSummary { output_bytes: 10, ..OutputSummary::default() };
    let queued = bench.transaction(async move |tx| {
        assert!(save(tx, fence, &execution, Some(&summary)).await?);
        assert!(requeue(tx, fence, again).await?);
        requeue(tx, fence, again).await
    });
    assert!(!queued.await.unwrap(), "it has no holder");
    assert!(bench.claim(node, "a", 1, 1).await.is_empty());
    assert!(agents_with_work(&bench).await.is_empty(), "not yet");
    bench.clock.advance(Duration::from_secs(60));
    let now = bench.now();
    assert!(write!(bench, tx => expire_queued(tx, now, 9)).unwrap().is_empty(), "the queue timeout starts again");
    assert!(bench.claim(node, "a", 1, 1).await.is_empty(), "its slot is not released yet");
    write!(bench, tx => release_slot(tx, id, node)).unwrap();
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    assert_eq!((claimed.fence.id, claimed.fence.token), (id, 2));
    assert_eq!((claimed.row.execution.attempt(), claimed.row.execution.previous_retries().len()), (2, 1));
    assert!(!bench.save(fence, &claimed.row.execution, None).await, "the first claim is invalid");
    bench.finish(&claimed, OutputSummary { output_bytes: 5, ..OutputSummary::default() }).await;
    assert_legal_transitions(&bench.execution(id).await);
    let size = total_output_bytes(&mut bench.store.reader().await.unwrap()).await.unwrap();
    assert_eq!(size, 15, "the output of both attempts counts");
}

async fn an_execution_stays_held_between_attempts(bench: Bench) {
    // SUP-6, SUP-11: its node holds it, gets a cancel request, and dies
    let node = bench.node().await;
    let id = bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    let fence = claimed.fence;
    let mut execution = claimed.row.execution;
    let now = bench.now();
    execution.retry(AttemptExit::with_error("it broke", Some(ErrorCategory::Transient)), now).unwrap();
    assert!(bench.save(fence, &execution, None).await);
    assert_eq!(bench.execution(id).await, execution);
    write!(bench, tx => cancel(tx, OwnerScope::AllUsers, id, now)).unwrap();
    let requests = cancel_requests(&mut bench.store.reader().await.unwrap(), node).await.unwrap();
    assert_eq!(requests.iter().map(|request| request.id).collect::<Vec<_>>(), [id]);
    execution.retry(AttemptExit::default(), now).unwrap();
    assert!(bench.save(fence, &execution, None).await, "the next attempt");
    write!(bench, tx => nodes::leave(tx, node)).unwrap();
    let ended = recovered(&bench, None).await.remove(0);
    assert_eq!((ended.id, ended.state_name(), ended.attempt()), (id, StateName::Cancelled, 3));
    assert_eq!(bench.execution(id).await, ended);
    assert_legal_transitions(&ended);
}

async fn queued_executions_expire(bench: Bench) {
    // SUP-4: queue_timeout; SUP-5: Idle→Timeout
    let node = bench.node().await;
    let late = bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    let mut later = bench.new_execution(bench.alice, "a");
    later.wait_until += Duration::from_secs(10);
    let later = bench.enqueue(later).await.unwrap();
    let running_id = bench.enqueue(bench.new_execution(bench.alice, "b")).await.unwrap();
    bench.claim(node, "b", 1, 1).await;
    bench.clock.advance(Duration::from_secs(1801));
    let now = bench.now();
    let ended = write!(bench, tx => expire_queued(tx, now, 9)).unwrap();
    assert_eq!(ended.iter().map(|execution| execution.id).collect::<Vec<_>>(), [late]);
    let stored = bench.execution(late).await;
    let end = stored.ended().unwrap();
    assert_eq!((end.status, end.at, end.started), (ExecutionStatus::Timeout, now, None));
    assert_legal_transitions(&stored);
    assert_eq!(bench.record(later).await.queue_position, Some(1));
    assert_eq!(bench.execution(running_id).await.state_name(), StateName::Starting);
    let recorded = events(&mut bench.store.reader().await.unwrap(), late, 1, 9).await.unwrap();
    assert_eq!((recorded[0].kind, recorded[0].text.as_str()), (ExecutionEventKind::State, "timeout"));
}

/// Recovers all abandoned executions, like the maintenance of a node.
async fn recovered(bench: &Bench, retry_at: Option<Timestamp>) -> Vec<Execution> {
    let now = bench.now();
    let sweep = bench.transaction(async move |tx| {
        nodes::remove_expired(tx, now).await?;
        let mut done = Vec::new();
        for row in lock_abandoned(tx, 100).await? {
            done.push(recover(tx, row, "adjutant was stopped", retry_at, now).await?);
        }
        Ok(done)
    });
    sweep.await.unwrap()
}

async fn an_abandoned_execution_fails(bench: Bench) {
    // SUP-11
    let node = bench.node().await;
    for _ in 0..2 {
        bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    }
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    assert!(recovered(&bench, None).await.is_empty(), "the node is alive");
    bench.clock.advance(Duration::from_secs(31));
    let other = bench.node().await;
    let ended = recovered(&bench, None).await.remove(0);
    assert_eq!((ended.id, ended.state_name()), (claimed.fence.id, StateName::Failed));
    let stored = bench.execution(ended.id).await;
    assert_eq!(stored, ended);
    assert_legal_transitions(&stored);
    let error = stored.ended().and_then(|end| end.exit.error.as_ref()).unwrap();
    assert_eq!((error.message.as_str(), error.category), ("adjutant was stopped", Some(ErrorCategory::SystemError)));
    assert!(recovered(&bench, None).await.is_empty(), "once");
    // The removed node continues without knowing it.
    let mut late = claimed.row.execution;
    late.start(None, bench.now()).unwrap();
    assert!(!bench.save(claimed.fence, &late, None).await);
    assert_eq!(bench.claim(other, "a", 1, 1).await.len(), 1, "its slot is free");
}

async fn an_abandoned_execution_is_requeued(bench: Bench) {
    // SUP-11, SUP-6
    let node = bench.node().await;
    let id = bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    bench.clock.advance(Duration::from_secs(29));
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    let mut running = claimed.row.execution;
    running.start(Some(1), bench.now()).unwrap();
    let summary = OutputSummary { output_bytes: 3, ..OutputSummary::default() };
    assert!(bench.save(claimed.fence, &running, Some(summary)).await);
    bench.clock.advance(Duration::from_secs(1800));
    let other = bench.node().await;
    let again = bench.now() + Duration::from_secs(5);
    let waits = recovered(&bench, Some(again)).await.remove(0);
    assert_eq!((waits.state_name(), waits.retry_count(), waits.attempt()), (StateName::Idle, 1, 2));
    let stored = bench.execution(id).await;
    assert_legal_transitions(&stored);
    let before = &stored.previous_retries()[0];
    assert_eq!((before.attempt, before.status, before.process_id), (1, ExecutionStatus::Failure, Some(1)));
    assert_eq!(before.error_category, Some(ErrorCategory::SystemError));
    assert!(bench.claim(other, "a", 1, 1).await.is_empty(), "not yet");
    assert!(!bench.save(claimed.fence, &running, None).await);
    bench.clock.advance(Duration::from_secs(5));
    let now = bench.now();
    assert!(write!(bench, tx => expire_queued(tx, now, 9)).unwrap().is_empty());
    let second = bench.claim(other, "a", 1, 1).await.remove(0);
    assert_eq!((second.fence.id, second.fence.token), (id, 2));
    assert!(!bench.save(claimed.fence, &running, None).await, "another node holds it");
    let late = claimed.fence;
    write!(bench, tx => release_slot(tx, late.id, late.node)).unwrap();
    bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    assert!(bench.claim(other, "a", 1, 1).await.is_empty(), "the removed node releases no slot of another holder");
    assert_legal_transitions(&bench.finish(&second, OutputSummary::default()).await);
    let recorded = events(&mut bench.store.reader().await.unwrap(), id, 0, 9).await.unwrap();
    let recorded: Vec<_> = recorded.iter().map(|event| event.text.as_str()).collect();
    assert_eq!(recorded, ["idle", "starting", "idle", "starting"], "runs record further states themselves");
}

async fn an_abandoned_execution_with_a_cancel_request_is_cancelled(bench: Bench) {
    // SUP-7: it is not retried
    let node = bench.node().await;
    let id = bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    bench.claim(node, "a", 1, 1).await;
    let now = bench.now();
    write!(bench, tx => cancel(tx, OwnerScope::AllUsers, id, now)).unwrap();
    write!(bench, tx => nodes::leave(tx, node)).unwrap();
    let ended = recovered(&bench, Some(now)).await.remove(0);
    assert_eq!((ended.state_name(), ended.retry_count()), (StateName::Cancelled, 0));
    assert_legal_transitions(&bench.execution(id).await);
}

async fn an_abandoned_execution_is_recovered_once(bench: Bench) {
    // SUP-11: two nodes have found the same execution, and the second one is late
    let node = bench.node().await;
    let id = bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    bench.claim(node, "a", 1, 1).await;
    write!(bench, tx => nodes::leave(tx, node)).unwrap();
    let found: ExecutionRow = write!(bench, tx => lock_abandoned(tx, 9)).unwrap().remove(0);
    let twice = found.clone();
    let now = bench.now();
    let other = bench.node().await;
    write!(bench, tx => recover(tx, found, "why", Some(now), now)).unwrap();
    let late = twice.clone();
    assert!(matches!(write!(bench, tx => recover(tx, late, "why", None, now)), Err(Error::AlreadyEnded)));
    let claimed = bench.claim(other, "a", 1, 1).await.remove(0);
    assert!(matches!(write!(bench, tx => recover(tx, twice, "why", None, now)), Err(Error::AlreadyEnded)));
    assert_eq!(bench.execution(id).await.state_name(), StateName::Starting);
    bench.finish(&claimed, OutputSummary::default()).await;
}

async fn abandoned_executions_are_found_until_they_are_recovered(bench: Bench) {
    // SUP-11: the node that removes a dead node may fail before it recovers the executions
    let node = bench.node().await;
    bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    bench.claim(node, "a", 1, 1).await;
    let is_found = async || has_abandoned(&mut bench.store.reader().await.unwrap()).await.unwrap();
    assert!(!is_found().await);
    write!(bench, tx => nodes::leave(tx, node)).unwrap();
    assert!(is_found().await);
    assert_eq!(recovered(&bench, None).await.len(), 1);
    assert!(!is_found().await);
}

async fn claims_of_a_node_are_found_until_they_run(bench: Bench) {
    // SUP-11: the connection may be lost during the commit of a claim
    let node = bench.node().await;
    bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    let found = async || claimed_by(&mut bench.store.reader().await.unwrap(), node).await.unwrap();
    let again = found().await.remove(0);
    assert_eq!((again.fence, again.seq, again.row.request), (claimed.fence, claimed.seq, claimed.row.request));
    let mut running = claimed.row.execution;
    running.start(None, bench.now()).unwrap();
    assert!(bench.save(claimed.fence, &running, None).await);
    assert!(found().await.is_empty());
}

async fn a_removed_node_cannot_claim(bench: Bench) {
    // SUP-11: a suspended node does not know yet that it was removed
    let node = bench.node().await;
    bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    write!(bench, tx => nodes::leave(tx, node)).unwrap();
    assert!(bench.claim(node, "a", 1, 1).await.is_empty());
    assert_eq!(bench.count("SELECT COUNT(*) FROM places").await, 0);
}

async fn concurrent_cancel_and_claim_are_consistent(bench: Bench) {
    // SUP-5: at the same time; one of them is first, and both get a correct result
    let node = bench.node().await;
    for _ in 0..20 {
        let id = bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
        let now = bench.now();
        let cancel = bench.transaction(async move |tx| cancel(tx, OwnerScope::AllUsers, id, now).await);
        let (cancelled, claimed) = futures::join!(cancel, bench.claim(node, "a", 1, 1));
        let cancelled = cancelled.unwrap();
        assert_eq!(cancelled.state_name(), if claimed.is_empty() { StateName::Cancelled } else { StateName::Starting });
        assert_eq!(bench.execution(id).await.state_name(), cancelled.state_name());
        for claimed in claimed {
            bench.finish(&claimed, OutputSummary::default()).await;
        }
    }
}

async fn concurrent_claims_respect_slots_and_are_disjoint(bench: Bench) {
    // SUP-4: on several nodes with PostgreSQL
    const AGENTS: [(&str, i64); 5] = [("a", 1), ("b", 2), ("c", 3), ("d", 1), ("e", 2)];
    let mut stores = vec![bench.store.clone()];
    if bench.store.is_shared() {
        for _ in 0..2 {
            stores.push(Store::open(&bench.location, Durability::Normal).await.unwrap());
        }
    }
    for n in 0..200 {
        bench.enqueue(bench.new_execution(bench.alice, AGENTS[n % 5].0)).await.unwrap();
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
                for (agent, slots) in AGENTS {
                    let limit = 1 + (n % 3) as i64;
                    let claimed =
                        store.transaction(async move |tx| claim(tx, node, "here", agent, slots, limit, now).await);
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
                        bench.finish(&claimed, OutputSummary::default()).await;
                        done.lock().unwrap().push((agent, claimed.fence));
                    }
                }
            }
        }
    });
    futures::future::join_all(workers).await;
    let done = done.into_inner().unwrap();
    assert_eq!(done.len(), 200);
    assert_eq!(done.iter().map(|(_, fence)| fence.id).collect::<BTreeSet<_>>().len(), 200, "each exactly once");
    assert!(done.iter().all(|(_, fence)| fence.token == 1));
    for (agent, slots) in AGENTS {
        let most = most.lock().unwrap()[agent];
        assert!((1..=slots).contains(&most), "{agent}: {most} at once");
    }
    assert_eq!(bench.count("SELECT COUNT(*) FROM executions WHERE state = 'completed'").await, 200);
    assert_eq!(bench.count("SELECT COUNT(*) FROM places").await, 0);
}

async fn a_follow_up_is_marked_once(bench: Bench) {
    let new = |follow_up| NewExecution { follow_up, ..bench.new_execution(bench.alice, "a") };
    let id = bench.enqueue(new(Some(FollowUp::Chat))).await.unwrap();
    let quiet = bench.enqueue(new(None)).await.unwrap();
    let found = async |follow_up| {
        let found = pending_follow_ups(&mut bench.store.reader().await.unwrap(), follow_up, 10).await.unwrap();
        found.iter().map(|row| (row.owner, row.execution.id)).collect::<Vec<_>>()
    };
    assert_eq!(found(FollowUp::Chat).await, [], "it has not ended");
    let now = bench.now();
    for id in [id, quiet] {
        write!(bench, tx => cancel(tx, OwnerScope::AllUsers, id, now)).unwrap();
    }
    assert_eq!(found(FollowUp::Schedule).await, []);
    assert_eq!(found(FollowUp::Chat).await, [(bench.alice, id)]);
    assert!(write!(bench, tx => mark_followed_up(tx, id)).unwrap());
    assert!(!write!(bench, tx => mark_followed_up(tx, id)).unwrap(), "it is marked already");
    assert_eq!(found(FollowUp::Chat).await, []);
}
