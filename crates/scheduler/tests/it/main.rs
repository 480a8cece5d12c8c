//! Tests of the scheduler on both databases, with a manual clock.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bench;
mod clock;
mod crashes;
mod cron_peer;
mod explain;
mod firing;
mod follow_up;
mod manage;
mod nodes;
mod sync;

/// Generates a test on each database from each `async fn name(bench: Bench)`.
#[macro_export]
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $( #[tokio::test(flavor = "multi_thread")] async fn $name() { super::$name($crate::bench::Bench::sqlite().await).await } )*
        }
        mod postgres {
            $( #[tokio::test(flavor = "multi_thread")] async fn $name() { super::$name($crate::bench::Bench::postgres().await).await } )*
        }
    };
}
