//! A million random strings, and messages of the maximum length.

use super::now;
use crate::parse;
use crate::tokens::WORD_READS;

const WORDS: &str = "add delete remind me to the task my list every other friday at 3 3:30pm by half past noon in two weeks of \
    next month 99999 31st feb 29 12/31 0 \" ' « » # and , . \n all it from change rename because tagged ! 🎂 ا a.m. first \
    end is done mark as years ago instead of priority 1/2 99:99 not before minutes 30 what show tell do have i need want \
    forget off no call tag with note : description due make set urgent high move back week later reminder one 2's last \
    everything ? already finished - * 1. ; wait sorry mean both until through mon-fri weekly p1 #2 🙂 é ß 牛乳 {} \\ \0 \u{301}";

const SENTENCES: [&str; 6] = [
    "remind me to call Anna about the invoice tomorrow at 5:30 pm, and again on Friday",
    "Could you move the dentist from Tuesday to the first Monday of March, please?",
    "what's still open for this week, apart from the \"garden\" things?",
    "mark 1, 3 and the last one as done; then delete all completed tasks tagged #work",
    "add milk, eggs and bread to my list – high priority, note: the small shop closes at 18:00",
    "every other weekday at half past nine until 12/31/2026 water the plants in the hall",
];

/// Returns a sequence of words, noise, or a sentence with a random error.
fn random_text(random: &mut fastrand::Rng, words: &[&str]) -> String {
    match random.u8(..3) {
        0 => (0..random.usize(..12)).flat_map(|_| [words[random.usize(..words.len())], " "]).collect(),
        1 => (0..random.usize(..24)).map(|_| random.char(..)).collect(),
        _ => {
            let mut text: Vec<char> = SENTENCES[random.usize(..SENTENCES.len())].chars().collect();
            for _ in 0..random.usize(1..6) {
                let from = random.usize(..text.len());
                let to = random.usize(..text.len());
                match random.u8(..4) {
                    0 => text.swap(from, to),
                    1 => text[from] = random.char(..),
                    2 => text.insert(from, text[to]),
                    _ => text.truncate(from.max(1)),
                }
            }
            text.into_iter().collect()
        }
    }
}

fn parse_many(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let words: Vec<_> = WORDS.split(' ').collect();
    let now = now();
    for _ in 0..500_000 {
        let text = random_text(&mut random, &words);
        let parsed = parse(&text, &now);
        let sound = |confidence: f64| (0.0..=1.0).contains(&confidence);
        assert!(!parsed.commands.is_empty() && parsed.commands.iter().all(|one| sound(one.confidence)), "{text:?}");
    }
}

#[test]
fn half_a_million_strings_are_parsed() {
    parse_many(1);
}

#[test]
fn half_a_million_other_strings_are_parsed() {
    parse_many(2);
}

/// Returns the number of word reads during the parsing of a text.
fn count_word_reads(text: &str) -> u64 {
    WORD_READS.set(0);
    parse(text, &now());
    WORD_READS.get()
}

#[test]
fn parsing_time_is_linear() {
    // AGENT-9
    let pieces = WORDS.split(' ').map(|word| format!("{word} ")).chain(SENTENCES.map(|text| format!("{text} ")));
    let more = [
        "- item\n",
        "remind me ",
        "to to ",
        "\"a\" ",
        "1, ",
        "#a ",
        "add x and ",
        "no wait ",
        "a. ",
        "\n",
        "on the 3rd ",
    ];
    for piece in pieces.chain(more.map(str::to_owned)) {
        let long = piece.repeat(5000 / piece.len());
        let short = piece.repeat(500 / piece.len());
        let few = count_word_reads(&short);
        let many = count_word_reads(&long);
        assert!(many <= few * 20 + 1000, "{piece:?}: {few} looks, then {many}");
    }
}
