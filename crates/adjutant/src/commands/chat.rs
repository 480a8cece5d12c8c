//! `adjutant chat`: sends one message, the lines of standard input, or the messages of an interactive prompt.

mod arrivals;

use std::borrow::Cow;
use std::io::{self, BufRead, IsTerminal, Write};

use api::chat::{ChatRequest, ChatResponse, ResponseDelta, ToolCallProgress, TurnDone, TurnError};
use api::conversations::{Conversations, ListConversations, ListMessages, MessageRole};
use api::notifications::{ListNotifications, Notifications};
use jiff::{SignedDuration, Timestamp};
use model::Clock;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use tokio::runtime::Builder;

use super::{listing, notifications};
use crate::cli::GlobalOptions;
use crate::client::Client;
use crate::config::data_dir;
use crate::exit::{ExitError, ExitStatus};
use crate::output;
use crate::wire::ExternalServices;

/// The number of messages shown of a conversation that is continued.
const HISTORY_LENGTH: usize = 10;
/// A single message continues the last conversation if its last message is at most this old.
const RECENT: SignedDuration = SignedDuration::from_mins(10);
const HELP: &str = "Write your request in your own words: \"add buy milk tomorrow\", \"show my tasks\", \"remind me at 5pm to \
                    call mom\", \"undo\".\n/new begins another conversation, /quit ends, /help prints this. Ctrl-C stops an \
                    answer.";

/// The conversation to which the first message belongs, if no id is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConversationStart {
    /// A new one.
    New,
    /// For a single message, the last one if it is recent. Otherwise a new one.
    Recent,
    /// The last one.
    Last,
}

impl ConversationStart {
    /// Returns the start for the options `--new` and `--continue`.
    pub(crate) fn of(new: bool, last: bool) -> Self {
        match (new, last) {
            (true, _) => Self::New,
            (false, true) => Self::Last,
            (false, false) => Self::Recent,
        }
    }
}

/// Sends `message`. Without it, or with `-`, holds a conversation. It uses a prompt if standard input is a terminal and
/// `--json` is not given, else sends each line of standard input. `conversation` is the id of a conversation to
/// continue, else `start` decides. Stops the MCP servers that it started. Fails if the message or the conversation fails.
pub(crate) fn run(
    global: &GlobalOptions,
    message: Option<String>,
    conversation: Option<String>,
    start: ConversationStart,
) -> anyhow::Result<()> {
    // Ctrl-C ends a turn, not the process.
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let message = message.filter(|message| message != "-");
    // Lines and prompts are conversations of their own.
    let start = if message.is_none() && start == ConversationStart::Recent { ConversationStart::New } else { start };
    let mut chat = ChatPrompt { conversation, start, global, services: None, since: None };
    let result = match message {
        Some(message) => runtime.block_on(chat.send_once(&message)),
        None if io::stdin().is_terminal() && !global.json => chat.prompt(&runtime),
        None => chat.lines(&runtime),
    };
    if let Some(services) = chat.services {
        runtime.block_on(services.stop());
    }
    result
}

/// A conversation of this command.
struct ChatPrompt<'a> {
    /// The id of the conversation. None until the first reply of a new one.
    conversation: Option<String>,
    /// Decides about the first message without a conversation. `New` afterwards.
    start: ConversationStart,
    global: &'a GlobalOptions,
    /// The models and MCP servers, if no server runs.
    services: Option<ExternalServices>,
    /// Set at the prompt, which shows later notifications between turns.
    since: Option<Timestamp>,
}

/// The end of a turn.
struct TurnEnd {
    conversation: Option<String>,
    success: bool,
    timed_out: bool,
    /// The phrase that confirms a pending action.
    phrase: Option<String>,
}

impl ChatPrompt<'_> {
    /// Sends one message and prints the reply. With `--yes`, also sends the confirmation that the reply asks for, once.
    /// Ctrl-C has no effect on that second message.
    ///
    /// Fails with `ConfirmationNeeded` if a confirmation is still needed, `Timeout` if the turn exceeds the time limit,
    /// `Interrupted` after Ctrl-C, and `Failed` if the turn fails. Also fails if a request fails.
    async fn send_once(&mut self, message: &str) -> anyhow::Result<()> {
        let ended = tokio::select! {
            ended = self.send(message) => ended?,
            _ = tokio::signal::ctrl_c() => return Err(ExitError::new(ExitStatus::Interrupted, "interrupted").into()),
        };
        let ended = match &ended.phrase {
            Some(phrase) if self.global.yes => Box::pin(self.send(phrase)).await?,
            _ => ended,
        };
        if let Some(phrase) = ended.phrase {
            let id = self.conversation.as_deref().unwrap_or_default();
            let message = format!("confirm with: adjutant chat --conversation {id} '{phrase}', or use --yes");
            return Err(ExitError::new(ExitStatus::ConfirmationNeeded, message).into());
        }
        match (ended.success, ended.timed_out) {
            (true, _) => Ok(()),
            (false, true) => Err(ExitError::new(ExitStatus::Timeout, "the assistant exceeded the time limit").into()),
            (false, false) => {
                Err(ExitError::new(ExitStatus::Failed, "the assistant failed to handle the message").into())
            }
        }
    }

    /// Sends every line of standard input with [`ChatPrompt::send_once`], as messages of one conversation. Ignores
    /// blank lines and replaces invalid UTF-8. Stops at the first message that fails, except if it needs a
    /// confirmation, which the next line may contain.
    ///
    /// Fails with the error of the last message, also if it needs a confirmation. Fails with a usage error if there is
    /// no message. Also fails if standard input cannot be read.
    fn lines(&mut self, runtime: &tokio::runtime::Runtime) -> anyhow::Result<()> {
        let mut has_input = false;
        let mut outcome = Ok(());
        for line in io::stdin().lock().split(b'\n') {
            // The server validates each line.
            let line = String::from_utf8_lossy(&line?).into_owned();
            if !line.trim().is_empty() {
                has_input = true;
                outcome = runtime.block_on(self.send_once(&line));
                // The next line may confirm.
                let needs_confirmation =
                    matches!(&outcome, Err(error) if crate::exit::exit_status(error) == ExitStatus::ConfirmationNeeded);
                if outcome.is_err() && !needs_confirmation {
                    return outcome;
                }
            }
        }
        if !has_input {
            return Err(
                ExitError::new(ExitStatus::Usage, "no message: give a MESSAGE, or lines on standard input").into()
            );
        }
        outcome
    }

    /// Holds a conversation at a terminal until Ctrl-D, `/quit`, `quit` or `exit`. `/new` starts another conversation.
    /// Ctrl-C ends a turn, or discards the line. The error of a request is printed; a turn that fails is shown like any
    /// other and not as an error. Neither ends the conversation. `--yes` has no effect. First prints the end of a
    /// continued conversation; the id to continue it is printed last.
    ///
    /// Messages are saved in the file `chat_history` of the data directory; failures to do so are ignored. Fails if the
    /// terminal or the continued conversation cannot be read.
    fn prompt(&mut self, runtime: &tokio::runtime::Runtime) -> anyhow::Result<()> {
        let mut editor = DefaultEditor::new()?;
        let history = data_dir(self.global).join("chat_history");
        // The history file may be missing or unreadable.
        let _ = editor.load_history(&history);
        output::note(
            "Talk to adjutant. Ctrl-C stops an answer, Ctrl-D or /quit ends, /new begins another conversation, /help helps.",
        );
        runtime.block_on(self.print_history())?;
        // With a server, notifications are printed as they arrive. Otherwise they are printed after each turn.
        match runtime.block_on(arrivals::print_arrivals(self.global, &mut editor)) {
            true => {}
            false => self.since = Some(Clock::system().now()),
        }
        loop {
            match editor.readline("> ") {
                Ok(line) if line.trim().is_empty() => {}
                Ok(line) if matches!(line.trim(), "/quit" | "quit" | "exit") => break,
                Ok(line) if line.trim() == "/new" => {
                    self.conversation = None;
                    output::note("The next message begins a new conversation.");
                }
                Ok(line) if line.trim() == "/help" => output::note(HELP),
                Ok(line) if is_command(line.trim()) => {
                    output::note(&format!("There is no command {}. /help lists the commands.", line.trim()));
                }
                Ok(line) => {
                    editor.add_history_entry(&line)?;
                    // The conversation continues without the history file.
                    let _ = editor.save_history(&history);
                    let turn = async {
                        tokio::select! {
                            ended = self.send(&line) => ended.map(drop),
                            _ = tokio::signal::ctrl_c() => {
                                output::note("\n(stopped; the conversation contains the changes made so far)");
                                Ok(())
                            }
                        }
                    };
                    if let Err(error) = runtime.block_on(turn) {
                        output::print_error(&format!("{error:#}"));
                    }
                }
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => break,
                Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                    output::print_error("the input is not valid UTF-8");
                }
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(id) = &self.conversation {
            output::note(&format!("To continue: adjutant chat --conversation {id}"));
        }
        Ok(())
    }

    /// Sets the conversation to continue, if none is set. Later calls have no effect. Fails if the conversations cannot be
    /// read.
    async fn choose_conversation(&mut self, client: &Client) -> anyhow::Result<()> {
        let start = std::mem::replace(&mut self.start, ConversationStart::New);
        if start == ConversationStart::New || self.conversation.is_some() {
            return Ok(());
        }
        let list = ListConversations { limit: Some(1), ..ListConversations::default() };
        let page = listing::page(client, "/api/conversations", &list).await?.read::<Conversations>()?;
        let oldest = Clock::system().now() - RECENT;
        let last = page.conversations.into_iter().next();
        let last = last.filter(|last| start == ConversationStart::Last || last.updated_at >= oldest);
        self.conversation = last.map(|last| last.id.to_string());
        Ok(())
    }

    /// Prints the last [`HISTORY_LENGTH`] messages of the conversation. Prints nothing if the conversation is new or
    /// its id is unknown. Fails if it cannot be read.
    async fn print_history(&mut self) -> anyhow::Result<()> {
        if self.conversation.is_none() && self.start == ConversationStart::New {
            return Ok(());
        }
        let client = Client::connect(self.global).await?;
        self.choose_conversation(&client).await?;
        let Some(id) = &self.conversation else { return Ok(()) };
        let path = format!("/api/conversations/{id}");
        let messages = match listing::all_items(&client, &path, ListMessages::default(), usize::MAX).await {
            // The id is new: the conversation starts with the next message.
            Err(error) if crate::exit::exit_status(&error) == ExitStatus::NotFound => return Ok(()),
            messages => messages?,
        };
        for message in messages.iter().skip(messages.len().saturating_sub(HISTORY_LENGTH)) {
            let mark = if message.role == MessageRole::User { "> " } else { "" };
            output::print_line(&format!("{mark}{}", message.content))?;
        }
        Ok(())
    }

    /// Sends a message and prints the reply, as it arrives or as one document with `--json`. At the prompt, prints new
    /// notifications after it. Sets the id of a new conversation. Connects for each message and may start MCP servers.
    /// Fails if the connection or the request fails; a turn that fails is returned as [`TurnEnd`].
    async fn send(&mut self, message: &str) -> anyhow::Result<TurnEnd> {
        // One connection per message, so that the data directory is not locked between messages.
        let client = Client::connect_with_models(self.global, &mut self.services).await?;
        self.choose_conversation(&client).await?;
        let conversation_id = self.conversation.clone();
        let request = ChatRequest { input: message.to_owned(), conversation_id, user_id: None };
        let ended = if self.global.json {
            let answer = client.post("/chat", &request).await?;
            answer.print()?;
            let response: ChatResponse<'_> = answer.read()?;
            TurnEnd {
                conversation: response.conversation_id.map(|id| id.to_string()),
                success: response.success,
                timed_out: response.error_type.as_deref() == Some("timeout"),
                phrase: response.confirmation_phrase.map(Cow::into_owned),
            }
        } else {
            stream(&client, &request).await?
        };
        self.print_notifications(&client).await;
        self.conversation = ended.conversation.clone().or(self.conversation.take());
        Ok(ended)
    }

    /// Prints those of the 10 newest unread notifications that are newer than `since`, oldest first, to standard error.
    /// Advances `since` and does not mark them as read. Has no effect if `since` is none. Errors are ignored: the
    /// conversation does not depend on them.
    async fn print_notifications(&mut self, client: &Client) {
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

/// Returns true if the line is a slash command: `/` and letters. A path contains more than that.
fn is_command(line: &str) -> bool {
    line.strip_prefix('/').is_some_and(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic()))
}

/// Sends a message, prints the reply as it arrives, and returns the end of the turn. Recoverable errors go to standard
/// error. Tool calls are shown there only if it is a terminal. Fails if the request fails, or if the stream breaks or
/// ends before the turn does.
async fn stream(client: &Client, request: &ChatRequest) -> anyhow::Result<TurnEnd> {
    let mut stream = client.events("/chat/stream", request).await?;
    let show_progress = io::stderr().is_terminal();
    let mut timed_out = false;
    // The line of a tool call is complete when the call ends.
    let mut open_call: Option<String> = None;
    while let Some(event) = stream.next().await? {
        if event.name != "tool_call" && open_call.take().is_some() {
            output::end_progress(None);
        }
        match event.name.as_str() {
            "response_delta" => output::print(event.read::<ResponseDelta<'_>>()?.delta.as_bytes())?,
            "tool_call" if show_progress => {
                let call: ToolCallProgress<'_> = event.read()?;
                if open_call.as_deref() == Some(&*call.tool_name) && !call.is_in_progress() {
                    open_call = None;
                    output::end_progress(call.summary.as_deref());
                } else if call.is_in_progress() {
                    if open_call.replace(call.tool_name.to_string()).is_some() {
                        output::end_progress(None);
                    }
                    output::begin_progress(&call.tool_name);
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
                output::print(b"\n")?;
                let done: TurnDone<'_> = event.read()?;
                return Ok(TurnEnd {
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
    Err(ExitError::new(ExitStatus::Failed, "the response ended before it was complete").into())
}
