//! 200 executions of agents with random behaviour, on a node that is killed repeatedly.

use std::time::{Duration, Instant};

use model::execution::{ErrorCategory, ExecutionResult, ExecutionStatus};
use serde_json::{Value, json};
use supervisor::RunDraft;
use uuid::Uuid;

use crate::bench::{assert_legal, input_draft};
use crate::node_restart::Node;

const RUNS: usize = 200;
const AGENTS: u64 = 10;
const KILLS: usize = 5;

struct Submitted {
    id: Uuid,
    input: String,
    cancelled: bool,
}

/// A pseudo-random number generator with a reproducible sequence.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Returns the agents. Half of them run alone with a lock file, half run concurrently. Half are retried.
fn agents(dir: &std::path::Path) -> Value {
    let agent = |number: u64| {
        let lock = dir.join(format!("lock-{number}"));
        let alone = number.is_multiple_of(2);
        let mut arguments = vec!["obey".to_owned()];
        if alone {
            arguments.push(lock.to_str().unwrap().to_owned());
        }
        json!({
            "id": format!("agent-{number}"), "executable_path": testkit::agent::program(), "args": arguments, "grace": 0.1,
            "access_type": if alone { "read-write" } else { "read-only" },
            "max_concurrent_executions": if alone { 1 } else { 3 }, "timeout": 20, "queue_depth": 1000,
            "max_retries": if number % 4 < 2 { 3 } else { 0 }, "retry_delay": 0.05, "max_output_size": 20_000,
        })
    };
    (0..AGENTS).map(agent).collect()
}

/// Returns a random input for the test agent and its timeout.
fn input(random: &mut Random) -> (String, Option<f64>) {
    match random.below(12) {
        0 => ("hang".to_owned(), Some(0.3)),
        1 => ("ignore-term".to_owned(), Some(0.3)),
        2 => ("fork-away".to_owned(), None),
        3 => ("crash".to_owned(), None),
        4 => (format!("exit {}", [1, 3, 64, 75][random.below(4) as usize]), None),
        5 => (format!("flood {}", random.below(3000)), None),
        6 => (format!("slow {}", random.below(400)), None),
        7 => ("bad-json".to_owned(), None),
        8 => ("ask".to_owned(), None),
        _ => (format!("echo {}", random.below(1_000_000)), None),
    }
}

/// Returns true if the result is possible for this input. The node may have died, and a cancellation or a timeout may have
/// come first.
fn is_possible(submitted: &str, cancelled: bool, result: &ExecutionResult) -> bool {
    if result.status == ExecutionStatus::Cancelled {
        return cancelled;
    }
    if result.error_category == Some(ErrorCategory::SystemError) {
        return result.status == ExecutionStatus::Failure
            && error_contains(result, "adjutant was stopped while it ran");
    }
    let words: Vec<_> = submitted.split_whitespace().collect();
    let success = |output: &str| result.status == ExecutionStatus::Success && result.output == output;
    match words[..] {
        ["hang" | "ignore-term"] => result.status == ExecutionStatus::Timeout,
        ["fork-away"] => success("left\n"),
        ["crash"] => result.error_category == Some(ErrorCategory::AgentError) && error_contains(result, "SIGABRT"),
        ["exit", code] => {
            let category = match code {
                "75" => ErrorCategory::Transient,
                "64" => ErrorCategory::Permanent,
                _ => ErrorCategory::AgentError,
            };
            result.status == ExecutionStatus::Failure
                && result.exit_code == code.parse().ok()
                && result.error_category == Some(category)
        }
        ["flood", lines] => {
            let lines: usize = lines.parse().unwrap();
            let first_and_last = lines == 0
                || result.output.starts_with("          0 x")
                    && result.output.contains(&format!("{:>11} x", lines - 1));
            result.status == ExecutionStatus::Success && result.truncated == (lines > 200) && first_and_last
        }
        ["slow", _] => success("begun\ndone\n"),
        ["bad-json"] => success("{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": \n"),
        ["ask"] => success("What now? "),
        ["echo", word] => success(&format!("{word}\n")),
        _ => false,
    }
}

fn error_contains(result: &ExecutionResult, part: &str) -> bool {
    result.error.as_deref().is_some_and(|error| error.contains(part))
}

/// Returns the processes with the id of one of these executions in their environment.
fn remaining_processes(submitted: &[Submitted]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(environment) = std::fs::read(entry.path().join("environ")) else { continue };
        let text = String::from_utf8_lossy(&environment).into_owned();
        let id = text.split('\0').find_map(|line| line.strip_prefix("ADJUTANT_EXECUTION_ID="));
        if id
            .and_then(|id| Uuid::try_parse(id).ok())
            .is_some_and(|id| submitted.iter().any(|submitted| submitted.id == id))
        {
            found.push(format!("{}", entry.path().display()));
        }
    }
    found
}

// SUP-4, SUP-5, SUP-7, SUP-11
#[tokio::test]
async fn nothing_is_lost_stuck_or_left_running() {
    let seed = std::env::var("CHAOS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) * 2_654_435_761);
    let local = tokio::task::LocalSet::new();
    let result = local.run_until(async { tokio::task::spawn_local(chaos(seed)).await }).await;
    assert!(result.is_ok(), "to see it again: CHAOS_SEED={seed}");
}

async fn chaos(seed: u64) {
    let mut random = Random(seed);
    let locks = tempfile::tempdir().unwrap();
    let mut node = Node::start(agents(locks.path())).await;
    let start = Instant::now();
    let mut submitted: Vec<Submitted> = Vec::new();
    for part in 0..=KILLS {
        for _ in 0..RUNS / (KILLS + 1) + 1 {
            if submitted.len() == RUNS {
                break;
            }
            let (input, timeout) = input(&mut random);
            let timeout = timeout.map(|seconds| serde_json::from_value(json!(seconds)).unwrap());
            let agent = format!("agent-{}", random.below(AGENTS));
            let id = node.bench.submit(&agent, RunDraft { timeout, ..input_draft(&input) }).await.unwrap();
            submitted.push(Submitted { id, input, cancelled: false });
            if random.below(8) == 0 {
                let victim = submitted.len() - 1 - random.below(20.min(submitted.len() as u64)) as usize;
                submitted[victim].cancelled |= node.bench.cancel(submitted[victim].id).await.is_ok();
            }
        }
        tokio::time::sleep(Duration::from_millis(300 + random.below(1200))).await;
        if part < KILLS {
            node.kill();
            node.restart();
        }
    }
    for Submitted { id, input, cancelled } in &submitted {
        let result = node.result(*id).await;
        assert_legal(&result.state_transitions);
        assert!(is_possible(input, *cancelled, &result), "{input}, cancelled: {cancelled}: {result:#?}");
    }
    assert_eq!(node.bench.all().await.len(), RUNS);
    let broken: Vec<_> = std::fs::read_dir(locks.path())
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(".broken"))
        .map(|entry| (entry.file_name(), std::fs::read_to_string(entry.path()).unwrap()))
        .collect();
    assert!(broken.is_empty(), "two at once: {broken:?}");
    let left = remaining_processes(&submitted);
    assert!(left.is_empty(), "still there: {left:?}");
    node.stop(Duration::from_secs(20)).await;
    assert!(start.elapsed() < Duration::from_secs(90), "{:?}", start.elapsed());
}
