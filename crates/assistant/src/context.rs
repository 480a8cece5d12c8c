//! What a run knows: who asks, what was said before, what was said now. Nothing in it changes while the run lasts.

use jiff::{Timestamp, Zoned};
use model::User;
use model::conversation::{Message, Role};
use tools::Held;
use understand::{Reader, Reading};

use crate::wording;

/// S1's AgentContext.
#[derive(Clone, Debug)]
pub struct AgentContext {
    pub user: User,
    /// Oldest first.
    pub history: Vec<Message>,
    /// What waits for the user's confirmation: what the last message of the assistant asked about.
    pub held: Option<Held>,
    /// Whether the conversation is kept here: what waits stands beside its messages then, and the words of a message,
    /// which may be an agent's, bring nothing about.
    pub kept: bool,
}

impl AgentContext {
    /// What is pending is rebuilt from the conversation alone: only the very last message counts (AGENT-7).
    pub fn new(user: User, history: Vec<Message>) -> Self {
        let last = history.last().filter(|message| message.role == Role::Assistant);
        let held = last.and_then(|message| message.pending.clone()).and_then(Held::from_outside);
        Self { user, history, held, kept: false }
    }

    /// Of a conversation that is kept here.
    pub fn kept(user: User, history: Vec<Message>) -> Self {
        Self { kept: true, ..Self::new(user, history) }
    }

    /// Takes what the caller says is pending, unless the conversation has gone on since it was asked about.
    pub fn hold(&mut self, pending: serde_json::Value) {
        let held = Held::from_outside(pending);
        let asked = |held: &Held| match self.history.last() {
            None => true,
            Some(last) => last.role == Role::Assistant && wording::read_phrase(&last.content) == Some(&held.phrase),
        };
        self.held = held.filter(asked);
    }
}

/// What the user says now, and what the language engine reads in it.
#[derive(Clone, Debug)]
pub struct Request {
    pub message: String,
    pub reading: Reading,
    /// How it was read; whatever belongs to it is read in the same way.
    pub reader: Reader,
    /// In the user's time zone.
    pub now: Zoned,
}

impl Request {
    pub fn new(message: String, user: &User, reader: Reader, now: Timestamp) -> Self {
        let now = now.to_zoned(user.time_zone.clone());
        let reading = reader.read(&message, &now);
        Self { message, reading, reader, now }
    }
}
