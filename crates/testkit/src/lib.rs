//! Support for tests, never part of the product.
//!
//! One half is test doubles for external systems: a command-line agent, a database server, a token issuer, a trace
//! collector, a model provider and a TCP proxy. They do not depend on adjutant. The other half starts the product: as its
//! own process on a free port ([`app`]), or in this process with a scripted agent (`conformance`).

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
