-- When agents are run. A row is due when next_at has come; NULL is not at all.
CREATE TABLE schedules (
    id            TEXT   NOT NULL PRIMARY KEY,
    owner         TEXT   NOT NULL,
    name_key      TEXT   NOT NULL UNIQUE,   -- the name in lower case
    agent_id      TEXT   NOT NULL,
    source        TEXT   NOT NULL,
    enabled       BIGINT NOT NULL,
    due_at        BIGINT,                   -- the next of its times, also while it is paused
    next_at       BIGINT,                   -- when that is acted upon: later by its jitter
    version       BIGINT NOT NULL,          -- counts changes of what it is and when it is due
    failures      BIGINT NOT NULL,          -- in a row
    last_at       BIGINT,                   -- when it was run last
    last_status   TEXT,
    paused_at     BIGINT,
    paused_reason TEXT,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    settings      TEXT   NOT NULL
);
CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX schedules_by_age ON schedules (created_at, id);
CREATE INDEX schedules_by_owner ON schedules (owner, created_at, id);

-- What became of each of a schedule's times: the key itself refuses a second decision.
CREATE TABLE decisions (
    schedule_id  TEXT   NOT NULL,
    due_at       BIGINT NOT NULL,
    decided_at   BIGINT NOT NULL,
    kind         TEXT   NOT NULL,
    reason       TEXT,
    execution_id TEXT,
    until_at     BIGINT,                    -- where it stands for several times: the last of them
    PRIMARY KEY (schedule_id, due_at)
);
CREATE INDEX decisions_queued ON decisions (schedule_id, due_at) WHERE kind = 'queued';
CREATE INDEX decisions_by_age ON decisions (decided_at);

CREATE INDEX executions_of_schedule ON executions (schedule_id) WHERE ended_at IS NULL AND schedule_id IS NOT NULL;
