//! What was read in an utterance: the commands it contains, each with its intent and the words that matter.

use jiff::civil::{Date, DateTime, Time};
use model::task::{Priority, Status};

/// What somebody wants (S4's intents, reminders, and taking back).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intent {
    CreateTask,
    ListTasks,
    CompleteTask,
    DeleteTask,
    UpdateTask,
    ScheduleReminder,
    Undo,
    ClarificationNeeded,
    Unknown,
}

impl Intent {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CreateTask => "create_task",
            Self::ListTasks => "list_tasks",
            Self::CompleteTask => "complete_task",
            Self::DeleteTask => "delete_task",
            Self::UpdateTask => "update_task",
            Self::ScheduleReminder => "schedule_reminder",
            Self::Undo => "undo",
            Self::ClarificationNeeded => "clarification_needed",
            Self::Unknown => "unknown",
        }
    }
}

/// An utterance: its commands in order, never none.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    pub commands: Vec<Command>,
}

/// One command. Fields that an intent does not use are empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    pub intent: Intent,
    /// How likely it is that this was meant, between 0 and 1. While it is being read: how sure the rules are.
    pub confidence: f64,
    /// Whether nobody asked for it in so many words: "buy milk".
    pub implied: bool,
    /// The new task's title; for an update the title it is to get.
    pub title: Option<String>,
    pub description: Option<String>,
    /// When the new task is due, what an update changes that to, when a reminder is to fire, or the day that a list's
    /// filter means by "tomorrow".
    pub when: Option<When>,
    /// For an update: how far its date moves from where it is.
    pub shift: Option<Shift>,
    /// For an update or a reminder that says only a time of day; `when` is then its next occurrence.
    pub clock: Option<Time>,
    /// An RRULE.
    pub recurrence: Option<String>,
    pub priority: Option<Priority>,
    pub tags: Vec<String>,
    /// For an update: what is done with the tags.
    pub tagging: Tagging,
    /// For an update: the description is added to the one there is.
    pub adds: bool,
    /// For an update: reopening or completing.
    pub status: Option<Status>,
    /// For an update: fields to empty ("remove the due date of …").
    pub clear: Vec<Field>,
    /// Which tasks a command is about.
    pub target: Option<Target>,
    /// Which tasks a list shows, or a command about several means.
    pub filter: Filter,
    /// For a reminder that repeats: minutes between, and how often in total.
    pub repeat_interval_minutes: Option<i64>,
    pub repeat_count: Option<i64>,
    /// What must be known before this can be carried out; the intent says what it would be.
    pub missing: Option<Missing>,
}

impl Command {
    /// A command of which nothing but the intent is known.
    pub fn new(intent: Intent, confidence: f64) -> Self {
        Self {
            intent,
            confidence,
            implied: false,
            title: None,
            description: None,
            when: None,
            shift: None,
            clock: None,
            recurrence: None,
            priority: None,
            tags: Vec::new(),
            tagging: Tagging::Set,
            adds: false,
            status: None,
            clear: Vec::new(),
            target: None,
            filter: Filter::default(),
            repeat_interval_minutes: None,
            repeat_count: None,
            missing: None,
        }
    }
}

/// A point in time as people mean it, on the wall clock of the zone it was read in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Day(Date),
    Time(DateTime),
}

impl When {
    pub fn date(self) -> Date {
        match self {
            Self::Day(date) => date,
            Self::Time(at) => at.date(),
        }
    }
}

/// A move relative to the date that a task has; negative is earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shift {
    pub months: i32,
    pub days: i32,
    pub minutes: i64,
}

/// What an update does with tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tagging {
    /// These, and no others.
    Set,
    /// These as well.
    Add,
    /// Not these any more.
    Remove,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Description,
    Due,
    Recurrence,
    Tags,
}

impl Field {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Description => "description",
            Self::Due => "due_date",
            Self::Recurrence => "recurrence",
            Self::Tags => "tags",
        }
    }
}

/// How an existing task is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// By words of its title, without "the", "task" and their like.
    Named(String),
    /// By its place in the list shown last: 1 is the first.
    Position(usize),
    /// The last one of the list shown last.
    Last,
    /// "it", "that one", "the task".
    It,
    /// "both": the two of the list shown last.
    Both,
    /// Every task that the filter matches.
    All,
    /// Several, each named in one of the ways above ("the first and the third", "milk and bread").
    Several(Vec<Target>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// `None`: nothing was said about it.
    pub status: Option<StatusFilter>,
    pub priority: Option<Priority>,
    pub due: Option<DueFilter>,
    pub tags: Vec<String>,
    /// Words to look for ("do I have anything about the dentist?").
    pub text: Option<String>,
    /// Whether a limit was named that cannot be expressed here ("without a due date", "except …").
    pub unsupported: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusFilter {
    Pending,
    Completed,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueFilter {
    Today,
    Tomorrow,
    ThisWeek,
    Overdue,
    Day(Date),
    /// From the first of these days to the last; an end that is left out is open.
    Between(Option<Date>, Option<Date>),
}

impl DueFilter {
    /// The days as the tools write them: "2026-01-01..2026-01-31".
    pub fn stretch(first: Option<Date>, last: Option<Date>) -> String {
        let text = |day: Option<Date>| day.map(|day| day.to_string()).unwrap_or_default();
        format!("{}..{}", text(first), text(last))
    }
}

/// What is missing; [`Missing::question`] asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// What the new task is.
    Title,
    /// Which task is meant.
    Target,
    /// What is to change.
    Change,
    /// When to remind.
    Time,
}

impl Missing {
    pub fn question(self) -> String {
        format!("Could you provide more details about {}?", self.what())
    }

    /// What the user should say more about, to follow "Could you provide more details about".
    pub fn what(self) -> &'static str {
        match self {
            Self::Title => "what the task is",
            Self::Target => "which task you mean",
            Self::Change => "what you'd like to change",
            Self::Time => "when I should remind you",
        }
    }
}
