//! Tests of structured output, outcomes, and messages with files.

use std::sync::Arc;

use futures::future::BoxFuture;
use model::agent;
use model::execution::{ExecutionOutcome, StateName};
use model::output::{ArtifactChunk, ContentPart, RichOutput};
use serde_json::{Value, json};
use store::executions::{ExecutionEventKind, OwnerScope};
use supervisor::{
    AgentRun, FollowEvent, RunDraft, RunFailure, RunRecorder, RunResult, Runner, StreamName, SubmitError,
};

use crate::bench::{Bench, BenchBuilder, input_draft, script, succeeded, wait_until};

/// Produces the output that its input describes.
struct ScriptedRunner;

impl Runner for ScriptedRunner {
    fn run<'a>(&'a self, run: &'a AgentRun, recorder: &'a RunRecorder) -> BoxFuture<'a, RunResult> {
        Box::pin(async move {
            recorder.record_start(None);
            let script: Value = serde_json::from_str(&run.request.input).unwrap();
            if let Some(text) = script["before"].as_str() {
                recorder.output(StreamName::Stdout, text.as_bytes()).await;
            }
            for output in script["say"].as_array().into_iter().flatten() {
                recorder.rich_output(serde_json::from_value(output.clone()).unwrap()).await;
            }
            let outcome = script["outcome"].as_str().map(|word| ExecutionOutcome::parse("outcome", word).unwrap());
            let failure = script["failure"].as_str().map(RunFailure::transient);
            if script["stop"] == true {
                recorder.stop_requested().await;
                return RunResult { stopped: true, outcome, ..RunResult::default() };
            }
            RunResult { outcome, failure, ..RunResult::default() }
        })
    }
}

async fn bench(max_output: u64) -> Bench {
    let bench = BenchBuilder::new(json!([])).start().await;
    let draft = agent::AgentDraft {
        id: Some("speaker".into()),
        name: Some("Speaker".into()),
        max_output_size: Some(max_output),
        retry_delay: Some(agent::Seconds::from_millis(1)),
        ..agent::AgentDraft::default()
    };
    bench.supervisor.add_built_in(draft.into_built_in(), Arc::new(ScriptedRunner));
    bench
}

fn chunk(text: &str) -> Value {
    let chunk = ArtifactChunk {
        artifact_id: "a".into(),
        parts: vec![ContentPart::text(text)],
        append: true,
        ..ArtifactChunk::default()
    };
    serde_json::to_value(RichOutput::Artifact(chunk)).unwrap()
}

#[tokio::test]
async fn rich_output_is_stored_and_followed() {
    // A2A-1
    let bench = bench(1 << 20).await;
    let status = json!({"status": [{"text": "call me at somebody@example.com"}]});
    let script = json!({"before": "a line\n", "say": [status, chunk("one"), chunk("two")]});
    let id = bench.enqueue("speaker", &script.to_string()).await;
    let mut follower = bench.supervisor.follow(OwnerScope::AllUsers, id, 0);
    let mut received = Vec::new();
    while let Some(event) = follower.next().await.unwrap() {
        if let FollowEvent::Event(event) = event
            && event.kind != ExecutionEventKind::State
        {
            received.push((event.kind, event.text));
        }
    }
    let kinds: Vec<_> = received.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(
        kinds,
        [
            ExecutionEventKind::Output,
            ExecutionEventKind::RichOutput,
            ExecutionEventKind::RichOutput,
            ExecutionEventKind::RichOutput
        ],
        "{received:?}"
    );
    assert_eq!(received[0].1, "a line\n");
    assert!(received[1].1.contains("[redacted]") && !received[1].1.contains("somebody"), "{}", received[1].1);
    assert_eq!(serde_json::from_str::<Value>(&received[3].1).unwrap(), chunk("two"));
    let result = bench.result(id).await;
    assert_eq!((succeeded(&result), result.truncated), ("a line\n", false));
    bench.stop().await;
}

#[tokio::test]
async fn oversized_rich_output_leaves_a_gap() {
    // A2A-1, SUP-10: the stored output is limited by max_output_size.
    let bench = bench(1000).await;
    let script = json!({"say": [chunk("one"), chunk(&"x".repeat(2000)), chunk("two")]});
    let id = bench.enqueue("speaker", &script.to_string()).await;
    let result = bench.result(id).await;
    assert_eq!((succeeded(&result), result.truncated), ("onetwo", true));
    let events = bench.events(id).await;
    let gap = events.iter().find(|event| event.kind == ExecutionEventKind::Gap).unwrap();
    assert_eq!(
        (gap.stream.as_str(), gap.text.parse::<usize>().unwrap()),
        ("said", chunk(&"x".repeat(2000)).to_string().len())
    );
    let stored: i64 = events
        .iter()
        .filter(|event| event.kind == ExecutionEventKind::RichOutput)
        .map(|event| event.text.len() as i64)
        .sum();
    let mut reader = bench.store().reader().await.unwrap();
    assert_eq!(store::executions::total_output_bytes(&mut reader).await.unwrap(), stored);
    drop(reader);
    let mut follower = bench.supervisor.follow(OwnerScope::AllUsers, id, 0);
    let mut received = 0;
    while let Some(event) = follower.next().await.unwrap() {
        received += usize::from(matches!(event, FollowEvent::Event(event) if event.stream == "said"));
    }
    assert_eq!(received, 3, "the gap is delivered too");
    bench.stop().await;
}

#[tokio::test]
async fn outcomes_of_runs_are_recorded() {
    // A2A-1
    let bench = bench(1 << 20).await;
    for (script, state, outcome) in [
        (json!({"outcome": "asks"}), StateName::Completed, Some(ExecutionOutcome::InputRequired)),
        (json!({"outcome": "message"}), StateName::Completed, Some(ExecutionOutcome::Message)),
        (json!({"outcome": "rejected"}), StateName::Failed, Some(ExecutionOutcome::Rejected)),
        (json!({"outcome": "rejected", "failure": "no"}), StateName::Failed, Some(ExecutionOutcome::Rejected)),
        (json!({"outcome": "asks", "failure": "no"}), StateName::Failed, None),
        (json!({"outcome": "withdrawn"}), StateName::Completed, None),
        (json!({}), StateName::Completed, None),
    ] {
        let id = bench.enqueue("speaker", &script.to_string()).await;
        let execution = bench.wait(id).await;
        assert_eq!((execution.state_name(), execution.ended().unwrap().exit.outcome), (state, outcome), "{script}");
        let is_retried = script["failure"].is_string() && outcome.is_none();
        assert_eq!(execution.retry_count(), if is_retried { execution.max_retries } else { 0 }, "{script}");
        assert_eq!(execution.error_message().is_some(), state == StateName::Failed);
    }
    let id = bench.enqueue("speaker", &json!({"outcome": "asks", "stop": true}).to_string()).await;
    bench.reaches(id, StateName::Running).await;
    bench.cancel(id).await.unwrap();
    let execution = bench.wait(id).await;
    assert_eq!((execution.state_name(), execution.ended().unwrap().exit.outcome), (StateName::Cancelled, None));
    bench.stop().await;
}

#[tokio::test]
async fn messages_are_recorded_without_secrets() {
    // A2A-1, SUP-10
    let bench = bench(1 << 20).await;
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "password=hunter22hunter22"}]});
    let draft = RunDraft { message: Some(message.clone()), ..input_draft("{}") };
    let new = bench.prepare("speaker", draft.clone()).unwrap().new_execution;
    let stored = new.message.clone().unwrap();
    assert_eq!(stored["messageId"], "m");
    assert!(!stored.to_string().contains("hunter22") && new.request.is_empty() && new.spool.is_some(), "{stored}");
    let clean = json!({"messageId": "m", "parts": [{"text": "hello"}]});
    let new =
        bench.prepare("speaker", RunDraft { message: Some(clean.clone()), ..draft.clone() }).unwrap().new_execution;
    assert_eq!((new.message.as_ref(), new.spool.as_ref()), (Some(&clean), None));
    assert!(new.request.contains("\"message\""));
    let wrong = json!({"parts": [{"raw": "?"}]});
    let refused = bench.prepare("speaker", RunDraft { message: Some(wrong), ..draft.clone() }).unwrap_err();
    assert!(
        matches!(&refused, SubmitError::Invalid(invalid) if invalid.to_string().contains("message.parts")),
        "{refused}"
    );
    // 1.5 MB after decoding. The limit applies to the decoded size.
    let raw = json!({"parts": [{"raw": "AAAA".repeat(1 << 19)}]});
    let refused = bench.prepare("speaker", RunDraft { message: Some(raw), ..draft }).unwrap_err();
    assert!(matches!(refused, SubmitError::InputTooLarge { .. }), "{refused}");
    bench.stop().await;
}

#[tokio::test]
async fn attached_files_are_available_to_the_agent() {
    // A2A-1
    let text = "cat; ls \"$ADJUTANT_FILES\"; cat \"$ADJUTANT_FILES\"/*; test \"$0\" = \"$ADJUTANT_FILES\"";
    let agents = json!([
        {"id": "reader", "executable_path": "/bin/sh", "args": ["-c", text, "{{files}}"]},
        script("plain", "test -n \"$ADJUTANT_FILES\" && ! test -e \"$ADJUTANT_FILES\"", json!({})),
    ]);
    let bench = Bench::new(agents).await;
    let parts =
        json!([{"raw": "b25l", "filename": "../1.txt"}, {"raw": "dHdv", "filename": "2.txt"}, {"text": "read\n"}]);
    let draft = RunDraft { message: Some(json!({ "parts": parts })), ..input_draft("read\n") };
    let result = bench.run_with("reader", draft).await;
    assert_eq!(succeeded(&result), "read\n1.txt\n2.txt\nonetwo");
    succeeded(&bench.run("plain", "").await);
    let runs = bench.file("runs");
    wait_until("the attached files are removed", async || {
        let dirs = std::fs::read_dir(&runs).unwrap().flatten();
        !dirs.into_iter().any(|dir| dir.path().join("files").exists())
    })
    .await;
    bench.stop().await;
}
