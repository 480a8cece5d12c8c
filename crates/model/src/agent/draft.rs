//! An agent as somebody writes it down, in the configuration or over the API; all fields that may be left out are.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::elsewhere::{self, A2A, CardAuth};
use super::endpoint::EndpointDraft;
use super::{
    ASSISTANT, AccessType, Agent, Endpoint, ErrorPattern, InputPattern, Limits, Mode, OutputPattern, Override,
    Permissions, Protocol, Redact, Seconds, SessionRules, rules,
};
use crate::Invalid;
use crate::execution::Category;
use crate::invalid::Checks;

pub const MAX_ID: usize = 64;

/// The agent types and the patterns that they stand for.
const TYPES: &[(&str, InputPattern, OutputPattern)] = {
    use InputPattern as In;
    use OutputPattern as Out;
    &[
        ("stdin-stdout", In::Stdin, Out::Stdout),
        ("stdin-file", In::Stdin, Out::File),
        ("stdin-json-rpc", In::Stdin, Out::JsonRpc),
        ("file-input", In::File, Out::Stdout),
        ("file-stdout", In::File, Out::Stdout),
        ("file-file", In::File, Out::File),
        ("file-json-rpc", In::File, Out::JsonRpc),
        ("args", In::Args, Out::Stdout),
        ("args-stdout", In::Args, Out::Stdout),
        ("args-file", In::Args, Out::File),
        ("args-json-rpc", In::Args, Out::JsonRpc),
        ("json-rpc", In::JsonRpc, Out::JsonRpc),
        ("json-rpc-file", In::JsonRpc, Out::File),
    ]
};
/// Types that name the input alone. Their output pattern in [`TYPES`] is a default; every other one goes with them too.
const INPUT_ONLY: [&str; 2] = ["file-input", "args"];

/// An agent to be. What is left out comes from the preset, or has a default.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AgentDraft)]
pub struct Draft {
    pub id: Option<String>,
    pub name: Option<String>,
    pub description: Option<String>,
    pub preset: Option<String>,
    pub agent_type: Option<String>,
    pub executable_path: Option<String>,
    /// Instead of a program: where the card of an agent is that runs elsewhere.
    pub card_url: Option<String>,
    pub card_auth: Option<CardAuth>,
    pub working_directory: Option<String>,
    pub envs: Option<BTreeMap<String, String>>,
    pub args: Option<Vec<String>>,
    pub cli_args: Option<BTreeMap<String, String>>,
    pub parameters: Option<BTreeMap<String, Value>>,
    pub mode: Option<Mode>,
    pub input_pattern: Option<InputPattern>,
    pub output_pattern: Option<OutputPattern>,
    pub input_file_template: Option<String>,
    pub output_file_template: Option<String>,
    pub protocol: Option<Protocol>,
    pub rpc_method: Option<String>,
    pub permissions: Option<Permissions>,
    pub access_type: Option<AccessType>,
    pub write_paths: Option<Vec<String>>,
    pub max_concurrent_executions: Option<u32>,
    pub timeout: Option<Seconds>,
    pub session_timeout: Option<Seconds>,
    pub keep_alive: Option<bool>,
    pub session: Option<SessionRules>,
    pub enabled: Option<bool>,
    pub grace: Option<Seconds>,
    pub queue_depth: Option<u32>,
    pub queue_timeout: Option<Seconds>,
    pub max_retries: Option<u32>,
    pub retry_delay: Option<Seconds>,
    pub max_input_size: Option<u64>,
    pub max_output_size: Option<u64>,
    pub redact: Option<Vec<Redact>>,
    pub limits: Option<Limits>,
    pub allow: Option<Vec<String>>,
    pub overrides: Option<Vec<Override>>,
    pub exit_codes: Option<BTreeMap<i32, Category>>,
    pub error_patterns: Option<Vec<ErrorPattern>>,
    pub a2a: Option<EndpointDraft>,
}

/// `or!(self, preset: a, b)`: each of these fields from the preset where it is not given.
macro_rules! or {
    ($own:ident, $other:ident: $($field:ident),+ $(,)?) => { Draft { $($field: $own.$field.or($other.$field)),+ } };
}

impl Draft {
    /// This draft, with what it leaves open as `preset` has it.
    pub fn over(self, preset: Self) -> Self {
        or!(self, preset: id, name, description, preset, agent_type, executable_path, card_url, card_auth,
            working_directory, envs, args, cli_args, parameters, mode, input_pattern, output_pattern, input_file_template, output_file_template,
            protocol, rpc_method, permissions, access_type, write_paths, max_concurrent_executions, timeout,
            session_timeout, keep_alive, session, enabled, grace, queue_depth, queue_timeout, max_retries, retry_delay,
            max_input_size, max_output_size, redact, limits, allow, overrides, exit_codes, error_patterns, a2a)
    }

    /// The agent, or everything that is wrong with it. Whether its program is there is for others to say.
    pub fn check(self) -> Result<Agent, Invalid> {
        let mut checks = Checks::default();
        let agent = self.make(&mut checks);
        checks.finish(Some(agent))
    }

    /// An agent that is part of the program: it needs none of its own, and may have a reserved id.
    pub fn built_in(self) -> Agent {
        let agent = self.make(&mut Checks::default());
        Agent { agent_type: "built-in".to_owned(), ..agent }
    }

    fn make(mut self, checks: &mut Checks) -> Agent {
        let id = id(checks, self.id.as_deref(), self.name.as_deref());
        let elsewhere = elsewhere::is_elsewhere(checks, &self) || self.agent_type.as_deref() == Some(A2A);
        let endpoint = self.a2a.take().unwrap_or_default();
        let patterns = match elsewhere {
            true => Patterns { input: InputPattern::Stdin, output: OutputPattern::Stdout, name: A2A.to_owned() },
            false => patterns(checks, self.agent_type.as_deref(), self.input_pattern, self.output_pattern),
        };
        let mut agent = self.fill(id, patterns);
        rules::identity(checks, &agent);
        rules::program(checks, &agent, elsewhere);
        rules::arguments(checks, &agent);
        rules::files(checks, &agent);
        rules::concurrency(checks, &agent);
        rules::times(checks, &agent);
        rules::sizes(checks, &agent);
        rules::access(checks, &agent);
        rules::protocol(checks, &agent);
        agent.a2a = endpoint.check(&agent).unwrap_or_else(|invalid| {
            for violation in invalid.violations {
                checks.fail(format!("a2a.{}", violation.field), &violation.rule, violation.message);
            }
            Endpoint::default()
        });
        agent
    }

    /// Returns the agent with the default of every field that is not given. Checks nothing.
    fn fill(self, id: String, patterns: Patterns) -> Agent {
        let access_type = self.access_type.unwrap_or(AccessType::ReadOnly);
        let (places, permissions) = match access_type {
            AccessType::ReadWrite => (1, Permissions::Allow),
            AccessType::ReadOnly => (10, Permissions::Read),
        };
        let protocol = if patterns.are_json_rpc() { Protocol::Acp } else { Protocol::JsonRpc };
        Agent {
            name: self.name.unwrap_or_else(|| id.clone()),
            id,
            description: self.description.unwrap_or_default(),
            preset: self.preset,
            agent_type: patterns.name,
            executable_path: self.executable_path.unwrap_or_default(),
            card_url: self.card_url,
            card_auth: self.card_auth,
            working_directory: self.working_directory,
            envs: self.envs.unwrap_or_default(),
            args: self.args.unwrap_or_default(),
            cli_args: self.cli_args.unwrap_or_default(),
            parameters: self.parameters.unwrap_or_default(),
            mode: self.mode.unwrap_or(Mode::Task),
            input_pattern: patterns.input,
            output_pattern: patterns.output,
            input_file_template: self.input_file_template,
            output_file_template: self.output_file_template,
            protocol: self.protocol.unwrap_or(protocol),
            rpc_method: self.rpc_method.unwrap_or_else(|| "execute".to_owned()),
            permissions: self.permissions.unwrap_or(permissions),
            access_type,
            write_paths: self.write_paths.unwrap_or_default(),
            max_concurrent_executions: self.max_concurrent_executions.unwrap_or(places),
            timeout: self.timeout.unwrap_or(Seconds::new(1800)),
            session_timeout: self.session_timeout.unwrap_or(Seconds::new(1800)),
            keep_alive: self.keep_alive.unwrap_or(true),
            session: self.session.unwrap_or_default(),
            enabled: self.enabled.unwrap_or(true),
            grace: self.grace.unwrap_or(Seconds::new(5)),
            queue_depth: self.queue_depth.unwrap_or(10),
            queue_timeout: self.queue_timeout.unwrap_or(Seconds::new(1800)),
            max_retries: self.max_retries.unwrap_or(0),
            retry_delay: self.retry_delay.unwrap_or(Seconds::new(1)),
            max_input_size: self.max_input_size.unwrap_or(1 << 20),
            max_output_size: self.max_output_size.unwrap_or(10 << 20),
            redact: self.redact.unwrap_or_else(|| vec![Redact::Secrets, Redact::Emails]),
            limits: self.limits.unwrap_or_default(),
            allow: self.allow.unwrap_or_default(),
            overrides: self.overrides.unwrap_or_default(),
            exit_codes: self.exit_codes.unwrap_or_default(),
            error_patterns: self.error_patterns.unwrap_or_default(),
            a2a: Endpoint::default(),
        }
    }
}

/// Returns the id that was given, or one made of the name.
fn id(checks: &mut Checks, id: Option<&str>, name: Option<&str>) -> String {
    let made = || {
        let words = name.unwrap_or_default().to_lowercase();
        let words = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let slug: String = words.collect::<Vec<_>>().join("-").chars().take(MAX_ID).collect();
        slug.trim_end_matches('-').to_owned()
    };
    let id = id.map_or_else(made, str::to_owned);
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if id.is_empty() || id.len() > MAX_ID || !id.chars().all(fits) {
        checks.fail("id", "slug", format!("must have 1 to {MAX_ID} of a-z, 0-9 and -"));
    } else if id == ASSISTANT {
        checks.fail("id", "reserved", "is the built-in assistant's: choose another");
    }
    id
}

/// How an agent takes its input and gives its output, and the type that stands for both.
struct Patterns {
    input: InputPattern,
    output: OutputPattern,
    name: String,
}

impl Patterns {
    fn are_json_rpc(&self) -> bool {
        self.input == InputPattern::JsonRpc && self.output == OutputPattern::JsonRpc
    }
}

/// Returns the patterns that were given, else those of the type, else the defaults. Fails where the type is unknown or
/// contradicts a pattern, and where the two patterns do not go together.
fn patterns(
    checks: &mut Checks,
    agent_type: Option<&str>,
    input: Option<InputPattern>,
    output: Option<OutputPattern>,
) -> Patterns {
    let named = agent_type.and_then(|name| TYPES.iter().find(|(known, ..)| *known == name));
    match (agent_type, named) {
        (Some(_), None) => {
            let known: Vec<_> = TYPES.iter().map(|(name, ..)| *name).collect();
            checks.fail("agent_type", "one_of", format!("must be one of {}", known.join(", ")));
        }
        (_, Some((name, of_input, of_output))) => {
            let names_output = !INPUT_ONLY.contains(name);
            contradiction(checks, name, "input_pattern", input.map(InputPattern::as_str), of_input.as_str());
            if names_output {
                contradiction(checks, name, "output_pattern", output.map(OutputPattern::as_str), of_output.as_str());
            }
        }
        (None, None) => {}
    }
    let input = input.or(named.map(|(_, of_input, _)| *of_input)).unwrap_or(InputPattern::Stdin);
    let by_input = if input == InputPattern::JsonRpc { OutputPattern::JsonRpc } else { OutputPattern::Stdout };
    let output = output.or(named.map(|(.., of_output)| *of_output)).unwrap_or(by_input);
    let found = TYPES.iter().find(|(_, known_in, known_out)| (*known_in, *known_out) == (input, output));
    let Some((found, ..)) = found else {
        checks.fail("output_pattern", "one_of", "must be json-rpc or file: stdout carries the protocol");
        return Patterns { input, output, name: String::new() };
    };
    Patterns { input, output, name: agent_type.unwrap_or(found).to_owned() }
}

/// Fails if a pattern was given that is not the one of the type.
fn contradiction(checks: &mut Checks, agent_type: &str, field: &str, given: Option<&str>, of_type: &str) {
    if let Some(given) = given.filter(|given| *given != of_type) {
        let message = format!("'{agent_type}' stands for {field} '{of_type}', but {field} is '{given}'");
        checks.fail("agent_type", "consistent", message);
    }
}
