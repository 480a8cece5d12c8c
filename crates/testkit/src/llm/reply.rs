//! What a model answers, without regard to the wire: what it thinks, says and calls, how fast, and what goes wrong.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::request::Request;

/// One answer. Cheap to clone where it is short.
#[derive(Clone, Debug)]
pub struct Reply {
    pub parts: Vec<Part>,
    /// `None`: a provider that does not count.
    pub usage: Option<Usage>,
    pub stop: Stop,
    pub fault: Option<Fault>,
    /// Before the headers.
    pub delay: Duration,
    /// Between events.
    pub gap: Duration,
    pub(super) gate: Option<Arc<Notify>>,
    pub(super) torn: Option<usize>,
    /// The number of its first call, where the wire numbers them.
    pub(super) first_number: u64,
}

#[derive(Clone, Debug)]
pub enum Part {
    Thinking(String),
    /// In the pieces it is sent in.
    Text(Vec<String>),
    Call(Call),
}

#[derive(Clone, Debug)]
pub struct Call {
    pub name: String,
    /// JSON, or what a model takes for it.
    pub arguments: String,
}

#[derive(Clone, Copy, Debug)]
pub struct Usage {
    pub input: u32,
    /// Including what was thought.
    pub output: u32,
    pub reasoning: u32,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    /// It had said all, or made its calls.
    Done,
    /// It may not say more.
    Length,
    /// The provider's filter stepped in.
    Filter,
}

/// What goes wrong. "Midway" is when half of the content is sent, "at start" when the answer has begun but nothing was
/// said yet. Answers that are not streamed break in the same places of their one JSON document.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// An error in the provider's shape that repeats the key it was sent.
    Status(u16),
    /// 429.
    RateLimited(RetryAfter),
    /// 400 about this tool's schema if it is offered, otherwise the reply.
    RejectTool(String),
    /// 400 about the temperature if there is one, otherwise the reply.
    RejectTemperature,
    HangBeforeHeaders,
    HangAfterHeaders,
    HangMidway,
    /// The connection ends without an answer.
    CloseBeforeHeaders,
    /// The connection breaks.
    CutAtStart,
    /// The connection breaks within an event.
    CutMidway,
    /// The body ends in good order, but too early.
    EndAtStart,
    EndMidway,
    /// One event that is no JSON, then the rest as if nothing were.
    BrokenJson,
    /// The provider gives up midway and says so; repeats the key.
    ErrorEvent,
    /// 200 with a page, as from a network that wants a login.
    Html,
    /// 200 and nothing.
    EmptyBody,
    /// Words for ever.
    EndlessText,
    /// One event that never ends.
    EndlessLine,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RetryAfter {
    Unsaid,
    Seconds(u64),
    /// As an HTTP date, so far from now.
    Date(Duration),
}

impl Fault {
    /// Whether it comes to pass with this request.
    pub(super) fn applies(&self, request: &Request) -> bool {
        match self {
            Self::RejectTool(name) => request.offers().iter().any(|offer| offer.name == *name),
            Self::RejectTemperature => request.temperature().is_some(),
            _ => true,
        }
    }
}

impl Reply {
    /// Says this, word by word.
    pub fn text(text: &str) -> Self {
        Self::pieces(text.split_inclusive(' '))
    }

    /// Says this in these pieces.
    pub fn pieces<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Self {
        Self::of(vec![Part::Text(pieces.into_iter().map(str::to_owned).collect())])
    }

    /// Calls a tool. The arguments are JSON, or a text that is sent as it is.
    pub fn call(name: &str, arguments: impl Display) -> Self {
        Self::empty().and_call(name, arguments)
    }

    /// Calls tools at once.
    pub fn calls<'a, A: Display>(calls: impl IntoIterator<Item = (&'a str, A)>) -> Self {
        calls.into_iter().fold(Self::empty(), |reply, (name, arguments)| reply.and_call(name, arguments))
    }

    /// Neither words nor calls.
    pub fn empty() -> Self {
        Self::of(Vec::new())
    }

    pub fn fault(fault: Fault) -> Self {
        Self::text("Hello there, how can I help you today?").failing(fault)
    }

    pub fn of(parts: Vec<Part>) -> Self {
        Self {
            parts,
            usage: Some(Usage { input: 12, output: 7, reasoning: 0 }),
            stop: Stop::Done,
            fault: None,
            delay: Duration::ZERO,
            gap: Duration::ZERO,
            gate: None,
            torn: None,
            first_number: 0,
        }
    }

    #[must_use]
    pub fn and_call(mut self, name: &str, arguments: impl Display) -> Self {
        self.parts.push(Part::Call(Call { name: name.to_owned(), arguments: arguments.to_string() }));
        self
    }

    /// Thinks this before anything else.
    #[must_use]
    pub fn thinking(mut self, thought: &str) -> Self {
        self.parts.insert(0, Part::Thinking(thought.to_owned()));
        if let Some(usage) = &mut self.usage {
            usage.reasoning = usage.reasoning.max(3);
        }
        self
    }

    #[must_use]
    pub fn usage(mut self, input: u32, output: u32) -> Self {
        let reasoning = self.usage.map_or(0, |usage| usage.reasoning).min(output);
        self.usage = Some(Usage { input, output, reasoning });
        self
    }

    #[must_use]
    pub fn without_usage(mut self) -> Self {
        self.usage = None;
        self
    }

    #[must_use]
    pub fn stopped(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    #[must_use]
    pub fn failing(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Waits before it answers at all.
    #[must_use]
    pub fn delayed(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Waits between events.
    #[must_use]
    pub fn slowly(mut self, gap: Duration) -> Self {
        self.gap = gap;
        self
    }

    /// Waits midway until it is notified.
    #[must_use]
    pub fn paused(mut self, gate: Arc<Notify>) -> Self {
        self.gate = Some(gate);
        self
    }

    /// Sends so many bytes at a time, wherever that tears events and characters apart.
    #[must_use]
    pub fn torn(mut self, bytes: usize) -> Self {
        self.torn = Some(bytes.max(1));
        self
    }

    /// Numbers its calls from here on, as no provider should.
    #[must_use]
    pub fn numbered_from(mut self, first: u64) -> Self {
        self.first_number = first;
        self
    }

    pub(super) fn thought(&self) -> Option<&str> {
        self.parts.iter().find_map(|part| match part {
            Part::Thinking(thought) => Some(thought.as_str()),
            _ => None,
        })
    }

    pub(super) fn said(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(pieces) => Some(pieces.concat()),
            _ => None,
        });
        texts.collect()
    }

    pub(super) fn called(&self) -> impl Iterator<Item = &Call> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call),
            _ => None,
        })
    }
}

/// Names of tools that a model may come up with: unknown, empty, far too long, and no names at all.
pub fn bad_tool_names() -> Vec<String> {
    let names = ["no_such_tool", "", "add task", " add_task", "functions.add_task", "add_task\n", "../add_task", "ädd"];
    names.into_iter().map(str::to_owned).chain([format!("add_{}", "x".repeat(10_000))]).collect()
}

/// Pieces of some characters each, as tokens would be.
pub(super) fn fragments(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(12).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}
