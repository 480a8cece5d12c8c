//! The command line of `schedules`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum SchedulesCommand {
    /// Show schedules
    #[command(visible_alias = "ls")]
    List {
        /// Only schedules of this agent: id, name, or beginning or end of an id
        #[arg(long, short)]
        agent: Option<String>,
        /// Only paused schedules
        #[arg(long)]
        paused: bool,
        /// Print only the ids
        #[arg(long, short)]
        quiet: bool,
    },
    /// Add a schedule that runs an agent
    Add {
        /// Id or name of an agent, or beginning or end of its id
        agent: String,
        /// Input for each run
        #[arg(allow_hyphen_values = true)]
        input: Option<String>,
        /// Further words of the input
        #[arg(value_name = "WORD")]
        words: Vec<String>,
        /// Name of the schedule [default: from the id of the agent]
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        timing: Box<ScheduleTiming>,
    },
    /// Change a schedule
    Edit {
        /// Name of a schedule, or beginning or end of its id
        schedule: String,
        /// New name
        #[arg(long)]
        name: Option<String>,
        /// Id or name of an agent, or beginning or end of its id
        #[arg(long)]
        agent: Option<String>,
        /// Input for each run
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        input: Option<String>,
        #[command(flatten)]
        timing: Box<ScheduleTiming>,
        /// Field to reset to its default; may be repeated
        #[arg(long, value_name = "FIELD", value_parser = ["overlap", "missed", "missed-window", "jitter", "start", "end", "pause-after"])]
        clear: Vec<String>,
    },
    /// Pause a schedule
    Pause {
        /// Name of a schedule, or beginning or end of its id
        schedule: String,
        /// Reason for the pause
        #[arg(long)]
        reason: Option<String>,
    },
    /// Resume a schedule at its next occurrence
    Resume {
        /// Name of a schedule, or beginning or end of its id
        schedule: String,
    },
    /// Run a schedule now and print the output
    Run {
        /// Name of a schedule, or beginning or end of its id
        schedule: String,
        /// Print the id of the execution and do not wait
        #[arg(long)]
        detach: bool,
    },
    /// Show the next occurrences of a schedule
    Next {
        /// Name of a schedule, or beginning or end of its id
        schedule: String,
        /// Number of occurrences
        #[arg(short = 'n', long = "count", value_name = "N", default_value_t = 5)]
        count: usize,
    },
    /// Explain why a schedule did or did not run
    Explain {
        /// Name of a schedule, or beginning or end of its id
        schedule: String,
        /// Time to explain: words such as "yesterday 9am", or 2026-01-31T15:00 [default: now]
        #[arg(long, value_name = "TIME")]
        at: Option<String>,
    },
    /// Show the decisions about the occurrences of a schedule, newest first
    History {
        /// Name of a schedule, or beginning or end of its id
        schedule: String,
        /// Maximum number of decisions [default: 50]
        #[arg(long, value_name = "N", value_parser = super::parse_limit)]
        limit: Option<usize>,
    },
    /// Remove schedules and their history
    Rm {
        /// Name of a schedule, or beginning or end of its id
        #[arg(required = true, value_name = "SCHEDULE")]
        schedules: Vec<String>,
    },
}

/// The occurrences of a schedule, and the policies for overlapping and missed ones.
#[derive(Debug, Args)]
pub(crate) struct ScheduleTiming {
    /// Times in words, such as "every friday at 5pm" or "tomorrow at 9am"
    #[arg(long, value_name = "TIMES", conflicts_with_all = ["cron", "every", "at"])]
    pub(crate) when: Option<String>,
    /// Cron expression: minute, hour, day, month, weekday, such as "0 17 * * FRI"; or @daily
    #[arg(long, value_name = "EXPRESSION", conflicts_with_all = ["every", "at"])]
    pub(crate) cron: Option<String>,
    /// Interval, such as 90m or 1h30m
    #[arg(long, value_name = "LENGTH", conflicts_with = "at")]
    pub(crate) every: Option<String>,
    /// Time of a single run: words such as "tomorrow 9am", or 2026-01-31T15:00
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// Time zone, such as Europe/Berlin [default: yours]
    #[arg(long, value_name = "ZONE")]
    pub(crate) time_zone: Option<String>,
    /// Parameter: a number, true, false, JSON or text; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) param: Vec<String>,
    /// While the previous run is active: skip, queue_one, queue_all, cancel or allow [default: skip]
    #[arg(long, value_name = "POLICY")]
    pub(crate) overlap: Option<String>,
    /// Occurrences to catch up on that passed without a server: none, once or all [default: once]
    #[arg(long, value_name = "POLICY")]
    pub(crate) missed: Option<String>,
    /// Maximum age of an occurrence to catch up on [default: 1d]
    #[arg(long, value_name = "LENGTH")]
    pub(crate) missed_window: Option<String>,
    /// Maximum random delay of each run, such as 5m
    #[arg(long, value_name = "LENGTH")]
    pub(crate) jitter: Option<String>,
    /// Time of the first possible run, in words or exact
    #[arg(long, value_name = "TIME")]
    pub(crate) start: Option<String>,
    /// Time of the last possible run, in words or exact
    #[arg(long, value_name = "TIME")]
    pub(crate) end: Option<String>,
    /// Number of consecutive failures after which the schedule is paused
    #[arg(long, value_name = "N")]
    pub(crate) pause_after: Option<u32>,
}
