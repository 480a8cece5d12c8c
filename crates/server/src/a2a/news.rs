//! What somebody who wants to be told of a task is told next, in the words of their version. Pure.
//!
//! In 1.x: that it is at work; then, when it asks or has ended, what it made, a piece at a time, and how it stands. In 0.3:
//! the whole task, each time it stands otherwise. What was overtaken meanwhile is not told any more.

use ::a2a::types::{Artifact, Message, StreamResponse, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent};
use ::a2a::{Version, v03};
use model::execution::Standing;
use store::a2a::pushes::Told;
use uuid::Uuid;

/// Whatever made more than so many pieces is told of as a whole.
const MANY: usize = 5;

/// A task as it stands.
#[derive(Clone, Debug)]
pub(crate) struct Now {
    /// The last of its executions.
    pub(crate) execution: Uuid,
    pub(crate) standing: Standing,
    pub(crate) task: Task,
    /// What that execution made.
    pub(crate) made: Vec<Artifact>,
    /// The answer, where it is a message.
    pub(crate) answer: Option<Message>,
}

/// What is to be done for one who was told so far.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Next {
    /// They are told this, and so far then.
    Tell(i64, String),
    /// Nothing until the task goes on.
    Rest,
    /// Nothing now; more will come.
    Wait,
}

/// What comes next for one of this version.
pub(crate) fn next(told: Told, now: &Now, version: Version) -> serde_json::Result<Next> {
    // What was told of executions before is no measure for this one.
    let seq = if told.execution == now.execution { told.seq } else { Told::NOTHING };
    let goal = match now.standing {
        Standing::Waiting => return Ok(Next::Wait),
        Standing::Working => Told::WORKING,
        standing if standing.is_final() => Told::END,
        _ => Told::ASKED,
    };
    if seq >= goal {
        return Ok(if goal == Told::WORKING { Next::Wait } else { Next::Rest });
    }
    let (seq, body) = match version {
        Version::V03 => (goal, serde_json::to_string(&v03::Task::from(now.task.clone()))?),
        Version::V10 => {
            let (seq, update) = update(told, seq, goal, now);
            (seq, serde_json::to_string(&update)?)
        }
    };
    Ok(Next::Tell(seq, body))
}

fn update(told: Told, seq: i64, goal: i64, now: &Now) -> (i64, StreamResponse) {
    if goal == Told::WORKING || seq == Told::ASKED {
        return (goal, status(now));
    }
    if let Some(answer) = &now.answer {
        return (goal, StreamResponse::Message(answer.clone()));
    }
    // What an execution before made was not told to its end: the task has all of it.
    let missed = told.execution != now.execution && told.seq < Told::ASKED;
    if missed || now.made.len() > MANY {
        return (goal, StreamResponse::Task(now.task.clone()));
    }
    let pieces = usize::try_from(seq.max(Told::WORKING) - Told::WORKING).unwrap_or(usize::MAX);
    match now.made.get(pieces) {
        Some(artifact) => (seq.max(Told::WORKING) + 1, piece(&now.task, artifact)),
        None => (goal, status(now)),
    }
}

fn status(Now { task, .. }: &Now) -> StreamResponse {
    let task_id = task.id.clone();
    let context_id = task.context_id.clone();
    let status = task.status.clone();
    StreamResponse::StatusUpdate(TaskStatusUpdateEvent { task_id, context_id, status, metadata: None })
}

/// All of it at once.
fn piece(task: &Task, artifact: &Artifact) -> StreamResponse {
    StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
        task_id: task.id.clone(),
        context_id: task.context_id.clone(),
        artifact: artifact.clone(),
        append: Some(false),
        last_chunk: Some(true),
        metadata: None,
    })
}

#[cfg(test)]
mod tests {
    use ::a2a::types::{Part, Role, TaskState, TaskStatus};
    use serde_json::{Value, json};

    use super::*;

    const FIRST: Uuid = Uuid::from_u128(1);
    const SECOND: Uuid = Uuid::from_u128(2);

    fn artifact(id: &str) -> Artifact {
        let name = None;
        let description = None;
        let metadata = None;
        let extensions = None;
        Artifact { artifact_id: id.into(), name, description, parts: vec![Part::text("x")], metadata, extensions }
    }

    fn now(execution: Uuid, standing: Standing, made: &[&str]) -> Now {
        let made: Vec<_> = made.iter().map(|id| artifact(id)).collect();
        let state = match standing {
            Standing::Working => TaskState::Working,
            Standing::Asks => TaskState::InputRequired,
            Standing::Cancelled => TaskState::Canceled,
            _ => TaskState::Completed,
        };
        let task = Task {
            id: FIRST.to_string(),
            context_id: "c".into(),
            status: TaskStatus { state, message: None, timestamp: None },
            artifacts: Some(made.clone()),
            history: None,
            metadata: None,
        };
        Now { execution, standing, task, made, answer: None }
    }

    /// Everything that one is told, from there on, while nothing more happens.
    fn all(mut told: Told, now: &Now, version: Version) -> Vec<Value> {
        let mut said = Vec::new();
        while let Next::Tell(seq, body) = next(told, now, version).unwrap() {
            assert!(seq > told.seq || told.execution != now.execution, "it goes on");
            told = Told { execution: now.execution, seq };
            said.push(serde_json::from_str(&body).unwrap());
        }
        said
    }

    fn states(said: &[Value]) -> Vec<String> {
        let say = |update: &Value| {
            let (kind, inner) = update.as_object().unwrap().iter().next().unwrap();
            let what = inner["status"]["state"].as_str().or(inner["artifact"]["artifactId"].as_str());
            format!("{kind} {}", what.unwrap_or_default().trim_start_matches("TASK_STATE_"))
        };
        said.iter().map(say).collect()
    }

    #[test]
    fn a_task_from_its_beginning_to_its_end() {
        // A2A-1
        let told = |seq| Told { execution: FIRST, seq };
        let waiting = now(FIRST, Standing::Waiting, &[]);
        assert_eq!(next(told(0), &waiting, Version::V10).unwrap(), Next::Wait);
        let working = now(FIRST, Standing::Working, &["a"]);
        assert_eq!(states(&all(told(0), &working, Version::V10)), ["statusUpdate WORKING"]);
        assert_eq!(next(told(1), &working, Version::V10).unwrap(), Next::Wait);
        let ended = now(FIRST, Standing::Completed, &["a", "b"]);
        let expected = ["artifactUpdate a", "artifactUpdate b", "statusUpdate COMPLETED"];
        assert_eq!(states(&all(told(1), &ended, Version::V10)), expected);
        assert_eq!(states(&all(told(0), &ended, Version::V10)), expected, "that it was at work is told no more");
        assert_eq!(states(&all(told(2), &ended, Version::V10)), expected[1..], "it goes on where it was");
        assert_eq!(next(told(Told::END), &ended, Version::V10).unwrap(), Next::Rest);
        let piece = &all(told(1), &ended, Version::V10)[0]["artifactUpdate"];
        assert_eq!((&piece["append"], &piece["lastChunk"]), (&json!(false), &json!(true)));
    }

    #[test]
    fn a_question_its_answer_and_its_withdrawal() {
        // A2A-1
        let asked = now(FIRST, Standing::Asks, &["a"]);
        let told = |execution, seq| Told { execution, seq };
        let expected = ["artifactUpdate a", "statusUpdate INPUT_REQUIRED"];
        assert_eq!(states(&all(told(FIRST, 1), &asked, Version::V10)), expected);
        assert_eq!(next(told(FIRST, Told::ASKED), &asked, Version::V10).unwrap(), Next::Rest);
        let withdrawn = now(FIRST, Standing::Cancelled, &["a"]);
        assert_eq!(states(&all(told(FIRST, Told::ASKED), &withdrawn, Version::V10)), ["statusUpdate CANCELED"]);
        let answered = now(SECOND, Standing::Completed, &["b"]);
        let expected = ["artifactUpdate b", "statusUpdate COMPLETED"];
        assert_eq!(states(&all(told(FIRST, Told::ASKED), &answered, Version::V10)), expected);
        let working = now(SECOND, Standing::Working, &[]);
        assert_eq!(states(&all(told(FIRST, Told::ASKED), &working, Version::V10)), ["statusUpdate WORKING"]);
        // Of the first one not everything was told: then everything is.
        assert_eq!(states(&all(told(FIRST, 1), &answered, Version::V10)), ["task COMPLETED"]);
    }

    #[test]
    fn in_0_3_it_is_always_the_whole_task() {
        // A2A-1
        let told = |seq| Told { execution: FIRST, seq };
        let ended = now(FIRST, Standing::Completed, &["a", "b"]);
        let said = all(told(0), &ended, Version::V03);
        assert_eq!(said.len(), 1);
        assert_eq!((&said[0]["kind"], &said[0]["status"]["state"]), (&json!("task"), &json!("completed")));
        assert_eq!(said[0]["artifacts"].as_array().unwrap().len(), 2);
        let asked = now(FIRST, Standing::Asks, &[]);
        assert_eq!(all(told(1), &asked, Version::V03)[0]["status"]["state"], "input-required");
        let working = now(FIRST, Standing::Working, &[]);
        assert_eq!(all(told(0), &working, Version::V03)[0]["status"]["state"], "working");
    }

    #[test]
    fn many_pieces_are_told_as_a_whole_and_a_message_is_one() {
        let told = Told { execution: FIRST, seq: 1 };
        let names: Vec<_> = (0..=MANY).map(|n| n.to_string()).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let mut ended = now(FIRST, Standing::Completed, &names);
        assert_eq!(states(&all(told, &ended, Version::V10)), ["task COMPLETED"]);
        ended.made.pop();
        assert_eq!(all(told, &ended, Version::V10).len(), MANY + 1);
        ended.answer = Some(Message::new(Role::Agent, vec![Part::text("hi")]));
        let said = all(told, &ended, Version::V10);
        assert_eq!((said.len(), &said[0]["message"]["parts"][0]["text"]), (1, &json!("hi")));
    }
}
