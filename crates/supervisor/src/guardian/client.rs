//! The side of the node: starts the guardian, sends it launches, forwards its reports, and replaces it if it dies.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use uuid::Uuid;

use super::connection::{GUARDIAN_TIMEOUT, GuardianConnection};
use super::launch::Launch;
use super::protocol::{self, GuardianReport, GuardianRequest, MAX_FRAME};
use super::stdio::Stdio;
use super::{ChildEvent, ChildExit, Error, ExitReason, ProcessUsage, Protections, cgroup, sweep};

/// The capacity of the queue of commands.
const QUEUE_CAPACITY: usize = 256;
/// The capacity of the queue of events of one child.
const EVENT_CAPACITY: usize = 16;
/// The number of entries of the event queue that are reserved for the end of the child.
const RESERVED_EVENTS: usize = 2;

/// Settings for the start of a guardian.
#[derive(Debug, Clone)]
pub struct GuardianOptions {
    /// A program that calls [`intercept`](super::intercept) first in `main`. By default the current program.
    pub program: PathBuf,
    /// A guardian that does not answer a request within this time is killed and replaced.
    pub response_timeout: Duration,
    /// Create namespaces that hide files and processes from agents, if the system allows it.
    pub namespaces: bool,
}

impl Default for GuardianOptions {
    fn default() -> Self {
        Self { program: "/proc/self/exe".into(), response_timeout: Duration::from_secs(30), namespaces: true }
    }
}

/// A handle to the guardian of this node. When the last handle and the last `Child` are dropped, the guardian ends all
/// remaining programs.
#[derive(Debug, Clone)]
pub struct Guardian {
    commands: mpsc::Sender<ClientCommand>,
}

/// A started program. Dropping it stops the program.
#[derive(Debug)]
pub struct Child {
    /// The process id, or 0 if the kernel does not provide it.
    pub pid: u32,
    /// The requested sandbox is enforced. False if none was requested or if the kernel does not support it.
    pub confined: bool,
    events: mpsc::Receiver<ChildEvent>,
    control: ChildControl,
}

/// Ends a program independently of the task that reads its events.
#[derive(Debug, Clone)]
pub struct ChildControl {
    id: Uuid,
    /// The number of the launch. A later launch of the same execution is not affected.
    launch: u64,
    commands: mpsc::Sender<ClientCommand>,
}

#[derive(Debug)]
enum ClientCommand {
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
    /// Returns the process id of the guardian.
    Pid(oneshot::Sender<Option<u32>>),
    Protections(oneshot::Sender<Option<Protections>>),
}

impl Guardian {
    /// Starts the guardian and a task that communicates with it. Must be called in a tokio runtime. Fails with
    /// [`Error::Start`] if the process cannot be started or does not answer within 10 seconds.
    pub async fn start(options: GuardianOptions) -> Result<Self, Error> {
        let connection = GuardianConnection::open(&options).await.map_err(Error::Start)?;
        let (commands, received) = mpsc::channel(QUEUE_CAPACITY);
        let client = GuardianClient {
            options,
            commands: commands.downgrade(),
            children: HashMap::new(),
            lease: None,
            launches: 0,
            unanswered: 0,
            last_report: Instant::now(),
        };
        tokio::spawn(client.run(connection, received));
        Ok(Self { commands })
    }

    /// Starts a program and returns it. Closes the descriptors of `stdio` in this process in any case. Replaces a
    /// guardian that has died. Fails with:
    /// - [`Error::Refused`] if the program cannot be started or one with the same id still runs.
    /// - [`Error::TooLarge`] if the launch is too large.
    /// - [`Error::Died`] if the guardian dies or cannot be restarted.
    /// - [`Error::Stopped`] if the guardian was stopped.
    pub async fn spawn(&self, launch: Launch, stdio: Stdio) -> Result<Child, Error> {
        let (started, answer) = oneshot::channel();
        let command = ClientCommand::Launch { launch: Box::new(launch), stdio, started };
        self.commands.send(command).await.map_err(|_| Error::Stopped)?;
        answer.await.map_err(|_| Error::Stopped)?
    }

    /// Renews the lease of the node for the time `lease` from now on. When the lease expires, the guardian kills all
    /// programs and starts none until the next renewal. Before the first renewal, no lease is required.
    pub async fn renew(&self, lease: Duration) {
        drop(self.commands.send(ClientCommand::Renew(lease)).await);
    }

    /// Ends all programs with their grace periods, then the guardian. Returns when no process is left.
    pub async fn stop(&self) {
        let (stopped, answer) = oneshot::channel();
        if self.commands.send(ClientCommand::Stop(stopped)).await.is_ok() {
            drop(answer.await);
        }
    }

    /// Returns the process id of the current guardian, if it runs.
    pub async fn pid(&self) -> Option<u32> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(ClientCommand::Pid(reply)).await.ok()?;
        answer.await.ok()?
    }
}

impl Guardian {
    /// Returns the protections that the current guardian enforces, if it runs.
    pub async fn protections(&self) -> Option<Protections> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(ClientCommand::Protections(reply)).await.ok()?;
        answer.await.ok()?
    }
}

impl Child {
    /// Returns the process id, if it is known.
    pub fn known_pid(&self) -> Option<u32> {
        Some(self.pid).filter(|pid| *pid != 0)
    }

    /// Waits for the next event. Returns `None` after `TreeEnded`.
    pub async fn next(&mut self) -> Option<ChildEvent> {
        self.events.recv().await
    }

    /// Waits until no process of the program is left. Returns its exit with the total usage. Skips the other events.
    /// The reason is `GuardianDied` if no exit was reported.
    pub async fn wait(&mut self) -> ChildExit {
        let mut reason = ExitReason::GuardianDied;
        let mut last = ProcessUsage::default();
        while let Some(event) = self.next().await {
            match event {
                ChildEvent::Usage(usage) | ChildEvent::TreeEnded(usage) => last = usage,
                ChildEvent::Exited(exit) => (reason, last) = (exit.reason, exit.usage),
            }
        }
        ChildExit { reason, usage: last }
    }

    /// Sends TERM to all processes of the program, and KILL after its grace period.
    pub async fn stop(&self) {
        self.control.stop().await;
    }

    /// Sends KILL to all processes of the program.
    pub async fn kill(&self) {
        self.control.kill().await;
    }

    /// Returns a handle that can end the program.
    pub fn control(&self) -> ChildControl {
        self.control.clone()
    }
}

impl Drop for Child {
    /// Stops the program with its grace period. Does not wait: if the queue is full, a new task sends the request.
    /// Outside of a tokio runtime, the request is lost then.
    fn drop(&mut self) {
        let control = self.control.clone();
        if let Err(mpsc::error::TrySendError::Full(command)) = control.commands.try_send(control.command(false))
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move { drop(control.commands.send(command).await) });
        }
    }
}

impl ChildControl {
    /// Like [`Child::stop`].
    pub async fn stop(&self) {
        drop(self.commands.send(self.command(false)).await);
    }

    /// Like [`Child::kill`].
    pub async fn kill(&self) {
        drop(self.commands.send(self.command(true)).await);
    }

    fn command(&self, kill: bool) -> ClientCommand {
        ClientCommand::End { id: self.id, launch: self.launch, kill }
    }
}

/// The state of the task behind the handles. Only this task communicates with the guardian.
struct GuardianClient {
    options: GuardianOptions,
    /// Cloned into children. Weak, so that it does not keep the task alive.
    commands: mpsc::WeakSender<ClientCommand>,
    children: HashMap<Uuid, LaunchedChild>,
    /// The end of the current lease, for a guardian that replaces another.
    lease: Option<Instant>,
    /// The number of launches so far. It numbers the next one.
    launches: u64,
    /// The number of requests since the last report.
    unanswered: usize,
    /// The time of the last report, or of the first unanswered request after it.
    last_report: Instant,
}

/// A program that the guardian starts or runs.
struct LaunchedChild {
    /// The caller of [`Guardian::spawn`], until the program has started.
    started: Option<oneshot::Sender<Result<Child, Error>>>,
    events: mpsc::Sender<ChildEvent>,
    /// The receiver of the events, until the program has started.
    receiver: Option<mpsc::Receiver<ChildEvent>>,
    last_usage: ProcessUsage,
    /// The sessions in the last usage report, to find the processes if the guardian dies.
    sessions: Vec<i32>,
    exited: bool,
    launch: u64,
    grace: Duration,
}

impl GuardianClient {
    /// Handles commands and reports until the guardian is stopped or all handles are dropped. Kills a guardian that
    /// does not answer a launch or a renewal within `response_timeout`. After the death of a guardian, logs it, kills
    /// its processes and reports their end. Starts a replacement with the next launch; if that fails, logs it, and the
    /// launch fails with [`Error::Died`]. Without a guardian, other commands have no effect, except that the lease is
    /// remembered. A request to end an earlier launch of an execution is ignored.
    async fn run(mut self, connection: GuardianConnection, mut commands: mpsc::Receiver<ClientCommand>) {
        let mut connection = Some(connection);
        loop {
            let report = async {
                match connection.as_mut() {
                    Some(connection) => connection.next().await,
                    None => std::future::pending().await,
                }
            };
            let response_timeout = tokio::time::sleep_until(self.last_report + self.options.response_timeout);
            tokio::select! {
                report = report => match report {
                    Ok(report) => {
                        self.unanswered = 0;
                        self.last_report = Instant::now();
                            self.forward(report);
                        }
                        Err(error) => {
                        self.unanswered = 0;
                        tracing::error!(%error, "the guardian has died; all its programs are killed");
                        if let Some(dead) = connection.take() {
                            self.clean_up_after(dead).await;
                        }
                    }
                },
                // The guardian hangs. Kill it: its end is then handled like any other.
                () = response_timeout, if self.unanswered > 0 => {
                    self.unanswered = 0;
                    if let Some(connection) = connection.as_mut() {
                        drop(connection.process.start_kill());
                    }
                }
                command = commands.recv() => match command {
                    Some(ClientCommand::Launch { launch, stdio, started }) => {
                        if connection.is_none() {
                            let restarted = self.start_replacement().await;
                            let log = |error| tracing::error!(%error, "the guardian could not be restarted");
                            connection = restarted.map_err(log).ok();
                        }
                        match &connection {
                            Some(connection) => self.launch(connection, &launch, stdio, started).await,
                            None => drop(started.send(Err(Error::Died))),
                        }
                    }
                    Some(ClientCommand::End { id, launch, kill }) => {
                        if self.children.get(&id).is_some_and(|child| child.launch == launch) {
                            let request = if kill { GuardianRequest::Kill { id } } else { GuardianRequest::Stop { id } };
                            send(connection.as_ref(), &request).await;
                        }
                    }
                    Some(ClientCommand::Renew(lease)) => {
                        self.lease = Some(Instant::now() + lease);
                        if connection.is_some() {
                            self.expect_report();
                        }
                        send(connection.as_ref(), &lease_request(lease)).await;
                    }
                    Some(ClientCommand::Pid(reply)) => {
                        let _ = reply.send(connection.as_ref().and_then(|connection| connection.process.id()));
                    }
                    Some(ClientCommand::Protections(reply)) => {
                        let _ = reply.send(connection.as_ref().map(|connection| connection.protections));
                    }
                    Some(ClientCommand::Stop(stopped)) => {
                        commands.close();
                        if let Some(connection) = connection.take() {
                            self.finish(connection).await;
                        }
                        let _ = stopped.send(());
                        return;
                    }
                    // The socket closes, and the guardian ends all programs.
                    None => return,
                },
            }
        }
    }

    /// Sends a launch to the guardian. `started` receives the result when the guardian reports it. It receives an error
    /// at once if the launch is too large or cannot be encoded, or if a program with the same id still runs.
    async fn launch(
        &mut self,
        to: &GuardianConnection,
        launch: &Launch,
        stdio: Stdio,
        started: oneshot::Sender<Result<Child, Error>>,
    ) {
        let id = launch.id;
        let bytes = match protocol::encode(&GuardianRequest::Launch(Box::new(launch.clone()))) {
            Ok(bytes) if bytes.len() <= MAX_FRAME => bytes,
            Ok(bytes) => return drop(started.send(Err(Error::TooLarge(bytes.len())))),
            Err(error) => return drop(started.send(Err(Error::Start(error)))),
        };
        if self.children.contains_key(&id) {
            let message = format!("the execution {id} is still running");
            let error = super::LaunchError::new(super::LaunchErrorCause::Id, None, message);
            return drop(started.send(Err(Error::Refused(error))));
        }
        let (events, receiver) = mpsc::channel(EVENT_CAPACITY);
        self.launches += 1;
        let child = LaunchedChild {
            started: Some(started),
            events,
            receiver: Some(receiver),
            last_usage: ProcessUsage::default(),
            sessions: Vec::new(),
            exited: false,
            launch: self.launches,
            grace: launch.grace,
        };
        self.children.insert(id, child);
        self.expect_report();
        to.send(bytes, Some(stdio)).await;
    }

    /// Starts the response timeout, unless it already runs.
    fn expect_report(&mut self) {
        if self.unanswered == 0 {
            self.last_report = Instant::now();
        }
        self.unanswered += 1;
    }

    /// Forwards a report to the child that it belongs to. Reports of unknown children are ignored. A start completes
    /// the call of [`Guardian::spawn`]; if its caller no longer waits, the program is stopped. A refusal and the end of
    /// the tree remove the child. Usage is remembered, and dropped if the queue of the child is almost full.
    fn forward(&mut self, report: GuardianReport) {
        match report {
            GuardianReport::Hello | GuardianReport::Ready(_) => {}
            GuardianReport::Started { id, pid, confined } => {
                let Some(child) = self.children.get_mut(&id) else { return };
                let (Some(started), Some(events)) = (child.started.take(), child.receiver.take()) else { return };
                // All handles were dropped, so no caller waits.
                let Some(commands) = self.commands.upgrade() else { return };
                let control = ChildControl { id, launch: child.launch, commands };
                // If the caller does not wait any more, the child is dropped and thereby stopped.
                drop(started.send(Ok(Child { pid: pid.unsigned_abs(), confined, events, control })));
            }
            GuardianReport::Refused { id, error } => {
                if let Some(started) = self.children.remove(&id).and_then(|child| child.started) {
                    drop(started.send(Err(Error::Refused(error))));
                }
            }
            GuardianReport::Usage { id, usage, sessions } => {
                let Some(child) = self.children.get_mut(&id) else { return };
                (child.last_usage, child.sessions) = (usage, sessions);
                if child.events.capacity() > RESERVED_EVENTS {
                    drop(child.events.try_send(ChildEvent::Usage(usage)));
                }
            }
            GuardianReport::Exited { id, reason, usage } => {
                let Some(child) = self.children.get_mut(&id) else { return };
                (child.last_usage, child.exited) = (usage, true);
                drop(child.events.try_send(ChildEvent::Exited(ChildExit { reason, usage })));
            }
            GuardianReport::TreeEnded { id, usage } => {
                if let Some(child) = self.children.remove(&id) {
                    drop(child.events.try_send(ChildEvent::TreeEnded(usage)));
                }
            }
        }
    }

    /// Waits for the exit of a dead guardian, kills it after [`GUARDIAN_TIMEOUT`], and kills the processes that it has
    /// left, in its session and in the sessions of the last usage reports. Logs their number if there are any. Then
    /// reports the end of all its children: callers that still wait for a start get [`Error::Died`], and programs
    /// without an exit get the reason `GuardianDied`.
    async fn clean_up_after(&mut self, dead: GuardianConnection) {
        let marker = dead.marker.clone();
        // The session of the guardian, in which agents start, and the sessions that they have created.
        let own = dead.pid;
        let sessions = self.children.values().flat_map(|child| child.sessions.iter().copied()).chain([own]).collect();
        dead.close().await;
        let swept = tokio::task::spawn_blocking(move || {
            cgroup::remove_dead_guardians();
            sweep::sweep_after(&marker, &sessions)
        })
        .await;
        if let Ok(count @ 1..) = swept {
            tracing::warn!(count, "killed the processes of the dead guardian");
        }
        for (_, child) in self.children.drain() {
            if let Some(started) = child.started {
                drop(started.send(Err(Error::Died)));
                continue;
            }
            if !child.exited {
                drop(child.events.try_send(ChildEvent::Exited(ChildExit {
                    reason: ExitReason::GuardianDied,
                    usage: child.last_usage,
                })));
            }
            drop(child.events.try_send(ChildEvent::TreeEnded(ProcessUsage {
                rss: 0,
                processes: 0,
                ..child.last_usage
            })));
        }
    }

    /// Starts a guardian in place of a dead one, with the rest of the current lease. Fails if it cannot be started.
    async fn start_replacement(&self) -> io::Result<GuardianConnection> {
        let connection = GuardianConnection::open(&self.options).await?;
        if let Some(until) = self.lease {
            send(Some(&connection), &lease_request(until.saturating_duration_since(Instant::now()))).await;
        }
        Ok(connection)
    }

    /// Ends the guardian and forwards its reports until it closes the socket. If it takes longer than the longest grace
    /// period and [`GUARDIAN_TIMEOUT`], the guardian is killed. Afterwards, remaining processes are swept in any case.
    async fn finish(&mut self, mut connection: GuardianConnection) {
        send(Some(&connection), &GuardianRequest::Quit).await;
        let grace = self.children.values().map(|child| child.grace).max().unwrap_or_default();
        let last = async {
            while let Ok(report) = connection.next().await {
                self.forward(report);
            }
        };
        if tokio::time::timeout(grace.saturating_add(GUARDIAN_TIMEOUT), last).await.is_err() {
            drop(connection.process.start_kill());
        }
        self.clean_up_after(connection).await;
    }
}

/// Returns the request that renews the lease for this time.
fn lease_request(lease: Duration) -> GuardianRequest {
    GuardianRequest::Alive { for_ms: u64::try_from(lease.as_millis()).unwrap_or(u64::MAX / 4) }
}

/// Sends a request without descriptors. Does nothing without a connection.
async fn send(connection: Option<&GuardianConnection>, request: &GuardianRequest) {
    if let (Some(connection), Ok(bytes)) = (connection, protocol::encode(request)) {
        connection.send(bytes, None).await;
    }
}
