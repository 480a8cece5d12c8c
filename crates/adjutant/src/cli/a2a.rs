//! The words of `adjutant a2a`: a client for any agent that speaks A2A.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum A2a {
    /// Show what an agent says of itself
    Card {
        #[command(flatten)]
        at: At,
    },
    /// Send an agent a message and print what comes of it
    Send(Box<Message>),
    /// Show a task
    Get {
        #[command(flatten)]
        at: At,
        #[arg(value_name = "TASK_ID")]
        task: String,
        /// So many of its last messages, too
        #[arg(long, value_name = "N")]
        history: Option<i32>,
    },
    /// Show your tasks, the last changed first
    List {
        #[command(flatten)]
        at: At,
        /// Only of this context
        #[arg(long, value_name = "ID")]
        context: Option<String>,
        /// Only those that stand like this: submitted, working, completed, failed, canceled, input-required, rejected, auth-required
        #[arg(long)]
        status: Option<String>,
        /// At most so many [default: 50]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=100))]
        limit: Option<i32>,
        /// Only the ids
        #[arg(long, short)]
        quiet: bool,
    },
    /// Stop a task
    Cancel {
        #[command(flatten)]
        at: At,
        #[arg(value_name = "TASK_ID")]
        task: String,
    },
}

/// Which agent, and how it is spoken to. The token is `--token` where that is given, else ADJUTANT_A2A_TOKEN; the one for
/// our own server is not shown to others.
#[derive(Debug, Args)]
pub(crate) struct At {
    /// Address of the agent or of its card. --token or ADJUTANT_A2A_TOKEN is the token to show there, or env:NAME, file:PATH
    pub(crate) url: String,
    /// Header to send, a secret only by reference: NAME=env:VARIABLE or NAME=file:PATH; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) header: Vec<String>,
    /// Only by this binding [default: the best that the card has]
    #[arg(long, value_parser = ["jsonrpc", "rest", "grpc"])]
    pub(crate) binding: Option<String>,
    /// Only in this version of the protocol [default: the newest that the card has]
    #[arg(long, value_parser = ["0.3", "1.0"])]
    pub(crate) version: Option<String>,
    /// Follow the card to other hosts than its own, with the token
    #[arg(long)]
    pub(crate) other_hosts: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Message {
    #[command(flatten)]
    pub(crate) at: At,
    /// What to say, `-` for standard input
    #[arg(allow_hyphen_values = true)]
    pub(crate) message: Option<String>,
    /// Context to go on with
    #[arg(long, value_name = "ID")]
    pub(crate) context: Option<String>,
    /// Task to answer, which asked something
    #[arg(long, value_name = "ID")]
    pub(crate) task: Option<String>,
    /// Data to send along, as JSON; may be given several times
    #[arg(long, value_name = "JSON")]
    pub(crate) data: Vec<String>,
    /// File to send along; may be given several times
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Vec<PathBuf>,
    /// Print what happens as it happens [default where the card can; with --json, one event a line]
    #[arg(long, overrides_with = "no_stream")]
    pub(crate) stream: bool,
    /// Ask for the end only
    #[arg(long)]
    pub(crate) no_stream: bool,
    /// Print the task and do not wait for its end
    #[arg(long, conflicts_with = "stream")]
    pub(crate) no_wait: bool,
    /// How long to wait for the end
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
}
