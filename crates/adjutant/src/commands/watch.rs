//! Watching an execution to its end: what it says goes where it belongs, a broken connection is taken up again, Ctrl-C
//! cancels it. Where no server runs this process runs it, and ends nothing of it half.

use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::Context;
use model::said::{Content, Said};
use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::client::{Client, Event, EventStream};
use crate::exit::{Code, Exit, code_of};
use crate::output;

/// How often a server that went away is looked for, and how long it is waited for.
const PAUSE: Duration = Duration::from_millis(500);
const TRIES: u32 = 40;
/// How much of an answer is remembered, in case it comes once more.
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
    /// Those of an execution; the last one is `result`.
    pub(crate) fn of(client: &'a Client, id: &str) -> Self {
        Self::at(client, format!("/api/executions/{id}/events"))
    }

    pub(crate) fn at(client: &'a Client, path: String) -> Self {
        Self { client, path, after: None, stream: None, failures: 0 }
    }

    /// The next event. Whoever stops waiting for it misses nothing.
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
                        // Also where nothing was said but from where on.
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

/// What of an execution's output goes where.
#[derive(Clone, Copy)]
pub(crate) enum Show {
    /// The answer to standard output, all else to standard error.
    Answer {
        stream: &'static str,
    },
    Nothing,
}

impl Show {
    /// The answer of this agent, by the stream it comes in.
    pub(crate) fn answer_of(agent: &Value) -> Self {
        let input = &agent["input_pattern"];
        let output = &agent["output_pattern"];
        let from_file = output == "file" || (output == "json-rpc" && input != "json-rpc");
        Self::Answer { stream: if from_file { "file" } else { "stdout" } }
    }
}

/// A run of an agent that this command waits for.
pub(crate) struct Watch<'a> {
    client: &'a Client,
    interrupts: Signal,
    /// The user does not want to wait for anything any more.
    left: bool,
    /// Nobody reads what is printed any more.
    pub(crate) unread: bool,
}

impl<'a> Watch<'a> {
    /// Where no server runs, begins to run what is asked of this agent here. [`Watch::end`] must follow.
    pub(crate) async fn begin(client: &'a Client, agent_id: &str) -> anyhow::Result<Self> {
        // First of all: from here on Ctrl-C must not leave anything behind.
        let interrupts = signal(SignalKind::interrupt()).context("failed to listen for Ctrl-C")?;
        if let Some(supervisor) = client.supervisor() {
            supervisor.work_only_for(agent_id).await.context("failed to begin to run agents")?;
        }
        Ok(Self { client, interrupts, left: false, unread: false })
    }

    /// Follows an execution to its end, for its result.
    pub(crate) async fn follow(&mut self, id: &str, show: Show) -> anyhow::Result<Value> {
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
            let data: Value = serde_json::from_str(&event.data).context("the server's answer is not JSON")?;
            match event.name.as_str() {
                "output" => self.unread |= !printer.output(&data)?,
                "said" => self.unread |= !printer.said(&data)?,
                "state" => printer.state(&data),
                "result" => {
                    printer.end()?;
                    return Ok(data);
                }
                _ => {}
            }
            if self.unread && matches!(printer.show, Show::Answer { .. }) {
                // As with `| head`: what nobody reads need not be said.
                printer.show = Show::Nothing;
                self.cancel(id).await?;
            }
        }
    }

    async fn cancel(&self, id: &str) -> anyhow::Result<()> {
        match self.client.send(Method::POST, &format!("/api/executions/{id}/cancel"), None).await {
            // It has just ended by itself.
            Err(error) if code_of(&error) == Code::Refused => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// Ends what was begun. Others of the same agent that waited are not cut off, unless the user wants to leave.
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
    /// What was printed of the answer.
    said: String,
    ends_line: bool,
    starts: u32,
}

impl Printer {
    /// Whether somebody still reads.
    fn output(&mut self, data: &Value) -> anyhow::Result<bool> {
        let Show::Answer { stream } = self.show else { return Ok(true) };
        let text = data["text"].as_str().unwrap_or_default();
        if let Some(missing) = data["missing_bytes"].as_u64() {
            output::note(&gap(missing));
        } else if data["stream"] == stream {
            if self.said.len() < REMEMBERED {
                self.said.push_str(text);
            }
            return self.put(text);
        } else if data["stream"] == "file" {
            let text = self.not_said(text);
            return self.put(&text);
        } else {
            output::put_err(text.as_bytes());
        }
        Ok(true)
    }

    /// What is more than text, as far as it can be shown as text.
    fn said(&mut self, data: &Value) -> anyhow::Result<bool> {
        if matches!(self.show, Show::Nothing) {
            return Ok(true);
        }
        let (answer, aside) = spoken(data);
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

    /// Of an answer that comes whole after parts of it: what is new; all of it where it is another one.
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

    fn state(&mut self, data: &Value) {
        if data["state"] == "starting" {
            self.starts += 1;
            self.said.clear();
            if self.starts > 1 && matches!(self.show, Show::Answer { .. }) {
                output::aside(&format!("attempt {}", self.starts));
            }
        }
    }

    /// The prompt of a shell belongs on a line of its own.
    fn end(&self) -> anyhow::Result<()> {
        if !self.ends_line && io::stdout().is_terminal() { output::put(b"\n") } else { Ok(()) }
    }
}

/// What was said that is more than text: what belongs to the answer, and what is only good to know.
pub(crate) fn spoken(said: &Value) -> (String, String) {
    let Ok(said) = Said::deserialize(said) else { return Default::default() };
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

/// Stands for output that was not kept.
pub(crate) fn gap(missing: u64) -> String {
    format!("[… {missing} bytes were not kept …]")
}

/// How a command ends whose execution ended like this.
pub(crate) fn conclude(result: &Value) -> anyhow::Result<()> {
    let (code, otherwise) = match result["status"].as_str().unwrap_or_default() {
        "success" => return Ok(()),
        "timeout" => (Code::Timeout, "it took too long"),
        "cancelled" => (Code::Interrupted, "cancelled"),
        _ => (Code::Failed, "it failed"),
    };
    Err(Exit::new(code, result["error"].as_str().unwrap_or(otherwise)).into())
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
            assert_eq!(spoken(&said), (answer.to_owned(), aside.to_owned()), "{said}");
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
