//! A codec for tonic that passes messages as bytes. [`super::packages`] decodes them, because the method determines the
//! type.

use bytes::{Buf, BufMut, Bytes};
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Code, Status};

/// The size of the buffer of a response, in bytes. It is sent when it is full or no message is ready. A stream whose
/// client reads nothing holds so much and one message.
const BUFFER_SIZE: usize = 4 * 1024;

/// Passes the bytes of a message unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawCodec;

impl Codec for RawCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(BUFFER_SIZE, BUFFER_SIZE)
    }
}

impl Decoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// The reason why a body is not a valid sequence of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FramingError {
    TooLarge,
    Compressed,
    Truncated,
}

impl FramingError {
    /// Classifies the status with which tonic rejects a body: `OutOfRange` means too large, a message with `compress`
    /// means compressed, and anything else means truncated.
    pub(crate) fn from_status(status: &Status) -> Self {
        match status.code() {
            Code::OutOfRange => Self::TooLarge,
            _ if status.message().contains("compress") => Self::Compressed,
            _ => Self::Truncated,
        }
    }
}
