//! Parses cron expressions, with error messages for people, and computes their civil times. This is the only file that
//! uses croner. Time zones are handled in [`super::zone`].

use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use model::Invalid;

/// A valid cron expression with at least one occurrence.
#[derive(Clone, Debug)]
pub(super) struct CronExpression {
    cron: croner::Cron,
    /// True if the times of day are fixed in the sense of Vixie cron: no field of the time of day starts with `*`.
    pub(super) is_fixed: bool,
}

/// The permitted values of one field.
struct CronField {
    name: &'static str,
    min: u32,
    max: u32,
    /// The names of the values from `min`, in upper case. Empty if only numbers are permitted.
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
/// The index of the day of the month in [`FIELDS`].
const DAY: usize = 3;
/// The index of the weekday in [`FIELDS`].
const WEEKDAY: usize = 5;
const FIELDS: [CronField; 6] = [
    CronField { name: "second", min: 0, max: 59, names: &[] },
    CronField { name: "minute", min: 0, max: 59, names: &[] },
    CronField { name: "hour", min: 0, max: 23, names: &[] },
    CronField { name: "day", min: 1, max: 31, names: &[] },
    CronField { name: "month", min: 1, max: 12, names: MONTHS },
    // Both 0 and 7 are Sunday.
    CronField { name: "weekday", min: 0, max: 7, names: WEEKDAYS },
];
const NICKNAMES: &[(&str, &str)] = &[
    ("@YEARLY", "0 0 1 1 *"),
    ("@ANNUALLY", "0 0 1 1 *"),
    ("@MONTHLY", "0 0 1 * *"),
    ("@WEEKLY", "0 0 * * 0"),
    ("@DAILY", "0 0 * * *"),
    ("@MIDNIGHT", "0 0 * * *"),
    ("@HOURLY", "0 * * * *"),
];

impl CronExpression {
    /// Parses five fields, six fields with the second first, or a nickname such as `@daily`, ignoring case and
    /// surrounding spaces. With five fields the second is 0. Fields may contain lists, ranges, steps, names, `?`, `L`,
    /// `W` and `#`. `?` means `*`, and both 0 and 7 are Sunday. If neither the day nor the weekday begins with `*`,
    /// either of them matches; otherwise both must match. Fails with a message for people if the nickname is unknown,
    /// the number of fields is wrong, a field is invalid, or no such day exists. `field` is the name of the input in
    /// the violation.
    pub(super) fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        let invalid = |message: String| Invalid::one(field, "cron", message);
        let upper = text.trim().to_uppercase();
        let plain = NICKNAMES.iter().find(|(name, _)| *name == upper).map_or(upper.as_str(), |(_, plain)| *plain);
        if plain.starts_with('@') {
            let names: Vec<_> = NICKNAMES.iter().map(|(name, _)| name.to_lowercase()).collect();
            return Err(invalid(format!("is an unknown nickname; the known ones are {}", names.join(", "))));
        }
        let mut parts: Vec<&str> = plain.split_whitespace().collect();
        if parts.len() == 5 {
            parts.insert(0, "0");
        }
        if parts.len() != 6 {
            let message = "must have 5 fields (minute, hour, day, month, weekday), or 6 with the second first; it has";
            return Err(invalid(format!("{message} {}", plain.split_whitespace().count())));
        }
        let numbers = (0..).zip(&parts).map(|(index, part)| to_numbers(index, part)).collect::<Result<Vec<_>, _>>();
        let numbers = numbers.map_err(invalid)?;
        let starred = |index: usize| numbers[index].starts_with('*');
        // As in Vixie cron: if both the day and the weekday are restricted, either of them matches. A field with a
        // leading star, such as */2, does not count as restricted.
        let both_must_match = starred(DAY) || starred(WEEKDAY);
        let parser = CronParser::builder()
            .seconds(Seconds::Required)
            .year(Year::Disallowed)
            .dom_and_dow(both_must_match)
            .build();
        let cron = parser
            .parse(&numbers.join(" "))
            .map_err(|error| invalid(format!("is not a valid cron expression: {error}")))?;
        let parsed = Self { cron, is_fixed: !(0..3).any(starred) };
        if parsed.next(DateTime::constant(2024, 1, 1, 0, 0, 0, 0), true).is_none() {
            return Err(invalid("never occurs: no such day exists".to_owned()));
        }
        Ok(parsed)
    }

    /// Returns the first civil time after `civil`, or at or after it if `inclusive`. Returns `None` if none is found.
    pub(super) fn next(&self, civil: DateTime, inclusive: bool) -> Option<DateTime> {
        self.cron.find_next_occurrence(&civil, inclusive).ok()
    }
}

/// Returns a field with its names replaced by numbers. `index` is its position in [`FIELDS`]. `?` becomes `*` for the
/// day and the weekday. Fails with a message for people if an entry of the list is invalid, or if the list contains
/// both `L` and `LW`.
fn to_numbers(index: usize, part: &str) -> Result<String, String> {
    let field = &FIELDS[index];
    if part == "?" && (index == DAY || index == WEEKDAY) {
        return Ok("*".to_owned());
    }
    let items: Vec<&str> = part.split(',').collect();
    if items.contains(&"L") && items.contains(&"LW") {
        return Err("has L and LW for the day: only one of them is allowed".to_owned());
    }
    let items: Vec<String> = items.iter().map(|item| field.item(index, item)).collect::<Result<_, _>>()?;
    Ok(items.join(","))
}

impl CronField {
    /// Returns one entry of a list with its names replaced by numbers. `index` is the position of the field. Accepts a
    /// value, a range and `*`, the latter two also with a step of 1 to `max`. Also accepts `L`, `LW` and `15W` for the
    /// day, and `FRI#2` and `FRIL` for the weekday. A weekday range may end with Sunday as 0. Fails with a message for
    /// people in all other cases, for example for an empty entry, a step without a range, or a range that ends before
    /// it begins.
    fn item(&self, index: usize, item: &str) -> Result<String, String> {
        if item.is_empty() {
            return Err(format!("has an empty entry for the {}", self.name));
        }
        if index == DAY && (item == "L" || item == "LW") {
            return Ok(item.to_owned());
        }
        if index == DAY
            && let Some(day) = item.strip_suffix('W')
        {
            return Ok(format!("{}W", self.number(day)?));
        }
        if index == WEEKDAY
            && let Some((day, nth)) = item.split_once('#')
        {
            return match nth.parse::<u32>() {
                Ok(nth @ 1..=5) => Ok(format!("{}#{nth}", self.weekday(day)?)),
                _ => Err(format!("has '{item}' for the weekday: # must be followed by a number from 1 to 5")),
            };
        }
        if index == WEEKDAY
            && let Some(day) = item.strip_suffix('L')
        {
            if day.is_empty() {
                return Err("has L for the weekday: write 5L or FRIL for the last Friday of the month".to_owned());
            }
            return Ok(format!("{}L", self.weekday(day)?));
        }
        let (range, step) = match item.split_once('/') {
            None => (item, None),
            Some((range, step)) => match step.parse::<u32>() {
                Ok(step) if (1..=self.max).contains(&step) => (range, Some(step)),
                _ => {
                    return Err(format!(
                        "has '{item}' for the {}: / must be followed by a number from 1 to {}",
                        self.name, self.max
                    ));
                }
            },
        };
        let range = match range.split_once('-') {
            _ if range == "*" => "*".to_owned(),
            Some((from, to)) => {
                let from = self.number(from)?;
                let mut to = self.number(to)?;
                if index == WEEKDAY && to == 0 && from > 0 {
                    to = 7;
                }
                if to < from {
                    return Err(format!("has '{item}' for the {}: the range ends before it begins", self.name));
                }
                format!("{from}-{to}")
            }
            None if step.is_some() => {
                let message = format!("has '{item}' for the {}: a step needs a range, such as", self.name);
                return Err(format!("{message} {}-{}/{}", range, self.max, step.unwrap_or(1)));
            }
            None => self.number(range)?.to_string(),
        };
        Ok(step.map_or(range.clone(), |step| format!("{range}/{step}")))
    }

    /// Parses a number from `min` to `max` with at most four digits, or a name of the field in upper case. Fails with a
    /// message for people that lists the permitted values.
    fn number(&self, text: &str) -> Result<u32, String> {
        if let Some(index) = self.names.iter().position(|name| *name == text) {
            return Ok(self.min + u32::try_from(index).unwrap_or_default());
        }
        let is_numeric = !text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| is_numeric && (self.min..=self.max).contains(number));
        let or_name = match self.names {
            [first, .., last] => format!(", or a name from {first} to {last}"),
            _ => String::new(),
        };
        let name = self.name;
        let min = self.min;
        let max = self.max;
        number.ok_or_else(|| format!("has '{text}' for the {name}: must be a number from {min} to {max}{or_name}"))
    }

    /// Parses a weekday as 0 to 6, with 0 for Sunday. Fails like [`CronField::number`].
    fn weekday(&self, text: &str) -> Result<u32, String> {
        self.number(text).map(|day| day % 7)
    }
}
