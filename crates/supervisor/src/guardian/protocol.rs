//! The protocol between node and guardian: frames of a length and JSON over a stream socket.
//!
//! File descriptors are sent with the first byte of their frame. Paths that are not UTF-8 are transferred without loss.

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

use super::launch::{Launch, LaunchError};
use super::{ExitReason, ProcessUsage, Protections};

/// The maximum length of a frame in bytes. It is larger than the system limit for arguments and environment.
pub(super) const MAX_FRAME: usize = 64 << 20;
const CHUNK: usize = 64 << 10;
/// The number of descriptors of a launch: input, output, errors.
pub(super) const STDIO: usize = 3;

/// A request of the node to the guardian.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GuardianRequest {
    /// Sent with three file descriptors.
    Launch(Box<Launch>),
    /// Sends TERM to all processes of the program, and KILL after its grace period.
    Stop { id: Uuid },
    /// Sends KILL to all processes of the program.
    Kill { id: Uuid },
    /// Renews the lease.
    Alive { for_ms: u64 },
    /// Ends all programs with their grace periods, then the guardian.
    Quit,
}

/// A report of the guardian to the node.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GuardianReport {
    /// Sent when the guardian is ready.
    Ready(Protections),
    /// The answer to `Alive`.
    Hello,
    Started {
        id: Uuid,
        pid: i32,
        confined: bool,
    },
    Refused {
        id: Uuid,
        #[serde(rename = "fault")]
        error: LaunchError,
    },
    Usage {
        id: Uuid,
        usage: ProcessUsage,
        /// The sessions that its processes have created. If the guardian dies, they identify the processes of the
        /// execution.
        sessions: Vec<i32>,
    },
    /// The program has ended. Its other processes may still run.
    Exited {
        id: Uuid,
        #[serde(rename = "how")]
        reason: ExitReason,
        usage: ProcessUsage,
    },
    /// No process of the program is left.
    #[serde(rename = "gone")]
    TreeEnded {
        id: Uuid,
        usage: ProcessUsage,
    },
}

/// Returns the bytes of a frame: its length in 4 bytes, then JSON. Fails if the frame cannot be serialized.
pub(super) fn encode(frame: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, frame)?;
    let length = u32::try_from(bytes.len() - 4).map_err(io::Error::other)?;
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    Ok(bytes)
}

/// Sends as much as the socket accepts, with the descriptors on the first byte, and returns the number of sent bytes.
/// Repeats an interrupted call. Fails if there are more than [`STDIO`] descriptors, if a non-blocking socket is full,
/// or if it is closed.
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

/// Sends all bytes over a blocking socket, with the descriptors on the first byte. Fails if the socket fails.
pub(super) fn send_all(socket: impl AsFd, mut bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut fds = fds;
    while !bytes.is_empty() {
        let sent = send(&socket, bytes, fds)?;
        fds = &[];
        bytes = &bytes[sent..];
    }
    Ok(())
}

/// Collects received bytes and descriptors until a frame is complete.
#[derive(Debug, Default)]
pub(super) struct FrameReader {
    buffer: Vec<u8>,
    /// One group for each frame with descriptors, in order. A group is incomplete if the process had too many open
    /// files.
    fds: VecDeque<Vec<OwnedFd>>,
}

impl FrameReader {
    /// Receives available bytes and descriptors into the buffer, at most 64 KiB. Returns the number of bytes; 0 means
    /// that the socket is closed. Fails with `WouldBlock` if a non-blocking socket has no data, and if the socket
    /// fails. A blocking socket waits.
    pub(super) fn receive(&mut self, socket: impl AsFd) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STDIO))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let used = self.buffer.len();
        self.buffer.resize(used + CHUNK, 0);
        let free = &mut self.buffer[used..];
        let received = loop {
            match rustix::net::recvmsg(&socket, &mut [IoSliceMut::new(free)], &mut control, RecvFlags::CMSG_CLOEXEC) {
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

    /// Removes and returns the next frame, or returns `None` if it is not complete. Fails if it is larger than
    /// [`MAX_FRAME`] or not valid.
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

    /// Returns the descriptors of the frame that was just returned. Call it once for each frame with descriptors. The
    /// list is empty or incomplete if this process had too many open files.
    pub(super) fn fds(&mut self) -> Vec<OwnedFd> {
        self.fds.pop_front().unwrap_or_default()
    }
}

/// Encodes system strings in JSON: as text if they are UTF-8, otherwise as bytes.
pub(super) mod lossless {
    use std::ffi::{OsStr, OsString};
    use std::fmt;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};

    use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
    use serde::ser::{Serialize, Serializer};

    struct OsText<'a>(&'a OsStr);
    struct OwnedOsText(OsString);

    impl Serialize for OsText<'_> {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            match self.0.to_str() {
                Some(text) => to.serialize_str(text),
                None => to.collect_seq(self.0.as_bytes()),
            }
        }
    }

    impl<'de> Deserialize<'de> for OwnedOsText {
        /// Accepts a text, or a list of bytes for a value that is not UTF-8. Fails for any other value.
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            struct OsTextVisitor;
            impl<'de> Visitor<'de> for OsTextVisitor {
                type Value = OwnedOsText;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("text or bytes")
                }

                fn visit_str<E: de::Error>(self, text: &str) -> Result<OwnedOsText, E> {
                    Ok(OwnedOsText(text.into()))
                }

                fn visit_string<E: de::Error>(self, text: String) -> Result<OwnedOsText, E> {
                    Ok(OwnedOsText(text.into()))
                }

                fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<OwnedOsText, A::Error> {
                    let mut bytes = Vec::new();
                    while let Some(byte) = seq.next_element()? {
                        bytes.push(byte);
                    }
                    Ok(OwnedOsText(OsString::from_vec(bytes)))
                }
            }
            from.deserialize_any(OsTextVisitor)
        }
    }

    /// Defines a module for `#[serde(with)]` for one type.
    macro_rules! lossless_module {
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
    lossless_module!(
        path,
        PathBuf,
        |path, to| OsText(path.as_os_str()).serialize(to),
        |wire| wire.0.into(),
        OwnedOsText
    );
    lossless_module!(
        list,
        Vec<OsString>,
        |list, to| to.collect_seq(list.iter().map(|text| OsText(text))),
        |wire| wire.into_iter().map(|text| text.0).collect(),
        Vec<OwnedOsText>
    );
    lossless_module!(
        paths,
        Vec<PathBuf>,
        |list, to| to.collect_seq(list.iter().map(|path| OsText(path.as_os_str()))),
        |wire| wire.into_iter().map(|text| text.0.into()).collect(),
        Vec<OwnedOsText>
    );
    lossless_module!(
        pairs,
        Vec<(OsString, OsString)>,
        |list, to| to.collect_seq(list.iter().map(|(name, value)| (OsText(name), OsText(value)))),
        |wire| wire.into_iter().map(|(name, value)| (name.0, value.0)).collect(),
        Vec<(OwnedOsText, OwnedOsText)>
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
    fn frames_preserve_bytes_and_descriptors() {
        let (ours, theirs) = UnixStream::pair().expect("pair");
        let (mut pipe_reader, writer) = io::pipe().expect("pipe");
        let sent = launch();
        let bytes = encode(&GuardianRequest::Launch(Box::new(sent.clone()))).expect("encoded");
        let fds = [writer.as_fd(), writer.as_fd(), writer.as_fd()];
        send_all(&ours, &bytes, &fds).expect("sent");
        send_all(&ours, &encode(&GuardianRequest::Quit).expect("encoded"), &[]).expect("sent");
        drop((ours, writer));

        let mut reader = FrameReader::default();
        while reader.receive(&theirs).expect("received") > 0 {}
        let Some(GuardianRequest::Launch(got)) = reader.next().expect("frame") else { panic!("a launch") };
        assert_eq!((&got.program, &got.args, &got.env, &got.cwd), (&sent.program, &sent.args, &sent.env, &sent.cwd));
        assert_eq!(got.sandbox.expect("sandbox").write, sent.sandbox.expect("sandbox").write);
        let fds = reader.fds();
        assert_eq!(fds.len(), 3);
        assert!(matches!(reader.next().expect("frame"), Some(GuardianRequest::Quit)));
        assert!(reader.next::<GuardianRequest>().expect("nothing").is_none());
        for fd in fds {
            std::fs::File::from(fd).write_all(b"x").expect("written");
        }
        let mut text = String::new();
        pipe_reader.read_to_string(&mut text).expect("read");
        assert_eq!(text, "xxx");
    }

    #[test]
    fn large_frames_are_transferred() {
        let (ours, theirs) = UnixStream::pair().expect("pair");
        let mut sent = launch();
        sent.args.push("x".repeat(5 << 20).into());
        let bytes = encode(&GuardianRequest::Launch(Box::new(sent))).expect("encoded");
        let sender = std::thread::spawn(move || send_all(&ours, &bytes, &[]));
        let mut reader = FrameReader::default();
        while reader.receive(&theirs).expect("received") > 0 {}
        sender.join().expect("joined").expect("sent");
        let Some(GuardianRequest::Launch(got)) = reader.next().expect("frame") else { panic!("a launch") };
        assert_eq!(got.args.last().expect("the long one").len(), 5 << 20);
        assert!(reader.buffer.capacity() <= 4 * CHUNK, "a large frame leaves no large buffer");
    }

    #[test]
    fn oversized_frames_are_rejected() {
        let mut reader = FrameReader { buffer: u32::MAX.to_be_bytes().to_vec(), ..FrameReader::default() };
        assert!(reader.next::<GuardianRequest>().is_err());
    }
}
