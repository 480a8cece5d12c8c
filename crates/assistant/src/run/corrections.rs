//! Corrects claims of a language model that no tool carried out (TRUST-2).

use jiff::civil::Time;
use serde_json::Value;
use tools::ToolKind;
use understand::Intent;

use super::TurnLoop;
use super::claims::{Claim, ClaimKind, claims, plain_quotes};
use super::named_values::times_in;
use super::read_back::StoredChange;
use crate::wording;

/// Quoted words that are values and no titles.
const VALUES: [&str; 9] = ["done", "complete", "completed", "finished", "pending", "open", "high", "low", "urgent"];

impl TurnLoop<'_, '_> {
    /// Adds a line to the reply of a provider model. If the model claims a change and no call changed anything, the line
    /// says that nothing was changed. Otherwise it names the values of the changed tasks that the reply does not name,
    /// and contradicts each claim that no call made.
    pub(super) fn correct_claims(&mut self) {
        let text = self.filter.text().get(self.preface..).unwrap_or_default().to_owned();
        if !self.changed {
            self.correct_without_changes(&text);
            return;
        }
        let changes = self.all_stored_changes();
        for line in self.unnamed_changes(&text, &changes).into_iter().chain(self.unmade_claims(&text, &changes)) {
            self.add_line(&line);
        }
    }

    /// Adds that nothing was changed if the text claims a change. The description of a state that the user asked about
    /// is no claim: an earlier turn may have caused it.
    pub(super) fn correct_without_changes(&mut self, text: &str) {
        let is_lookup = self.is_lookup();
        if claims(text).iter().any(|claim| !(claim.is_state && is_lookup)) {
            self.add_line(&wording::claim_corrected());
        }
    }

    /// Returns whether the user only asked a question.
    fn is_lookup(&self) -> bool {
        let commands = &self.request.utterance.commands;
        let all_are = |intents: &[Intent]| commands.iter().all(|command| intents.contains(&command.intent));
        let lists = [Intent::ListTasks, Intent::ListReminders];
        let unclear = [Intent::Unknown, Intent::ClarificationNeeded, Intent::ListTasks, Intent::ListReminders];
        !commands.is_empty() && all_are(&lists) || self.request.message.trim_end().ends_with('?') && all_are(&unclear)
    }

    /// Returns the contradictions of claims that no successful call made. The results of external tools have no known
    /// form, so nothing is contradicted after they changed something.
    fn unmade_claims(&self, text: &str, changes: &[StoredChange]) -> Vec<String> {
        let successful = self.records.iter().filter(|record| record.error.is_none());
        let done = successful.filter_map(|record| {
            let spec = self.specs.iter().find(|spec| spec.name == record.tool_name)?;
            (!spec.read_only).then_some((spec.kind, record))
        });
        let done: Vec<_> = done.collect();
        let Some(kinds) = done.iter().map(|(kind, _)| *kind).collect::<Option<Vec<ToolKind>>>() else {
            return Vec::new();
        };
        let mut known = Vec::new();
        for (_, record) in &done {
            collect_texts(&record.parameters, &mut known);
            collect_texts(&record.result, &mut known);
        }
        let mut lines = Vec::new();
        for claim in claims(text) {
            let line = match self.is_made(&claim, &kinds, changes) {
                true => unmade_title(&claim, &known),
                false => unmade_title(&claim, &known).or(Some(wording::kind_corrected(claim.kind))),
            };
            lines.extend(line.filter(|line| !lines.contains(line)));
        }
        lines
    }

    /// Returns whether a call of a suitable kind made the claimed change.
    fn is_made(&self, claim: &Claim, kinds: &[ToolKind], changes: &[StoredChange]) -> bool {
        use ToolKind as K;
        let has = |wanted: &[K]| kinds.iter().any(|kind| wanted.contains(kind));
        let updates = has(&[K::Update, K::UpdateSeveral]);
        match claim.kind {
            ClaimKind::Other => true,
            ClaimKind::Addition => {
                updates || has(&[K::Add, K::Remind, K::Undo, K::ScheduleAgent, K::RunAgent, K::RunSchedule])
            }
            ClaimKind::Completion => updates || has(&[K::Complete, K::CompleteSeveral]),
            ClaimKind::Deletion => {
                updates || has(&[K::Delete, K::DeleteSeveral, K::Undo, K::CancelReminder, K::DeleteSchedule])
            }
            ClaimKind::Reminder => {
                let rings: Vec<Vec<Time>> =
                    changes.iter().filter_map(|change| change.ring_times(&self.request.now)).collect();
                let claimed = times_in(&claim.sentence);
                let rings_then = claimed.is_empty() || rings.iter().flatten().any(|time| claimed.contains(time));
                !rings.is_empty() && rings_then
            }
        }
    }
}

/// Returns the contradiction of a claim about a quoted title that no call has touched. `known` has the texts of all
/// changes in lower case.
fn unmade_title(claim: &Claim, known: &[String]) -> Option<String> {
    let verb = match claim.kind {
        ClaimKind::Addition => "added",
        ClaimKind::Completion => "marked as done",
        ClaimKind::Deletion => "deleted",
        ClaimKind::Reminder | ClaimKind::Other => return None,
    };
    let is_known = |quoted: &str| {
        let quoted = quoted.to_lowercase();
        let quoted = quoted.trim_matches(|c: char| !c.is_alphanumeric());
        quoted.is_empty()
            || VALUES.contains(&quoted)
            || known.iter().any(|text| text.contains(quoted) || text.len() > 3 && quoted.contains(text.as_str()))
    };
    let title = claim.quoted.iter().find(|quoted| !is_known(quoted))?;
    Some(wording::title_corrected(title, verb))
}

/// Adds all texts of a value, in lower case.
fn collect_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(plain_quotes(&text.to_lowercase())),
        Value::Array(list) => list.iter().for_each(|value| collect_texts(value, texts)),
        Value::Object(fields) => fields.values().for_each(|value| collect_texts(value, texts)),
        _ => {}
    }
}
