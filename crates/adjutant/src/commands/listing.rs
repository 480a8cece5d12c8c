//! Helpers for listings: pages, lookup of items by name, formatting of ids and times.

use api::agents::{Agent, Agents};
use api::executions::{Execution, ListExecutions};
use api::{ListPage, ListParams, MAX_LIMIT};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use model::Clock;
use model::agent::Agent as ConfiguredAgent;
use model::due::DueDate;
use model::words::short_due_words;
use uuid::Uuid;

use crate::client::{Client, ClientResponse, with_query};
use crate::exit::{ExitError, ExitStatus};
use crate::output;

/// An item of a listing.
pub(crate) type ListItem<L> = <<L as ListParams>::Page as ListPage>::Item;

/// Requests one page, with the limit and cursor of `list`. Fails if the request fails.
pub(crate) async fn page<L: ListParams>(client: &Client, path: &str, list: &L) -> anyhow::Result<ClientResponse> {
    client.get(&with_query(path, list)?).await
}

/// Returns the items of all pages, up to `limit` items. The limit and cursor of `list` are ignored; reading starts at
/// the first page. Fails if a request fails.
pub(crate) async fn all_items<L: ListParams>(
    client: &Client,
    path: &str,
    list: L,
    limit: usize,
) -> anyhow::Result<Vec<ListItem<L>>> {
    let mut found = Vec::new();
    let mut cursor = None;
    while found.len() < limit {
        let page_size = limit_param(limit - found.len()).min(MAX_LIMIT);
        let answer = page(client, path, &list.clone().with_page(Some(page_size), cursor)).await?;
        let (items, next) = answer.read::<L::Page>()?.into_parts();
        found.extend(items);
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(found)
}

/// Returns the items for a table, from the first page on, up to the limit of `list`, else up to `limit`. Returns none
/// if everything is printed. With `--json`, this is one page with the limit and cursor of `list`, also if `quiet` is
/// set. With `quiet`, it is the ids, or nothing without items. Otherwise it is the note `empty` if there are no items.
/// Fails if a request or the output fails.
pub(crate) async fn items_to_show<L: ListParams>(
    client: &Client,
    path: &str,
    list: L,
    limit: usize,
    quiet: bool,
    empty: &str,
) -> anyhow::Result<Option<Vec<ListItem<L>>>>
where
    ListItem<L>: Named,
{
    if client.json {
        page(client, path, &list).await?.print()?;
        return Ok(None);
    }
    let limit = list.limit().map_or(limit, |limit| usize::try_from(limit).unwrap_or_default());
    let found = all_items(client, path, list, limit).await?;
    if quiet {
        found.iter().try_for_each(|item| output::print_line(&item.id()))?;
        return Ok(None);
    }
    if found.is_empty() {
        output::note(empty);
        return Ok(None);
    }
    Ok(Some(found))
}

/// Returns a number of items as the query parameter `limit`.
pub(crate) fn limit_param(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// An item that can be selected by an id or a name.
pub(crate) trait Named {
    const KIND: &str;

    fn id(&self) -> String;

    /// Returns a text that distinguishes items with similar names.
    fn title(&self) -> String;

    /// Returns the line of the item among candidates.
    fn details(&self) -> String {
        self.title()
    }

    /// Returns the text that a user enters to select the item.
    fn name(&self) -> String {
        self.title()
    }

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

/// Implements [`Named`] by an id and a title: `named!("task": Task, |task| task.id, task.title)`. A third expression is the
/// text that a user enters, by default the title.
macro_rules! named {
    ($kind:literal: $item:ty, |$named:ident| $id:expr, $title:expr) => {
        $crate::commands::listing::named!($kind: $item, |$named| $id, $title, $title);
    };
    ($kind:literal: $item:ty, |$named:ident| $id:expr, $title:expr, $name:expr) => {
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

            fn name(&self) -> String {
                let $named = self;
                $name.to_string()
            }
        }
    };
}
pub(crate) use named;

named!("agent": Agent, |agent| Agent::id(agent), agent.name(), Agent::id(agent));
named!("agent": ConfiguredAgent, |agent| agent.id, agent.name, agent.id);
named!(
    "execution": Execution,
    |run| run.id,
    format!("{}, {}, {}", run.agent_id, run.state, local_time(run.created_at)),
    short_id(run.id)
);

/// Returns true if an item matches a name in lower case.
pub(crate) type ItemMatcher<T> = fn(&T, &str) -> bool;

/// Returns the item that `name` selects, ignoring case and surrounding whitespace. The first matcher that matches any
/// item decides. Fails with `Ambiguous` if it matches several items; the message lists up to 20 of them. Fails with
/// `NotFound` if no matcher matches.
pub(crate) fn select_one<'a, T: Named>(
    name: &str,
    items: &'a [T],
    matchers: &[ItemMatcher<T>],
) -> anyhow::Result<&'a T> {
    let wanted = name.trim().to_lowercase();
    for matches in matchers {
        let matching: Vec<_> = items.iter().filter(|item| matches(item, &wanted)).collect();
        match matching.as_slice() {
            [] => {}
            [item] => return Ok(item),
            several => {
                let mut message = format!("'{name}' matches {} {}s:", several.len(), T::KIND);
                message.extend(several.iter().take(20).map(|item| format!("\n  {}  {}", item.id(), item.details())));
                return Err(ExitError::new(ExitStatus::Ambiguous, message).into());
            }
        }
    }
    let meant = nearest(&wanted, items).map(|meant| format!("; did you mean '{meant}'?")).unwrap_or_default();
    Err(ExitError::new(ExitStatus::NotFound, format!("no {} matches '{name}'{meant}", T::KIND)).into())
}

/// The number of items among which a suggestion is searched.
const MAX_CANDIDATES: usize = 1000;

/// Like [`select_one`], for items that were found by their name. If none matches, the suggestion is one of the items that
/// `all` selects, up to [`MAX_CANDIDATES`]. Also fails if they cannot be read.
pub(crate) async fn select_or_suggest<L: ListParams>(
    client: &Client,
    path: &str,
    name: &str,
    (items, matchers): (&[ListItem<L>], &[ItemMatcher<ListItem<L>>]),
    all: L,
) -> anyhow::Result<ListItem<L>>
where
    ListItem<L>: Named + Clone,
{
    let is_none = |error: &anyhow::Error| crate::exit::exit_status(error) == ExitStatus::NotFound;
    match select_one(name, items, matchers) {
        Ok(item) => Ok(item.clone()),
        Err(error) if is_none(&error) && items.is_empty() => {
            let all = all_items(client, path, all, MAX_CANDIDATES).await?;
            select_one(name, &all, matchers).cloned()
        }
        Err(error) => Err(error),
    }
}

/// Returns the name of the item that resembles `wanted` most, in lower case: its id, its name or a word of its name.
/// Returns `None` if more than a third of the letters differ.
fn nearest<T: Named>(wanted: &str, items: &[T]) -> Option<String> {
    let distance = |text: &str| strsim::damerau_levenshtein(wanted, &text.to_lowercase());
    let of_item = |item: &T| {
        let name = item.name();
        let words = name.split_whitespace().map(distance).min();
        [Some(distance(&item.id())), Some(distance(&name)), words].into_iter().flatten().min().map(|d| (d, name))
    };
    let most = (wanted.chars().count() / 3).min(3);
    let (distance, name) = items.iter().filter_map(of_item).min_by_key(|(distance, _)| *distance)?;
    (distance <= most).then_some(name)
}

/// Returns the items that the names select, in the order of the names and without duplicates. Fails at the first name
/// that `resolve` rejects.
pub(crate) async fn resolve_each<T: Named>(
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

/// Returns all agents that the user may see. Fails if the request fails.
pub(crate) async fn agents(client: &Client) -> anyhow::Result<Vec<Agent>> {
    Ok(client.get("/api/agents").await?.read::<Agents>()?.agents)
}

/// Returns the agent with this id, name, or part of an id. Fails if no agent matches or several do.
pub(crate) async fn agent(client: &Client, name: &str) -> anyhow::Result<Agent> {
    find_agent(&agents(client).await?, name).cloned()
}

/// Like [`agent`], in a list of agents.
pub(crate) fn find_agent<'a, T: Named>(agents: &'a [T], name: &str) -> anyhow::Result<&'a T> {
    select_one(name, agents, &[T::has_id, T::has_title, T::has_part])
}

/// Returns the id of the agent with this name, or none if no name is given. Fails if no agent matches or several do.
pub(crate) async fn agent_id(client: &Client, name: Option<&str>) -> anyhow::Result<Option<String>> {
    match name {
        Some(name) => Ok(Some(agent(client, name).await?.id().to_owned())),
        None => Ok(None),
    }
}

/// Returns the execution with this id or part of an id. Fails if no execution matches or several do.
pub(crate) async fn execution(client: &Client, name: &str) -> anyhow::Result<Execution> {
    let list = ListExecutions { reference: Some(name.trim().to_lowercase()), ..ListExecutions::default() };
    let found = all_items(client, "/api/executions", list, usize::MAX).await?;
    let matchers: [ItemMatcher<Execution>; 2] = [Named::has_id, Named::has_part];
    let all = ListExecutions::default();
    select_or_suggest(client, "/api/executions", name, (&found, &matchers), all).await
}

/// Returns the last 8 characters of an id. Ids of the same time have the same beginning.
pub(crate) fn short_id(id: Uuid) -> String {
    id.to_string().split_off(28)
}

/// Returns the text of a value, or an empty text.
pub(crate) fn or_empty(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Returns a time in the local time zone with seconds, or an empty text without a time.
pub(crate) fn local_time(time: impl Into<Option<Timestamp>>) -> String {
    let time = time.into().map(|time| time.to_zoned(TimeZone::system()));
    or_empty(time.map(|time| time.strftime("%Y-%m-%d %H:%M:%S").to_string()))
}

/// Returns the current time in the local time zone.
pub(crate) fn local_now() -> Zoned {
    Clock::system().now().to_zoned(TimeZone::system())
}

/// Returns a time in words in the local time zone: "tomorrow at 3pm".
pub(crate) fn time_in_words(time: Timestamp) -> String {
    short_due_words(&DueDate::from_zoned(&time.to_zoned(TimeZone::system())), &local_now())
}

/// Formats a duration: `12 ms` below a second, `1.5 s` below a minute, `1 min 1 s` below an hour, else `2 h 1 min`.
/// Tenths of a second are rounded, so `60.0 s` is possible. Otherwise smaller units are cut off.
pub(crate) fn format_duration(millis: i64) -> String {
    let seconds = millis / 1000;
    match seconds {
        ..1 => format!("{millis} ms"),
        1..60 => format!("{:.1} s", millis as f64 / 1000.0),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Splits the `NAME=VALUE` of a flag at the first `=`. The value may be empty. Fails if there is no `=` or no name.
pub(crate) fn split_pair<'a>(flag: &str, given: &'a str) -> anyhow::Result<(&'a str, &'a str)> {
    match given.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name, value)),
        // The value may be a secret and is not shown.
        _ => Err(ExitError::new(ExitStatus::Usage, format!("{flag} must be NAME=VALUE")).into()),
    }
}

#[cfg(test)]
mod tests {
    use api::agents::AgentDraft;

    use super::*;

    #[test]
    fn the_most_specific_match_decides() {
        let agent = |(id, name): (&str, &str)| {
            let program = Some("/bin/echo".to_owned());
            let id = Some(id.to_owned());
            let name = Some(name.to_owned());
            AgentDraft { id, name, executable_path: program, ..AgentDraft::default() }.check().unwrap()
        };
        let agents = [("code", "Coder"), ("codex", "Codex"), ("my-coder", "Other")].map(agent);
        let found = |name: &str| find_agent(&agents, name).map(|agent| agent.id.clone());
        assert_eq!(found("code").unwrap(), "code", "a whole id, although another begins with it");
        assert_eq!(found("coder").unwrap(), "code", "a whole name, although an id ends with it");
        assert_eq!(found("MY").unwrap(), "my-coder");
        let suggested = |name: &str| found(name).unwrap_err().to_string();
        assert_eq!(suggested("cdoex"), "no agent matches 'cdoex'; did you mean 'codex'?");
        assert_eq!(suggested("otherr"), "no agent matches 'otherr'");
        assert_eq!(suggested("zz"), "no agent matches 'zz'");
        for (name, code) in
            [("cod", ExitStatus::Ambiguous), ("claude", ExitStatus::NotFound), ("", ExitStatus::NotFound)]
        {
            assert_eq!(crate::exit::exit_status(&found(name).unwrap_err()), code, "{name}");
        }
    }

    #[test]
    fn durations_are_formatted_in_their_largest_units() {
        let shown: Vec<_> = [12, 1500, 59_000, 61_000, 7_260_000].map(format_duration).into();
        assert_eq!(shown, ["12 ms", "1.5 s", "59.0 s", "1 min 1 s", "2 h 1 min"]);
    }
}
