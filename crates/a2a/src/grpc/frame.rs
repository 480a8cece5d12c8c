//! Messages in a body: a byte that says whether it is compressed, four that say how long it is, then itself. Nothing is
//! kept beyond the longest message that is allowed.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;

/// The header that says how messages are compressed.
pub(crate) const ENCODING: &str = "grpc-encoding";

const HEAD: usize = 5;

/// Why what has come is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Compressed,
    TooLarge {
        limit: usize,
    },
    /// It ends in the middle.
    Cut,
}

/// Puts messages together from pieces of a body.
pub(crate) struct Reader {
    buffer: BytesMut,
    limit: usize,
}

impl Reader {
    pub(crate) fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), limit }
    }

    pub(crate) fn push(&mut self, bytes: impl Buf) {
        self.buffer.put(bytes);
    }

    /// The next message, if all of it has come.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        let Some((&[flag, a, b, c, d], rest)) = self.buffer.split_first_chunk::<HEAD>() else { return Ok(None) };
        if flag != 0 {
            return Err(Fault::Compressed);
        }
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > self.limit {
            return Err(Fault::TooLarge { limit: self.limit });
        }
        if rest.len() < length {
            return Ok(None);
        }
        self.buffer.advance(HEAD);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }

    /// Whether nothing is left of a message that has begun.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }
}

pub(crate) fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut buffer = BytesMut::with_capacity(HEAD + length);
    buffer.put_u8(0);
    // No message is as large as that: it would not fit into memory in the form that it comes from.
    buffer.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    message.encode_raw(&mut buffer);
    buffer.freeze()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_does_not_matter_how_it_is_torn(texts in proptest::collection::vec("[a-z]{0,20}", 0..5), size in 1_usize..9) {
            let body: Vec<u8> = texts.iter().flat_map(framed).collect();
            let mut reader = Reader::new(100);
            let mut found = Vec::new();
            for piece in body.chunks(size) {
                reader.push(piece);
                while let Some(message) = reader.next().unwrap() {
                    found.push(String::decode(message).unwrap());
                }
            }
            prop_assert_eq!(found, texts);
            prop_assert!(reader.is_empty());
        }
    }

    #[test]
    fn what_is_too_large_is_refused_before_it_has_come() {
        // A2A-4
        let mut reader = Reader::new(10);
        reader.push([0, 0, 0, 0, 11].as_slice());
        assert_eq!(reader.next(), Err(Fault::TooLarge { limit: 10 }));
        let mut reader = Reader::new(10);
        reader.push([1, 0, 0, 0, 1].as_slice());
        assert_eq!(reader.next(), Err(Fault::Compressed));
    }
}
