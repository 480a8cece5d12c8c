-- What users were told without asking.
CREATE TABLE notifications (
    owner        TEXT   NOT NULL,
    id           TEXT   NOT NULL,
    seq          BIGINT NOT NULL,        -- ascends with the commits of one owner; at least the time in microseconds
    kind         TEXT   NOT NULL,
    title        TEXT   NOT NULL,
    text         TEXT   NOT NULL,
    task_id      TEXT,
    execution_id TEXT,
    schedule_id  TEXT,
    created_at   BIGINT NOT NULL,
    read_at      BIGINT,
    PRIMARY KEY (owner, id)
);
CREATE UNIQUE INDEX notifications_by_seq ON notifications (owner, seq);
CREATE INDEX notifications_unread ON notifications (owner, seq) WHERE read_at IS NULL;
CREATE INDEX notifications_by_age ON notifications (created_at);

-- What is to be delivered, each to one channel. Whoever claims one counts the attempt and moves next_at to the end of the
-- lease: if nothing is heard by then, it is anybody's again, and what the first one has to say is refused by the count.
CREATE TABLE deliveries (
    id              TEXT   NOT NULL PRIMARY KEY,
    owner           TEXT   NOT NULL,
    notification_id TEXT,
    channel         TEXT   NOT NULL,     -- a name; secrets and addresses are looked up under it
    target          TEXT,                -- what else says where to, as JSON without secrets
    payload         TEXT   NOT NULL,     -- JSON, as it is delivered
    attempts        BIGINT NOT NULL,
    next_at         BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    ended_at        BIGINT,
    dead            BIGINT NOT NULL,     -- 1: it was given up
    last_error      TEXT
);
CREATE INDEX deliveries_waiting ON deliveries (channel, next_at, id) WHERE ended_at IS NULL;
CREATE INDEX deliveries_by_end ON deliveries (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX deliveries_by_owner ON deliveries (owner);

-- When a reminder speaks up next.
ALTER TABLE reminders ADD COLUMN next_at BIGINT;
UPDATE reminders SET next_at = remind_at;
UPDATE reminders SET status = 'dropped' WHERE status = 'scheduled' AND NOT EXISTS
    (SELECT 1 FROM tasks WHERE tasks.owner = reminders.owner AND tasks.id = reminders.task_id AND tasks.status = 'pending');
CREATE INDEX reminders_due ON reminders (next_at) WHERE status = 'scheduled';

-- The reminders that a step has dropped, as a JSON list of ids.
ALTER TABLE task_changes ADD COLUMN reminders TEXT;

-- The moment of which the user was told that it had come; NULL: not yet. Of what was due before the last change nobody is
-- told any more.
ALTER TABLE tasks ADD COLUMN due_told BIGINT;
UPDATE tasks SET due_told = due_at WHERE due_at <= (SELECT MAX(updated_at) FROM tasks);
CREATE INDEX tasks_due ON tasks (due_at) WHERE status = 'pending' AND due_at IS NOT NULL AND due_told IS NULL;
