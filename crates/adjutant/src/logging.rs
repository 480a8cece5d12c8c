//! The log on standard error: S0's JSON entries for programs, short lines for a terminal (OPS-1).
//!
//! Every line passes the redactor before it is written.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

use model::redact::redact;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, reload};

use crate::config::{Config, LogFormat};
use crate::telemetry;

/// Changes the level while the program runs.
pub(crate) struct Handle {
    level: reload::Handle<Targets, Registry>,
}

impl Handle {
    pub(crate) fn set_level(&self, level: LevelFilter) {
        // Fails only when the subscriber is gone, and then nobody listens.
        let _ = self.level.reload(targets(level));
    }
}

/// Starts logging, and traces where they are configured.
pub(crate) fn start(config: &Config, traces: Option<&telemetry::Traces>) -> Handle {
    let text = match config.log_format {
        LogFormat::Auto => std::io::stderr().is_terminal(),
        LogFormat::Json => false,
        LogFormat::Text => true,
    };
    let (filter, level) = reload::Layer::new(targets(config.log_level));
    let log = Log { text }.with_filter(filter);
    let traces = traces.map(|traces| traces.layer().with_filter(targets(LevelFilter::INFO)));
    // Fails only if logging was started before.
    let _ = tracing_subscriber::registry().with(log).with(traces).try_init();
    Handle { level }
}

/// Our own parts as asked; of others only what is worth a warning.
fn targets(level: LevelFilter) -> Targets {
    let ours = ["adjutant", "assistant", "model", "server", "store", "tools"].map(|part| (part, level));
    // It warns of what clients do wrong, in their words.
    let mcp = ("rmcp", level.min(LevelFilter::ERROR));
    // It repeats what providers answer, which may be a key; what matters of it is logged by us.
    let models = ("genai", LevelFilter::OFF);
    Targets::new().with_default(level.min(LevelFilter::WARN)).with_targets(ours).with_targets([mcp, models])
}

/// A panic becomes one entry like any other, instead of lines that no program can read.
pub(crate) fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let message = panic.payload_as_str().unwrap_or("no message");
        let error_message = format!("{message} at {place}");
        tracing::error!(event = "error_occurred", error_type = "panic", error_message, recoverable = true);
    }));
}

struct Log {
    text: bool,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Log {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut about = About::default();
            attributes.record(&mut about);
            span.extensions_mut().insert(about);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(about) = span.extensions_mut().get_mut::<About>()
        {
            values.record(about);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut about = About::default();
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(of_span) = span.extensions().get::<About>() {
                about.fill_from(of_span);
            }
        }
        let level = level_name(*event.metadata().level());
        let now = format!("{:.3}", model::Clock::system().now());
        let line = if self.text { fields.text(&now, level, &about) } else { fields.json(&now, level, about) };
        // A log that cannot be written has nowhere to complain.
        let _ = std::io::stderr().lock().write_all(redact(&line).as_bytes());
    }
}

/// S0's names.
fn level_name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "ERROR",
        Level::WARN => "WARNING",
        Level::INFO => "INFO",
        Level::DEBUG | Level::TRACE => "DEBUG",
    }
}

/// What a span says about the request that its events belong to.
#[derive(Clone, Default)]
struct About {
    request_id: Option<String>,
    user_id: Option<String>,
    conversation_id: Option<String>,
}

impl About {
    /// Inner spans come first and win.
    fn fill_from(&mut self, outer: &Self) {
        self.request_id = self.request_id.take().or_else(|| outer.request_id.clone());
        self.user_id = self.user_id.take().or_else(|| outer.user_id.clone());
        self.conversation_id = self.conversation_id.take().or_else(|| outer.conversation_id.clone());
    }

    fn set(&mut self, name: &str, value: String) {
        match name {
            "request_id" => self.request_id = Some(value),
            "user_id" => self.user_id = Some(value),
            "conversation_id" => self.conversation_id = Some(value),
            _ => {}
        }
    }
}

impl Visit for About {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.set(field.name(), format!("{value:?}"));
    }
}

/// The fields of one entry. A name that ends in `.json` holds JSON as text.
#[derive(Default)]
struct Fields {
    event: Option<String>,
    duration_ms: Option<u64>,
    details: Map<String, Value>,
}

impl Fields {
    fn json(self, now: &str, level: &str, about: About) -> String {
        let mut entry = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                entry.insert(name.to_owned(), value);
            }
        };
        put("timestamp", Some(now.into()));
        put("level", Some(level.into()));
        put("request_id", about.request_id.map(Value::from));
        put("event", Some(self.event.unwrap_or_else(|| "message".to_owned()).into()));
        put("duration_ms", self.duration_ms.map(Value::from));
        put("details", Some(self.details.into()));
        put("user_id", about.user_id.map(Value::from));
        put("conversation_id", about.conversation_id.map(Value::from));
        format!("{}\n", Value::Object(entry))
    }

    fn text(self, now: &str, level: &str, about: &About) -> String {
        let mut line = format!("{now} {level:7}");
        for part in [self.event.as_deref(), self.details.get("message").and_then(Value::as_str)].into_iter().flatten() {
            line.push(' ');
            line.push_str(part);
        }
        for (name, value) in self.details.iter().filter(|(name, _)| *name != "message") {
            let _ = match value {
                Value::String(text) => write!(line, " {name}={text}"),
                other => write!(line, " {name}={other}"),
            };
        }
        if let Some(id) = &about.request_id {
            let _ = write!(line, " [{id}]");
        }
        // Whatever a client sends must not move the cursor of whoever reads the log.
        let mut line: String =
            line.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect();
        line.push('\n');
        line
    }

    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("event", Value::String(event)) => self.event = Some(event),
            ("duration_ms", value) => self.duration_ms = value.as_u64(),
            (name, value) => match (name.strip_suffix(".json"), value.as_str()) {
                (Some(name), Some(json)) => {
                    let parsed = serde_json::from_str(json).unwrap_or_else(|_| json.into());
                    self.details.insert(name.to_owned(), parsed);
                }
                _ => drop(self.details.insert(name.to_owned(), value)),
            },
        }
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }
}
