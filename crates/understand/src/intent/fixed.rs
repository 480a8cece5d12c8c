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

/// "lower the priority of …", "the report is urgent", "call it …".
fn stated(clause: &Clause, i: usize) -> Guess {
    let end = clause.end;
    let direction = [
        (
            Priority::Low,
            phrases!("lower the priority of | lower the priority on | decrease the priority of | deprioritize"),
        ),
        (
            Priority::High,
            phrases!(
                "raise the priority of | raise the priority on | increase the priority of | bump up the priority of"
            ),
        ),
    ];
    if let Some((priority, n)) = direction.iter().find_map(|(p, list)| clause.phrase(i, *list).map(|n| (*p, n))) {
        return Some((Act::Update(Change::Priority(priority), i + n, end), 0.88));
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
    const MOVED: Phrases = phrases!(
        "should be | is now | has been moved to | was moved to | got moved to | is moved to | got changed to | \
         has been changed to | was changed to | has been rescheduled to | got rescheduled to | got pushed to"
    );
    let definite = matches!(clause.at(i), "the" | "my" | "our" | "that") || clause.words.is_quoted(i);
    let due = phrases!("is now due | is due | are now due | are due");
    let (at, n) = clause.seek(i + 1, due).or_else(|| clause.seek(i + 1, MOVED).filter(|_| definite))?;
    let closes = date.tokens.start == at + n || date.tokens.start + 1 == at + n;
    let told = clause.has(phrases!("remind | alert | because | since | so | and"));
    (closes && at <= i + 6 && !clause.asked && !told && !OTHERS.contains(clause.at(i))).then_some(at)
}

fn remember(clause: &Clause, i: usize) -> Guess {
    const REMEMBER: Phrases = phrases!(
        "remember to | remember that i need to | remember that i have to | remember i need to | remember i have to | \
         don't let me forget to | don't let me forget about | don't let me forget | dont let me forget to | \
         dont let me forget | do not let me forget to | do not let me forget | don't forget to | dont forget to | \
         do not forget to | don't forget about | don't forget | dont forget | i must remember to | \
         i should remember to | i can't forget to | i cannot forget to | i don't want to forget to | \
         i dont want to forget to | i do not want to forget to | i don't want to forget | i dont want to forget | \
         i don't want to miss | i dont want to miss | can't forget to | can't forget | i can't forget | \
         i must not forget to | i mustn't forget to | i shouldn't forget to | help me remember to | \
         help me remember | me remember to | make a note to | make a note that | make a note of | make a note | \
         take a note to | note to self to | note to self | note that i need to | make sure i don't forget to | \
         make sure i remember to | make sure i | keep in mind to | be reminded to | be reminded of | \
         be reminded about | be reminded that | be reminded | i need reminding to | i need reminding about | \
         i need reminding | i need help remembering to | i would like to be reminded | need reminding to | \
         never let me forget to | never let me forget | don't let me miss | dont let me miss | \
         help me to remember to | help me to remember that | help me to remember | me to remember to | \
         me to remember that | ensure i'm reminded of | ensure i'm reminded to | make sure i'm reminded of | \
         make sure i'm reminded to | ensure i remember to | ensure i | mustn't forget to | mustn't forget | \
         must not forget to | must not forget | i must not forget | i mustn't forget | must remember to | \
         keep in mind for me that | keep in mind that | make a mental note to | make a mental note that | \
         make a mental note for me to | i'd better not forget to | i'd better not forget | i better not forget | \
         rember to | remeber to | rememeber to | give me a nudge to | give me a shout to | give me a nudge about | \
         give me a shout about"
    );
    if let Some(guess) = nudge(clause, i) {
        return Some(guess);
    }
    let n = clause.phrase(i, REMEMBER)?;
    if verb_at(clause, i + n) == Some(Verb::Remind) && clause.at(i + n + 1) == "me" {
        return super::at(clause, i + n);
    }
    // "I don't want to forget X, remind me at 5": the reminder is the command, X is its title.
    let asked = clause.seek(i + n, phrases!("remind me | alert me"));
    if let Some((at, _)) = asked {
        return Some((Act::Create(Form::Preamble, at + 2), 0.85));
    }
    Some((Act::Create(Form::Rest, i + n), 0.92))
}

/// "give me a nudge at five to ring the surgery", "drop me a line an hour before the interview task".
fn nudge(clause: &Clause, i: usize) -> Guess {
    const NUDGES: Phrases = phrases!(
        "give me a nudge | give me a shout | give me a heads up | give me a heads-up | give me a ping | \
         give me a buzz | give me a prod | give me a poke | drop me a line | send me a nudge | send me a ping | \
         send me a heads up | let me know when it's time to | hit me up | tap me on the shoulder | \
         shoot me a reminder | give us a shout | give me a warning"
    );
    let n = clause.phrase(i, NUDGES)?;
    let told = clause.seek(i + n, phrases!("to | about | that | before | for")).is_some();
    let task = clause
        .seek(i + n, phrases!("before"))
        .is_some_and(|(at, _)| clause.nouns_in(at..clause.end).any(|noun| noun.noun == Noun::Task && !noun.plural));
    if task {
        return Some((Act::Remind(i + n), 0.85));
    }
    (told && !(clause.asked && clause.dates.is_empty())).then_some((Act::Create(Form::Remind, i + n), 0.88))
}

fn gone(clause: &Clause, i: usize) -> Guess {
    const GONE: Phrases = phrases!(
        "get rid of | get rid off | throw away | throw out | toss | do away with | turn off | shut off | \
         switch off | take away | clean out | hold off on | no more | i no longer need to be reminded | \
         i no longer need to | i no longer need a | i no longer need | i know longer need | no longer need | \
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
    if attributes::priority_at(clause, i).is_some_and(|(_, n)| clause.at(i + n) == ":" && i + n + 1 < clause.end) {
        return Some((Act::Create(Form::Rest, i), 0.85));
    }
    let labels = phrases!(
        "todo : | to-do : | to do : | task : | reminder : | note : | todo - | task - | reminder - | new task | \
         new todo | new to-do | new to do | new reminder | todo | to-do | to-do - | to do - | capture : | inbox : | \
         someday : | next action : | next one : | new one : | another one : | memo : | errand : | idea : | \
         groceries : | shopping : | shopping list : | title : | note to self : | one more : | new entry : | \
         make a new entry : | new item : | item : | chore : | bucket list : | another one for the list : | \
         one more for the list : | on the list : | for the list : | missing from the list : | \
         possibly worth adding : | to add : | groceries to add : | things to add : | next task : | first task : | \
         one more thing : | one thing : | also : | to buy : | capture this : | a job for the list : | \
         two things to add : | to be bought : | wanted on my list : | things to do : | needed : | \
         hold on to this for me : | i have a job for the list : | no date , just add it : | new one"
    );
    let n = clause.phrase(i, labels)?;
    let bare = clause.words.is_word(i + 1)
        && clause.noun_at(i + 1).is_none()
        && clause.date_at(i + 1).is_none()
        && !matches!(clause.at(i + 1), "list" | "lists" | "for" | "please");
    (n > 1 || bare).then_some((Act::Create(Form::Rest, i + n), 0.93))
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
