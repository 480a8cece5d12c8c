//! Gemini's own interface. Calls come whole and often without an id, and then are answered in their order.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::{Ask, Fault, Heard, Text, Tool, counts, gave_up, parse};
use crate::models::fault::Remedy;
use crate::models::heard::{self, Called, Object, Signed};
use crate::models::prompt::{Round, Said};

/// Its third generation wants every round of calls signed; this is what it takes for those of another model.
const NOT_SIGNED: &str = "skip_thought_signature_validator";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body<'a> {
    system_instruction: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    contents: Vec<Content<'a>>,
    generation_config: Config,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    thinking_config: ThinkingConfig,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    include_thoughts: bool,
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<Part<'a>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<FunctionResponse<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    id: &'a str,
    name: &'a str,
    args: Object<'a>,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    id: &'a str,
    name: &'a str,
    response: Response<'a>,
}

#[derive(Serialize)]
struct Response<'a> {
    name: &'a str,
    content: &'a str,
}

pub(super) fn tools(tools: &[Tool<'_>]) -> serde_json::Result<Box<RawValue>> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Declaration<'a> {
        name: &'a str,
        description: &'a str,
        parameters_json_schema: &'a Value,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Declarations<'a> {
        function_declarations: Vec<Declaration<'a>>,
    }
    let declarations = tools.iter().map(|tool| Declaration {
        name: tool.name,
        description: tool.description,
        parameters_json_schema: &tool.schema,
    });
    to_raw_value(&[Declarations { function_declarations: declarations.collect() }])
}

impl<'a> Body<'a> {
    pub(super) fn new(ask: &Ask<'a>) -> Self {
        let wants_signature = ask.model.contains("gemini-3");
        let mut contents = Vec::with_capacity(2 * ask.told.said.len());
        for said in &ask.told.said {
            match said {
                // With all else that the system says.
                Said::System(_) => {}
                Said::User(text) => contents.push(Content { role: Some("user"), parts: vec![Part::text(*text)] }),
                Said::Assistant(text) => contents.push(Content { role: Some("model"), parts: vec![Part::text(*text)] }),
                Said::Round(round) => {
                    contents.push(Content { role: Some("model"), parts: model_parts(round, wants_signature) });
                    contents.push(Content { role: Some("user"), parts: responses(round) });
                }
            }
        }
        Self {
            system_instruction: Content { role: None, parts: vec![Part::text(ask.told.whole_system())] },
            tools: ask.tools,
            contents,
            generation_config: Config {
                temperature: ask.temperature,
                thinking_config: ThinkingConfig { include_thoughts: true },
            },
        }
    }
}

impl<'a> Part<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }
}

fn model_parts<'a>(round: &'a Round<'a>, wants_signature: bool) -> Vec<Part<'a>> {
    let mut first = true;
    let parts = round.parts.iter().filter_map(|part| match part {
        heard::Part::Text(Signed { text, signature }) => {
            Some(Part { thought_signature: signature.as_deref(), ..Part::text(text) })
        }
        // What it thought it knows by the signatures of the rest.
        heard::Part::Thought(_) | heard::Part::Sealed(_) => None,
        heard::Part::Call(call) => {
            let not_signed = std::mem::take(&mut first) && wants_signature;
            let thought_signature = call.signature.as_deref().or(not_signed.then_some(NOT_SIGNED));
            let function_call = Some(FunctionCall { id: &call.id, name: &call.name, args: call.object() });
            Some(Part { function_call, thought_signature, ..Part::default() })
        }
    });
    parts.collect()
}

fn responses<'a>(round: &'a Round<'a>) -> Vec<Part<'a>> {
    let calls =
        round.parts.iter().filter_map(|part| if let heard::Part::Call(call) = part { Some(call) } else { None });
    let responses = calls.zip(&round.answers).map(|(call, answer)| {
        let response = Response { name: answer.name, content: &answer.text };
        let function_response = Some(FunctionResponse { id: &call.id, name: answer.name, response });
        Part { function_response, ..Part::default() }
    });
    responses.collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(default, borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(default, borrow)]
    usage_metadata: Option<&'a RawValue>,
    #[serde(default, borrow)]
    prompt_feedback: Option<Feedback<'a>>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(default, borrow)]
    content: Option<Parts<'a>>,
    #[serde(default, borrow)]
    finish_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Parts<'a> {
    #[serde(default, borrow)]
    parts: Option<Vec<Piece<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Piece<'a> {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(default, borrow)]
    function_call: Option<Function<'a>>,
    #[serde(default)]
    thought_signature: Option<String>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default, borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(default, borrow)]
    block_reason: Option<Text<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Counts {
    prompt_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
}

pub(super) fn read(data: &[u8], heard: &mut Heard) -> Result<(), Fault> {
    let chunk: Chunk<'_> = parse(data)?;
    if let Some(error) = chunk.error {
        return Err(gave_up(error));
    }
    if let Some(Text(reason)) = chunk.prompt_feedback.and_then(|feedback| feedback.block_reason) {
        let message = format!("the provider does not answer this: {reason}");
        return Err(Fault { message, remedy: Remedy::Never });
    }
    // Every chunk counts; only the last one is complete.
    if let Some(usage) = chunk.usage_metadata {
        count(counts(Some(usage)), heard);
    }
    // Only one answer was asked for.
    let Some(candidate) = chunk.candidates.into_iter().flatten().next() else { return Ok(()) };
    for piece in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
        take(piece, heard);
    }
    // There is no other end.
    heard.ended |= candidate.finish_reason.is_some();
    Ok(())
}

fn take(piece: Piece<'_>, heard: &mut Heard) {
    let text = piece.text.unwrap_or_default();
    match (piece.function_call, piece.thought_signature) {
        (Some(call), signature) => heard.push_call(Called {
            id: call.id.unwrap_or_default(),
            name: call.name.unwrap_or_default(),
            arguments: call.args.map(|args| args.get().to_owned()).unwrap_or_default(),
            signature,
        }),
        (None, _) if piece.thought == Some(true) => heard.think(text),
        (None, Some(signature)) => heard.say_signed(text, signature),
        (None, None) => heard.say(text),
    }
}

/// Thoughts are counted beside the rest, and cost the same.
fn count(counts: Counts, heard: &mut Heard) {
    let sum = |one: Option<u64>, other: Option<u64>| one.unwrap_or_default().saturating_add(other.unwrap_or_default());
    heard.usage = crate::Usage {
        input: sum(counts.prompt_token_count, counts.tool_use_prompt_token_count),
        output: sum(counts.candidates_token_count, counts.thoughts_token_count),
        reasoning: counts.thoughts_token_count.unwrap_or_default(),
    };
}
