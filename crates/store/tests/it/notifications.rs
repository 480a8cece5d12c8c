//! Notifications are visible to their owner, newest first, or after a number.

use std::time::Duration;

use model::UserId;
use model::notification::{Notification, NotificationKind};
use store::notifications::{add, last_seq, latest_since, list, list_after, mark_read};
use store::{Error, data};

use crate::{Bench, on_both, write};

on_both!(
    notifications_are_listed_newest_first_for_their_owner,
    the_first_read_time_is_kept,
    numbers_follow_the_order_of_commits,
    numbers_are_never_reused,
    a_duplicate_id_is_not_added,
);

pub(crate) fn note(bench: &Bench, title: &str) -> Notification {
    let mut note = Notification::new(&bench.clock, NotificationKind::Reminder, title, "now");
    note.task_id = Some(bench.clock.id());
    note
}

pub(crate) async fn add_note(bench: &Bench, owner: UserId, note: Notification) -> bool {
    write!(bench, tx => add(tx, owner, &note)).unwrap()
}

async fn notifications_are_listed_newest_first_for_their_owner(bench: Bench) {
    // TASK-4
    let notes: Vec<_> = (0..5).map(|n| note(&bench, &n.to_string())).collect();
    for note in &notes {
        // All in the same microsecond.
        assert!(add_note(&bench, bench.alice, note.clone()).await);
    }
    let zero = note(&bench, "with \0 in it");
    add_note(&bench, bench.bob, zero).await;
    let mut reader = bench.store.reader().await.unwrap();
    let first = list(&mut reader, bench.alice, false, None, 3).await.unwrap();
    let rest = list(&mut reader, bench.alice, false, first.next.as_ref(), 3).await.unwrap();
    let all: Vec<_> = first.rows.iter().chain(&rest.rows).map(|row| row.notification.clone()).collect();
    assert_eq!(all, notes.iter().rev().cloned().collect::<Vec<_>>());
    assert_eq!(rest.next, None);
    let theirs = list(&mut reader, bench.bob, false, None, 50).await.unwrap().rows;
    assert_eq!((theirs.len(), theirs[0].notification.title.as_str()), (1, "with \u{fffd} in it"));

    let seen = first.rows[2].seq;
    let since = list_after(&mut reader, bench.alice, seen, 50).await.unwrap();
    assert_eq!(since.iter().map(|row| row.notification.clone()).collect::<Vec<_>>(), notes[3..]);
    assert_eq!(list_after(&mut reader, bench.alice, 0, 2).await.unwrap().len(), 2);
    assert_eq!(last_seq(&mut reader, bench.alice).await.unwrap(), since[1].seq);
    let mut latest = latest_since(&mut reader, bench.now()).await.unwrap();
    latest.sort();
    assert_eq!(latest, [(bench.bob, theirs[0].seq), (bench.alice, since[1].seq)]);
    assert_eq!(latest_since(&mut reader, bench.now() + Duration::from_micros(1)).await.unwrap(), []);

    let alice = bench.alice;
    write!(bench, tx => data::erase(tx, alice)).unwrap();
    assert_eq!(last_seq(&mut reader, alice).await.unwrap(), 0);
    assert_ne!(last_seq(&mut reader, bench.bob).await.unwrap(), 0);
}

async fn the_first_read_time_is_kept(bench: Bench) {
    let alice = bench.alice;
    let bob = bench.bob;
    let first = bench.now();
    let read = note(&bench, "read");
    let unread = note(&bench, "unread");
    for note in [&read, &unread] {
        add_note(&bench, alice, note.clone()).await;
    }
    let id = read.id;
    let refused = write!(bench, tx => mark_read(tx, bob, id, first));
    assert!(matches!(refused, Err(Error::NotFound)));
    for later in [0, 60] {
        let now = first + Duration::from_secs(later);
        let marked = write!(bench, tx => mark_read(tx, alice, id, now)).unwrap();
        assert_eq!(marked, Notification { read_at: Some(first), ..read.clone() }, "the first time is kept");
    }
    let mut reader = bench.store.reader().await.unwrap();
    let left = list(&mut reader, alice, true, None, 50).await.unwrap().rows;
    assert_eq!(left.iter().map(|row| row.notification.clone()).collect::<Vec<_>>(), [unread]);
}

async fn numbers_follow_the_order_of_commits(bench: Bench) {
    // TASK-4
    // A follower that has seen a number has seen all lower ones, also with concurrent writers.
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
            for row in list_after(&mut reader, bench.alice, from, 7).await.unwrap() {
                from = row.seq;
                seen.push(row.notification.id);
            }
            tokio::task::yield_now().await;
        }
        seen
    };
    let limited = tokio::time::timeout(Duration::from_secs(30), follower);
    let ((), seen) = tokio::join!(writers, limited);
    let mut seen = seen.unwrap();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 60);
}

async fn numbers_are_never_reused(bench: Bench) {
    let alice = bench.alice;
    for title in ["a", "b"] {
        add_note(&bench, alice, note(&bench, title)).await;
    }
    let mut reader = bench.store.reader().await.unwrap();
    let seen = last_seq(&mut reader, alice).await.unwrap();
    write!(bench, tx => data::erase(tx, alice)).unwrap();
    bench.clock.advance(Duration::from_secs(1));
    let new = note(&bench, "c");
    add_note(&bench, alice, new.clone()).await;
    assert_eq!(list_after(&mut reader, alice, seen, 9).await.unwrap()[0].notification, new);
}

async fn a_duplicate_id_is_not_added(bench: Bench) {
    let same = note(&bench, "a");
    assert!(add_note(&bench, bench.alice, same.clone()).await);
    assert!(!add_note(&bench, bench.alice, same.clone()).await);
    assert!(add_note(&bench, bench.bob, same).await, "ids are unique for each user");
}
