//! Tests of the next occurrence. The user is in Berlin. It is Saturday, January 10, 2026, 13:00.

use super::*;
use crate::User;
use crate::task::{TaskDraft, TaskLimits};

fn berlin() -> TimeZone {
    TimeZone::get("Europe/Berlin").unwrap()
}

fn at(now: &str) -> Clock {
    Clock::manual(now.parse().unwrap())
}

fn task(rule: &str, due: Option<&str>) -> Task {
    let draft = TaskDraft {
        title: "water the plants".into(),
        description: Some("all of them".into()),
        priority: Some("high".into()),
        due_date: due.map(str::to_owned),
        recurrence: Some(rule.into()),
        tags: Some(vec!["home".into()]),
        ..TaskDraft::default()
    };
    draft.check(TaskLimits::default(), &at("2026-01-10T12:00:00Z"), &User::local(berlin())).unwrap()
}

/// Returns the due date of the next task if this one is completed at `now`.
fn due_from(now: &str, rule: &str, due: Option<&str>) -> Option<String> {
    task(rule, due).next_occurrence(&at(now), &berlin()).map(|next| next.due_date.unwrap().to_string())
}

fn due(rule: &str, due: &str) -> Option<String> {
    due_from("2026-01-10T12:00:00Z", rule, Some(due))
}

#[test]
fn the_next_task_is_a_copy() {
    let done = task("FREQ=WEEKLY", Some("2026-01-10"));
    let clock = at("2026-01-10T12:00:00Z");
    let next = done.next_occurrence(&clock, &berlin()).unwrap();
    let same = Task { id: next.id, due_date: next.due_date, ..done.clone() };
    assert_eq!((next, true), (same, done.completed_at.is_none()));
    assert_eq!(Task { recurrence: None, ..done }.next_occurrence(&clock, &berlin()), None);
}

#[test]
fn the_next_due_date_is_after_the_last_one_and_after_today() {
    // TASK-1
    assert_eq!(due("FREQ=DAILY", "2026-01-10").as_deref(), Some("2026-01-11"));
    assert_eq!(due("FREQ=DAILY", "2026-01-12").as_deref(), Some("2026-01-13"), "done before it was due");
    assert_eq!(due("FREQ=DAILY", "2025-11-01").as_deref(), Some("2026-01-11"), "missed occurrences are skipped");
    assert_eq!(due("FREQ=WEEKLY;BYDAY=MO", "2025-12-29").as_deref(), Some("2026-01-12"));
    // The parity of the weeks does not change.
    assert_eq!(due("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", "2025-12-22").as_deref(), Some("2026-01-19"));
    assert_eq!(due("FREQ=MONTHLY;BYMONTHDAY=1", "2026-01-01").as_deref(), Some("2026-02-01"));
    assert_eq!(due("FREQ=MONTHLY", "2026-01-31").as_deref(), Some("2026-03-31"), "a month without a 31st has none");
}

#[test]
fn the_local_time_of_day_does_not_change() {
    // TASK-1
    assert_eq!(due("FREQ=DAILY", "2026-03-28T09:00").as_deref(), Some("2026-03-29T09:00:00+02:00"));
    assert_eq!(due("FREQ=DAILY", "2026-10-24T09:00").as_deref(), Some("2026-10-25T09:00:00+01:00"));
    assert_eq!(due("FREQ=DAILY", "2026-01-10T14:00").as_deref(), Some("2026-01-11T14:00:00+01:00"));
    assert_eq!(due("FREQ=DAILY", "2026-01-09T14:00").as_deref(), Some("2026-01-10T14:00:00+01:00"), "still ahead");
    assert_eq!(due("FREQ=DAILY", "2026-01-09T12:59").as_deref(), Some("2026-01-11T12:59:00+01:00"), "just missed");
    // A due date with another offset is converted to the user's time zone.
    assert_eq!(due("FREQ=DAILY", "2026-01-10T09:00-05:00").as_deref(), Some("2026-01-11T15:00:00+01:00"));
    // A time that a clock change skips is moved to a later time. A time that occurs twice is used once.
    assert_eq!(due("FREQ=DAILY", "2026-03-28T02:30").as_deref(), Some("2026-03-29T03:30:00+02:00"));
    let late = due_from("2026-03-29T01:15:00Z", "FREQ=DAILY", Some("2026-03-27T02:30"));
    assert_eq!(late.as_deref(), Some("2026-03-29T03:30:00+02:00"), "at 3:15 on the day without 2:30");
    let twice = due_from("2026-10-25T01:15:00Z", "FREQ=DAILY", Some("2026-10-25T02:30"));
    assert_eq!(twice.as_deref(), Some("2026-10-26T02:30:00+01:00"), "2:15 for the second time");
}

#[test]
fn without_a_due_date_the_rule_starts_now() {
    let from_now = |rule| due_from("2026-01-10T12:00:30.5Z", rule, None);
    assert_eq!(from_now("FREQ=DAILY").as_deref(), Some("2026-01-11"));
    assert_eq!(from_now("FREQ=WEEKLY;BYDAY=SA").as_deref(), Some("2026-01-17"));
    assert_eq!(from_now("FREQ=MONTHLY;INTERVAL=3").as_deref(), Some("2026-04-10"));
    assert_eq!(from_now("FREQ=HOURLY;INTERVAL=4").as_deref(), Some("2026-01-10T17:00:30+01:00"));
    assert_eq!(from_now("FREQ=DAILY;BYHOUR=8;BYMINUTE=0;BYSECOND=0").as_deref(), Some("2026-01-11T08:00:00+01:00"));
    assert_eq!(due("FREQ=HOURLY", "2026-01-10").as_deref(), Some("2026-01-10T14:00:00+01:00"));
}

#[test]
fn a_rule_ends_at_its_count_or_until() {
    // TASK-1
    let rule = |rule, due| task(rule, Some(due)).next_occurrence(&at("2026-01-10T12:00:00Z"), &berlin());
    assert_eq!(rule("FREQ=DAILY;COUNT=2", "2026-01-10").unwrap().recurrence.as_deref(), Some("FREQ=DAILY;COUNT=1"));
    assert_eq!(rule("FREQ=DAILY;COUNT=1", "2026-01-10"), None);
    // Missed occurrences count: the last day of the series does not change.
    assert_eq!(rule("FREQ=DAILY;COUNT=10", "2026-01-05").unwrap().recurrence.as_deref(), Some("FREQ=DAILY;COUNT=4"));
    assert_eq!(rule("FREQ=DAILY;COUNT=6", "2026-01-05"), None);
    assert!(rule("FREQ=DAILY;UNTIL=20260111", "2026-01-10").is_some());
    assert!(rule("FREQ=DAILY;UNTIL=20260110", "2026-01-10").is_none());
    assert!(rule("FREQ=DAILY;UNTIL=20260111T000000", "2026-01-10").is_some(), "the whole day is included");
    assert!(rule("FREQ=DAILY;UNTIL=20260110T230000Z", "2026-01-10").is_some(), "in Berlin that is the 11th");
    assert!(rule("FREQ=DAILY;UNTIL=20260110T225959Z", "2026-01-10").is_none());
    assert!(rule("FREQ=DAILY;UNTIL=20260111T130000Z", "2026-01-10T14:00").is_some());
    assert!(rule("FREQ=DAILY;UNTIL=20260111T125959Z", "2026-01-10T14:00").is_none());
    assert!(rule("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "2026-01-10").is_none(), "no such day");
    assert!(rule("FREQ=YEARLY", "9999-06-01").is_none(), "the calendar ends");
}

#[test]
fn reminders_are_carried_to_the_next_task() {
    let clock = at("2026-03-28T12:00:00Z");
    let carried = |due: &str, remind_at: &str, status: ReminderStatus| {
        let done = task("FREQ=DAILY", Some(due));
        let next = done.next_occurrence(&clock, &berlin()).unwrap();
        let reminder = Reminder {
            id: clock.id(),
            task_id: done.id,
            remind_at: remind_at.parse().unwrap(),
            repeat_interval_minutes: Some(10),
            repeat_count: Some(3),
            fired_count: 3,
            status,
            recurrence: None,
            before_minutes: None,
            time_zone: None,
            snoozed_until: None,
            next_at: None,
        };
        let carried = done.carry_reminder(&reminder, &next, &clock, &berlin(), crate::reminder::DEFAULT_TIME)?;
        let same = Reminder { id: carried.id, task_id: next.id, remind_at: carried.remind_at, ..reminder };
        let next_at = Some(carried.remind_at);
        assert_eq!(carried, Reminder { fired_count: 0, status: ReminderStatus::Scheduled, next_at, ..same });
        Some(carried.remind_at.to_string())
    };
    let open = ReminderStatus::Scheduled;
    let fired = ReminderStatus::Done;
    let dropped = ReminderStatus::Dropped;
    // The clocks go forward in the night. The reminder stays at nine in the morning.
    assert_eq!(carried("2026-03-28T10:00", "2026-03-28T08:00:00Z", fired).as_deref(), Some("2026-03-29T07:00:00Z"));
    assert_eq!(carried("2026-03-28", "2026-03-28T18:00:00Z", open).as_deref(), Some("2026-03-29T17:00:00Z"));
    // TRUST-2: a repeating reminder after the due date goes on.
    assert_eq!(carried("2026-03-28T10:00", "2026-03-28T10:00:00Z", open).as_deref(), Some("2026-03-29T09:00:00Z"));
    assert_eq!(carried("2026-03-28", "2026-03-29T00:00:00Z", open).as_deref(), Some("2026-03-29T23:00:00Z"));
    assert_eq!(carried("2026-03-28T10:00", "2026-03-28T08:00:00Z", dropped), None);
    assert_eq!(carried("2026-03-28", "2026-03-26T12:00:00Z", open), None, "it would be in the past");
}
