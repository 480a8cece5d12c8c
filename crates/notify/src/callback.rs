//! Callbacks: deliveries to URLs that users have set.
//!
//! A delivery contains only the target, not the URL or the credentials. A resolver returns both at each attempt. Each
//! host has its own lane and its own circuit breaker, so that a host that hangs or fails does not delay other hosts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use model::Clock;
use model::breaker::{Breaker, BreakerChange, BreakerConfig, BreakerState};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use store::outbox::ClaimedDelivery;

use crate::address_guard::PrivateAddressError;
use crate::channel::DeliveryFailure;
use crate::{lock, post};

/// The largest number of concurrent callbacks to all hosts.
pub(crate) const MAX_CONCURRENT_CALLBACKS: usize = 64;
/// Suspends a host after five consecutive timeouts or server errors.
const HOST_BREAKER: BreakerConfig =
    BreakerConfig { failure_threshold: 5, recovery_time: Duration::from_secs(60), half_open_calls: 1 };

/// The destination and the headers of a callback.
#[derive(Clone)]
pub struct CallbackRequest {
    pub url: String,
    pub content_type: &'static str,
    /// The credentials. They are never logged.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// True if the URL may be on this machine or in a private network.
    pub allow_private: bool,
}

/// Omits the URL and the headers, because they may be secret.
impl fmt::Debug for CallbackRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackRequest").field("content_type", &self.content_type).finish_non_exhaustive()
    }
}

/// The reason why a target cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolveError {
    /// The target was removed, so the delivery is dropped.
    Removed,
    /// This node cannot read the target, but another one may.
    OtherNode(String),
    /// A later attempt may succeed.
    Transient(String),
}

/// Resolves the target of a delivery.
pub type CallbackResolver =
    Arc<dyn Fn(String) -> BoxFuture<'static, Result<CallbackRequest, ResolveError>> + Send + Sync>;

/// The outcome of a callback.
pub(crate) enum CallbackOutcome {
    Delivered,
    /// The target was removed.
    Dropped,
}

/// All callbacks of one kind.
#[derive(Clone)]
pub(crate) struct Callbacks {
    /// The name in metrics, and the prefix of the channel names.
    pub(crate) name: &'static str,
    resolver: CallbackResolver,
    clock: Clock,
    /// The clients for public addresses and for all addresses, created on first use.
    clients: Arc<[OnceLock<Option<Client>>; 2]>,
    /// The circuit breakers by channel name.
    breakers: Arc<Mutex<BTreeMap<String, Arc<Breaker>>>>,
}

/// Returns the name of the channel for callbacks to one host.
pub fn channel_name(name: &str, origin: &str) -> String {
    format!("{name}:{origin}")
}

/// Returns the scheme, host and port of a URL. The other parts may be secret.
pub fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// Reads the URL of a callback. Fails with a message for the user if it is invalid, has no host or is not HTTP or
/// HTTPS. Without `allow_private` it also fails for `localhost`, names that end in `.localhost`, and IP addresses that
/// are not public. Other names are checked when they are resolved. Credentials in the URL are accepted.
pub fn parse_url(url: &str, allow_private: bool) -> Result<Url, &'static str> {
    let url = post::parse_url(url).ok_or("must be a URL that starts with https:// or http://")?;
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    let is_local = host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost");
    if !allow_private && (is_local || post::is_private(&url)) {
        return Err("must not be on this machine or in a private network");
    }
    Ok(url)
}

impl Callbacks {
    /// Creates callbacks with the name and the resolver.
    pub(crate) fn new(name: &'static str, resolver: CallbackResolver, clock: Clock) -> Self {
        Self { name, resolver, clock, clients: Arc::default(), breakers: Arc::default() }
    }

    /// Returns the HTTP client for public or for all addresses, created on first use. Returns `None` if it could not be
    /// created. This is logged once and not tried again.
    fn client(&self, allow_private: bool) -> Option<&Client> {
        let build = || {
            let log = |error: &reqwest::Error| tracing::error!(event = "callbacks_unusable", error = %error);
            post::client(allow_private).inspect_err(log).ok()
        };
        self.clients[usize::from(allow_private)].get_or_init(build).as_ref()
    }

    /// Returns true if the channel belongs to these callbacks.
    pub(crate) fn owns(&self, channel: &str) -> bool {
        channel.strip_prefix(self.name).is_some_and(|rest| rest.starts_with(':'))
    }

    /// Returns the circuit breaker of a host, created closed on first use. `channel` is the name from [`channel_name`].
    /// At 64, 128 … hosts, a new one first removes all breakers that are neither open nor in use.
    pub(crate) fn breaker(&self, channel: &str) -> Arc<Breaker> {
        let mut breakers = lock(&self.breakers);
        if let Some(known) = breakers.get(channel) {
            return known.clone();
        }
        // Users can set any number of hosts. Closed and unused breakers are removed each time the number has doubled.
        if breakers.len() >= 64 && breakers.len().is_power_of_two() {
            breakers.retain(|_, breaker| Arc::strong_count(breaker) > 1 || breaker.is_open());
        }
        let breaker = Breaker::new(channel, HOST_BREAKER, self.clock.clone(), log_change);
        breakers.insert(channel.to_owned(), breaker.clone());
        breaker
    }

    /// Returns the number of suspended hosts.
    pub(crate) fn suspended_hosts(&self) -> usize {
        lock(&self.breakers).values().filter(|breaker| breaker.is_open()).count()
    }

    /// Resolves the target of the delivery and sends its payload by POST, with the headers of the target and
    /// `X-Adjutant-Delivery`. Headers of the target replace the content type and the delivery id. Returns
    /// [`CallbackOutcome::Dropped`] without a request if the target was removed.
    ///
    /// Fails permanently if the URL is invalid or its host is an IP address that is not allowed. Fails transiently, or
    /// for this node only, as the resolver reports, and transiently if the HTTP client cannot be created. Otherwise
    /// fails like [`post::send`]. `now` is used for `Retry-After`.
    pub(crate) async fn deliver(
        &self,
        delivery: &ClaimedDelivery,
        now: Timestamp,
    ) -> Result<CallbackOutcome, DeliveryFailure> {
        let resolved = (self.resolver)(delivery.target.clone().unwrap_or_default()).await;
        let callback = match resolved {
            Ok(callback) => callback,
            Err(ResolveError::Removed) => return Ok(CallbackOutcome::Dropped),
            Err(ResolveError::Transient(message)) => return Err(DeliveryFailure::transient(message)),
            Err(ResolveError::OtherNode(message)) => return Err(DeliveryFailure::other_node(message)),
        };
        let Some(url) = post::parse_url(&callback.url) else {
            return Err(DeliveryFailure::permanent("the URL is invalid"));
        };
        if !callback.allow_private && post::is_private(&url) {
            return Err(DeliveryFailure::permanent(PrivateAddressError.to_string()));
        }
        let Some(client) = self.client(callback.allow_private) else {
            return Err(DeliveryFailure::transient("the HTTP client cannot be created"));
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(callback.content_type));
        if let Ok(id) = HeaderValue::from_str(&delivery.id.to_string()) {
            headers.insert(HeaderName::from_static("x-adjutant-delivery"), id);
        }
        for (name, mut value) in callback.headers {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let request = client.post(url).headers(headers).body(delivery.payload.clone());
        post::send(request, now).await.map(|()| CallbackOutcome::Delivered)
    }
}

/// Logs a state change of the breaker of a host. Level: warning with the last error if it opens, debug if it is half
/// open, info if it closes.
fn log_change(change: &BreakerChange) {
    let host = &*change.service;
    match change.new {
        BreakerState::Open => {
            let error = change.last_error.as_deref();
            tracing::warn!(event = "callback_host_left_alone", host, failed = change.failure_count, error);
        }
        BreakerState::HalfOpen => tracing::debug!(event = "callback_host_tried", host),
        BreakerState::Closed => tracing::info!(event = "callback_host_answers_again", host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_urls_are_rejected_and_origins_contain_no_secrets() {
        for inside in [
            "http://127.0.0.1:9/",
            "http://localhost/",
            "https://LOCALHOST./x",
            "http://a.localhost:80/",
            "http://[::1]/",
            "http://169.254.169.254/latest",
            "http://10.0.0.1/",
        ] {
            assert!(parse_url(inside, false).unwrap_err().contains("private"), "{inside}");
            assert!(parse_url(inside, true).is_ok(), "{inside}");
        }
        for wrong in ["", "/hook", "hooks.example/x", "ftp://hooks.example/", "javascript:alert(1)", "https://"] {
            assert!(parse_url(wrong, true).unwrap_err().contains("https://"), "{wrong}");
        }
        let url = parse_url("https://me:pass@Hooks.Example:8443/T0/B0?token=x#y", false).unwrap();
        assert_eq!(channel_name("a2a:push", &origin(&url)), "a2a:push:https://hooks.example:8443");
        assert_eq!(origin(&parse_url("http://[2606:4700::1111]:80/x", false).unwrap()), "http://[2606:4700::1111]");
    }

    #[test]
    fn breakers_of_unused_hosts_are_removed() {
        let clock = Clock::manual("2026-01-10T12:00:00Z".parse().unwrap());
        let resolver: CallbackResolver = Arc::new(|_| Box::pin(async { Err(ResolveError::Removed) }));
        let _ = rustls::crypto::ring::default_provider().install_default();
        let callbacks = Callbacks::new("x:y", resolver, clock.clone());
        let dead = callbacks.breaker("x:y:http://dead.example");
        (0..5).for_each(|_| dead.try_acquire().unwrap().failed("no"));
        drop(dead);
        for n in 0..5000 {
            callbacks.breaker(&format!("x:y:http://{n}.example"));
        }
        assert!(lock(&callbacks.breakers).len() <= 64);
        assert_eq!(callbacks.suspended_hosts(), 1, "an open breaker is kept");
        clock.advance(Duration::from_secs(60));
        assert_eq!(callbacks.suspended_hosts(), 0);
        assert!(callbacks.owns("x:y:http://1.example") && !callbacks.owns("x:y") && !callbacks.owns("x:yz:http://1"));
    }
}
