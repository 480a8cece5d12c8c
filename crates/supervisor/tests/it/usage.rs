//! What an execution is said to have used is about what it has used. SUP-8

use std::time::Duration;

use supervisor::guardian::{How, Sign, Usage};

use crate::{double, guardian, quiet, scratch, text};

async fn used(arguments: &[&str]) -> Usage {
    let guardian = guardian().await;
    let exit = quiet(&guardian, double(arguments)).await.wait().await;
    assert_eq!(exit.how, How::Code(0));
    assert_eq!((exit.usage.rss, exit.usage.processes), (0, 0), "nothing is left");
    exit.usage
}

fn about(cpu: Duration, ms: u64) {
    assert!(
        cpu >= Duration::from_millis(ms * 9 / 10) && cpu < Duration::from_millis(ms * 3 / 2),
        "{cpu:?} for {ms} ms"
    );
}

#[tokio::test]
async fn time_is_counted_for_all_processes() {
    about(used(&["burn", "300"]).await.cpu, 300);
    about(used(&["burn-below", "200"]).await.cpu, 400);
}

#[tokio::test]
async fn time_of_orphans_is_counted() {
    let (_dir, path) = scratch();
    about(used(&["burn-orphan", "300", text(&path.join("done"))]).await.cpu, 300);
}

#[tokio::test]
async fn memory_is_what_the_tree_had_at_its_peak() {
    let usage = used(&["hog", "120"]).await;
    assert!((120 << 20..180 << 20).contains(&usage.peak_rss), "{}", usage.peak_rss);
}

#[tokio::test]
async fn what_is_written_is_counted() {
    // On a disk: what is written to memory is no disk's work.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let usage = used(&["write", text(&dir.path().join("file")), "16"]).await;
    assert!((16 << 20..24 << 20).contains(&usage.write_bytes), "{}", usage.write_bytes);
}

#[tokio::test]
async fn samples_come_while_it_runs() {
    let guardian = guardian().await;
    let (_dir, path) = scratch();
    let mut child = quiet(&guardian, double(&["runaway", text(&path.join("pid"))])).await;
    let Some(Sign::Usage(first)) = child.next().await else { panic!("a sample") };
    assert!(first.rss > 1 << 20 && first.processes >= 1, "{first:?}");
    let Some(Sign::Usage(second)) = child.next().await else { panic!("a sample") };
    assert_eq!(second.processes, 2, "it and what has left it");
    child.kill().await;
    child.wait().await;
}
