//! What an answer may look like, whoever wrote it (AGENT-4, AGENT-6): no ids, no machine's talk, not too long.
//!
//! Text comes in pieces and goes out in pieces. A piece is held back as long as what follows could make an id of it, or
//! as long as the beginning of its line does not show yet what kind of line it is.

/// Prose ends with the sentence in which it gets longer than this, in characters.
const PROSE: usize = 500;
/// And with a word if that sentence does not end.
const PROSE_AT_MOST: usize = 700;
const LIST_LINES: usize = crate::wording::SHOWN;
/// So many characters of a line tell what kind of line it is.
const TELLING: usize = 32;
const UUID: usize = 36;

#[derive(Debug, Default)]
pub(crate) struct Screen {
    /// Came in, not yet judged.
    waiting: String,
    /// Went out.
    passed: String,
    /// Characters of prose that went out.
    prose: usize,
    list_lines: usize,
    hidden_lines: usize,
    line: Line,
    full: bool,
    /// Whether words of some line did not pass.
    cut: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Line {
    /// Not enough of it is known.
    #[default]
    Unknown,
    Prose,
    Item,
    /// Not for people; nothing of it goes out.
    Hidden,
}

impl Screen {
    /// Takes a piece in and gives what may go out.
    pub(crate) fn push(&mut self, piece: &str) -> Option<String> {
        if self.full {
            return None;
        }
        self.waiting.push_str(piece);
        self.release(false)
    }

    /// What is left at the end.
    pub(crate) fn finish(&mut self) -> Option<String> {
        let mut rest = self.release(true).unwrap_or_default();
        if self.hidden_lines > 0 {
            let more = format!("\nand {} more", self.hidden_lines);
            self.passed.push_str(&more);
            rest.push_str(&more);
        }
        Some(rest).filter(|rest| !rest.is_empty())
    }

    /// Whether nothing that comes now can go out: the model need not go on.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Whether more was said than went out, ids not counted.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut || self.full
    }

    /// Everything that went out.
    pub(crate) fn text(&self) -> &str {
        &self.passed
    }

    /// Words that need no screening, on a line of their own. Gives what is new.
    pub(crate) fn add_line(&mut self, words: &str) -> String {
        let gap = if self.passed.is_empty() || self.passed.ends_with('\n') { "" } else { "\n" };
        let line = format!("{gap}{words}");
        self.passed.push_str(&line);
        line
    }

    /// For somebody else's answer, which begins on a line of its own and may be as long as any. Gives the end of the line.
    pub(crate) fn start_again(&mut self) -> Option<String> {
        let passed = std::mem::take(&mut self.passed);
        *self = Self { passed, ..Self::default() };
        let open = !self.passed.is_empty() && !self.passed.ends_with('\n');
        open.then(|| self.add_line(""))
    }

    fn release(&mut self, end: bool) -> Option<String> {
        let before = self.passed.len();
        while !self.waiting.is_empty() && !self.full {
            if self.line == Line::Unknown {
                let known = self.waiting.contains('\n') || self.waiting.chars().count() >= TELLING || end;
                if !known {
                    break;
                }
                self.begin_line();
            }
            // Before anything is cut off: an id must not be taken apart.
            if find_id(&self.waiting).is_some() || find_label(&self.waiting).is_some() {
                self.waiting = without_ids(&self.waiting);
            }
            let (part, ends_line) = match self.waiting.find('\n') {
                Some(at) => (at, true),
                None if end => (self.waiting.len(), false),
                None => (self.waiting.len() - undecided(&self.waiting), false),
            };
            let text: String = self.waiting.drain(..part).collect();
            self.pass(&text);
            if ends_line {
                self.waiting.remove(0);
                self.end_line();
            } else {
                break;
            }
        }
        Some(self.passed[before..].to_owned()).filter(|text| !text.is_empty())
    }

    fn begin_line(&mut self) {
        let line = self.waiting.lines().next().unwrap_or_default().trim_start();
        self.line = if is_item(line) {
            self.list_lines += 1;
            if self.list_lines > LIST_LINES {
                self.hidden_lines += 1;
                self.cut = true;
                Line::Hidden
            } else {
                Line::Item
            }
        } else if is_machine_talk(line) {
            self.cut = true;
            Line::Hidden
        } else {
            Line::Prose
        };
    }

    fn end_line(&mut self) {
        if self.line != Line::Hidden && !self.passed.is_empty() && !self.passed.ends_with("\n\n") {
            self.passed.push('\n');
        }
        self.line = Line::Unknown;
    }

    fn pass(&mut self, text: &str) {
        match self.line {
            Line::Hidden => {}
            Line::Item => self.passed.push_str(text),
            Line::Prose | Line::Unknown => self.pass_prose(text),
        }
    }

    fn pass_prose(&mut self, text: &str) {
        for c in text.chars() {
            if self.passed.is_empty() && c.is_whitespace() {
                continue;
            }
            let ends_sentence = c.is_whitespace() && self.passed.ends_with(['.', '!', '?', '…', '。']);
            if self.prose >= PROSE && ends_sentence {
                self.full = true;
                return;
            }
            if self.prose >= PROSE_AT_MOST && (c.is_whitespace() || self.prose >= PROSE_AT_MOST + 100) {
                self.passed.push('…');
                self.full = true;
                return;
            }
            self.passed.push(c);
            self.prose += 1;
        }
    }
}

/// A whole text at once.
pub(crate) fn screened(text: &str) -> String {
    let mut screen = Screen::default();
    screen.push(text);
    screen.finish();
    screen.text().trim_end().to_owned()
}

/// "1. ☐ buy milk", "- buy milk".
fn is_item(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0 && line[digits..].starts_with(". ")) || line.starts_with("- ") || line.starts_with("* ")
}

/// What programs say to programmers.
fn is_machine_talk(line: &str) -> bool {
    const BEGINNINGS: [&str; 19] = [
        "Traceback (most recent call",
        "File \"",
        "thread '",
        "stack backtrace",
        "note: run with `RUST_BACKTRACE",
        "at java.",
        "at com.",
        "at org.",
        "at Object.",
        "at async ",
        "panic: ",
        "goroutine ",
        "Exception in thread",
        "Caused by: ",
        "{\"",
        "[{",
        "```",
        "<tool_call",
        "</",
    ];
    let exception = || {
        let word = line.split([':', '(']).next().unwrap_or_default();
        !word.contains(' ') && word.len() > 9 && (word.ends_with("Error") || word.ends_with("Exception"))
    };
    BEGINNINGS.iter().any(|beginning| line.starts_with(beginning)) || exception()
}

/// How many bytes at the end could still become an id, with the bracket before it.
fn undecided(text: &str) -> usize {
    let run: usize =
        text.chars().rev().take_while(|c| c.is_ascii_hexdigit() || *c == '-').take(UUID).map(char::len_utf8).sum();
    let before = &text[..text.len() - run];
    let lower = before.to_ascii_lowercase();
    let label = ["(id: ", "(id:", "(id", "(i", "("].into_iter().find(|label| lower.ends_with(label));
    let label = label.map_or(0, str::len);
    // An id goes with the bracket around it and the space before that.
    let with_space = |from: usize| from - usize::from(text[..from].ends_with(' '));
    let from = with_space(before.len() - label);
    text.len() - open_label(text).map_or(from, |at| from.min(with_space(at)))
}

/// Where a bracket opens at the end that may hold an id of whatever form.
fn open_label(text: &str) -> Option<usize> {
    let at = text.rfind('(')?;
    let inside = text[at + 1..].to_ascii_lowercase();
    let may_be = "id".starts_with(&inside) || inside.strip_prefix("id").is_some_and(|rest| rest.starts_with(MARKS));
    (may_be && inside.len() <= LONGEST_ID + 8 && !inside.contains(')')).then_some(at)
}

/// What may stand between the word and the id.
const MARKS: [char; 3] = [':', '#', ' '];
/// Of the ids of other servers; longer ones are words.
const LONGEST_ID: usize = 64;

/// Where the first "(ID: …)" stands, in bytes, whatever the id looks like.
fn find_label(text: &str) -> Option<(usize, usize)> {
    text.match_indices('(').find_map(|(at, _)| {
        let inside = &text[at + 1..at + 1 + text[at + 1..].find(')')?];
        let word = inside.get(..2).filter(|word| word.eq_ignore_ascii_case("id"))?;
        let id = inside[word.len()..].strip_prefix(MARKS)?.trim_start_matches(MARKS);
        let is_id = !id.is_empty() && id.len() <= LONGEST_ID && !id.contains(char::is_whitespace);
        is_id.then_some((at, at + 1 + inside.len() + 1))
    })
}

/// Ids go, together with the brackets that held them.
pub(crate) fn without_ids(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let id = find_id(rest);
        let label = find_label(rest);
        let (start, end, labelled) = match (id, label) {
            (Some((start, end)), label) if label.is_none_or(|(at, _)| start < at) => (start, end, false),
            (_, Some((start, end))) => (start, end, true),
            _ => break,
        };
        let mut before = &rest[..start];
        let mut after = &rest[end..];
        if labelled {
            before = before.trim_end();
        }
        let lower = before.to_ascii_lowercase();
        if let Some(label) = ["(id: ", "(id:", "("].into_iter().find(|label| lower.ends_with(label)) {
            before = before[..before.len() - label.len()].trim_end();
            after = after.strip_prefix(')').unwrap_or(after);
        }
        out.push_str(before);
        // What stood on both sides must not become an id of its own.
        if !before.is_empty() && !before.ends_with(' ') && after.starts_with(|c: char| c.is_alphanumeric() || c == '-')
        {
            out.push(' ');
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Where the first UUID stands, in bytes.
fn find_id(text: &str) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    (0..bytes.len().saturating_sub(UUID - 1)).find_map(|start| {
        let word = &bytes[start..start + UUID];
        let is_id = word.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
        is_id.then_some((start, start + UUID))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "0190a6d2-7c00-7000-8000-000000000000";

    #[test]
    fn ids_never_pass() {
        // AGENT-6
        let text = format!("Created task 'milk' (ID: {ID}). Its id is {ID}!");
        assert_eq!(screened(&text), "Created task 'milk'. Its id is !");
        let text = "1. ☐ milk (ID: 7)\n2. ☐ bread (id #td_91) (due Friday)\n3. ☐ show id (idea: a card) (ID)";
        let plain = "1. ☐ milk\n2. ☐ bread (due Friday)\n3. ☐ show id (idea: a card) (ID)";
        assert_eq!(screened(text), plain);
    }

    #[test]
    fn machine_talk_never_passes() {
        // AGENT-6
        let text = "Sorry about that.\nTraceback (most recent call last):\n  File \"x.py\", line 3\nValueError: no\n";
        assert_eq!(screened(text), "Sorry about that.");
        assert_eq!(screened("{\"success\": false, \"error\": 1}"), "");
        assert_eq!(screened("thread 'main' panicked at src/main.rs:3:5"), "");
    }

    #[test]
    fn prose_ends_with_a_sentence_and_lists_after_twenty_lines() {
        // AGENT-4
        let text = screened(&"This is a sentence of some length. ".repeat(3000));
        assert!(text.chars().count() < 560 && text.ends_with("length."), "{text}");
        let text = screened(&"word ".repeat(30_000));
        assert!(text.chars().count() < 800 && text.ends_with("word…"), "{text}");
        let text = screened(&"x".repeat(100_000));
        assert!(text.chars().count() < 900, "{}", text.len());
        let list: String = (1..=33).map(|n| format!("{n}. ☐ task {n}\n")).collect();
        let text = screened(&format!("You have 33 tasks:\n{list}"));
        assert!(
            text.ends_with("20. ☐ task 20\n\nand 13 more") || text.ends_with("20. ☐ task 20\nand 13 more"),
            "{text}"
        );
    }

    #[test]
    fn words_flow_before_their_sentence_ends() {
        let mut screen = Screen::default();
        assert_eq!(screen.push("I've"), None, "not enough to tell");
        let first = screen.push(" created a todo to buy the eggs ").unwrap();
        assert!(first.starts_with("I've created a todo to"), "{first}");
    }

    proptest! {
        #[test]
        fn however_it_is_cut_no_id_passes(
            before in "[a-f0-9 (-]{0,40}", after in "[a-f0-9 ).-]{0,40}", cuts in proptest::collection::vec(1usize..20, 0..20)
        ) {
            let text = format!("{before} (ID: {ID}){after} {ID}{after} (id: td_12)");
            let mut screen = Screen::default();
            let (mut rest, mut out) = (text.as_str(), String::new());
            for cut in cuts {
                let at = cut.min(rest.len());
                out.push_str(&screen.push(&rest[..at]).unwrap_or_default());
                rest = &rest[at..];
            }
            out.push_str(&screen.push(rest).unwrap_or_default());
            out.push_str(&screen.finish().unwrap_or_default());
            prop_assert!(find_id(&out).is_none() && find_label(&out).is_none(), "{out}");
            prop_assert_eq!(out, screen.text());
        }
    }
}
