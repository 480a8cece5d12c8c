-- A task of A2A is one execution, or several one after the other where the agent asked and was answered.
ALTER TABLE executions ADD COLUMN outcome TEXT;                          -- what its end means beyond its state
ALTER TABLE executions ADD COLUMN task_id TEXT;                          -- the first execution of the task
ALTER TABLE executions ADD COLUMN context_id TEXT;
ALTER TABLE executions ADD COLUMN superseded BIGINT NOT NULL DEFAULT 0;  -- its question was answered: the next one goes on
CREATE INDEX executions_as_tasks ON executions (owner, agent_id, changed_at, id)
    WHERE task_id IS NOT NULL AND superseded = 0;
CREATE INDEX executions_in_context ON executions (owner, agent_id, context_id)
    WHERE task_id IS NOT NULL AND superseded = 0;
CREATE INDEX executions_of_task ON executions (task_id, id) WHERE task_id IS NOT NULL;

-- What the tasks of a context have in common, where they have something.
CREATE TABLE a2a_contexts (
    owner           TEXT   NOT NULL,
    agent_id        TEXT   NOT NULL,
    id              TEXT   NOT NULL,     -- may be chosen by the client
    conversation_id TEXT,
    session_id      TEXT,
    remote_context  TEXT,                -- what an agent elsewhere calls it
    created_at      BIGINT NOT NULL,
    used_at         BIGINT NOT NULL,
    PRIMARY KEY (owner, agent_id, id)
);
CREATE INDEX a2a_contexts_by_use ON a2a_contexts (used_at);

-- What a task was asked, without secrets. What its agent said is among the events of the executions.
CREATE TABLE a2a_messages (
    task_id      TEXT   NOT NULL,
    seq          BIGINT NOT NULL,
    execution_id TEXT   NOT NULL,
    message      TEXT   NOT NULL,
    at           BIGINT NOT NULL,
    PRIMARY KEY (task_id, seq)
);

-- Who is told of a task by a call of theirs.
CREATE TABLE a2a_pushes (
    task_id        TEXT   NOT NULL,
    id             TEXT   NOT NULL,      -- may be chosen by the client
    owner          TEXT   NOT NULL,
    agent_id       TEXT   NOT NULL,
    url            TEXT   NOT NULL,      -- scheme, host and port
    sealed         TEXT   NOT NULL,      -- the whole address, the token and the credentials, sealed
    scheme         TEXT,                 -- of the credentials
    version        TEXT   NOT NULL,      -- of the protocol in which it was asked for
    told_execution TEXT   NOT NULL,      -- how far it was told
    told_seq       BIGINT NOT NULL,
    open           BIGINT NOT NULL,      -- 0: there is nothing to tell until somebody counts it up
    waiting        TEXT,                 -- the delivery that is on its way to them, or has arrived there last
    dead           BIGINT NOT NULL,      -- 1: it was given up
    last_error     TEXT,
    created_at     BIGINT NOT NULL,
    PRIMARY KEY (task_id, id)
);
CREATE INDEX a2a_pushes_open ON a2a_pushes (task_id, id) WHERE open > 0;
