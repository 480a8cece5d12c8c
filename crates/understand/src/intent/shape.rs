//! The shapes of phrases that rules ask for: what points at a task, where the name of a thing ends.

use std::ops::Range;

use crate::clause::Clause;
use crate::lexicon::{self, Noun};
use crate::numbers;
use crate::phrases::{Phrases, phrases};

const POINTERS: Phrases = phrases!(
    "it all | it | that one | this one | that | this | them all | them both | them | both of them | both | those | \
     these | one of them | the lot | the last one | the rest | all of them | all of it"
);

/// How many tokens "it", "that one", "them" take at `i`.
pub(super) fn pointer(clause: &Clause, i: usize) -> Option<usize> {
    if let Some(n) = bare_noun(clause, i) {
        return Some(n);
    }
    let n = clause.phrase(i, POINTERS).filter(|_| clause.date_at(i).is_none())?;
    let determiner = matches!(clause.at(i), "that" | "this" | "those" | "these" | "both") && n == 1;
    let alone = !clause.words.is_word(i + n)
        || i + n >= clause.end
        || is_small(clause.at(i + n))
        || clause.date_at(i + n).is_some();
    (!determiner || alone).then_some(n)
}

/// "the task", "that reminder", "my to-do": a word for a task that names none.
fn bare_noun(clause: &Clause, i: usize) -> Option<usize> {
    let article = matches!(clause.at(i), "the" | "that" | "my" | "this" | "those" | "these");
    let noun = clause.noun_at(i + 1).filter(|noun| article && noun.noun != Noun::List)?;
    let alone = noun.end >= clause.end
        || !clause.words.is_word(noun.end)
        || is_small(clause.at(noun.end)) && clause.at(noun.end) != "to" && clause.at(noun.end) != "for"
        || matches!(clause.at(noun.end), "to" | "for")
            && clause.date_at(noun.end + 1).or(clause.date_at(noun.end)).is_some();
    alone.then_some(noun.end - i)
}

/// Words that begin no noun.
fn is_small(word: &str) -> bool {
    phrases!(
        "to | off | on | as | from | for | by | in | into | until | till | out | up | down | done | and | so | back | \
         now | please | then | not | complete | completed | finished | at | with | instead | onto | a | an | high | \
         low | urgent | due | one | over | forward | away"
    )
    .contains(word)
}

/// Whether a particular thing is named at `i`: "the …", "my …", a quoted title, a number, "it".
pub(super) fn is_definite(clause: &Clause, i: usize) -> bool {
    let word = clause.at(i);
    phrases!(
        "the | my | our | that | this | those | these | his | her | their | its | it | them | both | all | \
         everything | # | number"
    )
    .contains(word)
        || clause.words.is_quoted(i)
        || clause.noun_at(i).is_some()
        || numbers::figures(word).is_some()
        || i > clause.start && is_name(clause, i)
}

/// A word with a capital, in a text that does not write all of its words so.
pub(super) fn is_name(clause: &Clause, i: usize) -> bool {
    let capital = |i: usize| clause.words.text(i..i + 1).starts_with(char::is_uppercase);
    capital(i) && i < clause.end && clause.words.text(i..i + 1) != "I" && clause.date_at(i).is_none()
}

/// A word for a task or a reminder, not for a list, in the stretch.
pub(super) fn has_task(clause: &Clause, range: Range<usize>) -> bool {
    clause.nouns_in(range).any(|noun| noun.noun != Noun::List)
}

/// Whether "… one", "the one about …", "the second" or a word for a task stands in the stretch.
pub(super) fn names_entry(clause: &Clause, range: Range<usize>) -> bool {
    let place = phrases!(
        "one | ones | first | second | third | fourth | fifth | last | # | number | entry | entries | duplicates | \
         duplicate | stuff | things"
    );
    has_task(clause, range.clone()) || range.into_iter().any(|i| place.contains(clause.at(i)))
}

/// The passive of one of these participles from `from` on: "has been moved", "needs to be pushed". Where it stands, and
/// its length.
pub(crate) fn passive(clause: &Clause, from: usize, participles: Phrases) -> Option<(usize, usize)> {
    const BE: Phrases = phrases!(
        "is | are | was | were | got | gets | be | been | 's been | has been | have been | had been | has just been | \
         should be | must be | can be | could be | will be | to be | needs to be | need to be | has to be | \
         have to be | ought to be"
    );
    let (at, n) = clause.seek(from + 1, participles)?;
    let be = (from.max(at.saturating_sub(3))..at).find(|k| clause.phrase(*k, BE) == Some(at - k))?;
    Some((be, at + n - be))
}

/// Words that end the name of a thing a sentence speaks about.
pub(super) const VERBS: Phrases = phrases!(
    "is | isn't | isnt | are | aren't | was | wasn't | were | weren't | has | hasn't | have | haven't | had | can | \
     can't | cannot | could | should | shouldn't | must | will | won't | doesn't | doesnt | don't | does | needs | \
     need | got | gets | anymore | twice | so | but | because | since | comes | came | ought | may | might | takes | \
     belongs | moves | goes | stays | needn't | didn't"
);

/// The thing that a remark speaks about: "not feeling [the gym] today", "[the report] is more important".
pub(super) fn subject(clause: &Clause, range: Range<usize>) -> Option<Range<usize>> {
    let leads = phrases!("the | my | our | his | her | their | those | these");
    let opens = |i: &usize| leads.contains(clause.at(*i)) || clause.words.is_quoted(*i);
    let own = |i: usize| clause.words.is_word(i) && !is_pronoun(clause.at(i)) && lexicon::verb(clause.at(i)).is_none();
    let start = range.clone().find(opens).or_else(|| own(range.start).then_some(range.start))?;
    let ends = |i: &usize| {
        VERBS.contains(clause.at(*i))
            || clause.date_at(*i).is_some()
            || !clause.words.is_word(*i) && !clause.words.is_quoted(*i)
    };
    let end = (start + 1..range.end).find(ends).unwrap_or(range.end);
    (end > start).then_some(start..end)
}

pub(super) fn is_pronoun(word: &str) -> bool {
    phrases!(
        "i | i'm | im | i've | ive | i'd | i'll | we | we're | we've | we'd | we'll | you | you're | you've | he | \
         he's | she | she's | they | they're | they've | it | it's | its | there | there's | this | that | that's | \
         thats | what | who | how | why | when | where | which | if | no | not | yes | because | since | as | for | \
         on | in | at | with | ok | oh | well | everyone | everybody | nobody | somebody | someone | people | nothing"
    )
    .contains(word)
}
