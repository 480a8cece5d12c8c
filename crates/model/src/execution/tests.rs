//! Tests of the transitions, of the conversion to records and back, and of invalid records.

use proptest::prelude::*;
use serde_json::json;

use super::state::TRANSITIONS;
use super::*;

const AT: Timestamp = Timestamp::UNIX_EPOCH;

fn waiting() -> Execution {
    let mut execution = Execution::new(Uuid::nil(), "a", Seconds::new(1), AT);
    execution.max_retries = 1;
    execution
}

fn running() -> Execution {
    let mut execution = waiting();
    execution.claim(AT).unwrap();
    execution.start(Some(7), AT).unwrap();
    execution
}

#[test]
fn only_the_documented_transitions_are_allowed() {
    // SUP-5
    use StateName::{Cancelled, Cleanup, Completed, Failed, Idle, Running, Starting, Timeout};
    let legal = [
        (Idle, Starting),
        (Starting, Running),
        (Starting, Failed),
        (Running, Completed),
        (Running, Failed),
        (Running, Timeout),
        (Running, Cancelled),
        (Completed, Cleanup),
        (Failed, Cleanup),
        (Timeout, Cleanup),
        (Cancelled, Cleanup),
        (Cleanup, Idle),
        (Failed, Starting),
        (Idle, Cancelled),
        (Idle, Timeout),
        (Idle, Failed),
        (Starting, Cancelled),
        (Starting, Timeout),
    ];
    for from in StateName::ALL {
        for to in StateName::ALL {
            assert_eq!(from.can_become(*to), legal.contains(&(*from, *to)), "{from} -> {to}");
        }
    }
}

/// Returns the transitions as a mermaid diagram.
fn diagram() -> String {
    let mut lines = vec!["stateDiagram-v2".to_owned(), "    [*] --> idle: enqueued".to_owned()];
    for (from, next) in TRANSITIONS {
        for to in *next {
            let label = match (from, to) {
                (StateName::Idle, StateName::Starting) => ": claimed",
                (StateName::Starting, StateName::Running) => ": started",
                (StateName::Failed, StateName::Starting) => ": retried",
                (StateName::Cleanup, StateName::Idle) => ": record closed, or waits for a retry",
                _ => "",
            };
            lines.push(format!("    {from} --> {to}{label}"));
        }
    }
    lines.join("\n")
}

#[test]
fn the_architecture_document_shows_the_transitions() {
    // SUP-5
    let document = include_str!("../../../../ARCHITECTURE.md");
    let (_, rest) = document.split_once("```mermaid\nstateDiagram-v2").expect("the document has no diagram");
    let (shown, _) = rest.split_once("\n```").expect("the diagram does not end");
    assert_eq!(format!("stateDiagram-v2{shown}"), diagram());
}

#[test]
fn the_public_status_is_derived_from_state_and_outcome() {
    // A2A-1
    let mut execution = waiting();
    assert_eq!(execution.public_status(), PublicStatus::Waiting);
    execution.claim(AT).unwrap();
    assert_eq!(execution.public_status(), PublicStatus::Working);
    execution.start(None, AT).unwrap();
    assert_eq!(execution.public_status(), PublicStatus::Working);
    execution.requeue(AttemptExit::default(), AT).unwrap();
    assert_eq!(execution.public_status(), PublicStatus::Working, "a retry in the queue counts as working");
    for (status, outcome, public_status) in [
        (ExecutionStatus::Success, None, PublicStatus::Completed),
        (ExecutionStatus::Success, Some(ExecutionOutcome::InputRequired), PublicStatus::InputRequired),
        (ExecutionStatus::Success, Some(ExecutionOutcome::AuthRequired), PublicStatus::AuthRequired),
        (ExecutionStatus::Success, Some(ExecutionOutcome::Message), PublicStatus::Completed),
        (ExecutionStatus::Success, Some(ExecutionOutcome::Withdrawn), PublicStatus::Cancelled),
        (ExecutionStatus::Failure, None, PublicStatus::Failed),
        (ExecutionStatus::Failure, Some(ExecutionOutcome::Rejected), PublicStatus::Rejected),
        (ExecutionStatus::Timeout, None, PublicStatus::Failed),
        (ExecutionStatus::Cancelled, None, PublicStatus::Cancelled),
    ] {
        let mut execution = running();
        execution.end(status, AttemptExit { outcome, ..AttemptExit::default() }, AT).unwrap();
        assert_eq!(execution.public_status(), public_status, "{status} {outcome:?}");
        assert_eq!(public_status.is_final(), !public_status.awaits_input());
    }
}

#[test]
fn an_illegal_transition_changes_nothing() {
    // SUP-5
    let mut execution = waiting();
    let illegal = |from, to| Err(IllegalTransition { from, to });
    let before = execution.clone();
    assert_eq!(execution.start(None, AT), illegal(StateName::Idle, StateName::Running));
    let completed = execution.end(ExecutionStatus::Success, AttemptExit::default(), AT);
    assert_eq!(completed, illegal(StateName::Idle, StateName::Completed));
    assert_eq!(execution, before);

    execution.end(ExecutionStatus::Failure, AttemptExit::default(), AT).unwrap();
    let ended = execution.clone();
    assert_eq!(execution.claim(AT), illegal(StateName::Failed, StateName::Starting), "it has ended");
    assert_eq!(execution.retry(AttemptExit::default(), AT), illegal(StateName::Failed, StateName::Failed));
    assert_eq!(
        execution.end(ExecutionStatus::Failure, AttemptExit::default(), AT),
        illegal(StateName::Failed, StateName::Failed)
    );
    execution.record_usage(ResourceUsage::default());
    assert_eq!(execution, ended);
}

#[test]
fn a_retried_attempt_keeps_its_result() {
    // SUP-6
    let usage = ResourceUsage { cpu_ms: 5, ..ResourceUsage::default() };
    let mut execution = running();
    execution.record_usage(usage);
    let exit =
        AttemptExit { exit_code: Some(3), ..AttemptExit::with_error("it broke", Some(ErrorCategory::Transient)) };
    execution.retry(exit, AT).unwrap();
    assert_eq!((execution.retry_count(), execution.attempt(), execution.can_retry()), (1, 2, false));
    assert_eq!(*execution.state(), ExecutionState::Starting);
    let attempt = PreviousAttempt {
        attempt: 1,
        status: ExecutionStatus::Failure,
        start_time: Some(AT),
        end_time: AT,
        process_id: Some(7),
        exit_code: Some(3),
        error: Some("it broke".into()),
        error_category: Some(ErrorCategory::Transient),
        resource_usage: Some(usage),
    };
    assert_eq!(execution.previous_retries(), [attempt]);
    execution.end(ExecutionStatus::Cancelled, AttemptExit::default(), AT).unwrap();
    let end = ExecutionEnd { status: ExecutionStatus::Cancelled, at: AT, started: None, exit: AttemptExit::default() };
    assert_eq!(execution.ended(), Some(&end));
}

/// One call of a method that changes the state.
#[derive(Clone, Debug)]
enum ExecutionStep {
    Claim,
    Start(Option<i64>),
    RecordUsage(u64),
    Retry(AttemptExit),
    Requeue(AttemptExit),
    End(ExecutionStatus, AttemptExit),
}

fn exit() -> impl Strategy<Value = AttemptExit> {
    let category = prop::option::of(prop::sample::select(ErrorCategory::ALL));
    let error = prop::option::of((".*", category).prop_map(|(message, category)| RunError { message, category }));
    let outcome = prop::option::of(prop::sample::select(ExecutionOutcome::ALL));
    (any::<Option<i64>>(), error, outcome, any::<Option<u64>>()).prop_map(|(exit_code, error, outcome, cpu_ms)| {
        let resource_usage = cpu_ms.map(|cpu_ms| ResourceUsage { cpu_ms, ..ResourceUsage::default() });
        AttemptExit { exit_code, error, outcome, resource_usage }
    })
}

fn step() -> impl Strategy<Value = ExecutionStep> {
    prop_oneof![
        4 => Just(ExecutionStep::Claim),
        4 => any::<Option<i64>>().prop_map(ExecutionStep::Start),
        2 => any::<u64>().prop_map(ExecutionStep::RecordUsage),
        2 => exit().prop_map(ExecutionStep::Retry),
        1 => exit().prop_map(ExecutionStep::Requeue),
        1 => (prop::sample::select(ExecutionStatus::ALL), exit())
            .prop_map(|(status, exit)| ExecutionStep::End(status, exit)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    // SUP-5
    #[test]
    fn every_execution_round_trips_through_its_record(steps in prop::collection::vec(step(), 0..20)) {
        let mut execution = waiting();
        for (at, step) in (1..).zip(steps) {
            let at = Timestamp::from_second(at).unwrap();
            // Steps that are not allowed have no effect.
            let _ = match step {
                ExecutionStep::Claim => execution.claim(at),
                ExecutionStep::Start(process_id) => execution.start(process_id, at),
                ExecutionStep::RecordUsage(cpu_ms) => {
                    execution.record_usage(ResourceUsage { cpu_ms, ..ResourceUsage::default() });
                    Ok(())
                }
                ExecutionStep::Retry(exit) => execution.retry(exit, at),
                ExecutionStep::Requeue(exit) => execution.requeue(exit, at),
                ExecutionStep::End(status, exit) => execution.end(status, exit, at),
            };
            let record = ExecutionRecord::from(execution.clone());
            prop_assert_eq!(record.state, execution.state_name());
            let read = Execution::try_from(record.clone()).unwrap();
            prop_assert_eq!(&read, &execution);
            prop_assert_eq!(&ExecutionRecord::from(read), &record);
            let json = serde_json::to_string(&execution).unwrap();
            prop_assert_eq!(&json, &serde_json::to_string(&record).unwrap());
            prop_assert_eq!(serde_json::from_str::<Execution>(&json).unwrap(), execution.clone());
        }
    }
}

/// A change that makes a record inconsistent.
type Corruption = fn(&mut ExecutionRecord);

#[test]
fn inconsistent_records_are_rejected() {
    // SUP-5
    let mut ended = running();
    ended.end(ExecutionStatus::Success, AttemptExit::default(), AT).unwrap();
    let mut failed = running();
    failed.end(ExecutionStatus::Failure, AttemptExit::default(), AT).unwrap();
    let cases: [(&Execution, Corruption, &str); 15] = [
        (&waiting(), |r| r.exit_code = Some(0), "an execution in the state idle must not have exit_code"),
        (&waiting(), |r| r.end_time = Some(AT), "an execution in the state idle must not have end_time"),
        (&running(), |r| r.queue_position = Some(1), "an execution in the state running must not have queue_position"),
        (&running(), |r| r.start_time = None, "an execution in the state running must have start_time"),
        (
            &running(),
            |r| r.outcome = Some(ExecutionOutcome::InputRequired),
            "an execution in the state running must not have outcome",
        ),
        (&ended, |r| r.end_time = None, "an execution in the state completed must have end_time"),
        (&ended, |r| r.start_time = None, "an execution in the state completed must have start_time"),
        (&ended, |r| r.queue_position = Some(1), "an execution in the state completed must not have queue_position"),
        (&failed, |r| r.end_time = None, "an execution in the state failed must have end_time"),
        (&failed, |r| r.start_time = None, "an execution in the state failed must not have process_id"),
        (
            &failed,
            |r| r.error_category = Some(ErrorCategory::Transient),
            "an execution in the state failed must not have error_category",
        ),
        (&waiting(), |r| r.state = StateName::Cleanup, "an execution cannot be stored in the state cleanup"),
        (&waiting(), |r| r.retry_count = 1, "retry_count does not match the 0 earlier attempts of the execution"),
        (&waiting(), |r| r.attempt = 2, "attempt does not match the 0 earlier attempts of the execution"),
        (
            &failed,
            |r| r.state = StateName::Timeout,
            "the transitions of the execution do not lead to the state timeout",
        ),
    ];
    for (execution, change, message) in cases {
        let mut record = ExecutionRecord::from(execution.clone());
        change(&mut record);
        assert_eq!(Execution::try_from(record).unwrap_err().to_string(), message);
    }
}

#[test]
fn json_is_the_flat_record() {
    // SUP-5
    let mut execution = running();
    execution.retry(AttemptExit::with_error("once", Some(ErrorCategory::Transient)), AT).unwrap();
    execution.start(None, AT).unwrap();
    execution
        .end(ExecutionStatus::Failure, AttemptExit { exit_code: Some(1), ..AttemptExit::with_error("twice", None) }, AT)
        .unwrap();
    let at = "1970-01-01T00:00:00Z";
    let step = |from, to| json!({"from": from, "to": to, "at": at});
    let expected = json!({
        "id": Uuid::nil(),
        "agent_id": "a",
        "schedule_id": null,
        "session_id": null,
        "state": "failed",
        "previous_state": "running",
        "created_at": at,
        "start_time": at,
        "end_time": at,
        "last_state_change": at,
        "input": "",
        "process_id": null,
        "exit_code": 1,
        "error_message": "twice",
        "error_category": null,
        "outcome": null,
        "retry_count": 1,
        "max_retries": 1,
        "attempt": 2,
        "timeout": 1,
        "resource_usage": null,
        "context": {},
        "queue_position": null,
        "state_transitions": [
            step("idle", "starting"),
            step("starting", "running"),
            step("running", "failed"),
            step("failed", "starting"),
            step("starting", "running"),
            step("running", "failed"),
            step("failed", "cleanup"),
            step("cleanup", "idle"),
        ],
        "previous_retries": [{
            "attempt": 1,
            "status": "failure",
            "start_time": at,
            "end_time": at,
            "process_id": 7,
            "exit_code": null,
            "error": "once",
            "error_category": "transient",
            "resource_usage": null,
        }],
    });
    assert_eq!(serde_json::to_string(&execution).unwrap(), expected.to_string());
}
