//! What the scripted agent does: one line for each beginning of a message's id. It keeps nothing from one message to the
//! next.

use std::time::Duration;

use model::said::{Content, Part};
use serde_json::json;

/// One thing after the other; at the end the task is completed, unless the last step says otherwise.
pub(super) type Script = Vec<Step>;

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A word on how it goes.
    Say(String),
    /// An artifact that is whole.
    Give(Part),
    /// An artifact in this many numbered pieces.
    Count(u64),
    /// An artifact in these pieces.
    Pieces(&'static [&'static str]),
    /// What was heard, as an artifact.
    Echo,
    /// What was heard, as a message.
    EchoMessage,
    /// A message instead of a task.
    Answer(&'static str),
    Wait(Duration),
    /// Until somebody cancels it.
    WaitForever,
    Ask,
    AskForAccess,
    Reject,
    Fail(&'static str),
}

/// How long the test kits wait for a stream, as their own agents have it.
const PATIENCE: Duration = Duration::from_secs(2);

/// The script for a message: by its id, or else by a word in its text, where the newer kits put it. What is left are the
/// messages of the kit for 0.3, which wants every task to be open when it has been answered.
pub(super) fn script(message_id: &str, text: &str) -> Script {
    let word = text.split_whitespace().find(|word| word.starts_with("tck-"));
    let known = find(message_id).or_else(|| find(word?));
    known.unwrap_or_else(|| match message_id.starts_with("tck-") {
        true => vec![Step::Say(format!("Unhandled messageId prefix: {message_id}"))],
        false => vec![Step::Say("Hello world!".to_owned()), Step::Ask],
    })
}

fn find(word: &str) -> Option<Script> {
    use Step::{
        Answer, Ask, AskForAccess, Count, Echo, EchoMessage, Fail, Give, Pieces, Reject, Say, Wait, WaitForever,
    };
    let text = |text: &str| Give(Part::text(text));
    let named = |content| {
        let name = Some("output.txt".to_owned());
        let media_type = Some("text/plain".to_owned());
        Give(Part { name, media_type, ..Part::from(content) })
    };
    let file = || named(Content::Bytes(b"tck".to_vec()));
    let pieces = word.strip_prefix("tck-count-").and_then(|rest| rest.split('-').next()?.parse().ok());
    if let Some(pieces) = pieces {
        return Some(vec![Count(pieces)]);
    }
    // Those that begin alike: the longer one first.
    let scripts: [(&str, Script); 28] = [
        ("tck-complete-task", vec![Say("Hello from TCK".to_owned())]),
        ("tck-delayed-complete", vec![Wait(PATIENCE), Say("Done after delay".to_owned())]),
        ("tck-artifact-text", vec![text("Generated text content")]),
        ("tck-artifact-file-url", vec![named(Content::Url("https://example.com/output.txt".to_owned()))]),
        ("tck-artifact-file", vec![file()]),
        ("tck-artifact-data", vec![Give(Content::Data(json!({"key": "value", "count": 42})).into())]),
        ("tck-message-response", vec![Answer("Direct message response")]),
        ("tck-input-required", vec![Ask]),
        ("tck-grpc-streaming", vec![Ask]),
        ("tck-auth-required", vec![AskForAccess]),
        ("tck-reject-task", vec![Reject]),
        ("tck-stream-001", vec![text("Stream hello from TCK")]),
        ("tck-stream-002", vec![]),
        ("tck-stream-003", vec![text("Stream task lifecycle")]),
        ("tck-stream-ordering-001", vec![text("Ordered output")]),
        ("tck-stream-artifact-text", vec![text("Streamed text content")]),
        ("tck-stream-artifact-file", vec![file()]),
        ("tck-stream-artifact-chunked", vec![Pieces(&["chunk-1 ", "chunk-2"])]),
        ("test-resubscribe-message-id", vec![Wait(PATIENCE * 2)]),
        ("tck-long-running", vec![Wait(PATIENCE / 2)]),
        ("tck-stream-basic", vec![text("Stream hello from TCK")]),
        ("tck-stream-chunked", vec![Pieces(&["chunk-1 ", "chunk-2"])]),
        ("tck-cancel", vec![WaitForever]),
        ("tck-task-failure", vec![Fail("the task failed, as it was told to")]),
        ("tck-two-words", vec![Say("first".to_owned()), Wait(PATIENCE / 4), Say("second".to_owned())]),
        ("tck-slow-chunks", vec![Pieces(&["one "]), Wait(PATIENCE), Pieces(&["two"])]),
        ("echo-message", vec![EchoMessage]),
        ("echo", vec![Echo]),
    ];
    scripts.into_iter().find(|(prefix, _)| word.starts_with(prefix)).map(|(_, script)| script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_beginning_wins_and_the_text_is_asked_last() {
        let shown = |id: &str, text: &str| format!("{:?}", script(id, text));
        assert!(shown("tck-artifact-file-url-1", "").contains("https://example.com"));
        assert!(shown("tck-artifact-file-1", "").contains("Bytes"));
        assert!(shown("x", "please tck-message-response now").contains("Direct"));
        assert!(shown("tck-complete-task-1", "tck-message-response").contains("Hello"));
        assert!(shown("tck-count-1000-x", "").contains("Count(1000)"));
        assert!(shown("tck-other", "hi").contains("Unhandled messageId prefix: tck-other"));
        assert!(shown("other", "hi").contains("Ask"));
        assert_eq!(shown("tck-stream-002", ""), "[]");
    }
}
