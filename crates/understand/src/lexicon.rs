//! The words of the command language: verbs, names for tasks and lists, and what is said for politeness.
//!
//! Only words in the place of a command are matched here, with small slips forgiven; titles never are.

use crate::spelling::resembles;
use crate::tokens::Words;

/// What a verb asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// "add", "append": what follows is the title.
    Add,
    /// "put … on the list".
    Put,
    /// "create", "set", "make", "give": only with a word for a task.
    Make,
    /// "remind", "alert", "notify".
    Remind,
    /// "show", "list", "read".
    Show,
    /// "delete", "remove", "cancel".
    Delete,
    /// "take … off".
    Take,
    /// "complete", "finish".
    Complete,
    /// "mark … as done", "check off", "cross out".
    Mark,
    /// "change", "update".
    Change,
    /// "rename".
    Rename,
    /// "move", "postpone", "reschedule".
    Move,
    /// "tag", "label".
    Tag,
    /// "reopen".
    Reopen,
}

const VERBS: &[(&str, Verb)] = &[
    ("add", Verb::Add),
    ("append", Verb::Add),
    ("insert", Verb::Add),
    ("include", Verb::Add),
    ("adding", Verb::Add),
    ("put", Verb::Put),
    ("place", Verb::Put),
    ("stick", Verb::Put),
    ("throw", Verb::Put),
    ("write", Verb::Put),
    ("jot", Verb::Put),
    ("note", Verb::Put),
    ("create", Verb::Make),
    ("make", Verb::Make),
    ("set", Verb::Make),
    ("setup", Verb::Make),
    ("schedule", Verb::Make),
    ("new", Verb::Make),
    ("establish", Verb::Make),
    ("build", Verb::Make),
    ("start", Verb::Make),
    ("give", Verb::Make),
    ("send", Verb::Make),
    ("enter", Verb::Make),
    ("log", Verb::Make),
    ("record", Verb::Make),
    ("save", Verb::Make),
    ("need", Verb::Make),
    ("want", Verb::Make),
    ("generate", Verb::Make),
    ("program", Verb::Make),
    ("do", Verb::Make),
    ("remind", Verb::Remind),
    ("alert", Verb::Remind),
    ("notify", Verb::Remind),
    ("reming", Verb::Remind),
    ("remid", Verb::Remind),
    ("show", Verb::Show),
    ("list", Verb::Show),
    ("display", Verb::Show),
    ("view", Verb::Show),
    ("see", Verb::Show),
    ("read", Verb::Show),
    ("tell", Verb::Show),
    ("find", Verb::Show),
    ("get", Verb::Show),
    ("pull", Verb::Show),
    ("open", Verb::Show),
    ("bring", Verb::Show),
    ("search", Verb::Show),
    ("look", Verb::Show),
    ("review", Verb::Show),
    ("hear", Verb::Show),
    ("know", Verb::Show),
    ("access", Verb::Show),
    ("repeat", Verb::Show),
    ("describe", Verb::Show),
    ("recite", Verb::Show),
    ("print", Verb::Show),
    ("fetch", Verb::Show),
    ("retrieve", Verb::Show),
    ("delete", Verb::Delete),
    ("remove", Verb::Delete),
    ("cancel", Verb::Delete),
    ("erase", Verb::Delete),
    ("clear", Verb::Delete),
    ("drop", Verb::Delete),
    ("discard", Verb::Delete),
    ("trash", Verb::Delete),
    ("eliminate", Verb::Delete),
    ("wipe", Verb::Delete),
    ("dismiss", Verb::Delete),
    ("scrap", Verb::Delete),
    ("purge", Verb::Delete),
    ("empty", Verb::Delete),
    ("deactivate", Verb::Delete),
    ("disable", Verb::Delete),
    ("deleting", Verb::Delete),
    ("removing", Verb::Delete),
    ("canceling", Verb::Delete),
    ("nix", Verb::Delete),
    ("stop", Verb::Delete),
    ("undo", Verb::Delete),
    ("void", Verb::Delete),
    ("silence", Verb::Delete),
    ("take", Verb::Take),
    ("complete", Verb::Complete),
    ("finish", Verb::Complete),
    ("close", Verb::Complete),
    ("mark", Verb::Mark),
    ("check", Verb::Mark),
    ("tick", Verb::Mark),
    ("cross", Verb::Mark),
    ("scratch", Verb::Mark),
    ("strike", Verb::Mark),
    ("change", Verb::Change),
    ("update", Verb::Change),
    ("modify", Verb::Change),
    ("edit", Verb::Change),
    ("alter", Verb::Change),
    ("adjust", Verb::Change),
    ("revise", Verb::Change),
    ("replace", Verb::Change),
    ("switch", Verb::Change),
    ("correct", Verb::Change),
    ("fix", Verb::Change),
    ("swap", Verb::Change),
    ("amend", Verb::Change),
    ("prioritize", Verb::Change),
    ("prioritise", Verb::Change),
    ("changing", Verb::Change),
    ("updating", Verb::Change),
    ("extend", Verb::Change),
    ("convert", Verb::Change),
    ("rename", Verb::Rename),
    ("retitle", Verb::Rename),
    ("reword", Verb::Rename),
    ("move", Verb::Move),
    ("postpone", Verb::Move),
    ("reschedule", Verb::Move),
    ("push", Verb::Move),
    ("delay", Verb::Move),
    ("shift", Verb::Move),
    ("bump", Verb::Move),
    ("snooze", Verb::Move),
    ("defer", Verb::Move),
    ("moving", Verb::Move),
    ("reset", Verb::Move),
    ("rescheduled", Verb::Move),
    ("transfer", Verb::Move),
    ("tag", Verb::Tag),
    ("label", Verb::Tag),
    ("reopen", Verb::Reopen),
    ("uncheck", Verb::Reopen),
    ("unmark", Verb::Reopen),
    ("uncomplete", Verb::Reopen),
    ("restore", Verb::Reopen),
];

/// Verbs that are recognised when misspelled.
const FORGIVEN: &[&str] = &[
    "create",
    "remind",
    "show",
    "list",
    "display",
    "delete",
    "remove",
    "cancel",
    "erase",
    "clear",
    "complete",
    "finish",
    "mark",
    "change",
    "update",
    "modify",
    "rename",
    "move",
    "postpone",
    "reschedule",
    "schedule",
    "append",
    "reopen",
];

/// Words that differ by one letter from a command and are no slip.
const REAL: &[&str] = &[
    "clean",
    "shop",
    "snow",
    "slow",
    "shot",
    "shoe",
    "lost",
    "last",
    "lift",
    "left",
    "most",
    "mode",
    "made",
    "more",
    "love",
    "chance",
    "charge",
    "make",
    "market",
    "mask",
    "live",
    "life",
    "like",
    "line",
    "shower",
    "listen",
    "behind",
    "removed",
    "canceled",
    "cancelled",
    "completed",
    "finished",
    "changed",
    "lists",
    "shows",
    "marks",
    "moves",
    "changes",
    "updates",
    "reminds",
    "listed",
    "marked",
    "updated",
    "moved",
    "created",
    "deleted",
    "completes",
    "cleared",
    "learn",
    "cancer",
    "channel",
    "phase",
    "movie",
    "mint",
    "lit",
    "lisp",
    "stow",
    "post",
    "park",
    "dark",
    "work",
    "mars",
    "math",
    "rewind",
    "remodel",
    "refund",
    "repay",
    "bread",
];

pub(crate) fn verb(word: &str) -> Option<Verb> {
    if let Some((_, verb)) = VERBS.iter().find(|(known, _)| *known == word) {
        return Some(*verb);
    }
    if word == "ad" || word == "addd" || word == "aad" {
        return Some(Verb::Add);
    }
    if word.len() < 4 || REAL.contains(&word) {
        return None;
    }
    let near = FORGIVEN.iter().find(|known| resembles(word, known))?;
    VERBS.iter().find(|(known, _)| known == near).map(|(_, verb)| *verb)
}

/// What a noun stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noun {
    Task,
    Reminder,
    List,
}

/// A word for a task, a reminder or a list at `i`, how many tokens it takes and whether it is a plural.
pub(crate) fn noun(words: &Words, i: usize) -> Option<(Noun, usize, bool)> {
    if let Some(len) = words.phrase(
        i,
        &[
            "to do list",
            "to-do list",
            "todo list",
            "task list",
            "to do lists",
            "to-do lists",
            "todo lists",
            "things to do list",
        ],
    ) {
        return Some((Noun::List, len, true));
    }
    if words.matches(i, &["to", "do"])
        && !matches!(
            words.before(i),
            "need" | "have" | "has" | "how" | "want" | "going" | "supposed" | "things" | "what" | "me"
        )
    {
        return to_do(words, i);
    }
    if words.matches(i, &["to", "dos"]) || words.matches(i, &["to", "do's"]) {
        return Some((Noun::Task, 2, true));
    }
    let word = words.at(i);
    Some(match word {
        "task" | "todo" | "to-do" | "item" | "chore" | "errand" | "taks" | "tsk" => (Noun::Task, 1, false),
        "tasks" | "todos" | "to-dos" | "items" | "chores" | "errands" | "todo's" | "task's" => (Noun::Task, 1, true),
        "list" | "lists" | "agenda" | "checklist" => (Noun::List, 1, word.ends_with('s')),
        "alert" | "notification" => (Noun::Reminder, 1, false),
        "alerts" | "notifications" | "reminders" => (Noun::Reminder, 1, true),
        "remind" | "reminding" | "reminded" => return None,
        _ if is_reminder(word) => (Noun::Reminder, 1, word.ends_with('s')),
        _ => return None,
    })
}

fn is_reminder(word: &str) -> bool {
    word.starts_with("re")
        && word.len() >= 6
        && word != "remainder"
        && word != "remainders"
        && (resembles(word, "reminder") || resembles(word, "reminders"))
        && word != "remind"
        && word != "reminded"
}

/// "to do" is a noun where an article or its like stands before it or nothing that can be done follows.
fn to_do(words: &Words, i: usize) -> Option<(Noun, usize, bool)> {
    let article = matches!(
        words.before(i),
        "a" | "an"
            | "the"
            | "my"
            | "new"
            | "this"
            | "that"
            | ""
            | "add"
            | "create"
            | "delete"
            | "remove"
            | "complete"
            | "our"
            | "current"
            | "whole"
            | "entire"
    );
    article.then_some((Noun::Task, 2, false))
}

/// Whether the stretch names tasks, reminders or lists.
pub(crate) fn has_noun(words: &Words, start: usize, end: usize) -> bool {
    (start..end).any(|i| noun(words, i).is_some())
}

pub(crate) fn is_article(word: &str) -> bool {
    matches!(
        word,
        "a" | "an"
            | "the"
            | "my"
            | "our"
            | "this"
            | "that"
            | "these"
            | "those"
            | "your"
            | "his"
            | "her"
            | "their"
            | "some"
            | "any"
            | "another"
    )
}

/// The word with letters that are held ("pleeease") written once.
fn collapsed_is(word: &str, wanted: &str) -> bool {
    let mut rest = wanted.chars().peekable();
    let mut last = '\0';
    for c in word.chars() {
        if rest.peek() == Some(&c) {
            rest.next();
            last = c;
        } else if c != last {
            return false;
        }
    }
    rest.peek().is_none()
}

pub(crate) fn is_please(word: &str) -> bool {
    matches!(word, "pls" | "plz" | "kindly" | "plese" | "pleas" | "plase")
        || word.starts_with("pl") && collapsed_is(word, "please")
}

const OPENINGS: &[&str] = &[
    "i would really like you to",
    "i would like for you to",
    "i'd like for you to",
    "i would like you to",
    "i'd like you to",
    "i want you to",
    "i need you to",
    "i would like to",
    "i'd like to",
    "i wish to",
    "i want to",
    "i need to",
    "i have to",
    "i gotta",
    "i got to",
    "i've got to",
    "id like you to",
    "id like to",
    "would you mind",
    "would you be able to",
    "are you able to",
    "would it be possible to",
    "is it possible to",
    "is there a way to",
    "could you",
    "can you",
    "would you",
    "will you",
    "can u",
    "could u",
    "can we",
    "could we",
    "can i",
    "could i",
    "may i",
    "do me a favor and",
    "do me a favour and",
    "go ahead and",
    "hurry up and",
    "i need",
    "help me",
    "be sure to",
    "make sure to",
    "make sure that you",
    "let's",
    "lets",
    "let us",
    "let me",
    "try to",
    "you need to",
    "you should",
    "you can",
    "you may",
    "hey there",
    "ok google",
    "hey google",
    "hey siri",
    "hey",
    "hi",
    "hello",
    "yo",
    "ok",
    "okay",
    "alright",
    "well",
    "so",
    "um",
    "uh",
    "just",
    "also",
    "and",
    "then",
    "now",
    "yes",
    "yeah",
    "oh",
    "next",
    "first",
    "finally",
    "actually",
    "alexa",
    "siri",
    "google",
    "olly",
    "cortana",
    "assistant",
    "adjutant",
    "computer",
    "bot",
    "to",
];

/// The first token of `start..end` that is not a mark, a greeting or a courtesy.
pub(crate) fn after_courtesy(words: &Words, start: usize, end: usize) -> usize {
    let mut i = start;
    // Nobody is as polite as that; the limit keeps the time linear where this is asked at every word.
    for _ in 0..12 {
        if i >= end {
            break;
        }
        if !words.is_word(i) && !words.is_quoted(i) || is_please(words.at(i)) {
            i += 1;
        } else if let Some(n) =
            words.phrase(i, OPENINGS).filter(|n| i + n <= end && !opening_is_content(words, i, *n, end))
        {
            i += n;
        } else {
            break;
        }
    }
    i
}

/// Openings that mean something by themselves: "I need a reminder", "next task", "list to …".
fn opening_is_content(words: &Words, i: usize, n: usize, end: usize) -> bool {
    match words.at(i) {
        "i" if n == 2 && words.at(i + 1) == "need" => !is_please(words.at(i + 2)),
        "next" | "first" | "finally" | "yes" | "now" => words.at(i + 1) != ",",
        "to" => verb(words.at(i + 1)).is_none(),
        _ => i + n >= end,
    }
}

const CLOSINGS: &[&str] = &[
    "thank you so much",
    "thank you very much",
    "thanks so much",
    "thanks a lot",
    "thank you",
    "thanks",
    "thx",
    "ty",
    "cheers",
    "for me please",
    "for me",
    "if you can",
    "if possible",
    "right away",
    "right now",
    "ok",
    "okay",
    "olly",
    "alexa",
    "would you",
    "will you",
    "can you",
    "asap please",
];

/// Where `start..end` ends when courtesies and marks at its end are left out.
pub(crate) fn before_courtesy(words: &Words, start: usize, end: usize) -> usize {
    let mut end = end;
    while end > start {
        let last = end - 1;
        if !words.is_word(last) && !words.is_quoted(last) && is_closing_mark(words.at(last))
            || is_please(words.at(last))
        {
            end = last;
            continue;
        }
        let cut = CLOSINGS.iter().find_map(|phrase| {
            let n = phrase.split(' ').count();
            let from = end.checked_sub(n).filter(|from| *from > start)?;
            words.phrase(from, &[phrase]).map(|_| from)
        });
        match cut {
            Some(from) => end = from,
            None => break,
        }
    }
    end
}

fn is_closing_mark(mark: &str) -> bool {
    matches!(
        mark,
        "." | ","
            | "!"
            | "?"
            | ";"
            | ":"
            | "-"
            | "–"
            | "—"
            | "…"
            | "\n"
            | "🙏"
            | "🙂"
            | "😊"
            | "👍"
            | "❤"
            | "\u{fe0f}"
            | "*"
            | "~"
            | ")"
            | "]"
    )
}
