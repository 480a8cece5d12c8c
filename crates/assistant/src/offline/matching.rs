//! Matches a name against tasks. The best match kind of any task decides, and all tasks of that kind match.

use serde_json::Value;

/// The quality of a match, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MatchKind {
    /// The name is the title.
    Exact,
    /// The title contains the words of the name in this order.
    Phrase,
    /// The title contains all words, in any order.
    AllWords,
    /// The title contains all words, with spelling mistakes.
    Misspelled,
    /// Only the description contains the name.
    Description,
}

/// Returns all tasks with the best match kind for `words`, in the order of the list. Tasks with a worse match kind are
/// left out. Returns none if no task matches, or if `words` has no letters, digits or symbols.
pub(super) fn best_matches<'t>(tasks: impl IntoIterator<Item = &'t Value>, words: &str) -> Vec<&'t Value> {
    let query = normalize(words);
    if query.is_empty() {
        return Vec::new();
    }
    let found: Vec<_> = tasks.into_iter().filter_map(|task| Some((match_kind(task, &query)?, task))).collect();
    let Some(best) = found.iter().map(|(kind, _)| *kind).min() else { return Vec::new() };
    found.into_iter().filter(|(kind, _)| *kind == best).map(|(_, task)| task).collect()
}

/// Returns `true` if the name is the title of the task.
pub(super) fn is_exact(task: &Value, words: &str) -> bool {
    match_kind(task, &normalize(words)) == Some(MatchKind::Exact)
}

/// Returns `true` if the task matches, but its title does not contain the name as a whole.
pub(super) fn is_loose(task: &Value, words: &str) -> bool {
    match_kind(task, &normalize(words)) > Some(MatchKind::Phrase)
}

/// Returns the best match kind of a task for a normalized query, or `None` if the task does not match. Words match
/// whole, never as a part of another word. Single words match in any order, without their endings, then with spelling
/// mistakes. Filler words such as "the" are ignored there. A query of only filler words matches nothing but a title with
/// exactly these words. The description must contain the whole query.
fn match_kind(task: &Value, query: &str) -> Option<MatchKind> {
    let title = normalize(task["title"].as_str().unwrap_or_default());
    if title == query {
        return Some(MatchKind::Exact);
    }
    let query_words: Vec<&str> = query.split(' ').filter(|word| !is_filler(word)).collect();
    if query_words.is_empty() {
        return None;
    }
    if contains_words(&title, query) || (query.contains(is_unspaced) && title.contains(query)) {
        return Some(MatchKind::Phrase);
    }
    let title_words: Vec<&str> = title.split(' ').collect();
    if query_words.iter().all(|word| title_words.iter().any(|known| is_same_word(known, word))) {
        return Some(MatchKind::AllWords);
    }
    if query_words.iter().all(|word| title_words.iter().any(|known| is_close(known, word))) {
        return Some(MatchKind::Misspelled);
    }
    let description = normalize(task["description"].as_str().unwrap_or_default());
    (!description.is_empty() && contains_words(&description, query)).then_some(MatchKind::Description)
}

/// Returns true if the words of `part` follow each other in `text`. Both are normalized.
fn contains_words(text: &str, part: &str) -> bool {
    format!(" {text} ").contains(&format!(" {part} "))
}

/// Returns true for letters of scripts without spaces between words.
fn is_unspaced(c: char) -> bool {
    u32::from(c) >= 0x2e80
}

/// Returns true if the words are equal without their endings, or forms of the same verb: "paid" and "pay".
pub(super) fn is_same_word(a: &str, b: &str) -> bool {
    a == b || stem(present_tense(a)) == stem(present_tense(b))
}

/// Returns the tasks that a text mentions by all words of their titles, except for filler words: "just got back from
/// walking rufus" mentions "walk Rufus".
pub(super) fn mentioned_tasks<'t>(tasks: impl IntoIterator<Item = &'t Value>, text: &str) -> Vec<&'t Value> {
    let text = normalize(text);
    let words: Vec<&str> = text.split(' ').collect();
    let is_mentioned = |task: &&Value| {
        let title = normalize(task["title"].as_str().unwrap_or_default());
        let mut known = title.split(' ').filter(|word| !is_filler(word)).peekable();
        known.peek().is_some() && known.all(|known| words.iter().any(|word| is_same_word(known, word)))
    };
    tasks.into_iter().filter(is_mentioned).collect()
}

/// Returns the tasks that share the most words with a text. A task counts if it shares at least half of the words. Filler
/// words do not count.
pub(super) fn overlapping_tasks<'t>(tasks: impl IntoIterator<Item = &'t Value>, text: &str) -> Vec<&'t Value> {
    let text = normalize(text);
    let words: Vec<&str> = text.split(' ').filter(|word| !is_filler(word) && !word.is_empty()).collect();
    let shared = |task: &Value| {
        let known = normalize(&format!(
            "{} {}",
            task["title"].as_str().unwrap_or_default(),
            task["description"].as_str().unwrap_or_default()
        ));
        words.iter().filter(|word| known.split(' ').any(|known| is_same_word(known, word))).count()
    };
    let found: Vec<_> = tasks.into_iter().map(|task| (shared(task), task)).collect();
    let best = found.iter().map(|(count, _)| *count).max().unwrap_or_default();
    if best == 0 || best * 2 < words.len() {
        return Vec::new();
    }
    found.into_iter().filter(|(count, _)| *count == best).map(|(_, task)| task).collect()
}

/// Converts to lower case, removes punctuation and normalizes spaces.
pub(crate) fn normalize(text: &str) -> String {
    let spaced: String =
        text.to_lowercase().chars().map(|c| if c.is_alphanumeric() || is_symbol(c) { c } else { ' ' }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Emoji and other symbols belong to a title, like letters.
fn is_symbol(c: char) -> bool {
    u32::from(c) > 0x2190 && !c.is_whitespace() && !('\u{3000}'..='\u{303f}').contains(&c)
}

/// Returns `true` for a word that does not help to identify a task.
pub(super) fn is_filler(word: &str) -> bool {
    const FILLERS: [&str; 37] = [
        "the", "a", "an", "my", "our", "to", "for", "of", "about", "on", "with", "at", "in", "and", "it", "that",
        "this", "one", "ones", "thing", "stuff", "s", "task", "todo", "reminder", "item", "entry", "please", "really",
        "already", "just", "finally", "now", "too", "also", "again", "bit",
    ];
    FILLERS.contains(&word)
}

/// Returns the present tense of common irregular verbs, and any other word unchanged.
fn present_tense(word: &str) -> &str {
    const FORMS: [(&str, &str); 34] = [
        ("paid", "pay"),
        ("bought", "buy"),
        ("sent", "send"),
        ("wrote", "write"),
        ("written", "write"),
        ("made", "make"),
        ("did", "do"),
        ("done", "do"),
        ("took", "take"),
        ("taken", "take"),
        ("got", "get"),
        ("fed", "feed"),
        ("met", "meet"),
        ("ran", "run"),
        ("sold", "sell"),
        ("told", "tell"),
        ("went", "go"),
        ("hung", "hang"),
        ("drove", "drive"),
        ("rang", "ring"),
        ("brought", "bring"),
        ("built", "build"),
        ("spoke", "speak"),
        ("stood", "stand"),
        ("swept", "sweep"),
        ("chose", "choose"),
        ("found", "find"),
        ("gave", "give"),
        ("given", "give"),
        ("held", "hold"),
        ("kept", "keep"),
        ("left", "leave"),
        ("picked", "pick"),
        ("thought", "think"),
    ];
    FORMS.iter().find(|(form, _)| *form == word).map_or(word, |(_, present)| present)
}

/// Removes an English ending such as "ing", "s" or "e", and a doubled letter before it, if at least two characters
/// remain.
fn stem(word: &str) -> &str {
    let shorter = ["ing", "ied", "ies", "es", "ed", "s", "e", "y"].into_iter().find_map(|end| word.strip_suffix(end));
    let stem = shorter.filter(|stem| stem.chars().count() >= 3).unwrap_or(word);
    let doubled = stem.char_indices().next_back().filter(|(at, last)| {
        stem.len() < word.len()
            && last.is_ascii_alphabetic()
            && !matches!(last, 's' | 'l')
            && stem[..*at].ends_with(*last)
    });
    doubled.map_or(stem, |(at, _)| &stem[..at])
}

/// Returns `true` if the words differ by at most one edit, or two if both have at least 8 characters. If the shorter
/// word has up to 3 characters, the words must be equal.
fn is_close(known: &str, word: &str) -> bool {
    let short = known.chars().count().min(word.chars().count());
    let long = known.chars().count().max(word.chars().count());
    let allowed = match short {
        0..=3 => return known == word,
        4..=7 => 1,
        _ => 2,
    };
    long - short <= allowed && distance(known, word) <= allowed
}

/// Computes the number of edits between two words, by characters: insertions, deletions, replacements, and swaps of
/// neighbours. No character is edited twice (optimal string alignment).
pub(super) fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn titles(query: &str) -> Vec<String> {
        let all = [
            "buy milk",
            "buy oat milk",
            "Dentist appointment",
            "call mom",
            "pay the bills",
            "🎂 for Anna",
            "牛乳を買う",
        ];
        let tasks: Vec<_> = all.iter().map(|title| json!({"title": title, "description": "with a note"})).collect();
        best_matches(&tasks, query).into_iter().map(|task| task["title"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_best_match_kind_decides() {
        // AGENT-8
        assert_eq!(titles("Buy Milk!"), ["buy milk"], "an exact title wins over a substring");
        assert_eq!(titles("milk"), ["buy milk", "buy oat milk"]);
        assert_eq!(titles("oat"), ["buy oat milk"]);
        assert_eq!(titles("the appointment with the dentist"), ["Dentist appointment"]);
        assert_eq!(titles("appointment dentist"), ["Dentist appointment"]);
        assert_eq!(titles("paying bill"), ["pay the bills"]);
        assert_eq!(titles("dentits"), ["Dentist appointment"]);
        assert_eq!(titles("🎂"), ["🎂 for Anna"]);
        assert_eq!(titles("牛乳"), ["牛乳を買う"]);
        assert_eq!(titles("note").len(), 7, "only the descriptions contain it");
        assert_eq!(titles("xyzzy"), Vec::<String>::new());
        assert_eq!(titles("?!"), Vec::<String>::new());
    }
}
