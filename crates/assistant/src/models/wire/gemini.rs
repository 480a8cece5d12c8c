//! The native API of Gemini. Calls arrive complete and often without an id. Their results are then matched by order.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::{
    BorrowedText, OfferedTool, ProviderError, ReplyAccumulator, WireRequest, error_event, parse_event, parse_usage,
};
use crate::models::accumulator::{ArgumentsObject, CallPart, ReplyPart, SignedText};
use crate::models::provider_error::Remedy;
use crate::models::transcript::{ToolRound, TranscriptEntry};

/// Gemini 3 requires a signature for every round of calls. It accepts this value for calls of other models.
const SKIP_SIGNATURE: &str = "skip_thought_signature_validator";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiRequest<'a> {
    system_instruction: GeminiContent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    contents: Vec<GeminiContent<'a>>,
    generation_config: GenerationConfig,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
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
struct GeminiContent<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<GeminiPart<'a>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiPart<'a> {
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
    args: ArgumentsObject<'a>,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    id: &'a str,
    name: &'a str,
    response: FunctionResult<'a>,
}

#[derive(Serialize)]
struct FunctionResult<'a> {
    name: &'a str,
    content: &'a str,
}

/// Serializes the tools of a request as declarations of one tool, in their order. Fails if the serialization fails.
pub(super) fn tools(tools: &[OfferedTool<'_>]) -> serde_json::Result<Box<RawValue>> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct FunctionDeclaration<'a> {
        name: &'a str,
        description: &'a str,
        parameters_json_schema: &'a Value,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct FunctionDeclarations<'a> {
        function_declarations: Vec<FunctionDeclaration<'a>>,
    }
    let declarations = tools.iter().map(|tool| FunctionDeclaration {
        name: tool.name,
        description: tool.description,
        parameters_json_schema: &tool.schema,
    });
    to_raw_value(&[FunctionDeclarations { function_declarations: declarations.collect() }])
}

impl<'a> GeminiRequest<'a> {
    /// Converts a request. System messages become part of the system prompt. A tool round becomes two contents: the
    /// reply of the model, and the results as a content of the user. Thoughts are requested. Models with "gemini-3" in
    /// their name require signatures.
    pub(super) fn new(request: &WireRequest<'a>) -> Self {
        let wants_signature = request.model.contains("gemini-3");
        let mut contents = Vec::with_capacity(2 * request.transcript.entries.len());
        for entry in &request.transcript.entries {
            match entry {
                // Part of the combined system prompt.
                TranscriptEntry::System(_) => {}
                TranscriptEntry::User(text) => {
                    contents.push(GeminiContent { role: Some("user"), parts: vec![GeminiPart::text(&**text)] })
                }
                TranscriptEntry::Assistant(text) => {
                    contents.push(GeminiContent { role: Some("model"), parts: vec![GeminiPart::text(*text)] })
                }
                TranscriptEntry::ToolRound(round) => {
                    contents.push(GeminiContent { role: Some("model"), parts: model_parts(round, wants_signature) });
                    contents.push(GeminiContent { role: Some("user"), parts: responses(round) });
                }
            }
        }
        Self {
            system_instruction: GeminiContent {
                role: None,
                parts: vec![GeminiPart::text(request.transcript.combined_system())],
            },
            tools: request.tools,
            contents,
            generation_config: GenerationConfig {
                temperature: request.temperature,
                thinking_config: ThinkingConfig { include_thoughts: true },
            },
        }
    }
}

impl<'a> GeminiPart<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }
}

/// Returns the texts and calls of a tool round with their signatures, without thoughts. With `wants_signature`, the
/// first call gets [`SKIP_SIGNATURE`] if it has no signature. Invalid arguments become an empty object.
fn model_parts<'a>(round: &'a ToolRound<'a>, wants_signature: bool) -> Vec<GeminiPart<'a>> {
    let mut first = true;
    let parts = round.parts.iter().filter_map(|part| match part {
        ReplyPart::Text(SignedText { text, signature }) => {
            Some(GeminiPart { thought_signature: signature.as_deref(), ..GeminiPart::text(text) })
        }
        // Thoughts are represented by the signatures of the remaining parts.
        ReplyPart::Thought(_) | ReplyPart::RedactedThought(_) => None,
        ReplyPart::Call(call) => {
            let needs_signature = std::mem::take(&mut first) && wants_signature;
            let thought_signature = call.signature.as_deref().or(needs_signature.then_some(SKIP_SIGNATURE));
            let function_call = Some(FunctionCall { id: &call.id, name: &call.name, args: call.arguments_object() });
            Some(GeminiPart { function_call, thought_signature, ..GeminiPart::default() })
        }
    });
    parts.collect()
}

/// Returns the results of a tool round, with the ids of their calls. They are matched with the calls by order. A call
/// without a result, and a result without a call, are left out.
fn responses<'a>(round: &'a ToolRound<'a>) -> Vec<GeminiPart<'a>> {
    let calls = round.parts.iter().filter_map(|part| if let ReplyPart::Call(call) = part { Some(call) } else { None });
    let responses = calls.zip(&round.results).map(|(call, result)| {
        let response = FunctionResult { name: result.name, content: &result.text };
        let function_response = Some(FunctionResponse { id: &call.id, name: result.name, response });
        GeminiPart { function_response, ..GeminiPart::default() }
    });
    responses.collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiChunk<'a> {
    #[serde(default, borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(default, borrow)]
    usage_metadata: Option<&'a RawValue>,
    #[serde(default, borrow)]
    prompt_feedback: Option<PromptFeedback<'a>>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(default, borrow)]
    content: Option<CandidateContent<'a>>,
    #[serde(default, borrow)]
    finish_reason: Option<BorrowedText<'a>>,
}

#[derive(Deserialize)]
struct CandidateContent<'a> {
    #[serde(default, borrow)]
    parts: Option<Vec<CandidatePart<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CandidatePart<'a> {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(default, borrow)]
    function_call: Option<CandidateCall<'a>>,
    #[serde(default)]
    thought_signature: Option<String>,
}

#[derive(Deserialize)]
struct CandidateCall<'a> {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default, borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback<'a> {
    #[serde(default, borrow)]
    block_reason: Option<BorrowedText<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct GeminiUsage {
    prompt_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
}

/// Adds the data of one event to the reply. A finish reason ends the reply. Only the first candidate is read. The usage
/// is replaced if the event has counts. Fails with a transient error if the data is not valid JSON or reports an error,
/// and with [`Remedy::InvalidRequest`] if the prompt was blocked.
pub(super) fn read(data: &[u8], reply: &mut ReplyAccumulator) -> Result<(), ProviderError> {
    let chunk: GeminiChunk<'_> = parse_event(data)?;
    if let Some(error) = chunk.error {
        return Err(error_event(error));
    }
    if let Some(BorrowedText(reason)) = chunk.prompt_feedback.and_then(|feedback| feedback.block_reason) {
        let message = format!("the provider blocked the prompt: {reason}");
        return Err(ProviderError { message, remedy: Remedy::InvalidRequest });
    }
    // Every chunk has counts, but only those of the last chunk are complete.
    if let Some(usage) = chunk.usage_metadata {
        set_usage(parse_usage(Some(usage)), reply);
    }
    // The request asks for only one candidate.
    let Some(candidate) = chunk.candidates.into_iter().flatten().next() else { return Ok(()) };
    for part in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
        add_part(part, reply);
    }
    // The API has no other end marker.
    reply.ended |= candidate.finish_reason.is_some();
    Ok(())
}

/// Adds a part to the reply: a call with its signature, else a thought, else a signed text, else a text. The signature
/// of a thought is ignored. So is the text of a part with a call.
fn add_part(part: CandidatePart<'_>, reply: &mut ReplyAccumulator) {
    let text = part.text.unwrap_or_default();
    match (part.function_call, part.thought_signature) {
        (Some(call), signature) => reply.push_call(CallPart {
            id: call.id.unwrap_or_default(),
            name: call.name.unwrap_or_default(),
            arguments: call.args.map(|args| args.get().to_owned()).unwrap_or_default(),
            signature,
        }),
        (None, _) if part.thought == Some(true) => reply.push_thought(text),
        (None, Some(signature)) => reply.push_signed_text(text, signature),
        (None, None) => reply.push_text(text),
    }
}

/// Replaces the usage. Missing counts become 0. Gemini counts thoughts separately, but they are part of the output.
/// Tokens of tool prompts are part of the input.
fn set_usage(counts: GeminiUsage, reply: &mut ReplyAccumulator) {
    let sum = |one: Option<u64>, other: Option<u64>| one.unwrap_or_default().saturating_add(other.unwrap_or_default());
    reply.usage = crate::ModelUsage {
        input: sum(counts.prompt_token_count, counts.tool_use_prompt_token_count),
        output: sum(counts.candidates_token_count, counts.thoughts_token_count),
        reasoning: counts.thoughts_token_count.unwrap_or_default(),
    };
}
