//! Finds descriptions of a new task: "…, and mention that …", "the note should say …", "… (bring the card)".

use crate::attributes;
use crate::clause::Clause;
use crate::lexicon;
use crate::vocabulary;

/// Returns the start of the description that the words at `i` introduce, after up to three links. `from` is the start
/// of the title. Accepts a field ("notes: …", "the note is …"), a verb of writing ("put in the notes …"), and after a
/// link "mention that …". "call", "email" or a similar verb in the first 12 tokens of the title excludes the last form.
/// Returns `None` if they introduce none, or if no text follows.
pub(crate) fn text_start(clause: &Clause, i: usize, from: usize) -> Option<usize> {
    let link = |k: &usize| {
        matches!(
            clause.at(*k),
            "," | ";" | "." | "and" | "-" | "–" | "—" | "(" | "then" | "also" | "please" | "just" | "but"
        )
    };
    let at = (i..clause.end.min(i + 4)).find(|k| !link(k))?;
    let linked = at > i;
    let text = after_field(clause, i, at).or_else(|| after_write_verb(clause, at)).or_else(|| {
        // In "email Raj and mention that …", the text belongs to the message.
        let is_message = || (from..at.min(from + 12)).any(|k| lexicon::notes::MESSAGE_VERBS.contains(clause.at(k)));
        clause.phrase(at, lexicon::notes::MENTIONS).filter(|_| linked && !is_message()).map(|n| at + n)
    })?;
    (text < clause.end).then_some(text)
}

/// Matches "notes: …", ", the description is …", "with a note saying …". Links are `i..at`. Returns the start of the
/// text. "with" or "including" before the field suffices, after a link also "add" or a similar word. Without an
/// article, a colon or "=" after it, or a comma, period, dash or bracket at `i` suffices. After any link, "is", "that"
/// or a similar word after the field suffices. "to", "on", "for", "from", "in" or "about" directly after the field
/// prevents the match. Returns `None` otherwise.
fn after_field(clause: &Clause, i: usize, at: usize) -> Option<usize> {
    let linked = at > i;
    let with = clause
        .phrase(at, lexicon::notes::FIELD_LEADS)
        .filter(|_| linked || matches!(clause.at(at), "with" | "including"));
    let head = at + with.unwrap_or(0);
    let article = vocabulary::is_article(clause.at(head)) || matches!(clause.at(head), "this" | "these" | "in");
    let word = head + usize::from(article);
    let word = word + usize::from(article && matches!(clause.at(word), "short" | "quick" | "little" | "small"));
    let after = word + clause.phrase(word, lexicon::notes::FIELDS)?;
    let mark = clause.phrase(after, lexicon::notes::SAYING);
    let marked = matches!(clause.at(after), ":" | "=");
    let comma = matches!(clause.at(i), "," | ";" | "." | "(" | "-" | "–" | "—");
    let names_other_task = mark.is_none() && matches!(clause.at(after), "to" | "on" | "for" | "from" | "in" | "about");
    let fits = with.is_some() || marked && !article || linked && mark.is_some() || comma && !article;
    (fits && !names_other_task).then(|| after + mark.unwrap_or(0))
}

/// Matches "in the notes put …", "put in the description that …". Returns the start of the text.
fn after_write_verb(clause: &Clause, at: usize) -> Option<usize> {
    let verb = at + clause.phrase(at, lexicon::notes::WRITE_VERBS).unwrap_or(0);
    let after = verb + clause.phrase(verb, lexicon::notes::PLACES)?;
    let after = after + clause.phrase(after, lexicon::notes::WRITE_VERBS).unwrap_or(0);
    Some(after + clause.phrase(after, lexicon::notes::SAYING).unwrap_or(0))
}

/// Returns the positions of the brackets in "add dentist on Friday (bring the card)". The second one is `to` if the
/// bracket is not closed. A space must precede the first bracket. Less than two words inside yield `None`, and so does
/// a date or a consumed token inside. So do a priority directly after the first bracket, and words after the brackets
/// that are no date and not consumed.
pub(crate) fn find_parenthesis(clause: &Clause, from: usize, to: usize) -> Option<(usize, usize)> {
    let open = (from + 1..to).find(|i| clause.at(*i) == "(" && !clause.is_consumed(*i))?;
    let close = (open + 1..to).find(|i| clause.at(*i) == ")").unwrap_or(to);
    let words = (open + 1..close).filter(|i| clause.words.is_word(*i)).count();
    let plain = (open + 1..close).all(|i| clause.date_at(i).is_none() && !clause.is_consumed(i));
    let last = (close..to).all(|i| clause.date_at(i).is_some() || clause.is_exhausted(i..i + 1) || clause.at(i) == ")");
    let urgent = attributes::priority_at(clause, open + 1).is_some();
    let spaced = open > 0 && !clause.words.is_adjacent_to_next(open - 1);
    (words >= 2 && plain && last && spaced && !urgent).then_some((open, close))
}
