-- Reminders that repeat by a rule, follow the due date of their task, or are snoozed.
ALTER TABLE reminders ADD COLUMN recurrence TEXT;
ALTER TABLE reminders ADD COLUMN before_minutes BIGINT;
ALTER TABLE reminders ADD COLUMN time_zone TEXT;
ALTER TABLE reminders ADD COLUMN snoozed_until BIGINT;
-- The planned time of the last firing.
ALTER TABLE reminders ADD COLUMN last_at BIGINT;

-- The time zone of the rule of a task, and the time of its next notification. A task with a rule has several.
ALTER TABLE tasks ADD COLUMN time_zone TEXT;
ALTER TABLE tasks ADD COLUMN due_next BIGINT;
UPDATE tasks SET due_next = due_at WHERE due_at IS NOT NULL AND (due_told IS NULL OR recurrence IS NOT NULL);
DROP INDEX tasks_due;
CREATE INDEX tasks_due ON tasks (due_next) WHERE status = 'pending' AND due_next IS NOT NULL;
