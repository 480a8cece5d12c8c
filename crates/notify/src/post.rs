//! A POST to an address that somebody has named: never to another one, never for long, and what came of it in words
//! without the address.

use std::error::Error as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, StatusCode, Url};

use crate::channel::Failure;
use crate::guard::{Public, Refused, is_public};

pub(crate) const LIMIT: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(5);
/// Whoever asks for more patience than this does not get it.
const LONGEST_PATIENCE: Duration = Duration::from_secs(24 * 3600);

const AGENT: &str = concat!("adjutant/", env!("CARGO_PKG_VERSION"));

/// `allow_private`: whether it may reach this machine and private networks.
pub(crate) fn client(allow_private: bool) -> reqwest::Result<Client> {
    let client = Client::builder().redirect(Policy::none()).timeout(LIMIT).connect_timeout(CONNECT).user_agent(AGENT);
    // A proxy would look the name up by itself.
    let client = if allow_private { client } else { client.no_proxy().dns_resolver(Arc::new(Public)) };
    client.build()
}

/// An address that can be posted to.
pub(crate) fn address(url: &str) -> Option<Url> {
    Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// Whether an address, as it is written, is on this machine or in a private network. A name is looked at when it is
/// looked up.
pub(crate) fn is_inside(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    ip.is_ok_and(|ip| !is_public(ip))
}

/// Sends it, and says what came of it.
pub(crate) async fn send(request: RequestBuilder, now: Timestamp) -> Result<(), Failure> {
    let answer = request.send().await.map_err(fault)?;
    match answer.status() {
        status if status.is_success() => Ok(()),
        status if status.is_redirection() => Err(Failure::for_good(format!(
            "it answers {status}, and redirects are not followed: configure where it is"
        ))),
        // "It is gone, and knows that."
        StatusCode::GONE => Err(Failure::for_good("it answers 410 Gone")),
        status => {
            let failure = Failure::for_now(format!("it answers {status}")).after(patience(answer.headers(), now));
            Err(if status.is_server_error() { failure.of_the_host() } else { failure })
        }
    }
}

/// How long it wants to be left alone: seconds, or until a date.
fn patience(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wanted = match value.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let until = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
            Duration::try_from(until.duration_since(now)).ok()?
        }
    };
    Some(wanted.min(LONGEST_PATIENCE))
}

/// Why there was no answer, without the address.
fn fault(error: reqwest::Error) -> Failure {
    let error = error.without_url();
    let mut source = error.source();
    let mut reason = None;
    while let Some(inner) = source {
        if inner.is::<Refused>() {
            return Failure::for_good(Refused.to_string());
        }
        reason = Some(inner.to_string());
        source = inner.source();
    }
    if error.is_builder() {
        return Failure::for_good("it cannot be sent there");
    }
    if error.is_timeout() {
        return Failure::for_now(format!("it has not answered within {} seconds", LIMIT.as_secs())).of_the_host();
    }
    let reason = reason.unwrap_or_else(|| error.to_string());
    Failure::for_now(format!("it cannot be reached: {reason}")).of_the_host()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_wants_to_be_left_alone_says_for_how_long() {
        let now = "2026-01-10T12:00:00Z".parse().unwrap();
        let patience = |value: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]);
            patience(&headers, now).map(|time| time.as_secs())
        };
        for (value, seconds) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Sat, 10 Jan 2026 12:01:30 GMT", Some(90)),
            ("99999999999", Some(86_400)),
            ("Fri, 31 Dec 2100 23:59:59 GMT", Some(86_400)),
            // It is over already.
            ("Sat, 10 Jan 2026 11:00:00 GMT", None),
            ("-1", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(patience(value), seconds, "{value}");
        }
        assert_eq!(super::patience(&HeaderMap::new(), now), None);
    }

    #[test]
    fn an_address_that_is_written_as_such_is_looked_at() {
        for (url, inside) in [
            ("http://127.0.0.1/", true),
            ("http://[::1]:8080/x", true),
            ("http://0x7f.1/", true),
            ("http://8.8.8.8/", false),
            ("http://[2606:4700::1111]/", false),
            ("https://hooks.example/", false),
        ] {
            assert_eq!(is_inside(&address(url).unwrap()), inside, "{url}");
        }
        for wrong in ["ftp://example.com/", "hooks.example", "", "http://", "file:///etc/passwd"] {
            assert_eq!(address(wrong), None, "{wrong}");
        }
    }
}
