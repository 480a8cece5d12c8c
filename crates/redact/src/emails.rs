//! E-mail addresses.
//!
//! Never takes a package with its version, a host to log in to (`git@host:path`, `ssh://user@host`), an image's
//! scale, a systemd unit or an expression for an address.

use super::MARK;
use super::scan::{Bytes, Scan, escape_tail, run_end};

const LONGEST_LOCAL: usize = 64;
const LONGEST_DOMAIN: usize = 253;
const UNITS: [&[u8]; 7] = [b"service", b"socket", b"timer", b"target", b"slice", b"scope", b"mount"];

/// Hides the address around the `@` at `at`.
pub(super) fn hide(scan: &mut Scan, at: usize) {
    if at < scan.state.url_end {
        return;
    }
    let Some(start) = local_start(scan, at) else { return };
    let Some(end) = domain_end(scan.from(at + 1)).map(|length| at + 1 + length) else {
        return;
    };
    if !is_login(&scan.bytes[start..at], scan.from(end)) {
        scan.hide(start..end);
    }
}

/// Where the address at this `@` may begin at the earliest.
pub(super) fn least_start(scan: &Scan, at: usize) -> usize {
    at - local_length(scan, at)
}

fn local_length(scan: &Scan, at: usize) -> usize {
    scan.before(at).iter().rev().take(LONGEST_LOCAL + 1).take_while(|b| in_local(**b)).count()
}

fn local_start(scan: &Scan, at: usize) -> Option<usize> {
    let length = local_length(scan, at);
    let run = at - length;
    let start = run + escape_tail(&scan.bytes, run);
    let local = scan.bytes[..].get(start..at)?;
    let skipped = local.iter().position(|b| !matches!(b, b'.' | b'-' | b'%'))?;
    (length <= LONGEST_LOCAL && local.last() != Some(&b'.')).then_some(start + skipped)
}

/// The length of the domain at the beginning of these bytes: labels, the last of which could be a top-level domain.
fn domain_end(bytes: Bytes) -> Option<usize> {
    let domain = &bytes[..run_end(bytes, 0, LONGEST_DOMAIN, |b| in_label(b) || b == b'.')];
    let mut labels = domain.split(|b| *b == b'.');
    let first = labels.next().filter(|first| !first.is_empty())?;
    let mut end = first.len();
    let mut found = None;
    let mut last = first;
    for (i, label) in labels.enumerate() {
        let version = i == 0 && first.iter().all(u8::is_ascii_digit) && label.first().is_some_and(u8::is_ascii_digit);
        if label.is_empty() || version {
            break;
        }
        let name = label.split(|b| *b == b'-').next().unwrap_or(label);
        if is_top_level(name) {
            (found, last) = (Some(end + 1 + name.len()), name);
        }
        end += 1 + label.len();
    }
    let scale = matches!(first, [digits @ .., b'x'] if digits.iter().all(u8::is_ascii_digit) && !digits.is_empty());
    let call = found.is_some_and(|end| bytes.get(end) == Some(b'('));
    found.filter(|_| !scale && !call && !UNITS.contains(&last))
}

fn is_top_level(label: &[u8]) -> bool {
    let one_case = label.iter().all(u8::is_ascii_lowercase) || label.iter().all(u8::is_ascii_uppercase);
    (2..=24).contains(&label.len()) && one_case
}

/// Whether this names an account and a host to copy from or to: `git@host…`, `user@host:some/path`.
fn is_login(local: &[u8], after: Bytes) -> bool {
    if local == b"git" || after.first() != Some(b':') {
        return local == b"git";
    }
    let path = after.from(1);
    let directory = run_end(path, 0, 128, |b| in_label(b) || matches!(b, b'_' | b'.' | b'~'));
    path.get(directory) == Some(b'/') || path.from(directory).starts_with(MARK.as_bytes())
}

fn in_local(b: u8) -> bool {
    in_label(b) || matches!(b, b'.' | b'_' | b'%' | b'+')
}

fn in_label(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'-'
}
