//! The catalog of built-in tools: their names, their descriptions and the JSON Schemas of their arguments.
//!
//! The schemas use only features that every provider supports: no `$ref`, no lists of types, no `anyOf`. No schema
//! contains `user_id`, because the caller must not choose the user.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use model::{reminder, schedule, task};
use serde_json::{Map, Value, json};

use crate::ToolArguments;
use crate::mcp_client::ExternalTool;

pub(crate) type Schema = Map<String, Value>;

/// The purpose of a tool, independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolKind {
    Add,
    List,
    Complete,
    Update,
    Delete,
    CompleteSeveral,
    DeleteSeveral,
    Remind,
    ListReminders,
    UpdateReminder,
    CancelReminder,
    SnoozeReminder,
    Undo,
    UpdateSeveral,
    ListAgents,
    RunAgent,
    GetExecution,
    CancelExecution,
    ScheduleAgent,
    ListSchedules,
    PauseSchedule,
    ResumeSchedule,
    ListExecutions,
    UpdateSchedule,
    DeleteSchedule,
    RunSchedule,
    ExplainSchedule,
}

impl ToolKind {
    /// Returns true if the handler finds the tasks of a call before it holds the call, so that the question names them.
    pub(crate) fn resolves_targets(self) -> bool {
        matches!(
            self,
            Self::Delete
                | Self::CompleteSeveral
                | Self::DeleteSeveral
                | Self::UpdateSeveral
                | Self::Undo
                | Self::RunAgent
                | Self::ScheduleAgent
                | Self::ResumeSchedule
                | Self::UpdateSchedule
                | Self::DeleteSchedule
                | Self::RunSchedule
        )
    }
}

/// The groups of built-in tools that a user has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolSet {
    /// Tasks and reminders.
    Tasks,
    /// Additionally the tools for agents.
    Agents,
    /// Additionally the tools for schedules.
    Schedules,
}

/// The names of the tools for tasks (TASK-2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolNames {
    /// `add_task`, `list_tasks` and so on.
    #[default]
    Task,
    /// The names of S0: `create_todo`, `list_todos` and so on.
    Todo,
    /// No built-in tools for tasks, because an external MCP server manages the tasks.
    None,
}

/// The description of a tool for models and clients.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    /// `None` for an external tool with an unknown purpose.
    pub kind: Option<ToolKind>,
    pub name: Cow<'static, str>,
    pub title: Cow<'static, str>,
    pub description: Cow<'static, str>,
    /// The JSON Schema of the arguments. Its type is `object`.
    pub schema: Schema,
    pub read_only: bool,
    /// A call may need a confirmation.
    pub destructive: bool,
    /// Repeating a call has no further effect.
    pub idempotent: bool,
    /// Set for external tools.
    pub(crate) external: Option<Arc<ExternalTool>>,
}

impl ToolSpec {
    /// Returns true for a built-in tool.
    pub fn is_built_in(&self) -> bool {
        self.external.is_none()
    }

    /// Returns the name of the argument that selects one task, or `task_id` if the tool has none.
    pub fn task_id_argument(&self) -> &'static str {
        TASK_ID_ARGUMENTS.into_iter().find(|key| self.has_argument(key)).unwrap_or("task_id")
    }

    /// Returns true if the tool has an argument of this name.
    pub fn has_argument(&self, argument: &str) -> bool {
        self.schema.get("properties").is_some_and(|properties| properties.get(argument).is_some())
    }
}

/// The known names of the argument that selects one task.
pub(crate) const TASK_ID_ARGUMENTS: [&str; 3] = ["todo_id", "task_id", "id"];

/// The tools of a user, in a fixed order.
#[derive(Clone, Debug)]
pub enum ToolSpecs {
    BuiltIn(&'static [ToolSpec]),
    /// Built-in and external tools.
    All(Arc<[ToolSpec]>),
}

impl Deref for ToolSpecs {
    type Target = [ToolSpec];

    fn deref(&self) -> &[ToolSpec] {
        match self {
            Self::BuiltIn(specs) => specs,
            Self::All(specs) => specs,
        }
    }
}

/// Returns the built-in tools of a set, in a fixed order: tasks, agents, schedules. Each set contains the sets before
/// it. With [`ToolNames::None`], there are none for tasks. The lists are created once, so equal arguments return the
/// same slice.
pub fn built_in(names: ToolNames, set: ToolSet) -> &'static [ToolSpec] {
    static TASK: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| [task_specs(ToolNames::Task), other_specs()].concat());
    static TODO: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| [task_specs(ToolNames::Todo), other_specs()].concat());
    static NONE: LazyLock<Vec<ToolSpec>> = LazyLock::new(other_specs);
    let all: &'static [ToolSpec] = match names {
        ToolNames::Task => &TASK,
        ToolNames::Todo => &TODO,
        ToolNames::None => &NONE,
    };
    match set {
        ToolSet::Tasks => task_tools(names),
        // The tools for schedules are the last ones.
        ToolSet::Agents => &all[..all.len() - schedule_specs().len()],
        ToolSet::Schedules => all,
    }
}

fn other_specs() -> Vec<ToolSpec> {
    [agent_specs(), schedule_specs()].concat()
}

/// Returns the tools for tasks with the given names, in a fixed order. Returns none for [`ToolNames::None`].
pub fn task_tools(names: ToolNames) -> &'static [ToolSpec] {
    static TASK: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| task_specs(ToolNames::Task));
    static TODO: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| task_specs(ToolNames::Todo));
    match names {
        ToolNames::Task => &TASK,
        ToolNames::Todo => &TODO,
        ToolNames::None => &[],
    }
}

/// Renames the arguments `todo_id` and `todo_ids` of S0 to `task_id` and `task_ids`, which the handlers use, also in the
/// entries of `updates`. An existing argument of that name is replaced. Has no effect unless `names` is `Todo`.
pub(crate) fn rename_arguments(names: ToolNames, arguments: &mut ToolArguments) {
    if names == ToolNames::Todo {
        for (from, to) in [("todo_id", "task_id"), ("todo_ids", "task_ids")] {
            if let Some(value) = arguments.remove(from) {
                arguments.insert(to.to_owned(), value);
            }
        }
        let updates = arguments.get_mut("updates").and_then(Value::as_array_mut);
        for update in updates.into_iter().flatten().filter_map(Value::as_object_mut) {
            if let Some(id) = update.shift_remove("todo_id") {
                update.insert("task_id".to_owned(), id);
            }
        }
    }
}

/// Returns the name of a tool for tasks, or an empty text if there is none.
pub(crate) fn tool_name(names: ToolNames, kind: ToolKind) -> &'static str {
    task_tools(names).iter().find(|spec| spec.kind == Some(kind)).map_or("", |spec| &spec.name)
}

/// Returns the names of the arguments that select one task and several tasks.
pub(crate) fn task_id_arguments(names: ToolNames) -> (&'static str, &'static str) {
    match names {
        ToolNames::Task | ToolNames::None => ("task_id", "task_ids"),
        ToolNames::Todo => ("todo_id", "todo_ids"),
    }
}

/// Returns the tools for tasks: add, list, complete, update, delete, complete and delete several, reminders, undo,
/// update several. `names`
/// is `Task` or `Todo`. The names of S0 have no tool that completes one task, and their deletion requires
/// `confirmation`. Deletions, bulk changes and undo are marked as destructive.
fn task_specs(names: ToolNames) -> Vec<ToolSpec> {
    let pick = |task: &'static str, todo: &'static str| if names == ToolNames::Task { task } else { todo };
    let (id, ids) = task_id_arguments(names);
    let id_argument =
        |purpose: &str| (id, text(&format!("The id of the task {purpose}, taken from the list of tasks.")));
    let mut specs = vec![
        ToolSpec {
            title: "Add a task".into(),
            description: "Adds one task to the user's list.".into(),
            schema: object(
                &["title"],
                [attributes("The task in the user's words, without date and priority."), reminder_of_new_task()]
                    .concat(),
            ),
            ..spec(ToolKind::Add, pick("add_task", "create_todo"))
        },
        ToolSpec {
            title: "List tasks".into(),
            description: "Lists the user's tasks, oldest first. Lists only open tasks unless status is given.".into(),
            schema: object(&[], [filters(), paging()].concat()),
            read_only: true,
            idempotent: true,
            ..spec(ToolKind::List, pick("list_tasks", "list_todos"))
        },
        ToolSpec {
            title: "Update a task".into(),
            description: "Changes one task. Omitted fields are not changed. An empty text or list removes the value."
                .into(),
            schema: object(
                &[id],
                [vec![id_argument("to change")], attributes("The new title."), vec![status_argument()]].concat(),
            ),
            idempotent: true,
            ..spec(ToolKind::Update, pick("update_task", "update_todo"))
        },
        ToolSpec {
            title: "Delete a task".into(),
            description: "Deletes one task. The user is asked to confirm first.".into(),
            schema: object(
                if names == ToolNames::Todo { &["todo_id", "confirmation"] } else { &["task_id"] },
                vec![id_argument("to delete"), confirmation()],
            ),
            destructive: true,
            ..spec(ToolKind::Delete, pick("delete_task", "delete_todo"))
        },
        ToolSpec {
            title: "Complete several tasks".into(),
            description:
                "Marks all tasks as done that are given by id or that match the filters. The user is asked to \
                          confirm first."
                    .into(),
            schema: object(&[], [vec![ids_argument(ids)], filters(), vec![confirmation()]].concat()),
            destructive: true,
            idempotent: true,
            ..spec(ToolKind::CompleteSeveral, pick("complete_tasks", "complete_todos"))
        },
        ToolSpec {
            title: "Delete several tasks".into(),
            description: "Deletes all tasks that are given by id or that match the filters. The user is asked to \
                          confirm first."
                .into(),
            schema: object(&[], [vec![ids_argument(ids)], filters(), vec![confirmation()]].concat()),
            destructive: true,
            ..spec(ToolKind::DeleteSeveral, pick("delete_tasks", "delete_todos"))
        },
        ToolSpec {
            title: "Undo the last change".into(),
            description: "Undoes the user's last change to tasks.".into(),
            schema: object(&[], vec![confirmation()]),
            // Undoing the creation of a task removes it.
            destructive: true,
            ..spec(ToolKind::Undo, UNDO)
        },
    ];
    if names == ToolNames::Task {
        // S0 has no such tool. Its clients update the status.
        let complete = ToolSpec {
            title: "Complete a task".into(),
            description: "Marks one task as done.".into(),
            schema: object(&[id], vec![id_argument("that is done")]),
            idempotent: true,
            ..spec(ToolKind::Complete, "complete_task")
        };
        specs.insert(2, complete);
    }
    // Before the undo.
    specs.splice(specs.len() - 1..specs.len() - 1, reminder_specs(names));
    specs.push(crate::update_several::spec(names));
    specs
}

/// Returns the tools for reminders: schedule, list, update, cancel and snooze. All changes can be undone, so none is
/// destructive.
fn reminder_specs(names: ToolNames) -> Vec<ToolSpec> {
    let (id, _) = task_id_arguments(names);
    let task = |purpose: &str| (id, text(&format!("The id of the task {purpose}, taken from the list of tasks.")));
    let reminder =
        |purpose: &str| ("reminder_id", text(&format!("The id of the reminder {purpose}, taken from list_reminders.")));
    vec![
        ToolSpec {
            title: "Schedule a reminder".into(),
            description: "Reminds the user of one task, once or repeatedly. Give exactly one of remind_at and \
                          before_minutes, or only a recurrence."
                .into(),
            schema: object(&[id], [vec![task("to remind of")], reminder_times()].concat()),
            ..spec(ToolKind::Remind, "schedule_reminder")
        },
        ToolSpec {
            title: "List reminders".into(),
            description: "Lists reminders, the next one first. Lists only scheduled ones unless status is given."
                .into(),
            schema: object(
                &[],
                vec![
                    task("to list the reminders of"),
                    ("status", choice("Only reminders with this status.", &["scheduled", "done", "dropped", "all"])),
                ],
            ),
            read_only: true,
            idempotent: true,
            ..spec(ToolKind::ListReminders, "list_reminders")
        },
        ToolSpec {
            title: "Change a reminder".into(),
            description: "Changes the time or the repetition of a reminder. Omitted fields are not changed. An empty \
                          recurrence ends the repetition."
                .into(),
            schema: object(&["reminder_id"], [vec![reminder("to change")], reminder_times()].concat()),
            idempotent: true,
            ..spec(ToolKind::UpdateReminder, "update_reminder")
        },
        ToolSpec {
            title: "Cancel a reminder".into(),
            description: "Ends a reminder. The task stays on the list.".into(),
            schema: object(&["reminder_id"], vec![reminder("to cancel")]),
            idempotent: true,
            ..spec(ToolKind::CancelReminder, "cancel_reminder")
        },
        ToolSpec {
            title: "Snooze a reminder".into(),
            description: "Moves the next notification of a reminder to a later time, also of one that has just been \
                          sent. Give exactly one of reminder_id and the id of a task."
                .into(),
            schema: object(
                &["until"],
                vec![reminder("to snooze"), task("to be reminded of again"), ("until", text(REMINDER_TIME))],
            ),
            ..spec(ToolKind::SnoozeReminder, "snooze_reminder")
        },
    ]
}

/// The description of a time of a reminder.
const REMINDER_TIME: &str = "ISO 8601 date and time, in the user's time zone unless it has an offset, or words such as \
                             tomorrow 9am. A date without a time means a fixed time on this day.";

/// Returns the arguments for the times of a reminder.
fn reminder_times() -> Vec<Property> {
    vec![
        ("remind_at", text(REMINDER_TIME)),
        ("before_minutes", minutes_before()),
        (
            "recurrence",
            text(
                "An RFC 5545 RRULE such as FREQ=DAILY;BYHOUR=8;BYMINUTE=0, in the user's time zone, or words such as every day at 8am.",
            ),
        ),
        ("repeat_interval_minutes", number("Minutes between repetitions.", reminder::MAX_INTERVAL_MINUTES)),
        ("repeat_count", number("The total number of reminders.", reminder::MAX_COUNT)),
    ]
}

/// Returns the arguments for the reminder of a new task.
fn reminder_of_new_task() -> Vec<Property> {
    vec![("remind_at", text(REMINDER_TIME)), ("remind_before_minutes", minutes_before())]
}

fn minutes_before() -> Value {
    json!({
        "type": "integer",
        "description": "Minutes before the due date of the task, instead of remind_at. The reminder moves with it.",
        "minimum": 0,
        "maximum": reminder::MAX_BEFORE_MINUTES,
    })
}

pub(crate) fn status_argument() -> Property {
    ("status", choice("The new status. pending reopens a completed task.", &["pending", "completed"]))
}

/// The names of the tools that are held although they have no tasks as targets.
pub(crate) const RUN_AGENT: &str = "run_agent";
pub(crate) const SCHEDULE_AGENT: &str = "schedule_agent";
pub(crate) const RESUME_SCHEDULE: &str = "resume_schedule";
pub(crate) const UPDATE_SCHEDULE: &str = "update_schedule";
pub(crate) const DELETE_SCHEDULE: &str = "delete_schedule";
pub(crate) const RUN_SCHEDULE: &str = "run_schedule";
pub(crate) const UNDO: &str = "undo_last_change";

/// Returns the tools for agents: list, run, list, get and cancel executions. To run and to cancel is destructive.
fn agent_specs() -> Vec<ToolSpec> {
    let execution =
        |purpose: &str| ("execution_id", text(&format!("The id of the run {purpose}, as returned by run_agent.")));
    vec![
        ToolSpec {
            title: "List agents".into(),
            description: "Lists the agents that the user can run, with the number of running and waiting runs of each."
                .into(),
            schema: object(&[], Vec::new()),
            read_only: true,
            idempotent: true,
            ..spec(ToolKind::ListAgents, "list_agents")
        },
        ToolSpec {
            title: "Run an agent".into(),
            description:
                "Starts a run of another agent and returns without waiting for its end. The user may be asked to \
                          confirm first."
                    .into(),
            schema: object(
                &["agent", "input"],
                vec![
                    ("agent", text("The id or the name of the agent, as returned by list_agents.")),
                    ("input", text("The request to the agent, in the user's words.")),
                    confirmation(),
                ],
            ),
            // The agent may change or delete anything that it can reach.
            destructive: true,
            ..spec(ToolKind::RunAgent, RUN_AGENT)
        },
        ToolSpec {
            title: "Get a run of an agent".into(),
            description: "Returns the state of a run and, once it has ended, the output of the agent.".into(),
            schema: object(&["execution_id"], vec![execution("to read")]),
            read_only: true,
            idempotent: true,
            ..spec(ToolKind::GetExecution, "get_execution")
        },
        ToolSpec {
            title: "Stop a run of an agent".into(),
            description: "Stops a run that is waiting or running.".into(),
            schema: object(&["execution_id"], vec![execution("to stop")]),
            // The work of the run may be lost.
            destructive: true,
            ..spec(ToolKind::CancelExecution, "cancel_execution")
        },
        ToolSpec {
            title: "List runs of agents".into(),
            description: "Lists the user's runs, the newest first, with their states. agent_output is text of the \
                          agent, not of the user."
                .into(),
            schema: object(
                &[],
                vec![
                    ("agent", text("Only runs of this agent, by its id or name.")),
                    ("schedule", text("Only runs of this schedule, by its name or id.")),
                    (
                        "active",
                        json!({"type": "boolean", "description": "true: only runs that have not ended. false: only ended ones."}),
                    ),
                    ("limit", number("The maximum number of runs.", crate::agents::MAX_LISTED_EXECUTIONS)),
                ],
            ),
            read_only: true,
            idempotent: true,
            ..spec(ToolKind::ListExecutions, "list_executions")
        },
    ]
}

/// Returns the tools for schedules: create, list, pause, resume, change, delete, run and explain. To create, to resume
/// and to run is destructive, because it starts an agent.
fn schedule_specs() -> Vec<ToolSpec> {
    let schedule = |purpose: &str| ("schedule", text(&format!("The name or the id of the schedule {purpose}.")));
    vec![
        ToolSpec {
            title: "Schedule an agent".into(),
            description:
                "Runs another agent at certain times. Give exactly one of when, cron_expression, every and at.".into(),
            schema: object(
                &["agent", "input"],
                vec![
                    ("agent", text("The id or the name of the agent, as returned by list_agents.")),
                    ("input", text("The request to the agent for each run, in the user's words, without the times.")),
                    ("when", text("The times in words, such as every friday at 5pm or tomorrow at 9am.")),
                    ("cron_expression", text("5 fields such as 0 17 * * FRI, or @daily, in the user's time zone.")),
                    ("every", text("An interval such as 90m or 1h30m, counted from now.")),
                    (
                        "at",
                        text(
                            "A single date and time, in the user's time zone unless it has an offset, or words such as tomorrow 9am.",
                        ),
                    ),
                    ("start_at", text("The first possible date and time. The interval is counted from it.")),
                    ("end_at", text("The last possible date and time.")),
                    ("time_zone", text("A time zone such as Europe/Berlin. Defaults to the user's time zone.")),
                    (
                        "name",
                        bounded(
                            "The name of the schedule. Defaults to the first words of the input.",
                            1,
                            schedule::MAX_NAME,
                        ),
                    ),
                    confirmation(),
                ],
            ),
            destructive: true,
            ..spec(ToolKind::ScheduleAgent, SCHEDULE_AGENT)
        },
        ToolSpec {
            title: "List schedules".into(),
            description: "Lists the schedules with their next runs. Paused schedules are included.".into(),
            schema: object(&[], Vec::new()),
            read_only: true,
            idempotent: true,
            ..spec(ToolKind::ListSchedules, "list_schedules")
        },
        ToolSpec {
            title: "Pause a schedule".into(),
            description: "Pauses a schedule. It starts no runs until it is resumed.".into(),
            schema: object(
                &["schedule"],
                vec![schedule("to pause"), ("reason", text("The reason in a few words, if the user gave one."))],
            ),
            idempotent: true,
            ..spec(ToolKind::PauseSchedule, "pause_schedule")
        },
        ToolSpec {
            title: "Resume a schedule".into(),
            description: "Resumes a paused schedule with its next occurrence from now.".into(),
            schema: object(&["schedule"], vec![schedule("to resume"), confirmation()]),
            idempotent: true,
            destructive: true,
            ..spec(ToolKind::ResumeSchedule, RESUME_SCHEDULE)
        },
        ToolSpec {
            title: "Change a schedule".into(),
            description: "Changes the name, the input or the times of a schedule. Omitted fields stay. New times \
                          replace all old ones: give exactly one of when, cron_expression, every and at."
                .into(),
            schema: object(
                &["schedule"],
                vec![
                    schedule("to change"),
                    ("name", bounded("The new name.", 1, schedule::MAX_NAME)),
                    ("input", text("The new request to the agent.")),
                    ("when", text("The new times in words, such as every friday at 5pm or tomorrow at 9am.")),
                    (
                        "cron_expression",
                        text("5 fields such as 0 17 * * FRI, or @daily, in the time zone of the schedule."),
                    ),
                    ("every", text("An interval such as 90m or 1h30m.")),
                    ("at", text("A single date and time, in the time zone of the schedule unless it has an offset.")),
                    ("start_at", text("The first possible date and time. The interval is counted from it.")),
                    ("end_at", text("The last possible date and time.")),
                    ("time_zone", text("A time zone such as Europe/Berlin.")),
                    confirmation(),
                ],
            ),
            idempotent: true,
            // The runs of the old times do not take place.
            destructive: true,
            ..spec(ToolKind::UpdateSchedule, UPDATE_SCHEDULE)
        },
        ToolSpec {
            title: "Delete a schedule".into(),
            description:
                "Deletes a schedule with its history. It cannot be undone. The user is asked to confirm first.".into(),
            schema: object(&["schedule"], vec![schedule("to delete"), confirmation()]),
            destructive: true,
            ..spec(ToolKind::DeleteSchedule, DELETE_SCHEDULE)
        },
        ToolSpec {
            title: "Run a schedule now".into(),
            description: "Starts a run of a schedule now, also if it is paused. Its next run does not change.".into(),
            schema: object(&["schedule"], vec![schedule("to run"), confirmation()]),
            destructive: true,
            ..spec(ToolKind::RunSchedule, RUN_SCHEDULE)
        },
        ToolSpec {
            title: "Explain a schedule".into(),
            description: "Explains if the last run of a schedule before a time took place, or why not.".into(),
            schema: object(
                &["schedule"],
                vec![
                    schedule("to explain"),
                    (
                        "at",
                        text("The date and time, in the user's time zone unless it has an offset. Defaults to now."),
                    ),
                ],
            ),
            read_only: true,
            idempotent: true,
            ..spec(ToolKind::ExplainSchedule, "explain_schedule")
        },
    ]
}

/// Returns a specification with a kind and a name. Its texts and its schema are empty, and its flags are false.
pub(crate) fn spec(kind: ToolKind, name: &'static str) -> ToolSpec {
    ToolSpec {
        kind: Some(kind),
        name: name.into(),
        title: "".into(),
        description: "".into(),
        schema: Map::new(),
        read_only: false,
        destructive: false,
        idempotent: false,
        external: None,
    }
}

pub(crate) type Property = (&'static str, Value);

/// Returns the arguments for the fields of a task, except the status. `title` is the description of the argument
/// `title`.
pub(crate) fn attributes(title: &str) -> Vec<Property> {
    vec![
        ("title", bounded(title, 1, task::MAX_TITLE_CHARS)),
        ("description", bounded("Details of the task.", 0, task::MAX_DESCRIPTION_CHARS)),
        (
            "due_date",
            text(
                "ISO 8601: a date, or a date and time in the user's time zone unless it has an offset. Or words such as friday 3pm.",
            ),
        ),
        ("priority", choice("The priority. Defaults to medium.", &["low", "medium", "high"])),
        ("recurrence", text("An RFC 5545 RRULE such as FREQ=WEEKLY;BYDAY=MO, or words such as every monday.")),
        ("tags", list("Labels that group tasks.", task::MAX_TAGS)),
    ]
}

/// Returns the arguments that select tasks: `status`, `priority`, `due_date_filter`, `tags` and `query`.
fn filters() -> Vec<Property> {
    vec![
        ("status", choice("Only tasks with this status.", &["pending", "completed", "all"])),
        ("priority", choice("Only tasks of this priority.", &["low", "medium", "high"])),
        (
            "due_date_filter",
            text(
                "Only tasks due then: today, tomorrow, this_week, overdue, an ISO 8601 date, days such as 2026-01-01..2026-01-31, or words such as friday or next week.",
            ),
        ),
        ("tags", list("Only tasks that have all these tags.", task::MAX_TAGS)),
        ("query", bounded("Only tasks with this text in title or description.", 1, task::MAX_TITLE_CHARS)),
    ]
}

fn paging() -> Vec<Property> {
    vec![
        (
            "sort",
            choice(
                "The order: due (earliest first, without a date last), priority or created. Defaults to due.",
                &["due", "priority", "created"],
            ),
        ),
        ("limit", number("The maximum number of tasks. Defaults to 100.", crate::tasks::MAX_LIST_LIMIT)),
        ("cursor", text("next_cursor of the previous answer, to get the following tasks.")),
    ]
}

fn ids_argument(name: &'static str) -> Property {
    let description =
        "The ids of the tasks, taken from the list of tasks. If omitted, all tasks that match the filters.";
    (name, list(description, crate::tasks::MAX_BULK_TASKS))
}

pub(crate) fn confirmation() -> Property {
    (
        "confirmation",
        json!({"type": "boolean", "description": "true only if the user has confirmed exactly this call."}),
    )
}

/// Returns the schema of an object with these properties, in their order. Other properties are not allowed.
pub(crate) fn object(required: &[&str], properties: Vec<Property>) -> Map<String, Value> {
    let properties: Map<_, _> = properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("required".to_owned(), required.into());
    schema.insert("additionalProperties".to_owned(), false.into());
    schema
}

pub(crate) fn text(description: &str) -> Value {
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

    /// Collects the keys of a schema at any depth.
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
    fn schemas_use_only_features_of_every_provider() {
        // AGENT-3, TASK-1
        for spec in
            built_in(ToolNames::Task, ToolSet::Schedules).iter().chain(built_in(ToolNames::Todo, ToolSet::Schedules))
        {
            let schema = Value::Object(spec.schema.clone());
            let mut found = Vec::new();
            keys(&schema, &mut found);
            for unsupported in ["$ref", "$defs", "anyOf", "oneOf", "allOf", "not", "user_id", "format"] {
                assert!(!found.iter().any(|key| key == unsupported), "{}: {unsupported}", spec.name);
            }
            for (name, property) in schema["properties"].as_object().unwrap() {
                assert!(property["type"].is_string(), "{}.{name}", spec.name);
                assert!(property["description"].is_string(), "{}.{name}", spec.name);
            }
            for required in schema["required"].as_array().unwrap() {
                assert!(spec.has_argument(required.as_str().unwrap()), "{}", spec.name);
            }
        }
    }

    #[test]
    fn tool_names_match_the_seeds() {
        // TASK-1, TASK-2
        let names = |set| task_tools(set).iter().map(|spec| &*spec.name).collect::<Vec<_>>();
        for name in ["add_task", "list_tasks", "complete_task", "delete_task", "update_task", "schedule_reminder"] {
            assert!(names(ToolNames::Task).contains(&name), "{name}");
        }
        for name in ["create_todo", "list_todos", "update_todo", "delete_todo"] {
            assert!(names(ToolNames::Todo).contains(&name), "{name}");
        }
        assert!(names(ToolNames::Todo).iter().all(|name| !name.ends_with("_task")));
    }
}
