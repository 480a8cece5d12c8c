//! The draft of an agent, from the configuration file or the API. Every field is optional.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::endpoint::EndpointDraft;
use super::remote::{self, A2A_AGENT_TYPE, CardAuth};
use super::{
    ASSISTANT_ID, AccessType, Agent, AgentLimits, AgentMode, AgentNetwork, AgentProtocol, Endpoint, ErrorPattern,
    InputPattern, OutputPattern, Override, Permissions, RedactionKind, RunConfirmation, SandboxMode, Seconds,
    SessionRules, rules,
};
use crate::Invalid;
use crate::execution::ErrorCategory;
use crate::invalid::Checks;

pub const MAX_ID_CHARS: usize = 64;

/// The agent types and their patterns.
const AGENT_TYPES: &[(&str, InputPattern, OutputPattern)] = {
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
/// Types that define only the input. Their output pattern in [`AGENT_TYPES`] is a default; any other one is accepted.
const INPUT_ONLY_TYPES: [&str; 2] = ["file-input", "args"];

/// The configuration of an agent. An absent field has the value of the preset, or else a default.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentDraft {
    pub id: Option<String>,
    pub name: Option<String>,
    pub description: Option<String>,
    pub preset: Option<String>,
    pub agent_type: Option<String>,
    pub executable_path: Option<String>,
    /// The URL of the agent card of a remote agent, instead of `executable_path`.
    pub card_url: Option<String>,
    pub card_auth: Option<CardAuth>,
    pub working_directory: Option<String>,
    pub envs: Option<BTreeMap<String, String>>,
    pub args: Option<Vec<String>>,
    pub cli_args: Option<BTreeMap<String, String>>,
    pub parameters: Option<BTreeMap<String, Value>>,
    pub mode: Option<AgentMode>,
    pub input_pattern: Option<InputPattern>,
    pub output_pattern: Option<OutputPattern>,
    pub input_file_template: Option<String>,
    pub output_file_template: Option<String>,
    pub protocol: Option<AgentProtocol>,
    pub rpc_method: Option<String>,
    pub permissions: Option<Permissions>,
    pub confirm: Option<RunConfirmation>,
    pub access_type: Option<AccessType>,
    pub write_paths: Option<Vec<String>>,
    pub network: Option<AgentNetwork>,
    pub ports: Option<Vec<u16>>,
    pub sandbox: Option<SandboxMode>,
    pub run_as: Option<String>,
    pub api_access: Option<bool>,
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
    pub redact: Option<Vec<RedactionKind>>,
    pub limits: Option<AgentLimits>,
    pub allow: Option<Vec<String>>,
    pub overrides: Option<Vec<Override>>,
    pub exit_codes: Option<BTreeMap<i32, ErrorCategory>>,
    pub error_patterns: Option<Vec<ErrorPattern>>,
    pub a2a: Option<EndpointDraft>,
}

/// `or!(self, preset: a, b)` takes each of the listed fields from `preset` if `self` does not have it.
macro_rules! or {
    ($own:ident, $other:ident: $($field:ident),+ $(,)?) => { AgentDraft { $($field: $own.$field.or($other.$field)),+ } };
}

impl AgentDraft {
    /// Returns this draft with the missing fields taken from `preset`. Lists and maps are not merged.
    pub fn with_preset(self, preset: Self) -> Self {
        or!(self, preset: id, name, description, preset, agent_type, executable_path, card_url, card_auth,
            working_directory, envs, args, cli_args, parameters, mode, input_pattern, output_pattern, input_file_template, output_file_template,
            protocol, rpc_method, permissions, confirm, access_type, write_paths, network, ports, sandbox, run_as, api_access, max_concurrent_executions, timeout,
            session_timeout, keep_alive, session, enabled, grace, queue_depth, queue_timeout, max_retries, retry_delay,
            max_input_size, max_output_size, redact, limits, allow, overrides, exit_codes, error_patterns, a2a)
    }

    /// Returns the agent. Fails with all violations. Does not check that the program exists.
    pub fn check(self) -> Result<Agent, Invalid> {
        let mut checks = Checks::default();
        let agent = self.build(&mut checks);
        checks.finish(Some(agent))
    }

    /// Returns a built-in agent, which has no program and may have a reserved id. Violations are ignored.
    pub fn into_built_in(self) -> Agent {
        let agent = self.build(&mut Checks::default());
        Agent { agent_type: "built-in".to_owned(), ..agent }
    }

    /// Returns the agent with defaults for missing fields, and adds a violation for each broken rule. An agent with
    /// `card_url` or the type `a2a` is remote: it needs no program, and its patterns are stdin and stdout. Fields of
    /// the A2A endpoint have the prefix `a2a.` in violations. An invalid endpoint is replaced by the default one.
    fn build(mut self, checks: &mut Checks) -> Agent {
        let id = resolve_id(checks, self.id.as_deref(), self.name.as_deref());
        let is_remote = remote::check_remote(checks, &self) || self.agent_type.as_deref() == Some(A2A_AGENT_TYPE);
        let endpoint = self.a2a.take().unwrap_or_default();
        let patterns = match is_remote {
            true => AgentPatterns {
                input: InputPattern::Stdin,
                output: OutputPattern::Stdout,
                name: A2A_AGENT_TYPE.to_owned(),
            },
            false => resolve_patterns(checks, self.agent_type.as_deref(), self.input_pattern, self.output_pattern),
        };
        let mut agent = self.fill_defaults(id, patterns);
        rules::identity(checks, &agent);
        rules::program(checks, &agent, is_remote);
        rules::arguments(checks, &agent);
        rules::files(checks, &agent);
        rules::concurrency(checks, &agent);
        rules::times(checks, &agent);
        rules::sizes(checks, &agent);
        rules::access(checks, &agent);
        rules::isolation(checks, &agent);
        rules::protocol(checks, &agent);
        agent.a2a = endpoint.check(&agent).unwrap_or_else(|invalid| {
            for violation in invalid.violations {
                checks.fail(format!("a2a.{}", violation.field), &violation.rule, violation.message);
            }
            Endpoint::default()
        });
        agent
    }

    /// Returns the agent with this id, agent type and patterns, and the default of every missing field. The name is the
    /// id, the mode `Task`, the RPC method `execute`. The access is read-only. A read-only agent has 10 concurrent
    /// executions and the permissions `Read`, a read-write agent 1 and `Allow`. The protocol is ACP if both patterns
    /// are json-rpc. Timeouts are 1800 s, the grace 5 s and the retry delay 1 s, without retries. The queue depth is
    /// 10. The sizes are 1 MiB for the input and 10 MiB for the output. Secrets and e-mail addresses are redacted. The
    /// A2A endpoint is always the default: the caller sets it. Checks nothing.
    fn fill_defaults(self, id: String, patterns: AgentPatterns) -> Agent {
        let access_type = self.access_type.unwrap_or(AccessType::ReadOnly);
        let (max_concurrency, permissions) = match access_type {
            AccessType::ReadWrite => (1, Permissions::Allow),
            AccessType::ReadOnly => (10, Permissions::Read),
        };
        let default_protocol = if patterns.are_json_rpc() { AgentProtocol::Acp } else { AgentProtocol::JsonRpc };
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
            mode: self.mode.unwrap_or(AgentMode::Task),
            input_pattern: patterns.input,
            output_pattern: patterns.output,
            input_file_template: self.input_file_template,
            output_file_template: self.output_file_template,
            protocol: self.protocol.unwrap_or(default_protocol),
            rpc_method: self.rpc_method.unwrap_or_else(|| "execute".to_owned()),
            permissions: self.permissions.unwrap_or(permissions),
            confirm: self.confirm.unwrap_or_default(),
            access_type,
            write_paths: self.write_paths.unwrap_or_default(),
            network: self.network.unwrap_or_default(),
            ports: self.ports.unwrap_or_default(),
            sandbox: self.sandbox.unwrap_or_default(),
            run_as: self.run_as,
            api_access: self.api_access.unwrap_or_default(),
            max_concurrent_executions: self.max_concurrent_executions.unwrap_or(max_concurrency),
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
            redact: self.redact.unwrap_or_else(|| vec![RedactionKind::Secrets, RedactionKind::Emails]),
            limits: self.limits.unwrap_or_default(),
            allow: self.allow.unwrap_or_default(),
            overrides: self.overrides.unwrap_or_default(),
            exit_codes: self.exit_codes.unwrap_or_default(),
            error_patterns: self.error_patterns.unwrap_or_default(),
            a2a: Endpoint::default(),
        }
    }
}

/// Returns the given id, or the ASCII words of the name in lower case, joined by `-` and cut at [`MAX_ID_CHARS`].
///
/// Adds a violation if the id is not 1 to [`MAX_ID_CHARS`] characters of a-z, 0-9 and `-`, or if it is the id of the
/// built-in assistant. Returns the id in any case.
fn resolve_id(checks: &mut Checks, id: Option<&str>, name: Option<&str>) -> String {
    let from_name = || {
        let words = name.unwrap_or_default().to_lowercase();
        let words = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let slug: String = words.collect::<Vec<_>>().join("-").chars().take(MAX_ID_CHARS).collect();
        slug.trim_end_matches('-').to_owned()
    };
    let id = id.map_or_else(from_name, str::to_owned);
    let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if id.is_empty() || id.len() > MAX_ID_CHARS || !id.chars().all(is_valid) {
        checks.fail("id", "slug", format!("must have 1 to {MAX_ID_CHARS} characters of a-z, 0-9 and -"));
    } else if id == ASSISTANT_ID {
        checks.fail("id", "reserved", "is the id of the built-in assistant: choose another id");
    }
    id
}

/// The input pattern, the output pattern and the agent type.
struct AgentPatterns {
    input: InputPattern,
    output: OutputPattern,
    name: String,
}

impl AgentPatterns {
    fn are_json_rpc(&self) -> bool {
        self.input == InputPattern::JsonRpc && self.output == OutputPattern::JsonRpc
    }
}

/// Returns the given patterns, else those of the type, else the defaults. The default input is stdin; the default
/// output is json-rpc if the input is, otherwise stdout. A missing type is derived from the patterns. The types
/// `file-input` and `args` accept every output.
///
/// Adds a violation if the type is unknown or contradicts a given pattern; both are returned unchanged then. Also adds
/// one for json-rpc input with stdout output; the returned type is empty then.
fn resolve_patterns(
    checks: &mut Checks,
    agent_type: Option<&str>,
    input: Option<InputPattern>,
    output: Option<OutputPattern>,
) -> AgentPatterns {
    let named = agent_type.and_then(|name| AGENT_TYPES.iter().find(|(known, ..)| *known == name));
    match (agent_type, named) {
        (Some(_), None) => {
            let known: Vec<_> = AGENT_TYPES.iter().map(|(name, ..)| *name).collect();
            checks.fail("agent_type", "one_of", format!("must be one of {}", known.join(", ")));
        }
        (_, Some((name, type_input, type_output))) => {
            let defines_output = !INPUT_ONLY_TYPES.contains(name);
            check_pattern(checks, name, "input_pattern", input.map(InputPattern::as_str), type_input.as_str());
            if defines_output {
                check_pattern(checks, name, "output_pattern", output.map(OutputPattern::as_str), type_output.as_str());
            }
        }
        (None, None) => {}
    }
    let input = input.or(named.map(|(_, type_input, _)| *type_input)).unwrap_or(InputPattern::Stdin);
    let default_output = if input == InputPattern::JsonRpc { OutputPattern::JsonRpc } else { OutputPattern::Stdout };
    let output = output.or(named.map(|(.., type_output)| *type_output)).unwrap_or(default_output);
    let found = AGENT_TYPES.iter().find(|(_, known_in, known_out)| (*known_in, *known_out) == (input, output));
    let Some((found, ..)) = found else {
        checks.fail("output_pattern", "one_of", "must be json-rpc or file, because stdout carries the protocol");
        return AgentPatterns { input, output, name: String::new() };
    };
    AgentPatterns { input, output, name: agent_type.unwrap_or(found).to_owned() }
}

/// Adds a violation if the given pattern differs from the pattern of the type.
fn check_pattern(checks: &mut Checks, agent_type: &str, field: &str, given: Option<&str>, of_type: &str) {
    if let Some(given) = given.filter(|given| *given != of_type) {
        let message = format!("'{agent_type}' requires {field} '{of_type}', but {field} is '{given}'");
        checks.fail("agent_type", "consistent", message);
    }
}
