//! Every setting there is, declared once: name, type, default, example, and a sentence about it. The file, the environment,
//! `config init`, `config show` and the suggestions for misspelt names are all made from these lines.

use std::net::SocketAddr;

use assistant::models::Provider;
use ipnet::IpNet;
use jiff::tz::TimeZone;
use store::Durability;
use tools::{Confirm, Names};
use tracing::level_filters::LevelFilter;
use understand::Order;

use super::Mistake;
use super::document::{LISTS, Origin};
use super::form::{Headers, Hidden, Load, LogFormat, Number, Reference, Temperature, WebOrigin};
use super::section::{Key, Reading, Section, hint as hint_of, section};

/// `section: Struct { settings }`, as in [`section!`].
macro_rules! settings {
    ($($section:ident: $name:ident { $($settings:tt)+ })+) => {
        $(section! { pub(crate) struct $name { $($settings)+ } })+

        #[derive(Debug)]
        pub(crate) struct Settings { $(pub(crate) $section: $name),+ }

        /// Every section with its settings, in the order of the template.
        pub(crate) const SECTIONS: &[(&str, &[Key])] = &[$((stringify!($section), $name::KEYS)),+];

        impl Settings {
            pub(crate) fn load(reading: &Reading<'_>) -> Option<Self> {
                $(let $section = $name::load(reading.document.section(stringify!($section)), reading);)+
                Some(Self { $($section: $section?),+ })
            }
        }
    };
}

settings! {
    server: Server {
        /// Address and port. Beyond loopback `[auth]` is required.
        listen: SocketAddr = "127.0.0.1:7717";
        /// How people reach the server from outside, for links and the Host check.
        public_url: Option<WebOrigin> => "https://adjutant.example";
        /// Web pages of other origins that may call the server.
        cors_origins: Vec<WebOrigin> = [] => ["https://app.example"];
        /// Addresses or networks of proxies whose X-Forwarded-For is believed.
        trusted_proxies: Vec<IpNet> = [] => ["10.0.0.0/8"];
        /// After this a request is answered with 504.
        request_timeout_seconds: Number<1, 3600> = 30;
        /// The largest body of a request.
        max_body_bytes: Number<1024, 0x4000_0000> = 1048576;
        /// The largest document to import.
        max_import_bytes: Number<1024, 0x1_0000_0000> = 67108864;
        /// Requests per user and minute; 0 is no limit. Without `[auth]` there is none unless it is set.
        rate_limit_per_minute: Number<0, 10_000_000> = 1200;
        /// Requests a user may make at once.
        rate_limit_burst: Number<1, 1_000_000> = 200;
    }
    auth: Auth {
        /// Secret for HS256 tokens, at least 32 characters.
        jwt_secret: Option<Reference> => "env:ADJUTANT_JWT_SECRET";
        /// Public keys for RS256, ES256 and EdDSA tokens.
        jwks_url: Option<String> => "https://issuer.example/.well-known/jwks.json";
        /// Tokens must have this `iss`.
        issuer: Option<String> => "https://issuer.example";
        /// Tokens must have this `aud`.
        audience: Option<String> => "adjutant";
    }
    database: Database {
        /// postgres://…; without it SQLite in the data directory. A URL without a password may stand here itself.
        url: Option<Hidden> => "env:DATABASE_URL";
        /// SQLite: full survives a power cut, normal a crash of the program.
        durability: Durability = "full";
    }
    model: Model {
        /// offline (built in), gemini, openai, anthropic or openai-compatible; without it by the key found:
        /// GEMINI_API_KEY, OPENAI_API_KEY, ANTHROPIC_API_KEY.
        provider: Option<Provider> => "gemini";
        /// The model, as its provider calls it.
        name: Option<String> => "gemini-2.5-flash";
        /// Where the model is, unless at its provider's; Ollama's address with openai-compatible, for example.
        base_url: Option<String> => "http://localhost:11434/v1";
        /// The key, where it is not in the provider's variable.
        api_key: Option<Reference> => "env:GEMINI_API_KEY";
        /// Sent with every request; credentials only as a reference: "api-key: env:NAME".
        headers: Headers = [] => ["X-Team: blue"];
        /// From 0, as predictable as can be, to 2; default leaves it to the provider.
        temperature: Temperature = "0";
        /// What answers when the model fails, in order: offline, a provider, or one with its model. [] is nothing.
        fallback: Vec<String> = ["offline"] => ["openai:gpt-4o", "offline"];
    }
    assistant: Assistant {
        /// Where users are when their token does not say; the system's by default.
        time_zone: Option<TimeZone> => "Europe/Berlin";
        /// What 3/4 means: month_first is the 4th of March, day_first the 3rd of April.
        numeric_dates: Order = "month_first" => "day_first";
        /// What the assistant asks about first: destructive (deletions, and whatever touches several tasks), bulk, never.
        confirm: Confirm = "destructive";
        /// How many tools one turn may call.
        max_tool_calls: Number<1, 100> = 10;
    }
    tasks: Tasks {
        /// What our own tools are called: task (add_task …), todo (create_todo …), or none where an MCP server keeps the
        /// tasks.
        tool_names: Names = "task";
        /// Whether users are told when a task with a time of day is due.
        notify_due: bool = true;
        /// The longest title of a task.
        max_title_chars: Number<1, 2000> = 200;
    }
    executions: Executions {
        /// How many agents run at once on this machine; what is more waits. 0 is no limit.
        max_running: Number<0, 1_000_000> = 0;
        /// Above this load average, for each processor, nothing new starts. 0 is no limit.
        max_load: Load = "0" => "2.5";
        /// With less memory free nothing new starts.
        min_free_memory_mb: Number<0, 0x100_0000_0000> = 64;
        /// With less disk free nothing new starts.
        min_free_disk_mb: Number<0, 0x100_0000_0000> = 100;
    }
    a2a: A2a {
        /// The agent that A2A clients reach where they name none: at /.well-known/agent-card.json and by gRPC.
        default_agent: String = "assistant";
        /// Whether A2A clients may be told of their tasks at private addresses, for tests.
        allow_private_webhooks: bool = false;
    }
    retention: Retention {
        /// Conversations unused for so long are removed; 0 keeps them.
        conversation_days: Number<0, 36_500> = 30;
        /// Executions and sessions that ended so long ago are removed; 0 keeps them.
        execution_days: Number<0, 36_500> = 30;
        /// Above this size of all output, the executions that ended first lose theirs; 0 keeps it.
        output_gb: Number<0, 1_000_000> = 5;
        /// Notifications so old are removed; 0 keeps them.
        notification_days: Number<0, 36_500> = 30;
    }
    smtp: Smtp {
        /// The server that sends e-mail; smtp://me@mail.example:587?tls=required for STARTTLS.
        url: Option<String> => "smtps://me@mail.example";
        /// Whom e-mail comes from.
        from: Option<String> => "adjutant@mail.example";
        /// The password of the user in smtp.url.
        password: Option<Reference> => "env:SMTP_PASSWORD";
    }
    log: Log {
        /// off, error, warning, info, debug or trace.
        level: LevelFilter = "info";
        /// json, text, or auto: text on a terminal.
        format: LogFormat = "auto";
    }
    telemetry: Telemetry {
        /// OpenTelemetry traces go there by OTLP (gRPC).
        otlp_endpoint: Option<WebOrigin> => "http://127.0.0.1:4317";
        /// The service's name in traces.
        service_name: String = "adjutant";
    }
}

/// Returns the setting that is called `section.key`.
pub(crate) fn find(name: &str) -> Option<&'static Key> {
    let (section, key) = name.split_once('.')?;
    let (_, keys) = SECTIONS.iter().find(|(known, _)| *known == section)?;
    keys.iter().find(|known| known.name == key)
}

/// Returns a question for the section or the setting that may have been meant, or nothing.
pub(crate) fn hint(name: &str) -> String {
    let Some((_, key)) = name.split_once('.') else {
        return hint_of(name, SECTIONS.iter().map(|(name, _)| *name).chain(LISTS.iter().map(|list| list.name)));
    };
    let all = SECTIONS.iter().flat_map(|(section, keys)| keys.iter().map(move |key| (*section, key.name)));
    let full: Vec<_> = all.map(|(section, key)| (key, format!("{section}.{key}"))).collect();
    // The right key in the wrong section: `server.jwt_secret`.
    match full.iter().find(|(known, _)| *known == key) {
        Some((_, moved)) => format!("; did you mean {moved}?"),
        None => hint_of(name, full.iter().map(|(_, full)| full.as_str())),
    }
}

pub(crate) fn unknown(name: &str, origin: Origin) -> Mistake {
    Mistake { origin, message: format!("there is no setting {name}{}", hint(name)) }
}
