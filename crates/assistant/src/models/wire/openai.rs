//! The Chat Completions API of OpenAI. Compatible servers deviate from it in details. The parser tolerates their
//! deviations.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::{
    BorrowedText, OfferedTool, ProviderError, ReplyAccumulator, WireRequest, error_event, parse_event, parse_usage,
};
use crate::models::accumulator::ReplyPart;
use crate::models::transcript::{ToolRound, TranscriptEntry};

/// Marks the end of the events.
const DONE: &[u8] = b"[DONE]";

#[derive(Serialize)]
pub(super) struct OpenAiRequest<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    messages: Vec<OpenAiMessage<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum OpenAiMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: &'a str,
    },
    Assistant {
        content: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<OpenAiToolCall<'a>>,
        /// Required by some servers and ignored by the rest.
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<Cow<'a, str>>,
    },
    Tool {
        content: &'a str,
        tool_call_id: &'a str,
    },
}

#[derive(Serialize)]
struct OpenAiToolCall<'a> {
    r#type: &'static str,
    id: &'a str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: Cow<'a, str>,
}

/// Serializes the tools of a request as a JSON array of functions, in their order and without strict mode. Fails if the
/// serialization fails.
pub(super) fn tools(tools: &[OfferedTool<'_>]) -> serde_json::Result<Box<RawValue>> {
    #[derive(Serialize)]
    struct OpenAiTool<'a> {
        r#type: &'static str,
        function: FunctionSpec<'a>,
    }
    #[derive(Serialize)]
    struct FunctionSpec<'a> {
        name: &'a str,
        description: &'a str,
        parameters: &'a Value,
        strict: bool,
    }
    let offered = tools.iter().map(|tool| {
        let name = tool.name;
        let description = tool.description;
        let parameters = &tool.schema;
        OpenAiTool { r#type: "function", function: FunctionSpec { name, description, parameters, strict: false } }
    });
    to_raw_value(&offered.collect::<Vec<_>>())
}

impl<'a> OpenAiRequest<'a> {
    /// Converts a request. The system prompt is the first message, and system messages stay in their position. A tool
    /// round becomes the reply of the model and one message per result. The reply is streamed, with the usage.
    pub(super) fn new(request: &WireRequest<'a>) -> Self {
        let mut messages = Vec::with_capacity(2 * request.transcript.entries.len() + 1);
        messages.push(OpenAiMessage::System { content: &request.transcript.system });
        for entry in &request.transcript.entries {
            match entry {
                TranscriptEntry::System(content) => messages.push(OpenAiMessage::System { content }),
                TranscriptEntry::User(content) => messages.push(OpenAiMessage::User { content }),
                TranscriptEntry::Assistant(content) => {
                    let content = Cow::Borrowed(*content);
                    messages.push(OpenAiMessage::Assistant {
                        content,
                        tool_calls: Vec::new(),
                        reasoning_content: None,
                    });
                }
                TranscriptEntry::ToolRound(round) => add_round(&mut messages, round),
            }
        }
        Self {
            model: request.model,
            stream: true,
            stream_options: StreamOptions { include_usage: true },
            temperature: request.temperature,
            tools: request.tools,
            messages,
        }
    }
}

/// Adds a tool round: one message with the joined texts, the joined thoughts and the calls, then one message per
/// result. Leaves out encrypted thoughts and calls without a result. Results belong to calls by their order. Without
/// text, the content is empty.
fn add_round<'a>(messages: &mut Vec<OpenAiMessage<'a>>, round: &'a ToolRound<'a>) {
    let mut content = Cow::Borrowed("");
    let mut reasoning = Cow::Borrowed("");
    let mut tool_calls = Vec::with_capacity(round.results.len());
    let mut results = round.results.iter();
    for part in &*round.parts {
        match part {
            ReplyPart::Text(part) => content += part.text.as_str(),
            ReplyPart::Thought(thought) => reasoning += thought.text.as_str(),
            ReplyPart::RedactedThought(_) => {}
            ReplyPart::Call(call) => tool_calls.extend(results.next().map(|result| OpenAiToolCall {
                r#type: "function",
                id: &result.id,
                function: CalledFunction { name: &call.name, arguments: call.arguments_json() },
            })),
        }
    }
    let reasoning_content = Some(reasoning).filter(|reasoning| !reasoning.is_empty());
    messages.push(OpenAiMessage::Assistant { content, tool_calls, reasoning_content });
    let results = round.results.iter();
    messages.extend(results.map(|result| OpenAiMessage::Tool { content: &result.text, tool_call_id: &result.id }));
}

#[derive(Deserialize)]
struct OpenAiChunk<'a> {
    #[serde(default, borrow)]
    choices: Option<Vec<CompletionChoice<'a>>>,
    #[serde(default, borrow)]
    usage: Option<&'a RawValue>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CompletionChoice<'a> {
    #[serde(default, borrow)]
    delta: Option<CompletionDelta<'a>>,
    #[serde(default, borrow)]
    finish_reason: Option<BorrowedText<'a>>,
}

#[derive(Deserialize)]
struct CompletionDelta<'a> {
    #[serde(default)]
    content: Option<ContentDelta>,
    #[serde(default)]
    reasoning_content: Option<ContentDelta>,
    #[serde(default)]
    reasoning: Option<ContentDelta>,
    #[serde(default, borrow)]
    tool_calls: Option<Vec<ToolCallDelta<'a>>>,
}

/// A text, or a list of texts and thoughts as in the API of Mistral.
enum ContentDelta {
    Text(String),
    List(Vec<ContentDelta>),
    /// An element of a list.
    Piece(Box<ContentPiece>),
    /// A value of another type. It is ignored.
    Other,
}

#[derive(Deserialize)]
struct ContentPiece {
    #[serde(default)]
    text: Option<ContentDelta>,
    #[serde(default)]
    thinking: Option<ContentDelta>,
}

/// Implemented by hand, because the derived code for untagged enums buffers every value. A text has many pieces.
impl<'de> Deserialize<'de> for ContentDelta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = ContentDelta;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_str<E>(self, text: &str) -> Result<ContentDelta, E> {
        Ok(ContentDelta::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ContentDelta, A::Error> {
        let mut pieces = Vec::new();
        while let Some(piece) = list.next_element()? {
            pieces.push(piece);
        }
        Ok(ContentDelta::List(pieces))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ContentDelta, A::Error> {
        ContentPiece::deserialize(MapAccessDeserializer::new(map)).map(|piece| ContentDelta::Piece(Box::new(piece)))
    }

    fn visit_bool<E>(self, _: bool) -> Result<ContentDelta, E> {
        Ok(ContentDelta::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<ContentDelta, E> {
        Ok(ContentDelta::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<ContentDelta, E> {
        Ok(ContentDelta::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<ContentDelta, E> {
        Ok(ContentDelta::Other)
    }

    fn visit_unit<E>(self) -> Result<ContentDelta, E> {
        Ok(ContentDelta::Other)
    }
}

#[derive(Deserialize)]
struct ToolCallDelta<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default, borrow)]
    id: Option<BorrowedText<'a>>,
    #[serde(default, borrow)]
    function: Option<FunctionDelta<'a>>,
}

#[derive(Deserialize)]
struct FunctionDelta<'a> {
    #[serde(default, borrow)]
    name: Option<BorrowedText<'a>>,
    #[serde(default, borrow)]
    arguments: Option<BorrowedText<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OpenAiUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    completion_tokens_details: Option<OpenAiUsageDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OpenAiUsageDetails {
    reasoning_tokens: Option<u64>,
}

/// Adds the data of one event to the reply. `[DONE]` ends the reply, and a finish reason marks it as stopped. Only the
/// first choice is read. The usage is replaced if both token counts are present. Fails with a transient error if the
/// data is not valid JSON or reports an error.
pub(super) fn read(data: &[u8], reply: &mut ReplyAccumulator) -> Result<(), ProviderError> {
    if data == DONE {
        reply.ended = true;
        return Ok(());
    }
    let chunk: OpenAiChunk<'_> = parse_event(data)?;
    if let Some(error) = chunk.error {
        return Err(error_event(error));
    }
    // The request asks for only one choice.
    if let Some(choice) = chunk.choices.into_iter().flatten().next() {
        reply.stopped |= choice.finish_reason.is_some();
        if let Some(delta) = choice.delta {
            add_delta(delta, reply);
        }
    }
    // Most servers send the usage once at the end, some repeatedly. The last one counts.
    let counts: OpenAiUsage = parse_usage(chunk.usage);
    if let (Some(input), Some(output)) = (counts.prompt_tokens, counts.completion_tokens) {
        let reasoning = counts.completion_tokens_details.and_then(|details| details.reasoning_tokens);
        reply.usage = crate::ModelUsage { input, output, reasoning: reasoning.unwrap_or_default() };
    }
    Ok(())
}

/// Adds a delta to the reply: first the thoughts, then the text, then the pieces of calls. `reasoning_content` takes
/// precedence over `reasoning`. A list as content can contain both texts and thoughts. A piece of a call appends to its
/// arguments, and replaces its name unless that is empty. Ignores the pieces of calls that exceed the limit.
fn add_delta(delta: CompletionDelta<'_>, reply: &mut ReplyAccumulator) {
    if let Some(thought) = delta.reasoning_content.or(delta.reasoning) {
        reply.push_thought(thought.text());
    }
    match delta.content {
        Some(ContentDelta::List(pieces)) => {
            for piece in pieces.into_iter().filter_map(ContentDelta::piece) {
                reply.push_thought(piece.thinking.map(ContentDelta::text).unwrap_or_default());
                reply.push_text(piece.text.map(ContentDelta::text).unwrap_or_default());
            }
        }
        Some(content) => reply.push_text(content.text()),
        None => {}
    }
    for piece in delta.tool_calls.into_iter().flatten() {
        let id = piece.id.unwrap_or_default().0;
        let Some(call) = reply.call_mut(piece.index, &id) else { continue };
        let Some(function) = piece.function else { continue };
        if let Some(BorrowedText(name)) = function.name.filter(|name| !name.0.is_empty()) {
            call.name = name.into_owned();
        }
        call.arguments.push_str(&function.arguments.unwrap_or_default().0);
    }
}

impl ContentDelta {
    /// Returns the text, or the joined texts of a list. Returns an empty text for any other value.
    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::List(pieces) => pieces.into_iter().filter_map(|piece| piece.piece()?.text).map(Self::text).collect(),
            Self::Piece(_) | Self::Other => String::new(),
        }
    }

    fn piece(self) -> Option<ContentPiece> {
        if let Self::Piece(piece) = self { Some(*piece) } else { None }
    }
}
