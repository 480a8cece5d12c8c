//! Where a request comes from: the other end of its connection or, behind proxies that the configuration trusts, whom the
//! last of them has seen. What anybody else writes into `X-Forwarded-For` is not believed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::http::{Extensions, HeaderMap};
use ipnet::IpNet;

const FORWARDED: &str = "x-forwarded-for";

/// The other end of the connection, noted beside every request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Who is asking, as an address. A request that came over no connection comes from this machine.
pub(crate) fn address(extensions: &Extensions, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let Peer(peer) = extensions.get().copied().unwrap_or(Peer(Ipv4Addr::LOCALHOST.into()));
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(&address));
    if !is_trusted(peer) {
        return peer;
    }
    let lines = headers.get_all(FORWARDED).iter().filter_map(|line| line.to_str().ok());
    let named: Vec<_> = lines.flat_map(|line| line.split(',')).map(str::trim).collect();
    let mut seen = peer;
    // Each proxy adds whom it has seen at the end: the first who is no proxy of ours is the one who asks.
    for name in named.into_iter().rev() {
        let Some(address) = read(name) else { break };
        seen = address;
        if !is_trusted(seen) {
            break;
        }
    }
    seen
}

/// An address, with a port or without.
fn read(text: &str) -> Option<IpAddr> {
    let text = text.trim_matches('"');
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().ok().or_else(|| text.parse().ok().map(|socket: SocketAddr| socket.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}

/// What one household or machine has: of IPv6 addresses everyone has very many.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !(u128::MAX >> 64)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(peer: &str, forwarded: &[&str]) -> String {
        let mut extensions = Extensions::new();
        extensions.insert(Peer(peer.parse().unwrap()));
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append(FORWARDED, line.parse().unwrap());
        }
        let trusted = ["10.0.0.0/8".parse().unwrap(), "127.0.0.1/32".parse().unwrap()];
        address(&extensions, &headers, &trusted).to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        // A2A-2
        for (peer, forwarded, expected) in [
            ("203.0.113.7", &["198.51.100.1"][..], "203.0.113.7"),
            ("127.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            // What the caller wrote itself stands before what the proxy added.
            ("127.0.0.1", &["1.1.1.1, 198.51.100.1, 10.1.1.1"], "198.51.100.1"),
            ("127.0.0.1", &["1.1.1.1", "198.51.100.1:443"], "198.51.100.1"),
            ("127.0.0.1", &["[2001:db8::1]:443"], "2001:db8::1"),
            ("127.0.0.1", &["2001:db8::1"], "2001:db8::1"),
            ("127.0.0.1", &["::ffff:198.51.100.1"], "198.51.100.1"),
            ("127.0.0.1", &["198.51.100.1, unknown"], "127.0.0.1"),
            ("127.0.0.1", &["10.1.1.1"], "10.1.1.1"),
            ("127.0.0.1", &[], "127.0.0.1"),
        ] {
            assert_eq!(seen(peer, forwarded), expected, "{peer} {forwarded:?}");
        }
        assert_eq!(address(&Extensions::new(), &HeaderMap::new(), &[]).to_string(), "127.0.0.1");
    }

    #[test]
    fn a_household_counts_once() {
        assert_eq!(network("2001:db8:1:2:3:4:5:6".parse().unwrap()).to_string(), "2001:db8:1:2::");
        assert_eq!(network("198.51.100.1".parse().unwrap()).to_string(), "198.51.100.1");
    }
}
