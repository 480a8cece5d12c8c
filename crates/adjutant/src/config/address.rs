//! Validates the URLs of services. Messages never repeat a URL, because it may contain a password.

use std::net::{IpAddr, Ipv6Addr};

use reqwest::Url;

/// Returns the URL without trailing slashes. `with_secrets` is true if requests carry credentials. `example` appears in
/// the message for a text that is not a URL.
///
/// Fails if it is not an HTTP or HTTPS URL with a host, or if it contains a user or password. With secrets, also fails
/// for `http://`, unless [`is_private_host`] accepts the host. The error is the predicate of a sentence about the
/// setting.
pub(crate) fn check(text: &str, example: &str, with_secrets: bool) -> Result<String, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let Some(url) = url else {
        return Err(format!("must be a URL such as {example}"));
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err("contains a user or a password: remove it and configure a key or a header".to_owned());
    }
    if with_secrets && url.scheme() == "http" && !is_private_host(&url) {
        return Err("would send the key unencrypted: use https:// (http:// only to this machine or a private network)"
            .to_owned());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// Returns the URL without its query, which may contain a secret.
pub(crate) fn without_query(address: &str) -> &str {
    address.split(['?', '#']).next().unwrap_or(address)
}

/// Returns true if the host is this machine or in a private network. False without a host. A dot at the end is ignored.
///
/// Private addresses are loopback, private, link-local, unspecified and, for IPv4, 100.64.0.0/10. An IPv4-mapped IPv6
/// address must be loopback, private or link-local. A name is private without a dot, as for containers, or with the
/// ending `.localhost`, `.local`, `.internal` or `.home.arpa`. Names are not resolved.
pub(crate) fn is_private_host(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_matches(['[', ']']).trim_end_matches('.');
    match host.parse() {
        Ok(IpAddr::V4(ip)) => {
            // 100.64.0.0/10 is not routed on the public Internet (RFC 6598).
            let shared = ip.octets()[0] == 100 && ip.octets()[1] & 0xc0 == 64;
            ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified() || shared
        }
        Ok(IpAddr::V6(ip)) => match ip.to_ipv4_mapped() {
            Some(v4) => v4.is_loopback() || v4.is_private() || v4.is_link_local(),
            None => {
                ip.is_loopback() || ip == Ipv6Addr::UNSPECIFIED || ip.is_unique_local() || ip.is_unicast_link_local()
            }
        },
        Err(_) => {
            !host.contains('.')
                || [".localhost", ".local", ".internal", ".home.arpa"].iter().any(|end| host.ends_with(end))
        }
    }
}
