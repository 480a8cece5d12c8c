//! `[[schedules]]`: schedules as the file has them, in the fields of the API. Whether their agents are there is seen when they
//! are due: one may have been added over the API.

use jiff::tz::TimeZone;
use model::schedule::Draft;
use scheduler::{Checked, check_written};
use serde_json::Value;

use super::entries::About;
use super::read::Reader;

pub(crate) const SECTION: &str = "schedules";
/// In messages: what one is, and what is wrong where they are none.
pub(crate) const ABOUT: About =
    About { section: SECTION, one: "a schedule", wrong: "every schedule is a [[schedules]] of its own, with a name" };

/// The schedules, each well written; `zone` is that of those that name none.
pub(crate) fn read(reader: &mut Reader<'_>, zone: &TimeZone) -> Vec<Checked> {
    let layers = reader.layers;
    let mut schedules: Vec<Checked> = Vec::new();
    for entry in &layers.schedules {
        let draft = model::json::from_value::<Draft>(Value::Object(entry.fields.clone()));
        match draft.and_then(|draft| check_written(draft, zone)) {
            Ok(schedule) => {
                let name = schedule.settings.name.to_lowercase();
                if schedules.iter().any(|other| other.settings.name.to_lowercase() == name) {
                    let message = format!("{}.name is taken by another schedule", entry.title);
                    reader.mistake_at(entry.origin_of("name"), message);
                }
                schedules.push(schedule);
            }
            Err(mut invalid) => {
                for unknown in invalid.violations.iter_mut().filter(|violation| violation.rule == "unknown") {
                    unknown.message.push_str(&suggestion(&unknown.field));
                }
                reader.mistakes.extend(entry.mistakes(invalid));
            }
        }
    }
    schedules
}

const FIELDS: [&str; 15] = [
    "name",
    "agent_id",
    "cron_expression",
    "every",
    "at",
    "time_zone",
    "input_parameters",
    "overlap",
    "missed",
    "missed_window",
    "jitter",
    "start_at",
    "end_at",
    "pause_after_failures",
    "enabled",
];
/// What others call a field.
const ALIASES: [(&str, &str); 8] = [
    ("cron", "cron_expression"),
    ("schedule", "cron_expression"),
    ("interval", "every"),
    ("agent", "agent_id"),
    ("tz", "time_zone"),
    ("timezone", "time_zone"),
    ("input", "input_parameters"),
    ("parameters", "input_parameters"),
];

/// What an unknown field may have been meant for.
fn suggestion(name: &str) -> String {
    let name = name.to_lowercase();
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, known)| *known);
    let near = FIELDS.iter().map(|known| (strsim::damerau_levenshtein(&name, known), *known)).min();
    let near = near.filter(|(distance, _)| *distance <= 3).map(|(_, known)| known);
    alias.or(near).map(|known| format!("; did you mean {known}?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_those_of_a_draft() {
        let draft = serde_json::to_value(Draft::default()).unwrap();
        assert_eq!(draft.as_object().unwrap().keys().collect::<Vec<_>>(), FIELDS);
        assert_eq!(suggestion("cron"), "; did you mean cron_expression?");
        assert_eq!(suggestion("overlaps"), "; did you mean overlap?");
        assert_eq!(suggestion("colour"), "");
    }
}
