//! New tasks that nobody asks for in so many words: "buy milk", "I have to call mom", "team lunch Dec 23 12:30".
//!
//! What is only needed or only named is a guess, and its confidence says so.

use super::{Act, Guess, mood, shape};
use crate::attributes;
use crate::clause::Clause;
use crate::command;
use crate::create::Form;
use crate::phrases::{Phrases, phrases};
use crate::scope;

const ERRANDS: Phrases = phrases!(
    "buy | pick up | drop off | clean | wash | water | feed | mow | vacuum | renew | submit | return | fold | \
     iron | sweep | dust | refill | repair | pack | walk the | take out | finish | do the laundry | \
     do the dishes | hoover | mop | defrost | hand in | top up | tidy | weed | prune | trim | rake | scrub"
);

const DOINGS: Phrases = phrases!(
    "call | pay | prepare | email | visit | meet | attend | write | review | study | practice | practise | bake | \
     cook | cut | paint | plan | print | sign | send | see | go to | read | work on | talk to | ask | test | \
     deploy | back up | file | wrap | donate | sell | wake up | leave | start | apply | register | charge | change | \
     book | contact | organize | organise | schedule | ring | phone | collect | bring | ship | post | grab | fetch | \
     fix | mend | hang | assemble | polish | arrange | chase | follow up | revise | rehearse | research | draft | \
     finalize | finalise | replace | install | drive | deliver | walk | sort | empty | double check | head to | \
     swing by | stop by | run to | thank | invite | rsvp | prep | do the | do my | get the | get some | clear out"
);

/// Verbs that are something to do only where somebody says that it is needed: as a command they mean something else.
const NEEDED: Phrases = phrases!(
    "order | get | confirm | update | upload | drop | take | pick | check | remember | cancel | measure | hire | \
     negotiate | respond to | reply to | move | put | set up | make | do | give | find | tell | speak to | \
     speak with | talk with | transfer | mark | look for | look into | look at | return | rest"
);

/// What somebody needs to do about other trades, and no engine here can do for them.
const BOOKED: Phrases = phrases!(
    "book a | book an | book the | book my | renew | pay the | pay my | change the | change my | send them | apply for"
);

/// Whether what is named at `i` can be done by somebody.
pub(crate) fn is_doing(clause: &Clause, i: usize) -> bool {
    clause.phrase(i, ERRANDS).is_some() || clause.phrase(i, DOINGS).is_some()
}

pub(super) fn read(clause: &Clause) -> Guess {
    errand(clause).or_else(|| duty(clause)).or_else(|| plan(clause))
}

/// "Buy milk", "I have to call mom tomorrow": nothing asks for a task, but what is said is one. Errands are taken as
/// they are, other doings only with a date or an urgency.
fn errand(clause: &Clause) -> Guess {
    let i = clause.start + clause.phrase(clause.start, phrases!("i must | i should | we must")).unwrap_or(0);
    let asked = clause.asked
        || i == clause.start && matches!(clause.words.before(i), "i" | "we")
        || clause.has(phrases!("me | you | your | can i | how | what"));
    let urgent = (i + 1..clause.end).any(|k| attributes::priority_at(clause, k).is_some());
    let deadline = clause.dates.iter().any(|found| clause.at(found.tokens.start) == "by");
    // "email Bob": the verb itself is of another trade, what it is about is not.
    let other = clause.is_foreign() && (i + 1..clause.end).any(|k| scope::is_foreign(clause.at(k)));
    let needed =
        mood::is_need(clause, i) && (clause.has(BOOKED) || !other) && !matches!(clause.at(i + 1), "it" | "that");
    if asked || clause.end - i < 2 || other && !deadline && !needed {
        return None;
    }
    let timed = !clause.dates.is_empty() || urgent;
    let errand = clause.phrase(i, ERRANDS).is_some();
    let confidence = if timed {
        0.6
    } else if errand {
        0.5
    } else {
        command::NEED
    };
    (errand || (timed || needed) && is_doing(clause, i)).then_some((Act::Create(Form::Rest, i), confidence))
}

/// "gotta wash the car", "tomorrow I have to submit the claims", "…, so I need to apply by July".
fn duty(clause: &Clause) -> Guess {
    let at = deed_at(clause)?;
    if asks(clause) || at >= clause.end || !clause.words.is_word(at) {
        return None;
    }
    let vague = phrases!(
        "know | find | hear | see | talk | understand | figure | say | be | go | eat | sleep | stop | think | \
         admit | tell | get | have | it | that | this | translate | convert | use | learn | pee | listen | watch | \
         play | a | an | some | my | the | more | help | directions | to | speak | rest | relax | live | die | \
         feel | look | try | want"
    );
    let object = shape::is_definite(clause, at + 1) || clause.end - at > 2;
    let timed = !clause.dates.is_empty()
        || (at..clause.end).any(|k| attributes::priority_at(clause, k).is_some() || clause.at(k) == "#");
    let other = (at + 1..clause.end).any(|k| scope::is_foreign(clause.at(k))) && clause.is_foreign();
    let late = clause.dates.iter().any(|found| matches!(clause.at(found.tokens.start), "by" | "before" | "on" | "due"));
    let doing = is_doing(clause, at) || clause.phrase(at, NEEDED).is_some();
    let known = doing && (timed || shape::is_definite(clause, at + 1));
    let plain = known || !vague.contains(clause.at(at)) && (timed || shape::is_definite(clause, at + 1));
    let service =
        phrases!("rent | fly | apply | report | share | purchase | locate | roll | reserve | order | pay my | book")
            .contains(clause.at(at));
    let abroad = (other || service) && !(timed && (late || clause.has(BOOKED)));
    let wished = clause.before(at) == "wanna" || mood::is_wish(clause, at) && !mood::is_need(clause, at);
    if !plain || !object || abroad || wished && !late {
        return None;
    }
    Some((Act::Create(Form::Rest, at), if timed { 0.6 } else { command::NEED }))
}

/// Where what has to be done begins: after "I have to" and its like.
fn deed_at(clause: &Clause) -> Option<usize> {
    const DUTIES: Phrases = phrases!(
        "i must not forget to | i mustn't forget to | mustn't forget to | must not forget to | \
         i need to remember to | i need to | i have to | i've got to | i've to | ive got to | i got to | i gotta | \
         i must | i should really | i really should | i should | i ought to | i'd better | i better | i had better | \
         i'm supposed to | i am supposed to | i'm meant to | i am needing to | i really need to | i really have to | \
         i still need to | i still have to | i also need to | i also have to | i wanna | i want to | we need to | \
         we have to | we've got to | we must | we should | we gotta | should really | should | \
         it is essential that i | it's essential that i | it's important that i | gotta | got to | must | need to | \
         have to | ned to | i'll need to | i will need to | i'm going to need to | gonna need to | i promised to | \
         i've promised to | i've been meaning to | i suppose i should | i'm due to | i'll have to | i will have to | \
         i do need to | i keep forgetting to"
    );
    if let Some(n) = clause.phrase(clause.start, DUTIES) {
        return Some(clause.start + n);
    }
    if mood::is_wish(clause, clause.start) {
        return Some(clause.start);
    }
    let (at, n) = clause.seek(clause.start, DUTIES)?;
    let linked = phrases!(", | so | and | : | ; | . | - | because | as | but | then").contains(clause.before(at));
    let led = clause.phrase(clause.start, phrases!("on my | before i | while i | after i | at some")).is_some();
    (linked || led || !clause.dates.is_empty()).then_some(at + n)
}

/// Whether a duty is only asked or talked about.
fn asks(clause: &Clause) -> bool {
    clause.asked
        || clause.has(phrases!(
            "you | your | how | what | if i | who | which | whether | where | why | do i | should i | not | tell | \
             send a"
        ))
        || phrases!("text | message | email | ask | do | does | can | if").contains(clause.at(clause.start))
        || phrases!("is | are | should").contains(clause.at(clause.start))
            && shape::is_pronoun(clause.at(clause.start + 1))
}

/// "rotate the mattress on the first of the month", "team lunch Dec 23 12:30", "ship the parcel #errands": something
/// short with a date, a tag or a priority and nothing that makes it a question or a remark.
fn plan(clause: &Clause) -> Guess {
    let i = clause.start;
    let long = clause.end - i;
    let (from, told) = heading(clause, i);
    let wished = mood::is_wish(clause, i) && !mood::is_need(clause, i);
    if clause.has_noun() && !told
        || wished
        || clause.asked
        || !(2..=16).contains(&long)
        || clause.is_foreign() && !is_errand_abroad(clause, from)
    {
        return None;
    }
    let tagged = (i..clause.end).any(|k| clause.at(k) == "#" && clause.words.touches_next(k));
    let urgent = (i..clause.end).any(|k| attributes::priority_at(clause, k).is_some());
    let timed = !clause.dates.is_empty();
    let spent = clause.dates.iter().map(|found| found.tokens.len()).sum::<usize>() >= long;
    if !timed && !tagged && !urgent && !told || spent || speaks(clause, from) || is_search(clause) {
        return None;
    }
    Some((Act::Create(Form::Rest, from), if told { 0.6 } else { 0.52 }))
}

/// Whether it looks for something to do or asks another service: "parties in Miami on Sunday", "a table for two at 8".
fn is_search(clause: &Clause) -> bool {
    const SHOWS: Phrases = phrases!(
        "party | parties | festival | festivals | show | shows | theater | theatre | parade | parades | market | \
         markets | conventions | convention | fireworks | comedy | table for | reserve | divided by | plays | \
         happenings | exhibit | stores | events | happening | going on | things to do | anything | \
         messenger | price | times | multiplied by | minus | squared | classes | concerts | races | \
         tournament | sports"
    );
    let place = (clause.start + 1..clause.end)
        .any(|k| matches!(clause.before(k), "in" | "near" | "around") && shape::is_name(clause, k));
    let asked =
        (clause.opening..clause.start).any(|k| matches!(clause.words.at(k), "you" | "can" | "could" | "do" | "u"));
    place || asked || clause.has(SHOWS)
}

/// "for tomorrow: …", "due Thursday: …", "one thing for tomorrow: …".
fn heading(clause: &Clause, i: usize) -> (usize, bool) {
    let colon = (i + 1..clause.end.min(i + 6)).find(|k| clause.at(*k) == ":");
    match colon {
        Some(at) if clause.dates.iter().any(|found| found.tokens.end <= at) => (at + 1, true),
        _ => (i, false),
    }
}

/// Words that a plan does not begin with or hold: whoever speaks so tells or asks something.
fn speaks(clause: &Clause, from: usize) -> bool {
    const OPENERS: Phrases = phrases!(
        "what | what's | whats | who | who's | whose | when | when's | where | where's | why | how | how's | which | \
         is | are | am | was | were | do | does | did | can | could | will | would | should | shall | may | has | \
         have | had | i | i'm | im | i've | i'd | i'll | you | you're | he | he's | she | she's | we | we're | \
         we'll | they | they're | it | it's | its | there | there's | this | that | that's | these | those | yes | \
         no | not | never | thanks | thank | sorry | hello | hi | hey | good | happy | lol | haha | wow | oh | ok | \
         play | stop | pause | turn | switch | tell | show | wake | let | let's | lets | if | because | since | \
         but | maybe | nothing | everything | anything | someone | set | start | open | search | find | give | say | \
         explain | please | translate | resume | skip | my | our | his | her | their | don't | dont | can't | \
         won't | list | read | repeat | add | delete | remove | cancel | undo | move | snooze | reschedule | \
         postpone | push | change | update | rename | mark | complete | tag | reopen | navigate | the | a | an | \
         drive me | take me | directions | text | message | send a message | roll | flip | count | calculate | \
         weather | any | all"
    );
    const INSIDE: Phrases = phrases!(
        "i | me | i'm | you | your | u | we | is | are | was | were | will | would | should | could | did | does | \
         has | have | had | what | how | why | who | please tell | nearest | near | nearby | around here | ago | \
         last | remind"
    );
    let opener = clause.phrase(from, OPENERS).is_some() && clause.phrase(from, ERRANDS).is_none();
    let held = (from + 1..clause.end).any(|k| clause.phrase(k, INSIDE).is_some() && clause.date_at(k).is_none());
    opener || held
}

/// "pay credit card on the 15th", "print the tickets on Thursday": what is done about other trades by hand.
fn is_errand_abroad(clause: &Clause, i: usize) -> bool {
    let verb = phrases!(
        "pay | call | ring | phone | print | order | renew | cancel | collect | return | hang | pick up | drop off | \
         clean | wash | water | buy | pack | head to | top up | clear out | scrub | follow up | double check | \
         bring | post | chase | confirm | repair | fix | replace | change | refill"
    );
    let other = phrases!(
        "weather | forecast | alarm | alarms | timer | music | song | songs | playlist | traffic | news | taxi | \
         uber | restaurant | restaurants | movie | movies | meeting | meetings | concert | concerts | event | events"
    );
    clause.phrase(i, verb).is_some() && !clause.has(other)
}
