//! The runner of command-line agents: the guardian starts a process for each run, and its output is recorded.

mod confinement;
pub(crate) mod conversation;
mod exit;
mod flood;
mod os_user;
mod pump;
mod scratch;
mod terminal;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use model::UserId;
use model::agent::{Agent, OutputPattern};
use model::execution::{ErrorCategory, ResourceUsage};
use tokio::io::AsyncWriteExt;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::api_grants::{ApiGrant, ApiGrants};
use crate::command::{self, CommandPlan, FilesBefore, InputDelivery};
use crate::guardian::{self, AgentPipes, Child, ChildEvent, Guardian, Isolation, Launch, Stdio};
use crate::lease::ProcessGuard;
use crate::output_buffer::StreamName;
use crate::recorder::RunRecorder;
use crate::rpc::{AgentOutput, PromptEnd, RpcConversation, RpcPrompt};
use crate::runner::{AgentRun, RunResult, Runner};
use crate::{HeadTailBuffer, RunFailure, VariableLookup, rpc};
use scratch::Scratch;

pub use confinement::network_policy;
pub(crate) use exit::exit_code_and_failure;
pub(crate) use pump::pump;

/// The longest time for which the pipes may stay open after the last process of the agent has ended. Another process
/// holds them then.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// Starts and ends agent processes. Cloning is cheap. The guardian is started with the first agent.
#[derive(Clone)]
pub(crate) struct Processes(Arc<ProcessesShared>);

struct ProcessesShared {
    options: guardian::GuardianOptions,
    guardian: OnceCell<Guardian>,
    /// The time and the length of the last lease renewal, for a guardian that is started later.
    lease: std::sync::Mutex<Option<(Instant, Duration)>>,
    data_dir: PathBuf,
    /// Files and directories that agents do not see, besides the data directory and the secrets of agents.
    hidden: std::sync::RwLock<Vec<PathBuf>>,
    scratch: Scratch,
    variables: VariableLookup,
    api_grants: ApiGrants,
}

impl Processes {
    pub(crate) fn new(options: guardian::GuardianOptions, data_dir: PathBuf, variables: VariableLookup) -> Self {
        let guardian = OnceCell::new();
        let lease = std::sync::Mutex::default();
        let hidden = std::sync::RwLock::default();
        // The guardian has another working directory.
        let data_dir = std::path::absolute(&data_dir).unwrap_or(data_dir);
        let scratch = Scratch::new(data_dir.join("runs"));
        let api_grants = ApiGrants::default();
        Self(Arc::new(ProcessesShared { options, guardian, lease, data_dir, hidden, scratch, variables, api_grants }))
    }

    /// Returns the tokens of runs that may use the server.
    pub(crate) fn api_grants(&self) -> &ApiGrants {
        &self.0.api_grants
    }

    /// Gives a run access to the server, if its agent has `api_access` and this process has a server.
    fn grant_api(&self, id: uuid::Uuid, owner: UserId, agent: &Agent, plan: &mut CommandPlan) -> Option<ApiGrant> {
        if agent.api_access { self.0.api_grants.grant(id, owner, plan) } else { None }
    }

    /// Replaces the files and directories that agents do not see. The data directory is always hidden.
    pub(crate) fn set_hidden(&self, paths: Vec<PathBuf>) {
        let paths = paths.into_iter().map(|path| std::path::absolute(&path).unwrap_or(path)).collect();
        *self.0.hidden.write().unwrap_or_else(std::sync::PoisonError::into_inner) = paths;
    }

    /// Returns the protections that the guardian enforces. Starts it if necessary. Fails if it cannot be started.
    pub(crate) async fn protections(&self) -> Result<guardian::Protections, RunFailure> {
        let found = self.guardian().await?.protections().await;
        found.ok_or_else(|| RunFailure::system("the guardian does not answer"))
    }

    /// Ends all processes and the guardian, and returns when no process is left. Then removes the unused scratch
    /// directories.
    pub(crate) async fn stop(&self) {
        if let Some(guardian) = self.0.guardian.get() {
            guardian.stop().await;
        }
        self.0.scratch.clear();
    }

    /// Returns the guardian. Starts it if necessary, with the rest of the current lease. Fails with a system failure if
    /// it cannot be started; the next call tries again.
    async fn guardian(&self) -> Result<&Guardian, RunFailure> {
        let start = || async {
            let guardian = Guardian::start(self.0.options.clone()).await?;
            let lease = *crate::lock(&self.0.lease);
            if let Some((at, lease)) = lease {
                guardian.renew(lease.saturating_sub(at.elapsed())).await;
            }
            Ok::<_, guardian::Error>(guardian)
        };
        self.0.guardian.get_or_try_init(start).await.map_err(|error| RunFailure::system(error.to_string()))
    }

    /// Removes the scratch directories of runs of an earlier process. Those of sessions stay. Must be called before the
    /// first run.
    pub(crate) fn sweep_scratch(&self) {
        self.0.scratch.sweep();
    }

    /// Returns the scratch directory of a session.
    fn session_scratch(&self, id: uuid::Uuid) -> PathBuf {
        self.0.data_dir.join("runs").join(id.to_string())
    }

    pub(crate) fn data_dir(&self) -> &Path {
        &self.0.data_dir
    }

    /// Returns the directory of the artifacts of an execution.
    pub(crate) fn artifacts_dir(&self, id: uuid::Uuid) -> PathBuf {
        self.0.data_dir.join("artifacts").join(id.to_string())
    }

    /// Returns the ids of the sessions with a scratch directory.
    pub(crate) fn scratch_ids(&self) -> Vec<uuid::Uuid> {
        ids_in(&self.0.data_dir.join("runs"))
    }

    pub(crate) fn remove_scratch(&self, id: uuid::Uuid) {
        let _ = std::fs::remove_dir_all(self.session_scratch(id));
    }

    /// Returns the ids of the executions with artifacts.
    pub(crate) fn artifact_ids(&self) -> Vec<uuid::Uuid> {
        ids_in(&self.0.data_dir.join("artifacts"))
    }

    pub(crate) fn remove_artifacts(&self, id: uuid::Uuid) {
        let _ = std::fs::remove_dir_all(self.artifacts_dir(id));
    }

    /// Makes the plan of a run and writes its files. Also returns the state of the output file before the run. Fails like [`CommandPlan::make`] and [`command::prepare_files`].
    async fn plan(&self, run: &AgentRun, scratch: &Path) -> Result<(CommandPlan, FilesBefore), RunFailure> {
        let request = command::CommandRequest {
            execution_id: run.id,
            input: run.request.input.clone(),
            parameters: run.request.parameters.clone(),
            working_directory: run.request.working_directory.clone(),
            envs: run.request.envs.clone(),
            files: command::attached_files(run.request.message.as_ref()),
            started_at: run.started_at,
        };
        let agent = run.agent.clone();
        let scratch = scratch.to_owned();
        let variables = self.0.variables.clone();
        let planned = blocking(move || {
            let mut plan = CommandPlan::make(&agent, &request, &scratch, |name| variables(name))?;
            let before = command::prepare_files(&plan)?;
            if let Some(user) = &agent.run_as {
                os_user::hand_over(user, &agent, &mut plan)?;
            }
            Ok((plan, before))
        });
        planned.await
    }

    /// Starts the program of a plan with the grace period, the limits and the sandbox of the agent. Runs with the same
    /// `user` may use one mount namespace, one after the other. `terminal` means that `stdio` is a pseudo terminal. Fails if the program cannot be started: transient if the machine lacks
    /// resources or the lease has expired, permanent if the launch is wrong or too large, and with a system failure if
    /// the guardian is not available.
    pub(crate) async fn start(
        &self,
        (id, user): (uuid::Uuid, Option<UserId>),
        agent: &Agent,
        plan: &CommandPlan,
        stdio: Stdio,
        terminal: bool,
    ) -> Result<Child, RunFailure> {
        let mut launch = Launch::new(id, &plan.program, &plan.cwd);
        launch.args = plan.args.iter().map(Into::into).collect();
        launch.env = plan.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        launch.terminal = terminal;
        launch.grace = agent.grace.duration();
        launch.limits = confinement::process_limits(agent);
        launch.tree_limits = confinement::tree_limits(agent);
        launch.sandbox = confinement::sandbox(agent, plan);
        launch.isolation = Isolation { user, ..self.isolation(agent, plan)? };
        let child = self.guardian().await?.spawn(launch, stdio).await;
        child.map_err(|error| match error {
            guardian::Error::Refused(error) if error.is_transient() => RunFailure::transient(error.message),
            guardian::Error::Refused(error) => RunFailure::permanent(error.message),
            guardian::Error::TooLarge(_) => RunFailure::permanent(error.to_string()),
            guardian::Error::Died | guardian::Error::Start(_) | guardian::Error::Stopped => {
                RunFailure::system(error.to_string())
            }
        })
    }

    /// Runs one attempt in a scratch directory and collects its output file and artifacts, also after a failure or a
    /// stop. Moves the artifacts to their permanent directory. Fails if the run cannot be planned, the pipes cannot be
    /// created, or the program cannot be started. A later failure is part of the result: of the exit, of the response,
    /// or of the files. Only the first one is reported. A stop that was already requested gives a stopped result, and
    /// nothing is started.
    async fn run_in(&self, run: &AgentRun, recorder: &RunRecorder, scratch: &Path) -> Result<RunResult, RunFailure> {
        let (mut plan, before) = self.plan(run, scratch).await?;
        let _grant = self.grant_api(run.id, run.owner, &run.agent, &mut plan);
        recorder.add_secrets(plan.secrets.clone());
        if recorder.stop_reason().is_some() {
            return Ok(RunResult { stopped: true, ..RunResult::default() });
        }
        let (stdio, pipes) =
            Stdio::piped().map_err(|error| RunFailure::transient(format!("failed to create pipes: {error}")))?;
        let child = self.start((run.id, Some(run.owner)), &run.agent, &plan, stdio, false).await?;
        recorder.record_start(child.known_pid());
        let mut captured = CapturedOutput::default();
        let mut ended = match plan.input {
            InputDelivery::JsonRpc => run_json_rpc(run, &plan, recorder, child, pipes).await,
            InputDelivery::Stdin(ref input) => {
                run_plain(run, recorder, child, pipes, input.clone().into_bytes(), &mut captured).await
            }
            InputDelivery::File | InputDelivery::Argument => {
                run_plain(run, recorder, child, pipes, Vec::new(), &mut captured).await
            }
        };
        if ended.failure.is_none() && !ended.stopped {
            ended.failure = record_response(run, recorder, captured).await.err();
        }
        if !command::has_files_to_collect(&plan) {
            return Ok(ended);
        }
        let artifacts_dir = self.artifacts_dir(run.id);
        let limit = usize::try_from(run.agent.max_output_size).unwrap_or(usize::MAX);
        let collected = blocking(move || {
            let collected = command::collect_files(&plan, &before, limit);
            if collected.as_ref().is_ok_and(|collected| !collected.artifacts.is_empty()) {
                move_artifacts(&plan.output_dir, &artifacts_dir)
                    .map_err(|error| RunFailure::system(format!("failed to store the artifacts: {error}")))?;
            }
            collected
        });
        match collected.await {
            Ok(collected) => {
                ended.artifacts = collected.artifacts;
                if let Some(output) = collected.output {
                    recorder.output_excerpt(StreamName::File, &output.head, output.missing, &output.tail).await;
                }
            }
            // The first failure is reported.
            Err(failure) => drop(ended.failure.get_or_insert(failure)),
        }
        Ok(ended)
    }
}

impl Runner for Processes {
    /// Runs the attempt in a scratch directory of its own. Reuses the directory afterwards if the run left it
    /// unchanged, and otherwise removes it. A failure to start becomes the failure of the result.
    fn run<'a>(&'a self, run: &'a AgentRun, recorder: &'a RunRecorder) -> BoxFuture<'a, RunResult> {
        Box::pin(async move {
            let scratch = self.0.scratch.take();
            let ended = self.run_in(run, recorder, &scratch).await;
            if let Some(used) = self.0.scratch.release(scratch) {
                let _ = blocking(move || Ok(std::fs::remove_dir_all(used))).await;
            }
            ended.unwrap_or_else(RunResult::from)
        })
    }
}

impl ProcessGuard for Processes {
    fn renew(&self, lease: Duration) {
        *crate::lock(&self.0.lease) = Some((Instant::now(), lease));
        if let Some(guardian) = self.0.guardian.get().cloned() {
            tokio::spawn(async move { guardian.renew(lease).await });
        }
    }
}

/// Output that is parsed after the agent has ended.
#[derive(Default)]
struct CapturedOutput {
    /// The standard output, if it contains a JSON-RPC response.
    stdout: Option<HeadTailBuffer>,
}

/// Sends the input to the agent, records its output, and waits for its end. Closes the standard input after the input.
/// A failed write of the input is ignored. A stop ends the agent. If the output pattern is JSON-RPC, also copies the
/// standard output to `captured`, at most `max_output_size` bytes of it.
async fn run_plain(
    run: &AgentRun,
    recorder: &RunRecorder,
    child: Child,
    pipes: AgentPipes,
    input: Vec<u8>,
    captured: &mut CapturedOutput,
) -> RunResult {
    let AgentPipes { mut stdin, stdout, stderr } = pipes;
    if run.agent.output_pattern == OutputPattern::JsonRpc {
        captured.stdout = Some(HeadTailBuffer::new(usize::try_from(run.agent.max_output_size).unwrap_or(usize::MAX)));
    }
    let feed = async {
        // An agent that does not read its input has ended, or reports a failure itself.
        let _ = stdin.write_all(&input).await;
        drop(stdin);
    };
    let out = pump(stdout, recorder, StreamName::Stdout, captured.stdout.as_mut());
    let err = pump(stderr, recorder, StreamName::Stderr, None);
    wait_for_end(recorder, child, true, async {
        tokio::join!(feed, out, err);
    })
    .await
}

/// Completes the handshake, sends one JSON-RPC prompt to the agent, records the answer, then ends the agent. On a stop
/// during the prompt, first sends a cancellation and waits for the answer. A prompt that was completed counts as a
/// success, even if a stop was requested, and whatever the exit code. Any other result of a stopped run is stopped,
/// without a failure. Fails if the handshake or the prompt fails, or if the agent cancels the prompt by itself. If the
/// output pattern is JSON-RPC, a final response with a text is also recorded as the output file.
async fn run_json_rpc(
    run: &AgentRun,
    plan: &CommandPlan,
    recorder: &RunRecorder,
    child: Child,
    pipes: AgentPipes,
) -> RunResult {
    let AgentPipes { stdin, stdout, stderr } = pipes;
    let control = child.control();
    let mut failure = None;
    let mut completed = false;
    let prompting = async {
        let mut on_output = |output: AgentOutput| record_output(recorder, output);
        let opened = tokio::select! {
            opened = RpcConversation::open(&run.agent, &plan.cwd, stdout, stdin, &mut on_output) => Some(opened),
            _ = recorder.stop_requested() => None,
        };
        match opened {
            None => {}
            Some(Err(error)) => failure = Some(error),
            Some(Ok(mut conversation)) => {
                let parameters = run.request.parameters.clone();
                let ask = RpcPrompt { input: run.request.input.clone(), parameters, execution_id: run.id };
                let stopped = async {
                    recorder.stop_requested().await;
                };
                let answer = conversation.prompt(&ask, &mut on_output, stopped).await;
                match answer.end {
                    PromptEnd::Completed
                        if answer.replaces_output && run.agent.output_pattern == OutputPattern::JsonRpc =>
                    {
                        recorder.output_excerpt(StreamName::File, answer.output.text.as_bytes(), 0, &[]).await;
                        completed = true;
                    }
                    PromptEnd::Completed => completed = true,
                    PromptEnd::Cancelled if recorder.stop_reason().is_some() => {}
                    PromptEnd::Cancelled => {
                        failure = Some(RunFailure::agent("the agent cancelled the request by itself"))
                    }
                    PromptEnd::Failed(error) => failure = Some(error),
                }
            }
        }
        // The answer is complete. Most agents now wait for the next prompt.
        control.stop().await;
    };
    // Publish words before their line is complete.
    let publishing = async {
        loop {
            tokio::time::sleep(pump::PARTIAL_LINE_DELAY).await;
            recorder.release_partial_line(StreamName::Stdout);
        }
    };
    let prompting = async {
        tokio::select! {
            () = prompting => {}
            () = publishing => {}
        }
    };
    let err = pump(stderr, recorder, StreamName::Stderr, None);
    let ended = wait_for_end(recorder, child, false, async {
        tokio::join!(prompting, err);
    })
    .await;
    let stopped = recorder.stop_reason().is_some() && !completed;
    RunResult { stopped, failure: failure.filter(|_| !stopped).map(|failure| with_exit(failure, &ended)), ..ended }
}

/// Returns the failure with the message of the exit, if the agent failed by itself. A success or a system failure, for
/// example after a stop, gives no further information.
fn with_exit(failure: RunFailure, ended: &RunResult) -> RunFailure {
    match &ended.failure {
        Some(exit) if exit.category != ErrorCategory::SystemError => {
            RunFailure { message: format!("{}; {}", failure.message, exit.message), ..failure }
        }
        _ => failure,
    }
}

/// Records the output of a JSON-RPC agent without waiting: its answer as standard output, everything else as error
/// output with a newline at its end.
pub(crate) fn record_output(recorder: &RunRecorder, output: AgentOutput) {
    match output {
        AgentOutput::Output(text) => recorder.output_now(StreamName::Stdout, text.as_bytes()),
        AgentOutput::Thought(text) | AgentOutput::Progress(text) | AgentOutput::Plain(text) => {
            let line = if text.ends_with('\n') { text } else { text + "\n" };
            recorder.output_now(StreamName::Stderr, line.as_bytes());
        }
    }
}

/// Waits for the end of a process and of `communication`, which uses its pipes. Records its usage. On a stop, ends the
/// process if `stop_directly` is set. Otherwise `communication` has to end it.
///
/// After the last process has ended, output is read until the pipes are closed or no more arrives for
/// [`DRAIN_TIMEOUT`]. The result is stopped if a stop was requested, unless the agent exited with success before it. A
/// stopped result has no failure. Without a report of the exit, the failure is that the guardian died.
async fn wait_for_end(
    recorder: &RunRecorder,
    mut child: Child,
    stop_directly: bool,
    communication: impl Future<Output = ()>,
) -> RunResult {
    let control = child.control();
    let mut communication = std::pin::pin!(communication);
    let started = Instant::now();
    let mut is_drained = false;
    let mut stopped = false;
    let mut by_itself = false;
    let mut exit = None;
    let mut used = None;
    loop {
        tokio::select! {
            () = &mut communication, if !is_drained => is_drained = true,
            event = child.next() => match event {
                Some(ChildEvent::Usage(usage)) => {
                    recorder.record_usage(with_cpu_percent(resources(usage), started.elapsed()));
                }
                Some(ChildEvent::Exited(ended)) => {
                    used = Some(ended.usage);
                    exit = Some(ended.reason);
                    by_itself = !stopped;
                }
                Some(ChildEvent::TreeEnded(usage)) => used = Some(usage),
                None => break,
            },
            _ = recorder.stop_requested(), if !stopped => {
                stopped = true;
                if stop_directly {
                    control.stop().await;
                }
            }
        }
    }
    // Read the rest of the pipes without a time limit, as long as output arrives.
    while !is_drained {
        let received = recorder.received_bytes();
        let in_time = tokio::time::timeout(DRAIN_TIMEOUT, &mut communication).await.is_ok();
        is_drained = in_time
            || recorder.received_bytes() == received && !recorder.is_buffer_full() && !recorder.has_slow_reader();
    }
    let reason = exit.unwrap_or(guardian::ExitReason::GuardianDied);
    let (exit_code, failure) = exit_code_and_failure(reason, recorder);
    // An agent that exited with success after the stop has not completed its task.
    let stopped = stopped && !(by_itself && failure.is_none());
    RunResult {
        stopped,
        failure: failure.filter(|_| !stopped),
        exit_code,
        usage: used.map(|used| with_cpu_percent(resources(used), started.elapsed())),
        ..RunResult::default()
    }
}

/// Records the JSON-RPC response in the standard output as the output file. Does nothing if the output pattern is not
/// JSON-RPC or nothing was captured. Fails if the output contains no response, or if the response is an error.
async fn record_response(run: &AgentRun, recorder: &RunRecorder, captured: CapturedOutput) -> Result<(), RunFailure> {
    let Some(stdout) = captured.stdout.filter(|_| run.agent.output_pattern == OutputPattern::JsonRpc) else {
        return Ok(());
    };
    let text = rpc::response(&stdout.finish().text)?;
    recorder.output_excerpt(StreamName::File, text.as_bytes(), 0, &[]).await;
    Ok(())
}

/// Converts the usage to megabytes, rounded up, and to milliseconds. The CPU percentage is 0.
pub(crate) fn resources(usage: guardian::ProcessUsage) -> ResourceUsage {
    const MB: u64 = 1 << 20;
    ResourceUsage {
        cpu_percent: 0.0,
        memory_mb: usage.rss.div_ceil(MB),
        peak_memory_mb: usage.peak_rss.div_ceil(MB),
        disk_read_mb: usage.read_bytes.div_ceil(MB),
        disk_write_mb: usage.write_bytes.div_ceil(MB),
        cpu_ms: u64::try_from(usage.cpu.as_millis()).unwrap_or(u64::MAX),
    }
}

/// Returns the usage with the CPU percentage over the elapsed time, rounded to one decimal. It exceeds 100 if several
/// processors were used.
fn with_cpu_percent(usage: ResourceUsage, elapsed: Duration) -> ResourceUsage {
    let millis = elapsed.as_secs_f64() * 1000.0;
    let cpu_percent = if millis > 0.0 { (usage.cpu_ms as f64 / millis * 1000.0).round() / 10.0 } else { 0.0 };
    ResourceUsage { cpu_percent, ..usage }
}

/// Returns the ids that are names of entries of a directory. Other entries are ignored. Returns none if the directory
/// cannot be read.
fn ids_in(dir: &Path) -> Vec<uuid::Uuid> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| uuid::Uuid::try_parse(entry.file_name().to_str()?).ok()).collect()
}

/// Moves the artifacts of a run to their permanent directory. Removes those of an earlier attempt first. Fails if the
/// directory cannot be moved.
fn move_artifacts(from: &Path, to: &Path) -> std::io::Result<()> {
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let _ = std::fs::remove_dir_all(to);
    std::fs::rename(from, to)
}

/// Runs work that accesses the disk on a blocking thread. Fails if the work fails or panics.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RunFailure> + Send + 'static,
) -> Result<T, RunFailure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(RunFailure::system(error.to_string())),
    }
}
