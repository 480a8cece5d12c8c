//! The end of a turn: the lines that follow the text of the model, the question about held calls, and the result.

use tools::{HeldCalls, ToolKind};
use understand::Intent;

use super::{AgentResult, TurnFailure, TurnLoop};
use crate::confirm::OpenQuestion;
use crate::{ErrorType, TurnEvent, wording};

impl TurnLoop<'_, '_> {
    /// Returns the failure of a turn with too many calls. Its text lists the completed changes.
    pub(super) fn too_many_calls(&self) -> TurnFailure {
        let text = wording::too_many_calls(&self.changed_titles());
        TurnFailure { error_type: ErrorType::LimitReached, text, code: None }
    }

    /// Returns the quoted titles of the tasks that this turn has changed. Results without a title are left out.
    pub(super) fn changed_titles(&self) -> Vec<String> {
        let changes = |name: &str| self.specs.iter().any(|spec| spec.name == name && !spec.read_only);
        let done = self.records.iter().filter(|call| call.error.is_none() && changes(&call.tool_name));
        done.filter_map(|call| call.result["title"].as_str()).map(|title| format!("'{title}'")).collect()
    }

    /// Ends the turn with this reply.
    pub(super) fn answer(mut self, text: &str) -> AgentResult {
        let piece = self.filter.push(text);
        self.emit_delta(piece);
        self.end()
    }

    /// Ends the turn: the text of the model, then the question about held calls. If a provider model sent no text, the
    /// changes are listed before that question. Without text and held calls, the reply has the sentences about the
    /// confirmed calls, else the failure of the last tool call, else it lists the changes. If there is none of these,
    /// reports [`ErrorType::ModelUnavailable`] as a recoverable event and as the failure. What a provider model claims
    /// is corrected and completed. An earlier question that is still open is the last line.
    pub(super) fn end(mut self) -> AgentResult {
        let rest = self.filter.finish();
        self.emit_delta(rest);
        let held = HeldCalls::new(std::mem::take(&mut self.held));
        let has_text = self.has_text();
        if held.is_some() {
            if !has_text && self.changed && !self.is_built_in {
                self.add_done();
            }
        } else if !has_text {
            match self.confirmed.take() {
                Some(text) => self.add_line(&text),
                // The model has made the changes but has sent no text.
                None if self.failure.is_none() && self.changed => self.add_done(),
                None => self.add_failure(),
            }
        }
        if !self.is_built_in {
            self.correct_claims();
        } else if !self.changed {
            self.correct_abandoned_text();
        }
        self.end_with_question(held)
    }

    /// Corrects the text of a provider model that failed before the built-in model answered.
    fn correct_abandoned_text(&mut self) {
        let text = self.filter.text().get(self.preface..self.abandoned).unwrap_or_default().to_owned();
        self.correct_without_changes(&text);
    }

    /// Adds the question about new held calls, else the earlier question that is still open. New held calls replace the
    /// earlier question.
    pub(super) fn end_with_question(mut self, held: Option<HeldCalls>) -> AgentResult {
        let now = &self.request.now;
        match (held, self.open.take()) {
            (Some(held), open) => {
                let question = wording::confirm(&held, now);
                let is_same = |old: &OpenQuestion| old.held.as_ref().is_some_and(|old| old.calls == held.calls);
                if open.is_some_and(|old| !is_same(&old)) {
                    self.add_line(&wording::question_replaced());
                }
                self.add_line(&question);
                self.result(Some(held))
            }
            (None, Some(open)) => {
                let line = wording::still_open(&open.question(now));
                self.add_line(&line);
                self.result(open.held)
            }
            (None, None) => self.result(None),
        }
    }

    /// Returns whether the reply has text of the model.
    pub(super) fn has_text(&self) -> bool {
        self.filter.text().get(self.preface..).is_some_and(|text| !text.trim().is_empty())
    }

    /// Adds a line before the text of the model.
    pub(super) fn add_preface(&mut self, text: &str) {
        self.add_line(text);
        let line = self.filter.restart();
        self.emit_delta(line);
        self.preface = self.filter.text().len();
    }

    pub(super) fn add_done(&mut self) {
        let text = wording::done(&self.changed_titles());
        self.add_line(&text);
    }

    /// Adds the failure of the last tool call. Without one, reports that the model has not answered.
    pub(super) fn add_failure(&mut self) {
        let failure_text = self.failure.as_ref().map(|failure| failure.text.clone());
        let text = failure_text.unwrap_or_else(|| wording::system_error().to_owned());
        if self.failure.is_none() {
            let error_type = ErrorType::ModelUnavailable;
            self.failure = Some(TurnFailure { error_type, text: text.clone(), code: None });
            (self.on_event)(TurnEvent::Error { error_type, message: text.clone(), recoverable: true });
        }
        self.add_line(&text);
    }

    /// Ends the turn after the failure of the last possible model. After confirmed calls, the reply has the sentences
    /// about them, and the failure is only a warning.
    pub(super) fn end_without_model(mut self, failure: TurnFailure) -> AgentResult {
        let Some(text) = self.confirmed.take() else { return self.abort(failure) };
        let message = wording::model_unavailable(None);
        let error_type = failure.error_type;
        (self.on_event)(TurnEvent::Error { error_type, message: message.clone(), recoverable: true });
        self.warnings.push(message);
        let rest = self.filter.finish();
        self.emit_delta(rest);
        self.add_line(&text);
        let held = HeldCalls::new(std::mem::take(&mut self.held));
        self.end_with_question(held)
    }

    /// Ends the turn with a failure: sends the buffered text, an `Error` event that is not recoverable, and the text of
    /// the failure as the last line of the reply. The event has that text too, except for
    /// [`ErrorType::ModelUnavailable`], which has its own sentence. Changes so far remain. Held calls are dropped.
    pub(super) fn abort(mut self, failure: TurnFailure) -> AgentResult {
        let rest = self.filter.finish();
        self.emit_delta(rest);
        if !self.is_built_in && !self.changed {
            self.correct_claims();
        }
        let TurnFailure { error_type, text, .. } = &failure;
        let message = match error_type {
            ErrorType::ModelUnavailable => wording::model_unavailable(None),
            _ => text.clone(),
        };
        (self.on_event)(TurnEvent::Error { error_type: *error_type, message, recoverable: false });
        let text = text.clone();
        self.add_line(&text);
        self.failure = Some(failure);
        self.result(None)
    }

    /// Adds text of the assistant on its own line. It needs no filter, except for ids.
    pub(super) fn add_line(&mut self, text: &str) {
        let text = self.filter.without_ids(text);
        let line = self.filter.add_line(&text);
        self.emit_delta(Some(line));
    }

    /// Creates the result from the state of the turn. After a confirmation, the kind of the confirmed tool determines the
    /// intent. Otherwise the first command determines it, as `ClarificationNeeded` if a slot is missing. Without
    /// commands it is `Unknown`. The turn is a success if it has no failure.
    pub(super) fn result(self, pending: Option<HeldCalls>) -> AgentResult {
        let command = self.request.utterance.commands.first();
        let (intent, confidence) = match command {
            Some(_) if self.released => (self.released_intent(), 1.0),
            Some(command) if command.missing.is_some() => (Intent::ClarificationNeeded, command.confidence),
            Some(command) => (command.intent, command.confidence),
            None => (Intent::Unknown, 0.0),
        };
        let (error, error_type, tool_error) = match self.failure {
            Some(TurnFailure { error_type, text, code }) => (Some(text), Some(error_type), code),
            None => (None, None, None),
        };
        AgentResult {
            success: error.is_none(),
            response: self.filter.text().trim_end().to_owned(),
            tool_calls: self.records,
            error,
            error_type,
            tool_error,
            pending,
            warnings: self.warnings,
            model_calls: self.model_calls,
            answered_by: self.answered_by,
            intent,
            confidence,
        }
    }

    /// Returns the intent of the confirmed calls, from the tool that was called first.
    fn released_intent(&self) -> Intent {
        let kind = self.records.first().and_then(|record| {
            let spec = self.specs.iter().find(|spec| spec.name == record.tool_name)?;
            spec.kind
        });
        match kind {
            Some(ToolKind::Complete | ToolKind::CompleteSeveral) => Intent::CompleteTask,
            Some(ToolKind::Update | ToolKind::UpdateSeveral) => Intent::UpdateTask,
            Some(ToolKind::Add) => Intent::CreateTask,
            Some(ToolKind::Undo) => Intent::Undo,
            Some(ToolKind::Remind) => Intent::ScheduleReminder,
            Some(ToolKind::List | ToolKind::Delete | ToolKind::DeleteSeveral) | None => Intent::DeleteTask,
            Some(_) => Intent::Unknown,
        }
    }
}
