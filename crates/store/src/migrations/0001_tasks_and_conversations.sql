-- One text for SQLite and PostgreSQL: ids and JSON are TEXT, times are microseconds since 1970 in BIGINT.
-- A user's rows are keyed by (owner, id), so no statement can reach one by its id alone.

CREATE TABLE tasks (
    owner        TEXT   NOT NULL,
    id           TEXT   NOT NULL,
    title        TEXT   NOT NULL,
    description  TEXT,
    status       TEXT   NOT NULL,
    priority     TEXT   NOT NULL,
    due_date     TEXT,               -- as shown: a day, or a moment with its offset
    due_at       BIGINT,             -- the moment; NULL for a day
    recurrence   TEXT,
    tags         TEXT   NOT NULL,    -- JSON list, as written
    tag_keys     TEXT   NOT NULL,    -- the tags in lower case, a line feed before and after each
    title_key    TEXT   NOT NULL,    -- the title in lower case
    search       TEXT   NOT NULL,    -- title and description in lower case
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    completed_at BIGINT,
    PRIMARY KEY (owner, id)
);
CREATE INDEX tasks_by_status ON tasks (owner, status, created_at, id);
CREATE INDEX tasks_by_age ON tasks (owner, created_at, id);

-- What can be undone: for each step, the tasks it touched as they were before (NULL: not there).
CREATE TABLE task_changes (
    owner   TEXT   NOT NULL,
    step    BIGINT NOT NULL,         -- numbered in the order of their commits
    task_id TEXT   NOT NULL,
    kind    TEXT   NOT NULL,
    before  TEXT,
    PRIMARY KEY (owner, step, task_id)
);

-- The id is unique across users: an id that is somebody's is nobody else's.
CREATE TABLE conversations (
    id            TEXT   NOT NULL PRIMARY KEY,
    owner         TEXT   NOT NULL,
    title         TEXT   NOT NULL,
    search        TEXT   NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    message_count BIGINT NOT NULL
);
CREATE INDEX conversations_by_age ON conversations (owner, updated_at, id);
CREATE INDEX conversations_by_last_use ON conversations (updated_at);

CREATE TABLE messages (
    owner           TEXT   NOT NULL,
    conversation_id TEXT   NOT NULL,
    seq             BIGINT NOT NULL,
    id              TEXT   NOT NULL,
    role            TEXT   NOT NULL,
    content         TEXT   NOT NULL,
    search          TEXT   NOT NULL,
    tool_calls      TEXT   NOT NULL,
    pending         TEXT,
    created_at      BIGINT NOT NULL,
    PRIMARY KEY (owner, conversation_id, seq)
);

-- Answers to changing requests, to be given again for the same key. A NULL status is a request still at work.
CREATE TABLE idempotency_keys (
    owner       TEXT   NOT NULL,
    key         TEXT   NOT NULL,
    fingerprint TEXT   NOT NULL,
    status      BIGINT,
    body        TEXT,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (owner, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

CREATE TABLE revoked_tokens (
    id         TEXT   NOT NULL PRIMARY KEY,
    revoked_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
