//! What a run can say beyond text: pieces of artifacts, an answer that is a message, a word on how it goes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use redact::Redactor;

/// One thing that a run said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    Artifact(Piece),
    /// The answer, where it is a message and nothing else comes of the run.
    Message(Vec<Part>),
    /// A word on how it goes. Where the run ends with a question, the last one is the question.
    Status(Vec<Part>),
}

/// An artifact, or more of one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Piece {
    pub artifact_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub parts: Vec<Part>,
    /// Whether this goes on where the piece before ended; otherwise it takes the artifact's place.
    #[serde(default)]
    pub append: bool,
    /// Whether nothing follows.
    #[serde(default)]
    pub last: bool,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// Some content. Reads what A2A calls its fields, too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    #[serde(flatten)]
    pub content: Content,
    #[serde(default, alias = "mediaType", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Of a file.
    #[serde(default, alias = "filename", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    Text(String),
    #[serde(alias = "raw", serialize_with = "encode", deserialize_with = "decode")]
    Bytes(Vec<u8>),
    Url(String),
    Data(Value),
}

impl From<Content> for Part {
    fn from(content: Content) -> Self {
        Self { content, media_type: None, name: None, metadata: Map::new() }
    }
}

impl Part {
    pub fn text(text: impl Into<String>) -> Self {
        Content::Text(text.into()).into()
    }

    /// How much there is of its content.
    pub fn size(&self) -> usize {
        match &self.content {
            Content::Text(text) | Content::Url(text) => text.len(),
            Content::Bytes(bytes) => bytes.len(),
            Content::Data(value) => value.to_string().len(),
        }
    }

    /// Takes out what must not be kept.
    fn redact(&mut self, redactor: &Redactor) {
        match &mut self.content {
            Content::Text(text) | Content::Url(text) => clean(redactor, text),
            Content::Data(value) => redactor.json(value),
            // What is no text is nobody's to read.
            Content::Bytes(bytes) => {
                if let Ok(text) = std::str::from_utf8(bytes)
                    && let std::borrow::Cow::Owned(text) = redactor.text(text)
                {
                    *bytes = text.into_bytes();
                }
            }
        }
        [&mut self.media_type, &mut self.name].into_iter().flatten().for_each(|text| clean(redactor, text));
        clean_map(redactor, &mut self.metadata);
    }
}

impl Said {
    /// Takes out what must not be kept.
    pub fn redact(&mut self, redactor: &Redactor) {
        let parts = match self {
            Self::Message(parts) | Self::Status(parts) => parts,
            Self::Artifact(piece) => {
                clean(redactor, &mut piece.artifact_id);
                let texts = [&mut piece.name, &mut piece.description];
                texts.into_iter().flatten().for_each(|text| clean(redactor, text));
                clean_map(redactor, &mut piece.metadata);
                &mut piece.parts
            }
        };
        parts.iter_mut().for_each(|part| part.redact(redactor));
    }
}

/// The parts as one text for whoever reads only text: texts, then data and addresses, a line each. Files are no part of it.
pub fn as_input(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match &part.content {
        Content::Text(text) => Some(text.clone()),
        _ => None,
    });
    let others = parts.iter().filter_map(|part| match &part.content {
        Content::Data(value) => Some(value.to_string()),
        Content::Url(url) => Some(url.clone()),
        Content::Text(_) | Content::Bytes(_) => None,
    });
    texts.chain(others).collect::<Vec<_>>().join("\n")
}

/// What was said, as far as it is text: the message, or else the artifacts one after the other, or else the last word.
pub fn as_text<'a>(said: impl IntoIterator<Item = &'a Said>) -> String {
    let mut artifacts: Vec<(&str, String)> = Vec::new();
    let mut message = None;
    let mut status = None;
    for said in said {
        match said {
            Said::Message(parts) => message = Some(as_input(parts)),
            Said::Status(parts) => status = Some(as_input(parts)),
            Said::Artifact(piece) => {
                let text = as_input(&piece.parts);
                match artifacts.iter_mut().find(|(id, _)| *id == piece.artifact_id) {
                    Some((_, whole)) if piece.append => whole.push_str(&text),
                    Some((_, whole)) => *whole = text,
                    None => artifacts.push((&piece.artifact_id, text)),
                }
            }
        }
    }
    let artifacts: Vec<_> = artifacts.into_iter().map(|(_, text)| text).filter(|text| !text.is_empty()).collect();
    message.unwrap_or_else(|| if artifacts.is_empty() { status.unwrap_or_default() } else { artifacts.join("\n") })
}

/// The parts of a message as A2A writes it, where they can be read.
pub fn parts_of(message: &Value) -> serde_json::Result<Vec<Part>> {
    message.get("parts").map_or(Ok(Vec::new()), Vec::<Part>::deserialize)
}

/// A message as A2A writes it, without what must not be kept. What a file holds is looked at as what it is.
pub fn redact_message(redactor: &Redactor, message: &mut Value) {
    let parts = message.get_mut("parts").and_then(Value::as_array_mut);
    let mut raw = Vec::new();
    for (at, part) in parts.into_iter().flatten().enumerate() {
        let Some(bytes) = part.get_mut("raw") else { continue };
        if let Ok(mut part) = Part::deserialize(serde_json::json!({ "raw": bytes.take() })) {
            part.redact(redactor);
            raw.push((at, part.content));
        }
    }
    redactor.json(message);
    for (at, content) in raw {
        if let Content::Bytes(bytes) = content {
            message["parts"][at]["raw"] = STANDARD.encode(bytes).into();
        }
    }
}

fn clean(redactor: &Redactor, text: &mut String) {
    if let std::borrow::Cow::Owned(redacted) = redactor.text(text) {
        *text = redacted;
    }
}

fn clean_map(redactor: &Redactor, map: &mut Map<String, Value>) {
    let mut value = Value::Object(std::mem::take(map));
    redactor.json(&mut value);
    if let Value::Object(fields) = value {
        *map = fields;
    }
}

fn encode<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}

fn decode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    STANDARD.decode(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use redact::What;

    fn said(value: Value) -> Said {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        // A2A-1
        for value in [
            json!({"message": [{"text": "hi"}]}),
            json!({"status": [{"url": "https://example.com/a", "media_type": "text/plain", "name": "a"}]}),
            json!({"artifact": {"artifact_id": "1", "name": "n", "parts": [{"bytes": "AAEC"}], "append": true, "last": false}}),
            json!({"artifact": {"artifact_id": "1", "parts": [{"data": {"a": [null, 1]}, "metadata": {"b": 1}}], "append": false, "last": true, "metadata": {"c": {}}}}),
        ] {
            assert_eq!(serde_json::to_value(said(value.clone())).unwrap(), value);
        }
        let parts = parts_of(&json!({"parts": [{"raw": "AAEC", "filename": "x", "mediaType": "a/b"}]})).unwrap();
        assert_eq!(parts[0].content, Content::Bytes(vec![0, 1, 2]));
        assert_eq!((parts[0].name.as_deref(), parts[0].media_type.as_deref()), (Some("x"), Some("a/b")));
        assert!(parts_of(&json!({"parts": [{"raw": "?"}]})).is_err());
        assert!(parts_of(&json!({"parts": [{}]})).is_err());
        assert_eq!(parts_of(&json!({})).unwrap(), []);
    }

    #[test]
    fn what_must_not_be_kept_is_taken_out() {
        // A2A-1, SUP-10
        let secret = "hunter2hunter2";
        let redactor = Redactor::new(What::default()).with_known([secret.to_owned()]);
        let base64 = STANDARD.encode(secret);
        let all = json!([{"text": secret}, {"bytes": base64, "name": secret}, {"url": format!("https://x/{secret}")}, {"data": {"k": [secret]}}]);
        let piece =
            json!({"artifact_id": "1", "name": secret, "description": secret, "parts": all, "metadata": {"m": secret}});
        for mut said in [said(json!({"artifact": piece})), said(json!({"message": all})), said(json!({"status": all}))]
        {
            said.redact(&redactor);
            let text = serde_json::to_string(&said).unwrap();
            assert!(!text.contains(secret) && !text.contains(&base64), "{text}");
        }
        // What is no text is left as it is, also where its code looks like something.
        let mut message = json!({"messageId": "m", "parts": [{"raw": "/9j/AKIA"}, {"raw": base64}, {"text": secret}]});
        redact_message(&redactor, &mut message);
        let mark = STANDARD.encode(redact::MARK);
        let wanted = json!({"messageId": "m", "parts": [{"raw": "/9j/AKIA"}, {"raw": mark}, {"text": redact::MARK}]});
        assert_eq!(message, wanted);
    }

    #[test]
    fn texts_of_parts() {
        let parts: Vec<Part> = serde_json::from_value(
            json!([{"data": {"a": 1}}, {"text": "x"}, {"bytes": ""}, {"url": "u"}, {"text": "y"}]),
        )
        .unwrap();
        assert_eq!(as_input(&parts), "x\ny\n{\"a\":1}\nu");
        let piece = |id: &str, text: &str, append: bool| {
            Said::Artifact(Piece { artifact_id: id.into(), parts: vec![Part::text(text)], append, ..Piece::default() })
        };
        let status = Said::Status(vec![Part::text("soon")]);
        assert_eq!(as_text([&status]), "soon");
        let all =
            [status, piece("a", "1", false), piece("b", "2", false), piece("a", "3", true), piece("b", "4", false)];
        assert_eq!(as_text(&all), "13\n4");
        let message = Said::Message(vec![Part::text("hello")]);
        assert_eq!(as_text(all.iter().chain([&message])), "hello");
        assert_eq!(as_text([]), "");
    }
}
