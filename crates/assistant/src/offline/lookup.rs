//! Resolves references to tasks: names, positions and pronouns. All functions fail with the next tool call if its
//! result is not known yet.

use serde_json::{Value, json};
use tools::{ToolArguments, ToolKind};
use understand::TaskTarget;

use super::{CallResult, OfflinePolicy, PendingCall, TaskListCache, matching};
use crate::mentions::{self, TaskMention};

/// The maximum number of tasks that a lookup reads.
const LOOKUP_LIMIT: i64 = 200;

/// The result of resolving a reference.
pub(super) enum LookupResult {
    One(TaskMention),
    Several(Vec<TaskMention>),
    /// The query matches several tasks equally well.
    Ambiguous(String, Vec<TaskMention>),
    /// The query matches no task.
    NoMatch(String),
    /// The command refers to no task.
    NotNamed,
    /// The task list could not be read.
    Failed,
}

/// The preferred status among the tasks that match a name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusPreference {
    /// Open tasks, if any match.
    Open,
    /// Completed tasks, if any match.
    Completed,
    /// Open tasks, if open and completed tasks match equally well.
    OpenIfTied,
}

impl StatusPreference {
    /// Returns `true` for completed tasks if they are preferred, else for open tasks.
    fn accepts(self, task: &Value) -> bool {
        (task["status"] == "completed") == (self == Self::Completed)
    }
}

/// Resolves a reference. `pick` is the index of one of several equally good matches of a name. A name without a match
/// may consist of several names. A position refers to the last list, counted from 1. Without such an entry, "number 3"
/// is looked up as a name. "Both" needs a last list with exactly two tasks. "It" is the task that was mentioned last.
/// "All", "it" without such a task and "both" without such a list are [`LookupResult::NotNamed`].
///
/// A task that was only mentioned by its title is looked up by that title. Otherwise positions and pronouns return a
/// task that is not marked as completed or current, because its state may have changed.
pub(super) fn find(
    policy: &mut OfflinePolicy<'_>,
    target: &TaskTarget,
    prefer: StatusPreference,
    pick: Option<usize>,
) -> Result<LookupResult, PendingCall> {
    let found = match target {
        TaskTarget::Named(words) if names_last_change(words) => {
            let last = policy.last.clone().or_else(|| mentions::last_added(&policy.prompt.context.history));
            match last {
                Some(mention) => LookupResult::One(TaskMention { completed: false, current: false, ..mention }),
                None => LookupResult::NotNamed,
            }
        }
        TaskTarget::Them | TaskTarget::Both if !policy.named.is_empty() => {
            return Ok(LookupResult::Several(std::mem::take(&mut policy.named)));
        }
        TaskTarget::Named(words)
            if pick.is_none()
                && let Some(position) = named_position(words)
                && !mentions::last_shown(&policy.prompt.context.history).is_empty() =>
        {
            return find(policy, &position, prefer, None);
        }
        TaskTarget::Named(words) => match find_by_name(policy, without_status(words), prefer, pick)? {
            // A pronoun is never a search text.
            LookupResult::NoMatch(words) if has_pronoun(&words) && policy.last.is_some() => match policy.last.clone() {
                Some(mention) => LookupResult::One(TaskMention { completed: false, current: false, ..mention }),
                None => LookupResult::NoMatch(words),
            },
            LookupResult::NoMatch(words) => return find_joined(policy, words, prefer),
            found => found,
        },
        TaskTarget::Position(position) => {
            match find_in_list(policy, |list| list.get(position.checked_sub(1)?), &format!("number {position}"))? {
                // The text may be the name of a task.
                LookupResult::NoMatch(words) => match find_by_name(policy, &words, prefer, None)? {
                    LookupResult::NoMatch(_) if mentions::last_shown(&policy.prompt.context.history).is_empty() => {
                        LookupResult::NotNamed
                    }
                    found => found,
                },
                found => found,
            }
        }
        TaskTarget::Last => find_in_list(policy, |list| list.last(), "the last one")?,
        TaskTarget::It => match policy.last.clone() {
            Some(mention) => LookupResult::One(TaskMention { completed: false, current: false, ..mention }),
            None => LookupResult::NotNamed,
        },
        TaskTarget::Both => both(policy)?,
        TaskTarget::Several(targets) => return several(policy, targets, prefer),
        TaskTarget::Them => {
            // After a change of one task, its title may be in the plural: "took them".
            let is_newest = mentions::is_last_answer_a_change(&policy.prompt.context.history);
            let uses_recent = move |recent: &[TaskMention]| recent.len() > 1 || is_newest && !recent.is_empty();
            return named_before(policy, |list, recent| if uses_recent(&recent) { recent } else { list });
        }
        TaskTarget::LastN(count) => {
            let count = *count;
            return named_before(policy, |mut list, _| list.split_off(list.len().saturating_sub(count)));
        }
        TaskTarget::Middle => find_in_list(policy, |list| list.get(list.len() / 2), "the middle one")?,
        TaskTarget::Other | TaskTarget::Rest => {
            let last = policy.last.clone();
            let others = named_before(policy, |mut list, _| {
                let is_last = |task: &TaskMention| last.as_ref().is_some_and(|last| is_same_task(last, task));
                list.retain(|task| !is_last(task));
                list
            })?;
            return Ok(match others {
                LookupResult::Several(_) if *target == TaskTarget::Other => LookupResult::NotNamed,
                found => found,
            });
        }
        // Selected by the filter, not by a name.
        TaskTarget::All => LookupResult::NotNamed,
    };
    match found {
        LookupResult::One(mention) => with_id(policy, mention, prefer),
        other => Ok(other),
    }
}

/// Splits a name that matches no task at " and " and ", " into 2 to 20 names: "the milk and the bread". If it cannot be
/// split, or if one of the names has no match, the whole name has no match. An ambiguous name is returned as such.
fn find_joined(
    policy: &mut OfflinePolicy<'_>,
    words: String,
    prefer: StatusPreference,
) -> Result<LookupResult, PendingCall> {
    let names: Vec<_> = words.split(" and ").flat_map(|part| part.split(", ")).map(str::trim).collect();
    if names.len() < 2 || names.len() > 20 || names.iter().any(|name| name.is_empty()) {
        return Ok(LookupResult::NoMatch(words));
    }
    let targets: Vec<_> = names.into_iter().map(|name| TaskTarget::Named(name.to_owned())).collect();
    Ok(match several(policy, &targets, prefer)? {
        LookupResult::NoMatch(_) => LookupResult::NoMatch(words),
        found => found,
    })
}

/// Resolves several references. Returns the first result that is not a task, such as an ambiguous name. A task that two
/// references name directly is returned once. A single task is returned as [`LookupResult::One`].
fn several(
    policy: &mut OfflinePolicy<'_>,
    targets: &[TaskTarget],
    prefer: StatusPreference,
) -> Result<LookupResult, PendingCall> {
    let mut mentions: Vec<TaskMention> = Vec::with_capacity(targets.len());
    for target in targets {
        match find(policy, target, prefer, None)? {
            LookupResult::One(mention) => {
                if !mentions.contains(&mention) {
                    mentions.push(mention);
                }
            }
            LookupResult::Several(more) => mentions.extend(more),
            other => return Ok(other),
        }
    }
    Ok(match mentions.len() {
        1 => mentions.pop().map_or(LookupResult::NotNamed, LookupResult::One),
        _ => LookupResult::Several(mentions),
    })
}

/// Removes "as done" and similar words from the end of a name.
fn without_status(words: &str) -> &str {
    let ends = [" as done", " as complete", " as completed", " as finished", " done", " off"];
    ends.iter().find_map(|end| words.strip_suffix(end)).unwrap_or(words)
}

fn has_pronoun(words: &str) -> bool {
    words.split_whitespace().any(|word| matches!(word, "it" | "them" | "that" | "those" | "this" | "these"))
}

/// Returns true for names such as "the one I just added".
fn names_last_change(words: &str) -> bool {
    let text = matching::normalize(words);
    let text = text.trim_end_matches(" to the list").trim_end_matches(" now").to_owned();
    let verbs = ["added", "created", "made", "mentioned", "entered", "changed", "said"];
    text.contains("just") && verbs.iter().any(|verb| text.ends_with(verb)) || text == "last added"
}

/// Returns the target of a position in words that the engine takes for a name: "top one", "the bottom one".
fn named_position(words: &str) -> Option<TaskTarget> {
    let text = matching::normalize(words);
    let position = text.trim_start_matches("the ").strip_suffix(" one")?;
    matches!(position, "top" | "bottom").then(|| super::continuation::position_target(position))?
}

/// Returns true if both mentions are the same task.
fn is_same_task(a: &TaskMention, b: &TaskMention) -> bool {
    if a.id.is_some() && b.id.is_some() { a.id == b.id } else { a.title == b.title }
}

/// Resolves a plural reference. `choose` gets the tasks of the last list, options included, and those of the last
/// change, the newer of both first. No task is named if there are none.
fn named_before(
    policy: &mut OfflinePolicy<'_>,
    choose: impl FnOnce(Vec<TaskMention>, Vec<TaskMention>) -> Vec<TaskMention>,
) -> Result<LookupResult, PendingCall> {
    let history = &policy.prompt.context.history;
    let chosen = choose(mentions::last_shown(history), mentions::last_changed(history));
    let mut found = Vec::with_capacity(chosen.len());
    for mention in chosen {
        match with_id(policy, mention, StatusPreference::Open)? {
            LookupResult::One(mention) => found.push(TaskMention { current: false, ..mention }),
            LookupResult::NoMatch(_) => {}
            other => return Ok(other),
        }
    }
    Ok(match found.len() {
        0 => LookupResult::NotNamed,
        1 => found.pop().map_or(LookupResult::NotNamed, LookupResult::One),
        _ => LookupResult::Several(found),
    })
}

/// Resolves "both" if the last change or the last list has exactly two tasks. Otherwise no task is named.
fn both(policy: &mut OfflinePolicy<'_>) -> Result<LookupResult, PendingCall> {
    let found = find(policy, &TaskTarget::Them, StatusPreference::Open, None)?;
    Ok(match found {
        LookupResult::Several(tasks) if tasks.len() != 2 => LookupResult::NotNamed,
        found => found,
    })
}

/// Selects a task from the last list that was shown. Without one, no task is named. `choose` returns the task, and `name` is the query of [`LookupResult::NoMatch`] if there is
/// none. The result is not marked as completed or current.
fn find_in_list(
    policy: &mut OfflinePolicy<'_>,
    choose: impl Fn(&[TaskMention]) -> Option<&TaskMention>,
    name: &str,
) -> Result<LookupResult, PendingCall> {
    let list = mentions::last_shown(&policy.prompt.context.history);
    // A position without a list means nothing.
    if list.is_empty() && !name.starts_with("number") {
        return Ok(LookupResult::NotNamed);
    }
    Ok(match choose(&list) {
        // The task may have been reopened since.
        Some(mention) => LookupResult::One(TaskMention { completed: false, current: false, ..mention.clone() }),
        None => LookupResult::NoMatch(name.to_owned()),
    })
}

/// Looks up the id of a mentioned task by its title, if the id is unknown. Of several matches, the only one with
/// exactly this title is selected. Otherwise returns the result of the lookup, such as no match or an ambiguous name.
fn with_id(
    policy: &mut OfflinePolicy<'_>,
    mention: TaskMention,
    prefer: StatusPreference,
) -> Result<LookupResult, PendingCall> {
    if mention.id.is_some() {
        return Ok(LookupResult::One(mention));
    }
    let found = find_by_name(policy, &mention.title, prefer, None)?;
    Ok(match found {
        // The mention has the full title, so a task with exactly this title is preferred.
        LookupResult::Ambiguous(query, options) => {
            match options.iter().filter(|option| option.title == mention.title).collect::<Vec<_>>().as_slice() {
                [one] => LookupResult::One((*one).clone()),
                _ => LookupResult::Ambiguous(query, options),
            }
        }
        other => other,
    })
}

/// Returns the current state of a mentioned task. Lists the tasks with its title as the query and compares ids. Returns
/// the mention unchanged, without a call, if it is current. Also returns it unchanged if the call fails or the task is
/// not found.
pub(super) fn current(policy: &mut OfflinePolicy<'_>, mention: TaskMention) -> Result<TaskMention, PendingCall> {
    if mention.current {
        return Ok(mention);
    }
    let tasks = list_tasks(policy, Some(&mention.title))?.unwrap_or_default();
    let now = tasks.iter().filter_map(TaskMention::from_task).find(|task| task.id == mention.id);
    Ok(now.unwrap_or(mention))
}

/// Looks up a name in the cached list, then with a query, then in the list of all tasks. The query is left out if the
/// list tool does not support it, or if the name has fewer than 2 characters. A later step runs only if the earlier one
/// finds nothing. Returns [`LookupResult::Failed`] if there is no list tool or if it fails, and
/// [`LookupResult::NoMatch`] if no task matches.
fn find_by_name(
    policy: &mut OfflinePolicy<'_>,
    words: &str,
    prefer: StatusPreference,
    pick: Option<usize>,
) -> Result<LookupResult, PendingCall> {
    let Some(list) = policy.spec(ToolKind::List) else { return Ok(LookupResult::Failed) };
    let normalized = matching::normalize(words);
    if let Some(found) = find_in_cache(policy, words, prefer, pick)? {
        return Ok(found);
    }
    // The cache has all tasks.
    if let TaskListCache::Loaded(tasks) = policy.list
        && i64::try_from(tasks.len()).is_ok_and(|count| count < LOOKUP_LIMIT)
        && list.is_built_in()
    {
        return Ok(LookupResult::NoMatch(words.to_owned()));
    }
    let mut queries = Vec::with_capacity(2);
    if list.has_argument("query") && normalized.chars().count() >= 2 {
        queries.push(Some(words));
    }
    queries.push(None);
    for query in queries {
        let Some(tasks) = list_tasks(policy, query)? else { return Ok(LookupResult::Failed) };
        if let Some(found) = match_name(tasks, words, prefer, pick) {
            return Ok(found);
        }
    }
    Ok(LookupResult::NoMatch(words.to_owned()))
}

/// Looks up a name in the list that is loaded once for all commands of the message. Loads it on first use. A failed
/// call counts as an empty list. The list lacks tasks that earlier commands created. Returns `None` if no task matches,
/// or if each name is looked up with its own call.
fn find_in_cache(
    policy: &mut OfflinePolicy<'_>,
    words: &str,
    prefer: StatusPreference,
    pick: Option<usize>,
) -> Result<Option<LookupResult>, PendingCall> {
    if let TaskListCache::Requested = policy.list {
        let tasks = list_tasks(policy, None)?.unwrap_or_default();
        policy.list = TaskListCache::Loaded(tasks);
    }
    Ok(match policy.list {
        TaskListCache::Loaded(tasks) => match_name(tasks, words, prefer, pick),
        _ => None,
    })
}

/// Matches a name against tasks. Tasks of the preferred status win, even with a worse match. But an exact match of
/// another status wins over a loose match of the preferred one. With [`StatusPreference::OpenIfTied`], open tasks win
/// only among equally good matches. If no task of the preferred status matches, tasks of any status count. Returns
/// `None` if no task matches. `pick` is the index of one of several matches, and an index out of range is ignored.
fn match_name(tasks: &[Value], words: &str, prefer: StatusPreference, pick: Option<usize>) -> Option<LookupResult> {
    let all = matching::best_matches(tasks, words);
    let mut chosen: Vec<_> = match prefer {
        StatusPreference::OpenIfTied => all.iter().copied().filter(|task| prefer.accepts(task)).collect(),
        _ => matching::best_matches(tasks.iter().filter(|task| prefer.accepts(task)), words),
    };
    // An exact match wins over a loose match of the preferred status.
    let is_loose = |task: &&&Value| matching::is_loose(task, words);
    let is_exact = |task: &&&Value| matching::is_exact(task, words);
    if chosen.is_empty() || all.first().filter(is_exact).is_some() && chosen.first().filter(is_loose).is_some() {
        chosen = all;
    }
    let mut mentions: Vec<_> = chosen.into_iter().filter_map(TaskMention::from_task).collect();
    match (mentions.len(), pick) {
        (0, _) => None,
        (1, _) => mentions.pop().map(LookupResult::One),
        (n, Some(at)) if at < n => Some(LookupResult::One(mentions.swap_remove(at))),
        _ => Some(LookupResult::Ambiguous(words.to_owned(), mentions)),
    }
}

/// Returns the tasks of any status, at most [`LOOKUP_LIMIT`]. A failed call counts as an empty list. The list is loaded
/// once for the message.
pub(super) fn all_tasks<'a>(policy: &mut OfflinePolicy<'a>) -> Result<&'a [Value], PendingCall> {
    if let TaskListCache::Loaded(tasks) = policy.list {
        return Ok(tasks);
    }
    let tasks = list_tasks(policy, None)?.unwrap_or_default();
    policy.list = TaskListCache::Loaded(tasks);
    Ok(tasks)
}

/// Lists tasks of any status, with an optional query, at most [`LOOKUP_LIMIT`] if the tool has a limit. A result
/// without a list of tasks is an empty list. Returns `None` if there is no list tool, or if the call fails or is held.
fn list_tasks<'a>(policy: &mut OfflinePolicy<'a>, query: Option<&str>) -> Result<Option<&'a [Value]>, PendingCall> {
    let Some(list) = policy.spec(ToolKind::List) else { return Ok(None) };
    let mut arguments = ToolArguments::from_iter([("status".to_owned(), json!("all"))]);
    if let Some(query) = query {
        arguments.insert("query".to_owned(), query.into());
    }
    if list.has_argument("limit") {
        arguments.insert("limit".to_owned(), LOOKUP_LIMIT.into());
    }
    Ok(match policy.call(list, arguments)? {
        CallResult::Done(data) => Some(data["tasks"].as_array().map(Vec::as_slice).unwrap_or_default()),
        CallResult::Refused(..) | CallResult::Held => None,
    })
}

/// Returns the task that a text names by all of its words, and no other one.
pub(super) fn named_task(policy: &mut OfflinePolicy<'_>, text: &str) -> Result<Option<TaskMention>, PendingCall> {
    if matching::normalize(text).split(' ').all(|word| matching::is_filler(word) || word.is_empty()) {
        return Ok(None);
    }
    let found = find(policy, &TaskTarget::Named(text.to_owned()), StatusPreference::OpenIfTied, None)?;
    Ok(match found {
        LookupResult::One(mention) => Some(mention),
        _ => None,
    })
}
