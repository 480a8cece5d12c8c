//! The orders of a list of tasks, and their cursors. Each order has an index.
//!
//! Due dates are compared as text: by local day, then by local time. A day comes before its times. So the order does not
//! depend on the time zone of the user.

use model::task::{Priority, Task, TaskSort};

use crate::conn::Statement;
use crate::page::Cursor;

/// The due date for comparisons. Without one, a text after all dates. The index has the same expression.
const DUE: &str = "COALESCE(due_date, '9999-99-99')";
const NO_DUE: &str = "9999-99-99";
/// The rank of the priority. The index has the same expression.
const RANK: &str = "(CASE priority WHEN 'high' THEN 0 WHEN 'medium' THEN 1 ELSE 2 END)";

/// Adds the condition for the rows after the cursor, the order and the limit, with one extra row. A cursor of another
/// order selects rows by its parts, and never fails.
pub(crate) fn push_page<'a>(select: &mut Statement<'a>, sort: TaskSort, after: Option<&'a Cursor>, limit: i64) {
    if let Some(cursor) = after {
        let (due, id) = cursor.id.split_once(' ').unwrap_or((NO_DUE, &cursor.id));
        match sort {
            TaskSort::Created => {
                select.push(" AND (created_at, id) > (").bind(cursor.sort).push(", ").bind(id).push(")")
            }
            TaskSort::Due => select.push(" AND (").push(DUE).push(", id) > (").bind(due).push(", ").bind(id).push(")"),
            TaskSort::Priority => {
                select.push(" AND (").push(RANK).push(", ").push(DUE).push(", id) > (").bind(cursor.sort);
                select.push(", ").bind(due).push(", ").bind(id).push(")")
            }
        };
    }
    select.push(" ORDER BY ");
    match sort {
        TaskSort::Created => select.push("created_at"),
        TaskSort::Due => select.push(DUE),
        TaskSort::Priority => select.push(RANK).push(", ").push(DUE),
    };
    select.push(", id LIMIT ").bind(limit + 1);
}

/// Returns the cursor of a row.
pub(crate) fn cursor(sort: TaskSort, task: &Task) -> Cursor {
    let due = || task.due_date.map_or_else(|| NO_DUE.to_owned(), |due| due.to_string());
    match sort {
        TaskSort::Created => Cursor { sort: task.created_at.as_microsecond(), id: task.id.to_string() },
        TaskSort::Due => Cursor { sort: 0, id: format!("{} {}", due(), task.id) },
        TaskSort::Priority => Cursor { sort: rank(task.priority), id: format!("{} {}", due(), task.id) },
    }
}

fn rank(priority: Priority) -> i64 {
    match priority {
        Priority::High => 0,
        Priority::Medium => 1,
        Priority::Low => 2,
    }
}
