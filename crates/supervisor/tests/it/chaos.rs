//! Two hundred runs of agents that do whatever agents do, on a node that is killed again and again.

use std::time::{Duration, Instant};

use model::execution::{Category, ExecutionResult, Status};
use serde_json::{Value, json};
use supervisor::Draft;
use uuid::Uuid;

use crate::bench::{asking, legal};
use crate::crash::Node;

const RUNS: usize = 200;
const AGENTS: u64 = 10;
const KILLS: usize = 5;

struct Asked {
    id: Uuid,
    order: String,
    cancelled: bool,
}

/// Numbers as good as random that are the same again for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Half of them alone with a lock of their own, half together; half are tried again.
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

/// What is asked for, and how long it may take.
fn order(dice: &mut Dice) -> (String, Option<f64>) {
    match dice.below(12) {
        0 => ("hang".to_owned(), Some(0.3)),
        1 => ("ignore-term".to_owned(), Some(0.3)),
        2 => ("fork-away".to_owned(), None),
        3 => ("crash".to_owned(), None),
        4 => (format!("exit {}", [1, 3, 64, 75][dice.below(4) as usize]), None),
        5 => (format!("flood {}", dice.below(3000)), None),
        6 => (format!("slow {}", dice.below(400)), None),
        7 => ("bad-json".to_owned(), None),
        8 => ("ask".to_owned(), None),
        _ => (format!("echo {}", dice.below(1_000_000)), None),
    }
}

/// Whether this can have come of it. A node that died, a cancellation and a timeout may have come between.
fn is_right(asked: &str, cancelled: bool, result: &ExecutionResult) -> bool {
    if result.status == Status::Cancelled {
        return cancelled;
    }
    if result.error_category == Some(Category::SystemError) {
        return result.status == Status::Failure && error_is(result, "adjutant was stopped while it ran");
    }
    let words: Vec<_> = asked.split_whitespace().collect();
    let success = |output: &str| result.status == Status::Success && result.output == output;
    match words[..] {
        ["hang" | "ignore-term"] => result.status == Status::Timeout,
        ["fork-away"] => success("left\n"),
        ["crash"] => result.error_category == Some(Category::AgentError) && error_is(result, "SIGABRT"),
        ["exit", code] => {
            let category = match code {
                "75" => Category::Transient,
                "64" => Category::Permanent,
                _ => Category::AgentError,
            };
            result.status == Status::Failure
                && result.exit_code == code.parse().ok()
                && result.error_category == Some(category)
        }
        ["flood", lines] => {
            let lines: usize = lines.parse().unwrap();
            let first_and_last = lines == 0
                || result.output.starts_with("          0 x")
                    && result.output.contains(&format!("{:>11} x", lines - 1));
            result.status == Status::Success && result.truncated == (lines > 200) && first_and_last
        }
        ["slow", _] => success("begun\ndone\n"),
        ["bad-json"] => success("{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": \n"),
        ["ask"] => success("What now? "),
        ["echo", word] => success(&format!("{word}\n")),
        _ => false,
    }
}

fn error_is(result: &ExecutionResult, part: &str) -> bool {
    result.error.as_deref().is_some_and(|error| error.contains(part))
}

/// Processes of this user that carry the mark of an execution of ours.
fn marked(asked: &[Asked]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(environment) = std::fs::read(entry.path().join("environ")) else { continue };
        let text = String::from_utf8_lossy(&environment).into_owned();
        let id = text.split('\0').find_map(|line| line.strip_prefix("ADJUTANT_EXECUTION_ID="));
        if id.and_then(|id| Uuid::try_parse(id).ok()).is_some_and(|id| asked.iter().any(|asked| asked.id == id)) {
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
    let mut dice = Dice(seed);
    let locks = tempfile::tempdir().unwrap();
    let mut node = Node::start(agents(locks.path())).await;
    let start = Instant::now();
    let mut asked: Vec<Asked> = Vec::new();
    for part in 0..=KILLS {
        for _ in 0..RUNS / (KILLS + 1) + 1 {
            if asked.len() == RUNS {
                break;
            }
            let (order, timeout) = order(&mut dice);
            let timeout = timeout.map(|seconds| serde_json::from_value(json!(seconds)).unwrap());
            let agent = format!("agent-{}", dice.below(AGENTS));
            let id = node.bench.submit(&agent, Draft { timeout, ..asking(&order) }).await.unwrap();
            asked.push(Asked { id, order, cancelled: false });
            if dice.below(8) == 0 {
                let victim = asked.len() - 1 - dice.below(20.min(asked.len() as u64)) as usize;
                asked[victim].cancelled |= node.bench.cancel(asked[victim].id).await.is_ok();
            }
        }
        tokio::time::sleep(Duration::from_millis(300 + dice.below(1200))).await;
        if part < KILLS {
            node.kill();
            node.restart();
        }
    }
    for Asked { id, order, cancelled } in &asked {
        let result = node.result(*id).await;
        legal(&result.state_transitions);
        assert!(is_right(order, *cancelled, &result), "{order}, cancelled: {cancelled}: {result:#?}");
    }
    assert_eq!(node.bench.all().await.len(), RUNS);
    let broken: Vec<_> = std::fs::read_dir(locks.path())
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(".broken"))
        .map(|entry| (entry.file_name(), std::fs::read_to_string(entry.path()).unwrap()))
        .collect();
    assert!(broken.is_empty(), "two at once: {broken:?}");
    let left = marked(&asked);
    assert!(left.is_empty(), "still there: {left:?}");
    node.stop(Duration::from_secs(20)).await;
    assert!(start.elapsed() < Duration::from_secs(90), "{:?}", start.elapsed());
}
