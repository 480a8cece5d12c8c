//! The shim: a process that sets limits and the terminal for itself and then becomes the agent.

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::ExitCode;

use rustix::process::{Resource, Rlimit};

use super::launch::{Launch, LaunchError, LaunchErrorCause, ProcessLimits};
use super::protocol::{self, FrameReader, STDIO};
use super::{NODE_VARIABLE, spawn};

/// Runs the shim. Returns only if the agent could not be executed: sends the error over the socket on standard input
/// and returns the exit code 126. A failure to send it is ignored.
pub(super) fn main() -> ExitCode {
    // The copy closes on `exec`, which signals success to the guardian.
    let Ok(socket) = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3) else { return ExitCode::from(126) };
    let error = become_agent(&socket);
    if let Ok(bytes) = protocol::encode(&error) {
        drop(protocol::send_all(&socket, &bytes, &[]));
    }
    ExitCode::from(126)
}

/// Receives the launch, redirects input and output, sets the limits, and executes the agent. Returns only if one of
/// these steps fails, with an error that names it.
fn become_agent(socket: &OwnedFd) -> LaunchError {
    let (launch, stdio) = match receive(socket) {
        Ok(received) => received,
        Err(error) => {
            return LaunchError::new(
                LaunchErrorCause::System,
                error.raw_os_error(),
                format!("the launch was not received: {error}"),
            );
        }
    };
    let node = std::env::var_os(NODE_VARIABLE).unwrap_or_default();
    match prepare(&launch, stdio).and_then(|()| spawn::command(&launch, &node)) {
        Ok(mut command) => match set_limits(launch.limits) {
            Ok(()) => spawn::diagnose(&command.exec(), &launch),
            Err(error) => error,
        },
        Err(error) => error,
    }
}

/// Receives the launch and its three descriptors. Fails if the socket is closed or the descriptors are missing.
fn receive(socket: &OwnedFd) -> std::io::Result<(Launch, [OwnedFd; STDIO])> {
    let mut reader = FrameReader::default();
    loop {
        if let Some(launch) = reader.next()? {
            let fds = reader
                .fds()
                .try_into()
                .map_err(|_| std::io::Error::other("the descriptors of its input and output are missing"))?;
            return Ok((launch, fds));
        }
        if reader.receive(socket)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Makes the descriptors the input, output and error output of this process. Creates a session if the launch needs one. A
/// requested terminal becomes its controlling terminal. Fails with the cause `Terminal` or `System` if a system call fails.
fn prepare(launch: &Launch, [stdin, stdout, stderr]: [OwnedFd; STDIO]) -> Result<(), LaunchError> {
    let failed = |action: &str, error: rustix::io::Errno| {
        LaunchError::new(LaunchErrorCause::Terminal, Some(error.raw_os_error()), format!("{action}: {error}"))
    };
    if launch.needs_session() {
        rustix::process::setsid().map_err(|error| failed("failed to create a session", error))?;
    }
    if launch.terminal {
        rustix::process::ioctl_tiocsctty(&stdin)
            .map_err(|error| failed("failed to take control of the terminal", error))?;
    }
    let placed = rustix::stdio::dup2_stdin(&stdin)
        .and_then(|()| rustix::stdio::dup2_stdout(&stdout))
        .and_then(|()| rustix::stdio::dup2_stderr(&stderr));
    placed.map_err(|error| {
        LaunchError::new(
            LaunchErrorCause::System,
            Some(error.raw_os_error()),
            format!("failed to redirect input and output: {error}"),
        )
    })?;
    Ok(())
}

/// Sets the limits of this process, soft and hard. Limits that are `None` stay. A limit above the current hard limit is
/// reduced to it. Fails with the cause `Limits` if the system rejects a limit.
fn set_limits(limits: ProcessLimits) -> Result<(), LaunchError> {
    let limits = [
        (Resource::Nofile, limits.open_files, "open files"),
        (Resource::Fsize, limits.file_size, "file size"),
        (Resource::Nproc, limits.user_tasks, "tasks"),
    ];
    for (resource, limit, name) in limits {
        let Some(limit) = limit else { continue };
        let ceiling = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let limit = Some(limit.min(ceiling));
        let limit = Rlimit { current: limit, maximum: limit };
        rustix::process::setrlimit(resource, limit).map_err(|error| {
            LaunchError::new(
                LaunchErrorCause::Limits,
                Some(error.raw_os_error()),
                format!("the limit for {name} could not be set: {error}"),
            )
        })?;
    }
    Ok(())
}
