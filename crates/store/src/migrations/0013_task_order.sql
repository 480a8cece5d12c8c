-- The orders of lists of tasks besides the creation. The expressions are those of task_sort.rs.
CREATE INDEX tasks_by_due ON tasks (owner, status, COALESCE(due_date, '9999-99-99'), id);
CREATE INDEX tasks_by_priority ON tasks (
    owner, status, (CASE priority WHEN 'high' THEN 0 WHEN 'medium' THEN 1 ELSE 2 END), COALESCE(due_date, '9999-99-99'), id
);
