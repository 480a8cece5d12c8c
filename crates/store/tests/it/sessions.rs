//! Sessions: each uses a slot of its agent and is closed by its node.

use std::time::Duration;

use model::UserId;
use model::execution::{ExecutionStatus, StateName};
use model::session::{Session, SessionState};
use store::executions::{OwnerScope, claim_in_session, end_without_session, release_slot};
use store::sessions::{fail_abandoned, get, list, needing_attention, open, request_close, save};
use store::{Error, nodes};
use uuid::Uuid;

use crate::{Bench, on_both, write};

on_both!(
    a_session_uses_a_slot,
    sessions_are_visible_only_to_their_user,
    a_session_is_closed_by_its_node,
    sessions_of_removed_nodes_fail,
    messages_are_claimed_by_the_node_of_their_session,
    messages_of_ended_sessions_end
);

fn session(bench: &Bench, agent: &str) -> Session {
    bench.clock.advance(Duration::from_secs(1));
    let now = bench.now();
    Session {
        id: bench.clock.id(),
        agent_id: agent.to_owned(),
        state: SessionState::Starting,
        created_at: now,
        last_activity: now,
        expires_at: now + Duration::from_secs(600),
        ended_at: None,
        error_message: None,
    }
}

async fn open_session(bench: &Bench, owner: UserId, node: Uuid, slots: i64) -> store::Result<Session> {
    let session = session(bench, "a");
    let wanted = session.clone();
    write!(bench, tx => open(tx, owner, &wanted, node, slots)).map(|()| session)
}

async fn a_session_uses_a_slot(bench: Bench) {
    // SUP-4: a session counts as a running execution
    let alice = bench.alice;
    let node = bench.node().await;
    let first = open_session(&bench, alice, node, 2).await.unwrap();
    open_session(&bench, alice, node, 2).await.unwrap();
    assert!(matches!(open_session(&bench, alice, node, 2).await, Err(Error::NoFreeSlot)));
    bench.enqueue(bench.new_execution(alice, "a")).await.unwrap();
    assert!(bench.claim(node, "a", 2, 10).await.is_empty(), "no slot is free for an execution");
    write!(bench, tx => release_slot(tx, first.id, node)).unwrap();
    assert!(
        matches!(open_session(&bench, alice, node, 1).await, Err(Error::NoFreeSlot)),
        "fewer slots than are in use"
    );
    open_session(&bench, alice, node, 2).await.unwrap();
    let stranger = Uuid::from_u128(9);
    assert!(matches!(open_session(&bench, alice, stranger, 9).await, Err(Error::NoFreeSlot)), "the node was removed");
}

async fn sessions_are_visible_only_to_their_user(bench: Bench) {
    let alice = bench.alice;
    let bob = bench.bob;
    let node = bench.node().await;
    let mut own = Vec::new();
    for _ in 0..5 {
        own.insert(0, open_session(&bench, alice, node, 10).await.unwrap());
    }
    let other = open_session(&bench, bob, node, 10).await.unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    assert_eq!(get(&mut reader, OwnerScope::User(alice), own[0].id).await.unwrap(), own[0]);
    assert!(matches!(get(&mut reader, OwnerScope::User(bob), own[0].id).await, Err(Error::NotFound)));
    assert_eq!(get(&mut reader, OwnerScope::AllUsers, other.id).await.unwrap(), other);

    let mut found = Vec::new();
    let mut cursor = None;
    loop {
        let page = list(&mut reader, OwnerScope::User(alice), false, cursor.as_ref(), 2).await.unwrap();
        found.extend(page.rows);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found, own, "newest first, page by page");
    assert_eq!(list(&mut reader, OwnerScope::AllUsers, false, None, 50).await.unwrap().rows.len(), 6);
    let id = own[0].id;
    assert!(matches!(write!(bench, tx => request_close(tx, OwnerScope::User(bob), id)), Err(Error::NotFound)));
}

async fn a_session_is_closed_by_its_node(bench: Bench) {
    let alice = bench.alice;
    let node = bench.node().await;
    let other = bench.node().await;
    let mut session = open_session(&bench, alice, node, 1).await.unwrap();
    let attention = async |node| needing_attention(&mut bench.store.reader().await.unwrap(), node).await.unwrap();
    let saved = async |node, session: &Session| {
        let session = session.clone();
        write!(bench, tx => save(tx, node, &session)).unwrap()
    };
    session.state = SessionState::Busy;
    assert!(saved(node, &session).await);
    assert!(!saved(other, &session).await, "the session belongs to another node");
    assert!(attention(node).await.is_empty());

    let id = session.id;
    let closing = write!(bench, tx => request_close(tx, OwnerScope::User(alice), id)).unwrap();
    assert_eq!(closing.state, SessionState::Closing);
    session.state = SessionState::Ready;
    assert!(saved(node, &session).await);
    let mut reader = bench.store.reader().await.unwrap();
    let now = get(&mut reader, OwnerScope::AllUsers, id).await.unwrap();
    assert_eq!(now.state, SessionState::Closing, "a save does not overwrite the close request");
    assert_eq!((attention(node).await, attention(other).await), (vec![id], vec![]));

    (session.state, session.ended_at, session.error_message) =
        (SessionState::Closed, Some(bench.now()), Some("bye".into()));
    assert!(saved(node, &session).await);
    assert!(!saved(node, &session).await, "it has ended");
    assert_eq!(get(&mut reader, OwnerScope::AllUsers, id).await.unwrap(), session);
    assert!(matches!(write!(bench, tx => request_close(tx, OwnerScope::AllUsers, id)), Err(Error::AlreadyEnded)));
    assert!(attention(node).await.is_empty());
    assert!(list(&mut reader, OwnerScope::User(alice), false, None, 50).await.unwrap().rows.is_empty());
    assert_eq!(list(&mut reader, OwnerScope::User(alice), true, None, 50).await.unwrap().rows, [session]);
}

async fn sessions_of_removed_nodes_fail(bench: Bench) {
    // SUP-11
    let alice = bench.alice;
    let node = bench.node().await;
    let other = bench.node().await;
    let lost = open_session(&bench, alice, node, 2).await.unwrap();
    let open_session = open_session(&bench, alice, other, 2).await.unwrap();
    write!(bench, tx => nodes::leave(tx, node)).unwrap();
    let now = bench.now();
    assert_eq!(write!(bench, tx => fail_abandoned(tx, now)).unwrap(), 1);
    assert_eq!(write!(bench, tx => fail_abandoned(tx, now)).unwrap(), 0);
    let mut reader = bench.store.reader().await.unwrap();
    let lost = get(&mut reader, OwnerScope::AllUsers, lost.id).await.unwrap();
    assert_eq!((lost.state, lost.ended_at), (SessionState::Failed, Some(now)));
    assert!(lost.error_message.is_some());
    assert_eq!(get(&mut reader, OwnerScope::AllUsers, open_session.id).await.unwrap(), open_session);
    let written = lost.clone();
    assert!(!write!(bench, tx => save(tx, node, &written)).unwrap(), "a removed node cannot save");
}

async fn messages_are_claimed_by_the_node_of_their_session(bench: Bench) {
    // SUP-4
    let alice = bench.alice;
    let node = bench.node().await;
    let other = bench.node().await;
    let session = open_session(&bench, alice, node, 1).await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..3 {
        let mut new = bench.new_execution(alice, "a");
        (new.execution.session_id, new.queue_depth) = (Some(session.id), 3);
        ids.push(bench.enqueue(new).await.unwrap());
    }
    let mut more = bench.new_execution(alice, "a");
    (more.execution.session_id, more.queue_depth) = (Some(session.id), 3);
    assert!(matches!(bench.enqueue(more).await, Err(Error::QueueFull { waiting: 3, depth: 3 })));
    let mut own = bench.new_execution(alice, "a");
    own.queue_depth = 1;
    let own = bench.enqueue(own).await.unwrap();
    for (position, id) in (1..).zip(&ids) {
        assert_eq!(bench.record(*id).await.queue_position, Some(position), "they wait for their session");
    }
    assert_eq!(bench.record(own).await.queue_position, Some(1), "other executions do not wait for them");

    let waiting = needing_attention(&mut bench.store.reader().await.unwrap(), node).await.unwrap();
    assert_eq!(waiting, [session.id]);
    let now = bench.now();
    let next = async |node| write!(bench, tx => claim_in_session(tx, node, session.id, now)).unwrap();
    assert!(next(other).await.is_none(), "the session belongs to another node");
    for id in ids {
        let claimed = next(node).await.unwrap();
        assert_eq!((claimed.fence.id, claimed.row.execution.state_name()), (id, StateName::Starting));
    }
    assert!(next(node).await.is_none());
    let waiting = needing_attention(&mut bench.store.reader().await.unwrap(), node).await.unwrap();
    assert!(waiting.is_empty());
}

async fn messages_of_ended_sessions_end(bench: Bench) {
    // SUP-11: queued messages of an ended session end
    let alice = bench.alice;
    let node = bench.node().await;
    let mut session = open_session(&bench, alice, node, 2).await.unwrap();
    let other = open_session(&bench, alice, node, 2).await.unwrap();
    let mut ids = Vec::new();
    for id in [session.id, other.id] {
        let mut new = bench.new_execution(alice, "a");
        new.execution.session_id = Some(id);
        ids.push(bench.enqueue(new).await.unwrap());
    }
    let now = bench.now();
    assert!(write!(bench, tx => end_without_session(tx, now, 10)).unwrap().is_empty());
    (session.state, session.ended_at) = (SessionState::Expired, Some(now));
    assert!(write!(bench, tx => save(tx, node, &session)).unwrap());
    let ended = write!(bench, tx => end_without_session(tx, now, 10)).unwrap();
    assert_eq!(ended.iter().map(|execution| execution.id).collect::<Vec<_>>(), ids[..1]);
    let ended = bench.execution(ids[0]).await;
    let end = ended.ended().unwrap();
    assert_eq!((end.status, end.at), (ExecutionStatus::Failure, now));
    crate::queue::assert_legal_transitions(&ended);
    assert_eq!(bench.execution(ids[1]).await.state_name(), StateName::Idle);
}
