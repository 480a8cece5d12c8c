//! Passwords and tokens in URLs: `scheme://user:password@host`, `https://token@host`.
//!
//! The user name and the host are not hidden. Text after the host is not read.

use super::scan::{SecretScan, run_end};
use super::shapes::looks_random;
use super::{MARK, values};

const MAX_TOKEN_BYTES: usize = 512;
const MIN_TOKEN_BYTES: usize = 16;

/// Hides the password of the URL with a `://` that ends at `start`, and a user name that [`is_token`] accepts. The
/// password is the text from the first `:` to the last `@` before the end of the host. A placeholder is not hidden.
///
/// Has no effect without an `@`. Otherwise marks the text up to the `@` as part of a URL, so that it is not taken for
/// an e-mail address. Hides nothing if `secrets` is `false`, or if the user, password or host contains the mark.
pub(super) fn hide(scan: &mut SecretScan, start: usize, secrets: bool) {
    let end = run_end(scan.bytes, start, usize::MAX, |b| !ends_host(b));
    let address = &scan.text[start..end];
    // The last `@` is used, because a password may contain an unescaped one.
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
    if !values::is_placeholder(password) {
        scan.hide_deferred(at - password.len()..at);
    }
}

fn ends_host(b: u8) -> bool {
    b <= b' ' || matches!(b, b'/' | b'?' | b'#' | b'\\' | b'"' | b'\'' | b'`' | b'<' | b'>')
}

/// Returns `true` if a user name has 16 to 512 characters of a token and looks random.
fn is_token(user: &str) -> bool {
    let is_valid = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'~' | b'=' | b'+');
    (MIN_TOKEN_BYTES..=MAX_TOKEN_BYTES).contains(&user.len())
        && user.bytes().all(is_valid)
        && looks_random(user.as_bytes())
}
