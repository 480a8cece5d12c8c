//! The node's side: starts the guardian, hands it launches, passes on what it tells, and replaces it when it dies.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixStream as StdStream;
use std::path::PathBuf;
use std::process::Stdio as ProcessStdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::{Child as Process, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use uuid::Uuid;

use super::launch::Launch;
use super::protocol::{self, Inbox, MAX_FRAME, Report, Request};
use super::stdio::Stdio;
use super::{Error, Exit, GUARDIAN, GUARDIAN_MARK, How, NODE_MARK, Sign, Usage, sweep};

/// Orders that wait for us, and frames that wait for the guardian.
const QUEUE: usize = 256;
/// Signs that wait for their reader; the last places are kept for the end.
const SIGNS: usize = 16;
const LAST_SIGNS: usize = 2;
/// For a guardian to say hello, and to be gone after it has closed its end.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub struct Options {
    /// A program whose `main` begins with [`intercept`](super::intercept): our own.
    pub program: PathBuf,
    /// A guardian that says nothing for so long when it is asked something is killed and replaced.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { program: "/proc/self/exe".into(), patience: Duration::from_secs(30) }
    }
}

/// A handle on the guardian of this node. When the last one and the last `Child` are dropped, it ends what is left.
#[derive(Debug, Clone)]
pub struct Guardian {
    orders: mpsc::Sender<Order>,
}

/// A program that was started. Dropping it stops the program.
#[derive(Debug)]
pub struct Child {
    pub pid: u32,
    /// The sandbox that was asked for is in force. False where none was, and where the kernel has none.
    pub confined: bool,
    signs: mpsc::Receiver<Sign>,
    control: Control,
}

/// Ends a program from elsewhere than where its signs are read.
#[derive(Debug, Clone)]
pub struct Control {
    id: Uuid,
    /// The same execution may have been started again meanwhile; that is not ours to end.
    launch: u64,
    orders: mpsc::Sender<Order>,
}

#[derive(Debug)]
enum Order {
    Launch {
        launch: Box<Launch>,
        stdio: Stdio,
        started: oneshot::Sender<Result<Child, Error>>,
    },
    End {
        id: Uuid,
        launch: u64,
        kill: bool,
    },
    Renew(Duration),
    Stop(oneshot::Sender<()>),
    /// For tests and for reports.
    Pid(oneshot::Sender<Option<u32>>),
}

impl Guardian {
    /// Starts the guardian. Must be called before agents are; needs a runtime.
    pub async fn start(options: Options) -> Result<Self, Error> {
        let connection = Connection::open(&options).await.map_err(Error::Start)?;
        let (orders, inbox) = mpsc::channel(QUEUE);
        let keeper = Keeper {
            options,
            orders: orders.downgrade(),
            children: HashMap::new(),
            lease: None,
            launches: 0,
            unanswered: 0,
            heard: Instant::now(),
        };
        tokio::spawn(keeper.run(connection, inbox));
        Ok(Self { orders })
    }

    /// Starts a program. What it was given as input and output is closed here whether or not that succeeds.
    pub async fn spawn(&self, launch: Launch, stdio: Stdio) -> Result<Child, Error> {
        let (started, answer) = oneshot::channel();
        let order = Order::Launch { launch: Box::new(launch), stdio, started };
        self.orders.send(order).await.map_err(|_| Error::Stopped)?;
        answer.await.map_err(|_| Error::Stopped)?
    }

    /// Promises that the node is alive for so long. When no promise holds any more, the guardian kills everything and
    /// starts nothing until there is a new one. Before the first promise it asks for none.
    pub async fn renew(&self, lease: Duration) {
        drop(self.orders.send(Order::Renew(lease)).await);
    }

    /// Ends all programs, each with its grace, then the guardian, and comes back when nothing is left.
    pub async fn stop(&self) {
        let (stopped, answer) = oneshot::channel();
        if self.orders.send(Order::Stop(stopped)).await.is_ok() {
            drop(answer.await);
        }
    }

    /// The process that is the guardian now.
    pub async fn pid(&self) -> Option<u32> {
        let (tell, answer) = oneshot::channel();
        self.orders.send(Order::Pid(tell)).await.ok()?;
        answer.await.ok()?
    }
}

impl Child {
    /// The next sign; none after `Gone`.
    pub async fn next(&mut self) -> Option<Sign> {
        self.signs.recv().await
    }

    /// Waits until nothing of it is left. The usage is that of everything.
    pub async fn wait(&mut self) -> Exit {
        let mut how = How::GuardianDied;
        let mut last = Usage::default();
        while let Some(sign) = self.next().await {
            match sign {
                Sign::Usage(usage) | Sign::Gone(usage) => last = usage,
                Sign::Exited(exit) => (how, last) = (exit.how, exit.usage),
            }
        }
        Exit { how, usage: last }
    }

    /// TERM to everything, and KILL after the grace of its launch.
    pub async fn stop(&self) {
        self.control.stop().await;
    }

    pub async fn kill(&self) {
        self.control.kill().await;
    }

    pub fn control(&self) -> Control {
        self.control.clone()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let control = self.control.clone();
        if let Err(mpsc::error::TrySendError::Full(order)) = control.orders.try_send(control.order(false))
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move { drop(control.orders.send(order).await) });
        }
    }
}

impl Control {
    pub async fn stop(&self) {
        drop(self.orders.send(self.order(false)).await);
    }

    pub async fn kill(&self) {
        drop(self.orders.send(self.order(true)).await);
    }

    fn order(&self, kill: bool) -> Order {
        Order::End { id: self.id, launch: self.launch, kill }
    }
}

/// The task behind the handles: the only one that talks to the guardian.
struct Keeper {
    options: Options,
    /// For the children we give away; it does not keep us alive.
    orders: mpsc::WeakSender<Order>,
    children: HashMap<Uuid, Kept>,
    /// What was promised last, for a guardian that replaces another.
    lease: Option<Instant>,
    launches: u64,
    /// What the guardian has been asked since it spoke last, and when that was.
    unanswered: usize,
    heard: Instant,
}

struct Kept {
    /// Who waits for it to start.
    started: Option<oneshot::Sender<Result<Child, Error>>>,
    signs: mpsc::Sender<Sign>,
    /// Handed out with the answer.
    unread: Option<mpsc::Receiver<Sign>>,
    last: Usage,
    sessions: Vec<i32>,
    exited: bool,
    launch: u64,
    grace: Duration,
}

impl Keeper {
    async fn run(mut self, connection: Connection, mut orders: mpsc::Receiver<Order>) {
        let mut connection = Some(connection);
        loop {
            let report = async {
                match connection.as_mut() {
                    Some(connection) => connection.next().await,
                    None => std::future::pending().await,
                }
            };
            let silence = tokio::time::sleep_until(self.heard + self.options.patience);
            tokio::select! {
                report = report => match report {
                    Ok(report) => {
                        (self.unanswered, self.heard) = (0, Instant::now());
                        self.pass_on(report);
                    }
                    Err(error) => {
                        self.unanswered = 0;
                        tracing::error!(%error, "the guardian has died; everything it held is killed");
                        if let Some(dead) = connection.take() {
                            self.bury(dead).await;
                        }
                    }
                },
                // It is frozen or hangs: we notice its end as we do any other.
                () = silence, if self.unanswered > 0 => {
                    self.unanswered = 0;
                    if let Some(mute) = connection.as_mut() {
                        drop(mute.process.start_kill());
                    }
                }
                order = orders.recv() => match order {
                    Some(Order::Launch { launch, stdio, started }) => {
                        if connection.is_none() {
                            connection = self.replace().await.map_err(|error| tracing::error!(%error, "no guardian")).ok();
                        }
                        match &connection {
                            Some(connection) => self.launch(connection, &launch, stdio, started).await,
                            None => drop(started.send(Err(Error::Died))),
                        }
                    }
                    Some(Order::End { id, launch, kill }) => {
                        if self.children.get(&id).is_some_and(|kept| kept.launch == launch) {
                            let request = if kill { Request::Kill { id } } else { Request::Stop { id } };
                            send(connection.as_ref(), &request).await;
                        }
                    }
                    Some(Order::Renew(lease)) => {
                        self.lease = Some(Instant::now() + lease);
                        if connection.is_some() {
                            self.ask();
                        }
                        send(connection.as_ref(), &alive(lease)).await;
                    }
                    Some(Order::Pid(tell)) => drop(tell.send(connection.as_ref().and_then(|one| one.process.id()))),
                    Some(Order::Stop(stopped)) => {
                        orders.close();
                        if let Some(connection) = connection.take() {
                            self.finish(connection).await;
                        }
                        let _ = stopped.send(());
                        return;
                    }
                    // Our end closes, and the guardian does the rest.
                    None => return,
                },
            }
        }
    }

    async fn launch(
        &mut self,
        to: &Connection,
        launch: &Launch,
        stdio: Stdio,
        started: oneshot::Sender<Result<Child, Error>>,
    ) {
        let id = launch.id;
        let bytes = match protocol::encode(&Request::Launch(Box::new(launch.clone()))) {
            Ok(bytes) if bytes.len() <= MAX_FRAME => bytes,
            Ok(bytes) => return drop(started.send(Err(Error::TooLarge(bytes.len())))),
            Err(error) => return drop(started.send(Err(Error::Start(error)))),
        };
        if self.children.contains_key(&id) {
            let fault = super::Fault::new(super::Cause::Id, None, format!("the execution {id} is still running"));
            return drop(started.send(Err(Error::Refused(fault))));
        }
        let (signs, unread) = mpsc::channel(SIGNS);
        self.launches += 1;
        let kept = Kept {
            started: Some(started),
            signs,
            unread: Some(unread),
            last: Usage::default(),
            sessions: Vec::new(),
            exited: false,
            launch: self.launches,
            grace: launch.grace,
        };
        self.children.insert(id, kept);
        self.ask();
        to.send(bytes, Some(stdio)).await;
    }

    fn ask(&mut self) {
        if self.unanswered == 0 {
            self.heard = Instant::now();
        }
        self.unanswered += 1;
    }

    fn pass_on(&mut self, report: Report) {
        match report {
            Report::Hello => {}
            Report::Started { id, pid, confined } => {
                let Some(kept) = self.children.get_mut(&id) else { return };
                let (Some(started), Some(signs)) = (kept.started.take(), kept.unread.take()) else { return };
                // Nobody holds a handle any more, so nobody can want it.
                let Some(orders) = self.orders.upgrade() else { return };
                let control = Control { id, launch: kept.launch, orders };
                // Where nobody waits for it any more, it is dropped, and thereby stopped.
                drop(started.send(Ok(Child { pid: pid.unsigned_abs(), confined, signs, control })));
            }
            Report::Refused { id, fault } => {
                if let Some(started) = self.children.remove(&id).and_then(|kept| kept.started) {
                    drop(started.send(Err(Error::Refused(fault))));
                }
            }
            Report::Usage { id, usage, sessions } => {
                let Some(kept) = self.children.get_mut(&id) else { return };
                (kept.last, kept.sessions) = (usage, sessions);
                if kept.signs.capacity() > LAST_SIGNS {
                    drop(kept.signs.try_send(Sign::Usage(usage)));
                }
            }
            Report::Exited { id, how, usage } => {
                let Some(kept) = self.children.get_mut(&id) else { return };
                (kept.last, kept.exited) = (usage, true);
                drop(kept.signs.try_send(Sign::Exited(Exit { how, usage })));
            }
            Report::Gone { id, usage } => {
                if let Some(kept) = self.children.remove(&id) {
                    drop(kept.signs.try_send(Sign::Gone(usage)));
                }
            }
        }
    }

    /// Nothing is told before nothing is left.
    async fn bury(&mut self, dead: Connection) {
        let mark = dead.mark.clone();
        // Its own session, in which agents start, and those they have made.
        let own = dead.pid;
        let sessions = self.children.values().flat_map(|kept| kept.sessions.iter().copied()).chain([own]).collect();
        dead.close().await;
        let swept = tokio::task::spawn_blocking(move || sweep::sweep_after(&mark, &sessions)).await;
        if let Ok(count @ 1..) = swept {
            tracing::warn!(count, "killed processes that the dead guardian had held");
        }
        for (_, kept) in self.children.drain() {
            if let Some(started) = kept.started {
                drop(started.send(Err(Error::Died)));
                continue;
            }
            if !kept.exited {
                drop(kept.signs.try_send(Sign::Exited(Exit { how: How::GuardianDied, usage: kept.last })));
            }
            drop(kept.signs.try_send(Sign::Gone(Usage { rss: 0, processes: 0, ..kept.last })));
        }
    }

    async fn replace(&self) -> io::Result<Connection> {
        let connection = Connection::open(&self.options).await?;
        if let Some(until) = self.lease {
            send(Some(&connection), &alive(until.saturating_duration_since(Instant::now()))).await;
        }
        Ok(connection)
    }

    /// Until the guardian has closed its end, it tells how everything ends. What hangs in the kernel beyond its grace does
    /// not hold us: the guardian is killed, and what it held is swept up as far as can be.
    async fn finish(&mut self, mut connection: Connection) {
        send(Some(&connection), &Request::Quit).await;
        let grace = self.children.values().map(|kept| kept.grace).max().unwrap_or_default();
        let last = async {
            while let Ok(report) = connection.next().await {
                self.pass_on(report);
            }
        };
        if tokio::time::timeout(grace.saturating_add(PATIENCE), last).await.is_err() {
            drop(connection.process.start_kill());
        }
        self.bury(connection).await;
    }
}

fn alive(lease: Duration) -> Request {
    Request::Alive { for_ms: u64::try_from(lease.as_millis()).unwrap_or(u64::MAX / 4) }
}

async fn send(connection: Option<&Connection>, request: &Request) {
    if let (Some(connection), Ok(bytes)) = (connection, protocol::encode(request)) {
        connection.send(bytes, None).await;
    }
}

struct Connection {
    process: Process,
    pid: i32,
    mark: String,
    socket: Arc<UnixStream>,
    inbox: Inbox,
    outbox: mpsc::Sender<(Vec<u8>, Option<Stdio>)>,
}

impl Connection {
    async fn open(options: &Options) -> io::Result<Self> {
        /// Each guardian of this process has its own mark, so that what one held is told from what another holds.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mark = format!("{}.{}", sweep::own_mark(), COUNT.fetch_add(1, Ordering::Relaxed));
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut command = Command::new(&options.program);
        command.arg(GUARDIAN).env_clear().env(GUARDIAN_MARK, "1").env(NODE_MARK, &mark);
        // Where we are part of an execution ourselves, the guardian is too.
        for inherited in [super::EXECUTION_MARK, "LD_LIBRARY_PATH"] {
            command.envs(std::env::var_os(inherited).map(|value: OsString| (inherited, value)));
        }
        command.stdin(std::os::fd::OwnedFd::from(theirs)).stdout(ProcessStdio::null());
        let process = command.spawn()?;
        let pid = process.id().map_or(0, |pid| pid as i32);
        // It holds the other end of the socket.
        drop(command);
        let socket = Arc::new(UnixStream::from_std(ours)?);
        let (outbox, frames) = mpsc::channel(QUEUE);
        tokio::spawn(write(socket.clone(), frames));
        let mut connection = Self { process, pid, mark, socket, inbox: Inbox::default(), outbox };
        match tokio::time::timeout(PATIENCE, connection.next()).await {
            Ok(Ok(Report::Hello)) => Ok(connection),
            Ok(Ok(_)) => Err(io::Error::other("it did not say hello")),
            Ok(Err(error)) => Err(error),
            Err(_) => {
                drop(connection.process.start_kill());
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }

    /// The next report; its end is an error. Loses nothing when it is dropped while it waits.
    async fn next(&mut self) -> io::Result<Report> {
        loop {
            if let Some(report) = self.inbox.next()? {
                return Ok(report);
            }
            let socket = &self.socket;
            let inbox = &mut self.inbox;
            if socket.async_io(Interest::READABLE, || inbox.receive(socket)).await? == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has closed its end"));
            }
        }
    }

    /// A frame that cannot be sent is one to a dead guardian, which the reader notices.
    async fn send(&self, bytes: Vec<u8>, stdio: Option<Stdio>) {
        drop(self.outbox.send((bytes, stdio)).await);
    }

    /// The process must be gone before what it held is looked for.
    async fn close(mut self) {
        if tokio::time::timeout(PATIENCE, self.process.wait()).await.is_err() {
            drop(self.process.kill().await);
        }
    }
}

/// Writes frames one after the other; a descriptor is closed as soon as it has been sent.
async fn write(socket: Arc<UnixStream>, mut frames: mpsc::Receiver<(Vec<u8>, Option<Stdio>)>) {
    while let Some((bytes, stdio)) = frames.recv().await {
        let mut rest = bytes.as_slice();
        let mut stdio = stdio;
        while !rest.is_empty() {
            let sent = socket
                .async_io(Interest::WRITABLE, || {
                    let fds = stdio.as_ref().map(Stdio::fds);
                    protocol::send(&socket, rest, fds.as_ref().map_or(&[], |fds| fds.as_slice()))
                })
                .await;
            let Ok(sent) = sent else { return };
            stdio = None;
            rest = &rest[sent..];
        }
    }
}
