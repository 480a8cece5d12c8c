//! What tests need and the product does not. Two halves: doubles of what we do not own (a command-line agent, a database
//! server, an issuer of tokens, a collector of traces, a model provider, a wire that can be cut), which know nothing of adjutant; and the whole product, as its own program on
//! a free port ([`app`]) or with a scripted agent in it (`conformance`).

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

pub mod agent;
pub mod app;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod issuer;
pub mod llm;
pub mod otlp;
pub mod postgres;
pub mod proxy;
