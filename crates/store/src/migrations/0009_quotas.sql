-- Counts for the quotas of a user.
CREATE INDEX reminders_scheduled ON reminders (owner) WHERE status = 'scheduled';
CREATE INDEX executions_waiting_by_owner ON executions (agent_id, owner, session_id)
    WHERE state = 'idle' AND session_id IS NULL;
CREATE INDEX sessions_open_by_owner ON sessions (owner, agent_id) WHERE ended_at IS NULL;

-- The time before which a delivery is delayed by the rate of its channel and owner.
ALTER TABLE deliveries ADD COLUMN not_before BIGINT NOT NULL DEFAULT 0;
CREATE INDEX deliveries_by_rate ON deliveries (owner, channel, not_before);
