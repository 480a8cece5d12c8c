//! What goes over the wire: gRPC as an independent client sees it, and every version and binding as our own client does.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod client;
mod double;
mod fuzz;
mod grpc;
mod hostile;
mod services;
