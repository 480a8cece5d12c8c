//! What is taken for a schedule and what is not; what a change makes of one.

use jiff::tz::TimeZone;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Invalid;

fn berlin() -> TimeZone {
    TimeZone::get("Europe/Berlin").unwrap()
}

fn read(value: Value) -> Result<Settings, Invalid> {
    let draft: Draft = crate::json::from_value(value)?;
    draft.check(&berlin())
}

fn fields(result: Result<Settings, Invalid>) -> Vec<String> {
    result.unwrap_err().violations.into_iter().map(|violation| violation.field).collect()
}

#[test]
fn what_is_not_said_is_safe() {
    // SCHED-1, SCHED-3
    let settings = read(json!({"name": " tidy ", "agent_id": "codex", "cron_expression": "0 17 * * FRI"})).unwrap();
    assert_eq!(settings.name, "tidy");
    assert_eq!(settings.time_zone, "Europe/Berlin", "the user's");
    assert_eq!((settings.overlap, settings.missed), (Overlap::Skip, Missed::Once));
    assert_eq!((settings.missed_window, settings.jitter), (MISSED_WINDOW, None));
    assert_eq!((settings.start_at, settings.end_at, settings.pause_after_failures), (None, None, None));
}

#[test]
fn everything_that_is_wrong_is_named_at_once() {
    // SCHED-1
    let wrong = read(json!({
        "name": " ", "agent_id": "", "every": "soon", "time_zone": "Middle/Earth", "overlap": "maybe", "missed": "some",
        "missed_window": "0s", "jitter": "2d", "start_at": "tomorrow", "end_at": "2026-01-01", "pause_after_failures": 0,
        "input_parameters": {"input": 7, "": 1},
    }));
    let wanted = [
        "name",
        "agent_id",
        "time_zone",
        "every",
        "start_at",
        "end_at",
        "overlap",
        "missed",
        "missed_window",
        "jitter",
        "pause_after_failures",
        "input_parameters.",
        "input_parameters.input",
    ];
    assert_eq!(fields(wrong), wanted);
    let of = |more: Value| {
        let mut draft = json!({"name": "n", "agent_id": "a"});
        draft.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        read(draft)
    };
    assert_eq!(fields(of(json!({}))), ["cron_expression"]);
    assert_eq!(fields(of(json!({"every": "1h", "at": "2026-01-01T12:00"}))), ["cron_expression"]);
    assert_eq!(fields(of(json!({"every": "1h", "jitter": "1h"}))), ["jitter"]);
    assert_eq!(
        fields(of(json!({"every": "1h", "start_at": "2026-01-02T00:00", "end_at": "2026-01-01T00:00"}))),
        ["end_at"]
    );
    assert_eq!(fields(of(json!({"at": "2026-01-01T12:00", "end_at": "2026-01-02T00:00"}))), ["at"]);
    assert_eq!(fields(of(json!({"evry": "1h"}))), ["evry"]);
    // SUP-9
    let key = format!("{}{}", "gh", "p_Aq1Sw2De3Fr4Gt5Hy6Ju7Ki8Lo9Zx0Cv1Bn2");
    for parameters in [json!({"input": format!("use {key}")}), json!({"api_key": "abc"}), json!({"x": {"y": [key]}})] {
        let name = format!("input_parameters.{}", parameters.as_object().unwrap().keys().next().unwrap());
        assert_eq!(fields(of(json!({"every": "1h", "input_parameters": parameters}))), [name]);
    }
    assert!(of(json!({"every": "1h", "input_parameters": {"input": "write to bob@example.com"}})).is_ok());
}

#[test]
fn times_without_an_offset_are_the_schedules() {
    // SCHED-1
    let at = |zone: Option<&str>| {
        let draft = json!({"name": "n", "agent_id": "a", "at": "2026-07-01T12:00", "time_zone": zone});
        read(draft).unwrap().at.unwrap().to_string()
    };
    assert_eq!(at(None), "2026-07-01T10:00:00Z");
    assert_eq!(at(Some("America/New_York")), "2026-07-01T16:00:00Z");
}

#[test]
fn a_change_is_held_to_the_same_rules() {
    // SCHED-2
    let before = read(json!({
        "name": "n", "agent_id": "a", "cron_expression": "@daily", "jitter": "1m", "input_parameters": {"input": "go", "x": 1},
    }))
    .unwrap();
    let after = |patch: Value| {
        let patch: Patch = crate::json::from_value(patch).unwrap();
        patch.over(before.clone()).and_then(|draft| draft.check(&TimeZone::UTC))
    };
    assert_eq!(fields(after(json!({}))), ["body"]);
    assert_eq!(fields(after(json!({"cron_expression": null}))), ["cron_expression"]);
    assert_eq!(fields(after(json!({"every": "30s"}))), ["jitter"], "what was there counts too");
    let changed = after(json!({"every": "90m", "jitter": null, "overlap": "allow"})).unwrap();
    let wanted = Settings {
        cron_expression: None,
        every: Some(Length::from_secs(5400)),
        jitter: None,
        overlap: Overlap::Allow,
        ..before.clone()
    };
    assert_eq!(changed, wanted, "the zone stays the schedule's");
    assert!(!changed.is_timed_like(&before));
    assert!(after(json!({"missed": "all"})).unwrap().is_timed_like(&before));
    assert_eq!(before.request(), ("go".to_owned(), json!({"x": 1}).as_object().unwrap().clone()));
}

#[test]
fn where_a_schedule_is() {
    // SCHED-2: enabled=false is paused; active is active or executing
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let later = Some("2026-01-02T00:00:00Z".parse().unwrap());
    assert_eq!(State::of(true, false, later, now), State::Created);
    assert_eq!(State::of(true, false, Some(now), now), State::Active);
    assert_eq!(State::of(true, true, later, now), State::Executing, "somebody has run it by hand");
    assert_eq!(State::of(false, true, None, now), State::Paused);
    let active: Vec<_> = State::ALL.iter().filter(|state| state.is_active()).collect();
    assert_eq!(active, [&State::Active, &State::Executing]);
}

#[test]
fn lengths_as_people_write_them() {
    for (text, seconds) in
        [("45s", 45), ("90m", 5400), ("1h30m", 5400), ("1h 30m", 5400), ("2d", 172_800), ("1w", 604_800)]
    {
        assert_eq!(Length::parse("every", text).map(Length::as_secs), Ok(seconds), "{text}");
    }
    for wrong in ["", "0s", "-1h", "1h ago", "soon", "500ms", "1.5s", "90", "1mo", "11y", "99999d"] {
        assert!(Length::parse("every", wrong).is_err(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn a_length_reads_what_it_wrote(seconds in 1..3660 * 86_400_u32) {
        let length = Length::from_secs(seconds);
        prop_assert_eq!(Length::parse("every", &length.to_string()), Ok(length));
    }

    #[test]
    fn settings_become_a_draft_and_settings_again(seconds in 2..86_400_u32, jitter in proptest::option::of(1..2_u32)) {
        let draft = Draft {
            name: Some("n".into()),
            agent_id: Some("a".into()),
            every: Some(Length::from_secs(seconds).to_string()),
            jitter: jitter.map(|j| Length::from_secs(j).to_string()),
            start_at: Some("2026-01-01T00:00:00Z".into()),
            ..Draft::default()
        };
        let settings = draft.check(&berlin()).unwrap();
        prop_assert_eq!(Draft::from(settings.clone()).check(&TimeZone::UTC), Ok(settings));
    }
}
