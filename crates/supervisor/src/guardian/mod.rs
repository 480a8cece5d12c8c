//! The guardian: a small process that starts every agent. It outlives the node long enough to end the agents.
//!
//! ```text
//! node ──socket──> guardian ──> agent ──> its child processes
//!  client.rs        main.rs        spawn.rs starts it, sandbox.rs restricts it, shim.rs sets limits and the terminal
//!                   namespaces.rs  the namespaces in which it runs
//!                   tree.rs        maps processes to executions, measures, limits and ends them
//!                   cgroup.rs      the control group of each execution
//! ```
//!
//! The guardian is the subreaper of all agents. Their processes can leave their group, their session and their parent,
//! but never the guardian. The guardian ends everything when the node closes its end of the socket, or when the node
//! does not renew its lease. Processes that survive both are found by a marker in their environment ([`sweep()`]).

mod cgroup;
mod client;
mod connection;
mod file_view;
mod guarded_execution;
mod launch;
mod main;
mod namespaces;
mod network;
mod open_files;
mod origin;
mod priority;
mod privileges;
mod proc;
mod protections;
mod protocol;
mod sandbox;
mod shim;
mod spawn;
mod stdio;
mod sweep;
mod task_watch;
mod tree;
mod usage;

use std::ffi::OsStr;
use std::process::ExitCode;
use std::time::Duration;

pub use cgroup::{group_origin, has_control_groups};
pub use client::{Child, ChildControl, Guardian, GuardianOptions};
pub use launch::{ExceededLimit, Isolation, Launch, LaunchError, LaunchErrorCause, ProcessLimits, Sandbox, TreeLimits};
pub use network::NetworkPolicy;
pub use open_files::raise_limit as raise_open_files_limit;
pub use origin::{ProcessOrigin, SocketPeer, socket_origin};
pub use privileges::RunAs;
pub use protections::{NoNetwork, Protections};
pub use sandbox::{Landlock, landlock_support, signals_are_confined};
pub use stdio::{AgentPipes, Stdio, Terminal};
pub use sweep::sweep;
pub use usage::ProcessUsage;

/// The environment variable with the execution id. Every process of an execution has it.
pub const EXECUTION_ID_VARIABLE: &str = "ADJUTANT_EXECUTION_ID";
/// The environment variable with the marker of the node. Every process of an execution and every guardian has it.
pub const NODE_VARIABLE: &str = "ADJUTANT_NODE";
/// The environment variable of a guardian with the limit of open files for its agents.
const OPEN_FILES_VARIABLE: &str = "ADJUTANT_OPEN_FILES";

/// The first argument of a process that runs as guardian. Its markers follow.
const GUARDIAN_ARGUMENT: &str = "__guardian";
/// The first argument of a process that runs as shim, which becomes the agent.
const SHIM_ARGUMENT: &str = "__start-agent";

/// An event of a program: any number of `Usage`, then `Exited`, then `TreeEnded` as the last one.
#[derive(Debug, Clone, PartialEq)]
pub enum ChildEvent {
    /// The usage of the process tree, about once per second. Dropped if the receiver does not read.
    Usage(ProcessUsage),
    /// The program has ended. Its remaining processes are being ended.
    Exited(ChildExit),
    /// No process of the tree is left. This is its total usage.
    TreeEnded(ProcessUsage),
}

/// The end of a program and the usage of its process tree up to then.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildExit {
    pub reason: ExitReason,
    pub usage: ProcessUsage,
}

/// Why a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitReason {
    Code(i32),
    Signal(i32),
    /// The node did not renew its lease in time, so the guardian killed the program.
    LeaseLost,
    /// The execution exceeded one of its [`TreeLimits`], so the guardian or the kernel killed it.
    LimitExceeded(ExceededLimit),
    /// The guardian died, so all its programs were killed.
    GuardianDied,
}

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program could not be started. The guardian still works.
    #[error("{0}")]
    Refused(LaunchError),
    #[error("the guardian could not be started: {0}")]
    Start(#[source] std::io::Error),
    #[error("the guardian died before it could start the program; run it again")]
    Died,
    #[error("the guardian has been stopped and does not start programs any more")]
    Stopped,
    #[error("arguments and environment take {0} bytes, more than the guardian accepts")]
    TooLarge(usize),
}

/// Runs the guardian or the shim if the process was started as one, and returns its exit code. Returns `None` in all
/// other processes. Must be called first in `main`, before any thread is started.
pub fn intercept() -> Option<ExitCode> {
    let first = std::env::args_os().nth(1)?;
    if first == OsStr::new(GUARDIAN_ARGUMENT) {
        return Some(main::main());
    }
    (first == OsStr::new(SHIM_ARGUMENT)).then(shim::main)
}

/// Denies other processes of the same user access to the memory and the environment of this process (SEC-2). Only root
/// can trace it afterwards, and it writes no core file. Fails if the system rejects the request.
pub fn protect_memory() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// The nice value of agents, relative to the guardian. Requests to the server are not delayed by an agent that uses all
/// processors. An otherwise idle machine gives the agent all its time.
const NICE: i32 = 10;

/// The longest time between TERM and KILL for agents of a dead node.
const ORPHAN_GRACE: Duration = Duration::from_secs(2);
