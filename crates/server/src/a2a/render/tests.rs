//! What is told of a task, event by event, and that whoever asks later sees the same.

use model::agent::Seconds;
use model::execution::{Artifact, Execution, Exit, Outcome, Status};
use serde_json::json;

use super::*;

const SECOND: i64 = 1_000_000;

/// An execution of the task number 1.
fn run(id: u128) -> Run {
    let at = Timestamp::from_microsecond(1_800_000_000 * SECOND).unwrap();
    let execution = Execution::new(Uuid::from_u128(id), "a", Seconds::new(1), at);
    let task = OfTask { id: Uuid::from_u128(1), context_id: "c".into() };
    Run { task, execution, artifacts: Vec::new(), truncated: false }
}

fn ended(id: u128, status: Status, outcome: Option<Outcome>) -> Run {
    let mut run = run(id);
    let at = run.execution.created_at;
    let exit = if status == Status::Failure { Exit::with_error("it broke", None) } else { Exit::default() };
    run.execution.claim(at).unwrap();
    run.execution.start(None, at).unwrap();
    run.execution.end(status, Exit { outcome, ..exit }, at).unwrap();
    run
}

fn asked(text: &str) -> Message {
    Message { message_id: text.into(), ..Message::new(Role::User, vec![types::Part::text(text)]) }
}

fn event(seq: i64, kind: Kind, stream: &str, text: &str) -> Event {
    let at = Timestamp::from_microsecond((1_800_000_000 + seq) * SECOND).unwrap();
    Event { seq, kind, stream: stream.into(), start: seq, at, text: text.into() }
}

fn state(seq: i64, state: &str) -> Event {
    event(seq, Kind::State, "", state)
}

fn print(seq: i64, text: &str) -> Event {
    event(seq, Kind::Output, "stdout", text)
}

fn said(seq: i64, said: Value) -> Event {
    event(seq, Kind::Said, "said", &said.to_string())
}

fn story() -> Story {
    let mut story = Story::new(run(1).task, Form::default());
    story.begin(&run(1), [asked("do it")]);
    story
}

/// In short: the state and its words, or the artifact, its text, whether it goes on and whether it ends.
fn short(update: &StreamResponse) -> String {
    match update {
        StreamResponse::StatusUpdate(update) => {
            let words = update.status.message.as_ref().and_then(Message::text).unwrap_or_default();
            format!("{:?} {words}", update.status.state).trim().to_owned()
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

fn tell(story: &mut Story, events: &[Event]) -> Vec<String> {
    events.iter().filter_map(|event| story.tell(event)).map(|update| short(&update)).collect()
}

fn end(story: &mut Story, run: &Run) -> Vec<String> {
    story.end(run, Vec::new()).iter().map(short).collect()
}

fn text_of<'a>(task: &'a Task, id: &str) -> &'a str {
    let artifact = task.artifacts.iter().flatten().find(|artifact| artifact.artifact_id == id).unwrap();
    artifact.parts[0].as_text().unwrap()
}

#[test]
fn output_is_an_artifact_that_grows() {
    // A2A-1
    let mut story = story();
    let begun = [state(1, "idle"), state(2, "starting"), state(3, "running")];
    assert_eq!(tell(&mut story, &begun), ["Working"], "each state once");
    let said = [
        print(4, "one "),
        event(5, Kind::Output, "stderr", "noise"),
        print(6, "two"),
        event(7, Kind::Gap, "stdout", "9"),
    ];
    assert_eq!(tell(&mut story, &said), ["output=one ", "output+two", "output+\n[… 9 bytes left out …]\n"]);
    assert_eq!(text_of(&story.task(None), "output"), "one two\n[… 9 bytes left out …]\n");
    tell(&mut story, &[state(8, "completed")]);
    assert_eq!(end(&mut story, &ended(1, Status::Success, None)), ["output+!", "Completed"]);
    let task = story.task(None);
    assert_eq!((task.id.as_str(), task.context_id.as_str()), (&*Uuid::from_u128(1).to_string(), "c"));
    assert_eq!((task.status.state, task.status.message), (TaskState::Completed, None));
    assert_eq!(task.history.unwrap(), [asked("do it")]);
}

#[test]
fn an_answer_in_a_file_takes_the_place_of_what_was_said() {
    let file = |seq, text: &str| event(seq, Kind::Output, "file", text);
    let mut live = story();
    let told = tell(&mut live, &[print(1, "thinking"), file(2, "an"), file(3, "swer"), print(4, "bye")]);
    assert_eq!(told, ["output=thinking", "output=an", "output+swer"]);
    assert_eq!(text_of(&live.task(None), "output"), "answer");
    let mut late = Story::new(run(1).task, Form { answers_late: true, ..Form::default() });
    late.begin(&run(1), []);
    assert_eq!(tell(&mut late, &[print(1, "thinking"), file(2, "answer")]), ["output=answer"]);
}

#[test]
fn another_try_begins_anew() {
    // A2A-1
    let mut story = story();
    tell(&mut story, &[state(1, "idle"), state(2, "starting"), state(3, "running"), print(4, "first")]);
    let again = [state(5, "failed"), state(6, "starting"), state(7, "running"), print(8, "second")];
    assert_eq!(tell(&mut story, &again), ["output=second"], "nobody is told to wait again");
    assert_eq!(text_of(&story.task(None), "output"), "second");
    // Also after a restart, when it waits in the queue once more.
    let later =
        [state(9, "failed"), state(10, "cleanup"), state(11, "idle"), state(12, "starting"), print(13, "third")];
    assert_eq!(tell(&mut story, &later), ["output=third"]);
    assert_eq!(story.task(None).status.state, TaskState::Working);
}

#[test]
fn a_question_and_its_answer_are_one_task() {
    // A2A-1
    let mut story = story();
    tell(&mut story, &[state(1, "idle"), state(2, "starting"), print(3, " sure? \n")]);
    let asks = end(&mut story, &ended(1, Status::Success, Some(Outcome::Asks)));
    assert_eq!(asks, ["output+!", "InputRequired sure?"]);
    story.begin(&run(2), [asked("yes")]);
    let told = tell(&mut story, &[state(1, "idle"), state(2, "starting"), print(3, "done")]);
    assert_eq!(told, ["Working", "output-2=done"], "it waits for its place while it is at work");
    end(&mut story, &ended(2, Status::Success, None));
    let task = story.task(None);
    let history: Vec<_> = task.history.iter().flatten().filter_map(Message::text).collect();
    assert_eq!(history, ["do it", "sure?", "yes"]);
    assert_eq!((text_of(&task, "output"), text_of(&task, "output-2")), (" sure? \n", "done"));
    assert_eq!(task.status.message, None);
    for (length, left) in [(0, None), (1, Some(1)), (3, Some(3)), (7, Some(3))] {
        assert_eq!(story.task(Some(length)).history.map(|history| history.len()), left);
    }
}

#[test]
fn words_on_how_it_goes() {
    // A2A-1
    let words = |text: &str| json!({"status": [{"text": text}]});
    let mut story = story();
    assert_eq!(
        tell(&mut story, &[said(1, words("soon")), said(2, words("almost"))]),
        ["Working soon", "Working almost"]
    );
    let mut completed = story.clone();
    assert_eq!(end(&mut completed, &ended(1, Status::Success, None)), ["Completed almost"]);
    let mut failed = story.clone();
    assert_eq!(end(&mut failed, &ended(1, Status::Failure, None)), ["Failed it broke"]);
    let history = |story: &Story| {
        story.task(None).history.iter().flatten().filter_map(Message::text).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(history(&completed), "do it soon");
    assert_eq!(history(&failed), "do it soon almost");
    let mut rejected = story.clone();
    assert_eq!(end(&mut rejected, &ended(1, Status::Failure, Some(Outcome::Rejected))), ["Rejected almost"]);
    let message = completed.task(None).status.message.unwrap();
    assert_eq!(message.message_id, format!("{}-2", Uuid::from_u128(1)));
    assert_eq!((message.role, message.task_id.unwrap()), (Role::Agent, Uuid::from_u128(1).to_string()));
}

#[test]
fn pieces_of_artifacts() {
    // A2A-1
    let piece = |text: &str, append: bool, last: bool| json!({"artifact": {"artifact_id": "x", "parts": [{"text": text}], "append": append, "last": last}});
    let mut story = story();
    let told = tell(
        &mut story,
        &[said(1, piece("1", true, false)), said(2, piece("2", true, true)), said(3, piece("3", false, true))],
    );
    assert_eq!(told, ["x=1", "x+2!", "x=3!"], "what has no beginning begins");
    assert_eq!(text_of(&story.task(None), "x"), "3");
    let mut run = ended(1, Status::Success, None);
    run.artifacts = vec![Artifact { name: "a.txt".into(), size: 1 }];
    let updates = story.end(&run, vec![("a.txt".into(), types::Part::raw(vec![7]))]);
    assert_eq!(updates.iter().map(short).collect::<Vec<_>>(), ["file:a.txt=!", "Completed"]);
    assert_eq!(story.task(None).artifacts.unwrap().len(), 2);
}

#[test]
fn a_message_is_an_answer_by_itself() {
    // A2A-1
    let message = json!({"message": [{"text": "hello"}]});
    let mut story = story();
    assert!(!story.has_begun() && story.answer().is_none());
    assert!(tell(&mut story, &[state(1, "idle"), state(2, "starting"), said(3, message)])[..] == ["Working"]);
    let answer = story.answer().unwrap();
    assert_eq!(
        (answer.text(), answer.task_id.as_deref(), answer.context_id.as_deref()),
        (Some("hello"), None, Some("c"))
    );
    assert_eq!(end(&mut story, &ended(1, Status::Success, Some(Outcome::Message))), ["Completed hello"]);
}

#[test]
fn in_short_there_are_no_artifacts() {
    let mut story = Story::new(run(1).task, Form { in_short: true, ..Form::default() });
    story.begin(&run(1), []);
    tell(&mut story, &[print(1, "long"), said(2, json!({"artifact": {"artifact_id": "x", "parts": [{"text": "1"}]}}))]);
    story.said("who?\n");
    end(&mut story, &ended(1, Status::Success, Some(Outcome::Asks)));
    let task = story.task(Some(0));
    assert_eq!((task.artifacts, task.history), (None, None));
    assert_eq!(task.status.message.unwrap().text(), Some("who?"));
}

#[test]
fn each_state_has_its_name_and_back() {
    for standing in Standing::ALL {
        assert_eq!(standing_of(&state_of(*standing)), Some(*standing));
    }
    assert_eq!(standing_of(&TaskState::Unspecified), None);
}

#[test]
fn a_long_question_is_cut_at_its_beginning() {
    let mut story = story();
    tell(&mut story, &[print(1, &"ü".repeat(LONGEST_QUESTION)), print(2, "?")]);
    end(&mut story, &ended(1, Status::Success, Some(Outcome::Asks)));
    let task = story.task(None);
    let text = task.status.message.as_ref().unwrap().text().unwrap();
    assert!(text.ends_with("ü?") && text.len() <= LONGEST_QUESTION && text.len() > LONGEST_QUESTION - 4);
}
