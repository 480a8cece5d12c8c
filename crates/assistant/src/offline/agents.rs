//! Runs and lists agents: "get codex to look at it", "@codex …", "which agents are there?", "what did codex say?".
//! Messages about schedules, and requests with a time, are passed to [`super::schedules`].

pub(super) mod addressed;
pub(super) mod focus;
mod runs;
mod vocabulary;
pub(super) mod words;

use model::conversation::{Message, MessageRole};
use serde_json::{Value, json};
use tools::{ToolArguments, ToolKind};
use understand::Intent;

use self::addressed::{AddressedRequest, Addressee, AgentInput, find_request};
use self::focus::Focus;
use self::words::Words;
use super::timing::{self, InputTiming};
use super::{CallResult, OfflinePolicy, PendingCall, schedules, small_talk};
use crate::{TurnRequest, mentions, wording};

/// The number of messages in which "do it" finds its request.
const REQUEST_MESSAGES: usize = 12;
/// The number of messages in which a name alone finds its request.
const NAME_ONLY_MESSAGES: usize = 5;

/// Answers a message about agents, their runs or their schedules. A time in the request leads to a schedule. An agent
/// that the user does not have is named in the reply. A refusal of a tool becomes the reply.
///
/// The reply is empty if a call is held. Returns `None` if the message is not about these. Pasted text is never a command.
/// Fails with the next tool call if its result is not known yet.
pub(super) fn answer(policy: &mut OfflinePolicy<'_>) -> Result<Option<String>, PendingCall> {
    let request = policy.prompt.request;
    let history = &policy.prompt.context.history;
    if words::is_pasted(&request.message) {
        return Ok(None);
    }
    let words = Words::new(&request.message).without_courtesy();
    let asks_list = asks_for_list(&words, history);
    let Some(list) = policy.spec(ToolKind::ListAgents) else { return Ok(without_agents(&words, asks_list)) };
    let focus = Focus::of(history);
    // "Run tidy" means the agent of this name before a schedule.
    let is_schedule_last = schedules::names_a_run(&words);
    if !asks_list
        && !is_schedule_last
        && let Some(reply) = schedules::answer(policy, &words, &focus)?
    {
        return Ok(Some(reply));
    }
    let (leading, words) = split_leading_time(request, &words);
    let asked = asked_agent(history);
    if !asks_list && asked.is_none() && !may_be_about_agents(&words, &focus, history) {
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
    if let Some(reply) = runs::answer(policy, agents, &words, &focus)? {
        return Ok(Some(reply));
    }
    let Some(AddressedRequest { agent, input }) = find_request(agents, &words) else {
        if is_schedule_last && let Some(reply) = schedules::answer(policy, &words, &focus)? {
            return Ok(Some(reply));
        }
        return answer_to_question(policy, agents, asked.as_deref());
    };
    let agent = match agent {
        Addressee::Known(agent) => agent,
        Addressee::Unknown(name) => {
            return Ok((input != AgentInput::NameOnly).then(|| wording::unknown_agent(&name, agents)));
        }
        Addressee::LastMentioned => match focus::last_agent(history) {
            Some(id) => match agents.iter().find(|agent| agent["id"] == id.as_str()) {
                Some(agent) => agent,
                None => return Ok(None),
            },
            None => return Ok(None),
        },
    };
    let input = match input {
        AgentInput::Text(input) => format!("{input} {leading}"),
        AgentInput::Previous(text) => match previous_input(request, agents, history, REQUEST_MESSAGES) {
            Some(input) => format!("{input} {leading}"),
            None if is_pronoun(&text) => return Ok(Some(wording::what_should_agent_do(name_of(agent)))),
            None => format!("{text} {leading}"),
        },
        AgentInput::NameOnly => match previous_input(request, agents, history, NAME_ONLY_MESSAGES) {
            Some(input) => input,
            None if words.raw(0).starts_with('@') => {
                return Ok(Some(wording::what_should_agent_do(name_of(agent))));
            }
            None => return Ok(None),
        },
        AgentInput::Missing => match previous_input(request, agents, history, NAME_ONLY_MESSAGES) {
            Some(input) => input,
            None => return Ok(Some(wording::what_should_agent_do(name_of(agent)))),
        },
    };
    start_request(policy, agent, input.trim())
}

/// Schedules the agent if the input has a time, else runs it.
fn start_request(policy: &mut OfflinePolicy<'_>, agent: &Value, input: &str) -> Result<Option<String>, PendingCall> {
    match schedules::plan(policy, agent, input)? {
        Some(reply) => Ok(Some(reply)),
        None => start_run(policy, agent, input),
    }
}

/// Runs an agent now. The reply is empty if the call is held. Returns `None` if the user does not have the tool.
fn start_run(policy: &mut OfflinePolicy<'_>, agent: &Value, input: &str) -> Result<Option<String>, PendingCall> {
    let Some(run) = policy.spec(ToolKind::RunAgent) else { return Ok(None) };
    let arguments = json!({"agent": agent["id"], "input": input});
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    Ok(match policy.call(run, arguments)? {
        CallResult::Done(data) => {
            let reports_back = data["reports_back"] == true && policy.prompt.has_worker;
            let sentence = wording::agent_started(data["agent"].as_str().unwrap_or_default(), reports_back);
            Some(wording::with_worker_note(sentence, policy.prompt.has_worker))
        }
        CallResult::Refused(_, message) => Some(message.to_owned()),
        // The agent loop asks the user.
        CallResult::Held => Some(String::new()),
    })
}

/// Answers a message of a user that has no agents: the list, and a request to an agent that many people know.
fn without_agents(words: &Words<'_>, asks_list: bool) -> Option<String> {
    if asks_list {
        return Some(wording::agents(&[]));
    }
    match find_request(&[], words)? {
        AddressedRequest { input: AgentInput::NameOnly, .. } => None,
        AddressedRequest { agent: Addressee::Unknown(name), .. } => Some(wording::unknown_agent(&name, &[])),
        _ => None,
    }
}

fn name_of(agent: &Value) -> &str {
    agent["name"].as_str().unwrap_or_default()
}

/// Returns true for a request that has no meaning without another one.
fn is_pronoun(text: &str) -> bool {
    let words = Words::new(text);
    words.len() <= 1
        || words
            .plain()
            .iter()
            .all(|word| matches!(*word, "do" | "it" | "this" | "that" | "the" | "same" | "job" | "thing" | "task"))
}

/// Returns the agent that the last reply asked about: "What should codex do?"
fn asked_agent(history: &[Message]) -> Option<String> {
    let last = history.last().filter(|message| message.role == MessageRole::Assistant)?;
    wording::read_what_should_agent_do(&last.content)
}

/// Takes a message as the input for the agent that the last reply asked about. Returns `None` for a command of its own,
/// a question or a refusal.
fn answer_to_question(
    policy: &mut OfflinePolicy<'_>,
    agents: &[Value],
    asked: Option<&str>,
) -> Result<Option<String>, PendingCall> {
    let request = policy.prompt.request;
    let Some(agent) = asked.and_then(|name| agents.iter().find(|agent| name_of(agent) == name)) else {
        return Ok(None);
    };
    let first = request.utterance.commands.first();
    let is_command = first.is_some_and(|first| first.intent != Intent::Unknown && !first.implied);
    if is_command || small_talk::is_no_answer(&request.message) {
        return Ok(None);
    }
    start_request(policy, agent, Words::new(&request.message).without_courtesy().source())
}

/// Returns the input of the newest request to an agent, with its times, or the title of a task that was mentioned later.
/// Searches this number of messages.
fn previous_input(request: &TurnRequest, agents: &[Value], history: &[Message], messages: usize) -> Option<String> {
    for (at, message) in history.iter().enumerate().rev().take(messages) {
        if message.role == MessageRole::Assistant {
            if Focus::of(std::slice::from_ref(message)).is_task {
                return Some(mentions::last_task(&history[..=at])?.title);
            }
            continue;
        }
        let words = Words::new(&message.content).without_courtesy();
        let (leading, words) = split_leading_time(request, &words);
        if let Some(AddressedRequest { input: AgentInput::Text(input), .. }) = find_request(agents, &words)
            && !input.is_empty()
        {
            return Some(format!("{input} {leading}").trim().to_owned());
        }
    }
    None
}

/// A run of an agent that a message asks for.
pub(crate) struct RequestedRun {
    /// The message contains a time.
    pub(crate) is_scheduled: bool,
    /// The times of the schedule, as arguments of the tool.
    pub(crate) times: ToolArguments,
}

/// Returns the run of this agent that the message asks for. The agent is given by id or name. Returns `None` if the
/// message does not address this agent, if it refers to an earlier request, or if it was pasted.
pub(crate) fn requested_run(request: &TurnRequest, agent: &str) -> Option<RequestedRun> {
    if words::is_pasted(&request.message) {
        return None;
    }
    let words = Words::new(&request.message).without_courtesy();
    let (leading, words) = split_leading_time(request, &words);
    let known = [json!({"id": agent, "name": agent})];
    let AddressedRequest { agent: Addressee::Known(_), input: AgentInput::Text(input) } = find_request(&known, &words)?
    else {
        return None;
    };
    let input = format!("{input} {leading}");
    let expressions = request.parser.find_expressions(input.trim(), &request.now);
    match timing::find_timing(input.trim(), &expressions, &request.now) {
        InputTiming::Now => Some(RequestedRun { is_scheduled: false, times: ToolArguments::new() }),
        InputTiming::Planned(plan) => Some(RequestedRun { is_scheduled: true, times: plan.arguments }),
        InputTiming::Unsupported => None,
    }
}

/// Returns whether the message asks to stop a run of this agent: it names the agent or all runs, or refers to a run and
/// there is no other. Pasted text asks for nothing.
pub(crate) fn requests_stop(request: &TurnRequest, agent: &str, is_only_run: bool) -> bool {
    if words::is_pasted(&request.message) {
        return false;
    }
    let words = Words::new(&request.message).without_courtesy();
    let known = [json!({"id": agent, "name": agent})];
    match runs::find_topic(&known, &words) {
        Some((runs::RunTopic::Stop, runs::RunReference::Agent(_) | runs::RunReference::All)) => true,
        Some((runs::RunTopic::Stop, _)) => is_only_run,
        _ => false,
    }
}

/// Splits "every Friday at 5pm, have codex …" into the time and the rest. The time is empty if the words do not begin
/// with one, or if nothing follows.
fn split_leading_time<'t>(request: &TurnRequest, words: &Words<'t>) -> (String, Words<'t>) {
    let none = || (String::new(), words.clone());
    let text = &words.text()[words.start_of(0)..];
    let can_begin = |word: &str| {
        let begins = [
            "every", "each", "at", "on", "in", "from", "tomorrow", "tonight", "today", "next", "this", "daily",
            "weekly", "hourly",
        ];
        begins.contains(&word)
            || word.ends_with("day")
            || word.ends_with("days")
            || word.starts_with(|c: char| c.is_ascii_digit())
    };
    if !can_begin(words.at(0)) {
        return none();
    }
    let expressions = request.parser.find_expressions(text, &request.now);
    let Some(first) = expressions.first().filter(|first| first.span.start == 0) else { return none() };
    let end = words.start_of(0) + first.span.end;
    let Some(at) = (0..words.len()).find(|at| words.start_of(*at) >= end) else { return none() };
    let rest = words.from(at).without_courtesy();
    let time = words.until(at).source().to_owned();
    (time, rest)
}

/// Returns true for a question that lists the agents: "which agents are there?", "who can I ask?". "Which ones do I
/// have?" is one after a reply about agents.
fn asks_for_list(words: &Words<'_>, history: &[Message]) -> bool {
    let plain = words.plain();
    let is_question = plain.first().is_some_and(|first| {
        ["list", "show", "what", "which", "who", "whats", "whos", "do", "are", "any", "tell", "name", "how", "agents"]
            .contains(first)
    });
    if !is_question
        || plain.len() > 9
        || words.has(&["task", "tasks", "running", "busy", "working", "active", "scheduled", "schedules", "doing"])
    {
        return false;
    }
    let asked_about_agents = || {
        let last = history.last().filter(|message| message.role == MessageRole::Assistant);
        last.is_some_and(|last| last.content.contains(" agent"))
    };
    let has_ones = plain.starts_with(&["which", "ones"])
        || plain.starts_with(&["what", "ones"])
        || plain.starts_with(&["which", "do", "i", "have"])
        || plain.starts_with(&["which", "are", "there"])
        || plain.starts_with(&["what", "do", "i", "have"])
        || plain.starts_with(&["who", "do", "i", "have"]);
    let who = plain.starts_with(&["who", "can", "i", "ask"]) || plain.starts_with(&["who", "can", "you", "ask"]);
    words.has(&["agents"]) || who || (has_ones && asked_about_agents())
}

/// Returns false for messages that cannot be about agents, before the names of the agents are known.
fn may_be_about_agents(words: &Words<'_>, focus: &Focus, history: &[Message]) -> bool {
    const VERBS: [&str; 62] = [
        "run",
        "start",
        "launch",
        "execute",
        "trigger",
        "invoke",
        "boot",
        "have",
        "ask",
        "tell",
        "get",
        "make",
        "let",
        "instruct",
        "order",
        "prompt",
        "direct",
        "allow",
        "want",
        "need",
        "trust",
        "prefer",
        "use",
        "try",
        "take",
        "pick",
        "choose",
        "involve",
        "hand",
        "give",
        "pass",
        "send",
        "delegate",
        "assign",
        "forward",
        "leave",
        "throw",
        "offload",
        "outsource",
        "do",
        "redo",
        "repeat",
        "handle",
        "rerun",
        "retry",
        "same",
        "can",
        "could",
        "would",
        "schedule",
        "plan",
        "set",
        "put",
        "fire",
        "kick",
        "spin",
        "stop",
        "cancel",
        "kill",
        "abort",
        "terminate",
        "create",
    ];
    const OTHER_VERBS: [&str; 14] = [
        "halt",
        "interrupt",
        "quit",
        "end",
        "no",
        "nope",
        "nah",
        "wait",
        "sorry",
        "oops",
        "id",
        "not",
        "shutdown",
        "once",
    ];
    const QUESTIONS: [&str; 20] = [
        "what", "whats", "which", "who", "whos", "is", "has", "did", "how", "hows", "show", "tell", "any", "anything",
        "are", "give", "read", "isnt", "hasnt", "list",
    ];
    const SUBJECTS: [&str; 44] = [
        "say",
        "find",
        "answer",
        "come",
        "produce",
        "write",
        "think",
        "reply",
        "respond",
        "output",
        "suggest",
        "conclude",
        "report",
        "result",
        "results",
        "outcome",
        "running",
        "busy",
        "working",
        "work",
        "done",
        "finished",
        "finish",
        "news",
        "agent",
        "run",
        "runs",
        "active",
        "doing",
        "going",
        "ready",
        "up",
        "on",
        "succeed",
        "fail",
        "go",
        "do",
        "discover",
        "recommend",
        "said",
        "found",
        "wrote",
        "happened",
        "response",
    ];
    let first = words.at(0);
    let last = words.len().saturating_sub(1);
    let second = words.at(1);
    let is_named = words.raw(0).starts_with('@') || words.raw(last).starts_with('@');
    let is_vocative = words.raw(0).ends_with([':', ','])
        || matches!(words.raw(1), "-" | "–" | "—" | ":")
        || words.raw(1).ends_with([':', ','])
        || (words.len() > 2
            && matches!(
                second,
                "please" | "pls" | "can" | "could" | "should" | "must" | "shall" | "needs" | "has" | "would" | "will"
            ));
    let wants =
        matches!(first, "i" | "we") && matches!(second, "want" | "need" | "would" | "meant" | "prefer" | "wish");
    let is_verb = VERBS.contains(&first) || OTHER_VERBS.contains(&first) || wants;
    let about_user = words.has(&["i", "my", "task", "tasks", "list", "due", "todo", "todos"]);
    let is_question =
        QUESTIONS.contains(&first) && words.has(&SUBJECTS) && (!about_user || words.has(&["agent", "agents"]));
    let was_about_agents = focus.execution.is_some()
        || history
            .iter()
            .rev()
            .take(4)
            .any(|message| message.tool_calls.iter().any(|call| call.tool_name == "list_agents"));
    let is_fragment = words.len() <= 5 && was_about_agents;
    is_named || is_vocative || is_verb || is_question || is_fragment || words.has(&["using", "via"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_about_agents_are_recognized() {
        let asks = |text: &str| asks_for_list(&Words::new(text).without_courtesy(), &[]);
        assert!(asks("Which agents are there?") && asks("list my agents") && asks("what agents can you run"));
        assert!(asks("who can I ask?") && asks("do I have any agents?"));
        assert!(!asks("add a task to call the agents") && !asks("show my tasks") && !asks("which agents are busy?"));
    }
}
