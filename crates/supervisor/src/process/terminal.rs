//! Converts the node's end of a pseudo terminal to an async writer and an async reader.

use std::io;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use tokio::net::unix::pipe;

use crate::guardian::Terminal;

/// Returns a writer to the agent and a reader from it, both non-blocking. Turns off the echo, so that input does not
/// appear in the output. Reads fail after the agent has ended. Fails if the terminal cannot be configured. Must be
/// called in a tokio runtime.
pub(crate) fn split(terminal: Terminal) -> io::Result<(pipe::Sender, pipe::Receiver)> {
    // Without echo, the input does not appear in the output.
    let mut modes = tcgetattr(&terminal.master)?;
    modes.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&terminal.master, OptionalActions::Now, &modes)?;
    let flags = fcntl_getfl(&terminal.master)?;
    fcntl_setfl(&terminal.master, flags | OFlags::NONBLOCK)?;
    let writer = terminal.master.try_clone()?;
    Ok((pipe::Sender::from_owned_fd_unchecked(writer)?, pipe::Receiver::from_owned_fd_unchecked(terminal.master)?))
}
