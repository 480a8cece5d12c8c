//! Tasks: the type, drafts and patches with their validation, the next occurrence of a recurring task, and list
//! filters.

mod change_result;
mod recurring;

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

pub use self::change_result::{ChangedTask, CreatedTask, TaskChangeKind, UndoneChange};
use crate::due::{DueDate, DuePeriod};
use crate::invalid::Checks;
use crate::json::present;
use crate::reminder::{Reminder, ReminderDraft};
use crate::{Clock, Invalid, User, recurrence, text};

pub const MAX_TITLE_CHARS: usize = 200;
pub const MAX_DESCRIPTION_CHARS: usize = 1000;
pub const MAX_TAGS: usize = 20;
pub const MAX_TAG_CHARS: usize = 50;

/// An item on a user's list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub id: Uuid,
    #[schema(examples("pay rent"))]
    pub title: String,
    pub description: Option<String>,
    pub status: TaskStatus,
    pub priority: Priority,
    /// `YYYY-MM-DD`, or RFC 3339 with an offset if the task is due at a time of day.
    #[schema(value_type = Option<String>, examples("2026-01-31"))]
    pub due_date: Option<DueDate>,
    /// An RFC 5545 RRULE.
    #[schema(examples("FREQ=MONTHLY;BYMONTHDAY=1"))]
    pub recurrence: Option<String>,
    pub tags: Vec<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub completed_at: Option<Timestamp>,
}

/// The status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    Pending,
    Completed,
}

/// The priority of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TaskPriority)]
pub enum Priority {
    Low,
    #[default]
    Medium,
    High,
}

/// An enum that is parsed without regard to case.
trait CaseInsensitive: Sized + Copy + 'static {
    const ALL: &'static [(&'static str, Self)];
    /// The message of the violation.
    const RULE: &'static str;

    /// Returns the value with this word. Case and surrounding white space are ignored. Fails with the message `RULE` if
    /// there is none.
    fn parse_any_case(field: &str, text: &str) -> Result<Self, Invalid> {
        let found = Self::ALL.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim()));
        found.map(|(_, value)| *value).ok_or_else(|| Invalid::one(field, "one_of", Self::RULE))
    }
}

impl CaseInsensitive for TaskStatus {
    const ALL: &'static [(&'static str, Self)] = &[("pending", Self::Pending), ("completed", Self::Completed)];
    const RULE: &'static str = "must be pending or completed";
}

impl CaseInsensitive for Priority {
    const ALL: &'static [(&'static str, Self)] = &[("low", Self::Low), ("medium", Self::Medium), ("high", Self::High)];
    const RULE: &'static str = "must be low, medium or high";
}

impl TaskStatus {
    /// Parses a status in any case. Fails if the text is not a status.
    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        Self::parse_any_case(field, text)
    }

    /// Returns the JSON spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Completed => "completed",
        }
    }
}

impl Priority {
    /// Parses a priority in any case. Fails if the text is not a priority.
    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        Self::parse_any_case(field, text)
    }

    /// Returns the JSON spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Limits that a deployment may configure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskLimits {
    pub max_title_chars: usize,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self { max_title_chars: MAX_TITLE_CHARS }
    }
}

impl Task {
    /// Returns the imported task with cleaned texts. A completed task without `completed_at` gets its `updated_at`; a
    /// pending task has none. Other fields stay unchanged. Fails with all violations of the rules for the title, the
    /// description, the recurrence and the tags, which are those for new tasks.
    pub fn check(self, limits: TaskLimits) -> Result<Self, Invalid> {
        let mut checks = Checks::default();
        let title = checks.take(text::required_line("title", &self.title, limits.max_title_chars));
        let description = checks.take(description(self.description.as_deref()));
        let recurrence = checks.take(normalize_recurrence(self.recurrence.as_deref()));
        let tags = checks.take(tags(&self.tags));
        let completed_at =
            (self.status == TaskStatus::Completed).then_some(self.completed_at.unwrap_or(self.updated_at));
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

/// A request to create a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskDraft {
    #[schema(min_length = 1, max_length = 200, examples("pay rent"))]
    pub title: String,
    #[schema(max_length = 1000)]
    pub description: Option<String>,
    /// `medium` by default.
    #[schema(value_type = Option<Priority>, examples("high"))]
    pub priority: Option<String>,
    /// A date, an RFC 3339 time, a date and time without offset in the user's time zone, or words such as `tomorrow 9am`.
    #[schema(examples("2026-01-31", "friday 3pm"))]
    pub due_date: Option<String>,
    /// An RFC 5545 RRULE, or words such as `every friday at 5pm`. Words with a day also set `due_date` if it is absent.
    #[schema(examples("FREQ=MONTHLY;BYMONTHDAY=1", "weekly"))]
    pub recurrence: Option<String>,
    #[schema(max_items = 20, examples(json!(["home"])))]
    pub tags: Option<Vec<String>>,
    /// The time of a reminder that is created together with the task, exact or in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remind_at: Option<String>,
    /// A reminder this many minutes before the due date, instead of `remind_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 527040)]
    pub remind_before_minutes: Option<i64>,
}

impl TaskDraft {
    /// Returns the task as [`Self::check`] does, and its reminder if one is requested. Fails with the violations of
    /// both.
    pub fn check_with_reminder(
        mut self,
        limits: TaskLimits,
        clock: &Clock,
        user: &User,
        default_time: Time,
    ) -> Result<(Task, Option<Reminder>), Invalid> {
        let remind_at = self.remind_at.take();
        let before_minutes = self.remind_before_minutes.take();
        let task = self.check(limits, clock, user);
        if remind_at.is_none() && before_minutes.is_none() {
            return Ok((task?, None));
        }
        let mut checks = Checks::default();
        let task = checks.take(task);
        // Without a valid task, only the fields of the reminder are checked.
        let task_id = task.as_ref().map_or(Uuid::nil(), |task| task.id).to_string();
        let draft = ReminderDraft { task_id, remind_at, before_minutes, ..ReminderDraft::default() };
        let placed = draft.check(clock, user, default_time).and_then(|mut reminder| {
            if let Some(task) = &task {
                reminder.place_before(task.due_date, default_time, clock.now())?;
            }
            Ok(reminder)
        });
        let reminder = checks.take(placed.map_err(|mut invalid| {
            let before = invalid.violations.iter_mut().filter(|violation| violation.field == "before_minutes");
            before.for_each(|violation| violation.field = "remind_before_minutes".to_owned());
            invalid
        }));
        checks.finish(task.zip(reminder.map(Some)))
    }

    /// Returns the new, pending task with cleaned texts and a new id. Its priority is medium by default. A due time
    /// without an offset is in the time zone of the user; it may be in the past. Fails with all violations of the
    /// draft: a missing or too long title, a too long description, an unknown priority, or an invalid due date,
    /// recurrence or tag.
    pub fn check(self, limits: TaskLimits, clock: &Clock, user: &User) -> Result<Task, Invalid> {
        let mut checks = Checks::default();
        let title = checks.take(text::required_line("title", &self.title, limits.max_title_chars));
        let description = checks.take(description(self.description.as_deref()));
        let priority = checks.take(self.priority.map_or(Ok(Priority::default()), |p| Priority::parse("priority", &p)));
        let due_date = checks.take(due_date(self.due_date.as_deref(), &user.time_zone));
        let recurrence = checks.take(normalize_recurrence(self.recurrence.as_deref()));
        let tags = checks.take(tags(self.tags.as_deref().unwrap_or_default()));
        let now = clock.now();
        let task = (|| {
            Some(Task {
                id: clock.id(),
                title: title?,
                description: description?,
                status: TaskStatus::Pending,
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

/// Changes to a task. An absent field is not changed; `null` clears it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskPatch {
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, min_length = 1, max_length = 200)]
    pub title: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, max_length = 1000)]
    pub description: Option<Option<String>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = TaskStatus, required = false)]
    pub status: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Priority, required = false)]
    pub priority: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    /// As for a new task.
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

/// A validated [`TaskPatch`].
#[derive(Clone, Debug, Default)]
pub struct TaskChange {
    title: Option<String>,
    description: Option<Option<String>>,
    status: Option<TaskStatus>,
    priority: Option<Priority>,
    due_date: Option<Option<DueDate>>,
    recurrence: Option<Option<String>>,
    tags: Option<Vec<String>>,
}

impl TaskPatch {
    /// Returns the validated change, with the rules for new tasks. `null` and a blank text remove the description;
    /// `null` removes the due date and the recurrence. A due time without an offset is in the time zone of the user.
    /// Fails with all violations, or if the patch has no field.
    pub fn check(self, limits: TaskLimits, user: &User) -> Result<TaskChange, Invalid> {
        let mut checks = Checks::default();
        if self.is_empty() {
            let message = "must name at least one of title, description, status, priority, due_date, recurrence, tags";
            checks.fail("body", "min_fields", message);
        }
        let zone = &user.time_zone;
        let change = TaskChange {
            title: self
                .title
                .and_then(|title| checks.take(text::required_line("title", &title, limits.max_title_chars))),
            description: self.description.and_then(|text| checks.take(description(text.as_deref()))),
            status: self.status.and_then(|word| checks.take(TaskStatus::parse("status", &word))),
            priority: self.priority.and_then(|word| checks.take(Priority::parse("priority", &word))),
            due_date: self.due_date.and_then(|text| checks.take(due_date(text.as_deref(), zone))),
            recurrence: self.recurrence.and_then(|rule| checks.take(normalize_recurrence(rule.as_deref()))),
            tags: self.tags.and_then(|list| checks.take(tags(&list))),
        };
        checks.finish(Some(change))
    }

    /// Returns `true` if no field is given. A field that is `null` is given.
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

impl TaskChange {
    /// Returns the change that completes a task.
    pub fn complete() -> Self {
        Self { status: Some(TaskStatus::Completed), ..Self::default() }
    }

    /// Returns the task after the change. A change of the status sets `completed_at` to `now`, or clears it. Any change
    /// sets `updated_at`. Returns an equal task, including its times, if the change has no effect.
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
            next.completed_at = (next.status == TaskStatus::Completed).then_some(now);
        }
        if next != *task {
            next.updated_at = now;
        }
        next
    }
}

/// The order of a listing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskSort {
    /// Oldest first.
    #[default]
    Created,
    /// Earliest due date first. On a day, tasks without a time come first. Tasks without a due date come last.
    Due,
    /// High priority first, then in the order of due dates.
    Priority,
}

impl CaseInsensitive for TaskSort {
    const ALL: &'static [(&'static str, Self)] =
        &[("created", Self::Created), ("due", Self::Due), ("priority", Self::Priority)];
    const RULE: &'static str = "must be created, due or priority";
}

impl TaskSort {
    /// Parses an order in any case. Fails if the text is not an order.
    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        Self::parse_any_case(field, text)
    }
}

/// Selects the tasks of a listing.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    /// `None` selects all.
    pub status: Option<TaskStatus>,
    pub priority: Option<Priority>,
    pub due: Option<DuePeriod>,
    /// The task must have all of these tags. Case is ignored.
    pub tags: Vec<String>,
    /// Text to find in the title or the description.
    pub text: Option<String>,
    /// A reference to a task: the start or end of its id, or a part of its title.
    pub reference: Option<String>,
    pub sort: TaskSort,
}

/// A [`TaskFilter`] as the parameters of a query string.
#[derive(Clone, Debug, Default)]
pub struct TaskFilterDraft<'a> {
    pub status: Option<&'a str>,
    pub priority: Option<&'a str>,
    pub due: Option<&'a str>,
    pub tags: &'a [String],
    pub q: Option<&'a str>,
    pub reference: Option<&'a str>,
    pub sort: Option<&'a str>,
}

impl TaskFilterDraft<'_> {
    /// Returns the filter. Only pending tasks are selected by default; `all` selects every status. `now` and the time
    /// zone of the user determine the due period. Fails with all violations: an unknown status, priority or due period,
    /// an invalid tag, or a text or reference that does not have 1 to [`MAX_TITLE_CHARS`] characters.
    pub fn check(&self, now: Timestamp, user: &User) -> Result<TaskFilter, Invalid> {
        let mut checks = Checks::default();
        let status = match self.status {
            None => Some(TaskStatus::Pending),
            Some(word) if word.eq_ignore_ascii_case("all") => None,
            Some(word) => checks.take(TaskStatus::parse("status", word).map_err(|mut invalid| {
                invalid.violations[0].message = "must be pending, completed or all".to_owned();
                invalid
            })),
        };
        let filter = TaskFilter {
            status,
            priority: self.priority.and_then(|word| checks.take(Priority::parse("priority", word))),
            due: self.due.and_then(|text| checks.take(DuePeriod::parse("due", text, now, &user.time_zone))),
            tags: checks.take(tags(self.tags)).unwrap_or_default(),
            text: self.q.and_then(|q| checks.take(text::required_line("q", q, MAX_TITLE_CHARS))),
            reference: self.reference.and_then(|r| checks.take(text::required_line("ref", r, MAX_TITLE_CHARS))),
            sort: self.sort.and_then(|word| checks.take(TaskSort::parse("sort", word))).unwrap_or_default(),
        };
        checks.finish(Some(filter))
    }
}

/// Returns the cleaned description, `None` if it is absent or blank. Fails if it is too long.
fn description(text: Option<&str>) -> Result<Option<String>, Invalid> {
    text.map_or(Ok(None), |text| text::optional("description", text, MAX_DESCRIPTION_CHARS))
}

fn due_date(text: Option<&str>, zone: &TimeZone) -> Result<Option<DueDate>, Invalid> {
    text.map(|text| DueDate::parse("due_date", text, zone)).transpose()
}

fn normalize_recurrence(rule: Option<&str>) -> Result<Option<String>, Invalid> {
    rule.map(|rule| recurrence::normalize("recurrence", rule)).transpose()
}

/// Returns the cleaned tags without leading `#`. Of tags that differ only in case, the first is kept. Fails with one
/// violation if `list` has more than [`MAX_TAGS`] entries. Otherwise fails with one for each tag that does not have 1
/// to [`MAX_TAG_CHARS`] characters.
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

/// Returns the tag as one cleaned line without its leading `#`. Fails if it does not have 1 to [`MAX_TAG_CHARS`]
/// characters.
fn tag_name(field: &str, tag: &str) -> Result<String, Invalid> {
    text::required_line(field, tag.trim().trim_start_matches('#'), MAX_TAG_CHARS)
}

#[cfg(test)]
mod tests;
