//! The standard services `grpc.health.v1.Health` and `grpc.reflection.v1.ServerReflection`, the latter also as
//! `v1alpha`.
//!
//! Both need no authentication. They expose the protocol definitions, but no agents.

use axum::Router;
use axum::routing::post_service;
use futures::FutureExt;
use tonic_health::ServingStatus;
use tonic_health::server::health_reporter;
use tonic_reflection::server::Builder;

use super::packages;
use crate::Version;
use crate::proto::DESCRIPTORS;

/// The maximum size of a request, in bytes. A request contains only a name.
const MAX_MESSAGE: usize = 16 << 10;

/// Returns the routes of health checks and of reflection, in `v1` and `v1alpha`. Both packages are always reported as
/// serving. Requests are limited to 16 KiB. Reflection is left out if its descriptors cannot be read.
pub(super) fn router() -> Router {
    let (reporter, health) = health_reporter();
    for version in [Version::V10, Version::V03] {
        // Completes immediately: the reporter is not shared yet.
        let _ = reporter.set_service_status(packages::service(version), ServingStatus::Serving).now_or_never();
    }
    let health = health.max_decoding_message_size(MAX_MESSAGE);
    let mut router = Router::new().route("/grpc.health.v1.Health/{method}", post_service(health));
    let builder = || {
        let builder = Builder::configure().register_encoded_file_descriptor_set(DESCRIPTORS);
        builder.register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    // The descriptors are committed and a test uses them, so this cannot fail in a release.
    if let Ok(reflection) = builder().build_v1() {
        let reflection = reflection.max_decoding_message_size(MAX_MESSAGE);
        router = router.route("/grpc.reflection.v1.ServerReflection/{method}", post_service(reflection));
    }
    if let Ok(reflection) = builder().build_v1alpha() {
        let reflection = reflection.max_decoding_message_size(MAX_MESSAGE);
        router = router.route("/grpc.reflection.v1alpha.ServerReflection/{method}", post_service(reflection));
    }
    router
}
