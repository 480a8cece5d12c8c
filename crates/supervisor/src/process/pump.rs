//! Passes on what comes out of a pipe, until its end.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::time::Instant;

use crate::Clip;
use crate::desk::Desk;
use crate::streams::Name;

const CHUNK: usize = 64 << 10;
/// After so long without anything new, an unfinished line is shown: it may be a question.
pub(super) const QUIET: Duration = Duration::from_millis(200);

/// One that speaks without a pause gets a pipe that holds as much as may be, and is left to fill it after each burst: to
/// wake up for every few lines would cost most of two processors, and others on this machine want to be heard too.
const BURST: usize = 2 << 20;
const PIPE: usize = 1 << 20;
const REST: Duration = Duration::from_millis(1);
/// Whoever needs longer for a burst is no burden.
const FAST: Duration = Duration::from_millis(16);

pub(crate) async fn pump(from: &mut pipe::Receiver, desk: &Desk, stream: Name, mut clip: Option<&mut Clip>) {
    let mut chunk = vec![0; CHUNK];
    let mut shown = true;
    let (mut burst, mut begun) = (0, Instant::now());
    loop {
        let read = if shown {
            from.read(&mut chunk).await
        } else {
            match tokio::time::timeout(QUIET, from.read(&mut chunk)).await {
                Ok(read) => read,
                Err(_) => {
                    desk.pause(stream);
                    shown = true;
                    continue;
                }
            }
        };
        match read {
            Ok(0) | Err(_) => return,
            Ok(length) => {
                let bytes = &chunk[..length];
                if let Some(clip) = &mut clip {
                    clip.push(bytes);
                }
                desk.output(stream, bytes).await;
                shown = bytes.ends_with(b"\n");
                burst += length;
                if burst >= BURST {
                    if begun.elapsed() < FAST {
                        // Where the system has no room for that, the pipe stays as it is.
                        let _ = rustix::pipe::fcntl_setpipe_size(&*from, PIPE);
                        tokio::time::sleep(REST).await;
                    }
                    (burst, begun) = (0, Instant::now());
                }
            }
        }
    }
}
