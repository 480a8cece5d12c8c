//! Output of a run that is more than text: chunks of artifacts, a message as the answer, and status messages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use redact::Redactor;

/// One output of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RichOutput {
    Artifact(ArtifactChunk),
    /// The answer, if it is a message. The run has no other result then.
    Message(Vec<ContentPart>),
    /// A status message. If the run ends with a question, the last status message is the question.
    Status(Vec<ContentPart>),
}

/// A whole artifact, or the next part of one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArtifactChunk {
    pub artifact_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub parts: Vec<ContentPart>,
    /// `true` if the parts are appended to the artifact; otherwise they replace its content.
    #[serde(default)]
    pub append: bool,
    /// `true` for the last chunk of the artifact.
    #[serde(default)]
    pub last: bool,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// One part of a message or an artifact. It also accepts the field names of A2A.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContentPart {
    #[serde(flatten)]
    pub content: PartContent,
    #[serde(default, alias = "mediaType", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The name of the file.
    #[serde(default, alias = "filename", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// The content of a [`ContentPart`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartContent {
    Text(String),
    #[serde(alias = "raw", serialize_with = "encode", deserialize_with = "decode")]
    Bytes(Vec<u8>),
    Url(String),
    Data(Value),
}

impl From<PartContent> for ContentPart {
    fn from(content: PartContent) -> Self {
        Self { content, media_type: None, name: None, metadata: Map::new() }
    }
}

impl ContentPart {
    /// Returns a part that is a text.
    pub fn text(text: impl Into<String>) -> Self {
        PartContent::Text(text.into()).into()
    }

    /// Returns the size of the content in bytes: of decoded bytes, or of data as JSON. The name and the metadata do not
    /// count.
    pub fn size(&self) -> usize {
        match &self.content {
            PartContent::Text(text) | PartContent::Url(text) => text.len(),
            PartContent::Bytes(bytes) => bytes.len(),
            PartContent::Data(value) => value.to_string().len(),
        }
    }

    /// Redacts the content, the media type, the file name and the metadata. Bytes are redacted only if they are UTF-8.
    fn redact(&mut self, redactor: &Redactor) {
        match &mut self.content {
            PartContent::Text(text) | PartContent::Url(text) => redact_string(redactor, text),
            PartContent::Data(value) => redactor.json(value),
            // Bytes that are not UTF-8 are not redacted.
            PartContent::Bytes(bytes) => {
                if let Ok(text) = std::str::from_utf8(bytes)
                    && let std::borrow::Cow::Owned(text) = redactor.text(text)
                {
                    *bytes = text.into_bytes();
                }
            }
        }
        [&mut self.media_type, &mut self.name].into_iter().flatten().for_each(|text| redact_string(redactor, text));
        redact_map(redactor, &mut self.metadata);
    }
}

impl RichOutput {
    /// Redacts all parts and metadata, and the id, the name and the description of an artifact.
    pub fn redact(&mut self, redactor: &Redactor) {
        let parts = match self {
            Self::Message(parts) | Self::Status(parts) => parts,
            Self::Artifact(chunk) => {
                redact_string(redactor, &mut chunk.artifact_id);
                let texts = [&mut chunk.name, &mut chunk.description];
                texts.into_iter().flatten().for_each(|text| redact_string(redactor, text));
                redact_map(redactor, &mut chunk.metadata);
                &mut chunk.parts
            }
        };
        parts.iter_mut().for_each(|part| part.redact(redactor));
    }
}

/// Returns the parts as one text: first the texts, then data as JSON and URLs, each on its own line. Bytes are left
/// out.
pub fn parts_to_text(parts: &[ContentPart]) -> String {
    let texts = parts.iter().filter_map(|part| match &part.content {
        PartContent::Text(text) => Some(text.clone()),
        _ => None,
    });
    let data_and_urls = parts.iter().filter_map(|part| match &part.content {
        PartContent::Data(value) => Some(value.to_string()),
        PartContent::Url(url) => Some(url.clone()),
        PartContent::Text(_) | PartContent::Bytes(_) => None,
    });
    texts.chain(data_and_urls).collect::<Vec<_>>().join("\n")
}

/// Returns the text of the outputs: the last message, else the artifacts, else the last status message, else nothing.
///
/// The artifacts are in the order of their first chunks, one per line. A later chunk of an artifact is appended without
/// a separator, or replaces its text if `append` is false. Artifacts without text are left out. A message without text
/// still takes precedence.
pub fn output_to_text<'a>(outputs: impl IntoIterator<Item = &'a RichOutput>) -> String {
    let mut artifacts: Vec<(&str, String)> = Vec::new();
    let mut message = None;
    let mut status = None;
    for output in outputs {
        match output {
            RichOutput::Message(parts) => message = Some(parts_to_text(parts)),
            RichOutput::Status(parts) => status = Some(parts_to_text(parts)),
            RichOutput::Artifact(chunk) => {
                let text = parts_to_text(&chunk.parts);
                match artifacts.iter_mut().find(|(id, _)| *id == chunk.artifact_id) {
                    Some((_, whole)) if chunk.append => whole.push_str(&text),
                    Some((_, whole)) => *whole = text,
                    None => artifacts.push((&chunk.artifact_id, text)),
                }
            }
        }
    }
    let artifacts: Vec<_> = artifacts.into_iter().map(|(_, text)| text).filter(|text| !text.is_empty()).collect();
    message.unwrap_or_else(|| if artifacts.is_empty() { status.unwrap_or_default() } else { artifacts.join("\n") })
}

/// Returns the parts of an A2A message in JSON. The list is empty if the message has no `parts`. Fails if `parts` is
/// not a list, or if a part is malformed.
pub fn parse_message_parts(message: &Value) -> serde_json::Result<Vec<ContentPart>> {
    message.get("parts").map_or(Ok(Vec::new()), Vec::<ContentPart>::deserialize)
}

/// Redacts all strings of an A2A message in JSON, in place. The `raw` content of a part is decoded first, redacted if
/// it is UTF-8, and encoded again. A `raw` that is not a string of valid base64 becomes `null`.
pub fn redact_message(redactor: &Redactor, message: &mut Value) {
    let parts = message.get_mut("parts").and_then(Value::as_array_mut);
    let mut raw = Vec::new();
    for (at, part) in parts.into_iter().flatten().enumerate() {
        let Some(bytes) = part.get_mut("raw") else { continue };
        if let Ok(mut part) = ContentPart::deserialize(serde_json::json!({ "raw": bytes.take() })) {
            part.redact(redactor);
            raw.push((at, part.content));
        }
    }
    redactor.json(message);
    for (at, content) in raw {
        if let PartContent::Bytes(bytes) = content {
            message["parts"][at]["raw"] = STANDARD.encode(bytes).into();
        }
    }
}

fn redact_string(redactor: &Redactor, text: &mut String) {
    if let std::borrow::Cow::Owned(redacted) = redactor.text(text) {
        *text = redacted;
    }
}

/// Redacts all strings of the map, and the values of keys with secret names.
fn redact_map(redactor: &Redactor, map: &mut Map<String, Value>) {
    let mut value = Value::Object(std::mem::take(map));
    redactor.json(&mut value);
    if let Value::Object(fields) = value {
        *map = fields;
    }
}

/// Serializes bytes as base64 text.
fn encode<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}

/// Deserializes base64 text. Fails if it is not valid base64 with padding.
fn decode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    STANDARD.decode(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use redact::RedactOptions;

    fn output(value: Value) -> RichOutput {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn outputs_round_trip_through_json() {
        // A2A-1
        for value in [
            json!({"message": [{"text": "hi"}]}),
            json!({"status": [{"url": "https://example.com/a", "media_type": "text/plain", "name": "a"}]}),
            json!({"artifact": {"artifact_id": "1", "name": "n", "parts": [{"bytes": "AAEC"}], "append": true, "last": false}}),
            json!({"artifact": {"artifact_id": "1", "parts": [{"data": {"a": [null, 1]}, "metadata": {"b": 1}}], "append": false, "last": true, "metadata": {"c": {}}}}),
        ] {
            assert_eq!(serde_json::to_value(output(value.clone())).unwrap(), value);
        }
        let parts =
            parse_message_parts(&json!({"parts": [{"raw": "AAEC", "filename": "x", "mediaType": "a/b"}]})).unwrap();
        assert_eq!(parts[0].content, PartContent::Bytes(vec![0, 1, 2]));
        assert_eq!((parts[0].name.as_deref(), parts[0].media_type.as_deref()), (Some("x"), Some("a/b")));
        assert!(parse_message_parts(&json!({"parts": [{"raw": "?"}]})).is_err());
        assert!(parse_message_parts(&json!({"parts": [{}]})).is_err());
        assert_eq!(parse_message_parts(&json!({})).unwrap(), []);
    }

    #[test]
    fn secrets_are_redacted_in_every_part() {
        // A2A-1, SUP-10
        let secret = "hunter2hunter2";
        let redactor = Redactor::new(RedactOptions::default()).with_known([secret.to_owned()]);
        let base64 = STANDARD.encode(secret);
        let all = json!([{"text": secret}, {"bytes": base64, "name": secret}, {"url": format!("https://x/{secret}")}, {"data": {"k": [secret]}}]);
        let artifact =
            json!({"artifact_id": "1", "name": secret, "description": secret, "parts": all, "metadata": {"m": secret}});
        for mut output in
            [output(json!({"artifact": artifact})), output(json!({"message": all})), output(json!({"status": all}))]
        {
            output.redact(&redactor);
            let text = serde_json::to_string(&output).unwrap();
            assert!(!text.contains(secret) && !text.contains(&base64), "{text}");
        }
        // Bytes that are not text are not changed, even if their base64 looks like a key.
        let mut message = json!({"messageId": "m", "parts": [{"raw": "/9j/AKIA"}, {"raw": base64}, {"text": secret}]});
        redact_message(&redactor, &mut message);
        let mark = STANDARD.encode(redact::MARK);
        let expected = json!({"messageId": "m", "parts": [{"raw": "/9j/AKIA"}, {"raw": mark}, {"text": redact::MARK}]});
        assert_eq!(message, expected);
    }

    #[test]
    fn outputs_are_reduced_to_text() {
        let parts: Vec<ContentPart> = serde_json::from_value(
            json!([{"data": {"a": 1}}, {"text": "x"}, {"bytes": ""}, {"url": "u"}, {"text": "y"}]),
        )
        .unwrap();
        assert_eq!(parts_to_text(&parts), "x\ny\n{\"a\":1}\nu");
        let chunk = |id: &str, text: &str, append: bool| {
            RichOutput::Artifact(ArtifactChunk {
                artifact_id: id.into(),
                parts: vec![ContentPart::text(text)],
                append,
                ..ArtifactChunk::default()
            })
        };
        let status = RichOutput::Status(vec![ContentPart::text("soon")]);
        assert_eq!(output_to_text([&status]), "soon");
        let all =
            [status, chunk("a", "1", false), chunk("b", "2", false), chunk("a", "3", true), chunk("b", "4", false)];
        assert_eq!(output_to_text(&all), "13\n4");
        let message = RichOutput::Message(vec![ContentPart::text("hello")]);
        assert_eq!(output_to_text(all.iter().chain([&message])), "hello");
        assert_eq!(output_to_text([]), "");
    }
}
