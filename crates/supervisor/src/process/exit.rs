//! What the end of a process means.

use crate::Failure;
use crate::desk::Desk;
use crate::guardian::How;
use crate::streams::Name;

/// The last words that are shown with a failure.
const LAST_WORDS: usize = 500;

/// The exit code, and what went wrong if something did.
pub(crate) fn failure_of(how: How, desk: &Desk) -> (Option<i64>, Option<Failure>) {
    match how {
        How::Code(0) => (Some(0), None),
        How::Code(code) => (Some(i64::from(code)), Some(of_code(code, &last_words(desk)))),
        How::Signal(signal) => (None, Some(of_signal(signal, &last_words(desk)))),
        How::LeaseLost => (None, Some(Failure::system("it was ended because adjutant had stopped working"))),
        How::GuardianDied => (None, Some(Failure::system("it was ended because its guardian died"))),
    }
}

fn of_code(code: i32, words: &str) -> Failure {
    let message = |what: &str| if words.is_empty() { what.to_owned() } else { format!("{what}: {words}") };
    let what = format!("it ended with exit code {code}");
    match code {
        // EX_TEMPFAIL
        75 => Failure::transient(message(&what)),
        // EX_USAGE and EX_CONFIG, and what shells say: cannot be executed, cannot be found.
        64 | 78 | 126 | 127 => Failure::permanent(message(&what)),
        _ => Failure::agent(message(&what)),
    }
}

fn of_signal(signal: i32, words: &str) -> Failure {
    use nix::sys::signal::Signal;
    let name = Signal::try_from(signal).map_or_else(|_| format!("signal {signal}"), |signal| signal.to_string());
    let message = |why: &str| {
        let words = if words.is_empty() { String::new() } else { format!(": {words}") };
        format!("it was ended by {name}{why}{words}")
    };
    match Signal::try_from(signal) {
        // Memory that is lacking now may be there later.
        Ok(Signal::SIGKILL) => Failure::transient(message(", perhaps for lack of memory")),
        Ok(Signal::SIGXCPU) => Failure::permanent(message(": it reached its limit of processor time")),
        Ok(Signal::SIGXFSZ) => Failure::permanent(message(": it reached its limit of file size")),
        Ok(Signal::SIGTERM | Signal::SIGINT | Signal::SIGHUP | Signal::SIGQUIT) => {
            Failure::system(message(" from outside"))
        }
        _ => Failure::agent(message("")),
    }
}

/// The last lines of what it complained about.
fn last_words(desk: &Desk) -> String {
    let mut words = desk.said_last(Name::Stderr, LAST_WORDS);
    if words.trim().is_empty() {
        words = desk.said_last(Name::Stdout, LAST_WORDS);
    }
    let lines: Vec<_> = words.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(3)..];
    last.join(" / ")
}
