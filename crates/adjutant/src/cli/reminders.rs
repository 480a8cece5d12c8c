//! The words of `adjutant reminders` and `adjutant notifications`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Reminders {
    /// Show reminders
    #[command(visible_alias = "ls")]
    List {
        /// scheduled, done, dropped or all [default: scheduled]
        #[arg(long, short, value_name = "STATUS")]
        status: Option<String>,
        /// Those of one task: its title, or beginning or end of its id
        #[arg(long, short, value_name = "TASK")]
        task: Option<String>,
        /// Only the ids
        #[arg(long, short)]
        quiet: bool,
        /// At most so many
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
        /// With --json: the page to begin at
        #[arg(long, value_name = "CURSOR", requires = "json")]
        cursor: Option<String>,
    },
    /// Set a reminder
    Add {
        /// The task: its title, or beginning or end of its id
        task: String,
        /// When: 2026-01-31T15:00, in your time zone
        at: String,
        /// Again after so many minutes, until the task is done
        #[arg(long, value_name = "MINUTES")]
        every: Option<i64>,
        /// With --every: so often in total
        #[arg(long, value_name = "N", requires = "every")]
        times: Option<i64>,
    },
    /// Remove reminders, for good
    Rm {
        /// Beginning or end of an id
        #[arg(required = true, value_name = "REMINDER")]
        reminders: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Notifications {
    /// Print new ones as they come
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Only those that were not read yet
    #[arg(long, short)]
    pub(crate) unread: bool,
    /// Mark what is shown as read
    #[arg(long)]
    pub(crate) mark_read: bool,
    /// Only the ids
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// At most so many, the newest [default: 50]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// With --json: the page to begin at
    #[arg(long, value_name = "CURSOR", requires = "json")]
    pub(crate) cursor: Option<String>,
}
