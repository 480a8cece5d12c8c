//! What every handler has at hand: the store, the clock, the settings in force, the keys and the counters.

use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Instant;

use assistant::Models;
use assistant::turn::TurnEngine;
use jiff::Timestamp;
use model::{Clock, UserId};
use notify::Notifier;
use scheduler::Scheduler;
use secrecy::ExposeSecret;
use store::Store;
use supervisor::Supervisor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tools::Tools;
use tools::foreign::Servers;
use tools::mcp::http::Door;
use understand::Reader;

use crate::a2a::Door as A2aDoor;
use crate::auth::revocations::Revocations;
use crate::auth::verifier::Verifier;
use crate::chat::Assistant;
use crate::limit::Limiter;
use crate::metrics::Metrics;
use crate::notices::Notices;
use crate::{Settings, a2a};

/// A cheap handle, cloned into every request.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    supervisor: Supervisor,
    notifier: Notifier,
    scheduler: Scheduler,
    turns: TurnEngine,
    tasks: TaskTracker,
    metrics: Metrics,
    revocations: Revocations,
    mcp: Door,
    a2a: A2aDoor,
    in_force: RwLock<Arc<InForce>>,
    started: Instant,
    stopping: CancellationToken,
}

/// A handle that keeps nothing alive.
pub(crate) struct Fading(Weak<Inner>);

impl Fading {
    pub(crate) fn upgrade(&self) -> Option<App> {
        self.0.upgrade().map(App)
    }
}

/// The settings and what is made from them; replaced as a whole when the configuration is read again.
pub(crate) struct InForce {
    pub(crate) settings: Settings,
    pub(crate) models: Models,
    pub(crate) tools: Tools,
    /// `None`: nobody needs a token, everyone is the local user.
    pub(crate) verifier: Option<Verifier>,
    pub(crate) limiter: Option<Limiter<UserId>>,
    /// Since when.
    pub(crate) since: Timestamp,
}

/// Who answers, and with whose tools besides our own.
#[derive(Clone)]
pub struct Equipment {
    pub models: Models,
    /// `None`: all tools are our own.
    pub servers: Option<Servers>,
}

impl From<Models> for Equipment {
    fn from(models: Models) -> Self {
        Self { models, servers: None }
    }
}

impl InForce {
    fn new(mut settings: Settings, equipment: Equipment, scheduler: &Scheduler, before: Option<&Self>) -> Self {
        let Equipment { models, servers } = equipment;
        a2a::complete(&mut settings.a2a.assistant);
        let known_keys = before.and_then(|before| before.verifier.as_ref()?.jwks());
        let verifier = settings.auth.clone().map(|auth| Verifier::new(auth, known_keys));
        let limiter = settings.rate_limit.map(Limiter::new);
        let tools = Tools {
            clock: scheduler.supervisor().clock().clone(),
            limits: settings.tasks,
            names: settings.tool_names,
            confirm: settings.confirm,
            servers,
            supervisor: Some(scheduler.supervisor().clone()),
            scheduler: Some(scheduler.clone()),
        };
        let since = tools.clock.now();
        Self { settings, models, tools, verifier, limiter, since }
    }
}

impl App {
    /// Works on the supervisor's store, by its clock.
    pub fn new(supervisor: Supervisor, settings: Settings, equipment: impl Into<Equipment>) -> Self {
        let notifier = Notifier::new(supervisor.store().clone(), supervisor.clock().clone());
        let notices = Arc::new(Notices { notifier: notifier.clone(), clock: supervisor.clock().clone() });
        let options = scheduler::Options { supervisor: supervisor.clone(), notices, witness: None };
        let scheduler = Scheduler::new(options);
        let in_force = InForce::new(settings, equipment.into(), &scheduler, None);
        let secret = in_force.settings.auth.as_ref().and_then(|auth| auth.secret.as_ref());
        let mcp = Door::new(supervisor.store().clone(), secret.map(|secret| secret.expose_secret().as_bytes()));
        let tasks = TaskTracker::new();
        let turns = TurnEngine::new(supervisor.store().clone(), supervisor.clock().clone(), tasks.clone());
        let app = Self(Arc::new(Inner {
            supervisor,
            notifier,
            scheduler,
            turns,
            tasks,
            metrics: Metrics::default(),
            revocations: Revocations::default(),
            mcp,
            a2a: A2aDoor::default(),
            in_force: RwLock::new(Arc::new(in_force)),
            started: Instant::now(),
            stopping: CancellationToken::new(),
        }));
        app.notifier().call_back(a2a::push::NAME, a2a::push::resolver(&app));
        app.supervisor().build_in(Assistant::agent(), Arc::new(Assistant::of(&app)));
        app.supervisor().set_elsewhere(Arc::new(a2a::Elsewhere::of(&app)));
        app
    }

    /// For those that the application itself holds on to.
    pub(crate) fn downgrade(&self) -> Fading {
        Fading(Arc::downgrade(&self.0))
    }

    pub fn store(&self) -> &Store {
        self.0.supervisor.store()
    }

    pub fn clock(&self) -> &Clock {
        self.0.supervisor.clock()
    }

    /// What runs agents, whoever asks.
    pub fn supervisor(&self) -> &Supervisor {
        &self.0.supervisor
    }

    /// What tells users without being asked.
    pub fn notifier(&self) -> &Notifier {
        &self.0.notifier
    }

    /// What runs agents at the times of their schedules, once it is told to.
    pub fn scheduler(&self) -> &Scheduler {
        &self.0.scheduler
    }

    /// Work that goes on without the request that began it.
    pub fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }

    /// Runs turns of the assistant.
    pub(crate) fn turns(&self) -> &TurnEngine {
        &self.0.turns
    }

    /// What agents can do for a user, under the settings in force.
    pub fn tools(&self) -> Tools {
        self.in_force().tools.clone()
    }

    /// How dates are read here.
    pub(crate) fn reader(&self) -> Reader {
        Reader { numeric: self.in_force().settings.numeric_dates }
    }

    /// Puts new settings into force; requests under way end under the old ones.
    pub fn reload(&self, settings: Settings, equipment: impl Into<Equipment>) {
        let next = Arc::new(InForce::new(settings, equipment.into(), self.scheduler(), Some(&self.in_force())));
        *self.0.in_force.write().unwrap_or_else(PoisonError::into_inner) = next;
    }

    /// Ends when the server is asked to stop; readiness turns false at the same moment.
    pub fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    /// Learns which tokens were revoked: to be called before the first request.
    pub async fn refresh_revocations(&self) -> store::Result<()> {
        self.revocations().refresh(self).await
    }

    pub(crate) fn in_force(&self) -> Arc<InForce> {
        self.0.in_force.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(crate) fn mcp(&self) -> &Door {
        &self.0.mcp
    }

    pub(crate) fn a2a(&self) -> &A2aDoor {
        &self.0.a2a
    }

    pub(crate) fn revocations(&self) -> &Revocations {
        &self.0.revocations
    }

    pub(crate) fn uptime(&self) -> std::time::Duration {
        self.0.started.elapsed()
    }
}
