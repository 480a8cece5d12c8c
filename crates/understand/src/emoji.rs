//! Emoji: decoration at the ends of a message, or a command alone with a title ("✅ buy milk", "buy milk 🗑").

use crate::vocabulary::{self, Verb};

/// Returns true if the text consists of emoji and their modifiers.
pub(crate) fn is_emoji(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_emoji_char)
}

fn is_emoji_char(c: char) -> bool {
    matches!(
        c,
        '\u{1f000}'..='\u{1faff}' | '\u{2600}'..='\u{2793}' | '➕' | '\u{2b00}'..='\u{2bff}' | '\u{fe0f}' | '\u{200d}' | '\u{20e3}'
    )
}

/// Returns the verb that an emoji stands for.
fn command_verb(c: char) -> Option<&'static str> {
    match c {
        '✔' | '✅' | '☑' | '🆗' => Some("complete"),
        '❌' | '🗑' | '✖' | '🚮' => Some("delete"),
        '➕' => Some("add"),
        _ => None,
    }
}

/// Rewrites a title with an emoji of a command: "✅ buy milk" becomes "complete buy milk". The emoji begins or ends the
/// message. Returns `None` without such an emoji, and if the words themselves begin with a command verb or report a
/// completion.
pub(crate) fn rewrite_command(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let text = text.trim();
    let modifier = |c: char| c == '\u{fe0f}' || c.is_whitespace();
    let leading = text.chars().next().and_then(command_verb);
    let trailing = || text.trim_end_matches(modifier).chars().next_back().and_then(command_verb);
    let verb = leading.or_else(trailing).filter(|verb| *verb != "add" || leading.is_some())?;
    let title = text.trim_matches(|c: char| modifier(c) || command_verb(c).is_some());
    let words = title.split_whitespace().count();
    let first = title.split_whitespace().next()?.to_lowercase();
    let second = title.split_whitespace().nth(1).unwrap_or_default().to_lowercase();
    let acts = matches!(
        vocabulary::verb(&first),
        Some(
            Verb::Add
                | Verb::Delete
                | Verb::Complete
                | Verb::Mark
                | Verb::Remind
                | Verb::Show
                | Verb::Rename
                | Verb::Move
        )
    ) || vocabulary::verb(&first).is_some()
        && matches!(second.as_str(), "the" | "my" | "it" | "that" | "a" | "task");
    let says = matches!(
        first.as_str(),
        "i" | "i've"
            | "done"
            | "ok"
            | "okay"
            | "yes"
            | "no"
            | "thanks"
            | "great"
            | "all"
            | "it"
            | "that"
            | "what"
            | "please"
    );
    (!acts && !says && words <= 8).then(|| format!("{verb} {title}"))
}

#[cfg(test)]
mod tests {
    use super::rewrite_command;

    #[test]
    fn emoji_alone_with_a_title_are_commands() {
        for (text, command) in [
            ("✅ buy milk", Some("complete buy milk")),
            ("buy milk ✔️", Some("complete buy milk")),
            ("❌ gym", Some("delete gym")),
            ("buy milk 🗑️", Some("delete buy milk")),
            ("➕ buy milk", Some("add buy milk")),
            ("delete buy paint 🗑️", None),
            ("add buy milk ✅", None),
            ("done ✅", None),
            ("🛒 buy milk", None),
            ("✅", None),
        ] {
            assert_eq!(rewrite_command(text).as_deref(), command, "{text}");
        }
    }
}
