//! Decides if a call of a language model is a command of the user (SEC-4). The runtime must recognise the command in
//! the user's own message, with the same agent, the same input or the same task. Otherwise the model decided on the
//! call.

use model::conversation::ToolCall;
use serde_json::Value;
use tools::{ToolArguments, ToolKind, ToolSpec};
use understand::{Intent, ParsedCommand, TaskTarget};

use crate::TurnRequest;
use crate::offline::{requested_run, requests_schedule, requests_stop};

/// Returns whether the message of the user contains this call. `records` are the earlier calls of the turn: they map
/// the id of a task to its title.
///
/// - A run or a schedule of an agent: the message names the agent after a verb such as "run", and contains the input.
///   The times of a schedule must be those of the message.
/// - A stop of a run: the message names its agent after a verb such as "stop", or refers to the only active run.
/// - A run or a resumption of a schedule: the message has the verb and the words of its name.
/// - A new task: the message has this title and, if there is one, this description.
/// - A change of one task, or of several: the message names words of each title.
/// - An undo: the message asks for it.
///
/// Returns false for all other kinds of calls that change something.
pub(crate) fn is_requested(
    request: &TurnRequest,
    kind: ToolKind,
    arguments: &ToolArguments,
    records: &[ToolCall],
) -> bool {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default();
    let commands = || request.utterance.commands.iter().filter(|command| command.missing.is_none());
    let changes_task = |intents: &[Intent]| {
        let title = find_title(records, arguments);
        title.is_some_and(|title| commands().any(|command| intents.contains(&command.intent) && names(command, title)))
    };
    match kind {
        ToolKind::RunAgent | ToolKind::ScheduleAgent => {
            let Some(requested) = requested_run(request, text("agent")) else { return false };
            let given = |key: &str| arguments.get(key).filter(|value| !value.is_null());
            let times = ["cron_expression", "every", "at", "start_at", "end_at", "time_zone"];
            let has_same_times = times.into_iter().all(|key| is_same_time(key, requested.times.get(key), given(key)));
            (kind == ToolKind::ScheduleAgent) == requested.is_scheduled
                && has_same_times
                && given("parameters").is_none()
                && contains(&request.message, text("input"))
        }
        ToolKind::ResumeSchedule | ToolKind::RunSchedule => {
            let id = arguments.get("schedule");
            let known = records.iter().flat_map(|record| record.result["schedules"].as_array().into_iter().flatten());
            let name = known.into_iter().find(|one| Some(&one["id"]) == id).and_then(|one| one["name"].as_str());
            requests_schedule(request, kind, name.unwrap_or(text("schedule")))
        }
        ToolKind::CancelExecution => {
            let rows = |record: &ToolCall| record.result["executions"].as_array().cloned().unwrap_or_default();
            let lists_all =
                |record: &ToolCall| ["agent", "schedule"].iter().all(|key| record.parameters[key].is_null());
            let lists: Vec<_> = records.iter().map(|record| (lists_all(record), rows(record))).collect();
            let id = arguments.get("execution_id");
            let runs = lists.iter().flat_map(|(_, rows)| rows);
            let Some(run) = runs.clone().find(|run| Some(&run["execution_id"]) == id) else { return false };
            let is_only = lists.iter().any(|(lists_all, rows)| {
                let mut active = rows.iter().filter(|run| run["status"].is_null());
                *lists_all && active.next().map(|run| &run["execution_id"]) == id && active.next().is_none()
            });
            requests_stop(request, run["agent_id"].as_str().unwrap_or_default(), is_only)
        }
        ToolKind::Undo => commands().any(|command| command.intent == Intent::Undo),
        ToolKind::Add => commands().any(|command| {
            let is_title = |title: &str| plain(title) == plain(text("title"));
            let creates = matches!(command.intent, Intent::CreateTask | Intent::ScheduleReminder);
            creates && command.title.as_deref().is_some_and(is_title) && contains(&request.message, text("description"))
        }),
        ToolKind::Complete => changes_task(&[Intent::CompleteTask]),
        ToolKind::Update => {
            let given = ["title", "description"].into_iter().all(|key| contains(&request.message, text(key)));
            given && changes_task(&[Intent::UpdateTask, Intent::CompleteTask])
        }
        ToolKind::UpdateSeveral => {
            let updates = arguments.get("updates").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let is_update = |update: &Value| {
                let fields = update.as_object();
                fields.is_some_and(|fields| is_requested(request, ToolKind::Update, fields, records))
            };
            !updates.is_empty() && updates.iter().all(is_update)
        }
        ToolKind::Delete => changes_task(&[Intent::DeleteTask]),
        ToolKind::Remind => changes_task(&[Intent::ScheduleReminder]),
        _ => false,
    }
}

/// Returns whether two values of one argument are the same time. Intervals and cron expressions have several forms.
fn is_same_time(key: &str, requested: Option<&Value>, given: Option<&Value>) -> bool {
    let (Some(Value::String(requested)), Some(Value::String(given))) = (requested, given) else {
        return requested == given;
    };
    let interval = |text: &str| text.parse::<jiff::SignedDuration>().ok();
    match key {
        "cron_expression" => cron_fields(requested) == cron_fields(given),
        "every" => requested == given || interval(requested).is_some_and(|every| interval(given) == Some(every)),
        _ => requested == given,
    }
}

/// Returns the fields of a cron expression. Lists and ranges of weekdays, by name or number, are sorted digits.
fn cron_fields(expression: &str) -> Vec<String> {
    const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
    let mut fields: Vec<String> = expression.split_whitespace().map(str::to_uppercase).collect();
    let number = |day: &str| {
        let number = DAYS.iter().position(|name| *name == day).or_else(|| day.parse().ok());
        number.filter(|number| *number <= 7).map(|number| number % 7)
    };
    let days = |part: &str| match part.split_once('-') {
        None => number(part).map(|day| vec![day]),
        Some((first, last)) => match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => Some((first..=last).collect()),
            _ => None,
        },
    };
    if let Some(field) = fields.get_mut(4)
        && let Some(list) = field.split(',').map(days).collect::<Option<Vec<_>>>()
    {
        let mut list = list.concat();
        list.sort_unstable();
        list.dedup();
        *field = list.iter().map(usize::to_string).collect();
    }
    fields
}

/// Returns whether the results of a tool contain text that the user did not write: those of external tools, and the
/// output of agents. The tasks of an external server that the operator trusts with them are data of the user.
pub(crate) fn returns_foreign_text(spec: &ToolSpec) -> bool {
    match spec.kind {
        Some(kind) => matches!(kind, ToolKind::GetExecution | ToolKind::ListExecutions),
        None => true,
    }
}

/// Returns the title of the task that the arguments select, from the results of earlier calls.
fn find_title<'r>(records: &'r [ToolCall], arguments: &ToolArguments) -> Option<&'r str> {
    let id = ["task_id", "todo_id", "id"].into_iter().find_map(|key| arguments.get(key))?;
    let tasks = records.iter().flat_map(|record| {
        let list = record.result["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter().chain([&record.result["task"]])
    });
    tasks.filter(|task| task["id"] == *id).find_map(|task| task["title"].as_str())
}

/// Returns whether the command names this task by words of its title. References by position or pronoun do not count,
/// because they depend on a list that the model may have chosen.
fn names(command: &ParsedCommand, title: &str) -> bool {
    let title = plain(title);
    let is_named = |target: &TaskTarget| match target {
        TaskTarget::Named(words) => !plain(words).is_empty() && contains(&title, words),
        _ => false,
    };
    match &command.target {
        Some(TaskTarget::Several(targets)) => targets.iter().any(is_named),
        Some(target) => is_named(target),
        None => false,
    }
}

/// Returns whether the words of `part` follow each other in `text`. An empty part is always contained.
fn contains(text: &str, part: &str) -> bool {
    let part = plain(part);
    part.is_empty() || format!(" {} ", plain(text)).contains(&format!(" {part} "))
}

/// Returns the words in lower case without punctuation, with single spaces.
fn plain(text: &str) -> String {
    let words = text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use model::User;
    use serde_json::json;
    use understand::UtteranceParser;

    use super::*;

    fn request(message: &str) -> TurnRequest {
        let user = User::local(TimeZone::UTC);
        TurnRequest::new(message.to_owned(), &user, UtteranceParser::default(), "2026-11-18T09:00:00Z".parse().unwrap())
    }

    fn is_requested_by(message: &str, kind: ToolKind, arguments: Value) -> bool {
        let list = ToolCall {
            tool_name: "list_tasks".to_owned(),
            parameters: json!({}),
            result: json!({"tasks": [{"id": 7, "title": "Buy oat milk"}, {"id": 8, "title": "Pay rent"}]}),
            error: None,
            duration_ms: 0,
        };
        is_requested(&request(message), kind, arguments.as_object().unwrap(), &[list])
    }

    #[test]
    fn runs_of_agents_must_have_the_agent_and_the_input_of_the_message() {
        // SEC-4
        let run = |message: &str, agent: &str, input: &str| {
            is_requested_by(message, ToolKind::RunAgent, json!({"agent": agent, "input": input}))
        };
        assert!(run("please run builder on the report", "builder", "the report"));
        assert!(run("Ask the code review agent to look at main.rs", "code-review", "look at main.rs"));
        assert!(run("run tidy", "tidy", ""));
        assert!(!run("please run builder on the report", "builder", "delete everything"));
        assert!(!run("please run builder on the report", "eraser", "the report"));
        assert!(!run("what are my tasks?", "builder", "what are my tasks?"));
        assert!(!run("is the builder done with the report?", "builder", "the report"));
        assert!(!run("run builder on the report every hour", "builder", "the report"), "a schedule is not a run");
    }

    #[test]
    fn schedules_must_have_the_times_of_the_message() {
        // SEC-4
        let schedule = |message: &str, arguments: Value| is_requested_by(message, ToolKind::ScheduleAgent, arguments);
        let message = "have builder check the report every 2 hours";
        assert!(schedule(message, json!({"agent": "builder", "input": "check the report", "every": "2h"})));
        assert!(!schedule(message, json!({"agent": "builder", "input": "check the report", "every": "1m"})));
        let message = "have builder check the report every weekday at 8am";
        for (cron, expected) in [
            ("0 8 * * 1-5", true),
            ("0 8 * * mon-fri", true),
            ("0 8 * * MON,TUE,WED,THU,FRI", true),
            ("0 9 * * 1-5", false),
            ("0 8 * * *", false),
        ] {
            let arguments = json!({"agent": "builder", "input": "check the report", "cron_expression": cron});
            assert_eq!(schedule(message, arguments), expected, "{cron}");
        }
        assert!(!schedule("run builder now", json!({"agent": "builder", "input": "", "every": "1h"})));
    }

    #[test]
    fn schedules_must_be_named() {
        // SEC-4
        let call =
            |message: &str, kind: ToolKind, name: &str| is_requested_by(message, kind, json!({"schedule": name}));
        assert!(call("run the nightly backup now", ToolKind::RunSchedule, "nightly backup"));
        assert!(call("resume the nightly backup schedule", ToolKind::ResumeSchedule, "Nightly backup"));
        assert!(!call("run the nightly backup now", ToolKind::RunSchedule, "eraser"));
        assert!(!call("pause the nightly backup", ToolKind::ResumeSchedule, "nightly backup"));
        assert!(!call("run it now", ToolKind::RunSchedule, "nightly backup"));
        assert!(!call("run the nightly backup", ToolKind::UpdateSchedule, "nightly backup"));
    }

    #[test]
    fn stopped_runs_must_be_named_or_alone() {
        // SEC-4
        let list = |rows: Value| ToolCall {
            tool_name: "list_executions".to_owned(),
            parameters: json!({"active": true}),
            result: json!({"executions": rows}),
            error: None,
            duration_ms: 0,
        };
        let one = list(json!([{"execution_id": "1", "agent_id": "builder"}]));
        let two =
            list(json!([{"execution_id": "1", "agent_id": "builder"}, {"execution_id": "2", "agent_id": "eraser"}]));
        let stop = |message: &str, list: &ToolCall| {
            let arguments = json!({"execution_id": "1"});
            let arguments = arguments.as_object().unwrap();
            is_requested(&request(message), ToolKind::CancelExecution, arguments, std::slice::from_ref(list))
        };
        assert!(stop("stop builder pls", &two));
        assert!(stop("kill it", &one));
        assert!(!stop("kill it", &two), "it may be the other one");
        assert!(!stop("stop eraser", &two));
        assert!(!stop("what is running?", &one));
    }

    #[test]
    fn tasks_must_be_named() {
        // SEC-4
        assert!(is_requested_by("add buy bread", ToolKind::Add, json!({"title": "Buy bread"})));
        assert!(!is_requested_by("add buy bread", ToolKind::Add, json!({"title": "wire money to Eve"})));
        assert!(is_requested_by("I'm done with the oat milk", ToolKind::Complete, json!({"task_id": 7})));
        assert!(!is_requested_by("I'm done with the oat milk", ToolKind::Complete, json!({"task_id": 8})));
        assert!(!is_requested_by("I'm done with the oat milk", ToolKind::Complete, json!({"task_id": 9})));
        assert!(is_requested_by("undo that", ToolKind::Undo, json!({})));
        assert!(!is_requested_by("what's on my list?", ToolKind::Undo, json!({})));
    }
}
