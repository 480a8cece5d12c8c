//! Reads the output of an agent that writes without a pause.
//!
//! The pipe gets the maximum size. After each burst the reader waits until the agent has filled it: waking up for every
//! few lines would use most of two processors. The output is processed on low-priority threads. They pause longer the
//! longer they had to wait for a processor, so that requests to the server are not delayed.

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
use crate::output_buffer::StreamName;
use crate::recorder::RunRecorder;

/// The number of bytes that are processed without a pause.
pub(super) const BURST_BYTES: usize = 2 << 20;
/// The size of the pipe.
const PIPE_BYTES: usize = 1 << 20;
/// The shortest pause between two bursts.
const MIN_PAUSE: Duration = Duration::from_millis(2);
/// The pause is this many times longer than the thread had to wait for a processor.
const PAUSE_FACTOR: u32 = 20;
/// The longest pause. It must not look to followers as if the output had stopped.
const MAX_PAUSE: Duration = Duration::from_millis(100);
/// A flood has ended after this many empty reads.
const MAX_EMPTY_READS: u32 = 8;
/// A burst that takes longer than this is not part of a flood.
const MAX_BURST_TIME: Duration = Duration::from_millis(16);
/// The lowest priority: these threads only run if no other thread needs the processor.
const LOWEST_PRIORITY: i32 = 19;

/// The low-priority threads. `None` if they cannot be started.
static LOW_PRIORITY: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let lower_priority = || {
        // On Linux this sets the priority of the thread. A thread that keeps its priority still works.
        let _ = rustix::process::setpriority_process(None, LOWEST_PRIORITY);
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads).thread_name("flood").enable_time().on_thread_start(lower_priority).build().ok()
});

/// Returns true if a burst of this duration is part of a flood.
pub(super) fn is_flood(took: Duration) -> bool {
    took < MAX_BURST_TIME
}

/// Records the output on low-priority threads until the agent pauses. Returns the pipe, or `None` if it has ended.
/// First enlarges the pipe to 1 MiB, if the system allows it. If these threads cannot be started, returns the pipe
/// after a short pause and records nothing. Fails if the pipe cannot be registered with the runtime or the reading task
/// panics.
pub(super) async fn read_flood(
    from: pipe::Receiver,
    recorder: &RunRecorder,
    stream: StreamName,
) -> io::Result<Option<pipe::Receiver>> {
    // If the system does not allow it, the pipe keeps its size.
    let _ = rustix::pipe::fcntl_setpipe_size(&from, PIPE_BYTES);
    let Some(low_priority) = LOW_PRIORITY.as_ref() else {
        tokio::time::sleep(MIN_PAUSE).await;
        return Ok(Some(from));
    };
    // Unregister the pipe from the runtime, so that it does not wake up for every few lines.
    let pipe = from.into_nonblocking_fd()?;
    let main_runtime = Handle::current();
    let slow_reader = recorder.mark_slow_reader();
    let recorder = recorder.clone();
    let reading = AbortOnDropHandle::new(low_priority.spawn(async move {
        let _slow_reader = slow_reader;
        read_bursts(pipe, &recorder, stream, &main_runtime).await
    }));
    reading.await?.map(pipe::Receiver::from_owned_fd_unchecked).transpose()
}

/// Reads and records bursts with a pause before each, from 2 to 100 ms. Returns the pipe after [`MAX_EMPTY_READS`]
/// empty reads in a row, or `None` if it has ended. Capacity of the recorder is awaited on `main_runtime`.
async fn read_bursts(
    pipe: OwnedFd,
    recorder: &RunRecorder,
    stream: StreamName,
    main_runtime: &Handle,
) -> Option<OwnedFd> {
    let mut chunk = vec![0; CHUNK];
    let mut pause = MIN_PAUSE;
    let mut empty_reads = 0;
    while empty_reads < MAX_EMPTY_READS {
        tokio::time::sleep(pause).await;
        if !recorder.has_capacity(stream) {
            // Write to the database on the main runtime. A low-priority thread would hold its connection for too long.
            let recorder = recorder.clone();
            let _ = main_runtime.spawn(async move { recorder.wait_for_capacity(stream).await }).await;
        }
        let burst = Burst::read(&pipe, &mut chunk, recorder, stream);
        if burst.ended {
            return None;
        }
        empty_reads = if burst.bytes == 0 { empty_reads + 1 } else { 0 };
        pause = (MIN_PAUSE + burst.waited * PAUSE_FACTOR).min(MAX_PAUSE);
    }
    Some(pipe)
}

/// The result of reading the available output.
struct Burst {
    bytes: usize,
    ended: bool,
    /// The time that the thread has waited for a processor.
    waited: Duration,
}

impl Burst {
    /// Records the available output, at most about [`BURST_BYTES`] and as far as the recorder has capacity. Does not
    /// wait for the agent or the database. A read error counts as the end.
    fn read(pipe: &OwnedFd, chunk: &mut [u8], recorder: &RunRecorder, stream: StreamName) -> Self {
        let started = Instant::now();
        let before = cpu_time();
        let mut bytes = 0;
        let mut ended = false;
        while bytes < BURST_BYTES && recorder.has_capacity(stream) {
            match rustix::io::read(pipe, &mut *chunk) {
                Ok(length) if length > 0 => {
                    recorder.output_now(stream, &chunk[..length]);
                    bytes += length;
                }
                Err(Errno::AGAIN | Errno::INTR) => break,
                Ok(_) | Err(_) => {
                    ended = true;
                    break;
                }
            }
        }
        let worked = cpu_time().saturating_sub(before);
        let waited = started.elapsed().saturating_sub(worked);
        Self { bytes, ended, waited }
    }
}

/// Returns the CPU time of this thread.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}
