//! Determines the address of the client of a request.
//!
//! It is the peer of the connection. If the peer is a trusted proxy, it is the last address in `X-Forwarded-For` that
//! is not a trusted proxy. The header is ignored in requests of any other peer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::{Extensions, HeaderMap};
use ipnet::IpNet;

const FORWARDED: &str = "x-forwarded-for";

/// The address of the peer of the connection, stored in the extensions of every request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// Returns the address of the client. A request without a connection comes from this host. `X-Forwarded-For` of a
/// trusted peer is read from its end up to the first address that is not trusted. If a malformed entry or the start of
/// the header comes first, the address that was read last is used.
pub(crate) fn client_address(extensions: &Extensions, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let PeerAddress(peer) = extensions.get().copied().unwrap_or(PeerAddress(Ipv4Addr::LOCALHOST.into()));
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(&address));
    if !is_trusted(peer) {
        return peer;
    }
    let lines = headers.get_all(FORWARDED).iter().filter_map(|line| line.to_str().ok());
    let hops: Vec<_> = lines.flat_map(|line| line.split(',')).map(str::trim).collect();
    let mut client = peer;
    // Each proxy appends the address of its peer. The last address that is not a trusted proxy is the client.
    for hop in hops.into_iter().rev() {
        let Some(address) = parse_address(hop) else { break };
        client = address;
        if !is_trusted(client) {
            break;
        }
    }
    client
}

/// Logs a warning once per process if a request has `X-Forwarded-For` and no proxy is trusted. Then all clients of a proxy
/// count as one address.
pub(crate) fn warn_about_untrusted_proxy(headers: &HeaderMap, trusted: &[IpNet]) {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if trusted.is_empty() && headers.contains_key(FORWARDED) && !WARNED.swap(true, Ordering::Relaxed) {
        let message = "a request has X-Forwarded-For, but server.trusted_proxies is empty: the header is ignored, and all \
                       clients of the proxy count as one; add the address of the proxy";
        tracing::warn!(event = "forwarded_header_ignored", "{message}");
    }
}

/// Parses an address with or without brackets and a port. Returns `None` for other text. An IPv4 address in IPv6 form
/// becomes IPv4.
fn parse_address(text: &str) -> Option<IpAddr> {
    let text = text.trim_matches('"');
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().ok().or_else(|| text.parse().ok().map(|socket: SocketAddr| socket.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}

/// Returns the network that counts as one client: the /64 prefix of an IPv6 address, or the IPv4 address itself.
pub(crate) fn client_network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !(u128::MAX >> 64)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, forwarded: &[&str]) -> String {
        let mut extensions = Extensions::new();
        extensions.insert(PeerAddress(peer.parse().unwrap()));
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append(FORWARDED, line.parse().unwrap());
        }
        let trusted = ["10.0.0.0/8".parse().unwrap(), "127.0.0.1/32".parse().unwrap()];
        client_address(&extensions, &headers, &trusted).to_string()
    }

    #[test]
    fn forwarded_addresses_count_only_from_trusted_proxies() {
        // A2A-2
        for (peer, forwarded, expected) in [
            ("203.0.113.7", &["198.51.100.1"][..], "203.0.113.7"),
            ("127.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            // The client's own entry comes before the entry that the proxy added.
            ("127.0.0.1", &["1.1.1.1, 198.51.100.1, 10.1.1.1"], "198.51.100.1"),
            ("127.0.0.1", &["1.1.1.1", "198.51.100.1:443"], "198.51.100.1"),
            ("127.0.0.1", &["[2001:db8::1]:443"], "2001:db8::1"),
            ("127.0.0.1", &["2001:db8::1"], "2001:db8::1"),
            ("127.0.0.1", &["::ffff:198.51.100.1"], "198.51.100.1"),
            ("127.0.0.1", &["198.51.100.1, unknown"], "127.0.0.1"),
            ("127.0.0.1", &["10.1.1.1"], "10.1.1.1"),
            ("127.0.0.1", &[], "127.0.0.1"),
        ] {
            assert_eq!(client(peer, forwarded), expected, "{peer} {forwarded:?}");
        }
        assert_eq!(client_address(&Extensions::new(), &HeaderMap::new(), &[]).to_string(), "127.0.0.1");
    }

    #[test]
    fn an_ipv6_prefix_counts_as_one_client() {
        assert_eq!(client_network("2001:db8:1:2:3:4:5:6".parse().unwrap()).to_string(), "2001:db8:1:2::");
        assert_eq!(client_network("198.51.100.1".parse().unwrap()).to_string(), "198.51.100.1");
    }
}
