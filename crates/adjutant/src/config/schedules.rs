//! `[[schedules]]`: schedules as the file has them, in the fields of the API. Whether their agents are there is seen when they
//! are due: one may have been added over the API.

use jiff::tz::TimeZone;
use model::schedule::Draft;
use scheduler::{Checked, check_written};
use serde_json::Value;

use super::read::Reader;

pub(crate) const SECTION: &str = "schedules";

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
            Err(invalid) => reader.mistakes.extend(entry.mistakes(invalid)),
        }
    }
    schedules
}
