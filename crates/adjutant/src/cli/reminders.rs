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
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
        /// Cursor of the page to show, with --json
        #[arg(long, value_name = "CURSOR", requires = "json")]
        cursor: Option<String>,
    },
    /// Add a reminder
    Add {
        /// Title of a task, or beginning or end of its id
        task: String,
        /// Time in your time zone, such as 2026-01-31T15:00
        at: String,
        /// Repeat after this many minutes until the task is done
        #[arg(long, value_name = "MINUTES")]
        every: Option<i64>,
        /// Total number of times, with --every
        #[arg(long, value_name = "N", requires = "every")]
        times: Option<i64>,
    },
    /// Remove reminders permanently
    Rm {
        /// Id of a reminder, or its beginning or end
        #[arg(required = true, value_name = "REMINDER")]
        reminders: Vec<String>,
    },
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
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Cursor of the page to show, with --json
    #[arg(long, value_name = "CURSOR", requires = "json")]
    pub(crate) cursor: Option<String>,
}
