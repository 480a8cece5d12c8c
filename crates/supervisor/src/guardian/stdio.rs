//! The input and output an agent gets: pipes, a pseudo terminal, or nothing.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use tokio::net::unix::pipe;

/// What an agent can say before it is read.
const PIPE: i32 = 256 << 10;

/// The agent's ends. They are closed on our side as soon as the program has them.
#[derive(Debug)]
pub struct Stdio {
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

/// Our ends of pipes.
#[derive(Debug)]
pub struct Pipes {
    pub stdin: pipe::Sender,
    pub stdout: pipe::Receiver,
    pub stderr: pipe::Receiver,
}

/// Our end of a pseudo terminal, in blocking mode.
#[derive(Debug)]
pub struct Terminal {
    pub master: OwnedFd,
}

impl Stdio {
    /// Nothing to read, and nobody who listens.
    pub fn null() -> io::Result<Self> {
        let open = || std::fs::File::options().read(true).write(true).open("/dev/null").map(OwnedFd::from);
        Ok(Self { stdin: open()?, stdout: open()?, stderr: open()? })
    }

    /// A pipe each.
    pub fn piped() -> io::Result<(Self, Pipes)> {
        let (input, to_input) = io::pipe()?;
        let (from_output, output) = io::pipe()?;
        // An agent that says much waits less often. Whoever has too many pipes gets none that are larger.
        let _ = nix::fcntl::fcntl(&output, nix::fcntl::FcntlArg::F_SETPIPE_SZ(PIPE));
        let (from_errors, errors) = io::pipe()?;
        let pipes = Pipes {
            stdin: pipe::Sender::from_owned_fd(to_input.into())?,
            stdout: pipe::Receiver::from_owned_fd(from_output.into())?,
            stderr: pipe::Receiver::from_owned_fd(from_errors.into())?,
        };
        Ok((Self { stdin: input.into(), stdout: output.into(), stderr: errors.into() }, pipes))
    }

    /// A pseudo terminal for all three; the launch must say `terminal`.
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
