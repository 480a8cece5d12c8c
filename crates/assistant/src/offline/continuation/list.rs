//! Changes the filter of the last list: "and tomorrow?", "just the urgent ones" (TRUST-3).

use model::task::Priority;
use tools::ToolKind;
use understand::{CommandFilter, DueFilter, Intent, ParsedCommand, StatusFilter};

use crate::offline::OfflinePolicy;
use crate::offline::dialogue::LastExchange;
use crate::offline::follow_up::ResolvedCommand;
use crate::offline::framing::Framing;
use crate::offline::matching::normalize;

/// Changes the filter of the last list: "and tomorrow?", "just the urgent ones".
pub(super) fn refined_list(
    policy: &OfflinePolicy<'_>,
    framing: &Framing,
    last: &LastExchange<'_>,
) -> Option<Vec<ResolvedCommand>> {
    let request = policy.prompt.request;
    if matches!(normalize(&framing.body).as_str(), "everything" | "all" | "all of them" | "the lot" | "the whole list")
    {
        return Some(vec![ResolvedCommand::new(ParsedCommand::new(Intent::ListTasks, 0.9))]);
    }
    let parsed = request.parser.parse(&format!("show my tasks {}", framing.body), &request.now);
    let [read] = parsed.commands.as_slice() else { return None };
    if read.intent != Intent::ListTasks || read.filter == CommandFilter::default() {
        return None;
    }
    let mut filter = last_filter(policy, last);
    let new = &read.filter;
    if new.due.is_some() {
        filter.due.clone_from(&new.due);
    }
    if new.priority.is_some() {
        filter.priority = new.priority;
    }
    if !new.tags.is_empty() {
        filter.tags.clone_from(&new.tags);
    }
    if new.status.is_some() {
        filter.status = new.status;
    }
    if new.text.is_some() {
        filter.text.clone_from(&new.text);
    }
    filter.unsupported = new.unsupported;
    Some(vec![ResolvedCommand::new(ParsedCommand { filter, ..ParsedCommand::new(Intent::ListTasks, read.confidence) })])
}

/// Returns the filter of the last list from the arguments of its call.
pub(in crate::offline) fn last_filter(policy: &OfflinePolicy<'_>, last: &LastExchange<'_>) -> CommandFilter {
    let is_list =
        |name: &str| policy.prompt.tools.iter().any(|spec| spec.name == name && spec.kind == Some(ToolKind::List));
    let Some(call) = last.calls.iter().rev().find(|call| is_list(&call.tool_name)) else {
        return CommandFilter::default();
    };
    let text = |key: &str| call.parameters[key].as_str();
    let status = match text("status") {
        Some("completed") => Some(StatusFilter::Completed),
        Some("all") => Some(StatusFilter::All),
        _ => None,
    };
    let tags = call.parameters["tags"].as_array().into_iter().flatten();
    CommandFilter {
        status,
        priority: text("priority").and_then(|word| Priority::parse("priority", word).ok()),
        due: text("due_date_filter").and_then(due_filter),
        tags: tags.filter_map(|tag| tag.as_str().map(str::to_owned)).collect(),
        text: text("query").map(str::to_owned),
        unsupported: false,
    }
}

fn due_filter(text: &str) -> Option<DueFilter> {
    Some(match text {
        "today" => DueFilter::Today,
        "tomorrow" => DueFilter::Tomorrow,
        "this_week" => DueFilter::ThisWeek,
        "overdue" => DueFilter::Overdue,
        _ => match text.split_once("..") {
            Some((first, last)) => DueFilter::Between(first.parse().ok(), last.parse().ok()),
            None => DueFilter::Day(text.parse().ok()?),
        },
    })
}
