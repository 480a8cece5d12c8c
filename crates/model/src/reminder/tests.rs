//! Tests of the times of reminders, and of the checks of drafts and patches.

use super::*;

fn check(remind_at: &str, interval: Option<i64>, count: Option<i64>) -> Result<Reminder, Vec<String>> {
    let draft = ReminderDraft {
        task_id: "0190a6d2-7c00-7000-8000-000000000000".into(),
        remind_at: Some(remind_at.into()),
        repeat_interval_minutes: interval,
        repeat_count: count,
        ..ReminderDraft::default()
    };
    let clock = Clock::manual("2026-01-10T12:00:00Z".parse().unwrap());
    let user = User::local(TimeZone::get("Europe/Berlin").unwrap());
    draft.check(&clock, &user, DEFAULT_TIME).map_err(|e| e.violations.into_iter().map(|v| v.field).collect())
}

fn at(time: &str) -> Timestamp {
    format!("2026-01-10T{time}Z").parse().unwrap()
}

#[test]
fn a_repeating_reminder_keeps_its_interval_and_its_count() {
    // TASK-4
    let mut reminder = check("2026-01-10T12:30:00Z", Some(15), Some(3)).unwrap();
    assert_eq!(reminder.next_firing(at("18:00:00")), at("12:30:00"), "a late reminder still fires");
    assert_eq!(reminder.fire(at("12:30:01")), Some(at("12:45:00")));
    assert_eq!(reminder.fire(at("13:00:00")), Some(at("13:15:00")), "very late: one firing is skipped");
    assert_eq!(reminder.next_firing(at("13:20:00")), at("13:30:00"));
    assert_eq!((reminder.fire(at("13:15:00")), reminder.fired_count, reminder.status), (None, 3, ReminderStatus::Done));

    let mut endless = check("2026-01-10T12:30:00Z", Some(1440), None).unwrap();
    for day in 0..1000_i64 {
        let now = endless.remind_at + jiff::SignedDuration::from_hours(24 * day);
        assert_eq!(endless.fire(now), Some(now + jiff::SignedDuration::from_hours(24)));
    }
    assert_eq!(endless.fire(at("00:00:00")), Some(at("12:30:00") + jiff::SignedDuration::from_hours(24)));

    let mut once = check("2026-01-10T12:30:00Z", None, None).unwrap();
    assert_eq!((once.fire(at("12:30:00")), once.status), (None, ReminderStatus::Done));
}

#[test]
fn limits_are_inclusive() {
    // TASK-1
    assert!(check("2026-01-10T13:00:01", Some(1440), Some(100)).is_ok(), "13:00:01 in Berlin is after 12:00 UTC");
    assert_eq!(check("2026-01-10T13:00:00", None, None), Err(vec!["remind_at".into()]), "not later than now");
    let both = vec!["repeat_interval_minutes".to_owned(), "repeat_count".to_owned()];
    assert_eq!(check("2026-01-11T13:00", Some(1441), Some(101)), Err(both.clone()));
    assert_eq!(check("2026-01-11T13:00", Some(0), Some(0)), Err(both));
    assert_eq!(check("2026-01-11T13:00", None, Some(2)), Err(vec!["repeat_interval_minutes".into()]));
}
