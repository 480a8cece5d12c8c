//! Releasing what was held (AGENT-7): only by the exact phrase, as the very next message, for exactly what was asked
//! about.

use model::conversation::Role;
use tools::held::YES_DELETE;
use tools::{Act, Held};

use crate::{AgentContext, wording};

/// What a message means for what waits.
pub(crate) enum Reply {
    /// It releases this.
    Release(Held),
    /// It is a confirmation, but only a title is left of what it confirms.
    OfTitle(String),
    /// It is a confirmation of something that nobody can tell any more.
    OfSomething,
    /// It is no confirmation; whatever waited waits no longer.
    Other,
}

pub(crate) fn read(context: &AgentContext, message: &str) -> Reply {
    if let Some(held) = &context.held {
        return if held.is_released_by(message) { Reply::Release(held.clone()) } else { Reply::Other };
    }
    // A caller that keeps the conversation itself may have kept its words only.
    let last = context.history.last().filter(|message| message.role == Role::Assistant);
    let Some(last) = last else { return Reply::Other };
    if !context.kept
        && is_phrase(message, YES_DELETE)
        && let Some(title) = wording::read_confirm(&last.content)
    {
        return Reply::OfTitle(title);
    }
    match wording::read_phrase(&last.content) {
        Some(phrase) if is_phrase(message, phrase) => Reply::OfSomething,
        _ => Reply::Other,
    }
}

fn is_phrase(message: &str, phrase: &str) -> bool {
    let held = Held { phrase: phrase.to_owned(), acts: Vec::<Act>::new() };
    held.is_released_by(message)
}
