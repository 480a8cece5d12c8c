//! Listings: their pages, the item that a name means, ids and times for people.

use api::agents::{Agent, Agents};
use api::executions::{Execution, ListExecutions};
use api::{List, MAX_LIMIT, Page};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use model::agent::Agent as Configured;
use uuid::Uuid;

use crate::client::{Answer, Client, with_query};
use crate::exit::{Code, Exit};
use crate::output;

/// An item of a listing.
pub(crate) type Item<L> = <<L as List>::Page as Page>::Item;

/// Requests one page: the one with the list's own limit and cursor.
pub(crate) async fn page<L: List>(client: &Client, path: &str, list: &L) -> anyhow::Result<Answer> {
    client.get(&with_query(path, list)?).await
}

/// Returns the items of all pages, up to `limit` items.
pub(crate) async fn all<L: List>(client: &Client, path: &str, list: L, limit: usize) -> anyhow::Result<Vec<Item<L>>> {
    let mut found = Vec::new();
    let mut cursor = None;
    while found.len() < limit {
        let most = saturating(limit - found.len()).min(MAX_LIMIT);
        let answer = page(client, path, &list.clone().at(Some(most), cursor)).await?;
        let (items, next) = answer.read::<L::Page>()?.into_parts();
        found.extend(items);
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(found)
}

/// Returns the items to show in a table, up to the list's own limit or else `limit`. Returns none with `--json` and with
/// `quiet`, which print the page or the ids, and if there are no items, which is reported by `empty`.
pub(crate) async fn to_show<L: List>(
    client: &Client,
    path: &str,
    list: L,
    limit: usize,
    quiet: bool,
    empty: &str,
) -> anyhow::Result<Option<Vec<Item<L>>>>
where
    Item<L>: Named,
{
    if client.json {
        page(client, path, &list).await?.print()?;
        return Ok(None);
    }
    let limit = list.limit().map_or(limit, |limit| usize::try_from(limit).unwrap_or_default());
    let found = all(client, path, list, limit).await?;
    if quiet {
        found.iter().try_for_each(|item| output::say(&item.id()))?;
        return Ok(None);
    }
    if found.is_empty() {
        output::note(empty);
        return Ok(None);
    }
    Ok(Some(found))
}

/// Returns a number of items as the parameter `limit`.
pub(crate) fn saturating(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// An item that people refer to by an id or a name.
pub(crate) trait Named {
    const KIND: &str;

    fn id(&self) -> String;

    /// Returns a text that distinguishes items that the same name fits.
    fn title(&self) -> String;

    fn has_id(&self, wanted: &str) -> bool {
        self.id() == wanted
    }

    /// Returns true if the id begins or ends with `wanted`.
    fn has_part(&self, wanted: &str) -> bool {
        !wanted.is_empty() && (self.id().starts_with(wanted) || self.id().ends_with(wanted))
    }

    fn has_title(&self, wanted: &str) -> bool {
        self.title().to_lowercase() == wanted
    }
}

/// Implements [`Named`] by an id and a title: `named!("task": Task, |task| task.id, task.title)`.
macro_rules! named {
    ($kind:literal: $item:ty, |$named:ident| $id:expr, $title:expr) => {
        impl $crate::commands::listing::Named for $item {
            const KIND: &str = $kind;

            fn id(&self) -> String {
                let $named = self;
                $id.to_string()
            }

            fn title(&self) -> String {
                let $named = self;
                $title.to_string()
            }
        }
    };
}
pub(crate) use named;

named!("agent": Agent, |agent| Agent::id(agent), agent.name());
named!("agent": Configured, |agent| agent.id, agent.name);
named!("execution": Execution, |run| run.id, format!("{}, {}, {}", run.agent_id, run.state, when(run.created_at)));

/// Compares an item with a name in lower case.
pub(crate) type Reading<T> = fn(&T, &str) -> bool;

/// Returns the item that `name` means. The first reading that fits any item decides. Fails if it fits several, or if no
/// reading fits.
pub(crate) fn one<'a, T: Named>(name: &str, items: &'a [T], readings: &[Reading<T>]) -> anyhow::Result<&'a T> {
    let wanted = name.trim().to_lowercase();
    for reading in readings {
        let fitting: Vec<_> = items.iter().filter(|item| reading(item, &wanted)).collect();
        match fitting.as_slice() {
            [] => {}
            [item] => return Ok(item),
            several => {
                let mut message = format!("'{name}' could be {} {}s:", several.len(), T::KIND);
                message.extend(several.iter().take(20).map(|item| format!("\n  {}  {}", item.id(), item.title())));
                return Err(Exit::new(Code::Ambiguous, message).into());
            }
        }
    }
    Err(Exit::new(Code::NotFound, format!("there is no {} '{name}'", T::KIND)).into())
}

/// Returns the items that the names mean, each of them once.
pub(crate) async fn each<T: Named>(
    names: &[String],
    resolve: impl AsyncFn(&str) -> anyhow::Result<T>,
) -> anyhow::Result<Vec<T>> {
    let mut items: Vec<T> = Vec::new();
    for name in names {
        let item = resolve(name).await?;
        if !items.iter().any(|known| known.id() == item.id()) {
            items.push(item);
        }
    }
    Ok(items)
}

pub(crate) async fn agents(client: &Client) -> anyhow::Result<Vec<Agent>> {
    Ok(client.get("/api/agents").await?.read::<Agents>()?.agents)
}

/// Returns the agent with this id, this name, or this part of an id.
pub(crate) async fn agent(client: &Client, name: &str) -> anyhow::Result<Agent> {
    agent_of(&agents(client).await?, name).cloned()
}

pub(crate) fn agent_of<'a, T: Named>(agents: &'a [T], name: &str) -> anyhow::Result<&'a T> {
    one(name, agents, &[T::has_id, T::has_title, T::has_part])
}

/// Returns the id of the agent, if one is named.
pub(crate) async fn agent_id(client: &Client, name: Option<&str>) -> anyhow::Result<Option<String>> {
    match name {
        Some(name) => Ok(Some(agent(client, name).await?.id().to_owned())),
        None => Ok(None),
    }
}

/// Returns the execution with this id or this part of an id.
pub(crate) async fn execution(client: &Client, name: &str) -> anyhow::Result<Execution> {
    let list = ListExecutions { reference: Some(name.trim().to_lowercase()), ..ListExecutions::default() };
    let found = all(client, "/api/executions", list, usize::MAX).await?;
    one(name, &found, &[Named::has_id, Named::has_part]).cloned()
}

/// Returns the last 8 characters of an id. Ids that were made in the same moment have the same beginning.
pub(crate) fn short(id: Uuid) -> String {
    id.to_string().split_off(28)
}

/// Returns the text of a value, or an empty one.
pub(crate) fn or_empty(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Returns a time in the local time zone, or an empty text.
pub(crate) fn when(time: impl Into<Option<Timestamp>>) -> String {
    let time = time.into().map(|time| time.to_zoned(TimeZone::system()));
    or_empty(time.map(|time| time.strftime("%Y-%m-%d %H:%M:%S").to_string()))
}

/// Returns a length of time in its largest units.
pub(crate) fn lasting(millis: i64) -> String {
    let seconds = millis / 1000;
    match seconds {
        ..1 => format!("{millis} ms"),
        1..60 => format!("{:.1} s", millis as f64 / 1000.0),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Splits the `NAME=VALUE` of a flag. Fails if there is no name.
pub(crate) fn pair<'a>(flag: &str, given: &'a str) -> anyhow::Result<(&'a str, &'a str)> {
    match given.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name, value)),
        // The value is not shown: it may be a secret.
        _ => Err(Exit::new(Code::Usage, format!("{flag} must be NAME=VALUE")).into()),
    }
}

#[cfg(test)]
mod tests {
    use api::agents::AgentDraft;

    use super::*;

    #[test]
    fn the_surest_reading_decides() {
        let agent = |(id, name): (&str, &str)| {
            let program = Some("/bin/echo".to_owned());
            let id = Some(id.to_owned());
            let name = Some(name.to_owned());
            AgentDraft { id, name, executable_path: program, ..AgentDraft::default() }.check().unwrap()
        };
        let agents = [("code", "Coder"), ("codex", "Codex"), ("my-coder", "Other")].map(agent);
        let found = |name: &str| agent_of(&agents, name).map(|agent| agent.id.clone());
        assert_eq!(found("code").unwrap(), "code", "a whole id, although another begins with it");
        assert_eq!(found("coder").unwrap(), "code", "a whole name, although an id ends with it");
        assert_eq!(found("MY").unwrap(), "my-coder");
        for (name, code) in [("cod", Code::Ambiguous), ("claude", Code::NotFound), ("", Code::NotFound)] {
            assert_eq!(crate::exit::code_of(&found(name).unwrap_err()), code, "{name}");
        }
    }

    #[test]
    fn lengths_of_time_are_short() {
        let shown: Vec<_> = [12, 1500, 59_000, 61_000, 7_260_000].map(lasting).into();
        assert_eq!(shown, ["12 ms", "1.5 s", "59.0 s", "1 min 1 s", "2 h 1 min"]);
    }
}
