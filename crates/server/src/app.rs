//! The state that all handlers share: the store, the clock, the active configuration, the keys and the counters.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use assistant::ModelChain;
use assistant::turn::TurnEngine;
use jiff::Timestamp;
use model::quota::QuotaReached;
use model::{Clock, User, UserId};
use notify::Notifier;
use scheduler::{Scheduler, SchedulerOptions};
use secrecy::ExposeSecret;
use store::Store;
use supervisor::Supervisor;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tools::Tools;
use tools::mcp::http::McpService;
use tools::mcp_client::McpServers;
use understand::{FieldReader, UtteranceParser};

use crate::a2a::A2aState;
use crate::auth::revocations::Revocations;
use crate::auth::verifier::Verifier;
use crate::chat::AssistantRunner;
use crate::metrics::Metrics;
use crate::open_streams::{OpenStream, StreamCounter, StreamOwner};
use crate::rate_limit::KeyedRateLimiter;
use crate::schedule_notifier::ScheduleNotifier;
use crate::{ServerSettings, a2a};

/// A handle to the shared state. Cloning it is cheap; every request has a clone.
#[derive(Clone)]
pub struct App(Arc<AppShared>);

struct AppShared {
    supervisor: Supervisor,
    notifier: Notifier,
    scheduler: Scheduler,
    turns: TurnEngine,
    /// Work that continues after its request has ended.
    background_tasks: TaskTracker,
    metrics: Metrics,
    revocations: Revocations,
    mcp: McpService,
    a2a: A2aState,
    streams: StreamCounter,
    active_config: RwLock<Arc<ActiveConfig>>,
    started: Instant,
    /// True while running executions may finish before the stop.
    draining: AtomicBool,
    /// The last request to stop this process.
    stop_requests: watch::Sender<Option<StopCommand>>,
    /// Cancelled when the server is asked to stop.
    stopping: CancellationToken,
}

/// A request to stop this process.
#[derive(Clone, Copy, Debug)]
pub struct StopCommand {
    /// The time in which running executions may finish. `None` means the configured one.
    pub drain: Option<Duration>,
}

/// A handle that does not keep the shared state alive.
pub(crate) struct WeakApp(Weak<AppShared>);

impl WeakApp {
    /// Returns the handle, or `None` after the state was dropped.
    pub(crate) fn upgrade(&self) -> Option<App> {
        self.0.upgrade().map(App)
    }
}

/// The settings and the values derived from them. A reload of the configuration replaces it as a whole.
pub(crate) struct ActiveConfig {
    pub(crate) settings: ServerSettings,
    pub(crate) models: ModelChain,
    pub(crate) tools: Tools,
    /// `None`: no token is required, and every caller is the local user.
    pub(crate) verifier: Option<Verifier>,
    /// The rate limit of users. `None`: unlimited.
    pub(crate) limiter: Option<KeyedRateLimiter<UserId>>,
    /// The time at which this configuration became active.
    pub(crate) activated_at: Timestamp,
}

/// The models that answer and the MCP servers that provide external tools.
#[derive(Clone)]
pub struct Backends {
    pub models: ModelChain,
    /// `None`: only the built-in tools exist.
    pub servers: Option<McpServers>,
}

impl From<ModelChain> for Backends {
    fn from(models: ModelChain) -> Self {
        Self { models, servers: None }
    }
}

impl ActiveConfig {
    /// Returns true if a caller needs a token.
    pub(crate) fn requires_token(&self) -> bool {
        self.verifier.is_some() && !self.settings.is_token_optional
    }

    /// Returns the configuration, active from now, with full rate limiters. Fills in the default media types of the
    /// assistant's endpoint. The verifier reuses the fetched keys of `previous`, if the URL is the same.
    fn new(mut settings: ServerSettings, backends: Backends, scheduler: &Scheduler, previous: Option<&Self>) -> Self {
        let Backends { models, servers } = backends;
        a2a::fill_assistant_defaults(&mut settings.a2a.assistant);
        let known_keys = previous.and_then(|previous| previous.verifier.as_ref()?.jwks());
        let verifier = settings.auth.clone().map(|auth| Verifier::new(auth, known_keys));
        let limiter = settings.rate_limit.map(KeyedRateLimiter::new);
        let tools = Tools {
            clock: scheduler.supervisor().clock().clone(),
            limits: settings.tasks,
            names: settings.tool_names,
            confirmation: settings.confirm,
            servers,
            supervisor: Some(scheduler.supervisor().clone()),
            scheduler: Some(scheduler.clone()),
            has_worker: settings.has_worker,
            parser: UtteranceParser { date_order: settings.numeric_dates },
        };
        let activated_at = tools.clock.now();
        Self { settings, models, tools, verifier, limiter, activated_at }
    }
}

impl App {
    /// Creates the shared state with the store and the clock of the supervisor. Registers the assistant and the runner
    /// of remote agents with the supervisor, and push notifications with the notifier. The MCP service signs
    /// confirmations with the shared secret of `[auth]`, if there is one. No background loop is started.
    pub fn new(supervisor: Supervisor, settings: ServerSettings, backends: impl Into<Backends>) -> Self {
        let notifier = Notifier::new(supervisor.store().clone(), supervisor.clock().clone());
        let notices = Arc::new(ScheduleNotifier { notifier: notifier.clone(), clock: supervisor.clock().clone() });
        let options = SchedulerOptions { supervisor: supervisor.clone(), notices, crash_hook: None };
        let scheduler = Scheduler::new(options);
        let active_config = ActiveConfig::new(settings, backends.into(), &scheduler, None);
        supervisor.store().set_quotas(active_config.settings.effective_quotas());
        supervisor.store().set_reminder_time(active_config.settings.default_reminder_time);
        let secret = active_config.settings.auth.as_ref().and_then(|auth| auth.secret.as_ref());
        let mcp = McpService::new(supervisor.store().clone(), secret.map(|secret| secret.expose_secret().as_bytes()));
        let background_tasks = TaskTracker::new();
        let turns = TurnEngine::new(supervisor.store().clone(), supervisor.clock().clone(), background_tasks.clone());
        let app = Self(Arc::new(AppShared {
            supervisor,
            notifier,
            scheduler,
            turns,
            background_tasks,
            metrics: Metrics::default(),
            revocations: Revocations::default(),
            mcp,
            a2a: A2aState::default(),
            streams: StreamCounter::default(),
            active_config: RwLock::new(Arc::new(active_config)),
            started: Instant::now(),
            draining: AtomicBool::new(false),
            stop_requests: watch::Sender::default(),
            stopping: CancellationToken::new(),
        }));
        app.notifier().register_callbacks(a2a::push::PUSH_CALLBACK, a2a::push::callback_resolver(&app));
        app.supervisor().add_built_in(AssistantRunner::agent(), Arc::new(AssistantRunner::new(&app)));
        app.supervisor().set_remote_runner(Arc::new(a2a::RemoteAgentRunner::new(&app)));
        app
    }

    /// Returns a weak handle, for components that the shared state itself owns.
    pub(crate) fn downgrade(&self) -> WeakApp {
        WeakApp(Arc::downgrade(&self.0))
    }

    /// Returns the store.
    pub fn store(&self) -> &Store {
        self.0.supervisor.store()
    }

    /// Returns the clock. Tests may set it.
    pub fn clock(&self) -> &Clock {
        self.0.supervisor.clock()
    }

    /// Returns the supervisor, which runs all agents.
    pub fn supervisor(&self) -> &Supervisor {
        &self.0.supervisor
    }

    /// Returns the notifier, which fires reminders and delivers notifications.
    pub fn notifier(&self) -> &Notifier {
        &self.0.notifier
    }

    /// Returns the scheduler, which runs agents at the times of their schedules once it is started.
    pub fn scheduler(&self) -> &Scheduler {
        &self.0.scheduler
    }

    /// Returns the tracker of work that continues after its request has ended.
    pub fn background_tasks(&self) -> &TaskTracker {
        &self.0.background_tasks
    }

    /// Returns the engine that runs turns of the assistant.
    pub(crate) fn turns(&self) -> &TurnEngine {
        &self.0.turns
    }

    /// Returns the tools under the active configuration.
    pub fn tools(&self) -> Tools {
        self.active_config().tools.clone()
    }

    /// Returns the parser of utterances, with the configured order of numeric dates.
    pub(crate) fn utterance_parser(&self) -> UtteranceParser {
        UtteranceParser { date_order: self.active_config().settings.numeric_dates }
    }

    /// Returns the reader of times in words for a user.
    pub(crate) fn field_reader(&self, user: &User) -> FieldReader {
        FieldReader::new(self.clock().now().to_zoned(user.time_zone.clone()), self.utterance_parser())
    }

    /// Activates new settings. Requests in progress finish under the old ones. The rate limits of users start again.
    /// The MCP service keeps the secret that was configured at the start. Push configurations are sealed with the new
    /// key in the background.
    pub fn reload(&self, settings: ServerSettings, backends: impl Into<Backends>) {
        let next =
            Arc::new(ActiveConfig::new(settings, backends.into(), self.scheduler(), Some(&self.active_config())));
        self.store().set_quotas(next.settings.effective_quotas());
        self.store().set_reminder_time(next.settings.default_reminder_time);
        *self.0.active_config.write().unwrap_or_else(PoisonError::into_inner) = next;
        self.background_tasks().spawn(a2a::push::reseal_all(self.clone()));
    }

    /// Returns the token that is cancelled when the server is asked to stop. `/health/ready` fails from then on.
    pub fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    /// Returns the requests to stop this process. Only a server listens to them.
    pub fn stop_requests(&self) -> watch::Receiver<Option<StopCommand>> {
        self.0.stop_requests.subscribe()
    }

    /// Returns true if the process can be stopped by a request.
    pub(crate) fn can_stop(&self) -> bool {
        self.0.stop_requests.receiver_count() > 0
    }

    /// Asks the process to stop.
    pub(crate) fn request_stop(&self, drain: Option<Duration>) {
        self.0.stop_requests.send_replace(Some(StopCommand { drain }));
    }

    /// Marks the server as one that stops soon. `/health/ready` fails from then on.
    pub fn set_draining(&self) {
        self.0.draining.store(true, Ordering::Relaxed);
    }

    /// Returns true if the server stops, or stops soon.
    pub(crate) fn is_stopping(&self) -> bool {
        self.0.draining.load(Ordering::Relaxed) || self.stopping().is_cancelled()
    }

    /// Reads the revoked tokens. Must be called before the first request. Fails if the database fails.
    pub async fn refresh_revocations(&self) -> store::Result<()> {
        self.revocations().refresh(self).await
    }

    /// Returns the active configuration. A request should read it once, because a reload replaces it.
    pub(crate) fn active_config(&self) -> Arc<ActiveConfig> {
        self.0.active_config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(crate) fn mcp_endpoint(&self) -> &McpService {
        &self.0.mcp
    }

    pub(crate) fn a2a(&self) -> &A2aState {
        &self.0.a2a
    }

    /// Counts one more event stream until the result is dropped. Fails if its owner or the node has too many.
    pub(crate) fn open_stream(&self, owner: StreamOwner) -> Result<OpenStream, QuotaReached> {
        self.0.streams.open(owner, &self.active_config().settings.quotas)
    }

    pub(crate) fn revocations(&self) -> &Revocations {
        &self.0.revocations
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.0.started.elapsed()
    }
}
