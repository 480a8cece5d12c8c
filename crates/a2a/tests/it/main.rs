//! The bindings over HTTP, from bytes to bytes, with a scripted handler behind them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cards;
mod double;
mod envelope;
mod fuzz;
mod http;
mod stream;
mod table;
