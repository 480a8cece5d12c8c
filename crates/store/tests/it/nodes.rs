//! Nodes: alive while they renew their lease, and nobody once they were taken for dead.

use std::time::Duration;

use store::nodes::{bury, bury_others, join, judge, leave, renew};
use uuid::Uuid;

use crate::{Bench, on_both, write};

on_both!(alive_while_renewed, the_judge_has_a_clock);

async fn alive_while_renewed(bench: Bench) {
    // SUP-11
    let here = Uuid::from_u128(1);
    let there = Uuid::from_u128(2);
    let elsewhere = Uuid::from_u128(3);
    let now = bench.now();
    let until = now + Duration::from_secs(30);
    for node in [here, there, elsewhere] {
        write!(bench, tx => join(tx, node, now, until)).unwrap();
    }
    assert_eq!(write!(bench, tx => bury(tx, until)).unwrap(), 0, "a lease holds to its last moment");
    let later = until + Duration::from_secs(30);
    assert!(write!(bench, tx => renew(tx, here, later)).unwrap());
    write!(bench, tx => leave(tx, elsewhere)).unwrap();
    assert_eq!(write!(bench, tx => bury(tx, until + Duration::from_micros(1))).unwrap(), 1);
    assert!(!write!(bench, tx => renew(tx, there, later)).unwrap(), "it was taken for dead");
    assert!(!write!(bench, tx => renew(tx, elsewhere, later)).unwrap(), "it has left");
    assert!(write!(bench, tx => renew(tx, here, later)).unwrap());

    write!(bench, tx => join(tx, there, now, until)).unwrap();
    assert_eq!(write!(bench, tx => bury_others(tx, there)).unwrap(), 1);
    assert!(!write!(bench, tx => renew(tx, here, later)).unwrap());
    assert!(write!(bench, tx => renew(tx, there, later)).unwrap());
}

async fn the_judge_has_a_clock(bench: Bench) {
    let now = bench.now();
    let judged = judge(&mut bench.store.reader().await.unwrap(), now).await.unwrap();
    if bench.store.is_shared() {
        let apart = judged.duration_since(model::Clock::system().now()).abs();
        assert!(apart < jiff::SignedDuration::from_mins(10), "the database's clock, in microseconds: {judged}");
    } else {
        assert_eq!(judged, now);
    }
}
