//! What an outside model is told: who it is, what was said, what it called and what came of it. How that is written is the
//! business of its wire.

use std::borrow::Cow;

use model::conversation::Role;
use tools::{Outcome, Spec, Specs};

use super::heard::{Called, Kept, Part};
use crate::{Prompt, Step};

/// The part that is the same for everyone, so that providers can keep it ready.
const INSTRUCTIONS: &str = include_str!("instructions.md");

/// Everything that a model is told besides its tools.
pub(super) struct Told<'a> {
    pub(super) system: String,
    pub(super) said: Vec<Said<'a>>,
}

pub(super) enum Said<'a> {
    System(&'a str),
    User(&'a str),
    Assistant(&'a str),
    Round(Round<'a>),
}

/// What a model said when it called tools, and what came of each call.
pub(super) struct Round<'a> {
    pub(super) parts: Cow<'a, [Part]>,
    pub(super) answers: Vec<Answered<'a>>,
}

pub(super) struct Answered<'a> {
    /// What the provider calls it, or what we do where it does not.
    pub(super) id: Cow<'a, str>,
    pub(super) name: &'a str,
    pub(super) text: String,
}

impl<'a> Told<'a> {
    /// For a model of this name.
    pub(super) fn new(prompt: &Prompt<'a>, model: &str) -> Self {
        let mut said = Vec::with_capacity(prompt.context.history.len() + prompt.steps.len() + 1);
        for message in prompt.context.history.iter().filter(|message| !message.content.trim().is_empty()) {
            said.push(match message.role {
                Role::User => Said::User(&message.content),
                Role::Assistant => Said::Assistant(&message.content),
                Role::System => Said::System(&message.content),
            });
        }
        said.push(Said::User(&prompt.request.message));
        let rounds = prompt.steps.iter().enumerate().map(|(n, step)| Said::Round(round(n, step, model, prompt.tools)));
        said.extend(rounds);
        Self { system: system(prompt), said }
    }

    /// All that is said by the system, for those who want it in one place.
    pub(super) fn whole_system(&self) -> Cow<'_, str> {
        let more = self.said.iter().filter_map(|said| if let Said::System(text) = said { Some(*text) } else { None });
        more.fold(Cow::Borrowed(self.system.as_str()), |all, text| Cow::Owned(format!("{all}\n\n{text}")))
    }
}

/// How long the conversation is, for the log.
pub(super) fn length(prompt: &Prompt<'_>) -> usize {
    let history: usize = prompt.context.history.iter().map(|message| message.content.len()).sum();
    INSTRUCTIONS.len() + history + prompt.request.message.len()
}

fn system(prompt: &Prompt<'_>) -> String {
    let now = &prompt.request.now;
    let zone = now.time_zone().iana_name().unwrap_or("the person's time zone");
    format!("{INSTRUCTIONS}\nIt is {}, {} in {zone}.", now.strftime("%A, %Y-%m-%d"), now.strftime("%H:%M"))
}

fn round<'a>(n: usize, step: &'a Step, model: &str, specs: &Specs) -> Round<'a> {
    let kept = step.memo.as_ref().and_then(|memo| memo.0.downcast_ref::<Kept>()).filter(|kept| kept.by == model);
    let parts: Cow<'a, [Part]> = match kept {
        Some(kept) => Cow::Borrowed(&kept.parts),
        // Another model's: only what it called means anything to this one.
        None => step.calls.iter().map(|(call, _)| Part::Call(Called::of(call))).collect(),
    };
    let own = |at: usize| match kept.and_then(|kept| kept.calls().nth(at)) {
        Some(call) if !call.id.is_empty() => Cow::Borrowed(call.id.as_str()),
        _ => Cow::Owned(format!("call_{n}_{at}")),
    };
    let answers = step.calls.iter().enumerate().map(|(at, (call, outcome))| {
        let spec = specs.iter().find(|spec| spec.name == call.name);
        Answered { id: own(at), name: &call.name, text: told(spec, outcome) }
    });
    Round { parts, answers: answers.collect() }
}

/// What came of a call, in the words of S3.
fn told(spec: Option<&Spec>, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(answer) => answer.text(spec.and_then(|spec| spec.tool)),
        Outcome::Held(_) => {
            "Not done yet: the person is asked to confirm it, and it is done when they do. Do not call it again."
                .to_owned()
        }
    }
}
