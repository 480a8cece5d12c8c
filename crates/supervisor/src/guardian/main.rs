//! The guardian process: one thread, one loop over the node's socket, ended children and timers. It ends only when the
//! node is gone, or asks, and nothing it started is left; signals do not end it.

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

use super::launch::{Cause, Fault, Launch};
use super::protocol::{self, Inbox, Report, Request};
use super::tree::{Ending, Tree};
use super::{LAST_GRACE, NICE, NODE_MARK, spawn};

/// With so much unread by the node, samples are left out; what ends is still told.
const ENOUGH_UNREAD: usize = 256 << 10;
/// Launches in one turn, so that the dead are not left waiting.
const REQUESTS_A_TURN: usize = 32;
/// A machine that slept wakes with a lease that is over, but with a timer that is not: look this often.
const LEASE_CHECK: Duration = Duration::from_secs(1);

pub(super) fn main() -> ExitCode {
    match Guard::set_up().and_then(Guard::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            use std::io::Write;
            drop(writeln!(io::stderr(), "adjutant: the guardian failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

struct Guard {
    socket: OwnedFd,
    /// A byte for every child that ended.
    ended: UnixStream,
    node: OsString,
    inbox: Inbox,
    out: Vec<u8>,
    tree: Tree,
    lease: Lease,
    /// The node can still be talked to.
    connected: bool,
    /// No more launches; exit when all is gone.
    closing: bool,
    /// Requests have arrived that are not served yet.
    backlog: bool,
}

/// Until when the node has promised to be alive, on a clock that goes on while the machine sleeps.
#[derive(Default)]
struct Lease {
    until: Option<Duration>,
    /// It ran out and what ran was killed.
    lost: bool,
}

impl Lease {
    fn now() -> Duration {
        let now = rustix::time::clock_gettime(ClockId::Boottime);
        Duration::new(now.tv_sec.max(0) as u64, now.tv_nsec.clamp(0, 999_999_999) as u32)
    }

    fn renew(&mut self, length: Duration) {
        self.until = Some(Self::now().saturating_add(length));
        self.lost = false;
    }

    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| until <= Self::now())
    }

    fn left(&self) -> Option<Duration> {
        if self.lost { None } else { self.until.map(|until| until.saturating_sub(Self::now())) }
    }
}

impl Guard {
    fn set_up() -> io::Result<Self> {
        close_inherited();
        // Where this fails we are in somebody's session, and would be ended with it.
        rustix::process::setsid()?;
        // Many kernels share the processors out among sessions first: ours, with all agents in it, would weigh as much as
        // the node's. One that does not has no such file.
        let _ = std::fs::write("/proc/self/autogroup", NICE.to_string());
        rustix::thread::set_no_new_privs(true)?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
        // Handlers, not blocking or ignoring: programs we start would inherit those.
        let (ended, wake) = UnixStream::pair()?;
        ended.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGCHLD, wake)?;
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2] {
            signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
        }
        let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        // Holds no directory, so that it can be removed or unmounted.
        std::env::set_current_dir("/")?;
        let mut guard = Self {
            socket,
            ended,
            node: std::env::var_os(NODE_MARK).unwrap_or_default(),
            inbox: Inbox::default(),
            out: Vec::new(),
            tree: Tree::new(),
            lease: Lease::default(),
            connected: true,
            closing: false,
            backlog: false,
        };
        guard.tell(&Report::Hello)?;
        Ok(guard)
    }

    fn run(mut self) -> io::Result<()> {
        loop {
            let (readable, ended) = self.wait()?;
            if ended {
                self.forget_wakes();
                self.tree.reap();
            }
            if readable || self.backlog {
                self.backlog = self.listen();
            }
            self.check_lease();
            self.tree.tick(Instant::now());
            for report in self.tree.reports() {
                if !(matches!(report, Report::Usage { .. }) && self.out.len() > ENOUGH_UNREAD) {
                    self.tell(&report)?;
                }
            }
            self.flush();
            if self.closing && self.tree.is_empty() {
                self.tree.look_again();
                if self.tree.is_empty() && !has_children() {
                    return self.say_goodbye();
                }
            }
        }
    }

    fn wait(&self) -> io::Result<(bool, bool)> {
        let mut wanted = PollFlags::empty();
        wanted.set(PollFlags::IN, self.connected);
        wanted.set(PollFlags::OUT, self.connected && !self.out.is_empty());
        let mut fds = vec![PollFd::new(&self.ended, PollFlags::IN)];
        if self.connected {
            fds.push(PollFd::new(&self.socket, wanted));
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

    fn timeout(&self) -> Option<Timespec> {
        if self.backlog {
            return Some(Timespec { tv_sec: 0, tv_nsec: 0 });
        }
        let due = self.tree.next_due().map(|due| due.saturating_duration_since(Instant::now()));
        let lease = if self.tree.is_idle() { None } else { self.lease.left().map(|left| left.min(LEASE_CHECK)) };
        // While closing, a child we know nothing of must not keep us asleep.
        let closing = self.closing.then_some(Duration::from_millis(50));
        // Timers of the kernel are finer than ours: a moment later is surely due.
        let wait = due.into_iter().chain(lease).chain(closing).min()? + Duration::from_micros(100);
        Some(Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) })
    }

    fn forget_wakes(&self) {
        let mut bytes = [0_u8; 256];
        while matches!(rustix::io::read(&self.ended, &mut bytes), Ok(256)) {}
    }

    /// Serves what the node has sent; true if there may be more.
    fn listen(&mut self) -> bool {
        for _ in 0..REQUESTS_A_TURN {
            match self.inbox.next::<Request>() {
                Ok(Some(request)) => self.serve(request),
                Ok(None) => match self.inbox.receive(&self.socket) {
                    Ok(read) if read > 0 => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                    Ok(_) | Err(_) => {
                        self.lose_node();
                        return false;
                    }
                },
                // Whoever speaks like this is not our node any more.
                Err(_) => {
                    self.lose_node();
                    return false;
                }
            }
        }
        true
    }

    fn serve(&mut self, request: Request) {
        match request {
            Request::Launch(launch) => self.launch(&launch),
            Request::Stop { id } => self.tree.end(id, Ending::Ask),
            Request::Kill { id } => self.tree.end(id, Ending::Kill),
            Request::Alive { for_ms } => {
                // Too late is too late, also when the promise arrives before we have looked.
                self.check_lease();
                self.lease.renew(Duration::from_millis(for_ms));
                // The node wants to know that we live, too.
                drop(self.tell(&Report::Hello));
            }
            Request::Quit => {
                self.closing = true;
                self.tree.end_all(Ending::Ask);
            }
        }
    }

    fn launch(&mut self, launch: &Launch) {
        let fds = self.inbox.fds();
        let id = launch.id;
        let started = if self.closing {
            Err(Fault::new(Cause::System, None, "the guardian is ending"))
        } else if self.lease.is_over() {
            Err(Fault::new(Cause::Lease, None, "the lease of this node is over; renew it first"))
        } else if self.tree.contains(id) {
            Err(Fault::new(Cause::Id, None, format!("the execution {id} is still running")))
        } else {
            spawn::start(launch, fds, &self.node)
        };
        let report = match started {
            Ok(started) => {
                let report = Report::Started { id, pid: started.child.id() as i32, confined: started.confined };
                self.tree.insert(id, started.child, launch.grace);
                report
            }
            Err(fault) => Report::Refused { id, fault },
        };
        // Cannot fail: it is a small frame of our own.
        drop(self.tell(&report));
    }

    fn check_lease(&mut self) {
        if self.lease.is_over() && !self.lease.lost {
            self.lease.lost = true;
            self.tree.end_all(Ending::Lost);
        }
    }

    fn lose_node(&mut self) {
        self.connected = false;
        self.closing = true;
        self.out = Vec::new();
        self.tree.end_all(Ending::Hurry(LAST_GRACE));
    }

    fn tell(&mut self, report: &Report) -> io::Result<()> {
        if self.connected {
            self.out.extend_from_slice(&protocol::encode(report)?);
        }
        Ok(())
    }

    /// Sends what the socket takes; the rest waits until it takes more.
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

    /// The last reports must not be lost in a socket that is full, but a node that never reads must not keep us.
    fn say_goodbye(mut self) -> io::Result<()> {
        let deadline = Instant::now() + LAST_GRACE;
        while self.connected && !self.out.is_empty() && Instant::now() < deadline {
            let mut fds = [PollFd::new(&self.socket, PollFlags::OUT)];
            let patience = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
            let _ = rustix::event::poll(&mut fds, Some(&patience));
            self.flush();
        }
        Ok(())
    }
}

/// What was open in the node, or in the shell it came from, is not for agents, and nobody must wait for us to close it.
fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<i32> = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // The one of the list itself is closed already.
        let _ = nix::unistd::close(fd);
    }
}

fn has_children() -> bool {
    use rustix::process::{WaitId, WaitIdOptions};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(rustix::process::waitid(WaitId::All, options), Err(rustix::io::Errno::CHILD))
}
