//! An agent that runs elsewhere and is reached by the Agent2Agent protocol: where its card is, and what is shown there.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::draft::Draft;
use super::endpoint::{API_KEY, AUTHORIZATION, AuthType, check};
use super::{InputPattern, Limits, Mode, OutputPattern};
use crate::invalid::Checks;

/// The type of every agent that has a card elsewhere.
pub const A2A: &str = "a2a";

/// What is shown to an agent elsewhere. The token never stands here itself, only where it is found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AgentCardAuth)]
pub struct CardAuth {
    /// `bearer_token` or `api_key`.
    #[serde(rename = "type", default = "bearer")]
    pub kind: AuthType,
    /// `env:NAME` or `file:PATH`, looked up when a run begins.
    #[serde(default)]
    pub token: String,
    /// Another header than `Authorization` or `X-API-Key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_name: Option<String>,
}

fn bearer() -> AuthType {
    AuthType::BearerToken
}

impl CardAuth {
    /// The header that carries it.
    pub fn header(&self) -> &str {
        let usual = if self.kind == AuthType::ApiKey { API_KEY } else { AUTHORIZATION };
        self.header_name.as_deref().unwrap_or(usual)
    }

    /// What stands in that header.
    pub fn value(&self, token: &str) -> String {
        if self.kind == AuthType::ApiKey { token.to_owned() } else { format!("Bearer {token}") }
    }

    fn check(&self, checks: &mut Checks) {
        if !matches!(self.kind, AuthType::BearerToken | AuthType::ApiKey) {
            checks.fail("card_auth.type", "one_of", "must be bearer_token or api_key");
        }
        if self.token.is_empty() {
            checks.fail("card_auth.token", "required", "must be given: env:NAME or file:PATH");
        } else if !check::is_reference(&self.token) {
            checks.fail("card_auth.token", "secret", "must not stand here itself: write env:NAME or file:PATH");
        }
        match &self.header_name {
            Some(name) if !check::is_header(name) => {
                checks.fail("card_auth.header_name", "header", "must be the name of a header such as X-API-Key");
            }
            Some(name) if check::is_taken(name) => {
                checks.fail("card_auth.header_name", "header", "must be a header that nothing else uses");
            }
            _ => {}
        }
    }
}

/// Whether the draft is of an agent elsewhere; what is wrong with it then.
pub(super) fn is_elsewhere(checks: &mut Checks, draft: &Draft) -> bool {
    let Some(url) = &draft.card_url else {
        if draft.card_auth.is_some() {
            checks.fail("card_auth", "unused", "has no meaning without card_url");
        }
        if draft.agent_type.as_deref() == Some(A2A) {
            checks.fail("card_url", "required", "must be given with the type a2a: where the agent's card is");
        }
        return false;
    };
    check::url(checks, "card_url", url);
    let host = url.split_once("://").map_or("", |(_, rest)| rest).split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        checks.fail("card_url", "secret", "must not have credentials in it: they belong into card_auth");
    }
    if let Some(auth) = &draft.card_auth {
        auth.check(checks);
    }
    if draft.agent_type.as_deref().is_some_and(|given| given != A2A) {
        checks.fail("agent_type", "one_of", "must be a2a with card_url, or left out");
    }
    if draft.executable_path.as_ref().is_some_and(|path| !path.is_empty()) {
        let message = "must not be given together with card_url: an agent is a program here, or has a card elsewhere";
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
        ("mode", draft.mode.is_some_and(|mode| mode != Mode::Task)),
        ("write_paths", draft.write_paths.as_ref().is_some_and(|paths| !paths.is_empty())),
        ("limits", draft.limits.as_ref().is_some_and(|limits| *limits != Limits::default())),
        ("exit_codes", draft.exit_codes.as_ref().is_some_and(|codes| !codes.is_empty())),
        ("overrides", draft.overrides.as_ref().is_some_and(|overrides| !overrides.is_empty())),
    ] {
        if is_given {
            checks.fail(field, "unused", "has no meaning for an agent elsewhere, which has a card_url");
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
        let mut whole = json!({"id": "far"});
        whole.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value::<Draft>(whole).unwrap().check()
    }

    fn wrong(fields: Value) -> Vec<String> {
        let invalid = agent(fields).expect_err("something is wrong with it");
        invalid.violations.into_iter().map(|violation| format!("{} {}", violation.field, violation.rule)).collect()
    }

    #[test]
    fn an_agent_elsewhere_has_a_card_and_no_program() {
        // A2A-1
        let auth = json!({"type": "api_key", "token": "env:KEY"});
        let far = agent(json!({"card_url": "https://far.example/agents/x", "card_auth": auth})).unwrap();
        assert_eq!((far.agent_type.as_str(), far.executable_path.as_str()), (A2A, ""));
        assert_eq!(far.access_type, AccessType::ReadOnly);
        assert_eq!(far.card_auth.as_ref().unwrap().header(), "X-API-Key");
        // What is shown can be sent again, and is read as it was kept.
        let shown = serde_json::to_value(&far).unwrap();
        assert_eq!(serde_json::from_value::<Draft>(shown.clone()).unwrap().check().unwrap(), far);
        assert_eq!(serde_json::from_value::<Agent>(shown).unwrap(), far);
    }

    #[test]
    fn what_contradicts_that_is_named_by_its_field() {
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
            assert_eq!(wrong(fields.clone()), expected, "{fields}");
        }
    }
}
