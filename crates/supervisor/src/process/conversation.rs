//! A conversation with one agent process over several messages.

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

use super::{Processes, exit_code_and_failure, record_output, resources, terminal};
use crate::RunFailure;
use crate::api_grants::ApiGrant;
use crate::command::{self, CommandPlan};
use crate::guardian::{Child, ChildEvent, ExitReason, Stdio};
use crate::output_buffer::StreamName;
use crate::recorder::RunRecorder;
use crate::rpc::{AgentOutput, PromptEnd, RpcConversation, RpcPrompt};
use crate::runner::{AgentRun, RunResult, Runner};

/// The longest wait for the greeting of a process before the first message.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
/// The capacity of the queue of output chunks.
const QUEUE_CAPACITY: usize = 16;
/// The number of bytes in one read.
const CHUNK: usize = 32 << 10;
/// The size of the terminal. It is only visible to the agent.
const ROWS: u16 = 50;
const COLUMNS: u16 = 200;

/// The conversation of one session. It is the runner of the session's messages.
pub(crate) struct AgentConversation {
    processes: Processes,
    id: Uuid,
    owner: UserId,
    agent: Arc<Agent>,
    state: Mutex<ConversationState>,
}

#[derive(Default)]
struct ConversationState {
    process: Option<AgentProcess>,
    /// The reason why the conversation cannot continue.
    failure_reason: Option<String>,
}

/// A running process with its input and output.
struct AgentProcess {
    child: Child,
    plan: CommandPlan,
    _grant: Option<ApiGrant>,
    /// Output of the process. A JSON-RPC process has only its error output here.
    chunks: mpsc::Receiver<(StreamName, Vec<u8>)>,
    input: InputChannel,
    /// The exit of the process, once it was reported.
    exit: Option<ExitReason>,
}

/// The channel for messages to the process.
enum InputChannel {
    Lines(pipe::Sender),
    Rpc(Box<RpcConversation>),
}

impl AgentConversation {
    pub(crate) fn new(processes: Processes, id: Uuid, owner: UserId, agent: Arc<Agent>) -> Self {
        Self { processes, id, owner, agent, state: Mutex::default() }
    }

    /// Starts the process for the whole session. Fails if it cannot be started.
    pub(crate) async fn start(&self) -> Result<(), RunFailure> {
        let process = self.open(&mut |_| {}).await?;
        self.state.lock().await.process = Some(process);
        Ok(())
    }

    /// Returns the reason why the conversation cannot continue, if there is one.
    pub(crate) async fn failure_reason(&self) -> Option<String> {
        self.state.lock().await.failure_reason.clone()
    }

    /// Waits until the process exits by itself. Returns the reason for the end of the session. Never completes if no
    /// process runs.
    pub(crate) async fn wait_for_exit(&self) -> String {
        let mut state = self.state.lock().await;
        let Some(process) = &mut state.process else { return std::future::pending().await };
        while process.exit.is_none() && process.next_event().await.is_some() {}
        "the agent has ended".to_owned()
    }

    /// Ends the process and removes its scratch directory. Does nothing if no process runs.
    pub(crate) async fn close(&self) {
        let process = self.state.lock().await.process.take();
        if let Some(process) = process {
            end(process).await;
        }
    }

    /// Starts a process in the scratch directory of the session and prepares it for the first message. With JSON-RPC
    /// completes the handshake; `on_output` receives output meanwhile. Otherwise discards the greeting, unless a marker
    /// ends the answers. Does not react to a stop. Fails like [`CommandPlan::make`], [`command::prepare_files`],
    /// [`Processes::start`] and [`RpcConversation::open`], and with a transient failure if pipes or a terminal cannot
    /// be created.
    async fn open(&self, on_output: &mut (dyn FnMut(AgentOutput) + Send)) -> Result<AgentProcess, RunFailure> {
        let run = command::CommandRequest {
            execution_id: self.id,
            input: String::new(),
            parameters: serde_json::Map::new(),
            working_directory: None,
            envs: std::collections::BTreeMap::new(),
            files: Vec::new(),
            started_at: jiff::Timestamp::UNIX_EPOCH,
        };
        let agent = self.agent.clone();
        let scratch = self.processes.session_scratch(self.id);
        let variables = self.processes.0.variables.clone();
        let plan = super::blocking(move || {
            let plan = CommandPlan::make(&agent, &run, &scratch, |name| variables(name))?;
            command::prepare_files(&plan)?;
            Ok(plan)
        });
        let mut plan = plan.await?;
        let grant = self.processes.grant_api(self.id, self.owner, &self.agent, &mut plan);
        let (sender, chunks) = mpsc::channel(QUEUE_CAPACITY);
        let no_pipes = |error: std::io::Error| RunFailure::transient(format!("failed to create pipes: {error}"));
        if self.agent.input_pattern == InputPattern::JsonRpc {
            let (stdio, pipes) = Stdio::piped().map_err(no_pipes)?;
            let child = self.processes.start((self.id, None), &self.agent, &plan, stdio, false).await?;
            read(pipes.stderr, StreamName::Stderr, sender);
            let conversation =
                RpcConversation::open(&self.agent, &plan.cwd, pipes.stdout, pipes.stdin, on_output).await?;
            return Ok(AgentProcess {
                child,
                plan,
                _grant: grant,
                chunks,
                input: InputChannel::Rpc(Box::new(conversation)),
                exit: None,
            });
        }
        let (child, writer) = if self.agent.session.terminal {
            let (stdio, terminal) = Stdio::terminal(ROWS, COLUMNS).map_err(no_pipes)?;
            let (writer, reader) = terminal::split(terminal).map_err(no_pipes)?;
            let child = self.processes.start((self.id, None), &self.agent, &plan, stdio, true).await?;
            read(reader, StreamName::Stdout, sender);
            (child, writer)
        } else {
            let (stdio, pipes) = Stdio::piped().map_err(no_pipes)?;
            let child = self.processes.start((self.id, None), &self.agent, &plan, stdio, false).await?;
            read(pipes.stdout, StreamName::Stdout, sender.clone());
            read(pipes.stderr, StreamName::Stderr, sender);
            (child, pipes.stdin)
        };
        let mut process =
            AgentProcess { child, plan, _grant: grant, chunks, input: InputChannel::Lines(writer), exit: None };
        if self.agent.session.marker.is_none() {
            process.skip_greeting(self.agent.session.quiet.duration()).await;
        }
        Ok(process)
    }

    /// Sends one message to the process and records the answer. Starts the process if none runs; a failure to start is
    /// the result. Without `keep_alive`, ends the process after the message. With it, only a failure or a stop ends the
    /// process. [`AgentConversation::failure_reason`] then gives the reason, and the caller has to end the session: the
    /// next message would start a new process.
    async fn exchange(&self, run: &AgentRun, recorder: &RunRecorder) -> RunResult {
        let mut state = self.state.lock().await;
        if state.process.is_none() {
            match self.open(&mut |output| record_output(recorder, output)).await {
                Ok(process) => state.process = Some(process),
                Err(failure) => return failure.into(),
            }
        }
        let Some(process) = &mut state.process else {
            return RunFailure::system("the agent process is not available").into();
        };
        recorder.add_secrets(process.plan.secrets.clone());
        recorder.record_start(Some(process.child.pid));
        let ended = match process.attach(run).await {
            Ok(()) => process.exchange(run, recorder, &self.agent).await,
            Err(failure) => failure.into(),
        };
        let must_end = ended.failure.is_some() || ended.stopped;
        if must_end || !self.agent.keep_alive {
            let process = state.process.take();
            if self.agent.keep_alive {
                let reason = ended.failure.as_ref().map(|failure| failure.message.clone());
                state.failure_reason =
                    Some(reason.unwrap_or_else(|| "a message was stopped before its answer".to_owned()));
            }
            if let Some(process) = process {
                end(process).await;
            }
        }
        ended
    }
}

impl Runner for AgentConversation {
    fn run<'a>(&'a self, run: &'a AgentRun, recorder: &'a RunRecorder) -> BoxFuture<'a, RunResult> {
        debug_assert_eq!(run.owner, self.owner, "a session has one owner");
        Box::pin(self.exchange(run, recorder))
    }
}

impl AgentProcess {
    /// Discards output before the first message, because it is not an answer. Returns once no output has arrived for
    /// the time `quiet`, or after [`GREETING_TIMEOUT`].
    async fn skip_greeting(&mut self, quiet: Duration) {
        let end = Instant::now() + GREETING_TIMEOUT;
        while let Ok(Some(_)) = tokio::time::timeout_at(end.min(Instant::now() + quiet), self.chunks.recv()).await {}
    }

    /// Writes the attached files of a message to the scratch directory. Fails if a file cannot be written.
    async fn attach(&mut self, run: &AgentRun) -> Result<(), RunFailure> {
        let files = command::attached_files(run.request.message.as_ref());
        if files.is_empty() {
            return Ok(());
        }
        let scratch = self.plan.scratch.clone();
        super::blocking(move || command::write_attached_files(&scratch, &files)).await
    }

    /// Sends the message to the process and records the answer. Text gets a newline at its end if it has none, and the
    /// answer is read by [`AgentProcess::read_answer`]. Fails if the message cannot be written.
    ///
    /// With JSON-RPC, error output is recorded after the prompt. A cancelled prompt gives a stopped result, also if the
    /// agent cancelled it by itself. An agent that does not confirm a stop within its grace period has failed.
    async fn exchange(&mut self, run: &AgentRun, recorder: &RunRecorder, agent: &Agent) -> RunResult {
        match &mut self.input {
            InputChannel::Rpc(conversation) => {
                let parameters = run.request.parameters.clone();
                let ask = RpcPrompt { input: run.request.input.clone(), parameters, execution_id: run.id };
                let stopped = async {
                    recorder.stop_requested().await;
                };
                let mut on = |output: AgentOutput| record_output(recorder, output);
                let answer = conversation.prompt(&ask, &mut on, stopped).await;
                let usable = conversation.is_usable();
                while let Ok((stream, bytes)) = self.chunks.try_recv() {
                    recorder.output(stream, &bytes).await;
                }
                match answer.end {
                    PromptEnd::Completed => RunResult::default(),
                    // A stop that the agent has not confirmed in its grace period is a failure.
                    PromptEnd::Cancelled => {
                        RunResult { stopped: true, failure: None, ..RunResult::default() }.or_unresponsive(usable)
                    }
                    PromptEnd::Failed(failure) => failure.into(),
                }
            }
            InputChannel::Lines(writer) => {
                let mut input = run.request.input.clone().into_bytes();
                if !input.ends_with(b"\n") {
                    input.push(b'\n');
                }
                if let Err(error) = writer.write_all(&input).await {
                    return RunFailure::agent(format!("failed to send the message to the agent: {error}")).into();
                }
                self.read_answer(recorder, agent).await
            }
        }
    }

    /// Records output until the answer is complete. With a marker, this is the line that contains only the marker,
    /// which is not recorded. Otherwise it is complete once the process has been quiet for the configured time after
    /// its first standard output. Error output and usage events restart this time. Returns a failure if the process
    /// ends before, and a stopped result if a stop is requested. Has no time limit of its own.
    async fn read_answer(&mut self, recorder: &RunRecorder, agent: &Agent) -> RunResult {
        let rules = &agent.session;
        let mut scanner =
            rules.marker.as_ref().map(|marker| MarkerScanner { marker: marker.trim(), partial_line: Vec::new() });
        let mut has_output = false;
        loop {
            let quiet = async {
                match has_output && rules.marker.is_none() {
                    true => tokio::time::sleep(rules.quiet.duration()).await,
                    false => std::future::pending().await,
                }
            };
            tokio::select! {
                piece = self.chunks.recv() => match piece {
                    None => return self.process_ended(recorder).await,
                    Some((StreamName::Stdout, bytes)) => {
                        has_output = true;
                        let Some(scanner) = &mut scanner else {
                            recorder.output(StreamName::Stdout, &bytes).await;
                            continue;
                        };
                        let (text, complete) = scanner.push(&bytes);
                        recorder.output(StreamName::Stdout, &text).await;
                        if complete {
                            return RunResult::default();
                        }
                    }
                    Some((stream, bytes)) => recorder.output(stream, &bytes).await,
                },
                () = quiet => return RunResult::default(),
                event = self.child.next() => match self.note_exit(event) {
                    Some(ChildEvent::Usage(usage)) => recorder.record_usage(resources(usage)),
                    Some(ChildEvent::Exited(_) | ChildEvent::TreeEnded(_)) => {}
                    None => return self.process_ended(recorder).await,
                },
                _ = recorder.stop_requested() => return RunResult { stopped: true, ..RunResult::default() },
            }
        }
    }

    /// Waits for the next event of the process and remembers its exit. Returns `None` after the last event.
    async fn next_event(&mut self) -> Option<ChildEvent> {
        let event = self.child.next().await;
        self.note_exit(event)
    }

    /// Remembers the exit of the process, because each event is delivered only once.
    fn note_exit(&mut self, event: Option<ChildEvent>) -> Option<ChildEvent> {
        if let Some(ChildEvent::Exited(exit)) = &event {
            self.exit = Some(exit.reason);
        }
        event
    }

    /// Returns the result of a message if the process has ended before the answer was complete. First records the rest
    /// of the output and waits until no process of the agent is left. The result is a failure, also if the process
    /// exited with success.
    async fn process_ended(&mut self, recorder: &RunRecorder) -> RunResult {
        while let Ok((stream, bytes)) = self.chunks.try_recv() {
            recorder.output(stream, &bytes).await;
        }
        while self.next_event().await.is_some() {}
        let (exit_code, failure) = exit_code_and_failure(self.exit.unwrap_or(ExitReason::GuardianDied), recorder);
        let failure = failure.unwrap_or_else(|| RunFailure::agent("the agent exited before its answer was complete"));
        RunResult { exit_code, ..failure.into() }
    }
}

impl RunResult {
    /// Returns this result if the conversation is usable, and otherwise a failure.
    fn or_unresponsive(self, usable: bool) -> Self {
        if usable { self } else { RunFailure::agent("the agent did not stop within its grace period").into() }
    }
}

/// Finds the line that ends an answer.
struct MarkerScanner<'a> {
    marker: &'a str,
    /// The beginning of a line that may become the marker.
    partial_line: Vec<u8>,
}

impl MarkerScanner<'_> {
    /// Returns the bytes that belong to the answer, and true if the answer is complete. The marker is a line of its
    /// own; spaces around it are ignored, and it is not part of the answer. Holds back an unfinished line as long as it
    /// may become the marker. Text after the marker stays in the scanner.
    fn push(&mut self, bytes: &[u8]) -> (Vec<u8>, bool) {
        self.partial_line.extend_from_slice(bytes);
        let mut text = Vec::new();
        while let Some(at) = self.partial_line.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.partial_line.drain(..=at).collect();
            if line.trim_ascii() == self.marker.as_bytes() {
                return (text, true);
            }
            text.extend_from_slice(&line);
        }
        let start = self.partial_line.trim_ascii_start();
        if !self.marker.as_bytes().starts_with(start.trim_ascii_end()) {
            text.append(&mut self.partial_line);
        }
        (text, false)
    }
}

/// Reads a pipe to its end or to a read error in a new task, and sends its output to `to`. Waits while the queue is
/// full. Ends early if the receiver was dropped.
fn read(mut from: pipe::Receiver, stream: StreamName, to: mpsc::Sender<(StreamName, Vec<u8>)>) {
    tokio::spawn(async move {
        let mut chunk = vec![0; CHUNK];
        while let Ok(length @ 1..) = from.read(&mut chunk).await {
            if to.send((stream, chunk[..length].to_vec())).await.is_err() {
                return;
            }
        }
    });
}

/// Stops the process, waits until no process of the agent is left, and removes the scratch directory.
async fn end(mut process: AgentProcess) {
    process.child.stop().await;
    drop(process.input);
    process.child.wait().await;
    let _ = std::fs::remove_dir_all(&process.plan.scratch);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_found_across_chunks() {
        let mut scanner = MarkerScanner { marker: "<<END>>", partial_line: Vec::new() };
        assert_eq!(scanner.push(b"one\ntw"), (b"one\ntw".to_vec(), false));
        assert_eq!(scanner.push(b"o\n<<E"), (b"o\n".to_vec(), false));
        assert_eq!(scanner.push(b"ND>"), (Vec::new(), false));
        assert_eq!(scanner.push(b">\n"), (Vec::new(), true));
        let mut scanner = MarkerScanner { marker: "OK", partial_line: Vec::new() };
        assert_eq!(scanner.push(b"OKAY\nOK\r\n"), (b"OKAY\n".to_vec(), true));
    }
}
