//! The rules of tasks, one sentence each.

use super::*;

fn user() -> User {
    User::local(TimeZone::get("Europe/Berlin").unwrap())
}

fn clock() -> Clock {
    Clock::manual("2026-01-10T12:00:00Z".parse().unwrap())
}

fn check(draft: Draft) -> Result<Task, Invalid> {
    draft.check(Limits::default(), &clock(), &user())
}

fn titled(title: &str) -> Draft {
    Draft { title: title.to_owned(), ..Draft::default() }
}

fn fields(invalid: &Invalid) -> Vec<&str> {
    invalid.violations.iter().map(|v| v.field.as_str()).collect()
}

#[test]
fn a_draft_becomes_a_pending_task_of_medium_priority() {
    // TASK-1
    let task = check(titled("  pay\trent ")).unwrap();
    assert_eq!((task.title.as_str(), task.status, task.priority), ("pay rent", Status::Pending, Priority::Medium));
    assert_eq!((task.created_at, task.completed_at), (task.updated_at, None));
}

#[test]
fn a_title_has_1_to_200_characters() {
    // TASK-1
    assert!(check(titled(&"é".repeat(200))).is_ok());
    for wrong in ["", " \n", "\u{0}", &"é".repeat(201)] {
        assert_eq!(fields(&check(titled(wrong)).unwrap_err()), ["title"]);
    }
}

#[test]
fn every_violation_is_named_at_once() {
    let draft = Draft {
        title: String::new(),
        description: Some("x".repeat(1001)),
        priority: Some("urgent".into()),
        due_date: Some("soon".into()),
        recurrence: Some("often".into()),
        tags: Some(vec!["ok".into(), " # ".into()]),
    };
    let invalid = check(draft).unwrap_err();
    assert_eq!(fields(&invalid), ["title", "description", "priority", "due_date", "recurrence", "tags[1]"]);
}

#[test]
fn priority_is_read_in_any_case() {
    // AGENT-10
    let task = check(Draft { priority: Some("HIGH".into()), ..titled("a") }).unwrap();
    assert_eq!(task.priority, Priority::High);
}

#[test]
fn tags_lose_their_hash_and_their_doubles() {
    let tags = ["#work", "Work", "home office", "#"].map(String::from).to_vec();
    let invalid = check(Draft { tags: Some(tags.clone()), ..titled("a") }).unwrap_err();
    assert_eq!(fields(&invalid), ["tags[3]"]);
    let task = check(Draft { tags: Some(tags[..3].to_vec()), ..titled("a") }).unwrap();
    assert_eq!(task.tags, ["work", "home office"]);
    for many in [21, 200_000] {
        let many = (0..many).map(|n| n.to_string()).collect();
        assert_eq!(fields(&check(Draft { tags: Some(many), ..titled("a") }).unwrap_err()), ["tags"]);
    }
}

fn patch(json: serde_json::Value) -> Result<Change, Invalid> {
    serde_json::from_value::<Patch>(json).unwrap().check(Limits::default(), &user())
}

#[test]
fn null_empties_and_absence_keeps() {
    let task =
        check(Draft { description: Some("d".into()), due_date: Some("2026-01-31".into()), ..titled("a") }).unwrap();
    let next = patch(serde_json::json!({"due_date": null, "title": "b"})).unwrap().apply(&task, task.created_at);
    assert_eq!((next.title.as_str(), next.due_date, next.description.as_deref()), ("b", None, Some("d")));
    assert!(serde_json::from_str::<Patch>(r#"{"title": null}"#).is_err(), "a title cannot be emptied");
}

#[test]
fn an_update_needs_a_field() {
    // TASK-1
    assert_eq!(fields(&patch(serde_json::json!({})).unwrap_err()), ["body"]);
}

#[test]
fn completing_sets_the_time_and_reopening_clears_it() {
    let task = check(titled("a")).unwrap();
    let later = task.created_at + std::time::Duration::from_secs(60);
    let done = Change::complete().apply(&task, later);
    assert_eq!((done.status, done.completed_at, done.updated_at), (Status::Completed, Some(later), later));
    let again = Change::complete().apply(&done, later + std::time::Duration::from_secs(60));
    assert_eq!(again, done, "completing twice changes nothing");
    let open = patch(serde_json::json!({"status": "pending"})).unwrap().apply(&done, later);
    assert_eq!((open.status, open.completed_at), (Status::Pending, None));
}

#[test]
fn lists_show_pending_tasks_unless_told_otherwise() {
    let now = clock().now();
    let status = |word| FilterDraft { status: word, ..FilterDraft::default() }.check(now, &user()).map(|f| f.status);
    assert_eq!(status(None), Ok(Some(Status::Pending)));
    assert_eq!(status(Some("all")), Ok(None));
    assert_eq!(status(Some("Completed")), Ok(Some(Status::Completed)));
    assert_eq!(fields(&status(Some("open")).unwrap_err()), ["status"]);
}
