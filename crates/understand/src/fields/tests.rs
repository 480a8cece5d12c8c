//! Tests of words in fields.

use model::task::{TaskDraft, TaskPatch};

use super::*;

/// Returns a reader on Wednesday, March 11, 2026, 9:30 in Berlin.
fn reader() -> FieldReader {
    FieldReader::new("2026-03-11T09:30:00+01:00[Europe/Berlin]".parse().unwrap(), UtteranceParser::default())
}

fn time(text: &str) -> String {
    let mut field = Some(text.to_owned());
    reader().resolve_time(&mut field);
    field.unwrap()
}

fn period(text: &str) -> String {
    let mut field = Some(text.to_owned());
    reader().resolve_period(&mut field);
    field.unwrap()
}

fn schedule(draft: ScheduleDraft) -> String {
    let ScheduleDraft { when, cron_expression, every, at, start_at, end_at, .. } = reader().resolve(draft);
    let fields =
        [("when", when), ("cron", cron_expression), ("every", every), ("at", at), ("start", start_at), ("end", end_at)];
    let given: Vec<_> = fields.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?))).collect();
    given.join(" ")
}

#[test]
fn words_become_the_stored_form() {
    for (text, expected) in [
        ("tomorrow", "2026-03-12"),
        ("Tomorrow 9am", "2026-03-12T09:00:00+01:00"),
        ("friday", "2026-03-13"),
        ("in 2 hours", "2026-03-11T11:30:00+01:00"),
        ("march 30 at 3pm", "2026-03-30T15:00:00+02:00"),
        ("next friday at noon", "2026-03-20T12:00:00+01:00"),
        ("3/4", "2027-03-04"),
    ] {
        assert_eq!(time(text), expected, "{text}");
    }
}

#[test]
fn exact_and_unreadable_texts_are_not_changed() {
    for text in [
        "2026-05-01",
        "2026-05-01T09:00",
        "2026-05-01T09:00:00Z",
        "2026-02-30",
        "2026-01-31T25:00",
        "9999-12-31T23:59:59Z",
        "",
        " ",
        "soon",
        "buy milk tomorrow",
        "every friday",
        "\u{0}",
    ] {
        assert_eq!(time(text), text, "{text}");
    }
    assert_eq!(time(&"tomorrow ".repeat(1000)), "tomorrow ".repeat(1000));
}

#[test]
fn recurrences_set_the_first_date() {
    let task = |due: Option<&str>, recurrence: Option<&str>| {
        let due_date = due.map(str::to_owned);
        let recurrence = recurrence.map(str::to_owned);
        let draft = reader().resolve(TaskDraft { due_date, recurrence, ..TaskDraft::default() });
        format!("{} {}", draft.due_date.unwrap_or_default(), draft.recurrence.unwrap_or_default())
    };
    assert_eq!(task(None, Some("every friday at 5pm")), "2026-03-13T17:00:00+01:00 FREQ=WEEKLY;BYDAY=FR");
    assert_eq!(task(Some("every friday at 5pm"), None), "2026-03-13T17:00:00+01:00 FREQ=WEEKLY;BYDAY=FR");
    assert_eq!(task(None, Some("weekly")), " FREQ=WEEKLY");
    assert_eq!(task(Some("tomorrow"), Some("weekly")), "2026-03-12 FREQ=WEEKLY");
    assert_eq!(task(Some("2026-03-20"), Some("every friday at 5pm")), "2026-03-20T17:00:00+01:00 FREQ=WEEKLY;BYDAY=FR");
    assert_eq!(task(Some("2026-03-20"), Some("FREQ=DAILY")), "2026-03-20 FREQ=DAILY");
    assert_eq!(task(Some("friday"), Some("sometimes")), "2026-03-13 sometimes");
}

#[test]
fn changes_keep_the_day_unless_a_time_is_named() {
    let patch = |recurrence: &str| {
        let recurrence = Some(Some(recurrence.to_owned()));
        reader().resolve(TaskPatch { recurrence, ..TaskPatch::default() })
    };
    assert_eq!(patch("every friday").due_date, None);
    assert_eq!(patch("every friday at 5pm").due_date.unwrap().unwrap(), "2026-03-13T17:00:00+01:00");
    let cleared = reader().resolve(TaskPatch { due_date: Some(None), ..TaskPatch::default() });
    assert_eq!(cleared.due_date, Some(None));
}

#[test]
fn periods_in_words_become_days() {
    for (text, expected) in [
        ("friday", "2026-03-13"),
        ("next week", "2026-03-16..2026-03-22"),
        ("next_week", "2026-03-16..2026-03-22"),
        ("this week", "this_week"),
        ("this_week", "this_week"),
        ("overdue", "overdue"),
        ("2026-01-01..2026-01-31", "2026-01-01..2026-01-31"),
        ("tomorrow..friday", "2026-03-12..2026-03-13"),
        ("tomorrow..", "2026-03-12.."),
        ("tomorrow 9am", "tomorrow 9am"),
        ("someday", "someday"),
        ("..", ".."),
    ] {
        assert_eq!(period(text), expected, "{text}");
    }
}

#[test]
fn schedules_accept_words() {
    let when = |text: &str| schedule(ScheduleDraft { when: Some(text.to_owned()), ..ScheduleDraft::default() });
    assert_eq!(when("every friday at 5pm"), "cron=0 17 * * FRI");
    assert_eq!(when("every 2 hours"), "every=2h");
    assert_eq!(when("tomorrow at 9am"), "at=2026-03-12T09:00:00");
    assert_eq!(when("tomorrow"), "at=2026-03-12T09:00:00");
    assert_eq!(when("every 5 months"), "when=every 5 months");
    assert_eq!(when("soon"), "when=soon");
    let at = |text: &str| schedule(ScheduleDraft { at: Some(text.to_owned()), ..ScheduleDraft::default() });
    assert_eq!(at("tomorrow 9am"), "at=2026-03-12T09:00:00+01:00");
    assert_eq!(at("tomorrow"), "at=tomorrow");
    assert_eq!(at("every friday at 5pm"), "at=every friday at 5pm");
    let zone = Some("America/New_York".to_owned());
    let new_york = ScheduleDraft { at: Some("9am tomorrow".to_owned()), time_zone: zone, ..ScheduleDraft::default() };
    assert_eq!(schedule(new_york), "at=2026-03-12T09:00:00-04:00");
}
