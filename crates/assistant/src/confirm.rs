//! Recognizes confirmations of held calls (AGENT-7). A call is released only by the exact phrase, as the answer to the
//! question. The question stays open over one other message, and is repeated once for an agreement without the phrase.

mod answer;

use model::conversation::MessageRole;
use tools::HeldCalls;
use tools::held::{CONFIRM_DELETE_PHRASE, normalize};

use crate::{AgentContext, wording};
pub(crate) use answer::target_titles;
use answer::{ConfirmationAnswer, read_answer, selected_targets};

/// The effect of a message on the question of the last message.
pub(crate) enum ConfirmationReply {
    /// Releases these calls.
    Release(HeldCalls),
    /// Releases these calls and allows their tool from now on.
    AllowAlways(HeldCalls),
    /// Confirms a deletion that is known only by the title of its task.
    ReleaseByTitle(String),
    /// Confirms calls that can no longer be identified.
    UnknownCalls,
    /// Agrees without the phrase. The question is repeated.
    Repeat(OpenQuestion),
    /// Agrees without the phrase again. The calls are dropped.
    Cancel,
    /// Refuses. The calls are dropped.
    Refuse,
    /// Refuses, and the rest of the message is a new request.
    RefuseThen(Option<HeldCalls>, String),
    /// Refuses except for some of the targets.
    Narrow(HeldCalls),
    /// Is about something else. The question stays open for one more message.
    Postpone(OpenQuestion),
    /// Is about something else, and no question is open any more.
    NoQuestion,
}

/// A question that waits for its phrase.
#[derive(Clone)]
pub(crate) struct OpenQuestion {
    /// `None` if only the text of the question is known, because the caller stores only texts.
    pub(crate) held: Option<HeldCalls>,
    /// The text of the question, if the calls are unknown.
    text: String,
    repeated: u8,
    postponed: u8,
}

impl OpenQuestion {
    /// Returns the question of the last message, or `None` if it asks for no confirmation. Text identifies a question
    /// only if the caller stores the conversation.
    fn find(context: &AgentContext) -> Option<Self> {
        if let Some(held) = &context.pending {
            let (repeated, postponed) = (held.repeated, held.postponed);
            return Some(Self { held: Some(held.clone()), text: String::new(), repeated, postponed });
        }
        let last = context.history.last().filter(|message| message.role == MessageRole::Assistant)?;
        if context.is_stored {
            return None;
        }
        wording::read_phrase(&last.content)?;
        let question = last.content.lines().next_back()?;
        Some(Self {
            held: None,
            text: wording::without_still_open(question).to_owned(),
            repeated: u8::from(wording::is_repeated(&last.content)),
            postponed: u8::from(wording::is_still_open(question)),
        })
    }

    /// Returns the question.
    pub(crate) fn question(&self, now: &jiff::Zoned) -> String {
        self.held.as_ref().map_or_else(|| self.text.clone(), |held| wording::confirm(held, now))
    }

    /// Returns the calls to store with the repeated question.
    fn repeat(mut self) -> Self {
        self.repeated = self.repeated.saturating_add(1);
        self.with_counters()
    }

    /// Returns the calls to store with an answer to something else.
    fn postpone(mut self) -> Self {
        self.postponed = self.postponed.saturating_add(1);
        self.with_counters()
    }

    fn with_counters(mut self) -> Self {
        if let Some(held) = &mut self.held {
            (held.repeated, held.postponed) = (self.repeated, self.postponed);
        }
        self
    }
}

/// Returns the effect of `message` on the question of the last message. If held calls are known, only their phrase
/// releases them. Otherwise the last message must be from the assistant and `message` the phrase that it asks for.
/// Returns the title if that message asks to delete tasks and the conversation is not in the store, else
/// [`ConfirmationReply::UnknownCalls`]. Several titles are returned as one text. Case, quotes, commas and end
/// punctuation are ignored.
pub(crate) fn read_confirmation(context: &AgentContext, message: &str) -> ConfirmationReply {
    if let Some(held) = &context.pending {
        if held.is_confirmed_by(message) {
            return ConfirmationReply::Release(held.clone());
        }
        if held.is_allowed_by(message) {
            return ConfirmationReply::AllowAlways(held.clone());
        }
    } else if let Some(reply) = read_text_confirmation(context, message) {
        return reply;
    }
    let Some(question) = OpenQuestion::find(context) else { return ConfirmationReply::NoQuestion };
    let held = question.held.clone();
    let selected = held.as_ref().and_then(|held| narrowed(message, held));
    if let Some(narrowed) = selected {
        return ConfirmationReply::Narrow(narrowed);
    }
    match read_answer(message, held.as_ref()) {
        ConfirmationAnswer::Agreement if question.repeated == 0 => ConfirmationReply::Repeat(question.repeat()),
        ConfirmationAnswer::Agreement => ConfirmationReply::Cancel,
        ConfirmationAnswer::Refusal => ConfirmationReply::Refuse,
        ConfirmationAnswer::RefusalThen(rest) => ConfirmationReply::RefuseThen(held, rest.to_owned()),
        ConfirmationAnswer::Other if question.postponed == 0 => ConfirmationReply::Postpone(question.postpone()),
        ConfirmationAnswer::Other => ConfirmationReply::NoQuestion,
    }
}

/// Returns the effect of the phrase that the last text asks for, or `None` if `message` is not that phrase. A caller
/// that stores the conversation may have stored only the texts.
fn read_text_confirmation(context: &AgentContext, message: &str) -> Option<ConfirmationReply> {
    let last = context.history.last().filter(|message| message.role == MessageRole::Assistant)?;
    if !context.is_stored
        && normalize(message) == CONFIRM_DELETE_PHRASE
        && let Some(title) = wording::read_confirm(&last.content)
    {
        return Some(ConfirmationReply::ReleaseByTitle(title));
    }
    let phrase = wording::read_phrase(&last.content)?;
    (normalize(message) == phrase).then_some(ConfirmationReply::UnknownCalls)
}

/// Returns the held calls with only the targets that the message selects, or `None` if it selects none.
fn narrowed(message: &str, held: &HeldCalls) -> Option<HeldCalls> {
    let selected = selected_targets(message, held)?;
    let titles = target_titles(held);
    let ids: Vec<&String> = selected.iter().filter_map(|at| titles.get(*at)).map(|(id, _)| id).collect();
    let calls = held.calls.iter().cloned();
    let calls = calls.filter_map(|call| call.retain_targets(|target| ids.contains(&&target.id.to_string())));
    HeldCalls::new(calls.collect())
}

/// Returns `true` if a message without an open question looks like a confirmation: "yes", "confirm", "yes delete …" and
/// similar.
pub(crate) fn is_consent(message: &str) -> bool {
    let text = crate::offline::normalize_words(message);
    let words: Vec<_> = text.split_whitespace().collect();
    matches!(
        words.as_slice(),
        ["yes", "delete" | "complete" | "change", ..] | ["yes"] | ["confirm"] | ["yes", "please"]
    )
}

/// Returns `true` if a message without an open question only refuses: "no", "never mind", "leave it".
pub(crate) fn is_refusal(message: &str) -> bool {
    read_answer(message, None) == ConfirmationAnswer::Refusal
}
