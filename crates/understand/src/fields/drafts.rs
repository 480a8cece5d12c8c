//! The fields of requests that accept words.

use model::reminder::{ReminderDraft, ReminderPatch, SnoozeRequest};
use model::schedule::{ScheduleDraft, SchedulePatch};
use model::task::{TaskDraft, TaskPatch};

use super::{FieldReader, WordFields};

impl WordFields for TaskDraft {
    fn resolve_words(&mut self, reader: &FieldReader) {
        reader.resolve_recurring(&mut self.due_date, &mut self.recurrence, false);
        reader.resolve_time(&mut self.remind_at);
    }
}

impl WordFields for TaskPatch {
    fn resolve_words(&mut self, reader: &FieldReader) {
        resolve_patch(reader, &mut self.due_date, &mut self.recurrence);
    }
}

impl WordFields for ReminderDraft {
    fn resolve_words(&mut self, reader: &FieldReader) {
        if self.before_minutes.is_none() {
            reader.resolve_recurring(&mut self.remind_at, &mut self.recurrence, false);
        }
    }
}

impl WordFields for ReminderPatch {
    fn resolve_words(&mut self, reader: &FieldReader) {
        let mut remind_at = self.remind_at.take().map(Some);
        resolve_patch(reader, &mut remind_at, &mut self.recurrence);
        self.remind_at = remind_at.flatten();
    }
}

impl WordFields for SnoozeRequest {
    fn resolve_words(&mut self, reader: &FieldReader) {
        let mut until = Some(std::mem::take(&mut self.until));
        reader.resolve_time(&mut until);
        self.until = until.unwrap_or_default();
    }
}

impl WordFields for ScheduleDraft {
    fn resolve_words(&mut self, reader: &FieldReader) {
        reader.resolve_schedule(self);
    }
}

impl WordFields for SchedulePatch {
    /// The times are in the zone of the patch, else in that of the reader.
    fn resolve_words(&mut self, reader: &FieldReader) {
        let mut draft = ScheduleDraft {
            when: self.when.take(),
            cron_expression: self.cron_expression.clone().flatten(),
            every: self.every.clone().flatten(),
            at: self.at.clone().flatten(),
            start_at: self.start_at.clone().flatten(),
            end_at: self.end_at.clone().flatten(),
            time_zone: self.time_zone.clone(),
            ..ScheduleDraft::default()
        };
        reader.resolve_schedule(&mut draft);
        self.when = draft.when;
        let fields = [
            (&mut self.cron_expression, draft.cron_expression),
            (&mut self.every, draft.every),
            (&mut self.at, draft.at),
            (&mut self.start_at, draft.start_at),
            (&mut self.end_at, draft.end_at),
        ];
        for (field, resolved) in fields {
            if resolved.is_some() {
                *field = Some(resolved);
            }
        }
    }
}

/// Resolves the words of a change. A time or a recurrence that is cleared or absent counts as absent.
fn resolve_patch(reader: &FieldReader, time: &mut Option<Option<String>>, recurrence: &mut Option<Option<String>>) {
    let mut new_time = time.clone().flatten();
    let mut new_rule = recurrence.clone().flatten();
    reader.resolve_recurring(&mut new_time, &mut new_rule, true);
    if new_time.is_some() {
        *time = Some(new_time);
    }
    if new_rule.is_some() {
        *recurrence = Some(new_rule);
    }
}
