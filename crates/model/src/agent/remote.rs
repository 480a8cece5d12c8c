//! Remote agents, which are reached by the Agent2Agent protocol: the URL of the card and the credentials.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::draft::AgentDraft;
use super::endpoint::{API_KEY_HEADER, AUTHORIZATION_HEADER, EndpointAuthType, check};
use super::{AgentLimits, AgentMode, InputPattern, OutputPattern};
use crate::invalid::Checks;

/// The agent type of every remote agent.
pub const A2A_AGENT_TYPE: &str = "a2a";

/// The credentials for a remote agent. The token is a reference, never the secret itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AgentCardAuth)]
pub struct CardAuth {
    /// `bearer_token` or `api_key`.
    #[serde(rename = "type", default = "default_auth_type")]
    pub kind: EndpointAuthType,
    /// `env:NAME` or `file:PATH`, resolved when a run starts.
    #[serde(default)]
    pub token: String,
    /// The header, if it is not `Authorization` or `X-API-Key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_name: Option<String>,
}

fn default_auth_type() -> EndpointAuthType {
    EndpointAuthType::BearerToken
}

impl CardAuth {
    /// Returns the name of the header for the credentials.
    pub fn header(&self) -> &str {
        let default = if self.kind == EndpointAuthType::ApiKey { API_KEY_HEADER } else { AUTHORIZATION_HEADER };
        self.header_name.as_deref().unwrap_or(default)
    }

    /// Returns the value of the header for the resolved token: the token itself if it is an API key, otherwise `Bearer`
    /// and the token.
    pub fn value(&self, token: &str) -> String {
        if self.kind == EndpointAuthType::ApiKey { token.to_owned() } else { format!("Bearer {token}") }
    }

    /// Adds a violation if the type is neither `bearer_token` nor `api_key`. The token must be `env:NAME` or
    /// `file:PATH`. The header name, if given, must be well-formed and not reserved.
    fn check(&self, checks: &mut Checks) {
        if !matches!(self.kind, EndpointAuthType::BearerToken | EndpointAuthType::ApiKey) {
            checks.fail("card_auth.type", "one_of", "must be bearer_token or api_key");
        }
        if self.token.is_empty() {
            checks.fail("card_auth.token", "required", "must be given: env:NAME or file:PATH");
        } else if !check::is_reference(&self.token) {
            checks.fail(
                "card_auth.token",
                "secret",
                "must be a reference, not the secret: write env:NAME or file:PATH",
            );
        }
        match &self.header_name {
            Some(name) if !check::is_header(name) => {
                checks.fail("card_auth.header_name", "header", "must be the name of a header such as X-API-Key");
            }
            Some(name) if check::is_reserved(name) => {
                checks.fail("card_auth.header_name", "header", "must not be a header that the protocol uses");
            }
            _ => {}
        }
    }
}

/// Returns `true` if the draft has a `card_url`.
///
/// With a `card_url`, adds violations for an invalid URL, credentials in the URL, an invalid `card_auth`, and an agent
/// type other than `a2a`. Also adds one for each field that only a local program uses, such as `executable_path`,
/// `preset`, `args` or `limits`. Empty lists and default values of these are accepted. Without a `card_url`, adds a
/// violation if `card_auth` or the agent type `a2a` is given.
pub(super) fn check_remote(checks: &mut Checks, draft: &AgentDraft) -> bool {
    let Some(url) = &draft.card_url else {
        if draft.card_auth.is_some() {
            checks.fail("card_auth", "unused", "requires card_url");
        }
        if draft.agent_type.as_deref() == Some(A2A_AGENT_TYPE) {
            checks.fail("card_url", "required", "must be given if agent_type is a2a: the URL of the agent card");
        }
        return false;
    };
    check::url(checks, "card_url", url);
    let host = url.split_once("://").map_or("", |(_, rest)| rest).split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        checks.fail("card_url", "secret", "must not contain credentials: set card_auth instead");
    }
    if let Some(auth) = &draft.card_auth {
        auth.check(checks);
    }
    if draft.agent_type.as_deref().is_some_and(|given| given != A2A_AGENT_TYPE) {
        checks.fail("agent_type", "one_of", "must be a2a or omitted if card_url is given");
    }
    if draft.executable_path.as_ref().is_some_and(|path| !path.is_empty()) {
        let message = "must not be given together with card_url: an agent is either a local program or a remote agent";
        checks.fail("executable_path", "unused", message);
    }
    for (field, is_given) in [
        ("preset", draft.preset.is_some()),
        ("working_directory", draft.working_directory.is_some()),
        ("envs", draft.envs.as_ref().is_some_and(|envs| !envs.is_empty())),
        ("args", draft.args.as_ref().is_some_and(|args| !args.is_empty())),
        ("cli_args", draft.cli_args.as_ref().is_some_and(|args| !args.is_empty())),
        ("input_pattern", draft.input_pattern.is_some_and(|pattern| pattern != InputPattern::Stdin)),
        ("output_pattern", draft.output_pattern.is_some_and(|pattern| pattern != OutputPattern::Stdout)),
        ("input_file_template", draft.input_file_template.is_some()),
        ("output_file_template", draft.output_file_template.is_some()),
        ("mode", draft.mode.is_some_and(|mode| mode != AgentMode::Task)),
        ("write_paths", draft.write_paths.as_ref().is_some_and(|paths| !paths.is_empty())),
        ("limits", draft.limits.as_ref().is_some_and(|limits| *limits != AgentLimits::default())),
        ("exit_codes", draft.exit_codes.as_ref().is_some_and(|codes| !codes.is_empty())),
        ("overrides", draft.overrides.as_ref().is_some_and(|overrides| !overrides.is_empty())),
    ] {
        if is_given {
            checks.fail(field, "unused", "must not be given together with card_url: a remote agent does not use it");
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Invalid;
    use crate::agent::{AccessType, Agent};

    fn agent(fields: Value) -> Result<Agent, Invalid> {
        let mut whole = json!({"id": "remote"});
        whole.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value::<AgentDraft>(whole).unwrap().check()
    }

    fn violated_rules(fields: Value) -> Vec<String> {
        let invalid = agent(fields).expect_err("the agent is invalid");
        invalid.violations.into_iter().map(|violation| format!("{} {}", violation.field, violation.rule)).collect()
    }

    #[test]
    fn a_remote_agent_has_a_card_and_no_program() {
        // A2A-1
        let auth = json!({"type": "api_key", "token": "env:KEY"});
        let remote = agent(json!({"card_url": "https://remote.example/agents/x", "card_auth": auth})).unwrap();
        assert_eq!((remote.agent_type.as_str(), remote.executable_path.as_str()), (A2A_AGENT_TYPE, ""));
        assert_eq!(remote.access_type, AccessType::ReadOnly);
        assert_eq!(remote.card_auth.as_ref().unwrap().header(), "X-API-Key");
        // The serialized agent is accepted as a draft and as a stored agent.
        let shown = serde_json::to_value(&remote).unwrap();
        assert_eq!(serde_json::from_value::<AgentDraft>(shown.clone()).unwrap().check().unwrap(), remote);
        assert_eq!(serde_json::from_value::<Agent>(shown).unwrap(), remote);
    }

    #[test]
    fn fields_that_contradict_card_url_are_reported() {
        // A2A-1
        let card = "http://127.0.0.1:1/";
        for (fields, expected) in [
            (json!({}), vec!["executable_path required"]),
            (json!({"card_url": card, "executable_path": "x"}), vec!["executable_path unused"]),
            (json!({"card_url": card, "args": ["x"], "mode": "interactive"}), vec!["args unused", "mode unused"]),
            (json!({"card_url": card, "agent_type": "args"}), vec!["agent_type one_of"]),
            (json!({"card_url": "ftp://x"}), vec!["card_url url"]),
            (json!({"card_url": "http://me:secret@x/"}), vec!["card_url secret"]),
            (json!({"card_url": card, "card_auth": {}}), vec!["card_auth.token required"]),
            (json!({"card_url": card, "card_auth": {"token": "hunter2"}}), vec!["card_auth.token secret"]),
            (
                json!({"card_url": card, "card_auth": {"type": "jwt", "token": "env:T", "header_name": "Host"}}),
                vec!["card_auth.type one_of", "card_auth.header_name header"],
            ),
            (json!({"executable_path": "x", "card_auth": {"token": "env:T"}}), vec!["card_auth unused"]),
            (json!({"agent_type": "a2a"}), vec!["card_url required"]),
        ] {
            assert_eq!(violated_rules(fields.clone()), expected, "{fields}");
        }
    }
}
