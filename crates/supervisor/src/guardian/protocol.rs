//! How node and guardian talk: a length, then JSON, over a stream socket; file descriptors ride on the first bytes of
//! the frame they belong to. Never loses a byte of a path that is not UTF-8.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::launch::{Fault, Launch};
use super::{How, Usage};

/// Far more than the kernel takes as arguments and environment.
pub(super) const MAX_FRAME: usize = 64 << 20;
const CHUNK: usize = 64 << 10;
/// Input, output, errors.
pub(super) const STDIO: usize = 3;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// With three file descriptors.
    Launch(Box<Launch>),
    Stop {
        id: Uuid,
    },
    Kill {
        id: Uuid,
    },
    Alive {
        for_ms: u64,
    },
    /// End everything with its full grace, then yourself.
    Quit,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    /// Ready for launches; and the answer to `Alive`.
    Hello,
    Started {
        id: Uuid,
        pid: i32,
        confined: bool,
    },
    Refused {
        id: Uuid,
        fault: Fault,
    },
    Usage {
        id: Uuid,
        usage: Usage,
        /// Those its processes have made, for the case that we die: who is in one of them is of this execution.
        sessions: Vec<i32>,
    },
    Exited {
        id: Uuid,
        how: How,
        usage: Usage,
    },
    Gone {
        id: Uuid,
        usage: Usage,
    },
}

pub(super) fn encode(frame: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, frame)?;
    let length = u32::try_from(bytes.len() - 4).map_err(io::Error::other)?;
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    Ok(bytes)
}

/// Sends as much as the socket takes, and the descriptors with the first byte.
pub(super) fn send(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STDIO))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::other("too many descriptors for one frame"));
    }
    loop {
        match rustix::net::sendmsg(&socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            sent => return Ok(sent?),
        }
    }
}

/// Sends all of it over a socket that blocks.
pub(super) fn send_all(socket: impl AsFd, mut bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut fds = fds;
    while !bytes.is_empty() {
        let sent = send(&socket, bytes, fds)?;
        fds = &[];
        bytes = &bytes[sent..];
    }
    Ok(())
}

/// Bytes and descriptors that have arrived, until they are a whole frame.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    buffer: Vec<u8>,
    /// One group a frame that carries some, in their order. A group is short where we had no room for descriptors.
    fds: VecDeque<Vec<OwnedFd>>,
}

impl Inbox {
    /// Takes what the socket has; 0 is its end.
    pub(super) fn receive(&mut self, socket: impl AsFd) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STDIO))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let used = self.buffer.len();
        self.buffer.resize(used + CHUNK, 0);
        let room = &mut self.buffer[used..];
        let received = loop {
            match rustix::net::recvmsg(&socket, &mut [IoSliceMut::new(room)], &mut control, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                received => break received,
            }
        };
        self.buffer.truncate(used + received.as_ref().map_or(0, |received| received.bytes));
        let received = received?;
        let mut group = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                group.extend(fds);
            }
        }
        if !group.is_empty() || received.flags.contains(ReturnFlags::CTRUNC) {
            self.fds.push_back(group);
        }
        Ok(received.bytes)
    }

    /// The next whole frame.
    pub(super) fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let Some((length, rest)) = self.buffer.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > MAX_FRAME {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {length} bytes is too large")));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let frame = serde_json::from_slice(body)?;
        self.buffer.drain(..4 + length);
        if self.buffer.is_empty() && self.buffer.capacity() > 4 * CHUNK {
            self.buffer = Vec::new();
        }
        Ok(Some(frame))
    }

    /// The descriptors of the frame just read.
    pub(super) fn fds(&mut self) -> Vec<OwnedFd> {
        self.fds.pop_front().unwrap_or_default()
    }
}

/// Text of the system in JSON: a string where it is one, else its bytes.
pub(super) mod lossless {
    use std::ffi::{OsStr, OsString};
    use std::fmt;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};

    use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
    use serde::ser::{Serialize, Serializer};

    struct Out<'a>(&'a OsStr);
    struct In(OsString);

    impl Serialize for Out<'_> {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            match self.0.to_str() {
                Some(text) => to.serialize_str(text),
                None => to.collect_seq(self.0.as_bytes()),
            }
        }
    }

    impl<'de> Deserialize<'de> for In {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            struct Either;
            impl<'de> Visitor<'de> for Either {
                type Value = In;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("text or bytes")
                }

                fn visit_str<E: de::Error>(self, text: &str) -> Result<In, E> {
                    Ok(In(text.into()))
                }

                fn visit_string<E: de::Error>(self, text: String) -> Result<In, E> {
                    Ok(In(text.into()))
                }

                fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<In, A::Error> {
                    let mut bytes = Vec::new();
                    while let Some(byte) = seq.next_element()? {
                        bytes.push(byte);
                    }
                    Ok(In(OsString::from_vec(bytes)))
                }
            }
            from.deserialize_any(Either)
        }
    }

    /// One module for `#[serde(with)]` a shape.
    macro_rules! shape {
        ($name:ident, $type:ty, $out:expr, $in:expr, $wire:ty) => {
            pub(in super::super) mod $name {
                use super::*;

                pub(in super::super::super) fn serialize<S: Serializer>(
                    value: &$type,
                    to: S,
                ) -> Result<S::Ok, S::Error> {
                    let out: fn(&$type, S) -> Result<S::Ok, S::Error> = $out;
                    out(value, to)
                }

                pub(in super::super::super) fn deserialize<'de, D: Deserializer<'de>>(
                    from: D,
                ) -> Result<$type, D::Error> {
                    let wire = <$wire>::deserialize(from)?;
                    let take: fn($wire) -> $type = $in;
                    Ok(take(wire))
                }
            }
        };
    }

    use std::path::PathBuf;
    shape!(path, PathBuf, |path, to| Out(path.as_os_str()).serialize(to), |wire| wire.0.into(), In);
    shape!(
        list,
        Vec<OsString>,
        |list, to| to.collect_seq(list.iter().map(|text| Out(text))),
        |wire| wire.into_iter().map(|text| text.0).collect(),
        Vec<In>
    );
    shape!(
        paths,
        Vec<PathBuf>,
        |list, to| to.collect_seq(list.iter().map(|path| Out(path.as_os_str()))),
        |wire| wire.into_iter().map(|text| text.0.into()).collect(),
        Vec<In>
    );
    shape!(
        pairs,
        Vec<(OsString, OsString)>,
        |list, to| to.collect_seq(list.iter().map(|(name, value)| (Out(name), Out(value)))),
        |wire| wire.into_iter().map(|(name, value)| (name.0, value.0)).collect(),
        Vec<(In, In)>
    );
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::io::{Read, Write};
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn launch() -> Launch {
        let odd = OsString::from_vec(vec![b'/', 0xff, b'\n', b'"', 0xfe]);
        let mut launch = Launch::new(Uuid::from_u128(1), odd.clone(), "/tmp/ä");
        launch.args = vec!["plain".into(), odd.clone(), "".into()];
        launch.env = vec![("A".into(), odd.clone()), (odd.clone(), "B".into())];
        launch.sandbox = Some(super::super::Sandbox { write: vec![odd.into()] });
        launch
    }

    #[test]
    fn a_frame_keeps_every_byte_and_its_descriptors() {
        let (ours, theirs) = UnixStream::pair().expect("pair");
        let (mut reader, writer) = io::pipe().expect("pipe");
        let sent = launch();
        let bytes = encode(&Request::Launch(Box::new(sent.clone()))).expect("encoded");
        let fds = [writer.as_fd(), writer.as_fd(), writer.as_fd()];
        send_all(&ours, &bytes, &fds).expect("sent");
        send_all(&ours, &encode(&Request::Quit).expect("encoded"), &[]).expect("sent");
        drop((ours, writer));

        let mut inbox = Inbox::default();
        while inbox.receive(&theirs).expect("received") > 0 {}
        let Some(Request::Launch(got)) = inbox.next().expect("frame") else { panic!("a launch") };
        assert_eq!((&got.program, &got.args, &got.env, &got.cwd), (&sent.program, &sent.args, &sent.env, &sent.cwd));
        assert_eq!(got.sandbox.expect("sandbox").write, sent.sandbox.expect("sandbox").write);
        let fds = inbox.fds();
        assert_eq!(fds.len(), 3);
        assert!(matches!(inbox.next().expect("frame"), Some(Request::Quit)));
        assert!(inbox.next::<Request>().expect("nothing").is_none());
        for fd in fds {
            std::fs::File::from(fd).write_all(b"x").expect("written");
        }
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("read");
        assert_eq!(text, "xxx");
    }

    #[test]
    fn megabytes_pass() {
        let (ours, theirs) = UnixStream::pair().expect("pair");
        let mut sent = launch();
        sent.args.push("x".repeat(5 << 20).into());
        let bytes = encode(&Request::Launch(Box::new(sent))).expect("encoded");
        let sender = std::thread::spawn(move || send_all(&ours, &bytes, &[]));
        let mut inbox = Inbox::default();
        while inbox.receive(&theirs).expect("received") > 0 {}
        sender.join().expect("joined").expect("sent");
        let Some(Request::Launch(got)) = inbox.next().expect("frame") else { panic!("a launch") };
        assert_eq!(got.args.last().expect("the long one").len(), 5 << 20);
        assert!(inbox.buffer.capacity() <= 4 * CHUNK, "a large frame leaves no large buffer");
    }

    #[test]
    fn a_length_nobody_sends_is_refused() {
        let mut inbox = Inbox { buffer: u32::MAX.to_be_bytes().to_vec(), ..Inbox::default() };
        assert!(inbox.next::<Request>().is_err());
    }
}
