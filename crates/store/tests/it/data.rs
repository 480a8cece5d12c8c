//! The data of one user: imported without duplicates, erased without effect on other users.

use model::conversation::{Conversation, Message, MessageRole};
use model::task::TaskFilter;
use store::data::{FullConversation, ImportCounts, erase, import_conversations, import_tasks};
use store::executions::{OutputSummary, append_events, cancel_requests, release_slot};
use store::{conversations, data, sessions, tasks};

use crate::executions::output_event;
use crate::{Bench, on_both, write};

on_both!(
    repeated_imports_skip_existing_items,
    erased_data_cannot_be_restored_by_undo,
    erasing_a_user_removes_executions_and_sessions,
    executions_are_exported_with_their_output
);

fn full_conversation(bench: &Bench, id: &str) -> FullConversation {
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
        role: MessageRole::User,
        content: "Hello".into(),
        timestamp: now,
        tool_calls: Vec::new(),
        pending: None,
    };
    FullConversation { conversation, messages: vec![message] }
}

async fn repeated_imports_skip_existing_items(bench: Bench) {
    // OPS-7
    let alice = bench.alice;
    let bob = bench.bob;
    let list = vec![bench.titled("a"), bench.titled("b")];
    let conversations_to_import = vec![full_conversation(&bench, "conv_1")];
    for expected in [ImportCounts { added: 2, skipped: 0 }, ImportCounts { added: 0, skipped: 2 }] {
        let list = list.clone();
        let now = bench.now();
        let imported =
            bench.change(alice, move |tx, step| Box::pin(async move { import_tasks(tx, step, &list, now).await }));
        assert_eq!(imported.await.unwrap(), expected);
    }
    for (owner, added) in [(alice, 1), (alice, 0), (bob, 0)] {
        let conversations_to_import = conversations_to_import.clone();
        let imported = write!(bench, owner, tx => import_conversations(tx, owner, &conversations_to_import)).unwrap();
        assert_eq!(imported, ImportCounts { added, skipped: 1 - added });
    }
    let mut reader = bench.store.reader().await.unwrap();
    assert_eq!(tasks::list(&mut reader, alice, &TaskFilter::default(), None, 50).await.unwrap().rows, list);
    let id = &conversations_to_import[0].conversation.id;
    assert_eq!(conversations::get(&mut reader, alice, id).await.unwrap(), conversations_to_import[0].conversation);
    let stored = conversations::messages(&mut reader, alice, id, None, 50).await.unwrap().rows;
    assert_eq!(stored, conversations_to_import[0].messages);
}

async fn erased_data_cannot_be_restored_by_undo(bench: Bench) {
    // OPS-7
    let alice = bench.alice;
    let bob = bench.bob;
    bench.add(alice, bench.titled("a")).await;
    bench.add(bob, bench.titled("b")).await;
    let conversations_to_import = vec![full_conversation(&bench, "conv_1")];
    write!(bench, alice, tx => import_conversations(tx, alice, &conversations_to_import)).unwrap();
    write!(bench, alice, tx => erase(tx, alice)).unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    for (owner, left) in [(alice, 0), (bob, 1)] {
        let rows = tasks::list(&mut reader, owner, &TaskFilter::default(), None, 50).await.unwrap().rows;
        assert_eq!(rows.len(), left);
    }
    assert!(conversations::list(&mut reader, alice, None, None, 50).await.unwrap().rows.is_empty());
    assert!(write!(bench, alice, tx => store::undo::undo(tx, alice)).is_err(), "undo does not restore the data");
}

async fn erasing_a_user_removes_executions_and_sessions(bench: Bench) {
    // OPS-7; also running executions, and their node is informed
    let alice = bench.alice;
    let bob = bench.bob;
    let node = bench.node().await;
    let now = bench.now();
    let ended = bench.enqueue(bench.new_execution(alice, "a")).await.unwrap();
    bench.finish(&bench.claim(node, "a", 1, 1).await[0], OutputSummary::default()).await;
    write!(bench, tx => append_events(tx, ended, &[output_event(9, "stdout", 0, "mine")])).unwrap();
    bench.enqueue(bench.new_execution(alice, "a")).await.unwrap();
    let held = bench.claim(node, "a", 1, 1).await.remove(0);
    bench.enqueue(bench.new_execution(alice, "a")).await.unwrap();
    let other = bench.enqueue(bench.new_execution(bob, "b")).await.unwrap();
    let theirs = bench.claim(node, "b", 1, 1).await.remove(0);
    let session = model::session::Session {
        id: bench.clock.id(),
        agent_id: "s".into(),
        state: model::session::SessionState::Ready,
        created_at: now,
        last_activity: now,
        expires_at: now,
        ended_at: None,
        error_message: None,
    };
    let open = session.clone();
    let session_id = session.id;
    write!(bench, alice, tx => sessions::open(tx, alice, &open, node, 1)).unwrap();

    write!(bench, alice, tx => erase(tx, alice)).unwrap();
    assert_eq!(bench.count("SELECT COUNT(*) FROM executions").await, 1);
    assert_eq!(bench.count("SELECT COUNT(*) FROM execution_events").await, 2, "only Bob's");
    assert_eq!(bench.count("SELECT COUNT(*) FROM sessions").await, 0);
    bench.execution(other).await;
    assert!(!bench.save(held.fence, &held.row.execution, None).await);
    assert!(!write!(bench, tx => sessions::save(tx, node, &session)).unwrap());
    let mut reader = bench.store.reader().await.unwrap();
    let requests = cancel_requests(&mut reader, node).await.unwrap();
    let mut missing: Vec<_> = requests.into_iter().map(|request| request.id).collect();
    missing.sort();
    let mut erased = [held.fence.id, session_id];
    erased.sort();
    assert_eq!(missing, erased);
    let mut missing = sessions::needing_attention(&mut reader, node).await.unwrap();
    missing.sort();
    assert_eq!(missing, erased);
    for holder in erased {
        write!(bench, tx => release_slot(tx, holder, node)).unwrap();
    }
    assert!(cancel_requests(&mut reader, node).await.unwrap().is_empty());
    bench.finish(&theirs, OutputSummary::default()).await;
}

async fn executions_are_exported_with_their_output(bench: Bench) {
    // OPS-7
    let alice = bench.alice;
    let node = bench.node().await;
    let waits = bench.enqueue(bench.new_execution(alice, "b")).await.unwrap();
    let ran = bench.enqueue(bench.new_execution(alice, "a")).await.unwrap();
    bench.enqueue(bench.new_execution(bench.bob, "b")).await.unwrap();
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    let events = [output_event(3, "stdout", 0, "42"), output_event(4, "stderr", 0, "hm")];
    write!(bench, tx => append_events(tx, ran, &events)).unwrap();
    let ended = bench.finish(&claimed, OutputSummary::default()).await;
    let mut reader = bench.store.reader().await.unwrap();
    let page = data::export_executions(&mut reader, alice, None, 1).await.unwrap();
    let exported = serde_json::to_value(&page.rows).unwrap();
    assert_eq!(page.rows[0].execution, ended);
    assert_eq!(exported[0]["output"], serde_json::json!({"stdout": "42", "stderr": "hm"}));
    assert_eq!(exported[0]["id"], serde_json::json!(ran));
    let page = data::export_executions(&mut reader, alice, page.next.as_ref(), 1).await.unwrap();
    assert_eq!((page.rows[0].execution.id, page.next), (waits, None));
    assert!(page.rows[0].output.is_empty());
}
