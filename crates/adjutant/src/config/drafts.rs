//! `[[agents]]`, `[[schedules]]` and `[a2a]`: tables in the fields of the API. Each is read as a draft of the API and checked
//! like one.

use jiff::tz::TimeZone;
use model::agent::endpoint::{AuthType, EndpointDraft};
use model::agent::{ASSISTANT, Agent, Draft, Endpoint};
use model::{Invalid, schedule};
use scheduler::{Checked, check_written};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::document::{AGENTS, Origin, SCHEDULES, Table};
use super::section::{Reading, hint};
use super::{Mistake, secrets};

/// Reads the agents, and returns every id that the file has too: also of agents with mistakes. Whether their programs are
/// there is checked elsewhere.
pub(crate) fn agents(reading: &Reading<'_>, with_auth: bool) -> (Vec<Agent>, Vec<String>) {
    let variables = |name: &str| reading.variables.get(name).map(str::to_owned);
    let mut agents = Vec::new();
    let mut ids = Vec::new();
    let mut names = Vec::new();
    for table in reading.document.list(&AGENTS) {
        let agent = draft::<Draft, _>(reading, table, |draft| supervisor::check::written(draft, &variables));
        let written = table.text("id").or(table.text("name")).or(table.text("preset")).unwrap_or_default();
        let id = agent.as_ref().map_or(written, |agent| agent.id.as_str()).to_owned();
        // Two of the same id are reported for that alone.
        if !ids.iter().any(|(_, other)| *other == id) {
            names.push((table, agent.as_ref().map_or(table.name(), |agent| agent.name.as_str()).to_owned()));
        }
        ids.push((table, id));
        if let Some(agent) = agent {
            usable(reading, table, "a2a.auth", &agent.a2a, with_auth);
            agents.push(agent);
        }
    }
    reading.unique(&AGENTS, "id", ids.iter().cloned());
    reading.unique(&AGENTS, "name", names.into_iter());
    (agents, ids.into_iter().map(|(_, id)| id).collect())
}

/// A schedule of an agent that is not in the file: somebody may have registered it over the API.
#[derive(Clone, Debug)]
pub(crate) struct ForeignAgent {
    pub(crate) id: String,
    origin: Origin,
    /// The name of the setting.
    path: String,
    /// The ids that the file has.
    known: Vec<String>,
}

impl ForeignAgent {
    /// Returns the mistake that it is if nobody has registered the agent. `registered` are the ids of those who are.
    pub(crate) fn mistake<'a>(&'a self, registered: impl Iterator<Item = &'a str>) -> Mistake {
        let hint = hint(&self.id, self.known.iter().map(String::as_str).chain(registered));
        let message = format!("{} must be an agent: there is none called '{}'{hint}", self.path, self.id);
        Mistake { origin: self.origin.clone(), message }
    }
}

/// Reads the schedules, and returns those whose agent is not in the file too. `zone` is that of schedules that name none,
/// `agents` the ids of the file.
pub(crate) fn schedules(
    reading: &Reading<'_>,
    zone: &TimeZone,
    agents: Vec<String>,
) -> (Vec<Checked>, Vec<ForeignAgent>) {
    let tables = reading.document.list(&SCHEDULES);
    reading.unique(&SCHEDULES, "name", tables.iter().map(|table| (table, table.name().to_owned())));
    let known = [agents, vec![ASSISTANT.to_owned()]].concat();
    let foreign = tables.iter().filter_map(|table| {
        let id = table.text("agent_id").filter(|id| !known.iter().any(|known| known == id))?;
        let origin = table.origin_of("agent_id");
        Some(ForeignAgent {
            id: id.to_owned(),
            origin,
            path: format!("{}.agent_id", table.title),
            known: known.clone(),
        })
    });
    let read = |table| draft::<schedule::Draft, _>(reading, table, |draft| check_written(draft, zone));
    (tables.iter().filter_map(read).collect(), foreign.collect())
}

/// Reads how the assistant is offered by the Agent2Agent protocol.
pub(crate) fn assistant(reading: &Reading<'_>, with_auth: bool) -> Option<Endpoint> {
    let table = reading.document.endpoint.as_ref()?;
    let agent = server::assistant();
    let endpoint = draft::<EndpointDraft, _>(reading, table, |draft| draft.check(&agent))?;
    usable(reading, table, "auth", &endpoint, with_auth);
    Some(endpoint)
}

/// Reads a table as a `D` and checks it. Every mistake is noted: fields of the wrong shape, and then the broken rules of
/// the rest.
fn draft<D: DeserializeOwned, T>(
    reading: &Reading<'_>,
    table: &Table,
    check: impl FnOnce(D) -> Result<T, Invalid>,
) -> Option<T> {
    let (draft, mut violations) = model::json::read_partly::<D>(Value::Object(table.fields.clone()));
    let top = |field: &str| field.split(['.', '[']).next().unwrap_or_default().to_owned();
    let wrong: Vec<_> = violations.iter().map(|violation| top(&violation.field)).collect();
    for violation in violations.iter_mut().filter(|violation| violation.rule == "unknown") {
        violation.message.push_str(&hint(&violation.field, model::json::fields::<D>().iter().copied()));
    }
    let checked = match draft.map(check) {
        Some(Err(invalid)) => {
            // A field that was left out for its shape is not missing.
            violations.extend(invalid.violations.into_iter().filter(|other| !wrong.contains(&top(&other.field))));
            None
        }
        Some(Ok(checked)) => Some(checked),
        None => None,
    };
    for violation in &violations {
        reading.mistake(table, &violation.field, &violation.message);
    }
    checked.filter(|_| violations.is_empty())
}

/// Checks that callers can be let in: a token that is not there lets nobody in.
fn usable(reading: &Reading<'_>, table: &Table, path: &str, endpoint: &Endpoint, with_auth: bool) {
    let Some(auth) = &endpoint.auth else { return };
    if auth.kind == AuthType::Jwt && !with_auth {
        reading.mistake(table, &format!("{path}.type"), "is jwt, and no [auth] is configured that could check tokens");
    }
    if let Some(token) = &auth.token {
        reading.resolve(table, &format!("{path}.token"), token);
    }
}

/// Describes how an agent is offered; of a token only where it is kept.
pub(crate) fn described(endpoint: &Endpoint) -> String {
    if !endpoint.enabled {
        return "off: enabled is false".to_owned();
    }
    let transports: Vec<_> = endpoint.transports.iter().map(|transport| transport.as_str()).collect();
    let mut line = transports.join(" ");
    if let Some(auth) = &endpoint.auth {
        line.push_str(&format!(", {}", auth.kind));
        if let (Some(token), Some(user)) = (&auth.token, auth.user) {
            line.push_str(&format!(" {token} for {user}"));
        }
    }
    if let Some(rate) = endpoint.rate {
        line.push_str(&format!(", {} a minute", rate.per_minute));
    }
    line
}

/// Returns a reference as it is, and of any other value only that it is set.
pub(crate) fn reference(value: &str) -> &str {
    if secrets::is_reference(value) { value } else { "set" }
}
