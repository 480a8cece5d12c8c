//! Accumulates the reply of a model from its streamed pieces, for all wires.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{ModelUsage, ProviderState, ReplyDelta, RequestedCall};

/// The maximum number of calls in one reply. Further calls are ignored.
const MAX_CALLS: usize = 128;

/// The reply so far.
#[derive(Default)]
pub(super) struct ReplyAccumulator {
    /// In the order of arrival.
    pub(super) parts: Vec<ReplyPart>,
    /// Deltas that the stream has not yielded yet.
    pub(super) deltas: VecDeque<ReplyDelta>,
    pub(super) usage: ModelUsage,
    /// Set after the first text, thought or call.
    pub(super) begun: bool,
    /// Set after a stop reason. The reply is then complete even if the end marker is missing.
    pub(super) stopped: bool,
    /// Set after the end marker of the provider, or at the end of the answer after a stop reason.
    pub(super) ended: bool,
    /// The call numbers of the provider, each with the index of its part.
    call_numbers: Vec<(Option<u64>, usize)>,
}

/// A complete reply, in the form in which the provider wants it back.
pub(super) struct RecordedReply {
    /// The label of the model.
    pub(super) model: String,
    pub(super) parts: Vec<ReplyPart>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ReplyPart {
    Text(SignedText),
    Thought(SignedText),
    /// An encrypted thought.
    RedactedThought(String),
    Call(CallPart),
}

/// Text with the signature that some providers require when it is sent back.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SignedText {
    pub(super) text: String,
    pub(super) signature: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CallPart {
    /// Empty if the provider sent no id.
    pub(super) id: String,
    pub(super) name: String,
    /// The text that the model sent. It may be invalid JSON.
    pub(super) arguments: String,
    pub(super) signature: Option<String>,
}

impl ReplyAccumulator {
    /// Adds text to the last part if that is unsigned text, else as a new part. Adds a delta and marks the reply as
    /// begun. Ignores empty text.
    pub(super) fn push_text(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(ReplyPart::Text(last)) if last.signature.is_none() => last.text.push_str(&text),
            _ => self.parts.push(ReplyPart::Text(SignedText { text: text.clone(), signature: None })),
        }
        self.begun = true;
        self.deltas.push_back(ReplyDelta::Text(text));
    }

    /// Adds signed text. It becomes a separate part because it must be sent back with its signature. An empty text adds
    /// a part, but no delta.
    pub(super) fn push_signed_text(&mut self, text: String, signature: String) {
        self.parts.push(ReplyPart::Text(SignedText { text: text.clone(), signature: Some(signature) }));
        if !text.is_empty() {
            self.begun = true;
            self.deltas.push_back(ReplyDelta::Text(text));
        }
    }

    /// Adds reasoning to the last part if that is an unsigned thought, else as a new part. Adds a delta and marks the
    /// reply as begun. Ignores empty text.
    pub(super) fn push_thought(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(ReplyPart::Thought(thought)) if thought.signature.is_none() => thought.text.push_str(&text),
            _ => self.parts.push(ReplyPart::Thought(SignedText { text: text.clone(), signature: None })),
        }
        self.begun = true;
        self.deltas.push_back(ReplyDelta::Thinking(text));
    }

    /// Returns the last call with this number. Creates a call with the id if there is none, or if both have an id and
    /// the ids differ. Calls without a number share the number `None`. Returns `None` if a new call would exceed
    /// [`MAX_CALLS`]. Marks the reply as begun in all cases.
    pub(super) fn call_mut(&mut self, number: Option<u64>, id: &str) -> Option<&mut CallPart> {
        self.begun = true;
        let known = self.call_numbers.iter().rev().find(|(known, _)| *known == number).map(|(_, at)| *at);
        // Some servers give all calls the same number. Then only the ids differ.
        let same = |at: &usize| match &self.parts[*at] {
            ReplyPart::Call(call) => id.is_empty() || call.id.is_empty() || call.id == id,
            _ => false,
        };
        let at = match known.filter(same) {
            Some(at) => at,
            None if self.call_numbers.len() >= MAX_CALLS => return None,
            None => {
                self.call_numbers.push((number, self.parts.len()));
                self.parts.push(ReplyPart::Call(CallPart { id: id.to_owned(), ..CallPart::default() }));
                self.parts.len() - 1
            }
        };
        match &mut self.parts[at] {
            ReplyPart::Call(call) => Some(call),
            _ => None,
        }
    }

    /// Adds a complete call. Ignores it if there are too many calls.
    pub(super) fn push_call(&mut self, call: CallPart) {
        let number = u64::try_from(self.call_numbers.len()).ok();
        if let Some(slot) = self.call_mut(number, &call.id) {
            *slot = call;
        }
    }

    /// Returns `true` if the reply has neither text nor calls. Thoughts do not count.
    pub(super) fn is_empty(&self) -> bool {
        let has_content = |part: &ReplyPart| match part {
            ReplyPart::Text(part) => !part.text.is_empty(),
            ReplyPart::Call(_) => true,
            ReplyPart::Thought(_) | ReplyPart::RedactedThought(_) => false,
        };
        !self.parts.iter().any(has_content)
    }

    /// Returns the length of the text in bytes.
    pub(super) fn text_length(&self) -> usize {
        self.parts.iter().map(|part| if let ReplyPart::Text(part) = part { part.text.len() } else { 0 }).sum()
    }

    /// Ends the reply: adds the deltas for the usage if any was counted, then for the calls, then for the provider
    /// state. The provider state takes the parts, so the reply is empty afterwards. `model` is the label of the model.
    pub(super) fn finish(&mut self, model: &str) {
        if self.usage != ModelUsage::default() {
            self.deltas.push_back(ReplyDelta::Usage(self.usage));
        }
        let reply = RecordedReply { model: model.to_owned(), parts: std::mem::take(&mut self.parts) };
        let calls =
            reply.calls().map(|call| RequestedCall { name: call.name.clone(), arguments: call.arguments.clone() });
        self.deltas.extend(calls.map(ReplyDelta::Call));
        self.deltas.push_back(ReplyDelta::ProviderState(ProviderState(Arc::new(reply))));
    }
}

impl RecordedReply {
    /// Returns the calls of the reply.
    pub(super) fn calls(&self) -> impl Iterator<Item = &CallPart> {
        self.parts.iter().filter_map(|part| if let ReplyPart::Call(call) = part { Some(call) } else { None })
    }
}

impl CallPart {
    /// Converts a call of another model. The result has no id and no signature.
    pub(super) fn from_requested(call: &RequestedCall) -> Self {
        Self { name: call.name.clone(), arguments: call.arguments.clone(), ..Self::default() }
    }

    /// Returns the arguments for providers that require an object. Invalid arguments become an empty object. The result
    /// of the call reports the error.
    pub(super) fn arguments_object(&self) -> ArgumentsObject<'_> {
        match serde_json::from_str::<&RawValue>(&self.arguments) {
            Ok(raw) if raw.get().starts_with('{') => ArgumentsObject::Raw(raw),
            _ => ArgumentsObject::Empty {},
        }
    }

    /// Returns the arguments as text for providers that may parse it as JSON. Valid JSON of any type is unchanged.
    /// Blank arguments become `{}`, and invalid ones a JSON string.
    pub(super) fn arguments_json(&self) -> Cow<'_, str> {
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
pub(super) enum ArgumentsObject<'a> {
    Raw(&'a RawValue),
    Empty {},
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_arguments_are_converted_for_the_provider() {
        // MODEL-2
        let cases = [
            (r#"{"a": 1}"#, r#"{"a": 1}"#, r#"{"a": 1}"#),
            ("", "{}", "{}"),
            ("[1]", "{}", "[1]"),
            (r#"{"a"#, "{}", r#""{\"a""#),
        ];
        for (arguments, object, json) in cases {
            let call = CallPart { arguments: arguments.to_owned(), ..CallPart::default() };
            assert_eq!(serde_json::to_string(&call.arguments_object()).unwrap(), object, "{arguments}");
            assert_eq!(call.arguments_json(), json, "{arguments}");
        }
    }

    #[test]
    fn calls_are_distinguished_by_number_and_id() {
        let mut reply = ReplyAccumulator::default();
        for (number, id) in
            [(Some(7), "a"), (Some(u64::MAX), "b"), (Some(7), ""), (Some(7), "c"), (None, "d"), (None, "")]
        {
            reply.call_mut(number, id).unwrap().arguments.push_str(id);
        }
        let ids: Vec<_> =
            reply.parts.iter().map(|part| if let ReplyPart::Call(call) = part { &*call.id } else { "" }).collect();
        assert_eq!(ids, ["a", "b", "c", "d"]);
        for number in 0..10_000 {
            reply.call_mut(Some(number), "x");
        }
        assert_eq!(reply.parts.len(), MAX_CALLS);
    }
}
