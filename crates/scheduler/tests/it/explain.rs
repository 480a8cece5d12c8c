//! Why a schedule did, or did not, run: in words.

use jiff::Timestamp;
use model::schedule::Kind;
use serde_json::json;
use store::executions::Whose;
use uuid::Uuid;

use crate::bench::Bench;
use crate::on_both;

on_both!(every_decision_in_words);

async fn said(bench: &Bench, id: Uuid, at: &str) -> String {
    let at: Timestamp = at.parse().unwrap();
    let mut reader = bench.store().reader().await.unwrap();
    bench.scheduler.explain(&mut reader, Whose::Everyones, id, at).await.unwrap().text
}

async fn every_decision_in_words(bench: Bench) {
    // SCHED-2, SCHED-3
    let id = bench.create(json!({"cron_expression": "0 * * * *", "time_zone": "Europe/Berlin"})).await.id;
    let next = |time: &str| format!(" It will be run next at 2026-01-10 {time}:00 CET.");
    assert_eq!(
        said(&bench, id, "2026-01-09T00:00:00Z").await,
        format!("It was made at 2026-01-10 13:00:00 CET.{}", next("14:00"))
    );
    assert_eq!(
        said(&bench, id, "2026-01-10T12:30:00Z").await,
        format!("None of its times had come by then.{}", next("14:00"))
    );
    assert_eq!(
        said(&bench, id, "2026-01-10T13:30:00Z").await,
        format!("It is due at 2026-01-10 14:00:00 CET and will be run at 2026-01-10 14:00:00 CET.{}", next("14:00"))
    );
    bench.advance(3610);
    assert!(said(&bench, id, "2026-01-10T13:00:00Z").await.contains("nobody has acted upon that yet"));
    bench.after(0).await;
    assert_eq!(
        said(&bench, id, "2026-01-10T13:20:00Z").await,
        format!("It was due at 2026-01-10 14:00:00 CET and was run at 2026-01-10 14:00:10 CET.{}", next("15:00"))
    );
    bench.after(3600).await;
    assert_eq!(
        said(&bench, id, "2026-01-10T14:00:00Z").await,
        format!("It was due at 2026-01-10 15:00:00 CET and was left out: the run before it goes on.{}", next("16:00"))
    );
    bench.cancel(bench.executions(id).await[0].id).await;
    bench.after(2 * 3600 + 1800).await;
    assert_eq!(
        said(&bench, id, "2026-01-10T15:59:00Z").await,
        format!(
            "It was due at 2026-01-10 16:00:00 CET and was not run: it was 1h30m10s late, and a later one stands for it.{}",
            next("18:00")
        )
    );
    assert_eq!(
        said(&bench, id, "2026-01-10T16:00:00Z").await,
        format!(
            "It was due at 2026-01-10 17:00:00 CET, when nobody was there to run it; that was made up for at 2026-01-10 17:30:10 CET.{}",
            next("18:00")
        )
    );
    bench.cancel(bench.executions(id).await[1].id).await;
    let by_hand = bench.run_now(id).await.unwrap();
    assert!(
        said(&bench, id, "2026-01-10T16:30:00Z").await.contains("Somebody ran it by hand at 2026-01-10 17:30:10 CET.")
    );
    bench.cancel(by_hand).await;
    bench.pause(id, "a rest").await;
    bench.advance(3600);
    let text = said(&bench, id, "2026-01-10T17:10:00Z").await;
    let since = "It is paused since 2026-01-10 17:30:10 CET: a rest.";
    assert_eq!(text, format!("It was due at 2026-01-10 18:00:00 CET, but it was paused. {since}"));
    bench.resume(id).await.unwrap();
    assert_eq!(bench.kinds(id).await.last(), Some(&Kind::Paused));
    let text = said(&bench, id, "2026-01-10T17:10:00Z").await;
    assert!(text.starts_with("It was due at 2026-01-10 18:00:00 CET, but it was paused: a rest."), "{text}");
    bench.repoint(id, "nobody").await;
    bench.after(1800).await;
    let text = said(&bench, id, "2026-01-10T18:00:00Z").await;
    assert!(
        text.starts_with("It was due at 2026-01-10 19:00:00 CET and could not be run: there is no such agent."),
        "{text}"
    );
    assert!(matches!(
        bench
            .scheduler
            .explain(
                &mut bench.store().reader().await.unwrap(),
                Whose::Users(model::UserId::new(Uuid::nil())),
                id,
                bench.now()
            )
            .await,
        Err(store::Error::NotFound)
    ));
}
