//! A2A tasks: sequences of executions, their messages and their contexts.

use std::time::Duration;

use model::UserId;
use model::execution::{AttemptExit, ExecutionOutcome, ExecutionStatus, PublicStatus};
use serde_json::{Value, json};
use store::a2a::{
    A2aRun, A2aTaskFilter, contexts, current_run, enqueue_or_claim, list_tasks, messages, runs, withdraw,
};
use store::executions::{A2aTaskRef, ExecutionEventKind, NewExecution, OutputSummary, RICH_OUTPUT_STREAM};
use store::housekeeping::{RemovedRows, Retention, sweep};
use store::{Error, data};
use uuid::Uuid;

use crate::{Bench, on_both, write};

on_both!(
    a_task_starts_with_one_execution,
    an_answer_continues_a_task_that_requests_input,
    only_one_of_concurrent_answers_is_accepted,
    runs_are_ordered_by_message_despite_clock_skew,
    a_task_that_requests_input_can_be_withdrawn,
    tasks_are_visible_only_to_their_user_and_agent,
    tasks_are_listed_by_last_change_and_filtered,
    a_full_queue_rejects_the_answer_and_keeps_the_status,
    contexts_store_their_links,
    concurrent_use_of_a_context_is_serialized,
    old_executions_and_contexts_are_removed,
    structured_output_counts_toward_the_size_limit,
    exported_executions_contain_their_message,
    erasing_a_user_removes_tasks_and_contexts
);

pub(crate) const AGENT: &str = "a";

/// Returns the first execution of a task, not stored yet.
pub(crate) fn first(bench: &Bench, owner: UserId, context: &str, text: &str) -> NewExecution {
    let mut new = bench.new_execution(owner, AGENT);
    new.message = Some(json!({"messageId": text, "parts": [{"text": text}]}));
    new.task = Some(A2aTaskRef { id: new.execution.id, context_id: context.to_owned() });
    new
}

/// Returns an execution that continues a task, not stored yet.
pub(crate) fn next(bench: &Bench, owner: UserId, task: &A2aTaskRef, text: &str) -> NewExecution {
    NewExecution { task: Some(task.clone()), ..first(bench, owner, "", text) }
}

/// Enqueues an execution and returns its task.
pub(crate) async fn send(bench: &Bench, new: NewExecution) -> store::Result<A2aTaskRef> {
    let task = new.task.clone().unwrap();
    write!(bench, tx => enqueue_or_claim(tx, &new, None))?;
    Ok(task)
}

/// Runs the agent's next execution to its end.
pub(crate) async fn run_next(bench: &Bench, node: Uuid, status: ExecutionStatus, outcome: Option<ExecutionOutcome>) {
    let claimed = bench.claim(node, AGENT, 9, 1).await.remove(0);
    let mut execution = claimed.row.execution;
    let fence = claimed.fence;
    bench.clock.advance(Duration::from_secs(1));
    let now = bench.now();
    execution.start(None, now).unwrap();
    execution.end(status, AttemptExit { outcome, ..AttemptExit::default() }, now).unwrap();
    assert!(bench.save(fence, &execution, Some(OutputSummary::default())).await);
    write!(bench, tx => store::executions::release_slot(tx, fence.id, fence.node)).unwrap();
}

async fn current(bench: &Bench, owner: UserId, id: Uuid) -> store::Result<A2aRun> {
    current_run(&mut bench.store.reader().await.unwrap(), owner, AGENT, id).await
}

/// Returns the ids of the messages of a task.
async fn message_ids(bench: &Bench, owner: UserId, id: Uuid) -> Vec<Value> {
    let messages = messages(&mut bench.store.reader().await.unwrap(), owner, AGENT, id).await.unwrap();
    messages.into_iter().map(|message| message.message["messageId"].clone()).collect()
}

async fn a_task_starts_with_one_execution(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let node = bench.node().await;
    let new = first(&bench, alice, "c", "hello");
    let expected = new.execution.clone();
    let message = new.message.clone().unwrap();
    let task = send(&bench, new).await.unwrap();
    let run = current(&bench, alice, task.id).await.unwrap();
    assert_eq!(run, A2aRun { task: task.clone(), execution: expected, artifacts: Vec::new(), truncated: false });
    assert_eq!(run.execution.public_status(), PublicStatus::Waiting);
    let mut reader = bench.store.reader().await.unwrap();
    let stored = messages(&mut reader, alice, AGENT, task.id).await.unwrap();
    assert_eq!((stored.len(), &stored[0].message, stored[0].execution_id), (1, &message, task.id));
    run_next(&bench, node, ExecutionStatus::Failure, Some(ExecutionOutcome::Rejected)).await;
    let run = current(&bench, alice, task.id).await.unwrap();
    assert_eq!(run.execution.ended().unwrap().exit.outcome, Some(ExecutionOutcome::Rejected));
    assert_eq!(run.execution.public_status(), PublicStatus::Rejected);
    // An execution without an A2A request is not a task.
    let plain = bench.enqueue(bench.new_execution(alice, AGENT)).await.unwrap();
    assert!(matches!(current(&bench, alice, plain).await, Err(Error::NotFound)));
}

async fn an_answer_continues_a_task_that_requests_input(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let node = bench.node().await;
    let task = send(&bench, first(&bench, alice, "c", "delete it")).await.unwrap();
    let early = send(&bench, next(&bench, alice, &task, "too early")).await;
    assert!(matches!(early, Err(Error::NotEnded)), "{early:?}");
    run_next(&bench, node, ExecutionStatus::Success, Some(ExecutionOutcome::InputRequired)).await;
    assert_eq!(current(&bench, alice, task.id).await.unwrap().execution.public_status(), PublicStatus::InputRequired);
    let answer = next(&bench, alice, &task, "yes");
    let second = answer.execution.id;
    send(&bench, answer).await.unwrap();
    let run = current(&bench, alice, task.id).await.unwrap();
    assert_eq!((run.execution.id, run.execution.public_status()), (second, PublicStatus::Waiting));
    assert_eq!(run.public_status(), PublicStatus::Working, "a task with an answer counts as working");
    run_next(&bench, node, ExecutionStatus::Success, None).await;
    let late = send(&bench, next(&bench, alice, &task, "too late")).await;
    assert!(matches!(late, Err(Error::AlreadyEnded)), "{late:?}");
    assert_eq!(message_ids(&bench, alice, task.id).await, ["delete it", "yes"]);
    let all = runs(&mut bench.store.reader().await.unwrap(), alice, AGENT, task.id).await.unwrap();
    assert_eq!(all.iter().map(|run| run.execution.id).collect::<Vec<_>>(), [task.id, second]);
    let gone = next(&bench, alice, &A2aTaskRef { id: Uuid::from_u128(1), ..task }, "unknown");
    assert!(matches!(send(&bench, gone).await, Err(Error::NotFound)));
}

async fn runs_are_ordered_by_message_despite_clock_skew(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let node = bench.node().await;
    let third = bench.clock.id();
    let second = bench.clock.id();
    let task = send(&bench, first(&bench, alice, "c", "first")).await.unwrap();
    let mut ids = vec![task.id];
    for (id, text) in [(second, "second"), (third, "third")] {
        run_next(&bench, node, ExecutionStatus::Success, Some(ExecutionOutcome::InputRequired)).await;
        let mut answer = next(&bench, alice, &task, text);
        answer.execution.id = id;
        assert!(id < task.id);
        ids.push(id);
        send(&bench, answer).await.unwrap();
    }
    let all = runs(&mut bench.store.reader().await.unwrap(), alice, AGENT, task.id).await.unwrap();
    assert_eq!(all.iter().map(|run| run.execution.id).collect::<Vec<_>>(), ids, "in the order of their messages");
}

async fn only_one_of_concurrent_answers_is_accepted(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let node = bench.node().await;
    let task = send(&bench, first(&bench, alice, "c", "delete it")).await.unwrap();
    run_next(&bench, node, ExecutionStatus::Success, Some(ExecutionOutcome::InputRequired)).await;
    let answers = (0..8).map(|n| send(&bench, next(&bench, alice, &task, &n.to_string())));
    let sent = futures::future::join_all(answers).await;
    assert_eq!(sent.iter().filter(|sent| sent.is_ok()).count(), 1);
    assert!(sent.iter().filter_map(|sent| sent.as_ref().err()).all(|error| matches!(error, Error::NotEnded)));
    assert_eq!(message_ids(&bench, alice, task.id).await.len(), 2);
}

async fn a_task_that_requests_input_can_be_withdrawn(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let bob = bench.bob;
    let node = bench.node().await;
    let task = send(&bench, first(&bench, alice, "c", "delete it")).await.unwrap();
    let id = task.id;
    let at = bench.now();
    assert!(matches!(write!(bench, tx => withdraw(tx, alice, AGENT, id, at)), Err(Error::NotEnded)));
    run_next(&bench, node, ExecutionStatus::Success, Some(ExecutionOutcome::InputRequired)).await;
    assert!(matches!(write!(bench, tx => withdraw(tx, bob, AGENT, id, at)), Err(Error::NotFound)));
    bench.clock.advance(Duration::from_secs(5));
    let at = bench.now();
    let run = write!(bench, tx => withdraw(tx, alice, AGENT, id, at)).unwrap();
    assert_eq!((run.execution.public_status(), run.execution.last_state_change()), (PublicStatus::Cancelled, at));
    assert!(matches!(write!(bench, tx => withdraw(tx, alice, AGENT, id, at)), Err(Error::AlreadyEnded)));
    assert!(matches!(send(&bench, next(&bench, alice, &task, "yes")).await, Err(Error::AlreadyEnded)));
}

async fn tasks_are_visible_only_to_their_user_and_agent(bench: Bench) {
    // A2A-2, A2A-3
    let alice = bench.alice;
    let bob = bench.bob;
    let node = bench.node().await;
    let task = send(&bench, first(&bench, alice, "c", "hello")).await.unwrap();
    run_next(&bench, node, ExecutionStatus::Success, Some(ExecutionOutcome::InputRequired)).await;
    let mut reader = bench.store.reader().await.unwrap();
    for (owner, agent) in [(bob, AGENT), (alice, "b")] {
        assert!(matches!(current_run(&mut reader, owner, agent, task.id).await, Err(Error::NotFound)));
        assert!(matches!(runs(&mut reader, owner, agent, task.id).await, Err(Error::NotFound)));
        assert_eq!(messages(&mut reader, owner, agent, task.id).await.unwrap(), []);
        let (page, total) = list_tasks(&mut reader, owner, agent, &A2aTaskFilter::default(), None, 9).await.unwrap();
        assert_eq!((page.rows.len(), total), (0, 0));
        let mut answer = next(&bench, owner, &task, "mine");
        answer.execution.agent_id = agent.to_owned();
        assert!(matches!(send(&bench, answer).await, Err(Error::NotFound)));
        assert!(contexts::get(&mut reader, owner, agent, "c").await.unwrap().is_none());
    }
    assert_eq!(current(&bench, alice, task.id).await.unwrap().execution.public_status(), PublicStatus::InputRequired);
}

async fn tasks_are_listed_by_last_change_and_filtered(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let node = bench.node().await;
    let ends = [
        (ExecutionStatus::Success, None),
        (ExecutionStatus::Success, Some(ExecutionOutcome::InputRequired)),
        (ExecutionStatus::Success, Some(ExecutionOutcome::Message)),
        (ExecutionStatus::Success, Some(ExecutionOutcome::AuthRequired)),
        (ExecutionStatus::Failure, None),
        (ExecutionStatus::Failure, Some(ExecutionOutcome::Rejected)),
        (ExecutionStatus::Timeout, None),
        (ExecutionStatus::Cancelled, None),
    ];
    let mut all = Vec::new();
    for (status, outcome) in ends {
        all.push(send(&bench, first(&bench, alice, "one", "x")).await.unwrap());
        run_next(&bench, node, status, outcome).await;
    }
    let half = bench.now();
    all.push(send(&bench, first(&bench, alice, "two", "x")).await.unwrap());
    bench.claim(node, AGENT, 9, 1).await;
    all.push(send(&bench, first(&bench, alice, "two", "x")).await.unwrap());
    // The answer moves its task to the front.
    let answer = next(&bench, alice, &all[1], "yes");
    send(&bench, answer).await.unwrap();
    bench.enqueue(bench.new_execution(alice, AGENT)).await.unwrap();
    let order: Vec<_> = [1, 9, 8, 7, 6, 5, 4, 3, 2, 0].map(|at: usize| all[at].id).into();
    let found = async |filter: A2aTaskFilter, limit: i64| {
        let mut reader = bench.store.reader().await.unwrap();
        let mut found = Vec::new();
        let mut cursor = None;
        let mut totals = Vec::new();
        loop {
            let (page, total) = list_tasks(&mut reader, alice, AGENT, &filter, cursor.as_ref(), limit).await.unwrap();
            for run in &page.rows {
                assert!(filter.statuses.is_empty() || filter.statuses.contains(&run.public_status()));
                found.push(run.task.id);
            }
            totals.push(total);
            cursor = page.next;
            if cursor.is_none() {
                assert!(totals.iter().all(|total| *total == found.len() as i64), "{totals:?}");
                return found;
            }
        }
    };
    assert_eq!(found(A2aTaskFilter::default(), 100).await, order);
    assert_eq!(found(A2aTaskFilter::default(), 2).await, order, "page by page");
    let two = A2aTaskFilter { context_id: Some("two".into()), ..A2aTaskFilter::default() };
    assert_eq!(found(two, 100).await, order[1..3]);
    let late = A2aTaskFilter { changed_since: Some(half), ..A2aTaskFilter::default() };
    assert_eq!(found(late, 100).await, order[..4], "the boundary is included");
    let mut each = Vec::new();
    for status in PublicStatus::ALL {
        each.extend(found(A2aTaskFilter { statuses: vec![*status], ..A2aTaskFilter::default() }, 100).await);
    }
    each.sort();
    let mut expected = order.clone();
    expected.sort();
    assert_eq!(each, expected, "each task has one status");
    let statuses = vec![PublicStatus::Failed, PublicStatus::Rejected];
    assert_eq!(
        found(A2aTaskFilter { statuses, ..A2aTaskFilter::default() }, 100).await,
        [all[6].id, all[5].id, all[4].id]
    );
}

async fn a_full_queue_rejects_the_answer_and_keeps_the_status(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let node = bench.node().await;
    let task = send(&bench, first(&bench, alice, "c", "delete it")).await.unwrap();
    run_next(&bench, node, ExecutionStatus::Success, Some(ExecutionOutcome::InputRequired)).await;
    let full = || {
        let mut answer = next(&bench, alice, &task, "yes");
        (answer.slots, answer.queue_depth) = (0, 0);
        answer
    };
    assert!(matches!(send(&bench, full()).await, Err(Error::QueueFull { .. })));
    assert_eq!(current(&bench, alice, task.id).await.unwrap().execution.public_status(), PublicStatus::InputRequired);
    assert_eq!(message_ids(&bench, alice, task.id).await.len(), 1);
}

async fn contexts_store_their_links(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let at = bench.now();
    let mut reader = bench.store.reader().await.unwrap();
    assert_eq!(contexts::get(&mut reader, alice, AGENT, "c").await.unwrap(), None);
    let begun = write!(bench, tx => contexts::get_or_create(tx, alice, AGENT, "c", at)).unwrap();
    let link = contexts::ContextLink::default();
    assert_eq!(begun, contexts::A2aContext { id: "c".into(), link, created_at: at, used_at: at });
    let link = contexts::ContextLink {
        conversation_id: Some("conv".into()),
        session_id: Some(Uuid::from_u128(7)),
        remote_context: Some("theirs".into()),
    };
    let stored = link.clone();
    assert!(write!(bench, tx => contexts::set_link(tx, alice, AGENT, "c", &stored)).unwrap());
    let stored = link.clone();
    assert!(!write!(bench, tx => contexts::set_link(tx, alice, AGENT, "d", &stored)).unwrap());
    bench.clock.advance(Duration::from_secs(5));
    let later = bench.now();
    let again = write!(bench, tx => contexts::get_or_create(tx, alice, AGENT, "c", later)).unwrap();
    assert_eq!(again, contexts::A2aContext { id: "c".into(), link, created_at: at, used_at: later });
    assert_eq!(contexts::get(&mut reader, alice, AGENT, "c").await.unwrap(), Some(again));
}

async fn concurrent_use_of_a_context_is_serialized(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let at = bench.now();
    let entries = (0..8).map(|n| {
        bench.transaction(async move |tx| {
            let context = contexts::get_or_create(tx, alice, AGENT, "c", at).await?;
            if context.link.session_id.is_some() {
                return Ok(false);
            }
            let link = contexts::ContextLink { session_id: Some(Uuid::from_u128(n)), ..context.link };
            contexts::set_link(tx, alice, AGENT, "c", &link).await
        })
    });
    let opened = futures::future::join_all(entries).await;
    assert_eq!(opened.into_iter().filter(|opened| *opened.as_ref().unwrap()).count(), 1);
}

async fn exported_executions_contain_their_message(bench: Bench) {
    // OPS-7
    let alice = bench.alice;
    let node = bench.node().await;
    let task = send(&bench, first(&bench, alice, "c", "hello")).await.unwrap();
    let output = json!({"message": [{"text": "hi"}]});
    let event = crate::executions::rich_output_event(2, &output);
    write!(bench, tx => store::executions::append_events(tx, task.id, &[event])).unwrap();
    run_next(&bench, node, ExecutionStatus::Success, Some(ExecutionOutcome::Message)).await;
    bench.enqueue(bench.new_execution(alice, AGENT)).await.unwrap();
    let page = data::export_executions(&mut bench.store.reader().await.unwrap(), alice, None, 9).await.unwrap();
    let written = serde_json::to_value(&page.rows).unwrap();
    assert_eq!((&written[1]["message"]["messageId"], &written[1]["outcome"]), (&json!("hello"), &json!("message")));
    assert_eq!((written[0].get("message"), written[0].get("said")), (None, None));
}

async fn erasing_a_user_removes_tasks_and_contexts(bench: Bench) {
    // OPS-7
    let alice = bench.alice;
    let bob = bench.bob;
    let node = bench.node().await;
    let at = bench.now();
    for owner in [alice, bob] {
        let task = send(&bench, first(&bench, owner, "c", "delete it")).await.unwrap();
        run_next(&bench, node, ExecutionStatus::Success, Some(ExecutionOutcome::InputRequired)).await;
        send(&bench, next(&bench, owner, &task, "yes")).await.unwrap();
        run_next(&bench, node, ExecutionStatus::Success, None).await;
        write!(bench, tx => contexts::get_or_create(tx, owner, AGENT, "c", at)).unwrap();
    }
    assert_eq!(bench.count("SELECT COUNT(*) FROM a2a_messages").await, 4);
    write!(bench, tx => data::erase(tx, alice)).unwrap();
    for (sql, left) in [
        ("SELECT COUNT(*) FROM a2a_messages", 2),
        ("SELECT COUNT(*) FROM a2a_contexts", 1),
        ("SELECT COUNT(*) FROM executions", 2),
    ] {
        assert_eq!(bench.count(sql).await, left, "{sql}");
    }
}

async fn old_executions_and_contexts_are_removed(bench: Bench) {
    // OPS-7: old executions of a task are removed; the task stays until its last execution is old
    let alice = bench.alice;
    let node = bench.node().await;
    let at = bench.now();
    let day = Duration::from_secs(24 * 3600);
    let task = send(&bench, first(&bench, alice, "c", "delete it")).await.unwrap();
    run_next(&bench, node, ExecutionStatus::Success, Some(ExecutionOutcome::InputRequired)).await;
    write!(bench, tx => contexts::get_or_create(tx, alice, AGENT, "c", at)).unwrap();
    write!(bench, tx => contexts::get_or_create(tx, alice, AGENT, "d", at)).unwrap();
    bench.clock.advance(day * 20);
    let node = bench.node().await;
    let later = bench.now();
    write!(bench, tx => contexts::get_or_create(tx, alice, AGENT, "c", later)).unwrap();
    send(&bench, next(&bench, alice, &task, "yes")).await.unwrap();
    run_next(&bench, node, ExecutionStatus::Success, None).await;
    bench.clock.advance(day * 11);
    let removed = sweep(&bench.store, Retention::default(), bench.now()).await.unwrap();
    assert_eq!(removed, RemovedRows { executions: 1, contexts: 1, ..RemovedRows::default() });
    assert_eq!(current(&bench, alice, task.id).await.unwrap().execution.public_status(), PublicStatus::Completed);
    assert_eq!(message_ids(&bench, alice, task.id).await, ["yes"]);
    bench.clock.advance(day * 20);
    let removed = sweep(&bench.store, Retention::default(), bench.now()).await.unwrap();
    assert_eq!(removed, RemovedRows { executions: 1, contexts: 1, ..RemovedRows::default() });
    assert!(matches!(current(&bench, alice, task.id).await, Err(Error::NotFound)));
    assert_eq!(bench.count("SELECT COUNT(*) FROM a2a_messages").await, 0);
}

async fn structured_output_counts_toward_the_size_limit(bench: Bench) {
    // OPS-7: structured output counts as output
    let alice = bench.alice;
    let node = bench.node().await;
    let task = send(&bench, first(&bench, alice, "c", "hello")).await.unwrap();
    let event = crate::executions::rich_output_event(3, &json!({"message": [{"text": "hi"}]}));
    let length = event.text.len();
    let claimed = bench.claim(node, AGENT, 9, 1).await.remove(0);
    write!(bench, tx => store::executions::append_events(tx, task.id, &[event])).unwrap();
    bench.finish(&claimed, OutputSummary { output_bytes: length as i64, ..OutputSummary::default() }).await;
    let retention = Retention { output_bytes: Some(0), ..Retention::default() };
    assert_eq!(sweep(&bench.store, retention, bench.now()).await.unwrap().outputs, 1);
    let mut reader = bench.store.reader().await.unwrap();
    assert_eq!(store::executions::rich_output(&mut reader, task.id).await.unwrap(), []);
    let events = store::executions::events(&mut reader, task.id, 0, 9).await.unwrap();
    let last = events.last().unwrap();
    assert_eq!(
        (last.kind, last.stream.as_str(), last.text.clone()),
        (ExecutionEventKind::Gap, RICH_OUTPUT_STREAM, length.to_string())
    );
    assert!(current(&bench, alice, task.id).await.unwrap().truncated);
}
