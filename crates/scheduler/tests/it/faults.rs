//! A node that is killed between "due" and "started": nothing is lost, nothing is doubled.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::execution::StateName;
use model::schedule::Kind;
use scheduler::{Point, Witness};
use serde_json::json;
use store::Location;

use crate::bench::{Bench, until};
use crate::on_both;

pub(crate) const DOUBLE: &str = env!("CARGO_BIN_EXE_scheduler-double");

on_both!(killed_at_every_point, a_transaction_that_comes_to_nothing);

pub(crate) fn written(location: &Location) -> String {
    match location {
        Location::Sqlite(path) => format!("sqlite:{}", path.to_str().unwrap()),
        Location::Postgres(url) => url.clone(),
    }
}

async fn killed_at_every_point(bench: Bench) {
    // SCHED-4
    let points = [Point::Seen, Point::Prepared, Point::Advanced, Point::Written, Point::Committed];
    let mut ids = Vec::new();
    for point in points {
        let id = bench.create(json!({"every": "1m", "overlap": "allow", "input_parameters": {"input": "ok"}})).await.id;
        bench.advance(60);
        let dir = tempfile::tempdir().unwrap();
        let location = written(&bench.location);
        let now = bench.now().to_string();
        let point_name = format!("{point:?}");
        let killed = Command::new(DOUBLE).args(["fire", &location]).arg(dir.path()).args([&now, &point_name]).status();
        assert_eq!(killed.unwrap().signal(), Some(9), "{point:?}");
        let committed = point == Point::Committed;
        assert_eq!(bench.history(id).await.len(), usize::from(committed), "{point:?}");
        assert_eq!(bench.executions(id).await.len(), usize::from(committed), "{point:?}");
        // Whoever comes next goes on from there, once PostgreSQL has seen that its client is dead.
        until("somebody acts", async || {
            bench.scheduler.fire_due().await.unwrap();
            !bench.history(id).await.is_empty()
        })
        .await;
        bench.scheduler.fire_due().await.unwrap();
        assert_eq!(bench.kinds(id).await, [Kind::Fired], "{point:?}");
        assert_eq!(bench.executions(id).await.len(), 1, "{point:?}");
        bench.pause(id, "done").await;
        ids.push(id);
    }
    let bench = bench.working().await;
    for id in ids {
        bench.ended(id).await;
        let executions = bench.executions(id).await;
        assert_eq!(executions[0].state_name(), StateName::Completed, "also what nobody was told of");
        assert_eq!(Some(executions[0].id), bench.history(id).await[0].execution_id);
    }
}

async fn a_transaction_that_comes_to_nothing(bench: Bench) {
    // SCHED-4: the database takes it back when everything is written
    let fails = Arc::new(AtomicBool::new(true));
    let once = fails.clone();
    let witness: Witness = Arc::new(move |point| {
        assert!(point != Point::Written || !once.swap(false, Ordering::Relaxed), "on purpose");
    });
    let id = bench.create(json!({"every": "1m", "input_parameters": {"input": "write to bob@example.com"}})).await.id;
    bench.advance(60);
    let other = bench.beside(Some(witness)).await;
    other.clock.set(bench.now());
    assert!(other.scheduler.fire_due().await.is_err());
    assert!(!fails.load(Ordering::Relaxed));
    assert!(bench.history(id).await.is_empty() && bench.executions(id).await.is_empty());
    assert_eq!(other.spooled(), 0, "what was prepared for it is gone");
    other.scheduler.fire_due().await.unwrap();
    assert_eq!(other.spooled(), 1, "an address is not kept in the database");
    assert_eq!((bench.kinds(id).await, bench.executions(id).await.len()), (vec![Kind::Fired], 1));
}
