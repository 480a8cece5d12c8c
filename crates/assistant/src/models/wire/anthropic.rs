//! Anthropic's messages. What it thought it wants back as it was, signed, and before what it said and called.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::{Ask, Fault, Heard, Text, Tool, counts, gave_up, parse};
use crate::models::heard::{Called, Object, Part, Signed};
use crate::models::prompt::{Round, Said};

pub(super) const VERSION: &str = "2023-06-01";

#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    /// It insists on a limit. Ours are the turn's time and what a reader reads; this is only not in their way.
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    system: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Content<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Blocks(Vec<Block<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text { text: &'a str },
    Thinking { thinking: &'a str, signature: &'a str },
    RedactedThinking { data: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: Object<'a> },
    ToolResult { tool_use_id: &'a str, content: &'a str },
}

pub(super) fn tools(tools: &[Tool<'_>]) -> serde_json::Result<Box<RawValue>> {
    #[derive(Serialize)]
    struct Offer<'a> {
        name: &'a str,
        description: &'a str,
        input_schema: &'a Value,
    }
    let offers =
        tools.iter().map(|tool| Offer { name: tool.name, description: tool.description, input_schema: &tool.schema });
    to_raw_value(&offers.collect::<Vec<_>>())
}

impl<'a> Body<'a> {
    pub(super) fn new(ask: &Ask<'a>) -> Self {
        let mut messages = Vec::with_capacity(2 * ask.told.said.len());
        for said in &ask.told.said {
            match said {
                // With all else that the system says.
                Said::System(_) => {}
                Said::User(text) => messages.push(Message { role: "user", content: Content::Text(text) }),
                Said::Assistant(text) => messages.push(Message { role: "assistant", content: Content::Text(text) }),
                Said::Round(round) => {
                    messages.push(Message { role: "assistant", content: Content::Blocks(blocks(round)) });
                    let results = round.answers.iter();
                    let results =
                        results.map(|answer| Block::ToolResult { tool_use_id: &answer.id, content: &answer.text });
                    messages.push(Message { role: "user", content: Content::Blocks(results.collect()) });
                }
            }
        }
        Self {
            model: ask.model,
            max_tokens: max_tokens(ask.model),
            stream: true,
            temperature: ask.temperature,
            system: ask.told.whole_system(),
            tools: ask.tools,
            messages,
        }
    }
}

/// More than the model can is an error.
fn max_tokens(model: &str) -> u32 {
    if model.contains("claude-3") { 4096 } else { 32_000 }
}

fn blocks<'a>(round: &'a Round<'a>) -> Vec<Block<'a>> {
    let mut answers = round.answers.iter();
    let blocks = round.parts.iter().filter_map(|part| match part {
        // It takes no empty texts, and no thoughts of others.
        Part::Text(said) => Some(Block::Text { text: &said.text }).filter(|_| !said.text.trim().is_empty()),
        Part::Thought(thought) => {
            thought.signature.as_deref().map(|signature| Block::Thinking { thinking: &thought.text, signature })
        }
        Part::Sealed(data) => Some(Block::RedactedThinking { data }),
        Part::Call(call) => {
            answers.next().map(|answer| Block::ToolUse { id: &answer.id, name: &call.name, input: call.object() })
        }
    });
    blocks.collect()
}

/// One shape for all events: which of its fields are there says which it is.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(default, borrow)]
    r#type: Text<'a>,
    #[serde(default, borrow)]
    message: Option<Start<'a>>,
    #[serde(default, borrow)]
    content_block: Option<Opened<'a>>,
    #[serde(default, borrow)]
    delta: Option<Delta<'a>>,
    #[serde(default, borrow)]
    usage: Option<&'a RawValue>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Start<'a> {
    #[serde(default, borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Opened<'a> {
    #[serde(default, borrow)]
    r#type: Text<'a>,
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
struct Delta<'a> {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default, borrow)]
    signature: Option<Text<'a>>,
    #[serde(default, borrow)]
    partial_json: Option<Text<'a>>,
    #[serde(default, borrow)]
    stop_reason: Option<Text<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Counts {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<Details>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    thinking_tokens: Option<u64>,
}

pub(super) fn read(data: &[u8], heard: &mut Heard) -> Result<(), Fault> {
    let event: Event<'_> = parse(data)?;
    if let Some(error) = event.error {
        return Err(gave_up(error));
    }
    if let Some(block) = event.content_block {
        open(block, heard);
    }
    if let Some(delta) = event.delta {
        take(delta, heard);
    }
    count(counts(event.usage.or(event.message.and_then(|message| message.usage))), heard);
    heard.ended |= event.r#type.0 == "message_stop";
    Ok(())
}

fn open(block: Opened<'_>, heard: &mut Heard) {
    match &*block.r#type.0 {
        "thinking" => {
            let signature = block.signature.filter(|signature| !signature.is_empty());
            heard.parts.push(Part::Thought(Signed { text: String::new(), signature: None }));
            heard.think(block.thinking.unwrap_or_default());
            if let (Some(Part::Thought(thought)), Some(signature)) = (heard.parts.last_mut(), signature) {
                thought.signature = Some(signature);
            }
        }
        "redacted_thinking" => heard.parts.extend(block.data.map(Part::Sealed)),
        "tool_use" => heard.push_call(Called {
            id: block.id.unwrap_or_default(),
            name: block.name.unwrap_or_default(),
            ..Called::default()
        }),
        _ => heard.say(block.text.unwrap_or_default()),
    }
}

/// More of the block that was opened last.
fn take(delta: Delta<'_>, heard: &mut Heard) {
    heard.stopped |= delta.stop_reason.is_some();
    heard.think(delta.thinking.unwrap_or_default());
    heard.say(delta.text.unwrap_or_default());
    match (heard.parts.last_mut(), delta.signature, delta.partial_json) {
        (Some(Part::Thought(thought)), Some(Text(more)), _) => {
            thought.signature.get_or_insert_default().push_str(&more);
        }
        (Some(Part::Call(call)), _, Some(Text(more))) => call.arguments.push_str(&more),
        _ => {}
    }
}

/// The figures of an event are sums so far. What comes from the cache is not in `input_tokens`.
fn count(counts: Counts, heard: &mut Heard) {
    let cached = [counts.cache_creation_input_tokens, counts.cache_read_input_tokens];
    if let Some(input) = counts.input_tokens {
        heard.usage.input = cached.into_iter().flatten().fold(input, u64::saturating_add);
    }
    heard.usage.output = counts.output_tokens.unwrap_or(heard.usage.output);
    let thinking = counts.output_tokens_details.and_then(|details| details.thinking_tokens);
    heard.usage.reasoning = thinking.unwrap_or(heard.usage.reasoning);
}
