//! The guarantees of the runtime for each reply of a language model (TRUST-1, TRUST-2, AGENT-6, AGENT-7).

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use model::words::{clock_words, recurrence_words};
use serde_json::Value;

use super::changes::{State, title};
use super::model_text::{CONTINUED, FALSE_CLAIMS, TextStyle};

/// One reply of the language model.
pub(super) struct Reply<'a> {
    pub(super) before: &'a State,
    pub(super) after: &'a State,
    pub(super) answer: &'a str,
    /// The final text of the model, if it was asked.
    pub(super) text: Option<&'a str>,
    pub(super) style: TextStyle,
    /// Set if the message confirmed a question.
    pub(super) is_confirmation: bool,
    /// Set if the answer asks for a confirmation.
    pub(super) asks: bool,
    pub(super) zone: &'a TimeZone,
}

impl Reply<'_> {
    /// Returns the broken guarantees.
    pub(super) fn violations(&self) -> Vec<String> {
        let mut violations = Vec::new();
        let is_id = |word: &str| word.len() == 36 && word.chars().filter(|c| *c == '-').count() == 4;
        if self.answer.split(|c: char| !c.is_ascii_hexdigit() && c != '-').any(is_id) {
            violations.push("the answer contains an id".to_owned());
        }
        if self.answer.contains("{\"") {
            violations.push("the answer contains JSON".to_owned());
        }
        self.unnamed_values(&mut violations);
        self.uncorrected_claims(&mut violations);
        self.removals(&mut violations);
        if self.style == TextStyle::Good
            && !self.asks
            && let Some(text) = self.text
            && self.answer.trim_end() != text.trim_end()
        {
            violations.push(format!("a true text was changed: {text}"));
        }
        violations
    }

    fn has_changed(&self) -> bool {
        let State { tasks, executions, schedules, rings } = self.before;
        let after = self.after;
        let is_same =
            tasks == &after.tasks && schedules == &after.schedules && executions.len() == after.executions.len();
        !(is_same && rings == &after.rings)
    }

    /// Each value of a task that has changed is named in the answer, and so is its title.
    fn unnamed_values(&self, violations: &mut Vec<String>) {
        let lower = self.answer.to_lowercase();
        for (id, task) in &self.after.tasks {
            let old = self.before.tasks.get(id);
            let mut missing = |what: &str| violations.push(format!("'{}': {what} is not named", title(task)));
            let has_changed = |field: &str| match old {
                Some(old) => old[field] != task[field],
                None => !task[field].is_null() && task[field] != "medium" && task[field] != Value::Array(Vec::new()),
            };
            let is_known = ["title", "due_date", "recurrence", "priority", "tags", "status", "description"];
            // The question before a confirmation has named the tasks.
            if !self.is_confirmation
                && old != Some(task)
                && is_known.into_iter().any(has_changed)
                && !lower.contains(&title(task).to_lowercase())
            {
                missing("the title");
            }
            if has_changed("due_date") && !self.names_due(&task["due_date"], &lower) {
                missing("the due date");
            }
            let rule = task["recurrence"].as_str();
            if has_changed("recurrence")
                && rule.is_some_and(|rule| !lower.contains(&recurrence_words(rule).to_lowercase()))
            {
                missing("the repetition");
            }
            let priority = task["priority"].as_str().unwrap_or_default();
            // A value that an undo has removed is not named.
            let is_undone = lower.contains("undone");
            if has_changed("priority")
                && !(is_undone && priority == "medium")
                && !lower.contains(&format!("{priority} priority"))
            {
                missing("the priority");
            }
            let mut tags = task["tags"].as_array().into_iter().flatten().filter_map(Value::as_str);
            if has_changed("tags") && !tags.all(|tag| lower.contains(&tag.to_lowercase())) {
                missing("a tag");
            }
            if has_changed("description")
                && task["description"].as_str().is_some_and(|note| !lower.contains(&note.to_lowercase()))
            {
                missing("the note");
            }
            self.unnamed_rings(id, task, &lower, violations);
        }
    }

    /// A new ring time of a task is named, unless it follows from the due date or from an older ring.
    fn unnamed_rings(&self, id: &str, task: &Value, lower: &str, violations: &mut Vec<String>) {
        let rings = |state: &State| state.rings.get(id).cloned().unwrap_or_default();
        let before = rings(self.before);
        let due = task["due_date"].as_str().and_then(|due| due.parse::<Timestamp>().ok());
        let first_new = rings(self.after).into_iter().find(|at| !before.contains(at));
        let is_repeated = !task["recurrence"].is_null() || before.len() == 3;
        if let Some(at) = first_new.filter(|at| Some(*at) != due && !is_repeated) {
            let local = at.to_zoned(self.zone.clone()).datetime();
            if !names_day(local.date(), lower) || !names_time(local.time(), lower) {
                violations.push(format!("'{}': the reminder at {local} is not named", title(task)));
            }
        }
    }

    fn names_due(&self, due: &Value, lower: &str) -> bool {
        let Some(due) = due.as_str() else { return lower.contains("no due date") || lower.contains("undone") };
        match (due.parse::<Timestamp>(), due.parse::<Date>()) {
            (Ok(at), _) => {
                let local: DateTime = at.to_zoned(self.zone.clone()).datetime();
                names_day(local.date(), lower) && names_time(local.time(), lower)
            }
            (_, Ok(day)) => names_day(day, lower),
            _ => false,
        }
    }

    /// Each claim that no call made is contradicted.
    fn uncorrected_claims(&self, violations: &mut Vec<String>) {
        if self.asks {
            return;
        }
        let lower = self.answer.to_lowercase();
        for (claim, correction) in FALSE_CLAIMS {
            let is_corrected = if self.has_changed() {
                lower.contains(correction)
            } else {
                lower.contains("nothing was changed just now")
            };
            let rings = claim.contains("reminder") && self.has_reminder();
            if self.answer.contains(claim) && !is_corrected && !rings {
                violations.push(format!("not contradicted: {claim}"));
            }
        }
        let claims_nothing = !lower.contains("done.") && !lower.contains("i've");
        if self.style == TextStyle::Good && claims_nothing && lower.contains("to be clear") {
            violations.push("a true answer was contradicted".to_owned());
        }
    }

    /// Returns whether a task rings at a time that it did not ring before the message.
    fn has_reminder(&self) -> bool {
        self.after.rings.iter().any(|(id, times)| {
            let before = self.before.rings.get(id).cloned().unwrap_or_default();
            times.iter().any(|at| !before.contains(at))
        })
    }

    /// Tasks and schedules are only removed by a confirmation. The loop goes on after it.
    fn removals(&self, violations: &mut Vec<String>) {
        let is_removed = self.before.tasks.keys().any(|id| !self.after.tasks.contains_key(id))
            || self.before.schedules.keys().any(|id| !self.after.schedules.contains_key(id));
        let is_undone = self.answer.to_lowercase().contains("undone");
        let completed = self.after.tasks.iter().filter(|(id, task)| {
            task["status"] == "completed" && self.before.tasks.get(*id).is_some_and(|old| old["status"] != "completed")
        });
        if is_removed && !self.is_confirmation && !is_undone && completed.count() == 0 {
            violations.push("something was removed without a confirmation".to_owned());
        }
        if self.is_confirmation && self.has_changed() {
            match self.text {
                None => violations.push("the model did not get the result".to_owned()),
                Some(_) if !self.answer.contains(CONTINUED) => {
                    violations.push("the text of the model is missing".to_owned())
                }
                Some(_) => {}
            }
        }
    }
}

/// Returns whether a text in lower case names the day with its weekday: "fri 27 nov", or "friday, 27 november".
fn names_day(day: Date, lower: &str) -> bool {
    let forms = ["%a %-d %b", "%A, %-d %B"];
    forms.into_iter().any(|form| lower.contains(&day.strftime(form).to_string().to_lowercase()))
}

fn names_time(time: Time, lower: &str) -> bool {
    let compact = lower.replace(' ', "");
    compact.contains(&clock_words(time)) || compact.contains(&time.strftime("%-I:%M%P").to_string())
}
