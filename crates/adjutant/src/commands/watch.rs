//! Follows an execution to its end: prints its output, reconnects after a broken connection, and cancels it on Ctrl-C.
//! Without a server, this process runs the execution and waits for its end.

use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::Context;
use api::agents::Agent;
use api::executions::{ExecutionResult, ExecutionStatus, OutputEvent, StateEvent};
use model::output::{PartContent, RichOutput};
use tokio::signal::unix::{Signal, SignalKind, signal};
use uuid::Uuid;

use crate::client::{Client, EventStream, ServerEvent};
use crate::exit::{ExitError, ExitStatus, exit_status};
use crate::output;

/// The time between two attempts to reconnect.
const RECONNECT_DELAY: Duration = Duration::from_millis(500);
/// The time for running executions to end before a note about them is printed.
const NOTE_DELAY: Duration = Duration::from_millis(500);
/// The number of consecutive attempts to reconnect.
const MAX_RECONNECTS: u32 = 40;
/// The number of bytes of an answer that are kept to detect repeated output.
const MAX_REMEMBERED_BYTES: usize = 1 << 20;

/// Follows the events at one path and reconnects as needed.
pub(crate) struct EventFollower<'a> {
    client: &'a Client,
    path: String,
    /// The id of the last event. A new connection starts after it.
    after: Option<String>,
    stream: Option<EventStream>,
    /// The number of failed attempts to connect since the last event.
    failures: u32,
    /// True if an interruption is reported on standard error.
    reports: bool,
}

impl<'a> EventFollower<'a> {
    /// Follows the events of an execution. The last event is `result`.
    pub(crate) fn for_execution(client: &'a Client, id: Uuid) -> Self {
        Self { reports: true, ..Self::new(client, format!("/api/executions/{id}/events")) }
    }

    /// Follows the events at `path`.
    pub(crate) fn new(client: &'a Client, path: String) -> Self {
        Self { client, path, after: None, stream: None, failures: 0, reports: false }
    }

    /// Returns the next event. Connects first if needed, and reconnects after the stream ends or breaks, without a
    /// limit while the server can be reached. A new connection continues after the last event. Cancel safe: no event is
    /// lost.
    ///
    /// Fails if the server is still unreachable after [`MAX_RECONNECTS`] retries without an event, and at once on any
    /// other error of a connection attempt.
    pub(crate) async fn next(&mut self) -> anyhow::Result<ServerEvent> {
        loop {
            if let Some(stream) = &mut self.stream {
                match stream.next().await {
                    Ok(Some(event)) => {
                        self.failures = 0;
                        self.after = event.id.clone().or(self.after.take());
                        return Ok(event);
                    }
                    Ok(None) | Err(_) => {
                        // The stream may have had an id without an event.
                        self.after = self.after.take().or(stream.last_id());
                        self.stream = None;
                    }
                }
                tokio::time::sleep(RECONNECT_DELAY).await;
            }
            match self.client.follow(&self.path, self.after.as_deref()).await {
                Ok(stream) => self.stream = Some(stream),
                Err(error) if self.failures < MAX_RECONNECTS && exit_status(&error) == ExitStatus::Unreachable => {
                    self.failures += 1;
                    if self.failures == 1 && self.reports {
                        output::note("the server does not answer; waiting for it");
                    }
                    tokio::time::sleep(RECONNECT_DELAY).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// The output of an execution to print.
#[derive(Clone, Copy)]
pub(crate) enum OutputSelection {
    /// The answer to standard output, everything else to standard error.
    Answer {
        /// The output stream with the answer: `stdout` or `file`.
        stream: &'static str,
    },
    Nothing,
}

impl OutputSelection {
    /// Selects the stream that contains the answer of this agent: `file` if its output pattern provides the answer at
    /// the end, else `stdout`.
    pub(crate) fn answer_of(agent: &Agent) -> Self {
        let agent = agent.summary();
        let from_file = agent.output_pattern.answers_at_end(agent.input_pattern);
        Self::Answer { stream: if from_file { "file" } else { "stdout" } }
    }
}

/// A run of an agent that this command waits for.
pub(crate) struct RunWatcher<'a> {
    client: &'a Client,
    interrupts: Signal,
    /// The user pressed Ctrl-C twice: do not wait any longer.
    aborted: bool,
    /// The reader has closed standard output.
    pub(crate) reader_closed: bool,
}

impl<'a> RunWatcher<'a> {
    /// Listens for Ctrl-C. Without a server, also starts to run executions of this agent in the process that holds the
    /// data directory: this one or another command. The caller must call [`RunWatcher::finish`]. Fails if the supervisor
    /// cannot start.
    pub(crate) async fn start(client: &'a Client, agent_id: &str) -> anyhow::Result<Self> {
        // Registered first: from here on, Ctrl-C must not leave processes behind.
        let interrupts = signal(SignalKind::interrupt()).context("failed to listen for Ctrl-C")?;
        client.run_agent(agent_id).await?;
        Ok(Self { client, interrupts, aborted: false, reader_closed: false })
    }

    /// Prints the selected output of an execution until its end and returns its result, also if it failed. The first
    /// Ctrl-C cancels the execution, as does a closed standard output if the answer is printed. A closed output sets
    /// `reader_closed`, and nothing more is printed.
    ///
    /// Fails if the events cannot be read, if the cancellation fails, or with [`ExitStatus::Interrupted`] after a
    /// second Ctrl-C.
    pub(crate) async fn follow(&mut self, id: Uuid, selection: OutputSelection) -> anyhow::Result<ExecutionResult> {
        let mut follower = EventFollower::for_execution(self.client, id);
        let mut printer = OutputPrinter { selection, printed: String::new(), ends_line: true, starts: 0 };
        let mut cancelling = false;
        loop {
            let event = tokio::select! {
                event = follower.next() => event?,
                _ = self.interrupts.recv() => {
                    if cancelling {
                        self.aborted = true;
                        return Err(ExitError::new(ExitStatus::Interrupted, "the execution has not ended").into());
                    }
                    cancelling = true;
                    output::note("cancelling; press Ctrl-C again to exit immediately");
                    self.cancel(id).await?;
                    continue;
                }
            };
            match event.name.as_str() {
                "output" => self.reader_closed |= !printer.output(&event.read()?)?,
                "said" => self.reader_closed |= !printer.rich_output(&event)?,
                "state" => printer.state(&event.read()?),
                "result" => {
                    printer.end()?;
                    return event.read();
                }
                _ => {}
            }
            if self.reader_closed && matches!(printer.selection, OutputSelection::Answer { .. }) {
                // The reader has closed the pipe (`| head`).
                printer.selection = OutputSelection::Nothing;
                self.cancel(id).await?;
            }
        }
    }

    /// Requests the cancellation of an execution. Succeeds if the server refuses it, because the execution has ended
    /// then.
    async fn cancel(&self, id: Uuid) -> anyhow::Result<()> {
        match self.client.post_empty(&format!("/api/executions/{id}/cancel")).await {
            // The execution ended before the cancellation.
            Err(error) if exit_status(&error) == ExitStatus::Refused => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// Waits for the running executions in this process and stops the supervisor, then the service for other commands.
    /// Their executions are among them. Prints a note if executions still run after [`NOTE_DELAY`]. Ctrl-C ends the
    /// wait, and a second one the stop. Has no effect with a server, if another command holds the data directory, or if
    /// a second Ctrl-C ended [`RunWatcher::follow`].
    pub(crate) async fn finish(mut self) {
        let Some(holder) = self.client.holder().filter(|_| !self.aborted) else { return };
        let supervisor = holder.app().supervisor();
        let drain = async {
            if tokio::time::timeout(NOTE_DELAY, supervisor.drain()).await.is_err() {
                let count = supervisor.running_count();
                let executions = if count == 1 { "execution" } else { "executions" };
                output::note(&format!("waiting for {count} more {executions} in this process; Ctrl-C ends the wait"));
                supervisor.drain().await;
            }
        };
        tokio::select! {
            () = drain => {}
            _ = self.interrupts.recv() => {}
        }
        let stop = async {
            supervisor.stop().await;
            holder.close().await;
        };
        tokio::select! {
            () = stop => {}
            _ = self.interrupts.recv() => {}
        }
    }
}

/// Prints the output of one execution.
struct OutputPrinter {
    selection: OutputSelection,
    /// The printed part of the answer of the current attempt, up to about [`MAX_REMEMBERED_BYTES`].
    printed: String,
    /// The printed answer is empty or ends with a line break.
    ends_line: bool,
    /// The number of attempts so far.
    starts: u32,
}

impl OutputPrinter {
    /// Prints output: the answer to standard output, other streams and notices about discarded output to standard
    /// error. If the answer is not the stream `file`, a file goes to standard output too, without the part that is
    /// printed already.
    ///
    /// Prints nothing if nothing is selected. Returns false if the reader has closed the pipe. Fails on any other
    /// output error.
    fn output(&mut self, event: &OutputEvent) -> anyhow::Result<bool> {
        let OutputSelection::Answer { stream } = self.selection else { return Ok(true) };
        let text = event.text.as_str();
        if let Some(missing) = event.missing_bytes {
            output::note(&gap_notice(missing));
        } else if event.stream == stream {
            if self.printed.len() < MAX_REMEMBERED_BYTES {
                self.printed.push_str(text);
            }
            return self.put(text);
        } else if event.stream == "file" {
            let text = self.new_part(text);
            return self.put(&text);
        } else {
            output::print_stderr(text.as_bytes());
        }
        Ok(true)
    }

    /// Prints the answer in a `said` event to standard output and its progress to standard error. Prints nothing if
    /// nothing is selected. Returns false if the reader has closed the pipe. Fails on any other output error.
    fn rich_output(&mut self, event: &ServerEvent) -> anyhow::Result<bool> {
        if matches!(self.selection, OutputSelection::Nothing) {
            return Ok(true);
        }
        let (answer, progress) = rich_output_text(event);
        output::print_stderr(progress.as_bytes());
        self.put(&answer)
    }

    /// Prints text to standard output. Returns false if the reader has closed the pipe.
    fn put(&mut self, text: &str) -> anyhow::Result<bool> {
        if text.is_empty() {
            return Ok(true);
        }
        self.ends_line = text.ends_with('\n');
        output::try_print(text.as_bytes())
    }

    /// Returns the part of `text` that is not printed yet. This is an empty text if the printed part starts with
    /// `text`, and the rest if `text` continues the printed part. Otherwise it is all of `text`, on a new line. Removes
    /// the compared text from the printed part.
    fn new_part(&mut self, text: &str) -> String {
        let printed = std::mem::take(&mut self.printed);
        if let Some(rest) = printed.strip_prefix(text) {
            self.printed = rest.to_owned();
            return String::new();
        }
        match text.strip_prefix(printed.as_str()) {
            Some(rest) => rest.to_owned(),
            None if self.ends_line => text.to_owned(),
            None => format!("\n{text}"),
        }
    }

    /// Counts attempts and forgets the printed answer at each state `starting`. Announces every attempt after the
    /// first, unless nothing is selected. Ignores other states.
    fn state(&mut self, event: &StateEvent) {
        if event.state == "starting" {
            self.starts += 1;
            self.printed.clear();
            if self.starts > 1 && matches!(self.selection, OutputSelection::Answer { .. }) {
                output::progress(&format!("attempt {}", self.starts));
            }
        }
    }

    /// Ends the line on a terminal, so that the shell prompt starts on a new line.
    fn end(&self) -> anyhow::Result<()> {
        if !self.ends_line && io::stdout().is_terminal() { output::print(b"\n") } else { Ok(()) }
    }
}

/// Returns the answer and the progress in a `said` event. The text of a message or artifact is the answer, and the text
/// of a status is progress. Files appear as progress, with name and size. Both texts are empty if the event cannot be
/// read.
pub(crate) fn rich_output_text(event: &ServerEvent) -> (String, String) {
    let Ok(output) = event.read::<RichOutput>() else { return Default::default() };
    let parts = match &output {
        RichOutput::Artifact(chunk) => &chunk.parts,
        RichOutput::Message(parts) | RichOutput::Status(parts) => parts,
    };
    let text = model::output::parts_to_text(parts);
    let files = parts.iter().filter(|part| matches!(part.content, PartContent::Bytes(_)));
    let files =
        files.map(|part| format!("[{}, {} bytes]\n", part.name.as_deref().unwrap_or("unnamed file"), part.size()));
    let files: String = files.collect();
    match output {
        RichOutput::Status(_) if text.is_empty() => (String::new(), files),
        RichOutput::Status(_) => (String::new(), format!("{text}\n{files}")),
        RichOutput::Artifact(_) | RichOutput::Message(_) => (text, files),
    }
}

/// Returns the notice for output that was discarded.
pub(crate) fn gap_notice(missing: u64) -> String {
    format!("[… {missing} bytes were discarded …]")
}

/// Fails unless the execution succeeded: with `Timeout` after a timeout, `Interrupted` if it was cancelled, and
/// `Failed` if it failed. The message is the error of the execution, or a general one without it.
pub(crate) fn check_result(result: ExecutionResult) -> anyhow::Result<()> {
    let (code, default) = match result.status {
        ExecutionStatus::Success => return Ok(()),
        ExecutionStatus::Timeout => (ExitStatus::Timeout, "the execution exceeded its time limit"),
        ExecutionStatus::Cancelled => (ExitStatus::Interrupted, "the execution was cancelled"),
        ExecutionStatus::Failure => (ExitStatus::Failed, "the execution failed"),
    };
    Err(ExitError::new(code, result.error.unwrap_or_else(|| default.to_owned())).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rich_output_is_printed_as_text() {
        for (output, answer, progress) in [
            (serde_json::json!({"message": [{"text": "hi"}]}), "hi", ""),
            (serde_json::json!({"status": [{"text": "soon"}]}), "", "soon\n"),
            (
                serde_json::json!({"artifact": {"artifact_id": "1", "parts": [{"bytes": "AAEC", "name": "a.bin"}, {"data": 1}]}}),
                "1",
                "[a.bin, 3 bytes]\n",
            ),
            (serde_json::json!({"later": 1}), "", ""),
        ] {
            let event = ServerEvent { name: "said".to_owned(), data: output.to_string(), id: None };
            assert_eq!(rich_output_text(&event), (answer.to_owned(), progress.to_owned()), "{output}");
        }
    }

    #[test]
    fn output_is_not_printed_twice() {
        for (parts, whole, new) in [
            (&["half ", "done"][..], &["half done"][..], ""),
            (&["half "], &["half done"], "done"),
            (&["half done"], &["half ", "done, all"], ", all"),
            (&["thinking"], &["answer"], "\nanswer"),
            (&["thinking\n"], &["answer"], "answer"),
            (&[], &["an", "swer"], "answer"),
        ] {
            let printed = parts.concat();
            let ends_line = printed.is_empty() || printed.ends_with('\n');
            let mut printer = OutputPrinter { selection: OutputSelection::Nothing, printed, ends_line, starts: 0 };
            let result: String = whole.iter().map(|text| printer.new_part(text)).collect();
            assert_eq!(result, new, "{parts:?} {whole:?}");
        }
    }
}
