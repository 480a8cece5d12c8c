//! The log on standard error: JSON entries as in S0 for programs, short lines for a terminal (OPS-1).
//!
//! Every line is redacted before it is written.

use std::fmt::{Display, Write as _};
use std::io::{IsTerminal, Write as _};
use std::sync::Arc;

use jiff::Timestamp;
use redact::redact;
use serde::Serialize;
use serde_json::value::RawValue;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, reload};

use crate::config::Config;
use crate::config::values::LogFormat;
use crate::telemetry;

/// Changes the log level at runtime.
pub(crate) struct LogHandle {
    level: reload::Handle<Targets, Registry>,
}

impl LogHandle {
    /// Sets the level for the crates of the workspace.
    pub(crate) fn set_level(&self, level: LevelFilter) {
        // Fails only if the subscriber was dropped.
        let _ = self.level.reload(targets(level));
    }
}

/// Starts logging in the configured format and level, and traces if `traces` is given. The level applies to the crates
/// of the workspace; dependencies log at most warnings, and `rmcp` at most errors. The format `auto` is text if
/// standard error is a terminal, else JSON. Traces contain spans from the level INFO, of dependencies from WARN, of
/// `rmcp` from ERROR.
///
/// Returns the handle of the log level. If logging was started before, nothing changes and the handle has no effect.
pub(crate) fn start(config: &Config, traces: Option<&telemetry::TraceExporter>) -> LogHandle {
    let text = match config.settings.log.format {
        LogFormat::Auto => std::io::stderr().is_terminal(),
        LogFormat::Json => false,
        LogFormat::Text => true,
    };
    let (filter, level) = reload::Layer::new(targets(config.settings.log.level));
    let log = LogLayer { text }.with_filter(filter);
    let traces = traces.map(|traces| traces.layer().with_filter(targets(LevelFilter::INFO)));
    // Fails only if logging was started before.
    let _ = tracing_subscriber::registry().with(log).with(traces).try_init();
    LogHandle { level }
}

/// The crates of the workspace, separated by spaces. Set by `build.rs`.
const CRATES: &str = env!("ADJUTANT_CRATES");

/// Returns the filter for a level. The level applies to the crates of the workspace. Dependencies log warnings and
/// errors at most, `rmcp` only errors.
fn targets(level: LevelFilter) -> Targets {
    let ours = CRATES.split(' ').map(|name| (name, level));
    // Its warnings repeat invalid input of clients.
    let mcp = ("rmcp", level.min(LevelFilter::ERROR));
    Targets::new().with_default(level.min(LevelFilter::WARN)).with_targets(ours).with_targets([mcp])
}

/// Logs panics as entries instead of plain lines. Replaces the panic hook of the process. Panics are not shown if
/// logging was not started.
pub(crate) fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string).unwrap_or_default();
        let message = panic.payload_as_str().unwrap_or("no message");
        let error_message = format!("{message} at {location}");
        tracing::error!(event = "error_occurred", error_type = "panic", error_message, recoverable = true);
    }));
}

/// Writes each event as one redacted line to standard error.
struct LogLayer {
    /// True for plain text, false for JSON.
    text: bool,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogLayer {
    /// Stores the request, user and conversation ids among the fields of a new span.
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut request = RequestContext::default();
            attributes.record(&mut request);
            span.extensions_mut().insert(request);
        }
    }

    /// Updates the stored ids of a span with values that are recorded later.
    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(request) = span.extensions_mut().get_mut::<RequestContext>()
        {
            values.record(request);
        }
    }

    /// Writes the event as one redacted line. Each id is taken from the innermost span that has it. Failures to write
    /// are ignored.
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = LogFields { text: self.text, ..LogFields::default() };
        event.record(&mut fields);
        let mut request = RequestContext::default();
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(inner) = span.extensions().get::<RequestContext>() {
                request.fill_from(inner);
            }
        }
        let level = level_name(*event.metadata().level());
        let now = model::Clock::system().now();
        let line = if self.text { fields.line(now, level, &request) } else { fields.json(now, level, &request) };
        // A failed write to the log cannot be logged.
        let _ = std::io::stderr().lock().write_all(redact(&line).as_bytes());
    }
}

/// Returns the name of a level in S0. WARN is `WARNING`, and TRACE is `DEBUG` like DEBUG.
fn level_name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "ERROR",
        Level::WARN => "WARNING",
        Level::INFO => "INFO",
        Level::DEBUG | Level::TRACE => "DEBUG",
    }
}

/// The ids of the request that the events of a span belong to.
#[derive(Clone, Default)]
struct RequestContext {
    request_id: Option<Arc<str>>,
    user_id: Option<Arc<str>>,
    conversation_id: Option<Arc<str>>,
}

impl RequestContext {
    /// Fills in missing ids. Inner spans take precedence.
    fn fill_from(&mut self, outer: &Self) {
        self.request_id = self.request_id.take().or_else(|| outer.request_id.clone());
        self.user_id = self.user_id.take().or_else(|| outer.user_id.clone());
        self.conversation_id = self.conversation_id.take().or_else(|| outer.conversation_id.clone());
    }

    /// Sets the id with this name: `request_id`, `user_id` or `conversation_id`. Replaces an earlier value. Ignores
    /// other names.
    fn set(&mut self, name: &str, value: impl FnOnce() -> Arc<str>) {
        match name {
            "request_id" => self.request_id = Some(value()),
            "user_id" => self.user_id = Some(value()),
            "conversation_id" => self.conversation_id = Some(value()),
            _ => {}
        }
    }
}

impl Visit for RequestContext {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field.name(), || value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.set(field.name(), || format!("{value:?}").into());
    }
}

/// The fields of one entry. Fields are encoded while they are visited, because every request logs many. A field with a
/// name that ends in `.json` contains JSON as text.
#[derive(Default)]
struct LogFields {
    /// True for plain text, false for JSON.
    text: bool,
    event: Option<String>,
    duration_ms: Option<u64>,
    /// Set for plain text only, where it comes first.
    message: Option<String>,
    /// The encoded fields: ` name=value` in plain text, or an unclosed JSON object.
    details: Vec<u8>,
}

impl LogFields {
    /// Returns the entry as one line of JSON with a line break, not redacted yet. The event is `message` if the entry
    /// has none. Absent ids and durations are left out. `details` is always present and contains all other fields.
    fn json(&self, now: Timestamp, level: &str, request: &RequestContext) -> String {
        let mut line = Vec::with_capacity(self.details.len() + 320);
        // Writing to memory cannot fail.
        let _ = write!(line, "{{\"timestamp\":\"{now:.3}\",\"level\":\"{level}\"");
        optional(&mut line, "request_id", request.request_id.as_deref());
        member(&mut line, "event", self.event.as_deref().unwrap_or("message"));
        optional(&mut line, "duration_ms", self.duration_ms.as_ref());
        line.extend_from_slice(b",\"details\":{");
        line.extend_from_slice(self.details.strip_prefix(b"{").unwrap_or_default());
        line.push(b'}');
        optional(&mut line, "user_id", request.user_id.as_deref());
        optional(&mut line, "conversation_id", request.conversation_id.as_deref());
        line.extend_from_slice(b"}\n");
        String::from_utf8(line).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    /// Returns the entry as one line of text with a line break, not redacted yet: time, level, event, message, details
    /// and `[request id]`. The duration, the user and the conversation are left out. Control characters become U+FFFD.
    fn line(&self, now: Timestamp, level: &str, request: &RequestContext) -> String {
        let mut line = format!("{now:.3} {level:7}");
        for part in [&self.event, &self.message].into_iter().flatten() {
            line.push(' ');
            line.push_str(part);
        }
        line.push_str(&String::from_utf8_lossy(&self.details));
        if let Some(id) = &request.request_id {
            let _ = write!(line, " [{id}]");
        }
        // Input of clients must not contain control sequences for the terminal.
        let mut line: String =
            line.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect();
        line.push('\n');
        line
    }

    /// Appends a field to the details in the format of the entry.
    fn put(&mut self, name: &str, value: &(impl Serialize + Display + ?Sized)) {
        if self.text {
            // Writing to memory cannot fail.
            let _ = write!(self.details, " {name}={value}");
        } else {
            member(&mut self.details, name, value);
        }
    }

    /// Stores `event`, and `message` in plain text, separately, and appends every other field to the details. The name
    /// of a `.json` field loses this ending. Valid JSON on one line is embedded; otherwise the value is a string.
    fn put_text(&mut self, field: &Field, text: &str) {
        match (field.name(), field.name().strip_suffix(".json")) {
            ("event", _) => self.event = Some(text.to_owned()),
            ("message", _) if self.text => self.message = Some(text.to_owned()),
            (_, Some(name)) => match serde_json::from_str::<&RawValue>(text) {
                // An entry must stay on one line.
                Ok(json) if !text.contains('\n') => self.put(name, json),
                _ => self.put(name, text),
            },
            (name, None) => self.put(name, text),
        }
    }
}

/// Appends a member to a JSON object. The first member opens the object. Names are ours and need no escaping.
fn member(object: &mut Vec<u8>, name: &str, value: &(impl Serialize + ?Sized)) {
    object.extend_from_slice(if object.is_empty() { b"{\"" } else { b",\"" });
    object.extend_from_slice(name.as_bytes());
    object.extend_from_slice(b"\":");
    // Writing to memory cannot fail, and all logged types can be serialised.
    let _ = serde_json::to_writer(object, value);
}

/// Appends a member, if the value is present.
fn optional(object: &mut Vec<u8>, name: &str, value: Option<&(impl Serialize + ?Sized)>) {
    if let Some(value) = value {
        member(object, name, value);
    }
}

impl Visit for LogFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_text(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), &value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        match (field.name(), u64::try_from(value)) {
            ("duration_ms", Ok(value)) => self.duration_ms = Some(value),
            (name, _) => self.put(name, &value),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "duration_ms" => self.duration_ms = Some(value),
            name => self.put(name, &value),
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), &value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.put_text(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_configured_level_applies_to_every_crate_of_the_workspace() {
        // OPS-1
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut count = 0;
        for manifest in std::fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path().join("Cargo.toml")) {
            let manifest: toml::Table = std::fs::read_to_string(&manifest).unwrap().parse().unwrap();
            let name = manifest["package"]["name"].as_str().unwrap().replace('-', "_");
            let inside = format!("{name}::inner");
            assert!(targets(LevelFilter::DEBUG).would_enable(&inside, &Level::DEBUG), "{name}");
            assert!(!targets(LevelFilter::INFO).would_enable(&inside, &Level::DEBUG), "{name}");
            count += 1;
        }
        assert!(count > 10, "{count}");
        for (dependency, level, written) in [
            ("hyper::proto", Level::INFO, false),
            ("hyper::proto", Level::WARN, true),
            ("rmcp::service", Level::WARN, false),
            ("rmcp::service", Level::ERROR, true),
        ] {
            assert_eq!(targets(LevelFilter::TRACE).would_enable(dependency, &level), written, "{dependency} {level}");
        }
    }
}
