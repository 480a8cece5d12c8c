//! How late runs are, from their time to the decision and to the start of the run, with 100,000 schedules of which 100 are due
//! in the same instant every second; and what memory and processor time that takes.
//!
//! `cargo run --release -p scheduler --example lateness -- [SCHEDULES] [SECONDS] [SECONDS TO MAKE THEM]`; `BENCH_POSTGRES` for a
//! database there. `scripts/measure-lateness` runs it beside other schedulers and reads its last line.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement for whoever builds this")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use model::agent::AccessType;
use model::schedule::{Draft, Source};
use model::{Clock, UserId};
use scheduler::when::When;
use scheduler::{Options, Scheduler, Silent};
use serde_json::json;
use store::executions::Whose;
use store::schedules::{self, New, Next};
use store::{Durability, Location, Store};
use supervisor::{Admission, Desk, Ended, Run, Runner, Supervisor};
use tokio_util::sync::CancellationToken;

const A_SECOND: usize = 100;

/// Notes which was started, and when.
struct Noting(Mutex<Vec<(usize, Timestamp)>>);

impl Runner for Noting {
    fn run<'a>(&'a self, run: &'a Run, desk: &'a Desk) -> BoxFuture<'a, Ended> {
        self.0.lock().unwrap().push((run.request.input.parse().unwrap(), Clock::system().now()));
        desk.started(None);
        Box::pin(async { Ended::default() })
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
        Ok(url) => Location::Postgres(url),
        Err(_) => Location::Sqlite(folder.path().join("db.sqlite")),
    };
    let clock = Clock::system();
    let noting = Arc::new(Noting(Mutex::default()));
    let store = Store::open(&location, Durability::Full).await.unwrap();
    let draft = model::agent::Draft {
        id: Some("a".into()),
        executable_path: Some("/bin/true".into()),
        access_type: Some(AccessType::ReadOnly),
        max_concurrent_executions: Some(1000),
        queue_depth: Some(1_000_000),
        ..model::agent::Draft::default()
    };
    let supervisor = Supervisor::new(supervisor::Options {
        store: store.clone(),
        clock: clock.clone(),
        data_dir: folder.path().to_owned(),
        variables: Arc::new(|_| None),
        admission: Admission::default(),
        agents: Vec::new(),
        built_in: vec![(draft.check().unwrap(), noting.clone())],
        guardian: supervisor::guardian::Options::default(),
    });
    println!("{:>8.1} MB with nothing", memory("VmRSS"));
    let filling = std::time::Instant::now();
    // The first come due when all are there.
    let start = Timestamp::from_second(clock.now().as_second() + i64::try_from(ahead).unwrap()).unwrap();
    let ids = fill(&store, &clock, count, start).await;
    println!("{:>8.1} MB with {count} schedules, made in {:.1} s", memory("VmRSS"), filling.elapsed().as_secs_f64());
    supervisor.work().await.unwrap();
    let scheduler =
        Scheduler::new(Options { supervisor: supervisor.clone(), notices: Arc::new(Silent), witness: None });
    let shutdown = CancellationToken::new();
    let worker = scheduler.clone();
    let stop = shutdown.clone();
    let work = tokio::spawn(async move { worker.run(stop).await });
    let left = start.duration_since(clock.now());
    assert!(left > SignedDuration::ZERO, "they were not ready in time: {left}");
    tokio::time::sleep(Duration::try_from(left).unwrap() + Duration::from_millis(500)).await;
    let before = cpu();
    tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
    let cpu = cpu() - before;
    let resident = memory("VmRSS");
    let most = memory("VmHWM");
    println!("{resident:>8.1} MB at work, {most:.1} MB at most, {:.1} % of a core", cpu / seconds as f64 * 100.0);
    // So that the last ones may be late.
    tokio::time::sleep(Duration::from_secs(1)).await;
    shutdown.cancel();
    work.await.unwrap();
    // Those of the first second warm it up.
    let counted = A_SECOND..(A_SECOND * (seconds + 1)).min(count);
    let mut decided = Vec::new();
    let mut reader = store.reader().await.unwrap();
    for id in &ids[counted.clone()] {
        let page = schedules::history(&mut reader, Whose::Everyones, *id, None, 9).await.unwrap();
        decided.extend(page.rows.iter().map(|decision| decision.decided_at.duration_since(decision.due_at)));
    }
    drop(reader);
    let started = std::mem::take(&mut *noting.0.lock().unwrap());
    let started = started.into_iter().filter(|(n, _)| counted.contains(n));
    let started = started.map(|(n, time)| time.duration_since(due(start, n))).collect();
    say("seen", decided);
    let [half, p99, last, runs] = say("started", started);
    let figures = json!({
        "schedules": count, "wanted": counted.len(), "runs": runs, "p50": half, "p99": p99, "max": last,
        "memory": resident, "peak": most, "cpu": cpu / seconds as f64,
    });
    println!("{figures}");
    supervisor.stop().await;
}

/// Each comes due once in `count / A_SECOND` seconds, those of one second together.
async fn fill(store: &Store, clock: &Clock, count: usize, start: Timestamp) -> Vec<uuid::Uuid> {
    let ids: Vec<_> = (0..count).map(|_| clock.id()).collect();
    let all = ids.clone();
    let now = clock.now();
    let period = (count / A_SECOND).max(1);
    for chunk in 0..count.div_ceil(5000) {
        let ids = all[chunk * 5000..((chunk + 1) * 5000).min(count)].to_vec();
        let job = store.transaction(async move |tx| -> store::Result<()> {
            for (n, id) in (chunk * 5000..).zip(ids) {
                let input = serde_json::Map::from_iter([("input".to_owned(), n.to_string().into())]);
                let draft = Draft {
                    name: Some(format!("s{n}")),
                    agent_id: Some("a".into()),
                    every: Some(format!("{period}s")),
                    start_at: Some(due(start, n).to_string()),
                    input_parameters: Some(input),
                    ..Draft::default()
                };
                let settings = draft.check(&jiff::tz::TimeZone::UTC).unwrap();
                let at = When::new(&settings, now).unwrap().after(now).unwrap();
                let next = Some(Next { due_at: at, at });
                let new = New { id, settings, source: Source::Api, paused: None, next };
                schedules::create(tx, UserId::LOCAL, &new, now).await?;
            }
            Ok(())
        });
        job.await.unwrap();
    }
    ids
}

/// When this one is due for the first time.
fn due(start: Timestamp, n: usize) -> Timestamp {
    start + SignedDuration::from_secs(i64::try_from(n / A_SECOND).unwrap())
}

/// p50, p99 and the most in milliseconds, and how many there are.
fn say(what: &str, mut late: Vec<SignedDuration>) -> [f64; 4] {
    late.sort();
    let at = |share: f64| {
        late.get((late.len().saturating_sub(1) as f64 * share) as usize).map_or(0.0, |late| late.as_secs_f64() * 1e3)
    };
    let half = at(0.5);
    let most = at(0.99);
    let last = at(1.0);
    println!("{what:>8}: {} runs, p50 {half:.1} ms, p99 {most:.1} ms, at most {last:.1} ms late", late.len());
    [half, most, last, late.len() as f64]
}

/// User and system time so far, in seconds.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

fn memory(what: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
    line.trim_start_matches(':').split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1024.0
}
