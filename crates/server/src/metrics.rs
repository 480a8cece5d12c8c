//! Metrics for Prometheus. Labels are routes and outcomes, never users or their data. Each node counts on its own.
//! Requests are counted when their response starts, turns when they end. Turns that are executions of the agent
//! `assistant` are not counted as turns. All other values are read from their components for each request of
//! `/metrics`. With authentication, `/metrics` requires a valid token.

use std::fmt::Write as _;
use std::time::Duration;

use assistant::ModelCallRecord;
use assistant::turn::TurnOutcome;
use axum::extract::{MatchedPath, State};
use axum::http::{HeaderMap, Method, header};
use axum::response::IntoResponse;
use model::breaker::BreakerState;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use tools::ToolNames;
use tools::mcp_client::{McpServerPhase, McpServers};

use crate::{App, Problem, auth};

/// The upper bounds of the histogram, in seconds.
const DURATION_BUCKETS: [f64; 15] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// All counters and gauges of the node.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Family<RouteLabels, Histogram>,
    turns: Family<TurnLabels, Counter>,
    tool_calls: Family<ToolCallLabels, Counter>,
    model_calls: Family<ModelCallLabels, Counter>,
    model_tokens: Family<ModelTokenLabels, Counter>,
    breakers: Family<ServiceLabels, Gauge>,
    mcp_servers: Family<ServiceLabels, Gauge>,
    executions_running: Gauge,
    everything_stopped: Gauge,
    executions: Family<ExecutionLabels, Counter>,
    schedule_decisions: Family<DecisionLabels, Counter>,
    reminders: Counter,
    deliveries: Family<DeliveryLabels, Counter>,
    push_hosts: Gauge,
    waiting_writes: Gauge,
    uptime: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: Label<Method>,
    route: Label<Option<MatchedPath>>,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: Label<Option<MatchedPath>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TurnLabels {
    success: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ToolCallLabels {
    tool: &'static str,
    success: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModelCallLabels {
    model: String,
    success: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModelTokenLabels {
    model: String,
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ExecutionLabels {
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DecisionLabels {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DeliveryLabels {
    channel: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ServiceLabels {
    service: String,
}

/// A label with a value of a foreign type. It avoids a copy of the text for each request.
#[derive(Clone, Debug)]
struct Label<T>(T);

/// The text of a label. It must have a limited number of values.
trait LabelText {
    fn label_text(&self) -> &str;
}

impl LabelText for Method {
    /// Returns the name of a standard method except CONNECT and TRACE, otherwise `other`.
    fn label_text(&self) -> &str {
        // Clients can send any method. A counter for each would grow without bound.
        match *self {
            Self::GET | Self::POST | Self::PUT | Self::PATCH | Self::DELETE | Self::HEAD | Self::OPTIONS => {
                self.as_str()
            }
            _ => "other",
        }
    }
}

impl LabelText for Option<MatchedPath> {
    fn label_text(&self) -> &str {
        self.as_ref().map_or("other", MatchedPath::as_str)
    }
}

impl<T: LabelText> PartialEq for Label<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.label_text() == other.0.label_text()
    }
}

impl<T: LabelText> Eq for Label<T> {}

impl<T: LabelText> std::hash::Hash for Label<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.label_text().hash(state);
    }
}

impl<T: LabelText> EncodeLabelValue for Label<T> {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        encoder.write_str(self.0.label_text())
    }
}

impl Default for Metrics {
    /// Creates all metrics and registers them with the prefix `adjutant`. Families have no values until they are used
    /// first.
    fn default() -> Self {
        let mut registry = Registry::with_prefix("adjutant");
        let requests = Family::<RequestLabels, Counter>::default();
        registry.register("http_requests", "HTTP requests by route and status", requests.clone());
        let durations = Family::<RouteLabels, Histogram>::new_with_constructor(|| Histogram::new(DURATION_BUCKETS));
        let help = "time until the response started";
        registry.register_with_unit("http_request_duration", help, Unit::Seconds, durations.clone());
        let turns = Family::<TurnLabels, Counter>::default();
        registry.register("turns", "turns of the assistant", turns.clone());
        let tool_calls = Family::<ToolCallLabels, Counter>::default();
        registry.register("tool_calls", "calls of tools by the assistant", tool_calls.clone());
        let model_calls = Family::<ModelCallLabels, Counter>::default();
        registry.register("model_calls", "requests to models", model_calls.clone());
        let model_tokens = Family::<ModelTokenLabels, Counter>::default();
        registry.register("model_tokens", "tokens that models consumed and produced", model_tokens.clone());
        let breakers = Family::<ServiceLabels, Gauge>::default();
        let help = "state of circuit breakers: 0 closed, 1 half open, 2 open";
        registry.register("circuit_breaker_state", help, breakers.clone());
        let mcp_servers = Family::<ServiceLabels, Gauge>::default();
        registry.register("mcp_server_ready", "external MCP servers: 1 ready, 0 not ready", mcp_servers.clone());
        let executions_running = Gauge::default();
        registry.register("executions_running", "executions that are running on this node", executions_running.clone());
        let everything_stopped = Gauge::default();
        let help = "1 while an administrator has stopped everything, otherwise 0";
        registry.register("everything_stopped", help, everything_stopped.clone());
        let executions = Family::<ExecutionLabels, Counter>::default();
        registry.register("executions", "executions that have ended on this node", executions.clone());
        let schedule_decisions = Family::<DecisionLabels, Counter>::default();
        let help = "decisions of this node about occurrences of schedules";
        registry.register("schedule_decisions", help, schedule_decisions.clone());
        let reminders = Counter::default();
        registry.register(
            "reminders_fired",
            "reminders and due tasks that this node has notified about",
            reminders.clone(),
        );
        let deliveries = Family::<DeliveryLabels, Counter>::default();
        let help = "delivery attempts of this node: delivered, failed (will be retried) or dead (given up)";
        registry.register("deliveries", help, deliveries.clone());
        let push_hosts = Gauge::default();
        let help = "hosts of push notifications that this node has suspended because they do not answer";
        registry.register("push_hosts_left_alone", help, push_hosts.clone());
        let waiting_writes = Gauge::default();
        registry.register("store_waiting_writes", "writes that wait for the database", waiting_writes.clone());
        let uptime = Gauge::default();
        registry.register_with_unit("uptime", "time since the start", Unit::Seconds, uptime.clone());
        Self {
            registry,
            requests,
            durations,
            turns,
            tool_calls,
            model_calls,
            model_tokens,
            breakers,
            mcp_servers,
            executions_running,
            everything_stopped,
            executions,
            schedule_decisions,
            reminders,
            deliveries,
            push_hosts,
            waiting_writes,
            uptime,
        }
    }
}

impl Metrics {
    /// Counts a request and the time until its response started. `route` is the pattern of the path; `None` counts as
    /// `other`.
    pub(crate) fn count_request(&self, method: Method, route: Option<MatchedPath>, status: u16, duration: Duration) {
        let route = Label(route);
        self.durations.get_or_create(&RouteLabels { route: route.clone() }).observe(duration.as_secs_f64());
        self.requests.get_or_create(&RequestLabels { method: Label(method), route, status }).inc();
    }

    /// Counts a turn that has ended, with its tool calls, its model calls and their tokens. Tools that are not built in
    /// count as `other`. `names` is the configured naming scheme; a built-in tool under another name counts as `other`
    /// too. Kinds of tokens without a token are left out.
    pub(crate) fn count_turn(&self, outcome: &TurnOutcome, names: ToolNames) {
        let result = &outcome.result;
        self.turns.get_or_create(&TurnLabels { success: result.success }).inc();
        let built_in = tools::catalog::built_in(names, tools::ToolSet::Schedules);
        for call in &result.tool_calls {
            // A model can invent names. A counter for each would grow without bound.
            let known = built_in.iter().find(|spec| spec.name == call.tool_name);
            let tool = known.map_or("other", |spec| &spec.name);
            self.tool_calls.get_or_create(&ToolCallLabels { tool, success: call.error.is_none() }).inc();
        }
        for ModelCallRecord { model, success, usage } in &result.model_calls {
            self.model_calls.get_or_create(&ModelCallLabels { model: model.clone(), success: *success }).inc();
            for (kind, tokens) in [("input", usage.input), ("output", usage.output), ("reasoning", usage.reasoning)] {
                if tokens > 0 {
                    self.model_tokens.get_or_create(&ModelTokenLabels { model: model.clone(), kind }).inc_by(tokens);
                }
            }
        }
    }

    /// Sets the state of the circuit breaker of a service: 0 closed, 1 half open, 2 open.
    fn set_breaker(&self, service: &str, state: BreakerState) {
        let number = match state {
            BreakerState::Closed => 0,
            BreakerState::HalfOpen => 1,
            BreakerState::Open => 2,
        };
        self.breakers.get_or_create(&ServiceLabels { service: service.to_owned() }).set(number);
    }
}

/// Returns the metrics in the OpenMetrics text format.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "operation",
    security(("token" = []), ()),
    responses((status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text"))
)]
pub(crate) async fn metrics(State(app): State<App>, headers: HeaderMap) -> Result<impl IntoResponse, Problem> {
    // Labels name models, channels and MCP servers.
    auth::identify(&app, auth::bearer_token(&headers)).await.ok_or_else(Problem::unauthorized)?;
    let metrics = app.metrics();
    metrics.waiting_writes.set(i64::try_from(app.store().waiting_writes()).unwrap_or(i64::MAX));
    metrics.uptime.set(i64::try_from(app.uptime().as_secs()).unwrap_or(i64::MAX));
    metrics.executions_running.set(i64::try_from(app.supervisor().running_count()).unwrap_or(i64::MAX));
    metrics.everything_stopped.set(i64::from(app.supervisor().stop_state().is_some()));
    for (status, count) in app.supervisor().ended_counts() {
        let counter = metrics.executions.get_or_create(&ExecutionLabels { status: status.as_str() });
        counter.inc_by(count.saturating_sub(counter.get()));
    }
    for (kind, count) in app.scheduler().decision_counts() {
        let counter = metrics.schedule_decisions.get_or_create(&DecisionLabels { kind: kind.as_str() });
        counter.inc_by(count.saturating_sub(counter.get()));
    }
    metrics.reminders.inc_by(app.notifier().fired_count().saturating_sub(metrics.reminders.get()));
    for (channel, counts) in app.notifier().delivery_counts() {
        for (outcome, count) in [("delivered", counts.delivered), ("failed", counts.failed), ("dead", counts.dead)] {
            let counter = metrics.deliveries.get_or_create(&DeliveryLabels { channel: channel.clone(), outcome });
            counter.inc_by(count.saturating_sub(counter.get()));
        }
    }
    metrics.push_hosts.set(i64::try_from(app.notifier().suspended_hosts()).unwrap_or(i64::MAX));
    for channel in app.notifier().channel_states() {
        metrics.set_breaker(&format!("channel:{}", channel.name), channel.breaker.state);
    }
    for model in app.active_config().models.iter() {
        if let Some(health) = model.health() {
            metrics.set_breaker(model.name(), health.breaker.state);
        }
    }
    for server in app.active_config().tools.servers.iter().flat_map(McpServers::states) {
        metrics.set_breaker(&format!("mcp_server:{}", server.name), server.breaker.state);
        let ready = i64::from(server.phase == McpServerPhase::Ready);
        metrics.mcp_servers.get_or_create(&ServiceLabels { service: server.name }).set(ready);
    }
    let mut text = String::new();
    encode(&mut text, &metrics.registry).map_err(|error| Problem::internal(error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text))
}
