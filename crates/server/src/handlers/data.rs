//! `/api/data`: everything that belongs to the user who asks, out, in or gone (OPS-7).

use std::time::Duration;

use api::data::{Imported, ImportedCount};
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use jiff::Timestamp;
use model::conversation::{Conversation, Message};
use model::invalid::Checks;
use model::reminder::Reminder;
use model::task::{Filter, Task};
use model::{Invalid, UserId};
use serde::{Deserialize, Serialize};
use store::data::Dialogue;
use store::executions::Whose;
use store::page::{Cursor, MAX_LIMIT, Page};
use store::undo::Step;
use store::{Conn, Snapshot, schedules};
use utoipa::ToSchema;

use super::NoBody;
use super::stream::{self, Out};
use crate::auth::Asking;
use crate::change::{Answer, Change, Nothing, RequestBody};
use crate::{App, Problem, input};

const FORMAT: u64 = 1;

/// A user's data as one document.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = UserData)]
#[expect(dead_code, reason = "an import says whose it was and when; it is read, and belongs to who imports it")]
pub(super) struct Document {
    /// The version of the format: 1.
    adjutant_export: u64,
    user_id: Option<String>,
    exported_at: Option<String>,
    #[serde(default)]
    tasks: Vec<Task>,
    #[serde(default)]
    reminders: Vec<Reminder>,
    #[serde(default)]
    conversations: Vec<Told>,
    /// What the user was told is given out but not taken in: it was told elsewhere.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    notifications: Vec<serde::de::IgnoredAny>,
    /// What agents did is given out but not taken in: it happened elsewhere.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    executions: Vec<serde::de::IgnoredAny>,
    /// Schedules run programs: they are given out, and made anew by somebody who may.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    schedules: Vec<serde::de::IgnoredAny>,
}

/// A conversation with all its messages.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ConversationWithMessages)]
struct Told {
    #[serde(flatten)]
    conversation: Conversation,
    messages: Vec<Message>,
}

/// All tasks, reminders, conversations, notifications and runs of the user, as one document.
#[utoipa::path(get, path = "/api/data", tag = "data", responses((status = 200, body = Document)))]
pub(super) async fn export(State(app): State<App>, Asking(user): Asking) -> Result<Response, Problem> {
    let snapshot = app.store().snapshot().await?;
    let now = app.clock().now();
    let head = serde_json::json!({"adjutant_export": FORMAT, "user_id": user.id, "exported_at": now});
    // Page by page: the document may be larger than memory should be.
    Ok(stream::respond("application/json", |out| async move {
        let written = write(snapshot, user.id, now, head.to_string(), &out).await;
        (out, written)
    }))
}

async fn write(mut conn: Snapshot, owner: UserId, now: Timestamp, head: String, out: &Out) -> store::Result<()> {
    out.send(head.trim_end_matches('}').to_owned()).await?;
    for (name, section) in Section::ALL {
        out.send(format!(",\"{name}\":[")).await?;
        let mut cursor = None;
        let mut separator = "";
        loop {
            let page = section.read(&mut conn, owner, now, cursor.as_ref()).await?;
            for item in page.rows {
                out.send(format!("{separator}{item}")).await?;
                separator = ",";
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        out.send("]".to_owned()).await?;
    }
    out.send("}\n".to_owned()).await
}

/// A list in the document.
#[derive(Clone, Copy)]
enum Section {
    Tasks,
    Reminders,
    Conversations,
    Notifications,
    Executions,
    Schedules,
}

impl Section {
    const ALL: [(&str, Self); 6] = [
        ("tasks", Self::Tasks),
        ("reminders", Self::Reminders),
        ("conversations", Self::Conversations),
        ("notifications", Self::Notifications),
        ("executions", Self::Executions),
        ("schedules", Self::Schedules),
    ];

    /// Returns one page of the list, its items as JSON.
    async fn read(
        self,
        conn: &mut Conn,
        owner: UserId,
        now: Timestamp,
        cursor: Option<&Cursor>,
    ) -> store::Result<Page<String>> {
        match self {
            Self::Tasks => to_json(store::tasks::list(conn, owner, &Filter::default(), cursor, MAX_LIMIT).await?),
            Self::Reminders => {
                to_json(store::reminders::list(conn, owner, &Default::default(), cursor, MAX_LIMIT).await?)
            }
            Self::Conversations => {
                let page = store::conversations::list(conn, owner, None, cursor, 1).await?;
                let mut rows = Vec::with_capacity(page.rows.len());
                for conversation in page.rows {
                    let messages = all_messages(conn, owner, &conversation).await?;
                    rows.push(Told { conversation, messages });
                }
                to_json(Page { rows, next: page.next })
            }
            Self::Notifications => {
                let page = store::notifications::list(conn, owner, false, cursor, MAX_LIMIT).await?;
                to_json(Page { rows: page.rows.iter().map(|row| &row.notification).collect(), next: page.next })
            }
            // One at a time, because of their output.
            Self::Executions => to_json(store::data::executions(conn, owner, cursor, 1).await?),
            Self::Schedules => {
                let filter = schedules::Filter::default();
                to_json(schedules::list(conn, Whose::Users(owner), &filter, cursor, MAX_LIMIT, now).await?)
            }
        }
    }
}

/// Returns the page with its rows as JSON.
fn to_json<T: Serialize>(page: Page<T>) -> store::Result<Page<String>> {
    let json = |row| serde_json::to_string(row).map_err(|error| store::Error::Corrupt(error.to_string()));
    let rows = page.rows.iter().map(json).collect::<store::Result<_>>()?;
    Ok(Page { rows, next: page.next })
}

async fn all_messages(conn: &mut Conn, owner: UserId, conversation: &Conversation) -> store::Result<Vec<Message>> {
    let mut messages = Vec::new();
    let mut cursor = None;
    loop {
        let page = store::conversations::messages(conn, owner, &conversation.id, cursor.as_ref(), MAX_LIMIT).await?;
        messages.extend(page.rows);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(messages);
        }
    }
}

/// Takes in an exported document; what is there already under the same id stays as it is.
#[utoipa::path(
    post,
    path = "/api/data",
    tag = "data",
    request_body = Document,
    responses(
        (status = 200, body = Imported),
    )
)]
pub(super) async fn import(mut change: Change<Import>) -> Result<Response, Problem> {
    let Import(document) = std::mem::take(&mut change.body);
    let Checked { tasks, reminders, dialogues } = check(document, &change.app)?;
    let owner = change.user.id;
    let now = change.app.clock().now();
    change
        .carry_out("data", async move |tx| {
            let mut step = Step::begin(tx, owner).await?;
            let tasks = store::data::import_tasks(tx, &mut step, &tasks, now).await?;
            let reminders = store::data::import_reminders(tx, owner, &reminders, now).await?;
            let conversations = store::data::import_conversations(tx, owner, &dialogues).await?;
            Ok(Answer::Ok(Imported {
                tasks: count(tasks),
                reminders: count(reminders),
                conversations: count(conversations),
            }))
        })
        .await
}

fn count(imported: store::data::Imported) -> ImportedCount {
    ImportedCount { added: imported.added, skipped: imported.skipped }
}

/// A document to import, which may be larger than other bodies.
#[derive(Default)]
pub(super) struct Import(Option<Document>);

impl RequestBody for Import {
    fn limit(app: &App) -> usize {
        app.in_force().settings.max_import_bytes
    }

    fn patience(_: &App) -> Option<Duration> {
        None
    }

    fn parse(parts: &Parts, bytes: &[u8]) -> Result<Self, Problem> {
        input::json(parts, bytes).map(Some).map(Self)
    }
}

/// A document whose every part is valid.
struct Checked {
    tasks: Vec<Task>,
    reminders: Vec<Reminder>,
    dialogues: Vec<Dialogue>,
}

/// Holds what comes from outside to the same rules as everything else.
fn check(document: Option<Document>, app: &App) -> Result<Checked, Invalid> {
    let mut checks = Checks::default();
    let document = document.ok_or_else(|| Invalid::one("body", "required", "must be given"))?;
    if document.adjutant_export != FORMAT {
        checks.fail("adjutant_export", "version", format!("must be {FORMAT}"));
    }
    let limits = app.in_force().settings.tasks;
    let mut tasks = Vec::with_capacity(document.tasks.len());
    for (at, task) in document.tasks.into_iter().enumerate() {
        tasks.extend(checks.take(within(format!("tasks[{at}]"), task.check(limits))));
    }
    let mut reminders = Vec::with_capacity(document.reminders.len());
    for (at, reminder) in document.reminders.into_iter().enumerate() {
        reminders.extend(checks.take(within(format!("reminders[{at}]"), reminder.check())));
    }
    let mut dialogues = Vec::with_capacity(document.conversations.len());
    for (at, Told { conversation, messages }) in document.conversations.into_iter().enumerate() {
        let place = format!("conversations[{at}]");
        let conversation = checks.take(within(place.clone(), conversation.check()));
        let messages: Vec<_> = messages
            .into_iter()
            .enumerate()
            .filter_map(|(at, message)| checks.take(within(format!("{place}.messages[{at}]"), message.check())))
            .collect();
        dialogues.extend(conversation.map(|conversation| Dialogue { conversation, messages }));
    }
    checks.finish(Some(Checked { tasks, reminders, dialogues }))
}

fn within<T>(place: String, result: Result<T, Invalid>) -> Result<T, Invalid> {
    result.map_err(|mut invalid| {
        for violation in &mut invalid.violations {
            violation.field = format!("{place}.{}", violation.field);
        }
        invalid
    })
}

/// Erases everything the user has here. This cannot be undone.
#[utoipa::path(
    delete,
    path = "/api/data",
    tag = "data",
    responses(
        (status = 204, description = "It is gone"),
    )
)]
pub(super) async fn erase(change: Change<Nothing>) -> Result<Response, Problem> {
    let owner = change.user.id;
    change
        .carry_out("data", async move |tx| {
            store::data::erase(tx, owner).await?;
            Ok(Answer::<NoBody>::NoContent)
        })
        .await
}
