//! Training data for the intent model: extracts the features of a sentence with the code of the engine.

use jiff::Zoned;

use crate::clause::Clause;
use crate::corrections;
use crate::intent::{self, model};
use crate::split;
use crate::tokens::TokenizedText;

pub use crate::intent::model::{BUCKETS, CLASSES, HEADER_LEN, MAGIC};

/// The features of a sentence with one clause.
pub struct TrainingExample {
    /// Indexes of weight buckets.
    pub features: Vec<usize>,
    /// The class that the rules assign without the model.
    pub by_rules: usize,
}

/// Returns the features of a sentence, after corrections, and the class of the rules. The order of day and month is the
/// default. Returns `None` if it has several clauses, or if the rules recognise undo, which the model does not
/// classify.
pub fn extract_example(text: &str, now: &Zoned) -> Option<TrainingExample> {
    let mut words = TokenizedText::new(text);
    let meant = corrections::apply(&words);
    if let Some(meant) = &meant {
        words = TokenizedText::new(meant);
    }
    let mut clauses = split::split_clauses(&words).into_iter();
    let range = clauses.next().filter(|_| clauses.next().is_none())?;
    let clause = Clause::new(&words, range, now);
    let guess = intent::recognise_by_rules(&clause);
    let by_rules = model::IntentClass::from_guess(&guess)? as usize;
    let mut features = Vec::new();
    model::extract_features(&clause, &guess, |feature| features.push(feature as usize % BUCKETS));
    Some(TrainingExample { features, by_rules })
}

/// Returns the class of the name of an intent. A reminder belongs to the class of new tasks. Returns `None` for "undo",
/// "clarification_needed" and any other text.
pub fn class_index(intent: &str) -> Option<usize> {
    let class = match intent {
        "create_task" | "schedule_reminder" => model::IntentClass::Create,
        "list_tasks" => model::IntentClass::List,
        "complete_task" => model::IntentClass::Complete,
        "delete_task" => model::IntentClass::Delete,
        "update_task" => model::IntentClass::Update,
        "unknown" => model::IntentClass::Other,
        _ => return None,
    };
    Some(class as usize)
}
