//! Whether an agent that somebody wrote down can be run here.

use std::path::PathBuf;

use model::Invalid;
use model::agent::{Agent, Draft};
use model::invalid::Checks;

use crate::command::{self, program};
use crate::{Failure, presets, referred};

/// Returns the agent, with what its preset adds, or everything that is wrong with it.
pub fn written(draft: Draft, variables: &dyn Fn(&str) -> Option<String>) -> Result<Agent, Invalid> {
    let mut invalid = match presets::apply(draft.clone(), variables) {
        Ok(draft) => return draft.check(),
        Err(invalid) => invalid,
    };
    // The rest is checked as if the preset had named the agent and its program.
    let named = Some("preset".to_owned());
    let preset = Draft { id: named.clone(), executable_path: named, ..Draft::default() };
    if let Err(others) = draft.over(preset).check() {
        invalid.violations.extend(others.violations);
    }
    Err(invalid)
}

/// Whether its program, its directory and its token are there.
pub fn here(agent: &Agent, variables: &dyn Fn(&str) -> Option<String>) -> Result<(), Invalid> {
    let mut checks = Checks::default();
    let home = variables("HOME");
    if !agent.is_elsewhere()
        && let Err(failure) = find(agent, variables)
    {
        checks.fail("executable_path", "executable", failure.message);
    }
    if let Some(directory) = &agent.working_directory {
        let there = program::absolute(directory, home.as_deref()).is_ok_and(|path| path.is_dir());
        if !there {
            let message = format!("must be a directory that is there, not '{directory}'");
            checks.fail("working_directory", "directory", message);
        }
    }
    let token = agent.a2a.auth.as_ref().and_then(|auth| auth.token.as_deref());
    let shown = agent.card_auth.as_ref().map(|auth| auth.token.as_str());
    for (field, token) in [("a2a.auth.token", token), ("card_auth.token", shown)] {
        if let Some(Err(fault)) = token.map(|token| referred(token, variables)) {
            checks.fail(field, "reference", format!("refers to {fault}"));
        }
    }
    checks.finish(Some(()))
}

/// Everything that keeps it from being run here, each in a sentence: also what its variables refer to.
pub fn faults(agent: &Agent, variables: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let mut faults = Vec::new();
    if let Err(invalid) = here(agent, variables) {
        faults.extend(invalid.violations.into_iter().map(|violation| match violation.field.as_str() {
            // Its sentence names the program.
            "executable_path" => violation.message,
            field => format!("{field} {}", violation.message),
        }));
    }
    if let Err(failure) = command::variables_of(agent, variables) {
        faults.push(failure.message);
    }
    faults
}

/// Where its program is, if it is there.
pub fn program(agent: &Agent, variables: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    find(agent, variables).ok().filter(|_| !agent.is_elsewhere())
}

/// The token that is shown to an agent elsewhere, if any, or why it cannot be known.
pub fn token(agent: &Agent, variables: &dyn Fn(&str) -> Option<String>) -> Result<Option<String>, Failure> {
    let token = agent.card_auth.as_ref().map(|auth| referred(&auth.token, variables)).transpose();
    token.map_err(|fault| Failure::permanent(format!("card_auth.token refers to {fault}")))
}

fn find(agent: &Agent, variables: &dyn Fn(&str) -> Option<String>) -> Result<PathBuf, Failure> {
    let path = agent.envs.get("PATH").cloned().or_else(|| variables("PATH")).unwrap_or_default();
    program::find(&agent.executable_path, &path, variables("HOME").as_deref())
}
