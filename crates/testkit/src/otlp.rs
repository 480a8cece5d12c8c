//! A collector of OpenTelemetry traces that stores the received spans.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::trace::v1::Span;
use tonic::{Request, Response, Status};

/// Listens on loopback until the test ends.
#[derive(Clone, Default)]
pub struct TraceCollector {
    pub endpoint: String,
    spans: Arc<Mutex<Vec<Span>>>,
}

impl TraceCollector {
    /// Starts a collector on a free port.
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let collector = Self { endpoint, spans: Arc::default() };
        let incoming = tonic::transport::server::TcpIncoming::from(listener);
        let service = TraceServiceServer::new(collector.clone());
        tokio::spawn(tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming));
        collector
    }

    /// Waits for a span with this name and returns it. Panics after 10 seconds.
    pub async fn wait_for_span(&self, name: &str) -> Span {
        for _ in 0..1000 {
            if let Some(span) = self.spans.lock().unwrap().iter().find(|span| span.name == name) {
                return span.clone();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no span {name}: {:?}", self.spans.lock().unwrap());
    }
}

#[tonic::async_trait]
impl TraceService for TraceCollector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let resources = request.into_inner().resource_spans;
        let spans = resources.into_iter().flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans);
        self.spans.lock().unwrap().extend(spans);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}
