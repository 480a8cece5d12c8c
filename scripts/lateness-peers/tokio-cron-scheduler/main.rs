//! The measurement of crates/scheduler/examples/lateness.rs with tokio-cron-scheduler: with-tokio-cron-scheduler SCHEDULES SECONDS
//!
//! Jobs are in memory and lost with the process; each is due once a day, at a second of its own hundred. A job only notes when
//! it was started: nothing is put into a queue, nothing is written down. `scripts/measure-lateness` runs it and reads its last
//! line.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio_cron_scheduler::{Job, JobScheduler};

const A_SECOND: usize = 100;
/// Larger than the number of due jobs with three messages each. Messages beyond the capacity are lost.
const CHANNEL: usize = 1000;

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>().unwrap());
    let count = arguments.next().unwrap(); let seconds = arguments.next().unwrap();
    let started = Arc::new(Mutex::new(Vec::new()));
    let scheduler = JobScheduler::new_with_channel_size(CHANNEL).await.unwrap();
    let began = now();
    let start = began as u64 + 10 + count as u64 / 2000;
    for n in 0..count {
        let due = (start + (n / A_SECOND) as u64) % 86_400;
        let daily = format!("{} {} {} * * *", due % 60, due / 60 % 60, due / 3600);
        let noting = started.clone();
        let job = Job::new(daily, move |_, _| noting.lock().unwrap().push((n, now()))).unwrap();
        scheduler.add(job).await.unwrap();
    }
    println!("{:8.1} MB with {count} jobs, made in {:.1} s", memory("VmRSS"), now() - began);
    assert!(now() < start as f64, "they were not ready in time");
    scheduler.start().await.unwrap();
    tokio::time::sleep(Duration::from_secs_f64(start as f64 + 0.5 - now())).await;
    let before = cpu();
    tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
    let cpu = (cpu() - before) / seconds as f64; let resident = memory("VmRSS"); let most = memory("VmHWM");
    // So that the last ones may be late.
    tokio::time::sleep(Duration::from_secs(1)).await;
    // Those of the first second warm it up.
    let counted = A_SECOND..(A_SECOND * (seconds + 1)).min(count);
    let started = started.lock().unwrap();
    let started = started.iter().filter(|(n, _)| counted.contains(n));
    let mut late: Vec<f64> = started.map(|(n, time)| (time - start as f64 - (n / A_SECOND) as f64) * 1e3).collect();
    late.sort_by(f64::total_cmp);
    let at = |share: f64| late.get((late.len().saturating_sub(1) as f64 * share) as usize).copied().unwrap_or_default();
    let half = at(0.5); let p99 = at(0.99); let last = at(1.0); let runs = late.len(); let wanted = counted.len();
    println!(
        "{{\"schedules\": {count}, \"wanted\": {wanted}, \"runs\": {runs}, \"p50\": {half}, \"p99\": {p99}, \"max\": {last}, \
         \"memory\": {resident}, \"peak\": {most}, \"cpu\": {cpu}}}"
    );
    // Exits without waiting for pending jobs.
    std::process::exit(0);
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

fn memory(what: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
    line.trim_start_matches(':').split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1024.0
}

/// User and system time so far, in seconds.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}
