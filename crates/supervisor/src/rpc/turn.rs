//! The state of one prompt: incoming messages, cancellation and its timeout.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::wire::{IncomingMessage, RpcWire};
use super::{AgentOutput, OutputListener, PromptEnd, PromptResult};
use crate::{HeadTailBuffer, RunFailure};

/// The state that is shared by the prompts of a conversation.
pub(super) struct TurnState {
    /// A prompt is active. It stays active if it is dropped or never answered.
    busy: bool,
    grace: Duration,
    max_output: usize,
}

/// One active prompt.
pub(super) struct PromptTurn<'a> {
    state: &'a mut TurnState,
    /// The end of the grace period. `None` if the prompt was not cancelled.
    deadline: Option<Instant>,
    output: HeadTailBuffer,
    /// The next output starts a new paragraph.
    paragraph_due: bool,
    /// The last output ended with a newline.
    line_ended: bool,
}

/// The next event of a prompt.
pub(super) enum TurnStep {
    Received(IncomingMessage),
    /// The agent has to be requested to stop.
    Cancel,
    Ended(PromptEnd),
}

impl TurnState {
    pub(super) fn new(grace: Duration, max_output: u64) -> Self {
        Self { busy: false, grace, max_output: usize::try_from(max_output).unwrap_or(usize::MAX) }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy
    }

    /// Starts a prompt. Fails with the result of a failed prompt if the previous one has not ended, was dropped or was
    /// never answered.
    pub(super) fn begin(&mut self) -> Result<PromptTurn<'_>, PromptResult> {
        if self.busy {
            let failure = RunFailure::agent("the agent has not finished the previous request");
            return Err(PromptResult {
                output: HeadTailBuffer::new(0).finish(),
                replaces_output: false,
                end: PromptEnd::Failed(failure),
            });
        }
        self.busy = true;
        let output = HeadTailBuffer::new(self.max_output);
        Ok(PromptTurn { state: self, deadline: None, output, paragraph_due: false, line_ended: true })
    }
}

impl PromptTurn<'_> {
    pub(super) fn is_cancelled(&self) -> bool {
        self.deadline.is_some()
    }

    /// Waits for the next event. Returns `Received` for a message of the agent. Returns `Cancel` once, when `cancel`
    /// completes; the grace period starts then. Returns `Ended` if the connection closes or fails, or after the grace
    /// period. The end of the grace period and a connection that closes after the cancellation count as cancelled. A
    /// connection that closes before it, or that fails, counts as failed.
    pub(super) async fn step(
        &mut self,
        wire: &mut RpcWire,
        cancel: &mut Pin<&mut (impl Future<Output = ()> + Send)>,
    ) -> TurnStep {
        let deadline = self.deadline;
        tokio::select! {
            received = wire.next() => match received {
                Ok(Some(incoming)) => TurnStep::Received(incoming),
                Ok(None) if deadline.is_some() => TurnStep::Ended(PromptEnd::Cancelled),
                Ok(None) => {
                    let failure = RunFailure::agent("the agent closed the connection before it answered");
                    TurnStep::Ended(PromptEnd::Failed(failure))
                }
                Err(failure) => TurnStep::Ended(PromptEnd::Failed(failure)),
            },
            () = cancel, if deadline.is_none() => {
                self.deadline = Some(Instant::now() + self.state.grace);
                TurnStep::Cancel
            }
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                TurnStep::Ended(PromptEnd::Cancelled)
            }
        }
    }

    /// Adds output of the answer and passes it to the listener. Puts an empty line before it if a new paragraph is due
    /// and earlier output does not end with a newline. Ignores empty text.
    pub(super) fn push_output(&mut self, text: &str, on_output: OutputListener<'_>) {
        if text.is_empty() {
            return;
        }
        // Output after a tool call is a new paragraph, but agents rarely send the line break.
        if std::mem::take(&mut self.paragraph_due) && self.output.total() > 0 && !self.line_ended {
            self.output.push(b"\n\n");
            on_output(AgentOutput::Output("\n\n".to_owned()));
        }
        self.line_ended = text.ends_with('\n');
        self.output.push(text.as_bytes());
        on_output(AgentOutput::Output(text.to_owned()));
    }

    /// Makes the next output start a new paragraph.
    pub(super) fn start_paragraph(&mut self) {
        self.paragraph_due = true;
    }

    /// Returns the result of an answered prompt. The conversation can be used again.
    pub(super) fn complete(self, end: PromptEnd) -> PromptResult {
        self.state.busy = false;
        self.abort(end)
    }

    /// Like [`PromptTurn::complete`], with a final text that replaces the output.
    pub(super) fn complete_with(mut self, text: &str) -> PromptResult {
        let limit = self.state.max_output;
        self.output = HeadTailBuffer::new(limit);
        self.output.push(text.as_bytes());
        PromptResult { replaces_output: true, ..self.complete(PromptEnd::Completed) }
    }

    /// Returns the result of a prompt without an answer. The conversation stays busy.
    pub(super) fn abort(self, end: PromptEnd) -> PromptResult {
        PromptResult { output: self.output.finish(), replaces_output: false, end }
    }
}
