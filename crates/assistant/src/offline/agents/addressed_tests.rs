//! Tests of the ways to address an agent.

use serde_json::json;

use super::*;

fn agents() -> Vec<Value> {
    vec![
        json!({"id": "codex", "name": "Codex"}),
        json!({"id": "claude", "name": "claude"}),
        json!({"id": "code-review", "name": "Reviewer"}),
        json!({"id": "tidy", "name": "Tidy"}),
    ]
}

/// Returns the agent and the input, in short form.
fn find(text: &str) -> Option<(String, String)> {
    let agents = agents();
    let request = find_request(&agents, &Words::new(text).without_courtesy())?;
    let agent = match request.agent {
        Addressee::Known(agent) => agent["id"].as_str().unwrap().to_owned(),
        Addressee::Unknown(name) => format!("no {name}"),
        Addressee::LastMentioned => "it".to_owned(),
    };
    let input = match request.input {
        AgentInput::Text(text) => text,
        AgentInput::Previous(_) => "<previous>".to_owned(),
        AgentInput::NameOnly => "<name>".to_owned(),
        AgentInput::Missing => "<missing>".to_owned(),
    };
    Some((agent, input))
}

#[test]
fn agents_are_addressed_in_many_ways() {
    // TRUST-4
    for (text, agent, input) in [
        ("run the tidy agent on the Changelog", "tidy", "the Changelog"),
        ("have Tidy sort my notes.", "tidy", "sort my notes."),
        ("ask the code review agent to look at main.rs", "code-review", "look at main.rs"),
        ("tell reviewer: be kind", "code-review", "be kind"),
        ("start tidy", "tidy", ""),
        ("can you get codex to write  the Tests?", "codex", "write  the Tests"),
        ("@codex fix the bug", "codex", "fix the bug"),
        ("fix the bug @codex", "codex", "fix the bug"),
        ("codex: fix the bug", "codex", "fix the bug"),
        ("Codex, please fix the bug", "codex", "fix the bug"),
        ("codex, could you fix the bug?", "codex", "fix the bug"),
        ("could codex look at the bug?", "codex", "look at the bug"),
        ("i want codex to fix the bug", "codex", "fix the bug"),
        ("I'd like codex to fix the bug please", "codex", "fix the bug"),
        ("use codex for the release notes", "codex", "the release notes"),
        ("set codex to work on the parser", "codex", "the parser"),
        ("hand the release notes over to codex", "codex", "the release notes"),
        ("give codex the job of fixing the tests", "codex", "fixing the tests"),
        ("run the tests with codex", "codex", "the tests"),
        ("summarise the notes using claude", "claude", "summarise the notes"),
        ("schedule codex to fix the bug every day at 9", "codex", "fix the bug every day at 9"),
        ("schedule codex for tomorrow at 6am to rebuild the docs", "codex", "for tomorrow at 6am to rebuild the docs"),
        ("schedule a daily run of codex", "codex", "daily"),
        ("set up a schedule for codex to check the links every hour", "codex", "check the links every hour"),
        ("ask codex why the page is so slow?", "codex", "why the page is so slow?"),
        ("ask it to add a cache", "it", "add a cache"),
    ] {
        assert_eq!(find(text), Some((agent.to_owned(), input.to_owned())), "{text}");
    }
}

#[test]
fn earlier_requests_are_given_to_another_agent() {
    // TRUST-3
    for (text, agent, input) in [
        ("ok let claude do it then", "claude", "<previous>"),
        ("ask claude to do the same thing", "claude", "<previous>"),
        ("hand this to codex", "codex", "<previous>"),
        ("give the job to codex instead", "codex", "<previous>"),
        ("try it with claude instead", "claude", "<previous>"),
        ("do the same with claude", "claude", "<previous>"),
        ("no, i meant claude", "claude", "<name>"),
        ("claude then", "claude", "<name>"),
        ("what about claude?", "claude", "<name>"),
        ("use claude instead", "claude", "<name>"),
        ("use codex", "codex", "<missing>"),
    ] {
        assert_eq!(find(text), Some((agent.to_owned(), input.to_owned())), "{text}");
    }
}

#[test]
fn unknown_agents_are_recognized() {
    for (text, name) in [
        ("ask mistral to summarise the notes", "mistral"),
        ("get copilot to sort my inbox", "copilot"),
        ("@hal open the door", "hal"),
        ("gemini: draft a letter", "gemini"),
        ("ask hal to open the door", "hal"),
        ("could gemini write it?", "gemini"),
        ("hand this to gemini", "gemini"),
    ] {
        assert_eq!(find(text).map(|(agent, _)| agent), Some(format!("no {name}")), "{text}");
    }
}

#[test]
fn tasks_and_people_are_not_agents() {
    for text in [
        "run five miles",
        "ask Bob to send the report",
        "ask mom to pick up the kids",
        "tell anna about the party",
        "get milk to make pancakes",
        "get bread",
        "have lunch with claude",
        "add a meeting with claude",
        "let the cat out",
        "shopping: milk, eggs",
        "remind me to ask claude about it",
        "make dinner",
        "use the voucher",
        "send the report to Bob",
        "give the plants water",
        "what is codex doing?",
        "let it go",
    ] {
        assert_eq!(find(text), None, "{text}");
    }
}
