//! Every tool there is: its names, what it says about itself, and the JSON Schema of its arguments.
//!
//! The schemas use only what every provider takes: no `$ref`, no lists of types, no `anyOf`. `user_id` is in none of
//! them: nobody who calls a tool chooses it.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use model::{reminder, schedule, task};
use serde_json::{Map, Value, json};

use crate::Arguments;
use crate::foreign::Foreign;

pub(crate) type Schema = Map<String, Value>;

/// What a tool does, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Add,
    List,
    Complete,
    Update,
    Delete,
    CompleteSeveral,
    DeleteSeveral,
    Remind,
    Undo,
    ListAgents,
    RunAgent,
    GetExecution,
    CancelExecution,
    ScheduleAgent,
    ListSchedules,
    PauseSchedule,
    ResumeSchedule,
}

/// How much there is to offer to a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    Tasks,
    /// Agents to run besides.
    Agents,
    /// And the right to have them run at certain times.
    Schedules,
}

/// Which names the tools go by (TASK-2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// `add_task` and its like.
    #[default]
    Task,
    /// S0's: `create_todo` and its like.
    Todo,
    /// There are none: the tasks are kept by an MCP server of somebody else.
    None,
}

/// A tool as it is shown to models and clients.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Where it is known.
    pub tool: Option<Tool>,
    pub name: Cow<'static, str>,
    pub title: Cow<'static, str>,
    pub description: Cow<'static, str>,
    /// An object schema.
    pub schema: Schema,
    pub read_only: bool,
    /// The user may be asked before it is called.
    pub destructive: bool,
    /// Calling it twice changes no more than calling it once.
    pub idempotent: bool,
    /// Where it is not ours.
    pub(crate) foreign: Option<Arc<Foreign>>,
}

impl Spec {
    pub fn is_ours(&self) -> bool {
        self.foreign.is_none()
    }

    /// The argument that names one task.
    pub fn id_key(&self) -> &'static str {
        ID_KEYS.into_iter().find(|key| self.takes(key)).unwrap_or("task_id")
    }

    /// Whether there is an argument of this name.
    pub fn takes(&self, argument: &str) -> bool {
        self.schema.get("properties").is_some_and(|properties| properties.get(argument).is_some())
    }
}

/// What the argument that names one task may be called.
pub(crate) const ID_KEYS: [&str; 3] = ["todo_id", "task_id", "id"];

/// All tools that somebody has at hand, in a fixed order.
#[derive(Clone, Debug)]
pub enum Specs {
    Ours(&'static [Spec]),
    /// Ours and those of others.
    All(Arc<[Spec]>),
}

impl Deref for Specs {
    type Target = [Spec];

    fn deref(&self) -> &[Spec] {
        match self {
            Self::Ours(specs) => specs,
            Self::All(specs) => specs,
        }
    }
}

/// Our own tools: those for tasks under one set of names and, where there are agents to run, those for agents and for
/// their schedules.
pub fn ours(names: Names, offer: Offer) -> &'static [Spec] {
    static TASK: LazyLock<Vec<Spec>> = LazyLock::new(|| [specs(Names::Task), beyond_tasks()].concat());
    static TODO: LazyLock<Vec<Spec>> = LazyLock::new(|| [specs(Names::Todo), beyond_tasks()].concat());
    static NONE: LazyLock<Vec<Spec>> = LazyLock::new(beyond_tasks);
    let all: &'static [Spec] = match names {
        Names::Task => &TASK,
        Names::Todo => &TODO,
        Names::None => &NONE,
    };
    match offer {
        Offer::Tasks => of(names),
        // Those for schedules come last.
        Offer::Agents => &all[..all.len() - for_schedules().len()],
        Offer::Schedules => all,
    }
}

fn beyond_tasks() -> Vec<Spec> {
    [for_agents(), for_schedules()].concat()
}

/// The tools for tasks under one set of names, in a fixed order.
pub fn of(names: Names) -> &'static [Spec] {
    static TASK: LazyLock<Vec<Spec>> = LazyLock::new(|| specs(Names::Task));
    static TODO: LazyLock<Vec<Spec>> = LazyLock::new(|| specs(Names::Todo));
    match names {
        Names::Task => &TASK,
        Names::Todo => &TODO,
        Names::None => &[],
    }
}

/// Gives the arguments the names that the handlers know.
pub(crate) fn rename(names: Names, arguments: &mut Arguments) {
    if names == Names::Todo {
        for (theirs, ours) in [("todo_id", "task_id"), ("todo_ids", "task_ids")] {
            if let Some(value) = arguments.remove(theirs) {
                arguments.insert(ours.to_owned(), value);
            }
        }
    }
}

pub(crate) fn name(names: Names, tool: Tool) -> &'static str {
    of(names).iter().find(|spec| spec.tool == Some(tool)).map_or("", |spec| &spec.name)
}

/// What the argument is called that names one task, and the one that names several.
pub(crate) fn id_keys(names: Names) -> (&'static str, &'static str) {
    match names {
        Names::Task | Names::None => ("task_id", "task_ids"),
        Names::Todo => ("todo_id", "todo_ids"),
    }
}

fn specs(names: Names) -> Vec<Spec> {
    let pick = |task: &'static str, todo: &'static str| if names == Names::Task { task } else { todo };
    let (id, ids) = id_keys(names);
    let id_of = |what: &str| (id, text(&format!("The id of the task {what}, as the list gives it.")));
    let mut specs = vec![
        Spec {
            title: "Add a task".into(),
            description: "Adds one task to the user's list.".into(),
            schema: object(
                &["title"],
                attributes("What is to be done, in the user's words, without date and priority."),
            ),
            ..spec(Tool::Add, pick("add_task", "create_todo"))
        },
        Spec {
            title: "List tasks".into(),
            description: "Lists the user's tasks, oldest first, those not done unless status says otherwise.".into(),
            schema: object(&[], [filters(), paging()].concat()),
            read_only: true,
            idempotent: true,
            ..spec(Tool::List, pick("list_tasks", "list_todos"))
        },
        Spec {
            title: "Update a task".into(),
            description: "Changes one task. What is not given stays as it is; an empty text or list removes the value."
                .into(),
            schema: object(
                &[id],
                [
                    vec![id_of("to change")],
                    attributes("The new title."),
                    vec![("status", choice("completed, or pending to open it again.", &["pending", "completed"]))],
                ]
                .concat(),
            ),
            idempotent: true,
            ..spec(Tool::Update, pick("update_task", "update_todo"))
        },
        Spec {
            title: "Delete a task".into(),
            description: "Deletes one task. The user is asked to confirm first.".into(),
            schema: object(
                if names == Names::Todo { &["todo_id", "confirmation"] } else { &["task_id"] },
                vec![id_of("to delete"), confirmation()],
            ),
            destructive: true,
            ..spec(Tool::Delete, pick("delete_task", "delete_todo"))
        },
        Spec {
            title: "Complete several tasks".into(),
            description:
                "Marks all the tasks as done that are named by id or that match the filters. The user is asked \
                          to confirm first."
                    .into(),
            schema: object(&[], [vec![several(ids)], filters(), vec![confirmation()]].concat()),
            destructive: true,
            idempotent: true,
            ..spec(Tool::CompleteSeveral, pick("complete_tasks", "complete_todos"))
        },
        Spec {
            title: "Delete several tasks".into(),
            description: "Deletes all the tasks that are named by id or that match the filters. The user is asked to \
                          confirm first."
                .into(),
            schema: object(&[], [vec![several(ids)], filters(), vec![confirmation()]].concat()),
            destructive: true,
            ..spec(Tool::DeleteSeveral, pick("delete_tasks", "delete_todos"))
        },
        Spec {
            title: "Schedule a reminder".into(),
            description: "Reminds the user of one task at a time, once or repeatedly.".into(),
            schema: object(
                &[id, "remind_at"],
                vec![
                    id_of("to remind of"),
                    (
                        "remind_at",
                        text("When: ISO 8601 date and time, in the user's time zone unless it has an offset."),
                    ),
                    ("repeat_interval_minutes", number("Minutes between repetitions.", reminder::MAX_INTERVAL_MINUTES)),
                    ("repeat_count", number("How often in total.", reminder::MAX_COUNT)),
                ],
            ),
            ..spec(Tool::Remind, "schedule_reminder")
        },
        Spec {
            title: "Undo the last change".into(),
            description: "Takes back the user's last change to tasks.".into(),
            schema: object(&[], Vec::new()),
            // Taking back an addition removes the task.
            destructive: true,
            ..spec(Tool::Undo, "undo_last_change")
        },
    ];
    if names == Names::Task {
        // S0 has none: there a status is updated.
        let complete = Spec {
            title: "Complete a task".into(),
            description: "Marks one task as done.".into(),
            schema: object(&[id], vec![id_of("that is done")]),
            idempotent: true,
            ..spec(Tool::Complete, "complete_task")
        };
        specs.insert(2, complete);
    }
    specs
}

fn for_agents() -> Vec<Spec> {
    let execution = |what: &str| ("execution_id", text(&format!("The id of the run {what}, as run_agent gives it.")));
    vec![
        Spec {
            title: "List agents".into(),
            description: "Lists the other agents that can be run for the user, and how busy each is.".into(),
            schema: object(&[], Vec::new()),
            read_only: true,
            idempotent: true,
            ..spec(Tool::ListAgents, "list_agents")
        },
        Spec {
            title: "Run an agent".into(),
            description: "Asks another agent to do something and returns at once; the run goes on by itself.".into(),
            schema: object(
                &["agent", "input"],
                vec![
                    ("agent", text("The id or the name of the agent, as list_agents gives it.")),
                    ("input", text("What it shall do, in the user's words.")),
                ],
            ),
            ..spec(Tool::RunAgent, "run_agent")
        },
        Spec {
            title: "See a run of an agent".into(),
            description: "What became of a run: its state and, once it has ended, what the agent answered.".into(),
            schema: object(&["execution_id"], vec![execution("to see")]),
            read_only: true,
            idempotent: true,
            ..spec(Tool::GetExecution, "get_execution")
        },
        Spec {
            title: "Stop a run of an agent".into(),
            description: "Stops a run that waits or is at work.".into(),
            schema: object(&["execution_id"], vec![execution("to stop")]),
            ..spec(Tool::CancelExecution, "cancel_execution")
        },
    ]
}

fn for_schedules() -> Vec<Spec> {
    let schedule = |what: &str| ("schedule", text(&format!("The name or the id of the schedule {what}.")));
    vec![
        Spec {
            title: "Schedule an agent".into(),
            description:
                "Has another agent do something at certain times. Exactly one of cron_expression, every and at \
                          says when."
                    .into(),
            schema: object(
                &["agent", "input"],
                vec![
                    ("agent", text("The id or the name of the agent, as list_agents gives it.")),
                    ("input", text("What it shall do each time, in the user's words, without the times.")),
                    ("cron_expression", text("5 fields such as 0 17 * * FRI, or @daily; in the user's time zone.")),
                    ("every", text("A length of time such as 90m or 1h30m, counted from now.")),
                    ("at", text("Once: a date and time in the user's time zone unless it has an offset.")),
                    ("start_at", text("Not before this date and time; every is counted from there.")),
                    ("end_at", text("Not after this date and time.")),
                    ("time_zone", text("Where it is not the user's: Europe/Berlin and the like.")),
                    ("name", bounded("What to call it; made of the input otherwise.", 1, schedule::MAX_NAME)),
                ],
            ),
            ..spec(Tool::ScheduleAgent, "schedule_agent")
        },
        Spec {
            title: "List schedules".into(),
            description: "Lists what agents are scheduled to do: when each runs next, and which are paused.".into(),
            schema: object(&[], Vec::new()),
            read_only: true,
            idempotent: true,
            ..spec(Tool::ListSchedules, "list_schedules")
        },
        Spec {
            title: "Pause a schedule".into(),
            description: "Nothing of the schedule starts until it is resumed.".into(),
            schema: object(
                &["schedule"],
                vec![schedule("to pause"), ("reason", text("Why, in a few words, where the user says so."))],
            ),
            idempotent: true,
            ..spec(Tool::PauseSchedule, "pause_schedule")
        },
        Spec {
            title: "Resume a schedule".into(),
            description: "Lets a schedule that is paused go on with its next time from now.".into(),
            schema: object(&["schedule"], vec![schedule("to resume")]),
            idempotent: true,
            ..spec(Tool::ResumeSchedule, "resume_schedule")
        },
    ]
}

fn spec(tool: Tool, name: &'static str) -> Spec {
    Spec {
        tool: Some(tool),
        name: name.into(),
        title: "".into(),
        description: "".into(),
        schema: Map::new(),
        read_only: false,
        destructive: false,
        idempotent: false,
        foreign: None,
    }
}

type Property = (&'static str, Value);

fn attributes(title: &str) -> Vec<Property> {
    vec![
        ("title", bounded(title, 1, task::MAX_TITLE)),
        ("description", bounded("More about it.", 0, task::MAX_DESCRIPTION)),
        ("due_date", text("ISO 8601: a date, or a date and time in the user's time zone unless it has an offset.")),
        ("priority", choice("How important it is; medium where nothing is said.", &["low", "medium", "high"])),
        ("recurrence", text("An RFC 5545 RRULE such as FREQ=WEEKLY;BYDAY=MO.")),
        ("tags", list("Words to group tasks by.", task::MAX_TAGS)),
    ]
}

fn filters() -> Vec<Property> {
    vec![
        ("status", choice("Only tasks with this status.", &["pending", "completed", "all"])),
        ("priority", choice("Only tasks of this priority.", &["low", "medium", "high"])),
        (
            "due_date_filter",
            text(
                "Only tasks due then: today, tomorrow, this_week, overdue, an ISO 8601 date, or days such as 2026-01-01..2026-01-31.",
            ),
        ),
        ("tags", list("Only tasks that have all these tags.", task::MAX_TAGS)),
        ("query", bounded("Only tasks with this text in title or description.", 1, task::MAX_TITLE)),
    ]
}

fn paging() -> Vec<Property> {
    vec![
        ("limit", number("How many at most; 100 where nothing is said.", crate::tasks::MAX_LISTED)),
        ("cursor", text("next_cursor of the answer before, for the tasks that follow.")),
    ]
}

fn several(name: &'static str) -> Property {
    let about = "The ids of the tasks, as the list gives them; without them all tasks that match the filters.";
    (name, list(about, crate::tasks::MAX_SEVERAL))
}

fn confirmation() -> Property {
    ("confirmation", json!({"type": "boolean", "description": "true once the user has agreed to exactly this."}))
}

fn object(required: &[&str], properties: Vec<Property>) -> Map<String, Value> {
    let properties: Map<_, _> = properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("required".to_owned(), required.into());
    schema.insert("additionalProperties".to_owned(), false.into());
    schema
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn bounded(description: &str, min: usize, max: usize) -> Value {
    json!({"type": "string", "description": description, "minLength": min, "maxLength": max})
}

fn choice(description: &str, words: &[&str]) -> Value {
    json!({"type": "string", "description": description, "enum": words})
}

fn list(description: &str, max: usize) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "maxItems": max, "description": description})
}

fn number(description: &str, max: i64) -> Value {
    json!({"type": "integer", "description": description, "minimum": 1, "maximum": max})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every key of a schema, at any depth.
    fn keys(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => map.iter().for_each(|(key, value)| {
                found.push(key.clone());
                keys(value, found);
            }),
            Value::Array(list) => list.iter().for_each(|value| keys(value, found)),
            _ => {}
        }
    }

    #[test]
    fn schemas_are_of_the_kind_every_provider_takes() {
        // TASK-1
        for spec in ours(Names::Task, Offer::Schedules).iter().chain(ours(Names::Todo, Offer::Schedules)) {
            let schema = Value::Object(spec.schema.clone());
            let mut found = Vec::new();
            keys(&schema, &mut found);
            for never in ["$ref", "$defs", "anyOf", "oneOf", "allOf", "not", "user_id", "format"] {
                assert!(!found.iter().any(|key| key == never), "{}: {never}", spec.name);
            }
            for (name, property) in schema["properties"].as_object().unwrap() {
                assert!(property["type"].is_string(), "{}.{name}", spec.name);
                assert!(property["description"].is_string(), "{}.{name}", spec.name);
            }
            for required in schema["required"].as_array().unwrap() {
                assert!(spec.takes(required.as_str().unwrap()), "{}", spec.name);
            }
        }
    }

    #[test]
    fn both_sets_have_the_names_of_their_seeds() {
        // TASK-1, TASK-2
        let names = |set| of(set).iter().map(|spec| &*spec.name).collect::<Vec<_>>();
        for name in ["add_task", "list_tasks", "complete_task", "delete_task", "update_task", "schedule_reminder"] {
            assert!(names(Names::Task).contains(&name), "{name}");
        }
        for name in ["create_todo", "list_todos", "update_todo", "delete_todo"] {
            assert!(names(Names::Todo).contains(&name), "{name}");
        }
        assert!(names(Names::Todo).iter().all(|name| !name.ends_with("_task")));
    }
}
