//! Tasks: what they are, how one is created and changed, what follows one that repeats, and which of them a list shows.

mod changed;
mod next;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

pub use self::changed::{ChangeKind, Changed, Undone};
use crate::due::{Due, Period};
use crate::invalid::Checks;
use crate::json::present;
use crate::{Clock, Invalid, User, recurrence, text};

pub const MAX_TITLE: usize = 200;
pub const MAX_DESCRIPTION: usize = 1000;
pub const MAX_TAGS: usize = 20;
pub const MAX_TAG: usize = 50;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub id: Uuid,
    #[schema(examples("pay rent"))]
    pub title: String,
    pub description: Option<String>,
    pub status: Status,
    pub priority: Priority,
    /// `YYYY-MM-DD`, or RFC 3339 with offset when a time of day is meant.
    #[schema(value_type = Option<String>, examples("2026-01-31"))]
    pub due_date: Option<Due>,
    /// An RFC 5545 RRULE.
    #[schema(examples("FREQ=MONTHLY;BYMONTHDAY=1"))]
    pub recurrence: Option<String>,
    pub tags: Vec<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub completed_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TaskStatus)]
pub enum Status {
    Pending,
    Completed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TaskPriority)]
pub enum Priority {
    Low,
    #[default]
    Medium,
    High,
}

/// A choice among words that is read in any case.
trait Word: Sized + Copy + 'static {
    const ALL: &'static [(&'static str, Self)];
    const RULE: &'static str;

    fn read(field: &str, text: &str) -> Result<Self, Invalid> {
        let found = Self::ALL.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim()));
        found.map(|(_, value)| *value).ok_or_else(|| Invalid::one(field, "one_of", Self::RULE))
    }
}

impl Word for Status {
    const ALL: &'static [(&'static str, Self)] = &[("pending", Self::Pending), ("completed", Self::Completed)];
    const RULE: &'static str = "must be pending or completed";
}

impl Word for Priority {
    const ALL: &'static [(&'static str, Self)] = &[("low", Self::Low), ("medium", Self::Medium), ("high", Self::High)];
    const RULE: &'static str = "must be low, medium or high";
}

impl Status {
    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        Self::read(field, text)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Completed => "completed",
        }
    }
}

impl Priority {
    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        Self::read(field, text)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// The limits a deployment may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub max_title_chars: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_title_chars: MAX_TITLE }
    }
}

impl Task {
    /// Holds a task that was made elsewhere to the rules of those made here.
    pub fn check(self, limits: Limits) -> Result<Self, Invalid> {
        let mut checks = Checks::default();
        let title = checks.take(text::required_line("title", &self.title, limits.max_title_chars));
        let description = checks.take(description(self.description.as_deref()));
        let recurrence = checks.take(recurrence_of(self.recurrence.as_deref()));
        let tags = checks.take(tags(&self.tags));
        let completed_at = (self.status == Status::Completed).then_some(self.completed_at.unwrap_or(self.updated_at));
        let task = (|| {
            let title = title?;
            let description = description?;
            let recurrence = recurrence?;
            let tags = tags?;
            Some(Self { title, description, recurrence, tags, completed_at, ..self })
        })();
        checks.finish(task)
    }
}

/// A request for a new task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TaskDraft)]
pub struct Draft {
    #[schema(min_length = 1, max_length = 200, examples("pay rent"))]
    pub title: String,
    #[schema(max_length = 1000)]
    pub description: Option<String>,
    /// `medium` where it is not given.
    #[schema(value_type = Option<Priority>, examples("high"))]
    pub priority: Option<String>,
    /// A date, RFC 3339, or a date and time in the user's zone.
    #[schema(examples("2026-01-31"))]
    pub due_date: Option<String>,
    /// An RFC 5545 RRULE.
    #[schema(examples("FREQ=MONTHLY;BYMONTHDAY=1"))]
    pub recurrence: Option<String>,
    #[schema(max_items = 20, examples(json!(["home"])))]
    pub tags: Option<Vec<String>>,
}

impl Draft {
    /// The task it describes, new and pending.
    pub fn check(self, limits: Limits, clock: &Clock, user: &User) -> Result<Task, Invalid> {
        let mut checks = Checks::default();
        let title = checks.take(text::required_line("title", &self.title, limits.max_title_chars));
        let description = checks.take(description(self.description.as_deref()));
        let priority = checks.take(self.priority.map_or(Ok(Priority::default()), |p| Priority::parse("priority", &p)));
        let due_date = checks.take(due_date(self.due_date.as_deref(), &user.time_zone));
        let recurrence = checks.take(recurrence_of(self.recurrence.as_deref()));
        let tags = checks.take(tags(self.tags.as_deref().unwrap_or_default()));
        let now = clock.now();
        let task = (|| {
            Some(Task {
                id: clock.id(),
                title: title?,
                description: description?,
                status: Status::Pending,
                priority: priority?,
                due_date: due_date?,
                recurrence: recurrence?,
                tags: tags?,
                created_at: now,
                updated_at: now,
                completed_at: None,
            })
        })();
        checks.finish(task)
    }
}

/// Changes to a task: absent leaves a field as it is, `null` empties it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TaskPatch)]
pub struct Patch {
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, min_length = 1, max_length = 200)]
    pub title: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, max_length = 1000)]
    pub description: Option<Option<String>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Status, required = false)]
    pub status: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Priority, required = false)]
    pub priority: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, examples("2026-01-31"))]
    pub due_date: Option<Option<String>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub recurrence: Option<Option<String>>,
    /// Replaces all tags.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<String>, required = false, max_items = 20)]
    pub tags: Option<Vec<String>>,
}

/// A [`Patch`] whose every value is valid.
#[derive(Clone, Debug, Default)]
pub struct Change {
    title: Option<String>,
    description: Option<Option<String>>,
    status: Option<Status>,
    priority: Option<Priority>,
    due_date: Option<Option<Due>>,
    recurrence: Option<Option<String>>,
    tags: Option<Vec<String>>,
}

impl Patch {
    pub fn check(self, limits: Limits, user: &User) -> Result<Change, Invalid> {
        let mut checks = Checks::default();
        if self.is_empty() {
            let message = "must name at least one of title, description, status, priority, due_date, recurrence, tags";
            checks.fail("body", "min_fields", message);
        }
        let zone = &user.time_zone;
        let change = Change {
            title: self
                .title
                .and_then(|title| checks.take(text::required_line("title", &title, limits.max_title_chars))),
            description: self.description.and_then(|text| checks.take(description(text.as_deref()))),
            status: self.status.and_then(|word| checks.take(Status::parse("status", &word))),
            priority: self.priority.and_then(|word| checks.take(Priority::parse("priority", &word))),
            due_date: self.due_date.and_then(|text| checks.take(due_date(text.as_deref(), zone))),
            recurrence: self.recurrence.and_then(|rule| checks.take(recurrence_of(rule.as_deref()))),
            tags: self.tags.and_then(|list| checks.take(tags(&list))),
        };
        checks.finish(Some(change))
    }

    fn is_empty(&self) -> bool {
        let Self { title, description, status, priority, due_date, recurrence, tags } = self;
        title.is_none()
            && description.is_none()
            && status.is_none()
            && priority.is_none()
            && due_date.is_none()
            && recurrence.is_none()
            && tags.is_none()
    }
}

impl Change {
    /// The change that completes a task.
    pub fn complete() -> Self {
        Self { status: Some(Status::Completed), ..Self::default() }
    }

    /// The task after the change; the same task, times included, where the change says nothing new.
    pub fn apply(&self, task: &Task, now: Timestamp) -> Task {
        let mut next = task.clone();
        next.title = self.title.clone().unwrap_or(next.title);
        next.description = self.description.clone().unwrap_or(next.description);
        next.priority = self.priority.unwrap_or(next.priority);
        next.due_date = self.due_date.unwrap_or(next.due_date);
        next.recurrence = self.recurrence.clone().unwrap_or(next.recurrence);
        next.tags = self.tags.clone().unwrap_or(next.tags);
        next.status = self.status.unwrap_or(next.status);
        if next.status != task.status {
            next.completed_at = (next.status == Status::Completed).then_some(now);
        }
        if next != *task {
            next.updated_at = now;
        }
        next
    }
}

/// Which tasks a list shows.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// `None` shows all.
    pub status: Option<Status>,
    pub priority: Option<Priority>,
    pub due: Option<Period>,
    /// All of them, in any case.
    pub tags: Vec<String>,
    /// Words to find in title and description.
    pub text: Option<String>,
    /// A beginning or an end of the id, or a part of the title: what people type to name a task.
    pub reference: Option<String>,
}

/// A [`Filter`] as it is written in a query string.
#[derive(Clone, Debug, Default)]
pub struct FilterDraft<'a> {
    pub status: Option<&'a str>,
    pub priority: Option<&'a str>,
    pub due: Option<&'a str>,
    pub tags: &'a [String],
    pub q: Option<&'a str>,
    pub reference: Option<&'a str>,
}

impl FilterDraft<'_> {
    pub fn check(&self, now: Timestamp, user: &User) -> Result<Filter, Invalid> {
        let mut checks = Checks::default();
        let status = match self.status {
            None => Some(Status::Pending),
            Some(word) if word.eq_ignore_ascii_case("all") => None,
            Some(word) => checks.take(Status::parse("status", word).map_err(|mut invalid| {
                invalid.violations[0].message = "must be pending, completed or all".to_owned();
                invalid
            })),
        };
        let filter = Filter {
            status,
            priority: self.priority.and_then(|word| checks.take(Priority::parse("priority", word))),
            due: self.due.and_then(|text| checks.take(Period::parse("due", text, now, &user.time_zone))),
            tags: checks.take(tags(self.tags)).unwrap_or_default(),
            text: self.q.and_then(|q| checks.take(text::required_line("q", q, MAX_TITLE))),
            reference: self.reference.and_then(|r| checks.take(text::required_line("ref", r, MAX_TITLE))),
        };
        checks.finish(Some(filter))
    }
}

fn description(text: Option<&str>) -> Result<Option<String>, Invalid> {
    text.map_or(Ok(None), |text| text::optional("description", text, MAX_DESCRIPTION))
}

fn due_date(text: Option<&str>, zone: &TimeZone) -> Result<Option<Due>, Invalid> {
    text.map(|text| Due::parse("due_date", text, zone)).transpose()
}

fn recurrence_of(rule: Option<&str>) -> Result<Option<String>, Invalid> {
    rule.map(|rule| recurrence::parse("recurrence", rule)).transpose()
}

/// Cleaned, without a leading `#`, each only once whatever its case.
fn tags(list: &[String]) -> Result<Vec<String>, Invalid> {
    let mut checks = Checks::default();
    let mut tags: Vec<String> = Vec::new();
    if list.len() > MAX_TAGS {
        return Err(Invalid::one(
            "tags",
            "max_items",
            format!("must have at most {MAX_TAGS} entries, has {}", list.len()),
        ));
    }
    for (i, tag) in list.iter().enumerate() {
        if let Some(tag) = checks.take(tag_name(&format!("tags[{i}]"), tag))
            && !tags.iter().any(|known| known.to_lowercase() == tag.to_lowercase())
        {
            tags.push(tag);
        }
    }
    checks.finish(Some(tags))
}

fn tag_name(field: &str, tag: &str) -> Result<String, Invalid> {
    text::required_line(field, tag.trim().trim_start_matches('#'), MAX_TAG)
}

#[cfg(test)]
mod tests;
