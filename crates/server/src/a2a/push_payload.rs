//! Computes the next push notification of a task for a configuration. Pure.
//!
//! In 1.x the notifications are: the status `working`, and, when the task needs input or has ended, one update for each
//! artifact and one for the status. One notification replaces these updates if the answer is a message (that message),
//! or if there are many artifacts or updates of an earlier execution were not sent (the whole task). In 0.3 each
//! notification is the whole task after a change of its status. Outdated notifications are skipped.

use ::a2a::types::{Artifact, Message, StreamResponse, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent};
use ::a2a::{Version, v03};
use model::execution::PublicStatus;
use store::a2a::pushes::PushProgress;
use uuid::Uuid;

/// The maximum number of artifact updates. Tasks with more artifacts are sent as a whole.
const MAX_ARTIFACT_UPDATES: usize = 5;

/// The current state of a task.
#[derive(Clone, Debug)]
pub(crate) struct TaskSnapshot {
    /// The last execution of the task.
    pub(crate) execution: Uuid,
    pub(crate) status: PublicStatus,
    pub(crate) task: Task,
    /// The artifacts of that execution.
    pub(crate) artifacts: Vec<Artifact>,
    /// The answer, if it is a message.
    pub(crate) answer: Option<Message>,
}

/// The next step for a push configuration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PushStep {
    /// Send this payload. The number is the progress after it.
    Send(i64, String),
    /// Nothing to send until the task continues.
    Idle,
    /// Nothing to send now. The task is still running.
    Wait,
}

/// Returns the next step after `progress`, the last sent notification. Progress of an earlier execution does not count.
/// Fails if the payload cannot be encoded.
///
/// - `Wait`: the task is queued, or it works and this was sent.
/// - `Idle`: the end of the task or its request for input was sent.
/// - `Send`: otherwise, with the whole task in 0.3 and [`next_update`] in 1.x.
pub(crate) fn next_step(
    progress: PushProgress,
    snapshot: &TaskSnapshot,
    version: Version,
) -> serde_json::Result<PushStep> {
    // The progress of an earlier execution does not count for this one.
    let seq = if progress.execution == snapshot.execution { progress.seq } else { PushProgress::NONE };
    let goal = match snapshot.status {
        PublicStatus::Waiting => return Ok(PushStep::Wait),
        PublicStatus::Working => PushProgress::WORKING,
        status if status.is_final() => PushProgress::ENDED,
        _ => PushProgress::INPUT_REQUIRED,
    };
    if seq >= goal {
        return Ok(if goal == PushProgress::WORKING { PushStep::Wait } else { PushStep::Idle });
    }
    let (seq, body) = match version {
        Version::V03 => (goal, serde_json::to_string(&v03::Task::from(snapshot.task.clone()))?),
        Version::V10 => {
            let (seq, update) = next_update(progress, seq, goal, snapshot);
            (seq, serde_json::to_string(&update)?)
        }
    };
    Ok(PushStep::Send(seq, body))
}

/// Returns the next update in 1.x and the progress after it. `seq` is the progress in the current execution, `goal` the
/// progress when the current status is sent. The progress between `WORKING` and `goal` counts the artifacts that were
/// sent. The update is the first that applies:
///
/// - the status, if the task works or has ended after its request for input was sent,
/// - the answer, if it is a message,
/// - the task, if the current execution has more than five artifacts or an earlier one was not reported to its end,
/// - the next artifact of the current execution that was not sent,
/// - the status.
fn next_update(progress: PushProgress, seq: i64, goal: i64, snapshot: &TaskSnapshot) -> (i64, StreamResponse) {
    if goal == PushProgress::WORKING || seq == PushProgress::INPUT_REQUIRED {
        return (goal, status_update(&snapshot.task));
    }
    if let Some(answer) = &snapshot.answer {
        return (goal, StreamResponse::Message(answer.clone()));
    }
    // If updates of an earlier execution were not sent, only the whole task is complete.
    let has_gap = progress.execution != snapshot.execution && progress.seq < PushProgress::INPUT_REQUIRED;
    if has_gap || snapshot.artifacts.len() > MAX_ARTIFACT_UPDATES {
        return (goal, StreamResponse::Task(snapshot.task.clone()));
    }
    let sent_artifacts = usize::try_from(seq.max(PushProgress::WORKING) - PushProgress::WORKING).unwrap_or(usize::MAX);
    match snapshot.artifacts.get(sent_artifacts) {
        Some(artifact) => (seq.max(PushProgress::WORKING) + 1, artifact_update(&snapshot.task, artifact)),
        None => (goal, status_update(&snapshot.task)),
    }
}

fn status_update(task: &Task) -> StreamResponse {
    let task_id = task.id.clone();
    let context_id = task.context_id.clone();
    let status = task.status.clone();
    StreamResponse::StatusUpdate(TaskStatusUpdateEvent { task_id, context_id, status, metadata: None })
}

/// Returns an update with a complete artifact: it replaces earlier content and is the last chunk.
fn artifact_update(task: &Task, artifact: &Artifact) -> StreamResponse {
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

    fn snapshot(execution: Uuid, status: PublicStatus, artifacts: &[&str]) -> TaskSnapshot {
        let artifacts: Vec<_> = artifacts.iter().map(|id| artifact(id)).collect();
        let state = match status {
            PublicStatus::Working => TaskState::Working,
            PublicStatus::InputRequired => TaskState::InputRequired,
            PublicStatus::Cancelled => TaskState::Canceled,
            _ => TaskState::Completed,
        };
        let task = Task {
            id: FIRST.to_string(),
            context_id: "c".into(),
            status: TaskStatus { state, message: None, timestamp: None },
            artifacts: Some(artifacts.clone()),
            history: None,
            metadata: None,
        };
        TaskSnapshot { execution, status, task, artifacts, answer: None }
    }

    /// Returns all payloads from this progress on, without further changes of the task.
    fn payloads(mut progress: PushProgress, snapshot: &TaskSnapshot, version: Version) -> Vec<Value> {
        let mut payloads = Vec::new();
        while let PushStep::Send(seq, body) = next_step(progress, snapshot, version).unwrap() {
            assert!(seq > progress.seq || progress.execution != snapshot.execution, "the progress increases");
            progress = PushProgress { execution: snapshot.execution, seq };
            payloads.push(serde_json::from_str(&body).unwrap());
        }
        payloads
    }

    fn states(payloads: &[Value]) -> Vec<String> {
        let describe = |update: &Value| {
            let (kind, inner) = update.as_object().unwrap().iter().next().unwrap();
            let detail = inner["status"]["state"].as_str().or(inner["artifact"]["artifactId"].as_str());
            format!("{kind} {}", detail.unwrap_or_default().trim_start_matches("TASK_STATE_"))
        };
        payloads.iter().map(describe).collect()
    }

    #[test]
    fn notifications_follow_a_task_from_start_to_end() {
        // A2A-1
        let progress = |seq| PushProgress { execution: FIRST, seq };
        let waiting = snapshot(FIRST, PublicStatus::Waiting, &[]);
        assert_eq!(next_step(progress(0), &waiting, Version::V10).unwrap(), PushStep::Wait);
        let working = snapshot(FIRST, PublicStatus::Working, &["a"]);
        assert_eq!(states(&payloads(progress(0), &working, Version::V10)), ["statusUpdate WORKING"]);
        assert_eq!(next_step(progress(1), &working, Version::V10).unwrap(), PushStep::Wait);
        let ended = snapshot(FIRST, PublicStatus::Completed, &["a", "b"]);
        let expected = ["artifactUpdate a", "artifactUpdate b", "statusUpdate COMPLETED"];
        assert_eq!(states(&payloads(progress(1), &ended, Version::V10)), expected);
        assert_eq!(
            states(&payloads(progress(0), &ended, Version::V10)),
            expected,
            "the outdated working status is skipped"
        );
        assert_eq!(
            states(&payloads(progress(2), &ended, Version::V10)),
            expected[1..],
            "sending resumes at the stored progress"
        );
        assert_eq!(next_step(progress(PushProgress::ENDED), &ended, Version::V10).unwrap(), PushStep::Idle);
        let update = &payloads(progress(1), &ended, Version::V10)[0]["artifactUpdate"];
        assert_eq!((&update["append"], &update["lastChunk"]), (&json!(false), &json!(true)));
    }

    #[test]
    fn notifications_cover_a_question_its_answer_and_its_cancellation() {
        // A2A-1
        let asked = snapshot(FIRST, PublicStatus::InputRequired, &["a"]);
        let progress = |execution, seq| PushProgress { execution, seq };
        let expected = ["artifactUpdate a", "statusUpdate INPUT_REQUIRED"];
        assert_eq!(states(&payloads(progress(FIRST, 1), &asked, Version::V10)), expected);
        assert_eq!(
            next_step(progress(FIRST, PushProgress::INPUT_REQUIRED), &asked, Version::V10).unwrap(),
            PushStep::Idle
        );
        let withdrawn = snapshot(FIRST, PublicStatus::Cancelled, &["a"]);
        assert_eq!(
            states(&payloads(progress(FIRST, PushProgress::INPUT_REQUIRED), &withdrawn, Version::V10)),
            ["statusUpdate CANCELED"]
        );
        let answered = snapshot(SECOND, PublicStatus::Completed, &["b"]);
        let expected = ["artifactUpdate b", "statusUpdate COMPLETED"];
        assert_eq!(states(&payloads(progress(FIRST, PushProgress::INPUT_REQUIRED), &answered, Version::V10)), expected);
        let working = snapshot(SECOND, PublicStatus::Working, &[]);
        assert_eq!(
            states(&payloads(progress(FIRST, PushProgress::INPUT_REQUIRED), &working, Version::V10)),
            ["statusUpdate WORKING"]
        );
        // Updates of the first execution are missing, so the whole task is sent.
        assert_eq!(states(&payloads(progress(FIRST, 1), &answered, Version::V10)), ["task COMPLETED"]);
    }

    #[test]
    fn notifications_of_0_3_contain_the_whole_task() {
        // A2A-1
        let progress = |seq| PushProgress { execution: FIRST, seq };
        let ended = snapshot(FIRST, PublicStatus::Completed, &["a", "b"]);
        let sent = payloads(progress(0), &ended, Version::V03);
        assert_eq!(sent.len(), 1);
        assert_eq!((&sent[0]["kind"], &sent[0]["status"]["state"]), (&json!("task"), &json!("completed")));
        assert_eq!(sent[0]["artifacts"].as_array().unwrap().len(), 2);
        let asked = snapshot(FIRST, PublicStatus::InputRequired, &[]);
        assert_eq!(payloads(progress(1), &asked, Version::V03)[0]["status"]["state"], "input-required");
        let working = snapshot(FIRST, PublicStatus::Working, &[]);
        assert_eq!(payloads(progress(0), &working, Version::V03)[0]["status"]["state"], "working");
    }

    #[test]
    fn many_artifacts_are_sent_as_a_task_and_an_answer_as_a_message() {
        let progress = PushProgress { execution: FIRST, seq: 1 };
        let names: Vec<_> = (0..=MAX_ARTIFACT_UPDATES).map(|n| n.to_string()).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let mut ended = snapshot(FIRST, PublicStatus::Completed, &names);
        assert_eq!(states(&payloads(progress, &ended, Version::V10)), ["task COMPLETED"]);
        ended.artifacts.pop();
        assert_eq!(payloads(progress, &ended, Version::V10).len(), MAX_ARTIFACT_UPDATES + 1);
        ended.answer = Some(Message::new(Role::Agent, vec![Part::text("hi")]));
        let sent = payloads(progress, &ended, Version::V10);
        assert_eq!((sent.len(), &sent[0]["message"]["parts"][0]["text"]), (1, &json!("hi")));
    }
}
