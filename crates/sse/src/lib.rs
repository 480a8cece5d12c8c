//! Server-sent events: a bounded decoder and an encoder, according to the WHATWG specification.
//!
//! The crate does no I/O. It never buffers more than the limits of its [`SseDecoder`] allow. It never writes an event
//! that would be decoded differently.

mod decode;
mod encode;

pub use decode::{SseDecoder, SseLimits, TooLarge};
pub use encode::{InvalidField, KEEP_ALIVE, encode_last_id};

/// One event. It borrows from the decoder, or from the caller that encodes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The id of this event. An id that was set by an earlier event is not repeated here.
    pub id: Option<&'a str>,
    /// The event type; empty means `message`.
    pub name: &'a str,
    /// The lines of data, joined by `\n`.
    pub data: &'a [u8],
}
