//! What runs say beyond text, what their ends mean, and what comes with a request besides its text.

use std::sync::Arc;

use futures::future::BoxFuture;
use model::agent;
use model::execution::{Outcome, StateName};
use model::said::{Part, Piece, Said};
use serde_json::{Value, json};
use store::executions::{Kind, Whose};
use supervisor::{Desk, Draft, Ended, Failure, Refused, Run, Runner, Stream, Told};

use crate::bench::{Bench, Setting, asking, script, succeeded, until};

/// Says what it is told to.
struct Speaker;

impl Runner for Speaker {
    fn run<'a>(&'a self, run: &'a Run, desk: &'a Desk) -> BoxFuture<'a, Ended> {
        Box::pin(async move {
            desk.started(None);
            let order: Value = serde_json::from_str(&run.request.input).unwrap();
            if let Some(text) = order["before"].as_str() {
                desk.output(Stream::Stdout, text.as_bytes()).await;
            }
            for said in order["say"].as_array().into_iter().flatten() {
                desk.say(serde_json::from_value(said.clone()).unwrap()).await;
            }
            let outcome = order["outcome"].as_str().map(|word| Outcome::parse("outcome", word).unwrap());
            let failure = order["failure"].as_str().map(Failure::transient);
            if order["stop"] == true {
                desk.stopped().await;
                return Ended { stopped: true, outcome, ..Ended::default() };
            }
            Ended { outcome, failure, ..Ended::default() }
        })
    }
}

async fn bench(max_output: u64) -> Bench {
    let bench = Setting::new(json!([])).work().await;
    let draft = agent::Draft {
        id: Some("speaker".into()),
        name: Some("Speaker".into()),
        max_output_size: Some(max_output),
        retry_delay: Some(agent::Seconds::from_millis(1)),
        ..agent::Draft::default()
    };
    bench.supervisor.build_in(draft.built_in(), Arc::new(Speaker));
    bench
}

fn piece(text: &str) -> Value {
    let piece = Piece { artifact_id: "a".into(), parts: vec![Part::text(text)], append: true, ..Piece::default() };
    serde_json::to_value(Said::Artifact(piece)).unwrap()
}

#[tokio::test]
async fn more_than_text_is_kept_and_followed() {
    // A2A-1
    let bench = bench(1 << 20).await;
    let status = json!({"status": [{"text": "call me at somebody@example.com"}]});
    let order = json!({"before": "a line\n", "say": [status, piece("one"), piece("two")]});
    let id = bench.ask("speaker", &order.to_string()).await;
    let mut follower = bench.supervisor.follow(Whose::Everyones, id, 0);
    let mut heard = Vec::new();
    while let Some(told) = follower.next().await.unwrap() {
        if let Told::Event(event) = told
            && event.kind != Kind::State
        {
            heard.push((event.kind, event.text));
        }
    }
    let kinds: Vec<_> = heard.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [Kind::Output, Kind::Said, Kind::Said, Kind::Said], "{heard:?}");
    assert_eq!(heard[0].1, "a line\n");
    assert!(heard[1].1.contains("[redacted]") && !heard[1].1.contains("somebody"), "{}", heard[1].1);
    assert_eq!(serde_json::from_str::<Value>(&heard[3].1).unwrap(), piece("two"));
    let result = bench.result(id).await;
    assert_eq!((succeeded(&result), result.truncated), ("a line\n", false));
    bench.stop().await;
}

#[tokio::test]
async fn what_is_too_long_leaves_a_mark() {
    // A2A-1, SUP-10: all that is kept together is no longer than max_output_size
    let bench = bench(1000).await;
    let order = json!({"say": [piece("one"), piece(&"x".repeat(2000)), piece("two")]});
    let id = bench.ask("speaker", &order.to_string()).await;
    let result = bench.result(id).await;
    assert_eq!((succeeded(&result), result.truncated), ("onetwo", true));
    let events = bench.events(id).await;
    let gap = events.iter().find(|event| event.kind == Kind::Gap).unwrap();
    assert_eq!(
        (gap.stream.as_str(), gap.text.parse::<usize>().unwrap()),
        ("said", piece(&"x".repeat(2000)).to_string().len())
    );
    let kept: i64 = events.iter().filter(|event| event.kind == Kind::Said).map(|event| event.text.len() as i64).sum();
    let mut reader = bench.store().reader().await.unwrap();
    assert_eq!(store::executions::size_of_output(&mut reader).await.unwrap(), kept);
    drop(reader);
    let mut follower = bench.supervisor.follow(Whose::Everyones, id, 0);
    let mut heard = 0;
    while let Some(told) = follower.next().await.unwrap() {
        heard += usize::from(matches!(told, Told::Event(event) if event.stream == "said"));
    }
    assert_eq!(heard, 3, "a mark is heard too");
    bench.stop().await;
}

#[tokio::test]
async fn an_end_means_what_the_run_says() {
    // A2A-1
    let bench = bench(1 << 20).await;
    for (order, state, outcome) in [
        (json!({"outcome": "asks"}), StateName::Completed, Some(Outcome::Asks)),
        (json!({"outcome": "message"}), StateName::Completed, Some(Outcome::Message)),
        (json!({"outcome": "rejected"}), StateName::Failed, Some(Outcome::Rejected)),
        (json!({"outcome": "rejected", "failure": "no"}), StateName::Failed, Some(Outcome::Rejected)),
        (json!({"outcome": "asks", "failure": "no"}), StateName::Failed, None),
        (json!({"outcome": "withdrawn"}), StateName::Completed, None),
        (json!({}), StateName::Completed, None),
    ] {
        let id = bench.ask("speaker", &order.to_string()).await;
        let execution = bench.wait(id).await;
        assert_eq!((execution.state_name(), execution.ended().unwrap().exit.outcome), (state, outcome), "{order}");
        let tried_again = order["failure"].is_string() && outcome.is_none();
        assert_eq!(execution.retry_count(), if tried_again { execution.max_retries } else { 0 }, "{order}");
        assert_eq!(execution.error_message().is_some(), state == StateName::Failed);
    }
    let id = bench.ask("speaker", &json!({"outcome": "asks", "stop": true}).to_string()).await;
    bench.reaches(id, StateName::Running).await;
    bench.cancel(id).await.unwrap();
    let execution = bench.wait(id).await;
    assert_eq!((execution.state_name(), execution.ended().unwrap().exit.outcome), (StateName::Cancelled, None));
    bench.stop().await;
}

#[tokio::test]
async fn a_message_is_recorded_without_secrets_and_given_as_it_is() {
    // A2A-1, SUP-10
    let bench = bench(1 << 20).await;
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "password=hunter22hunter22"}]});
    let draft = Draft { message: Some(message.clone()), ..asking("{}") };
    let new = bench.prepare("speaker", draft.clone()).unwrap().new;
    let kept = new.message.clone().unwrap();
    assert_eq!(kept["messageId"], "m");
    assert!(!kept.to_string().contains("hunter22") && new.request.is_empty() && new.spool.is_some(), "{kept}");
    let clean = json!({"messageId": "m", "parts": [{"text": "hello"}]});
    let new = bench.prepare("speaker", Draft { message: Some(clean.clone()), ..draft.clone() }).unwrap().new;
    assert_eq!((new.message.as_ref(), new.spool.as_ref()), (Some(&clean), None));
    assert!(new.request.contains("\"message\""));
    let wrong = json!({"parts": [{"raw": "?"}]});
    let refused = bench.prepare("speaker", Draft { message: Some(wrong), ..draft.clone() }).unwrap_err();
    assert!(
        matches!(&refused, Refused::Invalid(invalid) if invalid.to_string().contains("message.parts")),
        "{refused}"
    );
    // 1.5 MB as they are; the limit is not about how they travel.
    let raw = json!({"parts": [{"raw": "AAAA".repeat(1 << 19)}]});
    let refused = bench.prepare("speaker", Draft { message: Some(raw), ..draft }).unwrap_err();
    assert!(matches!(refused, Refused::TooLarge { .. }), "{refused}");
    bench.stop().await;
}

#[tokio::test]
async fn files_are_where_the_agent_is_told() {
    // A2A-1
    let text = "cat; ls \"$ADJUTANT_FILES\"; cat \"$ADJUTANT_FILES\"/*; test \"$0\" = \"$ADJUTANT_FILES\"";
    let agents = json!([
        {"id": "reader", "executable_path": "/bin/sh", "args": ["-c", text, "{{files}}"]},
        script("plain", "test -n \"$ADJUTANT_FILES\" && ! test -e \"$ADJUTANT_FILES\"", json!({})),
    ]);
    let bench = Bench::new(agents).await;
    let parts =
        json!([{"raw": "b25l", "filename": "../1.txt"}, {"raw": "dHdv", "filename": "2.txt"}, {"text": "read\n"}]);
    let draft = Draft { message: Some(json!({ "parts": parts })), ..asking("read\n") };
    let result = bench.run_with("reader", draft).await;
    assert_eq!(succeeded(&result), "read\n1.txt\n2.txt\nonetwo");
    succeeded(&bench.run("plain", "").await);
    let runs = bench.file("runs");
    until("what came is gone", async || {
        let folders = std::fs::read_dir(&runs).unwrap().flatten();
        !folders.into_iter().any(|folder| folder.path().join("files").exists())
    })
    .await;
    bench.stop().await;
}
