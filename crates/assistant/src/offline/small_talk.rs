//! What is said that is not about tasks, and how it is answered.

use super::matching::plain;
use crate::{Prompt, wording};

/// Whether it is meant to confirm something.
pub(super) fn is_consent(message: &str) -> bool {
    let plain = plain(message);
    let words: Vec<_> = plain.split_whitespace().collect();
    matches!(words.as_slice(), ["yes", "delete" | "complete", ..] | ["yes"] | ["confirm"] | ["yes", "please"])
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
    } else if matches!(
        words.as_slice(),
        ["no"] | ["nope"] | ["no", "thanks"] | ["never", "mind"] | ["nevermind"] | ["cancel"]
    ) {
        wording::left_alone()
    } else if any(&["help"]) || plain.contains("what can you do") || plain.contains("who are you") {
        wording::capabilities()
    } else {
        wording::out_of_scope()
    }
}
