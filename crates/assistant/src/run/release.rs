//! Carries out the calls that the user has confirmed. Uses no model.

use serde_json::{Value, json};
use tools::{CallTarget, Consent, HeldCall, HeldCalls, ToolArguments, ToolKind, ToolOutcome};

use super::{AgentResult, ToolCallError, TurnLoop, timeout_failure};
use crate::{RequestedCall, TurnEvent, wording};

impl TurnLoop<'_, '_> {
    /// Carries out exactly the confirmed calls, in order, and replies with one sentence for each. If one of them cannot
    /// be a held call of its tool, carries out none and asks the user to repeat the request. If there are more than the
    /// limit, carries out none and ends with the error type `LimitReached`. If the deadline passes, ends with a timeout.
    /// The calls so far remain then. A failed call does not stop the rest. Fails only if the database fails in a turn
    /// without a deadline.
    pub(super) async fn release(mut self, held: HeldCalls) -> store::Result<AgentResult> {
        self.released = true;
        let specs = self.specs.clone();
        // A client that stores the conversation may have changed the calls. Only calls that can be held are released.
        if !held.calls.iter().all(|call| specs.iter().any(|spec| call.matches_spec(spec))) {
            return Ok(self.answer(&wording::confirm_again()));
        }
        if held.calls.len() > self.limits.max_tool_calls {
            let failure = self.too_many_calls();
            return Ok(self.abort(failure));
        }
        (self.on_event)(TurnEvent::Thinking { content: wording::confirmed_thought().to_owned() });
        let mut sentences = Vec::with_capacity(held.calls.len());
        for held_call in &held.calls {
            let arguments = Value::Object(held_call.arguments.clone()).to_string();
            let call = RequestedCall { name: held_call.tool.clone(), arguments };
            let outcome = match self.call_tool(&call, Consent::Given).await {
                Ok(outcome) => outcome,
                Err(ToolCallError::TimedOut) => return Ok(self.abort(timeout_failure())),
                Err(ToolCallError::Store(error)) => return Err(error),
            };
            let ToolOutcome::Done(answer) = outcome else { continue };
            let kind = specs.iter().find(|spec| spec.name == held_call.tool).and_then(|spec| spec.kind);
            sentences.push(wording::released(held_call, kind, &answer, &self.request.now));
        }
        Ok(self.answer(&sentences.join("\n")))
    }

    /// Deletes the task with exactly this title, as if its held call were confirmed. Used if the held call itself is
    /// unknown. Searches at most 200 tasks of any status. Asks the user if several match. Reports that none was found,
    /// also if the search failed. Asks to repeat the request if there is no tool to list or delete tasks. A timeout, or
    /// a search tool that is held, ends the turn with a timeout. Fails only if the database fails in a turn without a
    /// deadline.
    pub(super) async fn release_by_title(mut self, title: &str) -> store::Result<AgentResult> {
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
                let arguments = ToolArguments::from_iter([(delete.task_id_argument().to_owned(), task["id"].clone())]);
                let targets = vec![CallTarget { id: task["id"].clone(), title: title.to_owned() }];
                let call = HeldCall { tool: delete.name.to_string(), arguments, targets, bulk: false };
                match HeldCalls::new(vec![call]) {
                    Some(held) => self.release(held).await,
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
