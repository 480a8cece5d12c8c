//! What came of a call to somebody else's tool, made small enough for a model.

use std::fmt;

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// An answer of the tool, good or bad.
#[derive(Clone, Debug, PartialEq)]
pub struct Called {
    /// The tool itself says that it failed.
    pub is_error: bool,
    /// As the tool gave it, unless it is larger than the limit.
    pub structured: Option<Value>,
    /// All texts; what is no text as a short mark. The structured result if there was nothing else.
    pub text: String,
}

/// Why there is no answer of the tool. Reads as a sentence after the name of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The server cannot be used now. Whether the call was carried out is not known if it had been sent.
    Unavailable(String),
    /// No answer and no sign of progress in time. The server was told that nobody waits any more.
    TimedOut,
    /// The server says that it cannot do this.
    Refused(String),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(why) | Self::Refused(why) => f.write_str(why),
            Self::TimedOut => f.write_str("did not answer in time"),
        }
    }
}

impl std::error::Error for CallError {}

impl Called {
    pub(super) fn read(result: CallToolResult, max: usize) -> Self {
        let is_error = result.is_error == Some(true);
        let texts: Vec<String> = result.content.into_iter().map(text_of).filter(|text| !text.is_empty()).collect();
        let mut text = texts.join("\n");
        let mut structured = result.structured_content.filter(|value| !value.is_null());
        if let Some(value) = &structured {
            let written = value.to_string();
            let fits = written.len() <= max;
            if text.is_empty() {
                text = written;
            }
            if !fits {
                structured = None;
            }
        }
        Self { is_error, structured, text: bounded(text, max) }
    }
}

fn text_of(content: ContentBlock) -> String {
    match content {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => mark("image", &image.mime_type, image.data.len()),
        ContentBlock::Audio(audio) => mark("audio", &audio.mime_type, audio.data.len()),
        ContentBlock::Resource(resource) => match resource.resource {
            ResourceContents::TextResourceContents { text, .. } => text,
            ResourceContents::BlobResourceContents { mime_type, blob, .. } => {
                mark("file", mime_type.as_deref().unwrap_or_default(), blob.len())
            }
            _ => "[resource]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[link {} {}]", link.name, link.uri),
        _ => "[content of an unknown kind]".to_owned(),
    }
}

fn mark(kind: &str, mime_type: &str, base64: usize) -> String {
    let mime_type: String = mime_type.chars().filter(|c| !c.is_control()).take(60).collect();
    let bytes = base64 / 4 * 3;
    let size = if bytes < 1000 { format!("{bytes} bytes") } else { format!("{} kB", bytes.div_ceil(1000)) };
    let space = if mime_type.is_empty() { "" } else { " " };
    format!("[{kind}{space}{mime_type}, {size}]")
}

/// Keeps the head and the tail of a text that is too long.
pub(super) fn bounded(text: String, max: usize) -> String {
    if text.len() <= max {
        return text;
    }
    let note = |left_out: usize| format!("\n[… {left_out} bytes left out …]\n");
    let room = max.saturating_sub(note(text.len()).len());
    let head = text.floor_char_boundary(room / 3 * 2);
    let tail = text.ceil_char_boundary(text.len() - (room - room / 3 * 2));
    format!("{}{}{}", &text[..head], note(tail - head), &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(content: Value, max: usize) -> Called {
        Called::read(serde_json::from_value(content).unwrap(), max)
    }

    #[test]
    fn texts_are_joined_and_the_rest_is_marked() {
        let called = read(
            json!({"content": [
                {"type": "text", "text": "one"},
                {"type": "image", "data": "A".repeat(16_000), "mimeType": "image/png"},
                {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
                {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}},
                {"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAA"}},
                {"type": "resource_link", "uri": "file:///c", "name": "c"},
            ]}),
            1000,
        );
        let lines: Vec<_> = called.text.lines().collect();
        let expected = [
            "one",
            "[image image/png, 12 kB]",
            "[audio audio/wav, 3 bytes]",
            "inside",
            "[file, 3 bytes]",
            "[link c file:///c]",
        ];
        assert_eq!(lines, expected);
        assert!(!called.is_error && called.structured.is_none());
    }

    #[test]
    fn a_structured_result_is_text_when_there_is_no_other() {
        let called = read(json!({"content": [], "structuredContent": {"n": 1}, "isError": true}), 100);
        assert_eq!((called.is_error, called.text.as_str()), (true, r#"{"n":1}"#));
        assert_eq!(called.structured, Some(json!({"n": 1})));
        let large = json!({"content": [], "structuredContent": {"n": "x".repeat(200)}});
        let called = read(large, 100);
        assert_eq!(called.structured, None);
        assert!(called.text.len() <= 100 && called.text.contains("left out"), "{}", called.text);
    }

    #[test]
    fn what_is_too_long_keeps_its_head_and_its_tail() {
        for max in [0, 10, 40, 60, 99, 1000, 49_999] {
            let text = format!("begin{}end", "ä€🙂".repeat(10_000));
            let short = bounded(text.clone(), max);
            assert!(short.len() <= max.max(60), "{max}: {}", short.len());
            if max > 60 {
                assert!(short.starts_with("begin") && short.ends_with("end"), "{short}");
            }
        }
        assert_eq!(bounded("short".into(), 5), "short");
    }
}
