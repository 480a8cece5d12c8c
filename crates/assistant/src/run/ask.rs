//! Asking models, one after the other until one answers.

use std::time::Duration;

use futures::StreamExt;
use serde_json::Value;
use tools::{Answer, Outcome};

use super::{Asked, Broken, Run, late, within};
use crate::{ChatModel, Delta, ErrorType, Prompt, Step, TurnEvent, Usage, log, wording};

/// What is kept of the time for whoever speaks when somebody else has failed.
const RESERVE: Duration = Duration::from_secs(5);
/// How much is listened to of what cannot be shown, in bytes.
const MAX_TEXT: usize = 16 * 1024;

/// Of a turn that may take so long.
pub(super) fn reserve(time: Duration) -> Duration {
    RESERVE.min(time / 5)
}

/// How a reply of the model ended.
pub(super) enum Said {
    /// With calls to carry out.
    Calls(Step),
    /// With words only: the turn is over.
    End,
}

impl Run<'_, '_> {
    /// Says which tools are not there at the moment; the rest works.
    pub(super) fn tell_missing(&mut self) {
        let missing = self.toolbox.missing();
        if !missing.is_empty() {
            let message = wording::mcp_unavailable(&missing);
            let error_type = ErrorType::McpUnavailable;
            (self.watch)(TurnEvent::Error { error_type, message: message.clone(), recoverable: true });
            self.warnings.push(message);
        }
    }

    /// Until when a model may take its time, so that another can still answer.
    pub(super) fn until(&self, another: bool) -> Option<tokio::time::Instant> {
        let reserve = if another { reserve(self.limits.time) } else { self.limits.time / 100 };
        self.deadline.and_then(|deadline| deadline.checked_sub(reserve))
    }

    /// Says that the next model answers, and lets it.
    pub(super) fn fall_back(&mut self, next: &dyn ChatModel, steps: &mut Vec<Step>) {
        let message = wording::model_unavailable(Some(next.is_ours()));
        log::fell_back(next.name());
        let error_type = ErrorType::ModelUnavailable;
        (self.watch)(TurnEvent::Error { error_type, message: message.clone(), recoverable: true });
        self.warnings.push(message);
        // What was said so far stays said; the answer begins on a line of its own.
        let rest = self.screen.finish();
        self.tell(rest);
        let line = self.screen.start_again();
        self.tell(line);
        // The built-in model goes by its own calls. Nothing has been changed: it may look everything up again.
        if next.is_ours() {
            steps.clear();
            self.held.clear();
            self.failure = None;
        }
    }

    /// Takes one reply in.
    pub(super) async fn listen(&mut self, model: &dyn ChatModel, prompt: Prompt<'_>) -> Result<Said, Broken> {
        let mut reply = model.reply(prompt);
        let mut step = Step::default();
        let mut usage = Usage::default();
        let pending = || Outcome::Done(Answer::from_outside(Value::Null));
        let heard = loop {
            let Some(delta) = within(self.deadline, reply.next()).await else { break Err(late()) };
            if !matches!(delta, Some(Ok(Delta::Thinking(_)))) {
                let rest = self.thoughts.finish();
                self.think(rest);
            }
            match delta {
                None => break Ok(()),
                Some(Ok(Delta::Thinking(piece))) => {
                    let thought = self.thoughts.push(&piece);
                    self.think(thought);
                }
                Some(Ok(Delta::Text(text))) => {
                    self.say(&text);
                    step.text.push_str(&text);
                    // Nothing more of it can be shown; but calls may follow what is only too wordy.
                    if self.screen.is_full() && step.text.len() > MAX_TEXT {
                        break Ok(());
                    }
                }
                Some(Ok(Delta::Call(call))) => {
                    step.calls.push((call, pending()));
                    if step.calls.len() > self.limits.max_tool_calls {
                        break Ok(());
                    }
                }
                Some(Ok(Delta::Usage(cost))) => usage += cost,
                Some(Ok(Delta::Memo(memo))) => step.memo = Some(memo),
                Some(Err(error)) => {
                    log::failed(ErrorType::ModelUnavailable.as_str(), &error.0, true);
                    break Err(self.unanswered());
                }
            }
        };
        if !model.is_ours() {
            self.asked.push(Asked { model: model.name().to_owned(), success: heard.is_ok(), usage });
        }
        heard.map(|()| if step.calls.is_empty() { Said::End } else { Said::Calls(step) })
    }

    /// No model answers any more.
    fn unanswered(&self) -> Broken {
        let words = match self.done().as_slice() {
            [] => wording::trouble().to_owned(),
            done => wording::half_done(done),
        };
        Broken { error_type: ErrorType::ModelUnavailable, words, code: None }
    }

    fn think(&mut self, thought: Option<String>) {
        if let Some(content) = thought {
            (self.watch)(TurnEvent::Thinking { content });
        }
    }
}
