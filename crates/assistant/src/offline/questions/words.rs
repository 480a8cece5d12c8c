//! The words of questions that name no task.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Splits a text into its words.
fn words(text: &str) -> HashSet<&str> {
    text.split_whitespace().collect()
}

/// Words of a question that name no task.
pub(super) static QUESTION_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    words(
        "when whens when's what whats what's which how hows who whose where why is are was were do does did has have \
         had will would should can could am i i'm im ive i've you u we me my our your it its it's they them of to for \
         about the a an this that these those there theres there's need needs going gonna gotta got get gets getting \
         again next due deadline time day date weekday long often much many be been being on at in by until till left \
         still already now yet please any anything something say said tell show see happening happen scheduled start \
         starts begin begins take takes place come comes round around one ones and or so then also too either as well \
         exactly supposed must planned set up thing task tasks hand put down ok else right go off",
    )
});

/// Words that name the asked property.
pub(super) static PROPERTY_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    words(
        "remind reminds reminder reminders reminding ring rings nag notify notified alert alerts ping repeat repeats \
         repeating recurring recur recurs priority prio urgent important tag tags tagged label labels note notes \
         noted description details detail done finished complete completed ticked finish high low medium normal",
    )
});

/// Words of a question about a list.
pub(super) static LIST_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    words(
        "another other stuff things jobs job chores todos todo list open all everything left with give remaining total altogether \
         currently just only related regarding work's from",
    )
});
