//! Names that say that what they name is secret: `password`, `OPENAI_API_KEY`, `clientSecret`.
//!
//! Never takes a name for what it begins with (`token_count`, `password_file`), nor the tokens of a language model
//! or of a list's next page.

#[rustfmt::skip]
const ALONE: [&str; 10] = [
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
/// What stands before `token` where it is none to log in with.
#[rustfmt::skip]
const HARMLESS: [&str; 25] = [
    "next", "page", "continuation", "sync", "eos", "bos", "pad", "unk", "sep", "cls", "mask", "stop", "end", "start",
    "special", "first", "last", "max", "min", "per", "prompt", "completion", "input", "output", "image",
];

/// How names that are secret end, in lower case.
pub(super) fn endings() -> impl Iterator<Item = String> {
    let joined = |before: &'static [&'static str], glue: &'static [&'static str], last: &'static str| {
        before.iter().flat_map(move |before| glue.iter().map(move |glue| format!("{before}{glue}{last}")))
    };
    ALONE.iter().map(|name| (*name).to_owned()).chain(joined(&BEFORE_KEY, &["", "_", "-", " "], "key")).chain(joined(
        &BEFORE_PASS,
        &["", "_", "-"],
        "pass",
    ))
}

/// Whether the name ends in one of the endings, a plural or a number (`api_keys`, `PASSWORD_2`) not counted.
pub(super) fn is_secret(name: &str) -> bool {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(['_', '-']);
    if let Some(before) = strip_end(name, "token") {
        let before = before.trim_end_matches(['_', '-', '.', ' ']);
        return !ends_with_any(before, &HARMLESS);
    }
    if strip_end(name, "tokens").is_some() {
        return false;
    }
    let one = strip_end(name, "s").filter(|one| !one.ends_with(['s', 'S'])).unwrap_or(name);
    let two = |first: &[&str], last: &str| {
        strip_end(one, last).is_some_and(|before| ends_with_any(before.trim_end_matches(['_', '-', ' ']), first))
    };
    ends_with_any(one, &ALONE) || two(&BEFORE_KEY, "key") || two(&BEFORE_PASS, "pass")
}

fn ends_with_any(name: &str, endings: &[&str]) -> bool {
    endings.iter().any(|ending| strip_end(name, ending).is_some())
}

/// The name without this ending, in whatever case.
pub(super) fn strip_end<'n>(name: &'n str, ending: &str) -> Option<&'n str> {
    let (before, end) = name.split_at_checked(name.len().checked_sub(ending.len())?)?;
    end.eq_ignore_ascii_case(ending).then_some(before)
}
