//! What listings have in common: pages, references to one of many, ids and times for people.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::client::Client;
use crate::exit::{Code, Exit};

const PAGE: usize = 200;

/// Every page, up to `limit` things.
pub(crate) async fn all(
    client: &Client,
    path: &str,
    things: &str,
    query: &str,
    limit: usize,
) -> anyhow::Result<Vec<Value>> {
    let mut found = Vec::new();
    let mut cursor = String::new();
    while found.len() < limit {
        let page = PAGE.min(limit - found.len());
        let answer = client.get(&format!("{path}?{query}&limit={page}{cursor}")).await?.json()?;
        found.extend(answer[things].as_array().cloned().unwrap_or_default());
        match answer["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    Ok(found)
}

/// Whether a thing fits what somebody wrote.
pub(crate) type Reading<'a> = &'a dyn Fn(&Value) -> bool;

/// The one thing that somebody means. The first reading that fits any thing decides; `title` tells them apart.
pub(crate) fn one(
    what: &str,
    name: &str,
    found: &[Value],
    readings: &[Reading<'_>],
    title: impl Fn(&Value) -> String,
) -> anyhow::Result<Value> {
    for reading in readings {
        let fitting: Vec<_> = found.iter().filter(|thing| reading(thing)).collect();
        match fitting.as_slice() {
            [] => {}
            [thing] => return Ok((*thing).clone()),
            several => {
                let line = |thing: &&&Value| format!("\n  {}  {}", text(thing, "id"), title(thing));
                let lines: Vec<_> = several.iter().take(20).map(|thing| line(&thing)).collect();
                let message = format!("'{name}' could be {} {what}s:{}", several.len(), lines.concat());
                return Err(Exit::new(Code::Ambiguous, message).into());
            }
        }
    }
    Err(Exit::new(Code::NotFound, format!("there is no {what} '{name}'")).into())
}

/// The agent that somebody means by its id, its name, or a part of its id.
pub(crate) async fn agent(client: &Client, name: &str) -> anyhow::Result<Value> {
    let answer = client.get("/api/agents").await?.json()?;
    agent_of(answer["agents"].as_array().map(Vec::as_slice).unwrap_or_default(), name)
}

pub(crate) fn agent_of(agents: &[Value], name: &str) -> anyhow::Result<Value> {
    let wanted = name.trim().to_lowercase();
    let id = |agent: &Value| text(agent, "id") == wanted;
    let named = |agent: &Value| text(agent, "name").to_lowercase() == wanted;
    let part = |agent: &Value| is_part(text(agent, "id"), &wanted);
    one("agent", name, agents, &[&id, &named, &part], |agent| text(agent, "name").to_owned())
}

/// The execution that somebody means by its id or a part of it.
pub(crate) async fn execution(client: &Client, name: &str) -> anyhow::Result<Value> {
    let wanted = name.trim().to_lowercase();
    let found = all(client, "/api/executions", "executions", &query([("ref", wanted.as_str())]), usize::MAX).await?;
    let id = |execution: &Value| text(execution, "id") == wanted;
    let part = |execution: &Value| is_part(text(execution, "id"), &wanted);
    let title = |execution: &Value| {
        format!("{}, {}, {}", text(execution, "agent_id"), text(execution, "state"), when(&execution["created_at"]))
    };
    one("execution", name, &found, &[&id, &part], title)
}

pub(crate) fn is_part(id: &str, wanted: &str) -> bool {
    !wanted.is_empty() && (id.starts_with(wanted) || id.ends_with(wanted))
}

pub(crate) fn query<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut query = String::new();
    for (name, value) in pairs {
        let value = percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC);
        query.push_str(&format!("{}{name}={value}", if query.is_empty() { "" } else { "&" }));
    }
    query
}

pub(crate) fn text<'a>(thing: &'a Value, field: &str) -> &'a str {
    thing[field].as_str().unwrap_or_default()
}

/// The end of an id, which differs where ids were made in the same moment.
pub(crate) fn short(id: &str) -> &str {
    id.get(id.len().saturating_sub(8)..).unwrap_or(id)
}

/// A time of the server, as clocks here show it.
pub(crate) fn when(time: &Value) -> String {
    match timestamp(time) {
        Some(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        None => String::new(),
    }
}

pub(crate) fn timestamp(time: &Value) -> Option<Timestamp> {
    time.as_str()?.parse().ok()
}

/// A length of time, to the figure that matters.
pub(crate) fn lasting(millis: i64) -> String {
    let seconds = millis / 1000;
    match seconds {
        ..1 => format!("{millis} ms"),
        1..60 => format!("{:.1} s", millis as f64 / 1000.0),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// `NAME=VALUE`, as a flag has it.
pub(crate) fn pair<'a>(flag: &str, given: &'a str) -> anyhow::Result<(&'a str, &'a str)> {
    match given.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name, value)),
        // What follows may be a secret that was meant to have a name.
        _ => Err(Exit::new(Code::Usage, format!("{flag} must be NAME=VALUE")).into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_surest_reading_decides() {
        let agents = [
            json!({"id": "code", "name": "Coder"}),
            json!({"id": "codex", "name": "Codex"}),
            json!({"id": "my-coder", "name": "Other"}),
        ];
        let found = |name: &str| agent_of(&agents, name).map(|agent| text(&agent, "id").to_owned());
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
