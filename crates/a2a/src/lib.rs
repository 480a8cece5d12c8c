//! The Agent2Agent protocol, versions 0.3 and 1.x, over JSON-RPC, HTTP+JSON and gRPC.
//!
//! The server side serves any number of agents at one address. The [`client`] calls agents in every version and
//! binding.
//!
//! A binding decodes a request into an [`OperationRequest`], passes it to the [`AgentHandler`], and encodes the
//! [`OperationResponse`]. Internally only version 1.x exists, in the types of the official crate. Pure conversions
//! translate from and to version 0.3 at the edge ([`v03`]). This crate does not run agents, authenticate callers or
//! store tasks.

pub mod base64_bytes;
pub mod client;
pub mod error;
pub mod extensions;
pub mod grpc;
pub mod handler;
pub mod http;
pub mod proto;
pub mod v03;
pub mod validate;
pub mod version;

/// The types of version 1.x.
pub use a2a_types as types;
pub use error::{Error, ErrorKind};
pub use handler::{
    AgentHandler, Binding, CallContext, CallRejection, Operation, OperationRequest, OperationResponse, PublishedCard,
    UpdateStream,
};
pub use version::Version;
