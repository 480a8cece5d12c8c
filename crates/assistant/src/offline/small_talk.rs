//! What is said that is not about tasks, and how it is answered.

use super::matching::plain;
use crate::{Prompt, wording};

/// Whether it is meant to confirm something.
pub(super) fn is_consent(message: &str) -> bool {
    let plain = plain(message);
    let words: Vec<_> = plain.split_whitespace().collect();
    matches!(words.as_slice(), ["yes", "delete" | "complete", ..] | ["yes"] | ["confirm"] | ["yes", "please"])
}

/// Whether it is no answer to a question of the assistant: a refusal, a greeting, a question.
pub(super) fn is_no_answer(message: &str) -> bool {
    let plain = plain(message);
    let words: Vec<_> = plain.split_whitespace().collect();
    let greetings = ["hi", "hello", "hey", "help", "thanks", "what", "why", "how", "when", "who"];
    is_refusal(&words)
        || is_consent(message)
        || message.trim_end().ends_with('?')
        || matches!(words.as_slice(), [word] | [word, "you"] if greetings.contains(word))
        || matches!(words.as_slice(), ["i", "don", "t", "know"] | ["i", "dont", "know"] | ["not", "sure"] | ["nothing"])
}

/// Whether plain words are a refusal, whatever else they could be read as.
pub(super) fn is_refusal_of(plain: &str) -> bool {
    is_refusal(&plain.split_whitespace().collect::<Vec<_>>())
}

fn is_refusal(words: &[&str]) -> bool {
    let refusals: [&[&str]; 13] = [
        &["no"],
        &["nope"],
        &["no", "thanks"],
        &["no", "thank", "you"],
        &["never", "mind"],
        &["nevermind"],
        &["cancel"],
        &["cancel", "that"],
        &["stop"],
        &["forget", "it"],
        &["forget", "about", "it"],
        &["not", "now"],
        &["leave", "it"],
    ];
    refusals.contains(&words)
}

pub(super) fn answer(prompt: &Prompt<'_>) -> String {
    let plain = plain(&prompt.request.message);
    let words: Vec<_> = plain.split_whitespace().collect();
    let any = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let few = words.len() <= 4;
    if is_consent(&prompt.request.message) {
        match &prompt.context.held {
            Some(_) => wording::other_phrase(),
            None => wording::nothing_to_confirm(),
        }
    } else if few && any(&["hi", "hello", "hey", "hiya", "greetings", "morning", "afternoon", "evening"]) {
        wording::hello()
    } else if few && any(&["thanks", "thank", "thx", "cheers", "ty"]) {
        wording::welcome()
    } else if is_refusal(&words) {
        wording::left_alone()
    } else if any(&["help"]) || plain.contains("what can you do") || plain.contains("who are you") {
        wording::capabilities()
    } else {
        wording::out_of_scope()
    }
}
