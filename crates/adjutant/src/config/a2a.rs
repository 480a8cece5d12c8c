//! `[a2a]`: how the assistant is offered by the Agent2Agent protocol, in the fields that `a2a` of an agent has; and whether
//! what an endpoint refers to is there.

use model::agent::endpoint::{AuthType, EndpointDraft, Of};
use model::agent::{ASSISTANT, Endpoint};
use serde_json::Value;
use server::settings::A2a;

use super::layers::Origin;
use super::read::Reader;
use super::secrets;

pub(crate) const SECTION: &str = "a2a";
/// In messages.
pub(crate) const ONE: &str = "an endpoint";
/// What is said of variables.
pub(crate) const IN_THE_FILE: &str = "how the assistant is offered stands in the file, in [a2a]; only a2a.default_agent and a2a.allow_private_webhooks can be variables";

pub(crate) fn read(reader: &mut Reader<'_>, with_auth: bool) -> A2a {
    let allow_private_webhooks = reader.flag("a2a.allow_private_webhooks");
    let default_agent = reader.text("a2a.default_agent").unwrap_or_else(|| ASSISTANT.to_owned());
    let assistant = assistant(reader, with_auth).unwrap_or_default();
    A2a { default_agent, assistant, allow_private_webhooks }
}

fn assistant(reader: &mut Reader<'_>, with_auth: bool) -> Option<Endpoint> {
    let entry = reader.layers.a2a.as_ref()?;
    let agent = server::assistant();
    let of = Of {
        id: &agent.id,
        max_input_size: agent.max_input_size,
        max_output_size: agent.max_output_size,
        places: agent.places(),
    };
    let draft = model::json::from_value::<EndpointDraft>(Value::Object(entry.fields.clone()));
    match draft.and_then(|draft| draft.check(of)) {
        Ok(endpoint) => {
            usable(reader, SECTION, &entry.origin_of("auth"), &endpoint, with_auth);
            Some(endpoint)
        }
        Err(invalid) => {
            reader.mistakes.extend(entry.mistakes(invalid));
            None
        }
    }
}

/// Whether somebody can be let in by this: a token that is not there lets nobody in, and nobody would know why.
pub(crate) fn usable(reader: &mut Reader<'_>, title: &str, origin: &Origin, endpoint: &Endpoint, with_auth: bool) {
    let Some(auth) = &endpoint.auth else { return };
    if auth.kind == AuthType::Jwt && !with_auth {
        let message = format!("{title}.auth.type is jwt, and no [auth] is configured that could check tokens");
        reader.mistake_at(origin.clone(), message);
    }
    let name = format!("{title}.auth.token");
    let found = auth.token.as_ref().map(|token| secrets::resolve(reader.variables, &name, token));
    if let Some(Err(message)) = found {
        reader.mistake_at(origin.clone(), message);
    }
}

/// How an agent is offered, for people; of a token only where it is kept.
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
