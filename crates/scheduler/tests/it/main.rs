//! Schedules from their time to the end of what they run, on both databases and with a clock that is moved by hand.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bench;
mod clock;
mod explain;
mod faults;
mod firing;
mod following;
mod managing;
mod nodes;
mod syncing;
mod year;

/// Turns `async fn name(bench: Bench)` into a test on each database.
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
