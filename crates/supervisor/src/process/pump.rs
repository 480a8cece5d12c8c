//! Records the output of a pipe until its end.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::time::Instant;

use super::flood;
use crate::HeadTailBuffer;
use crate::output_buffer::StreamName;
use crate::recorder::RunRecorder;

/// The number of bytes in one read.
pub(super) const CHUNK: usize = 64 << 10;
/// An unfinished line is published after this time without new output, because it may be a question.
pub(super) const PARTIAL_LINE_DELAY: Duration = Duration::from_millis(200);

/// Reads a pipe to its end or to a read error, and records its output. Also copies it to `copy`, if given. Publishes an
/// unfinished line after [`PARTIAL_LINE_DELAY`] without output. A flood of output, 2 MiB in less than 16 ms, is read by
/// [`flood`], unless it is copied. If that fails, logs the error and reads no further.
pub(crate) async fn pump(
    mut from: pipe::Receiver,
    recorder: &RunRecorder,
    stream: StreamName,
    mut copy: Option<&mut HeadTailBuffer>,
) {
    let mut chunk = vec![0; CHUNK];
    let mut is_published = true;
    let mut burst_bytes = 0;
    let mut burst_started = Instant::now();
    loop {
        let read = if is_published {
            from.read(&mut chunk).await
        } else {
            match tokio::time::timeout(PARTIAL_LINE_DELAY, from.read(&mut chunk)).await {
                Ok(read) => read,
                Err(_) => {
                    recorder.release_partial_line(stream);
                    is_published = true;
                    continue;
                }
            }
        };
        match read {
            Ok(0) | Err(_) => return,
            Ok(length) => {
                let bytes = &chunk[..length];
                if let Some(copy) = &mut copy {
                    copy.push(bytes);
                }
                recorder.output(stream, bytes).await;
                is_published = bytes.ends_with(b"\n");
                burst_bytes += length;
                if burst_bytes >= flood::BURST_BYTES {
                    if flood::is_flood(burst_started.elapsed()) && copy.is_none() {
                        from = match flood::read_flood(from, recorder, stream).await {
                            Ok(Some(from)) => from,
                            Ok(None) => return,
                            Err(error) => {
                                let id = recorder.execution_id();
                                tracing::error!(event = "output_not_read", execution_id = %id, error = %error);
                                return;
                            }
                        };
                        is_published = false;
                    }
                    burst_bytes = 0;
                    burst_started = Instant::now();
                }
            }
        }
    }
}
