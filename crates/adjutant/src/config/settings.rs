//! Every setting there is: its name, its default, and a sentence about it. The file, the environment, `config init`,
//! `config show` and the suggestions for misspelt names are all made from this list.

/// A setting's shape and default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text with a default; empty means not set.
    Text(&'static str),
    Number(u64),
    Flag(bool),
    /// A number that may have a fraction, or a word in its place.
    Decimal(&'static str),
    List(&'static [&'static str]),
    /// `Name: value` each; a value may be a reference, and one that lets somebody in must be.
    Headers,
    /// `env:NAME` or `file:PATH`, never the secret itself.
    Secret,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// `section.key`.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) about: &'static str,
    pub(crate) example: &'static str,
}

const fn setting(name: &'static str, kind: Kind, example: &'static str, about: &'static str) -> Setting {
    Setting { name, kind, about, example }
}

use Kind::{Decimal, Flag, Headers, List, Number, Secret, Text};

pub(crate) const SETTINGS: &[Setting] = &[
    setting(
        "server.listen",
        Text("127.0.0.1:7717"),
        "\"127.0.0.1:7717\"",
        "Address and port. Beyond loopback [auth] is required.",
    ),
    setting(
        "server.public_url",
        Text(""),
        "\"https://adjutant.example\"",
        "How people reach the server from outside, for links and the Host check.",
    ),
    setting(
        "server.cors_origins",
        List(&[]),
        "[\"https://app.example\"]",
        "Web pages of other origins that may call the server.",
    ),
    setting(
        "server.trusted_proxies",
        List(&[]),
        "[\"10.0.0.0/8\"]",
        "Addresses or networks of proxies whose X-Forwarded-For is believed.",
    ),
    setting("server.request_timeout_seconds", Number(30), "30", "After this a request is answered with 504."),
    setting("server.max_body_bytes", Number(1024 * 1024), "1048576", "The largest body of a request."),
    setting("server.max_import_bytes", Number(64 * 1024 * 1024), "67108864", "The largest document to import."),
    setting(
        "server.rate_limit_per_minute",
        Number(1200),
        "1200",
        "Requests a user and minute; 0 is no limit. Without [auth] there is none unless it is set.",
    ),
    setting("server.rate_limit_burst", Number(200), "200", "Requests a user may make at once."),
    setting(
        "auth.jwt_secret",
        Secret,
        "\"env:ADJUTANT_JWT_SECRET\"",
        "Secret for HS256 tokens, at least 32 characters.",
    ),
    setting(
        "auth.jwks_url",
        Text(""),
        "\"https://issuer.example/.well-known/jwks.json\"",
        "Public keys for RS256, ES256 and EdDSA tokens.",
    ),
    setting("auth.issuer", Text(""), "\"https://issuer.example\"", "Tokens must have this `iss`."),
    setting("auth.audience", Text(""), "\"adjutant\"", "Tokens must have this `aud`."),
    setting(
        "database.url",
        Secret,
        "\"env:DATABASE_URL\"",
        "postgres://…; without it SQLite in the data directory. A URL without a password may stand here itself.",
    ),
    setting(
        "database.durability",
        Text("full"),
        "\"full\"",
        "SQLite: full survives a power cut, normal a crash of the program.",
    ),
    setting(
        "model.provider",
        Text(""),
        "\"gemini\"",
        "offline (built in), gemini, openai, anthropic or openai-compatible; without it by the key found: GEMINI_API_KEY, \
         OPENAI_API_KEY, ANTHROPIC_API_KEY.",
    ),
    setting("model.name", Text(""), "\"gemini-2.5-flash\"", "The model, as its provider calls it."),
    setting(
        "model.base_url",
        Text(""),
        "\"http://localhost:11434/v1\"",
        "Where the model is, unless at its provider's; Ollama's address with openai-compatible, for example.",
    ),
    setting("model.api_key", Secret, "\"env:GEMINI_API_KEY\"", "The key, where it is not in the provider's variable."),
    setting(
        "model.headers",
        Headers,
        "[\"X-Team: blue\"]",
        "Sent with every request; whatever lets somebody in as a reference: \"api-key: env:NAME\".",
    ),
    setting(
        "model.temperature",
        Decimal("0"),
        "\"0\"",
        "From 0, as predictable as can be, to 2; default leaves it to the provider.",
    ),
    setting(
        "model.fallback",
        List(&["offline"]),
        "[\"openai:gpt-4o\", \"offline\"]",
        "What answers when the model fails, in order: offline, a provider, or one with its model. [] is nothing.",
    ),
    setting(
        "assistant.time_zone",
        Text(""),
        "\"Europe/Berlin\"",
        "Where users are when their token does not say; the system's by default.",
    ),
    setting(
        "assistant.numeric_dates",
        Text("month_first"),
        "\"day_first\"",
        "What 3/4 means: month_first is the 4th of March, day_first the 3rd of April.",
    ),
    setting(
        "assistant.confirm",
        Text("destructive"),
        "\"destructive\"",
        "What the assistant asks about first: destructive (deletions, and whatever touches several tasks), bulk, never.",
    ),
    setting("assistant.max_tool_calls", Number(10), "10", "How many tools one turn may call."),
    setting(
        "tasks.tool_names",
        Text("task"),
        "\"task\"",
        "What our own tools are called: task (add_task …), todo (create_todo …), or none where an MCP server keeps the tasks.",
    ),
    setting("tasks.notify_due", Flag(true), "true", "Whether users are told when a task with a time of day is due."),
    setting("tasks.max_title_chars", Number(200), "200", "The longest title of a task."),
    setting(
        "executions.max_running",
        Number(0),
        "0",
        "How many agents run at once on this machine; what is more waits. 0 is no limit.",
    ),
    setting(
        "executions.max_load",
        Decimal("0"),
        "\"2.5\"",
        "Above this load average, for each processor, nothing new starts. 0 is no limit.",
    ),
    setting("executions.min_free_memory_mb", Number(64), "64", "With less memory free nothing new starts."),
    setting("executions.min_free_disk_mb", Number(100), "100", "With less disk free nothing new starts."),
    setting(
        "a2a.default_agent",
        Text("assistant"),
        "\"assistant\"",
        "The agent that A2A clients reach where they name none: at /.well-known/agent-card.json and by gRPC.",
    ),
    setting(
        "a2a.allow_private_webhooks",
        Flag(false),
        "false",
        "Whether A2A clients may be told of their tasks at private addresses, for tests.",
    ),
    setting(
        "retention.conversation_days",
        Number(30),
        "30",
        "Conversations unused for so long are removed; 0 keeps them.",
    ),
    setting(
        "retention.execution_days",
        Number(30),
        "30",
        "Executions and sessions that ended so long ago are removed; 0 keeps them.",
    ),
    setting(
        "retention.output_gb",
        Number(5),
        "5",
        "Where all executions have said more than this, those that ended first lose their output; 0 keeps it.",
    ),
    setting("retention.notification_days", Number(30), "30", "Notifications so old are removed; 0 keeps them."),
    setting(
        "smtp.url",
        Text(""),
        "\"smtps://me@mail.example\"",
        "The server that sends e-mail; smtp://me@mail.example:587?tls=required for STARTTLS.",
    ),
    setting("smtp.from", Text(""), "\"adjutant@mail.example\"", "Whom e-mail comes from."),
    setting("smtp.password", Secret, "\"env:SMTP_PASSWORD\"", "The password of the user in smtp.url."),
    setting("log.level", Text("info"), "\"info\"", "off, error, warning, info, debug or trace."),
    setting("log.format", Text("auto"), "\"auto\"", "json, text, or auto: text on a terminal."),
    setting(
        "telemetry.otlp_endpoint",
        Text(""),
        "\"http://127.0.0.1:4317\"",
        "OpenTelemetry traces go there by OTLP (gRPC).",
    ),
    setting("telemetry.service_name", Text("adjutant"), "\"adjutant\"", "The service's name in traces."),
];

pub(crate) fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

pub(crate) fn is_section(name: &str) -> bool {
    SETTINGS.iter().any(|setting| setting.name.split('.').next() == Some(name))
}

/// The setting, section or key that somebody may have meant.
pub(crate) fn suggestion(name: &str) -> Option<&'static str> {
    let sections = SETTINGS
        .iter()
        .filter_map(|setting| setting.name.split('.').next())
        .chain(super::layers::SEVERAL.map(|(name, _)| name));
    let names = SETTINGS.iter().map(|setting| setting.name);
    let candidates: Vec<_> = if name.contains('.') { names.collect() } else { sections.collect() };
    let best = candidates.into_iter().map(|known| (strsim::damerau_levenshtein(name, known), known)).min()?;
    // The last part alone: `server.jwt_secret` is in the wrong section rather than misspelt.
    let key = name.rsplit('.').next().unwrap_or(name);
    let moved =
        SETTINGS.iter().find(|setting| setting.name.rsplit('.').next() == Some(key)).map(|setting| setting.name);
    moved.or((best.0 <= 3).then_some(best.1))
}
