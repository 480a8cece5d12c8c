//! The updates of a task, and the equality of the task with the sum of its updates.

use model::agent::Seconds;
use model::execution::{Artifact, AttemptExit, Execution, ExecutionOutcome, ExecutionStatus};
use serde_json::json;

use super::*;

const SECOND: i64 = 1_000_000;

/// Returns an execution of the task with the id 1.
fn run(id: u128) -> A2aRun {
    let at = Timestamp::from_microsecond(1_800_000_000 * SECOND).unwrap();
    let execution = Execution::new(Uuid::from_u128(id), "a", Seconds::new(1), at);
    let task = A2aTaskRef { id: Uuid::from_u128(1), context_id: "c".into() };
    A2aRun { task, execution, artifacts: Vec::new(), truncated: false }
}

fn ended(id: u128, status: ExecutionStatus, outcome: Option<ExecutionOutcome>) -> A2aRun {
    let mut run = run(id);
    let at = run.execution.created_at;
    let exit = if status == ExecutionStatus::Failure {
        AttemptExit::with_error("it broke", None)
    } else {
        AttemptExit::default()
    };
    run.execution.claim(at).unwrap();
    run.execution.start(None, at).unwrap();
    run.execution.end(status, AttemptExit { outcome, ..exit }, at).unwrap();
    run
}

fn user_message(text: &str) -> Message {
    Message { message_id: text.into(), ..Message::new(Role::User, vec![types::Part::text(text)]) }
}

fn event(seq: i64, kind: ExecutionEventKind, stream: &str, text: &str) -> ExecutionEvent {
    let at = Timestamp::from_microsecond((1_800_000_000 + seq) * SECOND).unwrap();
    ExecutionEvent { seq, kind, stream: stream.into(), start: seq, at, text: text.into() }
}

fn state(seq: i64, state: &str) -> ExecutionEvent {
    event(seq, ExecutionEventKind::State, "", state)
}

fn output(seq: i64, text: &str) -> ExecutionEvent {
    event(seq, ExecutionEventKind::Output, "stdout", text)
}

fn rich_output(seq: i64, output: Value) -> ExecutionEvent {
    event(seq, ExecutionEventKind::RichOutput, "said", &output.to_string())
}

fn projection() -> TaskProjection {
    let mut projection = TaskProjection::new(run(1).task, ProjectionOptions::default());
    projection.begin_run(&run(1), [user_message("do it")]);
    projection
}

/// Describes an update: the state and its message, or the artifact, its text, and whether it appends and ends.
fn describe(update: &StreamResponse) -> String {
    match update {
        StreamResponse::StatusUpdate(update) => {
            let text = update.status.message.as_ref().and_then(Message::text).unwrap_or_default();
            format!("{:?} {text}", update.status.state).trim().to_owned()
        }
        StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent { artifact, append, last_chunk, .. }) => {
            let text: String = artifact.parts.iter().filter_map(types::Part::as_text).collect();
            let append = if *append == Some(true) { "+" } else { "=" };
            let last = if *last_chunk == Some(true) { "!" } else { "" };
            format!("{}{append}{text}{last}", artifact.artifact_id)
        }
        other => format!("{other:?}"),
    }
}

fn apply(projection: &mut TaskProjection, events: &[ExecutionEvent]) -> Vec<String> {
    events.iter().filter_map(|event| projection.apply(event)).map(|update| describe(&update)).collect()
}

fn end_run(projection: &mut TaskProjection, run: &A2aRun) -> Vec<String> {
    projection.end_run(run, Vec::new()).iter().map(describe).collect()
}

fn text_of<'a>(task: &'a Task, id: &str) -> &'a str {
    let artifact = task.artifacts.iter().flatten().find(|artifact| artifact.artifact_id == id).unwrap();
    artifact.parts[0].as_text().unwrap()
}

#[test]
fn output_is_an_artifact_that_grows() {
    // A2A-1
    let mut projection = projection();
    let begun = [state(1, "idle"), state(2, "starting"), state(3, "running")];
    assert_eq!(apply(&mut projection, &begun), ["Working"], "each state is reported once");
    let events = [
        output(4, "one "),
        event(5, ExecutionEventKind::Output, "stderr", "noise"),
        output(6, "two"),
        event(7, ExecutionEventKind::Gap, "stdout", "9"),
    ];
    assert_eq!(apply(&mut projection, &events), ["output=one ", "output+two", "output+\n[… 9 bytes left out …]\n"]);
    assert_eq!(text_of(&projection.task(None), "output"), "one two\n[… 9 bytes left out …]\n");
    apply(&mut projection, &[state(8, "completed")]);
    assert_eq!(end_run(&mut projection, &ended(1, ExecutionStatus::Success, None)), ["output+!", "Completed"]);
    let task = projection.task(None);
    assert_eq!((task.id.as_str(), task.context_id.as_str()), (&*Uuid::from_u128(1).to_string(), "c"));
    assert_eq!((task.status.state, task.status.message), (TaskState::Completed, None));
    assert_eq!(task.history.unwrap(), [user_message("do it")]);
}

#[test]
fn an_answer_in_a_file_replaces_the_output() {
    let file = |seq, text: &str| event(seq, ExecutionEventKind::Output, "file", text);
    let mut live = projection();
    let updates = apply(&mut live, &[output(1, "thinking"), file(2, "an"), file(3, "swer"), output(4, "bye")]);
    assert_eq!(updates, ["output=thinking", "output=an", "output+swer"]);
    assert_eq!(text_of(&live.task(None), "output"), "answer");
    let mut late =
        TaskProjection::new(run(1).task, ProjectionOptions { answers_at_end: true, ..ProjectionOptions::default() });
    late.begin_run(&run(1), []);
    assert_eq!(apply(&mut late, &[output(1, "thinking"), file(2, "answer")]), ["output=answer"]);
}

#[test]
fn a_retry_discards_the_previous_output() {
    // A2A-1
    let mut projection = projection();
    apply(&mut projection, &[state(1, "idle"), state(2, "starting"), state(3, "running"), output(4, "first")]);
    let again = [state(5, "failed"), state(6, "starting"), state(7, "running"), output(8, "second")];
    assert_eq!(apply(&mut projection, &again), ["output=second"], "no second submitted status is sent");
    assert_eq!(text_of(&projection.task(None), "output"), "second");
    // The same applies after a restart, when the execution is queued again.
    let later =
        [state(9, "failed"), state(10, "cleanup"), state(11, "idle"), state(12, "starting"), output(13, "third")];
    assert_eq!(apply(&mut projection, &later), ["output=third"]);
    assert_eq!(projection.task(None).status.state, TaskState::Working);
}

#[test]
fn a_question_and_its_answer_are_one_task() {
    // A2A-1
    let mut projection = projection();
    apply(&mut projection, &[state(1, "idle"), state(2, "starting"), output(3, " sure? \n")]);
    let asks = end_run(&mut projection, &ended(1, ExecutionStatus::Success, Some(ExecutionOutcome::InputRequired)));
    assert_eq!(asks, ["output+!", "InputRequired sure?"]);
    projection.begin_run(&run(2), [user_message("yes")]);
    let updates = apply(&mut projection, &[state(1, "idle"), state(2, "starting"), output(3, "done")]);
    assert_eq!(updates, ["Working", "output-2=done"], "a queued follow-up is reported as working");
    end_run(&mut projection, &ended(2, ExecutionStatus::Success, None));
    let task = projection.task(None);
    let history: Vec<_> = task.history.iter().flatten().filter_map(Message::text).collect();
    assert_eq!(history, ["do it", "sure?", "yes"]);
    assert_eq!((text_of(&task, "output"), text_of(&task, "output-2")), (" sure? \n", "done"));
    assert_eq!(task.status.message, None);
    for (length, left) in [(0, None), (1, Some(1)), (3, Some(3)), (7, Some(3))] {
        assert_eq!(projection.task(Some(length)).history.map(|history| history.len()), left);
    }
}

#[test]
fn status_messages_are_reported_and_move_to_the_history() {
    // A2A-1
    let status = |text: &str| json!({"status": [{"text": text}]});
    let mut projection = projection();
    assert_eq!(
        apply(&mut projection, &[rich_output(1, status("soon")), rich_output(2, status("almost"))]),
        ["Working soon", "Working almost"]
    );
    let mut completed = projection.clone();
    assert_eq!(end_run(&mut completed, &ended(1, ExecutionStatus::Success, None)), ["Completed almost"]);
    let mut failed = projection.clone();
    assert_eq!(end_run(&mut failed, &ended(1, ExecutionStatus::Failure, None)), ["Failed it broke"]);
    let history = |projection: &TaskProjection| {
        projection.task(None).history.iter().flatten().filter_map(Message::text).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(history(&completed), "do it soon");
    assert_eq!(history(&failed), "do it soon almost");
    let mut rejected = projection.clone();
    assert_eq!(
        end_run(&mut rejected, &ended(1, ExecutionStatus::Failure, Some(ExecutionOutcome::Rejected))),
        ["Rejected almost"]
    );
    let message = completed.task(None).status.message.unwrap();
    assert_eq!(message.message_id, format!("{}-2", Uuid::from_u128(1)));
    assert_eq!((message.role, message.task_id.unwrap()), (Role::Agent, Uuid::from_u128(1).to_string()));
}

#[test]
fn artifact_chunks_are_appended_or_replaced() {
    // A2A-1
    let chunk = |text: &str, append: bool, last: bool| json!({"artifact": {"artifact_id": "x", "parts": [{"text": text}], "append": append, "last": last}});
    let mut projection = projection();
    let updates = apply(
        &mut projection,
        &[
            rich_output(1, chunk("1", true, false)),
            rich_output(2, chunk("2", true, true)),
            rich_output(3, chunk("3", false, true)),
        ],
    );
    assert_eq!(updates, ["x=1", "x+2!", "x=3!"], "a chunk without a predecessor starts the artifact");
    assert_eq!(text_of(&projection.task(None), "x"), "3");
    let mut run = ended(1, ExecutionStatus::Success, None);
    run.artifacts = vec![Artifact { name: "a.txt".into(), size: 1 }];
    let updates = projection.end_run(&run, vec![("a.txt".into(), types::Part::raw(vec![7]))]);
    assert_eq!(updates.iter().map(describe).collect::<Vec<_>>(), ["file:a.txt=!", "Completed"]);
    assert_eq!(projection.task(None).artifacts.unwrap().len(), 2);
}

#[test]
fn an_answer_may_be_a_message() {
    // A2A-1
    let message = json!({"message": [{"text": "hello"}]});
    let mut projection = projection();
    assert!(!projection.has_content() && projection.answer().is_none());
    assert!(
        apply(&mut projection, &[state(1, "idle"), state(2, "starting"), rich_output(3, message)])[..] == ["Working"]
    );
    let answer = projection.answer().unwrap();
    assert_eq!(
        (answer.text(), answer.task_id.as_deref(), answer.context_id.as_deref()),
        (Some("hello"), None, Some("c"))
    );
    assert_eq!(
        end_run(&mut projection, &ended(1, ExecutionStatus::Success, Some(ExecutionOutcome::Message))),
        ["Completed hello"]
    );
}

#[test]
fn artifacts_can_be_omitted() {
    let mut projection =
        TaskProjection::new(run(1).task, ProjectionOptions { without_artifacts: true, ..ProjectionOptions::default() });
    projection.begin_run(&run(1), []);
    apply(
        &mut projection,
        &[output(1, "long"), rich_output(2, json!({"artifact": {"artifact_id": "x", "parts": [{"text": "1"}]}}))],
    );
    projection.set_question_text("who?\n");
    end_run(&mut projection, &ended(1, ExecutionStatus::Success, Some(ExecutionOutcome::InputRequired)));
    let task = projection.task(Some(0));
    assert_eq!((task.artifacts, task.history), (None, None));
    assert_eq!(task.status.message.unwrap().text(), Some("who?"));
}

#[test]
fn states_are_converted_in_both_directions() {
    for status in PublicStatus::ALL {
        assert_eq!(public_status(&task_state(*status)), Some(*status));
    }
    assert_eq!(public_status(&TaskState::Unspecified), None);
}

#[test]
fn long_questions_are_cut_at_the_beginning() {
    let mut projection = projection();
    apply(&mut projection, &[output(1, &"ü".repeat(MAX_QUESTION_BYTES)), output(2, "?")]);
    end_run(&mut projection, &ended(1, ExecutionStatus::Success, Some(ExecutionOutcome::InputRequired)));
    let task = projection.task(None);
    let text = task.status.message.as_ref().unwrap().text().unwrap();
    assert!(text.ends_with("ü?") && text.len() <= MAX_QUESTION_BYTES && text.len() > MAX_QUESTION_BYTES - 4);
}
