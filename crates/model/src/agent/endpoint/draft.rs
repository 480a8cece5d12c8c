//! The draft of an endpoint, from the configuration file or the API.

use std::num::NonZeroU32;

use serde::Deserialize;
use utoipa::ToSchema;

use super::check::{is_header, is_reference, is_reserved, is_token, url};
use super::{
    A2aMethod, A2aTransport, CapabilityLimits, Endpoint, EndpointAuth, EndpointAuthType, EndpointProvider,
    EndpointRateLimit, EndpointSkill,
};
use crate::agent::Agent;
use crate::invalid::Checks;
use crate::{Invalid, UserId};

const MAX_NAME_CHARS: usize = 100;
const MAX_TEXT_CHARS: usize = 2000;
const MAX_ITEMS: usize = 100;
const MAX_CALLS_PER_MINUTE: u32 = 1_000_000;

/// The configuration of an endpoint. The longer field names of S2 are accepted too.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = A2AEndpointDraft)]
pub struct EndpointDraft {
    pub enabled: Option<bool>,
    /// Must be the id of the agent, if given.
    pub agent_id: Option<String>,
    /// Must be `/agents/{id}/v1`, if given.
    pub base_path: Option<String>,
    #[serde(alias = "transport_protocols")]
    pub transports: Option<Vec<A2aTransport>>,
    #[serde(alias = "authentication")]
    pub auth: Option<EndpointAuthDraft>,
    #[serde(alias = "rate_limiting")]
    pub rate: Option<EndpointRateLimitDraft>,
    pub capabilities: Option<CapabilityLimitsDraft>,
    /// The same as in `capabilities`.
    pub supported_methods: Option<Vec<A2aMethod>>,
    /// The same as in `capabilities`.
    pub supported_content_types: Option<Vec<String>>,
    pub skills: Option<Vec<EndpointSkillDraft>>,
    pub version: Option<String>,
    pub provider: Option<EndpointProvider>,
    pub documentation_url: Option<String>,
    pub icon_url: Option<String>,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = A2AAuthDraft)]
pub struct EndpointAuthDraft {
    #[serde(rename = "type")]
    pub kind: EndpointAuthType,
    /// A reference to the token: `env:NAME` or `file:PATH`.
    pub token: Option<String>,
    pub header_name: Option<String>,
    pub required: Option<bool>,
    /// The id of the user that the token identifies.
    pub user: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = A2ARateLimitDraft)]
pub struct EndpointRateLimitDraft {
    #[schema(minimum = 1)]
    pub per_minute: u32,
    /// A sixth of `per_minute` by default.
    pub burst: Option<u32>,
}

#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = A2ACapabilitiesDraft)]
pub struct CapabilityLimitsDraft {
    pub supported_methods: Option<Vec<A2aMethod>>,
    pub max_input_size: Option<u64>,
    /// Must be the `max_output_size` of the agent, if given.
    pub max_output_size: Option<u64>,
    pub streaming_support: Option<bool>,
    /// Must agree with the `max_concurrent_executions` of the agent, if given.
    pub concurrent_execution: Option<bool>,
    pub supported_content_types: Option<Vec<String>>,
    pub output_content_types: Option<Vec<String>>,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = A2ASkillDraft)]
pub struct EndpointSkillDraft {
    pub id: Option<String>,
    pub name: String,
    pub description: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub examples: Vec<String>,
}

impl EndpointDraft {
    /// Returns the endpoint of `agent`. Fails with all violations, also those that contradict the agent.
    pub fn check(self, agent: &Agent) -> Result<Endpoint, Invalid> {
        let mut checks = Checks::default();
        let endpoint = self.build(agent, &mut checks);
        checks.finish(Some(endpoint))
    }

    /// Returns the endpoint with its defaults, and adds a violation for each broken rule. By default, the endpoint is
    /// enabled and has all transports, but no skills and no authentication or rate limit of its own.
    ///
    /// `agent_id` and `base_path` must be those of the agent. The transports must not be empty. The methods and content
    /// types must not be given twice, here and in `capabilities`. There are at most [`MAX_ITEMS`] skills, with unique
    /// ids. The version and the organization of the provider have 1 to [`MAX_NAME_CHARS`] characters, without control
    /// characters. The URLs must be valid.
    fn build(self, agent: &Agent, checks: &mut Checks) -> Endpoint {
        let path = format!("/agents/{}/v1", agent.id);
        for (field, given, expected) in
            [("agent_id", self.agent_id, agent.id.to_owned()), ("base_path", self.base_path, path)]
        {
            if given.is_some_and(|given| given != expected) {
                checks.fail(field, "same", format!("must be {expected} or omitted"));
            }
        }
        let transports = self.transports.unwrap_or_else(|| A2aTransport::ALL.to_vec());
        if transports.is_empty() {
            checks.fail(
                "transports",
                "items",
                "must have at least one entry; set enabled = false to disable the endpoint",
            );
        }
        let mut capabilities = self.capabilities.unwrap_or_default();
        for (field, twice) in [
            ("supported_methods", self.supported_methods.is_some() && capabilities.supported_methods.is_some()),
            (
                "supported_content_types",
                self.supported_content_types.is_some() && capabilities.supported_content_types.is_some(),
            ),
        ] {
            if twice {
                checks.fail(field, "twice", format!("must not be given together with capabilities.{field}"));
            }
        }
        capabilities.supported_methods = capabilities.supported_methods.or(self.supported_methods);
        capabilities.supported_content_types = capabilities.supported_content_types.or(self.supported_content_types);
        let skills = self.skills.unwrap_or_default();
        if skills.len() > MAX_ITEMS {
            checks.fail("skills", "items", format!("must not have more than {MAX_ITEMS} entries"));
        }
        let skills: Vec<_> = skills.into_iter().enumerate().map(|(at, skill)| skill.build(at, checks)).collect();
        for (at, skill) in skills.iter().enumerate() {
            if skills.iter().take(at).any(|other| other.id == skill.id) {
                checks.fail(format!("skills[{at}].id"), "unique", "must be unique: another skill has this id");
            }
        }
        if let Some(version) = &self.version {
            text(checks, "version", version, 1, MAX_NAME_CHARS);
        }
        if let Some(provider) = &self.provider {
            text(checks, "provider.organization", &provider.organization, 1, MAX_NAME_CHARS);
            url(checks, "provider.url", &provider.url);
        }
        for (field, given) in [("documentation_url", &self.documentation_url), ("icon_url", &self.icon_url)] {
            if let Some(given) = given {
                url(checks, field, given);
            }
        }
        Endpoint {
            enabled: self.enabled.unwrap_or(true),
            transports,
            auth: self.auth.map(|auth| auth.build(checks)),
            rate: self.rate.and_then(|rate| rate.build(checks)),
            capabilities: capabilities.build(agent, checks),
            skills,
            version: self.version,
            provider: self.provider,
            documentation_url: self.documentation_url,
            icon_url: self.icon_url,
        }
    }
}

impl EndpointAuthDraft {
    /// Returns the authentication and adds a violation for each broken rule. An invalid user becomes `None`; other
    /// invalid values stay.
    ///
    /// The types `bearer_token` and `api_key` require a user id and a token that is `env:NAME` or `file:PATH`. Their
    /// header name must be valid and not reserved. The other types accept no token, user or header name. Credentials
    /// are required by default, except for the type `none`, which must not require them.
    fn build(self, checks: &mut Checks) -> EndpointAuth {
        let Self { kind, token, header_name, required, user } = self;
        let has_token = matches!(kind, EndpointAuthType::BearerToken | EndpointAuthType::ApiKey);
        match &token {
            None if has_token => {
                checks.fail(
                    "auth.token",
                    "required",
                    format!("must be given if the type is {kind}: env:NAME or file:PATH"),
                );
            }
            Some(_) if !has_token => {
                checks.fail("auth.token", "unused", format!("must not be given if the type is {kind}"))
            }
            Some(token) if !is_reference(token) => {
                checks.fail("auth.token", "secret", "must be a reference, not the secret: write env:NAME or file:PATH");
            }
            _ => {}
        }
        let id = user.as_deref().map(str::parse::<UserId>);
        match &id {
            None if has_token => {
                checks.fail("auth.user", "required", "must be given: the id of the user that the token identifies");
            }
            Some(_) if !has_token => {
                checks.fail("auth.user", "unused", format!("must not be given if the type is {kind}"))
            }
            Some(Err(_)) => checks.fail("auth.user", "uuid", "must be the id of a user, a UUID"),
            _ => {}
        }
        match &header_name {
            Some(_) if !has_token => {
                checks.fail("auth.header_name", "unused", format!("must not be given if the type is {kind}"))
            }
            Some(name) if !is_header(name) => {
                checks.fail("auth.header_name", "header", "must be the name of a header such as X-API-Key");
            }
            Some(name) if is_reserved(name) => {
                checks.fail("auth.header_name", "header", "must not be a header that the protocol uses");
            }
            _ => {}
        }
        if kind == EndpointAuthType::None && required == Some(true) {
            checks.fail("auth.required", "consistent", "must not be true if the type is none");
        }
        let required = required.unwrap_or(kind != EndpointAuthType::None);
        EndpointAuth { kind, token, header_name, required, user: id.and_then(Result::ok) }
    }
}

impl EndpointRateLimitDraft {
    /// Returns the rate limit. Returns `None` and adds a violation if a number is not between 1 and
    /// [`MAX_CALLS_PER_MINUTE`]. The burst is a sixth of `per_minute` by default, but at least 1.
    fn build(self, checks: &mut Checks) -> Option<EndpointRateLimit> {
        let mut check = |field: &str, number: u32| {
            let checked = NonZeroU32::new(number).filter(|number| number.get() <= MAX_CALLS_PER_MINUTE);
            if checked.is_none() {
                checks.fail(field, "range", format!("must be between 1 and {MAX_CALLS_PER_MINUTE}"));
            }
            checked
        };
        let per_minute = check("rate.per_minute", self.per_minute);
        let burst = check("rate.burst", self.burst.unwrap_or((self.per_minute / 6).max(1)));
        Some(EndpointRateLimit { per_minute: per_minute?, burst: burst? })
    }
}

impl CapabilityLimitsDraft {
    /// Returns the limits and adds a violation for each broken rule. Streaming is supported by default. Media types are
    /// trimmed and become lower case. A list of methods must not be empty; a list of media types has 1 to [`MAX_ITEMS`]
    /// valid entries. `max_input_size` is between 1 and that of the agent. `max_output_size` must equal that of the
    /// agent. `concurrent_execution` must be true if the agent allows several executions, else false. Neither of these
    /// is part of the result.
    fn build(self, agent: &Agent, checks: &mut Checks) -> CapabilityLimits {
        if self.supported_methods.as_ref().is_some_and(Vec::is_empty) {
            let message = "must have at least one entry; set enabled = false to disable the endpoint";
            checks.fail("capabilities.supported_methods", "items", message);
        }
        if self.max_input_size.is_some_and(|size| size == 0 || size > agent.max_input_size) {
            let message = format!("must be between 1 and {}, the max_input_size of the agent", agent.max_input_size);
            checks.fail("capabilities.max_input_size", "range", message);
        }
        // These values are derived from the agent. They are accepted only if they agree with it.
        if self.max_output_size.is_some_and(|size| size != agent.max_output_size) {
            let message = format!("must be {}, the max_output_size of the agent, or omitted", agent.max_output_size);
            checks.fail("capabilities.max_output_size", "same", message);
        }
        if self.concurrent_execution.is_some_and(|concurrent| concurrent != (agent.max_concurrency() > 1)) {
            let message =
                format!("must agree with the agent, which has max_concurrent_executions {}", agent.max_concurrency());
            checks.fail("capabilities.concurrent_execution", "same", message);
        }
        let mut types = |field: &str, given: Option<Vec<String>>| {
            let given: Vec<_> = given?.into_iter().map(|given| given.trim().to_ascii_lowercase()).collect();
            if given.is_empty() || given.len() > MAX_ITEMS {
                checks.fail(field, "items", format!("must have 1 to {MAX_ITEMS} entries"));
            }
            for (at, given) in given.iter().enumerate().filter(|(_, given)| !is_media_type(given)) {
                let message = format!("must be a media type such as text/plain or image/*, not '{given}'");
                checks.fail(format!("{field}[{at}]"), "media_type", message);
            }
            Some(given)
        };
        CapabilityLimits {
            supported_content_types: types("capabilities.supported_content_types", self.supported_content_types),
            output_content_types: types("capabilities.output_content_types", self.output_content_types),
            supported_methods: self.supported_methods,
            max_input_size: self.max_input_size,
            streaming_support: self.streaming_support.unwrap_or(true),
        }
    }
}

impl EndpointSkillDraft {
    /// Returns the skill and adds a violation for each broken rule. `at` is its index in the list. By default, the id
    /// is the words of the name in lower case, joined by `-`, and the description is the name. Names, ids and tags have
    /// 1 to [`MAX_NAME_CHARS`] characters, descriptions and examples 1 to [`MAX_TEXT_CHARS`], without control
    /// characters. There are at most [`MAX_ITEMS`] tags and examples each.
    fn build(self, at: usize, checks: &mut Checks) -> EndpointSkill {
        let field = |name: &str| format!("skills[{at}].{name}");
        text(checks, &field("name"), &self.name, 1, MAX_NAME_CHARS);
        let from_name = || {
            let words = self.name.to_lowercase();
            let words = words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
            words.collect::<Vec<_>>().join("-")
        };
        let id = self.id.clone().unwrap_or_else(from_name);
        text(checks, &field("id"), &id, 1, MAX_NAME_CHARS);
        let description = self.description.unwrap_or_else(|| self.name.clone());
        text(checks, &field("description"), &description, 1, MAX_TEXT_CHARS);
        for (name, texts, max) in [("tags", &self.tags, MAX_NAME_CHARS), ("examples", &self.examples, MAX_TEXT_CHARS)] {
            if texts.len() > MAX_ITEMS {
                checks.fail(field(name), "items", format!("must not have more than {MAX_ITEMS} entries"));
            }
            for (index, item) in texts.iter().enumerate() {
                text(checks, &format!("skills[{at}].{name}[{index}]"), item, 1, max);
            }
        }
        EndpointSkill { id, name: self.name, description, tags: self.tags, examples: self.examples }
    }
}

/// Returns `true` for `type/subtype`, `type/*` and `*/*`, without parameters. The names must be tokens of HTTP.
fn is_media_type(text: &str) -> bool {
    match text.split_once('/') {
        Some(("*", sub)) => sub == "*",
        Some((kind, sub)) => {
            is_token(kind) && !kind.contains('*') && (sub == "*" || is_token(sub) && !sub.contains('*'))
        }
        None => false,
    }
}

fn text(checks: &mut Checks, field: &str, value: &str, min: usize, max: usize) {
    super::super::rules::text(checks, field, value, min, max);
}
