//! Which addresses a webhook may reach: those of the public internet. A name is looked up here and the connection goes to
//! the very address that was looked at, so that a name cannot point elsewhere a moment later.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// An address, or all addresses of a name, are none of the public internet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("its address is in a private network or on this machine; allow_private = true permits that")
    }
}

impl std::error::Error for Refused {}

/// Looks names up and keeps only public addresses.
#[derive(Debug)]
pub(crate) struct Public;

impl Resolve for Public {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(Refused.into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

pub(crate) fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let reserved = match (a, b, c) {
        // This network, the machine itself, and all from multicast to broadcast.
        (0 | 127 | 224..=255, _, _) => true,
        // Between a provider and its customers; also where some clouds keep their metadata.
        (100, 64..=127, _) => true,
        // Protocols, examples, measurements, relays that are no more.
        (192, 0, 0 | 2) | (198, 18 | 19, _) | (198, 51, 100) | (203, 0, 113) | (192, 88, 99) => true,
        _ => false,
    };
    !(reserved || ip.is_private() || ip.is_link_local())
}

/// Only what is given out as global, and of that neither examples nor what carries another address inside.
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
    fn only_the_public_internet_is_reached() {
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
