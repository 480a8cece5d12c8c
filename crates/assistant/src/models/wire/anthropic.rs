//! The Messages API of Anthropic. Thoughts must be sent back unchanged, with their signature, before text and calls.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::{
    BorrowedText, OfferedTool, ProviderError, ReplyAccumulator, WireRequest, error_event, parse_event, parse_usage,
};
use crate::models::accumulator::{ArgumentsObject, CallPart, ReplyPart, SignedText};
use crate::models::transcript::{ToolRound, TranscriptEntry};

pub(super) const API_VERSION: &str = "2023-06-01";

#[derive(Serialize)]
pub(super) struct AnthropicRequest<'a> {
    model: &'a str,
    /// Required by the API. High enough that only the limits of the turn matter.
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    system: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    messages: Vec<AnthropicMessage<'a>>,
}

#[derive(Serialize)]
struct AnthropicMessage<'a> {
    role: &'static str,
    content: AnthropicContent<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum AnthropicContent<'a> {
    Text(&'a str),
    Blocks(Vec<AnthropicBlock<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum AnthropicBlock<'a> {
    Text { text: &'a str },
    Thinking { thinking: &'a str, signature: &'a str },
    RedactedThinking { data: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: ArgumentsObject<'a> },
    ToolResult { tool_use_id: &'a str, content: &'a str },
}

/// Serializes the tools of a request as a JSON array, in their order. Fails if the serialization fails.
pub(super) fn tools(tools: &[OfferedTool<'_>]) -> serde_json::Result<Box<RawValue>> {
    #[derive(Serialize)]
    struct AnthropicTool<'a> {
        name: &'a str,
        description: &'a str,
        input_schema: &'a Value,
    }
    let offered = tools.iter().map(|tool| AnthropicTool {
        name: tool.name,
        description: tool.description,
        input_schema: &tool.schema,
    });
    to_raw_value(&offered.collect::<Vec<_>>())
}

impl<'a> AnthropicRequest<'a> {
    /// Converts a request. System messages become part of the system prompt. A tool round becomes two messages: the
    /// reply of the model, and the results as a message of the user. The reply is streamed. The token limit depends on
    /// the model.
    pub(super) fn new(request: &WireRequest<'a>) -> Self {
        let mut messages = Vec::with_capacity(2 * request.transcript.entries.len());
        for entry in &request.transcript.entries {
            match entry {
                // Part of the combined system prompt.
                TranscriptEntry::System(_) => {}
                TranscriptEntry::User(text) => {
                    messages.push(AnthropicMessage { role: "user", content: AnthropicContent::Text(text) })
                }
                TranscriptEntry::Assistant(text) => {
                    messages.push(AnthropicMessage { role: "assistant", content: AnthropicContent::Text(text) })
                }
                TranscriptEntry::ToolRound(round) => {
                    messages
                        .push(AnthropicMessage { role: "assistant", content: AnthropicContent::Blocks(blocks(round)) });
                    let results = round.results.iter();
                    let results = results
                        .map(|result| AnthropicBlock::ToolResult { tool_use_id: &result.id, content: &result.text });
                    messages
                        .push(AnthropicMessage { role: "user", content: AnthropicContent::Blocks(results.collect()) });
                }
            }
        }
        Self {
            model: request.model,
            max_tokens: max_tokens(request.model),
            stream: true,
            temperature: request.temperature,
            system: request.transcript.combined_system(),
            tools: request.tools,
            messages,
        }
    }
}

/// Returns the token limit of a request. A limit above the maximum of the model is an error.
fn max_tokens(model: &str) -> u32 {
    if model.contains("claude-3") { 4096 } else { 32_000 }
}

/// Returns the reply of a tool round, in the order of its parts. Leaves out blank texts, unsigned thoughts and calls
/// without a result. Results belong to calls by their order. A call gets the id of its result. Invalid arguments become
/// an empty object.
fn blocks<'a>(round: &'a ToolRound<'a>) -> Vec<AnthropicBlock<'a>> {
    let mut results = round.results.iter();
    let blocks = round.parts.iter().filter_map(|part| match part {
        // The API rejects empty texts and unsigned thoughts.
        ReplyPart::Text(part) => {
            Some(AnthropicBlock::Text { text: &part.text }).filter(|_| !part.text.trim().is_empty())
        }
        ReplyPart::Thought(thought) => thought
            .signature
            .as_deref()
            .map(|signature| AnthropicBlock::Thinking { thinking: &thought.text, signature }),
        ReplyPart::RedactedThought(data) => Some(AnthropicBlock::RedactedThinking { data }),
        ReplyPart::Call(call) => {
            let result = results.next();
            result.map(|result| AnthropicBlock::ToolUse {
                id: &result.id,
                name: &call.name,
                input: call.arguments_object(),
            })
        }
    });
    blocks.collect()
}

/// An event of any type. The fields that are present identify the type.
#[derive(Deserialize)]
struct AnthropicEvent<'a> {
    #[serde(default, borrow)]
    r#type: BorrowedText<'a>,
    #[serde(default, borrow)]
    message: Option<MessageStart<'a>>,
    #[serde(default, borrow)]
    content_block: Option<BlockStart<'a>>,
    #[serde(default, borrow)]
    delta: Option<BlockDelta<'a>>,
    #[serde(default, borrow)]
    usage: Option<&'a RawValue>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MessageStart<'a> {
    #[serde(default, borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct BlockStart<'a> {
    #[serde(default, borrow)]
    r#type: BorrowedText<'a>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    signature: Option<String>,
    #[serde(default)]
    data: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

#[derive(Deserialize)]
struct BlockDelta<'a> {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default, borrow)]
    signature: Option<BorrowedText<'a>>,
    #[serde(default, borrow)]
    partial_json: Option<BorrowedText<'a>>,
    #[serde(default, borrow)]
    stop_reason: Option<BorrowedText<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AnthropicUsage {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<AnthropicUsageDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AnthropicUsageDetails {
    thinking_tokens: Option<u64>,
}

/// Adds the data of one event to the reply: a new block, a delta, or token counts. `message_stop` ends the reply. Other
/// events have no effect. Fails with a transient error if the data is not valid JSON or reports an error.
pub(super) fn read(data: &[u8], reply: &mut ReplyAccumulator) -> Result<(), ProviderError> {
    let event: AnthropicEvent<'_> = parse_event(data)?;
    if let Some(error) = event.error {
        return Err(error_event(error));
    }
    if let Some(block) = event.content_block {
        start_block(block, reply);
    }
    if let Some(delta) = event.delta {
        add_delta(delta, reply);
    }
    add_usage(parse_usage(event.usage.or(event.message.and_then(|message| message.usage))), reply);
    reply.ended |= event.r#type.0 == "message_stop";
    Ok(())
}

/// Starts a new part for a thought, an encrypted thought or a call. A block of any other type counts as text. An
/// encrypted thought without data and an empty text are ignored. A call starts without arguments.
fn start_block(block: BlockStart<'_>, reply: &mut ReplyAccumulator) {
    match &*block.r#type.0 {
        "thinking" => {
            let signature = block.signature.filter(|signature| !signature.is_empty());
            reply.parts.push(ReplyPart::Thought(SignedText { text: String::new(), signature: None }));
            reply.push_thought(block.thinking.unwrap_or_default());
            if let (Some(ReplyPart::Thought(thought)), Some(signature)) = (reply.parts.last_mut(), signature) {
                thought.signature = Some(signature);
            }
        }
        "redacted_thinking" => reply.parts.extend(block.data.map(ReplyPart::RedactedThought)),
        "tool_use" => reply.push_call(CallPart {
            id: block.id.unwrap_or_default(),
            name: block.name.unwrap_or_default(),
            ..CallPart::default()
        }),
        _ => reply.push_text(block.text.unwrap_or_default()),
    }
}

/// Adds a delta to the reply. Text and reasoning start a new part if the last part is of another kind. A signature is
/// added only to a thought, and arguments only to a call, if that is the last part. Otherwise they are ignored. A stop
/// reason marks the reply as stopped.
fn add_delta(delta: BlockDelta<'_>, reply: &mut ReplyAccumulator) {
    reply.stopped |= delta.stop_reason.is_some();
    reply.push_thought(delta.thinking.unwrap_or_default());
    reply.push_text(delta.text.unwrap_or_default());
    match (reply.parts.last_mut(), delta.signature, delta.partial_json) {
        (Some(ReplyPart::Thought(thought)), Some(BorrowedText(more)), _) => {
            thought.signature.get_or_insert_default().push_str(&more);
        }
        (Some(ReplyPart::Call(call)), _, Some(BorrowedText(more))) => call.arguments.push_str(&more),
        _ => {}
    }
}

/// Updates the usage. The counts are totals so far, and missing counts keep their values. `input_tokens` does not
/// include cached tokens, so these are added. Cached tokens without `input_tokens` are ignored.
fn add_usage(counts: AnthropicUsage, reply: &mut ReplyAccumulator) {
    let cached = [counts.cache_creation_input_tokens, counts.cache_read_input_tokens];
    if let Some(input) = counts.input_tokens {
        reply.usage.input = cached.into_iter().flatten().fold(input, u64::saturating_add);
    }
    reply.usage.output = counts.output_tokens.unwrap_or(reply.usage.output);
    let thinking = counts.output_tokens_details.and_then(|details| details.thinking_tokens);
    reply.usage.reasoning = thinking.unwrap_or(reply.usage.reasoning);
}
