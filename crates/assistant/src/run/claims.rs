//! Recognizes sentences in which a language model claims to have changed something. The rules cover the usual forms:
//! the model speaks of itself in the past ("I've added …"), begins with a participle ("Added 'milk'."), reports a state
//! ("The reminder is set."), or promises to remind.

/// Verbs of changes, in the forms that a claim uses.
const PARTICIPLES: [&str; 45] = [
    "added",
    "created",
    "removed",
    "deleted",
    "completed",
    "updated",
    "changed",
    "marked",
    "scheduled",
    "rescheduled",
    "moved",
    "renamed",
    "set",
    "put",
    "cleared",
    "cancelled",
    "canceled",
    "reopened",
    "restored",
    "undone",
    "undid",
    "snoozed",
    "tagged",
    "started",
    "saved",
    "noted",
    "recorded",
    "postponed",
    "pushed",
    "checked",
    "ticked",
    "crossed",
    "taken",
    "took",
    "made",
    "booked",
    "paused",
    "resumed",
    "stopped",
    "sent",
    "assigned",
    "edited",
    "erased",
    "logged",
    "prioritized",
];
/// Words that may stand between the subject and the participle: "I have now successfully added".
const ADVERBS: [&str; 10] = ["now", "just", "already", "also", "successfully", "gone", "ahead", "and", "then", "have"];
/// Words after which a participle at the start of a sentence describes tasks: "Completed tasks:", "Added by you".
const NOUNS: [&str; 7] = ["tasks", "items", "by", "on", "in", "today", "yesterday"];

/// Returns whether a sentence of the text claims that something was changed. Quoted titles, list lines, questions and
/// negations are no claims.
pub(super) fn claims_change(text: &str) -> bool {
    let lines = text.lines().filter(|line| !is_list_line(line));
    lines.flat_map(sentences).any(|sentence| is_claim(&sentence))
}

fn is_list_line(line: &str) -> bool {
    let line = line.trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    line.starts_with(['-', '*', '•', '☐', '✓']) || digits > 0 && line[digits..].starts_with(['.', ')'])
}

/// Returns the sentences of a line with their end characters, in lower case. Quoted text is replaced by "x".
fn sentences(line: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    for c in without_quotes(line).to_lowercase().chars() {
        if let Some(last) = sentences.last_mut() {
            last.push(c);
        }
        if matches!(c, '.' | '!' | '?' | ';' | '—' | '…') {
            sentences.push(String::new());
        }
    }
    sentences
}

/// Replaces text in quotes by "x". An apostrophe inside a word is not a quote.
fn without_quotes(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line.replace('’', "'").replace(['“', '”', '„'], "\"");
    while let Some((at, quote)) = opening_quote(&rest) {
        let Some(end) = closing_quote(&rest, at + 1, quote) else { break };
        out.push_str(&rest[..at]);
        out.push('x');
        rest = rest[end + 1..].to_owned();
    }
    out + &rest
}

fn opening_quote(text: &str) -> Option<(usize, char)> {
    text.char_indices().find(|(at, c)| matches!(c, '\'' | '"') && !text[..*at].ends_with(char::is_alphanumeric))
}

fn closing_quote(text: &str, from: usize, quote: char) -> Option<usize> {
    text.char_indices().skip_while(|(at, _)| *at < from).find_map(|(at, c)| {
        let next = text[at + c.len_utf8()..].chars().next();
        (c == quote && next.is_none_or(|next| !next.is_alphanumeric())).then_some(at)
    })
}

/// Returns whether a sentence in lower case is a claim.
fn is_claim(sentence: &str) -> bool {
    let trimmed = sentence.trim();
    if trimmed.ends_with('?') {
        return false;
    }
    let plain: String = trimmed.chars().map(|c| if c.is_alphanumeric() || c == '\'' { c } else { ' ' }).collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    let is_participle = |word: &&str| PARTICIPLES.contains(word);
    match words.as_slice() {
        [] => return false,
        ["done"] | ["all", "done" | "set"] | ["done", "and", "dusted"] => return true,
        ["all", "done" | "set", ..] | ["consider", "it", "done"] => return true,
        ["done", ..] if trimmed.starts_with("done,") || trimmed.starts_with("done -") => return true,
        [first, rest @ ..] if is_participle(first) && !trimmed.ends_with(':') => {
            let describes = rest.first().is_some_and(|next| NOUNS.contains(next));
            if !describes {
                return true;
            }
        }
        _ => {}
    }
    let promises = |at: usize| match &words[at..] {
        ["i'll" | "we'll", "remind", ..] | ["i'll", "be", "reminding", ..] => true,
        ["i" | "we", "will", "remind", ..] => true,
        ["you'll", "be" | "get", "reminded" | "a", ..] => words.contains(&"reminder") || words.contains(&"reminded"),
        ["you", "will", "be", "reminded", ..] => true,
        _ => false,
    };
    let is_conditional = matches!(words.first(), Some(&("if" | "once" | "when" | "after" | "before" | "unless")));
    let follows = |at: usize| {
        let rest = &words[at..];
        let adverbs = rest.iter().take_while(|word| ADVERBS.contains(word)).count();
        rest.get(adverbs).is_some_and(is_participle)
    };
    (0..words.len()).any(|at| match &words[at..] {
        ["i've" | "we've" | "i" | "we", ..] if follows(at + 1) => true,
        ["reminder", "set" | "scheduled" | "created" | "added", ..] => true,
        ["reminder", "is" | "was", "set" | "scheduled" | "created" | "added" | "now", ..] => true,
        ["has" | "have", "been", ..] if follows(at + 2) => !is_conditional,
        ["is" | "are", "now", ..] if words.get(at + 2).is_some_and(is_participle) => true,
        _ => promises(at) && !is_conditional,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_recognized() {
        // TRUST-2
        for text in [
            "Done!",
            "All set.",
            "I've added 'buy milk' to your list.",
            "I have added it.",
            "Added 'milk' to your list.",
            "Got it! Added 'buy milk' to your list. Anything else?",
            "Sure! I just deleted it.",
            "Your reminder is set.",
            "Reminder set for 3pm.",
            "Okay! I'll remind you about 'x' tomorrow.",
            "I’ve moved it to Friday.",
            "The task has been added.",
            "'Milk' is now marked as complete.",
            "Done, it's off your list.",
            "Updated!",
            "I've gone ahead and removed it.",
            "Great! I've marked 'buy milk' as complete.",
            "Hello.\nI successfully created the task.",
            "Created task 'milk'.",
            "You'll be reminded at 5pm.",
        ] {
            assert!(claims_change(text), "{text}");
        }
        for text in [
            "You have 2 tasks:\n1. ☐ buy milk\n2. ✓ Done!",
            "I can't do that.",
            "I haven't added anything.",
            "Shall I add it?",
            "I couldn't find a task about 'added milk' in your list.",
            "Would you like me to delete it?",
            "Have I added it?",
            "Your task 'I've moved' is due tomorrow.",
            "Sorry, what was it?",
            "I can add, list, complete, change and delete your tasks.",
            "Completed tasks: none.",
            "It is due on Friday.",
            "I have not changed it.",
            "There you are.",
            "You have no completed tasks.",
            "I have 2 tasks for you.",
            "If the task has been added, tell me.",
            "Nothing was changed.",
            "I didn't set a reminder.",
        ] {
            assert!(!claims_change(text), "{text}");
        }
    }
}
