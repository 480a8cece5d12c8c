//! MCP servers of others, whose tools the assistant uses beside our own.

pub mod settings;

pub use settings::{Era, Settings, Transport};

/// A tool of somebody else.
#[derive(Debug)]
pub(crate) struct Foreign {}
