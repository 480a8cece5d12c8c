//! The protections that this system can enforce for agents (SEC-2), and those that one run needs.

use serde::{Deserialize, Serialize};

use super::launch::Launch;
use super::namespaces::Namespaces;
use super::network::{self, NetworkPolicy};
use super::sandbox::{Landlock, landlock_support, signals_are_confined};

/// The protections that a guardian can enforce. It reports them when it is ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protections {
    /// Write access of read-only agents.
    pub writes: Landlock,
    /// The data directory, the configuration and secrets are hidden by a mount namespace.
    pub files: bool,
    /// Processes outside of a run are hidden in `/proc`, with their arguments, environment and memory.
    pub processes: bool,
    /// A run cannot signal processes outside of it.
    pub signals: bool,
    /// The connections of a run are recognised by its control group.
    pub control_groups: bool,
    /// Mechanism of `network = "none"`.
    pub no_network: NoNetwork,
    /// `network = "ports"` is enforced.
    pub ports: bool,
    /// Agents can run as another user.
    pub run_as: bool,
}

/// The mechanism that keeps a run from the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoNetwork {
    Namespace,
    /// A filter of system calls.
    Filter,
    #[default]
    Missing,
}

impl Protections {
    /// Returns the protections of a guardian in these namespaces.
    pub(super) fn of(namespaces: Namespaces, control_groups: bool) -> Self {
        let writes = landlock_support();
        let has_namespaces = namespaces != Namespaces::Inherited;
        let no_network = match has_namespaces {
            true => NoNetwork::Namespace,
            false if network::has_filters() => NoNetwork::Filter,
            false => NoNetwork::Missing,
        };
        Self {
            writes,
            files: has_namespaces,
            // Without Landlock, a run may trace other runs of the same user, and sees them.
            processes: has_namespaces && writes != Landlock::Missing,
            signals: signals_are_confined(),
            control_groups,
            no_network,
            ports: network::can_limit_ports(),
            run_as: namespaces == Namespaces::Mount,
        }
    }

    /// Returns what is not enforced for any agent on this system, as clauses of a sentence.
    pub fn missing(&self) -> Vec<&'static str> {
        let checks = [
            (self.files, "agents can read the data directory and the configuration (no mount namespaces)"),
            (self.processes, "agents can see the processes of other runs (no namespaces or no Landlock)"),
            (self.signals, "agents can signal processes of this user (no Landlock version 6)"),
            (self.control_groups, "agents can use this server (no control groups for this user)"),
            (self.writes != Landlock::Missing, "read-only agents can write (no Landlock)"),
        ];
        checks.into_iter().filter(|(enforced, _)| !enforced).map(|(_, text)| text).collect()
    }

    /// Returns the protections that the launch needs and that this system does not enforce.
    pub(super) fn missing_for(&self, launch: &Launch) -> Vec<&'static str> {
        let mut missing = self.missing();
        if launch.sandbox.is_none() {
            missing.retain(|text| !text.starts_with("read-only"));
        }
        match launch.isolation.network {
            NetworkPolicy::None if self.no_network == NoNetwork::Missing => {
                missing.push("the network cannot be denied (no namespaces and no filters of system calls)");
            }
            NetworkPolicy::Ports(_) if !self.ports => {
                missing.push("the ports cannot be limited (no Landlock version 4)");
            }
            _ => {}
        }
        missing
    }
}
