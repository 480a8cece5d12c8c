//! Reads the replies of models and falls back to the next model after a failure.

use std::time::Duration;

use futures::StreamExt;
use serde_json::Value;
use tools::{ToolAnswer, ToolOutcome};

use super::{ModelCallRecord, TurnFailure, TurnLoop, timeout_failure, within};
use crate::{ChatModel, ErrorType, ModelUsage, Prompt, ReplyDelta, ToolStep, TurnEvent, log, wording};

/// Time that is reserved for the fallback model.
const FALLBACK_RESERVE: Duration = Duration::from_secs(5);
/// The maximum size of a reply that is read after the filter is full, in bytes.
const MAX_UNSHOWN_BYTES: usize = 16 * 1024;

/// Returns the time to reserve for the fallback model in a turn with this time limit.
pub(super) fn fallback_reserve(time_limit: Duration) -> Duration {
    FALLBACK_RESERVE.min(time_limit / 5)
}

/// The end of a model's reply.
pub(super) enum ReplyEnd {
    /// The reply requests these calls.
    Calls(ToolStep),
    /// The reply has only text. The turn is complete.
    Final,
}

impl TurnLoop<'_, '_> {
    /// Adds a warning and a recoverable `Error` event that name the unavailable MCP servers. The turn continues without
    /// their tools. Has no effect if all servers are available.
    pub(super) fn warn_unavailable_tools(&mut self) {
        let missing = self.toolbox.unavailable_servers();
        if !missing.is_empty() {
            let message = wording::mcp_unavailable(&missing);
            let error_type = ErrorType::McpUnavailable;
            (self.on_event)(TurnEvent::Error { error_type, message: message.clone(), recoverable: true });
            self.warnings.push(message);
        }
    }

    /// Returns the deadline of one model call. Leaves time for the fallback model if the chain has one.
    pub(super) fn model_deadline(&self, has_fallback: bool) -> Option<tokio::time::Instant> {
        let time_limit = self.limits.time_limit;
        let reserve = if has_fallback { fallback_reserve(time_limit) } else { time_limit / 100 };
        self.deadline.and_then(|deadline| deadline.checked_sub(reserve))
    }

    /// Switches to the next model: logs it, adds a warning, and sends a recoverable `Error` event. Text that was
    /// already sent remains, buffered text is sent, and the reply continues on a new line with a new length limit. For
    /// the built-in model, also clears `steps`, the held calls and the failure.
    pub(super) fn fall_back(&mut self, next: &dyn ChatModel, steps: &mut Vec<ToolStep>) {
        let message = wording::model_unavailable(Some(next.is_built_in()));
        log::fell_back(next.name());
        let error_type = ErrorType::ModelUnavailable;
        (self.on_event)(TurnEvent::Error { error_type, message: message.clone(), recoverable: true });
        self.warnings.push(message);
        // The text so far remains. The next reply starts on its own line.
        let rest = self.filter.finish();
        self.emit_delta(rest);
        let line = self.filter.restart();
        self.emit_delta(line);
        self.abandoned = self.filter.text().len();
        // The built-in model only understands its own calls. Nothing has changed, so it can repeat all lookups.
        if next.is_built_in() {
            steps.clear();
            self.held.clear();
            self.failure = None;
        }
    }

    /// Reads one reply and reports its text and thoughts. Stops early, without a failure, after more calls than the
    /// limit, or if the filter is full and the text exceeds [`MAX_UNSHOWN_BYTES`]. Calls before that are returned. Adds
    /// a record of the call unless the model is built in. Fails with [`ErrorType::ModelUnavailable`] if the model
    /// fails, which is logged, and with [`ErrorType::Timeout`] if the deadline of the turn passes.
    pub(super) async fn read_reply(
        &mut self,
        model: &dyn ChatModel,
        prompt: Prompt<'_>,
    ) -> Result<ReplyEnd, TurnFailure> {
        let mut reply = model.reply(prompt);
        let mut step = ToolStep::default();
        let mut usage = ModelUsage::default();
        let pending = || ToolOutcome::Done(ToolAnswer::from_external(Value::Null));
        let end = loop {
            let Some(delta) = within(self.deadline, reply.next()).await else { break Err(timeout_failure()) };
            if !matches!(delta, Some(Ok(ReplyDelta::Thinking(_)))) {
                let rest = self.thoughts.finish(&self.filter);
                self.emit_thought(rest);
            }
            match delta {
                None => break Ok(()),
                Some(Ok(ReplyDelta::Thinking(piece))) => {
                    let thought = self.thoughts.push(&piece, &self.filter);
                    self.emit_thought(thought);
                }
                Some(Ok(ReplyDelta::Text(text))) => {
                    self.push_text(&text);
                    step.text.push_str(&text);
                    // No more text can be shown, but calls may still follow a long text.
                    if self.filter.is_full() && step.text.len() > MAX_UNSHOWN_BYTES {
                        break Ok(());
                    }
                }
                Some(Ok(ReplyDelta::Call(call))) => {
                    step.calls.push((call, pending()));
                    if step.calls.len() > self.limits.max_tool_calls {
                        break Ok(());
                    }
                }
                Some(Ok(ReplyDelta::Usage(used))) => usage += used,
                Some(Ok(ReplyDelta::ProviderState(state))) => step.provider_state = Some(state),
                Some(Err(error)) => {
                    log::failed(ErrorType::ModelUnavailable.as_str(), &error.0, true);
                    break Err(self.model_failure());
                }
            }
        };
        if !model.is_built_in() {
            self.model_calls.push(ModelCallRecord { model: model.name().to_owned(), success: end.is_ok(), usage });
        }
        end.map(|()| if step.calls.is_empty() { ReplyEnd::Final } else { ReplyEnd::Calls(step) })
    }

    /// Returns the failure of a turn after the model failed. Its text lists the completed changes.
    fn model_failure(&self) -> TurnFailure {
        let text = match self.changed_titles().as_slice() {
            [] => wording::system_error().to_owned(),
            done => wording::partly_done(done),
        };
        TurnFailure { error_type: ErrorType::ModelUnavailable, text, code: None }
    }

    fn emit_thought(&mut self, thought: Option<String>) {
        if let Some(content) = thought {
            (self.on_event)(TurnEvent::Thinking { content });
        }
    }
}
