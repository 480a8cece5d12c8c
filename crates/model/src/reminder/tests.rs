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

fn draft() -> ReminderDraft {
    ReminderDraft { task_id: "0190a6d2-7c00-7000-8000-000000000000".into(), ..ReminderDraft::default() }
}

/// Checks a draft on Saturday, January 10, 2026, 13:00 in Berlin. Returns the local time, or the violations.
fn placed(draft: ReminderDraft, due: Option<&str>) -> Result<String, String> {
    let clock = Clock::manual("2026-01-10T12:00:30Z".parse().unwrap());
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    let user = User::local(zone.clone());
    let due = due.map(|due| DueDate::parse("due_date", due, &zone).unwrap());
    let mut reminder = draft.check(&clock, &user, DEFAULT_TIME).map_err(|error| error.to_string())?;
    reminder.place_before(due, DEFAULT_TIME, clock.now()).map_err(|error| error.to_string())?;
    Ok(reminder.next_at.unwrap().to_zoned(zone).strftime("%a %d %H:%M:%S").to_string())
}

#[test]
fn a_day_rings_at_the_default_time() {
    // TRUST-2
    let at = |text: &str| placed(ReminderDraft { remind_at: Some(text.into()), ..draft() }, None);
    assert_eq!(at("2026-01-12").as_deref(), Ok("Mon 12 09:00:00"));
    let passed = "remind_at must be in the future: without a time of day it means 2026-01-10 at 09:00, which has passed; \
                  give a time";
    assert_eq!(at("2026-01-10"), Err(passed.into()));
}

#[test]
fn a_rule_starts_at_its_first_occurrence() {
    // TRUST-2
    let rule = |rule: &str| placed(ReminderDraft { recurrence: Some(rule.into()), ..draft() }, None);
    assert_eq!(rule("FREQ=DAILY;BYHOUR=8;BYMINUTE=0").as_deref(), Ok("Sun 11 08:00:00"));
    assert_eq!(rule("FREQ=DAILY;BYHOUR=18").as_deref(), Ok("Sat 10 18:00:00"));
    assert_eq!(rule("FREQ=WEEKLY;BYDAY=MO").as_deref(), Ok("Mon 12 09:00:00"), "the default time");
    assert_eq!(rule("FREQ=HOURLY").as_deref(), Ok("Sat 10 14:00:00"));
    assert_eq!(rule("FREQ=MINUTELY;INTERVAL=20").as_deref(), Ok("Sat 10 13:20:00"));
    assert_eq!(rule("FREQ=HOURLY;BYHOUR=9,10,11").as_deref(), Ok("Sun 11 09:00:00"));
    assert_eq!(rule("FREQ=DAILY;UNTIL=20260101"), Err("recurrence must have an occurrence in the future".into()));
    let from = |text: &str, rule: &str| {
        placed(ReminderDraft { remind_at: Some(text.into()), recurrence: Some(rule.into()), ..draft() }, None)
    };
    assert_eq!(from("2026-01-10T08:00", "FREQ=DAILY").as_deref(), Ok("Sun 11 08:00:00"), "today it has passed");
    let weekdays = "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR";
    assert_eq!(from("2026-01-11T08:00", weekdays).as_deref(), Ok("Mon 12 08:00:00"), "Sunday is no weekday");
    assert_eq!(from("2026-01-14", "FREQ=DAILY").as_deref(), Ok("Wed 14 09:00:00"));
}

#[test]
fn minutes_before_need_a_future_due_date() {
    // TRUST-2
    let before = |minutes, due| placed(ReminderDraft { before_minutes: Some(minutes), ..draft() }, due);
    assert_eq!(before(90, Some("2026-01-12T10:30")).as_deref(), Ok("Mon 12 09:00:00"));
    assert_eq!(before(0, Some("2026-01-12T10:30")).as_deref(), Ok("Mon 12 10:30:00"));
    assert_eq!(before(1440, Some("2026-01-12")).as_deref(), Ok("Sun 11 09:00:00"));
    assert_eq!(before(30, Some("2026-01-12")).as_deref(), Ok("Mon 12 08:30:00"));
    let missing = "before_minutes needs a task with a due date; give the task a due date, or give remind_at";
    assert_eq!(before(30, None), Err(missing.into()));
    let passed = "before_minutes must lead to a time in the future, but 2026-01-10 10:30 has passed";
    assert_eq!(before(1440, Some("2026-01-11T10:30")), Err(passed.into()));
    assert!(before(-1, Some("2026-01-12")).is_err());
}

#[test]
fn exactly_one_time_is_needed() {
    let fields = |draft: ReminderDraft| placed(draft, None).unwrap_err();
    assert!(fields(draft()).starts_with("remind_at must be given"));
    let both = ReminderDraft { remind_at: Some("2026-01-12".into()), before_minutes: Some(5), ..draft() };
    assert!(fields(both).contains("before_minutes must not be given together with remind_at"));
    let rule = Some("FREQ=DAILY".to_owned());
    let both = ReminderDraft { recurrence: rule.clone(), before_minutes: Some(5), ..draft() };
    assert!(fields(both).contains("recurrence must not be given together with before_minutes"));
    let both = ReminderDraft { recurrence: rule, repeat_interval_minutes: Some(5), ..draft() };
    assert!(fields(both).contains("repeat_interval_minutes must not be given together with recurrence"));
}

#[test]
fn a_snooze_is_not_counted_twice() {
    // TRUST-2
    let mut reminder = check("2026-01-10T12:30:00Z", Some(15), Some(2)).unwrap();
    reminder.fire(at("12:30:00"));
    reminder.snooze(at("12:35:00"));
    assert_eq!(reminder.next_firing(at("12:31:00")), at("12:35:00"));
    assert_eq!((reminder.fire(at("12:35:00")), reminder.fired_count), (Some(at("12:45:00")), 1));
    assert_eq!((reminder.fire(at("12:45:00")), reminder.status), (None, ReminderStatus::Done));
    reminder.snooze(at("12:50:00"));
    assert_eq!((reminder.status, reminder.next_at), (ReminderStatus::Scheduled, Some(at("12:50:00"))));
    assert_eq!((reminder.fire(at("12:50:00")), reminder.status), (None, ReminderStatus::Done));
}

#[test]
fn a_patch_keeps_what_it_does_not_name() {
    // AGENT-13, TRUST-2
    let clock = Clock::manual("2026-01-10T12:00:00Z".parse().unwrap());
    let user = User::local(TimeZone::get("Europe/Berlin").unwrap());
    let apply = |reminder: &Reminder, patch: ReminderPatch| patch.apply(reminder, None, &clock, &user, DEFAULT_TIME);
    let reminder = check("2026-01-10T12:30:00Z", Some(15), Some(3)).unwrap();
    let later = apply(&reminder, ReminderPatch { remind_at: Some("2026-01-11T10:00".into()), ..Default::default() });
    let later = later.unwrap();
    assert_eq!((later.repeat_interval_minutes, later.repeat_count), (Some(15), Some(3)));
    assert_eq!(later.next_at.unwrap().to_string(), "2026-01-11T09:00:00Z");
    let rule =
        apply(&later, ReminderPatch { recurrence: Some(Some("freq=daily".into())), ..Default::default() }).unwrap();
    assert_eq!((rule.recurrence.as_deref(), rule.repeat_interval_minutes), (Some("FREQ=DAILY"), None));
    assert_eq!((rule.next_at, rule.time_zone.as_deref()), (later.next_at, Some("Europe/Berlin")));
    let once = apply(&rule, ReminderPatch { recurrence: Some(None), ..Default::default() }).unwrap();
    assert!(!once.repeats() && once.repeat_count.is_none());
    let mut fired = reminder.clone();
    fired.fire(at("12:30:00"));
    let few = ReminderPatch { repeat_count: Some(Some(1)), ..Default::default() };
    assert_eq!(
        apply(&fired, few).unwrap_err().to_string(),
        "repeat_count must be more than 1, the notifications so far"
    );
    assert!(apply(&reminder, ReminderPatch::default()).is_err(), "nothing to change");
}
