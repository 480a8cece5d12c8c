//! Recognises the property of a task that a question asks for (TRUST-4).

/// The property of a task that a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::offline) enum AskedProperty {
    Due,
    /// The time until it is due.
    Remaining,
    Priority,
    Tags,
    Note,
    Repetition,
    Done,
    Reminder,
    Details,
}

/// Returns the property that a question asks for, or `None` if the text is no such question.
pub(super) fn asked_property(words: &[&str]) -> Option<AskedProperty> {
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let first = *words.first()?;
    let starts = |start: &[&str]| words.starts_with(start);
    let asks = matches!(
        first,
        "when"
            | "whens"
            | "when's"
            | "what"
            | "whats"
            | "what's"
            | "which"
            | "how"
            | "hows"
            | "is"
            | "are"
            | "do"
            | "does"
            | "did"
            | "has"
            | "have"
            | "will"
            | "was"
            | "at"
            | "on"
            | "until"
            | "till"
            | "any"
            | "can"
            | "could"
    );
    if starts(&["tell", "me", "about"])
        || starts(&["tell", "me", "more", "about"])
        || has(&["details", "detail"]) && has(&["show", "what", "give", "of"])
    {
        return Some(AskedProperty::Details);
    }
    // "and Bev when?"
    if words.len() <= 5 && words.last() == Some(&"when") {
        return Some(AskedProperty::Due);
    }
    if !asks {
        return None;
    }
    let is_wh = matches!(first, "when" | "whens" | "when's");
    let asks_time = is_wh
        || starts(&["what", "time"])
        || starts(&["what", "day"])
        || starts(&["what", "date"])
        || starts(&["which", "day"])
        || starts(&["which", "weekday"])
        || starts(&["which", "date"])
        || starts(&["at", "what", "time"])
        || starts(&["on", "what", "day"])
        || starts(&["on", "which", "day"])
        || starts(&["by", "when"])
        || starts(&["until", "when"]);
    let is_reminder =
        has(&["remind", "reminder", "reminders", "reminding", "ring", "rings", "nag", "notify", "ping", "alert"])
            || (asks_time && has(&["tell"]) && has(&["me"]) && has(&["you"]));
    if is_reminder
        && (asks_time
            || starts(&["how", "often"])
            || has(&["any"])
            || matches!(first, "does" | "is" | "are" | "do" | "will" | "which" | "what"))
    {
        return (!(starts(&["can"]) || starts(&["could"]) || first == "will" && has(&["please"])))
            .then_some(AskedProperty::Reminder);
    }
    if starts(&["how", "often"])
        || has(&["repeat", "repeats", "recurring", "repeating"]) && !matches!(first, "which" | "what" | "can" | "could")
    {
        return Some(AskedProperty::Repetition);
    }
    if starts(&["how", "long"]) || starts(&["how", "much", "time"]) || starts(&["how", "many", "days"]) {
        return Some(AskedProperty::Remaining);
    }
    if asks_time {
        return Some(AskedProperty::Due);
    }
    if matches!(first, "can" | "could") {
        return None;
    }
    let about_one = matches!(first, "what" | "whats" | "what's" | "is" | "does" | "how" | "which");
    if about_one && has(&["priority", "prio"]) && !has(&["tasks", "ones", "many", "everything", "all", "my"]) {
        return Some(AskedProperty::Priority);
    }
    if matches!(first, "is") && has(&["urgent", "important"]) && !has(&["anything", "there"]) {
        return Some(AskedProperty::Priority);
    }
    if about_one && has(&["tag", "tags", "label", "labels"]) && !has(&["tasks", "ones", "with"]) {
        return Some(AskedProperty::Tags);
    }
    if has(&["note", "notes", "description"]) && about_one
        || starts(&["what", "does"]) && has(&["say"])
        || starts(&["what", "did", "i", "note"])
        || starts(&["what", "did", "i", "write"])
    {
        return Some(AskedProperty::Note);
    }
    let did = starts(&["did", "i"]) || starts(&["have", "i"]) || starts(&["have", "we"]) || starts(&["did", "we"]);
    if did && !has(&["anything", "any", "got", "what"]) {
        return Some(AskedProperty::Done);
    }
    if matches!(first, "is" | "are" | "was")
        && has(&[
            "done",
            "finished",
            "complete",
            "completed",
            "ticked",
            "sorted",
            "paid",
            "sent",
            "booked",
            "posted",
            "dealt",
        ])
        && !has(&["anything", "everything", "all"])
    {
        return Some(AskedProperty::Done);
    }
    // "is the coursework still due on tuesday?"
    if matches!(first, "is" | "was" | "does") && has(&["due"]) && !has(&["anything", "something", "there"]) {
        return Some(AskedProperty::Due);
    }
    None
}

/// Converts to lower case without punctuation. Apostrophes stay inside of words.
pub(super) fn normalize_question(text: &str) -> String {
    let lower = text.to_lowercase().replace('’', "'");
    let spaced: String =
        lower.chars().map(|c| if c.is_alphanumeric() || matches!(c, '\'' | '#') { c } else { ' ' }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_recognized() {
        // TRUST-4
        for (text, asked) in [
            ("when is the dentist", Some(AskedProperty::Due)),
            ("what time is the puppy getting vaccinated", Some(AskedProperty::Due)),
            ("which weekday is that", Some(AskedProperty::Due)),
            ("is the coursework still due on tuesday", Some(AskedProperty::Due)),
            ("how often do i change the bed sheets", Some(AskedProperty::Repetition)),
            ("does it repeat", Some(AskedProperty::Repetition)),
            ("how long have i got left for the essay", Some(AskedProperty::Remaining)),
            ("what priority does it have", Some(AskedProperty::Priority)),
            ("what's the note", Some(AskedProperty::Note)),
            ("did i already check the passports", Some(AskedProperty::Done)),
            ("when will you remind me", Some(AskedProperty::Reminder)),
            ("what reminders have i got", Some(AskedProperty::Reminder)),
            ("tell me about the pitch", Some(AskedProperty::Details)),
            ("can you remind me about the lawn", None),
            ("add milk", None),
            ("what's due this week", None),
            ("how many tasks do i have", None),
        ] {
            assert_eq!(asked_property(&text.split(' ').collect::<Vec<_>>()), asked, "{text}");
        }
    }
}
