//! Whose turn it is in a conversation: one holder at a time, until it gives the turn back or is gone.

use std::time::Duration;

use model::conversation::Id;
use store::turns::{give_back, take};
use uuid::Uuid;

use crate::{Bench, on_both, write};

on_both!(one_at_a_time);

async fn one_at_a_time(bench: Bench) {
    // CHAT-7
    let one: Id = "conv_1".parse().unwrap();
    let other: Id = "conv_2".parse().unwrap();
    let here = Uuid::from_u128(1);
    let there = Uuid::from_u128(2);
    let end = bench.now() + Duration::from_secs(40);
    let taken = async |id: &Id, holder| {
        let id = id.clone();
        let now = bench.now();
        write!(bench, tx => take(tx, &id, holder, now, end)).unwrap()
    };
    let given_back = async |id: &Id, holder| {
        let id = id.clone();
        write!(bench, tx => give_back(tx, &id, holder)).unwrap();
    };
    assert!(taken(&one, here).await);
    assert!(!taken(&one, there).await, "somebody is at it");
    assert!(taken(&other, there).await, "another conversation");
    given_back(&one, there).await;
    assert!(!taken(&one, there).await, "it was not theirs to give back");
    given_back(&one, here).await;
    assert!(taken(&one, there).await);
    bench.clock.advance(Duration::from_secs(41));
    assert!(taken(&one, here).await, "whoever held it is gone");
}
