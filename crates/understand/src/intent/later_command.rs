//! Recognises a command of any intent that does not open the clause: "I'm tired, so please delete the gym task", "I
//! need all my reminders cancelled", "the reminder for the party needs to be cancelled".
//!
//! Each `recognise…` rule returns the action with its confidence, or `None` if it does not match. The words before the
//! command are its preamble.

use super::{CommandAction, Guess, delete_task_colloquial, grammar, recognise_at, verb_at};
use crate::clause::Clause;
use crate::courtesy;
use crate::create::CreatePhrasing;
use crate::lexicon;
use crate::update::UpdateKind;
use crate::vocabulary::{Noun, Verb};

/// Recognises "I need all my reminders cancelled" (deletion), "I want the task moved to Friday" (update) at `i` (0.75).
/// Requires "need", "want" or "I'd like", then a word for a task, then a participle. A participle of changing must
/// precede "to" or end the clause. Otherwise returns `None`.
pub(super) fn recognise_wanted(clause: &Clause, i: usize) -> Guess {
    let n = clause.phrase(i, lexicon::create_task::WANT)?;
    let noun = clause.noun_in(i + n..clause.end)?;
    if let Some((at, _)) = clause.find_phrase(noun.at, lexicon::delete_task::PASSIVES) {
        let end = if at == noun.end { clause.end } else { at };
        return Some((CommandAction::Delete(i + n, end), 0.75));
    }
    if clause
        .find_phrase(noun.at, lexicon::update_task::PASSIVES)
        .is_some_and(|(at, _)| clause.at(at + 1) == "to" || at + 1 == clause.end)
    {
        return Some((CommandAction::Update(UpdateKind::Any, i + n, clause.end), 0.75));
    }
    None
}

/// Limits the number of positions tried in a clause, so that noise costs little time.
const MAX_POSITIONS: usize = 24;

/// Recognises a command after a preamble: "I'm tired, so please delete …", "on my list, add …". Passives ("the reminder
/// needs to be cancelled") are checked first. Otherwise the command follows a link (",", "so", "and", "to", "you", …),
/// "please" or "you can", or is "remind" or "remember". It must be clear ([`is_plain_command`]), be "remind me", or
/// occur with a word for a task. In a message ("tell Bob to …") without such a word, only "remind me" matches. If the
/// preamble has a word of another domain, the command is also examined alone. Its confidence is 0.08 lower than at the
/// start. The first match of at most [`MAX_POSITIONS`] positions wins. If "remind me" has no title, the preamble is the
/// title.
pub(super) fn recognise(clause: &Clause) -> Guess {
    if let Some(guess) = recognise_passive(clause) {
        return Some(guess);
    }
    let message = lexicon::grammar::MESSAGE_VERBS.contains(clause.at(clause.start)) && !clause.has_noun();
    let opens = |i: &usize| {
        let before = clause.before(*i);
        if clause.phrase(*i, lexicon::grammar::YOU_CAN).is_some() {
            return true;
        }
        clause.words.is_one_of(*i - 1, lexicon::grammar::COMMAND_OPENERS)
            || courtesy::is_please(before)
            || matches!(clause.at(*i), "remind" | "remember")
    };
    for i in (clause.start + 1..clause.end).filter(opens).take(MAX_POSITIONS) {
        let from = courtesy::skip_opening(clause.words, i, clause.end);
        let verb = verb_at(clause, from);
        if clause.is_out_of_scope()
            && verb.is_some()
            && let Some(guess) = recognise_alone(clause, i, from)
        {
            return Some(guess);
        }
        if verb.is_none() && delete_task_colloquial::verb_length(clause, from).is_none() {
            continue;
        }
        let Some((action, confidence)) = recognise_at(clause, from) else { continue };
        if !message && is_plain_command(clause, i, from, action) {
            return Some((action, confidence - 0.08));
        }
        let remind = verb == Some(Verb::Remind) && matches!(clause.at(from + 1), "me" | "us");
        if remind || verb.is_some() && clause.has_noun() {
            return Some((use_preamble_as_title(clause, from, action), confidence - 0.08));
        }
    }
    None
}

/// Returns true if the command at `from` is clear without a word for a task. `i` is the position after the link. The
/// link must be a comma, "so", "then", "but", "please", "you can" or a similar one. A deletion, completion or update
/// needs a definite object within three tokens. A deletion or completion also needs to have no date after it. "tick off
/// …" needs only the link. A listing needs a verb of showing, a create a verb of adding. Returns false for other
/// actions.
fn is_plain_command(clause: &Clause, i: usize, from: usize, action: CommandAction) -> bool {
    let before = clause.before(i);
    let linked = lexicon::grammar::COMMAND_LINKS.contains(before)
        || clause.phrase(i, lexicon::grammar::YOU_CAN).is_some()
        || courtesy::is_please(before);
    let object = grammar::is_definite(clause, from + 1)
        || grammar::is_definite(clause, from + 2)
        || grammar::is_definite(clause, from + 3);
    match action {
        CommandAction::Complete(..) if clause.at(from + 1) == "off" => linked,
        CommandAction::List(_) => linked && verb_at(clause, from) == Some(Verb::Show),
        CommandAction::Delete(..) | CommandAction::Complete(..) => {
            linked && object && clause.dates.iter().all(|found| found.tokens.start < from)
        }
        CommandAction::Update(..) => linked && object,
        CommandAction::Create(CreatePhrasing::Add, _) => linked && verb_at(clause, from) == Some(Verb::Add),
        _ => false,
    }
}

/// Recognises the command at `from` without its preamble: "my train got cancelled, so move the handover to 4". Words of
/// other domains in the preamble do not count, but in the command they do. `i` is the position after the link. The
/// command must be clear, see [`is_plain_command`]. Confidence is 0.08 lower. Returns `None` if a courtesy or a tag
/// begins at `from`.
fn recognise_alone(clause: &Clause, i: usize, from: usize) -> Guess {
    let part = Clause::new(clause.words, from..clause.end, clause.now);
    if part.is_out_of_scope() || part.start != from {
        return None;
    }
    let (action, confidence) = recognise_at(&part, from)?;
    is_plain_command(clause, i, from, action).then_some((action, confidence - 0.08))
}

/// Returns the action of the command at `from`. If no title follows, the preamble becomes the title: "I need to see the
/// vet on Monday, remind me". Applies to "remind me" and "set a reminder" after at least two tokens. Dates, numbers and
/// fillers ("an hour before") are no title. "For the vet task, remind me …" is a reminder for that task. It requires
/// "for", "about" or a similar word and a singular word for a task. Returns other actions unchanged.
fn use_preamble_as_title(clause: &Clause, from: usize, action: CommandAction) -> CommandAction {
    let about = clause.phrase(clause.start, lexicon::grammar::TOPIC_LEADS);
    let task = clause.nouns_in(clause.start..from).any(|noun| noun.noun == Noun::Task && !noun.plural);
    if about.is_some() && task && matches!(action, CommandAction::Create(CreatePhrasing::Remind, _)) {
        return CommandAction::Remind(clause.start);
    }
    match action {
        CommandAction::Create(CreatePhrasing::Remind | CreatePhrasing::Make, body) if from > clause.start + 1 => {
            let dated = clause.dates.iter().filter(|found| found.tokens.start >= body);
            let spent = (body..clause.end)
                .filter(|i| !dated.clone().any(|found| found.tokens.contains(i)))
                .all(|i| !clause.words.is_word(i) || is_filler(clause, i));
            if spent { CommandAction::Create(CreatePhrasing::Preamble, from) } else { action }
        }
        action => action,
    }
}

/// Returns true if the token at `i` is a number or a word that is no title.
fn is_filler(clause: &Clause, i: usize) -> bool {
    lexicon::grammar::PREAMBLE_FILLERS.contains(clause.at(i)) || clause.at(i).bytes().all(|b| b.is_ascii_digit())
}

/// Recognises "The reminder for the party needs to be cancelled", "can my reminder be moved to 5", "the task should say
/// …". A modal may begin the clause. Then a determiner or a word for a task must follow, and the clause must contain
/// such a word. "cancelled", "removed" and similar words after the noun, or "delete" or "cancel" at the end, delete
/// (0.75). "moved", "changed" and similar words after the noun (0.75), "should be" after it (not for lists) and
/// "instead" anywhere (0.7) update. Other clauses return `None`. A question mark and the tense are not checked.
fn recognise_passive(clause: &Clause) -> Guess {
    let noun = clause.noun_in(clause.start..clause.end)?;
    let modal = usize::from(matches!(clause.at(clause.start), "can" | "could" | "may" | "might" | "should" | "would"));
    let start = clause.start + modal;
    let first = lexicon::grammar::PASSIVE_SUBJECTS.contains(clause.at(start)) || noun.at == start;
    if !first {
        return None;
    }
    let be = |from: usize| clause.find_phrase(from, lexicon::grammar::NEEDS_TO_BE).map_or(clause.end, |(at, _)| at);
    if clause.find_phrase(noun.end, lexicon::delete_task::PASSIVES).is_some()
        || clause.phrase(clause.end.saturating_sub(1), lexicon::delete_task::PLAIN_VERBS).is_some()
    {
        return Some((CommandAction::Delete(start, be(noun.end)), 0.75));
    }
    if clause.find_phrase(noun.end, lexicon::update_task::PASSIVES).is_some() {
        return Some((CommandAction::Update(UpdateKind::Any, start, clause.end), 0.75));
    }
    if noun.noun != Noun::List && clause.find_phrase(noun.end, lexicon::update_task::SHOULD_BE).is_some() {
        return Some((CommandAction::Update(UpdateKind::Any, clause.start, clause.end), 0.7));
    }
    if clause.has(lexicon::grammar::INSTEAD) {
        return Some((CommandAction::Update(UpdateKind::Instead, clause.start, clause.end), 0.7));
    }
    None
}
