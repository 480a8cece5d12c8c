//! Recognizes messages about schedules: their topic and the words that name the schedule. Whether such a schedule exists
//! is decided later.

use super::super::agents::words::Words;
use super::vocabulary::{
    CHANGE, CLAUSES, DELETE, FILLERS, GENERAL_VERBS, LIST_WORDS, NOUNS, ORDINALS, PAUSE, QUESTION_WORDS, RESUME, RUN,
    RUN_WORDS, is_one_of,
};

/// What the user wants to know or to change.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::offline) enum ScheduleTopic {
    List,
    /// "Which of them are paused?"
    ListPaused,
    /// "When does it run next?"
    Next,
    /// "When did it last run?", "how is the nightly doing?", "is it active?"
    State,
    /// "Why did it not run?"
    Why,
    Pause,
    Resume,
    Delete,
    Run,
    /// Other times. Has the part of the message with the times, as a byte position.
    Retime,
    /// A new name, as it was written.
    Rename(String),
    /// A new input, as it was written.
    NewInput(String),
}

/// The schedule that a message names.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::offline) enum ScheduleReference {
    /// Words of its name, its agent or its input.
    Named(Vec<String>),
    /// "it", or no words.
    Pronoun,
    /// A position in the last list, from 0. The last one is `usize::MAX`.
    Position(usize),
    All,
}

/// A message about schedules.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::offline) struct ScheduleRequest {
    pub(in crate::offline) topic: ScheduleTopic,
    pub(in crate::offline) reference: ScheduleReference,
    /// The message has a word such as "schedule", so that no task is meant.
    pub(in crate::offline) has_noun: bool,
    /// The verb or the question fits schedules only.
    pub(in crate::offline) is_specific: bool,
    /// The time until which something is paused.
    pub(in crate::offline) has_until: bool,
}

/// Returns the request of a message without courtesy, or `None` if it is not about schedules.
pub(in crate::offline) fn find_request(words: &Words<'_>) -> Option<ScheduleRequest> {
    let plain: Vec<String> = words.plain().into_iter().filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let refs: Vec<&str> = plain.iter().map(String::as_str).collect();
    if refs.is_empty() || refs.len() > 24 {
        return None;
    }
    // Reminders and tasks have the same verbs.
    let about_tasks = ["task", "tasks", "todo", "todos", "reminder", "reminders", "remind", "alarm", "list"];
    if refs.iter().any(|word| about_tasks.contains(word))
        && !refs.iter().any(|w| matches!(*w, "schedules" | "schedule" | "jobs"))
    {
        return None;
    }
    if refs.iter().any(|word| matches!(*word, "task" | "tasks" | "todo" | "todos" | "reminders")) {
        return None;
    }
    let has_noun = refs.iter().any(|word| NOUNS.contains(word));
    let finder = Finder { words, plain: &refs, has_noun };
    finder.list().or_else(|| finder.question()).or_else(|| finder.command())
}

struct Finder<'w, 't> {
    words: &'w Words<'t>,
    plain: &'w [&'w str],
    has_noun: bool,
}

impl Finder<'_, '_> {
    fn starts(&self, any: &[&[&str]]) -> bool {
        any.iter().any(|phrase| self.plain.starts_with(phrase))
    }

    fn has(&self, any: &[&str]) -> bool {
        self.plain.iter().any(|word| any.contains(word))
    }

    fn request(&self, topic: ScheduleTopic, named: &[&str], is_specific: bool) -> Option<ScheduleRequest> {
        let has_until = self.has(&["until", "till"]);
        let reference = reference(named);
        Some(ScheduleRequest { topic, reference, has_noun: self.has_noun, is_specific, has_until })
    }

    /// "what is scheduled?", "show my schedules", "which of them are paused?"
    fn list(&self) -> Option<ScheduleRequest> {
        let begins = [
            "what",
            "whats",
            "which",
            "list",
            "show",
            "is",
            "are",
            "any",
            "anything",
            "do",
            "how",
            "schedules",
            "see",
            "jobs",
            "tell",
        ];
        let about = self.has(&["scheduled", "schedules", "schedule", "jobs", "automations"]);
        let is_question = begins.contains(self.plain.first()?) && self.plain.len() <= 10;
        let paused = self.has(&["paused", "inactive", "disabled", "hold"]);
        if is_question
            && paused
            && (about || self.has(&["them", "those", "these", "ones"]) || self.plain.first() == Some(&"whats"))
            && matches!(self.plain[0], "what" | "whats" | "which" | "are" | "show" | "list")
        {
            return self.request(ScheduleTopic::ListPaused, &[], about);
        }
        let is_known = self.plain.iter().all(|word| is_one_of(LIST_WORDS, word));
        let is_list =
            is_question && about && is_known && !self.starts(&[&["is", "it"], &["is", "that"], &["schedule"]]);
        is_list.then(|| self.request(ScheduleTopic::List, &[], true)).flatten()
    }

    fn question(&self) -> Option<ScheduleRequest> {
        let plain = self.plain;
        let first = *plain.first()?;
        let has_run = self.plain.iter().any(|word| is_one_of(RUN_WORDS, word));
        let named = || -> Vec<&str> {
            plain
                .iter()
                .copied()
                .filter(|word| {
                    !is_one_of(QUESTION_WORDS, word)
                        && !is_one_of(RUN_WORDS, word)
                        && !word.starts_with(|c: char| c.is_ascii_digit())
                })
                .collect()
        };
        // "Nothing was run by me": a first person is about the user.
        if self.has(&["i", "we", "me"]) {
            return None;
        }
        let is_why = first == "why" || self.starts(&[&["how", "come"], &["what", "happened"]]);
        if is_why
            && (has_run
                || self.has(&["skipped", "missed", "paused", "fail", "failed", "off", "late", "refused", "disabled"]))
        {
            return self.request(ScheduleTopic::Why, &named(), true);
        }
        let asks_time = matches!(first, "when" | "whens")
            || self.starts(&[
                &["what", "time"],
                &["what", "day"],
                &["which", "day"],
                &["at", "what"],
                &["how", "often"],
                &["how", "soon"],
            ]);
        let is_past = self.has(&["did", "last", "was", "has", "ran"]);
        if asks_time && is_past && (has_run || self.has_noun) {
            return self.request(ScheduleTopic::State, &named(), true);
        }
        if asks_time && (has_run || self.has_noun || self.has(&["next"])) {
            return self.request(
                ScheduleTopic::Next,
                &named().into_iter().filter(|word| !matches!(*word, "often" | "soon")).collect::<Vec<_>>(),
                true,
            );
        }
        if self.starts(&[&["whats", "the", "next"], &["what", "is", "the", "next"], &["next", "run"]]) && has_run {
            return self.request(ScheduleTopic::Next, &named(), true);
        }
        let is_state =
            self.has(&["active", "paused", "enabled", "disabled", "inactive", "on", "off", "scheduled", "running"]);
        if matches!(first, "is" | "isnt" | "was") && is_state {
            let is_specific = self.has(&["active", "paused", "enabled", "disabled", "inactive"]) || self.has_noun;
            return self.request(ScheduleTopic::State, &named(), is_specific);
        }
        let is_course = self.starts(&[&["how", "is"], &["hows"], &["how", "did"], &["how", "has"], &["how", "does"]])
            && self.has(&["doing", "going", "run", "been", "go", "do", "running", "look"]);
        let asks_status = self.has(&["status", "state"]) && matches!(first, "what" | "whats" | "show" | "give");
        let did_run = matches!(first, "did" | "has" | "hasnt" | "didnt") && has_run;
        if is_course || asks_status || did_run {
            let named: Vec<&str> =
                named().into_iter().filter(|word| !matches!(*word, "do" | "show" | "look" | "give" | "me")).collect();
            return self.request(ScheduleTopic::State, &named, self.has_noun);
        }
        None
    }

    fn command(&self) -> Option<ScheduleRequest> {
        let full = self.plain;
        let clause = full.iter().position(|word| CLAUSES.contains(word)).filter(|at| *at > 0).unwrap_or(full.len());
        // "Again", "for now" and the like do not name a schedule.
        let ends: [&[&str]; 3] = [&["for", "now"], &["for", "the", "moment"], &["for", "a", "while"]];
        let mut plain = &full[..clause];
        if let Some(end) = ends.iter().find(|end| plain.ends_with(end)) {
            plain = &plain[..plain.len() - end.len()];
        }
        let first = *plain.first()?;
        let general = GENERAL_VERBS.contains(&first);
        let without = |skipped: &[&str]| -> Vec<&str> {
            plain[1..].iter().copied().filter(|word| !skipped.contains(word)).collect()
        };
        // Verbs with a particle.
        if matches!(first, "switch" | "turn") {
            let is_off = plain.contains(&"off");
            let is_on = plain.contains(&"on");
            if is_off != is_on {
                let topic = if is_off { ScheduleTopic::Pause } else { ScheduleTopic::Resume };
                return self.request(topic, &without(&["off", "on", "back", "again"]), true);
            }
        }
        if matches!(first, "put" | "place" | "keep") && plain.contains(&"hold") {
            return self.request(ScheduleTopic::Pause, &without(&["on", "hold"]), true);
        }
        if first == "take" && plain.contains(&"hold") {
            return self.request(ScheduleTopic::Resume, &without(&["off", "hold"]), true);
        }
        if plain.starts_with(&["get", "rid", "of"]) || plain.starts_with(&["throw", "away"]) {
            return self.request(ScheduleTopic::Delete, &without(&["rid", "of", "away"]), false);
        }
        if matches!(plain, ["do", "one" | "it" | "that", "now"] | ["do", "one", "right", "now"]) {
            return self.request(ScheduleTopic::Run, &[], false);
        }
        if plain.starts_with(&["stop", "running"]) {
            return self.request(ScheduleTopic::Pause, &without(&["running"]), false);
        }
        if let Some(request) = self.rename(plain).or_else(|| self.new_input(plain)) {
            return Some(request);
        }
        if first == "start" && plain.last() == Some(&"again") {
            return self.request(ScheduleTopic::Resume, &without(&["again"]), false);
        }
        if PAUSE.contains(&first) {
            return self.request(ScheduleTopic::Pause, &without(&["off", "on"]), !general);
        }
        if RESUME.contains(&first) {
            return self.request(ScheduleTopic::Resume, &without(&[]), !general);
        }
        if DELETE.contains(&first) {
            return self.request(ScheduleTopic::Delete, &without(&[]), false);
        }
        if RUN.contains(&first) {
            // Times make it a schedule of an agent.
            let has_time = plain.iter().any(|word| matches!(*word, "every" | "each" | "tomorrow" | "daily" | "hourly"));
            let named = without(&["off", "up"]);
            return if has_time { None } else { self.request(ScheduleTopic::Run, &named, true) };
        }
        if CHANGE.contains(&first) {
            return self.request(ScheduleTopic::Retime, &self.words_before_times(plain), false);
        }
        // "every other day instead", "no, at 6pm"
        self.request(ScheduleTopic::Retime, &["it"], false).filter(|_| self.is_only_times())
    }

    /// Returns the words between the verb and the times.
    fn words_before_times<'p>(&self, plain: &[&'p str]) -> Vec<&'p str> {
        let begins_time = |word: &str| {
            is_time(word)
                || matches!(
                    word,
                    "to" | "at" | "for" | "every" | "each" | "from" | "on" | "by" | "run" | "runs" | "happen"
                )
        };
        let end = plain.iter().skip(1).position(|word| begins_time(word)).map_or(plain.len(), |at| at + 1);
        plain[1..end]
            .iter()
            .copied()
            .filter(|word| !matches!(*word, "time" | "times" | "forward" | "back" | "up"))
            .collect()
    }

    /// Returns true if the message has only times and words such as "instead".
    fn is_only_times(&self) -> bool {
        let fillers = [
            "no", "nope", "actually", "at", "to", "on", "instead", "rather", "only", "just", "better", "i", "meant",
            "mean", "please", "every", "other", "and", "of", "in", "the", "each", "second", "half", "past", "a", "or",
            "make", "that", "it",
        ];
        self.plain.iter().any(|word| is_time(word) || matches!(*word, "every" | "each"))
            && self.plain.iter().all(|word| is_time(word) || fillers.contains(word))
    }

    /// "rename nightly to backup", "call it backup", "change the name of nightly to backup".
    fn rename(&self, plain: &[&str]) -> Option<ScheduleRequest> {
        let names_it = plain.starts_with(&["call", "it"]) || plain.starts_with(&["name", "it"]);
        let is_rename = plain.first() == Some(&"rename") || (plain.starts_with(&["change", "the", "name"]));
        if !names_it && !is_rename {
            return None;
        }
        let at = if names_it {
            2
        } else {
            self.words.plain().iter().rposition(|word| matches!(*word, "to" | "into" | "as"))? + 1
        };
        let name = unquoted(self.words.from(at).source());
        let named: Vec<&str> = match names_it {
            true => vec!["it"],
            false => plain[1..at.saturating_sub(1).clamp(1, plain.len())]
                .iter()
                .copied()
                .filter(|word| *word != "name")
                .collect(),
        };
        if name.is_empty() {
            return None;
        }
        self.request(ScheduleTopic::Rename(name), &named, false)
    }

    /// "change the input of nightly to check the links", "nightly should check the links instead".
    fn new_input(&self, plain: &[&str]) -> Option<ScheduleRequest> {
        let is_change = matches!(plain.first(), Some(&"change" | &"set" | &"update"));
        let noun = plain
            .iter()
            .position(|word| matches!(*word, "input" | "prompt" | "instruction" | "instructions" | "request"))?;
        let to = self.words.plain().iter().position(|word| *word == "to")?;
        if !is_change || noun > to {
            return None;
        }
        let input = unquoted(self.words.from(to + 1).source());
        let named: Vec<&str> = plain[1..to.min(plain.len())]
            .iter()
            .copied()
            .filter(|word| !matches!(*word, "input" | "prompt" | "instruction" | "instructions" | "request"))
            .collect();
        self.request(ScheduleTopic::NewInput(input), &named, true)
    }
}

/// Returns true for a word of a time.
fn is_time(word: &str) -> bool {
    let names = [
        "noon",
        "midnight",
        "morning",
        "mornings",
        "evening",
        "evenings",
        "afternoon",
        "night",
        "nightly",
        "daily",
        "weekly",
        "monthly",
        "hourly",
        "weekday",
        "weekdays",
        "weekend",
        "weekends",
        "day",
        "days",
        "week",
        "weeks",
        "hour",
        "hours",
        "minute",
        "minutes",
        "month",
        "months",
        "am",
        "pm",
        "oclock",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "mondays",
        "tuesdays",
        "wednesdays",
        "thursdays",
        "fridays",
        "saturdays",
        "sundays",
        "tomorrow",
        "later",
        "earlier",
        "mon",
        "tue",
        "wed",
        "thu",
        "fri",
        "sat",
        "sun",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
    ];
    names.contains(&word) || word.starts_with(|c: char| c.is_ascii_digit())
}

fn unquoted(text: &str) -> String {
    text.trim().trim_end_matches(['.', '!']).trim_matches(['\'', '"', '“', '”', '‘', '’']).trim().to_owned()
}

/// Returns the reference of words such as "the backup job", "it", "the second one" and "all of them".
fn reference(named: &[&str]) -> ScheduleReference {
    let core: Vec<&str> = named.iter().copied().filter(|word| !FILLERS.contains(word)).collect();
    match core.as_slice() {
        ["all" | "both" | "everything" | "every"] => ScheduleReference::All,
        ["other"] => ScheduleReference::Pronoun,
        [word] if ORDINALS.contains(word) => {
            ScheduleReference::Position(ORDINALS.iter().position(|known| known == word).unwrap_or_default())
        }
        [] if named.contains(&"last") && named.contains(&"one") => ScheduleReference::Position(usize::MAX),
        [] => ScheduleReference::Pronoun,
        words => ScheduleReference::Named(words.iter().map(|word| (*word).to_owned()).collect()),
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
