//! Any text yields a command and causes no panic.

use proptest::prelude::*;

use super::now;
use crate::parse;

/// Returns words of the vocabulary and noise in random order.
fn sentence() -> impl Strategy<Value = String> {
    let words = "add delete remind me to the task my list every other friday at 3 3:30pm by half past noon in two \
        weeks of next month 99999 31st feb 29 12/31 0 \" ' « » # and , . \n all it from change rename \
        because tagged ! 🎂 ا a.m. first end is done mark as years ago instead of priority 1/2 99:99 not \
        before minutes 30 what show tell see do have i need want forget turn off no more call tag with note \
        : description due date make set urgent high move postpone back up week later reminder alert \
        reminders tasks items one 2's that's last everything them list's tomorrow's 1,000 ? already \
        finished complete check off cross out take put down on write get rid update mon-fri weekly monthly \
        through p1 #2 untag nudge about until";
    prop::collection::vec(prop::sample::select(words.split(' ').collect::<Vec<_>>()), 0..30)
        .prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn any_text_is_parsed(text in "\\PC{0,300}") {
        check(&text);
    }

    #[test]
    fn any_word_sequence_is_parsed(text in sentence()) {
        check(&text);
    }

}

proptest! {
    // Messages of the maximum length. Few cases, because each one is parsed twice without optimisation.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn long_text_is_parsed(piece in "\\PC{1,12}") {
        check(&piece.repeat(5000 / piece.len().max(1)));
    }
}

fn check(text: &str) {
    let parsed = parse(text, &now());
    assert!(!parsed.commands.is_empty());
    for command in &parsed.commands {
        assert!((0.0..=1.0).contains(&command.confidence), "{text:?}: {command:?}");
        if let Some(rule) = &command.recurrence {
            assert!(model::recurrence::normalize("recurrence", rule).is_ok(), "{text:?}: {rule}");
        }
    }
    assert_eq!(parsed, parse(text, &now()));
    assert!(serde_json::to_value(&parsed).is_ok_and(|shape| shape.is_object()));
}
