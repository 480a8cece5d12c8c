//! Chat completions. Many servers speak so, none quite like the others: what they get wrong and can be understood is.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::{Ask, Fault, Heard, Text, Tool, counts, gave_up, parse};
use crate::models::heard::Part;
use crate::models::prompt::{Round, Said};

/// Comes after the last event.
const DONE: &[u8] = b"[DONE]";

#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message<'a> {
    System {
        content: &'a str,
    },
    User {
        content: &'a str,
    },
    Assistant {
        content: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall<'a>>,
        /// Some want to see it again, and the others do not mind.
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<Cow<'a, str>>,
    },
    Tool {
        content: &'a str,
        tool_call_id: &'a str,
    },
}

#[derive(Serialize)]
struct ToolCall<'a> {
    r#type: &'static str,
    id: &'a str,
    function: Called<'a>,
}

#[derive(Serialize)]
struct Called<'a> {
    name: &'a str,
    arguments: Cow<'a, str>,
}

pub(super) fn tools(tools: &[Tool<'_>]) -> serde_json::Result<Box<RawValue>> {
    #[derive(Serialize)]
    struct Offer<'a> {
        r#type: &'static str,
        function: Function<'a>,
    }
    #[derive(Serialize)]
    struct Function<'a> {
        name: &'a str,
        description: &'a str,
        parameters: &'a Value,
        strict: bool,
    }
    let offers = tools.iter().map(|tool| {
        let name = tool.name;
        let description = tool.description;
        let parameters = &tool.schema;
        Offer { r#type: "function", function: Function { name, description, parameters, strict: false } }
    });
    to_raw_value(&offers.collect::<Vec<_>>())
}

impl<'a> Body<'a> {
    pub(super) fn new(ask: &Ask<'a>) -> Self {
        let mut messages = Vec::with_capacity(2 * ask.told.said.len() + 1);
        messages.push(Message::System { content: &ask.told.system });
        for said in &ask.told.said {
            match said {
                Said::System(content) => messages.push(Message::System { content }),
                Said::User(content) => messages.push(Message::User { content }),
                Said::Assistant(content) => {
                    let content = Cow::Borrowed(*content);
                    messages.push(Message::Assistant { content, tool_calls: Vec::new(), reasoning_content: None });
                }
                Said::Round(round) => add_round(&mut messages, round),
            }
        }
        Self {
            model: ask.model,
            stream: true,
            stream_options: StreamOptions { include_usage: true },
            temperature: ask.temperature,
            tools: ask.tools,
            messages,
        }
    }
}

fn add_round<'a>(messages: &mut Vec<Message<'a>>, round: &'a Round<'a>) {
    let mut content = Cow::Borrowed("");
    let mut reasoning = Cow::Borrowed("");
    let mut tool_calls = Vec::with_capacity(round.answers.len());
    let mut answers = round.answers.iter();
    for part in &*round.parts {
        match part {
            Part::Text(said) => content += said.text.as_str(),
            Part::Thought(thought) => reasoning += thought.text.as_str(),
            Part::Sealed(_) => {}
            Part::Call(call) => tool_calls.extend(answers.next().map(|answer| ToolCall {
                r#type: "function",
                id: &answer.id,
                function: Called { name: &call.name, arguments: call.json() },
            })),
        }
    }
    let reasoning_content = Some(reasoning).filter(|reasoning| !reasoning.is_empty());
    messages.push(Message::Assistant { content, tool_calls, reasoning_content });
    let results = round.answers.iter().map(|answer| Message::Tool { content: &answer.text, tool_call_id: &answer.id });
    messages.extend(results);
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(default, borrow)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(default, borrow)]
    usage: Option<&'a RawValue>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default, borrow)]
    delta: Option<Delta<'a>>,
    #[serde(default, borrow)]
    finish_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    reasoning_content: Option<Content>,
    #[serde(default)]
    reasoning: Option<Content>,
    #[serde(default, borrow)]
    tool_calls: Option<Vec<CallPiece<'a>>>,
}

/// A text, or a list of which some pieces are said and others thought, as Mistral has it.
enum Content {
    Text(String),
    List(Vec<Content>),
    Piece(Box<Piece>),
    Other,
}

#[derive(Deserialize)]
struct Piece {
    #[serde(default)]
    text: Option<Content>,
    #[serde(default)]
    thinking: Option<Content>,
}

/// By hand: what is derived for such a choice copies everything before it looks, and a text comes in many pieces.
impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content, A::Error> {
        let mut pieces = Vec::new();
        while let Some(piece) = list.next_element()? {
            pieces.push(piece);
        }
        Ok(Content::List(pieces))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Content, A::Error> {
        Piece::deserialize(MapAccessDeserializer::new(map)).map(|piece| Content::Piece(Box::new(piece)))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Content, E> {
        Ok(Content::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Content, E> {
        Ok(Content::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Content, E> {
        Ok(Content::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Content, E> {
        Ok(Content::Other)
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Other)
    }
}

#[derive(Deserialize)]
struct CallPiece<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default, borrow)]
    id: Option<Text<'a>>,
    #[serde(default, borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(default, borrow)]
    name: Option<Text<'a>>,
    #[serde(default, borrow)]
    arguments: Option<Text<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Counts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    completion_tokens_details: Option<Details>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    reasoning_tokens: Option<u64>,
}

pub(super) fn read(data: &[u8], heard: &mut Heard) -> Result<(), Fault> {
    if data == DONE {
        heard.ended = true;
        return Ok(());
    }
    let chunk: Chunk<'_> = parse(data)?;
    if let Some(error) = chunk.error {
        return Err(gave_up(error));
    }
    // Only one answer was asked for.
    if let Some(choice) = chunk.choices.into_iter().flatten().next() {
        heard.stopped |= choice.finish_reason.is_some();
        if let Some(delta) = choice.delta {
            take(delta, heard);
        }
    }
    // Most say it at the end, some again and again: the last time counts.
    let counts: Counts = counts(chunk.usage);
    if let (Some(input), Some(output)) = (counts.prompt_tokens, counts.completion_tokens) {
        let reasoning = counts.completion_tokens_details.and_then(|details| details.reasoning_tokens);
        heard.usage = crate::Usage { input, output, reasoning: reasoning.unwrap_or_default() };
    }
    Ok(())
}

fn take(delta: Delta<'_>, heard: &mut Heard) {
    if let Some(thought) = delta.reasoning_content.or(delta.reasoning) {
        heard.think(thought.text());
    }
    match delta.content {
        Some(Content::List(pieces)) => {
            for piece in pieces.into_iter().filter_map(Content::piece) {
                heard.think(piece.thinking.map(Content::text).unwrap_or_default());
                heard.say(piece.text.map(Content::text).unwrap_or_default());
            }
        }
        Some(content) => heard.say(content.text()),
        None => {}
    }
    for piece in delta.tool_calls.into_iter().flatten() {
        let id = piece.id.unwrap_or_default().0;
        let Some(call) = heard.call(piece.index, &id) else { continue };
        let Some(function) = piece.function else { continue };
        if let Some(Text(name)) = function.name.filter(|name| !name.0.is_empty()) {
            call.name = name.into_owned();
        }
        call.arguments.push_str(&function.arguments.unwrap_or_default().0);
    }
}

impl Content {
    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::List(pieces) => pieces.into_iter().filter_map(|piece| piece.piece()?.text).map(Self::text).collect(),
            Self::Piece(_) | Self::Other => String::new(),
        }
    }

    fn piece(self) -> Option<Piece> {
        if let Self::Piece(piece) = self { Some(*piece) } else { None }
    }
}
