//! The record of executions: whose they are, what they said, what came of them, and how they are cancelled.

use std::time::Duration;

use jiff::Timestamp;
use model::execution::{Artifact, Category, ExecutionRecord, Exit, ResourceUsage, StateName, Status};
use store::executions::{
    Event, Filter, Kind, Left, Whose, append, cancel, cancelled, drop_from, events, last_seq, list, output, outputs,
    result, save, size_of_output,
};
use store::{Error, executions};
use uuid::Uuid;

use crate::queue::legal;
use crate::{Bench, on_both, write};

on_both!(
    read_as_written,
    of_one_user,
    listed_and_paged,
    events_in_their_order,
    output_with_its_gaps,
    the_last_try_speaks,
    more_than_text_is_said,
    what_came_of_it,
    cancelled_while_it_waits,
    cancelled_at_work,
    any_text_can_be_kept,
    lists_do_not_carry_everything
);

pub(crate) fn said(seq: i64, stream: &str, start: i64, text: &str) -> Event {
    let at = Timestamp::UNIX_EPOCH;
    Event { seq, kind: Kind::Output, stream: stream.into(), start, at, text: text.into() }
}

/// What is more than text.
pub(crate) fn more(seq: i64, what: &serde_json::Value) -> Event {
    Event { kind: Kind::Said, ..said(seq, executions::SAID, seq, &what.to_string()) }
}

fn gap(seq: i64, stream: &str, start: i64, bytes: &str) -> Event {
    Event { kind: Kind::Gap, ..said(seq, stream, start, bytes) }
}

async fn told(bench: &Bench, id: Uuid, new: Vec<Event>) {
    write!(bench, tx => append(tx, id, &new)).unwrap();
}

async fn read_as_written(bench: Bench) {
    // SUP-5
    let mut new = bench.run(bench.alice, "a");
    (new.execution.schedule_id, new.execution.input) = (Some(Uuid::from_u128(7)), "Übung\n".into());
    new.execution.context.insert("asked_by".into(), "schedule".into());
    new.execution.timeout = model::agent::Seconds::from_millis(1500);
    let mut wanted = ExecutionRecord::from(new.execution.clone());
    let id = bench.submit(new).await.unwrap();
    wanted.queue_position = Some(1);
    assert_eq!(bench.record(id).await, wanted);

    let node = bench.node().await;
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    let mut execution = claimed.stored.execution;
    let now = bench.now();
    execution.start(Some(4711), now).unwrap();
    let usage = ResourceUsage { cpu_percent: 12.5, memory_mb: 3, peak_memory_mb: 4, ..ResourceUsage::default() };
    execution.measure(usage);
    assert!(bench.save(claimed.fence, &execution, None).await);
    assert_eq!(bench.execution(id).await, execution);
    let exit = Exit { exit_code: Some(3), ..Exit::with_error("it broke", Some(Category::AgentError)) };
    execution.end(Status::Failure, exit, now).unwrap();
    assert!(bench.save(claimed.fence, &execution, None).await);
    let kept = bench.execution(id).await;
    assert_eq!(kept, execution);
    legal(&kept);
}

async fn of_one_user(bench: Bench) {
    let alice = bench.alice;
    let bob = bench.bob;
    let id = bench.submit(bench.run(alice, "a")).await.unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    for whose in [Whose::Users(alice), Whose::Everyones] {
        assert_eq!(executions::get(&mut reader, whose, id).await.unwrap().id, id);
        assert_eq!(list(&mut reader, whose, &Filter::default(), None, 50).await.unwrap().rows.len(), 1);
    }
    let whose = Whose::Users(bob);
    assert!(matches!(executions::get(&mut reader, whose, id).await, Err(Error::NotFound)));
    assert!(matches!(result(&mut reader, whose, id).await, Err(Error::NotFound)));
    assert!(list(&mut reader, whose, &Filter::default(), None, 50).await.unwrap().rows.is_empty());
    let now = bench.now();
    assert!(matches!(write!(bench, tx => cancel(tx, whose, id, now)), Err(Error::NotFound)));
    assert_eq!(bench.execution(id).await.state_name(), StateName::Idle);
}

async fn listed_and_paged(bench: Bench) {
    // SUP-10
    let alice = bench.alice;
    let bob = bench.bob;
    let node = bench.node().await;
    let schedule = Uuid::from_u128(7);
    let session = Uuid::from_u128(8);
    let mut ids = Vec::new();
    for n in 0..7 {
        let mut new = bench.run(alice, if n % 2 == 0 { "even" } else { "odd" });
        new.execution.schedule_id = (n == 3).then_some(schedule);
        new.execution.session_id = (n == 4).then_some(session);
        if n == 6 {
            // Two of one moment: the later id is the newer.
            new.execution.created_at = bench.execution(ids[0]).await.created_at;
        }
        ids.insert(0, bench.submit(new).await.unwrap());
    }
    bench.submit(bench.run(bob, "even")).await.unwrap();
    bench.claim(node, "odd", 1, 1).await;
    let mut reader = bench.store.reader().await.unwrap();
    let mut found = async |filter: Filter| {
        let mut found = Vec::new();
        let mut cursor = None;
        loop {
            let page = list(&mut reader, Whose::Users(alice), &filter, cursor.as_ref(), 3).await.unwrap();
            assert!(page.rows.len() <= 3);
            found.extend(page.rows.iter().map(|execution| execution.id));
            cursor = page.next;
            if cursor.is_none() {
                return found;
            }
        }
    };
    assert_eq!(found(Filter::default()).await, ids, "newest first");
    let of = |agent: &str| Filter { agent_id: Some(agent.into()), ..Filter::default() };
    assert_eq!(found(of("odd")).await, [ids[1], ids[3], ids[5]]);
    assert!(found(of("nobody")).await.is_empty());
    assert_eq!(found(Filter { schedule_id: Some(schedule), ..Filter::default() }).await, [ids[3]]);
    assert_eq!(found(Filter { session_id: Some(session), ..Filter::default() }).await, [ids[2]]);
    let states = vec![StateName::Starting, StateName::Running];
    assert_eq!(found(Filter { states: states.clone(), ..Filter::default() }).await, [ids[5]]);
    assert!(found(Filter { states, ..of("even") }).await.is_empty());
    let text = ids[2].to_string();
    for part in [&text[..30], &text[20..], &text.to_uppercase()] {
        let found = found(Filter { reference: Some(part.into()), ..Filter::default() }).await;
        assert!(found.contains(&ids[2]), "{part}");
    }
    assert!(found(Filter { reference: Some("%".into()), ..Filter::default() }).await.is_empty());
}

async fn events_in_their_order(bench: Bench) {
    // SUP-10
    let id = bench.submit(bench.run(bench.alice, "a")).await.unwrap();
    let other = bench.submit(bench.run(bench.alice, "a")).await.unwrap();
    let claimed = bench.claim(bench.node().await, "a", 1, 1).await.remove(0);
    assert_eq!((claimed.fence.id, claimed.seq), (id, 2));
    told(&bench, id, vec![said(3, "stdout", 0, "a"), said(4, "stderr", 0, "b"), said(5, "stdout", 1, "c")]).await;
    // Whoever does not know whether that was committed writes it again.
    told(&bench, id, vec![said(5, "stdout", 1, "c")]).await;
    told(&bench, other, vec![said(2, "stdout", 0, "not this")]).await;
    let mut reader = bench.store.reader().await.unwrap();
    let mut after = async |seq, limit| {
        let events = events(&mut reader, id, seq, limit).await.unwrap();
        events.into_iter().map(|event| (event.seq, event.kind, event.text)).collect::<Vec<_>>()
    };
    let all = [
        (1, Kind::State, "idle"),
        (2, Kind::State, "starting"),
        (3, Kind::Output, "a"),
        (4, Kind::Output, "b"),
        (5, Kind::Output, "c"),
    ];
    let all = all.map(|(seq, kind, text)| (seq, kind, text.to_owned()));
    assert_eq!(after(0, 100).await, all);
    assert_eq!(after(3, 100).await, all[3..]);
    assert_eq!(after(1, 2).await, all[1..3]);
    assert!(after(5, 100).await.is_empty());
    assert_eq!(last_seq(&mut reader, id).await.unwrap(), 5);
    assert_eq!(last_seq(&mut reader, Uuid::from_u128(1)).await.unwrap(), 0);
}

async fn output_with_its_gaps(bench: Bench) {
    // SUP-10: head and tail stay
    let id = bench.submit(bench.run(bench.alice, "a")).await.unwrap();
    told(&bench, id, vec![said(2, "stdout", 0, "head"), said(3, "stderr", 0, "oh"), said(4, "stdout", 4, "old tail")])
        .await;
    assert_eq!(write!(bench, tx => drop_from(tx, id, "stdout", 4)).unwrap(), 1);
    told(&bench, id, vec![gap(5, "stdout", 4, "1000"), said(6, "stdout", 1004, "tail")]).await;
    let mut reader = bench.store.reader().await.unwrap();
    let text = output(&mut reader, id, "stdout").await.unwrap();
    assert_eq!(text, "head\n[… 1000 bytes left out …]\ntail");
    assert_eq!(output(&mut reader, id, "file").await.unwrap(), "");
    let all = outputs(&mut reader, id).await.unwrap();
    assert_eq!(all.into_iter().collect::<Vec<_>>(), [("stderr".into(), "oh".into()), ("stdout".into(), text)]);
    let left = events(&mut reader, id, 0, 100).await.unwrap();
    assert_eq!(left.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3, 5, 6], "states are never dropped");
}

async fn the_last_try_speaks(bench: Bench) {
    // SUP-6: what an earlier try said stays in the log, and is no part of the answer
    let id = bench.submit(bench.run(bench.alice, "a")).await.unwrap();
    let state = |seq, text: &str| Event { kind: Kind::State, ..said(seq, "", 0, text) };
    told(&bench, id, vec![state(2, "starting"), said(3, "stdout", 0, "first"), said(4, "stdout", 5, " try")]).await;
    told(&bench, id, vec![state(5, "starting"), said(6, "stdout", 0, "second"), said(7, "stdout", 6, " try")]).await;
    let mut reader = bench.store.reader().await.unwrap();
    assert_eq!(output(&mut reader, id, "stdout").await.unwrap(), "second try");
    assert_eq!(write!(bench, tx => drop_from(tx, id, "stdout", 5)).unwrap(), 1);
    assert_eq!(output(&mut reader, id, "stdout").await.unwrap(), "second");
    let texts: Vec<_> = events(&mut reader, id, 2, 2).await.unwrap().into_iter().map(|event| event.text).collect();
    assert_eq!(texts, ["first", " try"]);
}

async fn more_than_text_is_said(bench: Bench) {
    // A2A-1: it is no part of the output, and of the last try alone
    let id = bench.submit(bench.run(bench.alice, "a")).await.unwrap();
    let claimed = bench.claim(bench.node().await, "a", 1, 1).await.remove(0);
    let state = |seq, text: &str| Event { kind: Kind::State, ..said(seq, "", 0, text) };
    let piece = |text: &str| serde_json::json!({"artifact": {"artifact_id": "x", "parts": [{"text": text}], "append": false, "last": true}});
    told(&bench, id, vec![more(3, &piece("first")), state(4, "starting"), more(5, &piece("second"))]).await;
    told(&bench, id, vec![more(6, &serde_json::json!({"status": [{"text": "soon"}]}))]).await;
    bench.finish(&claimed, Left::default()).await;
    let mut reader = bench.store.reader().await.unwrap();
    let short = executions::events_in_short(&mut reader, id).await.unwrap();
    assert_eq!(short.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 4, 6]);
    let found = executions::said(&mut reader, id).await.unwrap();
    assert_eq!(serde_json::to_value(&found[0]).unwrap(), piece("second"));
    assert_eq!(found.len(), 2);
    assert!(outputs(&mut reader, id).await.unwrap().is_empty());
    assert_eq!(
        result(&mut reader, Whose::Everyones, id).await.unwrap().output,
        "second",
        "where there is nothing else"
    );
    told(&bench, id, vec![said(7, "stdout", 0, "text")]).await;
    assert_eq!(result(&mut reader, Whose::Everyones, id).await.unwrap().output, "text");
}

async fn what_came_of_it(bench: Bench) {
    // SUP-10
    let alice = bench.alice;
    let node = bench.node().await;
    let id = bench.submit(bench.run(alice, "a")).await.unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    assert!(matches!(result(&mut reader, Whose::Users(alice), id).await, Err(Error::NotEnded)));
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    assert!(matches!(result(&mut reader, Whose::Users(alice), id).await, Err(Error::NotEnded)));
    told(&bench, id, vec![said(3, "stdout", 0, "42"), said(4, "stderr", 0, "hm")]).await;
    let artifacts = vec![Artifact { name: "report.md".into(), size: 12 }];
    let left = Left { artifacts: artifacts.clone(), truncated: true, output_bytes: 4 };
    let ended = bench.finish(&claimed, left).await;
    let result = result(&mut reader, Whose::Users(alice), id).await.unwrap();
    assert_eq!((result.status, result.output.as_str(), result.truncated), (Status::Success, "42", true));
    assert_eq!((result.artifacts, result.end_time), (artifacts, ended.ended().map(|end| end.at)));
    assert_eq!(result.state_transitions, ended.state_transitions());
    assert_eq!(size_of_output(&mut reader).await.unwrap(), 4);
}

async fn cancelled_while_it_waits(bench: Bench) {
    // SUP-5: Idle→Cancelled
    let alice = bench.alice;
    let node = bench.node().await;
    let id = bench.submit(bench.run(alice, "a")).await.unwrap();
    let next = bench.submit(bench.run(alice, "a")).await.unwrap();
    let now = bench.now();
    let cancelled = write!(bench, tx => cancel(tx, Whose::Users(alice), id, now)).unwrap();
    let end = cancelled.ended().unwrap();
    assert_eq!((end.status, end.at), (Status::Cancelled, now));
    let kept = bench.execution(id).await;
    assert_eq!(kept, cancelled);
    legal(&kept);
    assert_eq!(bench.record(next).await.queue_position, Some(1));
    let told = events(&mut bench.store.reader().await.unwrap(), id, 1, 10).await.unwrap();
    assert_eq!(told.iter().map(|event| event.text.as_str()).collect::<Vec<_>>(), ["cancelled"]);
    assert!(matches!(write!(bench, tx => cancel(tx, Whose::Users(alice), id, now)), Err(Error::Ended)));
    let claimed = bench.claim(node, "a", 9, 9).await;
    assert_eq!(claimed.iter().map(|claimed| claimed.fence.id).collect::<Vec<_>>(), [next]);
}

async fn cancelled_at_work(bench: Bench) {
    // SUP-7: its node hears of it
    let alice = bench.alice;
    let node = bench.node().await;
    let other = bench.node().await;
    let id = bench.submit(bench.run(alice, "a")).await.unwrap();
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    let wanted = async |node| cancelled(&mut bench.store.reader().await.unwrap(), node).await.unwrap();
    assert!(wanted(node).await.is_empty());
    let now = bench.now();
    let asked = write!(bench, tx => cancel(tx, Whose::Users(alice), id, now)).unwrap();
    assert_eq!(asked.state_name(), StateName::Starting, "its node ends it");
    write!(bench, tx => cancel(tx, Whose::Users(alice), id, now)).unwrap();
    assert_eq!((wanted(node).await, wanted(other).await), (vec![id], vec![]));
    let mut execution = claimed.stored.execution;
    execution.end(Status::Cancelled, Exit::default(), now).unwrap();
    assert!(bench.save(claimed.fence, &execution, None).await);
    assert!(wanted(node).await.is_empty());
    assert!(matches!(write!(bench, tx => cancel(tx, Whose::Users(alice), id, now)), Err(Error::Ended)));
    legal(&bench.execution(id).await);
}

async fn any_text_can_be_kept(bench: Bench) {
    // PostgreSQL has no NUL in texts; agents have.
    let mut new = bench.run(bench.alice, "a");
    new.execution.input = "a\0b".into();
    let id = bench.submit(new).await.unwrap();
    let claimed = bench.claim(bench.node().await, "a", 1, 1).await.remove(0);
    let mut execution = claimed.stored.execution;
    execution.end(Status::Failure, Exit::with_error("\0", None), bench.now()).unwrap();
    let fence = claimed.fence;
    bench.clock.advance(Duration::from_secs(1));
    let batch = vec![said(3, "stdout", 0, "x\0y 💥")];
    let written = bench.transaction(async move |tx| {
        let ours = save(tx, fence, &execution, None).await?;
        append(tx, id, &batch).await?;
        Ok(ours)
    });
    assert!(written.await.unwrap());
    let kept = bench.execution(id).await;
    assert_eq!((kept.input.as_str(), kept.error_message()), ("a\u{fffd}b", Some("\u{fffd}")));
    let text = output(&mut bench.store.reader().await.unwrap(), id, "stdout").await.unwrap();
    assert_eq!(text, "x\u{fffd}y 💥");
}

async fn lists_do_not_carry_everything(bench: Bench) {
    // SUP-10, OPS-7
    let asked = |input: &str, text: &str| {
        let mut new = bench.run(bench.alice, "a");
        new.execution.input = input.to_owned();
        new.execution.context.insert("parameters".into(), serde_json::json!({"text": text}));
        new
    };
    let long = "ü".repeat(1001);
    let fits = "ü".repeat(1000);
    let id = bench.submit(asked(&long, &long)).await.unwrap();
    bench.clock.advance(Duration::from_secs(1));
    bench.submit(asked(&fits, "short")).await.unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    let page = list(&mut reader, Whose::Users(bench.alice), &Filter::default(), None, 10).await.unwrap();
    assert_eq!(page.rows[0].input, fits);
    assert_eq!(page.rows[0].context["parameters"], serde_json::json!({"text": "short"}));
    assert_eq!(page.rows[1].input, format!("{fits}…"));
    let shown = page.rows[1].context["parameters"].as_str().unwrap();
    assert!(shown.starts_with("{\"text\":\"üü") && shown.chars().count() == 1001, "{shown}");
    let whole = bench.execution(id).await;
    assert_eq!(whole.input, long);
    assert_eq!(whole.context["parameters"]["text"], long);
}
