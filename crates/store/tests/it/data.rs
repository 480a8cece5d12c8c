//! One user's data: taken in without doubles, erased without touching anybody else's.

use model::conversation::{Conversation, Message, Role};
use model::task::Filter;
use store::data::{Dialogue, Imported, erase, import_conversations, import_tasks};
use store::executions::{Left, append, cancelled, give_back};
use store::{conversations, data, sessions, tasks};

use crate::executions::said;
use crate::{Bench, on_both, write};

on_both!(taken_in_once, erased_for_good, executions_are_erased, executions_are_given_out);

fn dialogue(bench: &Bench, id: &str) -> Dialogue {
    let now = bench.now();
    let conversation = Conversation {
        id: id.parse().unwrap(),
        title: "Hello".into(),
        created_at: now,
        updated_at: now,
        message_count: 1,
    };
    let message = Message {
        id: bench.clock.id(),
        role: Role::User,
        content: "Hello".into(),
        timestamp: now,
        tool_calls: Vec::new(),
        pending: None,
    };
    Dialogue { conversation, messages: vec![message] }
}

async fn taken_in_once(bench: Bench) {
    // OPS-7
    let alice = bench.alice;
    let bob = bench.bob;
    let list = vec![bench.titled("a"), bench.titled("b")];
    let dialogues = vec![dialogue(&bench, "conv_1")];
    for expected in [Imported { added: 2, skipped: 0 }, Imported { added: 0, skipped: 2 }] {
        let list = list.clone();
        let now = bench.now();
        let imported =
            bench.change(alice, move |tx, step| Box::pin(async move { import_tasks(tx, step, &list, now).await }));
        assert_eq!(imported.await.unwrap(), expected);
    }
    for (owner, added) in [(alice, 1), (alice, 0), (bob, 0)] {
        let dialogues = dialogues.clone();
        let imported = write!(bench, tx => import_conversations(tx, owner, &dialogues)).unwrap();
        assert_eq!(imported, Imported { added, skipped: 1 - added });
    }
    let mut reader = bench.store.reader().await.unwrap();
    assert_eq!(tasks::list(&mut reader, alice, &Filter::default(), None, 50).await.unwrap().rows, list);
    let id = &dialogues[0].conversation.id;
    assert_eq!(conversations::get(&mut reader, alice, id).await.unwrap(), dialogues[0].conversation);
    let kept = conversations::messages(&mut reader, alice, id, None, 50).await.unwrap().rows;
    assert_eq!(kept, dialogues[0].messages);
}

async fn erased_for_good(bench: Bench) {
    // OPS-7
    let alice = bench.alice;
    let bob = bench.bob;
    bench.add(alice, bench.titled("a")).await;
    bench.add(bob, bench.titled("b")).await;
    let dialogues = vec![dialogue(&bench, "conv_1")];
    write!(bench, tx => import_conversations(tx, alice, &dialogues)).unwrap();
    write!(bench, tx => erase(tx, alice)).unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    for (owner, left) in [(alice, 0), (bob, 1)] {
        let rows = tasks::list(&mut reader, owner, &Filter::default(), None, 50).await.unwrap().rows;
        assert_eq!(rows.len(), left);
    }
    assert!(conversations::list(&mut reader, alice, None, None, 50).await.unwrap().rows.is_empty());
    assert!(write!(bench, tx => store::undo::undo(tx, alice)).is_err(), "undo does not bring it back");
}

async fn executions_are_erased(bench: Bench) {
    // OPS-7; also those at work, whose node hears of it
    let alice = bench.alice;
    let bob = bench.bob;
    let node = bench.node().await;
    let now = bench.now();
    let ended = bench.submit(bench.run(alice, "a")).await.unwrap();
    bench.finish(&bench.claim(node, "a", 1, 1).await[0], Left::default()).await;
    write!(bench, tx => append(tx, ended, &[said(9, "stdout", 0, "mine")])).unwrap();
    bench.submit(bench.run(alice, "a")).await.unwrap();
    let at_work = bench.claim(node, "a", 1, 1).await.remove(0);
    bench.submit(bench.run(alice, "a")).await.unwrap();
    let other = bench.submit(bench.run(bob, "b")).await.unwrap();
    let theirs = bench.claim(node, "b", 1, 1).await.remove(0);
    let session = model::session::Session {
        id: bench.clock.id(),
        agent_id: "s".into(),
        state: model::session::State::Ready,
        created_at: now,
        last_activity: now,
        expires_at: now,
        ended_at: None,
        error_message: None,
    };
    let open = session.clone();
    let session_id = session.id;
    write!(bench, tx => sessions::open(tx, alice, &open, node, 1)).unwrap();

    write!(bench, tx => erase(tx, alice)).unwrap();
    assert_eq!(bench.count("SELECT COUNT(*) FROM executions").await, 1);
    assert_eq!(bench.count("SELECT COUNT(*) FROM execution_events").await, 2, "only Bob's");
    assert_eq!(bench.count("SELECT COUNT(*) FROM sessions").await, 0);
    bench.execution(other).await;
    assert!(!bench.save(at_work.fence, &at_work.stored.execution, None).await);
    assert!(!write!(bench, tx => sessions::save(tx, node, &session)).unwrap());
    let mut reader = bench.store.reader().await.unwrap();
    let mut told = cancelled(&mut reader, node).await.unwrap();
    told.sort();
    let mut gone = [at_work.fence.id, session_id];
    gone.sort();
    assert_eq!(told, gone);
    let mut told = sessions::to_look_at(&mut reader, node).await.unwrap();
    told.sort();
    assert_eq!(told, gone);
    for holder in gone {
        write!(bench, tx => give_back(tx, holder, node)).unwrap();
    }
    assert!(cancelled(&mut reader, node).await.unwrap().is_empty());
    bench.finish(&theirs, Left::default()).await;
}

async fn executions_are_given_out(bench: Bench) {
    // OPS-7
    let alice = bench.alice;
    let node = bench.node().await;
    let waits = bench.submit(bench.run(alice, "b")).await.unwrap();
    let ran = bench.submit(bench.run(alice, "a")).await.unwrap();
    bench.submit(bench.run(bench.bob, "b")).await.unwrap();
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    write!(bench, tx => append(tx, ran, &[said(3, "stdout", 0, "42"), said(4, "stderr", 0, "hm")])).unwrap();
    let ended = bench.finish(&claimed, Left::default()).await;
    let mut reader = bench.store.reader().await.unwrap();
    let page = data::executions(&mut reader, alice, None, 1).await.unwrap();
    let given = serde_json::to_value(&page.rows).unwrap();
    assert_eq!(page.rows[0].execution, ended);
    assert_eq!(given[0]["output"], serde_json::json!({"stdout": "42", "stderr": "hm"}));
    assert_eq!(given[0]["id"], serde_json::json!(ran));
    let page = data::executions(&mut reader, alice, page.next.as_ref(), 1).await.unwrap();
    assert_eq!((page.rows[0].execution.id, page.next), (waits, None));
    assert!(page.rows[0].output.is_empty());
}
