//! The input and output of an agent: pipes, a pseudo terminal, or `/dev/null`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use tokio::net::unix::pipe;

/// The size of the output pipe in bytes.
const PIPE_BYTES: i32 = 256 << 10;

/// The agent's ends. They are closed in this process as soon as the program has them.
#[derive(Debug)]
pub struct Stdio {
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

/// The ends of the pipes on the side of the node.
#[derive(Debug)]
pub struct AgentPipes {
    pub stdin: pipe::Sender,
    pub stdout: pipe::Receiver,
    pub stderr: pipe::Receiver,
}

/// The end of a pseudo terminal on the side of the node, in blocking mode.
#[derive(Debug)]
pub struct Terminal {
    pub master: OwnedFd,
}

impl Stdio {
    /// Returns `/dev/null` for input and output. Fails if it cannot be opened.
    pub fn null() -> io::Result<Self> {
        let open = || std::fs::File::options().read(true).write(true).open("/dev/null").map(OwnedFd::from);
        Ok(Self { stdin: open()?, stdout: open()?, stderr: open()? })
    }

    /// Returns three pipes: the ends of the agent and those of the node. The pipe of the standard output holds 256 KiB,
    /// if the system allows it. Must be called in a tokio runtime. Fails if a pipe cannot be created or registered.
    pub fn piped() -> io::Result<(Self, AgentPipes)> {
        let (input, to_input) = io::pipe()?;
        let (from_output, output) = io::pipe()?;
        // A larger pipe lets an agent with much output wait less often. The call fails if the user has too many pipes.
        let _ = nix::fcntl::fcntl(&output, nix::fcntl::FcntlArg::F_SETPIPE_SZ(PIPE_BYTES));
        let (from_errors, errors) = io::pipe()?;
        let pipes = AgentPipes {
            stdin: pipe::Sender::from_owned_fd(to_input.into())?,
            stdout: pipe::Receiver::from_owned_fd(from_output.into())?,
            stderr: pipe::Receiver::from_owned_fd(from_errors.into())?,
        };
        Ok((Self { stdin: input.into(), stdout: output.into(), stderr: errors.into() }, pipes))
    }

    /// Returns a pseudo terminal of this size for input, output and errors, and its end for the node.
    /// [`Launch::terminal`](super::Launch::terminal) must be set. Fails if no terminal can be created.
    pub fn terminal(rows: u16, columns: u16) -> io::Result<(Self, Terminal)> {
        let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        rustix::pty::grantpt(&master)?;
        rustix::pty::unlockpt(&master)?;
        let slave =
            rustix::pty::ioctl_tiocgptpeer(&master, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&master, size)?;
        let stdio = Self { stdin: slave.try_clone()?, stdout: slave.try_clone()?, stderr: slave };
        Ok((stdio, Terminal { master }))
    }

    pub(super) fn fds(&self) -> [BorrowedFd<'_>; 3] {
        [self.stdin.as_fd(), self.stdout.as_fd(), self.stderr.as_fd()]
    }
}
