//! Plays one dialogue against a server with an injected clock and checks each message.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use assistant::ChatModel;
use assistant::offline::OfflineModel;
use futures::future::BoxFuture;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use model::Clock;
use model::agent::{Agent, AgentDraft};
use model::reminder::Reminder;
use model::task::{Task, TaskStatus};
use serde_json::{Value, json};
use server::ServerSettings;
use supervisor::{AgentRun, RunRecorder, RunResult, Runner, StreamName};

use super::changes::{Comparison, State, is_part, title};
use super::format::{Dialogue, DialogueMessage, Setup};
use super::guarantees::Reply;
use super::intended_calls::{first, intended, is_phrase};
use super::language_model::{MessagePlan, ModelControl};
use super::model_text::TextStyle;
use crate::TestServer;

/// The result of one message.
pub(super) struct MessageOutcome {
    pub(super) answer: String,
    /// Empty if the message had the right outcome.
    pub(super) mistakes: Vec<String>,
    /// The message changed something that it must not change, or changed it wrongly, and the answer does not ask
    /// about it.
    pub(super) is_wrong_change: bool,
    /// The guarantees that the reply of a language model breaks.
    pub(super) violations: Vec<String>,
    /// The calls were held, although the expectation has no question.
    pub(super) is_held: bool,
}

/// Prints its input. An agent whose id begins with "slow" runs until it is stopped.
struct EchoRunner {
    is_slow: bool,
}

impl Runner for EchoRunner {
    fn run<'a>(&'a self, run: &'a AgentRun, recorder: &'a RunRecorder) -> BoxFuture<'a, RunResult> {
        Box::pin(async move {
            recorder.record_start(None);
            recorder.output(StreamName::Stdout, run.request.input.as_bytes()).await;
            if self.is_slow {
                recorder.stop_requested().await;
                return RunResult { stopped: true, ..RunResult::default() };
            }
            RunResult::default()
        })
    }
}

/// Plays all messages of a dialogue with a new server and the built-in model.
pub(super) async fn play(dialogue: &Dialogue) -> Vec<MessageOutcome> {
    let table = Table::open(dialogue, Arc::new(OfflineModel)).await;
    let mut outcomes = Vec::with_capacity(dialogue.messages.len());
    let mut phrase = String::new();
    for message in &dialogue.messages {
        table.advance(message).await;
        let say = message.say.replace("<phrase>", if phrase.is_empty() { "yes" } else { &phrase });
        let before = table.state().await;
        let reply = table.server.chat(&say).await;
        phrase = reply["confirmation_phrase"].as_str().unwrap_or_default().to_owned();
        let after = table.settled_state().await;
        let after = table.with_cancellations(&before, after, message.expect.cancelled_runs.len()).await;
        outcomes.push(table.judge(message, &before, &after, reply["response"].as_str().unwrap_or_default()));
    }
    outcomes
}

/// Plays all messages of a dialogue with a new server and the language model of `language_model.rs`. `offset` selects
/// the style of the first text. If a call is held although the dialogue has no question, confirms it at once.
pub(super) async fn play_with_language_model(dialogue: &Dialogue, offset: usize) -> Vec<MessageOutcome> {
    let control = ModelControl::default();
    let table = Table::open(dialogue, control.model()).await;
    let mut outcomes = Vec::with_capacity(dialogue.messages.len());
    let mut phrase = String::new();
    for (at, message) in dialogue.messages.iter().enumerate() {
        table.advance(message).await;
        let before = table.state().await;
        let style = TextStyle::of(offset + at);
        control.start(table.plan(dialogue, at, &before, style));
        let say = message.say.replace("<phrase>", if phrase.is_empty() { "yes" } else { &phrase });
        let is_confirmation = is_phrase(&message.say);
        let mut turn = table.checked_turn(&control, &say, before.clone(), style, is_confirmation).await;
        // A question of an earlier message may still be open.
        let is_held = !turn.phrase.is_empty() && !message.expect.asks && !turn.answer.contains("Still open: ");
        if is_held {
            let asked = turn;
            turn = table.checked_turn(&control, &asked.phrase, asked.after, style, true).await;
            turn.violations.extend(asked.violations);
        }
        let CheckedTurn { answer, phrase: new_phrase, after, violations } = turn;
        phrase = new_phrase;
        let after = table.with_cancellations(&before, after, message.expect.cancelled_runs.len()).await;
        let outcome = table.judge(message, &before, &after, &answer);
        outcomes.push(MessageOutcome { violations, is_held, ..outcome });
    }
    outcomes
}

/// One turn of a language model.
struct CheckedTurn {
    answer: String,
    /// The confirmation phrase that the answer asks for. Empty if it asks for none.
    phrase: String,
    after: State,
    violations: Vec<String>,
}

fn agent(id: &str) -> (Agent, Arc<dyn Runner>) {
    let draft = AgentDraft { id: Some(id.to_owned()), name: Some(id.to_owned()), ..AgentDraft::default() };
    (draft.into_built_in(), Arc::new(EchoRunner { is_slow: id.starts_with("slow") }))
}

fn instant(local: DateTime, zone: &TimeZone) -> Timestamp {
    local.to_zoned(zone.clone()).unwrap().timestamp()
}

/// A server and the time zone of its user.
struct Table {
    server: TestServer,
    zone: TimeZone,
}

impl Table {
    /// Starts a server with the data of the dialogue.
    async fn open(dialogue: &Dialogue, model: Arc<dyn ChatModel>) -> Self {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let settings = ServerSettings { time_zone: zone.clone(), ..ServerSettings::default() };
        let clock = Clock::manual(instant(dialogue.now, &zone));
        let agents = dialogue.setup.agents.iter().map(|id| agent(id)).collect();
        let server = TestServer::with_agents(settings, clock, model, agents).await;
        let table = Self { server, zone };
        if dialogue.messages.iter().any(|message| message.now.is_some()) {
            let notifier = table.server.app.notifier().clone();
            let stopping = table.server.app.stopping().clone();
            tokio::spawn(async move { notifier.run(&stopping).await });
        }
        table.set_up(&dialogue.setup).await;
        table
    }

    /// Returns the plan of a language model for a message.
    fn plan(&self, dialogue: &Dialogue, at: usize, before: &State, style: TextStyle) -> MessagePlan {
        let message = &dialogue.messages[at];
        let words: Vec<_> = message.expect.answer.iter().map(|text| first(text)).collect();
        let answer = match message.expect.asks {
            true => format!("Which one do you mean: {}?", words.join(" or ")),
            false => format!("This is what I know: {}.", words.join(", ")),
        };
        MessagePlan {
            intended: intended(dialogue, at, before),
            rings: message.expect.rings.clone(),
            message: message.say.to_lowercase(),
            answer,
            must_answer: !words.is_empty() && !message.expect.asks,
            style,
            now: self.server.clock.now(),
            zone: self.zone.clone(),
        }
    }

    /// Sends a message and checks the guarantees of the answer.
    async fn checked_turn(
        &self,
        control: &ModelControl,
        say: &str,
        before: State,
        style: TextStyle,
        is_confirmation: bool,
    ) -> CheckedTurn {
        let reply = self.server.chat(say).await;
        let after = self.reported_state().await;
        let answer = reply["response"].as_str().unwrap_or_default().to_owned();
        let phrase = reply["confirmation_phrase"].as_str().unwrap_or_default().to_owned();
        let text = control.text();
        let checked = Reply {
            before: &before,
            after: &after,
            answer: &answer,
            text: text.as_deref(),
            style,
            is_confirmation,
            asks: !phrase.is_empty(),
            zone: &self.zone,
        };
        let violations = checked.violations();
        CheckedTurn { answer, phrase, after, violations }
    }

    /// Adds the data of the setup over HTTP.
    async fn set_up(&self, setup: &Setup) {
        let mut ids = BTreeMap::new();
        for task in &setup.tasks {
            let mut body = task.clone();
            let is_completed = body.remove("status").is_some_and(|status| status == "completed");
            let added = self.post("/api/tasks", &Value::Object(body)).await;
            let id = added["id"].as_str().unwrap().to_owned();
            if is_completed {
                self.post(&format!("/api/tasks/{id}/complete"), &json!({})).await;
            }
            ids.insert(title(&added).to_owned(), id);
        }
        for reminder in &setup.reminders {
            let mut body = reminder.clone();
            let name = body.remove("task").unwrap();
            let id = ids.iter().find(|(title, _)| is_part(title, name.as_str().unwrap())).map(|(_, id)| id.clone());
            body.insert("task_id".to_owned(), id.unwrap_or_else(|| panic!("no task {name}")).into());
            self.post("/api/reminders", &Value::Object(body)).await;
        }
        for schedule in &setup.schedules {
            let body = json!({
                "name": schedule.name,
                "agent_id": schedule.agent_id,
                "cron_expression": schedule.cron_expression,
                "time_zone": "Europe/Berlin",
                "input_parameters": {"input": schedule.input},
            });
            let added = self.post("/api/schedules", &body).await;
            if schedule.paused {
                let id = added["id"].as_str().or(added["schedule_id"].as_str()).unwrap();
                self.post(&format!("/api/schedules/{id}/pause"), &json!({})).await;
            }
        }
    }

    /// Advances the clock to the time of the message, or by ten seconds. Reminders that are due by then fire.
    async fn advance(&self, message: &DialogueMessage) {
        let next = self.server.clock.now() + SignedDuration::from_secs(10);
        let Some(now) = message.now else {
            self.server.clock.set(next);
            return;
        };
        let now = instant(now, &self.zone).max(next);
        // Stops at each due time, so that repetitions are not skipped.
        loop {
            let due = self.next_due().await.filter(|due| *due <= now);
            self.server.clock.set(due.unwrap_or(now).max(self.server.clock.now()));
            self.server.app.notifier().wake();
            let Some(due) = due else { return };
            self.until("reminders fire", async || self.next_due().await.is_none_or(|next| next > due)).await;
        }
    }

    /// Returns the next time at which the notifier fires something.
    async fn next_due(&self) -> Option<Timestamp> {
        let mut reader = self.server.store.reader().await.unwrap();
        let reminder = store::reminders::next_due_at(&mut reader).await.unwrap();
        let due = store::due::next_due_at(&mut reader).await.unwrap();
        [reminder, due].into_iter().flatten().min()
    }

    /// Returns the state after all executions have ended, except those of slow agents.
    async fn settled_state(&self) -> State {
        let is_settled = async || {
            let executions = self.list("executions", "?state=active").await;
            executions.values().all(|execution| {
                let is_slow = execution["agent_id"].as_str().is_some_and(|id| id.starts_with("slow"));
                is_slow && execution["state"] == "running"
            })
        };
        self.until("executions end", is_settled).await;
        self.state().await
    }

    /// Returns the state after `count` runs were cancelled, or the last one after five seconds. A run ends some time after
    /// it was asked to stop.
    async fn with_cancellations(&self, before: &State, after: State, count: usize) -> State {
        let is_cancelled = |run: &Value| run["state"] == "cancelled";
        let cancelled = |state: &State| state.executions.values().filter(|run| is_cancelled(run)).count();
        let mut after = after;
        for _ in 0..500 {
            if cancelled(&after) >= cancelled(before) + count {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
            after = self.settled_state().await;
        }
        after
    }

    /// Like [`Self::settled_state`], and waits until the conversation has the reports of the runs that have ended. Their
    /// text decides which calls of a language model are held.
    async fn reported_state(&self) -> State {
        let state = self.settled_state().await;
        let has_ended = |execution: &&Value| execution["schedule_id"].is_null() && !execution["end_time"].is_null();
        let ended = state.executions.values().filter(has_ended).count();
        let are_reported = async || {
            let messages = self.server.messages().await;
            let calls =
                messages.iter().flat_map(|message| message["tool_calls"].as_array().cloned().unwrap_or_default());
            calls.filter(|call| call["tool_name"] == "agent_report").count() >= ended
        };
        self.until("the ends of runs are reported", are_reported).await;
        state
    }

    async fn until(&self, description: &str, mut condition: impl AsyncFnMut() -> bool) {
        for _ in 0..1500 {
            if condition().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("not in time: {description}");
    }

    async fn state(&self) -> State {
        let tasks = self.list("tasks", "?status=all&limit=200").await;
        let reminders = self.list("reminders", "?limit=200").await;
        let now = self.server.clock.now();
        let rings =
            tasks.iter().map(|(id, task)| (id.clone(), ring_times(task, &reminders, now, &self.zone))).collect();
        State {
            rings,
            tasks,
            executions: self.list("executions", "?limit=200").await,
            schedules: self.list("schedules", "?limit=200").await,
        }
    }

    /// Returns all objects of a list by their ids.
    async fn list(&self, name: &str, query: &str) -> BTreeMap<String, Value> {
        let response = self.server.client.get(format!("{}/api/{name}{query}", self.server.url)).send().await.unwrap();
        assert_eq!(response.status(), 200, "{name}");
        let body: Value = response.json().await.unwrap();
        let rows = body[name].as_array().cloned().unwrap();
        rows.into_iter().map(|row| (row_id(&row), row)).collect()
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let response = self.server.post(path, body).await;
        let status = response.status();
        let answer: Value = response.json().await.unwrap_or_default();
        assert!(status.is_success(), "{path} {body}: {answer}");
        answer
    }

    /// Compares the effect and the answer of a message with its expectation.
    fn judge(&self, message: &DialogueMessage, before: &State, after: &State, answer: &str) -> MessageOutcome {
        let expected = &message.expect;
        let Comparison { mut mistakes, changes, .. } = Comparison::new(before, after, expected, &self.zone);
        for (name, times) in &expected.rings {
            mistakes.extend(self.wrong_rings(name, times, after));
        }
        let lower = answer.to_lowercase();
        let asks = lower.contains('?') || lower.contains("' to confirm") || lower.contains("confirm with '");
        let is_wrong_change = changes > 0 && !mistakes.is_empty();
        let contains = |text: &String| text.split('|').any(|one| lower.contains(&one.trim().to_lowercase()));
        mistakes.extend(expected.answer.iter().filter(|text| !contains(text)).map(|text| format!("no '{text}'")));
        mistakes.extend(expected.answer_not.iter().filter(|text| contains(text)).map(|text| format!("says '{text}'")));
        if expected.asks && !asks {
            mistakes.push("does not ask".to_owned());
        }
        let answer = answer.to_owned();
        MessageOutcome { answer, mistakes, is_wrong_change, violations: Vec::new(), is_held: false }
    }

    /// Returns a mistake if the next ring times of a task differ from the expected ones.
    fn wrong_rings(&self, name: &str, expected: &[String], after: &State) -> Option<String> {
        let is_meant = |task: &Value| is_part(title(task), name);
        let is_open = |task: &Value| task["status"] != "completed";
        let found = after.tasks.iter().find(|(_, task)| is_meant(task) && is_open(task));
        let found = found.or_else(|| after.tasks.iter().find(|(_, task)| is_meant(task)));
        let Some((id, _)) = found else {
            return (!expected.is_empty()).then(|| format!("{name} does not ring: no such task"));
        };
        let local = |at: &Timestamp| at.to_zoned(self.zone.clone()).strftime("%Y-%m-%dT%H:%M").to_string();
        let actual: Vec<_> = after.rings.get(id).into_iter().flatten().map(local).collect();
        let are_equal = actual.iter().zip(expected).all(|(actual, wanted)| wanted.split('|').any(|one| one == actual));
        // The state has at most three times.
        let is_right = are_equal && actual.len() == expected.len();
        (!is_right).then(|| format!("{name} rings at {actual:?}, not {expected:?}"))
    }
}

fn row_id(row: &Value) -> String {
    let id = row["id"].as_str().or(row["execution_id"].as_str()).or(row["schedule_id"].as_str());
    id.unwrap_or_else(|| panic!("no id: {row}")).to_owned()
}

/// The number of ring times that are compared.
const MAX_RINGS: usize = 3;

/// Returns the next three times at which something rings for a task: its due time with the repetitions, and its
/// scheduled reminders.
pub(super) fn ring_times(
    task: &Value,
    reminders: &BTreeMap<String, Value>,
    now: Timestamp,
    zone: &TimeZone,
) -> Vec<Timestamp> {
    let task: Task = serde_json::from_value(task.clone()).unwrap();
    let mut times = Vec::new();
    let due = task.due_date.and_then(|due| due.timestamp()).filter(|_| task.status == TaskStatus::Pending);
    if let Some(due) = due {
        times.push(due);
        let mut last = now;
        while let Some(next) = task.next_due_time(last, zone).filter(|_| times.len() <= MAX_RINGS) {
            times.push(next);
            last = next;
        }
    }
    for reminder in reminders.values().filter(|reminder| reminder["task_id"] == task.id.to_string()) {
        let mut reminder: Reminder = serde_json::from_value(reminder.clone()).unwrap();
        let mut next = reminder.next_at;
        for _ in 0..MAX_RINGS {
            let Some(at) = next else { break };
            times.push(at);
            next = reminder.fire(at.max(now));
        }
    }
    times.retain(|at| *at > now);
    times.sort();
    times.dedup();
    times.truncate(MAX_RINGS);
    times
}
