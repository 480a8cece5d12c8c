//! The rules that every agent keeps, by section. Each function takes the filled-in agent and notes every violation.

use std::sync::LazyLock;

use super::{AccessType, Agent, InputPattern, MAX_ID, OutputPattern, Protocol, Seconds};
use crate::UserId;
use crate::invalid::Checks;
use redact::{Redactor, What, sounds_secret};

const MAX_NAME: usize = 100;
const MAX_TEXT: usize = 2000;
/// Arguments, variables and parameters, of each kind.
const MAX_ITEMS: usize = 500;
const MAX_PLACES: u32 = 1000;
const MAX_QUEUE: u32 = 1_000_000;
const MAX_SIZE: u64 = 1 << 30;
const MAX_RETRIES: u32 = 100;
const SECRET: &str = "must not have a secret in it: use ${NAME}, env:NAME or file:PATH in envs";

pub(super) fn identity(checks: &mut Checks, agent: &Agent) {
    text(checks, "name", &agent.name, 1, MAX_NAME);
    text(checks, "description", &agent.description, 0, MAX_TEXT);
}

/// Checks the program and its directory. An agent elsewhere needs no program.
pub(super) fn program(checks: &mut Checks, agent: &Agent, elsewhere: bool) {
    if agent.executable_path.is_empty() && !elsewhere {
        let message = "must be given: the program, or a preset that knows it, or a card_url instead";
        checks.fail("executable_path", "required", message);
    }
    path(checks, "executable_path", &agent.executable_path);
    if let Some(directory) = &agent.working_directory {
        path(checks, "working_directory", directory);
    }
}

pub(super) fn arguments(checks: &mut Checks, agent: &Agent) {
    for (at, arg) in agent.args.iter().enumerate() {
        argument(checks, &format!("args[{at}]"), arg);
    }
    flags_with_secrets(checks, &agent.args);
    for (key, value) in &agent.cli_args {
        let field = format!("cli_args.{key}");
        argument(checks, &field, value);
        if key.is_empty() {
            checks.fail("cli_args", "name", "must not have an empty key");
        }
        if sounds_secret(key) && !value.is_empty() {
            checks.fail(field, "secret", SECRET);
        }
    }
    for (name, value) in &agent.envs {
        variable(checks, name, value);
    }
    for name in agent.parameters.keys() {
        parameter(checks, "parameters", name);
    }
    for (field, count) in [
        ("args", agent.args.len()),
        ("cli_args", agent.cli_args.len()),
        ("envs", agent.envs.len()),
        ("parameters", agent.parameters.len()),
    ] {
        if count > MAX_ITEMS {
            checks.fail(field, "items", format!("must not have more than {MAX_ITEMS} entries"));
        }
    }
}

pub(super) fn files(checks: &mut Checks, agent: &Agent) {
    for (field, template) in
        [("input_file_template", &agent.input_file_template), ("output_file_template", &agent.output_file_template)]
    {
        if let Some(template) = template {
            path(checks, field, template);
            braces(checks, field, template);
        }
    }
    for (at, granted) in agent.write_paths.iter().enumerate() {
        path(checks, &format!("write_paths[{at}]"), granted);
    }
}

pub(super) fn concurrency(checks: &mut Checks, agent: &Agent) {
    let places = agent.max_concurrent_executions;
    if places == 0 || places > MAX_PLACES {
        checks.fail("max_concurrent_executions", "range", format!("must be between 1 and {MAX_PLACES}"));
    } else if agent.access_type == AccessType::ReadWrite && places > 1 {
        checks.fail("max_concurrent_executions", "range", "must be 1: a read-write agent runs alone");
    }
    if agent.queue_depth > MAX_QUEUE {
        checks.fail("queue_depth", "range", format!("must be at most {MAX_QUEUE}"));
    }
    if agent.max_retries > MAX_RETRIES {
        checks.fail("max_retries", "range", format!("must be at most {MAX_RETRIES}"));
    }
}

pub(super) fn times(checks: &mut Checks, agent: &Agent) {
    let positive: [(&str, Seconds); 4] = [
        ("timeout", agent.timeout),
        ("session_timeout", agent.session_timeout),
        ("queue_timeout", agent.queue_timeout),
        ("session.quiet", agent.session.quiet),
    ];
    for (field, value) in positive {
        if value.is_zero() {
            checks.fail(field, "range", "must be greater than 0");
        }
    }
    if agent.session.marker.as_ref().is_some_and(|marker| marker.trim().is_empty()) {
        checks.fail("session.marker", "min_length", "must not be empty");
    }
}

pub(super) fn sizes(checks: &mut Checks, agent: &Agent) {
    for (field, value) in [("max_input_size", agent.max_input_size), ("max_output_size", agent.max_output_size)] {
        if value == 0 || value > MAX_SIZE {
            checks.fail(field, "range", format!("must be between 1 and {MAX_SIZE} bytes"));
        }
    }
    let limits = &agent.limits;
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

/// Checks who may run the agent, and by which words its failures are told apart.
pub(super) fn access(checks: &mut Checks, agent: &Agent) {
    for (at, allowed) in agent.allow.iter().enumerate() {
        if allowed != "*" && allowed.parse::<UserId>().is_err() {
            checks.fail(format!("allow[{at}]"), "uuid", "must be the id of a user, or * for everyone");
        }
    }
    for (at, pattern) in agent.error_patterns.iter().enumerate() {
        text(checks, &format!("error_patterns[{at}].text"), &pattern.text, 1, MAX_TEXT);
    }
}

pub(super) fn protocol(checks: &mut Checks, agent: &Agent) {
    let json_rpc = agent.input_pattern == InputPattern::JsonRpc && agent.output_pattern == OutputPattern::JsonRpc;
    if agent.protocol == Protocol::Acp && !json_rpc {
        checks.fail("protocol", "one_of", "must be json-rpc unless both patterns are json-rpc");
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

fn has_secret(text: &str) -> bool {
    static LOOKS: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(What { secrets: true, emails: false }));
    LOOKS.text(text) != text
}
