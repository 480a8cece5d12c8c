//! Tools of others that know less about tasks than ours: what they do not take is left out, and the user is told.

use jiff::civil::Date;
use tools::Spec;
use understand::{Command, DueFilter, Field, Filter, StatusFilter, Tagging};

/// A filter as another's list takes it.
pub(super) fn filter(spec: &Spec, filter: &Filter, today: Date) -> Filter {
    let mut taken = filter.clone();
    taken.status.get_or_insert(StatusFilter::Pending);
    if taken.due == Some(DueFilter::Tomorrow) {
        taken.due = today.tomorrow().ok().map(DueFilter::Day);
    }
    // S0 knows days and this week.
    let knows_due = !matches!(taken.due, Some(DueFilter::Overdue | DueFilter::Between(..)));
    taken.due = taken.due.filter(|_| knows_due && spec.takes("due_date_filter"));
    taken.priority = taken.priority.filter(|_| spec.takes("priority"));
    taken.text = taken.text.filter(|_| spec.takes("query"));
    if !spec.takes("tags") {
        taken.tags.clear();
    }
    let left_out = (taken.due.is_none() && filter.due.is_some())
        || taken.priority != filter.priority
        || taken.text != filter.text
        || taken.tags != filter.tags;
    taken.unsupported |= left_out;
    taken
}

/// A command as far as the tool has a place for what it says about a task, and what there is no place for.
pub(super) fn command(spec: &Spec, command: &Command) -> (Command, Vec<&'static str>) {
    let mut kept = command.clone();
    let mut lost = Vec::new();
    if spec.is_ours() {
        return (kept, lost);
    }
    let clears = |field: Field| command.clear.contains(&field);
    let mut lacks = |key: &str, name: &'static str, is_said: bool| {
        let lacks = !spec.takes(key);
        if lacks && is_said {
            lost.push(name);
        }
        lacks
    };
    if lacks("description", "a description", command.description.is_some() || clears(Field::Description)) {
        (kept.description, kept.adds) = (None, false);
        kept.clear.retain(|field| *field != Field::Description);
    }
    if lacks("due_date", "a due date", command.when.is_some() || command.shift.is_some() || clears(Field::Due)) {
        (kept.when, kept.shift, kept.clock) = (None, None, None);
        kept.clear.retain(|field| *field != Field::Due);
    }
    if lacks("recurrence", "a repetition", command.recurrence.is_some() || clears(Field::Recurrence)) {
        kept.recurrence = None;
        kept.clear.retain(|field| *field != Field::Recurrence);
    }
    if lacks("priority", "a priority", command.priority.is_some()) {
        kept.priority = None;
    }
    if lacks("tags", "tags", !command.tags.is_empty() || clears(Field::Tags)) {
        kept.tags.clear();
        kept.tagging = Tagging::Set;
        kept.clear.retain(|field| *field != Field::Tags);
    }
    if lacks("status", "a status", command.status.is_some()) {
        kept.status = None;
    }
    (kept, lost)
}
