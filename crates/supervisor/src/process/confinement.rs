//! The limits, the sandbox and the isolation of a run, from the settings of its agent (SEC-2, SEC-3).

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use model::agent::{AccessType, Agent, AgentLimits, AgentNetwork, SandboxMode};

use super::{Processes, os_user};
use crate::RunFailure;
use crate::command::CommandPlan;
use crate::guardian::{Isolation, NetworkPolicy, ProcessLimits, Sandbox, TreeLimits};

/// Returns the limits of each process of the agent.
pub(super) fn process_limits(agent: &Agent) -> ProcessLimits {
    let file_size = agent.limits.file_size_mb.map(bytes_of_mb);
    ProcessLimits { open_files: agent.limits.open_files, file_size, ..ProcessLimits::default() }
}

/// Returns the limits of all processes of a run together (SEC-3). Without a setting, a run has at most
/// [`AgentLimits::DEFAULT_PROCESSES`] processes and half of the memory of the machine.
pub(super) fn tree_limits(agent: &Agent) -> TreeLimits {
    let limits = &agent.limits;
    TreeLimits {
        processes: Some(limits.processes.unwrap_or(AgentLimits::DEFAULT_PROCESSES)),
        memory: limits.memory_mb.map(bytes_of_mb).or_else(default_memory),
        cpu_seconds: limits.cpu_seconds,
        lifetime: limits.lifetime_seconds.map(Duration::from_secs),
    }
}

fn bytes_of_mb(megabytes: u64) -> u64 {
    megabytes.saturating_mul(1 << 20)
}

/// Returns half of the memory of the machine in bytes, or `None` if it is unknown.
fn default_memory() -> Option<u64> {
    static HALF: LazyLock<Option<u64>> = LazyLock::new(|| {
        let text = std::fs::read_to_string("/proc/meminfo").ok()?;
        let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        let kilobytes: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes.saturating_mul(512))
    });
    *HALF
}

/// Returns the sandbox of a read-only agent: it may write only to its scratch directory and to its `write_paths` that
/// exist (SUP-4). `~/` stands for the `HOME` of the plan. Returns `None` for an agent with read-write access.
pub(super) fn sandbox(agent: &Agent, plan: &CommandPlan) -> Option<Sandbox> {
    if agent.access_type == AccessType::ReadWrite {
        return None;
    }
    let home = plan.env.get("HOME").map(String::as_str).unwrap_or_default();
    let granted = agent.write_paths.iter().map(|path| match path.strip_prefix("~/") {
        Some(rest) => Path::new(home).join(rest),
        None => PathBuf::from(path),
    });
    // A path that does not exist cannot be granted.
    let granted = granted.filter(|path| path.exists());
    Some(Sandbox { write: std::iter::once(plan.scratch.clone()).chain(granted).collect() })
}

impl Processes {
    /// Returns the parts of the system that a run of the agent does not get (SEC-2): the data directory without the
    /// scratch directory of the run, the hidden paths, the secrets of the agent, and the network that its policy excludes.
    /// Fails if the user of `run_as` does not exist, or if the working directory is hidden.
    pub(super) fn isolation(&self, agent: &Agent, plan: &CommandPlan) -> Result<Isolation, RunFailure> {
        if plan.cwd.starts_with(&self.0.data_dir) && !plan.cwd.starts_with(&plan.scratch) {
            let message = "the working directory is in the data directory of adjutant, which agents cannot see";
            return Err(RunFailure::permanent(message));
        }
        let mut hidden = vec![self.0.data_dir.clone()];
        hidden.extend(self.0.hidden.read().unwrap_or_else(std::sync::PoisonError::into_inner).iter().cloned());
        hidden.extend(secret_files(agent));
        Ok(Isolation {
            user: None,
            hidden,
            visible: vec![plan.scratch.clone()],
            network: self.run_network(agent),
            run_as: agent.run_as.as_deref().map(os_user::find).transpose()?,
            enforce: agent.sandbox == SandboxMode::Enforce,
        })
    }

    /// Returns the network policy of a run. An agent with `api_access` also reaches the port of the server.
    fn run_network(&self, agent: &Agent) -> NetworkPolicy {
        let mut policy = network_policy(agent);
        if let NetworkPolicy::Ports(ports) = &mut policy
            && agent.api_access
        {
            ports.extend(self.0.api_grants.port());
        }
        policy
    }
}

/// Returns the network policy of an agent.
pub fn network_policy(agent: &Agent) -> NetworkPolicy {
    match agent.network {
        AgentNetwork::All => NetworkPolicy::All,
        AgentNetwork::None => NetworkPolicy::None,
        AgentNetwork::Ports => NetworkPolicy::Ports(agent.ports.clone()),
    }
}

/// Returns the files that the variables of an agent refer to.
fn secret_files(agent: &Agent) -> impl Iterator<Item = PathBuf> {
    let paths = agent.envs.values().filter_map(|value| value.strip_prefix("file:")).map(str::trim);
    paths.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.into()))
}
