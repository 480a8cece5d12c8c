//! Verbs of chores in the past tense: "bought milk" says that buying milk is done.

use crate::clause::Clause;
use crate::phrases::{Phrases, phrases};

/// Whether the word says that a chore was done.
pub(super) fn is_chore(word: &str) -> bool {
    const CHORES: Phrases = phrases!(
        "bought | paid | sent | made | took | wrote | fed | cut | called | phoned | emailed | mailed | texted | \
         cleaned | washed | watered | walked | mowed | booked | ordered | picked | dropped | returned | renewed | \
         submitted | signed | printed | filed | fixed | repaired | packed | shipped | cooked | baked | ironed | \
         folded | vacuumed | swept | dusted | scheduled | visited | reviewed | prepared | ran | fetched | collected | \
         delivered | replaced | installed | painted | cleared | emptied | refilled | organized | organised | sorted | \
         registered | wrapped | sold | donated | charged | posted | hung | handed | rang | mopped | hoovered | \
         defrosted | tidied | trimmed | weeded | pruned | planted | raked | scrubbed | wiped | polished | assembled | \
         mounted | unpacked | swapped | topped | filled | uploaded | backed | deployed | merged | published | \
         tested | invoiced | billed | applied | enrolled | confirmed | arranged | drafted | typed | scanned | \
         proofread | revised | practised | practiced | rehearsed | groomed | bathed | brushed | exchanged | recycled | \
         drained | sharpened | oiled | greased | inspected | serviced | spoke | talked | hovered | stripped | sewed | \
         hemmed | bled | glued | sanded | varnished | drilled | unclogged | unblocked | stocked | restocked | \
         thanked | messaged | pinged | nailed | smashed | crushed | aced | completed | ticked | rotated | \
         waxed | shredded | laundered | chased | insured | measured | mended | stitched"
    );
    CHORES.contains(word)
}

/// Participles that are not the past tense: "the letter is written".
pub(super) fn is_participle(word: &str) -> bool {
    is_chore(word)
        && !matches!(
            word,
            "took"
                | "wrote"
                | "ran"
                | "rang"
                | "spoke"
                | "talked"
                | "changed"
                | "called"
                | "scheduled"
                | "applied"
                | "made"
                | "dropped"
                | "charged"
                | "tested"
        )
        || phrases!("taken | written | run | rung | spoken | done | given | hung | built | read | caught | put")
            .contains(word)
}

/// Verbs that say little by themselves: only with the thing they were done to.
pub(super) fn is_plain(word: &str) -> bool {
    phrases!(
        "got | went | gave | had | did | saw | met | put | read | set | been | given | seen | taken | written | done | \
         finished | gone | spoken"
    )
    .contains(word)
}

/// Whether the word is a past tense, after "already" or "just".
pub(super) fn is_past(word: &str) -> bool {
    is_chore(word)
        || is_plain(word)
        || phrases!("told | spoke").contains(word)
        || word.ends_with("ed") && word.len() > 3 && word != "need"
}

/// Words that end in "ed" and speak of what somebody felt, knew or began, or of a change and not of a chore.
fn is_no_deed(word: &str) -> bool {
    phrases!(
        "wanted | needed | liked | loved | hated | tried | asked | decided | noticed | realized | realised | missed | \
         moved | changed | added | created | lived | used | seemed | happened | promised | agreed | cancelled | \
         canceled | deleted | removed | received | watched | played | listened | enjoyed | hoped | wished | wondered | \
         learned | started | stopped | turned | opened | closed | looked | stayed | waited | hurt | worried | tired | \
         bored | excited | married | supposed | interested | scared | confused | postponed | rescheduled | delayed | \
         pushed | need | feed | bed | red | speed | seed | indeed | hundred | weed | updated | renamed | expected | \
         planned | failed | laughed | cried | died | walked | guessed | figured | remembered | reminded | mentioned | \
         explained | believed | appreciated | preferred | followed | searched | dreamed | travelled | traveled | \
         arrived | called | scheduled | extended | located | retired | divorced | graduated | joined | invited"
    )
    .contains(word)
}

/// "defrosted", "trimmed": any verb in the past that can be a chore.
pub(super) fn is_deed(word: &str) -> bool {
    is_chore(word) || word.len() > 4 && word.ends_with("ed") && !is_no_deed(word)
}

/// How many tokens a particle after the verb takes: "picked up the parcel".
pub(super) fn particle(word: &str) -> usize {
    usize::from(matches!(word, "up" | "off" | "out" | "in" | "to" | "for" | "back" | "away" | "down" | "with"))
}

/// Words that say by themselves that something is finished; how many tokens they take at `i`.
pub(super) fn finished(clause: &Clause, i: usize) -> Option<usize> {
    const DONE: Phrases = phrases!(
        "done and dusted | done with | done | complete | completed | finished | all done | all sorted | sorted out | \
         sorted | taken care of | dealt with | seen to | wrapped up | over and done with | over with | \
         out of the way | handled | finito | donezo | in the bag | behind me | ticked off | checked off | \
         crossed off | ticked | off my plate | squared away | finalised | finalized | \
         no more to do"
    );
    clause.phrase(i, DONE)
}
