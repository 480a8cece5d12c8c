//! From the way people name tasks to the tasks themselves.

use serde_json::{Value, json};
use tools::{Arguments, Tool};
use understand::Target;

use super::{Ask, Look, Policy, Reply, matching};
use crate::shown::{self, Mention};

/// How many tasks one look sees.
const LOOK: i64 = 200;

/// What a name stands for.
pub(super) enum Found {
    One(Mention),
    Several(Vec<Mention>),
    /// More than one could be meant by this name.
    Ambiguous(String, Vec<Mention>),
    /// Nothing is called so.
    None(String),
    /// Nothing was named.
    Nothing,
    /// The tasks could not be looked at.
    Failed,
}

/// Which of the tasks that a name matches are of interest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefer {
    /// Open ones, unless there are none.
    Open,
    /// Completed ones, unless there are none.
    Completed,
    /// Open ones, where both match equally well.
    OpenOnTie,
}

impl Prefer {
    fn takes(self, task: &Value) -> bool {
        (task["status"] == "completed") == (self == Self::Completed)
    }
}

pub(super) fn find(
    policy: &mut Policy<'_>,
    target: &Target,
    prefer: Prefer,
    pick: Option<usize>,
) -> Result<Found, Ask> {
    let found = match target {
        Target::Named(words) => match named(policy, words, prefer, pick)? {
            Found::None(words) => return together(policy, words, prefer),
            found => found,
        },
        Target::Position(place) => {
            match placed(policy, |list| list.get(place.checked_sub(1)?), &format!("number {place}"))? {
                // It may be the name of a task after all.
                Found::None(words) => named(policy, &words, prefer, None)?,
                found => found,
            }
        }
        Target::Last => placed(policy, |list| list.last(), "the last one")?,
        Target::It => match policy.last.clone() {
            Some(mention) => Found::One(Mention { completed: false, current: false, ..mention }),
            None => Found::Nothing,
        },
        Target::Both => both(policy)?,
        Target::Several(targets) => return several(policy, targets, prefer),
        // Meant by the filter, not by a name.
        Target::All => Found::Nothing,
    };
    match found {
        Found::One(mention) => known(policy, mention, prefer),
        other => Ok(other),
    }
}

/// "the milk and the bread": what no task is called may be the names of several.
fn together(policy: &mut Policy<'_>, words: String, prefer: Prefer) -> Result<Found, Ask> {
    let names: Vec<_> = words.split(" and ").flat_map(|part| part.split(", ")).map(str::trim).collect();
    if names.len() < 2 || names.len() > 20 || names.iter().any(|name| name.is_empty()) {
        return Ok(Found::None(words));
    }
    let targets: Vec<_> = names.into_iter().map(|name| Target::Named(name.to_owned())).collect();
    Ok(match several(policy, &targets, prefer)? {
        Found::None(_) => Found::None(words),
        found => found,
    })
}

fn several(policy: &mut Policy<'_>, targets: &[Target], prefer: Prefer) -> Result<Found, Ask> {
    let mut mentions: Vec<Mention> = Vec::with_capacity(targets.len());
    for target in targets {
        match find(policy, target, prefer, None)? {
            Found::One(mention) => {
                if !mentions.contains(&mention) {
                    mentions.push(mention);
                }
            }
            Found::Several(more) => mentions.extend(more),
            other => return Ok(other),
        }
    }
    Ok(match mentions.len() {
        1 => mentions.pop().map_or(Found::Nothing, Found::One),
        _ => Found::Several(mentions),
    })
}

/// The two tasks of a list that has no others.
fn both(policy: &mut Policy<'_>) -> Result<Found, Ask> {
    if shown::last_list(&policy.prompt.context.history).len() != 2 {
        return Ok(Found::Nothing);
    }
    several(policy, &[Target::Position(1), Target::Position(2)], Prefer::Open)
}

/// By its place in the list shown last, or where none was shown, in the one that would be.
fn placed(policy: &mut Policy<'_>, choose: impl Fn(&[Mention]) -> Option<&Mention>, name: &str) -> Result<Found, Ask> {
    let mut list = shown::last_list(&policy.prompt.context.history);
    if list.is_empty()
        && let Some(spec) = policy.spec(Tool::List)
        && let Reply::Done(data) = policy.call(spec, Arguments::new())?
    {
        list = data["tasks"].as_array().into_iter().flatten().filter_map(Mention::of).collect();
    }
    Ok(match choose(&list) {
        // It may have been opened again since.
        Some(mention) => Found::One(Mention { completed: false, current: false, ..mention.clone() }),
        None => Found::None(name.to_owned()),
    })
}

/// A task that was mentioned: by its id, or where only its title is left, by that.
fn known(policy: &mut Policy<'_>, mention: Mention, prefer: Prefer) -> Result<Found, Ask> {
    if mention.id.is_some() {
        return Ok(Found::One(mention));
    }
    let found = named(policy, &mention.title, prefer, None)?;
    Ok(match found {
        // Nobody asked about a title that is like another's: the very same one was meant.
        Found::Ambiguous(query, options) => {
            match options.iter().filter(|option| option.title == mention.title).collect::<Vec<_>>().as_slice() {
                [one] => Found::One((*one).clone()),
                _ => Found::Ambiguous(query, options),
            }
        }
        other => other,
    })
}

/// The task as it is now.
pub(super) fn current(policy: &mut Policy<'_>, mention: Mention) -> Result<Mention, Ask> {
    if mention.current {
        return Ok(mention);
    }
    let tasks = look(policy, Some(&mention.title))?.unwrap_or_default();
    let now = tasks.iter().filter_map(Mention::of).find(|task| task.id == mention.id);
    Ok(now.unwrap_or(mention))
}

fn named(policy: &mut Policy<'_>, words: &str, prefer: Prefer, pick: Option<usize>) -> Result<Found, Ask> {
    let Some(list) = policy.spec(Tool::List) else { return Ok(Found::Failed) };
    let plain = matching::plain(words);
    if let Some(found) = among_seen(policy, words, prefer, pick)? {
        return Ok(found);
    }
    let mut looks = Vec::with_capacity(2);
    if list.takes("query") && plain.chars().count() >= 2 {
        looks.push(Some(words));
    }
    looks.push(None);
    for query in looks {
        let Some(tasks) = look(policy, query)? else { return Ok(Found::Failed) };
        if let Some(found) = among(tasks, words, prefer, pick) {
            return Ok(found);
        }
    }
    Ok(Found::None(words.to_owned()))
}

/// In the list that was looked at for all commands of the message. What came in since is not in it.
fn among_seen(policy: &mut Policy<'_>, words: &str, prefer: Prefer, pick: Option<usize>) -> Result<Option<Found>, Ask> {
    if let Look::Once = policy.list {
        let tasks = look(policy, None)?.unwrap_or_default();
        policy.list = Look::Seen(tasks);
    }
    Ok(match policy.list {
        Look::Seen(tasks) => among(tasks, words, prefer, pick),
        _ => None,
    })
}

/// What a name stands for among these; nothing where it stands for none of them.
fn among(tasks: &[Value], words: &str, prefer: Prefer, pick: Option<usize>) -> Option<Found> {
    let all = matching::meant(tasks, words);
    let mut chosen: Vec<_> = match prefer {
        Prefer::OpenOnTie => all.iter().copied().filter(|task| prefer.takes(task)).collect(),
        _ => matching::meant(tasks.iter().filter(|task| prefer.takes(task)), words),
    };
    // What only resembles the name does not stand against the task that is called so.
    let is_far = |task: &&&Value| matching::is_loose(task, words);
    let is_called_so = |task: &&&Value| matching::is_same(task, words);
    if chosen.is_empty() || all.first().filter(is_called_so).is_some() && chosen.first().filter(is_far).is_some() {
        chosen = all;
    }
    let mut mentions: Vec<_> = chosen.into_iter().filter_map(Mention::of).collect();
    match (mentions.len(), pick) {
        (0, _) => None,
        (1, _) => mentions.pop().map(Found::One),
        (n, Some(at)) if at < n => Some(Found::One(mentions.swap_remove(at))),
        _ => Some(Found::Ambiguous(words.to_owned(), mentions)),
    }
}

/// The tasks whose words have `query` in them, or simply the first ones; nothing where the tool refuses.
fn look<'a>(policy: &mut Policy<'a>, query: Option<&str>) -> Result<Option<&'a [Value]>, Ask> {
    let Some(list) = policy.spec(Tool::List) else { return Ok(None) };
    let mut arguments = Arguments::from_iter([("status".to_owned(), json!("all"))]);
    if let Some(query) = query {
        arguments.insert("query".to_owned(), query.into());
    }
    if list.takes("limit") {
        arguments.insert("limit".to_owned(), LOOK.into());
    }
    Ok(match policy.call(list, arguments)? {
        Reply::Done(data) => Some(data["tasks"].as_array().map(Vec::as_slice).unwrap_or_default()),
        Reply::Refused(..) | Reply::Held => None,
    })
}
