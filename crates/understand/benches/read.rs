//! Measures parsed utterances per second on one core, compared with lower-casing and splitting at spaces. Also
//! measures the time for each character of short and long texts.
//!
//! `cargo bench -p understand --bench read`

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::hint::black_box;
use std::time::Instant;

use jiff::Zoned;
use jiff::civil::date;
use jiff::tz::TimeZone;

const UTTERANCES: [&str; 24] = [
    "add buy milk to my list",
    "remind me to call the dentist tomorrow at 3pm",
    "what do I have to do today?",
    "mark the report as done",
    "delete the second one",
    "move the meeting with Jana to next Friday",
    "set a reminder for my flight on March 12th at half past six in the morning",
    "show me all completed tasks",
    "undo that",
    "rename 'buy bread' to 'buy rye bread'",
    "water the plants every other Tuesday",
    "I have to pay the rent by the end of the month",
    "add milk, eggs and bread, then show me the list",
    "could you please remind me in 20 minutes to take the pizza out of the oven?",
    "is the tax return done yet?",
    "make the presentation high priority",
    "cancel all my reminders for this weekend, thanks",
    "tag the garden task with home and summer",
    "push the review back by two days",
    "what's the weather like in Lisbon?",
    "play some jazz",
    "I already bought the stamps",
    "don't let me forget to send Grandma a card for her birthday on the 21st",
    "hey, how are you?",
];

const PATTERNS: [&str; 12] = [
    "and ",
    "to ",
    "remind me ",
    "every ",
    "add milk and ",
    "- item\n",
    "the ",
    "tomorrow at 5 ",
    "12/",
    "\" ",
    "on my list ",
    "mark this as done, ",
];

fn main() {
    let Ok(now) = date(2026, 1, 31).at(12, 0, 0, 0).to_zoned(TimeZone::UTC) else { return };
    let parse_seconds = fastest_run(|| for_each_utterance(|text| drop(black_box(understand::parse(text, &now)))));
    let split_seconds = fastest_run(|| for_each_utterance(|text| drop(black_box(lower_and_split(text)))));
    let per_second = |seconds: f64| UTTERANCES.len() as f64 / seconds;
    println!(
        "{:.0} utterances/s read, {:.0} utterances/s only cut, ratio {:.3}",
        per_second(parse_seconds),
        per_second(split_seconds),
        split_seconds / parse_seconds
    );
    for pattern in PATTERNS {
        let short = nanoseconds_per_character(pattern, 500, &now);
        let long = nanoseconds_per_character(pattern, 5_000, &now);
        println!(
            "{:24} {short:5.0} ns a character of 500, {long:5.0} ns of 5,000, ratio {:.2}",
            format!("{pattern:?}"),
            long / short
        );
    }
}

fn for_each_utterance(work: impl Fn(&str)) {
    for text in UTTERANCES {
        work(black_box(text));
    }
}

fn lower_and_split(text: &str) -> Vec<String> {
    text.to_lowercase().split_whitespace().map(str::to_owned).collect()
}

/// Returns the nanoseconds for each character of a text of this length.
fn nanoseconds_per_character(pattern: &str, length: usize, now: &Zoned) -> f64 {
    let text = pattern.repeat(length / pattern.len());
    fastest_run(|| drop(black_box(understand::parse(black_box(&text), now)))) * 1e9 / text.len() as f64
}

/// Returns the seconds of the fastest of two hundred runs.
fn fastest_run(work: impl Fn()) -> f64 {
    let times = (0..200).map(|_| {
        let began = Instant::now();
        work();
        began.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}
