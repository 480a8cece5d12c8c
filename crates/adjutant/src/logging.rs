//! The log on standard error: S0's JSON entries for programs, short lines for a terminal (OPS-1).
//!
//! Every line passes the redactor before it is written.

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
use crate::config::form::LogFormat;
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
    let text = match config.settings.log.format {
        LogFormat::Auto => std::io::stderr().is_terminal(),
        LogFormat::Json => false,
        LogFormat::Text => true,
    };
    let (filter, level) = reload::Layer::new(targets(config.settings.log.level));
    let log = Log { text }.with_filter(filter);
    let traces = traces.map(|traces| traces.layer().with_filter(targets(LevelFilter::INFO)));
    // Fails only if logging was started before.
    let _ = tracing_subscriber::registry().with(log).with(traces).try_init();
    Handle { level }
}

/// The crates of the workspace, as `build.rs` finds them, with spaces between them.
const CRATES: &str = env!("ADJUTANT_CRATES");

/// Returns the filter for a level: it holds for our own crates, and others write warnings at most.
fn targets(level: LevelFilter) -> Targets {
    let ours = CRATES.split(' ').map(|name| (name, level));
    // It warns of what clients do wrong, in their words.
    let mcp = ("rmcp", level.min(LevelFilter::ERROR));
    Targets::new().with_default(level.min(LevelFilter::WARN)).with_targets(ours).with_targets([mcp])
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
        let mut fields = Fields { text: self.text, ..Fields::default() };
        event.record(&mut fields);
        let mut about = About::default();
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(of_span) = span.extensions().get::<About>() {
                about.fill_from(of_span);
            }
        }
        let level = level_name(*event.metadata().level());
        let now = model::Clock::system().now();
        let line = if self.text { fields.line(now, level, &about) } else { fields.json(now, level, &about) };
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
    request_id: Option<Arc<str>>,
    user_id: Option<Arc<str>>,
    conversation_id: Option<Arc<str>>,
}

impl About {
    /// Inner spans come first and win.
    fn fill_from(&mut self, outer: &Self) {
        self.request_id = self.request_id.take().or_else(|| outer.request_id.clone());
        self.user_id = self.user_id.take().or_else(|| outer.user_id.clone());
        self.conversation_id = self.conversation_id.take().or_else(|| outer.conversation_id.clone());
    }

    fn set(&mut self, name: &str, value: impl FnOnce() -> Arc<str>) {
        match name {
            "request_id" => self.request_id = Some(value()),
            "user_id" => self.user_id = Some(value()),
            "conversation_id" => self.conversation_id = Some(value()),
            _ => {}
        }
    }
}

impl Visit for About {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field.name(), || value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.set(field.name(), || format!("{value:?}").into());
    }
}

/// The fields of one entry, written down as they are read: many are, in every request. A name that ends in `.json` holds
/// JSON as text.
#[derive(Default)]
struct Fields {
    /// For people, and not as JSON.
    text: bool,
    event: Option<String>,
    duration_ms: Option<u64>,
    /// For people it comes first.
    message: Option<String>,
    details: Vec<u8>,
}

impl Fields {
    fn json(&self, now: Timestamp, level: &str, about: &About) -> String {
        let mut line = Vec::with_capacity(self.details.len() + 320);
        // Writing to memory does not fail.
        let _ = write!(line, "{{\"timestamp\":\"{now:.3}\",\"level\":\"{level}\"");
        optional(&mut line, "request_id", about.request_id.as_deref());
        member(&mut line, "event", self.event.as_deref().unwrap_or("message"));
        optional(&mut line, "duration_ms", self.duration_ms.as_ref());
        line.extend_from_slice(b",\"details\":{");
        line.extend_from_slice(self.details.strip_prefix(b"{").unwrap_or_default());
        line.push(b'}');
        optional(&mut line, "user_id", about.user_id.as_deref());
        optional(&mut line, "conversation_id", about.conversation_id.as_deref());
        line.extend_from_slice(b"}\n");
        String::from_utf8(line).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    fn line(&self, now: Timestamp, level: &str, about: &About) -> String {
        let mut line = format!("{now:.3} {level:7}");
        for part in [&self.event, &self.message].into_iter().flatten() {
            line.push(' ');
            line.push_str(part);
        }
        line.push_str(&String::from_utf8_lossy(&self.details));
        if let Some(id) = &about.request_id {
            let _ = write!(line, " [{id}]");
        }
        // Whatever a client sends must not move the cursor of whoever reads the log.
        let mut line: String =
            line.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect();
        line.push('\n');
        line
    }

    fn put(&mut self, name: &str, value: &(impl Serialize + Display + ?Sized)) {
        if self.text {
            // Writing to memory does not fail.
            let _ = write!(self.details, " {name}={value}");
        } else {
            member(&mut self.details, name, value);
        }
    }

    fn put_text(&mut self, field: &Field, text: &str) {
        match (field.name(), field.name().strip_suffix(".json")) {
            ("event", _) => self.event = Some(text.to_owned()),
            ("message", _) if self.text => self.message = Some(text.to_owned()),
            (_, Some(name)) => match serde_json::from_str::<&RawValue>(text) {
                // An entry is one line.
                Ok(json) if !text.contains('\n') => self.put(name, json),
                _ => self.put(name, text),
            },
            (name, None) => self.put(name, text),
        }
    }
}

/// Adds to an object that is open; the first opens it. Names are words of ours and need no escaping.
fn member(object: &mut Vec<u8>, name: &str, value: &(impl Serialize + ?Sized)) {
    object.extend_from_slice(if object.is_empty() { b"{\"" } else { b",\"" });
    object.extend_from_slice(name.as_bytes());
    object.extend_from_slice(b"\":");
    // Writing to memory does not fail, and nothing that is logged cannot be written.
    let _ = serde_json::to_writer(object, value);
}

fn optional(object: &mut Vec<u8>, name: &str, value: Option<&(impl Serialize + ?Sized)>) {
    if let Some(value) = value {
        member(object, name, value);
    }
}

impl Visit for Fields {
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
    fn every_crate_of_the_workspace_writes_at_the_level_that_is_configured() {
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
        for (foreign, level, written) in [
            ("hyper::proto", Level::INFO, false),
            ("hyper::proto", Level::WARN, true),
            ("rmcp::service", Level::WARN, false),
            ("rmcp::service", Level::ERROR, true),
        ] {
            assert_eq!(targets(LevelFilter::TRACE).would_enable(foreign, &level), written, "{foreign} {level}");
        }
    }
}
