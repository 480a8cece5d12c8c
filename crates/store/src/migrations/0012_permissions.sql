-- Tools of external servers that need no confirmation for their owner.
CREATE TABLE permissions (
    owner      TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    server     TEXT   NOT NULL,
    tool       TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (owner, id)
);
CREATE UNIQUE INDEX permissions_by_tool ON permissions (owner, server, tool);
