//! Revoked tokens are listed until they expire.

use std::time::Duration;

use store::tokens;

use crate::{Bench, on_both, write};

on_both!(revoked_tokens_are_listed_until_they_expire);

async fn revoked_tokens_are_listed_until_they_expire(bench: Bench) {
    // OPS-3
    let now = bench.now();
    let soon = bench.now() + Duration::from_secs(60);
    for id in ["a", "b", "a"] {
        write!(bench, tx => tokens::revoke(tx, id, soon, now)).unwrap();
    }
    let mut reader = bench.store.reader().await.unwrap();
    let mut revoked = tokens::revoked(&mut reader, now).await.unwrap();
    revoked.sort();
    assert_eq!(revoked, ["a", "b"]);
    assert!(tokens::revoked(&mut reader, soon).await.unwrap().is_empty());
}
