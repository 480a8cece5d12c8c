//! Says when rules occur, for `scripts/recurrence-peer`: reads lines of `RULE START LIMIT`, answers each with the first
//! occurrences; then with those that one finds who goes on from each to the next, as completed tasks do.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for one script")]

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use model::recurrence::{Rule, counted_down};

fn main() {
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let [rule, start, limit] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let start: DateTime = start.parse().unwrap();
        let limit: usize = limit.parse().unwrap();
        println!("{}\t{}", words(&listed(rule, start, limit)), words(&followed(rule, start, limit)));
    }
}

fn listed(text: &str, start: DateTime, limit: usize) -> Vec<DateTime> {
    let rule = Rule::read(text).unwrap();
    let limit = rule.count.map_or(limit, |count| limit.min(usize::try_from(count).unwrap()));
    rule.occurrences(start, start).take_while(|time| rule.allows(*time, &TimeZone::UTC)).take(limit).collect()
}

/// From the first occurrence on, each of which is the start of what follows.
fn followed(text: &str, start: DateTime, limit: usize) -> Vec<DateTime> {
    let mut found: Vec<_> = listed(text, start, 1);
    let mut text = text.to_owned();
    while let Some(last) = found.last().copied().filter(|_| found.len() < limit) {
        let rule = Rule::read(&text).unwrap();
        let Some((next, steps)) = rule.next(last, last, |time| rule.allows(time, &TimeZone::UTC), |_| true) else {
            break;
        };
        text = counted_down(&text, steps);
        found.push(next);
    }
    found
}

fn words(times: &[DateTime]) -> String {
    times.iter().map(|time| time.strftime("%Y%m%dT%H%M%S").to_string()).collect::<Vec<_>>().join(" ")
}
