//! Tests of the queue: concurrency, order, depth and timeout.

use std::time::Duration;

use model::execution::{ExecutionState, ExecutionStatus, StateName};
use serde_json::json;
use store::Error;
use store::executions::OwnerScope;
use supervisor::Admission;

use crate::bench::{Bench, BenchBuilder, doubled, error, input_draft, script, succeeded, wait_until};

// SUP-4
#[tokio::test]
async fn a_read_write_agent_runs_alone_and_in_order() {
    let bench = BenchBuilder::new(json!([])).build().await;
    let lock = bench.file("lock");
    let order = bench.file("order");
    let text = "mkdir \"$LOCK\" || exit 9; cat >> \"$ORDER\"; sleep 0.05; rmdir \"$LOCK\"";
    let more = json!({"access_type": "read-write", "queue_depth": 100,
        "envs": {"LOCK": lock.to_str().unwrap(), "ORDER": order.to_str().unwrap()}});
    let dir = tempfile::tempdir().unwrap();
    let alone = BenchBuilder::new(json!([script("alone", text, more)])).at(dir.path()).start().await;
    let mut ids = Vec::new();
    for turn in 0..12 {
        ids.push(alone.enqueue("alone", &format!("{turn} ")).await);
    }
    tokio::time::timeout(crate::bench::TIMEOUT, alone.supervisor.wait_until_agent_idle("alone"))
        .await
        .unwrap()
        .unwrap();
    for id in ids {
        let result = alone.result(id).await;
        assert_eq!(result.exit_code, Some(0), "another one ran: {result:#?}");
    }
    let expected: String = (0..12).map(|turn| format!("{turn} ")).collect();
    assert_eq!(std::fs::read_to_string(order).unwrap(), expected);
    alone.stop().await;
}

// SUP-4
#[tokio::test]
async fn an_execution_is_claimed_in_the_transaction_that_enqueues_it() {
    let bench = Bench::new(json!([script("alone", "cat", json!({"access_type": "read-write"}))])).await;
    let supervisor = bench.supervisor.clone();
    let submissions = ["first", "second"].map(|input| bench.prepare("alone", input_draft(input)).unwrap());
    let seen = bench.store().transaction(async move |tx| -> store::Result<_> {
        let mut seen = Vec::new();
        for submission in submissions {
            let id = supervisor.enqueue(tx, submission).await?;
            seen.push((id, store::executions::get(tx, OwnerScope::AllUsers, id).await?.state_name()));
        }
        Ok(seen)
    });
    let [(first, claimed), (second, waiting)] = seen.await.unwrap()[..] else { panic!("two were enqueued") };
    assert_eq!((claimed, waiting), (StateName::Starting, StateName::Idle));
    assert_eq!(succeeded(&bench.result(first).await), "first");
    assert_eq!(succeeded(&bench.result(second).await), "second");
    bench.stop().await;
}

// SUP-4
#[tokio::test]
async fn a_rollback_leaves_no_execution_no_slot_and_no_secret() {
    let bench = Bench::new(json!([script("alone", "cat", json!({"access_type": "read-write"}))])).await;
    let submission = bench.prepare("alone", input_draft("password=hunter22hunter22")).unwrap();
    let lost = submission.id();
    let file = bench.file("spool").join(format!("{lost}.json"));
    assert!(file.exists());
    let supervisor = bench.supervisor.clone();
    let refused = bench.store().transaction(async move |tx| {
        supervisor.enqueue(tx, submission).await?;
        Err::<(), _>(Error::NotFound)
    });
    assert!(matches!(refused.await, Err(Error::NotFound)));
    assert!(!file.exists(), "the secret is still on disk");
    assert_eq!(bench.supervisor.running_count(), 0);
    assert!(matches!(bench.supervisor.wait(OwnerScope::AllUsers, lost).await, Err(Error::NotFound)));
    assert_eq!(succeeded(&bench.run("alone", "next").await), "next");
    bench.stop().await;
}

// SUP-4
#[tokio::test]
async fn an_execution_starts_although_its_caller_stopped_waiting() {
    let bench = Bench::new(json!([script("alone", "cat", json!({"access_type": "read-write"}))])).await;
    let submission = bench.prepare("alone", input_draft("hello")).unwrap();
    let id = submission.id();
    let supervisor = bench.supervisor.clone();
    let (entered, has_entered) = tokio::sync::oneshot::channel();
    let (proceed, may_proceed) = std::sync::mpsc::channel::<()>();
    let enqueue = bench.store().transaction(async move |tx| {
        entered.send(()).unwrap();
        may_proceed.recv().unwrap();
        supervisor.enqueue(tx, submission).await
    });
    tokio::select! {
        _ = enqueue => panic!("the transaction ended before it was allowed to"),
        entered = has_entered => entered.unwrap(),
    }
    proceed.send(()).unwrap();
    wait_until("the execution is committed", async || {
        let mut reader = bench.store().reader().await.unwrap();
        store::executions::get(&mut reader, OwnerScope::AllUsers, id).await.is_ok()
    })
    .await;
    assert_eq!(succeeded(&bench.result(id).await), "hello");
    bench.stop().await;
}

// SUP-4
#[tokio::test]
async fn read_only_agents_run_together_up_to_their_limit() {
    let dir = tempfile::tempdir().unwrap();
    let gate = dir.path().join("gate");
    let text = "while [ ! -e \"$GATE\" ]; do sleep 0.02; done; cat";
    let more = json!({"max_concurrent_executions": 3, "envs": {"GATE": gate.to_str().unwrap()}});
    let bench = Bench::new(json!([script("many", text, more)])).await;
    let mut ids = Vec::new();
    for turn in 0..5 {
        ids.push(bench.enqueue("many", &turn.to_string()).await);
    }
    for id in &ids[..3] {
        bench.reaches(*id, StateName::Running).await;
    }
    assert_eq!(bench.supervisor.running_count(), 3);
    // SUP-5: the queue positions of the remaining executions.
    for (id, position) in [(ids[3], 1), (ids[4], 2)] {
        let waits = bench.get(id).await;
        assert_eq!(*waits.state(), ExecutionState::Idle { queue_position: Some(position) });
    }
    std::fs::write(gate, "").unwrap();
    for (turn, id) in ids.into_iter().enumerate() {
        assert_eq!(succeeded(&bench.result(id).await), turn.to_string());
    }
    bench.stop().await;
}

// SUP-4
#[tokio::test]
async fn queue_depth_is_limited() {
    let more = json!({"access_type": "read-write", "queue_depth": 1});
    let bench = Bench::new(json!([script("alone", "sleep 60", more)])).await;
    let running = bench.enqueue("alone", "").await;
    bench.reaches(running, StateName::Running).await;
    let waits = bench.enqueue("alone", "").await;
    let full = bench.submit("alone", input_draft("password=hunter2hunter2")).await.unwrap_err();
    assert!(matches!(full, Error::QueueFull { waiting: 1, depth: 1 }), "{full:?}");
    bench.cancel(waits).await.unwrap();
    bench.enqueue("alone", "").await;
    for execution in bench.all().await {
        let _ = bench.cancel(execution.id).await;
    }
    bench.stop().await;
}

// SUP-4
#[tokio::test]
async fn executions_end_after_their_queue_timeout() {
    let more = json!({"access_type": "read-write", "queue_timeout": 0.3});
    let bench = Bench::new(json!([script("alone", "sleep 60", more)])).await;
    let running = bench.enqueue("alone", "").await;
    bench.reaches(running, StateName::Running).await;
    let waits = bench.result(bench.enqueue("alone", "").await).await;
    assert_eq!(waits.status, ExecutionStatus::Timeout);
    assert!(error(&waits).contains("queue_timeout"), "{waits:#?}");
    assert_eq!(waits.process_id, None);
    bench.cancel(running).await.unwrap();
    bench.wait(running).await;
    bench.stop().await;
}

// SUP-4
#[tokio::test]
async fn max_running_limits_a_node() {
    let dir = tempfile::tempdir().unwrap();
    let count = dir.path().join("count");
    std::fs::create_dir(&count).unwrap();
    let text = "mkdir $COUNT/$$; ls $COUNT | wc -l; sleep 0.1; rmdir $COUNT/$$";
    let more = json!({"write_paths": [count.to_str().unwrap()], "envs": {"COUNT": count.to_str().unwrap()}});
    let mut setting = BenchBuilder::new(json!([script("one", text, more.clone()), script("other", text, more)]));
    setting.admission = Admission { max_running: Some(2), ..Admission::default() };
    let bench = setting.start().await;
    let mut ids = Vec::new();
    for turn in 0..8 {
        ids.push(bench.enqueue(if turn % 2 == 0 { "one" } else { "other" }, "").await);
    }
    for id in ids {
        let result = bench.result(id).await;
        let concurrent: u32 = succeeded(&result).trim().parse().unwrap();
        assert!(concurrent <= 2, "{concurrent} at a time");
    }
    bench.stop().await;
}

// SUP-4
#[tokio::test]
async fn claimed_executions_count_before_they_run() {
    let mut setting = BenchBuilder::new(json!([script("one", "cat", json!({})), script("other", "cat", json!({}))]));
    setting.admission = Admission { max_running: Some(3), ..Admission::default() };
    let bench = setting.start().await;
    let put = |commit: bool| {
        let new = |turn: usize| bench.prepare(["one", "other"][turn % 2], input_draft("hello")).unwrap();
        let all: Vec<_> = (0..8).map(new).collect();
        let supervisor = bench.supervisor.clone();
        bench.store().transaction(async move |tx| {
            let mut ids = Vec::new();
            let mut claimed = 0;
            for submission in all {
                let id = supervisor.enqueue(tx, submission).await?;
                let execution = store::executions::get(tx, OwnerScope::AllUsers, id).await?;
                claimed += usize::from(execution.state_name() == StateName::Starting);
                ids.push(id);
            }
            if commit { Ok((ids, claimed)) } else { Err(Error::NotFound) }
        })
    };
    // A rollback releases the capacity.
    assert!(put(false).await.is_err());
    let (ids, claimed) = put(true).await.unwrap();
    assert_eq!(claimed, 3);
    for id in ids {
        assert_eq!(succeeded(&bench.result(id).await), "hello");
    }
    bench.stop().await;
}

// SUP-4
#[tokio::test]
async fn removing_an_agent_ends_its_queue() {
    let bench = Bench::new(json!([script("alone", "sleep 60", json!({"access_type": "read-write"}))])).await;
    let running = bench.enqueue("alone", "").await;
    bench.reaches(running, StateName::Running).await;
    let waits = bench.enqueue("alone", "").await;
    bench.supervisor.reload(Vec::new(), Admission::default());
    let waits = bench.result(waits).await;
    assert_eq!((waits.status, error(&waits)), (ExecutionStatus::Failure, "its agent was removed"));
    bench.cancel(running).await.unwrap();
    bench.wait(running).await;
    bench.stop().await;
}

// SUP-4
#[tokio::test]
async fn only_read_write_agents_write_outside_of_granted_paths() {
    let dir = tempfile::tempdir().unwrap();
    let outside = dir.path().join("outside");
    let more = json!({"envs": {"OUT": outside.to_str().unwrap()}});
    let text =
        "echo in > inside && cat inside; mkdir -p artifacts/deep; echo kept > artifacts/deep/a.txt; echo out > $OUT";
    let mut write = more.clone();
    write["access_type"] = "read-write".into();
    let bench = Bench::new(json!([script("reads", text, more), script("writes", text, write)])).await;
    let reads = bench.run("reads", "").await;
    if supervisor::guardian::landlock_support() == supervisor::guardian::Landlock::Missing {
        return;
    }
    assert_eq!((reads.status, reads.output.as_str()), (ExecutionStatus::Failure, "in\n"));
    assert!(!outside.exists());
    let writes = bench.run("writes", "").await;
    assert_eq!(succeeded(&writes), "in\n");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "out\n");
    // SUP-10: the artifacts of both runs are stored and listed.
    for result in [reads, writes] {
        let listed: Vec<_> = result.artifacts.iter().map(|artifact| (artifact.name.as_str(), artifact.size)).collect();
        assert_eq!(listed, [("deep/a.txt", 5)]);
        let kept = bench.file("artifacts").join(result.id.to_string()).join("deep/a.txt");
        assert_eq!(std::fs::read_to_string(kept).unwrap(), "kept\n");
    }
    bench.stop().await;
}

// SUP-8
#[tokio::test]
async fn resource_usage_is_recorded() {
    let bench = Bench::new(json!([doubled("burns", &["burn-below", "150"], json!({}))])).await;
    let result = bench.run("burns", "").await;
    let usage = result.resource_usage.unwrap();
    assert!(usage.cpu_ms >= 290 && usage.cpu_percent > 0.0 && usage.peak_memory_mb >= 1, "{usage:?}");
    bench.stop().await;
}

// SUP-4
#[tokio::test]
async fn waiting_for_an_idle_agent_waits_for_its_queue() {
    let bench = Bench::new(json!([script("alone", "sleep 0.2", json!({"access_type": "read-write"}))])).await;
    let ids = [bench.enqueue("alone", "").await, bench.enqueue("alone", "").await];
    tokio::time::timeout(Duration::from_secs(30), bench.supervisor.wait_until_agent_idle("alone"))
        .await
        .unwrap()
        .unwrap();
    for id in ids {
        assert_eq!(bench.get(id).await.state_name(), StateName::Completed);
    }
    wait_until("no execution runs", async || bench.supervisor.running_count() == 0).await;
    bench.stop().await;
}
