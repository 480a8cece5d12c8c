//! Writes the values of a command as arguments of a tool.

use jiff::Zoned;
use jiff::civil::DateTime;
use serde_json::{Value, json};
use tools::{ToolArguments, ToolSpec};
use understand::{DayOrTime, ParsedCommand};

use crate::mentions::TaskMention;

/// Returns the argument that identifies a task.
pub(super) fn task_argument(spec: &ToolSpec, mention: &TaskMention) -> ToolArguments {
    let id = mention.id.clone().unwrap_or_default();
    ToolArguments::from_iter([(spec.task_id_argument().to_owned(), id)])
}

/// Returns the arguments for the description, due date, priority, recurrence and tags of a command. Slots without a
/// value and empty tags are left out. So are the title, the status and cleared fields.
pub(super) fn attributes(command: &ParsedCommand, now: &Zoned) -> ToolArguments {
    let mut arguments = ToolArguments::new();
    let mut put = |name: &str, value: Option<Value>| arguments.extend(value.map(|value| (name.to_owned(), value)));
    put("description", command.description.as_deref().map(Value::from));
    put("due_date", command.when.map(|when| due_text(when, now).into()));
    put("priority", command.priority.map(|priority| priority.as_str().into()));
    put("recurrence", command.recurrence.as_deref().map(Value::from));
    put("tags", Some(json!(command.tags)).filter(|_| !command.tags.is_empty()));
    arguments
}

fn due_text(when: DayOrTime, now: &Zoned) -> String {
    match when {
        DayOrTime::Day(day) => day.to_string(),
        DayOrTime::Time(time) => time_text(whole_minutes(time, now), now),
    }
}

/// Removes the seconds of a time that is at least ten minutes ahead: "in 3 hours".
fn whole_minutes(time: DateTime, now: &Zoned) -> DateTime {
    let is_far = time.duration_since(now.datetime()).as_mins() >= 9;
    let whole = time.with().second(0).subsec_nanosecond(0).build();
    if is_far { whole.unwrap_or(time) } else { time }
}

/// Formats a local time, usually without an offset. A time can occur twice at the end of daylight saving time. If the
/// first occurrence has passed and the second has not, the result has the offset of the second.
pub(in crate::offline) fn time_text(time: DateTime, now: &Zoned) -> String {
    let ambiguous = now.time_zone().to_ambiguous_zoned(time);
    let earlier = ambiguous.clone().earlier().ok();
    let later = ambiguous.later().ok().filter(|later| later.datetime() == time && later > now);
    match (earlier, later) {
        (Some(earlier), Some(later)) if earlier <= *now => later.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        _ => time.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguous_local_times_resolve_to_the_future() {
        let formatted = |now: &str, time: &str| time_text(time.parse().unwrap(), &now.parse().unwrap());
        // In New York, 1:00 follows half an hour after 1:30.
        let first_pass = "2025-11-02T01:30:00-04:00[America/New_York]";
        assert_eq!(formatted(first_pass, "2025-11-02T01:00:00"), "2025-11-02T01:00:00-05:00");
        assert_eq!(formatted(first_pass, "2025-11-02T01:45:00"), "2025-11-02T01:45:00");
        assert_eq!(
            formatted("2025-11-01T12:00:00-04:00[America/New_York]", "2025-11-02T01:00:00"),
            "2025-11-02T01:00:00"
        );
        // A local time that does not exist is passed on unchanged.
        assert_eq!(
            formatted("2026-03-08T01:30:00-05:00[America/New_York]", "2026-03-08T02:30:00"),
            "2026-03-08T02:30:00"
        );
    }
}
