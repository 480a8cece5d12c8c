//! The audit log: one record for each administrative change. Values of a record are redacted when they are added.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::string_enum::schema_enum;
use crate::{Clock, UserId};

schema_enum! {
    /// The kind of an administrative change.
    pub enum AuditAction {
        AgentCreated = "agent.created",
        AgentUpdated = "agent.updated",
        AgentRemoved = "agent.removed",
        ScheduleCreated = "schedule.created",
        ScheduleUpdated = "schedule.updated",
        ScheduleRemoved = "schedule.removed",
        SchedulePaused = "schedule.paused",
        ScheduleResumed = "schedule.resumed",
        TokenRevoked = "token.revoked",
        /// A user has exempted a tool of an external server from confirmations.
        PermissionGranted = "permission.granted",
        PermissionRemoved = "permission.removed",
        /// A backup was requested.
        BackupRead = "backup.read",
        BackupRestored = "backup.restored",
        /// An administrator requested an export of their own data.
        DataExported = "data.exported",
        /// An administrator erased their own data.
        DataErased = "data.erased",
        /// An execution was started with another working directory or with additional variables.
        RunOverridden = "run.overridden",
        StoppedAll = "stopped_all",
        ServerStopped = "server_stopped",
        ResumedAll = "resumed_all",
        ConfigurationReloaded = "configuration.reloaded",
    }
}

schema_enum! {
    /// The interface of an administrative change.
    pub enum AuditInterface {
        /// A request to the server.
        Http = "http",
        /// A command that works on the data directory without a server.
        CommandLine = "command_line",
        /// A tool call of the assistant or an MCP client.
        Tool = "tool",
        /// The configuration file.
        Configuration = "configuration",
    }
}

/// The originator of an administrative change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Actor {
    /// `null` if the configuration file caused the change.
    #[schema(value_type = Option<Uuid>)]
    pub user_id: Option<UserId>,
    /// The name in the token.
    pub user_name: Option<String>,
    /// The id of the token (`jti`).
    pub token_id: Option<String>,
    pub interface: AuditInterface,
    pub request_id: Option<String>,
    /// The IP address of the client.
    pub client_address: Option<String>,
}

impl Actor {
    /// Returns the actor of a tool call.
    pub fn tool_user(user: UserId) -> Self {
        Self { user_id: Some(user), ..Self::of_interface(AuditInterface::Tool) }
    }

    /// Returns the actor of a change that the configuration file caused.
    pub fn configuration() -> Self {
        Self::of_interface(AuditInterface::Configuration)
    }

    /// Returns an actor without a user.
    pub fn of_interface(interface: AuditInterface) -> Self {
        Self { user_id: None, user_name: None, token_id: None, interface, request_id: None, client_address: None }
    }
}

/// An administrative change: who, when, what, before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditRecord {
    pub id: Uuid,
    pub at: Timestamp,
    pub action: AuditAction,
    /// The id of the changed object.
    pub subject: Option<String>,
    #[serde(flatten)]
    pub actor: Actor,
    /// The object before the change, without secrets.
    #[schema(value_type = Option<Object>)]
    pub before: Option<Value>,
    /// The object after the change, without secrets.
    #[schema(value_type = Option<Object>)]
    pub after: Option<Value>,
}

impl AuditRecord {
    /// Returns a record with a new id and the current time, without values.
    pub fn new(clock: &Clock, actor: Actor, action: AuditAction, subject: impl ToString) -> Self {
        let subject = Some(subject.to_string()).filter(|subject| !subject.is_empty());
        Self { id: clock.id(), at: clock.now(), action, subject, actor, before: None, after: None }
    }

    /// Sets the value before the change, redacted. A value that cannot be serialized is left out.
    #[must_use]
    pub fn with_before(self, value: &impl Serialize) -> Self {
        Self { before: redacted(value), ..self }
    }

    /// Sets the value after the change, redacted. A value that cannot be serialized is left out.
    #[must_use]
    pub fn with_after(self, value: &impl Serialize) -> Self {
        Self { after: redacted(value), ..self }
    }
}

/// Returns a value as JSON without secrets and e-mail addresses. Returns `None` if it cannot be serialized.
fn redacted(value: &impl Serialize) -> Option<Value> {
    let mut value = serde_json::to_value(value).ok()?;
    redact::redact_json(&mut value);
    Some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_a_record_contain_no_secrets() {
        // SEC-6
        let clock = Clock::manual("2026-01-10T12:00:00Z".parse().unwrap());
        let record = AuditRecord::new(&clock, Actor::tool_user(UserId::LOCAL), AuditAction::AgentUpdated, "codex")
            .with_before(&json!({"envs": {"API_KEY": "s3cr3t-value-0123456789"}}))
            .with_after(&json!({"description": "password=hunter22hunter22", "name": "Codex"}));
        let text = serde_json::to_string(&record).unwrap();
        assert!(!text.contains("s3cr3t") && !text.contains("hunter22"), "{text}");
        assert_eq!(record.after.unwrap()["name"], "Codex");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["interface"], "tool", "the actor is not nested");
    }
}
