//! The built-in model: no key, no network. A fixed policy over the transcript, made with the language engine:
//! understand, look up, act, put it into words. The same conversation always leads to the same calls.

mod acts;
mod agents;
mod follow_up;
mod lookup;
mod matching;
mod schedules;
mod small_talk;
mod theirs;
mod timing;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::Value;
use tools::{Answer, Arguments, Outcome, Spec, Tool};
use understand::Target;

use crate::shown::{self, Mention};
use crate::{Call, ChatModel, Delta, ModelError, Prompt, wording};

#[derive(Clone, Copy, Debug, Default)]
pub struct Offline;

impl ChatModel for Offline {
    fn name(&self) -> &str {
        "offline"
    }

    fn is_immediate(&self) -> bool {
        true
    }

    fn is_ours(&self) -> bool {
        true
    }

    fn reply<'a>(&'a self, prompt: Prompt<'a>) -> BoxStream<'a, Result<Delta, ModelError>> {
        let deltas = match Policy::new(prompt).run() {
            Ok(text) => text.split_inclusive('\n').map(|line| Delta::Text(line.to_owned())).collect(),
            Err(Ask(call)) => vec![Delta::Call(call)],
        };
        stream::iter(deltas.into_iter().map(Ok)).boxed()
    }
}

/// The policy is a plain function that calls tools as if they answered at once. A call that has an answer in the
/// transcript gets it; the first that has none ends the function, is made by the loop, and everything is run again.
struct Policy<'a> {
    prompt: Prompt<'a>,
    answered: usize,
    /// What "it" means at this point.
    last: Option<Mention>,
    /// With many commands one look at the list serves all of them.
    list: Look<'a>,
}

enum Look<'a> {
    /// Each name is looked up by itself.
    Each,
    /// The first name looks at the list for all.
    Once,
    Seen(&'a [Value]),
}

/// A call that has no answer yet.
struct Ask(Call);

/// What came of a call.
enum Reply<'a> {
    Done(&'a Value),
    /// The code and the message of a refusal.
    Refused(&'a str, &'a str),
    /// It waits for consent, which the loop asks for.
    Held,
}

impl<'a> Policy<'a> {
    fn new(prompt: Prompt<'a>) -> Self {
        let last = shown::last_task(&prompt.context.history);
        Self { prompt, answered: 0, last, list: Look::Each }
    }

    fn run(mut self) -> Result<String, Ask> {
        if let Some(said) = agents::answer(&mut self)? {
            return Ok(said);
        }
        let mut sentences = Vec::new();
        let commands = follow_up::commands(&self.prompt);
        if commands.iter().filter(|wanted| wanted.command.target.is_some()).count() > 2 {
            self.list = Look::Once;
        }
        for wanted in &commands {
            let said = acts::carry_out(&mut self, wanted)?;
            let is_none = |said: &String| matches!(&wanted.command.target, Some(Target::Named(n)) if *said == wording::not_found(n));
            sentences.extend(match said {
                Some(said) if wanted.if_found && is_none(&said) => Some(small_talk::answer(&self.prompt)),
                said => said,
            });
        }
        Ok(sentences.join("\n"))
    }

    fn spec(&self, tool: Tool) -> Option<&'a Spec> {
        self.prompt.tools.iter().find(|spec| spec.tool == Some(tool))
    }

    /// The answer to this call, once it has been made.
    fn call(&mut self, spec: &Spec, mut arguments: Arguments) -> Result<Reply<'a>, Ask> {
        let outcome = self.prompt.steps.iter().flat_map(|step| &step.calls).nth(self.answered);
        let Some((_, outcome)) = outcome else {
            // Another's tool may know less about tasks than ours.
            if !spec.is_ours() {
                arguments.retain(|name, _| spec.takes(name));
            }
            let arguments = Value::Object(arguments).to_string();
            return Err(Ask(Call { name: spec.name.to_string(), arguments }));
        };
        self.answered += 1;
        Ok(match outcome {
            Outcome::Held(_) => Reply::Held,
            Outcome::Done(answer) => match Answer::error(answer) {
                Some((code, message)) => Reply::Refused(code, message),
                None => Reply::Done(answer.data()),
            },
        })
    }
}
