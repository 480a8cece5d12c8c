//! Messages as bytes, for tonic: which message they are is only known once the method is, so they are decoded in
//! [`super::packages`].

use bytes::{Buf, BufMut, Bytes};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Code, Status};

/// Takes and gives the bytes of a message.
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
}

impl Decoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// Why a body is not made of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FramingError {
    TooLarge,
    Compressed,
    Truncated,
}

impl FramingError {
    /// Classifies the status with which tonic refuses a body. It tells them apart by the code and the message.
    pub(crate) fn of(status: &Status) -> Self {
        match status.code() {
            Code::OutOfRange => Self::TooLarge,
            _ if status.message().contains("compress") => Self::Compressed,
            _ => Self::Truncated,
        }
    }
}
