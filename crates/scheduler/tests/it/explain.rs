//! Explanations of the decisions of a schedule.

use jiff::Timestamp;
use model::schedule::DecisionKind;
use serde_json::json;
use store::executions::OwnerScope;
use uuid::Uuid;

use crate::bench::Bench;
use crate::on_both;

on_both!(every_decision_is_explained);

pub(crate) async fn explanation(bench: &Bench, id: Uuid, at: &str) -> String {
    let at: Timestamp = at.parse().unwrap();
    let mut reader = bench.store().reader().await.unwrap();
    bench.scheduler.explain(&mut reader, OwnerScope::AllUsers, id, at).await.unwrap().text
}

async fn every_decision_is_explained(bench: Bench) {
    // SCHED-2, SCHED-3
    let id = bench.create(json!({"cron_expression": "0 * * * *", "time_zone": "Europe/Berlin"})).await.id;
    let next = |time: &str| format!(" The next run is at 2026-01-10 {time}:00 CET.");
    assert_eq!(
        explanation(&bench, id, "2026-01-09T00:00:00Z").await,
        format!("The schedule was created at 2026-01-10 13:00:00 CET.{}", next("14:00"))
    );
    assert_eq!(
        explanation(&bench, id, "2026-01-10T12:30:00Z").await,
        format!("It had no occurrence before that time.{}", next("14:00"))
    );
    assert_eq!(
        explanation(&bench, id, "2026-01-10T13:30:00Z").await,
        format!("It is due at 2026-01-10 14:00:00 CET and will run at 2026-01-10 14:00:00 CET.{}", next("14:00"))
    );
    bench.advance(3610);
    assert!(explanation(&bench, id, "2026-01-10T13:00:00Z").await.contains("but has not been processed"));
    bench.advance_and_fire(0).await;
    assert_eq!(
        explanation(&bench, id, "2026-01-10T13:20:00Z").await,
        format!("It was due at 2026-01-10 14:00:00 CET and ran at 2026-01-10 14:00:10 CET.{}", next("15:00"))
    );
    bench.advance_and_fire(3600).await;
    assert_eq!(
        explanation(&bench, id, "2026-01-10T14:00:00Z").await,
        format!(
            "It was due at 2026-01-10 15:00:00 CET and was skipped: the previous run is still in progress.{}",
            next("16:00")
        )
    );
    bench.cancel(bench.executions(id).await[0].id).await;
    bench.advance_and_fire(2 * 3600 + 1800).await;
    assert_eq!(
        explanation(&bench, id, "2026-01-10T15:59:00Z").await,
        format!(
            "It was due at 2026-01-10 16:00:00 CET and was missed: it was 1h30m10s late, and a later occurrence replaces it.{}",
            next("18:00")
        )
    );
    assert_eq!(
        explanation(&bench, id, "2026-01-10T16:00:00Z").await,
        format!(
            "It was due at 2026-01-10 17:00:00 CET, but no node was running. The missed run was started at 2026-01-10 17:30:10 CET.{}",
            next("18:00")
        )
    );
    bench.cancel(bench.executions(id).await[1].id).await;
    let by_hand = bench.run_now(id).await.unwrap();
    assert!(
        explanation(&bench, id, "2026-01-10T16:30:00Z")
            .await
            .contains("It was run manually at 2026-01-10 17:30:10 CET.")
    );
    bench.cancel(by_hand).await;
    bench.pause(id, "a rest").await;
    bench.advance(3600);
    let text = explanation(&bench, id, "2026-01-10T17:10:00Z").await;
    let since = "It has been paused since 2026-01-10 17:30:10 CET: a rest.";
    assert_eq!(text, format!("It was due at 2026-01-10 18:00:00 CET, but the schedule was paused. {since}"));
    bench.resume(id).await.unwrap();
    assert_eq!(bench.decision_kinds(id).await.last(), Some(&DecisionKind::Paused));
    let text = explanation(&bench, id, "2026-01-10T17:10:00Z").await;
    assert!(text.starts_with("It was due at 2026-01-10 18:00:00 CET, but the schedule was paused: a rest."), "{text}");
    bench.set_agent(id, "missing").await;
    bench.advance_and_fire(1800).await;
    let text = explanation(&bench, id, "2026-01-10T18:00:00Z").await;
    assert!(
        text.starts_with("It was due at 2026-01-10 19:00:00 CET but could not start: there is no such agent."),
        "{text}"
    );
    assert!(matches!(
        bench
            .scheduler
            .explain(
                &mut bench.store().reader().await.unwrap(),
                OwnerScope::User(model::UserId::new(Uuid::nil())),
                id,
                bench.now()
            )
            .await,
        Err(store::Error::NotFound)
    ));
}
