//! Statements that something is done: "the laundry's sorted", "eggs bought", "I've called the plumber".

use super::{Act, Guess, past, shape, verb_at};
use crate::clause::Clause;
use crate::lexicon::Noun;
use crate::phrases::{Phrases, phrases};

/// "… is done", "the car's been washed", "tax return filed".
pub(super) fn read(clause: &Clause, i: usize) -> Guess {
    const ASKS: Phrases = phrases!(
        "what | what's | whats | which | is | are | was | were | when | how | show | list | who | if | mark | get | \
         has | have | had | why | where | i | i've | ive | you | you've | we | we've | add | check | until | once | \
         after | he | she | they | make | let | let's | do | did | does | not | no | nothing | a | can | could | \
         will | would | should | someone | anyone | set | to | be | been | here | there | there's | nobody | in"
    );
    if let Some(guess) = presented(clause, i) {
        return Some(guess);
    }
    if ASKS.contains(clause.at(i)) || verb_at(clause, i).is_some() {
        return None;
    }
    with_verb(clause, i).or_else(|| bare(clause, i))
}

/// "that's the ironing finished", "that takes care of the claim", "they're both done".
fn presented(clause: &Clause, i: usize) -> Guess {
    const THAT: Phrases = phrases!("that's | thats | that is | that was | there's | here's");
    if let Some(n) = clause
        .phrase(i, phrases!("that takes care of | that took care of | so much for | that concludes | that completes"))
    {
        return (i + n < clause.end).then_some((Act::Complete(i + n, clause.end), 0.7));
    }
    if let Some(n) = clause.phrase(
        i,
        phrases!(
            "they're both | they're all | they are both | they are all | they're | both are | both | those are | \
             these are | it's | its | it is | that's | that is | thats | that one's | this one's | they are | \
             it has been | that has been | it's been | that's been"
        ),
    ) && let Some(m) = done_at(clause, i + n + fill(clause, i + n))
        && closes(clause, i + n + fill(clause, i + n) + m)
        && !clause.asked
    {
        return Some((Act::Complete(i, i + 1), 0.8));
    }
    let n = clause.phrase(i, THAT)?;
    let from = i + n;
    if !shape::is_definite(clause, from) {
        return None;
    }
    let k =
        (from + 1..clause.end.min(from + 7)).find(|k| done_at(clause, *k).is_some_and(|m| closes(clause, k + m)))?;
    (!clause.is_foreign() && !clause.asked).then_some((Act::Complete(from, k), 0.78))
}

/// A word or participle that says "done" at `i`, with its particle.
fn done_at(clause: &Clause, i: usize) -> Option<usize> {
    past::finished(clause, i).or_else(|| participle(clause, i))
}

fn participle(clause: &Clause, i: usize) -> Option<usize> {
    let word = clause.at(i);
    let called = word == "called" && clause.before(i) == "been" && clause.at(i + 1) != "off";
    let deed = called || past::is_participle(word) || past::is_deed(word) && !past::is_chore(word);
    (deed && i < clause.end).then(|| 1 + past::particle(clause.at(i + 1)))
}

/// Words between "is" and "done" that change nothing.
fn fill(clause: &Clause, i: usize) -> usize {
    const FILL: Phrases = phrases!(
        "now all | all now | now been | finally been | already been | all been | been all | been | now | all | \
         finally | already | both | officially | also | just been | just"
    );
    clause.phrase(i, FILL).unwrap_or(0)
}

/// Whether nothing but a time, an "and" or a remark follows.
pub(super) fn closes(clause: &Clause, i: usize) -> bool {
    const TAILS: Phrases = phrases!(
        "now | too | already | finally | at last | today | yesterday | as well | for now | for today | for the day | \
         btw | by the way | lol | yay | woo | wooo | woohoo | haha | phew | , | . | - | – | — | ! | ( | so | and | \
         as planned | thankfully | thank god | this | last | again | earlier | if you | you can | please | mate | \
         ✔ | ✅ | ✓ | :"
    );
    i >= clause.end || clause.date_at(i).is_some() || clause.phrase(i, TAILS).is_some()
}

fn with_verb(clause: &Clause, i: usize) -> Guess {
    for k in i..clause.end.min(i + 9) {
        let word = clause.at(k);
        let be = k > i && matches!(word, "is" | "are" | "was" | "were" | "got" | "has" | "have" | "as");
        let suffix = word.ends_with("'s")
            && !phrases!("let's | what's | who's | how's | where's | when's | there's").contains(word);
        if !be && !suffix {
            continue;
        }
        let at = k + 1 + fill(clause, k + 1);
        let been = !matches!(word, "has" | "have") || (k + 1..at).any(|m| clause.at(m) == "been");
        if !done_at(clause, at).is_some_and(|n| been && closes(clause, at + n)) {
            continue;
        }
        let sure = past::finished(clause, at).is_some();
        let other = if sure || shape::is_definite(clause, i) { clause.is_elsewhere() } else { clause.is_foreign() };
        let general = !(sure || suffix || k <= i + 3 || shape::is_definite(clause, i));
        if other || general || clause.asked && !sure {
            return None;
        }
        return Some((Act::Complete(i, if suffix { k + 1 } else { k }), if sure { 0.8 } else { 0.64 }));
    }
    None
}

/// "gym done for today", "eggs bought".
fn bare(clause: &Clause, i: usize) -> Guess {
    let k = (i + 1..clause.end.min(i + 6)).find(|k| {
        let n = past::finished(clause, *k)
            .or_else(|| past::is_participle(clause.at(*k)).then(|| 1 + past::particle(clause.at(*k + 1))));
        n.is_some_and(|n| closes(clause, *k + n)) && (clause.at(*k) != "complete" || *k == i + 1 && k + 1 == clause.end)
    })?;
    let plain = |m: usize| clause.words.is_quoted(m) || clause.words.is_word(m) && !shape::is_pronoun(clause.at(m));
    let sure = past::finished(clause, k).is_some();
    let told =
        !(i..k).all(plain) || clause.asked && !sure || clause.at(k - 1) == "get" || clause.at(k - 1) == "getting";
    let list = clause.nouns_in(i..k).any(|noun| noun.plural && !sure);
    let timed = clause.dates.iter().any(|found| clause.at(found.tokens.start) == "by" || found.parts.repeat.is_some());
    if told || list || timed || clause.is_foreign() || sure && k - i > 5 {
        return None;
    }
    Some((Act::Complete(i, k), if sure { 0.78 } else { 0.6 }))
}

/// "I already paid the rent", "called mom", "I managed to reach the landlord": what was done names the task.
pub(super) fn deed(clause: &Clause, i: usize) -> Guess {
    const LEADS: Phrases = phrases!(
        "i already | i've already | i have already | i just | i've just | i have just | i've | i have | i | we | \
         we've | we have | we already | just | already | ive | ive already | ive just | i finally | we finally | \
         finally | i've finally | we just | we've already | we've just | i also | i have now | i was able to | \
         i actually | i've now | we both | i then | i had already | i've also | i did already | i've actually | \
         ive finally | i have finally | yep | yes i | yeah i | we've finally | just now | i just now"
    );
    const MANAGED: Phrases = phrases!(
        "managed to get | managed to | got round to | got around to | took care of | saw to | seen to | dealt with | \
         taken care of | gotten round to | gotten around to | finished off | finished up | wrapped up | polished off | \
         ticked off | crossed off | checked off | knocked out | knocked off | been to see | been to | went to | \
         went for | got through | through with | got done with | done with"
    );
    let n = clause.phrase(i, LEADS).unwrap_or(0);
    if let Some(m) = clause.phrase(i + n, MANAGED).filter(|m| n > 0 && i + n + m < clause.end) {
        let fits = !clause.asked && clause.end - i <= 14 && !wants_more(clause);
        return fits.then_some((Act::Complete(i + n + m, before_comma(clause, i + n + m)), 0.66));
    }
    let sure = matches!(clause.before(i + n), "already" | "just" | "finally" | "now") && n > 0;
    let verb = clause.at(i + n);
    let chore = past::is_chore(verb);
    let object = i + n + 1 + past::particle(clause.at(i + n + 1));
    let definite = shape::is_definite(clause, object);
    let plain = past::is_plain(verb) && definite && (n > 0 || matches!(verb, "got" | "did") && clause.end - i <= 6);
    let other = n > 0 && past::is_deed(verb) && definite;
    if !chore && !sure && !plain && !other && !phrases!("removed | deleted | completed").contains(verb) {
        return None;
    }
    let told = wants_more(clause) || !chore && !clause.dates.is_empty() && n == 0 || future(clause);
    let past = (chore || plain || other) && !told && clause.end - i <= 10 || sure && past::is_past(verb);
    let removed = !chore && !sure && n > 0 && clause.has_noun() && !told;
    // "paid" and its like need something that was paid, "called" somebody.
    let fits = (past || removed)
        && object < clause.end
        && (!clause.is_foreign() || chore && (n > 0 || definite))
        && !clause.asked;
    let named = clause.words.is_word(object) || clause.words.is_quoted(object);
    let listed = clause.noun_in(object..clause.end).is_some_and(|noun| noun.plural) || clause.at(object) == "me";
    (fits && named && !listed)
        .then_some((Act::Complete(object, before_comma(clause, object)), if sure { 0.68 } else { 0.62 }))
}

/// "done!", "yep did it", "finished": of the task in hand. "DONE - call the lawyer", "\[x\] book flights", "essay ✔".
pub(super) fn alone(clause: &Clause, i: usize) -> Guess {
    const ALONE: Phrases = phrases!(
        "done | all done | finished | completed | did it | did that | i did it | i did that | done it | \
         finished it | i'm done | im done | i finished it | i've done it | i've done that | got it done | \
         i got that done | i got it done | done that | check | tick | job done | i finished | sorted | all sorted | \
         consider it done | it's in the bag | i'm finished | done and dusted | just did it | just did that | \
         just finished it | already did it | already did that | already done"
    );
    const MARKS: Phrases = phrases!("✔ | ✅ | ✓ | ☑");
    let only = |at: usize| {
        at >= clause.end
            || clause.date_at(at).is_some() && clause.dates.last().is_some_and(|found| found.tokens.end >= clause.end)
    };
    if clause.phrase(i, ALONE).is_some_and(|n| only(i + n)) && !clause.asked {
        return Some((Act::Finished, 0.75));
    }
    let noun = clause.noun_at(i).filter(|noun| !noun.plural && noun.noun != Noun::List);
    if noun.is_some_and(|noun| past::finished(clause, noun.end).is_some_and(|n| only(noun.end + n))) && !clause.asked {
        return Some((Act::Finished, 0.72));
    }
    let boxed = clause.words.before(i) == "]" || clause.at(i) == "x" && clause.at(i + 1) == "]";
    if boxed && (clause.opening..i + 2).any(|k| clause.words.at(k) == "x") {
        return Some((Act::Complete(i + if clause.at(i) == "x" { 2 } else { 0 }, clause.end), 0.8));
    }
    let mark = (i..=clause.end.min(clause.words.len())).find(|k| clause.words.phrase(*k, MARKS).is_some())?;
    let about = if mark == i { i + 1..clause.end } else { i..mark.min(clause.end) };
    let fits = !about.is_empty() && verb_at(clause, i).is_none() && !super::is_doing(clause, about.start) || mark == i;
    (fits && !clause.asked && about.len() <= 7).then_some((Act::Complete(about.start, about.end), 0.75))
}

fn before_comma(clause: &Clause, from: usize) -> usize {
    clause.seek(from, phrases!(", | so | - | – | — | !")).map_or(clause.end, |(at, _)| at)
}

/// What tells that a remark about the past is not meant as news of a task.
fn wants_more(clause: &Clause) -> bool {
    clause.has(phrases!(
        "remind | alert | so i | so we | can you | could you | but | how | what | want | love | hate | it was | \
         and i | yesterday i | when i was | years ago | a mistake | wrong | every time | once | used to | me to | \
         me that | enough | too much | weight | money | job | name"
    ))
}

/// Whether a date that has not come yet is named.
fn future(clause: &Clause) -> bool {
    clause.has(phrases!("tomorrow | tmrw | tomorow | next | tonight at | by"))
}
