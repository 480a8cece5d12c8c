//! Parses a message of several lines as a list of tasks. Every line is a task, with or without a heading.
//!
//! No line is dropped. Lines with a command of their own ("delete the milk task") keep it.

use jiff::Zoned;

use crate::clause::Clause;
use crate::command;
use crate::intent;
use crate::lexicon;
use crate::parsed::{DayOrTime, Intent, ParsedCommand, ParsedUtterance};
use crate::tokens::TokenizedText;
use crate::utterance;
use crate::vocabulary::{self, Noun, Verb};

/// The largest number of lines of a list.
const MAX_LINES: usize = 50;

/// The largest number of words of a line that is a task without a bullet.
const MAX_PLAIN_WORDS: usize = 10;

/// One line of a message without its bullet.
struct TaskLine<'a> {
    text: &'a str,
    is_bulleted: bool,
}

/// Returns the commands of a list of lines. A heading is a line before bullets, or a first line with a colon at its end.
/// It must announce tasks; its date applies to tasks without one. Without bullets, at least half of the lines must be
/// new tasks on their own. Returns `None` for other messages, which are parsed clause by clause.
pub(crate) fn parse(words: &TokenizedText, now: &Zoned) -> Option<ParsedUtterance> {
    let text = words.text(0..words.len());
    if !text.contains('\n') {
        return parse_numbered(words, text, now);
    }
    let lines: Vec<TaskLine> =
        text.lines().map(without_bullet).filter(|line| !line.text.is_empty()).take(MAX_LINES + 1).collect();
    let first = lines.first().filter(|_| (2..=MAX_LINES).contains(&lines.len()))?;
    let items = lines.get(1..)?;
    let last = items.len().saturating_sub(1);
    let closes = |i: usize, line: &TaskLine| i == last && i > 0 && is_remark(line.text);
    let bullets = items.iter().enumerate().all(|(i, line)| line.is_bulleted || closes(i, line));
    let colon = first.text.ends_with(':');
    // "add milk" above bullets is a task and no heading.
    let own = || parse_line(words, first.text, now);
    if !first.is_bulleted && bullets && !colon && own().iter().all(|command| command.title.is_some()) {
        let items = items.iter().filter(|line| line.is_bulleted);
        return utterance_of(
            own().into_iter().chain(items.flat_map(|line| parse_item(words, line.text, now))).collect(),
        );
    }
    if !first.is_bulleted && (colon || bullets) && announces_tasks(first.text) {
        let due = heading_date(first.text, now);
        let commands = items.iter().filter(|line| line.is_bulleted || !is_remark(line.text));
        let commands = commands.flat_map(|line| parse_item(words, line.text, now));
        return utterance_of(commands.map(|command| with_date(command, due)).collect());
    }
    if first.is_bulleted && bullets {
        let items = lines.iter().filter(|line| line.is_bulleted);
        return utterance_of(items.flat_map(|line| parse_item(words, line.text, now)).collect());
    }
    if colon || lines.iter().any(|line| line.is_bulleted) {
        return None;
    }
    parse_plain(words, &lines, now)
}

/// Returns the commands of lines without bullets. Remarks ("thanks") and questions are no tasks.
fn parse_plain(words: &TokenizedText, lines: &[TaskLine], now: &Zoned) -> Option<ParsedUtterance> {
    if lines.iter().any(|line| line.text.split_whitespace().count() > MAX_PLAIN_WORDS) {
        return None;
    }
    let parsed: Vec<Vec<ParsedCommand>> = lines.iter().map(|line| parse_line(words, line.text, now)).collect();
    let is_new = |commands: &Vec<ParsedCommand>| {
        commands.iter().any(|command| command.intent == Intent::CreateTask && command.title.is_some())
    };
    let count = lines
        .iter()
        .zip(&parsed)
        .filter(|(line, commands)| is_new(commands) || is_activity(words, line.text, now))
        .count();
    if count * 2 < lines.len() || count < lines.len() && !parsed.iter().any(is_new) {
        return None;
    }
    let commands = lines.iter().zip(parsed).flat_map(|(line, commands)| {
        let unknown = commands.iter().all(|command| command.intent == Intent::Unknown);
        match unknown {
            true if is_remark(line.text) => Vec::new(),
            true => vec![parse_title(words, line.text, now)],
            false => commands,
        }
    });
    utterance_of(commands.collect())
}

/// Returns true if a line begins with an activity: "call Bob".
fn is_activity(words: &TokenizedText, line: &str, now: &Zoned) -> bool {
    let own = line_tokens(words, line);
    let end = own.len();
    let clause = Clause::new(&own, 0..end, now);
    intent::is_activity(&clause, clause.start) && clause.end - clause.start > 1 && !clause.is_out_of_scope()
}

/// Returns the commands of a numbered list on one line: "1. buy milk 2. call Bob". The numbers ascend from 1 and have the
/// same mark. Returns `None` for other texts.
fn parse_numbered(words: &TokenizedText, text: &str, now: &Zoned) -> Option<ParsedUtterance> {
    let mark = text.strip_prefix('1')?.chars().next().filter(|mark| matches!(mark, '.' | ')'))?;
    let mut rest = text.strip_prefix('1')?.strip_prefix(mark).filter(|rest| rest.starts_with(' '))?;
    let mut items = Vec::new();
    for n in 2..=MAX_LINES {
        let Some((item, after)) = rest.split_once(&format!(" {n}{mark} ")) else { break };
        items.push(item);
        rest = after;
    }
    items.push(rest);
    let item = |item: &&str| parse_item(words, item.trim().trim_end_matches([',', ';']), now);
    if items.len() < 2 {
        return None;
    }
    utterance_of(items.iter().flat_map(item).collect())
}

/// Returns the commands of a bulleted line. A line that names an existing task keeps its command, any other line is a
/// new task.
fn parse_item(words: &TokenizedText, line: &str, now: &Zoned) -> Vec<ParsedCommand> {
    let commands = parse_line(words, line, now);
    let own = TokenizedText::new(line);
    let names_task = (0..own.len())
        .any(|i| vocabulary::noun(&own, i).is_some_and(|(noun, _, plural)| noun != Noun::List && !plural));
    let keeps = commands.iter().all(|command| match command.intent {
        Intent::CreateTask | Intent::ScheduleReminder => command.title.is_some() || command.target.is_some(),
        Intent::Unknown => false,
        _ => names_task && !command.implied,
    });
    // A title such as "milk and call Bob" stays one task.
    if keeps && commands.len() == 1 { commands } else { vec![parse_title(words, line, now)] }
}

fn parse_line(words: &TokenizedText, line: &str, now: &Zoned) -> Vec<ParsedCommand> {
    utterance::parse(&line_tokens(words, line), now).commands
}

/// Returns a line as a new task.
fn parse_title(words: &TokenizedText, line: &str, now: &Zoned) -> ParsedCommand {
    let own = line_tokens(words, line);
    let end = own.len();
    command::parse_list_item(&mut Clause::new(&own, 0..end, now), Intent::CreateTask).into_command()
}

/// Returns the tokens of a line with the settings of the message.
fn line_tokens<'l>(words: &TokenizedText, line: &'l str) -> TokenizedText<'l> {
    let mut own = TokenizedText::new(line);
    own.date_order = words.date_order;
    own.assume_tasks = words.assume_tasks;
    own
}

/// Returns a line without white space, a bullet, a box or a number: "- milk", "2. eggs", "3) flour", "\[ \] bread".
fn without_bullet(line: &str) -> TaskLine<'_> {
    let line = line.trim();
    let mut text = line;
    for _ in 0..2 {
        let boxed = ["[ ]", "[]", "[x]", "[X]", "☐", "☑"].iter().find_map(|mark| text.strip_prefix(mark));
        let marked = text.strip_prefix(['•', '‣', '◦', '·']).or_else(|| {
            let rest = text.strip_prefix(['-', '*', '+', '–', '—'])?;
            rest.starts_with(char::is_whitespace).then_some(rest)
        });
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let numbered = text
            .get(digits..)
            .filter(|_| (1..=2).contains(&digits))
            .and_then(|rest| rest.strip_prefix(['.', ')', ':']).filter(|rest| rest.starts_with(char::is_whitespace)));
        match boxed.or(marked).or(numbered) {
            Some(rest) => text = rest.trim_start(),
            None => break,
        }
    }
    TaskLine { text: text.trim_end(), is_bulleted: text.len() < line.len() }
}

/// Returns true for a heading above tasks: "I have to:", "things to do tomorrow:", "please add:", "shopping list:". It
/// must not delete, complete or ask.
fn announces_tasks(heading: &str) -> bool {
    let words = TokenizedText::new(heading);
    if words.len() > 14 || heading.contains('?') {
        return false;
    }
    let verbs: Vec<Verb> = (0..words.len()).filter_map(|i| vocabulary::verb(words.at(i))).collect();
    let acts = |verb: &Verb| {
        matches!(
            verb,
            Verb::Delete | Verb::Complete | Verb::Mark | Verb::Rename | Verb::Move | Verb::Reopen | Verb::Take
        )
    };
    let announces = (0..words.len()).any(|i| {
        vocabulary::noun(&words, i).is_some()
            || matches!(vocabulary::verb(words.at(i)), Some(Verb::Add | Verb::Put | Verb::Remind))
            || words.phrase(i, lexicon::reminders::LIST_ANNOUNCEMENTS).is_some()
            || matches!((words.at(i), words.at(i + 1)), ("we", "need") | ("don't", "forget") | ("for", "tomorrow"))
    });
    let dated = words.len() <= 5 && !words.is_quoted(0) && heading_is_date(&words);
    (announces || dated) && !verbs.iter().any(acts)
}

/// Returns true for a heading of a day: "tomorrow:", "for the weekend:".
fn heading_is_date(words: &TokenizedText) -> bool {
    (0..words.len()).any(|i| {
        lexicon::corrections::DAYS.contains(words.at(i))
            || matches!(words.at(i), "weekend" | "week" | "tonight" | "month")
    })
}

/// Returns the day of a heading: "tomorrow:".
fn heading_date(heading: &str, now: &Zoned) -> Option<DayOrTime> {
    let words = TokenizedText::new(heading);
    let end = words.len();
    Clause::new(&words, 0..end, now).dates.first().and_then(|found| found.resolve(now))
}

fn with_date(mut command: ParsedCommand, due: Option<DayOrTime>) -> ParsedCommand {
    if command.intent == Intent::CreateTask && command.recurrence.is_none() {
        command.when = command.when.or(due);
    }
    command
}

/// Returns true for a line that is no task: "thanks", "please", a question or a sentence about the user.
fn is_remark(line: &str) -> bool {
    let words = TokenizedText::new(line);
    let mut has_word = false;
    for i in 0..words.len() {
        has_word |= words.is_word(i) || words.is_quoted(i);
    }
    !has_word
        || line.ends_with('?')
        || lexicon::clauses::REMARK_OPENERS.contains(words.at(0))
        || matches!(
            words.at(0),
            "hi" | "hey" | "hello" | "cheers" | "thx" | "bye" | "is" | "are" | "what" | "why" | "how"
        )
        || words.at(0) == "the" && (1..words.len()).any(|i| matches!(words.at(i), "is" | "are" | "was" | "were"))
}

/// Returns an utterance with these commands, or `None` without commands.
fn utterance_of(commands: Vec<ParsedCommand>) -> Option<ParsedUtterance> {
    (!commands.is_empty()).then(|| ParsedUtterance { commands, ..ParsedUtterance::default() })
}
