//! A language model that knows the expected outcome of each message and calls the tools as a good model would. It takes
//! all ids from the results of tools. `intended_calls.rs` selects the changes, `model_text.rs` the text.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use assistant::Prompt;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::changes::{is_part, title};
use super::format::ExpectedTask;
use super::intended_calls::{Intended, first};
use super::model_text::{TextStyle, final_text};
use super::play::ring_times;
use crate::{ReplyStep, ScriptedModel, call, say};

/// The behaviour of the model for the current message.
#[derive(Clone, Debug)]
pub(super) struct MessagePlan {
    pub(super) intended: Vec<Intended>,
    /// The times at which tasks must ring after the message, by a part of the title.
    pub(super) rings: BTreeMap<String, Vec<String>>,
    /// The message of the user, in lower case.
    pub(super) message: String,
    /// The text of a reply without changes.
    pub(super) answer: String,
    /// The text has the answer also if something was changed.
    pub(super) must_answer: bool,
    pub(super) style: TextStyle,
    pub(super) now: Timestamp,
    pub(super) zone: TimeZone,
}

/// The plan of the current message, and the last text of the model.
#[derive(Clone, Default)]
pub(super) struct ModelControl(Arc<Mutex<(Option<MessagePlan>, Option<String>)>>);

impl ModelControl {
    pub(super) fn start(&self, plan: MessagePlan) {
        *self.0.lock().unwrap() = (Some(plan), None);
    }

    /// Returns the final text of the model, or `None` if the model was not asked.
    pub(super) fn text(&self) -> Option<String> {
        self.0.lock().unwrap().1.clone()
    }

    pub(super) fn model(&self) -> Arc<ScriptedModel> {
        let control = self.clone();
        ScriptedModel::new(move |prompt| {
            let mut state = control.0.lock().unwrap();
            let plan = state.0.clone().unwrap();
            let reply = plan.reply(prompt);
            if let [ReplyStep::Say(text)] = reply.as_slice() {
                state.1 = Some(text.clone());
            }
            reply
        })
    }
}

/// The newest results of the tools of one turn.
#[derive(Default)]
struct Known {
    tasks: Vec<Value>,
    reminders: BTreeMap<String, Value>,
    schedules: Vec<Value>,
    executions: Vec<Value>,
    /// The number of steps that changed something or tried to.
    changing_steps: usize,
    /// The number of steps that only read.
    reading_steps: usize,
}

impl Known {
    fn new(prompt: &Prompt<'_>) -> Self {
        let mut known = Self::default();
        for step in prompt.steps {
            let is_read = |name: &str| name.starts_with("list_");
            match step.calls.iter().all(|(call, _)| is_read(&call.name)) {
                true => known.reading_steps += 1,
                false => known.changing_steps += 1,
            }
            for (call, outcome) in &step.calls {
                let tools::ToolOutcome::Done(answer) = outcome else { continue };
                let rows = |key: &str| answer.data()[key].as_array().cloned().unwrap_or_default();
                match call.name.as_str() {
                    "list_tasks" => known.tasks = rows("tasks"),
                    "list_reminders" => {
                        let entry = |mut row: Value| {
                            // The task of the reminder is not a part of it.
                            row.as_object_mut().unwrap().retain(|field, _| !matches!(field.as_str(), "title" | "task"));
                            (row["id"].as_str().unwrap_or_default().to_owned(), row)
                        };
                        known.reminders = rows("reminders").into_iter().map(entry).collect();
                    }
                    "list_schedules" => known.schedules = rows("schedules"),
                    "list_executions" => known.executions = rows("executions"),
                    _ => {}
                }
            }
        }
        known
    }

    /// Returns the open task with the name in its title, else a completed one.
    fn task(&self, name: &str) -> Option<&Value> {
        let found = |is_open: bool| {
            let mut tasks = self.tasks.iter().rev();
            tasks.find(|task| is_part(title(task), name) && (task["status"] == "pending") == is_open)
        };
        found(true).or_else(|| found(false))
    }

    fn id(&self, name: &str) -> Value {
        self.task(name).map_or(Value::Null, |task| task["id"].clone())
    }

    fn completed_id(&self, name: &str) -> Value {
        let mut tasks = self.tasks.iter().filter(|task| task["status"] == "completed" && is_part(title(task), name));
        tasks.next_back().map_or(Value::Null, |task| task["id"].clone())
    }

    fn ids(&self, names: &[String]) -> Value {
        names.iter().map(|name| self.id(name)).collect()
    }
}

impl MessagePlan {
    /// Returns the next reply of the turn: reads, changes, then reads and corrects the reminders, then the text.
    fn reply(&self, prompt: &Prompt<'_>) -> Vec<ReplyStep> {
        let known = Known::new(prompt);
        let needs_tasks = !self.intended.is_empty() || !self.rings.is_empty();
        let reads = || {
            let mut reads = vec![
                call("list_tasks", json!({"status": "all", "limit": 200})),
                call("list_reminders", json!({"status": "scheduled"})),
            ];
            if self.intended.iter().any(Intended::needs_schedules) {
                reads.push(call("list_schedules", json!({})));
            }
            if self.intended.iter().any(Intended::needs_executions) {
                reads.push(call("list_executions", json!({"active": true})));
            }
            reads
        };
        match (known.reading_steps, known.changing_steps) {
            (0, _) if needs_tasks => reads(),
            (1, 0) if !self.intended.is_empty() => {
                self.intended.iter().map(|intended| self.change(intended, &known)).collect()
            }
            (1, 1) if !self.rings.is_empty() => reads(),
            (2, 1) | (1, 0) => match self.reminder_calls(&known) {
                calls if calls.is_empty() => vec![say(&final_text(self, prompt))],
                calls => calls,
            },
            _ => vec![say(&final_text(self, prompt))],
        }
    }

    /// Returns the call that makes one change.
    fn change(&self, intended: &Intended, known: &Known) -> ReplyStep {
        match intended {
            Intended::Add(task) => call("add_task", self.new_task(task)),
            Intended::Update(name, fields) => {
                let mut arguments = update_arguments(fields);
                arguments.insert("task_id".to_owned(), known.id(name));
                call("update_task", Value::Object(arguments))
            }
            Intended::UpdateSeveral(changes) => {
                let entry = |(name, fields): &(String, Map<String, Value>)| {
                    let mut arguments = update_arguments(fields);
                    arguments.insert("task_id".to_owned(), known.id(name));
                    Value::Object(arguments)
                };
                call("update_tasks", json!({"updates": changes.iter().map(entry).collect::<Vec<_>>()}))
            }
            Intended::Complete(name) => call("complete_task", json!({"task_id": known.id(name)})),
            Intended::CompleteSeveral(names) => call("complete_tasks", json!({"task_ids": known.ids(names)})),
            Intended::Delete(name) => call("delete_task", json!({"task_id": known.id(name)})),
            Intended::DeleteSeveral(names) => call("delete_tasks", json!({"task_ids": known.ids(names)})),
            Intended::DeleteCompleted => call("delete_tasks", json!({"status": "completed"})),
            Intended::Reopen(name) => {
                call("update_task", json!({"task_id": known.completed_id(name), "status": "pending"}))
            }
            Intended::Undo => call("undo_last_change", json!({})),
            Intended::Run(agent, input) => {
                let scheduled = known.schedules.iter().find(|one| {
                    one["agent_id"] == agent.as_str()
                        && one["input"] == input.as_str()
                        && self.message.contains("run it")
                });
                match scheduled {
                    Some(schedule) => call("run_schedule", json!({"schedule": schedule["name"]})),
                    None => call("run_agent", json!({"agent": agent, "input": input})),
                }
            }
            Intended::CancelRun(agent) => {
                let run = known.executions.iter().find(|run| run["agent_id"] == agent.as_str());
                call("cancel_execution", json!({"execution_id": run.map(|run| &run["execution_id"])}))
            }
            Intended::Schedule(arguments) => call("schedule_agent", arguments.clone()),
            Intended::Pause(name) => call("pause_schedule", json!({"schedule": name})),
            Intended::Resume(name) => call("resume_schedule", json!({"schedule": name})),
            Intended::Reschedule(name, next) => {
                let found = known.schedules.iter().find(|schedule| schedule["name"] == name.as_str());
                let old = found.and_then(|schedule| schedule["cron_expression"].as_str()).unwrap_or_default();
                let days = old.splitn(3, ' ').nth(2).unwrap_or("* * *");
                let cron = format!("{} {} {days}", next.minute(), next.hour());
                call("update_schedule", json!({"schedule": name, "cron_expression": cron}))
            }
            Intended::DeleteSchedule(name) => call("delete_schedule", json!({"schedule": name})),
        }
    }

    /// Returns the arguments of `add_task`. A task with expected times that repeat gets a recurrence.
    fn new_task(&self, task: &ExpectedTask) -> Value {
        let name = first(&task.title);
        let rings = self.rings.iter().find(|(part, _)| is_part(&name, part)).map(|(_, times)| times.clone());
        let rings: Vec<String> = rings.unwrap_or_default().iter().map(|times| first(times)).collect();
        let rule = task.recurrence.clone().flatten().map(|rule| first(&rule)).or_else(|| rule_of(&rings));
        let due = task.due_date.as_deref().map(first).filter(|due| due != "null");
        let due = due.map(|due| if due == "*" { rings.first().cloned().unwrap_or_default() } else { due });
        let mut arguments = json!({"title": name, "tags": task.tags});
        if let Some(due) = &due {
            arguments["due_date"] = due.as_str().into();
        }
        if let Some(rule) = rule {
            arguments["recurrence"] = rule.into();
        }
        if let Some(priority) = &task.priority {
            arguments["priority"] = first(priority).into();
        }
        if let Some(Some(description)) = &task.description {
            arguments["description"] = first(description).into();
        }
        // A day without a time does not ring by itself.
        if let (Some(due), [ring]) = (due.filter(|due| !due.contains('T')), rings.as_slice()) {
            arguments["remind_at"] = if ring.starts_with(&due) { due.into() } else { ring.as_str().into() };
        }
        arguments
    }

    /// Returns the calls that make the tasks ring at the expected times.
    fn reminder_calls(&self, known: &Known) -> Vec<ReplyStep> {
        let mut calls = Vec::new();
        for (name, expected) in &self.rings {
            let Some(task) = known.task(name) else { continue };
            let actual = ring_times(task, &known.reminders, self.now, &self.zone);
            let local = |at: &Timestamp| at.to_zoned(self.zone.clone()).strftime("%Y-%m-%dT%H:%M").to_string();
            let is_ring = |at: &Timestamp, wanted: &String| wanted.split('|').any(|one| one == local(at));
            let missing: Vec<String> = expected
                .iter()
                .filter(|wanted| !actual.iter().any(|at| is_ring(at, wanted)))
                .map(|wanted| first(wanted))
                .collect();
            let surplus: Vec<Timestamp> =
                actual.iter().filter(|at| !expected.iter().any(|wanted| is_ring(at, wanted))).copied().collect();
            let mut surplus = surplus.into_iter();
            for time in &missing {
                calls.push(self.reminder_call(task, time, surplus.next(), known));
            }
            let is_complete = expected.len() < 3;
            for at in surplus.filter(|_| is_complete) {
                if let Some(reminder) = reminder_at(known, task, at) {
                    calls.push(call("cancel_reminder", json!({"reminder_id": reminder["id"]})));
                }
            }
        }
        calls
    }

    /// Returns the call that makes a task ring at a local time, instead of at `surplus`.
    fn reminder_call(&self, task: &Value, time: &str, surplus: Option<Timestamp>, known: &Known) -> ReplyStep {
        let due = task["due_date"].as_str().and_then(|due| due.parse::<Timestamp>().ok());
        let at = time.parse::<DateTime>().unwrap().to_zoned(self.zone.clone()).unwrap().timestamp();
        let before = due.filter(|due| self.message.contains("before") && *due > at);
        let before = before.map(|due| (due.as_second() - at.as_second()) / 60);
        let is_snooze = ["snooze", "postpone", "again in", "more", "another", "tell me again"];
        let is_snooze = is_snooze.iter().any(|word| self.message.contains(word));
        let id = &task["id"];
        match surplus.map(|old| (old, reminder_at(known, task, old))) {
            Some((_, Some(reminder))) if is_snooze => {
                call("snooze_reminder", json!({"reminder_id": reminder["id"], "until": time}))
            }
            Some((old, Some(reminder))) => match (reminder["before_minutes"].as_i64(), due) {
                (Some(minutes), _) => {
                    let minutes = minutes + (old.as_second() - at.as_second()) / 60;
                    call("update_reminder", json!({"reminder_id": reminder["id"], "before_minutes": minutes}))
                }
                _ => call("update_reminder", json!({"reminder_id": reminder["id"], "remind_at": time})),
            },
            Some((_, None)) => call("snooze_reminder", json!({"task_id": id, "until": time})),
            None if is_snooze => call("snooze_reminder", json!({"task_id": id, "until": time})),
            None => match (before, self.minutes_before_day(task, at)) {
                (Some(minutes), _) | (None, Some(minutes)) => {
                    call("schedule_reminder", json!({"task_id": id, "before_minutes": minutes}))
                }
                (None, None) => call("schedule_reminder", json!({"task_id": id, "remind_at": time})),
            },
        }
    }

    /// Returns the minutes before the reminder time of the due day, for whole days before it.
    fn minutes_before_day(&self, task: &Value, at: Timestamp) -> Option<i64> {
        let due: jiff::civil::Date = task["due_date"].as_str()?.parse().ok()?;
        let due = due.at(9, 0, 0, 0).to_zoned(self.zone.clone()).ok()?.timestamp();
        let minutes = (due.as_second() - at.as_second()) / 60;
        (self.message.contains("before") && minutes > 0 && minutes % 1440 == 0).then_some(minutes)
    }
}

/// Returns the scheduled reminder of the task that rings at this time.
fn reminder_at<'k>(known: &'k Known, task: &Value, at: Timestamp) -> Option<&'k Value> {
    let is_next = |reminder: &Value| {
        reminder["next_at"].as_str().is_some_and(|next| next.parse::<Timestamp>().is_ok_and(|next| next == at))
    };
    known.reminders.values().find(|reminder| reminder["task_id"] == task["id"] && is_next(reminder))
}

/// Returns the recurrence rule of three times, or `None` if they do not repeat.
fn rule_of(times: &[String]) -> Option<String> {
    let parsed: Vec<DateTime> = times.iter().filter_map(|time| time.parse().ok()).collect();
    let [a, b, c] = parsed.as_slice() else { return None };
    let minutes = |from: DateTime, to: DateTime| to.duration_since(from).as_mins();
    Some(match minutes(*a, *b) {
        n if n != minutes(*b, *c) => "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR".to_owned(),
        1440 => "FREQ=DAILY".to_owned(),
        n if n % 60 == 0 => format!("FREQ=HOURLY;INTERVAL={}", n / 60),
        n => format!("FREQ=MINUTELY;INTERVAL={n}"),
    })
}

/// Returns the arguments of `update_task` without the id. A value that is removed is an empty text.
fn update_arguments(fields: &Map<String, Value>) -> Map<String, Value> {
    let value = |value: &Value| match value {
        Value::Null => Value::String(String::new()),
        Value::String(text) => Value::String(first(text)).take(),
        other => other.clone(),
    };
    fields.iter().map(|(field, wanted)| (field.clone(), value(wanted))).collect()
}
