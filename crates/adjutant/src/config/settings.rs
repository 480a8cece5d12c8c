//! All settings: name, type, default, example and description. Parsing, `config init`, `config show` and the
//! suggestions for misspelt names are generated from these declarations.

use std::net::SocketAddr;

use assistant::models::ModelProvider;
use ipnet::IpNet;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use store::{Durability, Pooler};
use tools::{ConfirmationPolicy, ToolNames};
use tracing::level_filters::LevelFilter;
use understand::DateOrder;

use super::ConfigMistake;
use super::document::{LISTS, ValueOrigin};
use super::section::{ConfigReader, ConfigSection, SettingKey, hint as hint_of, section};
use super::values::{
    HeaderList, LogFormat, MaxLoad, Number, QueueShare, RedactedText, SecretReference, Temperature, WebOrigin,
};

/// Declares all sections: `section: Struct { settings }`, as in [`section!`].
macro_rules! settings {
    ($($section:ident: $name:ident { $($settings:tt)+ })+) => {
        $(section! { pub(crate) struct $name { $($settings)+ } })+

        #[derive(Debug)]
        pub(crate) struct ConfigSettings { $(pub(crate) $section: $name),+ }

        /// Every section with its settings, in the order of the template.
        pub(crate) const SECTIONS: &[(&str, &[SettingKey])] = &[$((stringify!($section), $name::KEYS)),+];

        impl ConfigSettings {
            pub(crate) fn load(reader: &ConfigReader<'_>) -> Option<Self> {
                $(let $section = $name::load(reader.document.section(stringify!($section)), reader);)+
                Some(Self { $($section: $section?),+ })
            }
        }
    };
}

settings! {
    server: ServerSection {
        /// Address and port to listen on. `[auth]` is required unless it is a loopback address.
        listen: SocketAddr = "127.0.0.1:7717";
        /// Public URL of the server, for links and the check of the Host header.
        public_url: Option<WebOrigin> => "https://adjutant.example";
        /// Origins of web pages that may call the server.
        cors_origins: Vec<WebOrigin> = [] => ["https://app.example"];
        /// Addresses or networks of trusted proxies; only their X-Forwarded-For is used.
        trusted_proxies: Vec<IpNet> = [] => ["10.0.0.0/8"];
        /// Timeout of a request; the response is 504.
        request_timeout_seconds: Number<1, 3600> = 30;
        /// A stream whose client reads nothing for this time ends. The client can resume it.
        stall_timeout_seconds: Number<1, 3600> = 60;
        /// Maximum size of a request body.
        max_body_bytes: Number<1024, 0x4000_0000> = 1048576;
        /// Maximum size of a document to import.
        max_import_bytes: Number<1024, 0x1_0000_0000> = 67108864;
        /// Requests per user and minute; 0 is no limit. Without `[auth]`, there is no limit by default.
        rate_limit_per_minute: Number<0, 10_000_000> = 1200;
        /// Requests that a user may send in a burst.
        rate_limit_burst: Number<1, 1_000_000> = 200;
        /// Time in which running executions may finish when the server stops; 0 ends them at once.
        drain_seconds: Number<0, 86400> = 0;
    }
    auth: AuthSection {
        /// Secret for HS256 tokens, at least 32 characters.
        jwt_secret: Option<SecretReference> => "env:ADJUTANT_JWT_SECRET";
        /// The secret before a rotation: its tokens stay valid. Remove it after they have expired.
        previous_jwt_secret: Option<SecretReference> => "env:ADJUTANT_PREVIOUS_JWT_SECRET";
        /// Public keys for RS256, ES256 and EdDSA tokens.
        jwks_url: Option<String> => "https://issuer.example/.well-known/jwks.json";
        /// Tokens must have this `iss`.
        issuer: Option<String> => "https://issuer.example";
        /// Tokens must have this `aud`.
        audience: Option<String> => "adjutant";
    }
    database: DatabaseSection {
        /// PostgreSQL URL; by default SQLite in the data directory. A URL with a password must be a reference.
        url: Option<RedactedText> => "env:DATABASE_URL";
        /// Connections of this node to PostgreSQL. It opens two more: for health checks and for notifications of other nodes.
        max_connections: Number<2, 10_000> = 16;
        /// Maximum time to wait for a free connection to PostgreSQL. Later requests fail with 503.
        acquire_timeout_seconds: Number<1, 3600> = 5;
        /// Maximum time to wait for a lock of PostgreSQL, and for earlier writes of the same user.
        lock_timeout_seconds: Number<1, 3600> = 20;
        /// Maximum time of a statement of PostgreSQL; 0 is no limit.
        statement_timeout_seconds: Number<0, 86400> = 60;
        /// Connection pooler before PostgreSQL: none, also for one that pools sessions, or transaction.
        pooler: Pooler = "none" => "transaction";
        /// URL of PostgreSQL itself for notifications between nodes, if database.url is a pooler of transactions. Without it, nodes
        /// poll each second. A URL with a password must be a reference.
        direct_url: Option<RedactedText> => "env:DIRECT_DATABASE_URL";
        /// Durability of SQLite: full survives a power failure, normal a crash of the program.
        durability: Durability = "full";
        /// Key for secrets in the database, at least 32 characters; the same on all nodes. By default, a file in the data
        /// directory, or with PostgreSQL auth.jwt_secret.
        sealing_key: Option<SecretReference> => "env:ADJUTANT_SEALING_KEY";
    }
    model: ModelSection {
        /// Provider: offline (built in), gemini, openai, anthropic or openai-compatible; by default the first with a key:
        /// GEMINI_API_KEY, OPENAI_API_KEY, ANTHROPIC_API_KEY.
        provider: Option<ModelProvider> => "gemini";
        /// Name of the model at its provider.
        name: Option<String> => "gemini-2.5-flash";
        /// Base URL, if it differs from the default of the provider; for Ollama, use openai-compatible.
        base_url: Option<String> => "http://localhost:11434/v1";
        /// API key, if it is not in the variable of the provider.
        api_key: Option<SecretReference> => "env:GEMINI_API_KEY";
        /// Headers to send with every request; secrets as references: "api-key: env:NAME".
        headers: HeaderList = [] => ["X-Team: blue"];
        /// Temperature from 0 (most deterministic) to 2; "default" uses the default of the provider.
        temperature: Temperature = "0";
        /// Fallbacks in order if the model fails: offline, a provider, or a provider and a model. [] is no fallback.
        fallback: Vec<String> = ["offline"] => ["openai:gpt-4o", "offline"];
    }
    assistant: AssistantSection {
        /// Time zone of users without one in their token; the system time zone by default.
        time_zone: Option<TimeZone> => "Europe/Berlin";
        /// Meaning of 3/4: month_first is the 4th of March, day_first the 3rd of April.
        numeric_dates: DateOrder = "month_first" => "day_first";
        /// Changes that need a confirmation: destructive (deletions and changes to several tasks), bulk, never.
        confirm: ConfirmationPolicy = "destructive";
        /// Time of day of reminders for a day without a time.
        default_reminder_time: Time = "09:00";
        /// Maximum number of tool calls per turn.
        max_tool_calls: Number<1, 100> = 10;
        /// Length after which an answer ends with its sentence. Lists have up to 20 lines in addition.
        max_answer_chars: Number<100, 100_000> = 500;
    }
    tasks: TasksSection {
        /// Names of the built-in tools: task (add_task …), todo (create_todo …), or none if an MCP server manages the
        /// tasks.
        tool_names: ToolNames = "task";
        /// Notify users when a task with a time of day is due.
        notify_due: bool = true;
        /// Maximum length of the title of a task.
        max_title_chars: Number<1, 2000> = 200;
    }
    executions: ExecutionsSection {
        /// Maximum number of concurrent executions on this machine; further ones are queued. 0 is no limit.
        max_running: Number<0, 1_000_000> = 0;
        /// Load average per processor above which no execution starts. 0 is no limit.
        max_load: MaxLoad = "0" => "2.5";
        /// Free memory below which no execution starts.
        min_free_memory_mb: Number<0, 0x100_0000_0000> = 64;
        /// Free disk space below which no execution starts.
        min_free_disk_mb: Number<0, 0x100_0000_0000> = 100;
    }
    a2a: A2aSection {
        /// Agent for A2A clients that name none: at /.well-known/agent-card.json and by gRPC.
        default_agent: String = "assistant";
        /// Allow push notifications to private addresses, for tests.
        allow_private_webhooks: bool = false;
    }
    retention: RetentionSection {
        /// Remove conversations that were not used for this many days; 0 keeps them.
        conversation_days: Number<0, 36_500> = 30;
        /// Remove executions and sessions this many days after their end; 0 keeps them.
        execution_days: Number<0, 36_500> = 30;
        /// Maximum total size of output; the oldest executions lose their output first. 0 is no limit.
        output_gb: Number<0, 1_000_000> = 5;
        /// Remove notifications after this many days; 0 keeps them.
        notification_days: Number<0, 36_500> = 30;
        /// Remove records of administrative changes after this many days; 0 keeps them.
        audit_days: Number<0, 36_500> = 365;
    }
    quotas: QuotasSection {
        /// Maximum number of tasks of a user. 0 is no limit, also for all other quotas.
        tasks: Number<0, 1_000_000_000> = 100000;
        /// Maximum number of scheduled reminders of a user.
        reminders: Number<0, 1_000_000_000> = 10000;
        /// Maximum number of scheduled reminders of one task.
        reminders_per_task: Number<0, 1_000_000_000> = 100;
        /// Maximum number of schedules of a user, without those of the configuration file.
        schedules: Number<0, 1_000_000_000> = 1000;
        /// Maximum number of conversations of a user.
        conversations: Number<0, 1_000_000_000> = 100000;
        /// Maximum number of executions that a user may create in 24 hours; no limit by default.
        runs_per_day: Number<0, 1_000_000_000> = 0 => 500;
        /// Share of the queue of an agent that one user may fill, and of its slots that sessions of one user may hold.
        /// Without `[auth]`, there is one user and no share.
        queue_share: QueueShare = "0.5";
        /// Maximum number of open sessions of a user with all agents.
        sessions: Number<0, 1_000_000_000> = 50;
        /// Maximum number of open event streams of a user on one node.
        streams: Number<0, 1_000_000_000> = 100;
        /// Maximum number of open event streams of all users on one node.
        total_streams: Number<0, 1_000_000_000> = 2000;
        /// Notifications of a user that one channel delivers per minute; further ones are delayed.
        deliveries_per_minute: Number<0, 1_000_000> = 60;
    }
    smtp: SmtpSection {
        /// Mail server; smtp://me@mail.example:587?tls=required for STARTTLS.
        url: Option<String> => "smtps://me@mail.example";
        /// Sender address.
        from: Option<String> => "adjutant@mail.example";
        /// Password of the user in smtp.url.
        password: Option<SecretReference> => "env:SMTP_PASSWORD";
    }
    log: LogSection {
        /// Level: off, error, warning, info, debug or trace.
        level: LevelFilter = "info";
        /// Format: json, text, or auto for text on a terminal and JSON otherwise.
        format: LogFormat = "auto";
    }
    telemetry: TelemetrySection {
        /// OTLP endpoint (gRPC) for OpenTelemetry traces.
        otlp_endpoint: Option<WebOrigin> => "http://127.0.0.1:4317";
        /// Service name in traces.
        service_name: String = "adjutant";
    }
}

/// Returns the setting `section.key`, if it exists.
pub(crate) fn find(name: &str) -> Option<&'static SettingKey> {
    let (section, key) = name.split_once('.')?;
    let (_, keys) = SECTIONS.iter().find(|(known, _)| *known == section)?;
    keys.iter().find(|known| known.name == key)
}

/// Returns a suggestion such as `; did you mean auth.jwt_secret?` for an unknown section or `section.key`. For a
/// section, it is a section or list. For a key that another section has, it is the first such setting, otherwise the
/// most similar setting. Empty if none is similar enough.
pub(crate) fn hint(name: &str) -> String {
    let Some((_, key)) = name.split_once('.') else {
        return hint_of(name, SECTIONS.iter().map(|(name, _)| *name).chain(LISTS.iter().map(|list| list.name)));
    };
    let all = SECTIONS.iter().flat_map(|(section, keys)| keys.iter().map(move |key| (*section, key.name)));
    let full: Vec<_> = all.map(|(section, key)| (key, format!("{section}.{key}"))).collect();
    // A known key in the wrong section, such as `server.jwt_secret`.
    match full.iter().find(|(known, _)| *known == key) {
        Some((_, moved)) => format!("; did you mean {moved}?"),
        None => hint_of(name, full.iter().map(|(_, full)| full.as_str())),
    }
}

/// Returns the mistake for an unknown setting.
pub(crate) fn unknown(name: &str, origin: ValueOrigin) -> ConfigMistake {
    ConfigMistake { origin, message: format!("unknown setting {name}{}", hint(name)) }
}
