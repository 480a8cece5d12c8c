//! What tools of others answer, in our own form as far as it can be made out: S3's flat form for tools that are known,
//! whatever the words of the server are.

use serde_json::{Map, Value, json};

use super::Called;
use crate::Tool;
use crate::answer::{self, Answer, Failure};

const TOOL_ERROR: &str = "TOOL_ERROR";

pub(super) fn answer(called: Called, tool: Option<Tool>) -> Answer {
    let Called { is_error, structured, text } = called;
    let data = unwrapped(structured.unwrap_or(Value::Null));
    // JSON that is text, perhaps wrapped once more by the server's library.
    let data = match &data {
        Value::Null => serde_json::from_str(&text).map(unwrapped).unwrap_or(data),
        Value::String(inner) => serde_json::from_str(inner).map(unwrapped).unwrap_or(data),
        _ => data,
    };
    if let Some(failure) = failed(is_error, &data, &text) {
        return Answer::failed(failure);
    }
    let read = match tool {
        None => other(data, &text),
        Some(Tool::List) => list(&data, &text),
        Some(_) => one(&data),
    };
    Answer::from_outside(read).in_words(text)
}

/// Some servers wrap whatever is no object.
fn unwrapped(mut data: Value) -> Value {
    match data.as_object_mut() {
        Some(object) if object.len() == 1 && object.contains_key("result") => object["result"].take(),
        _ => data,
    }
}

fn failed(is_error: bool, data: &Value, text: &str) -> Option<Failure> {
    let error = data.get("error").filter(|error| !error.is_null());
    if !is_error && error.is_none() && data["success"] != false {
        return None;
    }
    let said = error.and_then(|error| error["message"].as_str().or(error.as_str()));
    let message = said.or(data["message"].as_str()).unwrap_or(text).trim();
    let message = if message.is_empty() { "The tool failed and did not say why." } else { message };
    let plain = message.to_lowercase();
    let code = error.and_then(|error| error["code"].as_str()).unwrap_or_default();
    let is_missing = code == answer::NOT_FOUND
        || ["not found", "no such", "does not exist", "doesn't exist"].iter().any(|words| plain.contains(words));
    let code = match code {
        _ if is_missing => answer::NOT_FOUND,
        answer::VALIDATION_ERROR => answer::VALIDATION_ERROR,
        _ => TOOL_ERROR,
    };
    Some(Failure::new(code, message))
}

fn other(data: Value, text: &str) -> Value {
    match data {
        Value::Object(mut object) => {
            object.entry("success").or_insert(true.into());
            Value::Object(object)
        }
        Value::Null => json!({"success": true, "result": text}),
        data => json!({"success": true, "result": data}),
    }
}

fn list(data: &Value, text: &str) -> Value {
    let among = ["tasks", "todos", "items", "results", "data"].iter().find_map(|key| data[*key].as_array());
    let tasks: Vec<Value> = match data.as_array().or(among) {
        Some(tasks) => tasks.iter().filter_map(task).collect(),
        None => text.lines().filter_map(line).collect(),
    };
    let total = data["total"].as_u64().unwrap_or(tasks.len() as u64).max(tasks.len() as u64);
    json!({"success": true, "count": tasks.len(), "total": total, "tasks": tasks})
}

fn one(data: &Value) -> Value {
    let inner = ["task", "todo", "item", "data"].iter().map(|key| &data[*key]).find(|inner| inner.is_object());
    match task(inner.unwrap_or(data)) {
        Some(task) => json!({"success": true, "task_id": task["id"], "title": task["title"], "task": task}),
        None => json!({"success": true}),
    }
}

/// A task under the names that we know it by.
fn task(data: &Value) -> Option<Value> {
    let data = data.as_object()?;
    let first = |keys: &[&str]| keys.iter().find_map(|key| data.get(*key)).filter(|value| !value.is_null()).cloned();
    let mut task = Map::new();
    task.insert("id".to_owned(), first(&["id", "task_id", "todo_id", "uuid"])?);
    task.insert("title".to_owned(), first(&["title", "name", "text", "content", "summary"]).filter(Value::is_string)?);
    let done = first(&["is_completed", "completed", "done"]).is_some_and(|done| done == true);
    let status = first(&["status", "state"]);
    let done = done || matches!(status.as_ref().and_then(Value::as_str), Some("completed" | "complete" | "done"));
    task.insert("status".to_owned(), if done { "completed" } else { "pending" }.into());
    let same =
        [("description", &["description", "notes"][..]), ("due_date", &["due_date", "due"]), ("tags", &["tags"])];
    let same = same.into_iter().chain([("recurrence", &["recurrence"][..]), ("remind_at", &["remind_at"])]);
    for (key, keys) in same {
        task.extend(first(keys).map(|value| (key.to_owned(), value)));
    }
    if let Some(priority) = first(&["priority"]).and_then(|priority| priority.as_str().map(str::to_lowercase)) {
        task.insert("priority".to_owned(), priority.into());
    }
    Some(Value::Object(task))
}

/// A line of a list in the words of S3: `1. [✓] Title (ID: …)`.
fn line(line: &str) -> Option<Value> {
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

    fn read(tool: Tool, structured: Option<Value>, text: &str) -> Answer {
        answer(Called { is_error: false, structured, text: text.to_owned() }, Some(tool))
    }

    #[test]
    fn tasks_are_read_whatever_the_server_calls_them() {
        // TASK-2
        let expected = json!([{"id": 7, "title": "milk", "status": "completed"}]);
        let forms = [
            json!({"result": [{"id": 7, "title": "milk", "status": "completed"}]}),
            json!([{"todo_id": 7, "title": "milk", "completed": true}]),
            json!({"todos": [{"id": 7, "name": "milk", "done": true}], "count": 1}),
            json!({"success": true, "tasks": [{"task_id": 7, "title": "milk", "status": "done"}]}),
        ];
        for form in forms {
            let by_structure = read(Tool::List, Some(form.clone()), "");
            assert_eq!(by_structure.data()["tasks"], expected, "{form}");
            let by_text = read(Tool::List, None, &form.to_string());
            assert_eq!(by_text.data()["tasks"], expected, "{form}");
            let wrapped = read(Tool::List, Some(json!({"result": form.to_string()})), &form.to_string());
            assert_eq!(wrapped.data()["tasks"], expected, "{form}");
        }
        let words = "You have 2 tasks:\n1. [✓] Task One (ID: abc)\n2. [ ] Task (two) (ID: def)";
        let list = read(Tool::List, None, words);
        assert_eq!(list.data()["tasks"][1], json!({"id": "def", "title": "Task (two)", "status": "pending"}));
        let created = read(Tool::Add, Some(json!({"todo": {"id": "a", "title": "milk"}})), "ok");
        assert_eq!((&created.data()["task_id"], &created.data()["title"]), (&json!("a"), &json!("milk")));
        assert_eq!(created.text(Some(Tool::Add)), "ok", "a model reads the words of the server");
    }

    #[test]
    fn failures_are_failures_however_they_are_told() {
        let code = |structured: Option<Value>, is_error: bool, text: &str| {
            let called = Called { is_error, structured, text: text.to_owned() };
            answer(called, Some(Tool::Delete)).error().map(|(code, message)| (code.to_owned(), message.to_owned()))
        };
        assert_eq!(code(None, true, "Todo 5 not found").unwrap().0, "NOT_FOUND");
        assert_eq!(code(Some(json!({"success": false, "error": "bad date"})), false, "").unwrap().1, "bad date");
        let s3 = json!({"success": false, "error": {"code": "VALIDATION_ERROR", "message": "too long"}});
        assert_eq!(code(Some(s3), false, ""), Some(("VALIDATION_ERROR".to_owned(), "too long".to_owned())));
        assert!(!code(None, true, "").unwrap().1.is_empty(), "a reason is never empty");
        assert_eq!(code(Some(json!({"success": true, "error": null})), false, "done"), None);
    }

    #[test]
    fn an_unknown_tool_answers_in_its_own_form() {
        let called = Called { is_error: false, structured: None, text: "sunny".to_owned() };
        assert_eq!(answer(called, None).data(), &json!({"success": true, "result": "sunny"}));
    }
}
