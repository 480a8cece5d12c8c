//! What the tools do to reminders.

use model::Invalid;
use model::reminder::Draft;
use model::task::Status;
use serde_json::json;
use store::Conn;
use store::undo::Step;

use crate::answer::Error;
use crate::{Answer, Call, Outcome};

pub(crate) async fn schedule(mut call: Call<'_>, conn: &mut Conn) -> Result<Outcome, Error> {
    let draft: Draft = call.read()?;
    let reminder = draft.check(&call.tools.clock, &call.user)?;
    let task = store::tasks::get(conn, call.user.id, reminder.task_id).await?;
    if task.status == Status::Completed {
        return Err(Invalid::one("task_id", "pending", "is of a task that is completed already").into());
    }
    let mut step = Step::begin(conn, call.user.id).await?;
    store::reminders::create(conn, &mut step, &reminder, call.tools.clock.now()).await?;
    let data = json!({
        "success": true,
        "reminder_id": reminder.id,
        "task_id": task.id,
        "title": task.title,
        "remind_at": reminder.remind_at,
        "reminder": reminder,
        "task": task,
    });
    Ok(Outcome::Done(Answer::done(data)))
}
