//! Finds the operating system user, or the agent, at the other end of a connection on this machine (SEC-1).
//!
//! A server on loopback has no password, so every process of the machine can connect to it. The kernel knows the owner
//! and the control group of the client's socket. It is asked once for each connection, by `NETLINK_SOCK_DIAG`, or by
//! `/proc/net/tcp` where that is not available. If runs have no control groups, the open files of the agents decide. For
//! the Unix socket of the data directory the kernel names the process, and its ancestors decide.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{LazyLock, Mutex, PoisonError};

use rustix::fd::OwnedFd;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use supervisor::guardian::{ProcessOrigin, SocketPeer, group_origin, socket_origin};
use tokio::net::UnixStream;
use uuid::Uuid;

/// The process at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalClient {
    /// The user id of the owner of the socket.
    User(u32),
    /// A process of an agent that adjutant has started. The id of its execution or session is known if it belongs to this
    /// node.
    Agent(Option<Uuid>),
    /// The client has no socket on this machine any more.
    Gone,
    /// This system does not reveal the owner.
    Unknown,
}

/// Marks the requests that arrive over the Unix socket of the data directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnixPeer;

/// The owner of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SocketOwner {
    uid: u32,
    /// The id of its version 2 control group.
    group: Option<u64>,
    /// 0 if no process has it open.
    inode: u64,
}

impl LocalClient {
    /// Returns the client of a connection. `client` and `server` are its two addresses.
    pub(crate) fn find(client: SocketAddr, server: SocketAddr) -> Self {
        let found = match sock_diag::owner(client, server) {
            Err(error) => {
                tracing::debug!(%error, "NETLINK_SOCK_DIAG is not available");
                proc_net::owner(client, server)
            }
            found => found,
        };
        let owner = match found {
            Ok(Some(owner)) => owner,
            Ok(None) => return Self::Gone,
            Err(_) => return Self::Unknown,
        };
        let origin = match owner.group.map_or(ProcessOrigin::Other, group_origin) {
            // Agents have the user of this process. Those with `run_as` are other users.
            ProcessOrigin::Other if owner.uid == rustix::process::geteuid().as_raw() => socket_origin(owner.inode),
            origin => origin,
        };
        Self::of_process(owner.uid, origin)
    }

    /// Returns the client of a connection to the Unix socket. A client that cannot be identified is [`Self::Gone`].
    pub(crate) fn of_unix_stream(stream: &UnixStream) -> Self {
        SocketPeer::of(stream).map_or(Self::Gone, |peer| Self::of_process(peer.uid, peer.origin))
    }

    /// Returns the client for a user and the origin of its process.
    fn of_process(uid: u32, origin: ProcessOrigin) -> Self {
        match origin {
            ProcessOrigin::Agent(run) => Self::Agent(run),
            ProcessOrigin::Other => Self::User(uid),
            ProcessOrigin::Gone => Self::Gone,
        }
    }

    /// Returns true if the client may use a server without authentication: the user that runs the server, or root, but
    /// no agent. An unknown client is accepted, because the system offers no means to tell.
    pub(crate) fn is_trusted(self) -> bool {
        match self {
            Self::User(uid) => uid == 0 || uid == rustix::process::geteuid().as_raw(),
            Self::Agent(_) | Self::Gone => false,
            Self::Unknown => true,
        }
    }
}

/// Returns both addresses as IPv4 if both are IPv4, also if they are written as IPv6.
fn canonical(client: SocketAddr, server: SocketAddr) -> (SocketAddr, SocketAddr) {
    let plain = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    (plain(client), plain(server))
}

/// Asks the kernel for one socket by its addresses. Takes some microseconds, independent of the number of sockets.
mod sock_diag {
    use super::*;

    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const NLM_F_REQUEST: u16 = 1;
    const NLMSG_ERROR: u16 = 2;
    const IPPROTO_TCP: u8 = 6;
    const HEADER_BYTES: usize = 16;
    /// `inet_diag_req_v2`: four bytes, the states and the addresses of the socket.
    const REQUEST_BYTES: usize = 56;
    /// The offset of `idiag_uid` in `inet_diag_msg`: four bytes, the addresses, and three numbers.
    const UID_OFFSET: usize = HEADER_BYTES + 4 + 48 + 12;
    const INODE_OFFSET: usize = UID_OFFSET + 4;
    /// The attributes follow `idiag_uid` and `idiag_inode`.
    const ATTRIBUTES_OFFSET: usize = UID_OFFSET + 8;
    const INET_DIAG_CGROUP_ID: u16 = 21;

    /// Returns the owner of the socket of `client`, or `None` if it does not exist. Fails if the kernel does not
    /// support the request.
    pub(super) fn owner(client: SocketAddr, server: SocketAddr) -> io::Result<Option<SocketOwner>> {
        static SOCKET: LazyLock<io::Result<Mutex<OwnedFd>>> = LazyLock::new(|| Ok(Mutex::new(open()?)));
        let socket = SOCKET.as_ref().map_err(|error| io::Error::from(error.kind()))?;
        let socket = socket.lock().unwrap_or_else(PoisonError::into_inner);
        let kernel = SocketAddrNetlink::new(0, 0);
        rustix::net::sendto(&*socket, &request(client, server), SendFlags::empty(), &kernel)?;
        let mut response = [0; 1024];
        // The kernel has already answered.
        let (length, _) = rustix::net::recv(&*socket, &mut response[..], RecvFlags::DONTWAIT)?;
        parse(&response[..length])
    }

    fn open() -> io::Result<OwnedFd> {
        let flags = SocketFlags::CLOEXEC;
        Ok(rustix::net::socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(SOCK_DIAG))?)
    }

    fn request(client: SocketAddr, server: SocketAddr) -> Vec<u8> {
        let (client, server) = canonical(client, server);
        let mut message = Vec::with_capacity(HEADER_BYTES + REQUEST_BYTES);
        message.extend(((HEADER_BYTES + REQUEST_BYTES) as u32).to_ne_bytes());
        message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        message.extend(NLM_F_REQUEST.to_ne_bytes());
        message.extend([0; 8]);
        let family = if client.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        message.extend([family.as_raw() as u8, IPPROTO_TCP, 0, 0]);
        // All states.
        message.extend(u32::MAX.to_ne_bytes());
        message.extend(client.port().to_be_bytes());
        message.extend(server.port().to_be_bytes());
        message.extend(address_bytes(client.ip()));
        message.extend(address_bytes(server.ip()));
        message.extend(0_u32.to_ne_bytes());
        // No cookie: any socket with these addresses.
        message.extend([0xff; 8]);
        message
    }

    fn address_bytes(address: IpAddr) -> [u8; 16] {
        match address {
            IpAddr::V4(v4) => {
                let mut bytes = [0; 16];
                bytes[..4].copy_from_slice(&v4.octets());
                bytes
            }
            IpAddr::V6(v6) => v6.octets(),
        }
    }

    /// Returns the owner in a response, or `None` if no socket was found. Fails for any other error of the kernel.
    fn parse(response: &[u8]) -> io::Result<Option<SocketOwner>> {
        let number = |at: usize| -> io::Result<u32> {
            let bytes = response.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u32::from_ne_bytes).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
        };
        let kind = number(4)? as u16;
        match kind {
            NLMSG_ERROR => {
                let errno = (number(HEADER_BYTES)? as i32).saturating_neg();
                let error = io::Error::from_raw_os_error(errno);
                if error.kind() == io::ErrorKind::NotFound { Ok(None) } else { Err(error) }
            }
            SOCK_DIAG_BY_FAMILY => {
                let group = response.get(ATTRIBUTES_OFFSET..).and_then(find_group);
                Ok(Some(SocketOwner { uid: number(UID_OFFSET)?, group, inode: number(INODE_OFFSET)?.into() }))
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Returns the id of the control group in a list of attributes. Each one has a length, a type and a value, and
    /// begins at a multiple of four bytes. Older kernels do not send it.
    fn find_group(mut attributes: &[u8]) -> Option<u64> {
        const ATTRIBUTE_HEADER_BYTES: usize = 4;
        loop {
            let length = usize::from(u16::from_ne_bytes(attributes.get(..2)?.try_into().ok()?));
            let kind = u16::from_ne_bytes(attributes.get(2..4)?.try_into().ok()?);
            let value = attributes.get(ATTRIBUTE_HEADER_BYTES..length)?;
            if kind == INET_DIAG_CGROUP_ID {
                return Some(u64::from_ne_bytes(value.try_into().ok()?));
            }
            attributes = attributes.get(length.next_multiple_of(4)..)?;
        }
    }
}

/// Reads the table of all sockets. Slower with many sockets.
mod proc_net {
    use super::*;

    /// Returns the owner of the socket of `client`, or `None` if it does not exist. Fails if the table cannot be read.
    pub(super) fn owner(client: SocketAddr, server: SocketAddr) -> io::Result<Option<SocketOwner>> {
        let (client, server) = canonical(client, server);
        let v4 = if client.is_ipv4() { find(&std::fs::read_to_string("/proc/net/tcp")?, client, server) } else { None };
        match v4 {
            Some(owner) => Ok(Some(owner)),
            // A socket for IPv6 can have an IPv4 address.
            None => Ok(find(&std::fs::read_to_string("/proc/net/tcp6")?, client, server)),
        }
    }

    /// Returns the owner of the socket with these addresses in the text of the table.
    pub(super) fn find(table: &str, client: SocketAddr, server: SocketAddr) -> Option<SocketOwner> {
        table.lines().skip(1).find_map(|line| {
            let mut fields = line.split_whitespace();
            let is_same = |field: Option<&str>, address| field.and_then(parse_address) == Some(address);
            let (local, remote) = (fields.nth(1), fields.next());
            if !is_same(local, client) || !is_same(remote, server) {
                return None;
            }
            let uid = fields.nth(4)?.parse().ok()?;
            Some(SocketOwner { uid, group: None, inode: fields.nth(1)?.parse().ok()? })
        })
    }

    /// Parses `0100007F:1F90`: groups of four bytes in the order of this machine, then the port.
    fn parse_address(text: &str) -> Option<SocketAddr> {
        let (address, port) = text.split_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        let mut bytes = Vec::with_capacity(16);
        for start in (0..address.len()).step_by(8) {
            bytes.extend(u32::from_str_radix(address.get(start..start + 8)?, 16).ok()?.to_ne_bytes());
        }
        let address = match bytes.len() {
            4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
            16 => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
            _ => return None,
        };
        Some(SocketAddr::new(address.to_canonical(), port))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_owner_of_a_connection_is_found() {
        // SEC-1
        let own = rustix::process::geteuid().as_raw();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let server = listener.local_addr().unwrap();
            let stream = TcpStream::connect(server).unwrap();
            let (accepted, client) = listener.accept().unwrap();
            let owner = sock_diag::owner(client, server).unwrap().unwrap();
            assert_eq!(owner.uid, own, "{address}");
            let in_table = proc_net::owner(client, server).unwrap().unwrap();
            assert_eq!((in_table.uid, in_table.inode), (own, owner.inode), "{address}");
            assert!(LocalClient::find(client, server).is_trusted());
            drop((stream, accepted));
            let unused = SocketAddr::new(client.ip(), 1);
            assert_eq!(LocalClient::find(unused, server), LocalClient::Gone);
        }
    }

    #[test]
    fn only_the_same_user_and_root_are_trusted() {
        // SEC-1
        let own = rustix::process::geteuid().as_raw();
        assert!(LocalClient::User(own).is_trusted() && LocalClient::User(0).is_trusted());
        assert!(!LocalClient::User(own + 1000).is_trusted() && !LocalClient::Gone.is_trusted());
        assert!(!LocalClient::Agent(None).is_trusted());
    }

    #[test]
    fn addresses_of_the_table_are_parsed() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
                     0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 77 1\n\
                     1: 0000000000000000FFFF00000100007F:0050 0000000000000000FFFF00000100007F:C351 01 00000000:00000000 \
                     00:00000000 00000000    33        0 1 1\n";
        let find = |client: &str, server: &str| proc_net::find(table, client.parse().unwrap(), server.parse().unwrap());
        let find = |client: &str, server: &str| find(client, server).map(|owner| (owner.uid, owner.inode));
        if cfg!(target_endian = "little") {
            assert_eq!(find("127.0.0.1:8080", "127.0.0.1:50000"), Some((1000, 77)));
            assert_eq!(find("127.0.0.1:80", "127.0.0.1:50001"), Some((33, 1)));
        }
        assert_eq!(find("127.0.0.1:50000", "127.0.0.1:8080"), None, "the other end");
    }
}
