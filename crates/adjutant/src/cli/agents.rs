//! The words of the commands about agents: `agents`, `run`, `executions`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Agents {
    /// Show agents
    #[command(visible_alias = "ls")]
    List {
        /// Only the ids
        #[arg(long, short)]
        quiet: bool,
    },
    /// Show everything about an agent
    Show {
        /// Id, name, or beginning or end of an id
        agent: String,
    },
    /// Add an agent
    Add(Box<NewAgent>),
    /// Remove agents that were added
    Rm {
        /// Id, name, or beginning or end of an id
        #[arg(required = true, value_name = "AGENT")]
        agents: Vec<String>,
    },
    /// Say whether agents can be run on this machine, and what is missing
    Check {
        /// Id, name, or beginning or end of an id [default: all that are enabled]
        #[arg(value_name = "AGENT")]
        agents: Vec<String>,
    },
    /// Find agents that are installed on this machine
    Detect {
        /// Only the names of their presets
        #[arg(long, short)]
        quiet: bool,
    },
    /// Show the agents that adjutant knows how to run
    Presets {
        /// Only their names
        #[arg(long, short)]
        quiet: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct NewAgent {
    /// Agent that adjutant knows how to run; `adjutant agents presets` lists them
    #[arg(long)]
    pub(crate) preset: Option<String>,
    /// Lower-case letters, digits and hyphens [default: the preset's, or made of the name]
    #[arg(long)]
    pub(crate) id: Option<String>,
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Program: a path, or a name on the PATH
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) executable: Option<String>,
    /// Instead of a program: address of an agent elsewhere that speaks A2A, or of its card
    #[arg(long, value_name = "URL", conflicts_with_all = ["preset", "executable"])]
    pub(crate) card_url: Option<String>,
    /// Token to show to it, by reference: env:NAME or file:PATH
    #[arg(long, value_name = "REFERENCE", requires = "card_url")]
    pub(crate) card_token: Option<String>,
    /// Argument, with templates such as {{input}}; may be given several times
    #[arg(long = "arg", value_name = "ARG", allow_hyphen_values = true)]
    pub(crate) args: Vec<String>,
    /// How it gets its input
    #[arg(long, value_name = "HOW", value_parser = ["stdin", "file", "args", "json-rpc"])]
    pub(crate) input: Option<String>,
    /// Where its answer is
    #[arg(long, value_name = "WHERE", value_parser = ["stdout", "file", "json-rpc"])]
    pub(crate) output: Option<String>,
    /// Whether it changes anything; then it runs alone
    #[arg(long, value_parser = ["read-only", "read-write"])]
    pub(crate) access: Option<String>,
    /// Where it works
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Variable, a secret only by reference: KEY=env:NAME or KEY=file:PATH; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// How long a run may take
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
    /// User who may run it, `*` for everyone; may be given several times [default: administrators]
    #[arg(long, value_name = "UUID")]
    pub(crate) allow: Vec<String>,
    /// All fields from a TOML or JSON file, `-` for standard input; flags win over it
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Id, name, or beginning or end of an id
    pub(crate) agent: String,
    /// What it is asked, `-` for standard input [default: standard input where that is no terminal]
    #[arg(allow_hyphen_values = true)]
    pub(crate) input: Option<String>,
    /// Print the execution's id and do not wait
    #[arg(long)]
    pub(crate) detach: bool,
    /// How long it may take, if shorter than the agent's own limit
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
    /// Parameter: a number, true, false, JSON, or else text; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) param: Vec<String>,
    /// Where it works, if the agent consents
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Variable, if the agent consents; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Executions {
    /// Show executions, the newest first
    #[command(visible_alias = "ls")]
    List {
        /// Only of this agent: id, name, or beginning or end of an id
        #[arg(long, short)]
        agent: Option<String>,
        /// idle, starting, running, completed, failed, timeout, cancelled, or active for the first three
        #[arg(long, short)]
        state: Option<String>,
        /// At most so many [default: 50]
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
        /// With --json: the page to begin at
        #[arg(long, value_name = "CURSOR", requires = "json")]
        cursor: Option<String>,
        /// Only the ids
        #[arg(long, short)]
        quiet: bool,
    },
    /// Show everything about an execution
    Show {
        /// Beginning or end of an id
        execution: String,
    },
    /// Print what an execution has said
    Logs {
        /// Beginning or end of an id
        execution: String,
        /// Go on until it ends
        #[arg(long, short)]
        follow: bool,
        /// What of it: file is the answer of an agent that writes it to a file
        #[arg(long, default_value = "all", value_parser = ["all", "stdout", "stderr", "file"])]
        stream: String,
    },
    /// Stop executions
    Cancel {
        /// Beginning or end of an id
        #[arg(required = true, value_name = "EXECUTION")]
        executions: Vec<String>,
    },
    /// Ask the same of the same agent again
    Retry {
        /// Beginning or end of an id
        execution: String,
        /// Print what it says until it ends
        #[arg(long, short)]
        follow: bool,
    },
}
