//! Sends POST requests to configured URLs. Redirects are not followed, the time is limited, and error messages do not
//! contain the URL.

use std::error::Error as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, StatusCode, Url};

use crate::address_guard::{PrivateAddressError, PublicResolver, is_public};
use crate::channel::DeliveryFailure;

/// The timeout of a request.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest accepted `Retry-After`.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3600);

const USER_AGENT: &str = concat!("adjutant/", env!("CARGO_PKG_VERSION"));

/// Returns an HTTP client that follows no redirects. A request may take ten seconds, and its connection five. With
/// `allow_private` it may reach this machine and private networks. Otherwise it resolves names to public addresses only
/// and uses no proxy. IP addresses in URLs are not checked here, see [`is_private`]. Fails if the client cannot be
/// built.
pub(crate) fn client(allow_private: bool) -> reqwest::Result<Client> {
    let client = Client::builder()
        .redirect(Policy::none())
        .timeout(REQUEST_TIMEOUT)
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(USER_AGENT);
    // A proxy would resolve the name itself and bypass the check.
    let client = if allow_private { client } else { client.no_proxy().dns_resolver(Arc::new(PublicResolver)) };
    client.build()
}

/// Reads an HTTP or HTTPS URL with a host. Returns `None` if it is invalid or has another scheme.
pub(crate) fn parse_url(url: &str) -> Option<Url> {
    Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// Returns true if the host of the URL is an IP address that is not public. Names are checked when they are resolved.
pub(crate) fn is_private(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    ip.is_ok_and(|ip| !is_public(ip))
}

/// Sends a request and discards the body of the response. Returns `Ok` for every 2xx status. Failures by status:
///
/// - 3xx and 410: permanent.
/// - 5xx: transient, with the delay of `Retry-After` if present. Counts as a failure of the host.
/// - Any other status, such as 4xx: transient, with the delay of `Retry-After`. Not a failure of the host.
///
/// Without a response, fails like [`request_failure`]. `now` is the reference for dates in `Retry-After`.
pub(crate) async fn send(request: RequestBuilder, now: Timestamp) -> Result<(), DeliveryFailure> {
    let response = request.send().await.map_err(request_failure)?;
    match response.status() {
        status if status.is_success() => Ok(()),
        status if status.is_redirection() => Err(DeliveryFailure::permanent(format!(
            "the server responded with {status}; redirects are not followed, so configure the final URL"
        ))),
        // The receiver has removed the URL on purpose.
        StatusCode::GONE => Err(DeliveryFailure::permanent("the server responded with 410 Gone")),
        status => {
            let failure = DeliveryFailure::transient(format!("the server responded with {status}"))
                .retry_after(retry_after(response.headers(), now));
            Err(if status.is_server_error() { failure.host_failure() } else { failure })
        }
    }
}

/// Returns the delay of the `Retry-After` header, but at most [`MAX_RETRY_AFTER`]. The header contains seconds, or a
/// date that is compared with `now`. Returns `None` if the header is missing or invalid, or if the date has passed.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let requested = match value.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let until = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
            Duration::try_from(until.duration_since(now)).ok()?
        }
    };
    Some(requested.min(MAX_RETRY_AFTER))
}

/// Returns the failure of a request without a response. A private address or an invalid request is permanent and does
/// not count for the host. A timeout or any other error is transient and a failure of the host. The message contains
/// the innermost cause, but never the URL.
fn request_failure(error: reqwest::Error) -> DeliveryFailure {
    let error = error.without_url();
    let mut source = error.source();
    let mut reason = None;
    while let Some(inner) = source {
        if inner.is::<PrivateAddressError>() {
            return DeliveryFailure::permanent(PrivateAddressError.to_string());
        }
        reason = Some(inner.to_string());
        source = inner.source();
    }
    if error.is_builder() {
        return DeliveryFailure::permanent("the request is invalid");
    }
    if error.is_timeout() {
        return DeliveryFailure::transient(format!(
            "the server did not respond within {} seconds",
            REQUEST_TIMEOUT.as_secs()
        ))
        .host_failure();
    }
    let reason = reason.unwrap_or_else(|| error.to_string());
    DeliveryFailure::transient(format!("the server cannot be reached: {reason}")).host_failure()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_accepts_seconds_and_dates() {
        let now = "2026-01-10T12:00:00Z".parse().unwrap();
        let parsed = |value: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]);
            retry_after(&headers, now).map(|time| time.as_secs())
        };
        for (value, seconds) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Sat, 10 Jan 2026 12:01:30 GMT", Some(90)),
            ("99999999999", Some(86_400)),
            ("Fri, 31 Dec 2100 23:59:59 GMT", Some(86_400)),
            // The date is in the past.
            ("Sat, 10 Jan 2026 11:00:00 GMT", None),
            ("-1", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(parsed(value), seconds, "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }

    #[test]
    fn private_ip_addresses_in_urls_are_detected() {
        for (url, inside) in [
            ("http://127.0.0.1/", true),
            ("http://[::1]:8080/x", true),
            ("http://0x7f.1/", true),
            ("http://8.8.8.8/", false),
            ("http://[2606:4700::1111]/", false),
            ("https://hooks.example/", false),
        ] {
            assert_eq!(is_private(&parse_url(url).unwrap()), inside, "{url}");
        }
        for wrong in ["ftp://example.com/", "hooks.example", "", "http://", "file:///etc/passwd"] {
            assert_eq!(parse_url(wrong), None, "{wrong}");
        }
    }
}
