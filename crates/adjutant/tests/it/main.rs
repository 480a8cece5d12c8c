//! The product as its users meet it: the real program, over sockets and on the command line.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod a2a;
mod agents;
mod auth;
mod chat;
mod cli;
mod config;
mod conversations;
mod data;
mod doors;
mod elsewhere;
mod executions;
mod foreign;
mod input;
mod isolation;
mod jwks;
mod kill;
mod kill_chat;
mod kill_push;
mod mcp;
mod models;
mod nodes;
mod operation;
mod reminders;
mod roles;
mod schedules;
mod supervisor;
mod tasks;
mod turn;
mod understand;

use testkit::app::Home;

/// A secret that is long enough.
pub const SECRET: &str = "correct-horse-battery-staple-0123456789";

/// A fresh home for the program under test.
pub fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_adjutant"))
}

/// A home whose server wants tokens signed with [`SECRET`].
pub fn home_with_auth() -> Home {
    home().with("TEST_SECRET", SECRET).configured("[auth]\njwt_secret = \"env:TEST_SECRET\"\n")
}

/// A token of the product's own making.
pub fn token(home: &Home, user: &str, more: &[&str]) -> String {
    home.run(&[&["token", "create", "--user", user], more].concat()).ok().trim().to_owned()
}

pub const ALICE: &str = "aaaaaaaa-0000-4000-8000-00000000000a";
pub const BOB: &str = "bbbbbbbb-0000-4000-8000-00000000000b";
