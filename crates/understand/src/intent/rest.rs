//! Clauses whose command does not stand first, or that have no verb: "I'm tired, so please delete …", "my tasks".

use super::{Act, Guess, at, shape, verb_at};
use crate::clause::{Clause, Named};
use crate::courtesy;
use crate::create::Form;
use crate::lexicon::{Noun, Verb};
use crate::phrases::{Phrases, phrases};
use crate::scope;
use crate::update::Change;

const DELETED: Phrases = phrases!(
    "deleted | canceled | cancelled | removed | erased | cleared | taken off | no longer needed | deleting | \
     canceling | removing | please delete | please cancel | please remove"
);
const CHANGED: Phrases = phrases!(
    "changed | should be due | is now due | moved | updated | rescheduled | pushed | postponed | switched | \
     modified | changing | moving | updating"
);
/// Where the name of the thing ends in "the reminder for X needs to be …".
const BE: Phrases = phrases!(
    "is what needs | needs to | need to | needs | need | can be | should be | must be | has to | have to | \
     has been | have been | to be | will be | is | are | was | ,"
);

/// "I need all my reminders cancelled."
pub(super) fn wanted(clause: &Clause, i: usize) -> Guess {
    let verb = phrases!("need | want | i need | i want | i'd like | i would like");
    let n = clause.phrase(i, verb)?;
    let noun = clause.noun_in(i + n..clause.end)?;
    if let Some((at, _)) = clause.seek(noun.at, DELETED) {
        let end = if at == noun.end { clause.end } else { at };
        return Some((Act::Delete(i + n, end), 0.75));
    }
    if clause.seek(noun.at, CHANGED).is_some_and(|(at, _)| clause.at(at + 1) == "to" || at + 1 == clause.end) {
        return Some((Act::Update(Change::Any, i + n, clause.end), 0.75));
    }
    None
}

/// How many places of a clause are tried: no sentence needs more, and noise must not take long.
const MOST_TRIES: usize = 24;

/// A command after a preamble: "I'm tired, so please delete …", "on my list, add …".
pub(super) fn later(clause: &Clause) -> Guess {
    const OPENS: Phrases = phrases!(
        ", | so | and | please | you | to | : | - | list | lists | then | just | kindly | — | – | but | also | me | \
         i"
    );
    if let Some(guess) = passive(clause) {
        return Some(guess);
    }
    let message =
        phrases!("text | tell | message | email | ask | send").contains(clause.at(clause.start)) && !clause.has_noun();
    let opens = |i: &usize| {
        let before = clause.before(*i);
        if clause.phrase(*i, phrases!("you can | you may | you could | can you | could you")).is_some() {
            return true;
        }
        clause.words.is_one_of(*i - 1, OPENS)
            || courtesy::is_please(before)
            || matches!(clause.at(*i), "remind" | "remember")
    };
    for i in (clause.start + 1..clause.end).filter(opens).take(MOST_TRIES) {
        let from = courtesy::after(clause.words, i, clause.end);
        let verb = verb_at(clause, from);
        if clause.is_foreign()
            && verb.is_some()
            && let Some(guess) = by_itself(clause, i, from)
        {
            return Some(guess);
        }
        if verb.is_none() && super::erase::verb(clause, from).is_none() {
            continue;
        }
        let Some((act, confidence)) = at(clause, from) else { continue };
        if !message && stands(clause, i, from, act) {
            return Some((act, confidence - 0.08));
        }
        let remind = verb == Some(Verb::Remind) && matches!(clause.at(from + 1), "me" | "us");
        if remind || verb.is_some() && clause.has_noun() {
            return Some((with_preamble(clause, from, act), confidence - 0.08));
        }
    }
    None
}

/// Whether the command at `from` is plain without a word for a task: it follows a link, and a particular thing is its
/// object.
fn stands(clause: &Clause, i: usize, from: usize, act: Act) -> bool {
    let before = clause.before(i);
    let linked = phrases!(", | so | please | : | - | then | — | – | but | you").contains(before)
        || clause.phrase(i, phrases!("you can | you may | you could | can you | could you")).is_some()
        || courtesy::is_please(before);
    let object = shape::is_definite(clause, from + 1)
        || shape::is_definite(clause, from + 2)
        || shape::is_definite(clause, from + 3);
    match act {
        Act::Complete(..) if clause.at(from + 1) == "off" => linked,
        Act::List(_) => linked && verb_at(clause, from) == Some(Verb::Show),
        Act::Delete(..) | Act::Complete(..) => {
            linked && object && clause.dates.iter().all(|found| found.tokens.start < from)
        }
        Act::Update(..) => linked && object,
        Act::Create(Form::Add, _) => linked && verb_at(clause, from) == Some(Verb::Add),
        _ => false,
    }
}

/// "my train got cancelled, so move the handover to 4": words of other trades in the remark do not count.
fn by_itself(clause: &Clause, i: usize, from: usize) -> Guess {
    let part = Clause::new(clause.words, from..clause.end, clause.now);
    if part.is_foreign() || part.start != from {
        return None;
    }
    let (act, confidence) = at(&part, from)?;
    stands(clause, i, from, act).then_some((act, confidence - 0.08))
}

/// "I need to see the vet on Monday, remind me": what was said before is the title if nothing follows.
fn with_preamble(clause: &Clause, from: usize, act: Act) -> Act {
    let about = clause.phrase(clause.start, phrases!("for | about | on | regarding | concerning | as for"));
    let task = clause.nouns_in(clause.start..from).any(|noun| noun.noun == Noun::Task && !noun.plural);
    if about.is_some() && task && matches!(act, Act::Create(Form::Remind, _)) {
        return Act::Remind(clause.start);
    }
    match act {
        Act::Create(Form::Remind | Form::Make, body) if from > clause.start + 1 => {
            let dated = clause.dates.iter().filter(|found| found.tokens.start >= body);
            let spent = (body..clause.end)
                .filter(|i| !dated.clone().any(|found| found.tokens.contains(i)))
                .all(|i| !clause.words.is_word(i) || is_filler(clause, i));
            if spent { Act::Create(Form::Preamble, from) } else { act }
        }
        act => act,
    }
}

fn is_filler(clause: &Clause, i: usize) -> bool {
    let filler = phrases!(
        "a | an | the | my | it | this | that | for | of | about | reminder | alert | again | before | minutes | \
         minute | hour | hours | hr | min | mins | prior | early | ahead | beforehand | up | one | on | at"
    );
    filler.contains(clause.at(i)) || clause.at(i).bytes().all(|b| b.is_ascii_digit())
}

/// "The reminder for the party needs to be cancelled."
fn passive(clause: &Clause) -> Guess {
    let noun = clause.noun_in(clause.start..clause.end)?;
    let modal = usize::from(matches!(clause.at(clause.start), "can" | "could" | "may" | "might" | "should" | "would"));
    let start = clause.start + modal;
    let first = phrases!("the | my | all | our | that | this | both | these | those | any | every")
        .contains(clause.at(start))
        || noun.at == start;
    if !first {
        return None;
    }
    let be = |from: usize| clause.seek(from, BE).map_or(clause.end, |(at, _)| at);
    if clause.seek(noun.end, DELETED).is_some()
        || clause.phrase(clause.end.saturating_sub(1), phrases!("delete | cancel")).is_some()
    {
        return Some((Act::Delete(start, be(noun.end)), 0.75));
    }
    if clause.seek(noun.end, CHANGED).is_some() {
        return Some((Act::Update(Change::Any, start, clause.end), 0.75));
    }
    if noun.noun != Noun::List && clause.seek(noun.end, phrases!("should be | should say | should read")).is_some() {
        return Some((Act::Update(Change::Any, clause.start, clause.end), 0.7));
    }
    if clause.has(phrases!("instead of | rather than | instead")) {
        return Some((Act::Update(Change::Instead, clause.start, clause.end), 0.7));
    }
    None
}

/// A clause without a verb: "my tasks", "reminders for tomorrow", "a reminder for the game".
pub(super) fn without_verb(clause: &Clause) -> Guess {
    let noun =
        clause.noun_in(clause.start..clause.end).filter(|_| !scope::is_media(clause) && !scope::is_order(clause))?;
    let singular = !noun.plural && noun.noun != Noun::List;
    let turned =
        phrases!("turn | switch | mute | disable | enable | allow | push | who | how | why | do | does | where")
            .contains(clause.at(clause.start));
    if turned
        || shape::is_pronoun(clause.at(clause.start)) && clause.has(phrases!("i love | i hate | i like | i enjoy"))
    {
        return None;
    }
    let wanted = clause.has(phrases!(
        "i need a | i need an | i want a | i'd like a | i would like a | need a | like a | want a | about a | \
         needs a | needs | i need | i'd like to have a | have a"
    ));
    let told = matches!(clause.at(noun.end), "to" | "for" | "about" | "that" | ":");
    let definite =
        (clause.start..noun.at).any(|i| matches!(clause.at(i), "my" | "the" | "all" | "any" | "that" | "this"));
    if singular && (wanted || told && !definite && noun.at < clause.start + 4) || wanted && told && noun.plural {
        return Some((Act::Create(Form::Make, clause.start), 0.75));
    }
    if singular && noun.end == clause.end && !definite {
        return Some((Act::Create(Form::Make, clause.start), 0.55));
    }
    let stated = clause.seek(
        noun.end,
        phrases!("should | could | can | was | needs | must | ought | may | isn't | is too | is wrong"),
    );
    let named = heads(clause, noun) && follows(clause, noun) && stated.is_none();
    (named && clause.end - clause.start <= 14).then_some((Act::List(clause.start), 0.7))
}

/// Whether the words before the noun belong to it: no article stands among them but at their head.
fn heads(clause: &Clause, noun: Named) -> bool {
    let lead = clause.phrase(
        clause.start,
        phrases!(
            "all of the | all of my | all the | all my | all of | every single | a list of all my | \
             a list of all the | a list of my | a list of the | list of | any of my | some of my | what about | \
             the list of | only | just | and"
        ),
    );
    let from = clause.start + lead.unwrap_or(0);
    let small =
        |i: usize| crate::lexicon::is_article(clause.at(i)) || !clause.words.is_word(i) && clause.date_at(i).is_none();
    noun.at <= from + 5
        && !(from + 1..noun.at).any(|i| small(i) || shape::is_pronoun(clause.at(i)) && clause.date_at(i).is_none())
}

/// Whether what follows the noun can belong to it: a date, "for …", "that …"; not a verb.
fn follows(clause: &Clause, noun: Named) -> bool {
    const AFTER: Phrases = phrases!(
        "for | about | on | with | that | in | this | due | from | of | i | i've | regarding | related | tagged | \
         at | by | please | , please | left | to | today | tomorrow | next | my | which | ? | completed | pending | \
         set | list | lists | and | or | before | after | until | between | during | concerning | ( | only | named | \
         called | you | under | overdue | done"
    );
    noun.end >= clause.end
        || clause.date_at(noun.end).is_some()
        || clause.phrase(noun.end, AFTER).is_some()
        || clause.noun_at(noun.end).is_some()
}

/// What is said about a task in words no rule knows: the words beside its name say what is to become of it.
pub(super) fn by_words(clause: &Clause) -> Guess {
    const GONE: Phrases = phrases!(
        "delete | deleted | deleting | remove | removed | removing | cancel | cancelled | canceled | drop | \
         dropped | scrap | scrapped | gone | abort | rub out | trash | erase | erased | unnecessary | pointless | \
         irrelevant | obsolete | stop | silence | no longer | not needed | don't need | dont need | don't want | \
         get rid | clear | mute | dismiss | turn off | switch off | unneeded | anymore"
    );
    const DONE: Phrases = phrases!(
        "done | complete | completed | finished | closed | sorted | ticked | tick | check off | checked | achieved | \
         accomplished | wrapped up | resolved | dealt with | taken care of"
    );
    const OTHER: Phrases = phrases!(
        "instead | rather | earlier | later | sooner | change | changed | move | moved | shift | shifted | \
         priority | urgent | important | tag | label | note | rename | typo | wrong | should be | should say | \
         should repeat | repeat | daily | weekly | yearly | monthly | weekdays | pause | resume | postpone | delay | \
         snooze | extend | adjust | not | attach | under | prefer | different | time | new | called | named | keep"
    );
    let noun = clause.noun_in(clause.start..clause.end).filter(|noun| noun.noun != Noun::List)?;
    let own = (clause.start..noun.at)
        .any(|k| phrases!("the | my | that | this | our | those | these | both | a | any").contains(clause.at(k)));
    let question = clause.asked
        || phrases!(
            "what | which | when | how | who | where | why | do | does | is | are | i love | i hate | i wonder"
        )
        .contains(clause.at(clause.start));
    if !own
        || question
        || clause.is_foreign()
        || clause.has(phrases!("i love | i hate | wonder | always | app | feature"))
    {
        return None;
    }
    let end = clause.seek(noun.end, phrases!(", | is | should | can | needs | has")).map_or(clause.end, |(at, _)| at);
    let start = (clause.start..noun.at).rev().find(|k| crate::lexicon::is_article(clause.at(*k))).unwrap_or(noun.at);
    if clause.has(GONE) {
        return Some((Act::Delete(start, end), 0.56));
    }
    if clause.has(DONE) {
        return Some((Act::Complete(start, end), 0.56));
    }
    // "I'd be interested in the tasks from last month": several, so a look at them is wanted.
    if noun.plural
        && !clause
            .has(phrases!("should | can | move | change | instead | tag | label | priority | retag | carry | roll"))
    {
        return None;
    }
    let wanted = phrases!("i'd appreciate a | let there be a | register a | a task | a reminder");
    if clause.has(wanted) && noun.at <= clause.start + 6 {
        return Some((Act::Create(Form::Make, clause.start), 0.56));
    }
    let timed = clause.dates.iter().any(|found| found.tokens.start > noun.at) || clause.has(super::change::DISTANCES);
    (timed || clause.has(OTHER)).then_some((Act::Update(Change::Any, start, clause.end), 0.55))
}

/// "sunscreen needs to go on the holiday list", "lob some teabags on the list": what goes onto a list is new.
pub(super) fn onto_list(clause: &Clause) -> Guess {
    const GOES: Phrases = phrases!(
        "needs to go | need to go | should go | should be | has to go | must go | belongs | belong | can go | goes | \
         go | needs to be | should be added | needs adding | could go | must be | have to go | need to be"
    );
    const LEADS: Phrases = phrases!("on the | on my | onto the | onto my | to the | to my | on our | in my | in the");
    let i = clause.start;
    let noun = clause.nouns_in(i..clause.end).find(|noun| noun.noun == Noun::List)?;
    let (at, _) = (i + 1..noun.at)
        .rev()
        .find_map(|k| clause.phrase(k, LEADS).map(|n| (k, n)))
        .filter(|(at, _)| noun.at <= at + 4)?;
    let asks = scope::is_order(clause)
        || shape::is_pronoun(clause.at(i))
        || clause.asked
        || scope::is_media(clause)
        || clause.is_elsewhere()
        || phrases!(
            "is | are | do | show | go | check | anything | everything | walk | look | tick | cross | all | read | \
             items | things | tasks | play | any | have | did | was"
        )
        .contains(clause.at(i))
        || clause.has(phrases!("off | from | what | what's | how | which | me"));
    if asks || noun.at == i || at == i {
        return None;
    }
    if let Some((k, _)) = clause.seek(i + 1, GOES).filter(|(k, n)| k + n == at) {
        return Some((Act::Create(Form::Preamble, k), 0.7));
    }
    let plain = (i..at).all(|k| clause.words.is_word(k) || clause.words.is_quoted(k)) && at > i + 1 && at <= i + 6;
    let object = !crate::lexicon::is_article(clause.at(i)) && clause.noun_in(i..at).is_none();
    (plain && object && noun.end >= clause.end).then_some((Act::Create(Form::Add, i + 1), 0.6))
}

/// Whatever else is said about one's list or one's tasks asks to see them: "walk me through my list".
pub(super) fn of_list(clause: &Clause) -> Guess {
    let noun = clause.noun_in(clause.start..clause.end)?;
    let several = noun.plural || noun.noun == Noun::List;
    let own = clause.has(phrases!("my | me | i | our | the | we"));
    let told = phrases!("who | how | why | do | does | where | turn | switch | mute").contains(clause.at(clause.start))
        || clause.has(phrases!(
            "should | needs | isn't | love | hate | always | never | used to | wish | spell | would happen"
        ));
    let fits = several && own && !told && !scope::is_media(clause) && !scope::is_order(clause) && !clause.is_foreign();
    (fits && clause.end - clause.start <= 14).then_some((Act::List(clause.start), 0.56))
}
