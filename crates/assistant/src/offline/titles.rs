//! Cleans the titles of new tasks, and rejects texts that are no titles (TRUST-2).

use model::task::Priority;
use understand::ParsedCommand;

use super::framing::Framing;
use super::matching::normalize;

/// Words that begin a statement or a part of a sentence, and no task.
const NO_TITLE_STARTS: &[&str] = &[
    "its", "it's", "it", "i", "im", "i'm", "ive", "i've", "he", "he's", "she", "she's", "they", "they're", "theyre",
    "we", "we're", "you", "u", "so", "now", "then", "later", "before", "after", "is", "are", "was", "were", "be",
    "been", "am", "does", "did", "not", "no", "yes", "that", "that's", "thats", "this", "these", "those", "there",
    "there's", "theres", "what", "whats", "wots", "wot", "how", "when", "who", "why", "which", "on", "at", "by", "for",
    "with", "from", "until", "till", "because", "cause", "but", "or", "and", "also", "too", "even", "really", "day",
    "same", "again", "me", "my", "his", "her", "their", "our", "your", "nudge", "heads-up", "amirite", "would",
    "should", "could", "can", "will", "has", "had", "was", "were", "the", "repeat", "instead", "rather", "earlier",
    "sometime", "maybe", "one", "another", "more", "bit", "lot",
];

/// Words that introduce a task and are no part of its title.
const LEADS: &[&str] = &[
    "add ",
    "remember to ",
    "need to ",
    "need 2 ",
    "needs to ",
    "gotta ",
    "got to ",
    "have to ",
    "has to ",
    "must ",
    "ive to ",
    "i've to ",
    "i need to ",
    "i have to ",
    "i've got to ",
    "ive got to ",
    "put in ",
    "put down ",
    "jot down ",
    "pop in ",
    "stick in ",
    "one more ",
    "one more: ",
    "another one ",
    "another one, ",
    "to ",
    "also ",
    "and ",
];

/// Words that end a request for a repeated reminder.
const TAILS: &[&str] = &[
    " til it's done",
    " til its done",
    " til done",
    " until it's done",
    " until its done",
    " till it's done",
    " till its done",
    " until it is done",
    " until done",
    " until i do it",
    " as well",
    " too",
    " then",
    " pls",
    " please",
    " for me",
    ", both",
    ", would you",
    " dont let me forget",
    " don't let me forget",
    ", dont let me forget",
    ", don't let me forget",
    " w/c",
    " w/b",
    " asap",
    " lol",
    " on that day",
    " that day",
    " on the same day",
    " on the day",
];

/// First words of a remark after a title.
const REMARK_STARTS: &[&str] = &[
    "she", "he", "they", "it's", "its", "it", "i", "i'm", "im", "we", "you", "that's", "thats", "this", "there's",
    "theres", "cause", "cos", "bc", "so", "no", "need", "because", "which", "not",
];

/// Returns the command with a clean title. A remark after the title becomes the note: "return the folder, she keeps
/// asking". A quoted title ends with its quotation mark.
pub(super) fn with_clean_title(mut command: ParsedCommand) -> ParsedCommand {
    let Some(title) = command.title.take() else { return command };
    if let Some((quoted, behind)) = quoted_title(&title) {
        let words = normalize(behind);
        let has = |known: &[&str]| words.split(' ').any(|word| known.contains(&word));
        if command.priority.is_none() && has(&["high", "urgent", "important"]) {
            command.priority = Some(Priority::High);
        } else if command.priority.is_none() && has(&["low"]) {
            command.priority = Some(Priority::Low);
        }
        command.title = Some(quoted);
        return command;
    }
    let mut short = Framing::read(&title).body;
    if short.is_empty() || short.len() + 12 < title.len() {
        short.clone_from(&title);
    }
    // "buy 🥑"
    if short.split_whitespace().count() == 1 && title.chars().any(super::framing::is_emoji) {
        short.clone_from(&title);
    }
    // A lead-in such as "now" can be the verb of a title.
    if !title.to_lowercase().starts_with(&short.to_lowercase()) && !is_interjection(&title) {
        short.clone_from(&title);
    }
    while let Some(rest) = LEADS.iter().find_map(|lead| strip_prefix(&short, lead)) {
        short = rest.trim_start().to_owned();
    }
    for (remark, priority) in
        [(" it's a high one", Priority::High), (" its a high one", Priority::High), (" it's a low one", Priority::Low)]
    {
        if let Some(rest) = strip_suffix(&short, remark) {
            short = rest.trim_end_matches(',').to_owned();
            command.priority.get_or_insert(priority);
        }
    }
    while let Some(rest) = TAILS.iter().find_map(|tail| strip_suffix(&short, tail)) {
        short = rest.to_owned();
    }
    if let Some((head, tail)) = short.clone().split_once(", ")
        && tail.split_whitespace().next().is_some_and(|first| REMARK_STARTS.contains(&first.to_lowercase().as_str()))
        && tail.split_whitespace().count() >= 2
        && !head.trim().is_empty()
    {
        let says_value =
            ["no date", "no rush", "no hurry", "not "].iter().any(|start| tail.to_lowercase().starts_with(start));
        if command.description.is_none() && !says_value {
            command.description = Some(tail.to_owned());
        }
        short = head.to_owned();
    }
    command.title = Some(short).filter(|title| !title.is_empty());
    command
}

/// Returns the command with "abt" read as "about": "remind me abt the passport".
pub(super) fn with_subject(mut command: ParsedCommand) -> ParsedCommand {
    if command.asks_reminder
        && let Some(subject) = command.title.as_deref().and_then(|title| strip_prefix(title, "abt "))
    {
        let subject = strip_prefix(subject, "the ").unwrap_or(subject).to_owned();
        command.title = Some(subject);
        command.is_about = true;
    }
    command
}

/// Returns true if a text cannot be the title of a task that was only implied.
pub(super) fn is_no_title(title: &str) -> bool {
    let first = title.split_whitespace().next().unwrap_or_default().to_lowercase();
    NO_TITLE_STARTS.contains(&first.as_str())
}

fn is_interjection(title: &str) -> bool {
    let first = title.split_whitespace().next().unwrap_or_default().to_lowercase();
    ["uhh", "uh", "um", "umm", "lol", "haha", "oh", "ah", "ok", "okay", "argh", "ugh", "hmm", "omg", "yay"]
        .contains(&first.trim_end_matches(','))
}

fn strip_prefix<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..]).filter(|rest| !rest.trim().is_empty())
}

fn strip_suffix<'t>(text: &'t str, suffix: &str) -> Option<&'t str> {
    let start = text.len().checked_sub(suffix.len())?;
    let tail = text.get(start..)?;
    tail.eq_ignore_ascii_case(suffix).then(|| text[..start].trim_end()).filter(|rest| !rest.is_empty())
}

/// Returns the text inside of quotation marks at the start of a title, if other words follow it, and these words. An
/// apostrophe inside of a word does not end the quotation.
fn quoted_title(title: &str) -> Option<(String, &str)> {
    let open = title.chars().next()?;
    let close = match open {
        '"' => '"',
        '“' => '”',
        '‘' => '’',
        '\'' => '\'',
        _ => return None,
    };
    let rest = &title[open.len_utf8()..];
    let ends_word = |at: &usize| {
        let behind = rest[at + close.len_utf8()..].chars().next();
        behind.is_none_or(|next| !next.is_alphanumeric()) && !rest[..*at].ends_with(char::is_whitespace)
    };
    let end = rest.match_indices(close).map(|(at, _)| at).find(ends_word)?;
    let inner = rest[..end].to_owned();
    (!inner.trim().is_empty()).then(|| (inner, &rest[end + close.len_utf8()..]))
}

/// Returns true if a text is probably no title, but a request in other words: "ring me an hour before", "dave's off
/// sick", "strike the other one off".
pub(super) fn is_doubtful(title: &str) -> bool {
    const LINKS: [&str; 10] =
        [", and ", ", so ", ", but ", "? ", " and put ", " then ", "could you", "can you", " and at ", "tell me"];
    const STATES: [&str; 22] = [
        "off",
        "out",
        "not",
        "been",
        "gone",
        "here",
        "back",
        "ill",
        "sick",
        "on",
        "in",
        "at",
        "a",
        "going",
        "coming",
        "done",
        "late",
        "early",
        "now",
        "moved",
        "starting",
        "cancelled",
    ];
    let lower = title.to_lowercase().replace('’', "'");
    let words: Vec<&str> = lower.split_whitespace().collect();
    let is_me = |at: usize| {
        words[at] == "gimme"
            || matches!(words[at], "me" | "us")
                && (at == 0 || !matches!(words[at - 1], "for" | "with" | "to" | "about" | "by" | "from"))
    };
    let states = words.first().is_some_and(|first| first.ends_with("'s"))
        && words.get(1).is_some_and(|second| STATES.contains(second));
    LINKS.iter().any(|link| lower.contains(link))
        || (0..words.len()).any(is_me)
        || states
        || words.contains(&"other") && words.iter().any(|word| matches!(*word, "one" | "ones"))
        || lower.contains(" a date on ")
        || lower.starts_with(['\'', '"', '“', '‘'])
}

#[cfg(test)]
mod tests {
    use understand::Intent;

    use super::*;

    fn clean(title: &str) -> (String, Option<String>) {
        let command = ParsedCommand { title: Some(title.to_owned()), ..ParsedCommand::new(Intent::CreateTask, 0.9) };
        let command = with_clean_title(command);
        (command.title.unwrap_or_default(), command.description)
    }

    #[test]
    fn titles_lose_words_around_them() {
        // TRUST-2
        for (title, expected) in [
            ("uhh print the boarding passes", "print the boarding passes"),
            ("add collect the tuxedo", "collect the tuxedo"),
            ("need 2 prep the ambush", "prep the ambush"),
            ("parking permit until it's done", "parking permit"),
            ("\"Read Friday Black\" to my list, it's for book club", "Read Friday Black"),
            ("put in train to Ghent", "train to Ghent"),
            ("buy milk, eggs and bread", "buy milk, eggs and bread"),
            ("right the wrongs", "right the wrongs"),
        ] {
            assert_eq!(clean(title).0, expected, "{title}");
        }
        assert_eq!(
            clean("return Denise's folder, she keeps asking"),
            ("return Denise's folder".to_owned(), Some("she keeps asking".to_owned()))
        );
    }

    #[test]
    fn statements_are_no_titles() {
        for title in ["its i just looked", "before school", "day", "so i pack", "amirite"] {
            assert!(is_no_title(title), "{title}");
        }
        assert!(!is_no_title("buy milk"));
        for title in ["ring me an hour before my train", "dave's off sick", "strike the other dave one off"] {
            assert!(is_doubtful(title), "{title}");
        }
        for title in ["dave's party", "book a table for me", "ask mum's doctor about the results"] {
            assert!(!is_doubtful(title), "{title}");
        }
    }
}
