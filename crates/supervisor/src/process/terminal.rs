//! Our end of a pseudo terminal, as two ends that can be waited for.

use std::io;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use tokio::net::unix::pipe;

use crate::guardian::Terminal;

/// What writes to the agent, and what reads from it. Reading fails when the agent is gone.
pub(crate) fn ends(terminal: Terminal) -> io::Result<(pipe::Sender, pipe::Receiver)> {
    // What it is told is not what it says.
    let mut modes = tcgetattr(&terminal.master)?;
    modes.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&terminal.master, OptionalActions::Now, &modes)?;
    let flags = fcntl_getfl(&terminal.master)?;
    fcntl_setfl(&terminal.master, flags | OFlags::NONBLOCK)?;
    let writer = terminal.master.try_clone()?;
    Ok((pipe::Sender::from_owned_fd_unchecked(writer)?, pipe::Receiver::from_owned_fd_unchecked(terminal.master)?))
}
