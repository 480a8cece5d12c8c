//! The Agent2Agent protocol: versions 0.3 and 1.x, by JSON-RPC, HTTP+JSON and gRPC, for any number of agents behind one
//! address, and the client of all of them.
//!
//! A binding decodes what arrives into a [`Request`], asks the one [`Handler`], and encodes its [`Answer`]. Inside, there
//! is version 1.x alone, in the types of the official crate; what 0.3 says otherwise is a pair of pure conversions at the
//! edge ([`v03`]). Nothing here knows what an agent is made of, who its callers are, or where tasks are kept.

pub mod bytes64;
pub mod check;
pub mod client;
pub mod error;
pub mod extensions;
pub mod grpc;
pub mod handler;
pub mod http;
pub mod proto;
pub mod v03;
pub mod version;

/// The nouns of version 1.x.
pub use a2a_types as types;
pub use error::{Error, Kind};
pub use handler::{Answer, Binding, Call, Card, Denied, Handler, Operation, Request, Updates};
pub use version::Version;
