//! Names of secrets: `password`, `OPENAI_API_KEY`, `clientSecret`.
//!
//! Only the end of a name counts, so `token_count` and `password_file` are not secret. Tokens of language models and
//! page tokens are not secret either.

#[rustfmt::skip]
const SECRET_WORDS: [&str; 10] = [
    "password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "credential", "authorization", "cookie",
];
#[rustfmt::skip]
const BEFORE_KEY: [&str; 17] = [
    "api", "access", "private", "secret", "signing", "encryption", "account", "master", "auth", "ssh", "service",
    "subscription", "app", "session", "hmac", "admin", "deploy",
];
#[rustfmt::skip]
const BEFORE_PASS: [&str; 13] = [
    "db", "database", "user", "mysql", "postgres", "pg", "smtp", "mail", "admin", "root", "redis", "ftp", "proxy",
];
/// Words before `token` that make it harmless.
#[rustfmt::skip]
const HARMLESS_BEFORE_TOKEN: [&str; 25] = [
    "next", "page", "continuation", "sync", "eos", "bos", "pad", "unk", "sep", "cls", "mask", "stop", "end", "start",
    "special", "first", "last", "max", "min", "per", "prompt", "completion", "input", "output", "image",
];

/// Returns the endings of secret names, in lower case: the secret words, `key` after a word of [`BEFORE_KEY`], and
/// `pass` after a word of [`BEFORE_PASS`]. The two words are adjacent, or joined by `_`, `-` or, before `key`, a space.
pub(super) fn endings() -> impl Iterator<Item = String> {
    let joined = |before: &'static [&'static str], glue: &'static [&'static str], last: &'static str| {
        before.iter().flat_map(move |before| glue.iter().map(move |glue| format!("{before}{glue}{last}")))
    };
    SECRET_WORDS
        .iter()
        .map(|name| (*name).to_owned())
        .chain(joined(&BEFORE_KEY, &["", "_", "-", " "], "key"))
        .chain(joined(&BEFORE_PASS, &["", "_", "-"], "pass"))
}

/// Returns `true` if the name has one of the endings. Case and a plural `s` (`api_keys`) are ignored, and so are digits
/// at the end with `_` and `-` before them (`PASSWORD_2`). Any number of `_`, `-` and spaces may join the two words of
/// an ending. Returns `false` for names that end with `tokens`, and for `token` after a word of
/// [`HARMLESS_BEFORE_TOKEN`], also with `_`, `-`, `.` or a space between them.
pub(super) fn is_secret(name: &str) -> bool {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(['_', '-']);
    if let Some(before) = strip_end(name, "token") {
        let before = before.trim_end_matches(['_', '-', '.', ' ']);
        return !ends_with_any(before, &HARMLESS_BEFORE_TOKEN);
    }
    if strip_end(name, "tokens").is_some() {
        return false;
    }
    let singular = strip_end(name, "s").filter(|singular| !singular.ends_with(['s', 'S'])).unwrap_or(name);
    let ends_with_pair = |first: &[&str], last: &str| {
        strip_end(singular, last).is_some_and(|before| ends_with_any(before.trim_end_matches(['_', '-', ' ']), first))
    };
    ends_with_any(singular, &SECRET_WORDS) || ends_with_pair(&BEFORE_KEY, "key") || ends_with_pair(&BEFORE_PASS, "pass")
}

fn ends_with_any(name: &str, endings: &[&str]) -> bool {
    endings.iter().any(|ending| strip_end(name, ending).is_some())
}

/// Returns the name without this ending, `None` if it has another one. Case is ignored.
pub(super) fn strip_end<'n>(name: &'n str, ending: &str) -> Option<&'n str> {
    let (before, end) = name.split_at_checked(name.len().checked_sub(ending.len())?)?;
    end.eq_ignore_ascii_case(ending).then_some(before)
}
