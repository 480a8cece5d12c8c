//! What the trainer of the intent model sees: the features of a sentence, as the engine itself computes them.

use jiff::Zoned;

use crate::clause::Clause;
use crate::correct;
use crate::intent::{self, model};
use crate::split;
use crate::tokens::Words;

pub use crate::intent::model::{BUCKETS, CLASSES, HEADER, MAGIC};

/// A sentence of one clause.
pub struct Example {
    /// Buckets of weights.
    pub features: Vec<usize>,
    /// The class that the rules alone would give it.
    pub by_rules: usize,
}

/// The features of a sentence; `None` where there are several clauses or nothing for the model to decide.
pub fn example(text: &str, now: &Zoned) -> Option<Example> {
    let mut words = Words::new(text);
    let meant = correct::read(&words);
    if let Some(meant) = &meant {
        words = Words::new(meant);
    }
    let mut clauses = split::clauses(&words).into_iter();
    let range = clauses.next().filter(|_| clauses.next().is_none())?;
    let clause = Clause::new(&words, range, now);
    let guess = intent::by_rules(&clause);
    let by_rules = model::Class::of(&guess)? as usize;
    let mut features = Vec::new();
    model::features(&clause, &guess, |feature| features.push(feature as usize % BUCKETS));
    Some(Example { features, by_rules })
}

/// The place of an intent among the classes; `None` for one that the model does not tell apart.
pub fn class(intent: &str) -> Option<usize> {
    let class = match intent {
        "create_task" | "schedule_reminder" => model::Class::Create,
        "list_tasks" => model::Class::List,
        "complete_task" => model::Class::Complete,
        "delete_task" => model::Class::Delete,
        "update_task" => model::Class::Update,
        "unknown" => model::Class::Other,
        _ => return None,
    };
    Some(class as usize)
}
