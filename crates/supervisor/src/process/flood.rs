//! Passes on what an agent says that speaks without a pause.
//!
//! It gets a pipe that holds as much as may be, and is left to fill it after each burst: to wake up for every few lines would
//! cost most of two processors. What came is looked through on threads that step back for all others of this program, and
//! that come back the later the longer they had to wait for a processor: whoever talks to the assistant does not wait
//! for it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use tokio::net::unix::pipe;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::task::AbortOnDropHandle;

use super::pump::CHUNK;
use crate::desk::Desk;
use crate::streams::Name;

/// So much is looked through in one go.
pub(super) const BURST: usize = 2 << 20;
const PIPE: usize = 1 << 20;
/// Between two bursts.
const REST: Duration = Duration::from_millis(2);
/// So many times longer than it waited for a processor it rests: others want them.
const YIELD: u32 = 20;
/// The longest rest: nobody who looks at what it says shall think that it has stopped.
const LONGEST: Duration = Duration::from_millis(100);
/// Whoever says nothing for so many rests has paused.
const PATIENCE: u32 = 8;
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
    builder.worker_threads(threads).thread_name("flood").enable_time().on_thread_start(step_back).build().ok()
});

/// Whether a burst that took so long is part of a flood.
pub(super) fn is_one(took: Duration) -> bool {
    took < FAST
}

/// Passes on burst after burst, until there is a pause. Gives the pipe back, unless it has ended.
pub(super) async fn pass_on(from: pipe::Receiver, desk: &Desk, stream: Name) -> io::Result<Option<pipe::Receiver>> {
    // Where the system has no room for that, the pipe stays as it is.
    let _ = rustix::pipe::fcntl_setpipe_size(&from, PIPE);
    let Some(behind) = BEHIND.as_ref() else {
        tokio::time::sleep(REST).await;
        return Ok(Some(from));
    };
    // Nobody waits for it meanwhile: that would be to wake up for every few lines.
    let pipe = from.into_nonblocking_fd()?;
    let front = Handle::current();
    let is_behind = desk.behind();
    let desk = desk.clone();
    let passing = AbortOnDropHandle::new(behind.spawn(async move {
        let _is_behind = is_behind;
        bursts(pipe, &desk, stream, &front).await
    }));
    passing.await?.map(pipe::Receiver::from_owned_fd_unchecked).transpose()
}

async fn bursts(pipe: OwnedFd, desk: &Desk, stream: Name, front: &Handle) -> Option<OwnedFd> {
    let mut chunk = vec![0; CHUNK];
    let mut rest = REST;
    let mut silent = 0;
    while silent < PATIENCE {
        tokio::time::sleep(rest).await;
        if !desk.has_room(stream) {
            // A database that is spoken with by these threads would be slow for all.
            let desk = desk.clone();
            let _ = front.spawn(async move { desk.make_room(stream).await }).await;
        }
        let burst = Burst::take(&pipe, &mut chunk, desk, stream);
        if burst.ended {
            return None;
        }
        silent = if burst.bytes == 0 { silent + 1 } else { 0 };
        rest = (REST + burst.waited * YIELD).min(LONGEST);
    }
    Some(pipe)
}

struct Burst {
    bytes: usize,
    ended: bool,
    /// For a processor.
    waited: Duration,
}

impl Burst {
    /// Passes on what is there already, unless it has to be written first. Waits for nothing but a processor.
    fn take(pipe: &OwnedFd, chunk: &mut [u8], desk: &Desk, stream: Name) -> Self {
        let begun = Instant::now();
        let before = at_work();
        let mut bytes = 0;
        let mut ended = false;
        while bytes < BURST && desk.has_room(stream) {
            match rustix::io::read(pipe, &mut *chunk) {
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
        let worked = at_work().saturating_sub(before);
        let waited = begun.elapsed().saturating_sub(worked);
        Self { bytes, ended, waited }
    }
}

/// How long this thread has had a processor.
fn at_work() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}
