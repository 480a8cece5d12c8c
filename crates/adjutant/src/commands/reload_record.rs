//! The record of a reload of the configuration in the audit log (SEC-6).

use model::agent::{Agent, AgentSource};
use model::audit::{Actor, AuditAction, AuditRecord};
use scheduler::SyncReport;
use serde::Serialize;
use serde_json::json;
use server::App;
use supervisor::AgentEntry;

/// The agents of the configuration file that a reload has changed, by id.
#[derive(Debug, Serialize)]
pub(crate) struct AgentChanges {
    added: Vec<String>,
    changed: Vec<String>,
    removed: Vec<String>,
}

impl AgentChanges {
    /// Compares the agents that a node knows with those of a new configuration file. Agents of other sources are ignored.
    pub(crate) fn between(known: &[AgentEntry], new: &[Agent]) -> Self {
        let of_file = || known.iter().filter(|entry| entry.source == AgentSource::File).map(|entry| &entry.agent);
        let find = |id: &str| of_file().find(|agent| agent.id == id);
        let ids = |agents: Vec<&Agent>| agents.into_iter().map(|agent| agent.id.clone()).collect();
        Self {
            added: ids(new.iter().filter(|agent| find(&agent.id).is_none()).collect()),
            changed: ids(new.iter().filter(|agent| find(&agent.id).is_some_and(|old| **old != **agent)).collect()),
            removed: of_file()
                .filter(|old| new.iter().all(|agent| agent.id != old.id))
                .map(|old| old.id.clone())
                .collect(),
        }
    }
}

/// Adds a record of a reload to the audit log, with the changed agents and schedules. A failure is logged.
pub(crate) async fn record_reload(app: &App, agents: &AgentChanges, schedules: &SyncReport) {
    let SyncReport { added, changed, removed, .. } = schedules;
    let schedules = json!({"added": added, "changed": changed, "removed": removed});
    let record = AuditRecord::new(app.clock(), Actor::configuration(), AuditAction::ConfigurationReloaded, "")
        .with_after(&json!({"agents": agents, "schedules": schedules}));
    let recorded = app.store().transaction(async move |tx| store::audit::record(tx, &record).await);
    if let Err(error) = recorded.await {
        tracing::error!(event = "audit_record_not_written", error = %error);
    }
}
