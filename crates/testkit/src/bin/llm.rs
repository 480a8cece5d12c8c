//! A provider of a language model to try things with by hand and to measure against: adds what it is told to add, and
//! repeats everything else.
//!
//! `cargo run -p testkit --bin llm -- --listen 127.0.0.1:9000 [--delay-ms 300] [--gap-ms 5]`

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for developers; it says where it is")]

use std::time::Duration;

use serde_json::json;
use testkit::llm::{Entry, Llm, Reply, Request};

// One thread: whoever measures needs the others.
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| arguments.iter().skip_while(|argument| *argument != name).nth(1);
    let milliseconds = |name| Duration::from_millis(after(name).map_or(0, |count| count.parse().unwrap()));
    let delay = milliseconds("--delay-ms");
    let gap = milliseconds("--gap-ms");
    let llm = Llm::start_on(after("--listen").map_or("127.0.0.1:0", String::as_str)).await;
    llm.forget();
    let done = Reply::text("Done, it is on your list.");
    llm.decide(move |request| reply(request, &done).delayed(delay).slowly(gap));
    println!("model: {}", llm.url());
    tokio::signal::ctrl_c().await.unwrap();
}

fn reply(request: &Request, done: &Reply) -> Reply {
    let transcript = request.transcript();
    let asked = transcript.iter().rposition(|entry| matches!(entry, Entry::User(_))).unwrap_or(0);
    if transcript[asked..].iter().any(|entry| matches!(entry, Entry::Result(_))) {
        return done.clone();
    }
    let said = match transcript.into_iter().nth(asked) {
        Some(Entry::User(said)) => said,
        _ => String::new(),
    };
    let repeat = || Reply::text(&format!("You said: {said}"));
    let Some(add) = said.to_ascii_lowercase().find("add ") else { return repeat() };
    let tools = request.tools();
    match tools.iter().find(|tool| ["add_task", "create_todo"].contains(&tool.as_str())) {
        Some(tool) => Reply::call(tool, json!({"title": said[add + "add ".len()..].trim()})),
        None => repeat(),
    }
}
