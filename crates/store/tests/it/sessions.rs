//! Sessions: each in a place of its agent, closed by whoever has the process.

use std::time::Duration;

use model::UserId;
use model::execution::{StateName, Status};
use model::session::{Session, State};
use store::executions::{Whose, claim_in_session, give_back, without_session};
use store::sessions::{abandon, ask_to_close, get, list, open, save, to_look_at};
use store::{Error, nodes};
use uuid::Uuid;

use crate::{Bench, on_both, write};

on_both!(
    opened_in_a_place,
    of_one_user,
    closed_by_its_node,
    abandoned_with_its_node,
    its_messages,
    messages_left_behind
);

fn session(bench: &Bench, agent: &str) -> Session {
    bench.clock.advance(Duration::from_secs(1));
    let now = bench.now();
    Session {
        id: bench.clock.id(),
        agent_id: agent.to_owned(),
        state: State::Starting,
        created_at: now,
        last_activity: now,
        expires_at: now + Duration::from_secs(600),
        ended_at: None,
        error_message: None,
    }
}

async fn opened(bench: &Bench, owner: UserId, node: Uuid, places: i64) -> store::Result<Session> {
    let session = session(bench, "a");
    let wanted = session.clone();
    write!(bench, tx => open(tx, owner, &wanted, node, places)).map(|()| session)
}

async fn opened_in_a_place(bench: Bench) {
    // SUP-4: a session is one of those that run at once
    let alice = bench.alice;
    let node = bench.node().await;
    let first = opened(&bench, alice, node, 2).await.unwrap();
    opened(&bench, alice, node, 2).await.unwrap();
    assert!(matches!(opened(&bench, alice, node, 2).await, Err(Error::NoPlace)));
    bench.submit(bench.run(alice, "a")).await.unwrap();
    assert!(bench.claim(node, "a", 2, 10).await.is_empty(), "an execution has no place either");
    write!(bench, tx => give_back(tx, first.id, node)).unwrap();
    assert!(matches!(opened(&bench, alice, node, 1).await, Err(Error::NoPlace)), "fewer places than are taken");
    opened(&bench, alice, node, 2).await.unwrap();
    let stranger = Uuid::from_u128(9);
    assert!(matches!(opened(&bench, alice, stranger, 9).await, Err(Error::NoPlace)), "taken for dead");
}

async fn of_one_user(bench: Bench) {
    let alice = bench.alice;
    let bob = bench.bob;
    let node = bench.node().await;
    let mut own = Vec::new();
    for _ in 0..5 {
        own.insert(0, opened(&bench, alice, node, 10).await.unwrap());
    }
    let other = opened(&bench, bob, node, 10).await.unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    assert_eq!(get(&mut reader, Whose::Users(alice), own[0].id).await.unwrap(), own[0]);
    assert!(matches!(get(&mut reader, Whose::Users(bob), own[0].id).await, Err(Error::NotFound)));
    assert_eq!(get(&mut reader, Whose::Everyones, other.id).await.unwrap(), other);

    let mut found = Vec::new();
    let mut cursor = None;
    loop {
        let page = list(&mut reader, Whose::Users(alice), false, cursor.as_ref(), 2).await.unwrap();
        found.extend(page.rows);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found, own, "newest first, page by page");
    assert_eq!(list(&mut reader, Whose::Everyones, false, None, 50).await.unwrap().rows.len(), 6);
    let id = own[0].id;
    assert!(matches!(write!(bench, tx => ask_to_close(tx, Whose::Users(bob), id)), Err(Error::NotFound)));
}

async fn closed_by_its_node(bench: Bench) {
    let alice = bench.alice;
    let node = bench.node().await;
    let other = bench.node().await;
    let mut session = opened(&bench, alice, node, 1).await.unwrap();
    let look = async |node| to_look_at(&mut bench.store.reader().await.unwrap(), node).await.unwrap();
    let saved = async |node, session: &Session| {
        let session = session.clone();
        write!(bench, tx => save(tx, node, &session)).unwrap()
    };
    session.state = State::Busy;
    assert!(saved(node, &session).await);
    assert!(!saved(other, &session).await, "it is not that node's");
    assert!(look(node).await.is_empty());

    let id = session.id;
    let asked = write!(bench, tx => ask_to_close(tx, Whose::Users(alice), id)).unwrap();
    assert_eq!(asked.state, State::Closing);
    session.state = State::Ready;
    assert!(saved(node, &session).await);
    let mut reader = bench.store.reader().await.unwrap();
    let now = get(&mut reader, Whose::Everyones, id).await.unwrap();
    assert_eq!(now.state, State::Closing, "what was asked is not forgotten over what the node writes");
    assert_eq!((look(node).await, look(other).await), (vec![id], vec![]));

    (session.state, session.ended_at, session.error_message) = (State::Closed, Some(bench.now()), Some("bye".into()));
    assert!(saved(node, &session).await);
    assert!(!saved(node, &session).await, "it has ended");
    assert_eq!(get(&mut reader, Whose::Everyones, id).await.unwrap(), session);
    assert!(matches!(write!(bench, tx => ask_to_close(tx, Whose::Everyones, id)), Err(Error::Ended)));
    assert!(look(node).await.is_empty());
    assert!(list(&mut reader, Whose::Users(alice), false, None, 50).await.unwrap().rows.is_empty());
    assert_eq!(list(&mut reader, Whose::Users(alice), true, None, 50).await.unwrap().rows, [session]);
}

async fn abandoned_with_its_node(bench: Bench) {
    // SUP-11
    let alice = bench.alice;
    let node = bench.node().await;
    let other = bench.node().await;
    let lost = opened(&bench, alice, node, 2).await.unwrap();
    let kept = opened(&bench, alice, other, 2).await.unwrap();
    write!(bench, tx => nodes::leave(tx, node)).unwrap();
    let now = bench.now();
    assert_eq!(write!(bench, tx => abandon(tx, now)).unwrap(), 1);
    assert_eq!(write!(bench, tx => abandon(tx, now)).unwrap(), 0);
    let mut reader = bench.store.reader().await.unwrap();
    let lost = get(&mut reader, Whose::Everyones, lost.id).await.unwrap();
    assert_eq!((lost.state, lost.ended_at), (State::Failed, Some(now)));
    assert!(lost.error_message.is_some());
    assert_eq!(get(&mut reader, Whose::Everyones, kept.id).await.unwrap(), kept);
    let written = lost.clone();
    assert!(!write!(bench, tx => save(tx, node, &written)).unwrap(), "its node has nothing to say any more");
}

async fn its_messages(bench: Bench) {
    // SUP-4
    let alice = bench.alice;
    let node = bench.node().await;
    let other = bench.node().await;
    let session = opened(&bench, alice, node, 1).await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..3 {
        let mut new = bench.run(alice, "a");
        (new.execution.session_id, new.depth) = (Some(session.id), 3);
        ids.push(bench.submit(new).await.unwrap());
    }
    let mut more = bench.run(alice, "a");
    (more.execution.session_id, more.depth) = (Some(session.id), 3);
    assert!(matches!(bench.submit(more).await, Err(Error::QueueFull { waiting: 3, depth: 3 })));
    let mut own = bench.run(alice, "a");
    own.depth = 1;
    let own = bench.submit(own).await.unwrap();
    for (position, id) in (1..).zip(&ids) {
        assert_eq!(bench.record(*id).await.queue_position, Some(position), "they wait for their session");
    }
    assert_eq!(bench.record(own).await.queue_position, Some(1), "and nobody else for them");

    let look = to_look_at(&mut bench.store.reader().await.unwrap(), node).await.unwrap();
    assert_eq!(look, [session.id]);
    let now = bench.now();
    let next = async |node| write!(bench, tx => claim_in_session(tx, node, session.id, now)).unwrap();
    assert!(next(other).await.is_none(), "another node's session");
    for id in ids {
        let claimed = next(node).await.unwrap();
        assert_eq!((claimed.fence.id, claimed.stored.execution.state_name()), (id, StateName::Starting));
    }
    assert!(next(node).await.is_none());
    let look = to_look_at(&mut bench.store.reader().await.unwrap(), node).await.unwrap();
    assert!(look.is_empty());
}

async fn messages_left_behind(bench: Bench) {
    // SUP-11: what waits for a session that is over does not wait
    let alice = bench.alice;
    let node = bench.node().await;
    let mut session = opened(&bench, alice, node, 2).await.unwrap();
    let other = opened(&bench, alice, node, 2).await.unwrap();
    let mut ids = Vec::new();
    for id in [session.id, other.id] {
        let mut new = bench.run(alice, "a");
        new.execution.session_id = Some(id);
        ids.push(bench.submit(new).await.unwrap());
    }
    let now = bench.now();
    assert!(write!(bench, tx => without_session(tx, now, 10)).unwrap().is_empty());
    (session.state, session.ended_at) = (State::Expired, Some(now));
    assert!(write!(bench, tx => save(tx, node, &session)).unwrap());
    let ended = write!(bench, tx => without_session(tx, now, 10)).unwrap();
    assert_eq!(ended.iter().map(|execution| execution.id).collect::<Vec<_>>(), ids[..1]);
    let ended = bench.execution(ids[0]).await;
    let end = ended.ended().unwrap();
    assert_eq!((end.status, end.at), (Status::Failure, now));
    crate::queue::legal(&ended);
    assert_eq!(bench.execution(ids[1]).await.state_name(), StateName::Idle);
}
