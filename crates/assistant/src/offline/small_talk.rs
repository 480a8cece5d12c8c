//! Answers messages that are not about tasks: greetings, thanks, confirmations and refusals.

use super::matching::normalize;
use crate::confirm::{is_consent, is_refusal};
use crate::{Prompt, wording};

/// Returns `true` if the message does not answer a question of the assistant: a refusal, a consent, or any text that
/// ends with "?". Also a greeting, "help", "thanks" or a question word, alone or followed by "you". Also "I don't
/// know", "not sure" or "nothing".
pub(super) fn is_no_answer(message: &str) -> bool {
    let text = normalize(message);
    let words: Vec<_> = text.split_whitespace().collect();
    let greetings = ["hi", "hello", "hey", "help", "thanks", "what", "why", "how", "when", "who"];
    is_refusal(message)
        || is_consent(message)
        || message.trim_end().ends_with('?')
        || matches!(words.as_slice(), [word] | [word, "you"] if greetings.contains(word))
        || matches!(words.as_slice(), ["i", "don", "t", "know"] | ["i", "dont", "know"] | ["not", "sure"] | ["nothing"])
}

/// Returns the reply to a message without a command. Checks in this order: a consent, a greeting, thanks, a refusal,
/// and a request for help. Any other message is out of scope. A consent confirms nothing, because the agent loop
/// handles those that answer a question. Greetings and thanks are recognized only in messages of up to 4 words.
pub(super) fn answer(prompt: &Prompt<'_>) -> String {
    let text = normalize(&prompt.request.message);
    let words: Vec<_> = text.split_whitespace().collect();
    let any = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let is_short = words.len() <= 4;
    if is_consent(&prompt.request.message) {
        wording::nothing_to_confirm()
    } else if is_short && any(&["hi", "hello", "hey", "hiya", "greetings", "morning", "afternoon", "evening"]) {
        wording::hello()
    } else if is_short && any(&["thanks", "thank", "thx", "cheers", "ty"]) {
        wording::welcome()
    } else if is_refusal(&prompt.request.message) {
        wording::nothing_changed()
    } else if any(&["help"]) || text.contains("what can you do") || text.contains("who are you") {
        wording::capabilities()
    } else {
        wording::out_of_scope()
    }
}
