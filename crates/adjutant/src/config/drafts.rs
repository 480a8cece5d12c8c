//! `[[agents]]`, `[[schedules]]` and `[a2a]`. These tables have the fields of the API and are validated like requests.

use jiff::tz::TimeZone;
use model::agent::endpoint::{EndpointAuthType, EndpointDraft};
use model::agent::{ASSISTANT_ID, Agent, AgentDraft, Endpoint};
use model::{Invalid, schedule};
use scheduler::{CheckedSchedule, check_draft};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::document::{AGENTS, ConfigTable, SCHEDULES, ValueOrigin};
use super::section::{ConfigReader, hint};
use super::{ConfigMistake, secrets};

/// Reads the agents. Reports mistakes, repeated ids and repeated names, and leaves invalid agents out. Agents with the
/// same id are not reported for their name too. Does not check that programs are installed.
///
/// Returns also the ids of all agents in the file. The id of an invalid agent is its `id`, else its `name`, else its
/// `preset`. `with_auth` is true if `[auth]` is configured; without it, an A2A endpoint with `jwt` is reported.
pub(crate) fn agents(reader: &ConfigReader<'_>, with_auth: bool) -> (Vec<Agent>, Vec<String>) {
    let variables = |name: &str| reader.variables.get(name).map(str::to_owned);
    let mut agents = Vec::new();
    let mut ids = Vec::new();
    let mut names = Vec::new();
    for table in reader.document.list(&AGENTS) {
        let agent = draft::<AgentDraft, _>(reader, table, |draft| supervisor::check::validate_agent(draft, &variables));
        let given = table.text("id").or(table.text("name")).or(table.text("preset")).unwrap_or_default();
        let id = agent.as_ref().map_or(given, |agent| agent.id.as_str()).to_owned();
        // Agents with the same id are reported for the id only.
        if !ids.iter().any(|(_, other)| *other == id) {
            names.push((table, agent.as_ref().map_or(table.name(), |agent| agent.name.as_str()).to_owned()));
        }
        ids.push((table, id));
        if let Some(agent) = agent {
            check_auth(reader, table, "a2a.auth", &agent.a2a, with_auth);
            agents.push(agent);
        }
    }
    reader.unique(&AGENTS, "id", ids.iter().cloned());
    reader.unique(&AGENTS, "name", names.into_iter());
    (agents, ids.into_iter().map(|(_, id)| id).collect())
}

/// A reference of a schedule to an agent that is not in the file. The agent may have been added over the API.
#[derive(Clone, Debug)]
pub(crate) struct ExternalAgentRef {
    pub(crate) id: String,
    origin: ValueOrigin,
    /// The path of the setting.
    path: String,
    /// The ids of the agents in the file.
    known: Vec<String>,
}

impl ExternalAgentRef {
    /// Returns the mistake for a missing agent. `registered` are the ids of the agents in the database.
    pub(crate) fn mistake<'a>(&'a self, registered: impl Iterator<Item = &'a str>) -> ConfigMistake {
        let hint = hint(&self.id, self.known.iter().map(String::as_str).chain(registered));
        let message = format!("{} must be the id of an agent; there is no agent '{}'{hint}", self.path, self.id);
        ConfigMistake { origin: self.origin.clone(), message }
    }
}

/// Reads the schedules. Reports mistakes and repeated names, and leaves invalid schedules out. `zone` is the default
/// time zone, `agents` are the ids in the file.
///
/// Returns also the references to agents that are neither in the file nor the assistant, also those of invalid
/// schedules. They are not reported here.
pub(crate) fn schedules(
    reader: &ConfigReader<'_>,
    zone: &TimeZone,
    agents: Vec<String>,
) -> (Vec<CheckedSchedule>, Vec<ExternalAgentRef>) {
    let tables = reader.document.list(&SCHEDULES);
    reader.unique(&SCHEDULES, "name", tables.iter().map(|table| (table, table.name().to_owned())));
    let known = [agents, vec![ASSISTANT_ID.to_owned()]].concat();
    let external = tables.iter().filter_map(|table| {
        let id = table.text("agent_id").filter(|id| !known.iter().any(|known| known == id))?;
        let origin = table.origin_of("agent_id");
        Some(ExternalAgentRef {
            id: id.to_owned(),
            origin,
            path: format!("{}.agent_id", table.title),
            known: known.clone(),
        })
    });
    let read = |table| draft::<schedule::ScheduleDraft, _>(reader, table, |draft| check_draft(draft, zone));
    (tables.iter().filter_map(read).collect(), external.collect())
}

/// Reads the A2A endpoint of the assistant. None if `[a2a]` does not configure it, or if a field is invalid, which is
/// reported. Also reports authentication that cannot succeed; see [`check_auth`].
pub(crate) fn assistant(reader: &ConfigReader<'_>, with_auth: bool) -> Option<Endpoint> {
    let table = reader.document.endpoint.as_ref()?;
    let agent = server::assistant_agent();
    let endpoint = draft::<EndpointDraft, _>(reader, table, |draft| draft.check(&agent))?;
    check_auth(reader, table, "auth", &endpoint, with_auth);
    Some(endpoint)
}

/// Reads a table as a `D` and validates it with `check`. Reports unknown fields with a suggestion, fields of the wrong
/// type, and the violations that `check` finds in the other fields. Returns none if there are any. `check` does not run
/// if a required field is missing or malformed.
fn draft<D: DeserializeOwned, T>(
    reader: &ConfigReader<'_>,
    table: &ConfigTable,
    check: impl FnOnce(D) -> Result<T, Invalid>,
) -> Option<T> {
    let (draft, mut violations) = model::json::from_value_lenient::<D>(Value::Object(table.fields.clone()));
    let top = |field: &str| field.split(['.', '[']).next().unwrap_or_default().to_owned();
    let wrong_types: Vec<_> = violations.iter().map(|violation| top(&violation.field)).collect();
    for violation in violations.iter_mut().filter(|violation| violation.rule == "unknown") {
        violation.message.push_str(&hint(&violation.field, model::json::field_names::<D>().iter().copied()));
    }
    let checked = match draft.map(check) {
        Some(Err(invalid)) => {
            // A field of the wrong type was dropped and is not missing.
            violations.extend(invalid.violations.into_iter().filter(|other| !wrong_types.contains(&top(&other.field))));
            None
        }
        Some(Ok(checked)) => Some(checked),
        None => None,
    };
    for violation in &violations {
        reader.mistake(table, &violation.field, &violation.message);
    }
    checked.filter(|_| violations.is_empty())
}

/// Reports authentication that cannot succeed: tokens of type `jwt` without `[auth]`, or a token reference that cannot
/// be resolved. `path` is the path of the `auth` table. Has no effect for an endpoint without `auth`.
fn check_auth(reader: &ConfigReader<'_>, table: &ConfigTable, path: &str, endpoint: &Endpoint, with_auth: bool) {
    let Some(auth) = &endpoint.auth else { return };
    if auth.kind == EndpointAuthType::Jwt && !with_auth {
        reader.mistake(table, &format!("{path}.type"), "is jwt, and no [auth] is configured to verify tokens");
    }
    if let Some(token) = &auth.token {
        reader.resolve(table, &format!("{path}.token"), token);
    }
}

/// Describes the transports, the authentication and the rate limit of an endpoint, or states that it is off. A token is
/// shown as a reference, with its user.
pub(crate) fn describe_endpoint(endpoint: &Endpoint) -> String {
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
        line.push_str(&format!(", {} per minute", rate.per_minute));
    }
    line
}

/// Returns a reference unchanged, and `set` for any other value.
pub(crate) fn reference_or_set(value: &str) -> &str {
    if secrets::is_reference(value) { value } else { "set" }
}
