//! Runs and lists agents: "Run the tidy agent on the changelog", "have codex look at it", "which agents are there?".
//! Requests with a time are passed to [`super::schedules`].

use serde_json::{Value, json};
use tools::{ToolArguments, ToolKind};

use super::timing::{self, InputTiming};
use super::{CallResult, OfflinePolicy, PendingCall, schedules};
use crate::{TurnRequest, wording};

const VERBS: [&str; 7] = ["run", "start", "launch", "execute", "have", "ask", "tell"];
const COURTESY: [&str; 6] = ["please", "can", "could", "would", "you", "now"];
const ARTICLES: [&str; 3] = ["the", "my", "our"];
/// Words between the name of an agent and its input.
const LINKS: [&str; 7] = ["agent", "on", "to", "with", "for", "and", "about"];

/// Answers a message about agents or their schedules: a list, a new schedule if the input has a time, or the start of
/// an agent. A time before the verb is moved to the end of the input. If it does not lead to a schedule, it is dropped.
/// A refusal of a tool becomes the reply, but not one of the list that is read before a start.
///
/// Returns `None` if the message neither asks for a list nor starts with one of [`VERBS`], or if it names no known
/// agent. Also returns `None` if the user does not have the tool to list or to run agents, if the agents cannot be
/// listed before a start, or if a call is held. A verb alone already calls the tool that lists agents. Fails with the
/// next tool call if its result is not known yet.
pub(super) fn answer(policy: &mut OfflinePolicy<'_>) -> Result<Option<String>, PendingCall> {
    let Some(list) = policy.spec(ToolKind::ListAgents) else { return Ok(None) };
    let message = policy.prompt.request.message.as_str();
    let words: Vec<&str> = message.split_whitespace().collect();
    let asks_list = asks_for_list(&words);
    let start = words.iter().position(|word| !COURTESY.contains(&plain_word(word).as_str())).unwrap_or_default();
    let words = &words[start..];
    if let Some(reply) = schedules::answer(policy, words)? {
        return Ok(Some(reply));
    }
    // In "Every Friday at 5pm, have codex …" the leading time belongs to the input.
    let (leading, words) = match leading_time(policy.prompt.request, words) {
        Some(length) => words.split_at(length),
        None => (&words[..0], words),
    };
    if !asks_list && !words.first().is_some_and(|verb| VERBS.contains(&plain_word(verb).as_str())) {
        return Ok(None);
    }
    let agents = match policy.call(list, ToolArguments::new())? {
        CallResult::Done(data) => data["agents"].as_array().map(Vec::as_slice).unwrap_or_default(),
        CallResult::Refused(_, message) if asks_list => return Ok(Some(message.to_owned())),
        CallResult::Refused(..) | CallResult::Held => return Ok(None),
    };
    if asks_list {
        return Ok(Some(wording::agents(agents)));
    }
    let Some((agent, input)) = find_agent(agents, &words[1..]) else { return Ok(None) };
    let input_with_time = format!("{input} {}", leading.join(" "));
    if let Some(reply) = schedules::plan(policy, agent, input_with_time.trim())? {
        return Ok(Some(reply));
    }
    let Some(run) = policy.spec(ToolKind::RunAgent) else { return Ok(None) };
    let arguments = json!({"agent": agent["id"], "input": input});
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    Ok(match policy.call(run, arguments)? {
        CallResult::Done(data) => {
            let reports_back = data["reports_back"] == true;
            Some(wording::agent_started(agent["name"].as_str().unwrap_or_default(), reports_back))
        }
        CallResult::Refused(_, message) => Some(message.to_owned()),
        CallResult::Held => None,
    })
}

/// A run of an agent that a message asks for.
pub(crate) struct RequestedRun {
    /// The message contains a time.
    pub(crate) is_scheduled: bool,
    /// The times of the schedule, as arguments of the tool.
    pub(crate) times: ToolArguments,
}

/// Returns the run of this agent that the message asks for. The agent is given by id or name. Returns `None` if the
/// message does not begin with a verb for agents and this agent, after courtesy and a time.
pub(crate) fn requested_run(request: &TurnRequest, agent: &str) -> Option<RequestedRun> {
    let words: Vec<&str> = request.message.split_whitespace().collect();
    let start = words.iter().position(|word| !COURTESY.contains(&plain_word(word).as_str())).unwrap_or_default();
    let words = &words[start..];
    let (leading, words) = match leading_time(request, words) {
        Some(length) => words.split_at(length),
        None => (&words[..0], words),
    };
    words.first().filter(|verb| VERBS.contains(&plain_word(verb).as_str()))?;
    let known = [json!({"id": agent, "name": agent})];
    let (_, input) = find_agent(&known, &words[1..])?;
    let input = format!("{input} {}", leading.join(" "));
    let expressions = request.parser.find_expressions(input.trim(), &request.now);
    match timing::find_timing(input.trim(), &expressions, &request.now) {
        InputTiming::Now => Some(RequestedRun { is_scheduled: false, times: ToolArguments::new() }),
        InputTiming::Planned(plan) => Some(RequestedRun { is_scheduled: true, times: plan.arguments }),
        InputTiming::Unsupported => None,
    }
}

/// Returns the number of words before the first verb for agents, if they are a time: "Every Friday at 5pm, have codex
/// …". There must be 1 to 8 such words, and the time must be all of them. Returns `None` otherwise.
fn leading_time(request: &TurnRequest, words: &[&str]) -> Option<usize> {
    let at =
        words.iter().position(|word| VERBS.contains(&plain_word(word).as_str())).filter(|at| (1..=8).contains(at))?;
    let text = words[..at].join(" ");
    let found = request.parser.find_expressions(&text, &request.now);
    let is_all = |found: &understand::TimeExpression| {
        found.span.start == 0 && !text[found.span.end..].contains(char::is_alphanumeric)
    };
    found.first().filter(|first| is_all(first)).map(|_| at)
}

/// Returns `true` if at most 8 words contain "agents" and start with "list", "show", "what" or "which".
fn asks_for_list(words: &[&str]) -> bool {
    let words: Vec<_> = words.iter().map(|word| plain_word(word)).collect();
    let about = words.iter().any(|word| word == "agents");
    about
        && words.len() <= 8
        && words.first().is_some_and(|first| ["list", "show", "what", "which"].contains(&&**first))
}

/// Returns the agent with the longest name or id at the start of `words`, and the input after it. Hyphens in an id may
/// be spaces. Case and punctuation around words are ignored. Skips an article before the name, and all [`LINKS`] after
/// it. The first of several equally long names wins. Returns `None` if no agent matches.
fn find_agent<'a>(agents: &'a [Value], words: &[&str]) -> Option<(&'a Value, String)> {
    let words = match words {
        [first, rest @ ..] if ARTICLES.contains(&plain_word(first).as_str()) => rest,
        words => words,
    };
    let names = |agent: &Value| {
        let text = |key: &str| agent[key].as_str().unwrap_or_default().to_lowercase();
        [text("name"), text("id"), text("id").replace('-', " ")]
    };
    let mut best: Option<(&Value, usize)> = None;
    for agent in agents {
        for name in names(agent) {
            let parts: Vec<_> = name.split_whitespace().collect();
            let is_prefix =
                parts.len() <= words.len() && parts.iter().zip(words).all(|(part, word)| *part == plain_word(word));
            if is_prefix && !parts.is_empty() && best.is_none_or(|(_, length)| parts.len() > length) {
                best = Some((agent, parts.len()));
            }
        }
    }
    let (agent, length) = best?;
    let mut rest = &words[length..];
    while let [first, more @ ..] = rest
        && LINKS.contains(&plain_word(first).as_str())
    {
        rest = more;
    }
    Some((agent, rest.join(" ")))
}

/// Converts a word to lower case and removes the punctuation around it.
pub(super) fn plain_word(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_found_by_name_with_their_input() {
        let agents = [json!({"id": "tidy", "name": "Tidy"}), json!({"id": "code-review", "name": "Reviewer"})];
        let find = |text: &str| {
            let words: Vec<_> = text.split_whitespace().collect();
            find_agent(&agents, &words[1..]).map(|(agent, input)| (agent["id"].as_str().unwrap().to_owned(), input))
        };
        let found = |id: &str, input: &str| Some((id.to_owned(), input.to_owned()));
        assert_eq!(find("run the tidy agent on the Changelog"), found("tidy", "the Changelog"));
        assert_eq!(find("have Tidy sort my notes."), found("tidy", "sort my notes."));
        assert_eq!(find("ask the code review agent to look at main.rs"), found("code-review", "look at main.rs"));
        assert_eq!(find("tell reviewer: be kind"), found("code-review", "be kind"));
        assert_eq!(find("start tidy"), found("tidy", ""));
        assert_eq!(find("run five miles"), None);
    }

    #[test]
    fn questions_about_agents_are_recognized() {
        let asks = |text: &str| asks_for_list(&text.split_whitespace().collect::<Vec<_>>());
        assert!(asks("Which agents are there?") && asks("list my agents") && asks("what agents can you run"));
        assert!(!asks("add a task to call the agents") && !asks("show my tasks"));
    }
}
