-- Agents that were added over the API; those of the configuration file are not here.
CREATE TABLE agents (
    id         TEXT   NOT NULL PRIMARY KEY,
    name_key   TEXT   NOT NULL UNIQUE,   -- the name in lower case
    settings   TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

-- Who is at work. A node that does not renew its lease is taken for dead.
CREATE TABLE nodes (
    id          TEXT   NOT NULL PRIMARY KEY,
    started_at  BIGINT NOT NULL,
    lease_until BIGINT NOT NULL
);

-- The row is the record, and while it waits it is the queue. What may be long stands last: SQLite reads up to a column.
CREATE TABLE executions (
    id             TEXT   NOT NULL PRIMARY KEY,
    owner          TEXT   NOT NULL,
    agent_id       TEXT   NOT NULL,
    schedule_id    TEXT,
    session_id     TEXT,
    state          TEXT   NOT NULL,
    previous_state TEXT,
    follow_up      TEXT,                 -- who is yet to act upon its end
    spool          TEXT,                 -- where the request is if it has secrets: only its node can run this
    run_at         BIGINT NOT NULL,
    wait_until     BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    started_at     BIGINT,
    ended_at       BIGINT,
    changed_at     BIGINT NOT NULL,
    node           TEXT,                 -- who has it, or had it last
    lease_token    BIGINT NOT NULL,      -- counts claims: what an earlier holder writes is refused
    cancel_asked   BIGINT,
    process_id     BIGINT,
    exit_code      BIGINT,
    error_category TEXT,
    retry_count    BIGINT NOT NULL,
    max_retries    BIGINT NOT NULL,
    timeout_ms     BIGINT NOT NULL,
    truncated      BIGINT NOT NULL,
    output_bytes   BIGINT NOT NULL,      -- how much output is kept, of all tries
    earlier_bytes  BIGINT NOT NULL,      -- of those before the last claim
    error_message  TEXT,
    resource_usage TEXT,
    transitions    TEXT   NOT NULL,
    previous       TEXT   NOT NULL,
    artifacts      TEXT   NOT NULL,
    context        TEXT   NOT NULL,
    request        TEXT   NOT NULL,      -- what the run is given; '' where that is in a spool
    input          TEXT   NOT NULL       -- without secrets
);
-- session_id is in it for SQLite, which then counts those that wait without their rows.
CREATE INDEX executions_waiting ON executions (agent_id, run_at, id, session_id)
    WHERE state = 'idle' AND session_id IS NULL;
CREATE INDEX executions_of_session ON executions (session_id, run_at, id) WHERE state = 'idle' AND session_id IS NOT NULL;
CREATE INDEX executions_impatient ON executions (wait_until) WHERE state = 'idle';
CREATE INDEX executions_at_work ON executions (node) WHERE ended_at IS NULL AND state <> 'idle';
-- By age: a later one has a greater id.
CREATE INDEX executions_by_owner ON executions (owner, id);
CREATE INDEX executions_by_agent ON executions (agent_id, id);
CREATE INDEX executions_by_schedule ON executions (schedule_id, id) WHERE schedule_id IS NOT NULL;
CREATE INDEX executions_by_session ON executions (session_id, id) WHERE session_id IS NOT NULL;
CREATE INDEX executions_to_follow_up ON executions (follow_up, ended_at)
    WHERE follow_up IS NOT NULL AND ended_at IS NOT NULL;
CREATE INDEX executions_by_end ON executions (ended_at) WHERE ended_at IS NOT NULL;

-- A place of an agent is a row: the key itself refuses a second run in it.
CREATE TABLE places (
    agent_id TEXT   NOT NULL,
    slot     BIGINT NOT NULL,
    holder   TEXT   NOT NULL,            -- an execution or a session
    node     TEXT   NOT NULL,
    PRIMARY KEY (agent_id, slot)
) WITHOUT ROWID;
CREATE UNIQUE INDEX places_by_holder ON places (holder);

-- What happened in an execution, in the order of its numbers.
CREATE TABLE execution_events (
    execution_id TEXT   NOT NULL,
    seq          BIGINT NOT NULL,
    kind         TEXT   NOT NULL,        -- state, output or gap
    stream       TEXT   NOT NULL,        -- of output and gaps
    start        BIGINT NOT NULL,        -- where in its stream it begins, in bytes as they came
    at           BIGINT NOT NULL,
    text         TEXT   NOT NULL,
    PRIMARY KEY (execution_id, seq)
) WITHOUT ROWID;

CREATE TABLE sessions (
    id            TEXT   NOT NULL PRIMARY KEY,
    owner         TEXT   NOT NULL,
    agent_id      TEXT   NOT NULL,
    state         TEXT   NOT NULL,
    node          TEXT   NOT NULL,
    created_at    BIGINT NOT NULL,
    last_activity BIGINT NOT NULL,
    expires_at    BIGINT NOT NULL,
    ended_at      BIGINT,
    error_message TEXT
);
CREATE INDEX sessions_by_owner ON sessions (owner, created_at, id);
CREATE INDEX sessions_open ON sessions (node) WHERE ended_at IS NULL;
CREATE INDEX sessions_by_end ON sessions (ended_at) WHERE ended_at IS NOT NULL;
