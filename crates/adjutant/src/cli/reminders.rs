//! The command line of `reminders` and `notifications`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum RemindersCommand {
    /// Show reminders
    #[command(visible_alias = "ls")]
    List {
        /// Status: scheduled, done, dropped or all [default: scheduled]
        #[arg(long, short, value_name = "STATUS")]
        status: Option<String>,
        /// Only reminders of this task: title, or beginning or end of its id
        #[arg(long, short, value_name = "TASK")]
        task: Option<String>,
        /// Print only the ids
        #[arg(long, short)]
        quiet: bool,
        /// Maximum number of reminders
        #[arg(long, value_name = "N", value_parser = super::parse_limit)]
        limit: Option<usize>,
        /// Cursor of the page to show, with --json
        #[arg(long, value_name = "CURSOR", requires = "json")]
        cursor: Option<String>,
    },
    /// Add a reminder
    Add {
        /// Title of a task, or beginning or end of its id
        task: String,
        /// Time in your time zone: words such as tomorrow 9am, or 2026-01-31T15:00; a date alone means a fixed time on
        /// this day
        #[arg(required_unless_present_any = ["before", "recurrence"], conflicts_with = "before")]
        at: Vec<String>,
        /// Time before the due date of the task, such as 30m, 2h or 1d; the reminder moves with it
        #[arg(long, value_name = "DURATION", value_parser = parse_minutes)]
        before: Option<i64>,
        #[command(flatten)]
        repetition: ReminderRepetition,
    },
    /// Change the time or the repetition of a reminder
    Edit {
        /// Id of a reminder, or its beginning or end
        reminder: String,
        /// New time, in words or exact
        #[arg(long, value_name = "TIME", conflicts_with = "before")]
        at: Option<String>,
        /// New time before the due date of the task, such as 30m, 2h or 1d
        #[arg(long, value_name = "DURATION", value_parser = parse_minutes)]
        before: Option<i64>,
        #[command(flatten)]
        repetition: ReminderRepetition,
        /// Do not repeat it any more
        #[arg(long, conflicts_with_all = ["every", "recurrence", "times"])]
        once: bool,
    },
    /// Move the next notification of a reminder to a later time
    Snooze {
        /// Id of a reminder, or its beginning or end
        reminder: String,
        /// Time in your time zone: words such as tomorrow 9am, or 2026-01-31T15:00
        #[arg(required = true)]
        until: Vec<String>,
    },
    /// Remove reminders
    Rm {
        /// Id of a reminder, or its beginning or end
        #[arg(required = true, value_name = "REMINDER")]
        reminders: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ReminderRepetition {
    /// Repeat after this time until the task is done: minutes, or a duration such as 2h
    #[arg(long, value_name = "DURATION", value_parser = parse_minutes, conflicts_with = "recurrence")]
    pub(crate) every: Option<i64>,
    /// Repeat by this rule until the reminder is removed: words such as "every day at 8am", or an RRULE such as
    /// FREQ=DAILY;BYHOUR=8;BYMINUTE=0
    #[arg(long, visible_alias = "repeat", value_name = "RULE", conflicts_with = "before")]
    pub(crate) recurrence: Option<String>,
    /// Total number of times, for a reminder that repeats
    #[arg(long, value_name = "N")]
    pub(crate) times: Option<i64>,
}

/// Parses a number of minutes: `90`, or durations such as `30m`, `2h`, `1d` and `1h30m`. Fails if it is malformed or too
/// large.
fn parse_minutes(text: &str) -> Result<i64, String> {
    let invalid = || format!("must be minutes or a duration such as 30m, 2h or 1d, not '{text}'");
    let mut total = 0_i64;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, unit) = rest.split_at(length);
        let number: i64 = number.parse().map_err(|_| invalid())?;
        let factor = match unit.chars().next() {
            None | Some('m') => 1,
            Some('h') => 60,
            Some('d') => 24 * 60,
            Some('w') => 7 * 24 * 60,
            Some(_) => return Err(invalid()),
        };
        total = number.checked_mul(factor).and_then(|minutes| total.checked_add(minutes)).ok_or_else(invalid)?;
        rest = unit.get(1..).unwrap_or_default();
    }
    if text.trim().is_empty() { Err(invalid()) } else { Ok(total) }
}

#[derive(Debug, Args)]
pub(crate) struct NotificationsArgs {
    /// Print new notifications as they arrive
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Only unread notifications
    #[arg(long, short)]
    pub(crate) unread: bool,
    /// Mark the printed notifications as read
    #[arg(long)]
    pub(crate) mark_read: bool,
    /// Print only the ids
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Maximum number of notifications [default: 50]
    #[arg(long, value_name = "N", value_parser = super::parse_limit)]
    pub(crate) limit: Option<usize>,
    /// Cursor of the page to show, with --json
    #[arg(long, value_name = "CURSOR", requires = "json")]
    pub(crate) cursor: Option<String>,
}
