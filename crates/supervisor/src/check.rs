//! Checks if a configured agent can run on this machine.

use std::path::PathBuf;

use model::Invalid;
use model::agent::{Agent, AgentDraft};
use model::invalid::Checks;

use crate::command::{self, program};
use crate::{RunFailure, presets, resolve_reference};

/// Returns the agent that the draft and its preset describe. `variables` looks up variables of adjutant for the preset.
/// Fails with all violations if the draft is invalid. If the preset is unknown, this is one violation, and the rest is
/// checked as if the preset had supplied the id and the program.
pub fn validate_agent(draft: AgentDraft, variables: &dyn Fn(&str) -> Option<String>) -> Result<Agent, Invalid> {
    let mut invalid = match presets::apply(draft.clone(), variables) {
        Ok(draft) => return draft.check(),
        Err(invalid) => invalid,
    };
    // The preset is unknown. Check the rest as if the preset had supplied the id and the program.
    let named = Some("preset".to_owned());
    let preset = AgentDraft { id: named.clone(), executable_path: named, ..AgentDraft::default() };
    if let Err(further) = draft.with_preset(preset).check() {
        invalid.violations.extend(further.violations);
    }
    Err(invalid)
}

/// Checks that the program of the agent exists on this machine and is executable, that the working directory exists,
/// and that `a2a.auth.token` and `card_auth.token` refer to a value that is set and not empty. Settings that are not
/// given are not checked. The program of a remote agent is not checked. Fails with a violation for each problem.
pub fn check_available(agent: &Agent, variables: &dyn Fn(&str) -> Option<String>) -> Result<(), Invalid> {
    let mut checks = Checks::default();
    let home = variables("HOME");
    if !agent.is_remote()
        && let Err(failure) = find_program(agent, variables)
    {
        checks.fail("executable_path", "executable", failure.message);
    }
    if let Some(directory) = &agent.working_directory {
        let exists = program::absolute(directory, home.as_deref()).is_ok_and(|path| path.is_dir());
        if !exists {
            let message = format!("must be an existing directory, not '{directory}'");
            checks.fail("working_directory", "directory", message);
        }
    }
    let endpoint_token = agent.a2a.auth.as_ref().and_then(|auth| auth.token.as_deref());
    let card_token = agent.card_auth.as_ref().map(|auth| auth.token.as_str());
    for (field, token) in [("a2a.auth.token", endpoint_token), ("card_auth.token", card_token)] {
        if let Some(Err(reason)) = token.map(|token| resolve_reference(token, variables)) {
            checks.fail(field, "reference", format!("refers to {reason}"));
        }
    }
    checks.finish(Some(()))
}

/// Returns one message for each problem that prevents the agent from running on this machine: those of
/// [`check_available`], and the first reference in its variables that cannot be resolved. Each message names the
/// setting or the program. Empty if the agent can run.
pub fn problems(agent: &Agent, variables: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let mut problems = Vec::new();
    if let Err(invalid) = check_available(agent, variables) {
        problems.extend(invalid.violations.into_iter().map(|violation| match violation.field.as_str() {
            // The message already names the program.
            "executable_path" => violation.message,
            field => format!("{field} {}", violation.message),
        }));
    }
    if let Err(failure) = command::agent_variables(agent, variables) {
        problems.push(failure.message);
    }
    problems
}

/// Returns the path of the agent's program. Returns `None` if the program is not found or the agent is remote.
pub fn program_path(agent: &Agent, variables: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    find_program(agent, variables).ok().filter(|_| !agent.is_remote())
}

/// Returns the token for requests to a remote agent, if one is configured. Fails if its variable or its file
/// cannot be read.
pub fn remote_token(agent: &Agent, variables: &dyn Fn(&str) -> Option<String>) -> Result<Option<String>, RunFailure> {
    let token = agent.card_auth.as_ref().map(|auth| resolve_reference(&auth.token, variables)).transpose();
    token.map_err(|reason| RunFailure::permanent(format!("card_auth.token refers to {reason}")))
}

/// Returns the path of the agent's program. Searches the `PATH` in the agent's variables, used literally, or otherwise
/// the `PATH` of adjutant. Fails if the program does not exist or is not executable.
fn find_program(agent: &Agent, variables: &dyn Fn(&str) -> Option<String>) -> Result<PathBuf, RunFailure> {
    let path = agent.envs.get("PATH").cloned().or_else(|| variables("PATH")).unwrap_or_default();
    program::find(&agent.executable_path, &path, variables("HOME").as_deref())
}
