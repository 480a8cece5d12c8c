//! Tests of the output of runs: its head and tail are stored, and it can be followed.

use std::time::Duration;

use model::execution::{ExecutionRecord, ExecutionStatus, StateName};
use serde_json::json;
use store::executions::{ExecutionEventKind, OwnerScope};
use supervisor::{FinishedRun, FollowEvent, Supervisor};
use uuid::Uuid;

use crate::bench::{Bench, doubled, input_draft, script, succeeded, wait_until};

/// Output that a follower receives, with gaps.
enum ReceivedOutput {
    Text(String),
    Gap(u64),
}

async fn follow(supervisor: Supervisor, id: Uuid) -> Vec<ReceivedOutput> {
    let mut follower = supervisor.follow(OwnerScope::AllUsers, id, 0);
    let mut received = Vec::new();
    while let Some(event) = follower.next().await.unwrap() {
        match event {
            FollowEvent::Event(event) if event.stream == "stdout" && event.kind == ExecutionEventKind::Gap => {
                received.push(ReceivedOutput::Gap(event.text.parse().unwrap()));
            }
            FollowEvent::Event(event) if event.stream == "stdout" => received.push(ReceivedOutput::Text(event.text)),
            FollowEvent::Event(_) | FollowEvent::Usage(_) => {}
            FollowEvent::Piece(piece) => panic!("{piece:?}"),
            FollowEvent::End(execution) => assert!(execution.is_ended()),
        }
    }
    received
}

fn as_text(received: Vec<ReceivedOutput>) -> String {
    let text = |received| match received {
        ReceivedOutput::Text(text) => text,
        ReceivedOutput::Gap(bytes) => format!("[{bytes} missing]"),
    };
    received.into_iter().map(text).collect()
}

/// Returns the number of a line. All lines have 100 bytes.
fn number(line: &str) -> u64 {
    assert_eq!(line.len(), 100, "{line:?}");
    line[..12].trim().parse().unwrap()
}

/// Runs an agent and waits for it on the node that runs it.
async fn finished_run(bench: &Bench, agent: &str) -> (Uuid, Option<FinishedRun>) {
    let id = bench.submit(agent, input_draft("")).await.unwrap();
    (id, bench.supervisor.wait_while_running(id).await)
}

// SUP-10
#[tokio::test]
async fn finished_runs_equal_the_stored_record() {
    let agents = json!([
        script("short", "printf 'a\\0b'; printf oh >&2; exit 3", json!({})),
        script("long", "head -c 900000 /dev/zero | tr '\\0' x", json!({"max_output_size": 100_000})),
        script("slow", "echo one; sleep 0.5; echo two", json!({})),
    ]);
    let bench = Bench::new(agents).await;
    for agent in ["short", "long"] {
        // On a slow machine, a batch may have been written before the end.
        let mut tries = 0;
        let (id, finished) = loop {
            if let (id, Some(finished)) = finished_run(&bench, agent).await {
                break (id, finished);
            }
            tries += 1;
            assert!(tries < 50, "no complete record of {agent}");
        };
        let mut in_memory = ExecutionRecord::from(finished.execution().clone());
        let mut stored = ExecutionRecord::from(bench.get(id).await);
        // The database stores rounded values.
        in_memory.resource_usage = None;
        stored.resource_usage = None;
        assert_eq!(in_memory, stored);
        let events: Vec<_> = finished.events().cloned().collect();
        assert_eq!(events, bench.events(id).await);
        assert_eq!(bench.result(id).await.truncated, agent == "long");
        assert_eq!(finished.is_truncated(), agent == "long");
        let mut known = bench.supervisor.follow(OwnerScope::AllUsers, id, 0);
        known.set_finished_run(&finished);
        let mut read = bench.supervisor.follow(OwnerScope::AllUsers, id, 0);
        while let Some(event) = read.next().await.unwrap() {
            let same = match (known.next().await.unwrap(), event) {
                (Some(FollowEvent::Event(known)), FollowEvent::Event(read)) => known == read,
                (Some(FollowEvent::Usage(_)), FollowEvent::Usage(_)) => true,
                (Some(FollowEvent::End(known)), FollowEvent::End(read)) => known.id == read.id,
                _ => false,
            };
            assert!(same, "the events differ");
        }
        assert!(known.next().await.unwrap().is_none());
    }
    let (id, unknown) = finished_run(&bench, "slow").await;
    assert!(unknown.is_none(), "its first output was written before the end");
    assert_eq!(succeeded(&bench.result(id).await), "one\ntwo\n");
    bench.stop().await;
}

// SUP-10
#[tokio::test]
async fn floods_keep_their_head_and_tail() {
    const LINES: u64 = 300_000;
    let limit = 1_000_000;
    let more = json!({"max_output_size": limit});
    let bench = Bench::new(json!([doubled("flood", &["flood", &LINES.to_string()], more)])).await;
    let id = bench.enqueue("flood", "").await;
    let received = tokio::spawn(follow(bench.supervisor.clone(), id));
    let result = bench.result(id).await;
    assert!(result.truncated);
    let lines: Vec<_> = result.output.split_inclusive('\n').collect();
    let markers: Vec<_> = lines.iter().enumerate().filter(|(_, line)| line.contains("bytes left out")).collect();
    assert_eq!(markers.len(), 1, "one gap");
    let at = markers[0].0;
    // The marker is on a separate line.
    let head = &lines[..at - 1];
    let tail = &lines[at + 1..];
    assert_eq!(number(head[0]), 0);
    assert!(head.windows(2).all(|pair| number(pair[1]) == number(pair[0]) + 1));
    assert!(tail.windows(2).all(|pair| number(pair[1]) == number(pair[0]) + 1));
    assert_eq!(number(tail[tail.len() - 1]), LINES - 1);
    let missing: u64 = markers[0].1.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert_eq!(missing, (number(tail[0]) - number(head[head.len() - 1]) - 1) * 100);
    let kept = (head.len() + tail.len()) * 100;
    assert!(kept > limit * 9 / 10 && kept <= limit, "{kept}");
    // The database stores no more than that.
    let stored: usize = bench.events(id).await.iter().map(|event| event.text.len()).sum();
    assert!(stored < limit + 1000, "{stored}");

    // A follower receives the lines in order and once, and gaps with the number of missing bytes.
    let mut next = 0;
    let mut texts = 0;
    let mut gaps = 0;
    for received in received.await.unwrap() {
        match received {
            ReceivedOutput::Gap(bytes) => {
                assert_eq!(bytes % 100, 0, "gaps lie between lines");
                next += bytes / 100;
                gaps += 1;
            }
            ReceivedOutput::Text(text) => {
                texts += 1;
                for line in text.split_inclusive('\n') {
                    assert_eq!(number(line), next, "after {gaps} gaps");
                    next += 1;
                }
            }
        }
    }
    assert_eq!(next, LINES);
    assert!(texts > 1 && gaps > 0);
    bench.stop().await;
}

// SUP-10
#[tokio::test]
async fn long_output_files_keep_their_head_and_tail() {
    let more = json!({"max_output_size": 10_000, "agent_type": "stdin-file",
        "args": ["-c", "seq -w 0 99999 > \"$0\"", "{{output_file}}"]});
    let bench = Bench::new(json!([script("long", "", more)])).await;
    let result = bench.run("long", "").await;
    assert!(result.truncated && result.status == ExecutionStatus::Success);
    let markers = result.output.matches("bytes left out").count();
    assert!(result.output.starts_with("00000\n00001\n") && result.output.ends_with("99998\n99999\n"));
    assert_eq!(markers, 1);
    let kept: usize = bench.events(result.id).await.iter().map(|event| event.text.len()).sum();
    assert!(kept < 10_100, "{kept}");
    bench.stop().await;
}

// SUP-10
#[tokio::test]
async fn long_json_rpc_answers_are_stored_completely() {
    let text = r#"import json; print(json.dumps({"jsonrpc": "2.0", "id": 1, "result": "x" * 300000}))"#;
    let agent =
        json!({"id": "long", "executable_path": "python3", "args": ["-c", text], "agent_type": "stdin-json-rpc"});
    let bench = Bench::new(json!([agent])).await;
    let result = bench.run("long", "").await;
    assert_eq!(succeeded(&result).len(), 300_000);
    assert!(bench.events(result.id).await.iter().all(|event| event.text.len() < 200_000), "in pieces");
    bench.stop().await;
}

// SUP-10
#[tokio::test]
async fn streams_with_binary_output_and_unfinished_lines_are_stored() {
    let text = "printf 'Name? '; printf 'warning: ' >&2; while [ ! -e \"$GATE\" ]; do sleep 0.02; done; \
                printf 'thanks\\n\\377\\376\\000'; printf 'over\\n' >&2";
    let dir = tempfile::tempdir().unwrap();
    let gate = dir.path().join("gate");
    let bench = Bench::new(json!([script("asks", text, json!({"envs": {"GATE": gate.to_str().unwrap()}}))])).await;
    let id = bench.enqueue("asks", "").await;
    let received = tokio::spawn(follow(bench.supervisor.clone(), id));
    // A question is published before its line is complete.
    wait_until("the question", async || bench.output(id, "stdout").await == "Name? ").await;
    wait_until("the warning", async || bench.output(id, "stderr").await == "warning: ").await;
    std::fs::write(gate, "").unwrap();
    let result = bench.result(id).await;
    assert_eq!(succeeded(&result), "Name? thanks\n\u{fffd}\u{fffd}\u{fffd}");
    assert_eq!(bench.output(id, "stderr").await, "warning: over\n");
    let received = as_text(received.await.unwrap());
    assert_eq!(received, result.output);
    bench.stop().await;
}

// SUP-10
#[tokio::test]
async fn followers_receive_binary_and_redacted_output_once() {
    let text = "i=0; while [ $i -lt 20 ]; do printf '\\377\\376\\375 %s\\npass%s=hunter2hunter2 %s\\n' $i word $i; \
                i=$((i + 1)); sleep 0.03; done";
    let bench = Bench::new(json!([script("binary", text, json!({}))])).await;
    let id = bench.enqueue("binary", "").await;
    let received = as_text(follow(bench.supervisor.clone(), id).await);
    assert_eq!(received, bench.result(id).await.output);
    assert_eq!(received.matches("[redacted]").count(), 20);
    bench.stop().await;
}

// SUP-10
#[tokio::test]
async fn pipes_are_read_to_the_end() {
    let bench = Bench::new(json!([doubled("flood", &["flood", "40000"], json!({}))])).await;
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(bench.enqueue("flood", "").await);
    }
    for id in ids {
        let result = bench.result(id).await;
        assert_eq!(result.output.len(), 4_000_000);
        assert_eq!(number(&result.output[3_999_900..]), 39_999);
    }
    bench.stop().await;
}

// SUP-10
#[tokio::test]
async fn no_output_is_lost_between_floods_and_pauses() {
    const FLOOD: usize = 6_000_000;
    let text = format!(
        "yes 'not yet' | head -c {FLOOD}; printf 'Now? '; while [ ! -e \"$GATE\" ]; do sleep 0.02; done; \
         yes 'at once' | head -c {FLOOD}; printf 'over\\n'"
    );
    let dir = tempfile::tempdir().unwrap();
    let gate = dir.path().join("gate");
    let more = json!({"max_output_size": 40_000_000, "envs": {"GATE": gate.to_str().unwrap()}});
    let bench = Bench::new(json!([script("asks", &text, more)])).await;
    let id = bench.enqueue("asks", "").await;
    wait_until("the question", async || bench.output(id, "stdout").await.ends_with("not yet\nNow? ")).await;
    std::fs::write(gate, "").unwrap();
    let result = bench.result(id).await;
    let output = succeeded(&result);
    assert_eq!(output.len(), 2 * FLOOD + "Now? over\n".len());
    assert!(output[FLOOD..].starts_with("Now? at once\n") && output.ends_with("at once\nover\n"));
    bench.stop().await;
}

// SUP-10
#[tokio::test]
async fn flood_threads_sleep_after_a_flood() {
    // The node runs in a separate process, so that its threads can be observed.
    let text = "yes & while [ ! -e \"$GATE\" ]; do sleep 0.02; done; kill $!; sleep 600";
    let dir = tempfile::tempdir().unwrap();
    let gate = dir.path().join("gate");
    let more = json!({"max_output_size": 10_000, "envs": {"GATE": gate.to_str().unwrap()}});
    let node = crate::node_restart::Node::start(json!([script("pauses", text, more)])).await;
    let id = node.bench.enqueue("pauses", "").await;
    wait_until("a flood", async || !node.context_switches_of("flood").is_empty()).await;
    std::fs::write(gate, "").unwrap();
    wait_until("rest", async || {
        let before = node.context_switches_of("flood");
        tokio::time::sleep(Duration::from_millis(300)).await;
        node.context_switches_of("flood") == before
    })
    .await;
    assert_eq!(node.bench.get(id).await.state_name(), StateName::Running);
    node.stop(Duration::from_secs(20)).await;
}

// SUP-10
#[tokio::test]
async fn floods_use_little_memory() {
    // The node runs in a separate process, so that its memory can be measured.
    let agents = json!([doubled("flood", &["flood", "1000000"], json!({"max_output_size": 4_000_000}))]);
    let node = crate::node_restart::Node::start(agents).await;
    let id = node.bench.enqueue("flood", "").await;
    let result = node.result(id).await;
    assert!(result.truncated && result.output.len() < 4_100_000);
    let peak = node.peak_memory_kb();
    assert!(peak < 80_000, "{peak} kB");
    assert_eq!(node.bench.get(id).await.state_name(), StateName::Completed);
    node.stop(Duration::from_secs(20)).await;
}

// SUP-10, SEC-5
#[tokio::test]
async fn a_follower_in_pieces_holds_little_and_receives_everything() {
    let agents = json!([script("long", "head -c 300000 /dev/zero | tr '\\0' x; printf '%s' ü", json!({}))]);
    let bench = Bench::new(agents).await;
    let id = bench.submit("long", input_draft("")).await.unwrap();
    bench.supervisor.wait(OwnerScope::AllUsers, id).await.unwrap();
    let mut whole = bench.supervisor.follow(OwnerScope::AllUsers, id, 0);
    let mut pieces = bench.supervisor.follow(OwnerScope::AllUsers, id, 0).in_pieces();
    let mut expected = Vec::new();
    while let Some(event) = whole.next().await.unwrap() {
        expected.extend(match event {
            FollowEvent::Event(event) => Some((event.seq, event.text)),
            _ => None,
        });
    }
    assert!(expected.iter().any(|(_, text)| text.len() > 8192), "a long event");
    let mut received: Vec<(i64, String)> = Vec::new();
    while let Some(event) = pieces.next().await.unwrap() {
        assert!(pieces.held_bytes() <= 4096, "{}", pieces.held_bytes());
        match event {
            FollowEvent::Event(event) => received.push((event.seq, event.text)),
            FollowEvent::Piece(piece) => {
                assert!(piece.event.text.len() <= 4 * 4096);
                match received.last_mut() {
                    Some((seq, text)) if *seq == piece.event.seq => text.push_str(&piece.event.text),
                    _ => received.push((piece.event.seq, piece.event.text)),
                }
            }
            FollowEvent::Usage(_) | FollowEvent::End(_) => {}
        }
    }
    assert_eq!(received, expected);
}
