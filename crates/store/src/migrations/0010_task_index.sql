-- An index for searches of task texts. Each database has its own kind, see task_index.rs.

-- only: sqlite
CREATE VIRTUAL TABLE task_index USING fts5 (
    search, content = '', contentless_delete = 1, tokenize = 'trigram', detail = 'none'
);

-- The row ids of tasks that were added, changed or deleted since they were indexed.
CREATE TABLE task_index_queue (task_row INTEGER PRIMARY KEY);

-- Not OR IGNORE: a conflict clause of the statement that fires the trigger would replace it.
CREATE TRIGGER task_added AFTER INSERT ON tasks BEGIN
    INSERT INTO task_index_queue (task_row)
    SELECT new.rowid WHERE NOT EXISTS (SELECT 1 FROM task_index_queue WHERE task_row = new.rowid);
END;
CREATE TRIGGER task_changed AFTER UPDATE OF search ON tasks WHEN new.search <> old.search BEGIN
    INSERT INTO task_index_queue (task_row)
    SELECT new.rowid WHERE NOT EXISTS (SELECT 1 FROM task_index_queue WHERE task_row = new.rowid);
END;
CREATE TRIGGER task_deleted AFTER DELETE ON tasks BEGIN
    INSERT INTO task_index_queue (task_row)
    SELECT old.rowid WHERE NOT EXISTS (SELECT 1 FROM task_index_queue WHERE task_row = old.rowid);
END;

INSERT INTO task_index_queue (task_row) SELECT rowid FROM tasks;
-- end

-- only: postgres
-- The extensions are part of PostgreSQL, but the user of the database may lack the right to create them. Searches then
-- read all tasks of the owner.
DO $$
BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE EXTENSION IF NOT EXISTS btree_gin;
    CREATE INDEX tasks_by_text ON tasks USING gin (owner, search gin_trgm_ops);
EXCEPTION WHEN OTHERS THEN
    RAISE NOTICE 'searches of tasks are not indexed: %', SQLERRM;
END
$$;
-- end
