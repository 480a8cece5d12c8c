//! The rule by which a task repeats: an RFC 5545 RRULE, checked part by part and kept in one spelling.
//!
//! This says whether a rule is well formed; it does not compute occurrences.

use jiff::civil::{Date, DateTime};

use crate::Invalid;

/// The rule in upper case and without the `RRULE:` in front, or what is wrong with it.
pub fn parse(field: &str, text: &str) -> Result<String, Invalid> {
    let rule = text.trim().to_ascii_uppercase();
    let rule = rule.strip_prefix("RRULE:").unwrap_or(&rule);
    check(rule)
        .map_err(|why| Invalid::one(field, "rrule", format!("must be an RRULE such as FREQ=WEEKLY;BYDAY=MO: {why}")))?;
    Ok(rule.to_owned())
}

const MAX_LENGTH: usize = 500;

fn check(rule: &str) -> Result<(), String> {
    if rule.len() > MAX_LENGTH {
        return Err(format!("it is longer than {MAX_LENGTH} characters"));
    }
    let mut seen = Vec::new();
    for part in rule.split(';') {
        let (name, value) = part.split_once('=').ok_or_else(|| format!("'{part}' is not NAME=VALUE"))?;
        if seen.contains(&name) {
            return Err(format!("{name} is given twice"));
        }
        seen.push(name);
        if !value_is_valid(name, value)? {
            return Err(format!("{name} cannot be '{value}'"));
        }
    }
    if !seen.contains(&"FREQ") {
        return Err("FREQ is missing".to_owned());
    }
    if seen.contains(&"COUNT") && seen.contains(&"UNTIL") {
        return Err("COUNT and UNTIL exclude each other".to_owned());
    }
    Ok(())
}

fn value_is_valid(name: &str, value: &str) -> Result<bool, String> {
    Ok(match name {
        "FREQ" => matches!(value, "YEARLY" | "MONTHLY" | "WEEKLY" | "DAILY" | "HOURLY" | "MINUTELY"),
        "INTERVAL" => number(value, 1, 9999),
        "COUNT" => number(value, 1, 99_999),
        "UNTIL" => is_until(value),
        "BYDAY" => each(value, is_weekday_with_number),
        "WKST" => is_weekday(value),
        "BYMONTH" => each(value, |v| number(v, 1, 12)),
        "BYMONTHDAY" => each(value, |v| signed(v, 31)),
        "BYYEARDAY" | "BYSETPOS" => each(value, |v| signed(v, 366)),
        "BYWEEKNO" => each(value, |v| signed(v, 53)),
        "BYHOUR" => each(value, |v| number(v, 0, 23)),
        "BYMINUTE" | "BYSECOND" => each(value, |v| number(v, 0, 59)),
        _ => return Err(format!("{name} is not part of an RRULE")),
    })
}

fn each(list: &str, valid: impl Fn(&str) -> bool) -> bool {
    list.split(',').all(valid)
}

fn number(text: &str, min: u32, max: u32) -> bool {
    text.bytes().all(|b| b.is_ascii_digit()) && text.parse().is_ok_and(|n: u32| (min..=max).contains(&n))
}

/// 1 to `max`, counted from the start or, with a minus sign, from the end.
fn signed(text: &str, max: u32) -> bool {
    number(text.strip_prefix(['-', '+']).unwrap_or(text), 1, max)
}

fn is_weekday(text: &str) -> bool {
    matches!(text, "MO" | "TU" | "WE" | "TH" | "FR" | "SA" | "SU")
}

/// `MO`, or the n-th of the month or year: `2MO`, `-1FR`.
fn is_weekday_with_number(text: &str) -> bool {
    match text.char_indices().nth_back(1) {
        Some((at, _)) => is_weekday(&text[at..]) && (at == 0 || signed(&text[..at], 53)),
        None => false,
    }
}

fn is_until(text: &str) -> bool {
    Date::strptime("%Y%m%d", text).is_ok()
        || DateTime::strptime("%Y%m%dT%H%M%S", text.strip_suffix('Z').unwrap_or(text)).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rules_of_the_field_pass_in_one_spelling() {
        // TASK-1
        for (given, kept) in [
            ("FREQ=DAILY", "FREQ=DAILY"),
            ("rrule:freq=weekly;byday=mo,we", "FREQ=WEEKLY;BYDAY=MO,WE"),
            ("FREQ=MONTHLY;BYDAY=-1FR;COUNT=12", "FREQ=MONTHLY;BYDAY=-1FR;COUNT=12"),
            ("FREQ=MONTHLY;BYMONTHDAY=1,-1;UNTIL=20270101", "FREQ=MONTHLY;BYMONTHDAY=1,-1;UNTIL=20270101"),
            ("FREQ=YEARLY;UNTIL=20270101T000000Z", "FREQ=YEARLY;UNTIL=20270101T000000Z"),
        ] {
            assert_eq!(parse("recurrence", given).unwrap(), kept);
        }
    }

    #[test]
    fn broken_rules_are_refused_with_the_reason() {
        for (given, why) in [
            ("", "'' is not NAME=VALUE"),
            ("every day", "'EVERY DAY' is not NAME=VALUE"),
            ("FREQ=FORTNIGHTLY", "FREQ cannot be 'FORTNIGHTLY'"),
            ("INTERVAL=2", "FREQ is missing"),
            ("FREQ=DAILY;INTERVAL=0", "INTERVAL cannot be '0'"),
            ("FREQ=DAILY;FREQ=DAILY", "FREQ is given twice"),
            ("FREQ=DAILY;COUNT=2;UNTIL=20270101", "COUNT and UNTIL exclude each other"),
            ("FREQ=WEEKLY;BYDAY=XX", "BYDAY cannot be 'XX'"),
            ("FREQ=WEEKLY;BYDAY=é", "BYDAY cannot be 'é'"),
            ("FREQ=DAILY;BYFOO=1", "BYFOO is not part of an RRULE"),
            ("FREQ=DAILY;UNTIL=20270231", "UNTIL cannot be '20270231'"),
            ("FREQ=DAILY;UNTIL=20270101T000000ZZ", "UNTIL cannot be '20270101T000000ZZ'"),
        ] {
            let message = parse("recurrence", given).unwrap_err().violations.remove(0).message;
            assert!(message.ends_with(why), "{given}: {message}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "\\PC{0,80}") {
            let _ = parse("recurrence", &text);
        }
    }
}
