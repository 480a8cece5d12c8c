//! Other ways to say that a task is to go: colloquial verbs, "no longer needed", "off the list with it".
//!
//! Most of these verbs mean something else by themselves ("cut the cake", "lose weight"): they count only where a word
//! for a task, an entry of the list or the list itself stands beside them.

use super::{Act, Guess, shape, verb_at};
use crate::clause::Clause;
use crate::lexicon::{Noun, Verb};
use crate::phrases::{Phrases, phrases};

/// Verbs that mean deleting wherever something of the list is their object.
const VERBS: Phrases = phrases!(
    "get rid of | get rid off | do away with | throw away | throw out | chuck out | chuck away | chuck | toss out | \
     toss | bin off | bin | ditch | nuke | axe | ax | lose | yeet | zap | abandon | withdraw | cut | end | quit | \
     dump | retire | revoke | rescind | omit | let go of | shut down | call off | rm | del | rmv | delet | \
     dispose of | wipe out | wipe off | clean up | clean out | clear out | clear up | clear off | away with | \
     never mind about | never mind | nevermind | nvm | strike out | strike off | strike | scratch off | scratch | \
     unschedule | kill off | blow off | take off | take down | pull | bury | obliterate | expunge | trash | scrap | \
     nix | drop | kick | knock off | erase | forget about | forget | skip | remove | delete | cancel | take out | \
     leave out | leave off | discard | let's drop | give up on | stop with | exterminate | terminate | unlist | \
     boot | weed out | destroy"
);

/// Those that mean deleting even where only "the …" follows.
const PLAIN: Phrases = phrases!(
    "get rid of | do away with | bin off | bin | ditch | nuke | axe | ax | yeet | zap | rm | del | rmv | delet | \
     scrap | nix | never mind | nevermind | nvm | never mind about | call off | forget about | forget | let go of | \
     take off"
);

/// How many tokens a verb of deleting takes at `i`, whichever it is.
pub(super) fn verb(clause: &Clause, i: usize) -> Option<usize> {
    let n = clause.phrase(i, VERBS).or_else(|| (verb_at(clause, i) == Some(Verb::Delete)).then_some(1));
    n.or_else(|| (clause.at(i) == "take" || clause.at(i) == "get").then_some(1).filter(|_| is_off(clause, i + 1)))
}

/// "it off", "them off the list".
fn is_off(clause: &Clause, i: usize) -> bool {
    shape::pointer(clause, i).is_some_and(|n| matches!(clause.at(i + n), "off" | "away" | "out"))
}

pub(super) fn read(clause: &Clause, i: usize) -> Guess {
    colloquial(clause, i)
        .or_else(|| off_list(clause, i))
        .or_else(|| unneeded(clause, i))
        .or_else(|| unreminded(clause, i))
        .or_else(|| may_go(clause, i))
}

/// "ditch the juggling task", "bin the ebay one", "rm 3".
fn colloquial(clause: &Clause, i: usize) -> Guess {
    let n = clause.phrase(i, VERBS)?;
    let from = i + n;
    if verb_at(clause, i).is_some_and(|verb| verb == Verb::Delete) || from >= clause.end || clause.asked {
        return None;
    }
    let until = clause.seek(from, phrases!(", | because | since | before")).map_or(clause.end, |(at, _)| at);
    let entry = shape::names_entry(clause, from..until) && !clause.has(phrases!("to the list | to my list"));
    let short = matches!(clause.at(i), "rm" | "del" | "rmv" | "delet");
    let definite = clause.phrase(i, PLAIN).is_some() && shape::is_definite(clause, from) && clause.dates.is_empty();
    // "forget it", "forget that" take back what was said last and name nothing.
    let vague = matches!(clause.at(i), "forget" | "never" | "nevermind" | "nvm" | "call")
        && (shape::pointer(clause, from).is_some_and(|n| from + n >= until) || matches!(clause.at(from), "me" | "you"));
    let gerund = matches!(clause.at(i), "forget") && clause.at(from).ends_with("ing");
    let fits = entry || short || definite || gerund;
    let reworded = matches!(clause.at(i), "cut" | "end" | "pull" | "skip" | "lose" | "leave" | "quit" | "drop")
        && !shape::is_definite(clause, from);
    if !fits || vague || reworded || clause.is_foreign() || is_field(clause, from) {
        return None;
    }
    Some((Act::Delete(from, until), if entry { 0.85 } else { 0.66 }))
}

/// A field of a task goes, not the task.
fn is_field(clause: &Clause, i: usize) -> bool {
    (i..clause.end.min(i + 5)).any(|k| {
        phrases!("tag | tags | label | labels | deadline | priority | date | time | notes | description")
            .contains(clause.at(k))
    })
}

/// "get that off my list", "cut the vinegar from my list", "off the list with the spinach", "from my tasks take out …".
fn off_list(clause: &Clause, i: usize) -> Guess {
    const LEADS: Phrases = phrases!("off the list with | off my list with | out with | away with");
    if let Some(n) = clause.phrase(i, LEADS).filter(|_| clause.has_noun()) {
        return Some((Act::Delete(i + n, clause.end), 0.8));
    }
    let gone =
        phrases!("off the list | off my list | off the shopping list | off my shopping list | off the to-do list");
    let tail = clause.seek(i + 1, gone).filter(|(at, n)| at + n == clause.end && *at <= i + 6);
    let plain =
        |k: usize| clause.words.is_word(k) && !shape::is_pronoun(clause.at(k)) && !shape::VERBS.contains(clause.at(k));
    if let Some((at, _)) = tail.filter(|(at, _)| verb_at(clause, i).is_none() && (i..*at).all(plain)) {
        let from = i + clause.phrase(i, VERBS).unwrap_or(0);
        return (from < at && !clause.asked).then_some((Act::Delete(from, at), 0.7));
    }
    const OFF: Phrases = phrases!(
        "get | cut | strike | pull | yeet | knock | kick | leave | wipe | chuck | throw | toss | take | drop | \
         scratch | keep | bump | boot | lose"
    );
    if !OFF.contains(clause.at(i)) {
        return None;
    }
    let (at, n) = clause.seek(i + 2, phrases!("off | from | out of"))?;
    let noun =
        clause.noun_in(at + n..clause.end.min(at + n + 5)).filter(|noun| noun.noun == Noun::List || noun.plural)?;
    let straight = !(at + n..noun.at).any(|k| matches!(clause.at(k), "to" | "and" | "for"));
    (straight && !clause.is_elsewhere()).then_some((Act::Delete(i + 1, clause.end), 0.82))
}

/// "I don't need to call the plumber anymore", "no need to book the van any more", "we don't have to … after all".
fn unneeded(clause: &Clause, i: usize) -> Guess {
    const NOT: Phrases = phrases!(
        "i don't need to | i don't have to | i dont need to | i dont have to | i do not need to | i do not have to | \
         we don't need to | we don't have to | don't need to | don't have to | dont need to | no need to | \
         there's no need to | there is no need to | i needn't | i no longer need to | i no longer have to | \
         we no longer need to | we no longer have to | no longer need to | no longer have to | i'm no longer | \
         i no longer need | we no longer need | no longer need | i'm not | we're not | i am not | we are not | \
         not | i won't be | i wont be | we won't be | i don't want to | we won't need to | i won't need to | \
         i don't need | i don't want | we don't need | don't need | i dont need | i no longer want | we don't want | \
         i've no use for | i have no use for | no use for | there's no point in | no point in | no point | \
         there's no need for | no need for | you needn't remind me | you don't have to remind me | \
         you don't need to remind me | no need to remind me | quit reminding me | stop bugging me | quit bugging me | \
         stop nagging me | quit nagging me | stop pestering me | stop telling me | i don't need reminding | \
         don't want | you don't need to keep | don't bother with | no more"
    );
    const OVER: Phrases = phrases!("anymore | any more | any longer | after all | now | no longer");
    let n = clause.phrase(i, NOT)?;
    let from = i + n;
    let told = matches!(clause.before(from), "me" | "reminding" | "keep") && n > 2;
    let longer = (i..from).any(|k| clause.at(k) == "longer");
    let over = clause.seek(from, OVER).filter(|(at, m)| at + m == clause.end || !clause.words.is_word(at + m));
    let doing = super::is_doing(clause, from) || clause.at(from).ends_with("ing") || shape::is_definite(clause, from);
    let fits = told
        || over.is_some_and(|(at, _)| clause.at(at) != "now") && doing
        || longer && doing && !matches!(clause.at(i + 1), "not")
        || clause.nouns_in(from..clause.end).any(|noun| noun.noun == Noun::Reminder) && clause.before(from) != "to"
        || clause.before(from) == "for" && (clause.has_noun() || over.is_some());
    let weak = matches!(clause.at(i), "not") && over.is_none();
    let knows = clause
        .phrase(from, phrases!("know | you | to know | help | that | this | it | hear | be | , | how | of how"))
        .is_some()
        && over.is_none();
    if !fits || weak || knows || clause.asked || clause.is_foreign() && !told && !longer {
        return None;
    }
    let lead = clause.phrase(from, phrases!("about | of | to | doing | that | keeping | a | any")).unwrap_or(0);
    let end = over.map_or(clause.end, |(at, _)| at);
    (from + lead < end).then_some((Act::Delete(from + lead, end), 0.78))
}

/// "don't bother reminding me of the parade", "I no longer want to be reminded about the gym".
fn unreminded(clause: &Clause, i: usize) -> Guess {
    const NOT: Phrases = phrases!(
        "don't | dont | not | no longer | never | needn't | stop | quit | no more | cease | no reason to | no point"
    );
    let (not, _) = clause.seek(i, NOT).filter(|(at, _)| *at <= i + 3)?;
    let (at, n) = clause
        .seek(not, phrases!("remind me | reminding me | be reminded | reminded"))
        .filter(|(at, _)| *at <= not + 6)?;
    let straight = (not..at)
        .all(|k| clause.words.is_word(k) && !matches!(clause.at(k), "forget" | "miss" | "so" | "and" | "let" | "you"))
        || clause.phrase(i, phrases!("you don't | you dont | you needn't | you do not")).is_some();
    let about = clause.phrase(at + n, phrases!("about | of | to | for | that"))?;
    let from = at + n + about;
    (straight && from < clause.end && !clause.asked).then_some((Act::Delete(from, clause.end), 0.8))
}

/// "the gym reminder can go", "both reminders should be dropped", "this one isn't needed".
fn may_go(clause: &Clause, i: usize) -> Guess {
    const TAILS: Phrases =
        phrases!("anymore | any more | now | , | from | after all | so | then | too | - | any longer | again");
    if i != clause.start && !shape::is_definite(clause, i) {
        return None;
    }
    let Gone { at, end, news } = gone(clause, i + 1)?;
    let tail = clause.is_spent(end..clause.end) || clause.phrase(end, TAILS).is_some();
    let entry = shape::names_entry(clause, i..at);
    let subject = shape::is_definite(clause, i) || matches!(clause.at(i), "everything" | "any");
    let listed = clause.phrase(end, phrases!("from the list | from my list | from my tasks")).is_some();
    let asked = clause.asked && !matches!(clause.words.before(i), "could" | "can");
    let fits = tail && subject && (entry || listed || !news) && at <= i + 9 && !asked && !clause.is_elsewhere();
    fits.then_some((Act::Delete(i, at), if entry { 0.8 } else { 0.66 }))
}

/// Words that say that something may go.
struct Gone {
    at: usize,
    end: usize,
    /// Whether they may be news of the thing itself, such as "the party is off", and not speak of its task.
    news: bool,
}

fn gone(clause: &Clause, from: usize) -> Option<Gone> {
    const GO: Phrases = phrases!(
        "can come off | should come off | isn't needed | aren't needed | is not needed | are not needed | \
         is no longer needed | are no longer needed | isn't necessary | is not necessary | is no longer necessary | \
         isn't relevant | is no longer relevant | isn't useful | isn't happening | is not happening | \
         isn't going to happen | is not going to happen | won't be necessary | won't be needed | \
         no longer needs doing | doesn't need doing | don't need doing | needs deleting | needs removing | \
         is obsolete | were a mistake | is a duplicate | has been called off"
    );
    const NEWS: Phrases = phrases!(
        "is off | is moot | can go | has to go | must go | needs to go | should go | doesn't matter | fell through | \
         was a mistake | is irrelevant"
    );
    const DELETED: Phrases =
        phrases!("deleted | removed | dropped | cleared | scrapped | binned | stopped | cancelled | canceled");
    const PAST: Phrases = phrases!("is | are | was | were | got | gets | has | have | had | been");
    if let Some((at, n)) = shape::passive(clause, from, DELETED) {
        // "should be deleted" is a wish, "was cancelled" is news, "was deleted" is neither.
        let past = PAST.contains(clause.at(at)) && clause.at(at + 1) != "to";
        if !past || matches!(clause.before(at + n), "cancelled" | "canceled") {
            return Some(Gone { at, end: at + n, news: past });
        }
    }
    let news = clause.seek(from, NEWS);
    let (at, n) = [news, clause.seek(from, GO)].into_iter().flatten().min_by_key(|(at, _)| *at)?;
    let news = news.is_some_and(|(first, _)| first == at);
    Some(Gone { at, end: at + n, news })
}
