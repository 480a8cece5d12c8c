//! The handler of the tool that changes several tasks, each in its own way. Validates all changes before it makes any.

use std::collections::HashSet;

use model::Invalid;
use model::invalid::Checks;
use model::json;
use model::task::TaskChange;
use serde::Deserialize;
use serde_json::{Value, json};
use store::Conn;
use store::undo::UndoStep;
use uuid::Uuid;

use crate::answer::{Error, NOT_FOUND, ToolFailure};
use crate::catalog::{
    self, ToolNames, ToolSpec, attributes, confirmation, object, status_argument, task_id_arguments, text, tool_name,
};
use crate::tasks::{MAX_BULK_TASKS, TaskUpdate, call_target, too_many};
use crate::{BuiltInCall, HeldCall, ToolAnswer, ToolArguments, ToolKind, ToolOutcome};

/// Changes several tasks in one undo step, or holds the call if it needs a confirmation. Each entry of `updates` has
/// the arguments of `update_task`. The answer has `count` and `tasks`, each with the task and `changed`, which is false
/// if the task already had these values. A completed recurring task also has `next_task`.
///
/// Fails without any change if an entry is invalid, a task does not exist or is named twice, there is no entry, or
/// there are more than [`MAX_BULK_TASKS`]. The message names the entry.
pub(crate) async fn update(mut call: BuiltInCall<'_>, conn: &mut Conn) -> Result<ToolOutcome, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Updates {
        updates: Vec<Value>,
    }
    let Updates { updates } = call.parse_arguments()?;
    if updates.is_empty() {
        return Err(Invalid::one("updates", "min_items", "must name at least one task").into());
    }
    if updates.len() > MAX_BULK_TASKS {
        return Err(too_many(updates.len()));
    }
    let changes = check_all(&call, updates.clone())?;
    let mut targets = Vec::with_capacity(changes.len());
    for (at, (id, _)) in changes.iter().enumerate() {
        match store::tasks::get(conn, call.user.id, *id).await {
            Ok(task) => targets.push(call_target(&task)),
            Err(store::Error::NotFound) => {
                let message = format!("There is no such task: updates[{at}]. Nothing was changed.");
                return Err(Error::Failure(ToolFailure::new(NOT_FOUND, message)));
            }
            Err(error) => return Err(error.into()),
        }
    }
    if call.needs_confirmation(true) {
        let arguments = held_arguments(&call, updates);
        let tool = tool_name(call.tools.names, ToolKind::UpdateSeveral);
        return Ok(ToolOutcome::Held(HeldCall::with_targets(tool, arguments, targets, true)));
    }
    let mut step = UndoStep::begin(conn, call.user.id).await?;
    let mut done = Vec::with_capacity(changes.len());
    for (id, change) in &changes {
        let clock = &call.tools.clock;
        let changed = store::recurring::change(conn, &mut step, *id, change, clock, &call.user.time_zone).await?;
        let mut entry = json!({"task": changed.task, "changed": changed.changed});
        if let Some(next) = changed.next_task {
            entry["next_task"] = json!(next);
        }
        done.push(entry);
    }
    let data = json!({"success": true, "count": done.len(), "tasks": done});
    Ok(ToolOutcome::Done(ToolAnswer::success(data)))
}

/// Returns the tool that changes several tasks, each in its own way.
pub(crate) fn spec(names: ToolNames) -> ToolSpec {
    let id = task_id_arguments(names).0;
    let fields = [
        vec![(id, text("The id of the task to change, taken from the list of tasks."))],
        attributes("The new title."),
        vec![status_argument()],
    ];
    let updates = json!({
        "type": "array",
        "description": "The changes: the id of each task with its new values. Omitted fields are not changed. An empty \
                        text or list removes the value.",
        "items": object(&[id], fields.concat()),
        "minItems": 1,
        "maxItems": MAX_BULK_TASKS,
    });
    ToolSpec {
        title: "Update several tasks".into(),
        description: "Changes several tasks in one step. The user is asked to confirm first.".into(),
        schema: object(&["updates"], vec![("updates", updates), confirmation()]),
        destructive: true,
        idempotent: true,
        ..catalog::spec(ToolKind::UpdateSeveral, if names == ToolNames::Todo { "update_todos" } else { "update_tasks" })
    }
}

/// Returns the ids with their validated changes, in the given order. Fails with all violations. A violation names its
/// entry: `updates[2].due_date`.
fn check_all(call: &BuiltInCall<'_>, updates: Vec<Value>) -> Result<Vec<(Uuid, TaskChange)>, Invalid> {
    let mut checks = Checks::default();
    let mut changes = Vec::with_capacity(updates.len());
    let mut seen = HashSet::new();
    for (at, mut update) in updates.into_iter().enumerate() {
        // Most models do not distinguish absent values from null.
        if let Some(fields) = update.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        let checked = json::from_value::<TaskUpdate>(update).and_then(|update| update.check(call));
        match checked {
            Ok((id, _)) if !seen.insert(id) => {
                checks.fail(format!("updates[{at}].task_id"), "unique", "must not be named by two entries");
            }
            Ok(change) => changes.push(change),
            Err(invalid) => {
                for violation in invalid.violations {
                    let field = match violation.field.as_str() {
                        "body" => format!("updates[{at}]"),
                        field => format!("updates[{at}].{field}"),
                    };
                    checks.fail(field, &violation.rule, violation.message);
                }
            }
        }
    }
    checks.finish(Some(changes))
}

/// Returns the arguments of the held call, with the name of the id that the tool has.
fn held_arguments(call: &BuiltInCall<'_>, mut updates: Vec<Value>) -> ToolArguments {
    let (id_argument, _) = task_id_arguments(call.tools.names);
    for fields in updates.iter_mut().filter_map(Value::as_object_mut) {
        fields.retain(|_, value| !value.is_null());
        // The targets have the ids in this form.
        let id = fields.shift_remove("task_id").and_then(|id| Uuid::try_parse(id.as_str()?.trim()).ok());
        fields.shift_insert(0, id_argument.to_owned(), json!(id));
    }
    ToolArguments::from_iter([("updates".to_owned(), Value::Array(updates))])
}
