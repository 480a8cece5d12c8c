//! Tests of the whole product: the real program, over sockets and on the command line.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod a2a;
mod a2a_endpoints;
mod agents;
mod audit;
mod auth;
mod chat;
mod cli;
mod config;
mod connections;
mod conversations;
mod data;
mod executions;
mod external_tools;
mod invalid_input;
mod isolation;
mod jwks;
mod kill_chat;
mod kill_push;
mod kill_tasks;
mod local_socket;
mod mcp;
mod messages;
mod models;
mod nodes;
mod operation;
mod quotas;
mod reminders;
mod remote_agents;
mod roles;
mod schedules;
mod stalled_streams;
mod stop;
mod stop_all;
mod storage;
mod supervisor;
mod tasks;
mod turn;
mod understand;
mod words;

use testkit::app::Home;

/// A secret of sufficient length.
pub const SECRET: &str = "correct-horse-battery-staple-0123456789";

/// Returns an empty home for the program under test.
pub fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_adjutant"))
}

/// Returns a home with authentication by tokens that are signed with [`SECRET`].
pub fn home_with_auth() -> Home {
    home().with_env("TEST_SECRET", SECRET).with_config("[auth]\njwt_secret = \"env:TEST_SECRET\"\n")
}

/// Creates a token with `adjutant token create`.
pub fn token(home: &Home, user: &str, options: &[&str]) -> String {
    home.run(&[&["token", "create", "--user", user], options].concat()).ok().trim().to_owned()
}

pub const ALICE: &str = "aaaaaaaa-0000-4000-8000-00000000000a";
pub const BOB: &str = "bbbbbbbb-0000-4000-8000-00000000000b";
