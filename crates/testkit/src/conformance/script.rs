//! The scripts of the agent, one for each prefix of a message id. The agent has no state between messages.

use std::time::Duration;

use model::output::{ContentPart, PartContent};
use serde_json::json;

/// The steps of a script. At the end the task is completed, unless the last step sets another outcome.
pub(super) type Script = Vec<ScriptStep>;

#[derive(Clone, Debug)]
pub(super) enum ScriptStep {
    /// A status message.
    Status(String),
    /// A complete artifact.
    Artifact(ContentPart),
    /// An artifact with this number of numbered chunks.
    NumberedChunks(u64),
    /// An artifact with these chunks.
    ArtifactChunks(&'static [&'static str]),
    /// An artifact with the input.
    EchoArtifact,
    /// A message with the input.
    EchoMessage,
    /// A message in place of a task.
    Message(&'static str),
    Wait(Duration),
    /// Waits until the task is cancelled.
    WaitForever,
    RequireInput,
    RequireAuth,
    Reject,
    Fail(&'static str),
}

/// The stream timeout of the reference agents of the test kits.
const KIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the script for a message. The message id selects it, or a word in the text as in newer kits. All other messages
/// come from the kit for A2A 0.3, which expects every answered task to require input.
pub(super) fn select_script(message_id: &str, text: &str) -> Script {
    let word = text.split_whitespace().find(|word| word.starts_with("tck-"));
    let known = find_script(message_id).or_else(|| find_script(word?));
    known.unwrap_or_else(|| match message_id.starts_with("tck-") {
        true => vec![ScriptStep::Status(format!("Unhandled messageId prefix: {message_id}"))],
        false => vec![ScriptStep::Status("Hello world!".to_owned()), ScriptStep::RequireInput],
    })
}

fn find_script(word: &str) -> Option<Script> {
    use ScriptStep::{
        Artifact, ArtifactChunks, EchoArtifact, EchoMessage, Fail, Message, NumberedChunks, Reject, RequireAuth,
        RequireInput, Status, Wait, WaitForever,
    };
    let text = |text: &str| Artifact(ContentPart::text(text));
    let named = |content| {
        let name = Some("output.txt".to_owned());
        let media_type = Some("text/plain".to_owned());
        Artifact(ContentPart { name, media_type, ..ContentPart::from(content) })
    };
    let file = || named(PartContent::Bytes(b"tck".to_vec()));
    let pieces = word.strip_prefix("tck-count-").and_then(|rest| rest.split('-').next()?.parse().ok());
    if let Some(pieces) = pieces {
        return Some(vec![NumberedChunks(pieces)]);
    }
    // A longer prefix comes before a shorter one that it contains.
    let scripts: [(&str, Script); 28] = [
        ("tck-complete-task", vec![Status("Hello from TCK".to_owned())]),
        ("tck-delayed-complete", vec![Wait(KIT_TIMEOUT), Status("Done after delay".to_owned())]),
        ("tck-artifact-text", vec![text("Generated text content")]),
        ("tck-artifact-file-url", vec![named(PartContent::Url("https://example.com/output.txt".to_owned()))]),
        ("tck-artifact-file", vec![file()]),
        ("tck-artifact-data", vec![Artifact(PartContent::Data(json!({"key": "value", "count": 42})).into())]),
        ("tck-message-response", vec![Message("Direct message response")]),
        ("tck-input-required", vec![RequireInput]),
        ("tck-grpc-streaming", vec![RequireInput]),
        ("tck-auth-required", vec![RequireAuth]),
        ("tck-reject-task", vec![Reject]),
        ("tck-stream-001", vec![text("Stream hello from TCK")]),
        ("tck-stream-002", vec![]),
        ("tck-stream-003", vec![text("Stream task lifecycle")]),
        ("tck-stream-ordering-001", vec![text("Ordered output")]),
        ("tck-stream-artifact-text", vec![text("Streamed text content")]),
        ("tck-stream-artifact-file", vec![file()]),
        ("tck-stream-artifact-chunked", vec![ArtifactChunks(&["chunk-1 ", "chunk-2"])]),
        ("test-resubscribe-message-id", vec![Wait(KIT_TIMEOUT * 2)]),
        ("tck-long-running", vec![Wait(KIT_TIMEOUT / 2)]),
        ("tck-stream-basic", vec![text("Stream hello from TCK")]),
        ("tck-stream-chunked", vec![ArtifactChunks(&["chunk-1 ", "chunk-2"])]),
        ("tck-cancel", vec![WaitForever]),
        ("tck-task-failure", vec![Fail("the task failed, as scripted")]),
        ("tck-two-words", vec![Status("first".to_owned()), Wait(KIT_TIMEOUT / 4), Status("second".to_owned())]),
        ("tck-slow-chunks", vec![ArtifactChunks(&["one "]), Wait(KIT_TIMEOUT), ArtifactChunks(&["two"])]),
        ("echo-message", vec![EchoMessage]),
        ("echo", vec![EchoArtifact]),
    ];
    scripts.into_iter().find(|(prefix, _)| word.starts_with(prefix)).map(|(_, script)| script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_prefixes_win_and_the_id_precedes_the_text() {
        let shown = |id: &str, text: &str| format!("{:?}", select_script(id, text));
        assert!(shown("tck-artifact-file-url-1", "").contains("https://example.com"));
        assert!(shown("tck-artifact-file-1", "").contains("Bytes"));
        assert!(shown("x", "please tck-message-response now").contains("Direct"));
        assert!(shown("tck-complete-task-1", "tck-message-response").contains("Hello"));
        assert!(shown("tck-count-1000-x", "").contains("NumberedChunks(1000)"));
        assert!(shown("tck-other", "hi").contains("Unhandled messageId prefix: tck-other"));
        assert!(shown("other", "hi").contains("RequireInput"));
        assert_eq!(shown("tck-stream-002", ""), "[]");
    }
}
