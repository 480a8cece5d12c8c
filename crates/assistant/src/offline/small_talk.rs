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

/// Returns the reply to a message without a command: a greeting, a goodbye, thanks, praise, a question about the
/// assistant itself, or a request for help. Any other message is out of scope. A consent confirms nothing, because the
/// agent loop handles those that answer a question.
pub(super) fn answer(prompt: &Prompt<'_>) -> String {
    let text = normalize(&prompt.request.message);
    let words: Vec<_> = text.split_whitespace().collect();
    let any = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| format!(" {text} ").contains(&format!(" {phrase} ")));
    let is_short = words.len() <= 5;
    let is_empty = words.iter().all(|word| word.chars().all(|c| !c.is_alphanumeric()));
    if is_consent(&prompt.request.message) && !is_empty {
        wording::nothing_to_confirm()
    } else if has(&[
        "how are you",
        "how r u",
        "how do you do",
        "hows it going",
        "how s it going",
        "whats up",
        "what s up",
        "how is it going",
    ]) {
        wording::how_are_you()
    } else if any(&["help"]) && words.len() <= 4
        || has(&[
            "what can you do",
            "what do you do",
            "what can i do here",
            "what can i ask",
            "how does this work",
            "how do you work",
        ])
    {
        wording::capabilities()
    } else if has(&[
        "who are you",
        "what are you",
        "who am i talking to",
        "who is this",
        "whats your name",
        "what s your name",
        "are you a bot",
        "are you human",
        "are you real",
    ]) {
        wording::introduction()
    } else if is_refusal(&prompt.request.message) {
        wording::nothing_changed()
    } else if words.len() <= 7
        && (any(&["bye", "goodbye", "cya", "goodnight"])
            || has(&[
                "good night",
                "see you",
                "see ya",
                "sleep well",
                "thats all",
                "that s all",
                "that is all",
                "thats it",
                "that s it",
                "talk later",
                "have a good",
                "have a nice",
            ]))
    {
        wording::goodbye()
    } else if is_short && any(&["thanks", "thank", "thx", "cheers", "ty", "ta", "thankyou"]) {
        wording::welcome()
    } else if is_short
        && (any(&[
            "hi",
            "hello",
            "hey",
            "hiya",
            "heya",
            "yo",
            "greetings",
            "morning",
            "afternoon",
            "evening",
            "gm",
            "howdy",
        ]) || has(&["merry christmas", "happy new year", "happy birthday", "happy easter", "happy holidays"]))
    {
        wording::hello()
    } else if is_empty
        || words.len() <= 6
            && any(&[
                "great",
                "good",
                "perfect",
                "awesome",
                "nice",
                "cool",
                "lovely",
                "brilliant",
                "excellent",
                "fine",
                "ok",
                "okay",
                "wow",
                "star",
                "sweet",
                "amazing",
                "super",
                "fantastic",
                "legend",
                "best",
                "alright",
                "lol",
                "haha",
                "yay",
                "neat",
                "k",
                "sorted",
            ])
            && !any(&["make", "what", "is", "task", "tasks"])
    {
        wording::acknowledged()
    } else {
        wording::out_of_scope()
    }
}
