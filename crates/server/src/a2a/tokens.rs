//! What the tokens of agents are, looked up where they are kept. Only digests stay in memory, and only for a moment, so
//! that a token that was changed is soon the only one that is good.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::App;

const KEPT: Duration = Duration::from_secs(5);
/// More than anybody has agents.
const MOST: usize = 10_000;

type Hash = [u8; 32];

#[derive(Default)]
pub(crate) struct Tokens(Mutex<HashMap<String, (Instant, Option<Hash>)>>);

impl Tokens {
    /// The digest of what `env:NAME` or `file:PATH` stands for; nothing where nothing is there.
    pub(crate) async fn digest(&self, app: &App, reference: &str) -> Option<Hash> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(reference).copied();
        if let Some((_, digest)) = known.filter(|(at, _)| at.elapsed() < KEPT) {
            return digest;
        }
        let supervisor = app.supervisor().clone();
        let wanted = reference.to_owned();
        let read = tokio::task::spawn_blocking(move || supervisor.secret(&wanted));
        let digest = read.await.ok().flatten().map(|token| Hash::from(Sha256::digest(token)));
        if digest.is_none() {
            tracing::error!(event = "a2a_token_missing", reference, "nobody is let in by it");
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(reference.to_owned(), (Instant::now(), digest));
        digest
    }
}
