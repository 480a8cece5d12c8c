//! Counters for Prometheus. Labels are routes and outcomes, never users or their data.

use std::fmt::Write as _;
use std::time::Duration;

use assistant::Asked;
use axum::extract::{MatchedPath, State as Given};
use axum::http::{Method, header};
use axum::response::IntoResponse;
use model::breaker::State;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use tools::Names;
use tools::foreign::{Phase, Servers};

use crate::request::TurnSummary;
use crate::{App, Problem};

/// Seconds.
const BUCKETS: [f64; 15] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    durations: Family<Route, Histogram>,
    turns: Family<Outcome, Counter>,
    tool_calls: Family<ToolCall, Counter>,
    model_calls: Family<ModelCall, Counter>,
    model_tokens: Family<ModelTokens, Counter>,
    breakers: Family<Service, Gauge>,
    mcp_servers: Family<Service, Gauge>,
    executions_running: Gauge,
    executions: Family<Ending, Counter>,
    schedule_decisions: Family<Decision, Counter>,
    reminders: Counter,
    deliveries: Family<Delivery, Counter>,
    push_hosts: Gauge,
    waiting_writes: Gauge,
    uptime: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    method: Label<Method>,
    route: Label<Option<MatchedPath>>,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: Label<Option<MatchedPath>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    success: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ToolCall {
    tool: &'static str,
    success: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModelCall {
    model: String,
    success: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModelTokens {
    model: String,
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ending {
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Decision {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Delivery {
    channel: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Service {
    service: String,
}

/// A value of another crate as a label, without copying it for each request.
#[derive(Clone, Debug)]
struct Label<T>(T);

trait Name {
    fn name(&self) -> &str;
}

impl Name for Method {
    fn name(&self) -> &str {
        // Anybody can invent a method; a counter for each would grow without bound.
        match *self {
            Self::GET | Self::POST | Self::PUT | Self::PATCH | Self::DELETE | Self::HEAD | Self::OPTIONS => {
                self.as_str()
            }
            _ => "other",
        }
    }
}

impl Name for Option<MatchedPath> {
    fn name(&self) -> &str {
        self.as_ref().map_or("other", MatchedPath::as_str)
    }
}

impl<T: Name> PartialEq for Label<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.name() == other.0.name()
    }
}

impl<T: Name> Eq for Label<T> {}

impl<T: Name> std::hash::Hash for Label<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.name().hash(state);
    }
}

impl<T: Name> EncodeLabelValue for Label<T> {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        encoder.write_str(self.0.name())
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("adjutant");
        let requests = Family::<Request, Counter>::default();
        registry.register("http_requests", "HTTP requests by route and status", requests.clone());
        let durations = Family::<Route, Histogram>::new_with_constructor(|| Histogram::new(BUCKETS));
        let help = "time until the answer began";
        registry.register_with_unit("http_request_duration", help, Unit::Seconds, durations.clone());
        let turns = Family::<Outcome, Counter>::default();
        registry.register("turns", "turns of the assistant", turns.clone());
        let tool_calls = Family::<ToolCall, Counter>::default();
        registry.register("tool_calls", "tools that the assistant called", tool_calls.clone());
        let model_calls = Family::<ModelCall, Counter>::default();
        registry.register("model_calls", "replies that were asked of models", model_calls.clone());
        let model_tokens = Family::<ModelTokens, Counter>::default();
        registry.register("model_tokens", "tokens that models took and gave", model_tokens.clone());
        let breakers = Family::<Service, Gauge>::default();
        let help = "circuit breakers: 0 closed, 1 half open, 2 open";
        registry.register("circuit_breaker_state", help, breakers.clone());
        let mcp_servers = Family::<Service, Gauge>::default();
        registry.register("mcp_server_ready", "MCP servers of others: 1 ready, 0 not", mcp_servers.clone());
        let executions_running = Gauge::default();
        registry.register("executions_running", "agents at work on this node", executions_running.clone());
        let executions = Family::<Ending, Counter>::default();
        registry.register("executions", "runs of agents that have ended on this node", executions.clone());
        let schedule_decisions = Family::<Decision, Counter>::default();
        let help = "what this node decided about times of schedules";
        registry.register("schedule_decisions", help, schedule_decisions.clone());
        let reminders = Counter::default();
        registry.register("reminders_fired", "reminders and due tasks told of by this node", reminders.clone());
        let deliveries = Family::<Delivery, Counter>::default();
        let help = "notifications sent by this node: delivered, failed attempts, dead where given up";
        registry.register("deliveries", help, deliveries.clone());
        let push_hosts = Gauge::default();
        let help = "hosts of push notifications that do not answer and are left alone by this node";
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
    pub(crate) fn count_request(&self, method: Method, route: Option<MatchedPath>, status: u16, duration: Duration) {
        let route = Label(route);
        self.durations.get_or_create(&Route { route: route.clone() }).observe(duration.as_secs_f64());
        self.requests.get_or_create(&Request { method: Label(method), route, status }).inc();
    }

    /// Counts a turn that has ended, the tools it called and the models it asked.
    pub(crate) fn count_turn(&self, summary: &TurnSummary, names: Names) {
        let TurnSummary::Ended(outcome) = summary else { return };
        let result = &outcome.result;
        self.turns.get_or_create(&Outcome { success: result.success }).inc();
        let ours = tools::catalog::ours(names, tools::Offer::Schedules);
        for call in &result.tool_calls {
            // A model can invent a name; a counter for each would grow without bound.
            let known = ours.iter().find(|spec| spec.name == call.tool_name);
            let tool = known.map_or("other", |spec| &spec.name);
            self.tool_calls.get_or_create(&ToolCall { tool, success: call.error.is_none() }).inc();
        }
        for Asked { model, success, usage } in &result.asked {
            self.model_calls.get_or_create(&ModelCall { model: model.clone(), success: *success }).inc();
            for (kind, tokens) in [("input", usage.input), ("output", usage.output), ("reasoning", usage.reasoning)] {
                if tokens > 0 {
                    self.model_tokens.get_or_create(&ModelTokens { model: model.clone(), kind }).inc_by(tokens);
                }
            }
        }
    }

    fn set_breaker(&self, service: &str, state: State) {
        let number = match state {
            State::Closed => 0,
            State::HalfOpen => 1,
            State::Open => 2,
        };
        self.breakers.get_or_create(&Service { service: service.to_owned() }).set(number);
    }
}

/// Counters in the Prometheus text format.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "operation",
    security(()),
    responses((status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text"))
)]
pub(crate) async fn metrics(Given(app): Given<App>) -> Result<impl IntoResponse, Problem> {
    let metrics = app.metrics();
    metrics.waiting_writes.set(i64::try_from(app.store().waiting_writes()).unwrap_or(i64::MAX));
    metrics.uptime.set(i64::try_from(app.uptime().as_secs()).unwrap_or(i64::MAX));
    metrics.executions_running.set(i64::try_from(app.supervisor().running()).unwrap_or(i64::MAX));
    for (status, count) in app.supervisor().ended() {
        let counter = metrics.executions.get_or_create(&Ending { status: status.as_str() });
        counter.inc_by(count.saturating_sub(counter.get()));
    }
    for (kind, count) in app.scheduler().decided() {
        let counter = metrics.schedule_decisions.get_or_create(&Decision { kind: kind.as_str() });
        counter.inc_by(count.saturating_sub(counter.get()));
    }
    metrics.reminders.inc_by(app.notifier().fired().saturating_sub(metrics.reminders.get()));
    for (channel, counts) in app.notifier().deliveries() {
        for (outcome, count) in [("delivered", counts.delivered), ("failed", counts.failed), ("dead", counts.dead)] {
            let counter = metrics.deliveries.get_or_create(&Delivery { channel: channel.clone(), outcome });
            counter.inc_by(count.saturating_sub(counter.get()));
        }
    }
    metrics.push_hosts.set(i64::try_from(app.notifier().hosts_left_alone()).unwrap_or(i64::MAX));
    for channel in app.notifier().states() {
        metrics.set_breaker(&format!("channel:{}", channel.name), channel.breaker.state);
    }
    for model in app.in_force().models.iter() {
        if let Some(health) = model.health() {
            metrics.set_breaker(model.name(), health.breaker.state);
        }
    }
    for server in app.in_force().tools.servers.iter().flat_map(Servers::states) {
        metrics.set_breaker(&format!("mcp_server:{}", server.name), server.breaker.state);
        let ready = i64::from(server.phase == Phase::Ready);
        metrics.mcp_servers.get_or_create(&Service { service: server.name }).set(ready);
    }
    let mut text = String::new();
    encode(&mut text, &metrics.registry).map_err(|error| Problem::internal(error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text))
}
