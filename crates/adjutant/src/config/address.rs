//! Addresses that requests are sent to, with or without secrets. A message made here never repeats the address: it may
//! hold a password.

use std::net::{IpAddr, Ipv6Addr};

use reqwest::Url;

/// Returns the address without a slash at its end, or what is wrong with it: the end of a sentence about its setting.
/// `with_secrets` is true if a key or the like goes along.
pub(crate) fn check(text: &str, example: &str, with_secrets: bool) -> Result<String, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let Some(url) = url else {
        return Err(format!("must be a URL such as {example}"));
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err("holds a user or a password: leave it out of the URL and send a key or a header".to_owned());
    }
    if with_secrets && url.scheme() == "http" && !is_near(&url) {
        return Err("would send the key unencrypted: use https:// (http:// only to this machine or a private network)"
            .to_owned());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// The address for people: without what may be a secret in the query.
pub(crate) fn shown(address: &str) -> &str {
    address.split(['?', '#']).next().unwrap_or(address)
}

/// Whether the host is this machine or in a private network. A name without a dot is one of those: it is looked up in
/// the network's own names, as those of containers are.
pub(crate) fn is_near(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_matches(['[', ']']).trim_end_matches('.');
    match host.parse() {
        Ok(IpAddr::V4(ip)) => {
            // 100.64.0.0/10 is shared by the customers of one network and not routed beyond it.
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
