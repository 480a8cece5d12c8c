//! E-mail addresses.
//!
//! These are not addresses: a package with its version, a login host (`git@host:path`, `ssh://user@host`), an image
//! scale, a systemd unit and an expression.

use super::MARK;
use super::scan::{SecretScan, TrackedBytes, escape_tail, run_end};

const MAX_LOCAL_BYTES: usize = 64;
const MAX_DOMAIN_BYTES: usize = 253;
const SYSTEMD_UNITS: [&[u8]; 7] = [b"service", b"socket", b"timer", b"target", b"slice", b"scope", b"mount"];

/// Hides the address around the `@` at `at`. Has no effect if the `@` belongs to a URL, or if the local part or the
/// domain is not valid. A login such as `git@host` or `user@host:some/path` is not hidden either.
pub(super) fn hide(scan: &mut SecretScan, at: usize) {
    if at < scan.state.url_end {
        return;
    }
    let Some(start) = local_start(scan, at) else { return };
    let Some(end) = domain_length(scan.from(at + 1)).map(|length| at + 1 + length) else {
        return;
    };
    if !is_login(&scan.bytes[start..at], scan.from(end)) {
        scan.hide(start..end);
    }
}

/// Returns the earliest possible start of the address at this `@`.
pub(super) fn earliest_start(scan: &SecretScan, at: usize) -> usize {
    at - local_length(scan, at)
}

/// Returns the number of bytes before `at` that can belong to a local part, at most one more than [`MAX_LOCAL_BYTES`].
fn local_length(scan: &SecretScan, at: usize) -> usize {
    scan.before(at).iter().rev().take(MAX_LOCAL_BYTES + 1).take_while(|b| in_local(**b)).count()
}

/// Returns the start of the local part before `at`: ASCII letters, digits and `.-_%+`. Returns `None` if it is empty,
/// ends with a dot, or has more than [`MAX_LOCAL_BYTES`]. The rest of an escape such as `\n` or `\u00e9`, and leading
/// `.`, `-` and `%`, are not part of it, but count for the length.
fn local_start(scan: &SecretScan, at: usize) -> Option<usize> {
    let length = local_length(scan, at);
    let run = at - length;
    let start = run + escape_tail(&scan.bytes, run);
    let local = scan.bytes[..].get(start..at)?;
    let skipped = local.iter().position(|b| !matches!(b, b'.' | b'-' | b'%'))?;
    (length <= MAX_LOCAL_BYTES && local.last() != Some(&b'.')).then_some(start + skipped)
}

/// Returns the length of the domain at the start of these bytes, at most [`MAX_DOMAIN_BYTES`]. It ends with the last
/// label that can be a top-level domain: 2 to 24 ASCII letters, all in one case. A `-` and the text after it are not
/// part of that label. An empty label ends the domain.
///
/// Returns `None` if no label after the first can be a top-level domain. Also returns `None` for a version (`1.2`), an
/// image scale (`2x.png`), a systemd unit (`tty1.service`) and a call (`host.name(`).
fn domain_length(bytes: TrackedBytes) -> Option<usize> {
    let domain = &bytes[..run_end(bytes, 0, MAX_DOMAIN_BYTES, |b| in_label(b) || b == b'.')];
    let mut labels = domain.split(|b| *b == b'.');
    let first = labels.next().filter(|first| !first.is_empty())?;
    let mut end = first.len();
    let mut found = None;
    let mut last = first;
    for (i, label) in labels.enumerate() {
        let is_version =
            i == 0 && first.iter().all(u8::is_ascii_digit) && label.first().is_some_and(u8::is_ascii_digit);
        if label.is_empty() || is_version {
            break;
        }
        let name = label.split(|b| *b == b'-').next().unwrap_or(label);
        if is_top_level(name) {
            (found, last) = (Some(end + 1 + name.len()), name);
        }
        end += 1 + label.len();
    }
    let is_scale = matches!(first, [digits @ .., b'x'] if digits.iter().all(u8::is_ascii_digit) && !digits.is_empty());
    let is_call = found.is_some_and(|end| bytes.get(end) == Some(b'('));
    found.filter(|_| !is_scale && !is_call && !SYSTEMD_UNITS.contains(&last))
}

/// Returns `true` for 2 to 24 ASCII letters, all in upper case or all in lower case.
fn is_top_level(label: &[u8]) -> bool {
    let one_case = label.iter().all(u8::is_ascii_lowercase) || label.iter().all(u8::is_ascii_uppercase);
    (2..=24).contains(&label.len()) && one_case
}

/// Returns `true` for an account on a host: `git@host…`, or `user@host:` before a directory of up to 128 bytes and a
/// `/` or the mark. `local` is the text before the `@`, `after` the text after the domain.
fn is_login(local: &[u8], after: TrackedBytes) -> bool {
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
