//! Resolves the tokens of agents. Only digests stay in memory, and only for a few seconds, so that a changed token
//! takes effect soon.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::App;

/// The time for which a digest is cached.
const CACHE_TTL: Duration = Duration::from_secs(5);
/// The maximum number of cached digests.
const MAX_CACHED: usize = 10_000;

type TokenDigest = [u8; 32];

/// A cache of token digests by reference.
#[derive(Default)]
pub(crate) struct TokenDigests(Mutex<HashMap<String, (Instant, Option<TokenDigest>)>>);

impl TokenDigests {
    /// Returns the SHA-256 digest of the secret at `env:NAME` or `file:PATH`, or `None` if it cannot be read, which is
    /// logged. Both results are cached for five seconds. A full cache is cleared.
    pub(crate) async fn digest(&self, app: &App, reference: &str) -> Option<TokenDigest> {
        let cached = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(reference).copied();
        if let Some((_, digest)) = cached.filter(|(at, _)| at.elapsed() < CACHE_TTL) {
            return digest;
        }
        let supervisor = app.supervisor().clone();
        let owned_reference = reference.to_owned();
        let read = tokio::task::spawn_blocking(move || supervisor.resolve_secret(&owned_reference));
        let digest = read.await.ok().flatten().map(|token| TokenDigest::from(Sha256::digest(token)));
        if digest.is_none() {
            tracing::error!(
                event = "a2a_token_missing",
                reference,
                "the token cannot be read; callers with this token are rejected"
            );
        }
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= MAX_CACHED {
            cache.clear();
        }
        cache.insert(reference.to_owned(), (Instant::now(), digest));
        digest
    }
}
