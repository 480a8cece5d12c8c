//! Answers of read-only calls that were made before a transaction. The transaction reuses them, so that its queries do
//! not delay other writes.

use std::collections::VecDeque;
use std::time::Duration;

use crate::{ToolArguments, ToolKind, ToolOutcome};

/// The answers of read-only calls of one turn, in the order of the calls.
#[derive(Clone, Debug, Default)]
pub struct PrefetchedCalls(VecDeque<PrefetchedCall>);

#[derive(Clone, Debug)]
struct PrefetchedCall {
    kind: ToolKind,
    arguments: ToolArguments,
    outcome: ToolOutcome,
    duration: Duration,
}

impl PrefetchedCalls {
    /// Adds the answer of a call.
    pub(crate) fn add(&mut self, kind: ToolKind, arguments: ToolArguments, outcome: ToolOutcome, duration: Duration) {
        self.0.push_back(PrefetchedCall { kind, arguments, outcome, duration });
    }

    /// Removes and returns the next answer with the duration of its call. Returns `None` if the next answer belongs to
    /// another call, and then drops all answers: they may not apply to the calls that follow.
    pub(crate) fn take(&mut self, kind: ToolKind, arguments: &ToolArguments) -> Option<(ToolOutcome, Duration)> {
        match self.0.pop_front() {
            Some(call) if call.kind == kind && call.arguments == *arguments => Some((call.outcome, call.duration)),
            _ => {
                self.0.clear();
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::ToolAnswer;

    fn arguments(query: &str) -> ToolArguments {
        ToolArguments::from_iter([("query".to_owned(), json!(query))])
    }

    fn prefetched(queries: &[&str]) -> PrefetchedCalls {
        let mut calls = PrefetchedCalls::default();
        for query in queries {
            let outcome = ToolOutcome::Done(ToolAnswer::success(json!({"query": query})));
            calls.add(ToolKind::List, arguments(query), outcome, Duration::from_millis(3));
        }
        calls
    }

    fn query(taken: Option<(ToolOutcome, Duration)>) -> Option<Value> {
        match taken?.0 {
            ToolOutcome::Done(answer) => Some(answer.data()["query"].clone()),
            ToolOutcome::Held(_) => None,
        }
    }

    // CHAT-7
    #[test]
    fn prefetched_answers_are_used_once_and_in_order() {
        let mut calls = prefetched(&["milk", "bread"]);
        let (_, duration) = calls.clone().take(ToolKind::List, &arguments("milk")).unwrap();
        assert_eq!(duration, Duration::from_millis(3));
        assert_eq!(query(calls.take(ToolKind::List, &arguments("milk"))), Some(json!("milk")));
        assert_eq!(query(calls.take(ToolKind::List, &arguments("bread"))), Some(json!("bread")));
        assert!(calls.take(ToolKind::List, &arguments("bread")).is_none());
    }

    // CHAT-7
    #[test]
    fn an_unexpected_call_drops_all_prefetched_answers() {
        let mut calls = prefetched(&["milk", "bread"]);
        assert!(calls.take(ToolKind::List, &arguments("eggs")).is_none());
        assert!(calls.take(ToolKind::List, &arguments("bread")).is_none());

        let mut calls = prefetched(&["milk"]);
        assert!(calls.take(ToolKind::ListAgents, &arguments("milk")).is_none());
    }
}
