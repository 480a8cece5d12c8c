//! Passes on what comes out of a pipe, until its end.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::time::Instant;

use super::flood;
use crate::Clip;
use crate::desk::Desk;
use crate::streams::Name;

pub(super) const CHUNK: usize = 64 << 10;
/// After so long without anything new, an unfinished line is shown: it may be a question.
pub(super) const QUIET: Duration = Duration::from_millis(200);

pub(crate) async fn pump(mut from: pipe::Receiver, desk: &Desk, stream: Name, mut clip: Option<&mut Clip>) {
    let mut chunk = vec![0; CHUNK];
    let mut shown = true;
    let mut burst = 0;
    let mut begun = Instant::now();
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
                if burst >= flood::BURST {
                    if flood::is_one(begun.elapsed()) && clip.is_none() {
                        from = match flood::pass_on(from, desk, stream).await {
                            Ok(Some(from)) => from,
                            Ok(None) => return,
                            Err(error) => {
                                tracing::error!(event = "output_not_read", execution_id = %desk.id(), error = %error);
                                return;
                            }
                        };
                        shown = false;
                    }
                    (burst, begun) = (0, Instant::now());
                }
            }
        }
    }
}
