//! The last step before an agent that has limits or a terminal: sets them on itself and becomes the agent.

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::ExitCode;

use rustix::process::{Resource, Rlimit};

use super::launch::{Cause, Fault, Launch, Limits};
use super::protocol::{self, Inbox, STDIO};
use super::{NODE_MARK, spawn};

pub(super) fn main() -> ExitCode {
    // The copy closes when the agent takes over, which tells the guardian that it did.
    let Ok(socket) = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3) else { return ExitCode::from(126) };
    let fault = become_agent(&socket);
    if let Ok(bytes) = protocol::encode(&fault) {
        drop(protocol::send_all(&socket, &bytes, &[]));
    }
    ExitCode::from(126)
}

/// Comes back only with what went wrong.
fn become_agent(socket: &OwnedFd) -> Fault {
    let (launch, stdio) = match receive(socket) {
        Ok(received) => received,
        Err(error) => return Fault::new(Cause::System, error.raw_os_error(), format!("no launch arrived: {error}")),
    };
    let node = std::env::var_os(NODE_MARK).unwrap_or_default();
    match prepare(&launch, stdio).and_then(|()| spawn::command(&launch, &node)) {
        Ok(mut command) => match limit(launch.limits) {
            Ok(()) => spawn::diagnose(&command.exec(), &launch),
            Err(fault) => fault,
        },
        Err(fault) => fault,
    }
}

fn receive(socket: &OwnedFd) -> std::io::Result<(Launch, [OwnedFd; STDIO])> {
    let mut inbox = Inbox::default();
    loop {
        if let Some(launch) = inbox.next()? {
            let fds = inbox.fds().try_into().map_err(|_| std::io::Error::other("its input and output are missing"))?;
            return Ok((launch, fds));
        }
        if inbox.receive(socket)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}

fn prepare(launch: &Launch, [stdin, stdout, stderr]: [OwnedFd; STDIO]) -> Result<(), Fault> {
    if launch.terminal {
        let fault = |what: &str, error: rustix::io::Errno| {
            Fault::new(Cause::Terminal, Some(error.raw_os_error()), format!("{what}: {error}"))
        };
        rustix::process::setsid().map_err(|error| fault("no session for the terminal", error))?;
        rustix::process::ioctl_tiocsctty(&stdin).map_err(|error| fault("the input is no free terminal", error))?;
    }
    let placed = rustix::stdio::dup2_stdin(&stdin)
        .and_then(|()| rustix::stdio::dup2_stdout(&stdout))
        .and_then(|()| rustix::stdio::dup2_stderr(&stderr));
    placed.map_err(|error| {
        Fault::new(Cause::System, Some(error.raw_os_error()), format!("no room for output: {error}"))
    })?;
    Ok(())
}

/// A limit above what we have ourselves means that.
fn limit(limits: Limits) -> Result<(), Fault> {
    /// Between the warning (XCPU) and the end.
    const LAST_SECONDS: u64 = 5;
    // Memory last: what is still to be done needs some.
    let wanted = [
        (Resource::Cpu, limits.cpu_seconds, LAST_SECONDS, "time"),
        (Resource::Nofile, limits.open_files, 0, "open files"),
        (Resource::Nproc, limits.processes, 0, "processes"),
        (Resource::Fsize, limits.file_size, 0, "file size"),
        (Resource::As, limits.memory, 0, "memory"),
    ];
    for (resource, soft, more, name) in wanted {
        let Some(soft) = soft else { continue };
        let ceiling = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let limit = Rlimit { current: Some(soft.min(ceiling)), maximum: Some(soft.saturating_add(more).min(ceiling)) };
        rustix::process::setrlimit(resource, limit).map_err(|error| {
            Fault::new(Cause::Limits, Some(error.raw_os_error()), format!("the limit of {name} was refused: {error}"))
        })?;
    }
    Ok(())
}
