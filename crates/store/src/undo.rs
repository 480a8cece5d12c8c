//! Undoing changes to tasks: one step at a time, newest first, at most [`DEPTH`] steps a user.

use model::UserId;
use model::task::Task;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::conn::{Conn, Row, args};
use crate::{Error, Result, tasks};

/// How far back a user can go (TASK-1).
pub const DEPTH: i64 = 50;

/// What a step did to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TaskChangeKind)]
pub enum Kind {
    Created,
    Updated,
    Completed,
    Deleted,
}

/// A step that was taken back: what it had done, and the tasks as they are now (those it had created: as they were).
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Undone {
    pub undone: Kind,
    pub tasks: Vec<Task>,
    pub count: usize,
}

/// Notes how a task was before `step`; several tasks may share a step, and are then undone together.
pub(crate) async fn record(
    conn: &mut Conn,
    owner: UserId,
    step: Uuid,
    kind: Kind,
    task: Uuid,
    before: Option<&Task>,
) -> Result<()> {
    let before = before.map(serde_json::to_string).transpose().map_err(|error| Error::Corrupt(error.to_string()))?;
    let insert = "INSERT INTO task_changes (owner, step, task_id, kind, before) VALUES ($1, $2, $3, $4, $5) \
                  ON CONFLICT (owner, step, task_id) DO NOTHING";
    conn.run((insert, args![owner, step, task, kind.as_str(), before])).await?;
    let forget = "DELETE FROM task_changes WHERE owner = $1 AND step <= \
                  (SELECT step FROM task_changes WHERE owner = $1 GROUP BY step ORDER BY step DESC LIMIT 1 OFFSET $2)";
    conn.run((forget, args![owner, DEPTH])).await.map(drop)
}

/// Takes the newest step back; [`Error::NotFound`] when there is none.
pub async fn undo(conn: &mut Conn, owner: UserId) -> Result<Undone> {
    let newest = "DELETE FROM task_changes WHERE owner = $1 AND step = \
                  (SELECT MAX(step) FROM task_changes WHERE owner = $1) RETURNING task_id, kind, before";
    let rows = conn.all((newest, args![owner])).await?;
    let mut undone = Undone { undone: Kind::Updated, tasks: Vec::new(), count: rows.len() };
    for row in &rows {
        let (task_id, kind, before) = read(row)?;
        undone.undone = kind;
        let task = match before {
            Some(before) => {
                tasks::put(conn, owner, &before).await?;
                before
            }
            None => {
                let task = tasks::get(conn, owner, task_id).await?;
                tasks::remove(conn, owner, task_id).await?;
                task
            }
        };
        undone.tasks.push(task);
    }
    if undone.tasks.is_empty() { Err(Error::NotFound) } else { Ok(undone) }
}

fn read(row: &Row) -> Result<(Uuid, Kind, Option<Task>)> {
    let before = row.maybe_text(2)?.map(|json| serde_json::from_str(&json)).transpose();
    Ok((
        row.parsed(0, Uuid::try_parse)?,
        row.parsed(1, |word| Kind::parse(word).ok_or("unknown kind of change"))?,
        before.map_err(|error| Error::Corrupt(error.to_string()))?,
    ))
}

impl Kind {
    const ALL: [Self; 4] = [Self::Created, Self::Updated, Self::Completed, Self::Deleted];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Completed => "completed",
            Self::Deleted => "deleted",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}
