//! Tests of the JSON-RPC and HTTP+JSON bindings with a scripted handler.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cards;
mod double;
mod fuzz;
mod http;
mod json_rpc;
mod operations;
mod stream;
