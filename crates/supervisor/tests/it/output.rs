//! What a run says: kept at its beginning and its end, followed while it is said.

use std::time::Duration;

use model::execution::{ExecutionRecord, StateName, Status};
use serde_json::json;
use store::executions::{Kind, Whose};
use supervisor::{Account, Supervisor, Told};
use uuid::Uuid;

use crate::bench::{Bench, asking, doubled, script, succeeded, until};

/// Everything a follower hears of stdout, with gaps as they are told.
enum Heard {
    Text(String),
    Gap(u64),
}

async fn follow(supervisor: Supervisor, id: Uuid) -> Vec<Heard> {
    let mut follower = supervisor.follow(Whose::Everyones, id, 0);
    let mut heard = Vec::new();
    while let Some(told) = follower.next().await.unwrap() {
        match told {
            Told::Event(event) if event.stream == "stdout" && event.kind == Kind::Gap => {
                heard.push(Heard::Gap(event.text.parse().unwrap()));
            }
            Told::Event(event) if event.stream == "stdout" => heard.push(Heard::Text(event.text)),
            Told::Event(_) | Told::Usage(_) => {}
            Told::End(execution) => assert!(execution.is_ended()),
        }
    }
    heard
}

fn as_text(heard: Vec<Heard>) -> String {
    let text = |heard| match heard {
        Heard::Text(text) => text,
        Heard::Gap(bytes) => format!("[{bytes} missing]"),
    };
    heard.into_iter().map(text).collect()
}

/// The number of the line: all have 100 bytes.
fn number(line: &str) -> u64 {
    assert_eq!(line.len(), 100, "{line:?}");
    line[..12].trim().parse().unwrap()
}

/// Waits for a run where it is carried out.
async fn account_of(bench: &Bench, agent: &str) -> (Uuid, Option<Account>) {
    let id = bench.submit(agent, asking("")).await.unwrap();
    (id, bench.supervisor.while_at_work(id).await)
}

// SUP-10
#[tokio::test]
async fn what_is_known_where_it_ran_is_what_stands_in_the_tables() {
    let agents = json!([
        script("short", "printf 'a\\0b'; printf oh >&2; exit 3", json!({})),
        script("long", "head -c 900000 /dev/zero | tr '\\0' x", json!({"max_output_size": 100_000})),
        script("slow", "echo one; sleep 0.5; echo two", json!({})),
    ]);
    let bench = Bench::new(agents).await;
    for agent in ["short", "long"] {
        // Where the machine is slow something may have been written before its end.
        let mut tries = 0;
        let (id, account) = loop {
            if let (id, Some(account)) = account_of(&bench, agent).await {
                break (id, account);
            }
            tries += 1;
            assert!(tries < 50, "nothing is known of {agent}");
        };
        let mut told = ExecutionRecord::from(account.execution().clone());
        let mut kept = ExecutionRecord::from(bench.get(id).await);
        // Fractions are rounded on their way.
        told.resource_usage = None;
        kept.resource_usage = None;
        assert_eq!(told, kept);
        let events: Vec<_> = account.events().cloned().collect();
        assert_eq!(events, bench.events(id).await);
        assert_eq!(bench.result(id).await.truncated, agent == "long");
        assert_eq!(account.is_truncated(), agent == "long");
        let mut known = bench.supervisor.follow(Whose::Everyones, id, 0);
        known.knows_all(&account);
        let mut read = bench.supervisor.follow(Whose::Everyones, id, 0);
        while let Some(told) = read.next().await.unwrap() {
            let same = match (known.next().await.unwrap(), told) {
                (Some(Told::Event(known)), Told::Event(told)) => known == told,
                (Some(Told::Usage(_)), Told::Usage(_)) => true,
                (Some(Told::End(known)), Told::End(told)) => known.id == told.id,
                _ => false,
            };
            assert!(same, "they tell something else");
        }
        assert!(known.next().await.unwrap().is_none());
    }
    let (id, unknown) = account_of(&bench, "slow").await;
    assert!(unknown.is_none(), "its beginning was written before");
    assert_eq!(succeeded(&bench.result(id).await), "one\ntwo\n");
    bench.stop().await;
}

// SUP-10
#[tokio::test]
async fn a_flood_keeps_its_beginning_and_its_end() {
    const LINES: u64 = 300_000;
    let limit = 1_000_000;
    let more = json!({"max_output_size": limit});
    let bench = Bench::new(json!([doubled("flood", &["flood", &LINES.to_string()], more)])).await;
    let id = bench.ask("flood", "").await;
    let heard = tokio::spawn(follow(bench.supervisor.clone(), id));
    let result = bench.result(id).await;
    assert!(result.truncated);
    let lines: Vec<_> = result.output.split_inclusive('\n').collect();
    let marks: Vec<_> = lines.iter().enumerate().filter(|(_, line)| line.contains("bytes left out")).collect();
    assert_eq!(marks.len(), 1, "one gap");
    let at = marks[0].0;
    // The mark stands on a line of its own.
    let head = &lines[..at - 1];
    let tail = &lines[at + 1..];
    assert_eq!(number(head[0]), 0);
    assert!(head.windows(2).all(|pair| number(pair[1]) == number(pair[0]) + 1));
    assert!(tail.windows(2).all(|pair| number(pair[1]) == number(pair[0]) + 1));
    assert_eq!(number(tail[tail.len() - 1]), LINES - 1);
    let missing: u64 = marks[0].1.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert_eq!(missing, (number(tail[0]) - number(head[head.len() - 1]) - 1) * 100);
    let kept = (head.len() + tail.len()) * 100;
    assert!(kept > limit * 9 / 10 && kept <= limit, "{kept}");
    // What is kept of it on disk is no more than that.
    let stored: usize = bench.events(id).await.iter().map(|event| event.text.len()).sum();
    assert!(stored < limit + 1000, "{stored}");

    // A follower hears lines in their order, none twice, and for the rest how much there was.
    let mut next = 0;
    let mut texts = 0;
    let mut gaps = 0;
    for heard in heard.await.unwrap() {
        match heard {
            Heard::Gap(bytes) => {
                assert_eq!(bytes % 100, 0, "gaps lie between lines");
                next += bytes / 100;
                gaps += 1;
            }
            Heard::Text(text) => {
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
async fn a_file_that_is_too_long_keeps_its_beginning_and_its_end() {
    let more = json!({"max_output_size": 10_000, "agent_type": "stdin-file",
        "args": ["-c", "seq -w 0 99999 > \"$0\"", "{{output_file}}"]});
    let bench = Bench::new(json!([script("long", "", more)])).await;
    let result = bench.run("long", "").await;
    assert!(result.truncated && result.status == Status::Success);
    let marks = result.output.matches("bytes left out").count();
    assert!(result.output.starts_with("00000\n00001\n") && result.output.ends_with("99998\n99999\n"));
    assert_eq!(marks, 1);
    let kept: usize = bench.events(result.id).await.iter().map(|event| event.text.len()).sum();
    assert!(kept < 10_100, "{kept}");
    bench.stop().await;
}

// SUP-10
#[tokio::test]
async fn an_answer_over_json_rpc_that_is_long_is_kept_whole() {
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
async fn both_streams_bytes_that_are_no_text_and_unfinished_lines() {
    let text = "printf 'Name? '; printf 'warning: ' >&2; while [ ! -e \"$GATE\" ]; do sleep 0.02; done; \
                printf 'thanks\\n\\377\\376\\000'; printf 'over\\n' >&2";
    let dir = tempfile::tempdir().unwrap();
    let gate = dir.path().join("gate");
    let bench = Bench::new(json!([script("asks", text, json!({"envs": {"GATE": gate.to_str().unwrap()}}))])).await;
    let id = bench.ask("asks", "").await;
    let heard = tokio::spawn(follow(bench.supervisor.clone(), id));
    // A question is seen before its line ends.
    until("the question", async || bench.output(id, "stdout").await == "Name? ").await;
    until("the warning", async || bench.output(id, "stderr").await == "warning: ").await;
    std::fs::write(gate, "").unwrap();
    let result = bench.result(id).await;
    assert_eq!(succeeded(&result), "Name? thanks\n\u{fffd}\u{fffd}\u{fffd}");
    assert_eq!(bench.output(id, "stderr").await, "warning: over\n");
    let heard = as_text(heard.await.unwrap());
    assert_eq!(heard, result.output);
    bench.stop().await;
}

// SUP-10
#[tokio::test]
async fn a_follower_hears_binary_output_and_what_was_redacted_once() {
    let text = "i=0; while [ $i -lt 20 ]; do printf '\\377\\376\\375 %s\\npass%s=hunter2hunter2 %s\\n' $i word $i; \
                i=$((i + 1)); sleep 0.03; done";
    let bench = Bench::new(json!([script("binary", text, json!({}))])).await;
    let id = bench.ask("binary", "").await;
    let heard = as_text(follow(bench.supervisor.clone(), id).await);
    assert_eq!(heard, bench.result(id).await.output);
    assert_eq!(heard.matches("[redacted]").count(), 20);
    bench.stop().await;
}

// SUP-10
#[tokio::test]
async fn what_is_left_in_the_pipe_is_read_to_the_end() {
    let bench = Bench::new(json!([doubled("flood", &["flood", "40000"], json!({}))])).await;
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(bench.ask("flood", "").await);
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
async fn nothing_is_lost_between_floods_and_pauses() {
    const FLOOD: usize = 6_000_000;
    let text = format!(
        "yes 'not yet' | head -c {FLOOD}; printf 'Now? '; while [ ! -e \"$GATE\" ]; do sleep 0.02; done; \
         yes 'at once' | head -c {FLOOD}; printf 'over\\n'"
    );
    let dir = tempfile::tempdir().unwrap();
    let gate = dir.path().join("gate");
    let more = json!({"max_output_size": 40_000_000, "envs": {"GATE": gate.to_str().unwrap()}});
    let bench = Bench::new(json!([script("asks", &text, more)])).await;
    let id = bench.ask("asks", "").await;
    until("the question", async || bench.output(id, "stdout").await.ends_with("not yet\nNow? ")).await;
    std::fs::write(gate, "").unwrap();
    let result = bench.result(id).await;
    let output = succeeded(&result);
    assert_eq!(output.len(), 2 * FLOOD + "Now? over\n".len());
    assert!(output[FLOOD..].starts_with("Now? at once\n") && output.ends_with("at once\nover\n"));
    bench.stop().await;
}

// SUP-10
#[tokio::test]
async fn nobody_looks_after_a_flood_that_has_paused() {
    // The node is a process of its own, so that its threads can be told from others.
    let text = "yes & while [ ! -e \"$GATE\" ]; do sleep 0.02; done; kill $!; sleep 600";
    let dir = tempfile::tempdir().unwrap();
    let gate = dir.path().join("gate");
    let more = json!({"max_output_size": 10_000, "envs": {"GATE": gate.to_str().unwrap()}});
    let node = crate::crash::Node::start(json!([script("pauses", text, more)])).await;
    let id = node.bench.ask("pauses", "").await;
    until("a flood", async || !node.sleeps_of("flood").is_empty()).await;
    std::fs::write(gate, "").unwrap();
    until("rest", async || {
        let before = node.sleeps_of("flood");
        tokio::time::sleep(Duration::from_millis(300)).await;
        node.sleeps_of("flood") == before
    })
    .await;
    assert_eq!(node.bench.get(id).await.state_name(), StateName::Running);
    node.stop(Duration::from_secs(20)).await;
}

// SUP-10
#[tokio::test]
async fn a_flood_takes_little_memory() {
    // The node is a process of its own, so that its memory can be measured.
    let agents = json!([doubled("flood", &["flood", "1000000"], json!({"max_output_size": 4_000_000}))]);
    let node = crate::crash::Node::start(agents).await;
    let id = node.bench.ask("flood", "").await;
    let result = node.result(id).await;
    assert!(result.truncated && result.output.len() < 4_100_000);
    let peak = node.peak_memory_kb();
    assert!(peak < 80_000, "{peak} kB");
    assert_eq!(node.bench.get(id).await.state_name(), StateName::Completed);
    node.stop(Duration::from_secs(20)).await;
}
