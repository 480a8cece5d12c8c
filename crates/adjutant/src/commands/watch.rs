//! Follows an execution to its end: prints its output, reconnects after a broken connection, and cancels it on Ctrl-C.
//! Without a server this process runs the execution, and does not end before it.

use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::Context;
use api::agents::Agent;
use api::executions::{ExecutionResult, OutputEvent, StateEvent, Status};
use model::said::{Content, Said};
use tokio::signal::unix::{Signal, SignalKind, signal};
use uuid::Uuid;

use crate::client::{Client, Event, EventStream};
use crate::exit::{Code, Exit, code_of};
use crate::output;

/// The time between two attempts to connect again, and their number.
const PAUSE: Duration = Duration::from_millis(500);
const TRIES: u32 = 40;
/// The number of bytes of an answer that are kept to recognise them when they arrive again.
const REMEMBERED: usize = 1 << 20;

/// The events at one path, across any number of connections.
pub(crate) struct Following<'a> {
    client: &'a Client,
    path: String,
    after: Option<String>,
    stream: Option<EventStream>,
    failures: u32,
}

impl<'a> Following<'a> {
    /// Follows the events of an execution. The last one is `result`.
    pub(crate) fn of(client: &'a Client, id: Uuid) -> Self {
        Self::at(client, format!("/api/executions/{id}/events"))
    }

    pub(crate) fn at(client: &'a Client, path: String) -> Self {
        Self { client, path, after: None, stream: None, failures: 0 }
    }

    /// Returns the next event. No event is lost if the caller stops waiting.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Event> {
        loop {
            if let Some(stream) = &mut self.stream {
                match stream.next().await {
                    Ok(Some(event)) => {
                        self.failures = 0;
                        self.after = event.id.clone().or(self.after.take());
                        return Ok(event);
                    }
                    Ok(None) | Err(_) => {
                        // Also if the stream had an id but no event.
                        self.after = self.after.take().or(stream.last_id());
                        self.stream = None;
                    }
                }
                tokio::time::sleep(PAUSE).await;
            }
            match self.client.follow(&self.path, self.after.as_deref()).await {
                Ok(stream) => self.stream = Some(stream),
                Err(error) if self.failures < TRIES && code_of(&error) == Code::Unreachable => {
                    self.failures += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Selects the output of an execution that is printed.
#[derive(Clone, Copy)]
pub(crate) enum Show {
    /// The answer to standard output, all else to standard error.
    Answer {
        stream: &'static str,
    },
    Nothing,
}

impl Show {
    /// Selects the stream in which the answer of this agent arrives.
    pub(crate) fn answer_of(agent: &Agent) -> Self {
        let agent = agent.summary();
        let from_file = agent.output_pattern.is_late(agent.input_pattern);
        Self::Answer { stream: if from_file { "file" } else { "stdout" } }
    }
}

/// A run of an agent that this command waits for.
pub(crate) struct Watch<'a> {
    client: &'a Client,
    interrupts: Signal,
    /// The user does not want to wait for anything any more.
    left: bool,
    /// The reader of standard output has gone.
    pub(crate) unread: bool,
}

impl<'a> Watch<'a> {
    /// Without a server, starts to run executions of this agent. [`Watch::end`] must follow.
    pub(crate) async fn begin(client: &'a Client, agent_id: &str) -> anyhow::Result<Self> {
        // First, because from here on Ctrl-C must leave no process behind.
        let interrupts = signal(SignalKind::interrupt()).context("failed to listen for Ctrl-C")?;
        if let Some(supervisor) = client.supervisor() {
            supervisor.work_only_for(agent_id).await.context("failed to begin to run agents")?;
        }
        Ok(Self { client, interrupts, left: false, unread: false })
    }

    /// Follows an execution to its end and returns its result.
    pub(crate) async fn follow(&mut self, id: Uuid, show: Show) -> anyhow::Result<ExecutionResult> {
        let mut following = Following::of(self.client, id);
        let mut printer = Printer { show, said: String::new(), ends_line: true, starts: 0 };
        let mut cancelling = false;
        loop {
            let event = tokio::select! {
                event = following.next() => event?,
                _ = self.interrupts.recv() => {
                    if cancelling {
                        self.left = true;
                        return Err(Exit::new(Code::Interrupted, "left before it had ended").into());
                    }
                    cancelling = true;
                    output::note("cancelling; Ctrl-C again leaves at once");
                    self.cancel(id).await?;
                    continue;
                }
            };
            match event.name.as_str() {
                "output" => self.unread |= !printer.output(&event.read()?)?,
                "said" => self.unread |= !printer.said(&event)?,
                "state" => printer.state(&event.read()?),
                "result" => {
                    printer.end()?;
                    return event.read();
                }
                _ => {}
            }
            if self.unread && matches!(printer.show, Show::Answer { .. }) {
                // As with `| head`: the rest of the answer has no reader.
                printer.show = Show::Nothing;
                self.cancel(id).await?;
            }
        }
    }

    async fn cancel(&self, id: Uuid) -> anyhow::Result<()> {
        match self.client.post_empty(&format!("/api/executions/{id}/cancel")).await {
            // It has just ended by itself.
            Err(error) if code_of(&error) == Code::Refused => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// Stops running executions. Waits for others of the same agent, unless the user has left.
    pub(crate) async fn end(mut self) {
        let Some(supervisor) = self.client.supervisor().filter(|_| !self.left) else { return };
        match supervisor.running() {
            0 => {}
            others => output::note(&format!(
                "{others} more of this agent were waiting and run here too: waiting for them, Ctrl-C ends them"
            )),
        }
        tokio::select! {
            () = supervisor.drain() => {}
            _ = self.interrupts.recv() => {}
        }
        tokio::select! {
            () = supervisor.stop() => {}
            _ = self.interrupts.recv() => {}
        }
    }
}

struct Printer {
    show: Show,
    /// The part of the answer that was printed.
    said: String,
    ends_line: bool,
    starts: u32,
}

impl Printer {
    /// Prints output. Returns false if the reader has gone.
    fn output(&mut self, event: &OutputEvent) -> anyhow::Result<bool> {
        let Show::Answer { stream } = self.show else { return Ok(true) };
        let text = event.text.as_str();
        if let Some(missing) = event.missing_bytes {
            output::note(&gap(missing));
        } else if event.stream == stream {
            if self.said.len() < REMEMBERED {
                self.said.push_str(text);
            }
            return self.put(text);
        } else if event.stream == "file" {
            let text = self.not_said(text);
            return self.put(&text);
        } else {
            output::put_err(text.as_bytes());
        }
        Ok(true)
    }

    /// Prints content that is more than text. Returns false if the reader has gone.
    fn said(&mut self, event: &Event) -> anyhow::Result<bool> {
        if matches!(self.show, Show::Nothing) {
            return Ok(true);
        }
        let (answer, aside) = spoken(event);
        output::put_err(aside.as_bytes());
        self.put(&answer)
    }

    fn put(&mut self, text: &str) -> anyhow::Result<bool> {
        if text.is_empty() {
            return Ok(true);
        }
        self.ends_line = text.ends_with('\n');
        output::try_put(text.as_bytes())
    }

    /// Returns the new part of an answer that follows parts of it, or all of it if it is another one.
    fn not_said(&mut self, text: &str) -> String {
        let said = std::mem::take(&mut self.said);
        if let Some(rest) = said.strip_prefix(text) {
            self.said = rest.to_owned();
            return String::new();
        }
        match text.strip_prefix(said.as_str()) {
            Some(rest) => rest.to_owned(),
            None if self.ends_line => text.to_owned(),
            None => format!("\n{text}"),
        }
    }

    fn state(&mut self, event: &StateEvent) {
        if event.state == "starting" {
            self.starts += 1;
            self.said.clear();
            if self.starts > 1 && matches!(self.show, Show::Answer { .. }) {
                output::aside(&format!("attempt {}", self.starts));
            }
        }
    }

    /// Ends the line on a terminal, for the prompt of the shell.
    fn end(&self) -> anyhow::Result<()> {
        if !self.ends_line && io::stdout().is_terminal() { output::put(b"\n") } else { Ok(()) }
    }
}

/// Returns the text of a `said` event: the part that belongs to the answer, and the rest.
pub(crate) fn spoken(event: &Event) -> (String, String) {
    let Ok(said) = event.read::<Said>() else { return Default::default() };
    let parts = match &said {
        Said::Artifact(piece) => &piece.parts,
        Said::Message(parts) | Said::Status(parts) => parts,
    };
    let text = model::said::as_input(parts);
    let files = parts.iter().filter(|part| matches!(part.content, Content::Bytes(_)));
    let files = files
        .map(|part| format!("[{}, {} bytes]\n", part.name.as_deref().unwrap_or("a file without a name"), part.size()));
    let files: String = files.collect();
    match said {
        Said::Status(_) if text.is_empty() => (String::new(), files),
        Said::Status(_) => (String::new(), format!("{text}\n{files}")),
        Said::Artifact(_) | Said::Message(_) => (text, files),
    }
}

/// Returns the text in place of output that was not kept.
pub(crate) fn gap(missing: u64) -> String {
    format!("[… {missing} bytes were not kept …]")
}

/// Fails unless the execution was a success.
pub(crate) fn conclude(result: ExecutionResult) -> anyhow::Result<()> {
    let (code, otherwise) = match result.status {
        Status::Success => return Ok(()),
        Status::Timeout => (Code::Timeout, "it took too long"),
        Status::Cancelled => (Code::Interrupted, "cancelled"),
        Status::Failure => (Code::Failed, "it failed"),
    };
    Err(Exit::new(code, result.error.unwrap_or_else(|| otherwise.to_owned())).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_more_than_text_is_shown_as_text() {
        for (said, answer, aside) in [
            (serde_json::json!({"message": [{"text": "hi"}]}), "hi", ""),
            (serde_json::json!({"status": [{"text": "soon"}]}), "", "soon\n"),
            (
                serde_json::json!({"artifact": {"artifact_id": "1", "parts": [{"bytes": "AAEC", "name": "a.bin"}, {"data": 1}]}}),
                "1",
                "[a.bin, 3 bytes]\n",
            ),
            (serde_json::json!({"later": 1}), "", ""),
        ] {
            let event = Event { name: "said".to_owned(), data: said.to_string(), id: None };
            assert_eq!(spoken(&event), (answer.to_owned(), aside.to_owned()), "{said}");
        }
    }

    #[test]
    fn what_was_said_is_not_said_again() {
        for (parts, whole, new) in [
            (&["half ", "done"][..], &["half done"][..], ""),
            (&["half "], &["half done"], "done"),
            (&["half done"], &["half ", "done, all"], ", all"),
            (&["thinking"], &["answer"], "\nanswer"),
            (&["thinking\n"], &["answer"], "answer"),
            (&[], &["an", "swer"], "answer"),
        ] {
            let said = parts.concat();
            let ends_line = said.is_empty() || said.ends_with('\n');
            let mut printer = Printer { show: Show::Nothing, said, ends_line, starts: 0 };
            let heard: String = whole.iter().map(|text| printer.not_said(text)).collect();
            assert_eq!(heard, new, "{parts:?} {whole:?}");
        }
    }
}
