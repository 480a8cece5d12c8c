//! Measures the throughput of redaction for whole texts and streams, compared with a copy of the text. The texts are
//! log lines with and without secrets.
//!
//! `cargo bench -p redact --bench redact`

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::hint::black_box;
use std::time::Instant;

use redact::{RedactOptions, Redactor, redact};

const MEGABYTES: usize = 4;
const RUNS: usize = 100;
const CHUNK_BYTES: usize = 64 * 1024;

fn main() {
    let plain = r#"{"timestamp":"2026-01-31T12:00:00.123Z","level":"INFO","event":"request_received","details":{"method":"GET","path":"/api/tasks/0190a6d2-7c00-7000-8000-000000000000","input_length":0}}"#;
    let build = "   Compiling serde_json v1.0.140 (/home/user/.cargo/registry/src/index/serde_json-1.0.140)";
    let secret =
        "2026-01-31 12:00:00 WARN login of someone@example.org with password=hunter2 at https://user:pass@db.example/x";
    let everything = Redactor::new(RedactOptions::default());
    let known = everything.clone().with_known((0..20).map(|i| format!("a-known-value-{i}").repeat(20)));
    for (name, line, end) in [
        ("JSON log, no secrets", plain, "\n"),
        ("output of a build", build, "\n"),
        ("text log, secrets in every line", secret, "\n"),
        ("one endless line, no secrets", build, " "),
    ] {
        let text = format!("{line}{end}").repeat(MEGABYTES * 1_000_000 / (line.len() + 1));
        let speed = |seconds: f64| text.len() as f64 / seconds / 1e6;
        let [copy, whole, stream, with_known] = fastest([
            &|| drop(black_box(text.clone())),
            &|| drop(black_box(redact(&text))),
            &|| streamed(&everything, &text),
            &|| streamed(&known, &text),
        ])
        .map(speed);
        println!(
            "{name:32} whole {whole:5.0} MB/s, stream {stream:5.0} MB/s, ratio {:.2}, with known values {with_known:5.0} \
             MB/s; a copy {copy:6.0} MB/s",
            stream / whole
        );
    }
}

fn streamed(redactor: &Redactor, text: &str) {
    let mut stream = redactor.stream();
    for chunk in text.as_bytes().chunks(CHUNK_BYTES) {
        black_box(stream.push(chunk));
    }
    drop(black_box(stream.finish()));
}

/// Returns the shortest time of each function in seconds. The functions alternate, so that other load affects all of
/// them.
fn fastest<const N: usize>(functions: [&dyn Fn(); N]) -> [f64; N] {
    let mut best = [f64::INFINITY; N];
    for _ in 0..RUNS {
        for (function, best) in functions.iter().zip(&mut best) {
            let began = Instant::now();
            function();
            *best = best.min(began.elapsed().as_secs_f64());
        }
    }
    best
}
