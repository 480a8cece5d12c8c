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
    let end = run_end(scan.bytes, start, usize::MAX, |b| !ends_host(b));
    let address = &scan.text[start..end];
    // The last `@` counts, since some write a bare one in the password.
    let Some(account) = address.rfind('@').map(|at| &address[..at]) else {
        return;
    };
    let at = start + account.len();
    scan.state.url_end = at + 1;
    if !secrets || address.contains(MARK) {
        return;
    }
    let user = account.split([':', '@']).next().unwrap_or_default();
    let password = account.split_once(':').map_or("", |(_, password)| password);
    if is_token(user) {
        scan.hide(start..start + user.len());
    }
    if !values::is_stand_in(password) {
        scan.hide_later(at - password.len()..at);
    }
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
