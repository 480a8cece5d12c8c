//! Prints the occurrences of rules, for `scripts/recurrence-peer`. Reads lines of `RULE START LIMIT`. Prints the first
//! occurrences of each, then the occurrences that are found by stepping from each one to the next, as completed tasks
//! do.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a helper of one script")]

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use model::recurrence::{RecurrenceRule, reduce_count};

fn main() {
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let [rule, start, limit] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let start: DateTime = start.parse().unwrap();
        let limit: usize = limit.parse().unwrap();
        println!("{}\t{}", format_times(&list(rule, start, limit)), format_times(&step(rule, start, limit)));
    }
}

fn list(text: &str, start: DateTime, limit: usize) -> Vec<DateTime> {
    let rule = RecurrenceRule::parse(text).unwrap();
    let limit = rule.count.map_or(limit, |count| limit.min(usize::try_from(count).unwrap()));
    rule.occurrences(start, start).take_while(|time| rule.allows(*time, &TimeZone::UTC)).take(limit).collect()
}

/// Steps through the occurrences. Each one is the start of the rule for the next.
fn step(text: &str, start: DateTime, limit: usize) -> Vec<DateTime> {
    let mut found: Vec<_> = list(text, start, 1);
    let mut text = text.to_owned();
    while let Some(last) = found.last().copied().filter(|_| found.len() < limit) {
        let rule = RecurrenceRule::parse(&text).unwrap();
        let Some((next, steps)) = rule.next_occurrence(last, last, |time| rule.allows(time, &TimeZone::UTC), |_| true)
        else {
            break;
        };
        text = reduce_count(&text, steps);
        found.push(next);
    }
    found
}

fn format_times(times: &[DateTime]) -> String {
    times.iter().map(|time| time.strftime("%Y%m%dT%H%M%S").to_string()).collect::<Vec<_>>().join(" ")
}
