-- Who is at a conversation's next turn, where several nodes could be.
CREATE TABLE turns (
    conversation_id TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
