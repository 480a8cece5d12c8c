//! Callbacks: what is posted to addresses that users have named themselves, each on a host of its own choosing.
//!
//! A delivery says for which of them it is; where that is, and what has to be shown there, is asked of whoever keeps it,
//! at each attempt: neither is written beside the delivery. Each host has its own lane and its own breaker, so that one
//! that hangs or is dead holds up nobody else's.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use model::Clock;
use model::breaker::{Breaker, Change, Rules, State};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use store::outbox::Claimed;

use crate::channel::Failure;
use crate::guard::Refused;
use crate::{lock, post};

/// Callbacks under way at once, to all hosts together.
pub(crate) const AT_ONCE: usize = 64;
/// A host is left alone after so many attempts in a row that it did not answer, or answered with a fault of its own.
const PATIENCE: Rules = Rules { failures: 5, recovery: Duration::from_secs(60), trials: 1 };

/// What is posted where, besides the payload.
#[derive(Clone)]
pub struct Outgoing {
    pub url: String,
    pub content_type: &'static str,
    /// What has to be shown there; never logged.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Whether it may be on this machine or in a private network.
    pub allow_private: bool,
}

/// Without the address and what is shown there: both may be secrets.
impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing").field("content_type", &self.content_type).finish_non_exhaustive()
    }
}

/// Why it is not known where a delivery goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// Nobody wants it any more.
    Gone,
    /// This node cannot read it; another one may.
    Elsewhere(String),
    /// Not now.
    Later(String),
}

/// Says where the delivery with this target goes.
pub type Resolver = Arc<dyn Fn(String) -> BoxFuture<'static, Result<Outgoing, Unresolved>> + Send + Sync>;

/// What became of an attempt, where there was one.
pub(crate) enum Called {
    Delivered,
    /// Nobody wants it any more.
    Dropped,
}

/// All callbacks of one kind.
#[derive(Clone)]
pub(crate) struct Callbacks {
    /// What they are called in metrics; channels of this kind are called so, with a colon and their host behind it.
    pub(crate) name: &'static str,
    resolver: Resolver,
    clock: Clock,
    /// For the public internet, and for anywhere; made when they are first needed.
    clients: Arc<[OnceLock<Option<Client>>; 2]>,
    breakers: Arc<Mutex<BTreeMap<String, Arc<Breaker>>>>,
}

/// The channel of callbacks to one host.
pub fn channel(name: &str, origin: &str) -> String {
    format!("{name}:{origin}")
}

/// Scheme, host and port, without what may be secret.
pub fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// An address that callbacks can be sent to; says what is wrong with it otherwise.
pub fn address(url: &str, allow_private: bool) -> Result<Url, &'static str> {
    let url = post::address(url).ok_or("must be a URL that begins with https:// or http://")?;
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    let is_local = host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost");
    if !allow_private && (is_local || post::is_inside(&url)) {
        return Err("must not be on this machine or in a private network");
    }
    Ok(url)
}

impl Callbacks {
    pub(crate) fn new(name: &'static str, resolver: Resolver, clock: Clock) -> Self {
        Self { name, resolver, clock, clients: Arc::default(), breakers: Arc::default() }
    }

    fn client(&self, allow_private: bool) -> Option<&Client> {
        let build = || {
            let says = |error: &reqwest::Error| tracing::error!(event = "callbacks_unusable", error = %error);
            post::client(allow_private).inspect_err(says).ok()
        };
        self.clients[usize::from(allow_private)].get_or_init(build).as_ref()
    }

    /// Whether a channel is one of these.
    pub(crate) fn has(&self, channel: &str) -> bool {
        channel.strip_prefix(self.name).is_some_and(|rest| rest.starts_with(':'))
    }

    pub(crate) fn breaker(&self, channel: &str) -> Arc<Breaker> {
        let mut breakers = lock(&self.breakers);
        if let Some(known) = breakers.get(channel) {
            return known.clone();
        }
        // Anybody can name hosts: those of which there is nothing to remember go when their number has doubled.
        if breakers.len() >= 64 && breakers.len().is_power_of_two() {
            breakers.retain(|_, breaker| Arc::strong_count(breaker) > 1 || breaker.is_open());
        }
        let breaker = Breaker::new(channel, PATIENCE, self.clock.clone(), record);
        breakers.insert(channel.to_owned(), breaker.clone());
        breaker
    }

    /// How many hosts are left alone for now.
    pub(crate) fn left_alone(&self) -> usize {
        lock(&self.breakers).values().filter(|breaker| breaker.is_open()).count()
    }

    pub(crate) async fn deliver(&self, delivery: &Claimed, now: Timestamp) -> Result<Called, Failure> {
        let resolved = (self.resolver)(delivery.target.clone().unwrap_or_default()).await;
        let outgoing = match resolved {
            Ok(outgoing) => outgoing,
            Err(Unresolved::Gone) => return Ok(Called::Dropped),
            Err(Unresolved::Later(says)) => return Err(Failure::for_now(says)),
            Err(Unresolved::Elsewhere(says)) => return Err(Failure::elsewhere(says)),
        };
        let Some(url) = post::address(&outgoing.url) else {
            return Err(Failure::for_good("its address cannot be used"));
        };
        if !outgoing.allow_private && post::is_inside(&url) {
            return Err(Failure::for_good(Refused.to_string()));
        }
        let Some(client) = self.client(outgoing.allow_private) else {
            return Err(Failure::for_now("nothing can be sent from here"));
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(outgoing.content_type));
        if let Ok(id) = HeaderValue::from_str(&delivery.id.to_string()) {
            headers.insert(HeaderName::from_static("x-adjutant-delivery"), id);
        }
        for (name, mut value) in outgoing.headers {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let request = client.post(url).headers(headers).body(delivery.payload.clone());
        post::send(request, now).await.map(|()| Called::Delivered)
    }
}

/// A host is left alone, or used again.
fn record(change: &Change) {
    let host = &*change.service;
    match change.new {
        State::Open => {
            let error = change.last_error.as_deref();
            tracing::warn!(event = "callback_host_left_alone", host, failed = change.failure_count, error);
        }
        State::HalfOpen => tracing::debug!(event = "callback_host_tried", host),
        State::Closed => tracing::info!(event = "callback_host_answers_again", host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_somewhere_else_and_its_origin_has_no_secrets() {
        for inside in [
            "http://127.0.0.1:9/",
            "http://localhost/",
            "https://LOCALHOST./x",
            "http://a.localhost:80/",
            "http://[::1]/",
            "http://169.254.169.254/latest",
            "http://10.0.0.1/",
        ] {
            assert!(address(inside, false).unwrap_err().contains("private"), "{inside}");
            assert!(address(inside, true).is_ok(), "{inside}");
        }
        for wrong in ["", "/hook", "hooks.example/x", "ftp://hooks.example/", "javascript:alert(1)", "https://"] {
            assert!(address(wrong, true).unwrap_err().contains("https://"), "{wrong}");
        }
        let url = address("https://me:pass@Hooks.Example:8443/T0/B0?token=x#y", false).unwrap();
        assert_eq!(channel("a2a:push", &origin(&url)), "a2a:push:https://hooks.example:8443");
        assert_eq!(origin(&address("http://[2606:4700::1111]:80/x", false).unwrap()), "http://[2606:4700::1111]");
    }

    #[test]
    fn hosts_that_nobody_names_any_more_are_forgotten() {
        let clock = Clock::manual("2026-01-10T12:00:00Z".parse().unwrap());
        let resolver: Resolver = Arc::new(|_| Box::pin(async { Err(Unresolved::Gone) }));
        let _ = rustls::crypto::ring::default_provider().install_default();
        let callbacks = Callbacks::new("x:y", resolver, clock.clone());
        let dead = callbacks.breaker("x:y:http://dead.example");
        (0..5).for_each(|_| dead.admit().unwrap().failed("no"));
        drop(dead);
        for n in 0..5000 {
            callbacks.breaker(&format!("x:y:http://{n}.example"));
        }
        assert!(lock(&callbacks.breakers).len() <= 64);
        assert_eq!(callbacks.left_alone(), 1, "what is dead is remembered");
        clock.advance(Duration::from_secs(60));
        assert_eq!(callbacks.left_alone(), 0);
        assert!(callbacks.has("x:y:http://1.example") && !callbacks.has("x:y") && !callbacks.has("x:yz:http://1"));
    }
}
