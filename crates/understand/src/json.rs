//! A reading in the shape that `adjutant understand` prints: S4's intent, confidence, parameters and question.

use std::borrow::Cow;
use std::fmt;

use model::task::{Priority, Status};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::reading::{
    Command, DueFilter, Field, Filter, Intent, Missing, Reading, StatusFilter, Tagging, Target, When,
};

/// The first command at the top level; with several, all of them under `commands`.
impl Serialize for Reading {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let several = self.commands.len() > 1;
        let mut shape = serializer.serialize_struct("Reading", 4 + usize::from(several))?;
        match self.commands.first() {
            Some(first) => first.write(&mut shape)?,
            None => Command::new(Intent::Unknown, 0.0).write(&mut shape)?,
        }
        if several {
            shape.serialize_field("commands", &self.commands)?;
        }
        shape.end()
    }
}

impl Serialize for Command {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shape = serializer.serialize_struct("Command", 4)?;
        self.write(&mut shape)?;
        shape.end()
    }
}

impl Command {
    fn write<S: SerializeStruct>(&self, shape: &mut S) -> Result<(), S::Error> {
        shape.serialize_field("intent", self.asks().as_str())?;
        shape.serialize_field("confidence", &self.confidence)?;
        shape.serialize_field("extracted_params", &Params::of(self))?;
        shape.serialize_field("clarification_question", &self.missing.map(Missing::question))
    }

    /// The intent, but a command whose task nobody can guess is a question first.
    pub fn asks(&self) -> Intent {
        match self.missing {
            Some(Missing::Title | Missing::Target) if !self.filter.unsupported => Intent::ClarificationNeeded,
            _ => self.intent,
        }
    }

    /// The words or the place that name the task; `None` where none is named.
    pub fn reference(&self) -> Option<Cow<'_, str>> {
        match self.target.as_ref()? {
            Target::All => self.filter.text.as_deref().map(Cow::Borrowed).or(Some(Cow::Borrowed("all"))),
            target => Some(words(target)),
        }
    }
}

impl Command {
    /// What the filter asks for, one thing an item: `status: pending`.
    pub fn filter_words(&self) -> Vec<String> {
        let FilterShape { status, priority, due_date_filter, tags, text } = FilterShape::of(&self.filter, self.when);
        let fields = [
            ("status", status.map(Cow::Borrowed)),
            ("priority", priority.map(Cow::Borrowed)),
            ("due", due_date_filter),
            ("tags", Some(Cow::Owned(tags.join(" ")))),
            ("text", text.map(Cow::Borrowed)),
        ];
        let said =
            |(name, value): (&str, Option<Cow<str>>)| Some(format!("{name}: {}", value.filter(|v| !v.is_empty())?));
        fields.into_iter().filter_map(said).collect()
    }
}

#[derive(serde::Serialize)]
struct Params<'a> {
    title: Option<&'a str>,
    description: Option<&'a str>,
    due_date: Option<When>,
    recurrence: Option<&'a str>,
    priority: Option<&'static str>,
    tags: &'a [String],
    remove_tags: &'a [String],
    status: Option<&'static str>,
    clear: Vec<&'static str>,
    task_ref: Option<Cow<'a, str>>,
    filter: FilterShape<'a>,
    repeat_interval_minutes: Option<i64>,
    repeat_count: Option<i64>,
}

impl<'a> Params<'a> {
    fn of(command: &'a Command) -> Self {
        let removes = command.tagging == Tagging::Remove;
        Self {
            title: command.title.as_deref(),
            description: command.description.as_deref(),
            due_date: command.when.filter(|_| command.intent != Intent::ListTasks),
            recurrence: command.recurrence.as_deref(),
            priority: command.priority.map(Priority::as_str),
            tags: if removes { &[] } else { &command.tags },
            remove_tags: if removes { &command.tags } else { &[] },
            status: command.status.map(Status::as_str),
            clear: command.clear.iter().copied().map(Field::as_str).collect(),
            task_ref: command.reference(),
            filter: FilterShape::of(&command.filter, command.when),
            repeat_interval_minutes: command.repeat_interval_minutes,
            repeat_count: command.repeat_count,
        }
    }
}

#[derive(serde::Serialize)]
struct FilterShape<'a> {
    status: Option<&'static str>,
    priority: Option<&'static str>,
    due_date_filter: Option<Cow<'static, str>>,
    tags: &'a [String],
    text: Option<&'a str>,
}

impl<'a> FilterShape<'a> {
    fn of(filter: &'a Filter, when: Option<When>) -> Self {
        Self {
            status: filter.status.map(StatusFilter::as_str),
            priority: filter.priority.map(Priority::as_str),
            due_date_filter: filter.due.map(|due| due_filter(due, when)),
            tags: &filter.tags,
            text: filter.text.as_deref(),
        }
    }
}

impl StatusFilter {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Completed => "completed",
            Self::All => "all",
        }
    }
}

impl Serialize for When {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// `2025-12-22`, or `2025-12-22T15:00:00`.
impl fmt::Display for When {
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

fn words(target: &Target) -> Cow<'_, str> {
    match target {
        Target::Named(name) => Cow::Borrowed(name),
        Target::Position(place) => Cow::Owned(format!("#{place}")),
        Target::Last => Cow::Borrowed("last"),
        Target::It => Cow::Borrowed("it"),
        Target::Both => Cow::Borrowed("both"),
        Target::All => Cow::Borrowed("all"),
        Target::Several(targets) => Cow::Owned(targets.iter().map(words).collect::<Vec<_>>().join(" and ")),
    }
}

fn due_filter(due: DueFilter, when: Option<When>) -> Cow<'static, str> {
    match (due, when) {
        (DueFilter::Today, _) => Cow::Borrowed("today"),
        (DueFilter::ThisWeek, _) => Cow::Borrowed("this_week"),
        (DueFilter::Overdue, _) => Cow::Borrowed("overdue"),
        (DueFilter::Day(date), _) => Cow::Owned(date.to_string()),
        (DueFilter::Between(first, last), _) => Cow::Owned(DueFilter::stretch(first, last)),
        // A list carries the day its filter means.
        (DueFilter::Tomorrow, Some(When::Day(date))) => Cow::Owned(date.to_string()),
        (DueFilter::Tomorrow, _) => Cow::Borrowed("tomorrow"),
    }
}
