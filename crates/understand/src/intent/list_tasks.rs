//! Recognises list_tasks by its verb or as a question with a word for tasks: "show my tasks", "what tasks are due
//! today?", "read me the list".
//!
//! The rules return the action with its confidence, or `None` if they do not match. A *word for tasks* is a noun for
//! tasks, reminders or lists.

use super::{CommandAction, Guess, list_tasks_question};
use crate::clause::Clause;
use crate::create::CreatePhrasing;
use crate::lexicon;
use crate::scope;
use crate::update::UpdateKind;
use crate::vocabulary::Noun;

/// Recognises a question at the start of the clause. "at", "for", "on", "in" or "of" may precede "what", "which" and
/// "when". "do" must precede "I", "you", "we", "they", "any", "my" or "not". With a word for tasks or of memory
/// ("remember"), it is a listing (0.93). It must not be a general question, nor be about another list, domain or plan.
/// "When I get home, remind me to …" and "if … delete …" do not match. Without such a word, [`list_tasks_question`]
/// decides.
pub(super) fn recognise_question(clause: &Clause) -> Guess {
    let i = clause.start + usize::from(matches!(clause.at(clause.start), "at" | "for" | "on" | "in" | "of"));
    if !lexicon::list_tasks::ASKS.contains(clause.at(i))
        || i > clause.start && !matches!(clause.at(i), "what" | "which" | "when")
    {
        return None;
    }
    if clause.at(i) == "do" && !matches!(clause.at(i + 1), "i" | "you" | "we" | "they" | "any" | "my" | "not") {
        return None;
    }
    // "When I get home, remind me to …" is not a question.
    let condition = matches!(clause.at(i), "when" | "if") && clause.has(lexicon::list_tasks::COMMANDS_INSIDE);
    let about = clause.has_noun() || clause.has(lexicon::list_tasks::MEMORY);
    if about {
        let fits = !condition && !scope::is_other_list(clause) && !clause.is_out_of_scope() && !is_general(clause, i);
        return fits.then_some((CommandAction::List(i), 0.93));
    }
    list_tasks_question::recognise(clause, i)
}

/// Recognises a question after a remark: "I'm at the shop, what do I need to get?", "I wonder what's left". Only the
/// first question word after the first token counts. With a word for tasks, the confidence is 0.72. "when" and "any" do
/// not count there, and "you", "add", "put" or "remind me to" in the clause excludes it. General questions and other
/// lists do not match. Without such a word, [`list_tasks_question`] decides, 0.08 less confident. Then the clause has
/// at most 24 tokens, and "what should I do" does not match.
pub(super) fn recognise_later_question(clause: &Clause) -> Guess {
    let (i, _) = (clause.start + 1..clause.end)
        .find_map(|i| clause.phrase(i, lexicon::list_tasks::LATER_ASKS).map(|n| (i, n)))?;
    let is_not_question = clause.has(lexicon::list_tasks::NOT_QUESTIONS);
    if clause.has_noun() {
        let fits = !is_not_question
            && !is_general(clause, i)
            && !scope::is_other_list(clause)
            && !matches!(clause.at(i), "when" | "any");
        return fits.then_some((CommandAction::List(i), 0.72));
    }
    let lost = clause.phrase(i, lexicon::list_tasks::WHAT_SHOULD_I_DO).is_some();
    list_tasks_question::recognise(clause, i)
        .filter(|_| clause.end - clause.start <= 24 && !lost)
        .map(|(action, confidence)| (action, confidence - 0.08))
}

/// Returns true if the question at `i` concerns language or the assistant and not the tasks of the user. A word such as
/// "mean", "spell", "app" or "translate" anywhere suffices. "who", "why", "how do you", "what does" and "how does"
/// count without "I", "my" or a similar word in the clause.
fn is_general(clause: &Clause, i: usize) -> bool {
    let own = clause.has(lexicon::list_tasks::PERSONAL);
    let person =
        matches!(clause.at(i), "who" | "why") || clause.phrase(i, lexicon::list_tasks::GENERAL_OPENERS).is_some();
    clause.has(lexicon::list_tasks::GENERAL) || person && !own
}

/// Recognises "show …", "read …", "tell me …" at `i`. "get a reminder" (0.8), "tell me at 5 to …" and "tell me to … at
/// 5" (0.7) create. "bring back …" reopens (0.6), and "repeat … weekly" with a word for tasks updates (0.75). With a
/// word for tasks or "notes", see [`recognise_shown`]. Otherwise the object must be a question about tasks, or entries
/// ("the overdue ones", 0.8). After "show", "list", "see", "view" and "display", "everything", filters or a single date
/// suffice; after "show" and "list", nothing does. A clause with "remember" or "recall" and "what" or "things" also
/// lists. Returns `None` for everything else, and for other domains and plans without a word for tasks.
pub(super) fn recognise_show(clause: &Clause, i: usize) -> Guess {
    let verb = clause.at(i);
    let body = i + 1 + usize::from(matches!(clause.at(i + 1), "me" | "us" | "up" | "out"));
    if verb == "get" && wants_new(clause, i) {
        return Some((CommandAction::Create(CreatePhrasing::Make, i + 1), 0.8));
    }
    if verb == "tell"
        && clause.at(i + 1) == "me"
        && !clause.dates.is_empty()
        && (clause.at(i + 2) == "to" || clause.date_at(i + 2).is_some_and(|found| clause.at(found.tokens.end) == "to"))
    {
        return Some((CommandAction::Create(CreatePhrasing::Remind, i + 2), 0.7));
    }
    if verb == "bring" && clause.at(i + 1) == "back" {
        return Some((CommandAction::Update(UpdateKind::Reopen, i + 2, clause.end), 0.6));
    }
    let repeats = clause.dates.iter().any(|found| found.parts.repeat.is_some());
    if verb == "repeat" && repeats && clause.has_noun() {
        return Some((CommandAction::Update(UpdateKind::Any, i + 1, clause.end), 0.75));
    }
    if clause.has_noun() || clause.has(lexicon::list_tasks::NOTES) {
        return recognise_shown(clause, i, body);
    }
    if matches!(verb, "tell" | "know" | "see" | "show" | "list" | "look" | "hear" | "give" | "read")
        && let Some(guess) = list_tasks_question::recognise(clause, body)
    {
        return Some(guess);
    }
    let remembered = clause.has(lexicon::list_tasks::REMEMBER) && clause.has(lexicon::list_tasks::WHAT_OR_THINGS);
    let body = body + clause.phrase(body, lexicon::list_tasks::LOOK_AT).unwrap_or(0);
    if let Some(guess) = list_tasks_question::recognise(clause, body) {
        return Some(guess);
    }
    let shows = !matches!(verb, "get" | "open" | "repeat" | "know" | "bring" | "find")
        && list_tasks_question::names_entries(clause, body)
        || matches!(verb, "show" | "list" | "display" | "see" | "view" | "showing" | "listing")
            && (is_everything(clause, i, body) || is_dated(clause, body));
    ((shows || remembered) && !clause.is_out_of_scope()).then_some((CommandAction::List(body), 0.8))
}

/// Recognises entries that are listed (0.95), or found and deleted (0.75): "find the milk task and delete it". `i` is
/// the position of the verb, `body` the one after "me". "delete it", "remove it" or "erase it" makes a deletion,
/// without further checks. Returns `None` for lists of other domains and purchases.
fn recognise_shown(clause: &Clause, i: usize, body: usize) -> Guess {
    if let Some((at, _)) = clause.find_phrase(body, lexicon::list_tasks::AND_DELETE) {
        return Some((CommandAction::Delete(i + 1, at), 0.75));
    }
    (!scope::is_other_list(clause) && !scope::is_purchase(clause)).then_some((CommandAction::List(body), 0.95))
}

/// Returns true if nothing follows "show" or "list" at `i`, or if "everything" or only filters follow at `body`.
fn is_everything(clause: &Clause, i: usize, body: usize) -> bool {
    let alone = matches!(clause.at(i), "show" | "list") && clause.is_exhausted(body..clause.end);
    alone || clause.phrase(body, lexicon::list_tasks::EVERYTHING).is_some() || only_filters(clause, body)
}

/// Returns true if filters and dates fill the clause from `body` on: "the completed ones", "only high priority".
fn only_filters(clause: &Clause, body: usize) -> bool {
    body < clause.end
        && (body..clause.end)
            .all(|i| lexicon::list_tasks::FILTER_FILLERS.contains(clause.at(i)) || clause.date_at(i).is_some())
}

/// Returns true if a single date fills the clause from `body` on.
fn is_dated(clause: &Clause, body: usize) -> bool {
    clause.date_at(body).is_some_and(|found| found.tokens.start == body && found.tokens.end == clause.end)
}

/// Returns true for "get a reminder", "get me an alert".
fn wants_new(clause: &Clause, i: usize) -> bool {
    let article = matches!(clause.at(i + 1), "a" | "an") || clause.phrase(i + 1, lexicon::list_tasks::ME_A).is_some();
    article && clause.noun_in(i..clause.end).is_some_and(|noun| noun.noun != Noun::List)
}
