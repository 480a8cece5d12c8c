//! Agents: programs that take a message and answer it, described by configuration alone (S2's AgentConfiguration).

mod draft;
mod elsewhere;
pub mod endpoint;
mod rules;
pub mod seconds;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

pub use draft::{Draft, MAX_ID};
pub use elsewhere::{A2A, CardAuth};
pub use endpoint::Endpoint;
pub use seconds::Seconds;

use crate::execution::Category;
use crate::{User, words::words};
use redact::What;

/// The id of the built-in assistant, which nobody else can have.
pub const ASSISTANT: &str = "assistant";

/// How an agent is run. Every value has passed [`Draft::check`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    /// Lower-case letters, digits and hyphens.
    #[schema(examples("codex"))]
    pub id: String,
    pub name: String,
    pub description: String,
    /// What the configuration was made from.
    pub preset: Option<String>,
    /// Follows from the patterns where it was not given.
    #[schema(examples("stdin-stdout"))]
    pub agent_type: String,
    /// Empty where the agent has a card elsewhere.
    pub executable_path: String,
    /// Where the card of an agent is that runs elsewhere and is reached by A2A.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_url: Option<String>,
    /// What is shown to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_auth: Option<CardAuth>,
    pub working_directory: Option<String>,
    /// `${NAME}`, `env:NAME` and `file:PATH` are looked up when a run begins.
    pub envs: BTreeMap<String, String>,
    /// In order, with `{{templates}}`.
    pub args: Vec<String>,
    /// Follow as `--key value` in the order of their keys.
    pub cli_args: BTreeMap<String, String>,
    /// What a run has where it does not say otherwise.
    pub parameters: BTreeMap<String, Value>,
    pub mode: Mode,
    pub input_pattern: InputPattern,
    pub output_pattern: OutputPattern,
    pub input_file_template: Option<String>,
    pub output_file_template: Option<String>,
    /// What is spoken where a pattern is `json-rpc`.
    pub protocol: Protocol,
    /// The method that is called where the protocol is plain JSON-RPC.
    pub rpc_method: String,
    /// What the agent is told when it asks whether it may do something.
    pub permissions: Permissions,
    pub access_type: AccessType,
    /// What a read-only agent may write to all the same.
    pub write_paths: Vec<String>,
    pub max_concurrent_executions: u32,
    pub timeout: Seconds,
    pub session_timeout: Seconds,
    pub keep_alive: bool,
    pub session: SessionRules,
    pub enabled: bool,
    /// Between the request to end and the order.
    pub grace: Seconds,
    /// How many may wait.
    pub queue_depth: u32,
    /// How long one may wait.
    pub queue_timeout: Seconds,
    pub max_retries: u32,
    /// Before the first retry; twice as long before each further one.
    pub retry_delay: Seconds,
    pub max_input_size: u64,
    pub max_output_size: u64,
    /// What is taken out of input and output before they are kept.
    pub redact: Vec<Redact>,
    pub limits: Limits,
    /// Ids of the users who may run it; `*` is everyone. Administrators always may.
    pub allow: Vec<String>,
    /// What an administrator may set for one run.
    pub overrides: Vec<Override>,
    /// Which category an exit code stands for.
    pub exit_codes: BTreeMap<i32, Category>,
    /// Which category a failure is of whose output has this text.
    pub error_patterns: Vec<ErrorPattern>,
    /// How other programs reach it by the Agent2Agent protocol.
    #[serde(default)]
    pub a2a: Endpoint,
}

impl Agent {
    /// Whether it runs elsewhere, and there is no program of it here.
    pub fn is_elsewhere(&self) -> bool {
        self.card_url.is_some()
    }

    /// Whether its answer is in a file, or found out when it has ended, and what it says meanwhile is not its answer.
    pub fn answers_late(&self) -> bool {
        self.output_pattern.is_late(self.input_pattern)
    }

    /// Whether the user may run it and see that it is there (OPS-6).
    pub fn lets(&self, user: &User) -> bool {
        user.is_admin() || {
            let id = user.id.to_string();
            self.allow.iter().any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(&id))
        }
    }

    pub fn redacts(&self) -> What {
        What { secrets: self.redact.contains(&Redact::Secrets), emails: self.redact.contains(&Redact::Emails) }
    }

    /// How many may run at once.
    pub fn places(&self) -> u32 {
        match self.access_type {
            AccessType::ReadWrite => 1,
            AccessType::ReadOnly => self.max_concurrent_executions,
        }
    }
}

words! {
    /// One run after another, or a conversation with one process.
    #[schema(as = AgentMode)]
    pub enum Mode { Task = "task", Interactive = "interactive" }
}
words! {
    /// The origin of an agent's configuration.
    #[schema(as = AgentSource)]
    pub enum Source {
        BuiltIn = "built_in",
        /// The configuration file: it cannot be changed over the API.
        File = "file",
        Api = "api",
    }
}
words! {
    pub enum InputPattern { Stdin = "stdin", File = "file", Args = "args", JsonRpc = "json-rpc" }
}
words! {
    pub enum OutputPattern { Stdout = "stdout", File = "file", JsonRpc = "json-rpc" }
}

impl OutputPattern {
    /// Returns true if the answer is known only when the run has ended.
    pub fn is_late(self, input: InputPattern) -> bool {
        match self {
            Self::File => true,
            Self::JsonRpc => input != InputPattern::JsonRpc,
            Self::Stdout => false,
        }
    }
}

words! {
    /// Whether it changes anything: then it runs alone.
    pub enum AccessType { ReadOnly = "read-only", ReadWrite = "read-write" }
}
words! {
    /// The Agent Client Protocol, or one JSON-RPC 2.0 request and its answer.
    pub enum Protocol { Acp = "acp", JsonRpc = "json-rpc" }
}
words! {
    /// `read` allows what only reads.
    pub enum Permissions { Allow = "allow", Read = "read", Deny = "deny" }
}
words! {
    pub enum Redact { Secrets = "secrets", Emails = "emails" }
}
words! {
    pub enum Override { WorkingDirectory = "working_directory", Envs = "envs" }
}

/// How an answer in a session is recognised as complete, where no protocol says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionRules {
    /// A line that ends every answer.
    #[serde(default)]
    pub marker: Option<String>,
    /// Without a marker: how long nothing must come.
    #[serde(default = "quiet")]
    pub quiet: Seconds,
    /// Whether the agent sees a terminal.
    #[serde(default)]
    pub terminal: bool,
}

fn quiet() -> Seconds {
    Seconds::from_millis(1000)
}

impl Default for SessionRules {
    fn default() -> Self {
        Self { marker: None, quiet: quiet(), terminal: false }
    }
}

/// What one run may use at most; what is not given is not limited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = AgentLimits)]
pub struct Limits {
    /// Of the processor, for each process.
    pub cpu_seconds: Option<u64>,
    /// Of address space, for each process.
    pub memory_mb: Option<u64>,
    pub open_files: Option<u64>,
    /// Of the whole account, as the system counts them.
    pub processes: Option<u64>,
    pub file_size_mb: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorPattern {
    /// Part of what the agent wrote, in any case.
    pub text: String,
    pub category: Category,
}
