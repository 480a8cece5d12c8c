//! Passwords and tokens in addresses: `scheme://user:password@host`, `https://token@host`.
//!
//! Never hides a user's name or the host, and never looks past the host.

use super::scan::{Scan, run_end};
use super::shapes::looks_random;
use super::{MARK, values};

const LONGEST_TOKEN: usize = 512;
const SHORTEST_TOKEN: usize = 16;

/// Looks at the address whose `://` ends at `start`.
pub(super) fn hide(scan: &mut Scan, start: usize, secrets: bool) {
    let Some(at) = account_end(scan, start) else { return };
    scan.url_end = at + 1;
    if !secrets {
        return;
    }
    let account = &scan.text[start..at];
    let (user, password) = account.split_once(':').unwrap_or((account, ""));
    if is_token(user) {
        scan.hide(start..start + user.len());
    }
    if !values::is_placeholder(password) {
        scan.hide_later(at - password.len()..at);
    }
}

/// The last `@` before the host ends: some write a bare `@` in the password.
fn account_end(scan: &Scan, start: usize) -> Option<usize> {
    let mut end = start;
    loop {
        end = run_end(scan.bytes, end, usize::MAX, |b| !ends_host(b) && b != b'[');
        if !scan.from(end).starts_with(b"[") || scan.from(end).starts_with(MARK.as_bytes()) {
            break;
        }
        end += 1;
    }
    let at = scan.bytes[start..end].iter().rposition(|b| *b == b'@')?;
    Some(start + at)
}

fn ends_host(b: u8) -> bool {
    b <= b' ' || matches!(b, b'/' | b'?' | b'#' | b'\\' | b'"' | b'\'' | b'`' | b'<' | b'>')
}

fn is_token(user: &str) -> bool {
    let possible = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'~' | b'=' | b'+');
    (SHORTEST_TOKEN..=LONGEST_TOKEN).contains(&user.len())
        && user.bytes().all(possible)
        && looks_random(user.as_bytes())
}
