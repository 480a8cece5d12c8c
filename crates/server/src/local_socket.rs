//! The Unix socket in the data directory (SEC-1). Commands of this machine use it instead of TCP.
//!
//! Only the process that holds the lock of the data directory may bind it. So a socket file that exists then belongs to
//! a dead process and is replaced.

use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

/// The name of the socket in the data directory.
pub const SOCKET_NAME: &str = "adjutant.sock";
/// The name of the socket before it is complete.
const NEW_SOCKET_NAME: &str = "adjutant.sock.new";
/// The longest path of a socket in bytes, with the longest of both names. The system has 108 bytes, with a zero byte.
const MAX_PATH_BYTES: usize = 107;

/// A listening socket. Its file is removed when it is dropped.
#[derive(Debug)]
pub struct LocalSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl LocalSocket {
    /// Binds the socket in the data directory, accessible only by its owner. Replaces the socket of a dead process. The
    /// caller must hold the lock of the directory until the socket is dropped. Fails if the system does not allow it.
    pub fn bind(data_dir: &Path) -> io::Result<Self> {
        let place = SocketPath::new(data_dir)?;
        let path = data_dir.join(SOCKET_NAME);
        let new = data_dir.join(NEW_SOCKET_NAME);
        remove_file(&new)?;
        let listener = UnixListener::bind(place.with_name(NEW_SOCKET_NAME))?;
        std::fs::set_permissions(&new, Permissions::from_mode(0o600))?;
        // A client never sees a socket with other permissions, or one that does not listen.
        std::fs::rename(&new, &path)?;
        Ok(Self { listener, path })
    }

    /// Waits for the next connection. Fails if the system cannot accept it.
    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.listener.accept().await?.0)
    }

    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        let _ = remove_file(&self.path);
    }
}

/// The path for a connection to the socket of a data directory. It is short enough for the system, also if the path of
/// the directory is not.
#[derive(Debug)]
pub struct SocketPath {
    dir: PathBuf,
    /// Keeps a path through `/proc/self/fd` valid.
    _opened: Option<File>,
}

impl SocketPath {
    /// Returns the path for this data directory. Opens the directory if its path is too long. Fails if it cannot be
    /// opened, or if the system has no short path for it.
    pub fn new(data_dir: &Path) -> io::Result<Self> {
        if data_dir.join(NEW_SOCKET_NAME).as_os_str().as_bytes().len() <= MAX_PATH_BYTES {
            return Ok(Self { dir: data_dir.to_owned(), _opened: None });
        }
        let opened = File::open(data_dir)?;
        let dir = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
        if !dir.exists() {
            let message = format!("the path of the data directory is too long for a socket: {}", data_dir.display());
            return Err(io::Error::new(io::ErrorKind::InvalidFilename, message));
        }
        Ok(Self { dir, _opened: Some(opened) })
    }

    /// Returns the path of the socket. It is valid as long as this value exists.
    pub fn path(&self) -> PathBuf {
        self.with_name(SOCKET_NAME)
    }

    fn with_name(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// Removes a file. Succeeds if it does not exist.
fn remove_file(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_private_replaces_a_stale_one_and_removes_itself() {
        // SEC-1
        let root = tempfile::tempdir().unwrap();
        let long = root.path().join("d".repeat(120)).join("e".repeat(120));
        std::fs::create_dir_all(&long).unwrap();
        for dir in [root.path(), &long] {
            let place = SocketPath::new(dir).unwrap();
            let path = dir.join(SOCKET_NAME);
            // A dead process leaves its file.
            drop(std::os::unix::net::UnixListener::bind(place.path()).unwrap());
            assert!(path.exists());
            assert!(UnixStream::connect(place.path()).await.is_err(), "nobody listens");
            let socket = LocalSocket::bind(dir).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            let (client, accepted) = tokio::join!(UnixStream::connect(place.path()), socket.accept());
            drop((client.unwrap(), accepted.unwrap()));
            drop(socket);
            assert!(!path.exists());
        }
    }
}
