//! Lists tasks by a filter.

use serde_json::{Value, json};
use tools::{ToolArguments, ToolKind, ToolSpec};
use understand::{CommandFilter, DueFilter, ParsedCommand, StatusFilter};

use super::{CommandReply, refused};
use crate::offline::{CallResult, OfflinePolicy, PendingCall, limited_tools, questions, task_words};
use crate::wording;

/// Lists tasks, only open ones by default. Tasks of an external list are filtered by status here. Without any task and
/// without a filter, the reply is that everything is done, or that there are no tasks. If an external list does not
/// support a filter, the reply starts with a note and shows the list without it. Without a list tool, the reply is the
/// system error.
pub(in crate::offline) fn list(policy: &mut OfflinePolicy<'_>, command: &ParsedCommand) -> CommandReply {
    let Some(spec) = policy.spec(ToolKind::List) else { return Ok(Some(wording::system_error().to_owned())) };
    let filter = match spec.is_built_in() {
        true => command.filter.clone(),
        false => limited_tools::supported_filter(spec, &command.filter, policy.prompt.request.now.date()),
    };
    let mut filter = with_known_tag(policy, filter)?;
    // "my work things, not the home ones"
    let message = policy.prompt.request.message.to_lowercase();
    let is_negated =
        |tag: &str| ["not ", "not the ", "not my "].iter().any(|not| message.contains(&format!("{not}{tag}")));
    filter.tags.retain(|tag| !is_negated(&tag.to_lowercase()));
    let arguments = filters(spec, &filter);
    let data = match policy.call(spec, arguments)? {
        CallResult::Done(data) => data,
        other => return Ok(refused(other, "")),
    };
    let status = filter.status.unwrap_or(StatusFilter::Pending);
    let has_status = |task: &&Value| match status {
        // The built-in tool has filtered already. An external list may ignore the status.
        _ if spec.is_built_in() => true,
        StatusFilter::All => true,
        StatusFilter::Pending => task["status"] != "completed",
        StatusFilter::Completed => task["status"] == "completed",
    };
    let tasks: Vec<&Value> = data["tasks"].as_array().into_iter().flatten().filter(has_status).collect();
    let is_unfiltered = CommandFilter { status: None, ..filter.clone() } == CommandFilter::default();
    if tasks.is_empty() && is_unfiltered && filter.status != Some(StatusFilter::Completed) {
        return none_open(policy, spec, &filter);
    }
    let lines: Vec<_> = tasks.iter().map(|task| task_words::list_line(task, &policy.prompt.request.now)).collect();
    let total = data["total"].as_u64().and_then(|total| usize::try_from(total).ok()).filter(|_| spec.is_built_in());
    let total = total.unwrap_or(tasks.len());
    // An external list is asked for a status, also if the command names none.
    let status = if filter.unsupported { filter.status } else { command.filter.status };
    let list = wording::list(&lines, total, &CommandFilter { status, ..filter.clone() });
    Ok(Some(if filter.unsupported { format!("{}\n{list}", wording::unfiltered()) } else { list }))
}

/// Returns the reply to a list without a filter that is empty. A second call for all tasks distinguishes "everything is
/// done" from "no tasks yet". It is not made if the list already had all tasks. A failed call counts as no tasks.
fn none_open(policy: &mut OfflinePolicy<'_>, spec: &ToolSpec, filter: &CommandFilter) -> CommandReply {
    if filter.status == Some(StatusFilter::All) {
        return Ok(Some(wording::no_tasks()));
    }
    let everything = ToolArguments::from_iter([("status".to_owned(), json!("all"))]);
    let any = match policy.call(spec, everything)? {
        CallResult::Done(data) => data["tasks"].as_array().is_some_and(|tasks| !tasks.is_empty()),
        CallResult::Refused(..) | CallResult::Held => false,
    };
    Ok(Some(if any { wording::all_done() } else { wording::no_tasks() }))
}

/// Replaces the search text of a filter by a tag of this name, if an open task has one: "all uni tasks". Removes a text
/// that says nothing, such as "stuff".
pub(super) fn with_known_tag(
    policy: &mut OfflinePolicy<'_>,
    mut filter: CommandFilter,
) -> Result<CommandFilter, PendingCall> {
    let Some(text) = filter.text.clone() else { return Ok(filter) };
    let plain = text.to_lowercase();
    if matches!(plain.as_str(), "stuff" | "things" | "ones" | "jobs" | "thats" | "items" | "list") {
        filter.text = None;
        return Ok(filter);
    }
    let word = plain.trim_end_matches(" stuff").trim_end_matches(" things").trim_end_matches(" ones");
    if !word.contains(' ')
        && let Some(tag) = questions::known_tag(policy, word)?
    {
        filter.text = None;
        filter.tags.push(tag);
    }
    Ok(filter)
}

/// Returns the arguments for a filter. Parts that are not set are left out. The text is also left out if the tool has
/// no argument `query`.
pub(super) fn filters(spec: &ToolSpec, filter: &CommandFilter) -> ToolArguments {
    let mut arguments = ToolArguments::new();
    let mut put = |name: &str, value: Option<Value>| arguments.extend(value.map(|value| (name.to_owned(), value)));
    put(
        "status",
        filter.status.map(|status| match status {
            StatusFilter::Pending => "pending".into(),
            StatusFilter::Completed => "completed".into(),
            StatusFilter::All => "all".into(),
        }),
    );
    put("priority", filter.priority.map(|priority| priority.as_str().into()));
    put(
        "due_date_filter",
        filter.due.map(|due| match due {
            DueFilter::Today => "today".into(),
            DueFilter::Tomorrow => "tomorrow".into(),
            DueFilter::ThisWeek => "this_week".into(),
            DueFilter::Overdue => "overdue".into(),
            DueFilter::Day(day) => day.to_string().into(),
            DueFilter::Between(first, last) => DueFilter::format_range(first, last).into(),
        }),
    );
    put("tags", Some(json!(filter.tags)).filter(|_| !filter.tags.is_empty()));
    put("query", filter.text.as_deref().map(Value::from).filter(|_| spec.has_argument("query")));
    arguments
}
