//! Finds days, times, repetitions and titles in the text of a language model. Decides if the text names a stored value,
//! and if it names another one.

use jiff::civil::{Date, Time, Weekday};
use model::words::{clock_words, recurrence_words};

const WEEKDAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
/// Short words that do not distinguish titles.
const FILLERS: [&str; 14] =
    ["the", "and", "for", "with", "from", "about", "buy", "get", "add", "new", "our", "his", "her", "your"];

/// Returns whether a text in lower case has one of the words.
pub(super) fn has_word(text: &str, wanted: &[&str]) -> bool {
    words(text).iter().any(|word| wanted.contains(word))
}

fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

/// Returns whether a text in lower case names the title: the title itself, or all of its longer words.
pub(super) fn names_title(text: &str, title: &str) -> bool {
    let title = title.to_lowercase();
    if text.contains(&title) {
        return true;
    }
    let parts = words(&title);
    let longer: Vec<&str> =
        parts.iter().copied().filter(|word| word.chars().count() >= 3 && !FILLERS.contains(word)).collect();
    let known = words(text);
    !longer.is_empty() && longer.iter().all(|word| known.contains(word))
}

/// Returns the part of a text in lower case that is about a title: from the title to the next of the other titles.
/// Returns an empty text if the text does not contain the title.
pub(super) fn part_about<'t>(text: &'t str, title: &str, others: &[String]) -> &'t str {
    let title = title.to_lowercase();
    let Some((_, part)) = text.split_once(&title) else { return "" };
    let end = others.iter().filter(|other| **other != title).filter_map(|other| part.find(other.as_str())).min();
    &part[..end.unwrap_or(part.len())]
}

/// Returns whether a text in lower case names the day: by "today" or "tomorrow", by the weekday within a week, or by day
/// and month.
pub(super) fn names_day(text: &str, day: Date, today: Date) -> bool {
    let words = words(text);
    let has = |wanted: &str| words.contains(&wanted);
    let days = today.until(day).map(|span| span.get_days()).unwrap_or(i32::MAX);
    let relative = match days {
        -1 => has("yesterday"),
        0 => has("today") || has("tonight"),
        1 => has("tomorrow"),
        _ => false,
    };
    let format = |format: &str| day.strftime(format).to_string().to_lowercase();
    let weekday = (0..7).contains(&days) && (has(&format("%A")) || has(&format("%a")));
    let number = day.day();
    let has_number = words.iter().any(|word| day_number(word) == Some(number));
    let month = has(&format("%B")) || has(&format("%b"));
    relative || weekday || month && has_number || text.contains(&format("%Y-%m-%d"))
}

/// Returns the number of "27", "27th" or "3rd".
fn day_number(word: &str) -> Option<i8> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let has_ending = matches!(&word[digits.len()..], "" | "st" | "nd" | "rd" | "th");
    digits.parse().ok().filter(|number| has_ending && (1..=31).contains(number))
}

/// Returns whether a text in lower case names a day that is none of `days`. A weekday in `weekdays` is none of these.
pub(super) fn names_other_day(text: &str, days: &[Date], weekdays: &[Weekday], today: Date) -> bool {
    let words = words(text);
    let is_stored = |span: i32| days.iter().any(|day| today.until(*day).is_ok_and(|to| to.get_days() == span));
    let relative = [("tomorrow", 1), ("tonight", 0), ("today", 0)];
    let has_other_relative = relative.iter().any(|(word, span)| words.contains(word) && !is_stored(*span));
    let has_other_weekday = WEEKDAYS.iter().any(|(name, weekday)| {
        let is_known = weekdays.contains(weekday) || days.iter().any(|day| day.weekday() == *weekday);
        words.contains(name) && !is_known
    });
    let dates = words.windows(2).filter_map(|pair| {
        let (month, number) = match (month_number(pair[0]), month_number(pair[1])) {
            (Some(month), None) => (month, day_number(pair[1])?),
            (None, Some(month)) => (month, day_number(pair[0])?),
            _ => return None,
        };
        Some((month, number))
    });
    let mut others = dates.filter(|date| !days.iter().any(|day| (day.month(), day.day()) == *date));
    has_other_relative || has_other_weekday || others.next().is_some()
}

/// Returns the number of a month, from its name or the first three letters.
fn month_number(word: &str) -> Option<i8> {
    let at = MONTHS.iter().position(|month| *month == word || month[..3] == *word)?;
    i8::try_from(at + 1).ok()
}

/// Returns the weekdays that a text in lower case names, also in the plural.
pub(super) fn weekdays_in(text: &str) -> Vec<Weekday> {
    let words = words(text);
    let has = |name: &str| words.iter().any(|word| word.trim_end_matches('s') == name);
    let named = WEEKDAYS.iter().filter(|(name, _)| has(name)).map(|(_, day)| *day);
    named.collect()
}

/// Returns whether a text in lower case names the time: "3pm", "3 pm", "3:00 pm", "15:00", "noon".
pub(super) fn names_time(text: &str, time: Time) -> bool {
    let compact: String = text.chars().filter(|c| !c.is_whitespace() && *c != '.').collect();
    let format = |format: &str| time.strftime(format).to_string().to_lowercase();
    let mut forms = vec![clock_words(time), format("%-I:%M%P"), format("%I:%M%P"), format("%H:%M"), format("%-H:%M")];
    match (time.hour(), time.minute()) {
        (12, 0) => forms.push("noon".to_owned()),
        (0, 0) => forms.push("midnight".to_owned()),
        _ => {}
    }
    forms.iter().any(|form| {
        compact.match_indices(form.as_str()).any(|(at, _)| !compact[..at].ends_with(|c: char| c.is_ascii_digit()))
    })
}

/// Returns the times of day that a text in lower case names with "am", "pm" or minutes.
pub(super) fn times_in(text: &str) -> Vec<Time> {
    let text = text.replace("a.m", "am").replace("p.m", "pm");
    let mut times = Vec::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let joins = rest[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, ':' | '-' | '.' | '/'));
        let number = &rest[at..];
        let length = number.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(number.len());
        let after = number[length..].trim_start();
        if !joins {
            times.extend(parse_time(&number[..length], after));
        }
        rest = &number[length..];
    }
    times
}

/// Returns the time of "3:30" or "3", followed by a text that may begin with "am" or "pm".
fn parse_time(clock: &str, after: &str) -> Option<Time> {
    let (hour, minute) = clock.split_once(':').unwrap_or((clock, ""));
    let half = ["am", "pm"]
        .into_iter()
        .find(|half| after.strip_prefix(half).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric())));
    if half.is_none() && minute.is_empty() {
        return None;
    }
    let hour: i8 = hour.parse().ok()?;
    let minute: i8 = if minute.is_empty() { 0 } else { minute.parse().ok()? };
    let hour = match half {
        None => hour,
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some("pm") => hour % 12 + 12,
        Some(_) => hour % 12,
    };
    Time::new(hour, minute, 0, 0).ok()
}

/// Returns whether a text in lower case names the recurrence rule: its words, or a usual form of them. `due` is the day
/// of the next occurrence.
pub(super) fn names_rule(text: &str, rule: &str, due: Option<Date>) -> bool {
    let rule = recurrence_words(rule).to_lowercase();
    if text.contains(&rule) {
        return true;
    }
    let usual: &[&str] = match rule.as_str() {
        "every day" => &["daily", "each day", "everyday"],
        "every week" => &["weekly", "each week"],
        "every month" => &["monthly", "each month"],
        "every year" => &["yearly", "annually", "each year"],
        "every hour" => &["hourly", "each hour"],
        "every minute" => &["each minute"],
        "every weekday" => &["weekdays", "each weekday", "monday to friday"],
        _ => &[],
    };
    let weekday = due.map(|day| day.strftime("every %A").to_string().to_lowercase());
    let is_usual = usual.iter().any(|form| text.contains(form)) && !text.contains("biweekly");
    let is_weekday = rule == "every week" && weekday.is_some_and(|weekday| text.contains(&weekday));
    let each = rule.strip_prefix("every ").filter(|rest| WEEKDAYS.iter().any(|(name, _)| rest == name));
    let is_each =
        each.is_some_and(|day| text.contains(&format!("each {day}")) || has_word(text, &[&format!("{day}s")]));
    is_usual || is_weekday || is_each
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn days_and_times_are_found_in_texts() {
        // TRUST-1
        let today = date(2026, 11, 17);
        for (text, day, expected) in [
            ("due tomorrow.", date(2026, 11, 18), true),
            ("due tomorrow.", date(2026, 11, 19), false),
            ("it is due friday", date(2026, 11, 20), true),
            ("it is due friday", date(2026, 11, 27), false),
            ("on november 27th", date(2026, 11, 27), true),
            ("on 27 nov", date(2026, 11, 27), true),
            ("on 2 nov", date(2026, 11, 27), false),
            ("2026-11-27", date(2026, 11, 27), true),
            ("added!", date(2026, 11, 18), false),
        ] {
            assert_eq!(names_day(text, day, today), expected, "{text}");
        }
        for (text, time, expected) in [
            ("at 3pm", Time::constant(15, 0, 0, 0), true),
            ("at 3 p.m.", Time::constant(15, 0, 0, 0), true),
            ("at 3:00 pm", Time::constant(15, 0, 0, 0), true),
            ("at 15:00", Time::constant(15, 0, 0, 0), true),
            ("at 13pm", Time::constant(15, 0, 0, 0), false),
            ("at 4pm", Time::constant(15, 0, 0, 0), false),
            ("at noon", Time::constant(12, 0, 0, 0), true),
            ("at 9:30am", Time::constant(9, 30, 0, 0), true),
        ] {
            assert_eq!(names_time(text, time), expected, "{text}");
        }
    }

    #[test]
    fn other_days_and_times_are_found_in_texts() {
        // TRUST-1
        let today = date(2026, 11, 17);
        let friday = [date(2026, 11, 20)];
        for (text, expected) in [
            ("due friday", false),
            ("due friday, 20 november", false),
            ("due friday, november 27th", true),
            ("due sunday", true),
            ("due tomorrow, friday", true),
            ("moved from monday to friday", true),
            ("you may do it on friday", false),
        ] {
            assert_eq!(names_other_day(text, &friday, &[], today), expected, "{text}");
        }
        assert!(!names_other_day("every monday from friday", &friday, &[Weekday::Monday], today));
        let time = |hour, minute| Time::constant(hour, minute, 0, 0);
        for (text, expected) in [
            ("at 3pm and 4:30 a.m.", vec![time(15, 0), time(4, 30)]),
            ("at 15:00", vec![time(15, 0)]),
            ("12 am, 12pm", vec![time(0, 0), time(12, 0)]),
            ("3 tasks, 5 pmx, 2026-11-27, 1.5 and 25:00", vec![]),
        ] {
            assert_eq!(times_in(text), expected, "{text}");
        }
    }

    #[test]
    fn titles_and_rules_are_found_in_texts() {
        // TRUST-1
        assert!(names_title("i've added milk.", "buy milk"));
        assert!(names_title("ticked off the call with mum", "call mum"));
        assert!(!names_title("ticked off the call with mum", "call dad"));
        assert!(!names_title("done.", "buy milk"));
        let others = ["buy milk".to_owned(), "pay rent".to_owned()];
        assert_eq!(part_about("'buy milk' friday, 'pay rent' monday", "Buy milk", &others), "' friday, '");
        let friday = Some(date(2026, 11, 20));
        for (text, rule, expected) in [
            ("every week", "FREQ=WEEKLY", true),
            ("every friday", "FREQ=WEEKLY", true),
            ("every monday", "FREQ=WEEKLY", false),
            ("every week", "FREQ=WEEKLY;INTERVAL=2", false),
            ("everything is set", "FREQ=DAILY", false),
            ("on fridays", "FREQ=WEEKLY;BYDAY=FR", true),
            ("daily", "FREQ=DAILY", true),
        ] {
            assert_eq!(names_rule(text, rule, friday), expected, "{text} {rule}");
        }
    }
}
