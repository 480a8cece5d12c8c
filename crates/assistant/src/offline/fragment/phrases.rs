//! The phrases of values, the words beside them, and frequent typing mistakes.

use model::task::Priority;
use understand::ClearableField;

/// Phrases of priorities.
pub(super) const PRIORITIES: &[(&str, Priority)] = &[
    ("high priority", Priority::High),
    ("high prio", Priority::High),
    ("higher priority", Priority::High),
    ("top priority", Priority::High),
    ("top prio", Priority::High),
    ("priority high", Priority::High),
    ("up to high", Priority::High),
    ("very important", Priority::High),
    ("really important", Priority::High),
    ("super urgent", Priority::High),
    ("really urgent", Priority::High),
    ("urgent", Priority::High),
    ("important", Priority::High),
    ("critical", Priority::High),
    ("asap", Priority::High),
    ("isn't that urgent", Priority::Low),
    ("isnt that urgent", Priority::Low),
    ("isn't urgent", Priority::Low),
    ("isn't important", Priority::Low),
    ("not that important", Priority::Low),
    ("not so important", Priority::Low),
    ("not important", Priority::Low),
    ("not urgent", Priority::Low),
    ("not that urgent", Priority::Low),
    ("low priority", Priority::Low),
    ("low prio", Priority::Low),
    ("lower priority", Priority::Low),
    ("lower the priority", Priority::Low),
    ("priority low", Priority::Low),
    ("no rush", Priority::Low),
    ("no hurry", Priority::Low),
    ("in no hurry", Priority::Low),
    ("can wait", Priority::Low),
    ("normal priority", Priority::Medium),
    ("medium priority", Priority::Medium),
    ("medium prio", Priority::Medium),
    ("normal prio", Priority::Medium),
    ("priority normal", Priority::Medium),
    ("no priority", Priority::Medium),
];

/// Words that are a priority only if the text has no other words.
pub(super) const BARE_PRIORITIES: &[(&str, Priority)] =
    &[("high", Priority::High), ("low", Priority::Low), ("normal", Priority::Medium), ("medium", Priority::Medium)];

pub(super) const CLEARS: &[(&str, ClearableField)] = &[
    ("without a date", ClearableField::Due),
    ("without a due date", ClearableField::Due),
    ("without a deadline", ClearableField::Due),
    ("without date", ClearableField::Due),
    ("no due date", ClearableField::Due),
    ("no deadline", ClearableField::Due),
    ("no date", ClearableField::Due),
    ("remove the date", ClearableField::Due),
    ("remove the due date", ClearableField::Due),
    ("drop the date", ClearableField::Due),
    ("drop the due date", ClearableField::Due),
    ("scrap the date", ClearableField::Due),
    ("scrap the deadline", ClearableField::Due),
    ("drop the deadline", ClearableField::Due),
    ("remove the deadline", ClearableField::Due),
    ("lose the deadline", ClearableField::Due),
    ("doesn't need a date", ClearableField::Due),
    ("doesnt need a date", ClearableField::Due),
    ("doesn't need a due date", ClearableField::Due),
    ("doesnt need a due date", ClearableField::Due),
    ("doesn't need a deadline", ClearableField::Due),
    ("doesnt need a deadline", ClearableField::Due),
    ("needs no date", ClearableField::Due),
    ("any time", ClearableField::Due),
    ("someday", ClearableField::Due),
    ("don't repeat", ClearableField::Recurrence),
    ("dont repeat", ClearableField::Recurrence),
    ("do not repeat", ClearableField::Recurrence),
    ("doesn't repeat", ClearableField::Recurrence),
    ("doesnt repeat", ClearableField::Recurrence),
    ("shouldn't repeat", ClearableField::Recurrence),
    ("shouldnt repeat", ClearableField::Recurrence),
    ("should not repeat", ClearableField::Recurrence),
    ("stop repeating", ClearableField::Recurrence),
    ("stop the repetition", ClearableField::Recurrence),
    ("scrap the repetition", ClearableField::Recurrence),
    ("drop the repetition", ClearableField::Recurrence),
    ("remove the repetition", ClearableField::Recurrence),
    ("remove the recurrence", ClearableField::Recurrence),
    ("no more repeats", ClearableField::Recurrence),
    ("no repeats", ClearableField::Recurrence),
    ("no repeat", ClearableField::Recurrence),
    ("no repetition", ClearableField::Recurrence),
    ("without repetition", ClearableField::Recurrence),
    ("just once", ClearableField::Recurrence),
    ("only once", ClearableField::Recurrence),
    ("one time only", ClearableField::Recurrence),
    ("one-off", ClearableField::Recurrence),
    ("remove the tag", ClearableField::Tags),
    ("remove the tags", ClearableField::Tags),
    ("drop the tags", ClearableField::Tags),
    ("drop the tag", ClearableField::Tags),
    ("no tags", ClearableField::Tags),
    ("without tags", ClearableField::Tags),
    ("remove the note", ClearableField::Description),
    ("drop the note", ClearableField::Description),
    ("no note", ClearableField::Description),
];

pub(super) const TIME_DROPS: &[&str] = &[
    "scrap the time",
    "drop the time",
    "remove the time",
    "lose the time",
    "forget the time",
    "without a time",
    "without the time",
    "no time",
    "all day",
    "just the day",
    "only the day",
    "any time that day",
];

/// Words without a meaning of their own beside values.
pub(super) const GLUE: &[&str] = &[
    "it", "its", "it's", "it'd", "that", "thats", "that's", "this", "which", "be", "is", "are", "was", "were",
    "should", "shall", "would", "could", "can", "must", "will", "ll", "has", "have", "to", "at", "on", "by", "for",
    "due", "make", "making", "set", "change", "chnage", "changed", "move", "moved", "put", "give", "do", "mark",
    "bump", "push", "shift", "switch", "the", "a", "an", "date", "day", "time", "deadline", "priority", "prio",
    "please", "pls", "then", "though", "btw", "tbh", "instead", "rather", "actually", "better", "best", "fine", "ok",
    "just", "only", "also", "too", "and", "one", "ones", "around", "say", "like", "more", "you", "lets", "let's",
    "now", "from", "i", "i'd", "mean", "meant", "want", "need", "needs", "with", "n", "add", "as", "of", "up", "them",
    "those", "these", "both", "over", "tag", "tagged", "label", "hm", "hmm", "no", "not", "ok", "again", "pressing",
    "any", "anymore", "longer", "all", "at", "in", "get", "got", "back", "there", "me", "my", "cause", "til", "till",
    "until", "wanted", "same", "hour", "obvs", "yeah", "than", "earliest", "already", "easier", "would", "nicer",
    "suits", "they're", "theyre", "til", "down",
];

/// Words that state a change or what something is.
pub(super) const STATING: &[&str] = &[
    "make", "set", "change", "chnage", "move", "put", "bump", "push", "shift", "switch", "is", "its", "it's", "thats",
    "that's", "should", "be", "must", "give", "mark", "tag", "due",
];

/// Corrects frequent typing mistakes in small words and names of days.
pub(in crate::offline) fn correct_spelling(text: &str) -> String {
    const TYPOS: [(&str, &str); 22] = [
        ("teh", "the"),
        ("hte", "the"),
        ("tommorow", "tomorrow"),
        ("tommorrow", "tomorrow"),
        ("tomorow", "tomorrow"),
        ("tmrw", "tomorrow"),
        ("tmr", "tomorrow"),
        ("tmw", "tomorrow"),
        ("2moro", "tomorrow"),
        ("mornign", "morning"),
        ("moring", "morning"),
        ("evenign", "evening"),
        ("aftrnoon", "afternoon"),
        ("firday", "friday"),
        ("frday", "friday"),
        ("satruday", "saturday"),
        ("saterday", "saturday"),
        ("wensday", "wednesday"),
        ("wednsday", "wednesday"),
        ("thrusday", "thursday"),
        ("evrything", "everything"),
        ("chnage", "change"),
    ];
    let mut corrected = String::with_capacity(text.len());
    for part in text.split_inclusive(char::is_whitespace) {
        let word = part.trim_end();
        let lower = word.to_lowercase();
        match TYPOS.iter().find(|(typo, _)| *typo == lower) {
            Some((_, right)) => corrected.push_str(&format!("{right}{}", &part[word.len()..])),
            None => corrected.push_str(part),
        }
    }
    corrected
}
