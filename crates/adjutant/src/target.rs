//! Finds the server, the other command or the data directory that a command uses.
//!
//! The process that holds the data directory serves commands of this machine over a Unix socket there. So a command
//! does not need TCP, and agents cannot use the socket (SEC-1).

use std::io::IsTerminal;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use server::local_socket::SocketPath;
use store::lock::DataDirLock;
use tokio::net::UnixStream;

use crate::cli::GlobalOptions;
use crate::config::data_dir;
use crate::exit::{ExitError, ExitStatus};
use crate::output;
use crate::wire::LOCK_TIMEOUT;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time between two attempts to find the process that holds the data directory.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The URL of a server behind a Unix socket. Its host is not resolved.
const SOCKET_URL: &str = "http://localhost";

/// A process that answers the requests of a command.
#[derive(Debug)]
pub(crate) struct ServerTarget {
    pub(crate) client: reqwest::Client,
    /// The URL without a path.
    pub(crate) base: String,
    /// The address for messages.
    pub(crate) name: String,
    pub(crate) kind: ServerKind,
    /// Keeps the path of the socket valid.
    _socket: Option<SocketPath>,
}

/// The kind of a process that answers requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerKind {
    /// `adjutant serve`.
    Server,
    /// Another command that holds the data directory until it ends.
    Command,
}

/// The server or data directory that a command uses.
pub(crate) enum ConnectionTarget {
    Server(ServerTarget),
    /// No process uses the data directory, and none can start while the lock is held.
    DataDir(DataDirLock),
}

/// Returns the server of `--server`, else [`find_local`] for the data directory. Reads no configuration: a client does
/// not need the secrets of the server.
///
/// Fails if `--server` is not a URL, or like [`find_local`].
pub(crate) async fn find_target(global: &GlobalOptions) -> anyhow::Result<ConnectionTarget> {
    match &global.server {
        Some(url) => server_target(url).map(ConnectionTarget::Server),
        None => {
            let dir = data_dir(global);
            // A mistyped directory is created like any other.
            if global.data_dir.is_some() && !dir.exists() && std::io::stderr().is_terminal() {
                output::note(&format!("the data directory {} is new", dir.display()));
            }
            find_local(&dir).await
        }
    }
}

/// Returns the process that holds the data directory, else the locked data directory. Uses the socket of that process,
/// or its TCP address if it has no socket. Waits up to [`LOCK_TIMEOUT`] for a process with neither, such as a short
/// command.
///
/// Fails if such a process holds the directory for too long, or if the directory cannot be locked.
pub(crate) async fn find_local(dir: &Path) -> anyhow::Result<ConnectionTarget> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        let (address, error) = match DataDirLock::acquire(dir) {
            Ok(lock) => return Ok(ConnectionTarget::DataDir(lock)),
            Err(store::Error::InUse { path, address }) => (address.clone(), store::Error::InUse { path, address }),
            Err(error) => return Err(error.into()),
        };
        if let Some(target) = socket_target(dir, address.as_deref()).await? {
            return Ok(ConnectionTarget::Server(target));
        }
        match address {
            Some(url) => return server_target(&url).map(ConnectionTarget::Server),
            None if Instant::now() < deadline => tokio::time::sleep(POLL_INTERVAL).await,
            None => return Err(error.into()),
        }
    }
}

/// Returns the process that listens on the socket of a data directory. `address` is the address that the holder of the
/// directory has published; only a server has one. Returns `None` if no process listens.
pub(crate) async fn socket_target(dir: &Path, address: Option<&str>) -> anyhow::Result<Option<ServerTarget>> {
    let Ok(socket) = SocketPath::new(dir) else { return Ok(None) };
    let path = socket.path();
    let probe = tokio::time::timeout(CONNECT_TIMEOUT, UnixStream::connect(&path)).await;
    if !matches!(probe, Ok(Ok(_))) {
        return Ok(None);
    }
    let builder = reqwest::Client::builder().no_proxy().connect_timeout(CONNECT_TIMEOUT);
    let name = match address {
        Some(address) => address.to_owned(),
        None => dir.join(server::local_socket::SOCKET_NAME).display().to_string(),
    };
    Ok(Some(ServerTarget {
        client: builder.unix_socket(path).build()?,
        base: SOCKET_URL.to_owned(),
        name,
        kind: if address.is_some() { ServerKind::Server } else { ServerKind::Command },
        _socket: Some(socket),
    }))
}

/// Returns a server at this URL, without trailing slashes. Its client has a timeout for connections only. Fails with a
/// usage error if the URL does not start with `http://` or `https://`. Does not connect.
fn server_target(url: &str) -> anyhow::Result<ServerTarget> {
    let base = url.trim_end_matches('/').to_owned();
    if !base.starts_with("http://") && !base.starts_with("https://") {
        let message = format!("--server must be a URL such as http://127.0.0.1:7717, not '{url}'");
        return Err(ExitError::new(ExitStatus::Usage, message).into());
    }
    let client = http_client(&base).connect_timeout(CONNECT_TIMEOUT).build()?;
    Ok(ServerTarget { client, name: base.clone(), base, kind: ServerKind::Server, _socket: None })
}

/// Returns a client builder for this URL. If the host is `localhost` or a loopback address, requests bypass proxies,
/// which must not see the token. A text that is not a URL does not fail here.
pub(crate) fn http_client(url: &str) -> reqwest::ClientBuilder {
    let builder = reqwest::Client::builder();
    let is_local = reqwest::Url::parse(url).is_ok_and(|url| match url.host_str() {
        Some("localhost") => true,
        Some(host) => host.trim_matches(['[', ']']).parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
        None => false,
    });
    if is_local { builder.no_proxy() } else { builder }
}

impl ServerTarget {
    /// Returns the error for a request that did not reach the server.
    pub(crate) fn unreachable(&self, error: &reqwest::Error) -> ExitError {
        let why = if error.is_connect() { "the connection failed".to_owned() } else { error.to_string() };
        let message = match self.kind {
            ServerKind::Server => format!("the server at {} cannot be reached: {why}", self.name),
            ServerKind::Command => format!("the command that holds {} cannot be reached: {why}", self.name),
        };
        ExitError::new(ExitStatus::Unreachable, message)
    }

    /// Asks another command to do work for this one: `path` is a route of [`crate::holder`]. Has no effect for a server.
    /// Fails if the command cannot be reached or refuses.
    pub(crate) async fn ask_holder(&self, path: &str) -> anyhow::Result<()> {
        if self.kind == ServerKind::Server {
            return Ok(());
        }
        let answer = self.client.post(format!("{}{path}", self.base)).send().await;
        let answer = answer.map_err(|error| self.unreachable(&error))?;
        if answer.status().is_success() {
            return Ok(());
        }
        let message = format!("the command that holds {} refused to help: {}", self.name, answer.status());
        Err(ExitError::new(ExitStatus::Failed, message).into())
    }
}
