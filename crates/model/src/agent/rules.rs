//! Validation rules for agents, by section. Each function checks the complete agent and adds its violations.

use std::sync::LazyLock;

use super::{AccessType, Agent, AgentNetwork, AgentProtocol, InputPattern, MAX_ID_CHARS, OutputPattern, Seconds};
use crate::UserId;
use crate::invalid::Checks;
use redact::{RedactOptions, Redactor, is_secret_name};

const MAX_NAME_CHARS: usize = 100;
const MAX_TEXT_CHARS: usize = 2000;
/// The maximum number of arguments, of variables and of parameters.
const MAX_ITEMS: usize = 500;
const MAX_CONCURRENCY: u32 = 1000;
const MAX_QUEUE_DEPTH: u32 = 1_000_000;
const MAX_SIZE_BYTES: u64 = 1 << 30;
const MAX_RETRIES: u32 = 100;
const SECRET_MESSAGE: &str = "must not contain a secret: use ${NAME}, env:NAME or file:PATH in envs";

/// Checks that the name has 1 to 100 characters and the description at most 2000, without control characters.
pub(super) fn identity(checks: &mut Checks, agent: &Agent) {
    text(checks, "name", &agent.name, 1, MAX_NAME_CHARS);
    text(checks, "description", &agent.description, 0, MAX_TEXT_CHARS);
}

/// Checks that a local agent has a program. A remote agent needs none. The path of the program and the working
/// directory must have at most 4096 bytes and no NUL. Does not access the file system.
pub(super) fn program(checks: &mut Checks, agent: &Agent, is_remote: bool) {
    if agent.executable_path.is_empty() && !is_remote {
        let message = "must be given, or set a preset for a local program or card_url for a remote agent";
        checks.fail("executable_path", "required", message);
    }
    path(checks, "executable_path", &agent.executable_path);
    if let Some(directory) = &agent.working_directory {
        path(checks, "working_directory", directory);
    }
}

/// Checks `args`, `cli_args`, `envs` and the names of the parameters; at most [`MAX_ITEMS`] of each. Arguments must
/// have no NUL, no secret and only valid templates. The value after a secret flag, or of a key with a secret name,
/// counts as a secret. Keys of `cli_args` must not be empty. [`variable`] checks the variables. The values of the
/// parameters are not checked.
pub(super) fn arguments(checks: &mut Checks, agent: &Agent) {
    for (at, arg) in agent.args.iter().enumerate() {
        argument(checks, &format!("args[{at}]"), arg);
    }
    secret_flag_values(checks, &agent.args);
    for (key, value) in &agent.cli_args {
        let field = format!("cli_args.{key}");
        argument(checks, &field, value);
        if key.is_empty() {
            checks.fail("cli_args", "name", "must not have an empty key");
        }
        if is_secret_name(key) && !value.is_empty() {
            checks.fail(field, "secret", SECRET_MESSAGE);
        }
    }
    for (name, value) in &agent.envs {
        variable(checks, name, value);
    }
    for name in agent.parameters.keys() {
        parameter_name(checks, "parameters", name);
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

/// Checks the templates of the input and output file, if given, and the writable paths. Each must have at most 4096
/// bytes and no NUL. The parameters in templates must have valid names. Does not access the file system.
pub(super) fn files(checks: &mut Checks, agent: &Agent) {
    for (field, template) in
        [("input_file_template", &agent.input_file_template), ("output_file_template", &agent.output_file_template)]
    {
        if let Some(template) = template {
            path(checks, field, template);
            check_template(checks, field, template);
        }
    }
    for (at, granted) in agent.write_paths.iter().enumerate() {
        path(checks, &format!("write_paths[{at}]"), granted);
    }
}

/// Checks that `max_concurrent_executions` is between 1 and [`MAX_CONCURRENCY`], and 1 for a read-write agent. Also
/// checks that `queue_depth` is at most [`MAX_QUEUE_DEPTH`] and `max_retries` at most [`MAX_RETRIES`]. Both may be 0.
pub(super) fn concurrency(checks: &mut Checks, agent: &Agent) {
    let max_concurrency = agent.max_concurrent_executions;
    if max_concurrency == 0 || max_concurrency > MAX_CONCURRENCY {
        checks.fail("max_concurrent_executions", "range", format!("must be between 1 and {MAX_CONCURRENCY}"));
    } else if agent.access_type == AccessType::ReadWrite && max_concurrency > 1 {
        checks.fail("max_concurrent_executions", "range", "must be 1 for a read-write agent");
    }
    if agent.queue_depth > MAX_QUEUE_DEPTH {
        checks.fail("queue_depth", "range", format!("must be at most {MAX_QUEUE_DEPTH}"));
    }
    if agent.max_retries > MAX_RETRIES {
        checks.fail("max_retries", "range", format!("must be at most {MAX_RETRIES}"));
    }
}

/// Checks that `timeout`, `session_timeout`, `queue_timeout` and `session.quiet` are not zero, and that
/// `session.marker` is not blank if it is given. The `grace` and the `retry_delay` may be zero. There is no upper
/// limit.
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

/// Checks that the sizes of input and output are between 1 and [`MAX_SIZE_BYTES`]. Each given resource limit must be
/// between 1 and 2^40.
pub(super) fn sizes(checks: &mut Checks, agent: &Agent) {
    for (field, value) in [("max_input_size", agent.max_input_size), ("max_output_size", agent.max_output_size)] {
        if value == 0 || value > MAX_SIZE_BYTES {
            checks.fail(field, "range", format!("must be between 1 and {MAX_SIZE_BYTES} bytes"));
        }
    }
    let limits = &agent.limits;
    for (field, value) in [
        ("limits.cpu_seconds", limits.cpu_seconds),
        ("limits.memory_mb", limits.memory_mb),
        ("limits.open_files", limits.open_files),
        ("limits.processes", limits.processes),
        ("limits.file_size_mb", limits.file_size_mb),
        ("limits.lifetime_seconds", limits.lifetime_seconds),
    ] {
        if value.is_some_and(|value| value == 0 || value > 1 << 40) {
            checks.fail(field, "range", "must be greater than 0 or omitted");
        }
    }
}

/// Checks that each entry of `allow` is the id of a user or `*`. The text of each error pattern must have 1 to
/// [`MAX_TEXT_CHARS`] characters, without control characters.
pub(super) fn access(checks: &mut Checks, agent: &Agent) {
    for (at, allowed) in agent.allow.iter().enumerate() {
        if allowed != "*" && allowed.parse::<UserId>().is_err() {
            checks.fail(format!("allow[{at}]"), "uuid", "must be the id of a user, or * for all users");
        }
    }
    for (at, pattern) in agent.error_patterns.iter().enumerate() {
        text(checks, &format!("error_patterns[{at}].text"), &pattern.text, 1, MAX_TEXT_CHARS);
    }
}

/// Checks that the protocol `acp` is used only if both patterns are `json-rpc`.
pub(super) fn protocol(checks: &mut Checks, agent: &Agent) {
    let json_rpc = agent.input_pattern == InputPattern::JsonRpc && agent.output_pattern == OutputPattern::JsonRpc;
    if agent.protocol == AgentProtocol::Acp && !json_rpc {
        checks.fail("protocol", "one_of", "must be json-rpc unless both patterns are json-rpc");
    }
}

/// Checks that the trimmed value has `min` to `max` characters, and that the value has no control characters. Line
/// breaks are control characters too. `min` must be 0 or 1.
pub(super) fn text(checks: &mut Checks, field: &str, value: &str, min: usize, max: usize) {
    let length = value.trim().chars().count();
    if length < min {
        checks.fail(field, "min_length", "must not be empty");
    } else if length > max {
        checks.fail(field, "max_length", format!("must have at most {max} characters, has {length}"));
    }
    if value.chars().any(char::is_control) {
        checks.fail(field, "characters", "must not contain control characters");
    }
}

/// Checks that `ports` is given exactly if the network policy is `ports`, that `run_as` is a name, and that an agent with
/// `api_access` has a network.
pub(super) fn isolation(checks: &mut Checks, agent: &Agent) {
    let has_ports = !agent.ports.is_empty();
    if agent.network == AgentNetwork::Ports && !has_ports {
        checks.fail("ports", "required", "must list at least one port, because network is 'ports'");
    }
    if agent.network != AgentNetwork::Ports && has_ports {
        checks.fail("ports", "consistent", "needs network = 'ports'");
    }
    if agent.ports.contains(&0) {
        checks.fail("ports", "range", "must be from 1 to 65535");
    }
    let is_name = |name: &str| !name.is_empty() && name.len() <= 64 && !name.chars().any(char::is_control);
    if agent.run_as.as_deref().is_some_and(|name| !is_name(name)) {
        checks.fail("run_as", "name", "must be the name of a user of this machine");
    }
    if agent.api_access && agent.network == AgentNetwork::None {
        checks.fail("api_access", "consistent", "needs a network; use network = 'ports' or 'all'");
    }
}

/// Checks that a path has at most 4096 bytes and no NUL.
fn path(checks: &mut Checks, field: &str, value: &str) {
    if value.len() > 4096 || value.contains('\0') {
        checks.fail(field, "path", "must be a path of at most 4096 bytes without NUL");
    }
}

/// Checks that an argument has no NUL and no secret, and that its templates are valid.
fn argument(checks: &mut Checks, field: &str, value: &str) {
    if value.contains('\0') {
        checks.fail(field, "characters", "must not contain NUL");
    }
    if contains_secret(value) {
        checks.fail(field, "secret", SECRET_MESSAGE);
    }
    check_template(checks, field, value);
}

/// Adds a violation for the argument after a secret flag, as in `--token abc`. An argument that starts with `-` or
/// contains a template is accepted.
fn secret_flag_values(checks: &mut Checks, args: &[String]) {
    for (at, pair) in args.windows(2).enumerate() {
        let flag = pair[0].starts_with('-') && !pair[0].contains('=') && is_secret_name(&pair[0]);
        if flag && !pair[1].starts_with('-') && !pair[1].contains("{{") {
            checks.fail(format!("args[{}]", at + 1), "secret", SECRET_MESSAGE);
        }
    }
}

/// Checks that every `{{` is followed by a valid parameter name and `}}`. White space around the name is ignored. Stops
/// at the first `{{` without `}}`. A `}}` without `{{` is accepted.
fn check_template(checks: &mut Checks, field: &str, template: &str) {
    let mut rest = template;
    while let Some((_, after)) = rest.split_once("{{") {
        let Some((name, after_name)) = after.split_once("}}") else {
            return checks.fail(field, "template", "has {{ without a matching }}");
        };
        parameter_name(checks, field, name.trim());
        rest = after_name;
    }
}

/// Checks that a name has 1 to [`MAX_ID_CHARS`] ASCII letters, digits, `_` and `-`. `field` is the field of the
/// violation.
fn parameter_name(checks: &mut Checks, field: &str, name: &str) {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > MAX_ID_CHARS || !name.chars().all(is_valid) {
        let message = format!("has the invalid name '{name}': a name has 1 to {MAX_ID_CHARS} letters, digits, _ and -");
        checks.fail(field, "name", message);
    }
}

/// Checks the name of an environment variable, and that its value has no NUL. The name must not be empty, contain `=`
/// or NUL, or start with `ADJUTANT_`. A value that contains a secret, or that has a secret name, must be empty, start
/// with `env:` or `file:`, or contain `${`. If the name is malformed, the value is not checked.
fn variable(checks: &mut Checks, name: &str, value: &str) {
    let field = format!("envs.{name}");
    if name.is_empty() || name.contains(['=', '\0']) {
        return checks.fail("envs", "name", "must have names that are not empty and contain neither = nor NUL");
    }
    if name.starts_with("ADJUTANT_") {
        checks.fail(&field, "reserved", "is reserved for adjutant: choose a name without the prefix ADJUTANT_");
    }
    if value.contains('\0') {
        checks.fail(&field, "characters", "must not contain NUL");
    }
    let reference = value.starts_with("env:") || value.starts_with("file:") || value.contains("${");
    if !reference && !value.is_empty() && (is_secret_name(name) || contains_secret(value)) {
        checks.fail(&field, "secret", "must be a reference, not the secret: write ${NAME}, env:NAME or file:PATH");
    }
}

/// Returns `true` if redaction would replace a secret in the text. E-mail addresses do not count.
fn contains_secret(text: &str) -> bool {
    static SECRETS: LazyLock<Redactor> =
        LazyLock::new(|| Redactor::new(RedactOptions { secrets: true, emails: false }));
    SECRETS.text(text) != text
}
