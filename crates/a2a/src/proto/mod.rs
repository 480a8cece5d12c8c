//! The protobuf messages: `lf.a2a.v1` of version 1.x ([`v1`]) and `a2a.v1` of version 0.3 ([`v03`]). `crates/protogen`
//! generates them from the files in `crates/a2a/proto`.
//!
//! gRPC uses these messages in both versions. HTTP+JSON of 0.3 uses their JSON form, and JSON of 1.x is read through
//! them. Pure conversions lead to the types of 1.x and back: `From<types::X>` always succeeds, `TryFrom` fails with an
//! error that names the field. Required fields may be missing here. [`crate::OperationRequest::validate`] rejects
//! requests without them. Responses of other agents are accepted without them.

mod cards;
pub(crate) mod choices;
mod convert;
#[rustfmt::skip]
#[expect(clippy::large_enum_variant, reason = "prost decides the layout")]
mod generated;
pub(crate) mod json;
mod names;
mod requests;
mod tasks;
pub mod values;

pub use generated::{v1, v03};

/// The file descriptors of both packages and their imports.
pub(crate) const DESCRIPTORS: &[u8] = include_bytes!("generated/descriptors.bin");

#[cfg(test)]
mod tests;
