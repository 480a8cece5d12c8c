//! Recognizes confirmations of held calls (AGENT-7). A call is released only by the exact phrase, in the very next
//! message.

use model::conversation::MessageRole;
use tools::HeldCalls;
use tools::held::{CONFIRM_DELETE_PHRASE, normalize};

use crate::{AgentContext, wording};

/// The effect of a message on held calls.
pub(crate) enum ConfirmationReply {
    /// Releases these calls.
    Release(HeldCalls),
    /// Confirms a deletion that is known only by the title of its task.
    ReleaseByTitle(String),
    /// Confirms calls that can no longer be identified.
    UnknownCalls,
    /// Is not a confirmation. Held calls are dropped.
    NotConfirmed,
}

/// Returns the effect of `message` on the held calls of the conversation. If held calls are known, only their phrase
/// releases them. Otherwise the last message must be from the assistant and `message` the phrase that it asks for.
/// Returns the title if that message asks to delete tasks and the conversation is not in the store, else
/// [`ConfirmationReply::UnknownCalls`]. Several titles are returned as one text. Without the phrase, returns
/// [`ConfirmationReply::NotConfirmed`]. Case, quotes, commas and end punctuation are ignored.
pub(crate) fn read_confirmation(context: &AgentContext, message: &str) -> ConfirmationReply {
    if let Some(held) = &context.pending {
        return match held.is_confirmed_by(message) {
            true => ConfirmationReply::Release(held.clone()),
            false => ConfirmationReply::NotConfirmed,
        };
    }
    // A caller that stores the conversation may have stored only the texts.
    let last = context.history.last().filter(|message| message.role == MessageRole::Assistant);
    let Some(last) = last else { return ConfirmationReply::NotConfirmed };
    if !context.is_stored
        && is_phrase(message, CONFIRM_DELETE_PHRASE)
        && let Some(title) = wording::read_confirm(&last.content)
    {
        return ConfirmationReply::ReleaseByTitle(title);
    }
    match wording::read_phrase(&last.content) {
        Some(phrase) if is_phrase(message, phrase) => ConfirmationReply::UnknownCalls,
        _ => ConfirmationReply::NotConfirmed,
    }
}

/// Compares like [`HeldCalls::is_confirmed_by`], which ignores case, quotes and end punctuation.
fn is_phrase(message: &str, phrase: &str) -> bool {
    normalize(message) == phrase
}
