//! The guardian: a small process of our own that starts every agent and outlives us long enough to end them.
//!
//! ```text
//! node ──socket──> guardian ──> agent ──> whatever it starts
//!  client.rs        main.rs      started by spawn.rs, confined by sandbox.rs, by way of shim.rs where it must be
//!                   tree.rs      who belongs to which execution, what it used, how it is ended
//! ```
//!
//! The guardian is the subreaper of all agents: whatever they start can leave its group, its session and its parent, but
//! never the guardian. It ends everything when the node's end of the socket closes, and when the node does not renew its
//! lease. What survives the death of both is found again by its mark ([`sweep()`]).

mod client;
mod launch;
mod main;
mod proc;
mod protocol;
mod sandbox;
mod shim;
mod spawn;
mod stdio;
mod sweep;
mod tree;
mod usage;

use std::ffi::OsStr;
use std::process::ExitCode;
use std::time::Duration;

pub use client::{Child, Control, Guardian, Options};
pub use launch::{Cause, Fault, Launch, Limits, Sandbox};
pub use sandbox::{Landlock, landlock_support};
pub use stdio::{Pipes, Stdio, Terminal};
pub use sweep::sweep;
pub use usage::Usage;

/// In the environment of every process of an execution: its id.
pub const EXECUTION_MARK: &str = "ADJUTANT_EXECUTION_ID";
/// In the environment of every process of an execution, and of guardians: the node they belong to.
pub const NODE_MARK: &str = "ADJUTANT_NODE";
/// In the environment of guardians only.
const GUARDIAN_MARK: &str = "ADJUTANT_GUARDIAN";

/// The first argument that makes a program of ours the guardian.
const GUARDIAN: &str = "__guardian";
/// The first argument that makes a program of ours the last step before an agent.
const SHIM: &str = "__start-agent";

/// What an execution tells while it runs: any number of `Usage`, then `Exited`, then `Gone`, and nothing after that.
#[derive(Debug, Clone, PartialEq)]
pub enum Sign {
    /// What the process tree uses, about every second. Left out when nobody reads.
    Usage(Usage),
    /// The program has ended; what it left behind is being ended.
    Exited(Exit),
    /// Nothing of the tree is left. This is all that it used.
    Gone(Usage),
}

/// How the program ended, and what its tree had used by then.
#[derive(Debug, Clone, PartialEq)]
pub struct Exit {
    pub how: How,
    pub usage: Usage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    Code(i32),
    Signal(i32),
    /// The node did not renew its lease in time, so the execution was killed.
    LeaseLost,
    /// The guardian died, and everything it held was killed.
    GuardianDied,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program could not be started; the guardian is well.
    #[error("{0}")]
    Refused(Fault),
    #[error("the guardian could not be started: {0}")]
    Start(#[source] std::io::Error),
    #[error("the guardian died before it could start the program; try again")]
    Died,
    #[error("the guardian has been stopped and takes no more programs")]
    Stopped,
    #[error("arguments and environment take {0} bytes, more than the guardian accepts")]
    TooLarge(usize),
}

/// Call this first in `main`, before there are threads: where the program was started as a guardian, or by one, it does
/// that work and gives the code to exit with.
pub fn intercept() -> Option<ExitCode> {
    let first = std::env::args_os().nth(1)?;
    if first == OsStr::new(GUARDIAN) {
        return Some(main::main());
    }
    (first == OsStr::new(SHIM)).then(shim::main)
}

/// By how much agents step back (as `nice` has it): who talks to the assistant is not to wait for a program that computes,
/// or writes, without end. With nothing else at work it costs nothing.
const NICE: i32 = 10;

/// How long agents of a dead node have between TERM and KILL, at most.
const LAST_GRACE: Duration = Duration::from_secs(2);
