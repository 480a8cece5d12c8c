//! Tests of retries: conditions, delays and records of earlier attempts.

use model::execution::{ErrorCategory, ExecutionStatus, StateName};
use serde_json::json;

use crate::bench::{Bench, error, input_draft, script, succeeded};

// SUP-6
#[tokio::test]
async fn only_transient_failures_are_retried() {
    let retried = |more: serde_json::Value| {
        let mut fields = json!({"max_retries": 2, "retry_delay": 0.01});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields
    };
    let busy = json!({"error_patterns": [{"text": "Rate Limit", "category": "transient"}]});
    let bench = Bench::new(json!([
        script("tempfail", "exit 75", retried(json!({}))),
        script("usage", "exit 64", retried(json!({}))),
        script("plain", "exit 1", retried(json!({}))),
        script("by-code", "exit 3", retried(json!({"exit_codes": {"3": "transient"}}))),
        script("by-code-not", "exit 75", retried(json!({"exit_codes": {"75": "permanent"}}))),
        script("by-stderr", "echo 'hit a RATE LIMIT today' >&2; exit 1", retried(busy.clone())),
        script("by-stdout", "echo 'rate limit'; exit 1", retried(busy.clone())),
        script("no-pattern", "echo 'all well'; exit 1", retried(busy)),
        script("crash", "kill -SEGV $$", retried(json!({}))),
        script("killed", "kill -KILL $$", retried(json!({}))),
    ]))
    .await;
    for (agent, category, retries) in [
        ("tempfail", ErrorCategory::Transient, 2),
        ("usage", ErrorCategory::Permanent, 0),
        ("plain", ErrorCategory::AgentError, 0),
        ("by-code", ErrorCategory::Transient, 2),
        ("by-code-not", ErrorCategory::Permanent, 0),
        ("by-stderr", ErrorCategory::Transient, 2),
        ("by-stdout", ErrorCategory::Transient, 2),
        ("no-pattern", ErrorCategory::AgentError, 0),
        ("crash", ErrorCategory::AgentError, 0),
        ("killed", ErrorCategory::Transient, 2),
    ] {
        let result = bench.run(agent, "").await;
        assert_eq!((result.status, result.error_category), (ExecutionStatus::Failure, Some(category)), "{agent}");
        assert_eq!(result.previous_retries.len(), retries, "{agent}");
        for (at, attempt) in (1..).zip(&result.previous_retries) {
            assert_eq!(
                (attempt.attempt, attempt.status, attempt.error_category),
                (at, ExecutionStatus::Failure, Some(category))
            );
            assert_eq!(attempt.exit_code, result.exit_code);
            assert!(attempt.start_time.is_some() && attempt.error.is_some() && attempt.process_id != result.process_id);
        }
        let execution = bench.get(result.id).await;
        assert_eq!((execution.retry_count() as usize, execution.attempt() as usize), (retries, retries + 1));
    }
    bench.stop().await;
}

// SUP-6
#[tokio::test]
async fn attempts_have_separate_output_and_growing_delays() {
    // Each attempt ends in the middle of a line, which must not become part of the next attempt.
    let text = "n=$(cat \"$COUNT\" 2>/dev/null); n=$((n + 1)); echo $n > \"$COUNT\"; \
                printf \"try $n\"; printf \"trouble $n\" >&2; [ $n = 3 ] || exit 75";
    let dir = tempfile::tempdir().unwrap();
    let more = json!({"max_retries": 5, "retry_delay": 0.2, "access_type": "read-write",
        "envs": {"COUNT": dir.path().join("count").to_str().unwrap()}});
    let bench = Bench::new(json!([script("third", text, more)])).await;
    let id = bench.enqueue("third", "").await;
    let mut follower = bench.supervisor.follow(store::executions::OwnerScope::AllUsers, id, 0);
    let mut received = String::new();
    while let Some(event) = follower.next().await.unwrap() {
        if let supervisor::FollowEvent::Event(event) = event {
            received.push_str(&event.text);
            received.push('|');
        }
    }
    let result = bench.result(id).await;
    assert_eq!(succeeded(&result), "try 3");
    assert_eq!(bench.output(id, "stderr").await, "trouble 3");
    let errors: Vec<_> = result.previous_retries.iter().map(|attempt| attempt.error.as_deref().unwrap()).collect();
    assert_eq!(errors, ["the agent exited with code 75: trouble 1", "the agent exited with code 75: trouble 2"]);
    // A follower receives the output of all attempts.
    for part in ["idle|starting|running|", "try 1|", "trouble 1|", "failed|starting|running|", "try 2|", "try 3|"] {
        assert!(received.contains(part), "{part} in {received}");
    }
    assert!(received.ends_with("completed|") && received.matches("try").count() == 3, "{received}");
    // The delays double: 0.2 s, then 0.4 s.
    let starts: Vec<_> = result.state_transitions.iter().filter(|step| step.to == StateName::Running).collect();
    let failures: Vec<_> = result.state_transitions.iter().filter(|step| step.to == StateName::Failed).collect();
    let wait = |at: usize| (starts[at + 1].at.as_microsecond() - failures[at].at.as_microsecond()) / 1000;
    assert!(wait(0) >= 200 && wait(1) >= 400, "{} {}", wait(0), wait(1));
    bench.stop().await;
}

// SUP-6, SUP-7
#[tokio::test]
async fn executions_can_be_cancelled_between_attempts() {
    let more = json!({"max_retries": 5, "retry_delay": 50});
    let bench = Bench::new(json!([script("fails", "exit 75", more)])).await;
    let id = bench.enqueue("fails", "").await;
    crate::bench::wait_until("it has failed once", async || bench.get(id).await.retry_count() == 1).await;
    assert_eq!(bench.get(id).await.state_name(), StateName::Starting);
    bench.cancel(id).await.unwrap();
    let result = bench.result(id).await;
    assert_eq!(
        (result.status, error(&result), result.previous_retries.len()),
        (ExecutionStatus::Cancelled, "cancelled", 1)
    );
    bench.stop().await;
}

// SUP-11
#[tokio::test]
async fn stopping_requeues_executions_with_attempts_left() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let gate = outside.path().join("gate");
    let agents = json!([
        // It exits with success after TERM, but that does not count as its answer.
        script(
            "again",
            "trap 'echo half; exit 0' TERM; [ -e \"$GATE\" ] && { cat; exit; }; sleep 60 & wait",
            json!({
            "max_retries": 1, "retry_delay": 0.01, "envs": {"GATE": gate.to_str().unwrap()}})
        ),
        script("once", "sleep 60", json!({"access_type": "read-write"})),
    ]);
    let bench = crate::bench::BenchBuilder::new(agents.clone()).at(dir.path()).start().await;
    let again = bench.enqueue("again", "hello").await;
    let once = bench.enqueue("once", "").await;
    let waits = bench.enqueue("once", "waits").await;
    bench.reaches(again, StateName::Running).await;
    bench.reaches(once, StateName::Running).await;
    bench.stop().await;

    std::fs::write(&gate, "").unwrap();
    let bench = crate::bench::BenchBuilder::new(agents).at(dir.path()).build().await;
    let back = bench.get(again).await;
    assert_eq!((back.state_name(), back.retry_count(), back.error_message()), (StateName::Idle, 1, None));
    assert_eq!(bench.get(waits).await.state_name(), StateName::Idle);
    let ended = bench.result(once).await;
    assert_eq!((ended.status, ended.error_category), (ExecutionStatus::Failure, Some(ErrorCategory::SystemError)));
    assert_eq!(error(&ended), "adjutant was stopped while it ran");
    bench.supervisor.start().await.unwrap();
    let result = bench.result(again).await;
    assert_eq!(succeeded(&result), "hello");
    assert_eq!(result.previous_retries[0].error.as_deref(), Some("adjutant was stopped while it ran"));
    bench.reaches(waits, StateName::Running).await;
    bench.cancel(waits).await.unwrap();
    bench.wait(waits).await;
    assert!(bench.submit("once", input_draft("")).await.is_ok());
    bench.stop().await;
}
