//! Support for external task tools with fewer arguments than the built-in tools. Unsupported fields are dropped, and
//! the reply names them.

use jiff::civil::Date;
use tools::ToolSpec;
use understand::{ClearableField, CommandFilter, DueFilter, ParsedCommand, StatusFilter, TagOperation};

/// Returns the part of a filter that an external list tool supports. The status defaults to open and is never dropped.
/// "Tomorrow" becomes a date. Overdue and date ranges are always dropped. Due date, priority, text and tags are dropped
/// if the tool has no argument for them. Sets `unsupported` if a part was dropped.
pub(super) fn supported_filter(spec: &ToolSpec, filter: &CommandFilter, today: Date) -> CommandFilter {
    let mut supported = filter.clone();
    supported.status.get_or_insert(StatusFilter::Pending);
    if supported.due == Some(DueFilter::Tomorrow) {
        supported.due = today.tomorrow().ok().map(DueFilter::Day);
    }
    // S0 supports days and the current week.
    let supports_due = !matches!(supported.due, Some(DueFilter::Overdue | DueFilter::Between(..)));
    supported.due = supported.due.filter(|_| supports_due && spec.has_argument("due_date_filter"));
    supported.priority = supported.priority.filter(|_| spec.has_argument("priority"));
    supported.text = supported.text.filter(|_| spec.has_argument("query"));
    if !spec.has_argument("tags") {
        supported.tags.clear();
    }
    let is_reduced = (supported.due.is_none() && filter.due.is_some())
        || supported.priority != filter.priority
        || supported.text != filter.text
        || supported.tags != filter.tags;
    supported.unsupported |= is_reduced;
    supported
}

/// Returns the part of a command that the tool supports, and the names of the dropped fields for the reply.
/// Description, due date, recurrence, priority, tags and status are dropped if the tool has no argument for them, also
/// if the command clears them. Only fields that the command uses are named. A built-in tool supports all fields.
pub(super) fn supported_command(spec: &ToolSpec, command: &ParsedCommand) -> (ParsedCommand, Vec<&'static str>) {
    let mut supported = command.clone();
    let mut unsupported = Vec::new();
    if spec.is_built_in() {
        return (supported, unsupported);
    }
    let clears = |field: ClearableField| command.cleared_fields.contains(&field);
    let mut lacks = |key: &str, name: &'static str, is_used: bool| {
        let lacks = !spec.has_argument(key);
        if lacks && is_used {
            unsupported.push(name);
        }
        lacks
    };
    if lacks("description", "a description", command.description.is_some() || clears(ClearableField::Description)) {
        (supported.description, supported.appends_description) = (None, false);
        supported.cleared_fields.retain(|field| *field != ClearableField::Description);
    }
    if lacks("due_date", "a due date", command.when.is_some() || command.shift.is_some() || clears(ClearableField::Due))
    {
        (supported.when, supported.shift, supported.time_of_day) = (None, None, None);
        supported.cleared_fields.retain(|field| *field != ClearableField::Due);
    }
    if lacks("recurrence", "a repetition", command.recurrence.is_some() || clears(ClearableField::Recurrence)) {
        supported.recurrence = None;
        supported.cleared_fields.retain(|field| *field != ClearableField::Recurrence);
    }
    if lacks("priority", "a priority", command.priority.is_some()) {
        supported.priority = None;
    }
    if lacks("tags", "tags", !command.tags.is_empty() || clears(ClearableField::Tags)) {
        supported.tags.clear();
        supported.tag_operation = TagOperation::Set;
        supported.cleared_fields.retain(|field| *field != ClearableField::Tags);
    }
    if lacks("status", "a status", command.status.is_some()) {
        supported.status = None;
    }
    (supported, unsupported)
}
