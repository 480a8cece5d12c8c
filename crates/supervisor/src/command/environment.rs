//! Builds the environment of an agent: a few variables of adjutant, then those of the agent, then those of the run.
//!
//! Only the configuration of the agent may refer to variables and files of adjutant. Values of a run are used
//! literally, so that a request cannot read secrets. Errors never contain the value of a variable.

use std::collections::BTreeMap;
use std::path::Path;

use model::agent::{Agent, AgentMode};
use redact::is_secret_name;

use crate::RunFailure;

/// The variables that an agent inherits from adjutant: paths, user, language and network. None of them is secret,
/// except for credentials in the address of a proxy.
const INHERITED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NUMERIC",
    "LC_TIME",
    "TZ",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
];

const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The environment of an agent and the secrets in it.
pub(super) struct Environment {
    pub(super) variables: BTreeMap<String, String>,
    pub(super) secrets: Vec<String>,
}

/// Builds the environment. `run` contains the variables of the run, `tmp` is the value of `TMPDIR`, and `own` looks up
/// a variable of adjutant. Variables of adjutant that are empty or contain NUL are not inherited. `PATH` has a default.
/// An agent with a terminal gets a `TERM`; any other gets `TERM=dumb` and `NO_COLOR`. The variables of the agent
/// replace these, and those of the run replace both.
///
/// The secrets are referenced values, proxy addresses with `@`, and variables of the run with a secret name, sorted and
/// without duplicates. Fails permanently if a reference of the agent cannot be resolved. Also fails if a variable of
/// the run has an empty name, `=` or NUL in its name, a name that begins with `ADJUTANT_`, or NUL in its value.
pub(super) fn build(
    agent: &Agent,
    run: &BTreeMap<String, String>,
    tmp: &str,
    own: impl Fn(&str) -> Option<String>,
) -> Result<Environment, RunFailure> {
    let mut variables = BTreeMap::new();
    let mut secrets = Vec::new();
    for name in INHERITED {
        if let Some(value) = own(name).filter(|value| !value.is_empty() && !value.contains('\0')) {
            if name.to_lowercase().ends_with("_proxy") && value.contains('@') {
                secrets.push(value.clone());
            }
            variables.insert((*name).to_owned(), value);
        }
    }
    variables.entry("PATH".to_owned()).or_insert_with(|| DEFAULT_PATH.to_owned());
    variables.insert("TMPDIR".to_owned(), tmp.to_owned());
    if agent.mode == AgentMode::Interactive && agent.session.terminal {
        let term = own("TERM").filter(|term| !term.is_empty() && term != "dumb");
        variables.insert("TERM".to_owned(), term.unwrap_or_else(|| "xterm-256color".to_owned()));
    } else {
        variables.insert("TERM".to_owned(), "dumb".to_owned());
        variables.insert("NO_COLOR".to_owned(), "1".to_owned());
    }
    for (name, value) in &agent.envs {
        let value = resolve(name, value, &own, &mut secrets)?;
        variables.insert(name.clone(), value);
    }
    for (name, value) in run {
        if name.is_empty() || name.contains(['=', '\0']) || name.starts_with("ADJUTANT_") {
            return Err(RunFailure::permanent(format!("envs of the run contain the invalid name '{name}'")));
        }
        if value.contains('\0') {
            return Err(RunFailure::permanent(format!("envs.{name} of the run contains a NUL byte")));
        }
        if is_secret_name(name) {
            secrets.push(value.clone());
        }
        variables.insert(name.clone(), value.clone());
    }
    secrets.retain(|secret| !secret.is_empty());
    secrets.sort_unstable();
    secrets.dedup();
    Ok(Environment { variables, secrets })
}

/// Returns the value of a variable with its references resolved: `env:NAME`, `file:PATH`, or any number of `${NAME}`.
/// Spaces around names, paths and the content of a file are removed. Adds the referenced values to `secrets`, except
/// for those of inherited variables. Fails permanently if a referenced variable is not set, if a file cannot be read or
/// contains a NUL byte, or if `${` is not closed. `name` is the name of the variable in errors.
fn resolve(
    name: &str,
    value: &str,
    own: &impl Fn(&str) -> Option<String>,
    secrets: &mut Vec<String>,
) -> Result<String, RunFailure> {
    let mut variable = |wanted: &str| {
        let missing = || {
            RunFailure::permanent(format!(
                "envs.{name} needs the variable {wanted}, which is not set: set it where adjutant runs"
            ))
        };
        let found = own(wanted).ok_or_else(missing)?;
        if !INHERITED.contains(&wanted) {
            secrets.push(found.clone());
        }
        Ok(found)
    };
    if let Some(wanted) = value.strip_prefix("env:") {
        return variable(wanted.trim());
    }
    if let Some(path) = value.strip_prefix("file:") {
        let path = path.trim();
        let read = std::fs::read_to_string(Path::new(path));
        let text =
            read.map_err(|error| RunFailure::permanent(format!("envs.{name} needs the file {path}: {error}")))?;
        let text = text.trim();
        if text.contains('\0') {
            return Err(RunFailure::permanent(format!("envs.{name}: the file {path} contains a NUL byte")));
        }
        secrets.push(text.to_owned());
        return Ok(text.to_owned());
    }
    let mut resolved = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((wanted, remaining)) = after.split_once('}') else {
            return Err(RunFailure::permanent(format!("envs.{name} contains ${{ without }}")));
        };
        resolved.push_str(before);
        resolved.push_str(&variable(wanted.trim())?);
        rest = remaining;
    }
    resolved.push_str(rest);
    Ok(resolved)
}
