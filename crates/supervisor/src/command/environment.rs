//! The variables a child gets: a small base of our own, then the agent's, then the run's.
//!
//! Only the agent's configuration refers to our variables and files; a run's values are taken as they are, so that
//! nobody reads our secrets by asking for a run. Never names the value of a variable in an error.

use std::collections::BTreeMap;
use std::path::Path;

use model::agent::{Agent, Mode};
use redact::sounds_secret;

use crate::Failure;

/// What a child sees of our own environment: where things are, whose they are, in which language, and how the network
/// is reached. None of it is secret, but for what may stand in the address of a proxy.
const BASE: &[&str] = &[
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

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub(super) struct Environment {
    pub(super) variables: BTreeMap<String, String>,
    pub(super) secrets: Vec<String>,
}

pub(super) fn make(
    agent: &Agent,
    run: &BTreeMap<String, String>,
    tmp: &str,
    ours: impl Fn(&str) -> Option<String>,
) -> Result<Environment, Failure> {
    let mut variables = BTreeMap::new();
    let mut secrets = Vec::new();
    for name in BASE {
        if let Some(value) = ours(name).filter(|value| !value.is_empty() && !value.contains('\0')) {
            if name.to_lowercase().ends_with("_proxy") && value.contains('@') {
                secrets.push(value.clone());
            }
            variables.insert((*name).to_owned(), value);
        }
    }
    variables.entry("PATH".to_owned()).or_insert_with(|| PATH.to_owned());
    variables.insert("TMPDIR".to_owned(), tmp.to_owned());
    if agent.mode == Mode::Interactive && agent.session.terminal {
        let term = ours("TERM").filter(|term| !term.is_empty() && term != "dumb");
        variables.insert("TERM".to_owned(), term.unwrap_or_else(|| "xterm-256color".to_owned()));
    } else {
        variables.insert("TERM".to_owned(), "dumb".to_owned());
        variables.insert("NO_COLOR".to_owned(), "1".to_owned());
    }
    for (name, value) in &agent.envs {
        let value = resolve(name, value, &ours, &mut secrets)?;
        variables.insert(name.clone(), value);
    }
    for (name, value) in run {
        if name.is_empty() || name.contains(['=', '\0']) || name.starts_with("ADJUTANT_") {
            return Err(Failure::permanent(format!(
                "envs of the run have the name '{name}', which no variable can have"
            )));
        }
        if value.contains('\0') {
            return Err(Failure::permanent(format!("envs.{name} of the run has a NUL in it")));
        }
        if sounds_secret(name) {
            secrets.push(value.clone());
        }
        variables.insert(name.clone(), value.clone());
    }
    secrets.retain(|secret| !secret.is_empty());
    secrets.sort_unstable();
    secrets.dedup();
    Ok(Environment { variables, secrets })
}

/// The value with what it refers to.
fn resolve(
    name: &str,
    value: &str,
    ours: &impl Fn(&str) -> Option<String>,
    secrets: &mut Vec<String>,
) -> Result<String, Failure> {
    let mut variable = |wanted: &str| {
        let missing = || {
            Failure::permanent(format!(
                "envs.{name} needs the variable {wanted}, which is not set: set it where adjutant runs"
            ))
        };
        let found = ours(wanted).ok_or_else(missing)?;
        if !BASE.contains(&wanted) {
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
        let text = read.map_err(|error| Failure::permanent(format!("envs.{name} needs the file {path}: {error}")))?;
        let text = text.trim();
        if text.contains('\0') {
            return Err(Failure::permanent(format!("envs.{name}: the file {path} has a NUL in it")));
        }
        secrets.push(text.to_owned());
        return Ok(text.to_owned());
    }
    let mut resolved = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((wanted, behind)) = after.split_once('}') else {
            return Err(Failure::permanent(format!("envs.{name} has ${{ without }}")));
        };
        resolved.push_str(before);
        resolved.push_str(&variable(wanted.trim())?);
        rest = behind;
    }
    resolved.push_str(rest);
    Ok(resolved)
}
