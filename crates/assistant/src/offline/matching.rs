//! Which tasks a few words mean: the closest kind of match that any task reaches decides, and all that reach it are
//! meant.

use serde_json::Value;

/// From the closest to the farthest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The title, word for word.
    Same,
    /// A part of the title, as it stands.
    Part,
    /// All the words, in any order.
    Words,
    /// All the words, give or take a letter.
    Misspelt,
    /// Not in the title, but in the description.
    Described,
}

/// The tasks that `words` means, in the order of the list.
pub(super) fn meant<'t>(tasks: impl IntoIterator<Item = &'t Value>, words: &str) -> Vec<&'t Value> {
    let query = plain(words);
    if query.is_empty() {
        return Vec::new();
    }
    let found: Vec<_> = tasks.into_iter().filter_map(|task| Some((kind(task, &query)?, task))).collect();
    let Some(best) = found.iter().map(|(kind, _)| *kind).min() else { return Vec::new() };
    found.into_iter().filter(|(kind, _)| *kind == best).map(|(_, task)| task).collect()
}

/// Whether this is the very title of a task.
pub(super) fn is_same(task: &Value, words: &str) -> bool {
    kind(task, &plain(words)) == Some(Kind::Same)
}

/// Whether the title of a task only resembles this.
pub(super) fn is_loose(task: &Value, words: &str) -> bool {
    kind(task, &plain(words)) > Some(Kind::Part)
}

fn kind(task: &Value, query: &str) -> Option<Kind> {
    let title = plain(task["title"].as_str().unwrap_or_default());
    if title == query {
        return Some(Kind::Same);
    }
    if title.contains(query) {
        return Some(Kind::Part);
    }
    let wanted: Vec<&str> = query.split(' ').filter(|word| !is_filler(word)).collect();
    if wanted.is_empty() {
        return None;
    }
    let there: Vec<&str> = title.split(' ').collect();
    if wanted.iter().all(|word| there.iter().any(|known| stem(known) == stem(word))) {
        return Some(Kind::Words);
    }
    if wanted.iter().all(|word| there.iter().any(|known| is_close(known, word))) {
        return Some(Kind::Misspelt);
    }
    let description = plain(task["description"].as_str().unwrap_or_default());
    (!description.is_empty() && description.contains(query)).then_some(Kind::Described)
}

/// Lower case, punctuation gone, one space between words.
pub(super) fn plain(text: &str) -> String {
    let spaced: String =
        text.to_lowercase().chars().map(|c| if c.is_alphanumeric() || is_symbol(c) { c } else { ' ' }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Emoji and their like are part of a title, as letters are.
fn is_symbol(c: char) -> bool {
    u32::from(c) > 0x2190 && !c.is_whitespace() && !('\u{3000}'..='\u{303f}').contains(&c)
}

fn is_filler(word: &str) -> bool {
    let fillers = ["the", "a", "an", "my", "our", "to", "for", "of", "about", "on", "with", "at", "in", "and"];
    fillers.contains(&word) || matches!(word, "task" | "todo" | "reminder")
}

fn stem(word: &str) -> &str {
    let shorter = ["ing", "ies", "es", "ed", "s"].into_iter().find_map(|end| word.strip_suffix(end));
    shorter.filter(|stem| stem.chars().count() >= 3).unwrap_or(word)
}

/// One letter more, less, other or moved; two in long words.
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

/// Damerau and Levenshtein's distance, neighbours swapped counting once.
fn distance(a: &str, b: &str) -> usize {
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
        meant(&tasks, query).into_iter().map(|task| task["title"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_closest_kind_of_match_decides() {
        // AGENT-8
        assert_eq!(titles("Buy Milk!"), ["buy milk"], "the very title, though it is also a part of another");
        assert_eq!(titles("milk"), ["buy milk", "buy oat milk"]);
        assert_eq!(titles("oat"), ["buy oat milk"]);
        assert_eq!(titles("the appointment with the dentist"), ["Dentist appointment"]);
        assert_eq!(titles("appointment dentist"), ["Dentist appointment"]);
        assert_eq!(titles("paying bill"), ["pay the bills"]);
        assert_eq!(titles("dentits"), ["Dentist appointment"]);
        assert_eq!(titles("🎂"), ["🎂 for Anna"]);
        assert_eq!(titles("牛乳"), ["牛乳を買う"]);
        assert_eq!(titles("note").len(), 7, "only the descriptions have it");
        assert_eq!(titles("xyzzy"), Vec::<String>::new());
        assert_eq!(titles("?!"), Vec::<String>::new());
    }
}
