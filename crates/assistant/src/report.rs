//! What an agent has done, told to whoever asked for it: in words, without ids, not too long (AGENT-4, AGENT-6).

use model::execution::Status;
use serde_json::Value;
use tools::Held;

use crate::screen::Screen;
use crate::wording;

/// The news of a run that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// In a few words.
    pub title: String,
    pub text: String,
}

impl Report {
    /// Of the agent that people know by this name.
    pub fn of(name: &str, status: Status, output: &str, error: Option<&str>) -> Self {
        let title = wording::agent_ended(name, status);
        let words = match status {
            Status::Success => Words::of(output),
            Status::Failure => Words::of(error.unwrap_or_default()),
            // How it ended says all.
            Status::Timeout | Status::Cancelled => return Self { text: format!("{title}."), title },
        };
        let text = match words {
            Words::None if status == Status::Success => format!("{title}. {}", wording::agent_said_nothing()),
            Words::None => format!("{title}."),
            Words::Hidden => format!("{title}. {}", wording::agent_said_no_words()),
            // What has several lines begins on one of its own.
            Words::Some(words) if words.contains('\n') => format!("{title}:\n{words}"),
            Words::Some(words) => format!("{title}: {words}"),
        };
        Self { title, text }
    }
}

/// What can be read out of what an agent wrote.
enum Words {
    None,
    Hidden,
    Some(String),
}

impl Words {
    fn of(text: &str) -> Self {
        let text = text.trim();
        let mut screen = Screen::default();
        // By lines: it may be long.
        for line in text.split_inclusive('\n') {
            if screen.is_full() {
                break;
            }
            screen.push(line);
        }
        screen.finish();
        let shown = screen.text().trim_end();
        if shown.is_empty() {
            return if text.is_empty() { Self::None } else { Self::Hidden };
        }
        let mut shown = shown.to_owned();
        if screen.is_cut() {
            let missing = text.chars().count().saturating_sub(shown.chars().count());
            shown = format!("{shown}\n{}", wording::left_out(missing.max(1)));
        }
        Self::Some(shown)
    }
}

/// What waits for the user's confirmation goes on waiting when a message comes that is not theirs: what to keep with that
/// message, and the question to end it with.
pub fn still_pending(pending: &Value) -> Option<(Value, String)> {
    let held = Held::from_outside(pending.clone())?;
    let question = wording::confirm(&held.acts, &held.phrase);
    serde_json::to_value(held).ok().map(|pending| (pending, question))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(status: Status, output: &str, error: Option<&str>) -> String {
        Report::of("Tidy", status, output, error).text
    }

    #[test]
    fn each_end_has_its_words() {
        // AGENT-6
        assert_eq!(told(Status::Success, "All sorted.\n", None), "Tidy is done: All sorted.");
        assert_eq!(told(Status::Success, "One.\nTwo.", None), "Tidy is done:\nOne.\nTwo.");
        assert_eq!(told(Status::Success, " \n", None), "Tidy is done. It had nothing to say.");
        assert_eq!(
            told(Status::Failure, "half", Some("it ended with exit code 3: no such file")),
            "Tidy has failed: it ended with exit code 3: no such file"
        );
        assert_eq!(told(Status::Failure, "", None), "Tidy has failed.");
        assert_eq!(told(Status::Timeout, "half", Some("took longer than 1 s")), "Tidy took too long and was stopped.");
        assert_eq!(told(Status::Cancelled, "half", Some("cancelled")), "Tidy was cancelled.");
    }

    #[test]
    fn no_ids_no_machines_talk_and_not_too_long() {
        // AGENT-4, AGENT-6
        let id = "0190a6d2-7c00-7000-8000-000000000000";
        assert_eq!(told(Status::Success, &format!("Made it (ID: {id})."), None), "Tidy is done: Made it.");
        let data = told(Status::Success, "{\"success\": true}", None);
        assert_eq!(data, "Tidy is done. What it wrote is nothing to read out; it is kept with its run.");
        let long = told(Status::Success, &"This is a sentence of some length. ".repeat(300), None);
        assert!(long.chars().count() < 650, "{long}");
        assert!(long.contains("some length.\n(That is not all: about 99"), "cut at a sentence, and said so: {long}");
        let list: String = (1..=33).map(|n| format!("- file {n}\n")).collect();
        let listed = told(Status::Success, &list, None);
        assert!(listed.contains("- file 20") && !listed.contains("- file 21") && listed.contains("and 13 more"));
    }

    #[test]
    fn what_waits_is_asked_about_again() {
        // AGENT-7
        let act = json!({"tool": "delete_task", "arguments": {"task_id": 7}, "targets": [{"id": 7, "title": "milk"}],
            "bulk": false});
        let pending = json!({"phrase": "ok", "acts": [act]});
        let (kept, question) = still_pending(&pending).unwrap();
        assert_eq!(kept["phrase"], "yes delete");
        assert_eq!(question, "Do you really want to delete 'milk'? Reply 'yes delete' to confirm.");
        assert_eq!(still_pending(&json!({"phrase": "yes delete", "acts": []})), None);
    }
}
