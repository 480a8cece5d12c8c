//! Passes on what an agent says that speaks without a pause.
//!
//! It gets a pipe that holds as much as may be, and is left to fill it after each burst: to wake up for every few lines would
//! cost most of two processors. What came is looked through on threads that step back for all others of this program:
//! whoever talks to the assistant does not wait for it.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::LazyLock;
use std::time::Duration;

use rustix::io::Errno;
use tokio::net::unix::pipe;
use tokio::runtime::{Builder, Runtime};

use super::pump::CHUNK;
use crate::desk::Desk;
use crate::streams::Name;

/// So much is looked through in one go.
pub(super) const BURST: usize = 2 << 20;
const PIPE: usize = 1 << 20;
const REST: Duration = Duration::from_millis(2);
/// Whoever needs longer for a burst is no burden.
const FAST: Duration = Duration::from_millis(16);
/// As far back as there is: the processors are theirs when nobody else wants them.
const LAST: i32 = 19;

static BEHIND: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let step_back = || {
        // On Linux it is the thread that is meant. One that cannot step back is no worse than the others.
        let _ = rustix::process::setpriority_process(None, LAST);
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads).thread_name("flood").on_thread_start(step_back).build().ok()
});

/// Whether a burst that took so long is part of a flood.
pub(super) fn is_one(took: Duration) -> bool {
    took < FAST
}

/// Passes on burst after burst, until nothing is there after a rest. Whether the pipe has ended.
pub(super) async fn pass_on(from: &pipe::Receiver, desk: &Desk, stream: Name) -> bool {
    // Where the system has no room for that, the pipe stays as it is.
    let _ = rustix::pipe::fcntl_setpipe_size(from, PIPE);
    let (Some(behind), Ok(mut pipe)) = (BEHIND.as_ref(), from.as_fd().try_clone_to_owned()) else {
        tokio::time::sleep(REST).await;
        return false;
    };
    loop {
        tokio::time::sleep(REST).await;
        let desk = desk.clone();
        let Ok(burst) = behind.spawn(async move { burst(pipe, &desk, stream) }).await else { return false };
        if burst.ended || burst.bytes == 0 {
            return burst.ended;
        }
        pipe = burst.pipe;
    }
}

struct Burst {
    pipe: OwnedFd,
    bytes: usize,
    ended: bool,
}

/// Passes on what is there already, unless it has to be written first. Waits for nothing.
fn burst(pipe: OwnedFd, desk: &Desk, stream: Name) -> Burst {
    let mut chunk = vec![0; CHUNK];
    let (mut bytes, mut ended) = (0, false);
    while bytes < BURST && desk.has_room(stream) {
        match rustix::io::read(&pipe, &mut chunk) {
            Ok(length) if length > 0 => {
                desk.output_now(stream, &chunk[..length]);
                bytes += length;
            }
            Err(Errno::AGAIN | Errno::INTR) => break,
            Ok(_) | Err(_) => {
                ended = true;
                break;
            }
        }
    }
    Burst { pipe, bytes, ended }
}
