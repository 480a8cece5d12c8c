//! Restricts outgoing requests to the public internet. The resolver filters the addresses of a name, and the connection
//! uses exactly these addresses, so that a second DNS lookup cannot return a private one.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// An address, or all addresses of a name, are not public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrivateAddressError;

impl fmt::Display for PrivateAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the address is in a private network or on this machine; set allow_private = true to permit it")
    }
}

impl std::error::Error for PrivateAddressError {}

/// Resolves names to their public addresses. Fails with [`PrivateAddressError`] if a name has none.
#[derive(Debug)]
pub(crate) struct PublicResolver;

impl Resolve for PublicResolver {
    /// Resolves the name with the resolver of the system and keeps only its public addresses. Fails if the lookup
    /// fails, or with [`PrivateAddressError`] if no public address remains. The port of the results is 0.
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let addresses = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = addresses.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(PrivateAddressError.into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// Returns true if the address belongs to the public internet.
pub(crate) fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

/// Returns true unless the address is private, link-local, loopback, shared (`100.64.0.0/10`, carrier-grade NAT),
/// multicast, reserved or broadcast. Also returns false for `0.0.0.0/8`, protocol assignments (`192.0.0.0/24`), former
/// 6to4 relays (`192.88.99.0/24`), and the ranges for documentation and benchmarks.
fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let reserved = match (a, b, c) {
        // This network, loopback, multicast, reserved and broadcast.
        (0 | 127 | 224..=255, _, _) => true,
        // Carrier-grade NAT, also used for metadata services of some clouds.
        (100, 64..=127, _) => true,
        // Protocol assignments, documentation, benchmarks and former relays.
        (192, 0, 0 | 2) | (198, 18 | 19, _) | (198, 51, 100) | (203, 0, 113) | (192, 88, 99) => true,
        _ => false,
    };
    !(reserved || ip.is_private() || ip.is_link_local())
}

/// Returns true only for global unicast addresses (`2000::/3`). Of these, 6to4 (`2002::/16`), protocol assignments such
/// as Teredo (`2001::/23`) and documentation (`2001:db8::/32`, `3fff::/16`) are not public. A mapped IPv4 address
/// (`::ffff:a.b.c.d`) is checked as IPv4.
fn is_public_v6(ip: Ipv6Addr) -> bool {
    if let Some(v4) = ip.to_ipv4_mapped() {
        return is_public_v4(v4);
    }
    let [a, b, ..] = ip.segments();
    let global = a & 0xe000 == 0x2000;
    let tunnelled = a == 0x2002 || (a == 0x2001 && b < 0x200);
    let example = (a == 0x2001 && b == 0xdb8) || a == 0x3fff;
    global && !tunnelled && !example
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_accepted() {
        // TASK-4
        for public in ["1.1.1.1", "8.8.8.8", "172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1", "198.17.0.1"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for public in ["2606:4700:4700::1111", "2a00:1450:4001::200e", "2001:4860:4860::8888", "::ffff:8.8.8.8"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for inside in [
            "0.0.0.0",
            "10.1.2.3",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "100.100.100.200",
            "192.0.0.192",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
        ] {
            assert!(!is_public(inside.parse().unwrap()), "{inside}");
            let mapped = format!("::ffff:{inside}");
            assert!(!is_public(mapped.parse().unwrap()), "{mapped}");
        }
        for inside in [
            "::",
            "::1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::1",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
            "100::1",
        ] {
            assert!(!is_public(inside.parse().unwrap()), "{inside}");
        }
    }
}
