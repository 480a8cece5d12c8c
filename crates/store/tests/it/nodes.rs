//! Nodes are alive while they renew their lease.

use std::time::Duration;

use store::nodes::{join, lease_time, leave, remove_expired, remove_others, renew_lease};
use uuid::Uuid;

use crate::{Bench, on_both, write};

on_both!(a_node_is_alive_while_it_renews_its_lease, lease_time_is_the_time_of_the_database);

async fn a_node_is_alive_while_it_renews_its_lease(bench: Bench) {
    // SUP-11
    let first = Uuid::from_u128(1);
    let second = Uuid::from_u128(2);
    let third = Uuid::from_u128(3);
    let now = bench.now();
    let until = now + Duration::from_secs(30);
    for node in [first, second, third] {
        write!(bench, tx => join(tx, node, now, until)).unwrap();
    }
    assert_eq!(
        write!(bench, tx => remove_expired(tx, until)).unwrap(),
        0,
        "a lease is valid until its last microsecond"
    );
    let later = until + Duration::from_secs(30);
    assert!(write!(bench, tx => renew_lease(tx, first, later)).unwrap());
    write!(bench, tx => leave(tx, third)).unwrap();
    assert_eq!(write!(bench, tx => remove_expired(tx, until + Duration::from_micros(1))).unwrap(), 1);
    assert!(!write!(bench, tx => renew_lease(tx, second, later)).unwrap(), "it was removed");
    assert!(!write!(bench, tx => renew_lease(tx, third, later)).unwrap(), "it has left");
    assert!(write!(bench, tx => renew_lease(tx, first, later)).unwrap());

    write!(bench, tx => join(tx, second, now, until)).unwrap();
    assert_eq!(write!(bench, tx => remove_others(tx, second)).unwrap(), 1);
    assert!(!write!(bench, tx => renew_lease(tx, first, later)).unwrap());
    assert!(write!(bench, tx => renew_lease(tx, second, later)).unwrap());
}

async fn lease_time_is_the_time_of_the_database(bench: Bench) {
    let now = bench.now();
    let time = lease_time(&mut bench.store.reader().await.unwrap(), now).await.unwrap();
    if bench.store.is_shared() {
        let difference = time.duration_since(model::Clock::system().now()).abs();
        assert!(difference < jiff::SignedDuration::from_mins(10), "the time of the database, in microseconds: {time}");
    } else {
        assert_eq!(time, now);
    }
}
