//! Formats the progress of an agent as lines for people.

use serde_json::Value;

use super::wire::shortened;

/// The maximum number of characters of a title or a plan entry.
const MAX_LINE: usize = 200;

/// Returns a line such as `read: README.md`, or `read: README.md (failed)` if `status` is `failed`. The title is put on
/// one line and shortened. A call without a title is `a tool`. Returns `None` for a completed call.
pub(super) fn tool_call(title: &str, kind: &str, status: &str) -> Option<String> {
    let title = one_line(title);
    let title = if title.is_empty() { "a tool" } else { &title };
    match status {
        "completed" => None,
        "failed" => Some(format!("{kind}: {title} (failed)")),
        _ => Some(format!("{kind}: {title}")),
    }
}

/// Returns a line such as `plan: 1 of 3 done, now: write the tests`. Without an entry in progress, the second part is
/// left out. Returns `None` for an empty plan or a value that is not a list.
pub(super) fn plan(entries: &Value) -> Option<String> {
    let entries = entries.as_array().filter(|entries| !entries.is_empty())?;
    let is = |entry: &&Value, status: &str| entry["status"] == status;
    let done = entries.iter().filter(|entry| is(entry, "completed")).count();
    let now = entries.iter().find(|entry| is(entry, "in_progress")).and_then(|entry| entry["content"].as_str());
    let line = format!("plan: {done} of {} done", entries.len());
    Some(match now {
        Some(now) => format!("{line}, now: {}", one_line(now)),
        None => line,
    })
}

/// Returns the text of a content block: its text, the URI of a link, or the text of a resource. Returns the type in
/// brackets for any other type, and an empty text for a block without a type or without the expected field.
pub(super) fn content(block: &Value) -> String {
    let text = |name: &str| block[name].as_str().map(str::to_owned);
    match block["type"].as_str() {
        Some("text") => text("text").unwrap_or_default(),
        Some("resource_link") => text("uri").unwrap_or_default(),
        Some("resource") => block["resource"]["text"].as_str().unwrap_or_default().to_owned(),
        Some(other) => format!("[{other}]"),
        None => String::new(),
    }
}

/// Returns the text on one line, shortened to [`MAX_LINE`] characters.
fn one_line(text: &str) -> String {
    shortened(&text.split_whitespace().collect::<Vec<_>>().join(" "), MAX_LINE)
}
