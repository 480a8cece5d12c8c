//! Recognizes sentences in which a language model claims to have changed something. The rules cover the usual forms:
//! the model speaks of itself in the past ("I've added …"), begins with a participle ("Added 'milk'."), reports a state
//! ("The reminder is set."), or promises something. In other languages, the participles of the usual changes count.

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

/// Participles that no title of a task and no request begins with.
const STRICT_PARTICIPLES: [&str; 10] =
    ["added", "created", "deleted", "removed", "updated", "renamed", "rescheduled", "moved", "scheduled", "postponed"];
/// Words before the claim of a sentence: "Okay, added it."
const INTERJECTIONS: [&str; 20] = [
    "ok",
    "okay",
    "sure",
    "alright",
    "great",
    "perfect",
    "got",
    "it",
    "yes",
    "yep",
    "yeah",
    "fine",
    "certainly",
    "absolutely",
    "understood",
    "right",
    "nice",
    "good",
    "thing",
    "of",
];
/// Verbs of changes after "I'll" or "let me".
const PROMISED_VERBS: [&str; 16] = [
    "add",
    "create",
    "delete",
    "remove",
    "mark",
    "update",
    "move",
    "schedule",
    "set",
    "complete",
    "put",
    "rename",
    "cancel",
    "reschedule",
    "snooze",
    "remind",
];
/// Words of a sentence whose promise depends on something.
const CONDITIONS: [&str; 8] = ["if", "once", "when", "after", "before", "unless", "until", "whenever"];
/// Participles of changes in German, French, Spanish, Italian and Dutch.
const FOREIGN_PARTICIPLES: [&str; 36] = [
    "hinzugefügt",
    "gelöscht",
    "entfernt",
    "erledigt",
    "abgehakt",
    "angelegt",
    "erstellt",
    "geändert",
    "verschoben",
    "eingetragen",
    "eingerichtet",
    "ajouté",
    "ajoutée",
    "supprimé",
    "supprimée",
    "créé",
    "créée",
    "modifié",
    "modifiée",
    "programmé",
    "añadido",
    "añadida",
    "agregado",
    "agregada",
    "eliminado",
    "eliminada",
    "creado",
    "creada",
    "programado",
    "aggiunto",
    "aggiunta",
    "eliminato",
    "eliminata",
    "toegevoegd",
    "verwijderd",
    "afgevinkt",
];
/// Negations in these languages.
const FOREIGN_NEGATIONS: [&str; 10] = ["nicht", "nichts", "kein", "keine", "pas", "rien", "no", "nada", "non", "niet"];

/// The subject of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimKind {
    Addition,
    Completion,
    Deletion,
    Reminder,
    /// Any other change, or one that cannot be told.
    Other,
}

/// A sentence that claims a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) kind: ClaimKind,
    /// The sentence in lower case, with quoted text replaced by "x".
    pub(super) sentence: String,
    /// The quoted texts of the sentence.
    pub(super) quoted: Vec<String>,
    /// Set if the sentence describes a state, which an earlier turn may have caused: "the reminder is set".
    pub(super) is_state: bool,
}

/// Returns the sentences of the text that claim that something was changed. Quoted titles, list lines, questions and
/// negations are no claims.
pub(super) fn claims(text: &str) -> Vec<Claim> {
    text.lines().flat_map(line_claims).collect()
}

fn line_claims(line: &str) -> Vec<Claim> {
    let sentences = sentences(line);
    if is_list_line(line) {
        // "- Added the milk" reports a change, "- add the milk" is a task.
        let is_task = line.contains(['☐', '✓']);
        let mut first = sentences.into_iter().take(1).filter(|_| !is_task);
        let sentence = first.next().map(|sentence| Sentence { text: without_marker(&sentence.text), ..sentence });
        let sentence = sentence.filter(|sentence| {
            let word = sentence.text.split_whitespace().next().unwrap_or_default();
            STRICT_PARTICIPLES.contains(&word) && !sentence.text.ends_with(':')
        });
        return sentence.and_then(|sentence| sentence.claim(false)).into_iter().collect();
    }
    sentences
        .into_iter()
        .filter_map(|sentence| {
            let is_state = find_claim(&sentence.text)?;
            sentence.claim(is_state)
        })
        .collect()
}

fn is_list_line(line: &str) -> bool {
    let line = line.trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    line.starts_with(['-', '*', '•', '☐', '✓']) || digits > 0 && line[digits..].starts_with(['.', ')'])
}

fn without_marker(line: &str) -> String {
    line.trim_start_matches(|c: char| !c.is_alphabetic()).to_owned()
}

/// A sentence in lower case. Quoted text is replaced by "x".
#[derive(Default)]
struct Sentence {
    text: String,
    quoted: Vec<String>,
}

impl Sentence {
    fn claim(self, is_state: bool) -> Option<Claim> {
        let Self { text: sentence, quoted } = self;
        let kind = claim_kind(&sentence);
        Some(Claim { kind, sentence, quoted, is_state })
    }
}

/// Returns the subject of a claim.
fn claim_kind(sentence: &str) -> ClaimKind {
    let words: Vec<&str> = sentence.split(|c: char| !c.is_alphanumeric() && c != '\'').collect();
    let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
    let ends = has(&["deleted", "removed", "erased", "cancelled", "canceled", "cleared", "dropped"]);
    if has(&["reminder", "reminders", "remind", "reminded", "reminding", "alarm"]) {
        if ends || has(&["snoozed", "moved", "changed", "updated"]) { ClaimKind::Other } else { ClaimKind::Reminder }
    } else if has(&["deleted", "erased"]) || has(&["removed"]) && !has(&["tag", "tags", "date", "priority", "note"]) {
        ClaimKind::Deletion
    } else if has(&["completed", "ticked", "checked", "crossed"])
        || has(&["marked"]) && has(&["done", "complete", "completed", "finished"])
    {
        ClaimKind::Completion
    } else if has(&["added", "created"]) && !has(&["tag", "tags", "date", "priority", "note", "description"]) {
        ClaimKind::Addition
    } else {
        ClaimKind::Other
    }
}

/// Stands for quoted text until the line is split into sentences.
const QUOTED: char = '\u{fffc}';

/// Returns the sentences of a line with their end characters.
fn sentences(line: &str) -> Vec<Sentence> {
    let (text, quoted) = without_quotes(line);
    let mut quoted = quoted.into_iter();
    let mut sentences = vec![Sentence::default()];
    let mut characters = text.to_lowercase().chars().collect::<Vec<_>>().into_iter().peekable();
    while let Some(c) = characters.next() {
        let Some(last) = sentences.last_mut() else { break };
        if c == QUOTED {
            last.text.push('x');
            last.quoted.extend(quoted.next());
            continue;
        }
        last.text.push(c);
        // "3.30pm" and "p.m." do not end a sentence.
        let ends = c != '.' || characters.peek().is_none_or(|next| !next.is_alphanumeric());
        if matches!(c, '.' | '!' | '?' | ';' | '—' | '…') && ends {
            sentences.push(Sentence::default());
        }
    }
    sentences
}

/// Replaces text in quotes by [`QUOTED`] and returns it too. An apostrophe inside a word is not a quote.
fn without_quotes(line: &str) -> (String, Vec<String>) {
    let mut out = String::new();
    let mut quoted = Vec::new();
    let mut rest = plain_quotes(&line.replace(QUOTED, ""));
    while let Some((at, quote)) = opening_quote(&rest) {
        let Some(end) = closing_quote(&rest, at + 1, quote) else { break };
        out.push_str(&rest[..at]);
        out.push(QUOTED);
        quoted.push(rest[at + 1..end].to_owned());
        rest = rest[end + 1..].to_owned();
    }
    (out + &rest, quoted)
}

/// Replaces typographic quotation marks and apostrophes by plain ones.
pub(super) fn plain_quotes(text: &str) -> String {
    text.replace(['’', '‘'], "'").replace(['“', '”', '„', '«', '»'], "\"")
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

/// Returns `None` if a sentence in lower case is no claim, else if it describes a state.
fn find_claim(sentence: &str) -> Option<bool> {
    let trimmed = sentence.trim();
    if trimmed.ends_with('?') {
        return None;
    }
    let plain: String = trimmed.chars().map(|c| if c.is_alphanumeric() || c == '\'' { c } else { ' ' }).collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    if begins_with_claim(trimmed, &words) {
        return Some(false);
    }
    let is_conditional = words.first().is_some_and(|word| CONDITIONS.contains(word));
    let has_condition = words.iter().any(|word| CONDITIONS.contains(word));
    if (0..words.len())
        .any(|at| matches!(&words[at..], ["i've" | "we've" | "i" | "we", ..] if follows(&words[at + 1..])))
    {
        return Some(false);
    }
    let is_state = (0..words.len()).any(|at| match &words[at..] {
        ["reminder", "set" | "scheduled" | "created" | "added", ..] => true,
        ["reminder", "is" | "was", "set" | "scheduled" | "created" | "added" | "now", ..] => true,
        ["has" | "have", "been", rest @ ..] if follows(rest) => !is_conditional,
        ["is" | "are", "now", next, ..] if PARTICIPLES.contains(next) => true,
        ["is" | "are" | "was" | "were", next, rest @ ..] if STRICT_PARTICIPLES[..7].contains(next) => {
            !is_conditional && !rest.first().is_some_and(|word| NOUNS.contains(word))
        }
        _ => promises_reminder(&words, at) && !is_conditional,
    });
    let promises = (0..words.len()).any(|at| match &words[at..] {
        ["i'll" | "we'll", verb, ..] | ["i", "will", verb, ..] | ["let", "me", verb, ..] => {
            PROMISED_VERBS.contains(verb)
        }
        ["going", "to", verb, ..] => words[..at].last() == Some(&"i'm") && PROMISED_VERBS.contains(verb),
        _ => false,
    });
    let is_foreign = words.iter().any(|word| FOREIGN_PARTICIPLES.contains(word))
        && !words.iter().any(|word| FOREIGN_NEGATIONS.contains(word));
    match (is_state, promises && !has_condition || is_foreign) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

/// Returns whether a sentence begins with a claim: "done", "added …", "okay, added …", "'milk' added".
fn begins_with_claim(trimmed: &str, words: &[&str]) -> bool {
    let is_participle = |word: &&str| PARTICIPLES.contains(word);
    let described = |rest: &[&str]| rest.first().is_some_and(|next| NOUNS.contains(next));
    match words {
        [] => return false,
        ["done"] | ["done", "and", "dusted"] | ["all" | "you're", "all" | "done" | "set", ..] => return true,
        ["consider", "it", "done"] | ["it's" | "that's", "done" | "sorted"] => return true,
        ["done", ..] if trimmed.starts_with("done,") || trimmed.starts_with("done -") => return true,
        [first, rest @ ..] if is_participle(first) && !trimmed.ends_with(':') && !described(rest) => return true,
        ["x" | "task" | "todo" | "item", next, rest @ ..]
            if STRICT_PARTICIPLES.contains(next) && !described(rest) && !trimmed.ends_with(':') =>
        {
            return true;
        }
        _ => {}
    }
    // "Sure, added it." has the claim after words that claim nothing.
    let skipped = words.iter().take_while(|word| INTERJECTIONS.contains(word)).count();
    skipped > 0
        && match &words[skipped..] {
            ["done"] | ["all", "done" | "set"] => true,
            [first, rest @ ..] => STRICT_PARTICIPLES.contains(first) && !described(rest),
            [] => false,
        }
}

fn promises_reminder(words: &[&str], at: usize) -> bool {
    match &words[at..] {
        ["i'll" | "we'll", "remind", ..] | ["i'll", "be", "reminding", ..] => true,
        ["i" | "we", "will", "remind", ..] => true,
        ["you'll", "be" | "get", "reminded" | "a", ..] => words.contains(&"reminder") || words.contains(&"reminded"),
        ["you", "will", "be", "reminded", ..] => true,
        _ => false,
    }
}

/// Returns whether a participle follows, after any adverbs.
fn follows(rest: &[&str]) -> bool {
    let adverbs = rest.iter().take_while(|word| ADVERBS.contains(word)).count();
    rest.get(adverbs).is_some_and(|word| PARTICIPLES.contains(word))
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
            "Sure, added milk.",
            "Okay, done!",
            "You're all set.",
            "It's done.",
            "The task was deleted.",
            "'milk' added to your list.",
            "Task created: milk",
            "I'll add it right away.",
            "Let me delete that for you.",
            "I'm going to move it to Friday.",
            "Here is what I did:\n- Added 'milk'\n- Removed 'bread'",
            "Ich habe 'Milch kaufen' hinzugefügt.",
            "Erledigt!",
            "J'ai ajouté la tâche.",
            "He añadido la tarea.",
        ] {
            assert!(!claims(text).is_empty(), "{text}");
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
            "I'll add it once you tell me the date.",
            "Let me know if you need more.",
            "1. ☐ added sugar\n2. ✓ Moved the shelf",
            "- add milk\n- set the table",
            "The meeting is scheduled for 5pm.",
            "It was added on Monday.",
            "Ich habe nichts gelöscht.",
            "Soll ich das hinzugefügt lassen?",
        ] {
            assert_eq!(claims(text), [], "{text}");
        }
    }

    #[test]
    fn claims_have_a_kind_and_quoted_titles() {
        // TRUST-2
        for (text, kind, quoted) in [
            ("I've added 'buy milk' and \"eggs\".", ClaimKind::Addition, &["buy milk", "eggs"][..]),
            ("I also set a reminder for 5 p.m. today.", ClaimKind::Reminder, &[]),
            ("I'll remind you about 'x'.", ClaimKind::Reminder, &["x"]),
            ("I've cancelled the reminder.", ClaimKind::Other, &[]),
            ("I marked 'rent' as done.", ClaimKind::Completion, &["rent"]),
            ("I've removed 'rent'.", ClaimKind::Deletion, &["rent"]),
            ("I've removed the tag.", ClaimKind::Other, &[]),
            ("I've moved it.", ClaimKind::Other, &[]),
        ] {
            let found = claims(text);
            assert_eq!((found.len(), found[0].kind), (1, kind), "{text}: {found:?}");
            assert_eq!(found[0].quoted, quoted, "{text}");
        }
        assert!(claims("The reminder is set for 5pm.")[0].is_state);
        assert!(!claims("I've set the reminder.")[0].is_state);
    }
}
