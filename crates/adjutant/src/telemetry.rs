//! OpenTelemetry traces, exported by OTLP if an endpoint is configured (OPS-2).

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracerProvider, Tracer};
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::registry::LookupSpan;

use crate::config::Config;
use crate::config::values::WebOrigin;

/// Exports spans in batches. [`TraceExporter::finish`] sends the last batch.
pub(crate) struct TraceExporter {
    provider: SdkTracerProvider,
}

impl TraceExporter {
    /// Starts the exporter. Returns none if no endpoint is configured. Must run inside the runtime that sends the
    /// spans. Fails if the endpoint is not valid.
    pub(crate) fn start(config: &Config) -> anyhow::Result<Option<Self>> {
        let Some(WebOrigin(endpoint)) = &config.settings.telemetry.otlp_endpoint else { return Ok(None) };
        let exporter = SpanExporter::builder().with_tonic().with_endpoint(endpoint).build()?;
        let resource = Resource::builder().with_service_name(config.settings.telemetry.service_name.clone()).build();
        let provider = SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build();
        Ok(Some(Self { provider }))
    }

    /// Returns the layer that records spans.
    pub(crate) fn layer<S>(&self) -> OpenTelemetryLayer<S, Tracer>
    where
        S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    {
        tracing_opentelemetry::layer().with_tracer(self.provider.tracer("adjutant"))
    }

    /// Sends the remaining spans. Blocks on the thread of the exporter, so it must not run on a thread of the runtime.
    pub(crate) fn finish(self) {
        if let Err(error) = self.provider.shutdown() {
            tracing::warn!(error = %error, "failed to send the last traces");
        }
    }
}
