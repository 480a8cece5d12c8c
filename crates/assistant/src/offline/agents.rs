//! "Run the tidy agent on the changelog", "have codex look at it", "which agents are there?", and with a time in it what
//! [`super::schedules`] makes of it.

use serde_json::{Value, json};
use tools::{Arguments, Tool};

use super::{Ask, Policy, Reply, schedules};
use crate::wording;

const VERBS: [&str; 7] = ["run", "start", "launch", "execute", "have", "ask", "tell"];
const COURTESY: [&str; 6] = ["please", "can", "could", "would", "you", "now"];
const ARTICLES: [&str; 3] = ["the", "my", "our"];
/// What stands between an agent and what it shall do.
const LINKS: [&str; 7] = ["agent", "on", "to", "with", "for", "and", "about"];

/// What is said about other agents, if anything is: nothing where none is meant.
pub(super) fn answer(policy: &mut Policy<'_>) -> Result<Option<String>, Ask> {
    let Some(list) = policy.spec(Tool::ListAgents) else { return Ok(None) };
    let message = policy.prompt.request.message.as_str();
    let words: Vec<&str> = message.split_whitespace().collect();
    let asks = asks_for_list(&words);
    let begun = words.iter().position(|word| !COURTESY.contains(&plain(word).as_str())).unwrap_or_default();
    let words = &words[begun..];
    if let Some(said) = schedules::answer(policy, words)? {
        return Ok(Some(said));
    }
    // "Every Friday at 5pm, have codex …": what comes first belongs to what shall be done.
    let (first, words) = match leading_time(policy, words) {
        Some(length) => words.split_at(length),
        None => (&words[..0], words),
    };
    if !asks && !words.first().is_some_and(|verb| VERBS.contains(&plain(verb).as_str())) {
        return Ok(None);
    }
    let agents = match policy.call(list, Arguments::new())? {
        Reply::Done(data) => data["agents"].as_array().map(Vec::as_slice).unwrap_or_default(),
        Reply::Refused(_, message) if asks => return Ok(Some(message.to_owned())),
        Reply::Refused(..) | Reply::Held => return Ok(None),
    };
    if asks {
        return Ok(Some(wording::agents(agents)));
    }
    let Some((agent, input)) = meant(agents, &words[1..]) else { return Ok(None) };
    let whole = format!("{input} {}", first.join(" "));
    if let Some(said) = schedules::plan(policy, agent, whole.trim())? {
        return Ok(Some(said));
    }
    let Some(run) = policy.spec(Tool::RunAgent) else { return Ok(None) };
    let arguments = json!({"agent": agent["id"], "input": input});
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    Ok(match policy.call(run, arguments)? {
        Reply::Done(data) => {
            let reports_back = data["reports_back"] == true;
            Some(wording::agent_started(agent["name"].as_str().unwrap_or_default(), reports_back))
        }
        Reply::Refused(_, message) => Some(message.to_owned()),
        Reply::Held => None,
    })
}

/// How many words a time takes up that the sentence begins with, where an agent's verb follows it.
fn leading_time(policy: &Policy<'_>, words: &[&str]) -> Option<usize> {
    let at = words.iter().position(|word| VERBS.contains(&plain(word).as_str())).filter(|at| (1..=8).contains(at))?;
    let request = policy.prompt.request;
    let text = words[..at].join(" ");
    let found = request.reader.expressions(&text, &request.now);
    let is_all = |found: &understand::Expression| {
        found.span.start == 0 && !text[found.span.end..].contains(char::is_alphanumeric)
    };
    found.first().filter(|first| is_all(first)).map(|_| at)
}

fn asks_for_list(words: &[&str]) -> bool {
    let words: Vec<_> = words.iter().map(|word| plain(word)).collect();
    let about = words.iter().any(|word| word == "agents");
    about
        && words.len() <= 8
        && words.first().is_some_and(|first| ["list", "show", "what", "which"].contains(&&**first))
}

/// The agent whose name comes first, and what is said after it.
fn meant<'a>(agents: &'a [Value], words: &[&str]) -> Option<(&'a Value, String)> {
    let words = match words {
        [first, rest @ ..] if ARTICLES.contains(&plain(first).as_str()) => rest,
        words => words,
    };
    let names = |agent: &Value| {
        let of = |key: &str| agent[key].as_str().unwrap_or_default().to_lowercase();
        [of("name"), of("id"), of("id").replace('-', " ")]
    };
    let mut best: Option<(&Value, usize)> = None;
    for agent in agents {
        for name in names(agent) {
            let parts: Vec<_> = name.split_whitespace().collect();
            let begins = parts.len() <= words.len() && parts.iter().zip(words).all(|(part, word)| *part == plain(word));
            if begins && !parts.is_empty() && best.is_none_or(|(_, length)| parts.len() > length) {
                best = Some((agent, parts.len()));
            }
        }
    }
    let (agent, length) = best?;
    let mut rest = &words[length..];
    while let [first, more @ ..] = rest
        && LINKS.contains(&plain(first).as_str())
    {
        rest = more;
    }
    Some((agent, rest.join(" ")))
}

pub(super) fn plain(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_meant_and_what_for() {
        let agents = [json!({"id": "tidy", "name": "Tidy"}), json!({"id": "code-review", "name": "Reviewer"})];
        let meant = |text: &str| {
            let words: Vec<_> = text.split_whitespace().collect();
            meant(&agents, &words[1..]).map(|(agent, input)| (agent["id"].as_str().unwrap().to_owned(), input))
        };
        let found = |id: &str, input: &str| Some((id.to_owned(), input.to_owned()));
        assert_eq!(meant("run the tidy agent on the Changelog"), found("tidy", "the Changelog"));
        assert_eq!(meant("have Tidy sort my notes."), found("tidy", "sort my notes."));
        assert_eq!(meant("ask the code review agent to look at main.rs"), found("code-review", "look at main.rs"));
        assert_eq!(meant("tell reviewer: be kind"), found("code-review", "be kind"));
        assert_eq!(meant("start tidy"), found("tidy", ""));
        assert_eq!(meant("run five miles"), None);
    }

    #[test]
    fn questions_about_agents() {
        let asks = |text: &str| asks_for_list(&text.split_whitespace().collect::<Vec<_>>());
        assert!(asks("Which agents are there?") && asks("list my agents") && asks("what agents can you run"));
        assert!(!asks("add a task to call the agents") && !asks("show my tasks"));
    }
}
