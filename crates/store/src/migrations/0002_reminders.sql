CREATE TABLE reminders (
    owner                   TEXT   NOT NULL,
    id                      TEXT   NOT NULL,
    task_id                 TEXT   NOT NULL,
    remind_at               BIGINT NOT NULL,
    repeat_interval_minutes BIGINT,
    repeat_count            BIGINT,
    fired_count             BIGINT NOT NULL,
    status                  TEXT   NOT NULL,
    created_at              BIGINT NOT NULL,
    PRIMARY KEY (owner, id)
);
CREATE INDEX reminders_by_task ON reminders (owner, task_id);
