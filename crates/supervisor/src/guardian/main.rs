//! The guardian process: one thread with one loop over the socket of the node, ended children and timers.
//!
//! It ends only after the node has closed the socket or requested it, and no process is left. Signals do not end it.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::SendFlags;
use rustix::process::{Resource, Rlimit};
use rustix::time::ClockId;
use signal_hook::consts::{SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

use super::cgroup::RunGroups;
use super::guarded_execution::EndMode;
use super::launch::{Launch, LaunchError, LaunchErrorCause};
use super::protections::Protections;
use super::protocol::{self, FrameReader, GuardianReport, GuardianRequest};
use super::tree::ProcessTree;
use super::{NICE, NODE_VARIABLE, ORPHAN_GRACE, namespaces, open_files, priority, privileges, spawn};

/// Usage reports are dropped while more bytes than this are unsent. Reports of ends are never dropped.
const MAX_UNSENT_BYTES: usize = 256 << 10;
/// The maximum number of requests in one iteration of the loop, so that ended children are not delayed.
const REQUESTS_PER_ITERATION: usize = 32;
/// The longest time between two checks of the lease. After a suspend of the machine, the lease may have expired
/// although the timer of `poll` has not.
const LEASE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Runs the guardian to its end. Prints an error and returns [`ExitCode::FAILURE`] if the start or the loop fails.
pub(super) fn main() -> ExitCode {
    match start() {
        Ok(code) => code,
        Err(error) => {
            use std::io::Write;
            drop(writeln!(io::stderr(), "adjutant: the guardian failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs the guardian: in namespaces of its own as a second process, or else in this process. Returns its exit code.
fn start() -> io::Result<ExitCode> {
    close_inherited();
    // In the session of another process, the guardian would be ended with it.
    rustix::process::setsid()?;
    survive_signals()?;
    let groups = namespaces::inherited_groups().unwrap_or_else(RunGroups::create);
    if let Some(code) = namespaces::run_inside(&groups)? {
        groups.remove();
        return Ok(code);
    }
    GuardianProcess::set_up(groups)?.run()?;
    Ok(ExitCode::SUCCESS)
}

/// Installs handlers that ignore the signals which would end this process. Blocked or ignored signals would be inherited
/// by the started programs.
fn survive_signals() -> io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

/// The state of the guardian process.
struct GuardianProcess {
    socket: OwnedFd,
    /// Receives a byte for each ended child.
    child_signal: UnixStream,
    /// The marker of the node. Every started program gets it.
    node: OsString,
    reader: FrameReader,
    /// Encoded reports that are not sent yet.
    out: Vec<u8>,
    tree: ProcessTree,
    protections: Protections,
    lease: NodeLease,
    /// The socket to the node is open.
    connected: bool,
    /// No further launches. The process exits when no child is left.
    closing: bool,
    /// Received requests that are not handled yet may exist.
    backlog: bool,
    /// Ended processes that are not reaped yet may exist.
    unreaped: bool,
}

/// The lease of the node, on a clock that continues while the machine is suspended.
#[derive(Default)]
struct NodeLease {
    /// The time since boot. `None` before the first renewal: no lease is required then.
    expires_at: Option<Duration>,
    /// The lease has expired and all programs were killed.
    lost: bool,
}

impl NodeLease {
    /// Returns the time since boot, including the time while the machine was suspended.
    fn now() -> Duration {
        let now = rustix::time::clock_gettime(ClockId::Boottime);
        Duration::new(now.tv_sec.max(0) as u64, now.tv_nsec.clamp(0, 999_999_999) as u32)
    }

    fn renew(&mut self, length: Duration) {
        self.expires_at = Some(Self::now().saturating_add(length));
        self.lost = false;
    }

    fn is_expired(&self) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= Self::now())
    }

    /// Returns the time until the expiry. Returns `None` if there is no lease or the programs were already killed.
    fn remaining(&self) -> Option<Duration> {
        if self.lost { None } else { self.expires_at.map(|expires_at| expires_at.saturating_sub(Self::now())) }
    }
}

impl GuardianProcess {
    /// Prepares this process: enters its namespaces, becomes the subreaper, disables new privileges and core files, and
    /// changes to `/`. The socket comes from standard input, the marker of the node from the environment. Queues the
    /// first report. Fails if a system call fails; only the scheduling group is optional.
    fn set_up(groups: RunGroups) -> io::Result<Self> {
        let namespaces = namespaces::enter()?;
        // With autogroup scheduling, the kernel divides the processors among sessions first. The session of the
        // guardian, with all agents, would get as much time as the node. Kernels without autogroups do not have this
        // file.
        let _ = std::fs::write("/proc/self/autogroup", NICE.to_string());
        priority::raise();
        // After the write above, which a protected process may not do.
        super::protect_memory()?;
        rustix::thread::set_no_new_privs(true)?;
        privileges::limit_bounding_set();
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
        open_files::restore_limit()?;
        let (child_signal, writer) = UnixStream::pair()?;
        child_signal.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGCHLD, writer)?;
        let protections = Protections::of(namespaces, groups.identify_runs());
        let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        // Do not keep a directory in use: it may be removed or unmounted.
        std::env::set_current_dir("/")?;
        let mut guard = Self {
            socket,
            child_signal,
            node: std::env::var_os(NODE_VARIABLE).unwrap_or_default(),
            reader: FrameReader::default(),
            out: Vec::new(),
            tree: ProcessTree::new(groups, namespaces),
            protections,
            lease: NodeLease::default(),
            connected: true,
            closing: false,
            backlog: false,
            unreaped: false,
        };
        guard.report(&GuardianReport::Ready(protections))?;
        Ok(guard)
    }

    /// Handles requests, ended children, the lease and timers, and sends reports. Drops usage reports while more than
    /// [`MAX_UNSENT_BYTES`] are unsent. Returns once the guardian is closing and no process is left. Fails if waiting
    /// or encoding a report fails.
    fn run(mut self) -> io::Result<()> {
        loop {
            let (readable, child_ended) = self.wait()?;
            if child_ended || self.unreaped {
                self.clear_child_signal();
                self.unreaped = self.tree.reap();
            }
            if readable || self.backlog {
                self.backlog = self.read_requests();
            }
            self.check_lease();
            self.tree.tick(Instant::now());
            for report in self.tree.take_reports() {
                if !(matches!(report, GuardianReport::Usage { .. }) && self.out.len() > MAX_UNSENT_BYTES) {
                    self.report(&report)?;
                }
            }
            self.flush();
            if self.closing && self.tree.is_empty() {
                self.tree.reap_all();
                if self.tree.is_empty() && !has_children() {
                    return self.send_last_reports();
                }
            }
        }
    }

    /// Waits for the socket, an ended child or the next timer. Also wakes up if unsent reports can be sent. Returns two
    /// flags: the socket is readable or closed, and a child has ended. Both are false after a signal or a timer. Fails
    /// if `poll` fails.
    fn wait(&self) -> io::Result<(bool, bool)> {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, self.connected);
        flags.set(PollFlags::OUT, self.connected && !self.out.is_empty());
        let mut fds = vec![PollFd::new(&self.child_signal, PollFlags::IN)];
        if self.connected {
            fds.push(PollFd::new(&self.socket, flags));
        }
        match rustix::event::poll(&mut fds, self.timeout().as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let readable = fds.get(1).is_some_and(|fd| {
            fd.revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
        });
        Ok((readable, !fds[0].revents().is_empty()))
    }

    /// Returns the time until the next timer, or `None` to wait without a limit. Timers are the samples and signals of
    /// the tree, and a check of the lease at least every second while an execution runs. It is at most 50 ms while
    /// closing, and zero if requests or ended processes may be waiting.
    fn timeout(&self) -> Option<Timespec> {
        if self.backlog || self.unreaped {
            return Some(Timespec { tv_sec: 0, tv_nsec: 0 });
        }
        let due = self.tree.next_due().map(|due| due.saturating_duration_since(Instant::now()));
        let lease = if self.tree.is_idle() {
            None
        } else {
            self.lease.remaining().map(|remaining| remaining.min(LEASE_CHECK_INTERVAL))
        };
        // While closing, poll for unknown children, which send no further signal.
        let closing = self.closing.then_some(Duration::from_millis(50));
        // Add a margin, so that the timer has surely expired after the wait.
        let wait = due.into_iter().chain(lease).chain(closing).min()? + Duration::from_micros(100);
        Some(Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) })
    }

    fn clear_child_signal(&self) {
        let mut bytes = [0_u8; 256];
        while matches!(rustix::io::read(&self.child_signal, &mut bytes), Ok(256)) {}
    }

    /// Receives and handles requests of the node, in at most [`REQUESTS_PER_ITERATION`] steps. Returns true if there
    /// may be more. A closed socket, a read error or an invalid frame ends the connection, see
    /// [`GuardianProcess::lose_node`].
    fn read_requests(&mut self) -> bool {
        for _ in 0..REQUESTS_PER_ITERATION {
            match self.reader.next::<GuardianRequest>() {
                Ok(Some(request)) => self.handle(request),
                Ok(None) => match self.reader.receive(&self.socket) {
                    Ok(read) if read > 0 => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                    Ok(_) | Err(_) => {
                        self.lose_node();
                        return false;
                    }
                },
                // An invalid frame: the connection is unusable.
                Err(_) => {
                    self.lose_node();
                    return false;
                }
            }
        }
        true
    }

    /// Handles one request. A request to end an unknown execution has no effect. A renewal is answered with `Hello`; if
    /// the lease has expired, the programs are killed first. `Quit` ends all programs with their grace periods and
    /// refuses further launches.
    fn handle(&mut self, request: GuardianRequest) {
        match request {
            GuardianRequest::Launch(launch) => self.launch(*launch),
            GuardianRequest::Stop { id } => self.tree.end(id, EndMode::Graceful),
            GuardianRequest::Kill { id } => self.tree.end(id, EndMode::Kill),
            GuardianRequest::Alive { for_ms } => {
                // A renewal after the expiry does not revive the lease that has expired.
                self.check_lease();
                self.lease.renew(Duration::from_millis(for_ms));
                // The report is the answer to the node.
                drop(self.report(&GuardianReport::Hello));
            }
            GuardianRequest::Quit => {
                self.closing = true;
                self.tree.end_all(EndMode::Graceful);
            }
        }
    }

    /// Starts a program and reports `Started` or `Refused`. Refuses it if the guardian is closing, the lease has
    /// expired, or the execution still runs, and like [`spawn::start`]. Takes the descriptors of the request in any
    /// case.
    fn launch(&mut self, mut launch: Launch) {
        let fds = self.reader.fds();
        let id = launch.id;
        launch.limits.user_tasks = self.tree.task_limit(&launch.tree_limits);
        let refused = if self.closing {
            Some(LaunchError::new(LaunchErrorCause::System, None, "the guardian is stopping"))
        } else if self.lease.is_expired() {
            Some(LaunchError::new(LaunchErrorCause::Lease, None, "the lease of this node has expired; renew it first"))
        } else if self.tree.contains(id) {
            Some(LaunchError::new(LaunchErrorCause::Id, None, format!("the execution {id} is still running")))
        } else {
            None
        };
        let started = match refused {
            Some(error) => Err(error),
            None => self.start(&launch, fds),
        };
        let report = started.unwrap_or_else(|error| GuardianReport::Refused { id, error });
        // Encoding a small report cannot fail.
        drop(self.report(&report));
    }

    /// Starts a program in its control groups and adds it to the tree. Returns the report. Fails like [`spawn::start`].
    fn start(&mut self, launch: &Launch, fds: Vec<OwnedFd>) -> Result<GuardianReport, LaunchError> {
        let group = self.tree.add_group(launch);
        group.enter_process();
        let surroundings = spawn::Surroundings {
            node: &self.node,
            protections: &self.protections,
            group: &group,
            views: self.tree.views(),
        };
        let started = spawn::start(launch, fds, &surroundings);
        group.leave_process();
        match started {
            Ok(started) => {
                let spawn::StartedProgram { child, pid_for_node, confined, view } = started;
                self.tree.insert(launch, child, group, view);
                Ok(GuardianReport::Started { id: launch.id, pid: pid_for_node, confined })
            }
            Err(error) => {
                group.remove();
                Err(error)
            }
        }
    }

    /// Kills all programs if the lease has expired, once per expiry.
    fn check_lease(&mut self) {
        if self.lease.is_expired() && !self.lease.lost {
            self.lease.lost = true;
            self.tree.end_all(EndMode::LeaseLost);
        }
    }

    /// Closes the guardian after the loss of its node: unsent reports are dropped, and all programs end with a short
    /// grace period.
    fn lose_node(&mut self) {
        self.connected = false;
        self.closing = true;
        self.out = Vec::new();
        self.tree.end_all(EndMode::GraceLimit(ORPHAN_GRACE));
    }

    /// Queues a report. Does nothing after the loss of the node. Fails if the report cannot be encoded.
    fn report(&mut self, report: &GuardianReport) -> io::Result<()> {
        if self.connected {
            self.out.extend_from_slice(&protocol::encode(report)?);
        }
        Ok(())
    }

    /// Sends as much as the socket accepts, without waiting. The rest stays in the buffer. A failed socket counts as
    /// the loss of the node: all programs end. Has no effect after that.
    fn flush(&mut self) {
        while self.connected && !self.out.is_empty() {
            match rustix::net::send(&self.socket, &self.out, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(sent) => drop(self.out.drain(..sent)),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                Err(_) => self.lose_node(),
            }
        }
    }

    /// Removes the control groups and sends the last reports. Gives up after [`ORPHAN_GRACE`] if the node does not read. Never fails.
    fn send_last_reports(mut self) -> io::Result<()> {
        self.tree.remove_groups();
        let deadline = Instant::now() + ORPHAN_GRACE;
        while self.connected && !self.out.is_empty() && Instant::now() < deadline {
            let mut fds = [PollFd::new(&self.socket, PollFlags::OUT)];
            let timeout = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
            let _ = rustix::event::poll(&mut fds, Some(&timeout));
            self.flush();
        }
        Ok(())
    }
}

/// Closes all descriptors above 2 that were inherited from the node. Agents must not get them, and a reader must not
/// wait for their end. Does nothing if `/proc` cannot be read.
fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<i32> = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // The descriptor of the listing itself is already closed.
        let _ = nix::unistd::close(fd);
    }
}

/// Returns true if this process has a child, running or not reaped.
fn has_children() -> bool {
    use rustix::process::{WaitId, WaitIdOptions};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(rustix::process::waitid(WaitId::All, options), Err(rustix::io::Errno::CHILD))
}
