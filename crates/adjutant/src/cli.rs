//! The command line: every command and flag with its help text.

mod a2a;
mod agents;
mod permissions;
mod reminders;
mod schedules;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(crate) use a2a::{A2aCommand, RemoteAgentArgs, SendArgs};
pub(crate) use agents::{AddAgentArgs, AgentsCommand, ExecutionsCommand, RunArgs};
pub(crate) use permissions::PermissionsCommand;
pub(crate) use reminders::{NotificationsArgs, ReminderRepetition, RemindersCommand};
pub(crate) use schedules::{ScheduleTiming, SchedulesCommand};

/// Run AI agents: manage tasks and reminders in plain language, run command-line agents under supervision
#[derive(Debug, Parser)]
#[command(name = "adjutant", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct GlobalOptions {
    /// Configuration file [default: ./adjutant.toml, or adjutant/config.toml in the XDG config directory]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Data directory [default: adjutant in the XDG data directory]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// PostgreSQL database to use instead of SQLite: postgres://…
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    /// Server to connect to [default: the server that uses the data directory; without a server, the data directory]
    #[arg(long, global = true, value_name = "URL", env = "ADJUTANT_SERVER")]
    pub(crate) server: Option<String>,
    /// Token for the server
    #[arg(long, global = true, value_name = "TOKEN", env = "ADJUTANT_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// True if the token comes from the command line, not from the environment.
    #[arg(skip)]
    pub(crate) token_given: bool,
    /// Print the response of the server as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Answer every confirmation with yes
    #[arg(long, short = 'y', global = true)]
    pub(crate) yes: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server
    Serve {
        /// Address and port to listen on [default: 127.0.0.1:7717]
        #[arg(long, value_name = "ADDR")]
        listen: Option<String>,
        /// Do not run agents: nodes started with `adjutant work` run them; needs PostgreSQL
        #[arg(long)]
        no_work: bool,
    },
    /// Run agents for the servers on the same PostgreSQL database
    Work {
        /// Address and port for /health [default: none]
        #[arg(long, value_name = "ADDR")]
        listen: Option<String>,
    },
    /// Chat with the assistant
    Chat {
        /// Message to send [default: an interactive prompt on a terminal, or the lines of standard input]
        message: Vec<String>,
        /// Conversation to continue [default: with MESSAGE, the last one if its last message is at most 10 minutes old]
        #[arg(long, short, value_name = "ID", conflicts_with_all = ["new", "resume"])]
        conversation: Option<String>,
        /// Begin a new conversation
        #[arg(long, conflicts_with = "resume")]
        new: bool,
        /// Continue the last conversation, whatever its age
        #[arg(long = "continue", id = "resume")]
        resume: bool,
    },
    /// Manage tasks
    #[command(subcommand)]
    Tasks(TasksCommand),
    /// Manage reminders of tasks
    #[command(subcommand)]
    Reminders(RemindersCommand),
    /// Show or follow notifications
    Notifications(NotificationsArgs),
    /// Manage the tools that the assistant may use without asking
    #[command(subcommand)]
    Permissions(PermissionsCommand),
    /// Manage agents
    #[command(subcommand)]
    Agents(AgentsCommand),
    /// Run an agent and print its output
    Run(RunArgs),
    /// Show, follow, cancel and retry executions
    #[command(subcommand)]
    Executions(ExecutionsCommand),
    /// Manage schedules, which run agents at certain times
    #[command(subcommand)]
    Schedules(SchedulesCommand),
    /// Stop the running server
    Stop {
        /// Let running executions finish before
        #[arg(long)]
        drain: bool,
        /// Seconds after which running executions are ended all the same [default: 600]
        #[arg(long, value_name = "SECONDS", requires = "drain", value_parser = clap::value_parser!(u32).range(0..=86400))]
        timeout: Option<u32>,
    },
    /// Stop all agents, schedules and queues, on all nodes
    StopAll {
        /// Reason, shown to everyone who wants to run an agent
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Resume all agents, schedules and queues after `stop-all`
    ResumeAll,
    /// Show administrative changes, newest first
    Audit {
        /// Only changes since then: a time, a date, words such as yesterday, or a duration such as 2h or 7d
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Only changes of this kind, such as agent.updated
        #[arg(long, value_name = "ACTION")]
        action: Option<String>,
        /// Print only the ids
        #[arg(long, short)]
        quiet: bool,
        /// Maximum number of changes [default: 50]
        #[arg(long, value_name = "N", value_parser = parse_limit)]
        limit: Option<usize>,
        /// Cursor of the page to show, with --json
        #[arg(long, value_name = "CURSOR", requires = "json")]
        cursor: Option<String>,
    },
    /// Send messages to agents that support the Agent2Agent protocol
    #[command(subcommand)]
    A2a(A2aCommand),
    /// Serve the tools to an MCP client on standard input and output
    Mcp {
        /// Name or UUID of the user to act as [default: the local user, or the user of the token]
        #[arg(long, value_name = "USER")]
        user: Option<String>,
    },
    /// Show how the offline model understands an utterance
    Understand {
        /// Utterance [default: one per line of standard input, plain or as {"text", "now"}]
        text: Vec<String>,
        /// Current time to assume, such as 2025-12-21T12:00:00Z [default: now]
        #[arg(long, value_name = "TIME")]
        now: Option<String>,
    },
    /// Create and revoke tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// Write a backup of all data to a file, with or without a running server
    Backup {
        /// File to write, `-` for standard output [default: adjutant-backup-TIME.jsonl]
        file: Option<PathBuf>,
    },
    /// Replace all data with a backup
    Restore {
        /// Backup to read
        file: PathBuf,
    },
    /// Save the readable data of a damaged database as a backup, without a running server
    Recover {
        /// File to write [default: adjutant-recovered-TIME.jsonl]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Write all your data to a file
    Export {
        /// File to write [default: standard output]
        file: Option<PathBuf>,
    },
    /// Import exported data
    Import {
        /// File to read, `-` for standard input
        file: PathBuf,
    },
    /// Delete all your data permanently
    Erase,
    /// Write, check and show the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Check the installation and report problems
    Doctor,
    /// Print a completion script for a shell
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man {
        /// Write the pages of all commands to this directory instead
        #[arg(long)]
        dir: Option<PathBuf>,
    },
}

/// Parses the maximum number of items, at least 1.
pub(crate) fn parse_limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(limit) if limit > 0 => Ok(limit),
        _ => Err("must be a number of at least 1".to_owned()),
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// Show tasks
    #[command(visible_alias = "ls")]
    List {
        /// Status: pending, completed or all
        #[arg(long, short, value_name = "STATUS")]
        status: Option<String>,
        /// Priority: low, medium or high
        #[arg(long, short)]
        priority: Option<String>,
        /// Due date: today, tomorrow, this_week, next_week, friday, overdue, a date, or a range such as
        /// 2026-01-01..2026-01-31
        #[arg(long, short)]
        due: Option<String>,
        /// Tag
        #[arg(long, short)]
        tag: Option<String>,
        /// Text in the title or the description
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// Order: due, priority or created [default: due for a table, created for ids and JSON]
        #[arg(long, value_name = "ORDER", value_parser = ["due", "priority", "created"])]
        sort: Option<String>,
        /// Print only the ids
        #[arg(long, short)]
        quiet: bool,
        /// Maximum number of tasks
        #[arg(long, value_name = "N", value_parser = parse_limit)]
        limit: Option<usize>,
        /// Cursor of the page to show, with --json
        #[arg(long, value_name = "CURSOR", requires = "json")]
        cursor: Option<String>,
    },
    /// Show a task with its reminders
    Show {
        /// Title of a task, or beginning or end of its id
        #[arg(required = true)]
        task: Vec<String>,
    },
    /// Add a task
    Add {
        /// Title
        #[arg(required = true)]
        title: Vec<String>,
        #[command(flatten)]
        details: TaskDetails,
    },
    /// Mark tasks as done
    Done {
        /// Title of a task, or beginning or end of its id
        #[arg(required = true, value_name = "TASK")]
        tasks: Vec<String>,
    },
    /// Change a task
    Edit {
        /// Title of a task, or beginning or end of its id
        #[arg(required = true)]
        task: Vec<String>,
        /// New title
        #[arg(long)]
        title: Option<String>,
        #[command(flatten)]
        details: TaskDetails,
        /// Tag to add; may be repeated
        #[arg(long, value_name = "TAG", conflicts_with = "tag")]
        add_tag: Vec<String>,
        /// Tag to remove; may be repeated
        #[arg(long, value_name = "TAG", conflicts_with = "tag")]
        remove_tag: Vec<String>,
        /// Status: pending or completed
        #[arg(long)]
        status: Option<String>,
        /// Field to clear: description, due, repeat or tags; may be repeated
        #[arg(long, value_name = "FIELD", value_parser = ["description", "due", "repeat", "tags"])]
        clear: Vec<String>,
    },
    /// Delete tasks
    Rm {
        /// Title of a task, or beginning or end of its id
        #[arg(required = true, value_name = "TASK")]
        tasks: Vec<String>,
    },
    /// Undo the last change
    Undo,
}

#[derive(Debug, Default, Args)]
pub(crate) struct TaskDetails {
    /// Description
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Due date: words such as tomorrow or "friday 3pm", 2026-01-31 or 2026-01-31T15:00
    #[arg(long, value_name = "DATE")]
    pub(crate) due: Option<String>,
    /// Priority: low, medium or high
    #[arg(long)]
    pub(crate) priority: Option<String>,
    /// Tag; may be repeated; replaces the tags of an existing task
    #[arg(long)]
    pub(crate) tag: Vec<String>,
    /// Recurrence: words such as weekly or "every friday at 5pm", or an RRULE such as FREQ=WEEKLY;BYDAY=MO
    #[arg(long, value_name = "RULE")]
    pub(crate) repeat: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token with the configured secret
    Create {
        /// Name or UUID of the user; a name always has the same UUID
        #[arg(long, value_name = "USER")]
        user: String,
        /// Lifetime, such as 30m, 24h or 90d
        #[arg(long, default_value = "24h")]
        ttl: String,
        /// Scope to grant, such as adjutant:admin; may be repeated
        #[arg(long)]
        scope: Vec<String>,
        /// Time zone of the user, such as Europe/Berlin
        #[arg(long, value_name = "ZONE")]
        time_zone: Option<String>,
    },
    /// Revoke a token before it expires
    Revoke {
        /// Token to revoke, `-` for standard input
        #[arg(required_unless_present = "id", conflicts_with = "id")]
        revoke: Option<String>,
        /// Id of the token (jti) instead of the token; needs --user
        #[arg(long, requires = "user")]
        id: Option<String>,
        /// Name or UUID of the user of the token, with --id
        #[arg(long, value_name = "USER")]
        user: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Write a configuration file that explains every setting
    Init,
    /// Check the configuration and report every mistake
    Check,
    /// Show the effective values and their origin
    Show,
}
