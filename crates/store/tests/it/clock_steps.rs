//! Times that were stored while the clock was ahead. Work must not wait until the wrong time comes again.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use model::User;
use model::conversation::ConversationId;
use model::reminder::ReminderDraft;
use store::clock_steps::{ClockCorrections, correct_times};
use store::outbox::{self, NewDelivery};
use store::{nodes, reminders, turns};
use uuid::Uuid;

use crate::{Bench, on_both, write};

on_both!(
    deliveries_and_locks_from_the_future_do_not_wait,
    a_repeating_reminder_goes_on_after_the_clock_was_ahead,
    leases_from_the_future_expire,
);

const YEAR: SignedDuration = SignedDuration::from_hours(365 * 24);

async fn correct(bench: &Bench) -> ClockCorrections {
    let now = bench.now();
    write!(bench, tx => correct_times(tx, now)).unwrap()
}

async fn add_delivery(bench: &Bench) -> Uuid {
    let id = bench.clock.id();
    let channel = "phone".into();
    let new =
        NewDelivery { id, owner: bench.alice, notification_id: None, channel, target: None, payload: "{}".into() };
    let now = bench.now();
    write!(bench, tx => outbox::add(tx, &new, now)).unwrap();
    id
}

async fn claimable(bench: &Bench) -> Vec<Uuid> {
    let now = bench.now();
    let until = now + Duration::from_secs(60);
    let claimed = write!(bench, tx => outbox::claim(tx, "phone", 9, now, until)).unwrap();
    claimed.iter().map(|delivery| delivery.id).collect()
}

async fn deliveries_and_locks_from_the_future_do_not_wait(bench: Bench) {
    // SCHED-3, CHAT-7
    let start = bench.now();
    let first = add_delivery(&bench).await;
    bench.clock.set(start + YEAR);
    assert_eq!(claimable(&bench).await, [first]);
    let second = add_delivery(&bench).await;
    let conversation: ConversationId = "conv_1".parse().unwrap();
    let locked = conversation.clone();
    let ahead = bench.now();
    let lock = async |now: Timestamp, id: ConversationId, holder| {
        let holder = Uuid::from_u128(holder);
        let until = now + Duration::from_secs(60);
        write!(bench, tx => turns::acquire(tx, &id, holder, now, until)).unwrap()
    };
    assert!(lock(ahead, locked, 1).await);
    bench.clock.set(start);
    assert!(claimable(&bench).await.is_empty(), "the claim and the new delivery are a year ahead");
    assert!(!lock(start, conversation.clone(), 2).await);
    let corrected = correct(&bench).await;
    assert_eq!(corrected, ClockCorrections { deliveries: 2, turns: 1, ..ClockCorrections::default() });
    assert_eq!(claimable(&bench).await, [first, second]);
    assert!(lock(start, conversation, 2).await);
    assert!(correct(&bench).await.is_empty(), "claims and locks of now stay");
}

async fn a_repeating_reminder_goes_on_after_the_clock_was_ahead(bench: Bench) {
    // TASK-4
    let task = bench.add(bench.alice, bench.titled("dentist")).await;
    let start = bench.now();
    let draft = ReminderDraft {
        task_id: task.id.to_string(),
        remind_at: Some((start + SignedDuration::from_mins(10)).to_string()),
        repeat_interval_minutes: Some(30),
        repeat_count: Some(9),
        ..ReminderDraft::default()
    };
    let user = User::local(jiff::tz::TimeZone::UTC);
    let reminder = draft.check(&bench.clock, &user, model::reminder::DEFAULT_TIME).unwrap();
    let new = reminder.clone();
    let add = bench
        .change(bench.alice, move |tx, step| Box::pin(async move { reminders::create(tx, step, &new, start).await }));
    add.await.unwrap();
    let next = async || reminders::next_due_at(&mut bench.store.reader().await.unwrap()).await.unwrap().unwrap();
    assert!(correct(&bench).await.is_empty(), "it has not fired");
    bench.clock.set(start + YEAR);
    let now = bench.now();
    let due = reminders::due_reminders(&mut bench.store.reader().await.unwrap(), now, 9).await.unwrap().remove(0);
    assert!(write!(bench, tx => reminders::fire(tx, &due, now)).unwrap().is_some());
    assert!(next().await > now);
    for (minutes, expected) in [(45, 70), (5, 40)] {
        bench.clock.set(start + SignedDuration::from_mins(minutes));
        assert_eq!(correct(&bench).await.reminders, 1);
        assert_eq!(next().await, start + SignedDuration::from_mins(expected));
        assert!(correct(&bench).await.is_empty());
    }
}

async fn leases_from_the_future_expire(bench: Bench) {
    // SUP-11
    let lease = Duration::from_secs(20);
    let now = bench.now();
    let node = Uuid::from_u128(1);
    write!(bench, tx => nodes::join(tx, node, now + YEAR, now + YEAR)).unwrap();
    let limit = async || write!(bench, tx => nodes::limit_leases(tx, now + lease, now + lease * 10)).unwrap();
    assert_eq!((limit().await, limit().await), (1, 0));
    let later = now + lease * 2;
    assert_eq!(write!(bench, tx => nodes::remove_expired(tx, later)).unwrap(), 1);
}
