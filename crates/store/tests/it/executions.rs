//! The records of executions: access, output, results and cancellation.

use std::time::Duration;

use jiff::Timestamp;
use model::execution::{
    Artifact, AttemptExit, ErrorCategory, ExecutionRecord, ExecutionStatus, ResourceUsage, StateName,
};
use store::executions::{
    ExecutionEvent, ExecutionEventKind, ExecutionFilter, OutputSummary, OwnerScope, append_events, cancel,
    cancel_requests, events, last_seq, list, output, outputs_by_stream, result, save, total_output_bytes,
    truncate_stream,
};
use store::{Error, executions};
use uuid::Uuid;

use crate::queue::assert_legal_transitions;
use crate::{Bench, on_both, write};

on_both!(
    executions_are_read_as_written,
    executions_are_visible_only_to_their_user,
    executions_are_filtered_and_paged,
    events_are_returned_in_order,
    events_are_read_in_pieces,
    output_is_read_in_pieces,
    output_has_markers_for_gaps,
    output_is_that_of_the_last_attempt,
    rich_output_is_stored_and_summarized,
    results_require_an_ended_execution,
    a_queued_execution_is_cancelled_immediately,
    a_running_execution_is_cancelled_by_its_node,
    nul_characters_are_replaced,
    lists_shorten_long_values
);

/// Returns an event with output.
pub(crate) fn output_event(seq: i64, stream: &str, start: i64, text: &str) -> ExecutionEvent {
    let at = Timestamp::UNIX_EPOCH;
    ExecutionEvent { seq, kind: ExecutionEventKind::Output, stream: stream.into(), start, at, text: text.into() }
}

/// Returns an event with structured output.
pub(crate) fn rich_output_event(seq: i64, value: &serde_json::Value) -> ExecutionEvent {
    ExecutionEvent {
        kind: ExecutionEventKind::RichOutput,
        ..output_event(seq, executions::RICH_OUTPUT_STREAM, seq, &value.to_string())
    }
}

fn gap(seq: i64, stream: &str, start: i64, bytes: &str) -> ExecutionEvent {
    ExecutionEvent { kind: ExecutionEventKind::Gap, ..output_event(seq, stream, start, bytes) }
}

async fn add_events(bench: &Bench, id: Uuid, new: Vec<ExecutionEvent>) {
    write!(bench, tx => append_events(tx, id, &new)).unwrap();
}

async fn executions_are_read_as_written(bench: Bench) {
    // SUP-5
    let mut new = bench.new_execution(bench.alice, "a");
    (new.execution.schedule_id, new.execution.input) = (Some(Uuid::from_u128(7)), "Übung\n".into());
    new.execution.context.insert("asked_by".into(), "schedule".into());
    new.execution.timeout = model::agent::Seconds::from_millis(1500);
    let mut wanted = ExecutionRecord::from(new.execution.clone());
    let id = bench.enqueue(new).await.unwrap();
    wanted.queue_position = Some(1);
    assert_eq!(bench.record(id).await, wanted);

    let node = bench.node().await;
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    let mut execution = claimed.row.execution;
    let now = bench.now();
    execution.start(Some(4711), now).unwrap();
    let usage = ResourceUsage { cpu_percent: 12.5, memory_mb: 3, peak_memory_mb: 4, ..ResourceUsage::default() };
    execution.record_usage(usage);
    assert!(bench.save(claimed.fence, &execution, None).await);
    assert_eq!(bench.execution(id).await, execution);
    let exit =
        AttemptExit { exit_code: Some(3), ..AttemptExit::with_error("it broke", Some(ErrorCategory::AgentError)) };
    execution.end(ExecutionStatus::Failure, exit, now).unwrap();
    assert!(bench.save(claimed.fence, &execution, None).await);
    let stored = bench.execution(id).await;
    assert_eq!(stored, execution);
    assert_legal_transitions(&stored);
}

async fn executions_are_visible_only_to_their_user(bench: Bench) {
    let alice = bench.alice;
    let bob = bench.bob;
    let id = bench.enqueue(bench.new_execution(alice, "a")).await.unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    for scope in [OwnerScope::User(alice), OwnerScope::AllUsers] {
        assert_eq!(executions::get(&mut reader, scope, id).await.unwrap().id, id);
        assert_eq!(list(&mut reader, scope, &ExecutionFilter::default(), None, 50).await.unwrap().rows.len(), 1);
    }
    let scope = OwnerScope::User(bob);
    assert!(matches!(executions::get(&mut reader, scope, id).await, Err(Error::NotFound)));
    assert!(matches!(result(&mut reader, scope, id).await, Err(Error::NotFound)));
    assert!(list(&mut reader, scope, &ExecutionFilter::default(), None, 50).await.unwrap().rows.is_empty());
    let now = bench.now();
    assert!(matches!(write!(bench, tx => cancel(tx, scope, id, now)), Err(Error::NotFound)));
    assert_eq!(bench.execution(id).await.state_name(), StateName::Idle);
}

async fn executions_are_filtered_and_paged(bench: Bench) {
    // SUP-10
    let alice = bench.alice;
    let bob = bench.bob;
    let node = bench.node().await;
    let schedule = Uuid::from_u128(7);
    let session = Uuid::from_u128(8);
    let mut ids = Vec::new();
    for n in 0..7 {
        let mut new = bench.new_execution(alice, if n % 2 == 0 { "even" } else { "odd" });
        new.execution.schedule_id = (n == 3).then_some(schedule);
        new.execution.session_id = (n == 4).then_some(session);
        if n == 6 {
            // With the same time, the higher id is the newer one.
            new.execution.created_at = bench.execution(ids[0]).await.created_at;
        }
        ids.insert(0, bench.enqueue(new).await.unwrap());
    }
    bench.enqueue(bench.new_execution(bob, "even")).await.unwrap();
    bench.claim(node, "odd", 1, 1).await;
    let mut reader = bench.store.reader().await.unwrap();
    let mut found = async |filter: ExecutionFilter| {
        let mut found = Vec::new();
        let mut cursor = None;
        loop {
            let page = list(&mut reader, OwnerScope::User(alice), &filter, cursor.as_ref(), 3).await.unwrap();
            assert!(page.rows.len() <= 3);
            found.extend(page.rows.iter().map(|execution| execution.id));
            cursor = page.next;
            if cursor.is_none() {
                return found;
            }
        }
    };
    assert_eq!(found(ExecutionFilter::default()).await, ids, "newest first");
    let of = |agent: &str| ExecutionFilter { agent_id: Some(agent.into()), ..ExecutionFilter::default() };
    assert_eq!(found(of("odd")).await, [ids[1], ids[3], ids[5]]);
    assert!(found(of("unknown")).await.is_empty());
    assert_eq!(found(ExecutionFilter { schedule_id: Some(schedule), ..ExecutionFilter::default() }).await, [ids[3]]);
    assert_eq!(found(ExecutionFilter { session_id: Some(session), ..ExecutionFilter::default() }).await, [ids[2]]);
    let states = vec![StateName::Starting, StateName::Running];
    assert_eq!(found(ExecutionFilter { states: states.clone(), ..ExecutionFilter::default() }).await, [ids[5]]);
    assert!(found(ExecutionFilter { states, ..of("even") }).await.is_empty());
    let text = ids[2].to_string();
    for part in [&text[..30], &text[20..], &text.to_uppercase()] {
        let found = found(ExecutionFilter { reference: Some(part.into()), ..ExecutionFilter::default() }).await;
        assert!(found.contains(&ids[2]), "{part}");
    }
    assert!(found(ExecutionFilter { reference: Some("%".into()), ..ExecutionFilter::default() }).await.is_empty());
}

async fn events_are_returned_in_order(bench: Bench) {
    // SUP-10
    let id = bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    let other = bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    let claimed = bench.claim(bench.node().await, "a", 1, 1).await.remove(0);
    assert_eq!((claimed.fence.id, claimed.seq), (id, 2));
    add_events(
        &bench,
        id,
        vec![output_event(3, "stdout", 0, "a"), output_event(4, "stderr", 0, "b"), output_event(5, "stdout", 1, "c")],
    )
    .await;
    // A caller repeats a write if the outcome of the commit is unknown.
    add_events(&bench, id, vec![output_event(5, "stdout", 1, "c")]).await;
    add_events(&bench, other, vec![output_event(2, "stdout", 0, "not this")]).await;
    let mut reader = bench.store.reader().await.unwrap();
    let mut after = async |seq, limit| {
        let events = events(&mut reader, id, seq, limit).await.unwrap();
        events.into_iter().map(|event| (event.seq, event.kind, event.text)).collect::<Vec<_>>()
    };
    let all = [
        (1, ExecutionEventKind::State, "idle"),
        (2, ExecutionEventKind::State, "starting"),
        (3, ExecutionEventKind::Output, "a"),
        (4, ExecutionEventKind::Output, "b"),
        (5, ExecutionEventKind::Output, "c"),
    ];
    let all = all.map(|(seq, kind, text)| (seq, kind, text.to_owned()));
    assert_eq!(after(0, 100).await, all);
    assert_eq!(after(3, 100).await, all[3..]);
    assert_eq!(after(1, 2).await, all[1..3]);
    assert!(after(5, 100).await.is_empty());
    assert_eq!(last_seq(&mut reader, id).await.unwrap(), 5);
    assert_eq!(last_seq(&mut reader, Uuid::from_u128(1)).await.unwrap(), 0);
}

async fn events_are_read_in_pieces(bench: Bench) {
    // SUP-10, SEC-5
    let id = bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    let long = "ü".repeat(1000);
    let texts = ["a".repeat(40), "b".repeat(40), long.clone(), "c".to_owned()];
    let new = texts.iter().zip(2..).map(|(text, seq)| output_event(seq, "stdout", seq, text)).collect();
    add_events(&bench, id, new).await;
    let mut reader = bench.store.reader().await.unwrap();
    assert_eq!(executions::event_bytes(&mut reader, id).await.unwrap(), 4 + 80 + 2000 + 1, "with the state `idle`");
    let mut page = async |after, events, bytes| {
        let limits = executions::PageLimits { events, bytes };
        let page = executions::event_page(&mut reader, id, after, limits).await.unwrap();
        let pieces = page.pieces.iter().map(|piece| (piece.event.seq, piece.event.text.len(), piece.is_last));
        (pieces.collect::<Vec<_>>(), page.has_more)
    };
    assert_eq!(page(0, 10, 100).await, (vec![(1, 4, true), (2, 40, true), (3, 40, true)], true));
    assert_eq!(page(0, 2, 100).await, (vec![(1, 4, true), (2, 40, true)], true));
    assert_eq!(page(1, 10, 79).await, (vec![(2, 40, true)], true));
    assert_eq!(page(3, 10, 100).await, (vec![(4, 200, false)], true), "100 characters of a long event");
    assert_eq!(page(4, 10, 100).await, (vec![(5, 1, true)], false));
    assert_eq!(page(5, 10, 100).await, (vec![], false));
    let mut read = String::new();
    let mut count = 0;
    loop {
        let chars = i64::try_from(read.chars().count()).unwrap();
        let piece = executions::event_piece(&mut reader, id, 4, chars, 300).await.unwrap().unwrap();
        assert_eq!((piece.first_char, piece.total_bytes), (chars, 2000));
        read.push_str(&piece.event.text);
        count += 1;
        if piece.is_last {
            break;
        }
    }
    assert_eq!((read, count), (long, 4));
    assert!(executions::event_piece(&mut reader, id, 9, 0, 300).await.unwrap().is_none());
}

async fn output_is_read_in_pieces(bench: Bench) {
    // SUP-10, SEC-5
    let id = bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    let state = |seq, text: &str| ExecutionEvent { kind: ExecutionEventKind::State, ..output_event(seq, "", 0, text) };
    add_events(&bench, id, vec![output_event(2, "stdout", 0, "earlier"), state(3, "starting")]).await;
    let new =
        vec![output_event(4, "stdout", 50, "tail"), output_event(5, "stdout", 0, "head"), gap(6, "stdout", 4, "46")];
    add_events(&bench, id, new).await;
    let mut reader = bench.store.reader().await.unwrap();
    let whole = output(&mut reader, id, "stdout").await.unwrap();
    let mut after = executions::OutputPlace::BEGIN;
    let mut read = Vec::new();
    loop {
        let limits = executions::PageLimits { events: 2, bytes: 100 };
        let page = executions::output_page(&mut reader, id, "stdout", after, limits).await.unwrap();
        let Some(last) = page.last() else { break };
        after = executions::OutputPlace { start: last.event.start, seq: last.event.seq };
        read.extend(page.into_iter().map(|piece| (piece.event.seq, piece.event.text)));
    }
    assert_eq!(read, [(5, "head".to_owned()), (6, "46".to_owned()), (4, "tail".to_owned())]);
    let mut end = async |bytes| executions::output_end(&mut reader, id, "stdout", bytes).await.unwrap();
    assert_eq!(
        (end(1).await, end(5).await, end(1000).await),
        ("tail".into(), whole["head".len()..].into(), whole.clone())
    );
}

async fn output_has_markers_for_gaps(bench: Bench) {
    // SUP-10: head and tail stay
    let id = bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    add_events(
        &bench,
        id,
        vec![
            output_event(2, "stdout", 0, "head"),
            output_event(3, "stderr", 0, "oh"),
            output_event(4, "stdout", 4, "old tail"),
        ],
    )
    .await;
    assert_eq!(write!(bench, tx => truncate_stream(tx, id, "stdout", 4)).unwrap(), 1);
    add_events(&bench, id, vec![gap(5, "stdout", 4, "1000"), output_event(6, "stdout", 1004, "tail")]).await;
    let mut reader = bench.store.reader().await.unwrap();
    let text = output(&mut reader, id, "stdout").await.unwrap();
    assert_eq!(text, "head\n[… 1000 bytes left out …]\ntail");
    assert_eq!(output(&mut reader, id, "file").await.unwrap(), "");
    let all = outputs_by_stream(&mut reader, id).await.unwrap();
    assert_eq!(all.into_iter().collect::<Vec<_>>(), [("stderr".into(), "oh".into()), ("stdout".into(), text)]);
    let left = events(&mut reader, id, 0, 100).await.unwrap();
    assert_eq!(left.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3, 5, 6], "states are never dropped");
}

async fn output_is_that_of_the_last_attempt(bench: Bench) {
    // SUP-6: the output of an earlier attempt stays in the log, but is not part of the result
    let id = bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    let state = |seq, text: &str| ExecutionEvent { kind: ExecutionEventKind::State, ..output_event(seq, "", 0, text) };
    add_events(
        &bench,
        id,
        vec![state(2, "starting"), output_event(3, "stdout", 0, "first"), output_event(4, "stdout", 5, " try")],
    )
    .await;
    add_events(
        &bench,
        id,
        vec![state(5, "starting"), output_event(6, "stdout", 0, "second"), output_event(7, "stdout", 6, " try")],
    )
    .await;
    let mut reader = bench.store.reader().await.unwrap();
    assert_eq!(output(&mut reader, id, "stdout").await.unwrap(), "second try");
    assert_eq!(write!(bench, tx => truncate_stream(tx, id, "stdout", 5)).unwrap(), 1);
    assert_eq!(output(&mut reader, id, "stdout").await.unwrap(), "second");
    let texts: Vec<_> = events(&mut reader, id, 2, 2).await.unwrap().into_iter().map(|event| event.text).collect();
    assert_eq!(texts, ["first", " try"]);
}

async fn rich_output_is_stored_and_summarized(bench: Bench) {
    // A2A-1: it is not part of the text output, and only that of the last attempt counts
    let id = bench.enqueue(bench.new_execution(bench.alice, "a")).await.unwrap();
    let claimed = bench.claim(bench.node().await, "a", 1, 1).await.remove(0);
    let state = |seq, text: &str| ExecutionEvent { kind: ExecutionEventKind::State, ..output_event(seq, "", 0, text) };
    let piece = |text: &str| serde_json::json!({"artifact": {"artifact_id": "x", "parts": [{"text": text}], "append": false, "last": true}});
    add_events(
        &bench,
        id,
        vec![rich_output_event(3, &piece("first")), state(4, "starting"), rich_output_event(5, &piece("second"))],
    )
    .await;
    add_events(&bench, id, vec![rich_output_event(6, &serde_json::json!({"status": [{"text": "soon"}]}))]).await;
    bench.finish(&claimed, OutputSummary::default()).await;
    let mut reader = bench.store.reader().await.unwrap();
    let short = executions::status_events(&mut reader, id).await.unwrap();
    assert_eq!(short.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 4, 6]);
    let found = executions::rich_output(&mut reader, id).await.unwrap();
    assert_eq!(serde_json::to_value(&found[0]).unwrap(), piece("second"));
    assert_eq!(found.len(), 2);
    assert!(outputs_by_stream(&mut reader, id).await.unwrap().is_empty());
    assert_eq!(result(&mut reader, OwnerScope::AllUsers, id).await.unwrap().output, "second", "without other output");
    add_events(&bench, id, vec![output_event(7, "stdout", 0, "text")]).await;
    assert_eq!(result(&mut reader, OwnerScope::AllUsers, id).await.unwrap().output, "text");
}

async fn results_require_an_ended_execution(bench: Bench) {
    // SUP-10
    let alice = bench.alice;
    let node = bench.node().await;
    let id = bench.enqueue(bench.new_execution(alice, "a")).await.unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    assert!(matches!(result(&mut reader, OwnerScope::User(alice), id).await, Err(Error::NotEnded)));
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    assert!(matches!(result(&mut reader, OwnerScope::User(alice), id).await, Err(Error::NotEnded)));
    add_events(&bench, id, vec![output_event(3, "stdout", 0, "42"), output_event(4, "stderr", 0, "hm")]).await;
    let artifacts = vec![Artifact { name: "report.md".into(), size: 12 }];
    let summary = OutputSummary { artifacts: artifacts.clone(), truncated: true, output_bytes: 4 };
    let ended = bench.finish(&claimed, summary).await;
    let result = result(&mut reader, OwnerScope::User(alice), id).await.unwrap();
    assert_eq!((result.status, result.output.as_str(), result.truncated), (ExecutionStatus::Success, "42", true));
    assert_eq!((result.artifacts, result.end_time), (artifacts, ended.ended().map(|end| end.at)));
    assert_eq!(result.state_transitions, ended.state_transitions());
    assert_eq!(total_output_bytes(&mut reader).await.unwrap(), 4);
}

async fn a_queued_execution_is_cancelled_immediately(bench: Bench) {
    // SUP-5: Idle→Cancelled
    let alice = bench.alice;
    let node = bench.node().await;
    let id = bench.enqueue(bench.new_execution(alice, "a")).await.unwrap();
    let next = bench.enqueue(bench.new_execution(alice, "a")).await.unwrap();
    let now = bench.now();
    let cancelled = write!(bench, tx => cancel(tx, OwnerScope::User(alice), id, now)).unwrap();
    let end = cancelled.ended().unwrap();
    assert_eq!((end.status, end.at), (ExecutionStatus::Cancelled, now));
    let stored = bench.execution(id).await;
    assert_eq!(stored, cancelled);
    assert_legal_transitions(&stored);
    assert_eq!(bench.record(next).await.queue_position, Some(1));
    let new_events = events(&mut bench.store.reader().await.unwrap(), id, 1, 10).await.unwrap();
    assert_eq!(new_events.iter().map(|event| event.text.as_str()).collect::<Vec<_>>(), ["cancelled"]);
    assert!(matches!(write!(bench, tx => cancel(tx, OwnerScope::User(alice), id, now)), Err(Error::AlreadyEnded)));
    let claimed = bench.claim(node, "a", 9, 9).await;
    assert_eq!(claimed.iter().map(|claimed| claimed.fence.id).collect::<Vec<_>>(), [next]);
}

async fn a_running_execution_is_cancelled_by_its_node(bench: Bench) {
    // SUP-7: its node is informed
    let alice = bench.alice;
    let node = bench.node().await;
    let other = bench.node().await;
    let id = bench.enqueue(bench.new_execution(alice, "a")).await.unwrap();
    let claimed = bench.claim(node, "a", 1, 1).await.remove(0);
    let requests = async |node| -> Vec<Uuid> {
        let requests = cancel_requests(&mut bench.store.reader().await.unwrap(), node).await.unwrap();
        requests.into_iter().map(|request| request.id).collect()
    };
    assert!(requests(node).await.is_empty());
    let now = bench.now();
    let requested = write!(bench, tx => cancel(tx, OwnerScope::User(alice), id, now)).unwrap();
    assert_eq!(requested.state_name(), StateName::Starting, "its node ends it");
    write!(bench, tx => cancel(tx, OwnerScope::User(alice), id, now)).unwrap();
    assert_eq!((requests(node).await, requests(other).await), (vec![id], vec![]));
    let mut execution = claimed.row.execution;
    execution.end(ExecutionStatus::Cancelled, AttemptExit::default(), now).unwrap();
    assert!(bench.save(claimed.fence, &execution, None).await);
    assert!(requests(node).await.is_empty());
    assert!(matches!(write!(bench, tx => cancel(tx, OwnerScope::User(alice), id, now)), Err(Error::AlreadyEnded)));
    assert_legal_transitions(&bench.execution(id).await);
}

async fn nul_characters_are_replaced(bench: Bench) {
    // PostgreSQL cannot store NUL characters, but agents can write them.
    let mut new = bench.new_execution(bench.alice, "a");
    new.execution.input = "a\0b".into();
    let id = bench.enqueue(new).await.unwrap();
    let claimed = bench.claim(bench.node().await, "a", 1, 1).await.remove(0);
    let mut execution = claimed.row.execution;
    execution.end(ExecutionStatus::Failure, AttemptExit::with_error("\0", None), bench.now()).unwrap();
    let fence = claimed.fence;
    bench.clock.advance(Duration::from_secs(1));
    let batch = vec![output_event(3, "stdout", 0, "x\0y 💥")];
    let written = bench.transaction(async move |tx| {
        let is_held = save(tx, fence, &execution, None).await?;
        append_events(tx, id, &batch).await?;
        Ok(is_held)
    });
    assert!(written.await.unwrap());
    let stored = bench.execution(id).await;
    assert_eq!((stored.input.as_str(), stored.error_message()), ("a\u{fffd}b", Some("\u{fffd}")));
    let text = output(&mut bench.store.reader().await.unwrap(), id, "stdout").await.unwrap();
    assert_eq!(text, "x\u{fffd}y 💥");
}

async fn lists_shorten_long_values(bench: Bench) {
    // SUP-10, OPS-7
    let with_input = |input: &str, text: &str| {
        let mut new = bench.new_execution(bench.alice, "a");
        new.execution.input = input.to_owned();
        new.execution.context.insert("parameters".into(), serde_json::json!({"text": text}));
        new
    };
    let long = "ü".repeat(1001);
    let fits = "ü".repeat(1000);
    let id = bench.enqueue(with_input(&long, &long)).await.unwrap();
    bench.clock.advance(Duration::from_secs(1));
    bench.enqueue(with_input(&fits, "short")).await.unwrap();
    let mut reader = bench.store.reader().await.unwrap();
    let page = list(&mut reader, OwnerScope::User(bench.alice), &ExecutionFilter::default(), None, 10).await.unwrap();
    assert_eq!(page.rows[0].input, fits);
    assert_eq!(page.rows[0].context["parameters"], serde_json::json!({"text": "short"}));
    assert_eq!(page.rows[1].input, format!("{fits}…"));
    let shown = page.rows[1].context["parameters"].as_str().unwrap();
    assert!(shown.starts_with("{\"text\":\"üü") && shown.chars().count() == 1001, "{shown}");
    let whole = bench.execution(id).await;
    assert_eq!(whole.input, long);
    assert_eq!(whole.context["parameters"]["text"], long);
}
