//! The operating system user of an agent with `run_as`: finds it, and gives it the files of a run.

use std::ffi::CString;
use std::path::Path;

use model::agent::Agent;
use nix::unistd::{Gid, Uid, User};

use crate::RunFailure;
use crate::command::CommandPlan;
use crate::guardian::RunAs;

/// Returns the user with its groups. Fails permanently if it does not exist.
pub(super) fn find(name: &str) -> Result<RunAs, RunFailure> {
    let user = lookup(name)?;
    let failed = |reason: String| RunFailure::permanent(format!("the groups of the user '{name}' of run_as: {reason}"));
    let c_name = CString::new(name).map_err(|error| failed(error.to_string()))?;
    let groups = nix::unistd::getgrouplist(&c_name, user.gid).map_err(|error| failed(error.to_string()))?;
    Ok(RunAs { uid: user.uid.as_raw(), gid: user.gid.as_raw(), groups: groups.into_iter().map(Gid::as_raw).collect() })
}

/// Gives the scratch directory of a run to the user, with all files in it, and sets the variables of the user in its
/// environment, unless the agent sets them. Fails if the user does not exist, or if this process may not change owners.
pub(super) fn hand_over(name: &str, agent: &Agent, plan: &mut CommandPlan) -> Result<(), RunFailure> {
    let user = lookup(name)?;
    let home = user.dir.display().to_string();
    for (variable, value) in [("HOME", home.as_str()), ("USER", name), ("LOGNAME", name)] {
        if !agent.envs.contains_key(variable) {
            plan.env.insert(variable.to_owned(), value.to_owned());
        }
    }
    change_owner(&plan.scratch, user.uid, user.gid).map_err(|error| {
        RunFailure::permanent(format!("the files of the run cannot be given to '{name}': {error}; run_as needs root"))
    })
}

fn lookup(name: &str) -> Result<User, RunFailure> {
    match User::from_name(name) {
        Ok(Some(user)) => Ok(user),
        Ok(None) => Err(RunFailure::permanent(format!("the user '{name}' of run_as does not exist on this machine"))),
        Err(error) => Err(RunFailure::system(format!("the user '{name}' of run_as was not found: {error}"))),
    }
}

/// Changes the owner of a directory and everything in it. Links are not followed.
fn change_owner(path: &Path, uid: Uid, gid: Gid) -> std::io::Result<()> {
    std::os::unix::fs::lchown(path, Some(uid.as_raw()), Some(gid.as_raw()))?;
    if !path.symlink_metadata()?.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(path)? {
        change_owner(&entry?.path(), uid, gid)?;
    }
    Ok(())
}
