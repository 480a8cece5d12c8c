//! Nodes that are killed while they fire a schedule. No run is lost, and none is started twice.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::execution::StateName;
use model::schedule::DecisionKind;
use scheduler::{CrashHook, CrashPoint};
use serde_json::json;
use store::Location;

use crate::bench::{Bench, until};
use crate::on_both;

pub(crate) const DOUBLE: &str = env!("CARGO_BIN_EXE_scheduler-double");

on_both!(a_kill_at_any_point_loses_no_run, a_rolled_back_firing_is_repeated);

pub(crate) fn location_argument(location: &Location) -> String {
    match location {
        Location::Sqlite(path) => format!("sqlite:{}", path.to_str().unwrap()),
        Location::Postgres(settings) => settings.url.clone(),
    }
}

async fn a_kill_at_any_point_loses_no_run(bench: Bench) {
    // SCHED-4
    let points =
        [CrashPoint::Due, CrashPoint::Prepared, CrashPoint::Advanced, CrashPoint::Written, CrashPoint::Committed];
    let mut ids = Vec::new();
    for point in points {
        let id = bench.create(json!({"every": "1m", "overlap": "allow", "input_parameters": {"input": "ok"}})).await.id;
        bench.advance(60);
        let dir = tempfile::tempdir().unwrap();
        let location = location_argument(&bench.location);
        let now = bench.now().to_string();
        let point_name = format!("{point:?}");
        let killed = Command::new(DOUBLE).args(["fire", &location]).arg(dir.path()).args([&now, &point_name]).status();
        assert_eq!(killed.unwrap().signal(), Some(9), "{point:?}");
        let committed = point == CrashPoint::Committed;
        assert_eq!(bench.history(id).await.len(), usize::from(committed), "{point:?}");
        assert_eq!(bench.executions(id).await.len(), usize::from(committed), "{point:?}");
        // The next node continues once PostgreSQL has noticed that the client is dead.
        until("the schedule is fired", async || {
            bench.scheduler.fire_due().await.unwrap();
            !bench.history(id).await.is_empty()
        })
        .await;
        bench.scheduler.fire_due().await.unwrap();
        assert_eq!(bench.decision_kinds(id).await, [DecisionKind::Fired], "{point:?}");
        assert_eq!(bench.executions(id).await.len(), 1, "{point:?}");
        bench.pause(id, "done").await;
        ids.push(id);
    }
    let bench = bench.with_running_agents().await;
    for id in ids {
        bench.wait_until_ended(id).await;
        let executions = bench.executions(id).await;
        assert_eq!(executions[0].state_name(), StateName::Completed, "the commit alone is enough to run it");
        assert_eq!(Some(executions[0].id), bench.history(id).await[0].execution_id);
    }
}

async fn a_rolled_back_firing_is_repeated(bench: Bench) {
    // SCHED-4: the transaction fails after everything is written
    let fails = Arc::new(AtomicBool::new(true));
    let once = fails.clone();
    let crash_hook: CrashHook = Arc::new(move |point| {
        assert!(point != CrashPoint::Written || !once.swap(false, Ordering::Relaxed), "intended panic");
    });
    let id = bench.create(json!({"every": "1m", "input_parameters": {"input": "write to bob@example.com"}})).await.id;
    bench.advance(60);
    let other = bench.second_node(Some(crash_hook)).await;
    other.clock.set(bench.now());
    assert!(other.scheduler.fire_due().await.is_err());
    assert!(!fails.load(Ordering::Relaxed));
    assert!(bench.history(id).await.is_empty() && bench.executions(id).await.is_empty());
    assert_eq!(other.spool_file_count(), 0, "the spool file is removed on rollback");
    other.scheduler.fire_due().await.unwrap();
    assert_eq!(other.spool_file_count(), 1, "an e-mail address is not stored in the database");
    assert_eq!((bench.decision_kinds(id).await, bench.executions(id).await.len()), (vec![DecisionKind::Fired], 1));
}
