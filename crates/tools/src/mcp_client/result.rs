//! The results of external tools, limited in size.

use std::fmt;

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// The result of an external tool: a success or an error.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalResult {
    /// True if the tool reported an error.
    pub is_error: bool,
    /// The structured result, unless it exceeds the limit.
    pub structured: Option<Value>,
    /// All texts. Other content is replaced by a short placeholder. Contains the structured result if there is no other
    /// content.
    pub text: String,
}

/// The reason why a call has no result. The message continues a sentence that starts with the name of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExternalCallError {
    /// The server is unavailable. If the call was sent, it may have been carried out.
    Unavailable(String),
    /// Neither an answer nor progress arrived in time. The call was cancelled at the server.
    TimedOut,
    /// The server rejected the call.
    Refused(String),
}

impl fmt::Display for ExternalCallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(why) | Self::Refused(why) => f.write_str(why),
            Self::TimedOut => f.write_str("did not answer in time"),
        }
    }
}

impl std::error::Error for ExternalCallError {}

impl ExternalResult {
    /// Converts an MCP result. The texts are joined with line breaks and shortened to `max` bytes. A structured result
    /// of more than `max` bytes is left out. The structured result becomes the text if there is no other, also if it is
    /// left out.
    pub(super) fn new(result: CallToolResult, max: usize) -> Self {
        let is_error = result.is_error == Some(true);
        let texts: Vec<String> = result.content.into_iter().map(content_text).filter(|text| !text.is_empty()).collect();
        let mut text = texts.join("\n");
        let mut structured = result.structured_content.filter(|value| !value.is_null());
        if let Some(value) = &structured {
            let json = value.to_string();
            let fits = json.len() <= max;
            if text.is_empty() {
                text = json;
            }
            if !fits {
                structured = None;
            }
        }
        Self { is_error, structured, text: shorten(text, max) }
    }
}

/// Returns the text of a content block or of a text resource. Images, audio, files, links and unknown content become a
/// placeholder in brackets.
fn content_text(content: ContentBlock) -> String {
    match content {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => placeholder("image", &image.mime_type, image.data.len()),
        ContentBlock::Audio(audio) => placeholder("audio", &audio.mime_type, audio.data.len()),
        ContentBlock::Resource(resource) => match resource.resource {
            ResourceContents::TextResourceContents { text, .. } => text,
            ResourceContents::BlobResourceContents { mime_type, blob, .. } => {
                placeholder("file", mime_type.as_deref().unwrap_or_default(), blob.len())
            }
            _ => "[resource]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[link {} {}]", link.name, link.uri),
        _ => "[content of an unknown kind]".to_owned(),
    }
}

/// Returns a placeholder for content that is not text. `base64` is the length of the encoded data.
fn placeholder(kind: &str, mime_type: &str, base64: usize) -> String {
    let mime_type: String = mime_type.chars().filter(|c| !c.is_control()).take(60).collect();
    let bytes = base64 / 4 * 3;
    let size = if bytes < 1000 { format!("{bytes} bytes") } else { format!("{} kB", bytes.div_ceil(1000)) };
    let space = if mime_type.is_empty() { "" } else { " " };
    format!("[{kind}{space}{mime_type}, {size}]")
}

/// Returns the text. If it exceeds `max` bytes, returns its head (two thirds) and its tail (one third) with a note
/// about the rest. The result then has at most `max` bytes, unless the note alone is longer.
pub(super) fn shorten(text: String, max: usize) -> String {
    if text.len() <= max {
        return text;
    }
    let note = |left_out: usize| format!("\n[… {left_out} bytes left out …]\n");
    let available = max.saturating_sub(note(text.len()).len());
    let head = text.floor_char_boundary(available / 3 * 2);
    let tail = text.ceil_char_boundary(text.len() - (available - available / 3 * 2));
    format!("{}{}{}", &text[..head], note(tail - head), &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(content: Value, max: usize) -> ExternalResult {
        ExternalResult::new(serde_json::from_value(content).unwrap(), max)
    }

    #[test]
    fn texts_are_joined_and_other_content_gets_a_placeholder() {
        let result = read(
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
        let lines: Vec<_> = result.text.lines().collect();
        let expected = [
            "one",
            "[image image/png, 12 kB]",
            "[audio audio/wav, 3 bytes]",
            "inside",
            "[file, 3 bytes]",
            "[link c file:///c]",
        ];
        assert_eq!(lines, expected);
        assert!(!result.is_error && result.structured.is_none());
    }

    #[test]
    fn a_structured_result_is_the_text_if_there_is_no_other() {
        let result = read(json!({"content": [], "structuredContent": {"n": 1}, "isError": true}), 100);
        assert_eq!((result.is_error, result.text.as_str()), (true, r#"{"n":1}"#));
        assert_eq!(result.structured, Some(json!({"n": 1})));
        let large = json!({"content": [], "structuredContent": {"n": "x".repeat(200)}});
        let result = read(large, 100);
        assert_eq!(result.structured, None);
        assert!(result.text.len() <= 100 && result.text.contains("left out"), "{}", result.text);
    }

    #[test]
    fn long_texts_keep_their_head_and_tail() {
        for max in [0, 10, 40, 60, 99, 1000, 49_999] {
            let text = format!("begin{}end", "ä€🙂".repeat(10_000));
            let short = shorten(text.clone(), max);
            assert!(short.len() <= max.max(60), "{max}: {}", short.len());
            if max > 60 {
                assert!(short.starts_with("begin") && short.ends_with("end"), "{short}");
            }
        }
        assert_eq!(shorten("short".into(), 5), "short");
    }
}
