//! The runner of command-line agents: a process for each run, started by the guardian, with everything it says passed on.

mod exit;
mod flood;
pub(crate) mod live;
mod pump;
mod scratch;
mod terminal;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use model::agent::{AccessType, Agent, OutputPattern};
use model::execution::{Category, ResourceUsage};
use tokio::io::AsyncWriteExt;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::command::{self, Before, Input, Plan};
use crate::desk::Desk;
use crate::guardian::{self, Child, Guardian, Launch, Limits, Pipes, Sandbox, Sign, Stdio};
use crate::lease::Guard;
use crate::rpc::{Ask, Dialogue, End, Said};
use crate::runner::{Ended, Run, Runner};
use crate::streams::Name;
use crate::{Clip, Failure, Variables, rpc};
use scratch::Scratch;

pub(crate) use exit::failure_of;
pub(crate) use pump::pump;

/// How long pipes may stay open once nothing of the agent is left: somebody else holds them then.
const LINGER: Duration = Duration::from_millis(500);

/// A cheap handle. The guardian is started with the first agent.
#[derive(Clone)]
pub(crate) struct Processes(Arc<Inner>);

struct Inner {
    options: guardian::Options,
    guardian: OnceCell<Guardian>,
    /// The lease that the guardian is to be promised from its start.
    lease: std::sync::Mutex<Option<(Instant, Duration)>>,
    data_dir: PathBuf,
    scratch: Scratch,
    variables: Variables,
}

impl Processes {
    pub(crate) fn new(options: guardian::Options, data_dir: PathBuf, variables: Variables) -> Self {
        let guardian = OnceCell::new();
        let lease = std::sync::Mutex::default();
        let scratch = Scratch::new(data_dir.join("runs"));
        Self(Arc::new(Inner { options, guardian, lease, data_dir, scratch, variables }))
    }

    /// Ends everything that was started, and comes back when nothing is left.
    pub(crate) async fn stop(&self) {
        if let Some(guardian) = self.0.guardian.get() {
            guardian.stop().await;
        }
        self.0.scratch.clear();
    }

    async fn guardian(&self) -> Result<&Guardian, Failure> {
        let start = || async {
            let guardian = Guardian::start(self.0.options.clone()).await?;
            let lease = *crate::lock(&self.0.lease);
            if let Some((at, lease)) = lease {
                guardian.renew(lease.saturating_sub(at.elapsed())).await;
            }
            Ok::<_, guardian::Error>(guardian)
        };
        self.0.guardian.get_or_try_init(start).await.map_err(|error| Failure::system(error.to_string()))
    }

    /// Removes what runs of an earlier node left. To be called before the first one.
    pub(crate) fn sweep_scratch(&self) {
        self.0.scratch.sweep();
    }

    /// Where a session works.
    fn scratch(&self, id: uuid::Uuid) -> PathBuf {
        self.0.data_dir.join("runs").join(id.to_string())
    }

    pub(crate) fn data_dir(&self) -> &Path {
        &self.0.data_dir
    }

    /// What a run left for good.
    pub(crate) fn artifacts(&self, id: uuid::Uuid) -> PathBuf {
        self.0.data_dir.join("artifacts").join(id.to_string())
    }

    /// Sessions whose directories are there.
    pub(crate) fn left_scratch(&self) -> Vec<uuid::Uuid> {
        ids_in(&self.0.data_dir.join("runs"))
    }

    pub(crate) fn remove_scratch(&self, id: uuid::Uuid) {
        let _ = std::fs::remove_dir_all(self.scratch(id));
    }

    /// Runs whose artifacts are there.
    pub(crate) fn kept_artifacts(&self) -> Vec<uuid::Uuid> {
        ids_in(&self.0.data_dir.join("artifacts"))
    }

    pub(crate) fn remove_artifacts(&self, id: uuid::Uuid) {
        let _ = std::fs::remove_dir_all(self.artifacts(id));
    }

    /// Makes the plan of a run and what it needs on disk.
    async fn plan(&self, run: &Run, desk: &Desk, scratch: &Path) -> Result<(Plan, Before), Failure> {
        let order = command::Run {
            execution_id: run.id,
            input: run.request.input.clone(),
            parameters: run.request.parameters.clone(),
            working_directory: run.request.working_directory.clone(),
            envs: run.request.envs.clone(),
            files: command::attached(run.request.message.as_ref()),
            started: run.started,
        };
        let agent = run.agent.clone();
        let scratch = scratch.to_owned();
        let variables = self.0.variables.clone();
        let planned = blocking(move || {
            let plan = Plan::make(&agent, &order, &scratch, |name| variables(name))?;
            let before = command::prepare(&plan)?;
            Ok((plan, before))
        });
        let (plan, before): (Plan, Before) = planned.await?;
        desk.keep_secret(plan.secrets.clone());
        Ok((plan, before))
    }

    /// Starts the program of a plan.
    pub(crate) async fn start(
        &self,
        id: uuid::Uuid,
        agent: &Agent,
        plan: &Plan,
        stdio: Stdio,
        terminal: bool,
    ) -> Result<Child, Failure> {
        let mut launch = Launch::new(id, &plan.program, &plan.cwd);
        launch.args = plan.args.iter().map(Into::into).collect();
        launch.env = plan.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        launch.terminal = terminal;
        launch.grace = agent.grace.duration();
        launch.limits = limits(agent);
        launch.sandbox = sandbox(agent, plan);
        let child = self.guardian().await?.spawn(launch, stdio).await;
        child.map_err(|error| match error {
            guardian::Error::Refused(fault) if fault.is_transient() => Failure::transient(fault.message),
            guardian::Error::Refused(fault) => Failure::permanent(fault.message),
            guardian::Error::TooLarge(_) => Failure::permanent(error.to_string()),
            guardian::Error::Died | guardian::Error::Start(_) | guardian::Error::Stopped => {
                Failure::system(error.to_string())
            }
        })
    }

    async fn carry_out(&self, run: &Run, desk: &Desk, scratch: &Path) -> Result<Ended, Failure> {
        let (plan, before) = self.plan(run, desk, scratch).await?;
        if desk.is_stopped().is_some() {
            return Ok(Ended { stopped: true, ..Ended::default() });
        }
        let (stdio, pipes) = Stdio::piped().map_err(|error| Failure::transient(format!("no pipes: {error}")))?;
        let child = self.start(run.id, &run.agent, &plan, stdio, false).await?;
        desk.started(Some(child.pid));
        let mut said = Conversation::default();
        let mut ended = match plan.input {
            Input::JsonRpc => speak(run, &plan, desk, child, pipes).await,
            Input::Stdin(ref input) => listen(run, desk, child, pipes, input.clone().into_bytes(), &mut said).await,
            Input::File | Input::Argument => listen(run, desk, child, pipes, Vec::new(), &mut said).await,
        };
        if ended.failure.is_none() && !ended.stopped {
            ended.failure = answer(run, desk, said).await.err();
        }
        if !command::left_files(&plan) {
            return Ok(ended);
        }
        let kept = self.artifacts(run.id);
        let limit = usize::try_from(run.agent.max_output_size).unwrap_or(usize::MAX);
        let collected = blocking(move || {
            let collected = command::collect(&plan, &before, limit);
            if collected.as_ref().is_ok_and(|collected| !collected.artifacts.is_empty()) {
                keep(&plan.output_dir, &kept)
                    .map_err(|error| Failure::system(format!("its artifacts could not be kept: {error}")))?;
            }
            collected
        });
        match collected.await {
            Ok(collected) => {
                ended.artifacts = collected.artifacts;
                if let Some(output) = collected.output {
                    desk.output_ends(Name::File, &output.head, output.missing, &output.tail).await;
                }
            }
            // Whatever went wrong first is what is told.
            Err(failure) => drop(ended.failure.get_or_insert(failure)),
        }
        Ok(ended)
    }
}

impl Runner for Processes {
    fn run<'a>(&'a self, run: &'a Run, desk: &'a Desk) -> BoxFuture<'a, Ended> {
        Box::pin(async move {
            let scratch = self.0.scratch.take();
            let ended = self.carry_out(run, desk, &scratch).await;
            if let Some(used) = self.0.scratch.give_back(scratch) {
                let _ = blocking(move || Ok(std::fs::remove_dir_all(used))).await;
            }
            ended.unwrap_or_else(Ended::from)
        })
    }
}

impl Guard for Processes {
    fn renew(&self, lease: Duration) {
        *crate::lock(&self.0.lease) = Some((Instant::now(), lease));
        if let Some(guardian) = self.0.guardian.get().cloned() {
            tokio::spawn(async move { guardian.renew(lease).await });
        }
    }
}

/// What is to be made sense of when the agent has ended.
#[derive(Default)]
struct Conversation {
    /// Of stdout, where the answer is somewhere in it.
    stdout: Option<Clip>,
}

/// Feeds the agent, passes on what it says, and sees it end.
async fn listen(run: &Run, desk: &Desk, child: Child, pipes: Pipes, input: Vec<u8>, said: &mut Conversation) -> Ended {
    let Pipes { mut stdin, stdout, stderr } = pipes;
    if run.agent.output_pattern == OutputPattern::JsonRpc {
        said.stdout = Some(Clip::new(usize::try_from(run.agent.max_output_size).unwrap_or(usize::MAX)));
    }
    let feed = async {
        // An agent that does not want its input has ended, or will say so.
        let _ = stdin.write_all(&input).await;
        drop(stdin);
    };
    let out = pump(stdout, desk, Name::Stdout, said.stdout.as_mut());
    let err = pump(stderr, desk, Name::Stderr, None);
    see_through(desk, child, true, async {
        tokio::join!(feed, out, err);
    })
    .await
}

/// Speaks JSON-RPC with the agent, then ends it. Where it shall stop it is told so, and ended when it has answered that.
async fn speak(run: &Run, plan: &Plan, desk: &Desk, child: Child, pipes: Pipes) -> Ended {
    let Pipes { stdin, stdout, stderr } = pipes;
    let control = child.control();
    let mut failure = None;
    let mut completed = false;
    let conversation = async {
        let mut on = |said: Said| pass_on(desk, said);
        let opened = tokio::select! {
            opened = Dialogue::open(&run.agent, &plan.cwd, stdout, stdin, &mut on) => Some(opened),
            _ = desk.stopped() => None,
        };
        match opened {
            None => {}
            Some(Err(error)) => failure = Some(error),
            Some(Ok(mut dialogue)) => {
                let parameters = run.request.parameters.clone();
                let ask = Ask { input: run.request.input.clone(), parameters, execution_id: run.id };
                let stopped = async {
                    desk.stopped().await;
                };
                let answer = dialogue.prompt(&ask, &mut on, stopped).await;
                match answer.end {
                    End::Completed if answer.only_now && run.agent.output_pattern == OutputPattern::JsonRpc => {
                        desk.output_ends(Name::File, answer.output.text.as_bytes(), 0, &[]).await;
                        completed = true;
                    }
                    End::Completed => completed = true,
                    End::Cancelled if desk.is_stopped().is_some() => {}
                    End::Cancelled => failure = Some(Failure::agent("the agent broke off by itself")),
                    End::Failed(error) => failure = Some(error),
                }
            }
        }
        // It has said what it had to say; most wait for the next prompt now.
        control.stop().await;
    };
    // What comes in words is seen before its line ends.
    let shown = async {
        loop {
            tokio::time::sleep(pump::QUIET).await;
            desk.pause(Name::Stdout);
        }
    };
    let conversation = async {
        tokio::select! {
            () = conversation => {}
            () = shown => {}
        }
    };
    let err = pump(stderr, desk, Name::Stderr, None);
    let ended = see_through(desk, child, false, async {
        tokio::join!(conversation, err);
    })
    .await;
    let stopped = desk.is_stopped().is_some() && !completed;
    Ended { stopped, failure: failure.filter(|_| !stopped).map(|failure| with_exit(failure, &ended)), ..ended }
}

/// The failure of a conversation, with how the agent ended where that was its own doing. How it ended after it was told
/// to says nothing.
fn with_exit(failure: Failure, ended: &Ended) -> Failure {
    match &ended.failure {
        Some(exit) if exit.category != Category::SystemError => {
            Failure { message: format!("{}; {}", failure.message, exit.message), ..failure }
        }
        _ => failure,
    }
}

/// What an agent says over JSON-RPC: its answer, and what is only good to know.
pub(crate) fn pass_on(desk: &Desk, said: Said) {
    match said {
        Said::Output(text) => desk.output_now(Name::Stdout, text.as_bytes()),
        Said::Thought(text) | Said::Progress(text) | Said::Plain(text) => {
            let line = if text.ends_with('\n') { text } else { text + "\n" };
            desk.output_now(Name::Stderr, line.as_bytes());
        }
    }
}

/// Waits for the end of a process and of what is done with its pipes, and ends it `at_once` when it shall end, unless
/// whoever talks with it does so.
async fn see_through(desk: &Desk, mut child: Child, at_once: bool, talk: impl Future<Output = ()>) -> Ended {
    let control = child.control();
    let mut talk = std::pin::pin!(talk);
    let began = Instant::now();
    let mut talked = false;
    let mut stopped = false;
    let mut by_itself = false;
    let mut exit = None;
    let mut used = None;
    loop {
        tokio::select! {
            () = &mut talk, if !talked => talked = true,
            sign = child.next() => match sign {
                Some(Sign::Usage(usage)) => desk.usage(percent(resources(usage), began.elapsed())),
                Some(Sign::Exited(ended)) => {
                    used = Some(ended.usage);
                    exit = Some(ended.how);
                    by_itself = !stopped;
                }
                Some(Sign::Gone(usage)) => used = Some(usage),
                None => break,
            },
            _ = desk.stopped(), if !stopped => {
                stopped = true;
                if at_once {
                    control.stop().await;
                }
            }
        }
    }
    // What is still in the pipes is read however long that takes, as long as there is something.
    while !talked {
        let heard = desk.heard();
        let in_time = tokio::time::timeout(LINGER, &mut talk).await.is_ok();
        talked = in_time || desk.heard() == heard && !desk.is_full() && !desk.is_behind();
    }
    let how = exit.unwrap_or(guardian::How::GuardianDied);
    let (exit_code, failure) = failure_of(how, desk);
    // One that was told to end and did so in good order has not done what it was asked for.
    let stopped = stopped && !(by_itself && failure.is_none());
    Ended {
        stopped,
        failure: failure.filter(|_| !stopped),
        exit_code,
        usage: used.map(|used| percent(resources(used), began.elapsed())),
        ..Ended::default()
    }
}

/// Makes the answer of what was said, where it is hidden in it.
async fn answer(run: &Run, desk: &Desk, said: Conversation) -> Result<(), Failure> {
    let Some(stdout) = said.stdout.filter(|_| run.agent.output_pattern == OutputPattern::JsonRpc) else {
        return Ok(());
    };
    let text = rpc::response(&stdout.finish().text)?;
    desk.output_ends(Name::File, text.as_bytes(), 0, &[]).await;
    Ok(())
}

pub(crate) fn resources(usage: guardian::Usage) -> ResourceUsage {
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

fn percent(usage: ResourceUsage, over: Duration) -> ResourceUsage {
    let millis = over.as_secs_f64() * 1000.0;
    let cpu_percent = if millis > 0.0 { (usage.cpu_ms as f64 / millis * 1000.0).round() / 10.0 } else { 0.0 };
    ResourceUsage { cpu_percent, ..usage }
}

fn limits(agent: &Agent) -> Limits {
    let of = &agent.limits;
    let mb = |megabytes: Option<u64>| megabytes.map(|megabytes| megabytes.saturating_mul(1 << 20));
    Limits {
        cpu_seconds: of.cpu_seconds,
        memory: mb(of.memory_mb),
        open_files: of.open_files,
        processes: of.processes,
        file_size: mb(of.file_size_mb),
    }
}

/// A read-only agent writes to its scratch directory and what it was granted, and nowhere else (SUP-4).
fn sandbox(agent: &Agent, plan: &Plan) -> Option<Sandbox> {
    if agent.access_type == AccessType::ReadWrite {
        return None;
    }
    let home = plan.env.get("HOME").map(String::as_str).unwrap_or_default();
    let granted = agent.write_paths.iter().map(|path| match path.strip_prefix("~/") {
        Some(rest) => Path::new(home).join(rest),
        None => PathBuf::from(path),
    });
    // A folder that the agent has not made yet cannot be granted, and is not needed.
    let granted = granted.filter(|path| path.exists());
    Some(Sandbox { write: std::iter::once(plan.scratch.clone()).chain(granted).collect() })
}

fn ids_in(folder: &Path) -> Vec<uuid::Uuid> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| uuid::Uuid::try_parse(entry.file_name().to_str()?).ok()).collect()
}

/// Moves what an agent left to where it is kept.
fn keep(from: &Path, to: &Path) -> std::io::Result<()> {
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let _ = std::fs::remove_dir_all(to);
    std::fs::rename(from, to)
}

/// Work that waits for the disk.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(Failure::system(error.to_string())),
    }
}
