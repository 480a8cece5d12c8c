//! An agent as somebody writes it down, in the configuration or over the API; all fields that may be left out are.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::elsewhere::{self, A2A, CardAuth};
use super::endpoint::{EndpointDraft, Of};
use super::{
    ASSISTANT, AccessType, Agent, Endpoint, ErrorPattern, InputPattern, Limits, Mode, OutputPattern, Override,
    Permissions, Protocol, Redact, Seconds, SessionRules,
};
use crate::execution::Category;
use crate::invalid::Checks;
use crate::redact::{Redactor, What, sounds_secret};
use crate::{Invalid, UserId};

pub const MAX_ID: usize = 64;
const MAX_NAME: usize = 100;
const MAX_TEXT: usize = 2000;
/// Arguments, variables and parameters, of each kind.
const MAX_ITEMS: usize = 500;
const MAX_PLACES: u32 = 1000;
const MAX_QUEUE: u32 = 1_000_000;
const MAX_SIZE: u64 = 1 << 30;
const MAX_RETRIES: u32 = 100;

/// The types there are and the patterns they stand for.
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

    fn make(self, checks: &mut Checks) -> Agent {
        let id = id(checks, self.id.as_deref(), self.name.as_deref());
        let elsewhere = elsewhere::is_elsewhere(checks, &self);
        let name = self.name.unwrap_or_else(|| id.clone());
        text(checks, "name", &name, 1, MAX_NAME);
        let description = self.description.unwrap_or_default();
        text(checks, "description", &description, 0, MAX_TEXT);
        let executable_path = self.executable_path.unwrap_or_default();
        if executable_path.is_empty() && !elsewhere && self.agent_type.as_deref() != Some(A2A) {
            let message = "must be given: the program, or a preset that knows it, or a card_url instead";
            checks.fail("executable_path", "required", message);
        }
        path(checks, "executable_path", &executable_path);
        if let Some(directory) = &self.working_directory {
            path(checks, "working_directory", directory);
        }
        let (input_pattern, output_pattern, agent_type) = match self.agent_type.as_deref() {
            _ if elsewhere => (InputPattern::Stdin, OutputPattern::Stdout, A2A.to_owned()),
            Some(A2A) => (InputPattern::Stdin, OutputPattern::Stdout, A2A.to_owned()),
            given => patterns(checks, given, self.input_pattern, self.output_pattern),
        };
        let args = self.args.unwrap_or_default();
        for (at, arg) in args.iter().enumerate() {
            argument(checks, &format!("args[{at}]"), arg);
        }
        flags_with_secrets(checks, &args);
        let cli_args = self.cli_args.unwrap_or_default();
        for (key, value) in &cli_args {
            let field = format!("cli_args.{key}");
            argument(checks, &field, value);
            if key.is_empty() {
                checks.fail("cli_args", "name", "must not have an empty key");
            }
            if sounds_secret(key) && !value.is_empty() {
                checks.fail(field, "secret", SECRET);
            }
        }
        let envs = self.envs.unwrap_or_default();
        for (name, value) in &envs {
            variable(checks, name, value);
        }
        let parameters = self.parameters.unwrap_or_default();
        for name in parameters.keys() {
            parameter(checks, "parameters", name);
        }
        let most = [args.len(), cli_args.len(), envs.len(), parameters.len()].into_iter().max().unwrap_or_default();
        if most > MAX_ITEMS {
            checks.fail("args", "items", format!("must not have more than {MAX_ITEMS} entries"));
        }
        for (field, template) in
            [("input_file_template", &self.input_file_template), ("output_file_template", &self.output_file_template)]
        {
            if let Some(template) = template {
                path(checks, field, template);
                braces(checks, field, template);
            }
        }
        let access_type = self.access_type.unwrap_or(AccessType::ReadOnly);
        let write_paths = self.write_paths.unwrap_or_default();
        for (at, granted) in write_paths.iter().enumerate() {
            path(checks, &format!("write_paths[{at}]"), granted);
        }
        let places = self.max_concurrent_executions.unwrap_or(match access_type {
            AccessType::ReadWrite => 1,
            AccessType::ReadOnly => 10,
        });
        if places == 0 || places > MAX_PLACES {
            checks.fail("max_concurrent_executions", "range", format!("must be between 1 and {MAX_PLACES}"));
        } else if access_type == AccessType::ReadWrite && places > 1 {
            checks.fail("max_concurrent_executions", "range", "must be 1: a read-write agent runs alone");
        }
        let positive = |checks: &mut Checks, field: &str, value: Option<Seconds>, default: u64| {
            let value = value.unwrap_or(Seconds::new(default));
            if value.is_zero() {
                checks.fail(field, "range", "must be greater than 0");
            }
            value
        };
        let timeout = positive(checks, "timeout", self.timeout, 1800);
        let session_timeout = positive(checks, "session_timeout", self.session_timeout, 1800);
        let queue_timeout = positive(checks, "queue_timeout", self.queue_timeout, 1800);
        let session = self.session.unwrap_or_default();
        if session.marker.as_ref().is_some_and(|marker| marker.trim().is_empty()) {
            checks.fail("session.marker", "min_length", "must not be empty");
        }
        positive(checks, "session.quiet", Some(session.quiet), 1);
        let size = |checks: &mut Checks, field: &str, value: Option<u64>, default: u64| {
            let value = value.unwrap_or(default);
            if value == 0 || value > MAX_SIZE {
                checks.fail(field, "range", format!("must be between 1 and {MAX_SIZE} bytes"));
            }
            value
        };
        let max_input_size = size(checks, "max_input_size", self.max_input_size, 1 << 20);
        let max_output_size = size(checks, "max_output_size", self.max_output_size, 10 << 20);
        let limits = self.limits.unwrap_or_default();
        limited(checks, &limits);
        let queue_depth = self.queue_depth.unwrap_or(10);
        if queue_depth > MAX_QUEUE {
            checks.fail("queue_depth", "range", format!("must be at most {MAX_QUEUE}"));
        }
        let max_retries = self.max_retries.unwrap_or(0);
        if max_retries > MAX_RETRIES {
            checks.fail("max_retries", "range", format!("must be at most {MAX_RETRIES}"));
        }
        let allow = self.allow.unwrap_or_default();
        for (at, allowed) in allow.iter().enumerate() {
            if allowed != "*" && allowed.parse::<UserId>().is_err() {
                checks.fail(format!("allow[{at}]"), "uuid", "must be the id of a user, or * for everyone");
            }
        }
        let error_patterns = self.error_patterns.unwrap_or_default();
        for (at, pattern) in error_patterns.iter().enumerate() {
            text(checks, &format!("error_patterns[{at}].text"), &pattern.text, 1, MAX_TEXT);
        }
        let json_rpc = input_pattern == InputPattern::JsonRpc && output_pattern == OutputPattern::JsonRpc;
        let protocol = self.protocol.unwrap_or(if json_rpc { Protocol::Acp } else { Protocol::JsonRpc });
        if protocol == Protocol::Acp && !json_rpc {
            checks.fail("protocol", "one_of", "must be json-rpc unless both patterns are json-rpc");
        }
        let of = Of { id: &id, max_input_size, max_output_size, places };
        let a2a = endpoint(checks, self.a2a.unwrap_or_default(), of);
        Agent {
            id,
            name,
            description,
            preset: self.preset,
            agent_type,
            executable_path,
            card_url: self.card_url,
            card_auth: self.card_auth,
            working_directory: self.working_directory,
            envs,
            args,
            cli_args,
            parameters,
            mode: self.mode.unwrap_or(Mode::Task),
            input_pattern,
            output_pattern,
            input_file_template: self.input_file_template,
            output_file_template: self.output_file_template,
            protocol,
            rpc_method: self.rpc_method.unwrap_or_else(|| "execute".to_owned()),
            permissions: self.permissions.unwrap_or(match access_type {
                AccessType::ReadWrite => Permissions::Allow,
                AccessType::ReadOnly => Permissions::Read,
            }),
            access_type,
            write_paths,
            max_concurrent_executions: places,
            timeout,
            session_timeout,
            keep_alive: self.keep_alive.unwrap_or(true),
            session,
            enabled: self.enabled.unwrap_or(true),
            grace: self.grace.unwrap_or(Seconds::new(5)),
            queue_depth,
            queue_timeout,
            max_retries,
            retry_delay: self.retry_delay.unwrap_or(Seconds::new(1)),
            max_input_size,
            max_output_size,
            redact: self.redact.unwrap_or_else(|| vec![Redact::Secrets, Redact::Emails]),
            limits,
            allow,
            overrides: self.overrides.unwrap_or_default(),
            exit_codes: self.exit_codes.unwrap_or_default(),
            error_patterns,
            a2a,
        }
    }
}

/// What is wrong with an endpoint is wrong with its agent, below the key that it has there.
fn endpoint(checks: &mut Checks, draft: EndpointDraft, of: Of<'_>) -> Endpoint {
    draft.check(of).unwrap_or_else(|invalid| {
        for violation in invalid.violations {
            checks.fail(format!("a2a.{}", violation.field), &violation.rule, violation.message);
        }
        Endpoint::default()
    })
}

const SECRET: &str = "must not have a secret in it: use ${NAME}, env:NAME or file:PATH in envs";

/// The id that was given, or one made of the name.
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

fn patterns(
    checks: &mut Checks,
    agent_type: Option<&str>,
    input: Option<InputPattern>,
    output: Option<OutputPattern>,
) -> (InputPattern, OutputPattern, String) {
    let named = agent_type.map(|name| TYPES.iter().find(|(known, ..)| *known == name));
    if let Some(None) = named {
        let known: Vec<_> = TYPES.iter().map(|(name, ..)| *name).collect();
        checks.fail("agent_type", "one_of", format!("must be one of {}", known.join(", ")));
    }
    let (by_name_in, by_name_out) = match named.flatten() {
        Some((name, by_name_in, by_name_out)) => {
            let other = |given: Option<&str>, stands: &str| given.is_some_and(|given| given != stands);
            if other(input.map(InputPattern::as_str), by_name_in.as_str())
                || other(output.map(OutputPattern::as_str), by_name_out.as_str())
            {
                let message = format!("stands for {by_name_in} and {by_name_out}, which the patterns contradict");
                checks.fail("agent_type", "consistent", format!("'{name}' {message}"));
            }
            (Some(*by_name_in), Some(*by_name_out))
        }
        None => (None, None),
    };
    let input = input.or(by_name_in).unwrap_or(InputPattern::Stdin);
    let by_input = if input == InputPattern::JsonRpc { OutputPattern::JsonRpc } else { OutputPattern::Stdout };
    let output = output.or(by_name_out).unwrap_or(by_input);
    let found = TYPES.iter().find(|(_, known_in, known_out)| (*known_in, *known_out) == (input, output));
    match (agent_type, found) {
        (Some(name), Some(_)) => (input, output, name.to_owned()),
        (None, Some((name, ..))) => (input, output, (*name).to_owned()),
        (_, None) => {
            checks.fail("output_pattern", "one_of", "must be json-rpc or file: stdout carries the protocol");
            (input, output, String::new())
        }
    }
}

pub(super) fn text(checks: &mut Checks, field: &str, value: &str, min: usize, max: usize) {
    let length = value.trim().chars().count();
    if length < min {
        checks.fail(field, "min_length", "must not be empty");
    } else if length > max {
        checks.fail(field, "max_length", format!("must have at most {max} characters, has {length}"));
    }
    if value.chars().any(char::is_control) {
        checks.fail(field, "characters", "must not have control characters");
    }
}

fn path(checks: &mut Checks, field: &str, value: &str) {
    if value.len() > 4096 || value.contains('\0') {
        checks.fail(field, "path", "must be a path");
    }
}

fn argument(checks: &mut Checks, field: &str, value: &str) {
    if value.contains('\0') {
        checks.fail(field, "characters", "must not have a NUL in it");
    }
    if has_secret(value) {
        checks.fail(field, "secret", SECRET);
    }
    braces(checks, field, value);
}

/// `--token abc`: the first says what the second is.
fn flags_with_secrets(checks: &mut Checks, args: &[String]) {
    for (at, pair) in args.windows(2).enumerate() {
        let flag = pair[0].starts_with('-') && !pair[0].contains('=') && sounds_secret(&pair[0]);
        if flag && !pair[1].starts_with('-') && !pair[1].contains("{{") {
            checks.fail(format!("args[{}]", at + 1), "secret", SECRET);
        }
    }
}

/// Every `{{` has a name and its `}}`.
fn braces(checks: &mut Checks, field: &str, template: &str) {
    let mut rest = template;
    while let Some((_, after)) = rest.split_once("{{") {
        let Some((name, behind)) = after.split_once("}}") else {
            return checks.fail(field, "template", "has {{ without }}");
        };
        parameter(checks, field, name.trim());
        rest = behind;
    }
}

fn parameter(checks: &mut Checks, field: &str, name: &str) {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > MAX_ID || !name.chars().all(fits) {
        let message = format!("has the name '{name}': names have 1 to {MAX_ID} letters, digits, _ and -");
        checks.fail(field, "name", message);
    }
}

fn variable(checks: &mut Checks, name: &str, value: &str) {
    let field = format!("envs.{name}");
    if name.is_empty() || name.contains(['=', '\0']) {
        return checks.fail("envs", "name", "must have names without =");
    }
    if name.starts_with("ADJUTANT_") {
        checks.fail(&field, "reserved", "is adjutant's own: choose another name");
    }
    if value.contains('\0') {
        checks.fail(&field, "characters", "must not have a NUL in it");
    }
    let reference = value.starts_with("env:") || value.starts_with("file:") || value.contains("${");
    if !reference && !value.is_empty() && (sounds_secret(name) || has_secret(value)) {
        checks.fail(&field, "secret", "must not stand here itself: write ${NAME}, env:NAME or file:PATH");
    }
}

fn limited(checks: &mut Checks, limits: &Limits) {
    for (field, value) in [
        ("limits.cpu_seconds", limits.cpu_seconds),
        ("limits.memory_mb", limits.memory_mb),
        ("limits.open_files", limits.open_files),
        ("limits.processes", limits.processes),
        ("limits.file_size_mb", limits.file_size_mb),
    ] {
        if value.is_some_and(|value| value == 0 || value > 1 << 40) {
            checks.fail(field, "range", "must be greater than 0, or left out");
        }
    }
}

fn has_secret(text: &str) -> bool {
    use std::sync::LazyLock;
    static LOOKS: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(What { secrets: true, emails: false }));
    LOOKS.text(text) != text
}
