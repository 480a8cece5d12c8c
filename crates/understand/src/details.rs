//! What is to be noted about a new task: "…, and mention that …", "the note should say …", "… (bring the card)".

use crate::attributes;
use crate::clause::Clause;
use crate::lexicon;
use crate::phrases::{Phrases, phrases};

const FIELDS: Phrases = phrases!(
    "note | notes | description | desc | details | detail | comment | comments | memo | info | information | remark | \
     remarks | additional info | additional information | additional details | additional notes | additional note | \
     extra info | extra details | extra note | more info | further details | note to self | ps | p.s. | text | body"
);

/// Words without one of which nothing is noted.
pub(crate) const SIGNS: Phrases = phrases!(
    "note | notes | description | desc | details | detail | comment | comments | memo | info | information | remark | \
     remarks | ps | p.s. | text | body | mention | mentioning | include | noting | specify | specifying | remember | \
     write | say | adding | mind | aware"
);

/// What leads from the field to what it is to say.
const SAYING: Phrases = phrases!(
    ": | = | - | – | — | should say that | should say | should be | should read | is that | is | are | says that | \
     says | reads | to say | saying that | saying | that says | that | which says | reading | of | ,"
);

/// Where the text begins that the words at `i` lead to.
pub(crate) fn lead(clause: &Clause, i: usize, from: usize) -> Option<usize> {
    let link = |k: &usize| {
        matches!(
            clause.at(*k),
            "," | ";" | "." | "and" | "-" | "–" | "—" | "(" | "then" | "also" | "please" | "just" | "but"
        )
    };
    let at = (i..clause.end.min(i + 4)).find(|k| !link(k))?;
    let linked = at > i;
    let text = field(clause, i, at).or_else(|| written(clause, at)).or_else(|| {
        let said = phrases!(
            "mention that | mention | mentioning that | mentioning | include that | note that | noting that | noting | \
             specify that | specifying that | remember that | write that | say that | adding that | bear in mind that | \
             keep in mind that | be aware that"
        );
        // "email Raj and mention that …": that is what the message is to say.
        let tells = phrases!("email | call | tell | ask | text | message | write | talk | phone | ring | speak | let");
        let speaks = || (from..at.min(from + 12)).any(|k| tells.contains(clause.at(k)));
        clause.phrase(at, said).filter(|_| linked && !speaks()).map(|n| at + n)
    })?;
    (text < clause.end).then_some(text)
}

/// "notes: …", ", the description is …", "with a note saying …".
fn field(clause: &Clause, i: usize, at: usize) -> Option<usize> {
    const WITH: Phrases =
        phrases!("with | including | include | add | put | leave | attach | write | has | having | give it");
    let linked = at > i;
    let with = clause.phrase(at, WITH).filter(|_| linked || matches!(clause.at(at), "with" | "including"));
    let head = at + with.unwrap_or(0);
    let article = lexicon::is_article(clause.at(head)) || matches!(clause.at(head), "this" | "these" | "in");
    let word = head + usize::from(article);
    let word = word + usize::from(article && matches!(clause.at(word), "short" | "quick" | "little" | "small"));
    let after = word + clause.phrase(word, FIELDS)?;
    let mark = clause.phrase(after, SAYING);
    let marked = matches!(clause.at(after), ":" | "=");
    let comma = matches!(clause.at(i), "," | ";" | "." | "(" | "-" | "–" | "—");
    let elsewhere = mark.is_none() && matches!(clause.at(after), "to" | "on" | "for" | "from" | "in" | "about");
    let fits = with.is_some() || marked && !article || linked && mark.is_some() || comma && !article;
    (fits && !elsewhere).then(|| after + mark.unwrap_or(0))
}

/// "in the notes put …", "put in the description that …".
fn written(clause: &Clause, at: usize) -> Option<usize> {
    const INTO: Phrases = phrases!(
        "in the notes | in the description | in the details | in the comments | in the note | to the notes | \
         to the description | into the notes | into the description | in notes | in description | for the description | \
         for the notes | as a note | as the note | as the description | as description | as a comment"
    );
    let verbs = phrases!("put | write | say | add | mention | note | include | jot");
    let verb = at + clause.phrase(at, verbs).unwrap_or(0);
    let after = verb + clause.phrase(verb, INTO)?;
    let after = after + clause.phrase(after, verbs).unwrap_or(0);
    Some(after + clause.phrase(after, SAYING).unwrap_or(0))
}

/// "add dentist on Friday (bring the card)": the words between the brackets, where nothing but a time follows them.
pub(crate) fn aside(clause: &Clause, from: usize, to: usize) -> Option<(usize, usize)> {
    let open = (from + 1..to).find(|i| clause.at(*i) == "(" && !clause.is_taken(*i))?;
    let close = (open + 1..to).find(|i| clause.at(*i) == ")").unwrap_or(to);
    let words = (open + 1..close).filter(|i| clause.words.is_word(*i)).count();
    let plain = (open + 1..close).all(|i| clause.date_at(i).is_none() && !clause.is_taken(i));
    let last = (close..to).all(|i| clause.date_at(i).is_some() || clause.is_spent(i..i + 1) || clause.at(i) == ")");
    let urgent = attributes::priority_at(clause, open + 1).is_some();
    let spaced = open > 0 && !clause.words.touches_next(open - 1);
    (words >= 2 && plain && last && spaced && !urgent).then_some((open, close))
}
