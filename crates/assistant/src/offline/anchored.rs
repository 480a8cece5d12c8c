//! Reads statements by the tasks that they name: "the stairs are hoovered and the invoice is paid", "the turkey order can
//! go", "parents evening now starts at quarter to seven" (TRUST-2). A clause counts only if all of its other words belong
//! to one open task, or if it has all words of its title. All functions fail with the next tool call if its result is not
//! known yet.

use std::collections::HashSet;
use std::sync::LazyLock;

use serde_json::Value;
use understand::{Intent, ParsedCommand, TaskTarget};

use super::follow_up::ResolvedCommand;
use super::fragment::{self, Fragment};
use super::framing::{self, Framing};
use super::lookup::{self, LookupResult, StatusPreference, find};
use super::matching::{is_filler, is_same_word, normalize};
use super::{OfflinePolicy, PendingCall, follow_up, small_talk, titles};
use crate::confirm;
use crate::mentions::TaskMention;

/// The most clauses and words of a message that is read this way.
const MAX_CLAUSES: usize = 5;
const MAX_WORDS: usize = 30;

/// Participles that mean "done" for any task.
const DONE_PARTICIPLES: [&str; 24] = [
    "handed",
    "returned",
    "submitted",
    "sent",
    "posted",
    "found",
    "got",
    "collected",
    "picked",
    "dropped",
    "sorted",
    "finished",
    "wrapped",
    "cleaned",
    "washed",
    "booked",
    "ordered",
    "bought",
    "paid",
    "done",
    "completed",
    "ticked",
    "dealt",
    "turned",
];

/// Words of a statement that name no task.
static STATEMENT_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    "i ive im ve m re d we weve you u he she they them his her their is are was were be been being isnt has have had got \
     get gets getting do does did doing done finished finish complete completed sorted dealt ticked crossed handed in \
     off out up down over all both an now finally already just today at last btw by way so then too also as well here \
     there of from into yet this morning afternoon evening tonight yesterday ago minute can could go gone want wanted \
     need needs needed any more anymore longer no not dont doesnt rid scrap ditch nix drop lose bin forget about list \
     my mine starts start begins kicks moved moves pushed brought forward back goes going gonna will ll should than \
     planned earlier later instead actually really quite very pretty needing called knock knocked take takes taken \
     strike away mark tick check please pls cheers thanks one ones thing things other isn don doesn t"
        .split_whitespace()
        .collect()
});

/// Phrases that take a task from the list, in normalized text.
const REMOVALS: [&str; 19] = [
    "can go",
    "get rid of",
    "no need to",
    "no need for",
    "dont need to",
    "don t need to",
    "dont need",
    "don t need",
    "isnt needed",
    "isn t needed",
    "not needed",
    "no longer needed",
    "off my list",
    "off the list",
    "forget about",
    "is off",
    "called off",
    "want gone",
    "wanted gone",
];

/// Verbs at the start of a clause that take a task from the list.
const REMOVAL_VERBS: [&str; 8] = ["ditch", "nix", "scrap", "axe", "bin", "drop", "lose", "delete"];

/// Words that make a statement one about the future, or one that does not hold.
const NOT_DONE: [&str; 30] = [
    "not", "t", "havent", "hasnt", "isnt", "arent", "didnt", "wasnt", "never", "still", "need", "needs", "must",
    "should", "will", "ll", "to", "gotta", "want", "when", "if", "until", "till", "before", "once", "after", "almost",
    "nearly", "half", "be",
];

/// Participles without the ending "ed".
const PARTICIPLES: [&str; 31] = [
    "paid", "bought", "sent", "written", "made", "done", "taken", "fed", "met", "sold", "told", "hung", "driven",
    "brought", "built", "spoken", "swept", "chosen", "found", "given", "kept", "swum", "run", "read", "cut", "put",
    "shut", "lit", "rung", "sewn", "sown",
];

/// The effect of a clause.
enum ClauseEffect {
    Complete,
    Remove,
    Update(Box<Fragment>),
    /// A name alone, which continues the clause before it.
    Name,
}

/// A clause about one task.
struct Anchor {
    mention: TaskMention,
    effect: ClauseEffect,
}

/// Returns the commands of a message whose clauses all are about a task of their own, if the engine finds fewer commands.
pub(super) fn read_statements(
    policy: &mut OfflinePolicy<'_>,
    framing: &Framing,
) -> Result<Option<Vec<ResolvedCommand>>, PendingCall> {
    let clauses = split(&framing.body);
    let found = policy.prompt.request.utterance.commands.len();
    if clauses.len() < 2 || clauses.len() > MAX_CLAUSES || found >= clauses.len() || framing.is_question || adds(policy)
    {
        return Ok(None);
    }
    let mut anchors = Vec::with_capacity(clauses.len());
    for clause in clauses {
        let anchor = anchor(policy, &Framing::read(clause).body)?;
        match anchor.filter(|anchor| matches!(anchor.effect, ClauseEffect::Complete | ClauseEffect::Update(_))) {
            Some(anchor) => anchors.push(anchor),
            None => return Ok(None),
        }
    }
    Ok(Some(commands(policy, anchors, Vec::new())))
}

/// Returns the commands of a message that only names tasks and their states, or `None` if another reading is better.
pub(super) fn read(
    policy: &mut OfflinePolicy<'_>,
    framing: &Framing,
) -> Result<Option<Vec<ResolvedCommand>>, PendingCall> {
    let body = framing.body.as_str();
    let message = &policy.prompt.request.message;
    if small_talk::is_no_answer(message) || confirm::is_consent(message) || confirm::is_refusal(message) {
        return Ok(None);
    }
    if framing.is_question
        || is_plain_addition(policy)
        || body.contains('\n')
        || body.split_whitespace().count() > MAX_WORDS
        || adds(policy)
    {
        return Ok(None);
    }
    let clauses = split(body);
    if clauses.len() > MAX_CLAUSES {
        return Ok(None);
    }
    let is_resolved = engine_resolves(policy)?;
    if clauses.len() == 1 && is_resolved {
        return Ok(None);
    }
    let mut anchors: Vec<Anchor> = Vec::new();
    let mut values: Vec<Fragment> = Vec::new();
    for clause in &clauses {
        let clause = Framing::read(clause).body;
        match anchor(policy, &clause)? {
            Some(anchor) => anchors.push(anchor),
            None => {
                let fragment = fragment::read(&clause, policy.prompt.request);
                if fragment.is_pure() && !anchors.is_empty() {
                    values.push(fragment);
                } else if is_command(policy, &clause)? {
                    return Ok(None);
                }
            }
        }
    }
    // "mark the sourdough and the dishwasher as done"
    if let [first, .., last] = anchors.as_mut_slice()
        && matches!((&first.effect, &last.effect), (ClauseEffect::Name, ClauseEffect::Complete))
    {
        std::mem::swap(&mut first.effect, &mut last.effect);
    }
    let names_only = anchors.iter().all(|anchor| matches!(anchor.effect, ClauseEffect::Name));
    if anchors.is_empty()
        || names_only
        || matches!(anchors[0].effect, ClauseEffect::Name)
        || is_resolved && anchors.len() < 2
    {
        return Ok(None);
    }
    Ok(Some(commands(policy, anchors, values)))
}

/// Returns true if the message is one new task that begins with a verb: "buy stamps". It needs no look at the tasks.
fn is_plain_addition(policy: &OfflinePolicy<'_>) -> bool {
    let request = policy.prompt.request;
    let [command] = request.utterance.commands.as_slice() else { return false };
    let Some(title) = command.title.as_deref().filter(|_| command.intent == Intent::CreateTask) else { return false };
    command.when.is_none() && !titles::is_doubtful(title) && follow_up::begins_with_activity(title)
}

/// Returns true if the message asks for a new task or a reminder by its words.
fn adds(policy: &OfflinePolicy<'_>) -> bool {
    const WORDS: [&str; 24] = [
        "add", "new", "create", "remind", "reminder", "todo", "remember", "nudge", "ping", "note", "schedule",
        "snooze", "undo", "rename", "nagging", "nag", "alarm", "heads", "warn", "warning", "prompt", "tell", "bug",
        "bugging",
    ];
    let text = normalize(&policy.prompt.request.message);
    text.split(' ').any(|word| WORDS.contains(&word))
}

/// Returns true if the engine finds commands for existing tasks only, and finds these tasks.
fn engine_resolves(policy: &mut OfflinePolicy<'_>) -> Result<bool, PendingCall> {
    let commands = &policy.prompt.request.utterance.commands;
    for command in commands {
        let is_resolved = match (command.intent, &command.target) {
            (Intent::CompleteTask | Intent::DeleteTask | Intent::UpdateTask, Some(TaskTarget::Named(name))) => {
                command.missing.is_none()
                    && !matches!(
                        find(policy, &TaskTarget::Named(name.clone()), StatusPreference::Open, None)?,
                        LookupResult::NoMatch(_) | LookupResult::NotNamed
                    )
            }
            (Intent::CreateTask | Intent::Unknown, _) => false,
            _ => command.missing.is_none(),
        };
        if !is_resolved {
            return Ok(false);
        }
    }
    Ok(!commands.is_empty())
}

/// Returns true if a clause alone is a command of another kind, or an explicit one. A statement about a task that does
/// not exist is none: "my neighbour helped me".
fn is_command(policy: &mut OfflinePolicy<'_>, clause: &str) -> Result<bool, PendingCall> {
    let request = policy.prompt.request;
    for command in request.parser.parse(clause, &request.now).commands {
        let is_statement = match (command.intent, &command.target) {
            (Intent::Unknown, _) => true,
            (Intent::CompleteTask, Some(TaskTarget::Named(name))) => lookup::named_task(policy, name)?.is_none(),
            _ => command.implied,
        };
        if !is_statement {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Splits a message at marks and at links between statements.
fn split(body: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for clause in framing::clauses(body) {
        let lower = clause.to_lowercase();
        if lower.len() != clause.len() {
            parts.push(clause);
            continue;
        }
        let mut start = 0;
        let mut cuts: Vec<(usize, usize)> = [" and ", " but ", " so ", " then ", " n "]
            .iter()
            .flat_map(|link| lower.match_indices(link).map(|(at, _)| (at, at + link.len())))
            .collect();
        cuts.sort_unstable();
        for (at, end) in cuts.into_iter().filter(|(at, _)| *at > 0) {
            if at >= start {
                parts.push(&clause[start..at]);
                start = end;
            }
        }
        parts.push(&clause[start..]);
    }
    parts.into_iter().map(framing::trim).filter(|part| !part.is_empty()).collect()
}

/// Reads one clause.
fn anchor(policy: &mut OfflinePolicy<'_>, clause: &str) -> Result<Option<Anchor>, PendingCall> {
    let text = normalize(clause);
    let words: Vec<&str> = text.split(' ').collect();
    let fragment = fragment::read(clause, policy.prompt.request);
    let is_past = words.first().is_some_and(|first| is_participle(first));
    let removes = REMOVALS.iter().any(|phrase| format!(" {text} ").contains(&format!(" {phrase} ")))
        || words.first().is_some_and(|first| REMOVAL_VERBS.contains(first));
    let subject_text = if fragment.has_values() { normalize(&fragment.rest) } else { text.clone() };
    let subject: Vec<&str> = subject_text
        .split(' ')
        .enumerate()
        .filter(|(at, word)| {
            let is_verb = removes && *at == 0 && REMOVAL_VERBS.contains(word);
            !word.is_empty() && !is_verb && !is_filler(word) && !STATEMENT_WORDS.contains(word)
        })
        .map(|(_, word)| word)
        .collect();
    if subject.is_empty() || fragment.negated.is_some() && !removes {
        return Ok(None);
    }
    let Some((mention, title)) = only_task(lookup::all_tasks(policy)?, &subject) else { return Ok(None) };
    // "the brisket is off" completes "take the brisket off".
    let is_off = ["off", "out", "in", "up", "down", "over", "away"]
        .iter()
        .any(|particle| text.ends_with(&format!(" is {particle}")) && title.split(' ').any(|word| word == *particle));
    let effect = if is_off {
        ClauseEffect::Complete
    } else if removes {
        ClauseEffect::Remove
    } else if is_done(&words, &title) {
        ClauseEffect::Complete
    } else if fragment.has_values() && !is_past {
        ClauseEffect::Update(Box::new(fragment))
    } else if words.len() <= subject.len() + 2 {
        ClauseEffect::Name
    } else {
        return Ok(None);
    };
    Ok(Some(Anchor { mention, effect }))
}

/// Returns the only open task that a text names, or `None`.
pub(super) fn mentioned(policy: &mut OfflinePolicy<'_>, text: &str) -> Result<Option<TaskMention>, PendingCall> {
    let text = normalize(text);
    let subject: Vec<&str> =
        text.split(' ').filter(|word| !is_filler(word) && !STATEMENT_WORDS.contains(word)).collect();
    if subject.is_empty() {
        return Ok(None);
    }
    Ok(only_task(lookup::all_tasks(policy)?, &subject).map(|(mention, _)| mention))
}

/// Returns the only open task that the words name, with its normalized title. All words except for participles that mean
/// "done" must be in its title, or all words of its title among them.
fn only_task(tasks: &[Value], words: &[&str]) -> Option<(TaskMention, String)> {
    let mut best: Vec<(usize, &Value, String)> = Vec::new();
    for task in tasks.iter().filter(|task| task["status"] != "completed") {
        let title = normalize(task["title"].as_str().unwrap_or_default());
        let known: Vec<&str> = title.split(' ').filter(|word| !is_filler(word)).collect();
        let is_known = |word: &&&str| known.iter().any(|known| is_same_word(known, word));
        let matched = words.iter().filter(is_known).count();
        let matches_others = words.iter().filter(|word| !DONE_PARTICIPLES.contains(word)).all(|word| is_known(&word));
        let has_title = known.iter().all(|known| words.iter().any(|word| is_same_word(known, word)));
        if matched > 0 && (matches_others || has_title && known.len() > 1) {
            best.push((matched, task, title));
        }
    }
    let most = best.iter().map(|(matched, ..)| *matched).max()?;
    let mut best = best.into_iter().filter(|(matched, ..)| *matched == most);
    let (_, task, title) = best.next()?;
    if best.next().is_some() {
        return None;
    }
    Some((TaskMention::from_task(task)?, title))
}

fn is_participle(word: &str) -> bool {
    PARTICIPLES.contains(&word) || word.len() > 4 && word.ends_with("ed")
}

/// Returns true if the words state that the task with this title is done.
fn is_done(words: &[&str], title: &str) -> bool {
    if words.iter().any(|word| NOT_DONE.contains(word)) {
        return false;
    }
    let verb = title.split(' ').next().unwrap_or_default();
    words.iter().enumerate().any(|(at, word)| {
        let is_form = is_participle(word) && is_same_word(verb, word) && (at > 0 || *word != verb);
        DONE_PARTICIPLES.contains(word)
            || is_form
            || at > 0 && is_participle(word) && title.split(' ').any(|one| one == *word)
    })
}

/// Returns the commands of the clauses, in order. Names that follow a clause share its effect: tasks that are completed
/// together, or removed, become one command, which asks.
fn commands(policy: &mut OfflinePolicy<'_>, anchors: Vec<Anchor>, values: Vec<Fragment>) -> Vec<ResolvedCommand> {
    let mut commands: Vec<ResolvedCommand> = Vec::new();
    // The tasks of the last group of completed tasks, and all removed ones.
    let mut together: Vec<TaskMention> = Vec::new();
    let mut removed: Vec<TaskMention> = Vec::new();
    let mut last_removes = false;
    let about = |mention: TaskMention, command: ParsedCommand| {
        let command = ParsedCommand { target: Some(TaskTarget::It), ..command };
        ResolvedCommand { mention: Some(mention), ..ResolvedCommand::new(command) }
    };
    for Anchor { mention, effect } in anchors {
        match effect {
            ClauseEffect::Remove => removed.push(mention),
            ClauseEffect::Name if last_removes => removed.push(mention),
            ClauseEffect::Name => {
                let Some(last) = commands.pop() else { continue };
                if last.command.intent == Intent::CompleteTask {
                    together.extend(last.mention);
                    together.push(mention);
                } else {
                    let again = last.command.clone();
                    commands.push(last);
                    commands.push(about(mention, again));
                }
                continue;
            }
            ClauseEffect::Complete => commands.push(about(mention, ParsedCommand::new(Intent::CompleteTask, 0.9))),
            ClauseEffect::Update(fragment) => commands.push(about(mention, fragment.command)),
        }
        last_removes = commands.is_empty() && !removed.is_empty();
    }
    for fragment in values {
        let command = ParsedCommand { target: Some(TaskTarget::It), ..fragment.command };
        commands.push(ResolvedCommand { drops_time: fragment.drops_time, ..ResolvedCommand::new(command) });
    }
    let (intent, group) =
        if together.is_empty() { (Intent::DeleteTask, removed) } else { (Intent::CompleteTask, together) };
    match <[TaskMention; 1]>::try_from(group) {
        Ok([one]) => commands.push(about(one, ParsedCommand::new(intent, 0.9))),
        Err(group) if group.is_empty() => {}
        Err(group) => {
            policy.named = group;
            let all = ParsedCommand { target: Some(TaskTarget::Them), ..ParsedCommand::new(intent, 0.9) };
            commands.push(ResolvedCommand::new(all));
        }
    }
    commands
}
