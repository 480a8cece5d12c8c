//! Starts one program for the guardian and says what is wrong where it cannot.
//!
//! A plain program is started with `posix_spawn`. What a program of its own must do first, limits and a terminal, is done
//! by the shim; the sandbox is put on a thread that lives only to start it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::fs::Access;
use rustix::io::Errno;
use rustix::process::Pid;

use super::launch::{Cause, Fault, Launch, Limits, Sandbox};
use super::protocol::{self, Inbox, STDIO};
use super::{EXECUTION_MARK, NICE, NODE_MARK, SHIM, sandbox};

/// Where programs are looked for when the environment has no `PATH`.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The shim only sets a few limits; a machine that needs longer for that has other problems.
const SHIM_PATIENCE: Duration = Duration::from_secs(20);

pub(super) struct Started {
    pub(super) child: Child,
    /// The sandbox that was asked for is in force.
    pub(super) confined: bool,
}

pub(super) fn start(launch: &Launch, fds: Vec<OwnedFd>, node: &OsStr) -> Result<Started, Fault> {
    let Ok([stdin, stdout, stderr]) = <[OwnedFd; STDIO]>::try_from(fds) else {
        return Err(Fault::new(
            Cause::System,
            Some(Errno::MFILE.raw_os_error()),
            "the guardian had no room for the program's input and output",
        ));
    };
    let started = if launch.terminal || launch.limits != Limits::default() {
        by_shim(launch, [stdin, stdout, stderr], node)?
    } else {
        let mut command = command(launch, node)?;
        command.stdin(stdin).stdout(stdout).stderr(stderr).process_group(0);
        run(command, launch.sandbox.as_ref())?.map_err(|error| diagnose(&error, launch))?
    };
    step_back(&started.child);
    Ok(started)
}

/// What the program starts later steps back with it; a child that it had by now does not, and that is no harm.
fn step_back(child: &Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let (Some(pid), Ok(ours)) = (pid, rustix::process::getpriority_process(None)) {
        // One that has ended already is not there to be told.
        let _ = rustix::process::setpriority_process(Some(pid), ours + NICE);
    }
}

/// The agent's own command line, all but its input and output.
pub(super) fn command(launch: &Launch, node: &OsStr) -> Result<Command, Fault> {
    let mut command = Command::new(locate(launch)?);
    command.args(&launch.args).current_dir(&launch.cwd).env_clear();
    command.envs(launch.env.iter().map(|(name, value)| (name, value)));
    command.env(EXECUTION_MARK, launch.id.to_string()).env(NODE_MARK, node);
    Ok(command)
}

/// Spawns, from a confined thread where there is a sandbox. The inner error is that of the program.
fn run(mut command: Command, sandbox: Option<&Sandbox>) -> Result<io::Result<Started>, Fault> {
    let Some(sandbox) = sandbox else {
        return Ok(command.spawn().map(|child| Started { child, confined: false }));
    };
    let broken = |what: &str| Fault::new(Cause::System, None, format!("the thread of the sandbox {what}"));
    std::thread::scope(|scope| {
        let confined = move || {
            let confined = sandbox::confine(sandbox)?;
            Ok(command.spawn().map(|child| Started { child, confined }))
        };
        let thread = std::thread::Builder::new().spawn_scoped(scope, confined);
        thread.map_err(|error| broken(&format!("did not start: {error}")))?.join().map_err(|_| broken("broke"))?
    })
}

fn by_shim(launch: &Launch, stdio: [OwnedFd; STDIO], node: &OsStr) -> Result<Started, Fault> {
    let system = |what: &str, error: io::Error| {
        Fault::new(Cause::System, error.raw_os_error(), format!("{what} on the way to the program: {error}"))
    };
    let (ours, theirs) = UnixStream::pair().map_err(|error| system("no socket", error))?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(SHIM).env_clear().env(EXECUTION_MARK, launch.id.to_string()).env(NODE_MARK, node);
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    if !launch.terminal {
        command.process_group(0);
    }
    let mut started = run(command, launch.sandbox.as_ref())?.map_err(|error| system("no process", error))?;
    let answer = hand_over(&ours, launch, &stdio);
    let fault = match answer {
        Ok(None) => return Ok(started),
        Ok(Some(fault)) => fault,
        Err(error) => system("no answer", error),
    };
    // It has not become the program, so it has no children, and ends at once.
    drop(started.child.kill());
    drop(started.child.wait());
    Err(fault)
}

/// Nothing comes back when the shim has become the program: its end of the socket closes by that.
fn hand_over(socket: &UnixStream, launch: &Launch, stdio: &[OwnedFd; STDIO]) -> io::Result<Option<Fault>> {
    socket.set_write_timeout(Some(SHIM_PATIENCE))?;
    socket.set_read_timeout(Some(SHIM_PATIENCE))?;
    let [stdin, stdout, stderr] = stdio;
    protocol::send_all(socket, &protocol::encode(launch)?, &[stdin.as_fd(), stdout.as_fd(), stderr.as_fd()])?;
    let mut inbox = Inbox::default();
    loop {
        if inbox.receive(socket)? == 0 {
            return Ok(None);
        }
        if let Some(fault) = inbox.next()? {
            return Ok(Some(fault));
        }
    }
}

/// The program's path, so that `PATH` is the agent's and not ours.
fn locate(launch: &Launch) -> Result<PathBuf, Fault> {
    let program = &launch.program;
    if program.as_os_str().as_bytes().contains(&b'/') {
        return Ok(launch.cwd.join(program));
    }
    let path = launch.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    let path: OsString = path.unwrap_or_else(|| USUAL_PATH.into());
    let mut forbidden = None;
    for directory in std::env::split_paths(&path) {
        let candidate = launch.cwd.join(directory).join(program);
        if !candidate.is_file() {
            continue;
        }
        if rustix::fs::access(&candidate, Access::EXEC_OK).is_ok() {
            return Ok(candidate);
        }
        forbidden.get_or_insert(candidate);
    }
    let fault = |errno: Errno, message| Err(Fault::new(Cause::Program, Some(errno.raw_os_error()), message));
    match forbidden {
        Some(found) => {
            fault(Errno::ACCESS, format!("the program {} is not executable; chmod +x may help", found.display()))
        }
        None => {
            let path = path.display();
            fault(Errno::NOENT, format!("the program {} was not found in PATH ({path})", program.display()))
        }
    }
}

/// The kernel gives one number for many things: looks which of them it was.
pub(super) fn diagnose(error: &io::Error, launch: &Launch) -> Fault {
    let program = launch.cwd.join(&launch.program);
    let program = if program.exists() { program } else { locate(launch).unwrap_or(program) };
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    let fault = |cause, message: String| Fault::new(cause, error.raw_os_error(), message);
    if let Some(message) = wrong_directory(&launch.cwd) {
        return fault(Cause::Directory, message);
    }
    let named = format!("the program {}", program.display());
    match errno {
        Some(Errno::TOOBIG) => {
            fault(Cause::Arguments, "arguments and environment together are longer than the system takes".to_owned())
        }
        Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE) => {
            fault(Cause::System, format!("the machine has no room for another program: {error}"))
        }
        Some(Errno::NOEXEC) => fault(
            Cause::Program,
            format!("{named} is not executable: neither a binary for this machine nor a script with #!"),
        ),
        Some(Errno::NOENT) if program.exists() => {
            let needs = interpreter(&program).map_or_else(String::new, |needs| format!(" {needs}"));
            fault(Cause::Program, format!("the interpreter{needs} of {named} was not found"))
        }
        Some(Errno::NOENT) => fault(Cause::Program, format!("{named} was not found")),
        Some(Errno::ACCESS | Errno::PERM) if program.is_dir() => {
            fault(Cause::Program, format!("{named} is a directory"))
        }
        Some(Errno::ACCESS | Errno::PERM) if rustix::fs::access(&program, Access::EXEC_OK).is_err() => {
            fault(Cause::Program, format!("{named} is not executable (permission denied); chmod +x may help"))
        }
        None if error.kind() == io::ErrorKind::InvalidInput => {
            fault(Cause::Arguments, "the program, an argument or a variable contains a zero byte".to_owned())
        }
        _ => fault(Cause::Program, format!("{named} could not be started: {error}")),
    }
}

fn wrong_directory(cwd: &Path) -> Option<String> {
    let named = format!("the working directory {}", cwd.display());
    match std::fs::metadata(cwd) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(format!("{named} does not exist")),
        Err(error) => Some(format!("{named} cannot be used: {error}")),
        Ok(found) if !found.is_dir() => Some(format!("{named} is not a directory")),
        Ok(_) => rustix::fs::access(cwd, Access::EXEC_OK).err().map(|error| format!("{named} cannot be used: {error}")),
    }
}

/// What a script says it is run with.
fn interpreter(program: &Path) -> Option<String> {
    use std::io::Read;
    let mut start = Vec::new();
    std::fs::File::open(program).ok()?.take(256).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).split_whitespace().next()?.to_owned())
}
