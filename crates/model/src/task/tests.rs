//! Tests of the validation rules of tasks.

use super::*;

fn user() -> User {
    User::local(TimeZone::get("Europe/Berlin").unwrap())
}

fn clock() -> Clock {
    Clock::manual("2026-01-10T12:00:00Z".parse().unwrap())
}

fn check(draft: TaskDraft) -> Result<Task, Invalid> {
    draft.check(TaskLimits::default(), &clock(), &user())
}

fn titled(title: &str) -> TaskDraft {
    TaskDraft { title: title.to_owned(), ..TaskDraft::default() }
}

fn fields(invalid: &Invalid) -> Vec<&str> {
    invalid.violations.iter().map(|v| v.field.as_str()).collect()
}

#[test]
fn a_draft_becomes_a_pending_task_of_medium_priority() {
    // AGENT-10, TASK-1
    let task = check(titled("  pay\trent ")).unwrap();
    assert_eq!((task.title.as_str(), task.status, task.priority), ("pay rent", TaskStatus::Pending, Priority::Medium));
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
fn all_violations_are_reported_at_once() {
    // TASK-1
    let draft = TaskDraft {
        title: String::new(),
        description: Some("x".repeat(1001)),
        priority: Some("urgent".into()),
        due_date: Some("soon".into()),
        recurrence: Some("often".into()),
        tags: Some(vec!["ok".into(), " # ".into()]),
        ..TaskDraft::default()
    };
    let invalid = check(draft).unwrap_err();
    assert_eq!(fields(&invalid), ["title", "description", "priority", "due_date", "recurrence", "tags[1]"]);
}

#[test]
fn priority_is_read_in_any_case() {
    // AGENT-10
    let task = check(TaskDraft { priority: Some("HIGH".into()), ..titled("a") }).unwrap();
    assert_eq!(task.priority, Priority::High);
}

#[test]
fn tags_are_cleaned_and_deduplicated() {
    // AGENT-10
    let tags = ["#work", "Work", "home office", "#"].map(String::from).to_vec();
    let invalid = check(TaskDraft { tags: Some(tags.clone()), ..titled("a") }).unwrap_err();
    assert_eq!(fields(&invalid), ["tags[3]"]);
    let task = check(TaskDraft { tags: Some(tags[..3].to_vec()), ..titled("a") }).unwrap();
    assert_eq!(task.tags, ["work", "home office"]);
    for many in [21, 200_000] {
        let many = (0..many).map(|n| n.to_string()).collect();
        assert_eq!(fields(&check(TaskDraft { tags: Some(many), ..titled("a") }).unwrap_err()), ["tags"]);
    }
}

fn patch(json: serde_json::Value) -> Result<TaskChange, Invalid> {
    serde_json::from_value::<TaskPatch>(json).unwrap().check(TaskLimits::default(), &user())
}

#[test]
fn null_clears_a_field_and_absence_keeps_it() {
    let task =
        check(TaskDraft { description: Some("d".into()), due_date: Some("2026-01-31".into()), ..titled("a") }).unwrap();
    let next = patch(serde_json::json!({"due_date": null, "title": "b"})).unwrap().apply(&task, task.created_at);
    assert_eq!((next.title.as_str(), next.due_date, next.description.as_deref()), ("b", None, Some("d")));
    assert!(serde_json::from_str::<TaskPatch>(r#"{"title": null}"#).is_err(), "a title cannot be cleared");
}

#[test]
fn an_empty_patch_is_rejected() {
    // TASK-1
    assert_eq!(fields(&patch(serde_json::json!({})).unwrap_err()), ["body"]);
}

#[test]
fn completing_sets_the_time_and_reopening_clears_it() {
    let task = check(titled("a")).unwrap();
    let later = task.created_at + std::time::Duration::from_secs(60);
    let done = TaskChange::complete().apply(&task, later);
    assert_eq!((done.status, done.completed_at, done.updated_at), (TaskStatus::Completed, Some(later), later));
    let again = TaskChange::complete().apply(&done, later + std::time::Duration::from_secs(60));
    assert_eq!(again, done, "completing twice changes nothing");
    let open = patch(serde_json::json!({"status": "pending"})).unwrap().apply(&done, later);
    assert_eq!((open.status, open.completed_at), (TaskStatus::Pending, None));
}

#[test]
fn only_pending_tasks_are_selected_by_default() {
    let now = clock().now();
    let status =
        |word| TaskFilterDraft { status: word, ..TaskFilterDraft::default() }.check(now, &user()).map(|f| f.status);
    assert_eq!(status(None), Ok(Some(TaskStatus::Pending)));
    assert_eq!(status(Some("all")), Ok(None));
    assert_eq!(status(Some("Completed")), Ok(Some(TaskStatus::Completed)));
    assert_eq!(fields(&status(Some("open")).unwrap_err()), ["status"]);
}
