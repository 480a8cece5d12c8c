//! `adjutant chat`: one message, the lines of a pipe, or a conversation at the prompt.

use std::io::{self, BufRead, IsTerminal, Write};

use jiff::Timestamp;
use model::Clock;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use serde_json::{Value, json};
use tokio::runtime::Builder;

use super::listing;
use crate::cli::Global;
use crate::client::Client;
use crate::config::data_dir;
use crate::exit::{Code, Exit};
use crate::output;
use crate::wire::Outside;

/// How much of a conversation is shown when it is gone on with.
const SHOWN: usize = 10;

pub(crate) fn run(global: &Global, message: Option<String>, conversation: Option<&str>) -> anyhow::Result<()> {
    // Not the one of other commands: here Ctrl-C ends a turn, not the program.
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let mut chat = Chat { conversation: conversation.map(str::to_owned), global, outside: None, since: None };
    let ended = match message.filter(|message| message != "-") {
        Some(message) => runtime.block_on(chat.say_once(&message)),
        None if io::stdin().is_terminal() && !global.json => chat.prompt(&runtime),
        None => chat.lines(&runtime),
    };
    if let Some(outside) = chat.outside {
        runtime.block_on(outside.stop());
    }
    ended
}

struct Chat<'a> {
    conversation: Option<String>,
    global: &'a Global,
    /// What answers where no server runs.
    outside: Option<Outside>,
    /// At the prompt: what came after this is shown between turns.
    since: Option<Timestamp>,
}

/// How a turn ended.
struct Ended {
    success: bool,
    timed_out: bool,
    phrase: Option<String>,
}

impl Chat<'_> {
    /// One message, its answer, and an exit code that says how it went.
    async fn say_once(&mut self, message: &str) -> anyhow::Result<()> {
        let ended = tokio::select! {
            ended = self.say(message) => ended?,
            _ = tokio::signal::ctrl_c() => return Err(Exit::new(Code::Interrupted, "interrupted").into()),
        };
        let ended = match &ended.phrase {
            Some(phrase) if self.global.yes => Box::pin(self.say(phrase)).await?,
            _ => ended,
        };
        if let Some(phrase) = ended.phrase {
            let id = self.conversation.as_deref().unwrap_or_default();
            let how = format!("confirm with: adjutant chat --conversation {id} '{phrase}', or use --yes");
            return Err(Exit::new(Code::ConfirmationNeeded, how).into());
        }
        match (ended.success, ended.timed_out) {
            (true, _) => Ok(()),
            (false, true) => Err(Exit::new(Code::Timeout, "the assistant took too long").into()),
            (false, false) => Err(Exit::new(Code::Failed, "the assistant could not do that").into()),
        }
    }

    /// Every line of standard input is a message of one conversation.
    fn lines(&mut self, runtime: &tokio::runtime::Runtime) -> anyhow::Result<()> {
        let mut said = false;
        let mut outcome = Ok(());
        for line in io::stdin().lock().split(b'\n') {
            // What is no text is the server's to refuse or to clean, line by line.
            let line = String::from_utf8_lossy(&line?).into_owned();
            if !line.trim().is_empty() {
                said = true;
                outcome = runtime.block_on(self.say_once(&line));
                // A question in between is answered by the next line, or is not.
                let goes_on = matches!(&outcome, Err(error) if crate::exit::code_of(error) == Code::ConfirmationNeeded);
                if outcome.is_err() && !goes_on {
                    return outcome;
                }
            }
        }
        if !said {
            return Err(Exit::new(Code::Usage, "nothing to say: give a MESSAGE, or lines on standard input").into());
        }
        outcome
    }

    /// A conversation at a terminal.
    fn prompt(&mut self, runtime: &tokio::runtime::Runtime) -> anyhow::Result<()> {
        let mut editor = DefaultEditor::new()?;
        let history = data_dir(self.global).join("chat_history");
        // None yet, or none that can be read: nothing to recall then.
        let _ = editor.load_history(&history);
        output::note(
            "Talk to adjutant. Ctrl-C stops an answer, Ctrl-D or /quit ends, /new begins another conversation.",
        );
        runtime.block_on(self.recall())?;
        self.since = Some(Clock::system().now());
        loop {
            match editor.readline("> ") {
                Ok(line) if line.trim().is_empty() => {}
                Ok(line) if matches!(line.trim(), "/quit" | "quit" | "exit") => break,
                Ok(line) if line.trim() == "/new" => self.conversation = None,
                Ok(line) => {
                    editor.add_history_entry(&line)?;
                    // Losing the history of the prompt is no reason to end the conversation.
                    let _ = editor.save_history(&history);
                    let turn = async {
                        tokio::select! {
                            ended = self.say(&line) => ended.map(drop),
                            _ = tokio::signal::ctrl_c() => {
                                output::note("\n(stopped; what was under way is in the conversation)");
                                Ok(())
                            }
                        }
                    };
                    if let Err(error) = runtime.block_on(turn) {
                        output::complain(&format!("{error:#}"));
                    }
                }
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => break,
                Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                    output::complain("that was no text");
                }
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(id) = &self.conversation {
            output::note(&format!("To go on: adjutant chat --conversation {id}"));
        }
        Ok(())
    }

    /// Shows the end of the conversation that is gone on with.
    async fn recall(&self) -> anyhow::Result<()> {
        let Some(id) = &self.conversation else { return Ok(()) };
        let client = Client::connect(self.global).await?;
        let mut messages: Vec<Value> = Vec::new();
        let mut cursor = String::new();
        loop {
            let path = format!("/api/conversations/{id}?limit=200{cursor}");
            let page = match client.get(&path).await {
                Ok(answer) => answer.json()?,
                // Nobody has used this id: the conversation begins now.
                Err(error) if crate::exit::code_of(&error) == Code::NotFound => return Ok(()),
                Err(error) => return Err(error),
            };
            messages.extend(page["messages"].as_array().cloned().unwrap_or_default());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        for message in messages.iter().skip(messages.len().saturating_sub(SHOWN)) {
            let content = message["content"].as_str().unwrap_or_default();
            let mark = if message["role"] == "user" { "> " } else { "" };
            output::say(&format!("{mark}{content}"))?;
        }
        Ok(())
    }

    /// Says one thing and prints the answer: as it comes, or as one document with `--json`.
    async fn say(&mut self, message: &str) -> anyhow::Result<Ended> {
        let body = json!({"input": message, "conversation_id": self.conversation});
        // For each message: while somebody thinks about the next one, the data directory is not held.
        let client = Client::to_chat(self.global, &mut self.outside).await?;
        let ended = if self.global.json {
            let answer = client.post("/chat", &body).await?;
            output::say(&answer.text())?;
            answer.json()?
        } else {
            Self::stream(&client, &body).await?
        };
        self.news(&client).await;
        self.conversation = ended["conversation_id"].as_str().map(str::to_owned).or(self.conversation.take());
        Ok(Ended {
            success: ended["success"] == true,
            timed_out: ended["error_type"] == "timeout",
            phrase: ended["confirmation_phrase"].as_str().map(str::to_owned),
        })
    }

    /// What the user was told meanwhile. The conversation does not depend on it.
    async fn news(&mut self, client: &Client) {
        let Some(since) = self.since else { return };
        let told = async { client.get("/api/notifications?unread=true&limit=10").await?.json() };
        let Ok(told) = told.await else { return };
        for notification in told["notifications"].as_array().into_iter().flatten().rev() {
            if let Some(at) = listing::timestamp(&notification["created_at"]).filter(|at| *at > since) {
                output::note(&super::notifications::line(notification));
                self.since = self.since.max(Some(at));
            }
        }
    }

    async fn stream(client: &Client, body: &Value) -> anyhow::Result<Value> {
        let mut stream = client.events("/chat/stream", body).await?;
        let watched = io::stderr().is_terminal();
        let mut error_type = Value::Null;
        while let Some(event) = stream.next().await? {
            let data: Value = serde_json::from_str(&event.data)?;
            match event.name.as_str() {
                "response_delta" => output::put(data["delta"].as_str().unwrap_or_default().as_bytes())?,
                "tool_call" if watched && data["status"] == "in_progress" => {
                    output::aside(data["tool_name"].as_str().unwrap_or_default());
                }
                "error" => {
                    // The turn goes on without what failed.
                    if data["recoverable"] == true {
                        output::note(data["message"].as_str().unwrap_or_default());
                    }
                    error_type = data["error_type"].clone();
                }
                "done" => {
                    output::put(b"\n")?;
                    let mut ended = data;
                    ended["error_type"] = error_type;
                    return Ok(ended);
                }
                _ => {}
            }
        }
        io::stdout().flush()?;
        Err(Exit::new(Code::Failed, "the answer ended before it was whole").into())
    }
}
