//! A recorded request, with accessors that work for all wires. The tool schemas are most of a body. They are parsed only on
//! access, so that load tests do not measure JSON parsing.

use std::sync::OnceLock;

use axum::body::Bytes;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;

/// The wire protocol of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// `…/chat/completions`
    OpenAi,
    /// `…/models/{model}:streamGenerateContent`
    Gemini,
    /// `…/messages`
    Anthropic,
}

/// A request to the provider.
#[derive(Debug)]
pub struct Request {
    pub wire: Wire,
    pub path: String,
    pub query: Option<String>,
    pub headers: HeaderMap,
    pub model: String,
    pub stream: bool,
    /// The number of the request, starting at 1.
    pub number: usize,
    pub(super) wants_usage: bool,
    content: RequestContent,
    raw: Bytes,
    body: OnceLock<Value>,
}

/// An entry of the transcript in a request.
#[derive(Clone, Debug, PartialEq)]
pub enum TranscriptEntry {
    System(String),
    User(String),
    Assistant(String),
    Call { name: String, arguments: Value },
    Result(String),
}

/// A tool of a request, with its position.
pub(super) struct OfferedTool {
    pub(super) name: String,
    pub(super) group: usize,
    pub(super) index: usize,
}

#[derive(Debug, Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// The part of a body that is parsed immediately, for all wires.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RequestContent {
    model: Option<String>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    messages: Value,
    contents: Value,
    system: Value,
    #[serde(rename = "systemInstruction", alias = "system_instruction")]
    instruction: Value,
}

/// The names of the tools, for all wires.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ToolList {
    tools: Vec<ToolEntry>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ToolEntry {
    name: Option<String>,
    function: Option<FunctionName>,
    #[serde(rename = "functionDeclarations", alias = "function_declarations")]
    declarations: Vec<FunctionName>,
}

#[derive(Deserialize)]
struct FunctionName {
    name: String,
}

impl Request {
    /// Parses a request. Fails with the status of the response if the path, the method or the body is invalid.
    pub(super) fn read(number: usize, parts: Parts, raw: Bytes) -> Result<Self, StatusCode> {
        let path = parts.uri.path().to_owned();
        let (wire, streams) = if path.ends_with("/chat/completions") {
            (Wire::OpenAi, false)
        } else if path.ends_with(":streamGenerateContent") {
            (Wire::Gemini, true)
        } else if path.ends_with(":generateContent") {
            (Wire::Gemini, false)
        } else if path.ends_with("/messages") {
            (Wire::Anthropic, false)
        } else {
            return Err(StatusCode::NOT_FOUND);
        };
        if parts.method != Method::POST {
            return Err(StatusCode::METHOD_NOT_ALLOWED);
        }
        let content: RequestContent = serde_json::from_slice(&raw).map_err(|_| StatusCode::BAD_REQUEST)?;
        let model = match wire {
            Wire::Gemini => path.rsplit(['/', ':']).nth(1).unwrap_or_default().to_owned(),
            _ => content.model.clone().unwrap_or_default(),
        };
        let stream = streams || wire != Wire::Gemini && content.stream == Some(true);
        let wants_usage = content.stream_options.as_ref().and_then(|options| options.include_usage) == Some(true);
        let query = parts.uri.query().map(str::to_owned);
        let headers = parts.headers;
        let body = OnceLock::new();
        Ok(Self { wire, path, query, headers, model, stream, number, wants_usage, content, raw, body })
    }

    /// Returns the whole body.
    pub fn body(&self) -> &Value {
        self.body.get_or_init(|| serde_json::from_slice(&self.raw).unwrap_or_default())
    }

    /// Returns the value of a header, if it is present and valid UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the API key from a header or the query.
    pub fn api_key(&self) -> Option<&str> {
        let bearer = || self.header("authorization")?.strip_prefix("Bearer ");
        let header = || ["x-api-key", "x-goog-api-key", "api-key"].iter().find_map(|name| self.header(name));
        let query = || self.query.as_deref()?.split('&').find_map(|pair| pair.strip_prefix("key="));
        bearer().or_else(header).or_else(query)
    }

    /// Returns the conversation in a format that is the same for all wires. Thoughts are omitted.
    pub fn transcript(&self) -> Vec<TranscriptEntry> {
        match self.wire {
            Wire::OpenAi => openai_transcript(&self.content),
            Wire::Gemini => gemini_transcript(&self.content),
            Wire::Anthropic => anthropic_transcript(&self.content),
        }
    }

    /// Returns the last message of the user, or an empty string.
    pub fn last_user_text(&self) -> String {
        let last = self.transcript().into_iter().rev().find_map(|entry| match entry {
            TranscriptEntry::User(text) => Some(text),
            _ => None,
        });
        last.unwrap_or_default()
    }

    /// Returns the tool results after the last message of the user.
    pub fn tool_results(&self) -> Vec<String> {
        let mut results = Vec::new();
        for entry in self.transcript() {
            match entry {
                TranscriptEntry::User(_) => results.clear(),
                TranscriptEntry::Result(text) => results.push(text),
                _ => {}
            }
        }
        results
    }

    /// Returns `true` if the request has a system prompt.
    pub fn has_system(&self) -> bool {
        self.transcript().iter().any(|entry| matches!(entry, TranscriptEntry::System(_)))
    }

    /// Returns the names of the offered tools.
    pub fn tool_names(&self) -> Vec<String> {
        self.offered_tools().into_iter().map(|tool| tool.name).collect()
    }

    /// Returns the schema of an offered tool.
    pub fn tool_schema(&self, name: &str) -> Option<Value> {
        let tool = self.offered_tools().into_iter().find(|tool| tool.name == name)?;
        let tools = &self.body()["tools"];
        let schema = match self.wire {
            Wire::OpenAi => &tools[tool.index]["function"]["parameters"],
            Wire::Anthropic => &tools[tool.index]["input_schema"],
            Wire::Gemini => {
                let declarations = get_either(&tools[tool.group], "functionDeclarations", "function_declarations");
                get_either(&declarations[tool.index], "parametersJsonSchema", "parameters")
            }
        };
        Some(schema.clone())
    }

    /// Returns the temperature of the request.
    pub fn temperature(&self) -> Option<f64> {
        let body = self.body();
        match self.wire {
            Wire::Gemini => body["generationConfig"]["temperature"].as_f64(),
            _ => body["temperature"].as_f64(),
        }
    }

    /// Returns the signatures of thoughts that were sent back.
    pub fn thought_signatures(&self) -> Vec<String> {
        let (messages, parts, name) = match self.wire {
            Wire::OpenAi => return Vec::new(),
            Wire::Gemini => (&self.content.contents, "parts", "thoughtSignature"),
            Wire::Anthropic => (&self.content.messages, "content", "signature"),
        };
        let parts = list(messages).iter().flat_map(|message| list(&message[parts]));
        parts.filter_map(|part| part[name].as_str()).map(str::to_owned).collect()
    }

    /// Returns the offered tools in their order.
    pub(super) fn offered_tools(&self) -> Vec<OfferedTool> {
        let list: ToolList = serde_json::from_slice(&self.raw).unwrap_or_default();
        let mut offered = Vec::new();
        for (position, tool) in list.tools.into_iter().enumerate() {
            let single = tool.name.or(tool.function.map(|function| function.name));
            offered.extend(single.map(|name| OfferedTool { name, group: 0, index: position }));
            let declared = tool.declarations.into_iter().enumerate();
            offered.extend(declared.map(|(index, tool)| OfferedTool { name: tool.name, group: position, index }));
        }
        offered
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn get_either<'a>(value: &'a Value, first: &str, second: &str) -> &'a Value {
    value.get(first).unwrap_or(&value[second])
}

/// Returns the text of a string or of a list of parts.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        _ => list(content).iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
    }
}

/// Converts a tool result, which is a text or JSON.
fn tool_result(value: &Value) -> TranscriptEntry {
    TranscriptEntry::Result(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

fn openai_transcript(request: &RequestContent) -> Vec<TranscriptEntry> {
    let mut entries = Vec::new();
    for message in list(&request.messages) {
        let content = text(&message["content"]);
        match message["role"].as_str().unwrap_or_default() {
            "system" | "developer" => entries.push(TranscriptEntry::System(content)),
            "user" => entries.push(TranscriptEntry::User(content)),
            "tool" => entries.push(TranscriptEntry::Result(content)),
            _ => {
                if !content.is_empty() {
                    entries.push(TranscriptEntry::Assistant(content));
                }
                for call in list(&message["tool_calls"]) {
                    let name = call["function"]["name"].as_str().unwrap_or_default().to_owned();
                    let arguments = &call["function"]["arguments"];
                    let parsed = serde_json::from_str(arguments.as_str().unwrap_or_default());
                    entries
                        .push(TranscriptEntry::Call { name, arguments: parsed.unwrap_or_else(|_| arguments.clone()) });
                }
            }
        }
    }
    entries
}

fn gemini_transcript(request: &RequestContent) -> Vec<TranscriptEntry> {
    let mut entries = Vec::new();
    if !request.instruction.is_null() {
        entries.push(TranscriptEntry::System(text(&request.instruction["parts"])));
    }
    for content in list(&request.contents) {
        let mut texts = Vec::new();
        let mut tools = Vec::new();
        for part in list(&content["parts"]) {
            if let Some(call) = part.get("functionCall") {
                let name = call["name"].as_str().unwrap_or_default().to_owned();
                tools.push(TranscriptEntry::Call { name, arguments: call["args"].clone() });
            } else if let Some(answer) = part.get("functionResponse") {
                let response = &answer["response"];
                tools.push(tool_result(response.get("content").unwrap_or(response)));
            } else if part["thought"] != true {
                texts.extend(part["text"].as_str());
            }
        }
        add_message(&mut entries, content["role"] != "model", texts, tools);
    }
    entries
}

fn anthropic_transcript(request: &RequestContent) -> Vec<TranscriptEntry> {
    let mut entries = Vec::new();
    if !request.system.is_null() {
        entries.push(TranscriptEntry::System(text(&request.system)));
    }
    for message in list(&request.messages) {
        let mut texts = Vec::from_iter(message["content"].as_str());
        let mut tools = Vec::new();
        for block in list(&message["content"]) {
            match block["type"].as_str().unwrap_or_default() {
                "text" => texts.extend(block["text"].as_str()),
                "tool_result" if block["content"].is_array() => {
                    tools.push(TranscriptEntry::Result(text(&block["content"])))
                }
                "tool_result" => tools.push(tool_result(&block["content"])),
                "tool_use" => {
                    let name = block["name"].as_str().unwrap_or_default().to_owned();
                    tools.push(TranscriptEntry::Call { name, arguments: block["input"].clone() });
                }
                _ => {}
            }
        }
        add_message(&mut entries, message["role"] == "user", texts, tools);
    }
    entries
}

/// Adds a message. Tool results come before the text of a user, and calls after the text of a model.
fn add_message(entries: &mut Vec<TranscriptEntry>, is_user: bool, texts: Vec<&str>, tools: Vec<TranscriptEntry>) {
    let text = (!texts.is_empty()).then(|| texts.join("\n"));
    if is_user {
        entries.extend(tools);
        entries.extend(text.map(TranscriptEntry::User));
    } else {
        entries.extend(text.map(TranscriptEntry::Assistant));
        entries.extend(tools);
    }
}
