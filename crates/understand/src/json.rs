//! Serializes a parsed utterance as `adjutant understand` prints it: intent, confidence, parameters and question of
//! S4.

use std::borrow::Cow;
use std::fmt;

use model::task::{Priority, TaskStatus};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::parsed::{
    ClearableField, CommandFilter, DayOrTime, DueFilter, Intent, MissingSlot, ParsedCommand, ParsedUtterance,
    StatusFilter, TagOperation, TaskTarget,
};

/// Serializes the first command at the top level. Several commands also appear under `commands`.
impl Serialize for ParsedUtterance {
    /// Writes `intent`, `confidence`, `extracted_params` and `clarification_question` of the first command. The intent
    /// is [`ParsedCommand::effective_intent`], the question `null` if no slot is missing. Adds `commands` if there are
    /// several; it contains all of them. An utterance without commands is written as unknown with confidence 0. Fails
    /// only if the serializer fails.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let several = self.commands.len() > 1;
        let mut shape = serializer.serialize_struct("Reading", 4 + usize::from(several))?;
        match self.commands.first() {
            Some(first) => first.serialize_fields(&mut shape)?,
            None => ParsedCommand::new(Intent::Unknown, 0.0).serialize_fields(&mut shape)?,
        }
        if several {
            shape.serialize_field("commands", &self.commands)?;
        }
        shape.end()
    }
}

impl Serialize for ParsedCommand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shape = serializer.serialize_struct("Command", 4)?;
        self.serialize_fields(&mut shape)?;
        shape.end()
    }
}

impl ParsedCommand {
    fn serialize_fields<S: SerializeStruct>(&self, shape: &mut S) -> Result<(), S::Error> {
        shape.serialize_field("intent", self.effective_intent().as_str())?;
        shape.serialize_field("confidence", &self.confidence)?;
        shape.serialize_field("extracted_params", &ExtractedParams::from_command(self))?;
        shape.serialize_field("clarification_question", &self.missing.map(MissingSlot::question))
    }

    /// Returns the intent. It is [`Intent::ClarificationNeeded`] if the title or the target is missing, unless the
    /// filter is unsupported. A missing change or time does not matter.
    pub fn effective_intent(&self) -> Intent {
        match self.missing {
            Some(MissingSlot::Title | MissingSlot::Target) if !self.filter.unsupported => Intent::ClarificationNeeded,
            _ => self.intent,
        }
    }

    /// Returns the name or the position of the target, or `None` if the command has no target. A position is `#2`,
    /// several targets are joined with "and". For all tasks, it is the text of the filter or "all".
    pub fn target_text(&self) -> Option<Cow<'_, str>> {
        match self.target.as_ref()? {
            TaskTarget::All => self.filter.text.as_deref().map(Cow::Borrowed).or(Some(Cow::Borrowed("all"))),
            target => Some(target_words(target)),
        }
    }
}

impl ParsedCommand {
    /// Returns the conditions of the filter as text, one for each item: `status: pending`. The order is status,
    /// priority, due, tags, text. Tags are joined with spaces. Conditions without a value are omitted, so the list can
    /// be empty. `unsupported` is not included.
    pub fn filter_summary(&self) -> Vec<String> {
        let FilterParams { status, priority, due_date_filter, tags, text } =
            FilterParams::from_filter(&self.filter, self.when);
        let fields = [
            ("status", status.map(Cow::Borrowed)),
            ("priority", priority.map(Cow::Borrowed)),
            ("due", due_date_filter),
            ("tags", Some(Cow::Owned(tags.join(" ")))),
            ("text", text.map(Cow::Borrowed)),
        ];
        let describe =
            |(name, value): (&str, Option<Cow<str>>)| Some(format!("{name}: {}", value.filter(|v| !v.is_empty())?));
        fields.into_iter().filter_map(describe).collect()
    }
}

/// The object `extracted_params`. Absent slots are `null` or empty lists.
#[derive(serde::Serialize)]
struct ExtractedParams<'a> {
    title: Option<&'a str>,
    description: Option<&'a str>,
    due_date: Option<DayOrTime>,
    recurrence: Option<&'a str>,
    priority: Option<&'static str>,
    tags: &'a [String],
    remove_tags: &'a [String],
    status: Option<&'static str>,
    clear: Vec<&'static str>,
    task_ref: Option<Cow<'a, str>>,
    filter: FilterParams<'a>,
    repeat_interval_minutes: Option<i64>,
    repeat_count: Option<i64>,
}

impl<'a> ExtractedParams<'a> {
    /// Collects the slots. The date of a list is not a due date and is omitted. Tags appear as `remove_tags` if the
    /// command removes them, else as `tags`. An added item, and the event of a reminder without a title, appear as the
    /// title. `shift`, `time_of_day` and `appends_description` are not part of the
    /// object.
    fn from_command(command: &'a ParsedCommand) -> Self {
        let removes = command.tag_operation == TagOperation::Remove;
        let added_item = command.description.as_deref().filter(|_| command.adds_item);
        let event = command.before_target.as_ref().and_then(event_name);
        Self {
            title: command.title.as_deref().or(added_item).or(event),
            description: command.description.as_deref(),
            due_date: command.when.filter(|_| !matches!(command.intent, Intent::ListTasks | Intent::ListReminders)),
            recurrence: command.recurrence.as_deref(),
            priority: command.priority.map(Priority::as_str),
            tags: if removes { &[] } else { &command.tags },
            remove_tags: if removes { &command.tags } else { &[] },
            status: command.status.map(TaskStatus::as_str),
            clear: command.cleared_fields.iter().copied().map(ClearableField::as_str).collect(),
            task_ref: command.target_text(),
            filter: FilterParams::from_filter(&command.filter, command.when),
            repeat_interval_minutes: command.repeat_interval_minutes,
            repeat_count: command.repeat_count,
        }
    }
}

/// The object `filter`. Absent conditions are `null` or empty lists.
#[derive(serde::Serialize)]
struct FilterParams<'a> {
    status: Option<&'static str>,
    priority: Option<&'static str>,
    due_date_filter: Option<Cow<'static, str>>,
    tags: &'a [String],
    text: Option<&'a str>,
}

impl<'a> FilterParams<'a> {
    /// Collects the conditions. `when` is the date of the command; it gives the date of "tomorrow", see
    /// [`due_filter_text`]. `unsupported` is not part of the object.
    fn from_filter(filter: &'a CommandFilter, when: Option<DayOrTime>) -> Self {
        Self {
            status: filter.status.map(StatusFilter::as_str),
            priority: filter.priority.map(Priority::as_str),
            due_date_filter: filter.due.map(|due| due_filter_text(due, when)),
            tags: &filter.tags,
            text: filter.text.as_deref(),
        }
    }
}

impl StatusFilter {
    /// Returns the name of the filter in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Completed => "completed",
            Self::All => "all",
        }
    }
}

impl Serialize for DayOrTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Formats as `2025-12-22` or `2025-12-22T15:00:00`.
impl fmt::Display for DayOrTime {
    /// Writes the day as `2025-12-22`, or the time as `2025-12-22T15:00:00` without a zone and fractions of a second.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Day(date) => write!(f, "{date}"),
            Self::Time(at) => {
                let time = at.time();
                write!(f, "{}T{:02}:{:02}:{:02}", at.date(), time.hour(), time.minute(), time.second())
            }
        }
    }
}

/// Returns the name of the event of a lead time. It stands for the title of a reminder without one: "remind me an hour
/// before the dentist".
fn event_name(event: &TaskTarget) -> Option<&str> {
    match event {
        TaskTarget::Named(name) => Some(name),
        _ => None,
    }
}

/// Returns the target as text: its name, `#2` for a position, or a word such as "last". Several targets are joined with
/// "and".
fn target_words(target: &TaskTarget) -> Cow<'_, str> {
    match target {
        TaskTarget::Named(name) => Cow::Borrowed(name),
        TaskTarget::Position(position) => Cow::Owned(format!("#{position}")),
        TaskTarget::Last => Cow::Borrowed("last"),
        TaskTarget::It => Cow::Borrowed("it"),
        TaskTarget::LastN(n) => Cow::Owned(format!("last {n}")),
        TaskTarget::Middle => Cow::Borrowed("middle"),
        TaskTarget::Other => Cow::Borrowed("other"),
        TaskTarget::Rest => Cow::Borrowed("rest"),
        TaskTarget::Them => Cow::Borrowed("them"),
        TaskTarget::Both => Cow::Borrowed("both"),
        TaskTarget::All => Cow::Borrowed("all"),
        TaskTarget::Several(targets) => Cow::Owned(targets.iter().map(target_words).collect::<Vec<_>>().join(" and ")),
    }
}

/// Returns the due date filter in the format of S4: a name, a date, or a range such as `2025-12-01..2025-12-07`. An
/// open end of a range is empty. The names are `today`, `this_week`, `overdue` and `tomorrow`. "tomorrow" becomes its
/// date if `when` is a day.
fn due_filter_text(due: DueFilter, when: Option<DayOrTime>) -> Cow<'static, str> {
    match (due, when) {
        (DueFilter::Today, _) => Cow::Borrowed("today"),
        (DueFilter::ThisWeek, _) => Cow::Borrowed("this_week"),
        (DueFilter::Overdue, _) => Cow::Borrowed("overdue"),
        (DueFilter::Day(date), _) => Cow::Owned(date.to_string()),
        (DueFilter::Between(first, last), _) => Cow::Owned(DueFilter::format_range(first, last)),
        // The command contains the date of "tomorrow".
        (DueFilter::Tomorrow, Some(DayOrTime::Day(date))) => Cow::Owned(date.to_string()),
        (DueFilter::Tomorrow, _) => Cow::Borrowed("tomorrow"),
    }
}
