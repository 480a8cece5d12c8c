//! The words of the command language: verbs, names for tasks and lists, and what is said for politeness.
//!
//! Only words in the place of a command are matched here, with small slips forgiven; titles never are.

use crate::phrases::{Meanings, Phrases, meanings, phrases};
use crate::spelling::resembles;
use crate::tokens::Words;

/// What a verb asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// "add", "append": what follows is the title.
    Add,
    /// "put … on the list".
    Put,
    /// "create", "set", "make", "give": only with a word for a task.
    Make,
    /// "remind", "alert", "notify".
    Remind,
    /// "show", "list", "read".
    Show,
    /// "delete", "remove", "cancel".
    Delete,
    /// "take … off".
    Take,
    /// "complete", "finish".
    Complete,
    /// "mark … as done", "check off", "cross out".
    Mark,
    /// "change", "update".
    Change,
    /// "rename".
    Rename,
    /// "move", "postpone", "reschedule".
    Move,
    /// "tag", "label".
    Tag,
    /// "reopen".
    Reopen,
}

const VERBS: &[(Verb, Phrases)] = &[
    (Verb::Add, phrases!("add | append | insert | include | adding")),
    (
        Verb::Put,
        phrases!(
            "put | place | stick | throw | write | jot | note | pop | chuck | bung | whack | tack | slap | sling | \
             putting | attach"
        ),
    ),
    (
        Verb::Make,
        phrases!(
            "create | make | set | setup | schedule | new | establish | build | start | give | send | enter | log | \
             record | save | need | want | generate | program | have | do"
        ),
    ),
    (
        Verb::Remind,
        phrases!(
            "remind | alert | notify | nudge | ping | reming | remid | eemind | rmind | remine | remmind | reminding | \
             rmnd | remnd | bug | pester | nag | warn | buzz | poke | prompt | prod | hassle"
        ),
    ),
    (
        Verb::Show,
        phrases!(
            "show | list | display | view | see | read | tell | find | get | pull | open | bring | search | look | \
             review | hear | know | access | gather | inform | repeat | describe | recite | print | fetch | retrieve | \
             showing | listing | reading | pull up"
        ),
    ),
    (
        Verb::Delete,
        phrases!(
            "delete | remove | cancel | erase | clear | drop | discard | trash | eliminate | wipe | dismiss | \
             scrap | purge | empty | deactivate | disable | deleting | removing | canceling | nix | destroy | \
             discontinue | kill | junk | scrub | stop | undo | void | silence | clearing | dropping"
        ),
    ),
    (Verb::Take, phrases!("take | taking")),
    (Verb::Complete, phrases!("complete | finish | close | completing")),
    (
        Verb::Mark,
        phrases!("mark | check | tick | cross | scratch | strike | marking | ticking | crossing | makr | tik | flag"),
    ),
    (
        Verb::Change,
        phrases!(
            "change | update | downgrade | upgrade | modify | edit | alter | adjust | revise | replace | switch | \
             correct | fix | swap | amend | prioritize | prioritise | changing | updating | extend | convert"
        ),
    ),
    (Verb::Rename, phrases!("rename | retitle | reword | renaming | rephrase")),
    (
        Verb::Move,
        phrases!(
            "move | postpone | reschedule | push | delay | shift | bump | snooze | defer | moving | reset | \
             rescheduled | transfer | pushing | postponing | rescheduling | shifting | bumping | prepone | advance | \
             pospone"
        ),
    ),
    (Verb::Tag, phrases!("tag | label | retag | tagging | relabel | categorise | categorize")),
    (
        Verb::Reopen,
        phrases!(
            "reopen | uncheck | untick | unmark | uncomplete | restore | un-tick | un-check | \
         un-complete | unfinish"
        ),
    ),
];

const VERB_WORDS: Meanings<Verb> = meanings!(Verb, VERBS);

/// Verbs that are recognised when misspelled.
const FORGIVEN: Phrases = phrases!(
    "create | remind | show | list | display | delete | remove | cancel | erase | clear | complete | finish | \
     mark | change | update | modify | rename | move | postpone | reschedule | schedule | append | reopen"
);

/// Words that differ by one letter from a command and are no slip.
const REAL: Phrases = phrases!(
    "clean | shop | snow | slow | shot | shoe | lost | last | lift | left | most | mode | made | more | love | \
     chance | charge | make | market | mask | live | life | like | line | shower | listen | behind | removed | \
     canceled | cancelled | completed | finished | changed | lists | shows | marks | moves | changes | updates | \
     reminds | listed | marked | updated | moved | created | deleted | completes | cleared | learn | cancer | \
     channel | phase | movie | mint | lit | lisp | stow | post | park | dark | work | mars | math | rewind | \
     remodel | refund | repay | bread"
);

pub(crate) fn verb(word: &str) -> Option<Verb> {
    if let Some(verb) = exact_verb(word) {
        return Some(verb);
    }
    if word == "ad" || word == "addd" || word == "aad" {
        return Some(Verb::Add);
    }
    if word.len() < 4 || REAL.contains(word) {
        return None;
    }
    exact_verb(FORGIVEN.iter().find(|known| resembles(word, known))?)
}

fn exact_verb(word: &str) -> Option<Verb> {
    VERB_WORDS.get(word)
}

/// What a noun stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noun {
    Task,
    Reminder,
    List,
}

/// Each with whether it is a plural.
const NOUNS: &[((Noun, bool), Phrases)] = &[
    ((Noun::Task, false), phrases!("task | todo | to-do | item | chore | errand | taks | tsk")),
    ((Noun::Task, true), phrases!("tasks | todos | to-dos | items | chores | errands | todo's | task's")),
    ((Noun::List, false), phrases!("list | agenda | checklist")),
    ((Noun::List, true), phrases!("lists")),
    ((Noun::Reminder, false), phrases!("reminder | alert | notification")),
    ((Noun::Reminder, true), phrases!("reminders | alerts | notifications")),
];

const NOUN_WORDS: Meanings<(Noun, bool)> = meanings!((Noun, bool), NOUNS);

/// A word for a task, a reminder or a list at `i`, how many tokens it takes and whether it is a plural.
pub(crate) fn noun(words: &Words, i: usize) -> Option<(Noun, usize, bool)> {
    // What all that follows begins with; few words do.
    const FIRST: Phrases = phrases!(
        "to | to-do | todo | task | things | action | item | chore | errand | taks | tsk | tasks | todos | to-dos | \
         items | chores | errands | todo's | task's | list | agenda | checklist | lists | reminder | alert | \
         notification | reminders | alerts | notifications"
    );
    if !words.may_begin(i, FIRST) && !words.at(i).starts_with("re") {
        return None;
    }
    if let Some(len) = words.phrase(
        i,
        phrases!(
            "to do list | to-do list | todo list | task list | to do lists | to-do lists | todo lists | \
             things to do list | reminder list | reminders list"
        ),
    ) {
        return Some((Noun::List, len, true));
    }
    if words.phrase(i, phrases!("to do")).is_some()
        && !matches!(
            words.before(i),
            "need" | "have" | "has" | "how" | "want" | "going" | "supposed" | "things" | "what" | "me"
        )
    {
        return to_do(words, i);
    }
    if words.phrase(i, phrases!("to dos | to do's")).is_some() {
        return Some((Noun::Task, 2, true));
    }
    if let Some((noun, plural)) = NOUN_WORDS.at(words, i) {
        return Some((noun, 1, plural));
    }
    if words.phrase(i, phrases!("action item | action items")).is_some() {
        return Some((Noun::Task, 2, words.at(i + 1).ends_with('s')));
    }
    let word = words.at(i);
    is_reminder(word).then(|| (Noun::Reminder, 1, word.ends_with('s')))
}

fn is_reminder(word: &str) -> bool {
    word.starts_with("re")
        && word.len() >= 6
        && word != "remainder"
        && word != "remainders"
        && (resembles(word, "reminder") || resembles(word, "reminders"))
        && !matches!(word, "remind" | "reminded" | "reminds" | "rename" | "render" | "reminding")
}

/// "to do" is a noun where an article or its like stands before it or nothing that can be done follows.
fn to_do(words: &Words, i: usize) -> Option<(Noun, usize, bool)> {
    let before = words.before(i);
    let article = phrases!(
        "a | an | the | my | new | this | that | add | create | delete | remove | complete | our | current | \
         whole | entire"
    );
    (before.is_empty() || article.contains(before)).then_some((Noun::Task, 2, false))
}

/// What softens a request or leads up to it; a command begins after it.
pub(crate) const SOFTENERS: Phrases = phrases!(
    "how about | any chance you could | any chance you can | any chance of | is there any chance you could | \
     it would be great if you could | it would be great if you | it would be nice if you could | \
     it'd be great if you could | it'd be great if you | it'd be nice if you could | it would help if you could | \
     i'd be grateful if you would | i'd be grateful if you could | i would be grateful if you could | \
     i'd appreciate it if you could | i'd appreciate it if you would | i would appreciate it if you could | \
     feel free to | i think we can | i think we should | i think you can | i think i should | i guess we can | \
     i guess you can | i guess i should | i suppose we can | i suppose i should | i reckon we can | i'd say | \
     i'd love you to | why don't you | why not | maybe | perhaps | quickly | hmm | hm | phew | yup | yep | ugh | \
     argh | gosh | right , | thanks , | thank you , | good morning , | good evening , | morning , | mind | \
     do you mind | would you be so kind as to | be a dear and | wait no | wait | hang on | oh wait | actually no | \
     on second thought | on second thoughts | come to think of it | by the way | btw | fyi | anyway | anyways | \
     so yeah | as well as that , | plus | oh and | oh yeah | before i forget , | before i forget | \
     while i remember | while i think of it | while you're at it | real quick | unfortunately | apparently | \
     turns out | looks like | good news | bad news | sorry about this but | it turns out | sorry but | we can | \
     we could | good evening | good morning | listen , | look , | right | i suppose | i guess | oops | \
     do you think you could | on top of that | if you'd | let's have | i don't know if | i forgot to say that | \
     seems | it seems | ok so | okay so | yes please | hey so | i meant to say | i think"
);

pub(crate) fn is_article(word: &str) -> bool {
    phrases!(
        "a | an | the | my | our | this | that | these | those | your | its | his | her | their | some | any | another"
    )
    .contains(word)
}
