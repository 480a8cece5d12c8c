//! The command line: every command and flag, with the words of its help.

mod a2a;
mod agents;
mod reminders;
mod schedules;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(crate) use a2a::{A2a, At as A2aAt, Message as A2aMessage};
pub(crate) use agents::{Agents, Executions, NewAgent, Run};
pub(crate) use reminders::{Notifications, Reminders};
pub(crate) use schedules::{Schedules, Timing};

/// Runs AI agents for people: tasks and reminders in plain language, command-line agents under supervision.
#[derive(Debug, Parser)]
#[command(name = "adjutant", version, max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Global {
    /// Configuration file [default: adjutant.toml here, else adjutant/config.toml in the XDG config directory]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where everything is kept [default: adjutant in the XDG data directory]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// PostgreSQL instead of SQLite: postgres://…
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    /// Server to talk to [default: the one that runs on the data directory; where none runs, the data directory itself]
    #[arg(long, global = true, value_name = "URL", env = "ADJUTANT_SERVER")]
    pub(crate) server: Option<String>,
    /// Token to show to the server
    #[arg(long, global = true, value_name = "TOKEN", env = "ADJUTANT_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// Whether it was given for this call, not by the environment.
    #[arg(skip)]
    pub(crate) token_given: bool,
    /// Print what the server answers, as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Confirm without asking
    #[arg(long, short = 'y', global = true)]
    pub(crate) yes: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server
    Serve {
        /// Address and port [default: 127.0.0.1:7717]
        #[arg(long, value_name = "ADDR")]
        listen: Option<String>,
        /// Leave agents to the nodes that run `adjutant work`; needs PostgreSQL
        #[arg(long)]
        no_work: bool,
    },
    /// Run agents for the servers on the same PostgreSQL database
    Work {
        /// Address and port to tell there how it is, at /health [default: none]
        #[arg(long, value_name = "ADDR")]
        listen: Option<String>,
    },
    /// Talk to the assistant
    Chat {
        /// What to say [default: a prompt on a terminal, else the lines of standard input]
        message: Option<String>,
        /// Conversation to go on with
        #[arg(long, short, value_name = "ID")]
        conversation: Option<String>,
    },
    /// Tasks from the shell
    #[command(subcommand)]
    Tasks(Tasks),
    /// Reminders of tasks
    #[command(subcommand)]
    Reminders(Reminders),
    /// Show what you were told, or follow it
    Notifications(Notifications),
    /// Agents: what can be run, and how
    #[command(subcommand)]
    Agents(Agents),
    /// Run an agent and print what it says
    Run(Run),
    /// What agents were asked, and what came of it
    #[command(subcommand)]
    Executions(Executions),
    /// Agents that are run at certain times
    #[command(subcommand)]
    Schedules(Schedules),
    /// Speak with any agent that speaks the Agent2Agent protocol
    #[command(subcommand)]
    A2a(A2a),
    /// Serve the tools to an MCP client on standard input and output
    Mcp {
        /// Whose tasks they work on [default: the local user's, or the token's]
        #[arg(long, value_name = "UUID")]
        user: Option<String>,
    },
    /// Say what the offline engine reads in an utterance
    Understand {
        /// The utterance [default: one a line on standard input, plain or {"text", "now"}]
        text: Option<String>,
        /// The time it is said at, such as 2025-12-21T12:00:00Z [default: now]
        #[arg(long, value_name = "TIME")]
        now: Option<String>,
    },
    /// Make and revoke tokens
    #[command(subcommand)]
    Token(Token),
    /// Write everything to a file, while the server runs or not
    Backup {
        /// File to write, `-` for standard output [default: adjutant-backup-TIME.jsonl]
        file: Option<PathBuf>,
    },
    /// Replace everything with a backup
    Restore { file: PathBuf },
    /// Write all your data to a file
    Export {
        /// File to write [default: standard output]
        file: Option<PathBuf>,
    },
    /// Take in data that was exported
    Import {
        /// File to read, `-` for standard input
        file: PathBuf,
    },
    /// Delete all your data, for good
    Erase,
    /// Write, check and show the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Say what is installed, reachable or missing
    Doctor,
    /// Print completions for a shell
    Completions { shell: clap_complete::Shell },
    /// Print the manual page
    Man {
        /// Write the page of every command to this directory instead
        #[arg(long)]
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Tasks {
    /// Show tasks
    #[command(visible_alias = "ls")]
    List {
        /// pending, completed or all
        #[arg(long, short, value_name = "STATUS")]
        status: Option<String>,
        /// low, medium or high
        #[arg(long, short)]
        priority: Option<String>,
        /// today, tomorrow, this_week, overdue, a date, or days such as 2026-01-01..2026-01-31
        #[arg(long, short)]
        due: Option<String>,
        #[arg(long, short)]
        tag: Option<String>,
        /// Text in title or description
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
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
    /// Add a task
    Add {
        title: String,
        #[command(flatten)]
        details: Details,
    },
    /// Mark tasks as done
    Done {
        /// Title, or beginning or end of an id
        #[arg(required = true, value_name = "TASK")]
        tasks: Vec<String>,
    },
    /// Change a task
    Edit {
        /// Title, or beginning or end of an id
        task: String,
        #[arg(long)]
        title: Option<String>,
        #[command(flatten)]
        details: Details,
        /// pending or completed
        #[arg(long)]
        status: Option<String>,
        /// Remove the description, due date, recurrence or tags
        #[arg(long, value_name = "FIELD", value_parser = ["description", "due", "repeat", "tags"])]
        clear: Vec<String>,
    },
    /// Delete tasks
    Rm {
        /// Title, or beginning or end of an id
        #[arg(required = true, value_name = "TASK")]
        tasks: Vec<String>,
    },
    /// Take back the last change
    Undo,
}

#[derive(Debug, Default, Args)]
pub(crate) struct Details {
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// 2026-01-31, or 2026-01-31T15:00
    #[arg(long, value_name = "DATE")]
    pub(crate) due: Option<String>,
    /// low, medium or high
    #[arg(long)]
    pub(crate) priority: Option<String>,
    /// May be given several times
    #[arg(long)]
    pub(crate) tag: Vec<String>,
    /// An RRULE such as FREQ=WEEKLY;BYDAY=MO
    #[arg(long, value_name = "RRULE")]
    pub(crate) repeat: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Make a token with the configured secret
    Create {
        /// Whom it stands for
        #[arg(long, value_name = "UUID")]
        user: String,
        /// How long it is valid: 30m, 24h, 90d
        #[arg(long, default_value = "24h")]
        ttl: String,
        /// What it allows beyond the user's own things; may be given several times
        #[arg(long)]
        scope: Vec<String>,
        /// Where the user is
        #[arg(long, value_name = "ZONE")]
        time_zone: Option<String>,
    },
    /// Make a token invalid before it expires
    Revoke {
        /// The token itself, `-` for standard input
        #[arg(required_unless_present = "id", conflicts_with = "id")]
        revoke: Option<String>,
        /// Only the token's id (jti), together with --user
        #[arg(long, requires = "user")]
        id: Option<String>,
        #[arg(long, value_name = "UUID")]
        user: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Write a configuration file with every setting explained
    Init,
    /// Say everything that is wrong
    Check,
    /// Show the values in force and where they come from
    Show,
}
