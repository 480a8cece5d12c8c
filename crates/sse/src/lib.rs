//! Server-sent events: one bounded decoder and one encoder, after the WHATWG specification.
//!
//! The crate does no I/O. It never holds more than the limits of its [`Decoder`] allow, and never writes an event that
//! would be read as another one.

mod decode;
mod encode;

pub use decode::{Decoder, Limits, TooLarge};
pub use encode::{InvalidField, KEEP_ALIVE, position};

/// One event, borrowed from the decoder that read it or from the caller that writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event<'a> {
    /// The id that this event carries itself. An id that an earlier event set is not repeated here.
    pub id: Option<&'a str>,
    /// The event type; empty means `message`.
    pub name: &'a str,
    /// The lines of data, joined by `\n`.
    pub data: &'a [u8],
}
