//! Converts the results of external tools to our answers. Results of recognized tools get the flat form of S3,
//! independent of the field names of the server.

use serde_json::{Map, Value, json};

use super::ExternalResult;
use crate::ToolKind;
use crate::answer::{self, ToolAnswer, ToolFailure};

const TOOL_ERROR: &str = "TOOL_ERROR";

/// Converts a result to an answer. `kind` is `None` for a tool with an unknown purpose. Without structured data, the
/// text is read as JSON. So is structured data that is a string. An object with only the field `result` is replaced by
/// its value. A result that reports an error becomes a failed answer. A list or a task gets our field names. The text
/// for the model is that of the server, except for a failure.
pub(super) fn answer(result: ExternalResult, kind: Option<ToolKind>) -> ToolAnswer {
    let ExternalResult { is_error, structured, text } = result;
    let data = unwrap_result(structured.unwrap_or(Value::Null));
    // The text may contain JSON, which the library of the server may have wrapped again.
    let data = match &data {
        Value::Null => serde_json::from_str(&text).map(unwrap_result).unwrap_or(data),
        Value::String(inner) => serde_json::from_str(inner).map(unwrap_result).unwrap_or(data),
        _ => data,
    };
    if let Some(failure) = failure(is_error, &data, &text) {
        return ToolAnswer::failed(failure);
    }
    let data = match kind {
        None => unknown_data(data, &text),
        Some(ToolKind::List) => list_data(&data, &text),
        Some(_) => task_data(&data),
    };
    ToolAnswer::from_external(data).with_text(text)
}

/// Removes the `result` object in which some servers wrap other values.
fn unwrap_result(mut data: Value) -> Value {
    match data.as_object_mut() {
        Some(object) if object.len() == 1 && object.contains_key("result") => object["result"].take(),
        _ => data,
    }
}

/// Returns the failure if the result reports one: by its flag, an `error` that is not null, or `success: false`. The
/// message comes from the error, else from `message`, else from the text. A message such as "not found" gets the code
/// `NOT_FOUND`. The codes `NOT_FOUND` and `VALIDATION_ERROR` are kept, and all other codes become [`TOOL_ERROR`].
fn failure(is_error: bool, data: &Value, text: &str) -> Option<ToolFailure> {
    let error = data.get("error").filter(|error| !error.is_null());
    if !is_error && error.is_none() && data["success"] != false {
        return None;
    }
    let reported = error.and_then(|error| error["message"].as_str().or(error.as_str()));
    let message = reported.or(data["message"].as_str()).unwrap_or(text).trim();
    let message = if message.is_empty() { "The tool failed without a message." } else { message };
    let plain = message.to_lowercase();
    let code = error.and_then(|error| error["code"].as_str()).unwrap_or_default();
    let is_missing = code == answer::NOT_FOUND
        || ["not found", "no such", "does not exist", "doesn't exist"].iter().any(|words| plain.contains(words));
    let code = match code {
        _ if is_missing => answer::NOT_FOUND,
        answer::VALIDATION_ERROR => answer::VALIDATION_ERROR,
        _ => TOOL_ERROR,
    };
    Some(ToolFailure::new(code, message))
}

/// Returns the data of a tool with an unknown purpose, with `success: true` unless it has that field. A value that is
/// not an object becomes its `result`. Without data, the text does.
fn unknown_data(data: Value, text: &str) -> Value {
    match data {
        Value::Object(mut object) => {
            object.entry("success").or_insert(true.into());
            Value::Object(object)
        }
        Value::Null => json!({"success": true, "result": text}),
        data => json!({"success": true, "result": data}),
    }
}

/// Returns the tasks of a list, with `count` and `total`. The data is an array, or has one in `tasks`, `todos`,
/// `items`, `results` or `data`. Otherwise reads the tasks from the lines of the text. Entries without an id or a title
/// are left out. `total` is that of the server, but at least `count`.
fn list_data(data: &Value, text: &str) -> Value {
    let nested = ["tasks", "todos", "items", "results", "data"].iter().find_map(|key| data[*key].as_array());
    let tasks: Vec<Value> = match data.as_array().or(nested) {
        Some(tasks) => tasks.iter().filter_map(normalize_task).collect(),
        None => text.lines().filter_map(parse_line).collect(),
    };
    let total = data["total"].as_u64().unwrap_or(tasks.len() as u64).max(tasks.len() as u64);
    json!({"success": true, "count": tasks.len(), "total": total, "tasks": tasks})
}

/// Returns the task of a result, which is in `task`, `todo`, `item` or `data`, or the result itself. Returns only
/// `success` if it has no id or title.
fn task_data(data: &Value) -> Value {
    let inner = ["task", "todo", "item", "data"].iter().map(|key| &data[*key]).find(|inner| inner.is_object());
    match normalize_task(inner.unwrap_or(data)) {
        Some(task) => json!({"success": true, "task_id": task["id"], "title": task["title"], "task": task}),
        None => json!({"success": true}),
    }
}

/// Returns a task with our field names, or `None` if it has no id or title. Names of other servers such as `todo_id`,
/// `name`, `done` and `notes` are known. The status is `completed` or `pending`. Priorities become lower case. Unknown
/// fields are dropped.
fn normalize_task(data: &Value) -> Option<Value> {
    let data = data.as_object()?;
    let first = |keys: &[&str]| keys.iter().find_map(|key| data.get(*key)).filter(|value| !value.is_null()).cloned();
    let mut task = Map::new();
    task.insert("id".to_owned(), first(&["id", "task_id", "todo_id", "uuid"])?);
    task.insert("title".to_owned(), first(&["title", "name", "text", "content", "summary"]).filter(Value::is_string)?);
    let done = first(&["is_completed", "completed", "done"]).is_some_and(|done| done == true);
    let status = first(&["status", "state"]);
    let done = done || matches!(status.as_ref().and_then(Value::as_str), Some("completed" | "complete" | "done"));
    task.insert("status".to_owned(), if done { "completed" } else { "pending" }.into());
    let fields =
        [("description", &["description", "notes"][..]), ("due_date", &["due_date", "due"]), ("tags", &["tags"])];
    let fields = fields.into_iter().chain([("recurrence", &["recurrence"][..]), ("remind_at", &["remind_at"])]);
    for (key, keys) in fields {
        task.extend(first(keys).map(|value| (key.to_owned(), value)));
    }
    if let Some(priority) = first(&["priority"]).and_then(|priority| priority.as_str().map(str::to_lowercase)) {
        task.insert("priority".to_owned(), priority.into());
    }
    Some(Value::Object(task))
}

/// Parses a line of a list in the form of S3: `1. [✓] Title (ID: …)`. Any mark in the brackets means completed. Text
/// after the id is ignored. Returns `None` for any other line.
fn parse_line(line: &str) -> Option<Value> {
    let (number, rest) = line.trim().split_once(". [")?;
    number.parse::<usize>().ok()?;
    let (mark, rest) = rest.split_once("] ")?;
    let (title, rest) = rest.rsplit_once(" (ID: ")?;
    let (id, _) = rest.split_once(')')?;
    let status = if mark.trim().is_empty() { "pending" } else { "completed" };
    Some(json!({"id": id, "title": title, "status": status}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(kind: ToolKind, structured: Option<Value>, text: &str) -> ToolAnswer {
        answer(ExternalResult { is_error: false, structured, text: text.to_owned() }, Some(kind))
    }

    #[test]
    fn lists_of_tasks_are_normalized() {
        // TASK-2
        let expected = json!([{"id": 7, "title": "milk", "status": "completed"}]);
        let forms = [
            json!({"result": [{"id": 7, "title": "milk", "status": "completed"}]}),
            json!([{"todo_id": 7, "title": "milk", "completed": true}]),
            json!({"todos": [{"id": 7, "name": "milk", "done": true}], "count": 1}),
            json!({"success": true, "tasks": [{"task_id": 7, "title": "milk", "status": "done"}]}),
        ];
        for form in forms {
            let by_structure = normalized(ToolKind::List, Some(form.clone()), "");
            assert_eq!(by_structure.data()["tasks"], expected, "{form}");
            let by_text = normalized(ToolKind::List, None, &form.to_string());
            assert_eq!(by_text.data()["tasks"], expected, "{form}");
            let wrapped = normalized(ToolKind::List, Some(json!({"result": form.to_string()})), &form.to_string());
            assert_eq!(wrapped.data()["tasks"], expected, "{form}");
        }
        let words = "You have 2 tasks:\n1. [✓] Task One (ID: abc)\n2. [ ] Task (two) (ID: def)";
        let list = normalized(ToolKind::List, None, words);
        assert_eq!(list.data()["tasks"][1], json!({"id": "def", "title": "Task (two)", "status": "pending"}));
        let created = normalized(ToolKind::Add, Some(json!({"todo": {"id": "a", "title": "milk"}})), "ok");
        assert_eq!((&created.data()["task_id"], &created.data()["title"]), (&json!("a"), &json!("milk")));
        assert_eq!(created.text(Some(ToolKind::Add)), "ok", "a model reads the text of the server");
    }

    #[test]
    fn failures_are_recognized_in_all_forms() {
        let code = |structured: Option<Value>, is_error: bool, text: &str| {
            let result = ExternalResult { is_error, structured, text: text.to_owned() };
            answer(result, Some(ToolKind::Delete)).error().map(|(code, message)| (code.to_owned(), message.to_owned()))
        };
        assert_eq!(code(None, true, "Todo 5 not found").unwrap().0, "NOT_FOUND");
        assert_eq!(code(Some(json!({"success": false, "error": "bad date"})), false, "").unwrap().1, "bad date");
        let s3 = json!({"success": false, "error": {"code": "VALIDATION_ERROR", "message": "too long"}});
        assert_eq!(code(Some(s3), false, ""), Some(("VALIDATION_ERROR".to_owned(), "too long".to_owned())));
        assert!(!code(None, true, "").unwrap().1.is_empty(), "the message is never empty");
        assert_eq!(code(Some(json!({"success": true, "error": null})), false, "done"), None);
    }

    #[test]
    fn results_of_unknown_tools_keep_their_form() {
        let result = ExternalResult { is_error: false, structured: None, text: "sunny".to_owned() };
        assert_eq!(answer(result, None).data(), &json!({"success": true, "result": "sunny"}));
    }
}
