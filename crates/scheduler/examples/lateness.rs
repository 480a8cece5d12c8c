//! Measures the lateness of runs: from the due time to the decision, and to the start of the run. Of 100,000 schedules,
//! 100 are due at the same instant every second. Also measures memory and processor time.
//!
//! `cargo run --release -p scheduler --example lateness -- [SCHEDULES] [SECONDS] [SETUP SECONDS]`. Set
//! `BENCH_POSTGRES` to use a PostgreSQL database. `scripts/measure-lateness` compares it with other schedulers and reads its
//! last line.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement for developers")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use model::agent::AccessType;
use model::schedule::{ScheduleDraft, ScheduleSource};
use model::{Clock, UserId};
use scheduler::occurrences::OccurrenceRule;
use scheduler::{DiscardNotices, Scheduler, SchedulerOptions};
use serde_json::json;
use store::executions::OwnerScope;
use store::schedules::{self, NewSchedule, NextOccurrence};
use store::{Durability, Location, Store};
use supervisor::{Admission, AgentRun, RunRecorder, RunResult, Runner, Supervisor};
use tokio_util::sync::CancellationToken;

/// The number of schedules that are due in each second.
const DUE_PER_SECOND: usize = 100;

/// Records the number and the start time of each run.
struct RecordingRunner(Mutex<Vec<(usize, Timestamp)>>);

impl Runner for RecordingRunner {
    fn run<'a>(&'a self, run: &'a AgentRun, recorder: &'a RunRecorder) -> BoxFuture<'a, RunResult> {
        self.0.lock().unwrap().push((run.request.input.parse().unwrap(), Clock::system().now()));
        recorder.record_start(None);
        Box::pin(async { RunResult::default() })
    }
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>().unwrap());
    let count = arguments.next().unwrap_or(100_000);
    let seconds = arguments.next().unwrap_or(30);
    let ahead = arguments.next().unwrap_or(5 + count / 4000);
    let folder = tempfile::tempdir_in(std::env::var("BENCH_DIR").unwrap_or_else(|_| ".".to_owned())).unwrap();
    let location = match std::env::var("BENCH_POSTGRES") {
        Ok(url) => Location::postgres(url),
        Err(_) => Location::Sqlite(folder.path().join("db.sqlite")),
    };
    let clock = Clock::system();
    let runner = Arc::new(RecordingRunner(Mutex::default()));
    let store = Store::open(&location, Durability::Full).await.unwrap();
    let draft = model::agent::AgentDraft {
        id: Some("a".into()),
        executable_path: Some("/bin/true".into()),
        access_type: Some(AccessType::ReadOnly),
        max_concurrent_executions: Some(1000),
        queue_depth: Some(1_000_000),
        ..model::agent::AgentDraft::default()
    };
    let supervisor = Supervisor::new(supervisor::SupervisorOptions {
        store: store.clone(),
        clock: clock.clone(),
        data_dir: folder.path().to_owned(),
        variables: Arc::new(|_| None),
        admission: Admission::default(),
        agents: Vec::new(),
        built_in: vec![(draft.check().unwrap(), runner.clone())],
        guardian: supervisor::guardian::GuardianOptions::default(),
    });
    println!("{:>8.1} MB without schedules", memory("VmRSS"));
    let filling = std::time::Instant::now();
    // The first schedules are due when all of them exist.
    let start = Timestamp::from_second(clock.now().as_second() + i64::try_from(ahead).unwrap()).unwrap();
    let ids = fill(&store, &clock, count, start).await;
    println!("{:>8.1} MB with {count} schedules, created in {:.1} s", memory("VmRSS"), filling.elapsed().as_secs_f64());
    supervisor.start().await.unwrap();
    let scheduler = Scheduler::new(SchedulerOptions {
        supervisor: supervisor.clone(),
        notices: Arc::new(DiscardNotices),
        crash_hook: None,
    });
    let shutdown = CancellationToken::new();
    let worker = scheduler.clone();
    let stop = shutdown.clone();
    let work = tokio::spawn(async move { worker.run(stop).await });
    let left = start.duration_since(clock.now());
    assert!(left > SignedDuration::ZERO, "creating the schedules took too long: {left}");
    tokio::time::sleep(Duration::try_from(left).unwrap() + Duration::from_millis(500)).await;
    let before = cpu();
    tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
    let cpu = cpu() - before;
    let resident = memory("VmRSS");
    let most = memory("VmHWM");
    println!("{resident:>8.1} MB while running, {most:.1} MB peak, {:.1} % of a core", cpu / seconds as f64 * 100.0);
    // Wait for late runs.
    tokio::time::sleep(Duration::from_secs(1)).await;
    shutdown.cancel();
    work.await.unwrap();
    // The first second is a warm-up.
    let counted = DUE_PER_SECOND..(DUE_PER_SECOND * (seconds + 1)).min(count);
    let mut decided = Vec::new();
    let mut reader = store.reader().await.unwrap();
    for id in &ids[counted.clone()] {
        let page = schedules::history(&mut reader, OwnerScope::AllUsers, *id, None, 9).await.unwrap();
        decided.extend(page.rows.iter().map(|decision| decision.decided_at.duration_since(decision.due_at)));
    }
    drop(reader);
    let started = std::mem::take(&mut *runner.0.lock().unwrap());
    let started = started.into_iter().filter(|(n, _)| counted.contains(n));
    let started = started.map(|(n, time)| time.duration_since(due(start, n))).collect();
    print_summary("decided", decided);
    let [half, p99, last, runs] = print_summary("started", started);
    let figures = json!({
        "schedules": count, "wanted": counted.len(), "runs": runs, "p50": half, "p99": p99, "max": last,
        "memory": resident, "peak": most, "cpu": cpu / seconds as f64,
    });
    println!("{figures}");
    supervisor.stop().await;
}

/// Creates the schedules. Each is due once in `count / DUE_PER_SECOND` seconds, all of one second at the same instant.
async fn fill(store: &Store, clock: &Clock, count: usize, start: Timestamp) -> Vec<uuid::Uuid> {
    let ids: Vec<_> = (0..count).map(|_| clock.id()).collect();
    let all = ids.clone();
    let now = clock.now();
    let period = (count / DUE_PER_SECOND).max(1);
    for chunk in 0..count.div_ceil(5000) {
        let ids = all[chunk * 5000..((chunk + 1) * 5000).min(count)].to_vec();
        let job = store.transaction(async move |tx| -> store::Result<()> {
            for (n, id) in (chunk * 5000..).zip(ids) {
                let input = serde_json::Map::from_iter([("input".to_owned(), n.to_string().into())]);
                let draft = ScheduleDraft {
                    name: Some(format!("s{n}")),
                    agent_id: Some("a".into()),
                    every: Some(format!("{period}s")),
                    start_at: Some(due(start, n).to_string()),
                    input_parameters: Some(input),
                    ..ScheduleDraft::default()
                };
                let settings = draft.check(&jiff::tz::TimeZone::UTC).unwrap();
                let due_at = OccurrenceRule::new(&settings, now).unwrap().next_after(now).unwrap();
                let next = Some(NextOccurrence { due_at, fire_at: due_at });
                let new = NewSchedule { id, settings, source: ScheduleSource::Api, paused_reason: None, next };
                schedules::create(tx, UserId::LOCAL, &new, now).await?;
            }
            Ok(())
        });
        job.await.unwrap();
    }
    ids
}

/// Returns the first due time of schedule `n`.
fn due(start: Timestamp, n: usize) -> Timestamp {
    start + SignedDuration::from_secs(i64::try_from(n / DUE_PER_SECOND).unwrap())
}

/// Prints and returns p50, p99 and maximum in milliseconds, and the number of runs.
fn print_summary(label: &str, mut late: Vec<SignedDuration>) -> [f64; 4] {
    late.sort();
    let at = |share: f64| {
        late.get((late.len().saturating_sub(1) as f64 * share) as usize).map_or(0.0, |late| late.as_secs_f64() * 1e3)
    };
    let half = at(0.5);
    let p99 = at(0.99);
    let last = at(1.0);
    println!("{label:>8}: {} runs, p50 {half:.1} ms, p99 {p99:.1} ms, max {last:.1} ms late", late.len());
    [half, p99, last, late.len() as f64]
}

/// Returns the user and system time of this process in seconds.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

/// Returns a value of `/proc/self/status` in MB.
fn memory(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_start_matches(':').split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1024.0
}
