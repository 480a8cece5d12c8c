//! What a model has said so far, put together from the pieces it comes in, whatever the wire.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{Call, Delta, Memo, Usage};

/// The most calls of one answer that are listened to.
const MAX_CALLS: usize = 128;

#[derive(Default)]
pub(super) struct Heard {
    /// In the order in which they came.
    pub(super) parts: Vec<Part>,
    /// What nobody has been told of yet.
    pub(super) fresh: VecDeque<Delta>,
    pub(super) usage: Usage,
    /// Whether it has said, thought or called anything.
    pub(super) begun: bool,
    /// Whether it has given a reason to stop: then it is no loss if the end does not come.
    pub(super) stopped: bool,
    pub(super) ended: bool,
    /// Which number the provider gives to a call, and which part that is.
    numbers: Vec<(Option<u64>, usize)>,
}

/// What a model made of a step, as it wants to see it again.
pub(super) struct Kept {
    /// Which model it was.
    pub(super) by: String,
    pub(super) parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    Text(Signed),
    Thought(Signed),
    /// A thought that only the provider can read.
    Sealed(String),
    Call(Called),
}

/// Providers take some things back only with the signature they gave to them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Signed {
    pub(super) text: String,
    pub(super) signature: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Called {
    /// Empty where the provider gave none.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) signature: Option<String>,
}

impl Heard {
    pub(super) fn say(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Text(said)) if said.signature.is_none() => said.text.push_str(&text),
            _ => self.parts.push(Part::Text(Signed { text: text.clone(), signature: None })),
        }
        self.begun = true;
        self.fresh.push_back(Delta::Text(text));
    }

    /// What must be sent back with its signature, and therefore apart from what was said before.
    pub(super) fn say_signed(&mut self, text: String, signature: String) {
        self.parts.push(Part::Text(Signed { text: text.clone(), signature: Some(signature) }));
        if !text.is_empty() {
            self.begun = true;
            self.fresh.push_back(Delta::Text(text));
        }
    }

    pub(super) fn think(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Thought(thought)) if thought.signature.is_none() => thought.text.push_str(&text),
            _ => self.parts.push(Part::Thought(Signed { text: text.clone(), signature: None })),
        }
        self.begun = true;
        self.fresh.push_back(Delta::Thinking(text));
    }

    /// The call that a provider counts or names so, begun where there is none yet; nothing where there are too many.
    pub(super) fn call(&mut self, number: Option<u64>, id: &str) -> Option<&mut Called> {
        self.begun = true;
        let known = self.numbers.iter().rev().find(|(known, _)| *known == number).map(|(_, at)| *at);
        // Some servers give one number to all calls; then only the names differ.
        let same = |at: &usize| match &self.parts[*at] {
            Part::Call(call) => id.is_empty() || call.id.is_empty() || call.id == id,
            _ => false,
        };
        let at = match known.filter(same) {
            Some(at) => at,
            None if self.numbers.len() >= MAX_CALLS => return None,
            None => {
                self.numbers.push((number, self.parts.len()));
                self.parts.push(Part::Call(Called { id: id.to_owned(), ..Called::default() }));
                self.parts.len() - 1
            }
        };
        match &mut self.parts[at] {
            Part::Call(call) => Some(call),
            _ => None,
        }
    }

    /// A call that comes as a whole.
    pub(super) fn push_call(&mut self, call: Called) {
        let number = u64::try_from(self.numbers.len()).ok();
        if let Some(place) = self.call(number, &call.id) {
            *place = call;
        }
    }

    /// Whether there is nothing in it for anybody.
    pub(super) fn is_empty(&self) -> bool {
        let says = |part: &Part| match part {
            Part::Text(said) => !said.text.is_empty(),
            Part::Call(_) => true,
            Part::Thought(_) | Part::Sealed(_) => false,
        };
        !self.parts.iter().any(says)
    }

    /// How much was said, in bytes.
    pub(super) fn length(&self) -> usize {
        self.parts.iter().map(|part| if let Part::Text(said) = part { said.text.len() } else { 0 }).sum()
    }

    /// Tells what is known only at the end: what it cost, the calls, and what this model wants to see again.
    pub(super) fn conclude(&mut self, by: &str) {
        if self.usage != Usage::default() {
            self.fresh.push_back(Delta::Usage(self.usage));
        }
        let kept = Kept { by: by.to_owned(), parts: std::mem::take(&mut self.parts) };
        let calls = kept.calls().map(|call| Call { name: call.name.clone(), arguments: call.arguments.clone() });
        self.fresh.extend(calls.map(Delta::Call));
        self.fresh.push_back(Delta::Memo(Memo(Arc::new(kept))));
    }
}

impl Kept {
    pub(super) fn calls(&self) -> impl Iterator<Item = &Called> {
        self.parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None })
    }
}

impl Called {
    /// A call of another model.
    pub(super) fn of(call: &Call) -> Self {
        Self { name: call.name.clone(), arguments: call.arguments.clone(), ..Self::default() }
    }

    /// The arguments for those who insist on an object. What is none was an error, and the answer to it says so.
    pub(super) fn object(&self) -> Object<'_> {
        match serde_json::from_str::<&RawValue>(&self.arguments) {
            Ok(given) if given.get().starts_with('{') => Object::Given(given),
            _ => Object::Empty {},
        }
    }

    /// The arguments for those who want a text, which some of them read as JSON.
    pub(super) fn json(&self) -> Cow<'_, str> {
        if serde_json::from_str::<&RawValue>(&self.arguments).is_ok() {
            return Cow::Borrowed(&self.arguments);
        }
        match self.arguments.trim() {
            "" => Cow::Borrowed("{}"),
            broken => Cow::Owned(serde_json::Value::from(broken).to_string()),
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Object<'a> {
    Given(&'a RawValue),
    Empty {},
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_sent_back_in_a_form_that_is_taken() {
        // MODEL-2
        let cases = [
            (r#"{"a": 1}"#, r#"{"a": 1}"#, r#"{"a": 1}"#),
            ("", "{}", "{}"),
            ("[1]", "{}", "[1]"),
            (r#"{"a"#, "{}", r#""{\"a""#),
        ];
        for (arguments, object, json) in cases {
            let call = Called { arguments: arguments.to_owned(), ..Called::default() };
            assert_eq!(serde_json::to_string(&call.object()).unwrap(), object, "{arguments}");
            assert_eq!(call.json(), json, "{arguments}");
        }
    }

    #[test]
    fn calls_are_told_apart_by_number_and_by_name() {
        let mut heard = Heard::default();
        for (number, id) in
            [(Some(7), "a"), (Some(u64::MAX), "b"), (Some(7), ""), (Some(7), "c"), (None, "d"), (None, "")]
        {
            heard.call(number, id).unwrap().arguments.push_str(id);
        }
        let ids: Vec<_> =
            heard.parts.iter().map(|part| if let Part::Call(call) = part { &*call.id } else { "" }).collect();
        assert_eq!(ids, ["a", "b", "c", "d"]);
        for number in 0..10_000 {
            heard.call(Some(number), "x");
        }
        assert_eq!(heard.parts.len(), MAX_CALLS);
    }
}
