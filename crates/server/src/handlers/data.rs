//! `/api/data`: exports, imports and erases all data of the current user (OPS-7).
//!
//! An export is sent while it is read from one snapshot. If it fails, the response is aborted. An import checks the
//! whole document first and is one transaction. Its tasks are one undo step. Objects with an id that exists are skipped
//! and counted. Notifications, executions and schedules are not imported. Erasing is one transaction and cannot be
//! undone. The audit log is not part of it: it belongs to the operator. Exports and erasures of administrators are
//! recorded there.

use std::time::Duration;

use api::data::{ImportCount, ImportSummary};
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use jiff::Timestamp;
use model::audit::{AuditAction, AuditRecord};
use model::conversation::{Conversation, Message};
use model::invalid::Checks;
use model::reminder::Reminder;
use model::task::{Task, TaskFilter};
use model::{Invalid, UserId};
use serde::{Deserialize, Serialize};
use store::data::{FullConversation, ImportCounts};
use store::executions::OwnerScope;
use store::page::{Cursor, MAX_LIMIT, Page};
use store::schedules::ScheduleFilter;
use store::undo::UndoStep;
use store::{Conn, StoreSnapshot, schedules};
use utoipa::ToSchema;

use super::NoBody;
use super::stream::{self, BodyWriter};
use crate::audit::CurrentActor;
use crate::auth::CurrentUser;
use crate::idempotency::{EmptyBody, IdempotentRequest, RequestBody, Success};
use crate::{App, Problem, input};

/// The version of the export format.
const FORMAT_VERSION: u64 = 1;

/// The data of a user as one document.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = UserData)]
#[expect(dead_code, reason = "the former owner and the time of the export are accepted and ignored")]
pub(super) struct UserData {
    /// The version of the format: 1.
    adjutant_export: u64,
    user_id: Option<String>,
    exported_at: Option<String>,
    #[serde(default)]
    tasks: Vec<Task>,
    #[serde(default)]
    reminders: Vec<Reminder>,
    #[serde(default)]
    conversations: Vec<ExportedConversation>,
    /// Notifications are exported but not imported.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    notifications: Vec<serde::de::IgnoredAny>,
    /// Executions are exported but not imported.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    executions: Vec<serde::de::IgnoredAny>,
    /// Schedules are exported but not imported: they run programs, so an administrator must create them.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    schedules: Vec<serde::de::IgnoredAny>,
}

/// A conversation with all its messages.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ConversationWithMessages)]
struct ExportedConversation {
    #[serde(flatten)]
    conversation: Conversation,
    messages: Vec<Message>,
}

/// Exports all tasks, reminders, conversations, notifications, executions and schedules of the user as one document.
#[utoipa::path(
    get,
    path = "/api/data",
    tag = "data",
    responses((status = 200, description = "The data of the user", body = UserData))
)]
pub(super) async fn export(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    CurrentActor(actor): CurrentActor,
) -> Result<Response, Problem> {
    if user.is_admin() {
        let record = AuditRecord::new(app.clock(), actor, AuditAction::DataExported, user.id);
        app.store().transaction(async move |tx| store::audit::record(tx, &record).await).await?;
    }
    let snapshot = app.store().snapshot().await?;
    let now = app.clock().now();
    let head = serde_json::json!({"adjutant_export": FORMAT_VERSION, "user_id": user.id, "exported_at": now});
    // Written page by page, because the document may be larger than the memory.
    Ok(stream::respond("application/json", |writer| async move {
        let written = write_export(snapshot, user.id, now, head.to_string(), &writer).await;
        (writer, written)
    }))
}

/// Writes the document: `head`, extended by one array for each section. `head` must be a JSON object with at least one
/// field. Its last value must be no object. All sections are read from one snapshot, page by page. Fails if the
/// database fails or the client stops reading; the document is then incomplete.
async fn write_export(
    mut conn: StoreSnapshot,
    owner: UserId,
    now: Timestamp,
    head: String,
    writer: &BodyWriter,
) -> store::Result<()> {
    writer.send(head.trim_end_matches('}').to_owned()).await?;
    for (name, section) in ExportSection::ALL {
        writer.send(format!(",\"{name}\":[")).await?;
        let mut cursor = None;
        let mut separator = "";
        loop {
            let page = section.read(&mut conn, owner, now, cursor.as_ref()).await?;
            for item in page.rows {
                writer.send(format!("{separator}{item}")).await?;
                separator = ",";
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        writer.send("]".to_owned()).await?;
    }
    writer.send("}\n".to_owned()).await
}

/// A list in the document.
#[derive(Clone, Copy)]
enum ExportSection {
    Tasks,
    Reminders,
    Conversations,
    Notifications,
    Executions,
    Schedules,
}

impl ExportSection {
    const ALL: [(&str, Self); 6] = [
        ("tasks", Self::Tasks),
        ("reminders", Self::Reminders),
        ("conversations", Self::Conversations),
        ("notifications", Self::Notifications),
        ("executions", Self::Executions),
        ("schedules", Self::Schedules),
    ];

    /// Returns one page of the list after `cursor`, its items as JSON. Conversations, with all their messages, and
    /// executions are read one at a time. Fails if the database fails or an item cannot be encoded.
    async fn read(
        self,
        conn: &mut Conn,
        owner: UserId,
        now: Timestamp,
        cursor: Option<&Cursor>,
    ) -> store::Result<Page<String>> {
        match self {
            Self::Tasks => to_json(store::tasks::list(conn, owner, &TaskFilter::default(), cursor, MAX_LIMIT).await?),
            Self::Reminders => {
                to_json(store::reminders::list(conn, owner, &Default::default(), cursor, MAX_LIMIT).await?)
            }
            Self::Conversations => {
                let page = store::conversations::list(conn, owner, None, cursor, 1).await?;
                let mut rows = Vec::with_capacity(page.rows.len());
                for conversation in page.rows {
                    let messages = all_messages(conn, owner, &conversation).await?;
                    rows.push(ExportedConversation { conversation, messages });
                }
                to_json(Page { rows, next: page.next })
            }
            Self::Notifications => {
                let page = store::notifications::list(conn, owner, false, cursor, MAX_LIMIT).await?;
                to_json(Page { rows: page.rows.iter().map(|row| &row.notification).collect(), next: page.next })
            }
            // One at a time, because their output is large.
            Self::Executions => to_json(store::data::export_executions(conn, owner, cursor, 1).await?),
            Self::Schedules => {
                let filter = ScheduleFilter::default();
                to_json(schedules::list(conn, OwnerScope::User(owner), &filter, cursor, MAX_LIMIT, now).await?)
            }
        }
    }
}

/// Encodes the rows of a page as JSON.
fn to_json<T: Serialize>(page: Page<T>) -> store::Result<Page<String>> {
    let json = |row| serde_json::to_string(row).map_err(|error| store::Error::Corrupt(error.to_string()));
    let rows = page.rows.iter().map(json).collect::<store::Result<_>>()?;
    Ok(Page { rows, next: page.next })
}

/// Returns all messages of a conversation. They are read page by page. Fails if the database fails.
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

/// Imports an exported document.
///
/// Objects with an id that already exists are skipped.
#[utoipa::path(
    post,
    path = "/api/data",
    tag = "data",
    request_body = UserData,
    responses(
        (status = 200, description = "The number of added and skipped objects", body = ImportSummary),
    )
)]
pub(super) async fn import(mut request: IdempotentRequest<ImportBody>) -> Result<Response, Problem> {
    let ImportBody(document) = std::mem::take(&mut request.body);
    let CheckedImport { tasks, reminders, conversations } = check(document, &request.app)?;
    let owner = request.user.id;
    let now = request.app.clock().now();
    request
        .run_transaction("data", async move |tx| {
            let mut step = UndoStep::begin(tx, owner).await?;
            let tasks = store::data::import_tasks(tx, &mut step, &tasks, now).await?;
            let reminders = store::data::import_reminders(tx, owner, &reminders, now).await?;
            let conversations = store::data::import_conversations(tx, owner, &conversations).await?;
            Ok(Success::Ok(ImportSummary {
                tasks: count(tasks),
                reminders: count(reminders),
                conversations: count(conversations),
            }))
        })
        .await
}

fn count(imported: ImportCounts) -> ImportCount {
    ImportCount { added: imported.added, skipped: imported.skipped }
}

/// A document to import. It may be larger than the body of any other request.
#[derive(Default)]
pub(super) struct ImportBody(Option<UserData>);

impl RequestBody for ImportBody {
    fn max_bytes(app: &App) -> usize {
        app.active_config().settings.max_import_bytes
    }

    fn timeout(_: &App) -> Option<Duration> {
        None
    }

    fn parse(parts: &Parts, bytes: &[u8]) -> Result<Self, Problem> {
        input::parse_json(parts, bytes).map(Some).map(Self)
    }
}

/// A valid document.
struct CheckedImport {
    tasks: Vec<Task>,
    reminders: Vec<Reminder>,
    conversations: Vec<FullConversation>,
}

/// Returns the cleaned objects of a document. Texts are normalized, `completed_at` of a task is made to fit its status,
/// and long titles of conversations are cut. Fails with one violation if the document is missing. Otherwise fails with
/// all violations: another format version, or an invalid task, reminder or message. A conversation itself is never
/// invalid. Of a reminder, only the ranges of its numbers, its rule and its time zone are checked, so it may be in the past. Ids that exist
/// and references between objects are not checked. Fields of objects start with their path, such as `tasks[0].`.
fn check(document: Option<UserData>, app: &App) -> Result<CheckedImport, Invalid> {
    let mut checks = Checks::default();
    let document = document.ok_or_else(|| Invalid::one("body", "required", "must not be empty"))?;
    if document.adjutant_export != FORMAT_VERSION {
        checks.fail("adjutant_export", "version", format!("must be {FORMAT_VERSION}"));
    }
    let limits = app.active_config().settings.tasks;
    let now = app.clock().now();
    let mut tasks = Vec::with_capacity(document.tasks.len());
    for (at, task) in document.tasks.into_iter().enumerate() {
        tasks.extend(checks.take(prefix_fields(format!("tasks[{at}]"), task.check(limits))));
    }
    let mut reminders = Vec::with_capacity(document.reminders.len());
    for (at, reminder) in document.reminders.into_iter().enumerate() {
        reminders.extend(checks.take(prefix_fields(format!("reminders[{at}]"), reminder.check(now))));
    }
    let mut conversations = Vec::with_capacity(document.conversations.len());
    for (at, ExportedConversation { conversation, messages }) in document.conversations.into_iter().enumerate() {
        let path = format!("conversations[{at}]");
        let conversation = checks.take(prefix_fields(path.clone(), conversation.check()));
        let messages: Vec<_> = messages
            .into_iter()
            .enumerate()
            .filter_map(|(at, message)| checks.take(prefix_fields(format!("{path}.messages[{at}]"), message.check())))
            .collect();
        conversations.extend(conversation.map(|conversation| FullConversation { conversation, messages }));
    }
    checks.finish(Some(CheckedImport { tasks, reminders, conversations }))
}

/// Returns the result. In an error, prefixes the fields of all violations with `path` and a dot.
fn prefix_fields<T>(path: String, result: Result<T, Invalid>) -> Result<T, Invalid> {
    result.map_err(|mut invalid| {
        for violation in &mut invalid.violations {
            violation.field = format!("{path}.{}", violation.field);
        }
        invalid
    })
}

/// Erases all data of the user.
///
/// This cannot be undone.
#[utoipa::path(
    delete,
    path = "/api/data",
    tag = "data",
    responses(
        (status = 204, description = "All data of the user was erased"),
    )
)]
pub(super) async fn erase(request: IdempotentRequest<EmptyBody>) -> Result<Response, Problem> {
    let owner = request.user.id;
    let record = request.user.is_admin().then(|| request.audit_record(AuditAction::DataErased, owner));
    request
        .run_transaction("data", async move |tx| {
            store::data::erase(tx, owner).await?;
            if let Some(record) = &record {
                store::audit::record(tx, record).await?;
            }
            Ok(Success::<NoBody>::NoContent)
        })
        .await
}
