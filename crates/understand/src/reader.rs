//! How an utterance is read where people differ: which number of a date in figures is the month.

use jiff::Zoned;

use crate::correct;
use crate::expression::{self, Expression};
use crate::reading::Reading;
use crate::tokens::Words;
use crate::utterance;

/// What comes first in a date in figures that leaves it open, such as 3/4. In 25/12 only one order is possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    MonthFirst,
    DayFirst,
}

/// Reads utterances in the way that a user writes dates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reader {
    pub numeric: Order,
}

impl Reader {
    /// What the commands of an utterance are, in order. Dates are those of the zone of `now`.
    pub fn read(self, text: &str, now: &Zoned) -> Reading {
        self.reading(text, now, false)
    }

    /// [`Reader::read`] for who knows the tasks there are: a sentence that names things of other trades ("delete email
    /// Bob") is read as if it named a task. Whether it does, only a look at the tasks can tell.
    pub fn read_as_tasks(self, text: &str, now: &Zoned) -> Reading {
        self.reading(text, now, true)
    }

    fn reading(self, text: &str, now: &Zoned, of_tasks: bool) -> Reading {
        let mut words = self.words(text);
        let meant = correct::read(&words);
        if let Some(meant) = &meant {
            words = self.words(meant);
        }
        words.of_tasks = of_tasks;
        utterance::read(&words, now)
    }

    /// The dates, times and repetitions in a text, in order and never overlapping.
    pub fn expressions(self, text: &str, now: &Zoned) -> Vec<Expression> {
        expression::find(&self.words(text), now)
    }

    fn words(self, text: &str) -> Words<'_> {
        let mut words = Words::new(text);
        words.numeric = self.numeric;
        words
    }
}
