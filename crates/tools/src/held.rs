//! Held calls: tool calls that wait for a confirmation. A held call is bound to the tasks that it was resolved to. Only
//! its confirmation phrase releases it.

mod words;

use std::collections::BTreeSet;

use crate::catalog::{
    DELETE_SCHEDULE, RESUME_SCHEDULE, RUN_AGENT, RUN_SCHEDULE, SCHEDULE_AGENT, UNDO, UPDATE_SCHEDULE,
};
use crate::{ToolArguments, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// All held calls of one message of the assistant. Stored only with that message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldCalls {
    /// The text that the user must enter to confirm the calls.
    pub phrase: String,
    #[serde(rename = "acts")]
    pub calls: Vec<HeldCall>,
    /// How often the question was repeated because the user agreed without the phrase.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeated: u8,
    /// How often the question stayed open over a message about something else.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub postponed: u8,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u8) -> bool {
    *count == 0
}

/// One held call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldCall {
    pub tool: String,
    /// The arguments with the resolved ids of the tasks.
    pub arguments: ToolArguments,
    /// Empty for a call without tasks as targets: of an external tool, of an agent or a schedule, or a change after
    /// foreign text.
    pub targets: Vec<CallTarget>,
    /// True if the call changes several tasks.
    pub bulk: bool,
    /// True if the user can exempt the tool from confirmations. Only set for tools of external servers, and never after
    /// foreign text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub can_allow: bool,
}

/// What a held call does to its targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldVerb {
    Delete,
    Complete,
    Change,
}

impl HeldVerb {
    /// Returns the word of the confirmation phrase.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Complete => "complete",
            Self::Change => "change",
        }
    }
}

/// A task that a held call changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallTarget {
    /// The id in the form of the server that stores the task. A UUID for our own tasks.
    pub id: Value,
    pub title: String,
}

/// The phrase that confirms the deletion of one task (S1).
pub const CONFIRM_DELETE_PHRASE: &str = "yes delete";
/// The maximum length of an argument in a question, in characters.
const MAX_SHOWN_CHARS: usize = 500;

impl HeldCalls {
    /// Creates the confirmation for a list of calls. Returns `None` if the list is empty. A call without targets has a
    /// phrase with its subject, such as "yes run builder" for an agent, or the name of its tool in lower case. With
    /// several calls, one of them without targets, the phrase is "yes run 2 actions". Otherwise, a bulk call adds the
    /// number of different tasks: "yes delete 3 tasks". The verb is that of all bulk calls. If they differ, it is
    /// "delete" if one of them deletes, else "change". For single deletions, the phrase is [`CONFIRM_DELETE_PHRASE`].
    pub fn new(calls: Vec<HeldCall>) -> Option<Self> {
        if calls.iter().any(HeldCall::is_opaque) {
            let phrase = match calls.as_slice() {
                [only] => only.opaque_phrase(),
                several => format!("yes run {} actions", several.len()),
            };
            return Some(Self { phrase, calls, repeated: 0, postponed: 0 });
        }
        let bulk: Vec<&HeldCall> = calls.iter().filter(|call| call.bulk).collect();
        let phrase = match bulk.as_slice() {
            [] if calls.is_empty() => return None,
            [] => CONFIRM_DELETE_PHRASE.to_owned(),
            _ => {
                let targets = calls.iter().flat_map(|call| &call.targets);
                let ids: BTreeSet<String> = targets.map(|target| target.id.to_string()).collect();
                let count = ids.len();
                let verb = match bulk.iter().map(|call| call.verb()).collect::<Vec<_>>().as_slice() {
                    [first, rest @ ..] if rest.iter().all(|verb| verb == first) => *first,
                    verbs if verbs.contains(&HeldVerb::Delete) => HeldVerb::Delete,
                    _ => HeldVerb::Change,
                };
                let verb = verb.as_str();
                format!("yes {verb} {count} {}", if count == 1 { "task" } else { "tasks" })
            }
        };
        Some(Self { phrase, calls, repeated: 0, postponed: 0 })
    }

    /// Parses held calls that a client stored. The client may have changed them, so the phrase is computed again, and
    /// the targets of each call must match its arguments. The counters are those of the client: they only decide how
    /// long the question stays open. Returns `None` if the value is invalid.
    pub fn from_untrusted(value: Value) -> Option<Self> {
        let held: Self = serde_json::from_value(value).ok()?;
        let Self { repeated, postponed, calls, .. } = held;
        if !calls.iter().all(HeldCall::is_consistent) {
            return None;
        }
        Some(Self { repeated, postponed, ..Self::new(calls)? })
    }

    /// Returns true if the message is the confirmation phrase. Ignores case, quotes and punctuation.
    pub fn is_confirmed_by(&self, message: &str) -> bool {
        normalize(message) == self.phrase
    }

    /// Returns the phrase that confirms a single call and exempts its tool from confirmations, such as "always allow
    /// send_mail". Returns `None` if there are several calls or the tool cannot be exempted.
    pub fn allow_phrase(&self) -> Option<String> {
        match self.calls.as_slice() {
            [call] if call.can_allow && call.is_opaque() => Some(normalize(&format!("always allow {}", call.tool))),
            _ => None,
        }
    }

    /// Returns true if the message is the phrase of [`Self::allow_phrase`].
    pub fn is_allowed_by(&self, message: &str) -> bool {
        self.allow_phrase().is_some_and(|phrase| normalize(message) == phrase)
    }
}

impl HeldCall {
    /// Returns true for a call without tasks as targets.
    pub fn is_opaque(&self) -> bool {
        self.targets.is_empty()
    }

    /// Returns true if this can be a held call of the tool: the tool has this name and is not read-only. A call with
    /// targets must be destructive.
    pub fn matches_spec(&self, spec: &ToolSpec) -> bool {
        spec.name == self.tool && !spec.read_only && (spec.destructive || self.is_opaque())
    }

    /// Describes a call without targets: "run the agent builder (input: tidy up)", "run send_mail (to: Ann)".
    pub fn describe(&self) -> String {
        let (action, subject) = match self.tool.as_str() {
            RUN_AGENT => ("run the agent ", Some("agent")),
            SCHEDULE_AGENT => ("schedule the agent ", Some("agent")),
            RESUME_SCHEDULE => ("resume the schedule ", Some("schedule")),
            UPDATE_SCHEDULE => ("change the schedule ", Some("schedule")),
            RUN_SCHEDULE => ("run the schedule ", Some("schedule")),
            DELETE_SCHEDULE => {
                return format!("delete the schedule '{}' with its history", self.text_argument("schedule"));
            }
            UNDO => return "undo the last change, which removes tasks for good".to_owned(),
            tool => {
                return match self.shown_arguments(None) {
                    arguments if arguments.is_empty() => format!("run {tool}"),
                    arguments => format!("run {tool} ({arguments})"),
                };
            }
        };
        let name = subject.map(|key| self.text_argument(key)).unwrap_or_default();
        match self.shown_arguments(subject) {
            arguments if arguments.is_empty() => format!("{action}{name}"),
            arguments => format!("{action}{name} ({arguments})"),
        }
    }

    /// Returns the confirmation phrase of a call without targets.
    fn opaque_phrase(&self) -> String {
        let phrase = match self.tool.as_str() {
            RUN_AGENT => format!("yes run {}", self.text_argument("agent")),
            SCHEDULE_AGENT => format!("yes schedule {}", self.text_argument("agent")),
            RESUME_SCHEDULE => format!("yes resume {}", self.text_argument("schedule")),
            UPDATE_SCHEDULE => format!("yes change {}", self.text_argument("schedule")),
            RUN_SCHEDULE => format!("yes run {}", self.text_argument("schedule")),
            DELETE_SCHEDULE => CONFIRM_DELETE_PHRASE.to_owned(),
            UNDO => "yes undo".to_owned(),
            tool => format!("yes run {tool}"),
        };
        normalize(&phrase)
    }

    fn text_argument(&self, key: &str) -> &str {
        self.arguments.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns what a call with targets does to them.
    pub fn verb(&self) -> HeldVerb {
        match self.tool.as_str() {
            tool if tool.starts_with("complete") => HeldVerb::Complete,
            tool if tool.starts_with("update") => HeldVerb::Change,
            _ => HeldVerb::Delete,
        }
    }

    /// Returns the arguments except one as a list: "to: Ann, subject: Hello". Each value is one line of at most
    /// [`MAX_SHOWN_CHARS`].
    fn shown_arguments(&self, except: Option<&str>) -> String {
        let shown = self.arguments.iter().filter(|(name, _)| Some(name.as_str()) != except).map(|(name, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let end = text.char_indices().nth(MAX_SHOWN_CHARS).map(|(end, _)| end);
            match end {
                Some(end) => format!("{name}: {}…", &text[..end]),
                None => format!("{name}: {text}"),
            }
        });
        shown.collect::<Vec<_>>().join(", ")
    }

    /// Returns true if the only argument has exactly the ids of the targets, in their order, and `bulk` matches its
    /// name. A single id is `task_id`, `todo_id` or `id`, and a list is `task_ids` or `todo_ids`. The entries of
    /// `updates` contain one id each. A call without targets may have any arguments, but must not be a bulk call.
    fn is_consistent(&self) -> bool {
        if self.is_opaque() {
            return !self.bulk;
        }
        let ids: Vec<&Value> = self.targets.iter().map(|target| &target.id).collect();
        let [(key, value)] = self.arguments.iter().collect::<Vec<_>>()[..] else { return false };
        match (key.as_str(), ids.as_slice()) {
            ("task_id" | "todo_id" | "id", [one]) => !self.bulk && value == *one,
            ("task_ids" | "todo_ids", several) => {
                self.bulk && value.as_array().is_some_and(|list| list.iter().eq(several.iter().copied()))
            }
            ("updates", several) => {
                let updates = value.as_array().map(Vec::as_slice).unwrap_or_default();
                self.bulk && updates.iter().map(update_id).eq(several.iter().copied().map(Some))
            }
            _ => false,
        }
    }

    /// Returns the same call for some of its targets, or `None` if none is left. A call without targets stays as it is.
    #[must_use]
    pub fn retain_targets(mut self, is_kept: impl Fn(&CallTarget) -> bool) -> Option<Self> {
        if self.is_opaque() {
            return Some(self);
        }
        let kept: Vec<bool> = self.targets.iter().map(is_kept).collect();
        let retain = |list: &mut Vec<Value>| {
            let mut kept = kept.iter();
            list.retain(|_| kept.next().copied().unwrap_or_default());
        };
        self.arguments.values_mut().filter_map(Value::as_array_mut).for_each(retain);
        let mut is_kept = kept.iter();
        self.targets.retain(|_| is_kept.next().copied().unwrap_or_default());
        Some(self).filter(|call| !call.is_opaque())
    }

    /// Creates a held call.
    pub fn with_targets(tool: &str, arguments: ToolArguments, targets: Vec<CallTarget>, bulk: bool) -> Self {
        Self { tool: tool.to_owned(), arguments, targets, bulk, can_allow: false }
    }

    /// Creates a held call for one task.
    pub fn single(tool: &str, key: &str, target: CallTarget) -> Self {
        let arguments = ToolArguments::from_iter([(key.to_owned(), json!(target.id))]);
        Self::with_targets(tool, arguments, vec![target], false)
    }

    /// Creates a held call without targets.
    pub(crate) fn opaque(tool: &str, arguments: ToolArguments) -> Self {
        Self::with_targets(tool, arguments, Vec::new(), false)
    }

    /// Creates a held call for several tasks.
    pub(crate) fn bulk(tool: &str, key: &str, targets: Vec<CallTarget>) -> Self {
        let ids: Vec<_> = targets.iter().map(|target| target.id.clone()).collect();
        let arguments = ToolArguments::from_iter([(key.to_owned(), json!(ids))]);
        Self::with_targets(tool, arguments, targets, true)
    }
}

/// Returns the id of an entry of `updates`.
fn update_id(update: &Value) -> Option<&Value> {
    ["task_id", "todo_id", "id"].into_iter().find_map(|key| update.get(key))
}

/// Returns the message in lower case without quotes, commas and end punctuation, with single spaces (AGENT-7).
pub fn normalize(message: &str) -> String {
    let is_quote = |c: char| matches!(c, '"' | '\'' | '`' | '“' | '”' | '„' | '‘' | '’' | '«' | '»' | ',');
    let plain: String = message.chars().filter(|c| !is_quote(*c)).collect::<String>().to_lowercase();
    // A question mark is kept, because a question is no confirmation.
    let words = plain.trim().trim_end_matches(['.', '!', '…']).split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn held(count: u128, bulk: bool) -> HeldCalls {
        let target = |n| CallTarget { id: json!(Uuid::from_u128(n)), title: "milk".into() };
        let call = match bulk {
            true => HeldCall::bulk("delete_tasks", "task_ids", (1..=count).map(target).collect()),
            false => HeldCall::single("delete_task", "task_id", target(1)),
        };
        HeldCalls::new(vec![call]).unwrap()
    }

    #[test]
    fn only_the_phrase_confirms() {
        // AGENT-7
        for yes in ["yes delete", "Yes, delete!", "'YES DELETE'", "“yes delete”.", "  yes   delete "] {
            assert!(held(1, false).is_confirmed_by(yes), "{yes}");
        }
        for no in [
            "yes",
            "delete",
            "yes delete it",
            "should I say yes delete",
            "yes, delete the milk",
            "yes delete 1 task",
            "yes delete?",
        ] {
            assert!(!held(1, false).is_confirmed_by(no), "{no}");
        }
        assert!(held(3, true).is_confirmed_by("Yes delete 3 tasks."));
        assert!(!held(3, true).is_confirmed_by("yes delete"));
        assert!(!held(3, true).is_confirmed_by("yes delete 4 tasks"));
    }

    #[test]
    fn untrusted_phrases_and_arguments_are_rejected() {
        // AGENT-7
        let mut value = serde_json::to_value(held(1, false)).unwrap();
        value["phrase"] = "ok".into();
        assert_eq!(HeldCalls::from_untrusted(value).unwrap().phrase, CONFIRM_DELETE_PHRASE);
        let mut other = serde_json::to_value(held(2, true)).unwrap();
        other["acts"][0]["targets"].as_array_mut().unwrap().pop();
        assert_eq!(HeldCalls::from_untrusted(other), None, "the question named one task, the arguments two");
        let mut other = serde_json::to_value(held(1, false)).unwrap();
        other["acts"][0]["arguments"]["title"] = "x".into();
        assert_eq!(HeldCalls::from_untrusted(other), None, "an argument that the question did not name");
        assert_eq!(HeldCalls::from_untrusted(json!({"phrase": "ok", "acts": []})), None);
        assert_eq!(HeldCalls::from_untrusted(json!("nonsense")), None);
    }

    #[test]
    fn calls_without_targets_name_their_subject() {
        // SEC-4
        let call = |tool: &str, arguments: Value| HeldCall::opaque(tool, arguments.as_object().cloned().unwrap());
        for (call, phrase, description) in [
            (
                call("run_agent", json!({"agent": "builder", "input": "rm -rf ."})),
                "yes run builder",
                "run the agent builder (input: rm -rf .)",
            ),
            (
                call("schedule_agent", json!({"agent": "b", "every": "1h"})),
                "yes schedule b",
                "schedule the agent b (every: 1h)",
            ),
            (
                call("resume_schedule", json!({"schedule": "Nightly, late"})),
                "yes resume nightly late",
                "resume the schedule Nightly, late",
            ),
            (call("undo_last_change", json!({})), "yes undo", "undo the last change, which removes tasks for good"),
            (call("send_Mail", json!({"to": "Ann"})), "yes run send_mail", "run send_Mail (to: Ann)"),
        ] {
            assert_eq!(call.describe(), description);
            let held = HeldCalls::new(vec![call]).unwrap();
            assert_eq!(held.phrase, phrase);
            assert!(held.is_confirmed_by(phrase));
        }
    }

    #[test]
    fn each_task_is_counted_once() {
        let target = |n| CallTarget { id: json!(Uuid::from_u128(n)), title: "milk".into() };
        let one = HeldCall::single("delete_task", "task_id", target(1));
        let all = HeldCall::bulk("delete_tasks", "task_ids", vec![target(1), target(2)]);
        assert_eq!(HeldCalls::new(vec![one, all]).unwrap().phrase, "yes delete 2 tasks");
    }
}
