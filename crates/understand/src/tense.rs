//! Converts past tenses to base forms: "called" to "call", "paid" to "pay".

/// Irregular past tenses and their base forms.
const IRREGULAR: &[(&str, &str)] = &[
    ("bought", "buy"),
    ("paid", "pay"),
    ("sent", "send"),
    ("made", "make"),
    ("took", "take"),
    ("wrote", "write"),
    ("fed", "feed"),
    ("cut", "cut"),
    ("ran", "run"),
    ("swept", "sweep"),
    ("sold", "sell"),
    ("got", "get"),
    ("went", "go"),
    ("read", "read"),
    ("met", "meet"),
    ("saw", "see"),
    ("gave", "give"),
    ("told", "tell"),
    ("spoke", "speak"),
    ("rang", "ring"),
    ("put", "put"),
    ("set", "set"),
    ("did", "do"),
    ("drove", "drive"),
    ("brought", "bring"),
    ("found", "find"),
    ("left", "leave"),
    ("built", "build"),
    ("drew", "draw"),
    ("taught", "teach"),
    ("hung", "hang"),
    ("dug", "dig"),
    ("hid", "hide"),
    ("lent", "lend"),
    ("threw", "throw"),
    ("wound", "wind"),
    ("shut", "shut"),
    ("ate", "eat"),
    ("drank", "drink"),
    ("swam", "swim"),
    ("won", "win"),
    ("kept", "keep"),
    ("held", "hold"),
    ("began", "begin"),
    ("chose", "choose"),
    ("rode", "ride"),
    ("sang", "sing"),
    ("submitted", "submit"),
    ("had", "have"),
    ("tied", "tie"),
    ("dyed", "dye"),
    ("taped", "tape"),
    ("piped", "pipe"),
];

/// Returns the base form of a past tense in lower case. Knows irregular forms ("bought"). Otherwise removes "ed" and
/// restores the spelling: "emptied" becomes "empty", "dropped" "drop", "baked" "bake". A double "l", "s", "f" or "z"
/// stays. Returns `None` for words that are neither irregular nor end in "ed" after at least two characters, all ASCII.
/// The word is not looked up, so "need" becomes "ne".
pub(crate) fn base_form(word: &str) -> Option<String> {
    if let Some((_, base)) = IRREGULAR.iter().find(|(past, _)| *past == word) {
        return Some((*base).to_owned());
    }
    let stem = word.strip_suffix("ed").filter(|stem| stem.len() > 1 && stem.is_ascii())?;
    if let Some(y) = stem.strip_suffix('i') {
        return Some(format!("{y}y"));
    }
    let letters = stem.as_bytes();
    let at = |back: usize| letters.len().checked_sub(back).and_then(|i| letters.get(i)).copied().unwrap_or(b'-');
    let last = at(1);
    let before = at(2);
    let third = at(3);
    if last == before && !b"lsfz".contains(&last) {
        return stem.get(..stem.len() - 1).map(str::to_owned);
    }
    Some(if drops_e(last, before, third) { format!("{stem}e") } else { stem.to_owned() })
}

/// Returns true if the base form ends in "e": "baked", "scheduled", "replaced", "charged". The arguments are the last
/// three letters of the stem before "ed", from the last one backwards. A missing letter is `-`. This is a rule of
/// spelling with errors for rare verbs.
fn drops_e(last: u8, before: u8, third: u8) -> bool {
    let vowel = |c: u8| b"aeiou".contains(&c);
    match last {
        b'v' | b'c' | b'z' | b'u' => true,
        b'g' => b"adrn".contains(&before) && (before != b'n' || third == b'a') || vowel(before),
        b's' => vowel(before),
        b'l' => before == b'u' || !vowel(before) && b"bpdtgkfz".contains(&before) || before == b'i' && !vowel(third),
        b'w' | b'x' | b'y' | b'h' => false,
        b't' => b"aeou".contains(&before) && !vowel(third),
        b'r' => b"aiu".contains(&before) && !vowel(third) || before == b'o' && third == b't',
        b'n' => b"ai".contains(&before) && !vowel(third),
        b'k' | b'p' | b'd' | b'm' | b'b' => vowel(before) && !vowel(third),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::base_form;

    #[test]
    fn past_tenses_become_base_forms() {
        for (past, wanted) in [
            ("called", "call"),
            ("paid", "pay"),
            ("booked", "book"),
            ("baked", "bake"),
            ("scheduled", "schedule"),
            ("replaced", "replace"),
            ("charged", "charge"),
            ("emptied", "empty"),
            ("dropped", "drop"),
            ("mopped", "mop"),
            ("visited", "visit"),
            ("ordered", "order"),
            ("updated", "update"),
            ("moved", "move"),
            ("cleaned", "clean"),
            ("repaired", "repair"),
            ("prepared", "prepare"),
            ("emailed", "email"),
            ("filed", "file"),
            ("mowed", "mow"),
            ("fixed", "fix"),
            ("washed", "wash"),
            ("watered", "water"),
            ("organised", "organise"),
            ("renewed", "renew"),
            ("posted", "post"),
            ("merged", "merge"),
            ("deployed", "deploy"),
            ("handed", "hand"),
            ("painted", "paint"),
            ("assembled", "assemble"),
        ] {
            assert_eq!(base_form(past).as_deref(), Some(wanted), "{past}");
        }
        assert_eq!(base_form("milk"), None);
    }
}
