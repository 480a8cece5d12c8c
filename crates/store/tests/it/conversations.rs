//! Conversations are appended in order, paged, searched, and visible only to their user.

use std::time::Duration;

use model::UserId;
use model::conversation::{ConversationId, Message, MessageRole, ToolCall};
use serde_json::json;
use store::{Error, conversations};

use crate::{Bench, on_both, write};

on_both!(
    messages_are_stored_in_order,
    lists_are_searched_and_paged,
    conversations_of_other_users_are_not_found,
    deleting_a_conversation_deletes_its_messages,
    append_to_existing_requires_a_conversation,
    an_unchanged_conversation_is_not_read_again,
);

fn message(bench: &Bench, role: MessageRole, content: &str) -> Message {
    Message {
        id: bench.clock.id(),
        role,
        content: content.into(),
        timestamp: bench.now(),
        tool_calls: Vec::new(),
        pending: None,
    }
}

/// Appends a question and its answer.
async fn add_exchange(bench: &Bench, owner: UserId, id: &str, content: &str) -> store::Result<Vec<Message>> {
    bench.clock.advance(Duration::from_secs(1));
    let question = message(bench, MessageRole::User, content);
    let answer = Message {
        tool_calls: vec![ToolCall {
            tool_name: "add_task".into(),
            parameters: json!({"title": "milk\u{0}"}),
            result: json!({"success": true}),
            error: None,
            duration_ms: 3,
        }],
        pending: Some(json!({"phrase": "yes delete"})),
        ..message(bench, MessageRole::Assistant, "Got it!")
    };
    let exchange = vec![question, answer];
    let id: ConversationId = id.parse().unwrap();
    let now = bench.now();
    let added = exchange.clone();
    write!(bench, tx => conversations::append(tx, owner, &id, &added, now)).map(|_| exchange)
}

async fn messages_are_stored_in_order(bench: Bench) {
    // AGENT-5, CHAT-7
    let mut messages = add_exchange(&bench, bench.alice, "conv_1", "Add milk\nplease").await.unwrap();
    messages.extend(add_exchange(&bench, bench.alice, "conv_1", "and bread").await.unwrap());
    let id: ConversationId = "conv_1".parse().unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    let conversation = conversations::get(&mut reader, bench.alice, &id).await.unwrap();
    assert_eq!((conversation.title.as_str(), conversation.message_count), ("Add milk", 4));
    let first = conversations::messages(&mut reader, bench.alice, &id, None, 3).await.unwrap();
    let rest = conversations::messages(&mut reader, bench.alice, &id, first.next.as_ref(), 3).await.unwrap();
    assert_eq!([first.rows, rest.rows].concat(), messages);
    assert_eq!(rest.next, None);
    let opened = conversations::read_history(&mut reader, bench.alice, &id, 3).await.unwrap();
    assert_eq!(opened, messages[1..], "the last messages, oldest first");
    let unknown = conversations::read_history(&mut reader, bench.alice, &"conv_2".parse().unwrap(), 3).await.unwrap();
    assert_eq!(unknown, []);
}

async fn lists_are_searched_and_paged(bench: Bench) {
    // CHAT-7
    for (id, words) in [("conv_1", "Größe of shoes"), ("conv_2", "bread"), ("conv_3", "milk")] {
        add_exchange(&bench, bench.alice, id, words).await.unwrap();
    }
    add_exchange(&bench, bench.alice, "conv_1", "now something else").await.unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    let first = conversations::list(&mut reader, bench.alice, None, None, 2).await.unwrap();
    let rest = conversations::list(&mut reader, bench.alice, None, first.next.as_ref(), 2).await.unwrap();
    let ids: Vec<_> = first.rows.iter().chain(&rest.rows).map(|c| c.id.to_string()).collect();
    assert_eq!(ids, ["conv_1", "conv_3", "conv_2"], "the most recently used one comes first");
    for (text, found) in [("ELSE", 1), ("größe", 1), ("got it", 3), ("cheese", 0), ("%", 0)] {
        let page = conversations::list(&mut reader, bench.alice, Some(text), None, 50).await.unwrap();
        assert_eq!(page.rows.len(), found, "{text}");
    }
}

async fn conversations_of_other_users_are_not_found(bench: Bench) {
    // AGENT-3, CHAT-7
    add_exchange(&bench, bench.alice, "conv_1", "hello").await.unwrap();
    assert!(matches!(add_exchange(&bench, bench.bob, "conv_1", "mine now").await, Err(Error::NotFound)));
    let id: ConversationId = "conv_1".parse().unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    assert!(matches!(conversations::get(&mut reader, bench.bob, &id).await, Err(Error::NotFound)));
    let rows = conversations::messages(&mut reader, bench.bob, &id, None, 50).await.unwrap().rows;
    assert_eq!(rows, [], "messages of other users are not visible");
    assert!(matches!(conversations::read_history(&mut reader, bench.bob, &id, 50).await, Err(Error::NotFound)));
    assert!(conversations::list(&mut reader, bench.bob, None, None, 50).await.unwrap().rows.is_empty());
    let bob = bench.bob;
    let other = id.clone();
    assert!(matches!(write!(bench, tx => conversations::delete(tx, bob, &other)), Err(Error::NotFound)));
    assert_eq!(conversations::get(&mut reader, bench.alice, &id).await.unwrap().message_count, 2);
}

async fn deleting_a_conversation_deletes_its_messages(bench: Bench) {
    // CHAT-7
    add_exchange(&bench, bench.alice, "conv_1", "hello").await.unwrap();
    let alice = bench.alice;
    let id: ConversationId = "conv_1".parse().unwrap();
    let gone = id.clone();
    write!(bench, tx => conversations::delete(tx, alice, &gone)).unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    assert!(matches!(conversations::get(&mut reader, alice, &id).await, Err(Error::NotFound)));
    assert!(conversations::messages(&mut reader, alice, &id, None, 50).await.unwrap().rows.is_empty());
    add_exchange(&bench, bench.bob, "conv_1", "the id is free again").await.unwrap();
}

async fn append_to_existing_requires_a_conversation(bench: Bench) {
    // CHAT-7
    let messages = add_exchange(&bench, bench.alice, "conv_1", "hello").await.unwrap();
    let notice = message(&bench, MessageRole::Assistant, "Tidy is done.");
    bench.clock.advance(Duration::from_secs(1));
    let add = async |owner: UserId, id: &str| {
        let id: ConversationId = id.parse().unwrap();
        let notice = notice.clone();
        let now = bench.now();
        write!(bench, tx => conversations::append_to_existing(tx, owner, &id, &notice, now)).unwrap()
    };
    assert!(!add(bench.bob, "conv_1").await, "the conversation of another user");
    assert!(!add(bench.alice, "conv_2").await, "no conversation is created");
    assert!(add(bench.alice, "conv_1").await);
    let id: ConversationId = "conv_1".parse().unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    let conversation = conversations::get(&mut reader, bench.alice, &id).await.unwrap();
    assert_eq!((conversation.message_count, conversation.updated_at), (3, bench.now()));
    let stored = conversations::messages(&mut reader, bench.alice, &id, None, 50).await.unwrap().rows;
    assert_eq!(stored, [messages, vec![notice.clone()]].concat());
    let all = conversations::list(&mut reader, bench.alice, None, None, 50).await.unwrap();
    assert_eq!(all.rows.len(), 1);
}

async fn an_unchanged_conversation_is_not_read_again(bench: Bench) {
    // CHAT-7
    let id: ConversationId = "conv_1".parse().unwrap();
    let (alice, bob) = (bench.alice, bench.bob);
    let open = async |owner, last| {
        let id = id.clone();
        write!(bench, tx => conversations::open_if_changed(tx, owner, &id, 50, last))
    };
    assert_eq!(open(alice, None).await.unwrap(), None);
    assert_eq!(open(alice, Some(bench.clock.id())).await.unwrap(), Some(Vec::new()));

    let first = add_exchange(&bench, alice, "conv_1", "Add milk").await.unwrap();
    assert_eq!(open(alice, None).await.unwrap().map(|messages| messages.len()), Some(2));
    assert_eq!(open(alice, Some(first[1].id)).await.unwrap(), None);

    add_exchange(&bench, alice, "conv_1", "and bread").await.unwrap();
    assert_eq!(open(alice, Some(first[1].id)).await.unwrap().map(|messages| messages.len()), Some(4));
    assert!(matches!(open(bob, None).await, Err(Error::NotFound)));
}
