//! The clock goes on, stands still, jumps ahead and is put back; and the scheduler of a node sleeps until there is something
//! to do.

use std::time::Duration;

use jiff::SignedDuration;
use model::schedule::Kind;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, until};
use crate::on_both;

on_both!(a_clock_that_is_put_back, a_clock_that_jumps_ahead, asleep_until_it_is_due);

async fn a_clock_that_is_put_back(bench: Bench) {
    // SCHED-4: no time twice
    let id = bench.create(json!({"cron_expression": "*/10 * * * *", "overlap": "allow"})).await.id;
    for _ in 0..6 {
        bench.after(600).await;
    }
    bench.clock.set(bench.now() - SignedDuration::from_mins(30));
    for _ in 0..3 {
        bench.after(600).await;
    }
    assert_eq!(bench.kinds(id).await, [Kind::Fired; 6]);
    bench.after(600).await;
    assert_eq!(bench.kinds(id).await, [Kind::Fired; 7]);
    // Not even where somebody makes it count anew from the earlier time.
    bench.clock.set(bench.now() - SignedDuration::from_mins(30));
    bench.pause(id, "a moment").await;
    bench.resume(id).await.unwrap();
    for _ in 0..4 {
        bench.after(600).await;
    }
    let history = bench.history(id).await;
    assert_eq!((history.len(), bench.executions(id).await.len()), (8, 8));
    assert!(
        history.windows(2).all(|pair| pair[1].due_at.duration_since(pair[0].due_at) == SignedDuration::from_mins(10))
    );
}

async fn a_clock_that_jumps_ahead(bench: Bench) {
    // SCHED-3: what the jump passed over was missed
    let id = bench.create(json!({"cron_expression": "*/10 * * * *", "overlap": "allow"})).await.id;
    bench.after(600).await;
    bench.after(3600 * 24 * 400).await;
    let history = bench.history(id).await;
    assert_eq!(history.len(), 1 + 1000 + 2);
    assert_eq!(history.last().unwrap().kind, Kind::Fired);
    assert_eq!(bench.executions(id).await.len(), 2);
    assert_eq!(bench.get(id).await.next_execution.unwrap(), bench.now() + SignedDuration::from_mins(10));
}

async fn asleep_until_it_is_due(bench: Bench) {
    // SCHED-4
    let bench = bench.working().await;
    let shutdown = CancellationToken::new();
    let scheduler = bench.scheduler.clone();
    let stop = shutdown.clone();
    let work = tokio::spawn(async move { scheduler.run(stop).await });
    let id = bench.create(json!({"every": "1h", "overlap": "allow", "input_parameters": {"input": "fail"}})).await.id;
    bench.scheduler.wake();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(bench.history(id).await.is_empty());
    bench.advance(3600);
    bench.scheduler.wake();
    until("it was run and its end acted upon", async || bench.get(id).await.failures == 1).await;
    assert_eq!(bench.kinds(id).await, [Kind::Fired]);
    let decided: Vec<_> = bench.scheduler.decided().filter(|(_, count)| *count > 0).collect();
    assert_eq!(decided, [(Kind::Fired, 1)]);
    shutdown.cancel();
    tokio::time::timeout(Duration::from_secs(10), work).await.unwrap().unwrap();
}
