//! The result of parsing an utterance: its commands, each with an intent and slots.

use jiff::civil::{Date, DateTime, Time};
use model::task::{Priority, TaskStatus};

/// The purpose of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intent {
    CreateTask,
    ListTasks,
    CompleteTask,
    DeleteTask,
    UpdateTask,
    ScheduleReminder,
    /// Moves a reminder from the time it rang: "snooze it for 10 minutes". The slots are `target` with `when` or
    /// `shift`.
    SnoozeReminder,
    /// Removes a reminder and keeps its task: "cancel the reminder for the dentist". The slot is `target`.
    CancelReminder,
    /// Gives a reminder another time: "move the reminder to 5pm". The slots are those of [`Self::SnoozeReminder`], or
    /// `before`.
    UpdateReminder,
    /// Lists the reminders: "what are my reminders?".
    ListReminders,
    Undo,
    /// Never assigned during parsing. [`ParsedCommand::effective_intent`] returns it if a slot is missing.
    ClarificationNeeded,
    /// The clause contains no request about tasks.
    Unknown,
}

impl Intent {
    /// Returns the name of the intent in S4's JSON. S4 knows no reminders of their own, so these intents have the name
    /// of the corresponding one for tasks.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CreateTask => "create_task",
            Self::ListTasks | Self::ListReminders => "list_tasks",
            Self::CompleteTask => "complete_task",
            Self::DeleteTask | Self::CancelReminder => "delete_task",
            Self::UpdateTask | Self::SnoozeReminder | Self::UpdateReminder => "update_task",
            Self::ScheduleReminder => "schedule_reminder",
            Self::Undo => "undo",
            Self::ClarificationNeeded => "clarification_needed",
            Self::Unknown => "unknown",
        }
    }
}

/// The commands of one utterance, in order. Contains at least one command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedUtterance {
    pub commands: Vec<ParsedCommand>,
    /// True if quoted or pasted text was skipped: a code fence, `<tags>`, lines with ">" or a speaker. It contains no
    /// commands.
    pub skipped_quoted_text: bool,
    /// True for a long message with few certain commands. The caller asks once before it acts.
    pub is_uncertain: bool,
}

/// One command. Fields that the intent does not use are empty.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedCommand {
    pub intent: Intent,
    /// Probability that the user meant this command, between 0 and 1. During parsing it holds the confidence of the
    /// rules.
    pub confidence: f64,
    /// True if the utterance does not ask for the command explicitly: "buy milk".
    pub implied: bool,
    /// The title of the new task, or the new title for an update.
    pub title: Option<String>,
    pub description: Option<String>,
    /// The due date of the new task, the new due date for an update, or the time of a reminder. For a list with the
    /// filter "tomorrow" it is that day.
    pub when: Option<DayOrTime>,
    /// For an update: the distance by which the due date moves.
    pub shift: Option<DateShift>,
    /// Set for an update or a reminder that names a time of day without a date. `when` is then the next occurrence.
    pub time_of_day: Option<Time>,
    /// The repetition of the task or the reminder, as an RRULE.
    pub recurrence: Option<String>,
    /// True if the user asks for a notification ("remind me …", "ping me …") and not only for a task.
    pub asks_reminder: bool,
    /// True for "remind me about X" and "remind me of X". `title` then may name an existing task.
    pub is_about: bool,
    /// The distance of a reminder before an event: "2 hours before".
    pub before: Option<LeadTime>,
    /// The event of `before`, if it is not the task itself: "wax the skis two days before the ski trip".
    pub before_target: Option<TaskTarget>,
    pub priority: Option<Priority>,
    pub tags: Vec<String>,
    /// For an update: the operation on the tags.
    pub tag_operation: TagOperation,
    /// For an update: true if `description` is appended to the existing description.
    pub appends_description: bool,
    /// For an update: true if `description` is one more item of the task ("add butter to the grocery task") and no note.
    pub adds_item: bool,
    /// For an update: the new status of the task.
    pub status: Option<TaskStatus>,
    /// For an update: the fields to clear ("remove the due date of …").
    pub cleared_fields: Vec<ClearableField>,
    /// The tasks that the command applies to.
    pub target: Option<TaskTarget>,
    /// Limits the tasks that a list shows, or that a bulk command applies to.
    pub filter: CommandFilter,
    /// For a repeating reminder: the interval in minutes, and the total number of reminders.
    pub repeat_interval_minutes: Option<i64>,
    pub repeat_count: Option<i64>,
    /// The slot without which the command cannot be executed. The intent stays the intended one.
    pub missing: Option<MissingSlot>,
}

impl ParsedCommand {
    /// Returns a command with an intent and empty slots.
    pub fn new(intent: Intent, confidence: f64) -> Self {
        Self {
            intent,
            confidence,
            implied: false,
            title: None,
            description: None,
            when: None,
            shift: None,
            time_of_day: None,
            recurrence: None,
            asks_reminder: false,
            is_about: false,
            before: None,
            before_target: None,
            priority: None,
            tags: Vec::new(),
            tag_operation: TagOperation::Set,
            appends_description: false,
            adds_item: false,
            status: None,
            cleared_fields: Vec::new(),
            target: None,
            filter: CommandFilter::default(),
            repeat_interval_minutes: None,
            repeat_count: None,
            missing: None,
        }
    }
}

/// A day or a point in time, as local time of the zone of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DayOrTime {
    Day(Date),
    Time(DateTime),
}

impl DayOrTime {
    /// Returns the day.
    pub fn date(self) -> Date {
        match self {
            Self::Day(date) => date,
            Self::Time(at) => at.date(),
        }
    }
}

/// A distance from the current due date of a task. Negative values are earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DateShift {
    pub months: i32,
    pub days: i32,
    pub minutes: i64,
}

/// A distance before an event, with a positive amount: "half an hour before", "the day before at 6pm".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeadTime {
    /// The number of days. It is 0 for "the morning of the trip". A week has 7 days, a month has 30.
    pub days: i32,
    /// The number of minutes. It is 0 if the distance is given in days.
    pub minutes: i64,
    /// The time of day of the reminder: 18:00 for "the evening before". Without it, a distance in days keeps the time
    /// of the event.
    pub time_of_day: Option<Time>,
}

/// The operation of an update on the tags of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagOperation {
    /// Replaces all tags.
    Set,
    /// Adds tags and keeps the existing ones.
    Add,
    /// Removes tags and keeps the remaining ones.
    Remove,
}

/// A field of a task that an update can clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClearableField {
    Description,
    Due,
    Recurrence,
    Tags,
}

impl ClearableField {
    /// Returns the name of the field in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Description => "description",
            Self::Due => "due_date",
            Self::Recurrence => "recurrence",
            Self::Tags => "tags",
        }
    }
}

/// A reference to existing tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskTarget {
    /// Words of the title, without articles and words such as "task".
    Named(String),
    /// The position in the most recent list. The first task has position 1.
    Position(usize),
    /// The last task of the most recent list.
    Last,
    /// The last tasks of the most recent list, at least two: "the last two".
    LastN(usize),
    /// The middle task of the most recent list.
    Middle,
    /// The task of the most recent list, or of two recent tasks, that was not named last: "the other one".
    Other,
    /// The tasks of the most recent list that were not named yet: "the rest", "the others".
    Rest,
    /// A pronoun or a bare noun: "it", "that one", "the task".
    It,
    /// A plural pronoun: "them", "those", "all of them". These are the tasks of the most recent list, never all tasks.
    Them,
    /// "both": the two tasks of the most recent list.
    Both,
    /// Every task that matches the filter.
    All,
    /// Several references ("the first and the third", "milk and bread").
    Several(Vec<TaskTarget>),
}

/// Conditions that tasks of a command must meet. An empty filter matches all tasks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandFilter {
    /// `None` if the utterance does not name a status.
    pub status: Option<StatusFilter>,
    pub priority: Option<Priority>,
    pub due: Option<DueFilter>,
    pub tags: Vec<String>,
    /// Text to search for ("do I have anything about the dentist?").
    pub text: Option<String>,
    /// True if the utterance names a condition that a filter cannot express ("without a due date", "except …").
    pub unsupported: bool,
}

/// The status that listed tasks must have. `All` includes every status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusFilter {
    Pending,
    Completed,
    All,
}

/// The due date that listed tasks must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueFilter {
    Today,
    Tomorrow,
    /// The week that includes today.
    ThisWeek,
    Overdue,
    /// A day other than today and tomorrow.
    Day(Date),
    /// From the first day to the last, both included. `None` is an open end.
    Between(Option<Date>, Option<Date>),
}

impl DueFilter {
    /// Returns a date range in the format of the tools: "2026-01-01..2026-01-31". An open end is empty.
    pub fn format_range(first: Option<Date>, last: Option<Date>) -> String {
        let text = |day: Option<Date>| day.map(|day| day.to_string()).unwrap_or_default();
        format!("{}..{}", text(first), text(last))
    }
}

/// A slot that the command needs and the utterance does not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingSlot {
    /// The title of the new task.
    Title,
    /// The task that the command applies to.
    Target,
    /// The change that an update makes.
    Change,
    /// The time of a reminder.
    Time,
}

impl MissingSlot {
    /// Returns the question that asks the user for the slot.
    pub fn question(self) -> String {
        format!("Could you provide more details about {}?", self.description())
    }

    /// Returns the detail to ask for. It completes the sentence "Could you provide more details about …?".
    pub fn description(self) -> &'static str {
        match self {
            Self::Title => "what the task is",
            Self::Target => "which task you mean",
            Self::Change => "what you'd like to change",
            Self::Time => "when I should remind you",
        }
    }
}
