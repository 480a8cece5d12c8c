//! The stop of everything: no node accepts or claims work until it is resumed.

use std::time::Duration;

use model::execution::{ExecutionStatus, StateName};
use model::session::{Session, SessionState};
use model::stop_state::StopState;
use store::executions::{
    CancelRequest, OwnerScope, agents_with_queued, cancel_requests, claim_in_session, enqueue_or_claim, expire_queued,
    has_expired, lock_abandoned, recover,
};
use store::stop_state::{
    AffectedWork, StopChange, affected_work, current, has_running, last, request_ends, resume, stop,
};
use store::{Durability, Error, Store, nodes, sessions};
use uuid::Uuid;

use crate::{Bench, on_both, on_postgres, write};

on_both!(
    nothing_is_accepted_or_claimed_while_stopped,
    a_stop_survives_a_restart,
    a_second_stop_keeps_the_time,
    queue_timeouts_are_suspended,
    running_work_is_requested_to_end,
    sessions_start_nothing_while_stopped,
    due_schedules_are_held,
    no_claim_follows_a_stop
);

async fn stop_all(bench: &Bench, reason: Option<&'static str>) -> StopChange {
    let alice = bench.alice;
    let now = bench.now();
    write!(bench, tx => stop(tx, alice, reason, now)).unwrap()
}

async fn resume_all(bench: &Bench) -> Option<StopState> {
    let now = bench.now();
    write!(bench, tx => resume(tx, now)).unwrap()
}

async fn nothing_is_accepted_or_claimed_while_stopped(bench: Bench) {
    // SEC-6
    let node = bench.node().await;
    let queued = bench.enqueue(bench.new_execution(bench.bob, "a")).await.unwrap();
    stop_all(&bench, Some("a bad model")).await;
    let new = bench.new_execution(bench.bob, "a");
    let refused = write!(bench, tx => enqueue_or_claim(tx, &new, Some(node)));
    assert!(matches!(&refused, Err(Error::Stopped { reason: Some(reason) }) if reason == "a bad model"));
    assert_eq!(refused.unwrap_err().to_string(), "everything is stopped: a bad model");
    assert!(bench.claim(node, "a", 9, 9).await.is_empty());
    let mut reader = bench.store.reader().await.unwrap();
    assert!(agents_with_queued(&mut reader, bench.now()).await.unwrap().is_empty());
    drop(reader);
    assert_eq!(bench.record(queued).await.state, StateName::Idle, "it stays queued");

    assert!(resume_all(&bench).await.is_some());
    assert_eq!(resume_all(&bench).await, None, "nothing is stopped");
    assert_eq!(bench.claim(node, "a", 9, 9).await[0].fence.id, queued);
    bench.enqueue(bench.new_execution(bench.bob, "a")).await.unwrap();
}

async fn a_stop_survives_a_restart(bench: Bench) {
    // SEC-6
    let stopped = stop_all(&bench, Some("maintenance")).await.after;
    let reopened = Store::open(&bench.location, Durability::Normal).await.unwrap();
    assert_eq!(current(&mut reopened.reader().await.unwrap()).await.unwrap(), Some(stopped.clone()));
    bench.clock.advance(Duration::from_secs(60));
    resume_all(&bench).await;
    let mut reader = reopened.reader().await.unwrap();
    assert_eq!(current(&mut reader).await.unwrap(), None);
    let ended = StopState { resumed_at: Some(bench.now()), ..stopped };
    assert_eq!(last(&mut reader).await.unwrap(), Some(ended), "the last stop stays known");
}

async fn a_second_stop_keeps_the_time(bench: Bench) {
    // SEC-6
    let first = stop_all(&bench, Some("first")).await;
    assert!(first.is_change() && first.before.is_none());
    bench.clock.advance(Duration::from_secs(60));
    let again = stop_all(&bench, None).await;
    assert!(!again.is_change(), "{again:?}");
    let renamed = stop_all(&bench, Some("second")).await;
    assert!(renamed.is_change());
    assert_eq!((renamed.after.stopped_at, renamed.after.reason.as_deref()), (first.after.stopped_at, Some("second")));
    resume_all(&bench).await;
    let later = stop_all(&bench, None).await.after;
    assert_eq!((later.stopped_at, later.reason, later.resumed_at), (bench.now(), None, None), "a new stop");
}

async fn queue_timeouts_are_suspended(bench: Bench) {
    // SEC-6, SUP-4
    let queued = bench.enqueue(bench.new_execution(bench.bob, "a")).await.unwrap();
    let timeout = Duration::from_secs(1800);
    bench.clock.advance(Duration::from_secs(1000));
    stop_all(&bench, None).await;
    bench.clock.advance(Duration::from_secs(5000));
    let now = bench.now();
    assert!(!has_expired(&mut bench.store.reader().await.unwrap(), now).await.unwrap());
    assert!(write!(bench, tx => expire_queued(tx, now, 9)).unwrap().is_empty());
    resume_all(&bench).await;
    bench.clock.advance(timeout - Duration::from_secs(1001));
    assert!(!has_expired(&mut bench.store.reader().await.unwrap(), bench.now()).await.unwrap());
    bench.clock.advance(Duration::from_secs(1));
    let now = bench.now();
    assert_eq!(write!(bench, tx => expire_queued(tx, now, 9)).unwrap()[0].id, queued);
}

async fn running_work_is_requested_to_end(bench: Bench) {
    // SEC-6
    let node = bench.node().await;
    let other = bench.node().await;
    for _ in 0..4 {
        bench.enqueue(bench.new_execution(bench.bob, "a")).await.unwrap();
    }
    let first = bench.claim(node, "a", 9, 1).await.remove(0).fence.id;
    let second = bench.claim(other, "a", 9, 1).await.remove(0).fence.id;
    let session = open_session(&bench, node).await.unwrap();
    stop_all(&bench, Some("why")).await;
    let mut reader = bench.store.reader().await.unwrap();
    let expected = AffectedWork { executions: 2, sessions: 1, queued: 2, schedules: 0 };
    assert_eq!(affected_work(&mut reader).await.unwrap(), expected);
    assert!(has_running(&mut reader).await.unwrap());
    let now = bench.now();
    let mut ends = write!(bench, tx => request_ends(tx, "everything is stopped: why", now)).unwrap();
    ends.executions.sort();
    let mut expected = [first, second];
    expected.sort();
    assert_eq!((ends.executions.as_slice(), ends.sessions.as_slice()), (&expected[..], &[session.id][..]));
    assert!(!has_running(&mut reader).await.unwrap());
    for (node, id) in [(node, first), (other, second)] {
        let reason = Some("everything is stopped: why".to_owned());
        assert_eq!(cancel_requests(&mut reader, node).await.unwrap(), [CancelRequest { id, reason }]);
    }
    let closing = sessions::get(&mut reader, OwnerScope::AllUsers, session.id).await.unwrap();
    assert_eq!(closing.state, SessionState::Closing);

    // The reason stays if the node dies before it ends the execution.
    write!(bench, tx => nodes::leave(tx, other)).unwrap();
    let row = write!(bench, tx => lock_abandoned(tx, 9)).unwrap().remove(0);
    let ended = write!(bench, tx => recover(tx, row, "died", None, now)).unwrap();
    assert_eq!(ended.ended().unwrap().status, ExecutionStatus::Cancelled);
    assert_eq!(ended.error_message(), Some("everything is stopped: why"));
}

async fn open_session(bench: &Bench, node: Uuid) -> store::Result<Session> {
    let now = bench.now();
    let bob = bench.bob;
    let session = Session {
        id: bench.clock.id(),
        agent_id: "s".to_owned(),
        state: SessionState::Ready,
        created_at: now,
        last_activity: now,
        expires_at: now + Duration::from_secs(600),
        ended_at: None,
        error_message: None,
    };
    let wanted = session.clone();
    write!(bench, tx => sessions::open(tx, bob, &wanted, node, 9)).map(|()| session)
}

async fn sessions_start_nothing_while_stopped(bench: Bench) {
    // SEC-6
    let node = bench.node().await;
    let session = open_session(&bench, node).await.unwrap().id;
    let message = |bench: &Bench| {
        let mut new = bench.new_execution(bench.bob, "s");
        new.execution.session_id = Some(session);
        new
    };
    bench.enqueue(message(&bench)).await.unwrap();
    stop_all(&bench, None).await;
    assert!(matches!(bench.enqueue(message(&bench)).await, Err(Error::Stopped { reason: None })));
    assert!(matches!(open_session(&bench, node).await, Err(Error::Stopped { reason: None })));
    let now = bench.now();
    let claim = async || {
        let claimed = bench.transaction(async move |tx| {
            sessions::get_for_claim(tx, session).await?;
            claim_in_session(tx, node, session, now).await
        });
        claimed.await
    };
    assert!(claim().await.unwrap().is_none());
    resume_all(&bench).await;
    assert!(claim().await.unwrap().is_some());
}

async fn due_schedules_are_held(bench: Bench) {
    // SEC-6
    let schedule = bench.scheduled(bench.bob, "held", 30).await.id;
    bench.clock.advance(Duration::from_secs(3600));
    let due = async || {
        let mut reader = bench.store.reader().await.unwrap();
        let due = store::schedules::due_schedules(&mut reader, bench.now(), 9).await.unwrap();
        let next = store::schedules::next_due_at(&mut reader).await.unwrap();
        (due.into_iter().map(|(id, _)| id).collect::<Vec<_>>(), next.is_some())
    };
    assert_eq!(due().await, (vec![schedule], true));
    stop_all(&bench, None).await;
    assert_eq!(due().await, (vec![], false));
    resume_all(&bench).await;
    assert_eq!(due().await, (vec![schedule], true));
}

async fn no_claim_follows_a_stop(bench: Bench) {
    // SEC-6; the stop is concurrent with submissions
    let node = bench.node().await;
    let alice = bench.alice;
    let now = bench.now();
    let submissions = (0..40).map(|n| {
        let mut new = bench.new_execution(bench.bob, &format!("a{}", n % 4));
        (new.slots, new.queue_depth) = (100, 100);
        let store = bench.store.clone();
        tokio::spawn(
            async move { store.transaction(async move |tx| enqueue_or_claim(tx, &new, Some(node)).await).await },
        )
    });
    let submissions: Vec<_> = submissions.collect();
    let stopped = bench.transaction(async move |tx| {
        stop(tx, alice, None, now).await?;
        affected_work(tx).await
    });
    let at_stop = stopped.await.unwrap();
    let results = futures::future::join_all(submissions).await;
    let accepted = results.into_iter().filter(|result| result.as_ref().unwrap().is_ok()).count();
    let left = affected_work(&mut bench.store.reader().await.unwrap()).await.unwrap();
    assert_eq!(left, at_stop, "nothing was accepted or claimed after the stop");
    assert_eq!(left.executions + left.queued, accepted as i64);
}

mod hints {
    use store::hints::Hint;

    use super::*;

    on_postgres!(other_nodes_receive_a_hint);

    async fn other_nodes_receive_a_hint(bench: Bench) {
        // SEC-6, OPS-5
        let other = Store::open(&bench.location, Durability::Normal).await.unwrap();
        let mut listener = other.hint_listener().unwrap();
        assert_eq!(listener.next().await, [Hint::Everything]);
        stop_all(&bench, None).await;
        assert_eq!(listener.next().await, [Hint::Stop]);
        resume_all(&bench).await;
        assert_eq!(listener.next().await, [Hint::Stop]);
    }
}
