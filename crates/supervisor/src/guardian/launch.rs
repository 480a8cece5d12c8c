//! The description of a program to start, and the error if it cannot be started. Both are sent over the socket.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use model::UserId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::network::NetworkPolicy;
use super::privileges::RunAs;
use super::protocol::lossless;
use super::usage::ProcessUsage;

/// A program to start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Launch {
    /// The id of the execution. Only one program with this id can run at a time.
    pub id: Uuid,
    /// A path, or a name that is searched in the `PATH` of `env`.
    #[serde(with = "lossless::path")]
    pub program: PathBuf,
    #[serde(with = "lossless::list")]
    pub args: Vec<OsString>,
    /// The complete environment. Only the two marker variables are added.
    #[serde(with = "lossless::pairs")]
    pub env: Vec<(OsString, OsString)>,
    #[serde(with = "lossless::path")]
    pub cwd: PathBuf,
    /// Input and output are a pseudo terminal, which becomes the controlling terminal.
    pub terminal: bool,
    pub sandbox: Option<Sandbox>,
    pub isolation: Isolation,
    pub limits: ProcessLimits,
    pub tree_limits: TreeLimits,
    /// The grace period between TERM and KILL.
    pub grace: Duration,
}

/// Limits write access to these paths. Reading and executing are not limited.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Sandbox {
    #[serde(with = "lossless::paths")]
    pub write: Vec<PathBuf>,
}

/// The parts of the system that a run does not get (SEC-2).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Isolation {
    /// The user whose runs may use one mount namespace, one after the other. `None` makes one for this run only.
    pub user: Option<UserId>,
    /// Files and directories that the run sees as empty.
    #[serde(with = "lossless::paths")]
    pub hidden: Vec<PathBuf>,
    /// Directories below hidden ones that the run sees.
    #[serde(with = "lossless::paths")]
    pub visible: Vec<PathBuf>,
    pub network: NetworkPolicy,
    pub run_as: Option<RunAs>,
    /// The program is not started if this system lacks a protection.
    pub enforce: bool,
}

/// Limits for each process of an execution. `None` means no limit. Core files are always disabled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLimits {
    pub open_files: Option<u64>,
    /// Maximum size of a file in bytes.
    pub file_size: Option<u64>,
    /// Maximum number of tasks of the user. The guardian sets it where control groups do not limit processes.
    pub user_tasks: Option<u64>,
}

/// Limits for all processes of an execution together. `None` means no limit. An execution that exceeds one is killed
/// (SEC-3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeLimits {
    pub processes: Option<u64>,
    /// Resident memory in bytes.
    pub memory: Option<u64>,
    pub cpu_seconds: Option<u64>,
    /// The time since the start of the program.
    pub lifetime: Option<Duration>,
}

/// A limit that an execution has exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExceededLimit {
    Processes(u64),
    /// In bytes.
    Memory(u64),
    CpuSeconds(u64),
    LifetimeSeconds(u64),
}

impl TreeLimits {
    /// Returns the first limit that these values exceed. `processes` includes ended processes that are not reaped.
    pub(super) fn exceeded(&self, processes: u64, usage: &ProcessUsage, lifetime: Duration) -> Option<ExceededLimit> {
        let over = |limit: Option<u64>, value: u64| limit.filter(|limit| value > *limit);
        over(self.processes, processes)
            .map(ExceededLimit::Processes)
            .or_else(|| over(self.memory, usage.rss).map(ExceededLimit::Memory))
            .or_else(|| over(self.cpu_seconds, usage.cpu.as_secs()).map(ExceededLimit::CpuSeconds))
            .or_else(|| {
                let limit = self.lifetime.filter(|limit| lifetime >= *limit)?;
                Some(ExceededLimit::LifetimeSeconds(limit.as_secs()))
            })
    }
}

impl Launch {
    /// Returns a launch without arguments, variables, terminal, sandbox, isolation and limits. Its grace period is 5 seconds.
    pub fn new(id: Uuid, program: impl Into<PathBuf>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            id,
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: cwd.into(),
            terminal: false,
            sandbox: None,
            isolation: Isolation::default(),
            limits: ProcessLimits::default(),
            tree_limits: TreeLimits::default(),
            grace: Duration::from_secs(5),
        }
    }

    /// Returns true if the program gets a session of its own: for a terminal, and where no control group limits its
    /// processes. The kernel divides the processors among sessions, so a fork bomb cannot starve the guardian.
    pub(super) fn needs_session(&self) -> bool {
        self.terminal || self.limits.user_tasks.is_some()
    }
}

/// The part of a launch that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchErrorCause {
    Program,
    Directory,
    Arguments,
    Sandbox,
    Limits,
    Terminal,
    /// The lease of the node has expired.
    Lease,
    /// A program with this id is already running.
    Id,
    /// A lack of memory, processes or open files on the machine.
    System,
}

/// Why a program was not started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchError {
    pub cause: LaunchErrorCause,
    /// The error of the system call, if one failed.
    pub errno: Option<i32>,
    pub message: String,
}

impl LaunchError {
    pub(super) fn new(cause: LaunchErrorCause, errno: Option<i32>, message: impl Into<String>) -> Self {
        Self { cause, errno, message: message.into() }
    }

    /// Returns the kind of the system error, or `Other` if no system call failed.
    pub fn kind(&self) -> std::io::ErrorKind {
        self.errno.map_or(std::io::ErrorKind::Other, |errno| std::io::Error::from_raw_os_error(errno).kind())
    }

    /// Returns true if the same launch may succeed later: the machine lacked resources, or the lease had expired.
    pub fn is_transient(&self) -> bool {
        matches!(self.cause, LaunchErrorCause::System | LaunchErrorCause::Lease)
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
