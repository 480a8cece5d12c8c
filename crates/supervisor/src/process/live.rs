//! A process that is spoken with again and again.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use model::UserId;
use model::agent::{Agent, InputPattern};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;
use uuid::Uuid;

use super::{Processes, failure_of, pass_on, resources, terminal};
use crate::Failure;
use crate::command::{self, Plan};
use crate::desk::Desk;
use crate::guardian::{Child, How, Sign, Stdio};
use crate::rpc::{Ask, Dialogue, End, Said};
use crate::runner::{Ended, Run, Runner};
use crate::streams::Name;

/// How long a process may greet before it is asked something.
const GREETING: Duration = Duration::from_secs(10);
/// Pieces of output that wait to be looked at.
const PIECES: usize = 16;
const CHUNK: usize = 32 << 10;
/// What a terminal has where nobody looks at it.
const ROWS: u16 = 50;
const COLUMNS: u16 = 200;

/// The conversation of one session.
pub(crate) struct Conversation {
    processes: Processes,
    id: Uuid,
    owner: UserId,
    agent: Arc<Agent>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    live: Option<Live>,
    /// Why there is nobody to speak with any more.
    broken: Option<String>,
}

/// A process and the ways to it.
struct Live {
    child: Child,
    plan: Plan,
    pieces: mpsc::Receiver<(Name, Vec<u8>)>,
    way: Way,
    /// How it ended, once that was told.
    exit: Option<How>,
}

enum Way {
    Lines(pipe::Sender),
    Rpc(Box<Dialogue>),
}

impl Conversation {
    pub(crate) fn new(processes: Processes, id: Uuid, owner: UserId, agent: Arc<Agent>) -> Self {
        Self { processes, id, owner, agent, state: Mutex::default() }
    }

    /// Starts the process, for the whole session.
    pub(crate) async fn start(&self) -> Result<(), Failure> {
        let live = self.open(&mut |_| {}).await?;
        self.state.lock().await.live = Some(live);
        Ok(())
    }

    /// Why it cannot go on, if so.
    pub(crate) async fn broken(&self) -> Option<String> {
        self.state.lock().await.broken.clone()
    }

    /// Waits for the process to end by itself.
    pub(crate) async fn ends(&self) -> String {
        let mut state = self.state.lock().await;
        let Some(live) = &mut state.live else { return std::future::pending().await };
        while live.exit.is_none() && live.sign().await.is_some() {}
        "the agent has ended".to_owned()
    }

    pub(crate) async fn close(&self) {
        let live = self.state.lock().await.live.take();
        if let Some(live) = live {
            end(live).await;
        }
    }

    async fn open(&self, on: &mut (dyn FnMut(Said) + Send)) -> Result<Live, Failure> {
        let run = command::Run {
            execution_id: self.id,
            input: String::new(),
            parameters: serde_json::Map::new(),
            working_directory: None,
            envs: std::collections::BTreeMap::new(),
            files: Vec::new(),
            started: jiff::Timestamp::UNIX_EPOCH,
        };
        let agent = self.agent.clone();
        let scratch = self.processes.scratch(self.id);
        let variables = self.processes.0.variables.clone();
        let plan = super::blocking(move || {
            let plan = Plan::make(&agent, &run, &scratch, |name| variables(name))?;
            command::prepare(&plan)?;
            Ok(plan)
        });
        let plan = plan.await?;
        let (sender, pieces) = mpsc::channel(PIECES);
        let broken = |error: std::io::Error| Failure::transient(format!("no pipes: {error}"));
        if self.agent.input_pattern == InputPattern::JsonRpc {
            let (stdio, pipes) = Stdio::piped().map_err(broken)?;
            let child = self.processes.start(self.id, &self.agent, &plan, stdio, false).await?;
            read(pipes.stderr, Name::Stderr, sender);
            let dialogue = Dialogue::open(&self.agent, &plan.cwd, pipes.stdout, pipes.stdin, on).await?;
            return Ok(Live { child, plan, pieces, way: Way::Rpc(Box::new(dialogue)), exit: None });
        }
        let (child, writer) = if self.agent.session.terminal {
            let (stdio, terminal) = Stdio::terminal(ROWS, COLUMNS).map_err(broken)?;
            let (writer, reader) = terminal::ends(terminal).map_err(broken)?;
            let child = self.processes.start(self.id, &self.agent, &plan, stdio, true).await?;
            read(reader, Name::Stdout, sender);
            (child, writer)
        } else {
            let (stdio, pipes) = Stdio::piped().map_err(broken)?;
            let child = self.processes.start(self.id, &self.agent, &plan, stdio, false).await?;
            read(pipes.stdout, Name::Stdout, sender.clone());
            read(pipes.stderr, Name::Stderr, sender);
            (child, pipes.stdin)
        };
        let mut live = Live { child, plan, pieces, way: Way::Lines(writer), exit: None };
        if self.agent.session.marker.is_none() {
            live.skip_greeting(self.agent.session.quiet.duration()).await;
        }
        Ok(live)
    }

    async fn exchange(&self, run: &Run, desk: &Desk) -> Ended {
        let mut state = self.state.lock().await;
        if state.live.is_none() {
            match self.open(&mut |said| pass_on(desk, said)).await {
                Ok(live) => state.live = Some(live),
                Err(failure) => return failure.into(),
            }
        }
        let Some(live) = &mut state.live else { return Failure::system("there is no process").into() };
        desk.keep_secret(live.plan.secrets.clone());
        desk.started(Some(live.child.pid));
        let ended = match live.attach(run).await {
            Ok(()) => live.exchange(run, desk, &self.agent).await,
            Err(failure) => failure.into(),
        };
        let over = ended.failure.is_some() || ended.stopped;
        if over || !self.agent.keep_alive {
            let live = state.live.take();
            if self.agent.keep_alive {
                let why = ended.failure.as_ref().map(|failure| failure.message.clone());
                state.broken = Some(why.unwrap_or_else(|| "its exchange was stopped".to_owned()));
            }
            if let Some(live) = live {
                end(live).await;
            }
        }
        ended
    }
}

impl Runner for Conversation {
    fn run<'a>(&'a self, run: &'a Run, desk: &'a Desk) -> BoxFuture<'a, Ended> {
        debug_assert_eq!(run.owner, self.owner, "a session has one owner");
        Box::pin(self.exchange(run, desk))
    }
}

impl Live {
    /// What a program says before it is asked anything is no answer.
    async fn skip_greeting(&mut self, quiet: Duration) {
        let end = Instant::now() + GREETING;
        while let Ok(Some(_)) = tokio::time::timeout_at(end.min(Instant::now() + quiet), self.pieces.recv()).await {}
    }

    /// Puts the files of a message where the process finds them.
    async fn attach(&mut self, run: &Run) -> Result<(), Failure> {
        let files = command::attached(run.request.message.as_ref());
        if files.is_empty() {
            return Ok(());
        }
        let scratch = self.plan.scratch.clone();
        super::blocking(move || command::attach(&scratch, &files)).await
    }

    async fn exchange(&mut self, run: &Run, desk: &Desk, agent: &Agent) -> Ended {
        match &mut self.way {
            Way::Rpc(dialogue) => {
                let parameters = run.request.parameters.clone();
                let ask = Ask { input: run.request.input.clone(), parameters, execution_id: run.id };
                let stopped = async {
                    desk.stopped().await;
                };
                let mut on = |said: Said| pass_on(desk, said);
                let answer = dialogue.prompt(&ask, &mut on, stopped).await;
                let usable = dialogue.is_usable();
                while let Ok((stream, bytes)) = self.pieces.try_recv() {
                    desk.output(stream, &bytes).await;
                }
                match answer.end {
                    End::Completed => Ended::default(),
                    // It said that it stopped: the conversation goes on.
                    End::Cancelled => Ended { stopped: true, failure: None, ..Ended::default() }.or_broken(usable),
                    End::Failed(failure) => failure.into(),
                }
            }
            Way::Lines(writer) => {
                let mut input = run.request.input.clone().into_bytes();
                if !input.ends_with(b"\n") {
                    input.push(b'\n');
                }
                if let Err(error) = writer.write_all(&input).await {
                    return Failure::agent(format!("the agent takes no more input: {error}")).into();
                }
                self.listen(desk, agent).await
            }
        }
    }

    /// Passes on what is said until the answer is complete.
    async fn listen(&mut self, desk: &Desk, agent: &Agent) -> Ended {
        let rules = &agent.session;
        let mut lines = rules.marker.as_ref().map(|marker| Lines { marker: marker.trim(), rest: Vec::new() });
        let mut heard = false;
        loop {
            let quiet = async {
                match heard && rules.marker.is_none() {
                    true => tokio::time::sleep(rules.quiet.duration()).await,
                    false => std::future::pending().await,
                }
            };
            tokio::select! {
                piece = self.pieces.recv() => match piece {
                    None => return self.gone(desk).await,
                    Some((Name::Stdout, bytes)) => {
                        heard = true;
                        let Some(lines) = &mut lines else {
                            desk.output(Name::Stdout, &bytes).await;
                            continue;
                        };
                        let (text, complete) = lines.push(&bytes);
                        desk.output(Name::Stdout, &text).await;
                        if complete {
                            return Ended::default();
                        }
                    }
                    Some((stream, bytes)) => desk.output(stream, &bytes).await,
                },
                () = quiet => return Ended::default(),
                sign = self.child.next() => match self.noted(sign) {
                    Some(Sign::Usage(usage)) => desk.usage(resources(usage)),
                    Some(Sign::Exited(_) | Sign::Gone(_)) => {}
                    None => return self.gone(desk).await,
                },
                _ = desk.stopped() => return Ended { stopped: true, ..Ended::default() },
            }
        }
    }

    async fn sign(&mut self) -> Option<Sign> {
        let sign = self.child.next().await;
        self.noted(sign)
    }

    /// Each sign comes once, and whoever hears it first may not be who asks how it ended.
    fn noted(&mut self, sign: Option<Sign>) -> Option<Sign> {
        if let Some(Sign::Exited(exit)) = &sign {
            self.exit = Some(exit.how);
        }
        sign
    }

    /// The process has ended in the middle of an answer.
    async fn gone(&mut self, desk: &Desk) -> Ended {
        while let Ok((stream, bytes)) = self.pieces.try_recv() {
            desk.output(stream, &bytes).await;
        }
        while self.sign().await.is_some() {}
        let (exit_code, failure) = failure_of(self.exit.unwrap_or(How::GuardianDied), desk);
        let failure = failure.unwrap_or_else(|| Failure::agent("the agent ended in the middle of the conversation"));
        Ended { exit_code, ..failure.into() }
    }
}

impl Ended {
    fn or_broken(self, usable: bool) -> Self {
        if usable { self } else { Failure::agent("the agent did not stop when it was asked to").into() }
    }
}

/// Looks for the line that ends an answer.
struct Lines<'a> {
    marker: &'a str,
    /// The beginning of a line that may become the marker.
    rest: Vec<u8>,
}

impl Lines<'_> {
    /// What belongs to the answer, and whether it is complete.
    fn push(&mut self, bytes: &[u8]) -> (Vec<u8>, bool) {
        self.rest.extend_from_slice(bytes);
        let mut text = Vec::new();
        while let Some(at) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=at).collect();
            if line.trim_ascii() == self.marker.as_bytes() {
                return (text, true);
            }
            text.extend_from_slice(&line);
        }
        let begun = self.rest.trim_ascii_start();
        if !self.marker.as_bytes().starts_with(begun.trim_ascii_end()) {
            text.append(&mut self.rest);
        }
        (text, false)
    }
}

/// Reads a pipe to its end, as fast as somebody listens.
fn read(mut from: pipe::Receiver, stream: Name, to: mpsc::Sender<(Name, Vec<u8>)>) {
    tokio::spawn(async move {
        let mut chunk = vec![0; CHUNK];
        while let Ok(length @ 1..) = from.read(&mut chunk).await {
            if to.send((stream, chunk[..length].to_vec())).await.is_err() {
                return;
            }
        }
    });
}

async fn end(mut live: Live) {
    live.child.stop().await;
    drop(live.way);
    live.child.wait().await;
    let _ = std::fs::remove_dir_all(&live.plan.scratch);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_found_however_it_comes() {
        let mut lines = Lines { marker: "<<END>>", rest: Vec::new() };
        assert_eq!(lines.push(b"one\ntw"), (b"one\ntw".to_vec(), false));
        assert_eq!(lines.push(b"o\n<<E"), (b"o\n".to_vec(), false));
        assert_eq!(lines.push(b"ND>"), (Vec::new(), false));
        assert_eq!(lines.push(b">\n"), (Vec::new(), true));
        let mut lines = Lines { marker: "OK", rest: Vec::new() };
        assert_eq!(lines.push(b"OKAY\nOK\r\n"), (b"OKAY\n".to_vec(), true));
    }
}
