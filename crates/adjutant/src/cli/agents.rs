//! The command line of `agents`, `run` and `executions`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// Show agents
    #[command(visible_alias = "ls")]
    List {
        /// Print only the ids
        #[arg(long, short)]
        quiet: bool,
    },
    /// Show the details of an agent
    Show {
        /// Id or name of an agent, or beginning or end of its id
        agent: String,
    },
    /// Add an agent
    Add(Box<AddAgentArgs>),
    /// Remove added agents
    Rm {
        /// Id or name of an agent, or beginning or end of its id
        #[arg(required = true, value_name = "AGENT")]
        agents: Vec<String>,
    },
    /// Check whether agents can run on this machine
    Check {
        /// Id or name of an agent, or beginning or end of its id [default: all enabled agents]
        #[arg(value_name = "AGENT")]
        agents: Vec<String>,
    },
    /// Find installed agents
    Detect {
        /// Print only the names of the presets
        #[arg(long, short)]
        quiet: bool,
    },
    /// Show the built-in presets of known agents
    Presets {
        /// Print only the names
        #[arg(long, short)]
        quiet: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AddAgentArgs {
    /// Preset of a known agent; `adjutant agents presets` lists them
    #[arg(long)]
    pub(crate) preset: Option<String>,
    /// Id: lower-case letters, digits and hyphens [default: from the preset or the name]
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// Name [default: from the preset or the id]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Program to run: a path, or a name on the PATH
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) executable: Option<String>,
    /// URL of a remote A2A agent or of its card, instead of a program
    #[arg(long, value_name = "URL", conflicts_with_all = ["preset", "executable"])]
    pub(crate) card_url: Option<String>,
    /// Token for the remote agent, by reference: env:NAME or file:PATH
    #[arg(long, value_name = "REFERENCE", requires = "card_url")]
    pub(crate) card_token: Option<String>,
    /// Argument, with templates such as {{input}}; may be repeated
    #[arg(long = "arg", value_name = "ARG", allow_hyphen_values = true)]
    pub(crate) args: Vec<String>,
    /// Input method of the agent
    #[arg(long, value_name = "HOW", value_parser = ["stdin", "file", "args", "json-rpc"])]
    pub(crate) input: Option<String>,
    /// Output method of the agent
    #[arg(long, value_name = "WHERE", value_parser = ["stdout", "file", "json-rpc"])]
    pub(crate) output: Option<String>,
    /// Access to files; a read-write agent runs one execution at a time
    #[arg(long, value_parser = ["read-only", "read-write"])]
    pub(crate) access: Option<String>,
    /// Working directory
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Environment variable, secrets by reference: KEY=env:NAME or KEY=file:PATH; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// Maximum duration of a run
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
    /// User that may run the agent, `*` for everyone; may be repeated [default: administrators]
    #[arg(long, value_name = "UUID")]
    pub(crate) allow: Vec<String>,
    /// TOML or JSON file with the fields of the agent, `-` for standard input; flags take precedence
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Id or name of an agent, or beginning or end of its id
    pub(crate) agent: String,
    /// Input for the agent, `-` for standard input [default: standard input, unless it is a terminal]
    #[arg(allow_hyphen_values = true)]
    pub(crate) input: Option<String>,
    /// Further words of the input
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<String>,
    /// Print the id of the execution and do not wait
    #[arg(long)]
    pub(crate) detach: bool,
    /// Maximum duration, if shorter than the limit of the agent
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
    /// Parameter: a number, true, false, JSON or text; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) param: Vec<String>,
    /// Working directory, if the agent allows it
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Environment variable, if the agent allows it; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExecutionsCommand {
    /// Show executions, newest first
    #[command(visible_alias = "ls")]
    List {
        /// Only executions of this agent: id, name, or beginning or end of an id
        #[arg(long, short)]
        agent: Option<String>,
        /// State: idle, starting, running, completed, failed, timeout, cancelled, or active for the first three
        #[arg(long, short)]
        state: Option<String>,
        /// Maximum number of executions [default: 50]
        #[arg(long, value_name = "N", value_parser = super::parse_limit)]
        limit: Option<usize>,
        /// Cursor of the page to show, with --json
        #[arg(long, value_name = "CURSOR", requires = "json")]
        cursor: Option<String>,
        /// Print only the ids
        #[arg(long, short)]
        quiet: bool,
    },
    /// Show the details of an execution
    Show {
        /// Id of an execution, or its beginning or end
        execution: String,
    },
    /// Print the output of an execution
    Logs {
        /// Id of an execution, or its beginning or end
        execution: String,
        /// Follow the output until the execution ends
        #[arg(long, short)]
        follow: bool,
        /// Stream to print; file is the answer of an agent that writes it to a file
        #[arg(long, default_value = "all", value_parser = ["all", "stdout", "stderr", "file"])]
        stream: String,
    },
    /// Cancel executions
    Cancel {
        /// Id of an execution, or its beginning or end
        #[arg(required = true, value_name = "EXECUTION")]
        executions: Vec<String>,
    },
    /// Run an execution again with the same input
    Retry {
        /// Id of an execution, or its beginning or end
        execution: String,
        /// Print the output until the execution ends
        #[arg(long, short)]
        follow: bool,
    },
}
