//! Filters the text of every reply (AGENT-4, AGENT-6): removes ids and machine output, and limits the length.
//!
//! The filter works on a stream. It buffers text that may still become part of an id, and the start of a line until the
//! kind of the line is known.

mod known_ids;

use model::conversation::MessageRole;
use serde_json::Value;

use crate::AgentContext;
use known_ids::KnownIds;

/// Prose ends with the sentence that exceeds this length, in characters, unless the settings have another limit.
pub(crate) const DEFAULT_MAX_CHARS: usize = 500;
const MAX_LIST_LINES: usize = crate::wording::MAX_LISTED;
/// The number of characters that are needed to recognize the kind of a line.
const LINE_KIND_CHARS: usize = 32;
const UUID_LEN: usize = 36;

/// Filters one reply.
#[derive(Debug)]
pub(crate) struct ResponseFilter {
    /// Prose ends with the sentence that exceeds this length, in characters.
    max_chars: usize,
    known: KnownIds,
    /// Received, but not filtered yet.
    buffered: String,
    /// The filtered text.
    passed: String,
    /// Characters of prose in the filtered text.
    prose_chars: usize,
    /// List items so far, including hidden ones.
    list_lines: usize,
    /// List items that exceed the limit.
    hidden_lines: usize,
    line: LineKind,
    full: bool,
    /// Set if a line was removed.
    truncated: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum LineKind {
    /// Too little of the line is known.
    #[default]
    Unknown,
    Prose,
    Item,
    /// Removed from the reply: machine output, or an item after the last one shown.
    Hidden,
}

impl Default for ResponseFilter {
    fn default() -> Self {
        Self::new(DEFAULT_MAX_CHARS)
    }
}

impl ResponseFilter {
    /// Creates a filter with this limit of prose, in characters.
    pub(crate) fn new(max_chars: usize) -> Self {
        Self {
            max_chars,
            known: KnownIds::default(),
            buffered: String::new(),
            passed: String::new(),
            prose_chars: 0,
            list_lines: 0,
            hidden_lines: 0,
            line: LineKind::default(),
            full: false,
            truncated: false,
        }
    }

    /// Adds the ids of a tool result, which are removed from the reply.
    pub(crate) fn learn(&mut self, result: &Value) {
        self.known.add(result);
    }

    /// Adds the ids of the conversation and of the user. Texts of the user keep what looks like an id.
    pub(crate) fn learn_context(&mut self, context: &AgentContext, message: &str) {
        self.known.add_id(&Value::String(context.user.id.to_string()));
        self.known.add_text(message);
        for message in &context.history {
            if message.role == MessageRole::User {
                self.known.add_text(&message.content);
            }
            message.pending.iter().for_each(|pending| self.known.add(pending));
            for call in &message.tool_calls {
                self.known.add(&call.parameters);
                self.known.add(&call.result);
            }
        }
        for call in context.pending.iter().flat_map(|held| &held.calls) {
            call.targets.iter().for_each(|target| self.known.add_id(&target.id));
        }
    }

    /// Removes ids from a text.
    pub(crate) fn without_ids(&self, text: &str) -> String {
        without_ids(text, &self.known)
    }

    /// Filters a complete text like a reply, without adding it to this one.
    pub(crate) fn filter_text(&self, text: &str) -> String {
        let mut filter = Self { known: self.known.clone(), ..Self::new(self.max_chars) };
        filter.push(text);
        filter.finish();
        filter.text().trim_end().to_owned()
    }

    /// Adds a piece. Returns the text that can be sent now, or `None` if there is none. Ignores pieces after the length
    /// limit.
    pub(crate) fn push(&mut self, piece: &str) -> Option<String> {
        if self.full {
            return None;
        }
        self.buffered.push_str(piece);
        self.release(false)
    }

    /// Ends the reply. Returns the text that was still buffered and a line "and N more" for list items that were left
    /// out. Returns `None` if there is neither.
    pub(crate) fn finish(&mut self) -> Option<String> {
        let mut rest = self.release(true).unwrap_or_default();
        if self.hidden_lines > 0 {
            let more = format!("\nand {} more", self.hidden_lines);
            self.passed.push_str(&more);
            rest.push_str(&more);
        }
        Some(rest).filter(|rest| !rest.is_empty())
    }

    /// Returns `true` if the length limit is reached. More text has no effect.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Returns `true` if text was removed, not counting ids.
    pub(crate) fn is_truncated(&self) -> bool {
        self.truncated || self.full
    }

    /// Returns the filtered text so far.
    pub(crate) fn text(&self) -> &str {
        &self.passed
    }

    /// Adds text on its own line without filtering it. Returns the added text.
    pub(crate) fn add_line(&mut self, text: &str) -> String {
        let gap = if self.passed.is_empty() || self.passed.ends_with('\n') { "" } else { "\n" };
        let line = format!("{gap}{text}");
        self.passed.push_str(&line);
        line
    }

    /// Prepares for the reply of another model: drops buffered text, starts a new line and resets the length limit.
    /// Returns the line break, if one was needed.
    pub(crate) fn restart(&mut self) -> Option<String> {
        let passed = std::mem::take(&mut self.passed);
        let known = std::mem::take(&mut self.known);
        *self = Self { passed, known, ..Self::new(self.max_chars) };
        let open = !self.passed.is_empty() && !self.passed.ends_with('\n');
        open.then(|| self.add_line(""))
    }

    /// Filters the buffered text and returns the part that has passed, or `None` if there is none. Removes ids and
    /// hidden lines. Without `end`, keeps text that may still become an id, and the start of a line until
    /// [`LINE_KIND_CHARS`] or the line break have arrived. Stops at the length limit.
    fn release(&mut self, end: bool) -> Option<String> {
        let before = self.passed.len();
        while !self.buffered.is_empty() && !self.full {
            if self.line == LineKind::Unknown {
                let known = self.buffered.contains('\n') || self.buffered.chars().count() >= LINE_KIND_CHARS || end;
                if !known {
                    break;
                }
                self.begin_line();
            }
            // Must happen before the text is split, because a split could separate an id.
            let known = &self.known;
            if find_uuid(&self.buffered, known).is_some() || find_labelled_id(&self.buffered, known).is_some() {
                self.buffered = without_ids(&self.buffered, known);
            }
            let (part, ends_line) = match self.buffered.find('\n') {
                Some(at) => (at, true),
                None if end => (self.buffered.len(), false),
                None => (self.buffered.len() - possible_id_len(&self.buffered), false),
            };
            let text: String = self.buffered.drain(..part).collect();
            self.pass(&text);
            if ends_line {
                self.buffered.remove(0);
                self.end_line();
            } else {
                break;
            }
        }
        Some(self.passed[before..].to_owned()).filter(|text| !text.is_empty())
    }

    /// Sets the kind of the line at the start of the buffer: list item, machine output or prose. Counts list items, and
    /// hides those after [`MAX_LIST_LINES`]. Hides machine output. Hidden lines mark the reply as truncated.
    fn begin_line(&mut self) {
        let line = self.buffered.lines().next().unwrap_or_default().trim_start();
        self.line = if is_item(line) {
            self.list_lines += 1;
            if self.list_lines > MAX_LIST_LINES {
                self.hidden_lines += 1;
                self.truncated = true;
                LineKind::Hidden
            } else {
                LineKind::Item
            }
        } else if is_machine_output(line) {
            self.truncated = true;
            LineKind::Hidden
        } else {
            LineKind::Prose
        };
    }

    /// Ends a line. Adds the line break unless the line was hidden, the reply is empty or an empty line precedes.
    fn end_line(&mut self) {
        if self.line != LineKind::Hidden && !self.passed.is_empty() && !self.passed.ends_with("\n\n") {
            self.passed.push('\n');
        }
        self.line = LineKind::Unknown;
    }

    fn pass(&mut self, text: &str) {
        match self.line {
            LineKind::Hidden => {}
            LineKind::Item => self.passed.push_str(text),
            LineKind::Prose | LineKind::Unknown => self.pass_prose(text),
        }
    }

    /// Adds prose until a length limit is reached. From `max_chars` on, the reply ends after a sentence. From 1.4 times
    /// that on, it ends with "…" after a word, or within a word of more than 100 further characters. The reply is then
    /// full. White space at the start of the reply is left out.
    fn pass_prose(&mut self, text: &str) {
        let hard_limit = self.max_chars.saturating_add(self.max_chars * 2 / 5);
        for c in text.chars() {
            if self.passed.is_empty() && c.is_whitespace() {
                continue;
            }
            let ends_sentence = c.is_whitespace() && self.passed.ends_with(['.', '!', '?', '…', '。']);
            if self.prose_chars >= self.max_chars && ends_sentence {
                self.full = true;
                return;
            }
            if self.prose_chars >= hard_limit && (c.is_whitespace() || self.prose_chars >= hard_limit + 100) {
                self.passed.push('…');
                self.full = true;
                return;
            }
            self.passed.push(c);
            self.prose_chars += 1;
        }
    }
}

/// Recognizes list items: "1. ☐ buy milk", "- buy milk".
fn is_item(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0 && line[digits..].starts_with(". ")) || line.starts_with("- ") || line.starts_with("* ")
}

/// Recognizes lines of stack traces, JSON, code fences and markup by their start. Also recognizes the name of an
/// exception at the start, such as "ValueError: …". The name has at least 10 bytes.
fn is_machine_output(line: &str) -> bool {
    const PREFIXES: [&str; 19] = [
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
    PREFIXES.iter().any(|prefix| line.starts_with(prefix)) || exception()
}

/// Returns the number of bytes at the end that could still become an id. These are up to 36 hexadecimal digits and
/// hyphens (the last 36 of a longer run), and the bracket and label before them. A bracket that is still open counts
/// too if "id" and a colon, "#" or space follow it, with any text after that. It no longer counts once more than
/// [`MAX_ID_LEN`] + 8 bytes follow the bracket. One space before all that is included, so a space at the end counts
/// as 1. Case is ignored.
fn possible_id_len(text: &str) -> usize {
    let run: usize =
        text.chars().rev().take_while(|c| c.is_ascii_hexdigit() || *c == '-').take(UUID_LEN).map(char::len_utf8).sum();
    let before = &text[..text.len() - run];
    let lower = before.to_ascii_lowercase();
    let label = ["(id: ", "(id:", "(id", "(i", "("].into_iter().find(|label| lower.ends_with(label));
    let label = label.map_or(0, str::len);
    // An id is removed together with its brackets and the space before them.
    let with_space = |from: usize| from - usize::from(text[..from].ends_with(' '));
    let from = with_space(before.len() - label);
    text.len() - open_label(text).map_or(from, |at| from.min(with_space(at)))
}

/// Returns the offset of an open bracket at the end that may contain an id of any format.
fn open_label(text: &str) -> Option<usize> {
    let at = text.rfind('(')?;
    let inside = text[at + 1..].to_ascii_lowercase();
    let may_be =
        "id".starts_with(&inside) || inside.strip_prefix("id").is_some_and(|rest| rest.starts_with(ID_SEPARATORS));
    (may_be && inside.len() <= MAX_ID_LEN + 8 && !inside.contains(')')).then_some(at)
}

/// Characters between the label and the id.
const ID_SEPARATORS: [char; 3] = [':', '#', ' '];
/// The maximum length of an id of another server. Longer texts are not ids.
const MAX_ID_LEN: usize = 64;

/// Returns the byte range of the first "(ID: …)" that is removed, including the brackets. Case is ignored. At least one colon, "#" or
/// space must follow the label. The id can have any format without white space, up to [`MAX_ID_LEN`] bytes. Returns
/// `None` if there is none.
fn find_labelled_id(text: &str, known: &KnownIds) -> Option<(usize, usize)> {
    text.match_indices('(').find_map(|(at, _)| {
        let inside = &text[at + 1..at + 1 + text[at + 1..].find(')')?];
        let word = inside.get(..2).filter(|word| word.eq_ignore_ascii_case("id"))?;
        let id = inside[word.len()..].strip_prefix(ID_SEPARATORS)?.trim_start_matches(ID_SEPARATORS);
        let is_id = !id.is_empty() && id.len() <= MAX_ID_LEN && !id.contains(char::is_whitespace);
        let end = at + 1 + inside.len() + 1;
        (is_id && known.removes_labelled(id, &text[at..end])).then_some((at, end))
    })
}

/// Removes known UUIDs and labelled ids of any format, with their brackets, their label and the white space before these. A
/// UUID without a bracket is removed alone. Inserts a space where the texts on both sides would join.
fn without_ids(text: &str, known: &KnownIds) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let id = find_uuid(rest, known);
        let label = find_labelled_id(rest, known);
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
        // The texts on both sides must not join to a new id.
        if !before.is_empty() && !before.ends_with(' ') && after.starts_with(|c: char| c.is_alphanumeric() || c == '-')
        {
            out.push(' ');
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns the byte range of the first known UUID with hyphens, or `None` if there is none. Upper and lower case match. A
/// UUID inside a longer word is found too.
fn find_uuid(text: &str, known: &KnownIds) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    (0..bytes.len().saturating_sub(UUID_LEN - 1)).find_map(|start| {
        let word = &bytes[start..start + UUID_LEN];
        let is_id = word.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
        // An id consists of ASCII characters, so it can be cut out.
        let is_known = || text.get(start..start + UUID_LEN).is_some_and(|id| known.has_id(id));
        (is_id && is_known()).then_some((start, start + UUID_LEN))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "0190a6d2-7c00-7000-8000-000000000000";

    fn known() -> KnownIds {
        let mut known = KnownIds::default();
        known.add(&serde_json::json!({"task": {"id": ID, "title": "renew (ID: X9)"}}));
        known
    }

    fn filter_text(text: &str) -> String {
        ResponseFilter { known: known(), ..ResponseFilter::default() }.filter_text(text)
    }

    #[test]
    fn ids_of_others_remain() {
        // AGENT-6
        let other = "7f8d0c1e-1111-4222-8333-123456789abc";
        assert_eq!(filter_text(&format!("The serial is {other}, not {ID}.")), format!("The serial is {other}, not ."));
        assert_eq!(filter_text("1. ☐ renew (ID: X9)"), "1. ☐ renew (ID: X9)", "a title");
        assert_eq!(filter_text("Created 'milk' (ID: X8)."), "Created 'milk'.");
    }

    #[test]
    fn the_limit_is_a_setting() {
        // AGENT-4
        let text = "This is a sentence of some length. ".repeat(300);
        let filter = ResponseFilter::new(2000);
        let length = filter.filter_text(&text).chars().count();
        assert!((2000..2060).contains(&length), "{length}");
    }

    #[test]
    fn ids_are_removed() {
        // AGENT-6
        let text = format!("Created task 'milk' (ID: {ID}). Its id is {ID}!");
        assert_eq!(filter_text(&text), "Created task 'milk'. Its id is !");
        let text = "1. ☐ milk (ID: 7)\n2. ☐ bread (id #td_91) (due Friday)\n3. ☐ show id (idea: a card) (ID)";
        let plain = "1. ☐ milk\n2. ☐ bread (due Friday)\n3. ☐ show id (idea: a card) (ID)";
        assert_eq!(filter_text(text), plain);
    }

    #[test]
    fn machine_output_is_removed() {
        // AGENT-6
        let text = "Sorry about that.\nTraceback (most recent call last):\n  File \"x.py\", line 3\nValueError: no\n";
        assert_eq!(filter_text(text), "Sorry about that.");
        assert_eq!(filter_text("{\"success\": false, \"error\": 1}"), "");
        assert_eq!(filter_text("thread 'main' panicked at src/main.rs:3:5"), "");
    }

    #[test]
    fn prose_ends_at_a_sentence_and_lists_after_20_items() {
        // AGENT-4
        let text = filter_text(&"This is a sentence of some length. ".repeat(3000));
        assert!(text.chars().count() < 560 && text.ends_with("length."), "{text}");
        let text = filter_text(&"word ".repeat(30_000));
        assert!(text.chars().count() < 800 && text.ends_with("word…"), "{text}");
        let text = filter_text(&"x".repeat(100_000));
        assert!(text.chars().count() < 900, "{}", text.len());
        let list: String = (1..=33).map(|n| format!("{n}. ☐ task {n}\n")).collect();
        let text = filter_text(&format!("You have 33 tasks:\n{list}"));
        assert!(
            text.ends_with("20. ☐ task 20\n\nand 13 more") || text.ends_with("20. ☐ task 20\nand 13 more"),
            "{text}"
        );
    }

    #[test]
    fn text_is_sent_before_its_sentence_ends() {
        let mut filter = ResponseFilter::default();
        assert_eq!(filter.push("I've"), None, "the kind of the line is not known yet");
        let first = filter.push(" created a todo to buy the eggs ").unwrap();
        assert!(first.starts_with("I've created a todo to"), "{first}");
    }

    proptest! {
        #[test]
        fn ids_are_removed_from_any_split(
            before in "[a-f0-9 (-]{0,40}", after in "[a-f0-9 ).-]{0,40}", cuts in proptest::collection::vec(1usize..20, 0..20)
        ) {
            let text = format!("{before} (ID: {ID}){after} {ID}{after} (id: td_12)");
            let mut filter = ResponseFilter { known: known(), ..ResponseFilter::default() };
            let (mut rest, mut out) = (text.as_str(), String::new());
            for cut in cuts {
                let at = cut.min(rest.len());
                out.push_str(&filter.push(&rest[..at]).unwrap_or_default());
                rest = &rest[at..];
            }
            out.push_str(&filter.push(rest).unwrap_or_default());
            out.push_str(&filter.finish().unwrap_or_default());
            let known = known();
            prop_assert!(find_uuid(&out, &known).is_none() && find_labelled_id(&out, &known).is_none(), "{out}");
            prop_assert_eq!(out, filter.text());
        }
    }
}
