//! Carries out the calls that the user has confirmed. With the built-in model, the reply has one sentence for each
//! call. A provider model gets the results and continues.

use std::collections::HashMap;

use serde_json::{Value, json};
use tools::held::HeldVerb;
use tools::{CallTarget, Consent, HeldCall, HeldCalls, ToolArguments, ToolKind, ToolOutcome};
use uuid::Uuid;

use super::{AgentResult, ToolCallError, TurnLoop, timeout_failure};
use crate::confirm::OpenQuestion;
use crate::{ModelChain, RequestedCall, ToolStep, TurnEvent, wording};

impl TurnLoop<'_, '_> {
    /// Carries out exactly the confirmed calls, in order. Tasks that no longer exist or have another title are left out
    /// and named. With a built-in model, replies with one sentence for each call. A provider model continues with the
    /// results. If that fails, the reply has these sentences.
    ///
    /// If one of the calls cannot be a held call of its tool, carries out none and asks the user to repeat the request.
    /// If there are more than the limit, carries out none and ends with the error type `LimitReached`. If the deadline
    /// passes, ends with a timeout. The calls so far remain then. A failed call does not stop the rest. Fails only if
    /// the database fails in a turn without a deadline.
    pub(super) async fn release(mut self, held: HeldCalls, models: &ModelChain) -> store::Result<AgentResult> {
        self.released = true;
        let specs = self.specs.clone();
        // A client that stores the conversation may have changed the calls. Only calls that can be held are released.
        if !self.are_possible(&held) {
            return Ok(self.answer(&wording::confirm_again()));
        }
        if held.calls.len() > self.limits.max_tool_calls {
            let failure = self.too_many_calls();
            return Ok(self.abort(failure));
        }
        (self.on_event)(TurnEvent::Thinking { content: wording::confirmed_thought().to_owned() });
        let (calls, skipped) = self.without_changed_targets(held).await?;
        if !skipped.is_empty() {
            self.add_preface(&skipped);
        }
        let mut sentences = Vec::with_capacity(calls.len());
        let mut step = ToolStep::default();
        for held_call in &calls {
            let arguments = Value::Object(held_call.arguments.clone()).to_string();
            let call = RequestedCall { name: held_call.tool.clone(), arguments };
            let outcome = match self.call_tool(&call, Consent::Given).await {
                Ok(outcome) => outcome,
                Err(ToolCallError::TimedOut) => return Ok(self.abort(timeout_failure())),
                Err(ToolCallError::Store(error)) => return Err(error),
            };
            if let ToolOutcome::Done(answer) = &outcome {
                let kind = specs.iter().find(|spec| spec.name == held_call.tool).and_then(|spec| spec.kind);
                sentences.push(wording::released(held_call, kind, answer, &self.request.now));
            }
            step.calls.push((call, outcome));
        }
        if step.calls.is_empty() {
            // The preface names the tasks that were left out.
            return Ok(self.result(None));
        }
        let text = sentences.join("\n");
        if models.first().is_built_in() {
            return Ok(self.answer(&text));
        }
        self.confirmed = Some(text);
        self.continue_models(models, vec![step]).await
    }

    /// Exempts the tool of the single held call from confirmations, and releases the call. If the tool cannot be
    /// exempted, asks the user to repeat the request. Fails as [`Self::release`] does, and if the permission cannot be
    /// stored.
    pub(super) async fn allow_always(mut self, held: HeldCalls, models: &ModelChain) -> store::Result<AgentResult> {
        let tool = held.calls.first().map(|call| call.tool.clone()).unwrap_or_default();
        if !self.are_possible(&held) || !self.toolbox.allow_always(&tool).await? {
            return Ok(self.answer(&wording::confirm_again()));
        }
        self.add_preface(&wording::allowed_always(&tool));
        self.release(held, models).await
    }

    /// Asks about some of the targets of the earlier question. The completion or the change of a single task is carried
    /// out, because it needs no confirmation. Fails as [`Self::release`] does.
    pub(super) async fn narrow(mut self, held: HeldCalls, models: &ModelChain) -> store::Result<AgentResult> {
        if !self.are_possible(&held) {
            return Ok(self.answer(&wording::confirm_again()));
        }
        let is_single = |call: &HeldCall| call.targets.len() == 1;
        match held.calls.as_slice() {
            [call] if is_single(call) && call.verb() != HeldVerb::Delete => self.release(held, models).await,
            [call] if is_single(call) => {
                let delete = self.specs.iter().find(|spec| spec.kind == Some(ToolKind::Delete) && spec.is_built_in());
                let single = delete.map(|spec| {
                    let target = call.targets[0].clone();
                    HeldCall::single(&spec.name, spec.task_id_argument(), target)
                });
                self.held = vec![single.unwrap_or_else(|| call.clone())];
                Ok(self.end())
            }
            _ => {
                self.held = held.calls;
                Ok(self.end())
            }
        }
    }

    /// Repeats a question. The calls are stored again with the reply.
    pub(super) fn repeat(mut self, question: OpenQuestion) -> AgentResult {
        let text = wording::repeat_question(&question.question(&self.request.now));
        self.add_line(&text);
        self.result(question.held)
    }

    /// Returns whether each call can be a held call of a tool of this turn.
    fn are_possible(&self, held: &HeldCalls) -> bool {
        held.calls.iter().all(|call| self.specs.iter().any(|spec| call.matches_spec(spec)))
    }

    /// Removes the targets that no longer exist or have another title since the question. Returns the remaining calls,
    /// and a sentence about the removed tasks, which is empty if there are none. Tasks of external servers are not
    /// checked. Fails if the database fails in a turn without a deadline.
    async fn without_changed_targets(&mut self, held: HeldCalls) -> store::Result<(Vec<HeldCall>, String)> {
        let is_built_in = |call: &HeldCall| self.specs.iter().any(|spec| spec.name == call.tool && spec.is_built_in());
        let own: Vec<bool> = held.calls.iter().map(is_built_in).collect();
        let targets = held.calls.iter().zip(&own).filter(|(_, is_own)| **is_own).flat_map(|(call, _)| &call.targets);
        let ids: Vec<Uuid> = targets.filter_map(target_id).collect();
        let titles: HashMap<Uuid, String> = self.toolbox.titles(&ids).await?;
        let (mut gone, mut renamed) = (Vec::new(), Vec::new());
        for target in held.calls.iter().zip(&own).filter(|(_, is_own)| **is_own).flat_map(|(call, _)| &call.targets) {
            match target_id(target).and_then(|id| titles.get(&id)) {
                None => gone.push(target.title.as_str()),
                Some(title) if *title != target.title => renamed.push(target.title.as_str()),
                Some(_) => {}
            }
        }
        let skipped = wording::skipped(&gone, &renamed);
        let is_kept = |target: &CallTarget| {
            target_id(target).and_then(|id| titles.get(&id)).is_some_and(|title| *title == target.title)
        };
        let calls = held.calls.iter().zip(&own);
        let calls = calls.filter_map(|(call, is_own)| {
            let call = call.clone();
            if *is_own { call.retain_targets(is_kept) } else { Some(call) }
        });
        Ok((calls.collect(), skipped))
    }

    /// Deletes the task with exactly this title, as if its held call were confirmed. Used if the held call itself is
    /// unknown. Searches at most 200 tasks of any status. Asks the user if several match. Reports that none was found,
    /// also if the search failed. Asks to repeat the request if there is no tool to list or delete tasks. A timeout, or
    /// a search tool that is held, ends the turn with a timeout. Fails only if the database fails in a turn without a
    /// deadline.
    pub(super) async fn release_by_title(mut self, title: &str, models: &ModelChain) -> store::Result<AgentResult> {
        let specs = self.specs.clone();
        let find = |kind| specs.iter().find(|spec| spec.kind == Some(kind));
        let (Some(list), Some(delete)) = (find(ToolKind::List), find(ToolKind::Delete)) else {
            return Ok(self.answer(&wording::confirm_again()));
        };
        let arguments = json!({"status": "all", "query": title, "limit": 200});
        let search = RequestedCall { name: list.name.to_string(), arguments: arguments.to_string() };
        let tasks = match self.call_tool(&search, Consent::UserRequest).await {
            Ok(ToolOutcome::Done(answer)) => answer.into_data()["tasks"].take(),
            Ok(ToolOutcome::Held(_)) | Err(ToolCallError::TimedOut) => return Ok(self.abort(timeout_failure())),
            Err(ToolCallError::Store(error)) => return Err(error),
        };
        let matches: Vec<_> = tasks.as_array().into_iter().flatten().filter(|task| task["title"] == title).collect();
        match matches.as_slice() {
            [] => Ok(self.answer(&wording::not_found(title))),
            [task] => {
                let target = CallTarget { id: task["id"].clone(), title: title.to_owned() };
                let key = delete.task_id_argument();
                let arguments = ToolArguments::from_iter([(key.to_owned(), task["id"].clone())]);
                let call = HeldCall::with_targets(&delete.name, arguments, vec![target], false);
                match HeldCalls::new(vec![call]) {
                    Some(held) => self.release(held, models).await,
                    None => Ok(self.answer(&wording::confirm_again())),
                }
            }
            several => {
                let titles: Vec<_> = several.iter().filter_map(|task| task["title"].as_str()).collect();
                Ok(self.answer(&wording::ambiguous(title, &titles)))
            }
        }
    }
}

/// Returns the id of one of our own tasks.
fn target_id(target: &CallTarget) -> Option<Uuid> {
    Uuid::try_parse(target.id.as_str()?).ok()
}
