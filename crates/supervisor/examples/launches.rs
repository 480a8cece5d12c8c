//! Measures how many programs per second the guardian starts and ends, compared with `posix_spawn`.
//!
//! Run it with `cargo run --release -p supervisor --example launches`.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement for developers")]

use std::process::{Command, ExitCode};
use std::time::Instant;

use supervisor::guardian::{self, ExitReason, Guardian, GuardianOptions, Launch, ProcessLimits, Sandbox, Stdio};
use uuid::Uuid;

const LAUNCHES: u128 = 2000;

fn main() -> ExitCode {
    if let Some(code) = guardian::intercept() {
        return code;
    }
    let start = Instant::now();
    for _ in 0..LAUNCHES {
        Command::new("/bin/true").env_clear().status().unwrap();
    }
    let raw = rate(start);
    println!("{raw:>6.0}/s by posix_spawn, one after the other");
    tokio::runtime::Runtime::new().unwrap().block_on(measure(raw));
    ExitCode::SUCCESS
}

async fn measure(raw: f64) {
    let guardian = Guardian::start(GuardianOptions::default()).await.unwrap();
    let plain = Launch::new(Uuid::nil(), "/bin/true", "/");
    let confined = Launch { sandbox: Some(Sandbox { write: vec!["/tmp".into()] }), ..plain.clone() };
    let limited =
        Launch { limits: ProcessLimits { open_files: Some(256), ..ProcessLimits::default() }, ..plain.clone() };
    for (name, launch) in [("plain", plain), ("sandboxed", confined), ("limited", limited)] {
        for together in [1, 16] {
            let start = Instant::now();
            let mut tasks = tokio::task::JoinSet::new();
            for task in 0..together {
                let guardian = guardian.clone();
                let mut launch = launch.clone();
                tasks.spawn(async move {
                    for turn in 0..LAUNCHES / together {
                        launch.id = Uuid::from_u128(turn * together + task);
                        let mut child = guardian.spawn(launch.clone(), Stdio::null().unwrap()).await.unwrap();
                        assert_eq!(child.wait().await.reason, ExitReason::Code(0));
                    }
                });
            }
            while let Some(done) = tasks.join_next().await {
                done.unwrap();
            }
            let rate = rate(start);
            println!("{rate:>6.0}/s {name}, {together} at a time: {:.0} % of that", rate / raw * 100.0);
        }
    }
    let status = format!("/proc/{}/status", guardian.pid().await.unwrap());
    let status = std::fs::read_to_string(status).unwrap();
    println!("guardian {}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default());
    guardian.stop().await;
}

fn rate(start: Instant) -> f64 {
    LAUNCHES as f64 / start.elapsed().as_secs_f64()
}
