//! A scripted reply, independent of the wire: thoughts, text, calls, timing and failures.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::request::Request;

/// One scripted reply.
#[derive(Clone, Debug)]
pub struct Reply {
    pub parts: Vec<Part>,
    /// `None` simulates a provider that does not count tokens.
    pub usage: Option<Usage>,
    pub stop_reason: StopReason,
    pub failure: Option<LlmFailure>,
    /// The delay before the headers.
    pub delay: Duration,
    /// The delay between events.
    pub gap: Duration,
    pub(super) gate: Option<Arc<Notify>>,
    /// The size of the chunks in bytes.
    pub(super) chunk_size: Option<usize>,
    /// The number of the first call, for wires that number calls.
    pub(super) first_number: u64,
}

/// A part of a reply.
#[derive(Clone, Debug)]
pub enum Part {
    Thinking(String),
    /// The pieces in which the text is sent.
    Text(Vec<String>),
    Call(Call),
}

/// A tool call of the model.
#[derive(Clone, Debug)]
pub struct Call {
    pub name: String,
    /// Should be JSON, but can be any text.
    pub arguments: String,
}

/// Token counts.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    pub input: u32,
    /// Includes the reasoning tokens.
    pub output: u32,
    pub reasoning: u32,
}

/// The reason why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StopReason {
    /// The reply is complete.
    Done,
    /// The token limit was reached.
    Length,
    /// The content filter of the provider stopped the reply.
    Filter,
}

/// An injected failure. `Midway` means after half of the content, `AtStart` after the first event but before any content.
/// Responses that are not streamed fail at the same positions of their JSON document.
#[derive(Clone, Debug, PartialEq)]
pub enum LlmFailure {
    /// An error response in the format of the provider. It repeats the key of the request.
    Status(u16),
    /// Status 429.
    RateLimited(RetryAfter),
    /// Status 400 about the schema of this tool, if it is offered.
    RejectTool(String),
    /// Status 400 about the temperature, if the request has one.
    RejectTemperature,
    HangBeforeHeaders,
    HangAfterHeaders,
    HangMidway,
    /// The connection closes without a response.
    CloseBeforeHeaders,
    /// The connection breaks.
    CutAtStart,
    /// The connection breaks within an event.
    CutMidway,
    /// The body ends normally, but too early.
    EndAtStart,
    EndMidway,
    /// One event is not valid JSON. All other events are sent.
    BrokenJson,
    /// An error event midway. It repeats the key of the request.
    ErrorEvent,
    /// Status 200 with an HTML page, as from a captive portal.
    Html,
    /// Status 200 with an empty body.
    EmptyBody,
    /// Text without an end.
    EndlessText,
    /// An event without an end.
    EndlessLine,
}

/// The `Retry-After` header.
#[derive(Clone, Debug, PartialEq)]
pub enum RetryAfter {
    Absent,
    Seconds(u64),
    /// An HTTP date, as an offset from now.
    Date(Duration),
}

impl LlmFailure {
    /// Returns `true` if the failure affects this request.
    pub(super) fn applies_to(&self, request: &Request) -> bool {
        match self {
            Self::RejectTool(name) => request.offered_tools().iter().any(|tool| tool.name == *name),
            Self::RejectTemperature => request.temperature().is_some(),
            _ => true,
        }
    }
}

impl Reply {
    /// Creates a reply with this text, sent word by word.
    pub fn text(text: &str) -> Self {
        Self::pieces(text.split_inclusive(' '))
    }

    /// Creates a reply with this text, sent in these pieces.
    pub fn pieces<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Self {
        Self::from_parts(vec![Part::Text(pieces.into_iter().map(str::to_owned).collect())])
    }

    /// Creates a reply that calls a tool. The arguments are sent unchanged and may be invalid JSON.
    pub fn call(name: &str, arguments: impl Display) -> Self {
        Self::empty().and_call(name, arguments)
    }

    /// Creates a reply with parallel tool calls.
    pub fn calls<'a, A: Display>(calls: impl IntoIterator<Item = (&'a str, A)>) -> Self {
        calls.into_iter().fold(Self::empty(), |reply, (name, arguments)| reply.and_call(name, arguments))
    }

    /// Creates a reply without text and calls.
    pub fn empty() -> Self {
        Self::from_parts(Vec::new())
    }

    /// Creates a reply that fails.
    pub fn failure(failure: LlmFailure) -> Self {
        Self::text("Hello there, how can I help you today?").failing(failure)
    }

    /// Creates a reply from its parts.
    pub fn from_parts(parts: Vec<Part>) -> Self {
        Self {
            parts,
            usage: Some(Usage { input: 12, output: 7, reasoning: 0 }),
            stop_reason: StopReason::Done,
            failure: None,
            delay: Duration::ZERO,
            gap: Duration::ZERO,
            gate: None,
            chunk_size: None,
            first_number: 0,
        }
    }

    /// Adds a tool call.
    #[must_use]
    pub fn and_call(mut self, name: &str, arguments: impl Display) -> Self {
        self.parts.push(Part::Call(Call { name: name.to_owned(), arguments: arguments.to_string() }));
        self
    }

    /// Adds a thought at the start.
    #[must_use]
    pub fn thinking(mut self, thought: &str) -> Self {
        self.parts.insert(0, Part::Thinking(thought.to_owned()));
        if let Some(usage) = &mut self.usage {
            usage.reasoning = usage.reasoning.max(3);
        }
        self
    }

    /// Sets the token counts.
    #[must_use]
    pub fn usage(mut self, input: u32, output: u32) -> Self {
        let reasoning = self.usage.map_or(0, |usage| usage.reasoning).min(output);
        self.usage = Some(Usage { input, output, reasoning });
        self
    }

    /// Omits the token counts.
    #[must_use]
    pub fn without_usage(mut self) -> Self {
        self.usage = None;
        self
    }

    /// Sets the stop reason.
    #[must_use]
    pub fn with_stop_reason(mut self, stop_reason: StopReason) -> Self {
        self.stop_reason = stop_reason;
        self
    }

    /// Injects a failure.
    #[must_use]
    pub fn failing(mut self, failure: LlmFailure) -> Self {
        self.failure = Some(failure);
        self
    }

    /// Waits before the headers.
    #[must_use]
    pub fn delayed(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Waits between events.
    #[must_use]
    pub fn with_gap(mut self, gap: Duration) -> Self {
        self.gap = gap;
        self
    }

    /// Waits midway until `gate` is notified.
    #[must_use]
    pub fn paused(mut self, gate: Arc<Notify>) -> Self {
        self.gate = Some(gate);
        self
    }

    /// Sends chunks of this size, which splits events and characters.
    #[must_use]
    pub fn chunked(mut self, bytes: usize) -> Self {
        self.chunk_size = Some(bytes.max(1));
        self
    }

    /// Numbers the calls from `first`, which no real provider does.
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

    pub(super) fn text_content(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(pieces) => Some(pieces.concat()),
            _ => None,
        });
        texts.collect()
    }

    pub(super) fn requested_calls(&self) -> impl Iterator<Item = &Call> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call),
            _ => None,
        })
    }
}

/// Returns tool names that a model may invent: unknown, empty, malformed and very long ones.
pub fn invalid_tool_names() -> Vec<String> {
    let names = ["no_such_tool", "", "add task", " add_task", "functions.add_task", "add_task\n", "../add_task", "ädd"];
    names.into_iter().map(str::to_owned).chain([format!("add_{}", "x".repeat(10_000))]).collect()
}

/// Splits a text into pieces of 12 characters, similar to tokens.
pub(super) fn fragments(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(12).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}
