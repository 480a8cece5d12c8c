//! The command line of `adjutant a2a`, a client for A2A agents.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum A2aCommand {
    /// Show the card of an agent
    Card {
        #[command(flatten)]
        at: RemoteAgentArgs,
    },
    /// Send a message to an agent and print the result
    Send(Box<SendArgs>),
    /// Show a task
    Get {
        #[command(flatten)]
        at: RemoteAgentArgs,
        /// Id of the task
        #[arg(value_name = "TASK_ID")]
        task: String,
        /// Number of latest messages to show
        #[arg(long, value_name = "N")]
        history: Option<i32>,
    },
    /// Show your tasks, most recently changed first
    List {
        #[command(flatten)]
        at: RemoteAgentArgs,
        /// Only tasks of this context
        #[arg(long, value_name = "ID")]
        context: Option<String>,
        /// State: submitted, working, completed, failed, canceled, input-required, rejected, auth-required
        #[arg(long)]
        status: Option<String>,
        /// Maximum number of tasks [default: 50]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=100))]
        limit: Option<i32>,
        /// Print only the ids
        #[arg(long, short)]
        quiet: bool,
    },
    /// Cancel a task
    Cancel {
        #[command(flatten)]
        at: RemoteAgentArgs,
        /// Id of the task
        #[arg(value_name = "TASK_ID")]
        task: String,
    },
}

/// Selects an agent and the connection to it. The token is `--token` if it is on the command line, else
/// ADJUTANT_A2A_TOKEN. ADJUTANT_TOKEN is for our own server and is never sent to other agents.
#[derive(Debug, Args)]
pub(crate) struct RemoteAgentArgs {
    /// URL of the agent or of its card. --token or ADJUTANT_A2A_TOKEN is the token for it, or env:NAME, file:PATH
    pub(crate) url: String,
    /// Header to send, secrets by reference: NAME=env:VARIABLE or NAME=file:PATH; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) header: Vec<String>,
    /// Protocol binding to use [default: the preferred binding of the card]
    #[arg(long, value_parser = ["jsonrpc", "rest", "grpc"])]
    pub(crate) binding: Option<String>,
    /// Protocol version to use [default: the newest version of the card]
    #[arg(long, value_parser = ["0.3", "1.0"])]
    pub(crate) version: Option<String>,
    /// Send messages and the token to other hosts if the card refers to them
    #[arg(long)]
    pub(crate) other_hosts: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    #[command(flatten)]
    pub(crate) at: RemoteAgentArgs,
    /// Message to send, `-` for standard input
    #[arg(allow_hyphen_values = true)]
    pub(crate) message: Option<String>,
    /// Context to continue
    #[arg(long, value_name = "ID")]
    pub(crate) context: Option<String>,
    /// Task that waits for this message
    #[arg(long, value_name = "ID")]
    pub(crate) task: Option<String>,
    /// JSON data to send; may be repeated
    #[arg(long, value_name = "JSON")]
    pub(crate) data: Vec<String>,
    /// File to send; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Vec<PathBuf>,
    /// Print updates as they arrive [default if the agent supports it]; with --json, one event per line
    #[arg(long, overrides_with = "no_stream")]
    pub(crate) stream: bool,
    /// Print only the final result
    #[arg(long)]
    pub(crate) no_stream: bool,
    /// Print the id of the task and do not wait for its end
    #[arg(long, conflicts_with = "stream")]
    pub(crate) no_wait: bool,
    /// Maximum time to wait for the end
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
}
