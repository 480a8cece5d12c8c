//! An endpoint as somebody writes it down, in the configuration or over the API.

use std::num::NonZeroU32;

use serde::Deserialize;
use utoipa::ToSchema;

use super::check::{is_header, is_reference, is_taken, is_token, url};
use super::{Auth, AuthType, Capabilities, Endpoint, Method, Provider, Rate, Skill, Transport};
use crate::agent::Agent;
use crate::invalid::Checks;
use crate::{Invalid, UserId};

const MAX_NAME: usize = 100;
const MAX_TEXT: usize = 2000;
const MAX_ITEMS: usize = 100;
const MAX_RATE: u32 = 1_000_000;

/// An endpoint to be. S2's longer names of fields are understood too.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = A2AEndpointDraft)]
pub struct EndpointDraft {
    pub enabled: Option<bool>,
    /// Always the agent's own.
    pub agent_id: Option<String>,
    /// Always `/agents/{id}/v1`.
    pub base_path: Option<String>,
    #[serde(alias = "transport_protocols")]
    pub transports: Option<Vec<Transport>>,
    #[serde(alias = "authentication")]
    pub auth: Option<AuthDraft>,
    #[serde(alias = "rate_limiting")]
    pub rate: Option<RateDraft>,
    pub capabilities: Option<CapabilitiesDraft>,
    /// As in `capabilities`.
    pub supported_methods: Option<Vec<Method>>,
    /// As in `capabilities`.
    pub supported_content_types: Option<Vec<String>>,
    pub skills: Option<Vec<SkillDraft>>,
    pub version: Option<String>,
    pub provider: Option<Provider>,
    pub documentation_url: Option<String>,
    pub icon_url: Option<String>,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = A2AAuthDraft)]
pub struct AuthDraft {
    #[serde(rename = "type")]
    pub kind: AuthType,
    /// `env:NAME` or `file:PATH`, never the token itself.
    pub token: Option<String>,
    pub header_name: Option<String>,
    pub required: Option<bool>,
    /// The id of the user whom the token stands for.
    pub user: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = A2ARateLimitDraft)]
pub struct RateDraft {
    #[schema(minimum = 1)]
    pub per_minute: u32,
    /// A sixth of `per_minute` where it is not given.
    pub burst: Option<u32>,
}

#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = A2ACapabilitiesDraft)]
pub struct CapabilitiesDraft {
    pub supported_methods: Option<Vec<Method>>,
    pub max_input_size: Option<u64>,
    /// Always the agent's own.
    pub max_output_size: Option<u64>,
    pub streaming_support: Option<bool>,
    /// Follows from the agent's `max_concurrent_executions`.
    pub concurrent_execution: Option<bool>,
    pub supported_content_types: Option<Vec<String>>,
    pub output_content_types: Option<Vec<String>>,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = A2ASkillDraft)]
pub struct SkillDraft {
    pub id: Option<String>,
    pub name: String,
    pub description: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub examples: Vec<String>,
}

impl EndpointDraft {
    /// Returns the endpoint of `agent`, or everything that is wrong with it. It must not contradict the agent.
    pub fn check(self, agent: &Agent) -> Result<Endpoint, Invalid> {
        let mut checks = Checks::default();
        let endpoint = self.make(agent, &mut checks);
        checks.finish(Some(endpoint))
    }

    fn make(self, agent: &Agent, checks: &mut Checks) -> Endpoint {
        let path = format!("/agents/{}/v1", agent.id);
        for (field, given, is) in
            [("agent_id", self.agent_id, agent.id.to_owned()), ("base_path", self.base_path, path)]
        {
            if given.is_some_and(|given| given != is) {
                checks.fail(field, "same", format!("is always {is}: write that, or leave it out"));
            }
        }
        let transports = self.transports.unwrap_or_else(|| Transport::ALL.to_vec());
        if transports.is_empty() {
            checks.fail("transports", "items", "must name at least one; enabled = false offers none");
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
                checks.fail(field, "twice", format!("is given twice: here, and as capabilities.{field}"));
            }
        }
        capabilities.supported_methods = capabilities.supported_methods.or(self.supported_methods);
        capabilities.supported_content_types = capabilities.supported_content_types.or(self.supported_content_types);
        let skills = self.skills.unwrap_or_default();
        if skills.len() > MAX_ITEMS {
            checks.fail("skills", "items", format!("must not have more than {MAX_ITEMS} entries"));
        }
        let skills: Vec<_> = skills.into_iter().enumerate().map(|(at, skill)| skill.make(at, checks)).collect();
        for (at, skill) in skills.iter().enumerate() {
            if skills.iter().take(at).any(|other| other.id == skill.id) {
                checks.fail(format!("skills[{at}].id"), "unique", "is taken by another skill");
            }
        }
        if let Some(version) = &self.version {
            text(checks, "version", version, 1, MAX_NAME);
        }
        if let Some(provider) = &self.provider {
            text(checks, "provider.organization", &provider.organization, 1, MAX_NAME);
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
            auth: self.auth.map(|auth| auth.make(checks)),
            rate: self.rate.and_then(|rate| rate.make(checks)),
            capabilities: capabilities.make(agent, checks),
            skills,
            version: self.version,
            provider: self.provider,
            documentation_url: self.documentation_url,
            icon_url: self.icon_url,
        }
    }
}

impl AuthDraft {
    fn make(self, checks: &mut Checks) -> Auth {
        let Self { kind, token, header_name, required, user } = self;
        let has_token = matches!(kind, AuthType::BearerToken | AuthType::ApiKey);
        match &token {
            None if has_token => {
                checks.fail("auth.token", "required", format!("must be given with {kind}: env:NAME or file:PATH"));
            }
            Some(_) if !has_token => checks.fail("auth.token", "unused", format!("has no meaning with {kind}")),
            Some(token) if !is_reference(token) => {
                checks.fail("auth.token", "secret", "must not stand here itself: write env:NAME or file:PATH");
            }
            _ => {}
        }
        let id = user.as_deref().map(str::parse::<UserId>);
        match &id {
            None if has_token => {
                checks.fail("auth.user", "required", "must be given: the id of the user whom the token stands for");
            }
            Some(_) if !has_token => checks.fail("auth.user", "unused", format!("has no meaning with {kind}")),
            Some(Err(_)) => checks.fail("auth.user", "uuid", "must be the id of a user, a UUID"),
            _ => {}
        }
        match &header_name {
            Some(_) if !has_token => checks.fail("auth.header_name", "unused", format!("has no meaning with {kind}")),
            Some(name) if !is_header(name) => {
                checks.fail("auth.header_name", "header", "must be the name of a header such as X-API-Key");
            }
            Some(name) if is_taken(name) => {
                checks.fail("auth.header_name", "header", "must be a header that nothing else uses");
            }
            _ => {}
        }
        if kind == AuthType::None && required == Some(true) {
            checks.fail("auth.required", "consistent", "must not be true where the type is none");
        }
        let required = required.unwrap_or(kind != AuthType::None);
        Auth { kind, token, header_name, required, user: id.and_then(Result::ok) }
    }
}

impl RateDraft {
    fn make(self, checks: &mut Checks) -> Option<Rate> {
        let mut read = |field: &str, number: u32| {
            let read = NonZeroU32::new(number).filter(|number| number.get() <= MAX_RATE);
            if read.is_none() {
                checks.fail(field, "range", format!("must be between 1 and {MAX_RATE}"));
            }
            read
        };
        let per_minute = read("rate.per_minute", self.per_minute);
        let burst = read("rate.burst", self.burst.unwrap_or((self.per_minute / 6).max(1)));
        Some(Rate { per_minute: per_minute?, burst: burst? })
    }
}

impl CapabilitiesDraft {
    fn make(self, agent: &Agent, checks: &mut Checks) -> Capabilities {
        if self.supported_methods.as_ref().is_some_and(Vec::is_empty) {
            let message = "must name at least one; enabled = false offers none";
            checks.fail("capabilities.supported_methods", "items", message);
        }
        if self.max_input_size.is_some_and(|size| size == 0 || size > agent.max_input_size) {
            let message = format!("must be between 1 and {}, the agent's own max_input_size", agent.max_input_size);
            checks.fail("capabilities.max_input_size", "range", message);
        }
        // What cannot be set here may be said, as long as it is true.
        if self.max_output_size.is_some_and(|size| size != agent.max_output_size) {
            let message = format!("is the agent's own, {}: set max_output_size of the agent", agent.max_output_size);
            checks.fail("capabilities.max_output_size", "same", message);
        }
        if self.concurrent_execution.is_some_and(|concurrent| concurrent != (agent.places() > 1)) {
            let message = format!("follows from the agent, of which {} may run at once", agent.places());
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
        Capabilities {
            supported_content_types: types("capabilities.supported_content_types", self.supported_content_types),
            output_content_types: types("capabilities.output_content_types", self.output_content_types),
            supported_methods: self.supported_methods,
            max_input_size: self.max_input_size,
            streaming_support: self.streaming_support.unwrap_or(true),
        }
    }
}

impl SkillDraft {
    fn make(self, at: usize, checks: &mut Checks) -> Skill {
        let field = |name: &str| format!("skills[{at}].{name}");
        text(checks, &field("name"), &self.name, 1, MAX_NAME);
        let made = || {
            let words = self.name.to_lowercase();
            let words = words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
            words.collect::<Vec<_>>().join("-")
        };
        let id = self.id.clone().unwrap_or_else(made);
        text(checks, &field("id"), &id, 1, MAX_NAME);
        let description = self.description.unwrap_or_else(|| self.name.clone());
        text(checks, &field("description"), &description, 1, MAX_TEXT);
        for (name, texts, max) in [("tags", &self.tags, MAX_NAME), ("examples", &self.examples, MAX_TEXT)] {
            if texts.len() > MAX_ITEMS {
                checks.fail(field(name), "items", format!("must not have more than {MAX_ITEMS} entries"));
            }
            for (index, item) in texts.iter().enumerate() {
                text(checks, &format!("skills[{at}].{name}[{index}]"), item, 1, max);
            }
        }
        Skill { id, name: self.name, description, tags: self.tags, examples: self.examples }
    }
}

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
