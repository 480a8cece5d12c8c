//! One user's data: taken in without doubles, erased without touching anybody else's.

use model::conversation::{Conversation, Message, Role};
use model::task::Filter;
use store::data::{Dialogue, Imported, erase, import_conversations, import_tasks};
use store::{conversations, tasks};

use crate::{Bench, on_both, write};

on_both!(taken_in_once, erased_for_good);

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
    let (alice, bob) = (bench.alice, bench.bob);
    let list = vec![bench.titled("a"), bench.titled("b")];
    let dialogues = vec![dialogue(&bench, "conv_1")];
    for expected in [Imported { added: 2, skipped: 0 }, Imported { added: 0, skipped: 2 }] {
        let list = list.clone();
        let imported = bench.change(alice, |tx, step| Box::pin(async move { import_tasks(tx, step, &list).await }));
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
    let (alice, bob) = (bench.alice, bench.bob);
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
