//! A fake model provider for manual tests and benchmarks. It adds a task for messages with "add", and repeats all other
//! messages.
//!
//! `cargo run -p testkit --bin llm -- --listen 127.0.0.1:9000 [--delay-ms 300] [--gap-ms 5]`

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for developers that prints its address")]

use std::time::Duration;

use serde_json::json;
use testkit::llm::{Llm, Reply, Request, TranscriptEntry};

// Uses one thread, so that the remaining cores are free for the measured program.
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value_of = |name: &str| arguments.iter().skip_while(|argument| *argument != name).nth(1);
    let milliseconds = |name| Duration::from_millis(value_of(name).map_or(0, |count| count.parse().unwrap()));
    let delay = milliseconds("--delay-ms");
    let gap = milliseconds("--gap-ms");
    let llm = Llm::start_on(value_of("--listen").map_or("127.0.0.1:0", String::as_str)).await;
    llm.stop_recording();
    let done = Reply::text("Done, it is on your list.");
    llm.reply_with(move |request| reply(request, &done).delayed(delay).with_gap(gap));
    println!("model: {}", llm.url());
    tokio::signal::ctrl_c().await.unwrap();
}

fn reply(request: &Request, done: &Reply) -> Reply {
    let transcript = request.transcript();
    let last_user = transcript.iter().rposition(|entry| matches!(entry, TranscriptEntry::User(_))).unwrap_or(0);
    if transcript[last_user..].iter().any(|entry| matches!(entry, TranscriptEntry::Result(_))) {
        return done.clone();
    }
    let message = match transcript.into_iter().nth(last_user) {
        Some(TranscriptEntry::User(message)) => message,
        _ => String::new(),
    };
    let repeat = || Reply::text(&format!("You said: {message}"));
    let Some(add) = message.to_ascii_lowercase().find("add ") else { return repeat() };
    let tools = request.tool_names();
    match tools.iter().find(|tool| ["add_task", "create_todo"].contains(&tool.as_str())) {
        Some(tool) => Reply::call(tool, json!({"title": message[add + "add ".len()..].trim()})),
        None => repeat(),
    }
}
