//! Agents: programs that answer messages, defined only by their configuration (S2's AgentConfiguration).

mod draft;
pub mod endpoint;
mod remote;
mod rules;
pub mod seconds;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

pub use draft::{AgentDraft, MAX_ID_CHARS};
pub use endpoint::Endpoint;
pub use remote::{A2A_AGENT_TYPE, CardAuth};
pub use seconds::Seconds;

use crate::execution::ErrorCategory;
use crate::{User, string_enum::schema_enum};
use redact::RedactOptions;

/// The id of the built-in assistant. No other agent can have it.
pub const ASSISTANT_ID: &str = "assistant";

/// The configuration of an agent, validated by [`AgentDraft::check`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    /// Lower-case letters, digits and hyphens.
    #[schema(examples("codex"))]
    pub id: String,
    pub name: String,
    pub description: String,
    /// The preset that the configuration is based on.
    pub preset: Option<String>,
    /// Derived from the patterns by default.
    #[schema(examples("stdin-stdout"))]
    pub agent_type: String,
    /// The program. Empty for a remote agent.
    pub executable_path: String,
    /// The URL of the agent card of a remote agent, which is reached by A2A.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_url: Option<String>,
    /// The credentials for a remote agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_auth: Option<CardAuth>,
    pub working_directory: Option<String>,
    /// Environment variables. `${NAME}`, `env:NAME` and `file:PATH` are resolved when a run starts.
    pub envs: BTreeMap<String, String>,
    /// Arguments in order. They may contain `{{templates}}`.
    pub args: Vec<String>,
    /// Further arguments, passed as `--key value` in the order of the keys.
    pub cli_args: BTreeMap<String, String>,
    /// Default values of the parameters of a run.
    pub parameters: BTreeMap<String, Value>,
    pub mode: AgentMode,
    pub input_pattern: InputPattern,
    pub output_pattern: OutputPattern,
    pub input_file_template: Option<String>,
    pub output_file_template: Option<String>,
    /// The protocol if a pattern is `json-rpc`.
    pub protocol: AgentProtocol,
    /// The method that is called if the protocol is plain JSON-RPC.
    pub rpc_method: String,
    /// The reply to permission requests of the agent.
    pub permissions: Permissions,
    /// The runs that a language model may start only after the user has confirmed them.
    #[serde(default)]
    pub confirm: RunConfirmation,
    pub access_type: AccessType,
    /// Paths that a read-only agent may write to.
    pub write_paths: Vec<String>,
    #[serde(default)]
    pub network: AgentNetwork,
    /// The ports for TCP connections if `network` is `ports`. With 53, UDP is allowed too, for name resolution.
    #[serde(default)]
    pub ports: Vec<u16>,
    #[serde(default)]
    pub sandbox: SandboxMode,
    /// The operating system user that the agent runs as. Needs a server that runs as root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_as: Option<String>,
    /// Each run gets a token for the tasks of its owner. Without it, the server refuses every request of the agent.
    #[serde(default)]
    pub api_access: bool,
    pub max_concurrent_executions: u32,
    pub timeout: Seconds,
    pub session_timeout: Seconds,
    pub keep_alive: bool,
    pub session: SessionRules,
    pub enabled: bool,
    /// The time between the request to terminate and the kill.
    pub grace: Seconds,
    /// The maximum number of queued executions.
    pub queue_depth: u32,
    /// The maximum time that an execution may be queued.
    pub queue_timeout: Seconds,
    pub max_retries: u32,
    /// The delay before the first retry. It doubles with each further retry.
    pub retry_delay: Seconds,
    pub max_input_size: u64,
    pub max_output_size: u64,
    /// Data that is redacted in input and output before they are stored.
    pub redact: Vec<RedactionKind>,
    pub limits: AgentLimits,
    /// The ids of the users who may run the agent. `*` means every user. Operators may always run it.
    pub allow: Vec<String>,
    /// Settings that an operator may override for a single run.
    pub overrides: Vec<Override>,
    /// The error category of each exit code.
    pub exit_codes: BTreeMap<i32, ErrorCategory>,
    /// The error category of a failure by text in its output.
    pub error_patterns: Vec<ErrorPattern>,
    /// The Agent2Agent endpoint of the agent.
    #[serde(default)]
    pub a2a: Endpoint,
}

impl Agent {
    /// Returns `true` for a remote agent, which has no local program.
    pub fn is_remote(&self) -> bool {
        self.card_url.is_some()
    }

    /// Returns `true` if the answer is known only at the end of a run. Output before that is not part of the answer.
    pub fn answers_at_end(&self) -> bool {
        self.output_pattern.answers_at_end(self.input_pattern)
    }

    /// Returns `true` if the user may see and run the agent: an operator, or a user that `allow` contains (OPS-6). If
    /// `allow` is empty, only operators may.
    pub fn is_allowed_for(&self, user: &User) -> bool {
        user.is_admin() || {
            let id = user.id.to_string();
            self.allow.iter().any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(&id))
        }
    }

    /// Returns the data to redact in input and output.
    pub fn redact_options(&self) -> RedactOptions {
        RedactOptions {
            secrets: self.redact.contains(&RedactionKind::Secrets),
            emails: self.redact.contains(&RedactionKind::Emails),
        }
    }

    /// Returns the number of executions that may run at the same time. It is always 1 for a read-write agent.
    pub fn max_concurrency(&self) -> u32 {
        match self.access_type {
            AccessType::ReadWrite => 1,
            AccessType::ReadOnly => self.max_concurrent_executions,
        }
    }
}

schema_enum! {
    /// `task`: one process for each execution. `interactive`: a session with one process.
    pub enum AgentMode { Task = "task", Interactive = "interactive" }
}
schema_enum! {
    /// The origin of an agent's configuration.
    pub enum AgentSource {
        BuiltIn = "built_in",
        /// The configuration file. The agent cannot be changed over the API.
        File = "file",
        Api = "api",
    }
}
schema_enum! {
    /// The transport of the input.
    pub enum InputPattern { Stdin = "stdin", File = "file", Args = "args", JsonRpc = "json-rpc" }
}
schema_enum! {
    /// The transport of the output.
    pub enum OutputPattern { Stdout = "stdout", File = "file", JsonRpc = "json-rpc" }
}

impl OutputPattern {
    /// Returns `true` if the answer is known only at the end of a run: the output is a file, or it is `json-rpc` and
    /// the input is not.
    pub fn answers_at_end(self, input: InputPattern) -> bool {
        match self {
            Self::File => true,
            Self::JsonRpc => input != InputPattern::JsonRpc,
            Self::Stdout => false,
        }
    }
}

schema_enum! {
    /// A `read-write` agent changes files, so only one execution of it runs at a time.
    pub enum AccessType { ReadOnly = "read-only", ReadWrite = "read-write" }
}
schema_enum! {
    /// The network access of an agent. `ports`: only TCP connections to the ports of the agent.
    #[derive(Default)]
    pub enum AgentNetwork { #[default] All = "all", None = "none", Ports = "ports" }
}
schema_enum! {
    /// `enforce`: a run is refused if this system lacks a protection that the agent needs. `best-effort`: it starts with
    /// the protections that the system has.
    #[derive(Default)]
    pub enum SandboxMode { Enforce = "enforce", #[default] BestEffort = "best-effort" }
}
schema_enum! {
    /// `acp`: the Agent Client Protocol. `json-rpc`: a single JSON-RPC 2.0 request.
    #[schema(as = Protocol)]
    pub enum AgentProtocol { Acp = "acp", JsonRpc = "json-rpc" }
}
schema_enum! {
    /// The runs that need a confirmation if a language model decides on them. `writes`: those of an agent with the
    /// access type `read-write`. A command in the user's own words needs none.
    #[derive(Default)]
    pub enum RunConfirmation { Always = "always", #[default] Writes = "writes", Never = "never" }
}
schema_enum! {
    /// The reply to permission requests of an agent. `read` allows only operations that read.
    pub enum Permissions { Allow = "allow", Read = "read", Deny = "deny" }
}
schema_enum! {
    /// A kind of data to redact.
    #[schema(as = Redact)]
    pub enum RedactionKind { Secrets = "secrets", Emails = "emails" }
}
schema_enum! {
    /// A setting that an operator may override for a single run.
    pub enum Override { WorkingDirectory = "working_directory", Envs = "envs" }
}

/// The rules that detect the end of an answer in a session without a protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionRules {
    /// The line that ends each answer.
    #[serde(default)]
    pub marker: Option<String>,
    /// Without a marker: the time without output that ends an answer.
    #[serde(default = "default_quiet")]
    pub quiet: Seconds,
    /// `true` if the agent runs in a pseudo-terminal.
    #[serde(default)]
    pub terminal: bool,
}

fn default_quiet() -> Seconds {
    Seconds::from_millis(1000)
}

impl Default for SessionRules {
    fn default() -> Self {
        Self { marker: None, quiet: default_quiet(), terminal: false }
    }
}

/// Resource limits of a run. They hold for all its processes together, except for `open_files` and `file_size_mb`. A run
/// that exceeds one is ended, and the error names the limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentLimits {
    /// CPU time. Not limited by default.
    pub cpu_seconds: Option<u64>,
    /// Resident memory. By default half of the memory of the machine.
    pub memory_mb: Option<u64>,
    /// Open files of each process. By default the limit of the system.
    pub open_files: Option<u64>,
    /// Number of processes. By default 512.
    pub processes: Option<u64>,
    /// Size of each file that is written. Not limited by default.
    pub file_size_mb: Option<u64>,
    /// Time since the start of the program. By default only the timeout of the run applies.
    pub lifetime_seconds: Option<u64>,
}

impl AgentLimits {
    /// The number of processes of a run if `processes` is not set.
    pub const DEFAULT_PROCESSES: u64 = 512;
}

/// A rule that assigns a category to a failure by text in its output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorPattern {
    /// The text to find in the output. Case is ignored.
    pub text: String,
    pub category: ErrorCategory,
}
