//! Conversations: appended in order, paged, searched, and nobody else's.

use std::time::Duration;

use model::UserId;
use model::conversation::{Id, Message, Role, ToolCall};
use serde_json::json;
use store::{Error, conversations};

use crate::{Bench, on_both, write};

on_both!(
    messages_are_kept_in_order,
    lists_are_searched_and_paged,
    a_taken_id_is_not_found,
    deleted_with_its_messages,
    a_message_by_itself_needs_its_conversation,
);

fn message(bench: &Bench, role: Role, content: &str) -> Message {
    Message {
        id: bench.clock.id(),
        role,
        content: content.into(),
        timestamp: bench.now(),
        tool_calls: Vec::new(),
        pending: None,
    }
}

async fn say(bench: &Bench, owner: UserId, id: &str, content: &str) -> store::Result<Vec<Message>> {
    bench.clock.advance(Duration::from_secs(1));
    let question = message(bench, Role::User, content);
    let answer = Message {
        tool_calls: vec![ToolCall {
            tool_name: "add_task".into(),
            parameters: json!({"title": "milk\u{0}"}),
            result: json!({"success": true}),
            error: None,
            duration_ms: 3,
        }],
        pending: Some(json!({"phrase": "yes delete"})),
        ..message(bench, Role::Assistant, "Got it!")
    };
    let exchange = vec![question, answer];
    let id: Id = id.parse().unwrap();
    let now = bench.now();
    let added = exchange.clone();
    write!(bench, tx => conversations::append(tx, owner, &id, &added, now)).map(|_| exchange)
}

async fn messages_are_kept_in_order(bench: Bench) {
    // CHAT-7
    let mut said = say(&bench, bench.alice, "conv_1", "Add milk\nplease").await.unwrap();
    said.extend(say(&bench, bench.alice, "conv_1", "and bread").await.unwrap());
    let id: Id = "conv_1".parse().unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    let conversation = conversations::get(&mut reader, bench.alice, &id).await.unwrap();
    assert_eq!((conversation.title.as_str(), conversation.message_count), ("Add milk", 4));
    let first = conversations::messages(&mut reader, bench.alice, &id, None, 3).await.unwrap();
    let rest = conversations::messages(&mut reader, bench.alice, &id, first.next.as_ref(), 3).await.unwrap();
    assert_eq!([first.rows, rest.rows].concat(), said);
    assert_eq!(rest.next, None);
    let opened = conversations::open(&mut reader, bench.alice, &id, 3).await.unwrap();
    assert_eq!(opened, said[1..], "the last ones, oldest first");
    let unknown = conversations::open(&mut reader, bench.alice, &"conv_2".parse().unwrap(), 3).await.unwrap();
    assert_eq!(unknown, []);
}

async fn lists_are_searched_and_paged(bench: Bench) {
    for (id, words) in [("conv_1", "Größe of shoes"), ("conv_2", "bread"), ("conv_3", "milk")] {
        say(&bench, bench.alice, id, words).await.unwrap();
    }
    say(&bench, bench.alice, "conv_1", "now something else").await.unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    let first = conversations::list(&mut reader, bench.alice, None, None, 2).await.unwrap();
    let rest = conversations::list(&mut reader, bench.alice, None, first.next.as_ref(), 2).await.unwrap();
    let ids: Vec<_> = first.rows.iter().chain(&rest.rows).map(|c| c.id.to_string()).collect();
    assert_eq!(ids, ["conv_1", "conv_3", "conv_2"], "the one used last comes first");
    for (text, found) in [("ELSE", 1), ("größe", 1), ("got it", 3), ("cheese", 0), ("%", 0)] {
        let page = conversations::list(&mut reader, bench.alice, Some(text), None, 50).await.unwrap();
        assert_eq!(page.rows.len(), found, "{text}");
    }
}

async fn a_taken_id_is_not_found(bench: Bench) {
    // CHAT-7
    say(&bench, bench.alice, "conv_1", "hello").await.unwrap();
    assert!(matches!(say(&bench, bench.bob, "conv_1", "mine now").await, Err(Error::NotFound)));
    let id: Id = "conv_1".parse().unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    assert!(matches!(conversations::get(&mut reader, bench.bob, &id).await, Err(Error::NotFound)));
    let rows = conversations::messages(&mut reader, bench.bob, &id, None, 50).await.unwrap().rows;
    assert_eq!(rows, [], "not a word of another's conversation");
    assert!(matches!(conversations::open(&mut reader, bench.bob, &id, 50).await, Err(Error::NotFound)));
    assert!(conversations::list(&mut reader, bench.bob, None, None, 50).await.unwrap().rows.is_empty());
    let bob = bench.bob;
    let other = id.clone();
    assert!(matches!(write!(bench, tx => conversations::delete(tx, bob, &other)), Err(Error::NotFound)));
    assert_eq!(conversations::get(&mut reader, bench.alice, &id).await.unwrap().message_count, 2);
}

async fn deleted_with_its_messages(bench: Bench) {
    say(&bench, bench.alice, "conv_1", "hello").await.unwrap();
    let alice = bench.alice;
    let id: Id = "conv_1".parse().unwrap();
    let gone = id.clone();
    write!(bench, tx => conversations::delete(tx, alice, &gone)).unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    assert!(matches!(conversations::get(&mut reader, alice, &id).await, Err(Error::NotFound)));
    assert!(conversations::messages(&mut reader, alice, &id, None, 50).await.unwrap().rows.is_empty());
    say(&bench, bench.bob, "conv_1", "the id is free again").await.unwrap();
}

async fn a_message_by_itself_needs_its_conversation(bench: Bench) {
    // CHAT-7
    let said = say(&bench, bench.alice, "conv_1", "hello").await.unwrap();
    let news = message(&bench, Role::Assistant, "Tidy is done.");
    bench.clock.advance(Duration::from_secs(1));
    let add = async |owner: UserId, id: &str| {
        let id: Id = id.parse().unwrap();
        let news = news.clone();
        let now = bench.now();
        write!(bench, tx => conversations::add(tx, owner, &id, &news, now)).unwrap()
    };
    assert!(!add(bench.bob, "conv_1").await, "another's");
    assert!(!add(bench.alice, "conv_2").await, "none is begun");
    assert!(add(bench.alice, "conv_1").await);
    let id: Id = "conv_1".parse().unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    let conversation = conversations::get(&mut reader, bench.alice, &id).await.unwrap();
    assert_eq!((conversation.message_count, conversation.updated_at), (3, bench.now()));
    let kept = conversations::messages(&mut reader, bench.alice, &id, None, 50).await.unwrap().rows;
    assert_eq!(kept, [said, vec![news.clone()]].concat());
    let all = conversations::list(&mut reader, bench.alice, None, None, 50).await.unwrap();
    assert_eq!(all.rows.len(), 1);
}
