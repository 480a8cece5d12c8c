//! Tests of the measured resource usage of executions. SUP-8

use std::time::Duration;

use supervisor::guardian::{ChildEvent, ExitReason, ProcessUsage};

use crate::{double, guardian, scratch, spawn_null, text};

async fn measure(arguments: &[&str]) -> ProcessUsage {
    let guardian = guardian().await;
    let exit = spawn_null(&guardian, double(arguments)).await.wait().await;
    assert_eq!(exit.reason, ExitReason::Code(0));
    assert_eq!((exit.usage.rss, exit.usage.processes), (0, 0), "no process is left");
    exit.usage
}

fn assert_about(cpu: Duration, ms: u64) {
    assert!(
        cpu >= Duration::from_millis(ms * 9 / 10) && cpu < Duration::from_millis(ms * 3 / 2),
        "{cpu:?} for {ms} ms"
    );
}

#[tokio::test]
async fn cpu_time_includes_all_processes() {
    // SUP-8
    assert_about(measure(&["burn", "300"]).await.cpu, 300);
    assert_about(measure(&["burn-below", "200"]).await.cpu, 400);
}

#[tokio::test]
async fn cpu_time_includes_orphans() {
    // SUP-8
    let (_dir, path) = scratch();
    assert_about(measure(&["burn-orphan", "300", text(&path.join("done"))]).await.cpu, 300);
}

#[tokio::test]
async fn peak_memory_is_measured() {
    // SUP-8
    let usage = measure(&["hog", "120"]).await;
    assert!((120 << 20..180 << 20).contains(&usage.peak_rss), "{}", usage.peak_rss);
}

#[tokio::test]
async fn written_bytes_are_measured() {
    // SUP-8
    // On a real disk: writes to a memory file system do not count.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let usage = measure(&["write", text(&dir.path().join("file")), "16"]).await;
    assert!((16 << 20..24 << 20).contains(&usage.write_bytes), "{}", usage.write_bytes);
}

#[tokio::test]
async fn usage_is_sampled_during_the_run() {
    // SUP-8
    let guardian = guardian().await;
    let (_dir, path) = scratch();
    let mut child = spawn_null(&guardian, double(&["runaway", text(&path.join("pid"))])).await;
    let Some(ChildEvent::Usage(first)) = child.next().await else { panic!("a sample") };
    assert!(first.rss > 1 << 20 && first.processes >= 1, "{first:?}");
    let Some(ChildEvent::Usage(second)) = child.next().await else { panic!("a sample") };
    assert_eq!(second.processes, 2, "the program and its detached child");
    child.kill().await;
    child.wait().await;
}
