//! A server with the scripted agent, for the public A2A test kits. The agent is served at `/.well-known/agent-card.json`,
//! requires no token and may call webhooks on this machine.
//!
//! `cargo run -p testkit --bin conformance -- --listen 127.0.0.1:9999 [--data DIR] [--database-url postgres://…]`

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for developers that prints its address")]

use testkit::conformance::{ConformanceOptions, ConformanceServer};

/// The same allocator as in the product.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value_of = |name: &str| arguments.iter().skip_while(|argument| *argument != name).nth(1).cloned();
    let defaults = ConformanceOptions::default();
    let options = ConformanceOptions {
        listen: value_of("--listen").unwrap_or_else(|| defaults.listen.clone()),
        data_dir: value_of("--data").map(Into::into),
        database_url: value_of("--database-url"),
        ..defaults
    };
    let server = ConformanceServer::start(options).await;
    println!("the conformance agent is ready: {}", server.url);
    tokio::signal::ctrl_c().await.unwrap();
    server.stop().await;
}
