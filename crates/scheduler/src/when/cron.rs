//! Cron expressions: read, checked in words, and asked for the civil times they mean. The only file that names croner,
//! which knows nothing of time zones here: what a civil time is on a given day is decided in [`super::zone`].

use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use model::Invalid;

/// A cron expression that means something.
#[derive(Clone, Debug)]
pub(super) struct Cron {
    cron: croner::Cron,
    /// Whether it names its times one by one, as Vixie cron sees it: no field of the time of day begins with `*`.
    pub(super) fixed: bool,
}

struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    words: &'static [&'static str],
}

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const DAY: usize = 3;
const WEEKDAY: usize = 5;
const FIELDS: [Field; 6] = [
    Field { name: "second", least: 0, most: 59, words: &[] },
    Field { name: "minute", least: 0, most: 59, words: &[] },
    Field { name: "hour", least: 0, most: 23, words: &[] },
    Field { name: "day", least: 1, most: 31, words: &[] },
    Field { name: "month", least: 1, most: 12, words: MONTHS },
    // 7 is Sunday too.
    Field { name: "weekday", least: 0, most: 7, words: DAYS },
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

impl Cron {
    /// Five fields, or six with the second first; lists, ranges, steps, names, `L`, `W`, `#`; or a nickname.
    pub(super) fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        let wrong = |message: String| Invalid::one(field, "cron", message);
        let upper = text.trim().to_uppercase();
        let plain = NICKNAMES.iter().find(|(name, _)| *name == upper).map_or(upper.as_str(), |(_, plain)| *plain);
        if plain.starts_with('@') {
            let names: Vec<_> = NICKNAMES.iter().map(|(name, _)| name.to_lowercase()).collect();
            return Err(wrong(format!("has no meaning here: of such names there are {}", names.join(", "))));
        }
        let mut parts: Vec<&str> = plain.split_whitespace().collect();
        if parts.len() == 5 {
            parts.insert(0, "0");
        }
        if parts.len() != 6 {
            let message = "must have 5 fields (minute, hour, day, month, weekday), or 6 with the second first; has";
            return Err(wrong(format!("{message} {}", plain.split_whitespace().count())));
        }
        let numbers = (0..).zip(&parts).map(|(at, part)| numbers(at, part)).collect::<Result<Vec<_>, _>>();
        let numbers = numbers.map_err(wrong)?;
        let starred = |at: usize| numbers[at].starts_with('*');
        // As in Vixie cron: where both the day and the weekday are restricted, either will do. A step is no restriction
        // of that kind: */2 begins with a star.
        let both = starred(DAY) || starred(WEEKDAY);
        let parser = CronParser::builder().seconds(Seconds::Required).year(Year::Disallowed).dom_and_dow(both).build();
        let cron = parser.parse(&numbers.join(" ")).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        let parsed = Self { cron, fixed: !(0..3).any(starred) };
        if parsed.next(DateTime::constant(2024, 1, 1, 0, 0, 0, 0), true).is_none() {
            return Err(wrong("never comes: there is no such day".to_owned()));
        }
        Ok(parsed)
    }

    /// The first civil time after this one, or from this one on.
    pub(super) fn next(&self, civil: DateTime, inclusive: bool) -> Option<DateTime> {
        self.cron.find_next_occurrence(&civil, inclusive).ok()
    }
}

/// One field with its names as numbers, if all of it can be read.
fn numbers(at: usize, part: &str) -> Result<String, String> {
    let field = &FIELDS[at];
    if part == "?" && (at == DAY || at == WEEKDAY) {
        return Ok("*".to_owned());
    }
    let items: Vec<&str> = part.split(',').collect();
    if items.contains(&"L") && items.contains(&"LW") {
        return Err("has L and LW for the day: only one of them can be meant".to_owned());
    }
    let items: Vec<String> = items.iter().map(|item| field.item(at, item)).collect::<Result<_, _>>()?;
    Ok(items.join(","))
}

impl Field {
    fn item(&self, at: usize, item: &str) -> Result<String, String> {
        if item.is_empty() {
            return Err(format!("has an empty entry for the {}", self.name));
        }
        if at == DAY && (item == "L" || item == "LW") {
            return Ok(item.to_owned());
        }
        if at == DAY
            && let Some(day) = item.strip_suffix('W')
        {
            return Ok(format!("{}W", self.number(day)?));
        }
        if at == WEEKDAY
            && let Some((day, nth)) = item.split_once('#')
        {
            return match nth.parse::<u32>() {
                Ok(nth @ 1..=5) => Ok(format!("{}#{nth}", self.weekday(day)?)),
                _ => Err(format!("has '{item}' for the weekday: behind # stands a number from 1 to 5")),
            };
        }
        if at == WEEKDAY
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
                Ok(step) if (1..=self.most).contains(&step) => (range, Some(step)),
                _ => {
                    return Err(format!(
                        "has '{item}' for the {}: behind / stands a number from 1 to {}",
                        self.name, self.most
                    ));
                }
            },
        };
        let range = match range.split_once('-') {
            _ if range == "*" => "*".to_owned(),
            Some((from, to)) => {
                let from = self.number(from)?;
                let mut to = self.number(to)?;
                if at == WEEKDAY && to == 0 && from > 0 {
                    to = 7;
                }
                if to < from {
                    return Err(format!("has '{item}' for the {}: the range ends before it begins", self.name));
                }
                format!("{from}-{to}")
            }
            None if step.is_some() => {
                let message = format!("has '{item}' for the {}: a step needs a range, such as", self.name);
                return Err(format!("{message} {}-{}/{}", range, self.most, step.unwrap_or(1)));
            }
            None => self.number(range)?.to_string(),
        };
        Ok(step.map_or(range.clone(), |step| format!("{range}/{step}")))
    }

    fn number(&self, text: &str) -> Result<u32, String> {
        if let Some(index) = self.words.iter().position(|word| *word == text) {
            return Ok(self.least + u32::try_from(index).unwrap_or_default());
        }
        let digits = !text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| digits && (self.least..=self.most).contains(number));
        let named = match self.words {
            [first, .., last] => format!(", or a name from {first} to {last}"),
            _ => String::new(),
        };
        let name = self.name;
        let least = self.least;
        let most = self.most;
        number.ok_or_else(|| format!("has '{text}' for the {name}: must be a number from {least} to {most}{named}"))
    }

    /// Sunday is always 0.
    fn weekday(&self, text: &str) -> Result<u32, String> {
        self.number(text).map(|day| day % 7)
    }
}
