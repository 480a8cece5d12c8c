//! The format of a dialogue. `tests/dialogues/README.md` describes it.

use std::collections::BTreeMap;

use jiff::civil::DateTime;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Dialogue {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) now: DateTime,
    #[serde(default)]
    pub(super) setup: Setup,
    pub(super) messages: Vec<DialogueMessage>,
}

/// The data of the user before the first message.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Setup {
    #[serde(default)]
    pub(super) tasks: Vec<Map<String, Value>>,
    #[serde(default)]
    pub(super) reminders: Vec<Map<String, Value>>,
    #[serde(default)]
    pub(super) agents: Vec<String>,
    #[serde(default)]
    pub(super) schedules: Vec<SetupSchedule>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetupSchedule {
    pub(super) name: String,
    pub(super) agent_id: String,
    pub(super) cron_expression: String,
    #[serde(default)]
    pub(super) input: String,
    #[serde(default)]
    pub(super) paused: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DialogueMessage {
    pub(super) say: String,
    pub(super) now: Option<DateTime>,
    pub(super) expect: Expectation,
}

/// Every change of the stored data that the message must lead to, and parts of the answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expectation {
    #[serde(default)]
    pub(super) added: Vec<ExpectedTask>,
    #[serde(default)]
    pub(super) changed: BTreeMap<String, Map<String, Value>>,
    #[serde(default)]
    pub(super) completed: Vec<String>,
    #[serde(default)]
    pub(super) reopened: Vec<String>,
    #[serde(default)]
    pub(super) removed: Vec<String>,
    #[serde(default)]
    pub(super) rings: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub(super) runs: Vec<ExpectedRun>,
    #[serde(default)]
    pub(super) cancelled_runs: Vec<String>,
    #[serde(default)]
    pub(super) schedules_added: Vec<ExpectedSchedule>,
    #[serde(default)]
    pub(super) schedules_changed: BTreeMap<String, ScheduleChange>,
    #[serde(default)]
    pub(super) schedules_removed: Vec<String>,
    #[serde(default)]
    pub(super) answer: Vec<String>,
    #[serde(default)]
    pub(super) answer_not: Vec<String>,
    #[serde(default)]
    pub(super) asks: bool,
}

/// `None` in `description` and `recurrence` means that the field is not compared, `Some(None)` that it is empty.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedTask {
    pub(super) title: String,
    pub(super) due_date: Option<String>,
    pub(super) priority: Option<String>,
    #[serde(default)]
    pub(super) tags: Vec<String>,
    #[serde(default, deserialize_with = "present")]
    pub(super) recurrence: Option<Option<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) description: Option<Option<String>>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedRun {
    pub(super) agent: String,
    pub(super) input: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedSchedule {
    pub(super) agent: String,
    pub(super) next: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScheduleChange {
    pub(super) next: Option<String>,
    pub(super) paused: Option<bool>,
}
