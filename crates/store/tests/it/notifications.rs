//! Notifications: one's own, newest first, and from any number on.

use std::time::Duration;

use model::UserId;
use model::notification::{Kind, Notification};
use store::notifications::{add, after, last, list, mark_read, news};
use store::{Error, data};

use crate::{Bench, on_both, write};

on_both!(
    newest_first_and_ones_own,
    read_once,
    numbers_follow_the_order_of_commits,
    a_number_is_never_used_again,
    the_same_is_told_once,
);

pub(crate) fn note(bench: &Bench, title: &str) -> Notification {
    let mut note = Notification::new(&bench.clock, Kind::Reminder, title, "now");
    note.task_id = Some(bench.clock.id());
    note
}

pub(crate) async fn tell(bench: &Bench, owner: UserId, note: Notification) -> bool {
    write!(bench, tx => add(tx, owner, &note)).unwrap()
}

async fn newest_first_and_ones_own(bench: Bench) {
    // TASK-4
    let notes: Vec<_> = (0..5).map(|n| note(&bench, &n.to_string())).collect();
    for note in &notes {
        // All in the same microsecond.
        assert!(tell(&bench, bench.alice, note.clone()).await);
    }
    let zero = note(&bench, "with \0 in it");
    tell(&bench, bench.bob, zero).await;
    let mut reader = bench.store.reader().await.unwrap();
    let first = list(&mut reader, bench.alice, false, None, 3).await.unwrap();
    let rest = list(&mut reader, bench.alice, false, first.next.as_ref(), 3).await.unwrap();
    let all: Vec<_> = first.rows.iter().chain(&rest.rows).map(|row| row.notification.clone()).collect();
    assert_eq!(all, notes.iter().rev().cloned().collect::<Vec<_>>());
    assert_eq!(rest.next, None);
    let theirs = list(&mut reader, bench.bob, false, None, 50).await.unwrap().rows;
    assert_eq!((theirs.len(), theirs[0].notification.title.as_str()), (1, "with \u{fffd} in it"));

    let seen = first.rows[2].seq;
    let since = after(&mut reader, bench.alice, seen, 50).await.unwrap();
    assert_eq!(since.iter().map(|row| row.notification.clone()).collect::<Vec<_>>(), notes[3..]);
    assert_eq!(after(&mut reader, bench.alice, 0, 2).await.unwrap().len(), 2);
    assert_eq!(last(&mut reader, bench.alice).await.unwrap(), since[1].seq);
    let mut heard = news(&mut reader, bench.now()).await.unwrap();
    heard.sort();
    assert_eq!(heard, [(bench.bob, theirs[0].seq), (bench.alice, since[1].seq)]);
    assert_eq!(news(&mut reader, bench.now() + Duration::from_micros(1)).await.unwrap(), []);

    let alice = bench.alice;
    write!(bench, tx => data::erase(tx, alice)).unwrap();
    assert_eq!(last(&mut reader, alice).await.unwrap(), 0);
    assert_ne!(last(&mut reader, bench.bob).await.unwrap(), 0);
}

async fn read_once(bench: Bench) {
    let alice = bench.alice;
    let bob = bench.bob;
    let first = bench.now();
    let read = note(&bench, "read");
    let unread = note(&bench, "unread");
    for note in [&read, &unread] {
        tell(&bench, alice, note.clone()).await;
    }
    let id = read.id;
    let refused = write!(bench, tx => mark_read(tx, bob, id, first));
    assert!(matches!(refused, Err(Error::NotFound)));
    for later in [0, 60] {
        let now = first + Duration::from_secs(later);
        let marked = write!(bench, tx => mark_read(tx, alice, id, now)).unwrap();
        assert_eq!(marked, Notification { read_at: Some(first), ..read.clone() }, "the first time counts");
    }
    let mut reader = bench.store.reader().await.unwrap();
    let left = list(&mut reader, alice, true, None, 50).await.unwrap().rows;
    assert_eq!(left.iter().map(|row| row.notification.clone()).collect::<Vec<_>>(), [unread]);
}

async fn numbers_follow_the_order_of_commits(bench: Bench) {
    // A follower that has seen a number has seen all before it, however many write at once.
    let writers = async {
        let all = (0..60).map(|n| {
            let note = note(&bench, &n.to_string());
            let alice = bench.alice;
            bench.store.transaction(async move |tx| add(tx, alice, &note).await)
        });
        for added in futures::future::join_all(all).await {
            assert!(added.unwrap());
        }
    };
    let follower = async {
        let mut seen = Vec::new();
        let mut from = 0;
        while seen.len() < 60 {
            let mut reader = bench.store.reader().await.unwrap();
            for row in after(&mut reader, bench.alice, from, 7).await.unwrap() {
                from = row.seq;
                seen.push(row.notification.id);
            }
            tokio::task::yield_now().await;
        }
        seen
    };
    let patience = tokio::time::timeout(Duration::from_secs(30), follower);
    let ((), seen) = tokio::join!(writers, patience);
    let mut seen = seen.unwrap();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 60);
}

async fn a_number_is_never_used_again(bench: Bench) {
    let alice = bench.alice;
    for title in ["a", "b"] {
        tell(&bench, alice, note(&bench, title)).await;
    }
    let mut reader = bench.store.reader().await.unwrap();
    let seen = last(&mut reader, alice).await.unwrap();
    write!(bench, tx => data::erase(tx, alice)).unwrap();
    bench.clock.advance(Duration::from_secs(1));
    let new = note(&bench, "c");
    tell(&bench, alice, new.clone()).await;
    assert_eq!(after(&mut reader, alice, seen, 9).await.unwrap()[0].notification, new);
}

async fn the_same_is_told_once(bench: Bench) {
    let same = note(&bench, "a");
    assert!(tell(&bench, bench.alice, same.clone()).await);
    assert!(!tell(&bench, bench.alice, same.clone()).await);
    assert!(tell(&bench, bench.bob, same).await, "another's ids say nothing");
}
