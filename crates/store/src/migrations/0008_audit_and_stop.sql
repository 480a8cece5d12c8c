-- One row for each administrative change. Rows are never updated.
CREATE TABLE audit_records (
    id             TEXT   NOT NULL PRIMARY KEY,
    at             BIGINT NOT NULL,
    action         TEXT   NOT NULL,
    subject        TEXT,
    user_id        TEXT,
    user_name      TEXT,
    token_id       TEXT,
    interface      TEXT   NOT NULL,
    request_id     TEXT,
    client_address TEXT,
    before         TEXT,                 -- JSON, redacted
    after          TEXT                  -- JSON, redacted
);
CREATE INDEX audit_records_by_time ON audit_records (at, id);
CREATE INDEX audit_records_by_action ON audit_records (action, at, id);

-- At most one row: the last time that everything was stopped.
CREATE TABLE stop_state (
    id         BIGINT NOT NULL PRIMARY KEY,  -- always 1
    stopped_at BIGINT NOT NULL,
    reason     TEXT,
    stopped_by TEXT   NOT NULL,
    resumed_at BIGINT                        -- NULL while everything is stopped
);

ALTER TABLE executions ADD COLUMN cancel_reason TEXT;  -- the error of the execution after the cancellation
