//! Secrets that are known by the name before them: `password=…`, `"api_key": "…"`, `--token …`,
//! `Authorization: Bearer …`.
//!
//! Never hides a value that stands for something else, a number in JSON, or what reads as prose or code.

use std::ops::Range;

use super::prose::{self, Link, Look};
use super::scan::{Bytes, Scan, run_end};
use super::values::{self, LONGEST_HARMLESS, Quote};
use super::{MARK, names};

pub(super) const BEARER: &str = "bearer ";
const SCHEMES: [&[u8]; 8] =
    [b"Basic", b"Bearer", b"Token", b"Digest", b"ApiKey", b"Bot", b"Negotiate", b"AWS4-HMAC-SHA256"];
const LONGEST_NAME: usize = 64;
const LONGEST_TYPE: usize = 22;

/// Hides the value of the name that ends with the hit.
pub(super) fn hide(scan: &mut Scan, hit: Range<usize>) {
    // The user of a URL may be named like a secret: `https://x-access-token:…@host`.
    if scan.awaits_secret() {
        return;
    }
    if let Some(value) = name(scan, hit).and_then(|name| name.value(scan)) {
        scan.hide_later(value);
    }
}

/// Where the value of this name may begin at the earliest, however the text goes on.
pub(super) fn least_start(scan: &Scan, hit: Range<usize>) -> usize {
    let Some(name) = name(scan, hit.clone()) else { return hit.end };
    let mut start = name.link(scan.bytes).map_or(name.end, |(_, start)| start);
    // A third star would make all of them part of the value.
    while start > name.end && scan.bytes[start - 1] == b'*' {
        start -= 1;
    }
    start
}

/// Hides the token after `Bearer `, unless it is a word (`bearer of bad news`).
pub(super) fn hide_bearer(scan: &mut Scan, hit: Range<usize>) {
    if !scan.word_starts(hit.start) {
        return;
    }
    let start = blank_end(scan.bytes, hit.end);
    let in_token = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=');
    let end = run_end(scan.bytes, start, usize::MAX, in_token);
    let token = &scan.text[start..end];
    // What stands before `=` may be the name of a parameter: `Bearer realm="…"`.
    let look = |token: &str| prose::look(token.split('=').next().unwrap_or(token));
    if token.len() > LONGEST_HARMLESS || token.len() >= 6 && !matches!(look(token), Look::Word | Look::Name) {
        scan.hide(start..end);
    }
}

/// The name of a secret, and where the text goes on after it and its quote.
struct Name<'t> {
    text: &'t str,
    /// Whether it is the last part of a path: `Kind::Token`.
    in_path: bool,
    quote: Option<Quote>,
    end: usize,
}

/// The name that ends with the hit, if it ends there and is that of a secret.
fn name<'t>(scan: &Scan<'t>, hit: Range<usize>) -> Option<Name<'t>> {
    let bytes = scan.bytes;
    let in_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    // Not for tokens, which are counted far more often than kept secret.
    let plural = usize::from(!bytes[hit.clone()].eq_ignore_ascii_case(b"token"));
    let end = run_end(bytes, hit.end, plural, |b| matches!(b, b's' | b'S'));
    let end = run_end(bytes, end, 4, |b| b.is_ascii_digit() || b == b'_');
    if bytes.get(end).is_some_and(in_name) {
        return None;
    }
    let before = scan.before(hit.start).iter().rev().take(LONGEST_NAME);
    let start = hit.start - before.take_while(|b| in_name(**b)).count();
    let text = &scan.text[start..end];
    let quote = Quote::at(bytes, end);
    let in_path = scan.before(start).ends_with(b"::");
    names::is_secret(text).then(|| Name { text, in_path, quote, end: quote.map_or(end, |quote| quote.end) })
}

impl Name<'_> {
    fn value(&self, scan: &Scan) -> Option<Range<usize>> {
        let bytes = scan.bytes;
        let (link, start) = self.link(bytes)?;
        let listed = link == Link::Flag || bytes.get(start) == Some(b'[');
        let start = literal_start(bytes, start);
        if let Some(open) = Quote::at(bytes, start) {
            // What has a value itself is a field of an object, not the argument of a flag or the first of a list.
            return self.quoted(scan, open).filter(|value| !listed || !is_field(bytes, value.end));
        }
        match bytes.get(start)? {
            b'0'..=b'9' | b'-' if self.quote.is_some() => return None,
            _ if link == Link::Flag && self.quote.is_some() => return None,
            b'-' if link == Link::Flag => return None,
            b'(' | b'{' | b'[' => return None,
            b'<' if is_enclosed(bytes, start) => return None,
            _ => {}
        }
        let credentials = self.after_scheme(bytes, start);
        let start = credentials.unwrap_or(start);
        let value_end = if self.is_cookies(link) { values::line_end } else { values::bare_end };
        let end = value_end(bytes, start);
        let header = credentials.is_some() || self.text.get(..2).is_some_and(|x| x.eq_ignore_ascii_case("x-"));
        if end - start > LONGEST_HARMLESS || !self.is_harmless(scan, start..end, link, header) {
            return Some(start..end);
        }
        let open = after_type(scan, start).filter(|_| link == Link::Colon)?;
        self.quoted(scan, open)
    }

    /// What ties a value to the name, and where the value begins.
    fn link(&self, bytes: Bytes) -> Option<(Link, usize)> {
        let mut at = blank_end(bytes, emphasis_end(bytes, self.end));
        let apart = at > self.end;
        let flag = self.text.starts_with("--");
        if self.quote.is_some() && bytes.get(at) == Some(b']') {
            at = blank_end(bytes, at + 1);
            if bytes.get(at) != Some(b'=') {
                return None;
            }
        }
        at += usize::from(bytes.get(at) == Some(b'?'));
        let rest = bytes.from(at);
        if matches!(&*rest, [] | [b':' | b'='] | [b':', b'/' | b'\\']) {
            bytes.note_end();
        }
        let (link, width) = match &*rest {
            [b':', b':' | b'-' | b'+' | b'?', ..] | [b':', b'/' | b'\\', b'/', ..] | [b'=', b'=' | b'~', ..] => {
                return None;
            }
            [b'=', b'>', ..] if self.in_path => return None,
            [b':', b'=', ..] | [b'=', b'>', ..] => (Link::Spaced, 2),
            [b':', ..] => (Link::Colon, 1),
            [b'=', b' ' | b'\t', ..] => (Link::Spaced, 1),
            [b'=', ..] if apart => (Link::Spaced, 1),
            [b'=', ..] => (Link::Tight, 1),
            [b',', ..] if flag && self.quote.is_some() => return Some((Link::Flag, space_end(bytes, at + 1))),
            _ if flag && self.quote.is_none() && apart => (Link::Flag, 0),
            _ => return None,
        };
        Some((link, blank_end(bytes, emphasis_end(bytes, at + width))))
    }

    /// The value this quote opens. Unless the name is quoted so too, it may also close the string that the name is in.
    fn quoted(&self, scan: &Scan, open: Quote) -> Option<Range<usize>> {
        let opens = match self.quote {
            Some(quote) if quote.mark == open.mark => quote.depth == open.depth,
            _ => !open.closes(scan.bytes),
        };
        let end = opens.then(|| open.value_end(scan.bytes))?;
        let start = self.after_scheme(scan.bytes, open.end).filter(|start| *start <= end).unwrap_or(open.end);
        (!values::is_stand_in(&scan.text[start..end])).then_some(start..end)
    }

    fn is_harmless(&self, scan: &Scan, value: Range<usize>, link: Link, header: bool) -> bool {
        let after = scan.from(value.end);
        let value = &scan.text[value];
        let enumerated = link == Link::Spaced && matches!(after.first(), Some(b',' | b';'));
        let most_digits = match link {
            _ if enumerated => 5,
            _ if self.text.to_ascii_lowercase().contains("pass") => 1,
            Link::Tight => 3,
            _ => 5,
        };
        // `A= B=1` sets A to nothing.
        let set_next = value.split_once('=').is_some_and(|(next, _)| prose::look(next) != Look::Secret);
        values::is_stand_in(value)
            || after.starts_with(MARK.as_bytes())
            || value.len() <= most_digits && value.bytes().all(|b| b.is_ascii_digit())
            || self.ends_with("pwd") && value.starts_with(['/', '~', '.'])
            || self.is_cookies(link) && !value.split(' ').next().is_some_and(|first| first.contains('='))
            || link == Link::Spaced && set_next
            || !header && prose::is_harmless(value, self.text, link, after)
    }

    /// Where the credentials begin in `Authorization: Basic …`.
    fn after_scheme(&self, bytes: Bytes, start: usize) -> Option<usize> {
        let end = run_end(bytes, start, 20, |b| b.is_ascii_alphanumeric() || b == b'-');
        let known = || SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(&bytes[start..end]));
        let credentials = blank_end(bytes, end);
        (credentials > end && self.ends_with("authorization") && known()).then_some(credentials)
    }

    /// The value of `Cookie:` is all that stands on its line.
    fn is_cookies(&self, link: Link) -> bool {
        link == Link::Colon && self.ends_with("cookie")
    }

    fn ends_with(&self, ending: &str) -> bool {
        names::strip_end(self.text, ending).is_some()
    }
}

/// Where the literal begins that has something before it: the list it is the first of, or a letter as in `b"…"`.
fn literal_start(bytes: Bytes, start: usize) -> usize {
    let inside = match bytes.get(start) {
        Some(b'[') => space_end(bytes, start + 1),
        Some(b'b' | b'f' | b'r' | b'u') => start + 1,
        _ => return start,
    };
    Quote::at(bytes, inside).map_or(start, |_| inside)
}

/// `<your password>`
fn is_enclosed(bytes: Bytes, start: usize) -> bool {
    let in_hint = |b: u8| b.is_ascii_alphanumeric() || b" _-./|".contains(&b);
    let end = run_end(bytes, start + 1, LONGEST_NAME, in_hint);
    bytes.from(end).starts_with(b">") || bytes.from(end).starts_with(MARK.as_bytes())
}

/// Whether the string that ends here is the name of a field.
fn is_field(bytes: Bytes, end: usize) -> bool {
    let after = Quote::at(bytes, end).map_or(end, |close| close.end);
    bytes.get(space_end(bytes, after)) == Some(b':')
}

/// The literal after a declared type: `api_key: str = "…"`.
fn after_type(scan: &Scan, start: usize) -> Option<Quote> {
    let bytes = scan.bytes;
    let in_type = |b: u8| b.is_ascii_alphanumeric() || b"_&<>[]' .:|?".contains(&b);
    let end = run_end(bytes, start, LONGEST_TYPE, in_type);
    let assigned = bytes.get(end) == Some(b'=') && !scan.text[start..end].contains(MARK);
    Quote::at(bytes, assigned.then(|| blank_end(bytes, end + 1))?)
}

/// Past the `**` of `**Password:** …`.
fn emphasis_end(bytes: Bytes, start: usize) -> usize {
    let rest = bytes.from(start);
    let stars = rest.starts_with(b"**") && !rest.starts_with(b"***");
    if stars { start + 2 } else { start }
}

fn space_end(bytes: Bytes, start: usize) -> usize {
    run_end(bytes, start, usize::MAX, |b| b.is_ascii_whitespace())
}

/// Like `space_end`, but on the same line.
fn blank_end(bytes: Bytes, start: usize) -> usize {
    run_end(bytes, start.min(bytes.len()), usize::MAX, |b| matches!(b, b' ' | b'\t'))
}
