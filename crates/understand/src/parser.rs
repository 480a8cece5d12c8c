//! The entry point of the engine and its settings.

use jiff::Zoned;

use crate::corrections;
use crate::emoji;
use crate::expression::{self, TimeExpression};
use crate::parsed::ParsedUtterance;
use crate::quoted_text;
use crate::task_lines;
use crate::tokens::TokenizedText;
use crate::utterance;

/// The order of day and month in a numeric date such as 3/4. It has no effect on 25/12, where only one order is
/// possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DateOrder {
    #[default]
    MonthFirst,
    DayFirst,
}

/// Parses utterances with the settings of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UtteranceParser {
    /// The order of day and month in numeric dates.
    pub date_order: DateOrder,
}

impl UtteranceParser {
    /// Returns the commands of an utterance in order, at least one. Applies corrections first ("at 5, no, 6"). Dates
    /// are resolved in the time zone of `now`.
    pub fn parse(self, text: &str, now: &Zoned) -> ParsedUtterance {
        self.parse_with(text, now, false)
    }

    /// Returns the commands of an utterance and takes words of other domains for names of tasks.
    ///
    /// Used by callers that can look up tasks: "delete email Bob" then deletes a task called "email Bob".
    pub fn parse_assuming_tasks(self, text: &str, now: &Zoned) -> ParsedUtterance {
        self.parse_with(text, now, true)
    }

    /// Removes quoted text, rewrites an emoji of a command, applies the first correction ("at 5, no, 6") and parses the
    /// result. `assume_tasks` takes words of other domains
    /// for names of tasks. Never fails; returns at least one command.
    fn parse_with(self, text: &str, now: &Zoned, assume_tasks: bool) -> ParsedUtterance {
        let own_text = quoted_text::remove(text);
        let skipped_quoted_text = own_text.is_some();
        let text = own_text.as_deref().unwrap_or(text);
        let rewritten = emoji::rewrite_command(text);
        let text = rewritten.as_deref().unwrap_or(text);
        let mut words = self.tokenize(text);
        let corrected = corrections::apply(&words);
        if let Some(corrected) = &corrected {
            words = self.tokenize(corrected);
        }
        words.assume_tasks = assume_tasks;
        let parsed = task_lines::parse(&words, now).unwrap_or_else(|| utterance::parse(&words, now));
        ParsedUtterance { skipped_quoted_text, ..parsed }
    }

    /// Returns the dates, times and repetitions of a text in order. They never overlap. Corrections are not applied, so
    /// that positions refer to `text`.
    pub fn find_expressions(self, text: &str, now: &Zoned) -> Vec<TimeExpression> {
        expression::find_expressions(&self.tokenize(text), now)
    }

    /// Splits a text into tokens with the settings of the user.
    pub(crate) fn tokenize(self, text: &str) -> TokenizedText<'_> {
        let mut words = TokenizedText::new(text);
        words.date_order = self.date_order;
        words
    }
}
