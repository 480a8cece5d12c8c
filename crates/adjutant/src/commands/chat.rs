//! `adjutant chat`: one message, the lines of a pipe, or a conversation at the prompt.

use std::borrow::Cow;
use std::io::{self, BufRead, IsTerminal, Write};

use api::chat::{ChatRequest, ChatResponse, Done, ResponseDelta, ToolCallProgress, TurnError};
use api::conversations::{ListMessages, Role};
use api::notifications::{ListNotifications, Notifications};
use jiff::Timestamp;
use model::Clock;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use tokio::runtime::Builder;

use super::{listing, notifications};
use crate::cli::Global;
use crate::client::Client;
use crate::config::data_dir;
use crate::exit::{Code, Exit};
use crate::output;
use crate::wire::Outside;

/// The number of messages shown of a conversation that is continued.
const SHOWN: usize = 10;

pub(crate) fn run(global: &Global, message: Option<String>, conversation: Option<&str>) -> anyhow::Result<()> {
    // A runtime of its own: here Ctrl-C ends a turn, not the program.
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
    /// The models and MCP servers, if no server runs.
    outside: Option<Outside>,
    /// At the prompt: later notifications are shown between turns.
    since: Option<Timestamp>,
}

/// The end of a turn.
struct Ended {
    conversation: Option<String>,
    success: bool,
    timed_out: bool,
    /// The reply that confirms a pending action.
    phrase: Option<String>,
}

impl Chat<'_> {
    /// Sends one message and prints the answer. Fails if the turn does.
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

    /// Sends every line of standard input as a message of one conversation.
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

    /// Holds a conversation at a terminal.
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

    /// Prints the last messages of the conversation that is continued.
    async fn recall(&self) -> anyhow::Result<()> {
        let Some(id) = &self.conversation else { return Ok(()) };
        let client = Client::connect(self.global).await?;
        let path = format!("/api/conversations/{id}");
        let messages = match listing::all(&client, &path, ListMessages::default(), usize::MAX).await {
            // The id is not in use: the conversation begins now.
            Err(error) if crate::exit::code_of(&error) == Code::NotFound => return Ok(()),
            messages => messages?,
        };
        for message in messages.iter().skip(messages.len().saturating_sub(SHOWN)) {
            let mark = if message.role == Role::User { "> " } else { "" };
            output::say(&format!("{mark}{}", message.content))?;
        }
        Ok(())
    }

    /// Sends a message and prints the answer: as it arrives, or as one document with `--json`.
    async fn say(&mut self, message: &str) -> anyhow::Result<Ended> {
        let conversation_id = self.conversation.clone();
        let request = ChatRequest { input: message.to_owned(), conversation_id, user_id: None };
        // For each message, so that the data directory is not held between messages.
        let client = Client::to_chat(self.global, &mut self.outside).await?;
        let ended = if self.global.json {
            let answer = client.post("/chat", &request).await?;
            answer.print()?;
            let response: ChatResponse<'_> = answer.read()?;
            Ended {
                conversation: response.conversation_id.map(|id| id.to_string()),
                success: response.success,
                timed_out: response.error_type.as_deref() == Some("timeout"),
                phrase: response.confirmation_phrase.map(Cow::into_owned),
            }
        } else {
            stream(&client, &request).await?
        };
        self.news(&client).await;
        self.conversation = ended.conversation.clone().or(self.conversation.take());
        Ok(ended)
    }

    /// Prints new notifications. Errors are ignored: the conversation does not depend on them.
    async fn news(&mut self, client: &Client) {
        let Some(since) = self.since else { return };
        let list = ListNotifications { unread: Some(true), limit: Some(10), cursor: None };
        let unread = async { listing::page(client, notifications::PATH, &list).await?.read::<Notifications>() };
        let Ok(unread) = unread.await else { return };
        for notification in unread.notifications.iter().rev().filter(|notification| notification.created_at > since) {
            output::note(&notifications::line(notification));
            self.since = self.since.max(Some(notification.created_at));
        }
    }
}

/// Sends a message, prints the answer as it arrives, and returns the end of the turn.
async fn stream(client: &Client, request: &ChatRequest) -> anyhow::Result<Ended> {
    let mut stream = client.events("/chat/stream", request).await?;
    let watched = io::stderr().is_terminal();
    let mut timed_out = false;
    while let Some(event) = stream.next().await? {
        match event.name.as_str() {
            "response_delta" => output::put(event.read::<ResponseDelta<'_>>()?.delta.as_bytes())?,
            "tool_call" if watched => {
                let call: ToolCallProgress<'_> = event.read()?;
                if call.is_in_progress() {
                    output::aside(&call.tool_name);
                }
            }
            "error" => {
                let error: TurnError<'_> = event.read()?;
                if error.recoverable {
                    output::note(&error.message);
                }
                timed_out = error.error_type == "timeout";
            }
            "done" => {
                output::put(b"\n")?;
                let done: Done<'_> = event.read()?;
                return Ok(Ended {
                    conversation: done.conversation_id.map(|id| id.to_string()),
                    success: done.success,
                    timed_out,
                    phrase: done.confirmation_phrase.map(Cow::into_owned),
                });
            }
            _ => {}
        }
    }
    io::stdout().flush()?;
    Err(Exit::new(Code::Failed, "the answer ended before it was whole").into())
}
