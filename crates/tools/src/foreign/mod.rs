//! MCP servers of others, whose tools the assistant uses beside our own.
//!
//! Each configured server is kept connected by a task of its own, so that none can delay another or the program. A call
//! is made at most once: what may have reached the server is never sent again. Nothing that a server sends grows beyond
//! its limit, and nothing it was entrusted with comes back out.

mod adopt;
mod call;
mod connection;
mod events;
mod guard;
mod http;
mod pipes;
mod process;
mod reading;
mod result;
mod server;
pub mod settings;
mod tool;
mod wire;

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::breaker::{Breakers, Rules};
use redact::{Redactor, What};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

pub(crate) use adopt::Foreign;
pub(crate) use call::Caller;
pub use result::{CallError, Called};
pub use server::{Phase, ServerState};
pub use settings::{Era, Settings, Transport};
pub use tool::{Annotations, Found, LeftOut, matches};

use crate::{Arguments, Spec};
use server::Server;

/// How much of what others say goes into the log or an error.
const LONGEST_QUOTE: usize = 500;

/// All configured servers, kept connected. Cheap to clone; the last one that is dropped takes them down.
#[derive(Clone)]
pub struct Servers(Arc<Inner>);

struct Inner {
    breakers: Breakers,
    servers: Mutex<Vec<Arc<Server>>>,
    tasks: TaskTracker,
    changes: watch::Sender<u64>,
    /// What was offered at the last count of changes.
    offered: Mutex<(u64, Arc<[Found]>)>,
    /// The same among our own tools.
    adopted: Mutex<Option<Adopted>>,
}

/// What is offered and what became of it.
struct Adopted {
    ours: &'static [Spec],
    from: Arc<[Found]>,
    specs: Arc<[Spec]>,
}

impl std::fmt::Debug for Servers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.servers().iter().map(|server| server.name.clone()).collect::<Vec<_>>();
        f.debug_tuple("Servers").field(&names).finish()
    }
}

impl Servers {
    /// Begins to start them all and returns at once. To be called within a runtime.
    pub fn start(settings: Vec<Settings>, breakers: &Breakers) -> Self {
        let servers = Self(Arc::new(Inner {
            breakers: breakers.clone(),
            servers: Mutex::default(),
            tasks: TaskTracker::new(),
            changes: watch::Sender::new(0),
            offered: Mutex::default(),
            adopted: Mutex::default(),
        }));
        servers.replace(settings);
        servers
    }

    /// Goes on with these: a server whose settings are the same stays connected, the others are stopped or started.
    pub fn replace(&self, settings: Vec<Settings>) {
        let mut servers = self.servers();
        let before = std::mem::take(&mut *servers);
        for settings in settings {
            let predecessor = before.iter().find(|server| *server.name == *settings.name).cloned();
            let server = match predecessor {
                Some(server) if server.settings.is_same(&settings) && !server.stop.is_cancelled() => server,
                predecessor => {
                    if let Some(predecessor) = &predecessor {
                        predecessor.stop.cancel();
                    }
                    let breaker = self.0.breakers.of(&format!("mcp_server:{}", settings.name), Rules::MCP_SERVER);
                    let server = Server::new(settings, breaker, self.0.changes.clone());
                    self.0.tasks.spawn(server.clone().run(predecessor));
                    server
                }
            };
            servers.push(server);
        }
        for server in &before {
            if !servers.iter().any(|kept| Arc::ptr_eq(kept, server)) {
                server.stop.cancel();
            }
        }
        drop(servers);
        // The tools may be the same and what is to be asked about not.
        *self.0.adopted.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.0.changes.send_modify(|count| *count += 1);
    }

    /// Waits until every server is ready or has failed once, for those who cannot come back later.
    pub async fn settled(&self, patience: Duration) {
        let mut changes = self.0.changes.subscribe();
        let settled = async {
            while !self.servers().iter().all(|server| server.has_settled()) {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(patience, settled).await;
    }

    /// What all servers that are ready offer, in the order of the configuration and then by name. The same list until
    /// something changes.
    pub fn tools(&self) -> Arc<[Found]> {
        let mut offered = self.0.offered.lock().unwrap_or_else(PoisonError::into_inner);
        let count = *self.0.changes.borrow();
        if offered.0 != count {
            let lists: Vec<_> = self.servers().iter().map(|server| server.tools()).collect();
            let are_same = lists.iter().flat_map(|list| list.iter()).eq(offered.1.iter());
            offered.0 = count;
            if !are_same {
                offered.1 = lists.iter().flat_map(|list| list.iter()).cloned().collect();
            }
        }
        offered.1.clone()
    }

    /// Our own tools and, after them, those of others. The same list until something changes.
    pub(crate) fn specs(&self, ours: &'static [Spec]) -> Arc<[Spec]> {
        let from = self.tools();
        let mut adopted = self.0.adopted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Adopted { specs, .. }) =
            adopted.as_ref().filter(|adopted| std::ptr::eq(adopted.ours, ours) && Arc::ptr_eq(&adopted.from, &from))
        {
            return specs.clone();
        }
        let servers = self.servers().clone();
        let settings = |name: &str| servers.iter().find(|server| *server.name == *name).map(|server| &server.settings);
        let specs = adopt::specs(ours, &from, settings);
        *adopted = Some(Adopted { ours, from, specs: specs.clone() });
        specs
    }

    /// Those that cannot be used at the moment.
    pub(crate) fn missing(&self) -> Vec<String> {
        let missing = |server: &&Arc<Server>| !server.is_ready();
        self.servers().iter().filter(missing).map(|server| server.name.to_string()).collect()
    }

    /// Calls a tool, once. Whoever drops the future has the call cancelled at the server.
    pub async fn call(&self, found: &Found, arguments: Arguments) -> Result<Called, CallError> {
        self.call_within(found, arguments, Duration::MAX).await
    }

    /// [`Servers::call`] for who cannot wait longer than `most`.
    pub(crate) async fn call_within(
        &self,
        found: &Found,
        arguments: Arguments,
        most: Duration,
    ) -> Result<Called, CallError> {
        let server = self.servers().iter().find(|server| server.name == found.server).cloned();
        match server {
            Some(server) => server.call(&found.name, arguments, most).await,
            None => Err(CallError::Unavailable("is not configured any more".to_owned())),
        }
    }

    /// How they all are, in the order of the configuration.
    pub fn states(&self) -> Vec<ServerState> {
        self.servers().iter().map(|server| server.describe()).collect()
    }

    /// Stops them all. Their processes are gone when it returns.
    pub async fn stop(&self) {
        for server in &*self.servers() {
            server.stop.cancel();
        }
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    fn servers(&self) -> MutexGuard<'_, Vec<Arc<Server>>> {
        self.0.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let servers = self.servers.get_mut().unwrap_or_else(PoisonError::into_inner);
        servers.iter().for_each(|server| server.stop.cancel());
    }
}

impl Settings {
    /// Takes out what looks like a secret, and what this server was entrusted with.
    fn redactor(&self) -> Redactor {
        static ANY: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(What::default()));
        ANY.clone().with_known(self.secrets())
    }
}

/// What somebody else said, made fit for the log and for errors: one line, short, without secrets.
fn outside(redactor: &Redactor, text: &str) -> String {
    let line: String = text.chars().take(4 * LONGEST_QUOTE).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut line = redactor.text(line.trim()).into_owned();
    if line.len() > LONGEST_QUOTE {
        line.truncate(line.floor_char_boundary(LONGEST_QUOTE));
        line.push('…');
    }
    line
}
