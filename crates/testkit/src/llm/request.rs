//! What a model was asked, on any wire, and what a test wants to know of it. Most of a body is the schemas of tools,
//! which are read only when somebody looks: who measures with this should measure something else than JSON.

use std::sync::OnceLock;

use axum::body::Bytes;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;

/// The protocol of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// `…/chat/completions`
    OpenAi,
    /// `…/models/{model}:streamGenerateContent`
    Gemini,
    /// `…/messages`
    Anthropic,
}

#[derive(Debug)]
pub struct Request {
    pub wire: Wire,
    pub path: String,
    pub query: Option<String>,
    pub headers: HeaderMap,
    pub model: String,
    pub stream: bool,
    /// Its place among all requests, from 1.
    pub number: usize,
    pub(super) wants_usage: bool,
    said: Said,
    raw: Bytes,
    body: OnceLock<Value>,
}

/// What was said so far, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    System(String),
    User(String),
    Assistant(String),
    Call { name: String, arguments: Value },
    Result(String),
}

/// A tool of a request, and where it stands.
pub(super) struct Offer {
    pub(super) name: String,
    pub(super) group: usize,
    pub(super) index: usize,
}

#[derive(Debug, Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// What is read at once, whatever the wire.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Said {
    model: Option<String>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    messages: Value,
    contents: Value,
    system: Value,
    #[serde(rename = "systemInstruction", alias = "system_instruction")]
    instruction: Value,
}

/// The names of tools, whatever the wire.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Tools {
    tools: Vec<Tool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tool {
    name: Option<String>,
    function: Option<Named>,
    #[serde(rename = "functionDeclarations", alias = "function_declarations")]
    declarations: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

impl Request {
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
        let said: Said = serde_json::from_slice(&raw).map_err(|_| StatusCode::BAD_REQUEST)?;
        let model = match wire {
            Wire::Gemini => path.rsplit(['/', ':']).nth(1).unwrap_or_default().to_owned(),
            _ => said.model.clone().unwrap_or_default(),
        };
        let stream = streams || wire != Wire::Gemini && said.stream == Some(true);
        let wants_usage = said.stream_options.as_ref().and_then(|options| options.include_usage) == Some(true);
        let query = parts.uri.query().map(str::to_owned);
        let headers = parts.headers;
        let body = OnceLock::new();
        Ok(Self { wire, path, query, headers, model, stream, number, wants_usage, said, raw, body })
    }

    pub fn body(&self) -> &Value {
        self.body.get_or_init(|| serde_json::from_slice(&self.raw).unwrap_or_default())
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The key, in whichever of the usual places it came.
    pub fn key(&self) -> Option<&str> {
        let bearer = || self.header("authorization")?.strip_prefix("Bearer ");
        let header = || ["x-api-key", "x-goog-api-key", "api-key"].iter().find_map(|name| self.header(name));
        let query = || self.query.as_deref()?.split('&').find_map(|pair| pair.strip_prefix("key="));
        bearer().or_else(header).or_else(query)
    }

    /// Everything said so far, the same for every wire. What the model thought is left out.
    pub fn transcript(&self) -> Vec<Entry> {
        match self.wire {
            Wire::OpenAi => openai_transcript(&self.said),
            Wire::Gemini => gemini_transcript(&self.said),
            Wire::Anthropic => anthropic_transcript(&self.said),
        }
    }

    /// The user's last words; empty if there are none.
    pub fn last_user_text(&self) -> String {
        let last = self.transcript().into_iter().rev().find_map(|entry| match entry {
            Entry::User(text) => Some(text),
            _ => None,
        });
        last.unwrap_or_default()
    }

    /// What tools gave since the user's last words.
    pub fn tool_results(&self) -> Vec<String> {
        let mut results = Vec::new();
        for entry in self.transcript() {
            match entry {
                Entry::User(_) => results.clear(),
                Entry::Result(text) => results.push(text),
                _ => {}
            }
        }
        results
    }

    pub fn has_system(&self) -> bool {
        self.transcript().iter().any(|entry| matches!(entry, Entry::System(_)))
    }

    /// The names of the tools on offer.
    pub fn tools(&self) -> Vec<String> {
        self.offers().into_iter().map(|offer| offer.name).collect()
    }

    /// The parameters of a tool on offer.
    pub fn tool_schema(&self, name: &str) -> Option<Value> {
        let offer = self.offers().into_iter().find(|offer| offer.name == name)?;
        let tools = &self.body()["tools"];
        let schema = match self.wire {
            Wire::OpenAi => &tools[offer.index]["function"]["parameters"],
            Wire::Anthropic => &tools[offer.index]["input_schema"],
            Wire::Gemini => {
                let declarations = either(&tools[offer.group], "functionDeclarations", "function_declarations");
                either(&declarations[offer.index], "parametersJsonSchema", "parameters")
            }
        };
        Some(schema.clone())
    }

    pub fn temperature(&self) -> Option<f64> {
        let body = self.body();
        match self.wire {
            Wire::Gemini => body["generationConfig"]["temperature"].as_f64(),
            _ => body["temperature"].as_f64(),
        }
    }

    /// The signatures of thoughts that were sent back.
    pub fn signatures(&self) -> Vec<String> {
        let (messages, parts, name) = match self.wire {
            Wire::OpenAi => return Vec::new(),
            Wire::Gemini => (&self.said.contents, "parts", "thoughtSignature"),
            Wire::Anthropic => (&self.said.messages, "content", "signature"),
        };
        let parts = list(messages).iter().flat_map(|message| list(&message[parts]));
        parts.filter_map(|part| part[name].as_str()).map(str::to_owned).collect()
    }

    pub(super) fn offers(&self) -> Vec<Offer> {
        let read: Tools = serde_json::from_slice(&self.raw).unwrap_or_default();
        let mut offers = Vec::new();
        for (position, tool) in read.tools.into_iter().enumerate() {
            let single = tool.name.or(tool.function.map(|function| function.name));
            offers.extend(single.map(|name| Offer { name, group: 0, index: position }));
            let declared = tool.declarations.into_iter().enumerate();
            offers.extend(declared.map(|(index, tool)| Offer { name: tool.name, group: position, index }));
        }
        offers
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn either<'a>(value: &'a Value, one: &str, other: &str) -> &'a Value {
    value.get(one).unwrap_or(&value[other])
}

/// A text, or the texts of a list of parts.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        _ => list(content).iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
    }
}

/// What a tool gave: a text, or JSON.
fn result(value: &Value) -> Entry {
    Entry::Result(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

fn openai_transcript(all: &Said) -> Vec<Entry> {
    let mut entries = Vec::new();
    for message in list(&all.messages) {
        let said = text(&message["content"]);
        match message["role"].as_str().unwrap_or_default() {
            "system" | "developer" => entries.push(Entry::System(said)),
            "user" => entries.push(Entry::User(said)),
            "tool" => entries.push(Entry::Result(said)),
            _ => {
                if !said.is_empty() {
                    entries.push(Entry::Assistant(said));
                }
                for call in list(&message["tool_calls"]) {
                    let name = call["function"]["name"].as_str().unwrap_or_default().to_owned();
                    let arguments = &call["function"]["arguments"];
                    let parsed = serde_json::from_str(arguments.as_str().unwrap_or_default());
                    entries.push(Entry::Call { name, arguments: parsed.unwrap_or_else(|_| arguments.clone()) });
                }
            }
        }
    }
    entries
}

fn gemini_transcript(all: &Said) -> Vec<Entry> {
    let mut entries = Vec::new();
    if !all.instruction.is_null() {
        entries.push(Entry::System(text(&all.instruction["parts"])));
    }
    for content in list(&all.contents) {
        let mut said = Vec::new();
        let mut tools = Vec::new();
        for part in list(&content["parts"]) {
            if let Some(call) = part.get("functionCall") {
                let name = call["name"].as_str().unwrap_or_default().to_owned();
                tools.push(Entry::Call { name, arguments: call["args"].clone() });
            } else if let Some(answer) = part.get("functionResponse") {
                let response = &answer["response"];
                tools.push(result(response.get("content").unwrap_or(response)));
            } else if part["thought"] != true {
                said.extend(part["text"].as_str());
            }
        }
        message(&mut entries, content["role"] != "model", said, tools);
    }
    entries
}

fn anthropic_transcript(all: &Said) -> Vec<Entry> {
    let mut entries = Vec::new();
    if !all.system.is_null() {
        entries.push(Entry::System(text(&all.system)));
    }
    for from in list(&all.messages) {
        let mut said = Vec::from_iter(from["content"].as_str());
        let mut tools = Vec::new();
        for block in list(&from["content"]) {
            match block["type"].as_str().unwrap_or_default() {
                "text" => said.extend(block["text"].as_str()),
                "tool_result" if block["content"].is_array() => tools.push(Entry::Result(text(&block["content"]))),
                "tool_result" => tools.push(result(&block["content"])),
                "tool_use" => {
                    let name = block["name"].as_str().unwrap_or_default().to_owned();
                    tools.push(Entry::Call { name, arguments: block["input"].clone() });
                }
                _ => {}
            }
        }
        message(&mut entries, from["role"] == "user", said, tools);
    }
    entries
}

/// Users hand in results and then speak; models speak and then call.
fn message(entries: &mut Vec<Entry>, user: bool, said: Vec<&str>, tools: Vec<Entry>) {
    let said = (!said.is_empty()).then(|| said.join("\n"));
    if user {
        entries.extend(tools);
        entries.extend(said.map(Entry::User));
    } else {
        entries.extend(said.map(Entry::Assistant));
        entries.extend(tools);
    }
}
