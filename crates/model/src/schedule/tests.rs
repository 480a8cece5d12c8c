//! Tests of the validation of schedules and patches.

use jiff::tz::TimeZone;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Invalid;

fn berlin() -> TimeZone {
    TimeZone::get("Europe/Berlin").unwrap()
}

fn check(value: Value) -> Result<ScheduleSettings, Invalid> {
    let draft: ScheduleDraft = crate::json::from_value(value)?;
    draft.check(&berlin())
}

fn invalid_fields(result: Result<ScheduleSettings, Invalid>) -> Vec<String> {
    result.unwrap_err().violations.into_iter().map(|violation| violation.field).collect()
}

#[test]
fn missing_fields_have_safe_defaults() {
    // SCHED-1, SCHED-3
    let settings = check(json!({"name": " tidy ", "agent_id": "codex", "cron_expression": "0 17 * * FRI"})).unwrap();
    assert_eq!(settings.name, "tidy");
    assert_eq!(settings.time_zone, "Europe/Berlin", "the user's");
    assert_eq!((settings.overlap, settings.missed), (OverlapPolicy::Skip, MissedPolicy::Once));
    assert_eq!((settings.missed_window, settings.jitter), (DEFAULT_MISSED_WINDOW, None));
    assert_eq!((settings.start_at, settings.end_at, settings.pause_after_failures), (None, None, None));
}

#[test]
fn all_violations_are_reported_at_once() {
    // SCHED-1
    let result = check(json!({
        "name": " ", "agent_id": "", "every": "soon", "time_zone": "Middle/Earth", "overlap": "maybe", "missed": "some",
        "missed_window": "0s", "jitter": "2d", "start_at": "tomorrow", "end_at": "2026-01-01", "pause_after_failures": 0,
        "input_parameters": {"input": 7, "": 1},
    }));
    let expected = [
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
    assert_eq!(invalid_fields(result), expected);
    let check_with = |more: Value| {
        let mut value = json!({"name": "n", "agent_id": "a"});
        value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        check(value)
    };
    assert_eq!(invalid_fields(check_with(json!({}))), ["cron_expression"]);
    assert_eq!(invalid_fields(check_with(json!({"every": "1h", "at": "2026-01-01T12:00"}))), ["cron_expression"]);
    assert_eq!(invalid_fields(check_with(json!({"every": "1h", "jitter": "1h"}))), ["jitter"]);
    assert_eq!(
        invalid_fields(check_with(
            json!({"every": "1h", "start_at": "2026-01-02T00:00", "end_at": "2026-01-01T00:00"})
        )),
        ["end_at"]
    );
    assert_eq!(invalid_fields(check_with(json!({"at": "2026-01-01T12:00", "end_at": "2026-01-02T00:00"}))), ["at"]);
    assert_eq!(invalid_fields(check_with(json!({"evry": "1h"}))), ["evry"]);
    // SUP-9
    let key = format!("{}{}", "gh", "p_Aq1Sw2De3Fr4Gt5Hy6Ju7Ki8Lo9Zx0Cv1Bn2");
    for parameters in [json!({"input": format!("use {key}")}), json!({"api_key": "abc"}), json!({"x": {"y": [key]}})] {
        let name = format!("input_parameters.{}", parameters.as_object().unwrap().keys().next().unwrap());
        assert_eq!(invalid_fields(check_with(json!({"every": "1h", "input_parameters": parameters}))), [name]);
    }
    assert!(check_with(json!({"every": "1h", "input_parameters": {"input": "write to bob@example.com"}})).is_ok());
}

#[test]
fn times_without_an_offset_are_in_the_zone_of_the_schedule() {
    // SCHED-1
    let at = |zone: Option<&str>| {
        let draft = json!({"name": "n", "agent_id": "a", "at": "2026-07-01T12:00", "time_zone": zone});
        check(draft).unwrap().at.unwrap().to_string()
    };
    assert_eq!(at(None), "2026-07-01T10:00:00Z");
    assert_eq!(at(Some("America/New_York")), "2026-07-01T16:00:00Z");
}

#[test]
fn a_patch_is_validated_like_a_draft() {
    // SCHED-2
    let before = check(json!({
        "name": "n", "agent_id": "a", "cron_expression": "@daily", "jitter": "1m", "input_parameters": {"input": "go", "x": 1},
    }))
    .unwrap();
    let after = |patch: Value| {
        let patch: SchedulePatch = crate::json::from_value(patch).unwrap();
        patch.apply_to(before.clone()).and_then(|draft| draft.check(&TimeZone::UTC))
    };
    assert_eq!(invalid_fields(after(json!({}))), ["body"]);
    assert_eq!(invalid_fields(after(json!({"cron_expression": null}))), ["cron_expression"]);
    assert_eq!(invalid_fields(after(json!({"every": "30s"}))), ["jitter"], "unchanged fields are validated too");
    let changed = after(json!({"every": "90m", "jitter": null, "overlap": "allow"})).unwrap();
    let expected = ScheduleSettings {
        cron_expression: None,
        every: Some(TimeSpan::from_secs(5400)),
        jitter: None,
        overlap: OverlapPolicy::Allow,
        ..before.clone()
    };
    assert_eq!(changed, expected, "the time zone of the schedule does not change");
    assert!(!changed.has_same_timing(&before));
    assert!(after(json!({"missed": "all"})).unwrap().has_same_timing(&before));
    assert_eq!(before.input_and_parameters(), ("go".to_owned(), json!({"x": 1}).as_object().unwrap().clone()));
}

#[test]
fn the_state_is_derived() {
    // SCHED-2: enabled=false is paused; active is active or executing
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let later = Some("2026-01-02T00:00:00Z".parse().unwrap());
    assert_eq!(ScheduleState::compute(true, false, later, now), ScheduleState::Created);
    assert_eq!(ScheduleState::compute(true, false, Some(now), now), ScheduleState::Active);
    assert_eq!(ScheduleState::compute(true, true, later, now), ScheduleState::Executing, "started by a user");
    assert_eq!(ScheduleState::compute(false, true, None, now), ScheduleState::Paused);
    let active: Vec<_> = ScheduleState::ALL.iter().filter(|state| state.is_active()).collect();
    assert_eq!(active, [&ScheduleState::Active, &ScheduleState::Executing]);
}

#[test]
fn time_spans_are_parsed() {
    for (text, seconds) in
        [("45s", 45), ("90m", 5400), ("1h30m", 5400), ("1h 30m", 5400), ("2d", 172_800), ("1w", 604_800)]
    {
        assert_eq!(TimeSpan::parse("every", text).map(TimeSpan::as_secs), Ok(seconds), "{text}");
    }
    for wrong in ["", "0s", "-1h", "1h ago", "soon", "500ms", "1.5s", "90", "1mo", "11y", "99999d"] {
        assert!(TimeSpan::parse("every", wrong).is_err(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn time_spans_round_trip_through_text(seconds in 1..3660 * 86_400_u32) {
        let time_span = TimeSpan::from_secs(seconds);
        prop_assert_eq!(TimeSpan::parse("every", &time_span.to_string()), Ok(time_span));
    }

    #[test]
    fn settings_round_trip_through_a_draft(seconds in 2..86_400_u32, jitter in proptest::option::of(1..2_u32)) {
        let draft = ScheduleDraft {
            name: Some("n".into()),
            agent_id: Some("a".into()),
            every: Some(TimeSpan::from_secs(seconds).to_string()),
            jitter: jitter.map(|j| TimeSpan::from_secs(j).to_string()),
            start_at: Some("2026-01-01T00:00:00Z".into()),
            ..ScheduleDraft::default()
        };
        let settings = draft.check(&berlin()).unwrap();
        prop_assert_eq!(ScheduleDraft::from(settings.clone()).check(&TimeZone::UTC), Ok(settings));
    }
}
