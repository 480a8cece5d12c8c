//! Tests of the texts.

use jiff::Timestamp;
use uuid::Uuid;

use super::*;
use crate::due::DueDate;

fn now() -> Zoned {
    "2026-11-17T10:00:00[Europe/Berlin]".parse().unwrap()
}

fn due(text: &str) -> DueDate {
    DueDate::parse("due_date", text, now().time_zone()).unwrap()
}

#[test]
fn dates_have_a_weekday() {
    // TRUST-1
    for (text, words, short) in [
        ("2026-11-17", "today (Tue 17 Nov)", "today"),
        ("2026-11-18T15:00", "tomorrow (Wed 18 Nov) at 3pm", "tomorrow at 3pm"),
        ("2026-11-16", "yesterday (Mon 16 Nov)", "yesterday"),
        ("2026-11-20T09:30", "Fri 20 Nov at 9:30am", "Fri 20 Nov at 9:30am"),
        ("2027-01-08", "Fri 8 Jan 2027", "Fri 8 Jan 2027"),
        ("2026-11-20T23:30:00Z", "Sat 21 Nov at 12:30am", "Sat 21 Nov at 12:30am"),
    ] {
        assert_eq!(due_words(&due(text), &now()), words);
        assert_eq!(short_due_words(&due(text), &now()), short);
    }
}

#[test]
fn rules_are_readable() {
    // TRUST-1
    for (rule, words) in [
        ("FREQ=DAILY", "every day"),
        ("FREQ=DAILY;INTERVAL=2", "every 2 days"),
        ("FREQ=WEEKLY", "every week"),
        ("FREQ=WEEKLY;BYDAY=MO,FR", "every Monday and Friday"),
        ("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", "every weekday"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=TU", "every 2 weeks on Tuesday"),
        ("FREQ=MONTHLY;BYMONTHDAY=1", "every month on the 1st"),
        ("FREQ=MONTHLY;BYMONTHDAY=-1", "every month on the last day"),
        ("FREQ=MONTHLY;BYDAY=-1FR", "on the last Friday of every month"),
        ("FREQ=MONTHLY;INTERVAL=3", "every 3 months"),
        ("FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=5", "every year on 5 January"),
        ("FREQ=YEARLY;BYMONTH=11;BYDAY=4TH", "on the fourth Thursday of November every year"),
        ("FREQ=HOURLY;INTERVAL=2;COUNT=10", "every 2 hours, 10 times in all"),
        ("FREQ=MINUTELY;INTERVAL=30", "every 30 minutes"),
        ("FREQ=DAILY;BYHOUR=9,17", "every day at 9am and 5pm"),
        ("FREQ=DAILY;UNTIL=20261224", "every day until Thu 24 Dec 2026"),
        ("FREQ=YEARLY;BYWEEKNO=20", "by the rule FREQ=YEARLY;BYWEEKNO=20"),
        ("FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1", "by the rule FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1"),
        ("nonsense", "by the rule nonsense"),
    ] {
        assert_eq!(recurrence_words(rule), words);
    }
}

#[test]
fn the_sentence_names_every_value() {
    // TRUST-1
    let mut task = Task {
        id: Uuid::nil(),
        title: "call mom".to_owned(),
        description: None,
        status: TaskStatus::Pending,
        priority: Priority::Medium,
        due_date: None,
        recurrence: None,
        tags: Vec::new(),
        created_at: Timestamp::UNIX_EPOCH,
        updated_at: Timestamp::UNIX_EPOCH,
        completed_at: None,
    };
    assert_eq!(task_sentence(&task, &now()), None);
    task.due_date = Some(due("2026-11-18T15:00"));
    assert_eq!(task_sentence(&task, &now()).unwrap(), "Due tomorrow (Wed 18 Nov) at 3pm.");
    task.recurrence = Some("FREQ=WEEKLY".to_owned());
    task.priority = Priority::High;
    task.tags = vec!["work".to_owned(), "home".to_owned()];
    task.description = Some("bring the forms".to_owned());
    assert_eq!(
        task_sentence(&task, &now()).unwrap(),
        "Due tomorrow (Wed 18 Nov) at 3pm, every week, high priority, tagged work and home, note: bring the forms."
    );
    task.due_date = Some(due("2026-11-14"));
    assert_eq!(
        short_task_values(&task, &now()),
        ["overdue since Sat 14 Nov", "every week", "high priority", "tagged work and home"]
    );
}
