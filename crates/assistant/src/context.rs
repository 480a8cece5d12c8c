//! The immutable inputs of a run: the user, the history and the current message.

use jiff::{Timestamp, Zoned};
use model::User;
use model::conversation::{Message, MessageRole};
use tools::HeldCalls;
use understand::{ParsedUtterance, UtteranceParser};

use crate::wording;

/// S1's AgentContext.
#[derive(Clone, Debug)]
pub struct AgentContext {
    pub user: User,
    /// Oldest first.
    pub history: Vec<Message>,
    /// The calls that the last message of the assistant asked the user to confirm.
    pub pending: Option<HeldCalls>,
    /// Set if the conversation is in the store. Held calls are then stored with the messages. The text of a message,
    /// which an agent may have written, never identifies a held call.
    pub is_stored: bool,
}

impl AgentContext {
    /// Creates the context of a conversation that the caller stores. Held calls come only from the last message, and
    /// only if the assistant wrote it (AGENT-7). Invalid held calls are ignored.
    pub fn new(user: User, history: Vec<Message>) -> Self {
        let last = history.last().filter(|message| message.role == MessageRole::Assistant);
        let pending = last.and_then(|message| message.pending.clone()).and_then(HeldCalls::from_untrusted);
        Self { user, history, pending, is_stored: false }
    }

    /// Creates the context of a conversation in the store.
    pub fn stored(user: User, history: Vec<Message>) -> Self {
        Self { is_stored: true, ..Self::new(user, history) }
    }

    /// Replaces the held calls by those that the caller sent. They must be valid. Without a history, they are accepted.
    /// Otherwise the last message must be from the assistant and ask for their phrase. If they are not accepted, the
    /// context has no held calls afterwards.
    pub fn set_pending(&mut self, pending: serde_json::Value) {
        let held = HeldCalls::from_untrusted(pending);
        let was_asked = |held: &HeldCalls| match self.history.last() {
            None => true,
            Some(last) => {
                last.role == MessageRole::Assistant && wording::read_phrase(&last.content) == Some(&held.phrase)
            }
        };
        self.pending = held.filter(was_asked);
    }
}

/// The current message of the user, with its interpretation by the language engine.
#[derive(Clone, Debug)]
pub struct TurnRequest {
    pub message: String,
    pub utterance: ParsedUtterance,
    /// The parser of this message. Related texts are parsed with the same settings.
    pub parser: UtteranceParser,
    /// In the user's time zone.
    pub now: Zoned,
}

impl TurnRequest {
    /// Parses a message in the time zone of its user.
    pub fn new(message: String, user: &User, parser: UtteranceParser, now: Timestamp) -> Self {
        let now = now.to_zoned(user.time_zone.clone());
        let utterance = parser.parse(&message, &now);
        Self { message, utterance, parser, now }
    }

    /// Returns the request for a part of this message.
    #[must_use]
    pub(crate) fn with_message(&self, message: String, user: &User) -> Self {
        Self::new(message, user, self.parser, self.now.timestamp())
    }
}
