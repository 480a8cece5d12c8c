//! The day and the time of day of due dates, in the time zone of the user.

use jiff::civil::{Date, Time};

/// Returns the day of a task's due date in the time zone of the user, and its time of day.
pub(super) fn due_parts(due: &str, zone: &jiff::tz::TimeZone) -> Option<(Date, Option<Time>)> {
    let due = model::due::DueDate::parse("due_date", due, zone).ok()?;
    Some(match due {
        model::due::DueDate::Day(day) => (day, None),
        model::due::DueDate::Moment { at, .. } => {
            let local = at.to_zoned(zone.clone()).datetime();
            (local.date(), Some(local.time()))
        }
    })
}

/// Moves a bare time to the half of the day of the old one: after 8pm, "7:30" is 7:30pm. A time that would then be at
/// night is in the other half.
pub(super) fn keep_half_of_day(new: Time, old: Option<Time>) -> Time {
    if new.hour() > 12 || new.hour() == 0 {
        return new;
    }
    let Some(old) = old else { return new };
    let hour = new.hour() % 12;
    let at = |hour: i8| Time::new(hour, new.minute(), new.second(), 0).unwrap_or(new);
    let same = if old.hour() >= 12 { hour + 12 } else { hour };
    if same < 6 && old.hour() >= 6 { at(hour + 12) } else { at(same) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_times_keep_the_half_of_the_day() {
        // TRUST-3
        let time = |text: &str| text.parse::<Time>().unwrap();
        for (new, old, expected) in [
            ("07:30", "20:00", "19:30"),
            ("10:15", "09:00", "10:15"),
            ("03:30", "14:00", "15:30"),
            ("01:00", "11:00", "13:00"),
            ("18:00", "09:00", "18:00"),
        ] {
            assert_eq!(keep_half_of_day(time(new), Some(time(old))), time(expected), "{new} after {old}");
        }
    }
}
