//! The words of `adjutant schedules`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Schedules {
    /// Show schedules
    #[command(visible_alias = "ls")]
    List {
        /// Only of this agent: id, name, or beginning or end of an id
        #[arg(long, short)]
        agent: Option<String>,
        /// Only those that are paused
        #[arg(long)]
        paused: bool,
        /// Only the ids
        #[arg(long, short)]
        quiet: bool,
    },
    /// Have an agent run at certain times
    Add {
        /// Agent: id, name, or beginning or end of an id
        agent: String,
        /// What it is asked each time
        #[arg(allow_hyphen_values = true)]
        input: Option<String>,
        /// What to call it [default: made of the agent's id]
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        timing: Box<Timing>,
    },
    /// Change a schedule, at once
    Edit {
        /// Name, or beginning or end of an id
        schedule: String,
        #[arg(long)]
        name: Option<String>,
        /// Agent: id, name, or beginning or end of an id
        #[arg(long)]
        agent: Option<String>,
        /// What the agent is asked each time
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        input: Option<String>,
        #[command(flatten)]
        timing: Box<Timing>,
        /// Give a field back its default; may be given several times
        #[arg(long, value_name = "FIELD", value_parser = ["overlap", "missed", "missed-window", "jitter", "start", "end", "pause-after"])]
        clear: Vec<String>,
    },
    /// Let none of a schedule's times be acted upon
    Pause {
        /// Name, or beginning or end of an id
        schedule: String,
        /// Why, for those who wonder
        #[arg(long)]
        reason: Option<String>,
    },
    /// Let a schedule go on with its next time
    Resume {
        /// Name, or beginning or end of an id
        schedule: String,
    },
    /// Run a schedule now, and print what its agent says
    Run {
        /// Name, or beginning or end of an id
        schedule: String,
        /// Print the execution's id and do not wait
        #[arg(long)]
        detach: bool,
    },
    /// Show the next times of a schedule
    Next {
        /// Name, or beginning or end of an id
        schedule: String,
        /// How many
        #[arg(short = 'n', long = "count", value_name = "N", default_value_t = 5)]
        count: usize,
    },
    /// Say why a schedule did, or did not, run
    Explain {
        /// Name, or beginning or end of an id
        schedule: String,
        /// Around this time, such as 2026-01-31T15:00 [default: now]
        #[arg(long, value_name = "TIME")]
        at: Option<String>,
    },
    /// Show what was decided about the times of a schedule, the latest first
    History {
        /// Name, or beginning or end of an id
        schedule: String,
        /// At most so many [default: 50]
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
    },
    /// Remove schedules, with their history
    Rm {
        /// Name, or beginning or end of an id
        #[arg(required = true, value_name = "SCHEDULE")]
        schedules: Vec<String>,
    },
}

/// When a schedule runs, and what becomes of times that cannot be kept.
#[derive(Debug, Args)]
pub(crate) struct Timing {
    /// Minute, hour, day of the month, month, day of the week, such as "0 17 * * FRI"; or @daily
    #[arg(long, value_name = "EXPRESSION", conflicts_with_all = ["every", "at"])]
    pub(crate) cron: Option<String>,
    /// Length of time such as 90m or 1h30m
    #[arg(long, value_name = "LENGTH", conflicts_with = "at")]
    pub(crate) every: Option<String>,
    /// Once, such as 2026-01-31T15:00
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// Whose clock is meant, such as Europe/Berlin [default: yours]
    #[arg(long, value_name = "ZONE")]
    pub(crate) time_zone: Option<String>,
    /// Parameter: a number, true, false, JSON, or else text; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) param: Vec<String>,
    /// While the run before goes on: skip, queue_one, queue_all, cancel or allow [default: skip]
    #[arg(long, value_name = "POLICY")]
    pub(crate) overlap: Option<String>,
    /// What was missed while no server ran: none, once or all [default: once]
    #[arg(long, value_name = "POLICY")]
    pub(crate) missed: Option<String>,
    /// For how long it is made up for [default: 1d]
    #[arg(long, value_name = "LENGTH")]
    pub(crate) missed_window: Option<String>,
    /// Put each run off by up to so long, such as 5m
    #[arg(long, value_name = "LENGTH")]
    pub(crate) jitter: Option<String>,
    /// Not before
    #[arg(long, value_name = "TIME")]
    pub(crate) start: Option<String>,
    /// Not after
    #[arg(long, value_name = "TIME")]
    pub(crate) end: Option<String>,
    /// Pause it after so many failures in a row
    #[arg(long, value_name = "N")]
    pub(crate) pause_after: Option<u32>,
}
