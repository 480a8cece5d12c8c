//! What is said that is not about tasks, and how it is answered.

use crate::wording;

pub(super) fn answer(message: &str) -> String {
    let plain: String = message.to_lowercase().chars().filter(|c| c.is_alphanumeric() || c.is_whitespace()).collect();
    let words: Vec<_> = plain.split_whitespace().collect();
    let any = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let few = words.len() <= 4;
    if matches!(words.as_slice(), ["yes", "delete" | "complete", ..] | ["yes"] | ["confirm"] | ["yes", "please"]) {
        wording::nothing_to_confirm()
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
