//! OpenTelemetry traces, sent by OTLP where an endpoint is configured (OPS-2).

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracerProvider, Tracer};
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::registry::LookupSpan;

use crate::config::Config;
use crate::config::form::WebOrigin;

/// Where spans go. What is not sent yet is sent by [`Traces::finish`].
pub(crate) struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Nothing where no endpoint is configured. Must run inside the runtime that will do the sending.
    pub(crate) fn start(config: &Config) -> anyhow::Result<Option<Self>> {
        let Some(WebOrigin(endpoint)) = &config.settings.telemetry.otlp_endpoint else { return Ok(None) };
        let exporter = SpanExporter::builder().with_tonic().with_endpoint(endpoint).build()?;
        let resource = Resource::builder().with_service_name(config.settings.telemetry.service_name.clone()).build();
        let provider = SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build();
        Ok(Some(Self { provider }))
    }

    pub(crate) fn layer<S>(&self) -> OpenTelemetryLayer<S, Tracer>
    where
        S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    {
        tracing_opentelemetry::layer().with_tracer(self.provider.tracer("adjutant"))
    }

    /// Waits for the exporter's own thread, so not to be called from the runtime's.
    pub(crate) fn finish(self) {
        if let Err(error) = self.provider.shutdown() {
            tracing::warn!(error = %error, "the last traces were not sent");
        }
    }
}
