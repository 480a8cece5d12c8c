//! Starts one program for the guardian and explains why if that fails.
//!
//! A plain program is started with `posix_spawn`. The shim sets limits and a terminal first. The restrictions
//! apply to a thread that exists only to start the program.

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

use super::cgroup::RunGroup;
use super::file_view::{EnterError, FileView, FileViews};
use super::launch::{Launch, LaunchError, LaunchErrorCause, ProcessLimits};
use super::protections::Protections;
use super::protocol::{self, FrameReader, STDIO};
use super::{EXECUTION_ID_VARIABLE, NICE, NODE_VARIABLE, SHIM_ARGUMENT, namespaces, priority, sandbox};

/// The search path if the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The timeout of the shim, which only sets a few limits.
const SHIM_TIMEOUT: Duration = Duration::from_secs(20);

/// The parts of the guardian that a start needs.
pub(super) struct Surroundings<'a> {
    /// The marker of the node.
    pub(super) node: &'a OsStr,
    pub(super) protections: &'a Protections,
    /// The control groups of the execution. The guardian has entered the version 2 group.
    pub(super) group: &'a RunGroup,
    pub(super) views: &'a FileViews,
}

/// A program that was started.
pub(super) struct StartedProgram {
    pub(super) child: Child,
    /// The process id that the node sees, or 0 if it is unknown.
    pub(super) pid_for_node: i32,
    /// The requested sandbox is enforced.
    pub(super) confined: bool,
    /// The files that it sees. `None` if this system cannot hide any.
    pub(super) view: Option<FileView>,
}

/// Starts a program with these descriptors as input, output and errors, in its own process group and with lower
/// priority. Uses the shim if a terminal or limits are requested. Fails with the
/// cause `System` if `fds` are not three descriptors, and otherwise like [`locate`], [`diagnose`], [`sandbox::restrict`]
/// or the shim.
pub(super) fn start(
    launch: &Launch,
    fds: Vec<OwnedFd>,
    surroundings: &Surroundings<'_>,
) -> Result<StartedProgram, LaunchError> {
    let Ok([stdin, stdout, stderr]) = <[OwnedFd; STDIO]>::try_from(fds) else {
        return Err(LaunchError::new(
            LaunchErrorCause::System,
            Some(Errno::MFILE.raw_os_error()),
            "the guardian has too many open files to receive the input and output of the program",
        ));
    };
    let started = if launch.terminal || launch.limits != ProcessLimits::default() {
        start_with_shim(launch, [stdin, stdout, stderr], surroundings)?
    } else {
        let mut command = command(launch, surroundings.node)?;
        command.stdin(stdin).stdout(stdout).stderr(stderr).process_group(0);
        spawn(command, launch, surroundings)?.map_err(|error| diagnose(&error, launch))?
    };
    Ok(started)
}

/// Returns the command of the agent, without its input and output. Its environment is that of the launch and the two
/// markers, which replace variables with the same name. Fails if the program is not found.
pub(super) fn command(launch: &Launch, node: &OsStr) -> Result<Command, LaunchError> {
    let mut command = Command::new(locate(launch)?);
    command.args(&launch.args).current_dir(&launch.cwd).env_clear();
    command.envs(launch.env.iter().map(|(name, value)| (name, value)));
    command.env(EXECUTION_ID_VARIABLE, launch.id.to_string()).env(NODE_VARIABLE, node);
    Ok(command)
}

/// Spawns a command from a thread that sees only the files of the launch. Uses the namespace of an earlier run if it is
/// still valid. The errors are those of [`spawn_in`]. Also fails if the files cannot be hidden.
fn spawn(
    mut command: Command,
    launch: &Launch,
    surroundings: &Surroundings<'_>,
) -> Result<io::Result<StartedProgram>, LaunchError> {
    let failed = |reason: String| {
        LaunchError::new(LaunchErrorCause::Sandbox, None, format!("files could not be hidden: {reason}"))
    };
    if !surroundings.protections.files {
        return spawn_in(None, &mut command, launch, surroundings).map_err(|_| failed("no namespace".to_owned()))?;
    }
    if let Some(view) = surroundings.views.take(&launch.isolation)
        && let Ok(spawned) = spawn_in(Some(view), &mut command, launch, surroundings)
    {
        return spawned;
    }
    let view = FileView::create(&launch.isolation).map_err(|error| failed(error.to_string()))?;
    spawn_in(Some(view), &mut command, launch, surroundings).map_err(|_| failed("a path was replaced".to_owned()))?
}

/// The files of a namespace are not hidden any more.
struct OutdatedView;

/// Spawns a command from a thread that enters the namespace, is restricted and has the priority of agents. The inner
/// error comes from the spawn itself. Fails if the thread cannot be restricted, does not start, or panics. A system
/// without support for the sandbox is no failure, unless the launch must be enforced: `confined` is false then. The outer
/// error means that the namespace is outdated.
fn spawn_in(
    mut view: Option<FileView>,
    command: &mut Command,
    launch: &Launch,
    surroundings: &Surroundings<'_>,
) -> Result<Result<io::Result<StartedProgram>, LaunchError>, OutdatedView> {
    let failed =
        |reason: &str| LaunchError::new(LaunchErrorCause::System, None, format!("the thread of the sandbox {reason}"));
    let confined = || {
        // The program inherits the priority of this thread. Lowering it never fails.
        let _ = rustix::process::setpriority_process(None, priority::base() + NICE);
        surroundings.group.enter_thread();
        match view.as_mut().map_or(Ok(()), |view| view.enter(&launch.isolation.visible)) {
            Ok(()) => {}
            Err(EnterError::Outdated) => return Err(OutdatedView),
            Err(EnterError::Failed(error)) => {
                let message = format!("files could not be hidden: {error}");
                return Ok(Err(LaunchError::new(LaunchErrorCause::Sandbox, None, message)));
            }
        }
        Ok(sandbox::restrict(launch, surroundings.protections).map(|confined| {
            let pid = |child: Child| (namespaces::pid_for_node(child.id()), child, confined);
            command.spawn().map(pid)
        }))
    };
    let spawned = std::thread::scope(|scope| match std::thread::Builder::new().spawn_scoped(scope, confined) {
        Ok(thread) => thread.join().unwrap_or_else(|_| Ok(Err(failed("panicked")))),
        Err(error) => Ok(Err(failed(&format!("did not start: {error}")))),
    });
    let started = |(pid_for_node, child, confined)| StartedProgram { child, pid_for_node, confined, view };
    spawned.map(|spawned| spawned.map(|spawned| spawned.map(started)))
}

/// Starts the shim and waits until it has become the program. It gets its own process group, or creates a session. A shim
/// that ends without an answer counts as started. Fails with the error of the shim, like [`spawn`] if the sandbox
/// cannot be set up, or with the cause `System` if the shim cannot be started or does not answer in time. A shim that
/// was started is then killed and reaped.
fn start_with_shim(
    launch: &Launch,
    stdio: [OwnedFd; STDIO],
    surroundings: &Surroundings<'_>,
) -> Result<StartedProgram, LaunchError> {
    let failed = |action: &str, error: io::Error| {
        LaunchError::new(LaunchErrorCause::System, error.raw_os_error(), format!("failed to {action}: {error}"))
    };
    let (ours, theirs) = UnixStream::pair().map_err(|error| failed("create a socket for the shim", error))?;
    let mut command = Command::new("/proc/self/exe");
    command
        .arg(SHIM_ARGUMENT)
        .env_clear()
        .env(EXECUTION_ID_VARIABLE, launch.id.to_string())
        .env(NODE_VARIABLE, surroundings.node);
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    if !launch.needs_session() {
        command.process_group(0);
    }
    let mut started = spawn(command, launch, surroundings)?.map_err(|error| failed("start the shim", error))?;
    let answer = send_launch(&ours, launch, &stdio);
    let error = match answer {
        Ok(None) => return Ok(started),
        Ok(Some(error)) => error,
        Err(error) => failed("get an answer from the shim", error),
    };
    // The shim has not become the program, so it has no children.
    drop(started.child.kill());
    drop(started.child.wait());
    Err(error)
}

/// Sends the launch and its descriptors to the shim and waits for its error. Returns `None` once the shim has become
/// the program, or has ended without an answer: both close its end of the socket. Fails if the shim does not read or
/// answer within [`SHIM_TIMEOUT`], or if the answer is invalid.
fn send_launch(socket: &UnixStream, launch: &Launch, stdio: &[OwnedFd; STDIO]) -> io::Result<Option<LaunchError>> {
    socket.set_write_timeout(Some(SHIM_TIMEOUT))?;
    socket.set_read_timeout(Some(SHIM_TIMEOUT))?;
    let [stdin, stdout, stderr] = stdio;
    protocol::send_all(socket, &protocol::encode(launch)?, &[stdin.as_fd(), stdout.as_fd(), stderr.as_fd()])?;
    let mut reader = FrameReader::default();
    loop {
        if reader.receive(socket)? == 0 {
            return Ok(None);
        }
        if let Some(error) = reader.next()? {
            return Ok(Some(error));
        }
    }
}

/// Returns the path of the program. A path with a slash is relative to the working directory and is not checked. A name
/// is searched in the `PATH` of the agent and not in the one of the guardian; [`DEFAULT_PATH`] applies without one.
/// Relative entries start at the working directory of the agent. Fails with the cause `Program` if the name is not
/// found or no match is executable.
fn locate(launch: &Launch) -> Result<PathBuf, LaunchError> {
    let program = &launch.program;
    if program.as_os_str().as_bytes().contains(&b'/') {
        return Ok(launch.cwd.join(program));
    }
    let path = launch.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    let path: OsString = path.unwrap_or_else(|| DEFAULT_PATH.into());
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
    let failed =
        |errno: Errno, message| Err(LaunchError::new(LaunchErrorCause::Program, Some(errno.raw_os_error()), message));
    match forbidden {
        Some(found) => failed(
            Errno::ACCESS,
            format!("the program {} is not executable; make it executable with chmod +x", found.display()),
        ),
        None => {
            let path = path.display();
            failed(Errno::NOENT, format!("the program {} was not found in PATH ({path})", program.display()))
        }
    }
}

/// Returns an error that names the actual problem, because the kernel returns the same number for several problems. A
/// problem with the working directory is named first, with the cause `Directory`. Too long arguments and zero bytes
/// have the cause `Arguments`, and a lack of resources has `System`. Anything else has the cause `Program`: it is
/// missing, a directory, not executable, or its interpreter is missing.
pub(super) fn diagnose(error: &io::Error, launch: &Launch) -> LaunchError {
    let program = launch.cwd.join(&launch.program);
    let program = if program.exists() { program } else { locate(launch).unwrap_or(program) };
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    let failed = |cause, message: String| LaunchError::new(cause, error.raw_os_error(), message);
    if let Some(message) = directory_problem(&launch.cwd) {
        return failed(LaunchErrorCause::Directory, message);
    }
    let named = format!("the program {}", program.display());
    match errno {
        Some(Errno::TOOBIG) => failed(
            LaunchErrorCause::Arguments,
            "arguments and environment together exceed the limit of the system".to_owned(),
        ),
        Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE) => {
            failed(LaunchErrorCause::System, format!("the machine lacks resources for another program: {error}"))
        }
        Some(Errno::NOEXEC) => failed(
            LaunchErrorCause::Program,
            format!("{named} is not executable: neither a binary for this machine nor a script with #!"),
        ),
        Some(Errno::NOENT) if program.exists() => {
            let interpreter = interpreter(&program).map_or_else(String::new, |path| format!(" {path}"));
            failed(LaunchErrorCause::Program, format!("the interpreter{interpreter} of {named} was not found"))
        }
        Some(Errno::NOENT) => failed(LaunchErrorCause::Program, format!("{named} was not found")),
        Some(Errno::ACCESS | Errno::PERM) if program.is_dir() => {
            failed(LaunchErrorCause::Program, format!("{named} is a directory"))
        }
        Some(Errno::ACCESS | Errno::PERM) if rustix::fs::access(&program, Access::EXEC_OK).is_err() => failed(
            LaunchErrorCause::Program,
            format!("{named} is not executable (permission denied); make it executable with chmod +x"),
        ),
        None if error.kind() == io::ErrorKind::InvalidInput => failed(
            LaunchErrorCause::Arguments,
            "the program, an argument or a variable contains a zero byte".to_owned(),
        ),
        _ => failed(LaunchErrorCause::Program, format!("{named} could not be started: {error}")),
    }
}

/// Returns a message if the working directory does not exist, is not a directory, or cannot be entered. Returns `None`
/// otherwise.
fn directory_problem(cwd: &Path) -> Option<String> {
    let named = format!("the working directory {}", cwd.display());
    match std::fs::metadata(cwd) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(format!("{named} does not exist")),
        Err(error) => Some(format!("{named} cannot be used: {error}")),
        Ok(found) if !found.is_dir() => Some(format!("{named} is not a directory")),
        Ok(_) => rustix::fs::access(cwd, Access::EXEC_OK).err().map(|error| format!("{named} cannot be used: {error}")),
    }
}

/// Returns the interpreter in the first line of a script. Returns `None` if the file cannot be read or is not a script.
fn interpreter(program: &Path) -> Option<String> {
    use std::io::Read;
    let mut start = Vec::new();
    std::fs::File::open(program).ok()?.take(256).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).split_whitespace().next()?.to_owned())
}
