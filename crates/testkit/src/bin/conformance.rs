//! The product with the scripted agent in it, for the public test kits of A2A: the agent is the one of
//! `/.well-known/agent-card.json`, nobody needs a token, and it may call back to this machine.
//!
//! `cargo run -p testkit --bin conformance -- --listen 127.0.0.1:9999 [--data DIR] [--database-url postgres://…]`

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for developers; it says where it is")]

use testkit::conformance::{Options, Server};

/// That of the product.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| arguments.iter().skip_while(|argument| *argument != name).nth(1).cloned();
    let usual = Options::default();
    let options = Options {
        listen: after("--listen").unwrap_or_else(|| usual.listen.clone()),
        data_dir: after("--data").map(Into::into),
        database_url: after("--database-url"),
        ..usual
    };
    let server = Server::start(options).await;
    println!("the conformance agent is ready: {}", server.url);
    tokio::signal::ctrl_c().await.unwrap();
    server.stop().await;
}
