//! Followers get existing and new notifications of all nodes.

use std::time::Duration;

use notify::Notifier;

use crate::Bench;

async fn next(follower: &mut notify::NotificationFollower) -> String {
    let next = tokio::time::timeout(Duration::from_secs(5), follower.next()).await;
    next.unwrap().unwrap().notification.title
}

#[tokio::test]
async fn a_follower_gets_existing_and_new_notifications() {
    // TASK-4
    let bench = Bench::sqlite().await;
    bench.run();
    for title in ["1", "2"] {
        bench.notify(title).await;
    }
    let mut follower = bench.notifier.follow(bench.alice, 0);
    let first = follower.next().await.unwrap();
    assert_eq!(first.notification.title, "1");
    assert_eq!(next(&mut follower).await, "2");
    let started = std::time::Instant::now();
    let (sent, received) = tokio::join!(bench.notify("3"), next(&mut follower));
    assert_eq!(received, sent.title);
    assert!(started.elapsed() < Duration::from_secs(2), "the follower is woken");
    let mut resumed = bench.notifier.follow(bench.alice, first.seq);
    assert_eq!((next(&mut resumed).await, next(&mut resumed).await), ("2".to_owned(), "3".to_owned()));
    let mut other = bench.notifier.follow(model::UserId::LOCAL, 0);
    assert!(
        tokio::time::timeout(Duration::from_millis(300), other.next()).await.is_err(),
        "a follower gets only the notifications of its user"
    );
}

#[tokio::test]
async fn notifications_of_another_node_arrive_within_a_second() {
    let bench = Bench::postgres().await;
    let store = store::Store::open(&bench.location, store::Durability::Full).await.unwrap();
    let local = Notifier::new(store, bench.clock.clone());
    bench.run_node(local.clone());
    let mut follower = local.follow(bench.alice, 0);
    tokio::spawn({
        let notifier = bench.notifier.clone();
        let store = bench.store.clone();
        let alice = bench.alice;
        let clock = bench.clock.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(700)).await;
            let note = model::notification::Notification::new(
                &clock,
                model::notification::NotificationKind::Schedule,
                "remote",
                "",
            );
            let written = store.transaction(async move |tx| notifier.notify(tx, alice, &note).await);
            written.await.unwrap();
        }
    });
    let started = std::time::Instant::now();
    assert_eq!(next(&mut follower).await, "remote");
    assert!(started.elapsed() < Duration::from_millis(700 + 1300), "{:?}", started.elapsed());
}
