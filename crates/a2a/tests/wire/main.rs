//! Tests over real sockets: gRPC with an independent client, and every version and binding with our own client.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod client;
mod double;
mod fuzz;
mod grpc;
mod malformed_agents;
mod services;
