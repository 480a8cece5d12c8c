//! The lock of a conversation: one holder at a time, until it is released or expires.

use std::time::Duration;

use model::conversation::ConversationId;
use store::turns::{acquire, release};
use uuid::Uuid;

use crate::{Bench, on_both, write};

on_both!(a_conversation_has_one_lock_holder);

async fn a_conversation_has_one_lock_holder(bench: Bench) {
    // CHAT-7
    let one: ConversationId = "conv_1".parse().unwrap();
    let other: ConversationId = "conv_2".parse().unwrap();
    let first = Uuid::from_u128(1);
    let second = Uuid::from_u128(2);
    let end = bench.now() + Duration::from_secs(40);
    let acquired = async |id: &ConversationId, holder| {
        let id = id.clone();
        let now = bench.now();
        write!(bench, tx => acquire(tx, &id, holder, now, end)).unwrap()
    };
    let released = async |id: &ConversationId, holder| {
        let id = id.clone();
        write!(bench, tx => release(tx, &id, holder)).unwrap();
    };
    assert!(acquired(&one, first).await);
    assert!(!acquired(&one, second).await, "another holder has it");
    assert!(acquired(&other, second).await, "another conversation");
    released(&one, second).await;
    assert!(!acquired(&one, second).await, "only the holder can release it");
    released(&one, first).await;
    assert!(acquired(&one, second).await);
    bench.clock.advance(Duration::from_secs(41));
    assert!(acquired(&one, first).await, "the lock has expired");
}
