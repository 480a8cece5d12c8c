//! The messages of protobuf: `lf.a2a.v1` of version 1.x ([`v1`]) and `a2a.v1` of 0.3 ([`v03`]), generated from the files
//! below `crates/a2a/proto` by `crates/protogen`.
//!
//! They are what gRPC sends and receives, the JSON of HTTP+JSON in 0.3, and the form in which JSON of 1.x is read. Pure
//! conversions lead to the types of 1.x and back: `From<types::X>` always succeeds, `TryFrom` fails with an error that
//! names the field. A field that the protocol wants to be given may be missing here; [`crate::Request::check`] refuses
//! requests without it, and answers of other agents stay readable.

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

/// The descriptors of both packages and of the files that they import.
pub(crate) const DESCRIPTORS: &[u8] = include_bytes!("generated/descriptors.bin");

#[cfg(test)]
mod tests;
