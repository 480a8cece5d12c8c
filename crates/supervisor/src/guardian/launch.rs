//! What to start and within which bounds, and why it could not be started. Plain data that goes over the socket.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::protocol::lossless;

/// A program to start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Launch {
    /// The execution it runs for; at most one program at a time has it.
    pub id: Uuid,
    /// A path, or a name to look for in the `PATH` of `env`.
    #[serde(with = "lossless::path")]
    pub program: PathBuf,
    #[serde(with = "lossless::list")]
    pub args: Vec<OsString>,
    /// The whole environment; only our two marks are added.
    #[serde(with = "lossless::pairs")]
    pub env: Vec<(OsString, OsString)>,
    #[serde(with = "lossless::path")]
    pub cwd: PathBuf,
    /// Its input and output are the slave of a pseudo terminal, which is to control it.
    pub terminal: bool,
    pub sandbox: Option<Sandbox>,
    pub limits: Limits,
    /// The time between TERM and KILL.
    pub grace: Duration,
}

/// Reads and executes everything the user may, writes only below these paths.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Sandbox {
    #[serde(with = "lossless::paths")]
    pub write: Vec<PathBuf>,
}

/// Bounds for each process of an execution; none where nothing is set. No process writes core files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub cpu_seconds: Option<u64>,
    /// Bytes of address space.
    pub memory: Option<u64>,
    pub open_files: Option<u64>,
    /// Processes and threads of the user, not of the execution: the kernel counts no other way.
    pub processes: Option<u64>,
    /// Bytes of any one file.
    pub file_size: Option<u64>,
}

impl Launch {
    /// A program with nothing but a directory to run in.
    pub fn new(id: Uuid, program: impl Into<PathBuf>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            id,
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: cwd.into(),
            terminal: false,
            sandbox: None,
            limits: Limits::default(),
            grace: Duration::from_secs(5),
        }
    }
}

/// Which part of a launch is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    Program,
    Directory,
    Arguments,
    Sandbox,
    Limits,
    Terminal,
    /// The lease of the node has run out.
    Lease,
    /// An execution with this id is running.
    Id,
    /// The machine: no memory, too many processes or open files.
    System,
}

/// Why a program was not started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    pub cause: Cause,
    /// The error of the kernel, where there was one.
    pub errno: Option<i32>,
    pub message: String,
}

impl Fault {
    pub(super) fn new(cause: Cause, errno: Option<i32>, message: impl Into<String>) -> Self {
        Self { cause, errno, message: message.into() }
    }

    /// `NotFound`, `PermissionDenied` and so on; `Other` where the kernel was not asked.
    pub fn kind(&self) -> std::io::ErrorKind {
        self.errno.map_or(std::io::ErrorKind::Other, |errno| std::io::Error::from_raw_os_error(errno).kind())
    }

    /// Whether the same launch may work a little later.
    pub fn is_transient(&self) -> bool {
        matches!(self.cause, Cause::System | Cause::Lease)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
