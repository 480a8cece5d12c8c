//! Secrets that follow a secret name: `password=…`, `"api_key": "…"`, `--token …`, `Authorization: Bearer …`.
//!
//! Placeholders, numbers in JSON, prose and source code are not hidden.

use std::ops::Range;

use super::prose::{self, Separator, ValueKind};
use super::scan::{SecretScan, TrackedBytes, run_end};
use super::values::{self, MAX_HARMLESS_BYTES, Quote};
use super::{MARK, names};

pub(super) const BEARER: &str = "bearer ";
const SCHEMES: [&[u8]; 8] =
    [b"Basic", b"Bearer", b"Token", b"Digest", b"ApiKey", b"Bot", b"Negotiate", b"AWS4-HMAC-SHA256"];
const MAX_NAME_BYTES: usize = 64;
const MAX_TYPE_BYTES: usize = 22;

/// Hides the value of the name that ends with the hit. Does nothing if the name is not secret, if it has no value, if
/// the value is harmless, or if another value is already deferred.
pub(super) fn hide(scan: &mut SecretScan, hit: Range<usize>) {
    // The user of a URL may have a secret name: `https://x-access-token:…@host`.
    if scan.has_deferred() {
        return;
    }
    if let Some(value) = find_name(scan, hit).and_then(|name| name.value(scan)) {
        scan.hide_deferred(value);
    }
}

/// Returns the earliest possible start of the value, for every continuation of the text. Stars before the value count
/// as part of it. Returns the end of the name if no separator follows yet, and the end of the hit if it is not a secret
/// name.
pub(super) fn earliest_start(scan: &SecretScan, hit: Range<usize>) -> usize {
    let Some(name) = find_name(scan, hit.clone()) else { return hit.end };
    let mut start = name.separator(scan.bytes).map_or(name.end, |(_, start)| start);
    // With a third star, all stars would be part of the value.
    while start > name.end && scan.bytes[start - 1] == b'*' {
        start -= 1;
    }
    start
}

/// Hides the token after `Bearer `. Has no effect if `Bearer` is in the middle of a word, or if the token has fewer
/// than 6 bytes. A word or a name made of words is not hidden (`bearer of bad news`). Only the text before a `=` is
/// classified, as in `Bearer realm="…"`. A token of more than [`MAX_HARMLESS_BYTES`] is always hidden.
pub(super) fn hide_bearer(scan: &mut SecretScan, hit: Range<usize>) {
    if !scan.word_starts(hit.start) {
        return;
    }
    let start = blank_end(scan.bytes, hit.end);
    let in_token = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=');
    let end = run_end(scan.bytes, start, usize::MAX, in_token);
    let token = &scan.text[start..end];
    // The text before `=` may be the name of a parameter: `Bearer realm="…"`.
    let kind = |token: &str| prose::classify(token.split('=').next().unwrap_or(token));
    if token.len() > MAX_HARMLESS_BYTES || token.len() >= 6 && !matches!(kind(token), ValueKind::Word | ValueKind::Name)
    {
        scan.hide(start..end);
    }
}

/// The name of a secret and the end of the name, including its quote.
struct SecretName<'t> {
    text: &'t str,
    /// `true` if it is the last part of a path: `Kind::Token`.
    in_path: bool,
    /// The quote after the name.
    quote: Option<Quote>,
    end: usize,
}

/// Returns the secret name that ends with the hit, an optional plural `s` (not for `token`) and up to four digits or
/// `_`. The name includes up to [`MAX_NAME_BYTES`] letters, digits, `_`, `-` and `.` before the hit. Its end includes a
/// quote after it. Returns `None` if the name continues after that, or if it is not secret.
fn find_name<'t>(scan: &SecretScan<'t>, hit: Range<usize>) -> Option<SecretName<'t>> {
    let bytes = scan.bytes;
    let in_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    // `tokens` is excluded, because it usually is a number of tokens.
    let plural = usize::from(!bytes[hit.clone()].eq_ignore_ascii_case(b"token"));
    let end = run_end(bytes, hit.end, plural, |b| matches!(b, b's' | b'S'));
    let end = run_end(bytes, end, 4, |b| b.is_ascii_digit() || b == b'_');
    if bytes.get(end).is_some_and(in_name) {
        return None;
    }
    let before = scan.before(hit.start).iter().rev().take(MAX_NAME_BYTES);
    let start = hit.start - before.take_while(|b| in_name(**b)).count();
    let text = &scan.text[start..end];
    let quote = Quote::at(bytes, end);
    let in_path = scan.before(start).ends_with(b"::");
    names::is_secret(text).then(|| SecretName { text, in_path, quote, end: quote.map_or(end, |quote| quote.end) })
}

impl SecretName<'_> {
    /// Returns the range of the value to hide. Returns `None` if no value follows the name, or if the value is a
    /// placeholder, prose or code. Other rules:
    ///
    /// - A literal may follow `[` or a prefix as in `b"…"`. It is no value if a `:` follows it in a list or after a
    ///   flag.
    /// - After a quoted name, an unquoted value that starts with a digit or `-` is no value, nor is any after a flag.
    /// - A value that starts with `(`, `{` or `[`, a hint such as `<password>`, and `-` after a flag are no values.
    /// - The scheme of an authorization is left out. The value of a `Cookie:` header is the rest of the line.
    /// - After a scheme, and after a name that starts with `x-`, an unquoted value is never taken for prose or code.
    /// - An unquoted value of more than [`MAX_HARMLESS_BYTES`] is always hidden.
    /// - After a declared type (`key: str = "…"`), the value is the literal.
    fn value(&self, scan: &SecretScan) -> Option<Range<usize>> {
        let bytes = scan.bytes;
        let (separator, start) = self.separator(bytes)?;
        let is_listed = separator == Separator::Flag || bytes.get(start) == Some(b'[');
        let start = literal_start(bytes, start);
        if let Some(open) = Quote::at(bytes, start) {
            // A string with a value of its own is a field of an object, not the argument of a flag or the first entry
            // of a list.
            return self.quoted_value(scan, open).filter(|value| !is_listed || !is_field_name(bytes, value.end));
        }
        match bytes.get(start)? {
            b'0'..=b'9' | b'-' if self.quote.is_some() => return None,
            _ if separator == Separator::Flag && self.quote.is_some() => return None,
            b'-' if separator == Separator::Flag => return None,
            b'(' | b'{' | b'[' => return None,
            b'<' if is_hint(bytes, start) => return None,
            _ => {}
        }
        let credentials = self.after_scheme(bytes, start);
        let start = credentials.unwrap_or(start);
        let value_end = if self.is_cookie_header(separator) { values::line_end } else { values::bare_end };
        let end = value_end(bytes, start);
        let header = credentials.is_some() || self.text.get(..2).is_some_and(|x| x.eq_ignore_ascii_case("x-"));
        if end - start > MAX_HARMLESS_BYTES || !self.is_harmless(scan, start..end, separator, header) {
            return Some(start..end);
        }
        let open = after_type(scan, start).filter(|_| separator == Separator::Colon)?;
        self.quoted_value(scan, open)
    }

    /// Returns the separator and the start of the value, after blanks and `**`. Blanks, `**`, `?` and the `]` of
    /// `["name"] = …` may precede the separator.
    ///
    /// - `:` is `Colon`. `:=`, `=>` and a `=` with a blank before or after it are `Spaced`. Any other `=` is `Tight`.
    /// - A blank after `--name`, or a comma after `"--name"`, is `Flag`. After the comma, line breaks are skipped too.
    /// - Returns `None` for `::`, `:-`, `:+`, `:?`, `://`, `:\/`, `==`, `=~`, for `=>` after a path (`Kind::Token =>`),
    ///   and for everything else.
    ///
    /// Sets the flag of `bytes` if more text could change the result.
    fn separator(&self, bytes: TrackedBytes) -> Option<(Separator, usize)> {
        let mut at = blank_end(bytes, emphasis_end(bytes, self.end));
        let is_apart = at > self.end;
        let is_flag = self.text.starts_with("--");
        if self.quote.is_some() && bytes.get(at) == Some(b']') {
            at = blank_end(bytes, at + 1);
            if bytes.get(at) != Some(b'=') {
                return None;
            }
        }
        at += usize::from(bytes.get(at) == Some(b'?'));
        let rest = bytes.from(at);
        if matches!(&*rest, [] | [b':' | b'='] | [b':', b'/' | b'\\']) {
            bytes.mark_end_reached();
        }
        let (separator, width) = match &*rest {
            [b':', b':' | b'-' | b'+' | b'?', ..] | [b':', b'/' | b'\\', b'/', ..] | [b'=', b'=' | b'~', ..] => {
                return None;
            }
            [b'=', b'>', ..] if self.in_path => return None,
            [b':', b'=', ..] | [b'=', b'>', ..] => (Separator::Spaced, 2),
            [b':', ..] => (Separator::Colon, 1),
            [b'=', b' ' | b'\t', ..] => (Separator::Spaced, 1),
            [b'=', ..] if is_apart => (Separator::Spaced, 1),
            [b'=', ..] => (Separator::Tight, 1),
            [b',', ..] if is_flag && self.quote.is_some() => return Some((Separator::Flag, space_end(bytes, at + 1))),
            _ if is_flag && self.quote.is_none() && is_apart => (Separator::Flag, 0),
            _ => return None,
        };
        Some((separator, blank_end(bytes, emphasis_end(bytes, at + width))))
    }

    /// Returns the value that this quote opens, without the scheme of an authorization. Returns `None` for a
    /// placeholder, and if the quote does not open a value. If the name has a quote with the same mark, both must have
    /// the same depth. Otherwise, the quote must not close the string around the name.
    fn quoted_value(&self, scan: &SecretScan, open: Quote) -> Option<Range<usize>> {
        let opens = match self.quote {
            Some(quote) if quote.mark == open.mark => quote.depth == open.depth,
            _ => !open.closes(scan.bytes),
        };
        let end = opens.then(|| open.value_end(scan.bytes))?;
        let start = self.after_scheme(scan.bytes, open.end).filter(|start| *start <= end).unwrap_or(open.end);
        (!values::is_placeholder(&scan.text[start..end])).then_some(start..end)
    }

    /// Returns `true` if an unquoted value is not a secret:
    ///
    /// - A placeholder, or a value before the mark.
    /// - Up to 5 digits. Only 3 after a tight `=`, and 1 for names with `pass`, unless `,` or `;` follows after a
    ///   spaced `=`.
    /// - After `pwd`, a path that starts with `/`, `~` or `.`.
    /// - For a `Cookie:` header, a value without `=` in its first word.
    /// - After a spaced `=`, the next assignment: in `A= B=1`, the value of A is empty.
    /// - Prose or code. With `header`, the value belongs to an HTTP header and is never taken for prose or code.
    fn is_harmless(&self, scan: &SecretScan, value: Range<usize>, separator: Separator, header: bool) -> bool {
        let after = scan.from(value.end);
        let value = &scan.text[value];
        let is_enumerated = separator == Separator::Spaced && matches!(after.first(), Some(b',' | b';'));
        let max_digits = match separator {
            _ if is_enumerated => 5,
            _ if self.text.to_ascii_lowercase().contains("pass") => 1,
            Separator::Tight => 3,
            _ => 5,
        };
        // In `A= B=1`, the value of A is empty.
        let is_next_assignment =
            value.split_once('=').is_some_and(|(next, _)| prose::classify(next) != ValueKind::Secret);
        values::is_placeholder(value)
            || after.starts_with(MARK.as_bytes())
            || value.len() <= max_digits && value.bytes().all(|b| b.is_ascii_digit())
            || self.ends_with("pwd") && value.starts_with(['/', '~', '.'])
            || self.is_cookie_header(separator) && !value.split(' ').next().is_some_and(|first| first.contains('='))
            || separator == Separator::Spaced && is_next_assignment
            || !header && prose::is_harmless(value, self.text, separator, after)
    }

    /// Returns the start of the credentials in `Authorization: Basic …`. Returns `None` if the name does not end with
    /// `authorization`, or if no known scheme follows.
    fn after_scheme(&self, bytes: TrackedBytes, start: usize) -> Option<usize> {
        let end = run_end(bytes, start, 20, |b| b.is_ascii_alphanumeric() || b == b'-');
        let is_known = || SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(&bytes[start..end]));
        let credentials = blank_end(bytes, end);
        (credentials > end && self.ends_with("authorization") && is_known()).then_some(credentials)
    }

    /// Returns `true` for a `Cookie:` header. Its value is the rest of the line.
    fn is_cookie_header(&self, separator: Separator) -> bool {
        separator == Separator::Colon && self.ends_with("cookie")
    }

    fn ends_with(&self, ending: &str) -> bool {
        names::strip_end(self.text, ending).is_some()
    }
}

/// Returns the start of a literal after the bracket of a list and white space, or after a prefix `b`, `f`, `r` or `u`
/// as in `b"…"`. Returns `start` if there is no such literal.
fn literal_start(bytes: TrackedBytes, start: usize) -> usize {
    let inside = match bytes.get(start) {
        Some(b'[') => space_end(bytes, start + 1),
        Some(b'b' | b'f' | b'r' | b'u') => start + 1,
        _ => return start,
    };
    Quote::at(bytes, inside).map_or(start, |_| inside)
}

/// Returns `true` for a hint such as `<your password>`, also if it is followed by the mark.
fn is_hint(bytes: TrackedBytes, start: usize) -> bool {
    let in_hint = |b: u8| b.is_ascii_alphanumeric() || b" _-./|".contains(&b);
    let end = run_end(bytes, start + 1, MAX_NAME_BYTES, in_hint);
    bytes.from(end).starts_with(b">") || bytes.from(end).starts_with(MARK.as_bytes())
}

/// Returns `true` if the string that ends here is the name of a field: a colon follows.
fn is_field_name(bytes: TrackedBytes, end: usize) -> bool {
    let after = Quote::at(bytes, end).map_or(end, |close| close.end);
    bytes.get(space_end(bytes, after)) == Some(b':')
}

/// Returns the quote of a literal after a declared type: `api_key: str = "…"`. Returns `None` if no type and no literal
/// follow.
fn after_type(scan: &SecretScan, start: usize) -> Option<Quote> {
    let bytes = scan.bytes;
    let in_type = |b: u8| b.is_ascii_alphanumeric() || b"_&<>[]' .:|?".contains(&b);
    let end = run_end(bytes, start, MAX_TYPE_BYTES, in_type);
    let is_assigned = bytes.get(end) == Some(b'=') && !scan.text[start..end].contains(MARK);
    Quote::at(bytes, is_assigned.then(|| blank_end(bytes, end + 1))?)
}

/// Returns the position after the `**` of `**Password:** …`.
fn emphasis_end(bytes: TrackedBytes, start: usize) -> usize {
    let rest = bytes.from(start);
    let stars = rest.starts_with(b"**") && !rest.starts_with(b"***");
    if stars { start + 2 } else { start }
}

/// Returns the end of white space, including line breaks.
fn space_end(bytes: TrackedBytes, start: usize) -> usize {
    run_end(bytes, start, usize::MAX, |b| b.is_ascii_whitespace())
}

/// Returns the end of white space on the same line.
fn blank_end(bytes: TrackedBytes, start: usize) -> usize {
    run_end(bytes, start.min(bytes.len()), usize::MAX, |b| matches!(b, b' ' | b'\t'))
}
