//! Reads corrections of the last change: an undo, another task, or other words of the title (TRUST-3).

use tools::ToolKind;
use understand::{Intent, ParsedCommand, TaskTarget};

use super::ContinuationResult;
use super::repeat::{repeat_with_target, same_change};
use crate::mentions::TaskMention;
use crate::offline::OfflinePolicy;
use crate::offline::dialogue::{LastAct, LastExchange, changed_tasks};
use crate::offline::follow_up::ResolvedCommand;
use crate::offline::fragment::Fragment;
use crate::offline::framing::Framing;
use crate::offline::lookup::named_task;
use crate::offline::matching::{distance, is_filler, is_same_word, normalize};

/// Reads a correction of the last change: an undo, another task, or other words of the title.
pub(super) fn correction(
    policy: &mut OfflinePolicy<'_>,
    framing: &Framing,
    last: &LastExchange<'_>,
    fragment: &Fragment,
) -> ContinuationResult {
    let body = strip_meant(&framing.body);
    let LastAct::Changed(kind, call) = last.act else {
        return match last.act {
            LastAct::Asked => repeat_with_target(policy, last, body),
            _ => Ok(None),
        };
    };
    let changed = changed_tasks(call);
    if let (Some((old, new)), Some(focus)) = (contrast(&framing.body), &policy.last)
        && let Some(title) = replace_words(&focus.title, &old, &new)
    {
        return Ok(Some(vec![renamed(title)]));
    }
    // "oops, not the roses"
    if let Some(negated) = &fragment.negated
        && negated.split_whitespace().count() <= 4
        && fragment.rest.is_empty()
        && !fragment.has_values()
    {
        // "do not delete the milk" takes back a deletion and nothing else.
        let named = policy.prompt.request.parser.parse(negated, &policy.prompt.request.now).commands;
        let is_command = |command: &ParsedCommand| command.intent != Intent::Unknown && !command.implied;
        if kind == ToolKind::Undo || named.iter().any(|command| is_command(command) && !does(command.intent, kind)) {
            return Ok(None);
        }
        let is_changed = changed.iter().any(|task| shares_word(&task.title, negated));
        return Ok(is_changed.then(|| vec![ResolvedCommand::new(ParsedCommand::new(Intent::Undo, 0.9))]));
    }
    let focus = policy.last.clone();
    // "lindgren not lindqvist"
    if let (Some(negated), Some(focus), false) = (&fragment.negated, &focus, fragment.has_values())
        && let Some(title) = replace_words(&focus.title, without_article(negated), &fragment.rest)
    {
        return Ok(Some(vec![renamed(title)]));
    }
    if body.is_empty() || framing.is_question {
        return Ok(None);
    }
    // "the other one too" is no correction.
    if framing.continues && !framing.refuses {
        return Ok(None);
    }
    // Another task was meant.
    let is_other = |mention: &TaskMention| !changed.iter().any(|task| task.id == mention.id);
    if let Some(mention) = named_task(policy, body)?
        && is_other(&mention)
        && let Some(again) = same_change(policy, kind, call)
    {
        let undo = ResolvedCommand::new(ParsedCommand::new(Intent::Undo, 0.9));
        let repeated = ResolvedCommand { mention: Some(mention), ..ResolvedCommand::new(again) };
        return Ok(Some(vec![undo, repeated]));
    }
    // Other words of the title: "I mean Tim", "its etude no 4".
    if matches!(kind, ToolKind::Add | ToolKind::Update)
        && !fragment.has_values()
        && let Some(focus) = focus
        && let Some(title) = similar_title(&focus.title, body)
    {
        return Ok(Some(vec![renamed(title)]));
    }
    Ok(None)
}

/// Returns true if a command of this intent calls tools of this kind.
fn does(intent: Intent, kind: ToolKind) -> bool {
    match kind {
        ToolKind::Add => intent == Intent::CreateTask,
        ToolKind::Complete | ToolKind::CompleteSeveral => intent == Intent::CompleteTask,
        ToolKind::Delete | ToolKind::DeleteSeveral => intent == Intent::DeleteTask,
        ToolKind::Update => intent == Intent::UpdateTask,
        _ => false,
    }
}

/// Returns true if a message takes back the last change: "revert that", "put it back on the list".
pub(super) fn takes_back(body: &str, kind: ToolKind) -> bool {
    let text = normalize(body);
    let starts = [
        "revert",
        "undo",
        "put that back",
        "put it back",
        "bring it back",
        "bring that back",
        "bring them back",
        "roll that back",
        "roll it back",
        "restore it",
        "restore that",
        "take that back",
        "reopen it",
        "reopen that",
    ];
    let is_short = text.split(' ').count() <= 7;
    let cancels =
        matches!(text.as_str(), "cancel that" | "cancel it" | "scrap that" | "forget that") && kind == ToolKind::Add;
    let names_value =
        text.contains(" back to ") && !text.contains("back to the list") && !text.contains("back to my list");
    cancels
        || is_short
            && !names_value
            && starts.iter().any(|start| text == *start || text.starts_with(&format!("{start} ")))
}

/// Returns the old and the new words of "it's not the gammon it's a nut roast", "not gammon but a nut roast".
fn contrast(body: &str) -> Option<(String, String)> {
    let text = body.to_lowercase().replace('’', "'");
    let behind = text.find("not ").filter(|at| *at == 0 || text[..*at].ends_with(' ')).map(|at| &text[at + 4..])?;
    let (old, new) = [" it's ", " its ", " but "].iter().find_map(|link| behind.split_once(link))?;
    let plain = |text: &str| without_article(text.trim().trim_end_matches(',')).to_owned();
    let (old, new) = (plain(old), plain(new));
    (!old.is_empty() && !new.is_empty() && new.split(' ').count() <= 4).then_some((old, new))
}

fn without_article(text: &str) -> &str {
    ["the ", "a ", "an "].iter().find_map(|article| text.strip_prefix(article)).unwrap_or(text)
}

fn renamed(title: String) -> ResolvedCommand {
    let mut update = ParsedCommand::new(Intent::UpdateTask, 0.9);
    update.title = Some(title);
    update.target = Some(TaskTarget::It);
    ResolvedCommand::new(update)
}

/// Removes "I meant" and similar words that follow other words.
pub(super) fn strip_meant(body: &str) -> &str {
    let lower = body.to_lowercase();
    let found =
        ["i meant ", "i mean ", "meant ", "it's ", "its ", "should be ", "make it "].iter().filter_map(|words| {
            lower.find(words).filter(|at| *at == 0 || lower.len() == body.len()).map(|at| at + words.len())
        });
    found.min().and_then(|at| body.get(at..)).unwrap_or(body)
}

/// Returns true if two texts share a word that is not a filler.
fn shares_word(a: &str, b: &str) -> bool {
    let a = normalize(a);
    let b = normalize(b);
    b.split(' ').filter(|word| !is_filler(word)).any(|word| a.split(' ').any(|known| is_same_word(known, word)))
}

/// Replaces the words `old` of a title by `new`, without regard to case. Returns `None` if the title lacks them, or if
/// one of the texts is empty.
fn replace_words(title: &str, old: &str, new: &str) -> Option<String> {
    let lower = title.to_lowercase();
    let old = old.to_lowercase();
    if old.is_empty() || new.is_empty() || lower.len() != title.len() {
        return None;
    }
    let at = lower.find(&old)?;
    Some(format!("{}{new}{}", &title[..at], &title[at + old.len()..]))
}

/// Returns the title with the words of a correction. The correction shares words with the title ("etude no 4"), begins
/// with the same preposition ("with Bob"), or is a single word that is spelled like one of the title ("Tim"). Returns
/// `None` if none of this holds.
fn similar_title(title: &str, correction: &str) -> Option<String> {
    const PREPOSITIONS: [&str; 10] = ["with", "for", "to", "at", "from", "about", "by", "in", "on", "of"];
    let words: Vec<&str> = title.split_whitespace().collect();
    let new: Vec<&str> = correction.split_whitespace().collect();
    let same = |a: &str, b: &str| normalize(a) == normalize(b);
    if new.len() >= 2 && new.len() <= words.len() {
        // The window of the title that shares the most words at the same places.
        let shared = |at: usize| new.iter().zip(&words[at..]).filter(|(a, b)| same(a, b)).count();
        let best = (0..=words.len() - new.len()).max_by_key(|at| (shared(*at), std::cmp::Reverse(*at)))?;
        let needed = new.len().div_ceil(2);
        if shared(best) >= needed.max(1) && shared(best) < new.len() {
            let parts = [&words[..best], &new, &words[best + new.len()..]].concat();
            return Some(parts.join(" "));
        }
    }
    if let Some(first) = new.first().filter(|first| PREPOSITIONS.contains(&first.to_lowercase().as_str()))
        && new.len() >= 2
        && let Some(at) = words.iter().rposition(|word| same(word, first))
    {
        return Some([&words[..at], &new].concat().join(" "));
    }
    if let [one] = new.as_slice() {
        let close = |word: &&str| {
            let (a, b) = (normalize(word), normalize(one));
            a != b && !is_filler(&a) && distance(&a, &b) * 2 <= a.chars().count().max(b.chars().count())
        };
        let found: Vec<usize> = (0..words.len()).filter(|at| close(&words[*at])).collect();
        let best = found.into_iter().min_by_key(|at| distance(&normalize(words[*at]), &normalize(one)))?;
        let mut words = words;
        words[best] = one;
        return Some(words.join(" "));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corrections_replace_words_of_the_title() {
        // TRUST-3
        for (title, correction, expected) in [
            ("buy a present for tom", "tim", Some("buy a present for tim")),
            ("practise Chopin etude no 3", "etude no 4", Some("practise Chopin etude no 4")),
            ("lunch with Anna", "with Bob", Some("lunch with Bob")),
            ("buy milk", "the gym membership", None),
        ] {
            assert_eq!(similar_title(title, correction).as_deref(), expected, "{title}, {correction}");
        }
        assert_eq!(
            replace_words("email Lindqvist now", "lindqvist", "lindgren").as_deref(),
            Some("email lindgren now")
        );
    }
}
