//! The offline language engine: reads an utterance about tasks into intents, dates and slots.
//!
//! Pure: the same text at the same time gives the same reading; nothing here waits, reads a file or takes the time.

mod reading;

pub use reading::{Command, DueFilter, Field, Filter, Intent, Missing, Reading, StatusFilter, Target, When};
