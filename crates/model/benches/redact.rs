//! How fast text passes the redactor, against copying the same text: log lines with and without secrets.
//!
//! `cargo bench -p model --bench redact`

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::hint::black_box;
use std::time::Instant;

use model::redact::redact;

const MEGABYTES: usize = 20;

fn main() {
    let plain = r#"{"timestamp":"2026-01-31T12:00:00.123Z","level":"INFO","event":"request_received","details":{"method":"GET","path":"/api/tasks/0190a6d2-7c00-7000-8000-000000000000","input_length":0}}"#;
    let secret =
        "2026-01-31 12:00:00 WARN login of someone@example.org with password=hunter2 at https://user:pass@db.example/x";
    for (name, line) in [("JSON log, no secrets", plain), ("text log, secrets in every line", secret)] {
        let text = format!("{line}\n").repeat(MEGABYTES * 1_000_000 / (line.len() + 1));
        let copied = fastest(|| drop(black_box(text.clone())));
        let redacted = fastest(|| drop(black_box(redact(&text))));
        let speed = |seconds: f64| text.len() as f64 / seconds / 1e6;
        let (copy, redaction) = (speed(copied), speed(redacted));
        println!("{name:32} {redaction:6.0} MB/s, a copy {copy:6.0} MB/s, ratio {:.3}", redaction / copy);
    }
}

/// Seconds of the best of ten runs.
fn fastest(work: impl Fn()) -> f64 {
    let times = (0..10).map(|_| {
        let began = Instant::now();
        work();
        began.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}
