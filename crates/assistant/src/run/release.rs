//! Carrying out what the user has confirmed. No model is asked.

use serde_json::{Value, json};
use tools::{Act, Arguments, Consent, Held, Outcome, Target, Tool};

use super::{AgentResult, CallError, Run, late};
use crate::{Call, TurnEvent, wording};

impl Run<'_, '_> {
    /// What the user agreed to is done, and nothing else.
    pub(super) async fn release(mut self, held: Held) -> store::Result<AgentResult> {
        self.released = true;
        let specs = self.specs.clone();
        // What another program kept may have been changed there: only what can be held is released.
        if !held.acts.iter().all(|act| specs.iter().any(|spec| act.fits(spec))) {
            return Ok(self.answer(&wording::confirm_again()));
        }
        if held.acts.len() > self.limits.max_tool_calls {
            let broken = self.too_many();
            return Ok(self.break_off(broken));
        }
        (self.watch)(TurnEvent::Thinking { content: wording::agreed().to_owned() });
        let mut sentences = Vec::with_capacity(held.acts.len());
        for act in &held.acts {
            let call = Call { name: act.tool.clone(), arguments: Value::Object(act.arguments.clone()).to_string() };
            let outcome = match self.carry_out(&call, Consent::Given).await {
                Ok(outcome) => outcome,
                Err(CallError::Late) => return Ok(self.break_off(late())),
                Err(CallError::Store(error)) => return Err(error),
            };
            let Outcome::Done(answer) = outcome else { continue };
            sentences.push(wording::released(act, &answer, self.request.now.date()));
        }
        Ok(self.answer(&sentences.join("\n")))
    }

    /// The act is lost, its title is not: found again it is done, unless two tasks are called so.
    pub(super) async fn release_by_title(mut self, title: &str) -> store::Result<AgentResult> {
        let specs = self.specs.clone();
        let find = |tool| specs.iter().find(|spec| spec.tool == Some(tool));
        let (Some(list), Some(delete)) = (find(Tool::List), find(Tool::Delete)) else {
            return Ok(self.answer(&wording::confirm_again()));
        };
        let wanted = json!({"status": "all", "query": title, "limit": 200});
        let look = Call { name: list.name.to_string(), arguments: wanted.to_string() };
        let tasks = match self.carry_out(&look, Consent::Missing).await {
            Ok(Outcome::Done(answer)) => answer.into_data()["tasks"].take(),
            Ok(Outcome::Held(_)) | Err(CallError::Late) => return Ok(self.break_off(late())),
            Err(CallError::Store(error)) => return Err(error),
        };
        let matches: Vec<_> = tasks.as_array().into_iter().flatten().filter(|task| task["title"] == title).collect();
        match matches.as_slice() {
            [] => Ok(self.answer(&wording::not_found(title))),
            [task] => {
                let arguments = Arguments::from_iter([(delete.id_key().to_owned(), task["id"].clone())]);
                let targets = vec![Target { id: task["id"].clone(), title: title.to_owned() }];
                let act = Act { tool: delete.name.to_string(), arguments, targets, bulk: false };
                match Held::of(vec![act]) {
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
