//! The MCP client: connects to external MCP servers and offers their tools in addition to the built-in ones.
//!
//! Each configured server has its own task, so that a slow server delays neither the program nor the other servers. A
//! call is sent at most once: it is never repeated if it may have reached the server. Everything that a server sends is
//! limited in size, and the secrets of its configuration are redacted.

mod call;
mod connection;
mod events;
mod guard;
mod http;
mod listing;
mod naming;
mod normalize;
mod process;
mod result;
mod server;
pub mod settings;
mod stdio;
mod wire;

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::breaker::{BreakerConfig, Breakers};
use redact::{RedactOptions, Redactor};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

pub(crate) use call::ExternalCaller;
pub use listing::{DiscoveredTool, RejectedTool, ToolHints, matches_pattern};
pub(crate) use naming::ExternalTool;
pub use result::{ExternalCallError, ExternalResult};
pub use server::{McpServerPhase, McpServerState};
pub use settings::{McpServerSettings, McpTransport, ProtocolEra};

use crate::{ToolArguments, ToolSpec};
use server::ManagedServer;

/// The maximum length of a text from a server in the log and in errors.
const MAX_QUOTE_BYTES: usize = 500;

/// All configured servers. Cheap to clone. Dropping the last clone stops the servers.
#[derive(Clone)]
pub struct McpServers(Arc<McpServersShared>);

struct McpServersShared {
    breakers: Breakers,
    servers: Mutex<Vec<Arc<ManagedServer>>>,
    tasks: TaskTracker,
    /// Counts the changes of all servers.
    changes: watch::Sender<u64>,
    /// The discovered tools, with the number of changes at which they were read.
    discovered: Mutex<(u64, Arc<[DiscoveredTool]>)>,
    /// The discovered tools together with the built-in ones.
    combined: Mutex<Option<CombinedSpecs>>,
}

/// The tools of all sources, and the lists they were made from.
struct CombinedSpecs {
    built_in: &'static [ToolSpec],
    discovered: Arc<[DiscoveredTool]>,
    specs: Arc<[ToolSpec]>,
}

impl std::fmt::Debug for McpServers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.servers().iter().map(|server| server.name.clone()).collect::<Vec<_>>();
        f.debug_tuple("McpServers").field(&names).finish()
    }
}

impl McpServers {
    /// Starts all servers in the background and returns immediately. Their failures are part of their states. Must be
    /// called within a Tokio runtime.
    pub fn start(settings: Vec<McpServerSettings>, breakers: &Breakers) -> Self {
        let servers = Self(Arc::new(McpServersShared {
            breakers: breakers.clone(),
            servers: Mutex::default(),
            tasks: TaskTracker::new(),
            changes: watch::Sender::new(0),
            discovered: Mutex::default(),
            combined: Mutex::default(),
        }));
        servers.replace(settings);
        servers
    }

    /// Applies new settings and returns immediately. A server with the same name and unchanged settings stays connected,
    /// unless it was stopped; then it is started again. A server with changed settings is stopped, and its successor
    /// connects once it has ended. Servers without settings are stopped. Circuit breakers are kept by name. Must be called
    /// within a Tokio runtime.
    pub fn replace(&self, settings: Vec<McpServerSettings>) {
        let mut servers = self.servers();
        let old_servers = std::mem::take(&mut *servers);
        for settings in settings {
            let predecessor = old_servers.iter().find(|server| *server.name == *settings.name).cloned();
            let server = match predecessor {
                Some(server) if server.settings.is_same(&settings) && !server.stop.is_cancelled() => server,
                predecessor => {
                    if let Some(predecessor) = &predecessor {
                        predecessor.stop.cancel();
                    }
                    let breaker = self
                        .0
                        .breakers
                        .get_or_create(&format!("mcp_server:{}", settings.name), BreakerConfig::MCP_SERVER);
                    let server = ManagedServer::new(settings, breaker, self.0.changes.clone());
                    self.0.tasks.spawn(server.clone().run(predecessor));
                    server
                }
            };
            servers.push(server);
        }
        for server in &old_servers {
            if !servers.iter().any(|current| Arc::ptr_eq(current, server)) {
                server.stop.cancel();
            }
        }
        drop(servers);
        // The confirmation rules may have changed even if the tools are the same.
        *self.0.combined.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.0.changes.send_modify(|count| *count += 1);
    }

    /// Waits until every server is ready or has failed once, at most `max_wait`. Returns in the same way in both cases.
    pub async fn wait_until_settled(&self, max_wait: Duration) {
        let mut changes = self.0.changes.subscribe();
        let settled = async {
            while !self.servers().iter().all(|server| server.has_settled()) {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(max_wait, settled).await;
    }

    /// Returns the tools of all ready servers, in the order of the configuration and then by name. Tools of a server
    /// that is down are left out. Returns the same `Arc` until the tools change.
    pub fn tools(&self) -> Arc<[DiscoveredTool]> {
        let mut discovered = self.0.discovered.lock().unwrap_or_else(PoisonError::into_inner);
        let count = *self.0.changes.borrow();
        if discovered.0 != count {
            let lists: Vec<_> = self.servers().iter().map(|server| server.tools()).collect();
            let are_same = lists.iter().flat_map(|list| list.iter()).eq(discovered.1.iter());
            discovered.0 = count;
            if !are_same {
                discovered.1 = lists.iter().flat_map(|list| list.iter()).cloned().collect();
            }
        }
        discovered.1.clone()
    }

    /// Returns the built-in tools followed by the external ones. Returns the same `Arc` until the discovered tools or
    /// the settings change, or another list of built-in tools is given. Only the last list is cached.
    pub(crate) fn specs(&self, built_in: &'static [ToolSpec]) -> Arc<[ToolSpec]> {
        let discovered = self.tools();
        let mut combined = self.0.combined.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = |combined: &&CombinedSpecs| {
            std::ptr::eq(combined.built_in, built_in) && Arc::ptr_eq(&combined.discovered, &discovered)
        };
        if let Some(CombinedSpecs { specs, .. }) = combined.as_ref().filter(is_current) {
            return specs.clone();
        }
        let servers = self.servers().clone();
        let settings = |name: &str| servers.iter().find(|server| *server.name == *name).map(|server| &server.settings);
        let specs = naming::combine(built_in, &discovered, settings);
        *combined = Some(CombinedSpecs { built_in, discovered, specs: specs.clone() });
        specs
    }

    /// Returns the longest `call_timeout` of all servers.
    pub(crate) fn max_call_timeout(&self) -> Duration {
        self.servers().iter().map(|server| server.settings.call_timeout).max().unwrap_or_default()
    }

    /// Returns the names of the servers that cannot be used at the moment.
    pub(crate) fn unavailable(&self) -> Vec<String> {
        let is_unavailable = |server: &&Arc<ManagedServer>| !server.is_ready();
        self.servers().iter().filter(is_unavailable).map(|server| server.name.to_string()).collect()
    }

    /// Calls a tool once. Dropping the future cancels the call at the server. Fails if the server is unavailable, does
    /// not answer in time or rejects the call.
    pub async fn call(
        &self,
        tool: &DiscoveredTool,
        arguments: ToolArguments,
    ) -> Result<ExternalResult, ExternalCallError> {
        self.call_within(tool, arguments, Duration::MAX, None).await
    }

    /// Like [`McpServers::call`], but waits no longer than `max_wait`, and reports the progress. Fails with [`ExternalCallError::Unavailable`] if
    /// the server is no longer configured.
    pub(crate) async fn call_within(
        &self,
        tool: &DiscoveredTool,
        arguments: ToolArguments,
        max_wait: Duration,
        progress: Option<&UnboundedSender<String>>,
    ) -> Result<ExternalResult, ExternalCallError> {
        let server = self.servers().iter().find(|server| server.name == tool.server).cloned();
        match server {
            Some(server) => server.call(&tool.name, arguments, max_wait, progress).await,
            None => Err(ExternalCallError::Unavailable("is no longer configured".to_owned())),
        }
    }

    /// Returns the states of all servers, in the order of the configuration.
    pub fn states(&self) -> Vec<McpServerState> {
        self.servers().iter().map(|server| server.state()).collect()
    }

    /// Stops all servers. Their processes have ended when it returns.
    pub async fn stop(&self) {
        for server in &*self.servers() {
            server.stop.cancel();
        }
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    fn servers(&self) -> MutexGuard<'_, Vec<Arc<ManagedServer>>> {
        self.0.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for McpServersShared {
    fn drop(&mut self) {
        let servers = self.servers.get_mut().unwrap_or_else(PoisonError::into_inner);
        servers.iter().for_each(|server| server.stop.cancel());
    }
}

impl McpServerSettings {
    /// Returns a redactor for texts that look like secrets, and for the secrets of this configuration.
    fn redactor(&self) -> Redactor {
        static PATTERNS: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(RedactOptions::default()));
        PATTERNS.clone().with_known(self.secrets())
    }
}

/// Returns a text from a server in a form for the log and for errors: one line without secrets, at most
/// [`MAX_QUOTE_BYTES`] bytes and "…". Control characters become spaces.
fn quote(redactor: &Redactor, text: &str) -> String {
    let line: String = text.chars().take(4 * MAX_QUOTE_BYTES).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut line = redactor.text(line.trim()).into_owned();
    if line.len() > MAX_QUOTE_BYTES {
        line.truncate(line.floor_char_boundary(MAX_QUOTE_BYTES));
        line.push('…');
    }
    line
}
