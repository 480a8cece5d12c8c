//! Finds the agent that a message addresses, and the input for it: "get codex to …", "@codex …", "codex: …", "hand this
//! to codex", "try it with claude instead".

use serde_json::Value;

use super::vocabulary::{
    ARTICLES, DO_VERBS, FILLERS, HAND_VERBS, KNOWN_AGENT_NAMES, LINKS, PEOPLE, REQUEST_VERBS, SAME_REQUESTS,
    START_VERBS, TASK_NOUNS, TASK_VERBS, USE_VERBS,
};
use super::words::Words;

/// The agent that a message addresses.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::offline) enum Addressee<'a> {
    Known(&'a Value),
    /// The grammar makes it an agent, but the user has none of this name.
    Unknown(String),
    /// "it": the agent that was mentioned last.
    LastMentioned,
}

/// A request to an agent.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::offline) struct AddressedRequest<'a> {
    pub(in crate::offline) agent: Addressee<'a>,
    pub(in crate::offline) input: AgentInput,
}

/// The input of an agent.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::offline) enum AgentInput {
    /// The original text of the user. Empty if the agent is only started.
    Text(String),
    /// That of the previous request: "do it", "the same". Has the text, which may have a meaning of its own.
    Previous(String),
    /// The message has only a name, such as "claude then". It is a request only after another one.
    NameOnly,
    /// Missing: "use codex".
    Missing,
}

/// Returns the request of a message without courtesy, or `None` if it addresses no agent. `agents` is the list of the
/// user.
pub(in crate::offline) fn find_request<'a>(agents: &'a [Value], words: &Words<'_>) -> Option<AddressedRequest<'a>> {
    if words.len() == 0 {
        return None;
    }
    let finder = RequestFinder { agents, words };
    finder.mention().or_else(|| finder.vocative()).or_else(|| finder.correction()).or_else(|| finder.verb())
}

/// Returns the agent whose name begins at this position, and the number of words of the name. Case, punctuation and
/// hyphens are ignored, and so is a possessive ending. The longest name wins, then the first one.
pub(in crate::offline) fn agent_at<'a>(
    agents: &'a [Value],
    words: &Words<'_>,
    at: usize,
) -> Option<(&'a Value, usize)> {
    let mut best: Option<(&Value, usize)> = None;
    for agent in agents {
        for name in names(agent) {
            let parts: Vec<_> = name.split_whitespace().collect();
            let is_last = |n: usize| n + 1 == parts.len();
            let is_part = |n: usize, part: &str| {
                let word = words.at(at + n);
                let possessive = words.raw(at + n).to_lowercase();
                word == part
                    || (is_last(n)
                        && (possessive.ends_with("'s") || possessive.ends_with("’s"))
                        && word.strip_suffix('s') == Some(part))
            };
            let is_here = !parts.is_empty() && parts.iter().enumerate().all(|(n, part)| is_part(n, part));
            if is_here && best.is_none_or(|(_, length)| parts.len() > length) {
                best = Some((agent, parts.len()));
            }
        }
    }
    best
}

/// Returns the first agent that the words name, with its position and the number of words.
pub(in crate::offline) fn mentioned_agent<'a>(
    agents: &'a [Value],
    words: &Words<'_>,
) -> Option<(&'a Value, usize, usize)> {
    (0..words.len()).find_map(|at| agent_at(agents, words, at).map(|(agent, length)| (agent, at, length)))
}

/// Returns the names of an agent in lower case.
fn names(agent: &Value) -> [String; 3] {
    let text = |key: &str| agent[key].as_str().unwrap_or_default().to_lowercase().replace(['\'', '’'], "");
    [text("name"), text("id"), text("id").replace('-', " ")]
}

struct RequestFinder<'a, 'w, 't> {
    agents: &'a [Value],
    words: &'w Words<'t>,
}

impl<'a> RequestFinder<'a, '_, '_> {
    /// "@codex fix the bug", "fix the bug @codex".
    fn mention(&self) -> Option<AddressedRequest<'a>> {
        let words = self.words;
        if words.raw(0).starts_with('@') && words.at(0).starts_with(char::is_alphabetic) {
            let (agent, length) = match agent_at(self.agents, words, 0) {
                Some((agent, length)) => (Addressee::Known(agent), length),
                None => (self.unknown_after_sign(words.at(0))?, 1),
            };
            return Some(AddressedRequest { agent, input: self.text_or_missing(length) });
        }
        let last = words.len() - 1;
        let (agent, _) = agent_at(self.agents, words, last).filter(|_| words.raw(last).starts_with('@') && last > 0)?;
        let input = AgentInput::Text(words.until(last).source().to_owned());
        (!REQUEST_VERBS.contains(&words.at(0))).then_some(AddressedRequest { agent: Addressee::Known(agent), input })
    }

    /// "@name" is an agent if the user has any, or if many people know the name. Otherwise it may be a context of a task.
    fn unknown_after_sign(&self, name: &str) -> Option<Addressee<'a>> {
        let is_agent = !self.agents.is_empty() || is_well_known(name);
        is_agent.then(|| Addressee::Unknown(name.to_owned()))
    }

    /// "codex: fix the bug", "codex, please fix it", "codex can you fix it".
    fn vocative(&self) -> Option<AddressedRequest<'a>> {
        let words = self.words;
        let skip = usize::from(words.at(0) == "the" || words.at(0) == "agent");
        let (agent, length) = match agent_at(self.agents, words, skip) {
            Some((agent, length)) => (Addressee::Known(agent), length),
            None if is_well_known(words.at(0)) => (Addressee::Unknown(words.at(0).to_owned()), 1),
            None => return None,
        };
        let mut at = skip + length;
        at += usize::from(words.at(at) == "agent");
        let last = words.raw(at - 1);
        let is_separated = last.ends_with([':', ',']) || matches!(words.raw(at), "-" | "–" | "—" | ":");
        let rest = words.from(at);
        let plain = rest.plain();
        let polite: [&[&str]; 16] = [
            &["please"],
            &["pls"],
            &["can", "you", "please"],
            &["could", "you", "please"],
            &["can", "you"],
            &["could", "you"],
            &["would", "you"],
            &["will", "you"],
            &["you", "should"],
            &["should"],
            &["must"],
            &["shall"],
            &["needs", "to"],
            &["has", "to"],
            &["i", "want", "you", "to"],
            &["i", "need", "you", "to"],
        ];
        let phrase = polite.iter().find(|phrase| plain.starts_with(phrase));
        if let Some(phrase) = phrase.filter(|phrase| plain.len() > phrase.len()) {
            let mut rest = rest.from(phrase.len());
            rest.is_polite_question |= matches!(phrase[0], "can" | "could" | "would" | "will");
            return Some(AddressedRequest { agent, input: input_of(&rest) });
        }
        if plain.iter().all(|word| FILLERS.contains(word) || word.is_empty()) {
            return Some(AddressedRequest { agent, input: AgentInput::NameOnly });
        }
        is_separated.then(|| AddressedRequest { agent, input: input_of(&rest) })
    }

    /// "no, i meant claude", "what about claude?", "the same with gemini".
    fn correction(&self) -> Option<AddressedRequest<'a>> {
        let plain = self.words.plain();
        let mut at = 0;
        while ["no", "nope", "nah", "wait", "sorry", "oops", "not", "i", "meant", "mean", "said", "id", "rather"]
            .contains(plain.get(at)?)
        {
            at += 1;
        }
        let leads: [&[&str]; 8] = [
            &["what", "about"],
            &["how", "about"],
            &["the", "same", "for"],
            &["the", "same", "with"],
            &["same", "for"],
            &["same", "with"],
            &["make", "that"],
            &["make", "it"],
        ];
        at += leads.iter().find(|lead| plain[at..].starts_with(lead)).map_or(0, |lead| lead.len());
        let (agent, length) = self.addressee_at(at).filter(|_| at > 0)?;
        let rest = &plain[at + length..];
        let is_other = rest.first() == Some(&"not") || rest.iter().all(|word| FILLERS.contains(word));
        is_other.then_some(AddressedRequest { agent, input: AgentInput::NameOnly })
    }

    fn verb(&self) -> Option<AddressedRequest<'a>> {
        let words = self.words;
        let plain = words.plain();
        let verb = *plain.first()?;
        let wants = ["i", "we"].contains(&verb) && ["want", "need", "prefer", "wish"].contains(plain.get(1)?);
        let would = (["id", "wed"].contains(&verb) && plain.get(1) == Some(&"like"))
            || (["i", "we"].contains(&verb) && plain.get(1) == Some(&"would") && plain.get(2) == Some(&"like"));
        if wants || would {
            let at = if plain[1] == "would" { 3 } else { 2 };
            return self.request("want", at);
        }
        let request = match verb {
            // "Could codex look at it?"
            "can" | "could" | "would" if words.len() > 2 => {
                let mut found = self.request("can", 1)?;
                if let AgentInput::Text(text) | AgentInput::Previous(text) = &mut found.input {
                    *text = text.trim_end_matches('?').trim_end().to_owned();
                }
                Some(found)
            }
            "fire" | "kick" | "spin" | "set" | "start" if matches!(words.at(1), "up" | "off") => self.request("run", 2),
            "set" | "put" => self.request("set", 1),
            "schedule" | "plan" => self.scheduled(),
            _ if START_VERBS.contains(&verb) || REQUEST_VERBS.contains(&verb) || USE_VERBS.contains(&verb) => {
                self.request(verb, 1)
            }
            "give" | "send" | "assign" | "hand" => self.given(),
            _ => None,
        };
        request.or_else(|| self.handed()).or_else(|| self.scheduled_with_noun()).or_else(|| self.with_agent())
    }

    /// A verb, the name of an agent and the input.
    fn request(&self, verb: &str, at: usize) -> Option<AddressedRequest<'a>> {
        let words = self.words;
        let at = at + usize::from(ARTICLES.contains(&words.at(at)) && words.at(at + 1) != "to");
        let is_start = START_VERBS.contains(&verb);
        let (agent, length) = match agent_at(self.agents, words, at) {
            Some((agent, length)) => (Addressee::Known(agent), length),
            None if REQUEST_VERBS.contains(&verb) && words.at(at) == "it" && self.is_pronoun_request(verb, at) => {
                (Addressee::LastMentioned, 1)
            }
            None => (self.unknown(verb, at)?, 1),
        };
        let rest = words.from(at + length);
        let rest = skip_links(rest);
        if verb == "set" && !matches!(words.at(at + length), "to" | "on" | "loose") {
            return None;
        }
        // "set the report to low" changes a task.
        let is_value = |word: &str| matches!(word, "low" | "high" | "medium" | "normal" | "urgent" | "important");
        if verb == "set" && matches!(agent, Addressee::Unknown(_)) && (0..rest.len()).any(|at| is_value(rest.at(at))) {
            return None;
        }
        let input = match input_of(&rest) {
            // "Run codex now" starts it without an input.
            AgentInput::Previous(text)
                if text.is_empty() && is_start && !rest.has(&["instead", "too", "then", "rather"]) =>
            {
                AgentInput::Text(String::new())
            }
            AgentInput::Previous(_) if is_only_fillers(&rest) && rest.has(&["instead", "too", "then", "rather"]) => {
                AgentInput::NameOnly
            }
            AgentInput::Previous(text) if text.is_empty() => AgentInput::Missing,
            input => input,
        };
        Some(AddressedRequest { agent, input })
    }

    /// "ask it to add a cache", but not "let it go".
    fn is_pronoun_request(&self, verb: &str, at: usize) -> bool {
        let next = self.words.at(at + 1);
        self.words.len() > at + 2 && (next == "to" || (matches!(verb, "have" | "let" | "make") && next != "go"))
    }

    /// Returns the word at this position as the name of an agent that the user does not have, if the grammar makes it
    /// one. After "ask" and "tell" it may be a person.
    fn unknown(&self, verb: &str, at: usize) -> Option<Addressee<'a>> {
        let name = self.words.at(at);
        let raw = self.words.raw(at);
        let next = self.words.at(at + 1);
        if raw.starts_with('@') {
            return self.unknown_after_sign(name);
        }
        if is_well_known(name) {
            return Some(Addressee::Unknown(name.to_owned()));
        }
        let is_name = raw.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_');
        let is_technical = name.contains(['-', '_']) || name.ends_with(|c: char| c.is_ascii_digit());
        let is_person = PEOPLE.contains(&name) || ARTICLES.contains(&name);
        let is_agent = match verb {
            "ask" | "tell" | "instruct" => next == "to" && !is_person,
            "have" | "let" | "get" | "want" | "use" => next == "to" && is_technical,
            _ => false,
        };
        (is_agent && is_name && name.len() > 1 && !self.agents.is_empty()).then(|| Addressee::Unknown(name.to_owned()))
    }

    fn addressee_at(&self, at: usize) -> Option<(Addressee<'a>, usize)> {
        let article = usize::from(self.words.at(at) == "the");
        if let Some((agent, length)) = agent_at(self.agents, self.words, at + article) {
            return Some((Addressee::Known(agent), length + article));
        }
        let name = self.words.at(at);
        is_well_known(name).then(|| (Addressee::Unknown(name.to_owned()), 1))
    }

    /// "give codex the job of fixing the tests".
    fn given(&self) -> Option<AddressedRequest<'a>> {
        let (agent, length) = self.addressee_at(1)?;
        let rest = self.words.from(1 + length);
        let plain = rest.plain();
        let article = usize::from(["the", "a", "this", "that"].contains(plain.first()?));
        let noun = ["job", "task", "work", "order"].contains(plain.get(article).unwrap_or(&""));
        let mut skip = if noun { article + 1 } else { 0 };
        if noun && ["of", "to", "with"].contains(plain.get(skip).unwrap_or(&"")) {
            skip += 1;
        }
        if article == 1 && rest.raw(0).ends_with(':') {
            skip = 1;
        }
        let input = match input_of(&rest.from(skip)) {
            AgentInput::Previous(text) if text.is_empty() => AgentInput::Previous(text),
            input => input,
        };
        Some(AddressedRequest { agent, input })
    }

    /// "hand this to codex", "leave the refactoring to claude instead".
    fn handed(&self) -> Option<AddressedRequest<'a>> {
        let words = self.words;
        if !HAND_VERBS.contains(&words.at(0)) {
            return None;
        }
        for at in (2..words.len()).rev() {
            if !matches!(words.at(at - 1), "to" | "with" | "for") {
                continue;
            }
            let Some((agent, length)) = self.addressee_at(at) else { continue };
            if !is_only_fillers(&words.from(at + length)) {
                continue;
            }
            let mut end = at - 1;
            while matches!(words.at(end - 1), "over" | "off" | "on" | "along") && end > 1 {
                end -= 1;
            }
            let start = 1 + usize::from(matches!(words.at(1), "over" | "off" | "on"));
            let object = words.until(end).from(start);
            return Some(AddressedRequest { agent, input: input_of(&object) });
        }
        None
    }

    /// "do it with claude instead", "run the tests with codex", "summarise the notes using gemini".
    fn with_agent(&self) -> Option<AddressedRequest<'a>> {
        let words = self.words;
        for at in (2..words.len()).rev() {
            let link = words.at(at - 1);
            if !matches!(link, "with" | "using" | "via" | "on" | "by" | "through") {
                continue;
            }
            let Some((agent, length)) = self.addressee_at(at) else { continue };
            if !is_only_fillers(&words.from(at + length)) {
                continue;
            }
            let verb = words.at(0);
            let object = words.until(at - 1);
            let is_do = DO_VERBS.contains(&verb);
            let inner = if is_do { input_of(&object.from(1)) } else { AgentInput::Missing };
            let is_task_verb = TASK_VERBS.contains(&verb);
            return match (link, inner) {
                (_, AgentInput::Previous(text)) => Some(AddressedRequest { agent, input: AgentInput::Previous(text) }),
                ("with" | "using" | "via", AgentInput::Text(text)) if START_VERBS.contains(&verb) => {
                    Some(AddressedRequest { agent, input: AgentInput::Text(text) })
                }
                ("using" | "via", _) if !is_task_verb && matches!(agent, Addressee::Known(_)) => {
                    Some(AddressedRequest { agent, input: AgentInput::Text(object.source().to_owned()) })
                }
                _ => None,
            };
        }
        None
    }

    /// "schedule codex to fix the bug every day at 9", "schedule a daily run of codex".
    fn scheduled(&self) -> Option<AddressedRequest<'a>> {
        let words = self.words;
        let (agent, at, length) = match mentioned_agent(self.agents, words) {
            Some((agent, at, length)) => (Addressee::Known(agent), at, length),
            None => {
                let at = 1 + usize::from(ARTICLES.contains(&words.at(1)));
                (Addressee::Unknown(words.at(at).to_owned()).filter_well_known()?, at, 1)
            }
        };
        if at > 8 || TASK_NOUNS.contains(&words.at(at - 1)) {
            return None;
        }
        let before = words.until(at).from(1);
        let skipped =
            ["a", "an", "the", "run", "runs", "of", "schedule", "for", "with", "job", "that", "which", "new", "up"];
        let kept: Vec<&str> =
            (0..before.len()).filter(|n| !skipped.contains(&before.at(*n))).map(|n| before.raw(n)).collect();
        let rest = skip_links(words.from(at + length));
        let input = format!("{} {}", rest.source(), kept.join(" ")).trim().to_owned();
        Some(AddressedRequest { agent, input: AgentInput::Text(input) })
    }

    /// "set up a schedule for codex to check the links every hour".
    fn scheduled_with_noun(&self) -> Option<AddressedRequest<'a>> {
        let words = self.words;
        let is_new = matches!(words.at(0), "set" | "create" | "make" | "add" | "new" | "start" | "give");
        let noun = words.position(&["schedule", "cron", "cronjob"]).filter(|at| *at <= 4 && is_new)?;
        let (agent, at, length) = mentioned_agent(self.agents, words).filter(|(_, at, _)| *at > noun)?;
        let rest = skip_links(words.from(at + length));
        let kept: Vec<&str> = (noun + 1..at)
            .filter(|n| {
                !["for", "with", "that", "which", "runs", "to", "run", "where", "lets", "makes", "the"]
                    .contains(&words.at(*n))
            })
            .map(|n| words.raw(n))
            .collect();
        let input = format!("{} {}", rest.source(), kept.join(" ")).trim().to_owned();
        Some(AddressedRequest { agent: Addressee::Known(agent), input: AgentInput::Text(input) })
    }

    fn text_or_missing(&self, from: usize) -> AgentInput {
        match input_of(&self.words.from(from).without_courtesy()) {
            AgentInput::Previous(text) if text.is_empty() => AgentInput::NameOnly,
            input => input,
        }
    }
}

impl<'a> Addressee<'a> {
    fn filter_well_known(self) -> Option<Self> {
        match &self {
            Self::Unknown(name) if is_well_known(name) => Some(self),
            _ => None,
        }
    }
}

fn is_well_known(name: &str) -> bool {
    KNOWN_AGENT_NAMES.contains(&name)
}

fn is_only_fillers(words: &Words<'_>) -> bool {
    words.plain().iter().all(|word| FILLERS.contains(word) || word.is_empty())
}

/// Skips the words between the name of an agent and its input.
fn skip_links<'t>(words: Words<'t>) -> Words<'t> {
    let mut at = 0;
    let works: [&[&str]; 6] = [
        &["to", "work", "on"],
        &["working", "on"],
        &["started", "on"],
        &["going", "on"],
        &["to", "start", "on"],
        &["loose", "on"],
    ];
    if let Some(phrase) = works.iter().find(|phrase| words.plain().starts_with(phrase)) {
        at = phrase.len();
    }
    while LINKS.contains(&words.at(at)) || (words.at(at).is_empty() && at < words.len()) {
        // "at 6am" belongs to the time, and so does "for tomorrow".
        if matches!(words.at(at), "at" | "for" | "on" | "into") && is_time_word(words.at(at + 1)) {
            break;
        }
        if matches!(words.at(at), "at" | "into") {
            break;
        }
        at += 1;
    }
    words.from(at)
}

/// Returns true for a word that begins a time after a preposition.
fn is_time_word(word: &str) -> bool {
    let names = ["tomorrow", "today", "tonight", "noon", "midnight", "next", "every", "weekdays", "monday", "tuesday"];
    let days = ["wednesday", "thursday", "friday", "saturday", "sunday"];
    names.contains(&word) || days.contains(&word) || word.starts_with(|c: char| c.is_ascii_digit())
}

/// Returns the input of an agent. Requests such as "do it" mean the previous one.
fn input_of(words: &Words<'_>) -> AgentInput {
    let words = words.clone().without_courtesy();
    let plain = words.plain();
    let core: Vec<&str> = plain.iter().copied().filter(|word| !FILLERS.contains(word) && !word.is_empty()).collect();
    let core = core.join(" ");
    match SAME_REQUESTS.contains(&core.as_str()) {
        true => AgentInput::Previous(if core.is_empty() { String::new() } else { words.source().to_owned() }),
        false => AgentInput::Text(words.source().to_owned()),
    }
}

#[cfg(test)]
#[path = "addressed_tests.rs"]
mod tests;
