//! Questions about runs of agents, and commands that stop or repeat one: "what's running?", "what did codex say?",
//! "stop it", "run it again".

use serde_json::{Value, json};
use tools::{ToolArguments, ToolKind};

use super::addressed::mentioned_agent;
use super::focus::Focus;
use super::words::Words;
use super::{CallResult, OfflinePolicy, PendingCall, start_run};
use crate::wording;

/// The number of runs that are read to find one.
const SEARCHED_RUNS: i64 = 20;
/// The number of runs that one message can stop.
const MAX_STOPPED: usize = 6;
const STOP_VERBS: [&str; 10] =
    ["stop", "cancel", "kill", "abort", "terminate", "end", "halt", "interrupt", "quit", "shutdown"];
const BUSY: [&str; 7] = ["running", "busy", "active", "working", "progress", "work", "executing"];
/// Words that only refer to a run.
const RUN_WORDS: [&str; 24] = [
    "the",
    "a",
    "that",
    "this",
    "it",
    "its",
    "run",
    "runs",
    "agent",
    "agents",
    "of",
    "from",
    "job",
    "last",
    "latest",
    "current",
    "please",
    "pls",
    "now",
    "right",
    "away",
    "my",
    "execution",
    "still",
];

/// The run that a message is about.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::offline) enum RunReference {
    /// The runs of an agent, by its id.
    Agent(String),
    /// "it": the run that was mentioned last.
    Mentioned,
    /// The last run, if none was mentioned.
    Latest,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::offline) enum RunTopic {
    /// "What's running?"
    Active,
    /// "Is codex done?"
    State,
    /// A question about the answer of the agent.
    Result,
    Stop,
    Again,
}

/// Answers a message about runs. Returns `None` if it is not about runs, or if it refers to "it" and the conversation
/// mentioned something else last.
pub(in crate::offline) fn answer(
    policy: &mut OfflinePolicy<'_>,
    agents: &[Value],
    words: &Words<'_>,
    focus: &Focus,
) -> Result<Option<String>, PendingCall> {
    let Some((topic, mut reference)) = find_topic(agents, words) else { return Ok(None) };
    let Some(list) = policy.spec(ToolKind::ListExecutions) else { return Ok(None) };
    if reference == RunReference::Latest && focus.execution.is_some() {
        reference = RunReference::Mentioned;
    }
    let is_reference_missing = match reference {
        RunReference::Mentioned => focus.execution.is_none(),
        RunReference::Latest => focus.is_task && topic != RunTopic::Result,
        _ => false,
    };
    // "Cancel" may refuse a question.
    let is_refusal = policy.prompt.context.pending.is_some() && !matches!(reference, RunReference::Agent(_));
    if is_reference_missing || is_refusal {
        return Ok(None);
    }
    let mut arguments = ToolArguments::from_iter([("limit".to_owned(), json!(SEARCHED_RUNS))]);
    if let RunReference::Agent(id) = &reference {
        arguments.insert("agent".to_owned(), json!(id));
    }
    if matches!(topic, RunTopic::Active | RunTopic::Stop) && reference != RunReference::Mentioned {
        arguments.insert("active".to_owned(), json!(true));
    }
    let runs = match policy.call(list, arguments)? {
        CallResult::Done(data) => data["executions"].as_array().map(Vec::as_slice).unwrap_or_default(),
        CallResult::Refused(_, message) => return Ok(Some(message.to_owned())),
        CallResult::Held => return Ok(None),
    };
    let found: Vec<&Value> = match &reference {
        RunReference::Mentioned => {
            let id = focus.execution.as_deref();
            runs.iter().filter(|run| run["execution_id"].as_str() == id).collect()
        }
        RunReference::Latest if topic != RunTopic::Stop => runs.first().into_iter().collect(),
        _ => runs.iter().collect(),
    };
    let agent = match &reference {
        RunReference::Agent(id) => Some(id.as_str()),
        _ => None,
    };
    let now = &policy.prompt.request.now;
    match (topic, found.as_slice()) {
        (RunTopic::Active, found) => Ok(Some(wording::active_runs(found, agent, now))),
        (RunTopic::State, []) | (RunTopic::Result, []) => Ok(Some(wording::no_run(agent))),
        (RunTopic::State, [run, ..]) => Ok(Some(wording::run_state(run, now))),
        (RunTopic::Result, [run, ..]) => Ok(Some(wording::run_result(run, now))),
        (RunTopic::Again, []) => Ok(Some(wording::no_run(agent))),
        (RunTopic::Again, [run, ..]) => repeat(policy, run),
        (RunTopic::Stop, found) => stop(policy, found, &reference, agent),
    }
}

fn repeat(policy: &mut OfflinePolicy<'_>, run: &Value) -> Result<Option<String>, PendingCall> {
    let input = run["input"].as_str().unwrap_or_default();
    // The stored input is redacted and shortened.
    if input.contains("[redacted]") || input.chars().count() >= 1000 {
        return Ok(Some(wording::cannot_repeat()));
    }
    start_run(policy, &json!({"id": run["agent_id"], "name": run["agent"]}), input)
}

fn stop(
    policy: &mut OfflinePolicy<'_>,
    found: &[&Value],
    reference: &RunReference,
    agent: Option<&str>,
) -> Result<Option<String>, PendingCall> {
    let Some(cancel) = policy.spec(ToolKind::CancelExecution) else { return Ok(None) };
    let is_active = |run: &&&Value| run["status"].is_null();
    let active: Vec<&Value> = found.iter().filter(is_active).copied().collect();
    match (active.as_slice(), found.first()) {
        ([], Some(run)) => return Ok(Some(wording::run_already_ended(run))),
        ([], None) => return Ok(Some(wording::active_runs(&[], agent, &policy.prompt.request.now))),
        ([_, _, ..], _) if *reference == RunReference::Latest => return Ok(Some(wording::which_run(&active))),
        _ => {}
    }
    let mut lines = Vec::new();
    for run in active.iter().take(MAX_STOPPED) {
        let arguments = ToolArguments::from_iter([("execution_id".to_owned(), run["execution_id"].clone())]);
        lines.push(match policy.call(cancel, arguments)? {
            CallResult::Done(_) => wording::run_stopped(run),
            CallResult::Refused(_, message) => message.to_owned(),
            CallResult::Held => continue,
        });
    }
    if active.len() > MAX_STOPPED {
        lines.push(wording::more_runs(active.len() - MAX_STOPPED));
    }
    Ok(Some(lines.join("\n")).filter(|text| !text.is_empty()))
}

/// Returns the topic of a message about runs and the run that it refers to. `words` are the message without courtesy.
pub(in crate::offline) fn find_topic(agents: &[Value], words: &Words<'_>) -> Option<(RunTopic, RunReference)> {
    let mention = mentioned_agent(agents, words).or_else(|| part_of_agent(agents, words));
    let mut rest: Vec<&str> = words.plain().into_iter().filter(|word| !word.is_empty()).collect();
    if let Some((_, at, length)) = mention {
        let plain = words.plain();
        rest = (0..plain.len()).filter(|n| *n < at || *n >= at + length).map(|n| plain[n]).collect();
        rest.retain(|word| !word.is_empty());
    }
    let agent = mention.map(|(agent, ..)| RunReference::Agent(agent["id"].as_str().unwrap_or_default().to_owned()));
    if rest.len() > 12 || rest.is_empty() {
        return None;
    }
    let finder = TopicFinder { rest: &rest, agent };
    finder
        .again()
        .or_else(|| finder.stop())
        .or_else(|| finder.result())
        .or_else(|| finder.state())
        .or_else(|| finder.active())
}

/// Returns the agent whose id begins with a word of at least three letters, if there is only one.
fn part_of_agent<'a>(agents: &'a [Value], words: &Words<'_>) -> Option<(&'a Value, usize, usize)> {
    (0..words.len()).find_map(|at| {
        let word = words.at(at);
        let is_part = |agent: &&Value| {
            let id = agent["id"].as_str().unwrap_or_default();
            word.len() >= 3 && id.strip_prefix(word).is_some_and(|rest| rest.starts_with('-'))
        };
        let mut found = agents.iter().filter(is_part);
        match (found.next(), found.next()) {
            (Some(agent), None) => Some((agent, at, 1)),
            _ => None,
        }
    })
}

/// Finds the topic in the words of a message without the name of the agent.
struct TopicFinder<'w> {
    rest: &'w [&'w str],
    agent: Option<RunReference>,
}

impl TopicFinder<'_> {
    fn first(&self) -> &str {
        self.rest.first().copied().unwrap_or_default()
    }

    fn has(&self, any: &[&str]) -> bool {
        self.rest.iter().any(|word| any.contains(word))
    }

    fn starts(&self, any: &[&[&str]]) -> bool {
        any.iter().any(|phrase| self.rest.starts_with(phrase))
    }

    /// Returns true if all words after `skip` only refer to a run or belong to `more`.
    fn is_only(&self, skip: usize, more: &[&str]) -> bool {
        self.rest[skip..].iter().all(|word| RUN_WORDS.contains(word) || more.contains(word))
    }

    /// Returns the run: that of the agent, the mentioned one for a pronoun, or the latest.
    fn reference(&self) -> RunReference {
        self.agent.clone().unwrap_or_else(|| {
            match self.has(&["it", "that", "this", "its", "they", "he", "she", "them"]) {
                true => RunReference::Mentioned,
                false => RunReference::Latest,
            }
        })
    }

    fn again(&self) -> Option<(RunTopic, RunReference)> {
        let is_repeat = matches!(self.first(), "rerun" | "redo" | "retry" | "repeat");
        let ends: [&[&str]; 4] = [&["again"], &["once", "more"], &["one", "more", "time"], &["another", "time"]];
        let end = ends.iter().find(|end| self.rest.ends_with(end)).map_or(0, |end| end.len());
        let inner = &self.rest[..self.rest.len() - end];
        let verbs = ["run", "start", "do", "try", "launch", "execute", "trigger", "have", "let", "go", "and"];
        let verb = usize::from(inner.first().is_some_and(|word| verbs.contains(word) || is_repeat));
        let is_only_run =
            inner[verb..].iter().all(|word| RUN_WORDS.contains(word) || matches!(*word, "same" | "thing"));
        if (end == 0 && !is_repeat) || !is_only_run {
            return None;
        }
        let reference = self.agent.clone().unwrap_or(RunReference::Mentioned);
        Some((RunTopic::Again, reference))
    }

    fn stop(&self) -> Option<(RunTopic, RunReference)> {
        let asks = matches!(self.first(), "tell" | "ask" | "make" | "have" | "get" | "let");
        let verb = usize::from(asks);
        let verb = verb + self.rest[verb..].iter().take_while(|word| matches!(**word, "to" | "it")).count();
        if !STOP_VERBS.contains(self.rest.get(verb)?) || (verb > 0 && !asks) {
            return None;
        }
        let after = verb + 1;
        let is_all = self.rest[after..].iter().any(|word| matches!(*word, "all" | "everything" | "every" | "both"));
        let more = [
            "all",
            "everything",
            "every",
            "both",
            "them",
            "running",
            "working",
            "doing",
            "what",
            "is",
            "s",
            "at",
            "once",
            "immediately",
            "whatever",
            "whats",
            "on",
        ];
        if !self.is_only(after, &more) {
            return None;
        }
        let has_noun = self.has(&["run", "runs", "agent", "agents", "execution"]);
        let reference = match &self.agent {
            Some(agent) => agent.clone(),
            None if is_all && (has_noun || self.has(&["running", "everything"])) => RunReference::All,
            None if has_noun && !self.has(&["that", "this", "it"]) => RunReference::Latest,
            None => RunReference::Mentioned,
        };
        Some((RunTopic::Stop, reference))
    }

    fn result(&self) -> Option<(RunTopic, RunReference)> {
        let nouns =
            ["result", "results", "output", "outputs", "answer", "reply", "response", "outcome", "verdict", "findings"];
        let says = [
            "say",
            "find",
            "answer",
            "come",
            "do",
            "produce",
            "write",
            "think",
            "reply",
            "respond",
            "return",
            "output",
            "suggest",
            "conclude",
            "report",
            "tell",
            "discover",
            "print",
            "get",
            "make",
            "recommend",
            "propose",
            "said",
            "found",
            "wrote",
            "says",
            "reported",
        ];
        let speaks = matches!(
            self.first(),
            "what" | "whats" | "which" | "tell" | "show" | "so" | "how" | "give" | "any" | "read"
        );
        let asks_what = self.starts(&[
            &["what", "did"],
            &["what", "does"],
            &["what", "has"],
            &["what", "was"],
            &["what", "is"],
            &["what"],
            &["whats"],
            &["show"],
            &["tell", "me", "what"],
            &["give", "me"],
            &["read"],
            &["any"],
        ]);
        let is_named = self.agent.is_some();
        let has_pronoun = self.has(&["it", "its", "that", "he", "she", "they"]);
        // A question about the answer of the agent.
        if speaks
            && self.rest.starts_with(&["what", "did"])
                | self.rest.starts_with(&["what", "does"])
                | self.rest.starts_with(&["tell", "me", "what"])
            && (is_named || has_pronoun)
        {
            let tail = [
                "up", "with", "about", "out", "there", "what", "did", "does", "me", "tell", "back", "of", "do", "he",
                "she", "they", "i", "for", "us",
            ];
            let is_speech = self.rest.iter().any(|word| says.contains(word));
            // A subject after "about" belongs to the question.
            let about = self.rest.iter().position(|word| *word == "about").unwrap_or(self.rest.len());
            let known = self.rest[..about]
                .iter()
                .all(|word| RUN_WORDS.contains(word) || tail.contains(word) || says.contains(word));
            if is_speech && known {
                return Some((RunTopic::Result, self.reference()));
            }
        }
        // "What was the result?"
        if asks_what && self.has(&nouns) {
            let tail = [
                "what", "whats", "was", "is", "were", "are", "show", "me", "tell", "give", "read", "any", "with", "s",
                "there", "out", "yet", "did", "get", "we", "i", "see", "can",
            ];
            if self.rest.iter().all(|word| RUN_WORDS.contains(word) || tail.contains(word) || nouns.contains(word)) {
                return Some((RunTopic::Result, self.reference()));
            }
        }
        // "Did it work?", "How did codex do?", "Any news from codex?"
        let works = ["work", "succeed", "fail", "go", "manage", "help", "crash"];
        let is_success = self.first() == "did" && self.has(&works) && self.rest.len() <= 6;
        let is_course = self.starts(&[&["how", "did"], &["how", "has"], &["hows"], &["how", "is"]])
            && self.has(&["go", "do", "going", "doing", "gone", "coming", "getting"]);
        let is_news = (self.first() == "any" || self.first() == "anything")
            && self.has(&["news", "word", "update", "updates", "from", "luck"]);
        let happened = self.starts(&[&["what", "happened"], &["what", "came"], &["what", "became"]]);
        let tail = [
            "did",
            "how",
            "has",
            "hows",
            "is",
            "go",
            "do",
            "going",
            "doing",
            "gone",
            "coming",
            "along",
            "getting",
            "on",
            "any",
            "anything",
            "news",
            "word",
            "update",
            "updates",
            "luck",
            "yet",
            "with",
            "to",
            "what",
            "happened",
            "came",
            "out",
            "became",
            "well",
            "ok",
            "there",
            "everything",
            "all",
        ];
        let is_short =
            self.rest.iter().all(|word| RUN_WORDS.contains(word) || tail.contains(word) || works.contains(word));
        if (is_success || is_course || is_news || happened)
            && is_short
            && (is_named || has_pronoun || self.has(&["run"]))
        {
            return Some((RunTopic::Result, self.reference()));
        }
        None
    }

    fn state(&self) -> Option<(RunTopic, RunReference)> {
        let ends = [
            "done",
            "finished",
            "ready",
            "complete",
            "completed",
            "finish",
            "end",
            "ended",
            "over",
            "stopped",
            "through",
        ];
        let tail = [
            "is",
            "has",
            "did",
            "are",
            "yet",
            "already",
            "there",
            "at",
            "in",
            "doing",
            "with",
            "been",
            "hasnt",
            "isnt",
            "not",
            "far",
            "how",
            "along",
            "now",
            "moment",
            "going",
            "something",
            "and",
            "so",
            "does",
            "status",
            "state",
            "what",
            "whats",
            "to",
            "up",
            "on",
            "currently",
            "was",
            "busy",
        ];
        let is_question = matches!(self.first(), "is" | "has" | "did" | "isnt" | "hasnt" | "how" | "what" | "whats");
        let about_it = self.agent.is_some() || self.has(&["it", "that", "run"]);
        let is_known = self
            .rest
            .iter()
            .all(|word| RUN_WORDS.contains(word) || tail.contains(word) || ends.contains(word) || BUSY.contains(word));
        if !is_question || !about_it || !is_known {
            return None;
        }
        let asks_state = self.has(&ends) || self.has(&BUSY) || self.has(&["status", "state", "doing", "far", "up"]);
        // "What is running?" names no run.
        let is_all = self.agent.is_none()
            && matches!(self.first(), "what" | "whats")
            && !self.has(&["it", "that", "status", "state"]);
        (asks_state && !is_all).then(|| (RunTopic::State, self.reference()))
    }

    fn active(&self) -> Option<(RunTopic, RunReference)> {
        if self.agent.is_some() {
            return None;
        }
        let lists = self.starts(&[&["show"], &["list"], &["see"], &["show", "me"]])
            && self.has(&["runs", "running"])
            && self.has(&["runs", "agents"]);
        let asks = matches!(
            self.first(),
            "what"
                | "whats"
                | "which"
                | "who"
                | "whos"
                | "is"
                | "are"
                | "anything"
                | "any"
                | "anybody"
                | "something"
                | "nothing"
                | "how"
        );
        let is_busy = self.has(&BUSY) || self.rest.windows(2).any(|pair| pair == ["going", "on"]);
        let tail = [
            "what",
            "whats",
            "which",
            "who",
            "whos",
            "is",
            "are",
            "anything",
            "any",
            "something",
            "anyone",
            "anybody",
            "nothing",
            "there",
            "still",
            "currently",
            "at",
            "in",
            "moment",
            "going",
            "on",
            "show",
            "me",
            "list",
            "see",
            "how",
            "many",
            "else",
            "doing",
            "all",
            "and",
            "background",
            "just",
            "today",
            "of",
            "them",
            "ones",
            "one",
            "free",
            "idle",
            "or",
            "queue",
            "waiting",
            "queued",
            "s",
            "agent",
        ];
        let is_known =
            self.rest.iter().all(|word| RUN_WORDS.contains(word) || tail.contains(word) || BUSY.contains(word));
        // "Which tasks are active?" has another word.
        let is_waiting = asks && self.has(&["queue", "queued", "waiting"]);
        ((lists || (asks && (is_busy || is_waiting))) && is_known).then_some((RunTopic::Active, RunReference::All))
    }
}

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
