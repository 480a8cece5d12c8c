//! Plays the recorded dialogues of `tests/dialogues` with the built-in model and counts the messages with the right
//! outcome. `DIALOGUES=reminder cargo test -p server --test it dialogues -- --nocapture` shows the failures of known
//! dialogues whose id begins with this text.

#![expect(clippy::print_stdout, reason = "the scores are read in the output")]

mod changes;
mod format;
mod guarantees;
mod intended_calls;
mod language_model;
mod model_text;
mod play;

use std::collections::BTreeMap;
use std::path::PathBuf;

use format::Dialogue;
use play::{MessageOutcome, play, play_with_language_model};

/// The least share of right messages, in tenths of a percent, and the greatest number of wrong changes.
struct Goal {
    file: &'static str,
    right_messages: usize,
    right_dialogues: usize,
    wrong_changes: usize,
}

#[tokio::test]
async fn known_dialogues_are_understood() {
    // TRUST-1 … TRUST-6, AGENT-6 … AGENT-11
    check(Goal { file: "known.jsonl", right_messages: 960, right_dialogues: 900, wrong_changes: 4 }, true).await;
}

#[tokio::test]
async fn further_dialogues_are_understood() {
    // TRUST-1 … TRUST-6, AGENT-6 … AGENT-11
    check(Goal { file: "further.jsonl", right_messages: 870, right_dialogues: 670, wrong_changes: 24 }, true).await;
}

/// Prints only the total. The rules must not be fitted to these dialogues, so they are played rarely and not in every
/// check.
#[tokio::test]
#[ignore = "the blind dialogues are played only to measure a release"]
async fn blind_dialogues_are_understood() {
    check(Goal { file: "blind.jsonl", right_messages: 0, right_dialogues: 0, wrong_changes: 999 }, false).await;
}

#[tokio::test]
async fn known_dialogues_hold_with_a_language_model() {
    // TRUST-1 … TRUST-6, AGENT-6, AGENT-7, SEC-4
    let totals = check_language_model("known.jsonl", true).await;
    println!("{totals:?}");
    if std::env::var("DIALOGUES").is_err() {
        assert_eq!(totals.violations, 0, "broken guarantees");
        assert_eq!(totals.wrong_changes, 0, "wrong changes");
        assert_eq!(totals.right, totals.messages, "messages with another outcome");
        let expected = HELD.map(|(message, _)| message);
        assert_eq!(totals.held, expected, "commands in the user's own words are not held");
    }
}

/// The messages with calls that are held although the dialogue has no question, with the reason. A call of a model is
/// held unless the message itself contains the command (SEC-4).
const HELD: [(&str, &str); 15] = [
    ("correction-009 1", "the input comes from an earlier message"),
    ("question-007 3", "'that one' names no run, and the list of runs is foreign text"),
    ("question-015 1", "'it' names no schedule"),
    ("undo-001 1", "an undo that removes a task for good, in words that the language engine does not know"),
    ("agents-001 2", "the input comes from an earlier message"),
    ("agents-004 3", "the report of an agent is in the context, and 'it' names no task"),
    ("agents-006 1", "'it' names no agent"),
    ("agents-008 3", "the input comes from an earlier message"),
    ("agents-009 2", "the report of an agent is in the context, and 'the menu task' is no part of the title"),
    ("schedules-001 3", "'it' names no schedule"),
    ("schedules-002 2", "'it' names no schedule"),
    ("schedules-005 2", "'it' names no schedule"),
    ("schedules-006 2", "'it' names no agent"),
    ("schedules-008 1", "the input and the time come from an earlier message"),
    ("schedules-009 1", "'it' names no schedule"),
];

/// Prints only the totals.
#[tokio::test]
#[ignore = "the blind dialogues are played only to measure a release"]
async fn blind_dialogues_hold_with_a_language_model() {
    let totals = check_language_model("blind.jsonl", false).await;
    let LanguageModelTotals { messages, right, wrong_changes, held, violations } = totals;
    println!(
        "messages {right}/{messages}  wrong changes {wrong_changes}  held {}  violations {violations}",
        held.len()
    );
}

#[derive(Debug, Default)]
struct LanguageModelTotals {
    messages: usize,
    /// Messages with the right stored outcome and answer.
    right: usize,
    wrong_changes: usize,
    /// Messages with calls that were held although the dialogue has no question.
    held: Vec<String>,
    violations: usize,
}

/// Plays all dialogues of a file with the language model. `show` prints the failures.
async fn check_language_model(file: &str, show: bool) -> LanguageModelTotals {
    let selected = std::env::var("DIALOGUES").ok().filter(|_| show);
    let mut totals = LanguageModelTotals::default();
    for (number, dialogue) in read(file).iter().enumerate() {
        if selected.as_ref().is_some_and(|prefix| !dialogue.id.starts_with(prefix)) {
            continue;
        }
        let outcomes = play_with_language_model(dialogue, number).await;
        for (at, (message, outcome)) in dialogue.messages.iter().zip(&outcomes).enumerate() {
            totals.messages += 1;
            totals.right += usize::from(outcome.mistakes.is_empty());
            totals.wrong_changes += usize::from(outcome.is_wrong_change);
            totals.held.extend(outcome.is_held.then(|| format!("{} {at}", dialogue.id)));
            totals.violations += outcome.violations.len();
            let problems: Vec<_> = outcome.mistakes.iter().chain(&outcome.violations).collect();
            if show && (!problems.is_empty() || outcome.is_held || selected.is_some()) {
                println!("{} {at} > {}", dialogue.id, message.say);
                println!(
                    "    {}{}",
                    if outcome.is_held { "HELD " } else { "" },
                    outcome.answer.replace('\n', "\n    ")
                );
                problems.iter().for_each(|problem| println!("    ! {problem}"));
            }
        }
    }
    totals
}

#[derive(Default)]
struct Score {
    messages: usize,
    right: usize,
    dialogues: usize,
    right_dialogues: usize,
    wrong_changes: usize,
}

/// Plays all dialogues of a file and compares the totals with the goal. `show` prints the scores of the kinds and the
/// failures that `DIALOGUES` selects.
async fn check(goal: Goal, show: bool) {
    let selected = std::env::var("DIALOGUES").ok().filter(|_| show);
    let mut kinds: BTreeMap<String, Score> = BTreeMap::new();
    let mut total = Score::default();
    for dialogue in read(goal.file) {
        if selected.as_ref().is_some_and(|prefix| !dialogue.id.starts_with(prefix)) {
            continue;
        }
        let outcomes = play(&dialogue).await;
        let is_right = |outcome: &MessageOutcome| outcome.mistakes.is_empty();
        for score in [kinds.entry(dialogue.kind.clone()).or_default(), &mut total] {
            score.messages += outcomes.len();
            score.right += outcomes.iter().filter(|outcome| is_right(outcome)).count();
            score.dialogues += 1;
            score.right_dialogues += usize::from(outcomes.iter().all(is_right));
            score.wrong_changes += outcomes.iter().filter(|outcome| outcome.is_wrong_change).count();
        }
        if selected.is_some() && !outcomes.iter().all(is_right) {
            println!("\n{} ({})", dialogue.id, dialogue.now);
            for (message, outcome) in dialogue.messages.iter().zip(&outcomes) {
                let mark = if outcome.is_wrong_change { "WRONG" } else { "" };
                println!("  > {}\n    {}", message.say.replace('\n', "⏎"), outcome.answer.replace('\n', "\n    "));
                outcome.mistakes.iter().for_each(|mistake| println!("    {mark} ! {mistake}"));
            }
        }
    }
    if show {
        for (kind, score) in &kinds {
            print(kind, score);
        }
    }
    print(goal.file, &total);
    if selected.is_none() {
        assert!(total.right * 1000 >= goal.right_messages * total.messages, "too few right messages");
        assert!(total.right_dialogues * 1000 >= goal.right_dialogues * total.dialogues, "too few right dialogues");
        assert!(total.wrong_changes <= goal.wrong_changes, "too many wrong changes");
    }
}

fn print(name: &str, score: &Score) {
    println!(
        "{name:20} messages {:3}/{:3}  dialogues {:3}/{:3}  wrong changes {}",
        score.right, score.messages, score.right_dialogues, score.dialogues, score.wrong_changes
    );
}

fn read(file: &str) -> Vec<Dialogue> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/dialogues").join(file);
    let path = std::env::var("DIALOGUE_FILE").map_or(path, PathBuf::from);
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}
