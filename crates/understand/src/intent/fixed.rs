//! Commands that are recognised by a phrase as a whole: "remember to …", "get rid of …", "todo: …".

use model::task::Priority;

use super::{Act, Guess, verb_at};
use crate::attributes;
use crate::clause::Clause;
use crate::create::Form;
use crate::labels;
use crate::lexicon::{Noun, Verb};
use crate::phrases::{Phrases, phrases};
use crate::reading::Field;
use crate::spelling::resembles;
use crate::update::{Change, note};

pub(super) fn read(clause: &Clause, i: usize) -> Guess {
    noted(clause, i)
        .or_else(|| filed(clause, i))
        .or_else(|| stated(clause, i))
        .or_else(|| reported(clause, i))
        .or_else(|| remember(clause, i))
        .or_else(|| gone(clause, i))
        .or_else(|| instead(clause, i))
        .or_else(|| label(clause, i))
        .or_else(|| reminder_first(clause, i))
}

/// "add a note to the report: …".
fn noted(clause: &Clause, i: usize) -> Guess {
    note::head(clause, i).map(|start| (Act::Update(Change::Note, start, clause.end), 0.88))
}

/// "file the receipts under taxes" of a task there is, "file scan the receipts under taxes" of a new one.
fn filed(clause: &Clause, i: usize) -> Guess {
    phrases!("file | put | move | stick | store | keep | place").contains(clause.at(i)).then_some(())?;
    let (under, _) = clause.seek(i + 2, phrases!("under"))?;
    let name = under + 1 + usize::from(matches!(clause.at(under + 1), "the" | "my"));
    let closed = name + 1 >= clause.end && labels::is_name(clause, name);
    let known = labels::is_common(clause.at(name)) || matches!(clause.at(i), "file") || clause.has_noun();
    if !closed || !known {
        return None;
    }
    let there = matches!(clause.at(i + 1), "the" | "my" | "that" | "this" | "it") || clause.noun_at(i + 1).is_some();
    if there {
        return Some((Act::Update(Change::Tags, i + 1, clause.end), 0.86));
    }
    let verb = matches!(clause.at(i), "file" | "put" | "stick");
    (verb && super::is_doing(clause, i + 1)).then_some((Act::Create(Form::Rest, i + 1), 0.86))
}

/// "deprioritize …", "the report is urgent", "call it …".
fn stated(clause: &Clause, i: usize) -> Guess {
    let end = clause.end;
    if matches!(clause.at(i), "deprioritize" | "deprioritise") {
        return Some((Act::Update(Change::Priority(Priority::Low), i + 1, end), 0.88));
    }
    if clause.at(i) == "untag" {
        return Some((Act::Update(Change::Clear(Field::Tags), i + 1, end), 0.85));
    }
    if let Some(n) =
        clause.phrase(i, phrases!("call it | name it | call that")).filter(|n| i + n < end && clause.dates.is_empty())
    {
        return Some((Act::Update(Change::NewName(i + n), i + 1, i + 2), 0.6));
    }
    if let Some(at) = now_due(clause, i) {
        return Some((Act::Update(Change::Replace(at), i, end), 0.65));
    }
    let (at, priority) = attributes::closing_priority(clause, i + 1)?;
    // "… and the second as high priority": what goes before is marked, too.
    if clause.at(at) == "as" && at > i && verb_at(clause, i).is_none() && !super::is_doing(clause, i) {
        return Some((Act::Update(Change::Priority(priority), i, end), 0.8));
    }
    let statement = matches!(clause.before(at), "is" | "are")
        && verb_at(clause, i) != Some(Verb::Delete)
        && at <= i + 6
        && !matches!(clause.at(i), "what" | "which" | "who" | "how" | "it" | "this");
    (statement && !clause.is_foreign()).then_some((Act::Update(Change::Priority(priority), i, at - 1), 0.6))
}

/// "note that the lawn is mowed", "record that I've paid the rent": news of a task, by whatever it is told.
fn reported(clause: &Clause, i: usize) -> Guess {
    let n =
        clause.phrase(i, phrases!("note that | log that | record that | register that | mark down that | update :"))?;
    super::finish::done(clause, i + n)
}

/// "buy oat milk is due saturday": where "is due" begins.
fn now_due(clause: &Clause, i: usize) -> Option<usize> {
    const OTHERS: Phrases = phrases!(
        "what | which | when | who | how | if | is | are | do | does | i | we | that | there | there's | remind | \
         add | create | put | note | remember | todo | task | reminder | make | set | tell | show | list | new"
    );
    let date = clause.dates.last().filter(|found| found.tokens.end == clause.end)?;
    let it = clause.phrase(i, phrases!("it's due | it's now due | it is due | that's due | that is due"));
    if let Some(n) = it.filter(|n| matches!(date.tokens.start.abs_diff(i + n), 0 | 1)) {
        return (!clause.asked && i + n <= clause.end).then_some(i);
    }
    let (at, n) = clause.seek(i + 1, phrases!("is now due | is due | are now due | are due"))?;
    let closes = date.tokens.start == at + n || date.tokens.start + 1 == at + n;
    let told = clause.has(phrases!("remind | alert | because | since | so | and"));
    (closes && at <= i + 6 && !clause.asked && !told && !OTHERS.contains(clause.at(i))).then_some(at)
}

/// "remember to …", "don't let me forget …", "make a note that …".
fn remember(clause: &Clause, i: usize) -> Guess {
    const REMEMBER: Phrases = phrases!(
        "remember to | remember that i need to | remember that i have to | remember i need to | remember i have to | \
         must remember to | i must remember to | i should remember to | me remember | me to remember | \
         help me remember | help me to remember | make sure i | make sure i remember | make sure i'm reminded | \
         ensure i | ensure i remember | ensure i'm reminded | make a note | make a mental note | take a note | \
         note to self | note that i need to | keep in mind | keep in mind for me | be reminded | need reminding | \
         i need reminding | i need help remembering"
    );
    if let Some(guess) = nudge(clause, i) {
        return Some(guess);
    }
    let misspelt = clause.at(i + 1) == "to" && resembles(clause.at(i), "remember");
    let body = i + unforgotten(clause, i).or(clause.phrase(i, REMEMBER)).or(misspelt.then_some(2))?;
    let body = body + clause.phrase(body, phrases!("to | that | about | of")).unwrap_or(0);
    if verb_at(clause, body) == Some(Verb::Remind) && clause.at(body + 1) == "me" {
        return super::at(clause, body);
    }
    // "I don't want to forget X, remind me at 5": the reminder is the command, X is its title.
    if let Some((at, n)) = clause.seek(body, phrases!("remind me | alert me")) {
        return Some((Act::Create(Form::Preamble, at + n), 0.85));
    }
    Some((Act::Create(Form::Rest, body), 0.92))
}

/// "don't let me forget", "I mustn't forget", "make sure I don't miss": how many tokens it takes.
fn unforgotten(clause: &Clause, i: usize) -> Option<usize> {
    const WARNED: Phrases = phrases!(
        "don't let me | dont let me | do not let me | never let me | don't want to | dont want to | do not want to | \
         make sure i don't | make sure i dont | ensure i don't"
    );
    const MUST_NOT: Phrases = phrases!("can't | cannot | mustn't | must not | shouldn't | better not");
    const DO_NOT: Phrases = phrases!("don't | dont | do not");
    let from = i + usize::from(matches!(clause.at(i), "i" | "we" | "i'd"));
    let warned = clause.phrase(from, WARNED);
    let not = || clause.phrase(from, MUST_NOT).or(clause.phrase(from, DO_NOT).filter(|_| from == i));
    let verb = from + warned.or_else(not)?;
    let fits = clause.at(verb) == "forget" || clause.at(verb) == "miss" && warned.is_some();
    fits.then_some(verb + 1 - i)
}

/// "give me a nudge at five to ring the surgery", "drop me a line an hour before the interview task".
fn nudge(clause: &Clause, i: usize) -> Guess {
    const GIVES: Phrases = phrases!("give me a | give us a | drop me a | send me a | shoot me a");
    const NUDGES: Phrases =
        phrases!("nudge | shout | heads up | heads-up | ping | buzz | prod | poke | line | warning");
    let given = || clause.phrase(i, GIVES).and_then(|n| Some(n + clause.phrase(i + n, NUDGES)?));
    let n = clause.phrase(i, phrases!("hit me up | tap me on the shoulder")).or_else(given)?;
    let task = clause
        .seek(i + n, phrases!("before"))
        .is_some_and(|(at, _)| clause.nouns_in(at..clause.end).any(|noun| noun.noun == Noun::Task && !noun.plural));
    if task {
        return Some((Act::Remind(i + n), 0.85));
    }
    let told = clause.seek(i + n, phrases!("to | about | that | before | for")).is_some();
    (told && !(clause.asked && clause.dates.is_empty())).then_some((Act::Create(Form::Remind, i + n), 0.88))
}

fn gone(clause: &Clause, i: usize) -> Guess {
    const GONE: Phrases = phrases!(
        "get rid of | get rid off | throw away | throw out | toss | do away with | turn off | shut off | \
         switch off | take away | clean out | hold off on | no more | i no longer need to be reminded | \
         i no longer need to | i no longer need a | i no longer need | no longer need | \
         i won't need | i wont need | i won't be needing | i will not need | i don't need to be reminded | \
         i dont need to be reminded | i do not need to be reminded | i don't want to be reminded | \
         i dont want to be reminded | i do not want to be reminded | i don't need | i dont need | i do not need | \
         i don't want | i dont want | no need to remind me | don't remind me | dont remind me | do not remind me | \
         stop reminding me | forget about | forget"
    );
    let n = clause.phrase(i, GONE).filter(|_| !clause.has(phrases!("notifications for")))?;
    let last = clause.at(i + n - 1);
    let reminder = clause.nouns_in(i..clause.end).any(|noun| noun.noun != Noun::List || clause.at(i) == "get");
    let off = matches!(clause.at(i), "turn" | "shut" | "switch" | "no" | "take" | "throw" | "toss" | "clean" | "hold");
    let sure =
        if off { reminder } else { clause.has_noun() || matches!(last, "me" | "reminded") || clause.at(i) == "get" };
    let lead = clause.phrase(i + n, phrases!("to be reminded | to | about | of | a | any")).unwrap_or(0);
    let told = matches!(last, "me" | "reminded") && (clause.words.is_word(i + n) || clause.words.is_quoted(i + n));
    let sure = sure && (told || !matches!(last, "me" | "reminded"));
    (sure && (told || !clause.is_foreign())).then_some((Act::Delete(i + n + lead, clause.end), 0.85))
}

/// "Instead of Friday, remind me on Thursday …".
fn instead(clause: &Clause, i: usize) -> Guess {
    let n = clause.phrase(i, phrases!("instead of | rather than"))?;
    let about = clause.has_noun() || clause.has(phrases!("remind me | reminding me | alert me | alerting me"));
    about.then_some((Act::Update(Change::Instead, i + n, clause.end), 0.75))
}

/// "todo: …", "new task …", "urgent: …".
fn label(clause: &Clause, i: usize) -> Guess {
    const LABELS: Phrases = phrases!(
        "todo - | task - | reminder - | to-do - | to do - | new task | new todo | new to-do | new to do | \
         new reminder | new one | todo | to-do"
    );
    if attributes::priority_at(clause, i).is_some_and(|(_, n)| clause.at(i + n) == ":" && i + n + 1 < clause.end) {
        return Some((Act::Create(Form::Rest, i), 0.85));
    }
    if let Some(body) = heading(clause, i) {
        let asks = verb_at(clause, body) == Some(Verb::Remind);
        return if asks { super::at(clause, body) } else { Some((Act::Create(Form::Rest, body), 0.93)) };
    }
    let n = clause.phrase(i, LABELS)?;
    let bare = clause.words.is_word(i + 1)
        && clause.noun_at(i + 1).is_none()
        && clause.date_at(i + 1).is_none()
        && !matches!(clause.at(i + 1), "list" | "lists" | "for" | "please");
    (n > 1 || bare).then_some((Act::Create(Form::Rest, i + n), 0.93))
}

/// "Note: …", "one more for the list: …", "two things to add: …": where what is to be kept begins. A heading that says
/// more ("haircut task: …") names something that there is.
fn heading(clause: &Clause, i: usize) -> Option<usize> {
    const KEPT: Phrases = phrases!(
        "todo | to-do | task | reminder | note | memo | capture | inbox | someday | errand | chore | idea | item | \
         entry | job | list | groceries | shopping | buy | bought | add | adding | needed | one | thing | things | \
         something | action | also"
    );
    const SMALL: Phrases = phrases!(
        "a | an | the | my | our | for | to | do | on | be | new | more | another | next | quick | recurring | \
         please | me | i | have | this | self | later | two | some | make | here's"
    );
    let colon = (i + 1..clause.end.min(i + 8)).find(|k| clause.at(*k) == ":").filter(|at| at + 1 < clause.end)?;
    let known = |k: usize| KEPT.contains(clause.at(k)) || SMALL.contains(clause.at(k));
    let kept = (i..colon).any(|k| KEPT.contains(clause.at(k))) || clause.phrase(i, phrases!("to do")).is_some();
    let alone = colon == i + 1;
    let pointed = matches!(clause.at(i), "the" | "my" | "this") || alone && clause.at(i) == "list";
    let noted = clause.at(i) == "add" && clause.before(colon) == "note";
    let acts = matches!(verb_at(clause, colon + 1), Some(Verb::Delete | Verb::Take)) && clause.before(colon) == "list";
    let fits = kept && (i..colon).all(known) && !pointed && !noted && !acts || alone && clause.at(i) == "title";
    (fits && !clause.asked).then_some(colon + 1)
}

/// "Reminder to …", "daily reminder for …", "reminder me to …" (for "remind me to").
fn reminder_first(clause: &Clause, i: usize) -> Guess {
    let mut at = i;
    while matches!(clause.at(at), "new" | "recurring" | "repeating" | "set" | "another")
        || clause.date_at(at).is_some_and(|found| found.parts.repeat.is_some())
    {
        at += 1;
    }
    let noun = clause.noun_at(at).filter(|noun| noun.noun == Noun::Reminder && !noun.plural)?;
    if let Some(from) = super::make::reminder_for_task(clause, noun.at.saturating_sub(1)) {
        return Some((Act::Remind(from), 0.86));
    }
    if clause.at(noun.end) == "me" {
        return Some((Act::Create(Form::Remind, noun.end + 1), 0.9));
    }
    let fits = matches!(clause.at(noun.end), "to" | "for" | "about" | "that" | "," | "of" | "needed")
        || clause.words.is_word(noun.end) && clause.words.at(clause.end) != "?";
    let listed = matches!(clause.at(noun.end), "list" | "lists");
    (fits && !listed && noun.end < clause.end).then_some((Act::Create(Form::Make, i), 0.85))
}
