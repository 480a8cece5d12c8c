//! Tasks of A2A: several executions as one, what they were asked, and what their contexts have in common.

use std::time::Duration;

use model::UserId;
use model::execution::{Exit, Outcome, Standing, Status};
use serde_json::{Value, json};
use store::a2a::{Filter, Run, contexts, messages, runs, submit_to, task, tasks, withdraw};
use store::executions::{Kind, Left, New, OfTask, SAID};
use store::housekeeping::{Removed, Retention, sweep};
use store::{Error, data};
use uuid::Uuid;

use crate::{Bench, on_both, write};

on_both!(
    one_execution,
    a_question_and_its_answer,
    one_of_two_answers_is_the_first,
    answered_on_a_node_whose_clock_is_behind,
    withdrawn,
    of_one_user_and_one_agent,
    listed_by_their_last_change,
    a_full_queue_leaves_the_question,
    contexts_and_what_they_link,
    contexts_are_entered_one_after_the_other,
    swept,
    output_is_given_up,
    given_out,
    erased
);

pub(crate) const AGENT: &str = "a";

/// The first execution of a task, not stored yet.
pub(crate) fn first(bench: &Bench, owner: UserId, context: &str, text: &str) -> New {
    let mut new = bench.run(owner, AGENT);
    new.message = Some(json!({"messageId": text, "parts": [{"text": text}]}));
    new.task = Some(OfTask { id: new.execution.id, context_id: context.to_owned() });
    new
}

/// One that answers the question of a task.
pub(crate) fn next(bench: &Bench, owner: UserId, of: &OfTask, text: &str) -> New {
    New { task: Some(of.clone()), ..first(bench, owner, "", text) }
}

pub(crate) async fn sent(bench: &Bench, new: New) -> store::Result<OfTask> {
    let of = new.task.clone().unwrap();
    write!(bench, tx => submit_to(tx, &new, None))?;
    Ok(of)
}

/// Runs the agent's next execution to its end.
pub(crate) async fn ran(bench: &Bench, node: Uuid, status: Status, outcome: Option<Outcome>) {
    let claimed = bench.claim(node, AGENT, 9, 1).await.remove(0);
    let mut execution = claimed.stored.execution;
    let fence = claimed.fence;
    bench.clock.advance(Duration::from_secs(1));
    let now = bench.now();
    execution.start(None, now).unwrap();
    execution.end(status, Exit { outcome, ..Exit::default() }, now).unwrap();
    assert!(bench.save(fence, &execution, Some(Left::default())).await);
    write!(bench, tx => store::executions::give_back(tx, fence.id, fence.node)).unwrap();
}

async fn now(bench: &Bench, owner: UserId, id: Uuid) -> store::Result<Run> {
    task(&mut bench.store.reader().await.unwrap(), owner, AGENT, id).await
}

async fn asked(bench: &Bench, owner: UserId, id: Uuid) -> Vec<Value> {
    let messages = messages(&mut bench.store.reader().await.unwrap(), owner, AGENT, id).await.unwrap();
    messages.into_iter().map(|message| message.message["messageId"].clone()).collect()
}

async fn one_execution(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let node = bench.node().await;
    let new = first(&bench, alice, "c", "hello");
    let wanted = new.execution.clone();
    let message = new.message.clone().unwrap();
    let of = sent(&bench, new).await.unwrap();
    let run = now(&bench, alice, of.id).await.unwrap();
    assert_eq!(run, Run { task: of.clone(), execution: wanted, artifacts: Vec::new(), truncated: false });
    assert_eq!(run.execution.standing(), Standing::Waiting);
    let mut reader = bench.store.reader().await.unwrap();
    let kept = messages(&mut reader, alice, AGENT, of.id).await.unwrap();
    assert_eq!((kept.len(), &kept[0].message, kept[0].execution_id), (1, &message, of.id));
    ran(&bench, node, Status::Failure, Some(Outcome::Rejected)).await;
    let run = now(&bench, alice, of.id).await.unwrap();
    assert_eq!(run.execution.ended().unwrap().exit.outcome, Some(Outcome::Rejected));
    assert_eq!(run.execution.standing(), Standing::Rejected);
    // An execution that nobody asked for over A2A is no task.
    let plain = bench.submit(bench.run(alice, AGENT)).await.unwrap();
    assert!(matches!(now(&bench, alice, plain).await, Err(Error::NotFound)));
}

async fn a_question_and_its_answer(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let node = bench.node().await;
    let of = sent(&bench, first(&bench, alice, "c", "delete it")).await.unwrap();
    let early = sent(&bench, next(&bench, alice, &of, "too early")).await;
    assert!(matches!(early, Err(Error::NotEnded)), "{early:?}");
    ran(&bench, node, Status::Success, Some(Outcome::Asks)).await;
    assert_eq!(now(&bench, alice, of.id).await.unwrap().execution.standing(), Standing::Asks);
    let answer = next(&bench, alice, &of, "yes");
    let second = answer.execution.id;
    sent(&bench, answer).await.unwrap();
    let run = now(&bench, alice, of.id).await.unwrap();
    assert_eq!((run.execution.id, run.execution.standing()), (second, Standing::Waiting));
    assert_eq!(run.standing(), Standing::Working, "whoever was answered goes on");
    ran(&bench, node, Status::Success, None).await;
    let late = sent(&bench, next(&bench, alice, &of, "too late")).await;
    assert!(matches!(late, Err(Error::Ended)), "{late:?}");
    assert_eq!(asked(&bench, alice, of.id).await, ["delete it", "yes"]);
    let all = runs(&mut bench.store.reader().await.unwrap(), alice, AGENT, of.id).await.unwrap();
    assert_eq!(all.iter().map(|run| run.execution.id).collect::<Vec<_>>(), [of.id, second]);
    let gone = next(&bench, alice, &OfTask { id: Uuid::from_u128(1), ..of }, "nobody");
    assert!(matches!(sent(&bench, gone).await, Err(Error::NotFound)));
}

async fn answered_on_a_node_whose_clock_is_behind(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let node = bench.node().await;
    let third = bench.clock.id();
    let second = bench.clock.id();
    let of = sent(&bench, first(&bench, alice, "c", "first")).await.unwrap();
    let mut ids = vec![of.id];
    for (id, text) in [(second, "second"), (third, "third")] {
        ran(&bench, node, Status::Success, Some(Outcome::Asks)).await;
        let mut answer = next(&bench, alice, &of, text);
        answer.execution.id = id;
        assert!(id < of.id);
        ids.push(id);
        sent(&bench, answer).await.unwrap();
    }
    let all = runs(&mut bench.store.reader().await.unwrap(), alice, AGENT, of.id).await.unwrap();
    assert_eq!(
        all.iter().map(|run| run.execution.id).collect::<Vec<_>>(),
        ids,
        "in the order in which they were asked"
    );
}

async fn one_of_two_answers_is_the_first(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let node = bench.node().await;
    let of = sent(&bench, first(&bench, alice, "c", "delete it")).await.unwrap();
    ran(&bench, node, Status::Success, Some(Outcome::Asks)).await;
    let answers = (0..8).map(|n| sent(&bench, next(&bench, alice, &of, &n.to_string())));
    let sent = futures::future::join_all(answers).await;
    assert_eq!(sent.iter().filter(|sent| sent.is_ok()).count(), 1);
    assert!(sent.iter().filter_map(|sent| sent.as_ref().err()).all(|error| matches!(error, Error::NotEnded)));
    assert_eq!(asked(&bench, alice, of.id).await.len(), 2);
}

async fn withdrawn(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let bob = bench.bob;
    let node = bench.node().await;
    let of = sent(&bench, first(&bench, alice, "c", "delete it")).await.unwrap();
    let id = of.id;
    let at = bench.now();
    assert!(matches!(write!(bench, tx => withdraw(tx, alice, AGENT, id, at)), Err(Error::NotEnded)));
    ran(&bench, node, Status::Success, Some(Outcome::Asks)).await;
    assert!(matches!(write!(bench, tx => withdraw(tx, bob, AGENT, id, at)), Err(Error::NotFound)));
    bench.clock.advance(Duration::from_secs(5));
    let at = bench.now();
    let run = write!(bench, tx => withdraw(tx, alice, AGENT, id, at)).unwrap();
    assert_eq!((run.execution.standing(), run.execution.last_state_change()), (Standing::Cancelled, at));
    assert!(matches!(write!(bench, tx => withdraw(tx, alice, AGENT, id, at)), Err(Error::Ended)));
    assert!(matches!(sent(&bench, next(&bench, alice, &of, "yes")).await, Err(Error::Ended)));
}

async fn of_one_user_and_one_agent(bench: Bench) {
    // A2A-3
    let alice = bench.alice;
    let bob = bench.bob;
    let node = bench.node().await;
    let of = sent(&bench, first(&bench, alice, "c", "hello")).await.unwrap();
    ran(&bench, node, Status::Success, Some(Outcome::Asks)).await;
    let mut reader = bench.store.reader().await.unwrap();
    for (owner, agent) in [(bob, AGENT), (alice, "b")] {
        assert!(matches!(task(&mut reader, owner, agent, of.id).await, Err(Error::NotFound)));
        assert!(matches!(runs(&mut reader, owner, agent, of.id).await, Err(Error::NotFound)));
        assert_eq!(messages(&mut reader, owner, agent, of.id).await.unwrap(), []);
        let (page, total) = tasks(&mut reader, owner, agent, &Filter::default(), None, 9).await.unwrap();
        assert_eq!((page.rows.len(), total), (0, 0));
        let mut answer = next(&bench, owner, &of, "mine");
        answer.execution.agent_id = agent.to_owned();
        assert!(matches!(sent(&bench, answer).await, Err(Error::NotFound)));
        assert!(contexts::get(&mut reader, owner, agent, "c").await.unwrap().is_none());
    }
    assert_eq!(now(&bench, alice, of.id).await.unwrap().execution.standing(), Standing::Asks);
}

async fn listed_by_their_last_change(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let node = bench.node().await;
    let ends = [
        (Status::Success, None),
        (Status::Success, Some(Outcome::Asks)),
        (Status::Success, Some(Outcome::Message)),
        (Status::Success, Some(Outcome::NeedsAccess)),
        (Status::Failure, None),
        (Status::Failure, Some(Outcome::Rejected)),
        (Status::Timeout, None),
        (Status::Cancelled, None),
    ];
    let mut all = Vec::new();
    for (status, outcome) in ends {
        all.push(sent(&bench, first(&bench, alice, "one", "x")).await.unwrap());
        ran(&bench, node, status, outcome).await;
    }
    let half = bench.now();
    all.push(sent(&bench, first(&bench, alice, "two", "x")).await.unwrap());
    bench.claim(node, AGENT, 9, 1).await;
    all.push(sent(&bench, first(&bench, alice, "two", "x")).await.unwrap());
    // The answer brings its task to the front.
    let answer = next(&bench, alice, &all[1], "yes");
    sent(&bench, answer).await.unwrap();
    bench.submit(bench.run(alice, AGENT)).await.unwrap();
    let order: Vec<_> = [1, 9, 8, 7, 6, 5, 4, 3, 2, 0].map(|at: usize| all[at].id).into();
    let found = async |filter: Filter, limit: i64| {
        let mut reader = bench.store.reader().await.unwrap();
        let mut found = Vec::new();
        let mut cursor = None;
        let mut totals = Vec::new();
        loop {
            let (page, total) = tasks(&mut reader, alice, AGENT, &filter, cursor.as_ref(), limit).await.unwrap();
            for run in &page.rows {
                assert!(filter.standings.is_empty() || filter.standings.contains(&run.standing()));
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
    assert_eq!(found(Filter::default(), 100).await, order);
    assert_eq!(found(Filter::default(), 2).await, order, "page by page");
    let two = Filter { context_id: Some("two".into()), ..Filter::default() };
    assert_eq!(found(two, 100).await, order[1..3]);
    let late = Filter { changed_since: Some(half), ..Filter::default() };
    assert_eq!(found(late, 100).await, order[..4], "the moment itself counts");
    let mut each = Vec::new();
    for standing in Standing::ALL {
        each.extend(found(Filter { standings: vec![*standing], ..Filter::default() }, 100).await);
    }
    each.sort();
    let mut wanted = order.clone();
    wanted.sort();
    assert_eq!(each, wanted, "each task has one standing");
    let standings = vec![Standing::Failed, Standing::Rejected];
    assert_eq!(found(Filter { standings, ..Filter::default() }, 100).await, [all[6].id, all[5].id, all[4].id]);
}

async fn a_full_queue_leaves_the_question(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let node = bench.node().await;
    let of = sent(&bench, first(&bench, alice, "c", "delete it")).await.unwrap();
    ran(&bench, node, Status::Success, Some(Outcome::Asks)).await;
    let full = || {
        let mut answer = next(&bench, alice, &of, "yes");
        (answer.places, answer.depth) = (0, 0);
        answer
    };
    assert!(matches!(sent(&bench, full()).await, Err(Error::QueueFull { .. })));
    assert_eq!(now(&bench, alice, of.id).await.unwrap().execution.standing(), Standing::Asks);
    assert_eq!(asked(&bench, alice, of.id).await.len(), 1);
}

async fn contexts_and_what_they_link(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let at = bench.now();
    let mut reader = bench.store.reader().await.unwrap();
    assert_eq!(contexts::get(&mut reader, alice, AGENT, "c").await.unwrap(), None);
    let begun = write!(bench, tx => contexts::enter(tx, alice, AGENT, "c", at)).unwrap();
    let link = contexts::Link::default();
    assert_eq!(begun, contexts::Context { id: "c".into(), link, created_at: at, used_at: at });
    let link = contexts::Link {
        conversation_id: Some("conv".into()),
        session_id: Some(Uuid::from_u128(7)),
        remote_context: Some("theirs".into()),
    };
    let kept = link.clone();
    assert!(write!(bench, tx => contexts::link(tx, alice, AGENT, "c", &kept)).unwrap());
    let kept = link.clone();
    assert!(!write!(bench, tx => contexts::link(tx, alice, AGENT, "d", &kept)).unwrap());
    bench.clock.advance(Duration::from_secs(5));
    let later = bench.now();
    let again = write!(bench, tx => contexts::enter(tx, alice, AGENT, "c", later)).unwrap();
    assert_eq!(again, contexts::Context { id: "c".into(), link, created_at: at, used_at: later });
    assert_eq!(contexts::get(&mut reader, alice, AGENT, "c").await.unwrap(), Some(again));
}

async fn contexts_are_entered_one_after_the_other(bench: Bench) {
    // A2A-1
    let alice = bench.alice;
    let at = bench.now();
    let entries = (0..8).map(|n| {
        bench.transaction(async move |tx| {
            let context = contexts::enter(tx, alice, AGENT, "c", at).await?;
            if context.link.session_id.is_some() {
                return Ok(false);
            }
            let link = contexts::Link { session_id: Some(Uuid::from_u128(n)), ..context.link };
            contexts::link(tx, alice, AGENT, "c", &link).await
        })
    });
    let opened = futures::future::join_all(entries).await;
    assert_eq!(opened.into_iter().filter(|opened| *opened.as_ref().unwrap()).count(), 1);
}

async fn given_out(bench: Bench) {
    // OPS-7
    let alice = bench.alice;
    let node = bench.node().await;
    let of = sent(&bench, first(&bench, alice, "c", "hello")).await.unwrap();
    let said = json!({"message": [{"text": "hi"}]});
    let event = crate::executions::more(2, &said);
    write!(bench, tx => store::executions::append(tx, of.id, &[event])).unwrap();
    ran(&bench, node, Status::Success, Some(Outcome::Message)).await;
    bench.submit(bench.run(alice, AGENT)).await.unwrap();
    let page = data::executions(&mut bench.store.reader().await.unwrap(), alice, None, 9).await.unwrap();
    let written = serde_json::to_value(&page.rows).unwrap();
    assert_eq!((&written[1]["message"]["messageId"], &written[1]["outcome"]), (&json!("hello"), &json!("message")));
    assert_eq!((written[0].get("message"), written[0].get("said")), (None, None));
}

async fn erased(bench: Bench) {
    // OPS-7
    let alice = bench.alice;
    let bob = bench.bob;
    let node = bench.node().await;
    let at = bench.now();
    for owner in [alice, bob] {
        let of = sent(&bench, first(&bench, owner, "c", "delete it")).await.unwrap();
        ran(&bench, node, Status::Success, Some(Outcome::Asks)).await;
        sent(&bench, next(&bench, owner, &of, "yes")).await.unwrap();
        ran(&bench, node, Status::Success, None).await;
        write!(bench, tx => contexts::enter(tx, owner, AGENT, "c", at)).unwrap();
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

async fn swept(bench: Bench) {
    // OPS-7: of a task that goes on, what is old goes; the task stays until its last execution is old
    let alice = bench.alice;
    let node = bench.node().await;
    let at = bench.now();
    let day = Duration::from_secs(24 * 3600);
    let of = sent(&bench, first(&bench, alice, "c", "delete it")).await.unwrap();
    ran(&bench, node, Status::Success, Some(Outcome::Asks)).await;
    write!(bench, tx => contexts::enter(tx, alice, AGENT, "c", at)).unwrap();
    write!(bench, tx => contexts::enter(tx, alice, AGENT, "d", at)).unwrap();
    bench.clock.advance(day * 20);
    let node = bench.node().await;
    let later = bench.now();
    write!(bench, tx => contexts::enter(tx, alice, AGENT, "c", later)).unwrap();
    sent(&bench, next(&bench, alice, &of, "yes")).await.unwrap();
    ran(&bench, node, Status::Success, None).await;
    bench.clock.advance(day * 11);
    let removed = sweep(&bench.store, Retention::default(), bench.now()).await.unwrap();
    assert_eq!(removed, Removed { executions: 1, contexts: 1, ..Removed::default() });
    assert_eq!(now(&bench, alice, of.id).await.unwrap().execution.standing(), Standing::Completed);
    assert_eq!(asked(&bench, alice, of.id).await, ["yes"]);
    bench.clock.advance(day * 20);
    let removed = sweep(&bench.store, Retention::default(), bench.now()).await.unwrap();
    assert_eq!(removed, Removed { executions: 1, contexts: 1, ..Removed::default() });
    assert!(matches!(now(&bench, alice, of.id).await, Err(Error::NotFound)));
    assert_eq!(bench.count("SELECT COUNT(*) FROM a2a_messages").await, 0);
}

async fn output_is_given_up(bench: Bench) {
    // OPS-7: what is more than text counts as output
    let alice = bench.alice;
    let node = bench.node().await;
    let of = sent(&bench, first(&bench, alice, "c", "hello")).await.unwrap();
    let event = crate::executions::more(3, &json!({"message": [{"text": "hi"}]}));
    let length = event.text.len();
    let claimed = bench.claim(node, AGENT, 9, 1).await.remove(0);
    write!(bench, tx => store::executions::append(tx, of.id, &[event])).unwrap();
    bench.finish(&claimed, Left { output_bytes: length as i64, ..Left::default() }).await;
    let retention = Retention { output_bytes: Some(0), ..Retention::default() };
    assert_eq!(sweep(&bench.store, retention, bench.now()).await.unwrap().outputs, 1);
    let mut reader = bench.store.reader().await.unwrap();
    assert_eq!(store::executions::said(&mut reader, of.id).await.unwrap(), []);
    let events = store::executions::events(&mut reader, of.id, 0, 9).await.unwrap();
    let last = events.last().unwrap();
    assert_eq!((last.kind, last.stream.as_str(), last.text.clone()), (Kind::Gap, SAID, length.to_string()));
    assert!(now(&bench, alice, of.id).await.unwrap().truncated);
}
