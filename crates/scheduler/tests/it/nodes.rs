//! Three nodes on one PostgreSQL. One is killed, and one is frozen for longer than its lease.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use model::Clock;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use store::schedules;

use crate::bench::Bench;
use crate::crashes::{DOUBLE, location_argument};

const SCHEDULES: usize = 500;
/// Longer than the lease of a node, which is 20 s.
const FROZEN: Duration = Duration::from_secs(25);

struct Node {
    process: Child,
    _dir: tempfile::TempDir,
}

impl Node {
    fn start(bench: &Bench) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut process = Command::new(DOUBLE)
            .args(["node", &location_argument(&bench.location)])
            .arg(dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self { process, _dir: dir }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id().cast_signed()), signal).unwrap();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Counts the schedules by their number of decisions and executions.
async fn tally(bench: &Bench) -> BTreeMap<(usize, usize), usize> {
    let mut reader = bench.store().reader().await.unwrap();
    let mut tally = BTreeMap::new();
    let mut after = None;
    let all_users = store::executions::OwnerScope::AllUsers;
    loop {
        let filter = schedules::ScheduleFilter::default();
        let page = schedules::list(&mut reader, all_users, &filter, after.as_ref(), 200, bench.now()).await.unwrap();
        for schedule in page.rows {
            let decisions = schedules::history(&mut reader, all_users, schedule.id, None, 10).await.unwrap().rows.len();
            let filter = store::executions::ExecutionFilter { schedule_id: Some(schedule.id), ..Default::default() };
            let executions = store::executions::list(&mut reader, all_users, &filter, None, 10).await.unwrap().rows;
            *tally.entry((decisions, executions.len())).or_default() += 1;
        }
        after = page.next;
        if after.is_none() {
            return tally;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_schedule_fires_once_despite_a_killed_and_a_frozen_node() {
    // SCHED-4, OPS-5
    let bench = Bench::postgres().await;
    let mut nodes = [Node::start(&bench), Node::start(&bench), Node::start(&bench)];
    let due = Timestamp::from_second(Clock::system().now().as_second() + 12).unwrap();
    bench.clock.set(Clock::system().now());
    let created =
        (0..SCHEDULES).map(|_| bench.create(json!({"at": due.to_string(), "input_parameters": {"input": "ok"}})));
    futures::future::join_all(created).await;
    let left = due.duration_since(Clock::system().now());
    assert!(left > SignedDuration::from_secs(1), "creating the schedules took too long");
    tokio::time::sleep(Duration::try_from(left).unwrap() + Duration::from_millis(60)).await;
    nodes[0].signal(Signal::SIGKILL);
    nodes[1].signal(Signal::SIGSTOP);
    nodes[0].process.wait().unwrap();
    tokio::time::sleep(FROZEN).await;
    nodes[1].signal(Signal::SIGCONT);
    let all = async || tally(&bench).await.get(&(1, 1)).copied();
    crate::bench::until("every schedule has a decision", async || all().await == Some(SCHEDULES)).await;
    // Give the resumed node time to act on its stale state.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(tally(&bench).await, BTreeMap::from([((1, 1), SCHEDULES)]));
}
