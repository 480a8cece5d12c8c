//! The protections that this system can enforce for agents (SEC-2), and those that one run needs.

use serde::{Deserialize, Serialize};

use super::file_view;
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
    /// The guardian and its agents have a process namespace of their own.
    pub process_namespace: bool,
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
            files: has_namespaces && file_view::is_possible(),
            // Without Landlock, a run may trace other runs of the same user, and sees them.
            processes: has_namespaces && writes != Landlock::Missing,
            signals: signals_are_confined(),
            control_groups,
            no_network,
            ports: network::can_limit_ports(),
            run_as: namespaces == Namespaces::Mount,
            process_namespace: namespaces == Namespaces::User,
        }
    }

    /// Returns what is enforced for agents on this system with its mechanism, as clauses of a sentence.
    pub fn enforced(&self) -> Vec<&'static str> {
        self.enforced_for(true, &NetworkPolicy::All)
    }

    /// Returns what is not enforced for agents on this system, as clauses of a sentence.
    pub fn missing(&self) -> Vec<&'static str> {
        self.missing_for(true, &NetworkPolicy::All)
    }

    /// Returns what is enforced for an agent with this access and network policy.
    pub fn enforced_for(&self, read_only: bool, network: &NetworkPolicy) -> Vec<&'static str> {
        self.checks(read_only, network).into_iter().filter_map(|check| check.enforced).collect()
    }

    /// Returns what an agent with this access and network policy needs and this system does not enforce.
    pub fn missing_for(&self, read_only: bool, network: &NetworkPolicy) -> Vec<&'static str> {
        let checks = self.checks(read_only, network).into_iter();
        checks.filter(|check| check.enforced.is_none()).map(|check| check.missing).collect()
    }

    fn checks(&self, read_only: bool, network: &NetworkPolicy) -> Vec<ProtectionCheck> {
        let mut checks = vec![
            ProtectionCheck::new(
                self.files.then_some("the data directory, the configuration and secrets are hidden (mount namespace)"),
                "agents can read the data directory, the configuration and secrets (no mount namespaces)",
            ),
            ProtectionCheck::new(
                self.processes.then_some("other processes are hidden (/proc of its own, Landlock)"),
                "agents can see the processes of other runs (no namespaces or no Landlock)",
            ),
            ProtectionCheck::new(
                self.signals.then_some("signals to other processes are refused (Landlock)"),
                "agents can signal processes of this user (no Landlock version 6)",
            ),
            ProtectionCheck::new(
                Some(match self.control_groups {
                    true => "connections to the server are refused (control groups)",
                    false => "connections to the server are refused (open files of agents)",
                }),
                "",
            ),
        ];
        if read_only {
            let enforced = match self.writes {
                Landlock::Full => Some("writes are refused (Landlock)"),
                Landlock::Partial => {
                    Some("writes are refused, except that some files can be truncated or moved (Landlock)")
                }
                Landlock::Missing => None,
            };
            checks.push(ProtectionCheck::new(enforced, "read-only agents can write (no Landlock)"));
        }
        match network {
            NetworkPolicy::All => {}
            NetworkPolicy::None => {
                let enforced = match self.no_network {
                    NoNetwork::Namespace => Some("the network is denied (network namespace)"),
                    NoNetwork::Filter => Some("the network is denied (filter of system calls)"),
                    NoNetwork::Missing => None,
                };
                checks.push(ProtectionCheck::new(enforced, "the network is not denied (no namespaces and no filters)"));
            }
            NetworkPolicy::Ports(_) => checks.push(ProtectionCheck::new(
                self.ports.then_some("TCP is limited to the ports (Landlock, filter of system calls)"),
                "the ports are not limited (no Landlock version 4)",
            )),
        }
        checks
    }
}

/// A protection with its description if it is enforced, and if it is not.
struct ProtectionCheck {
    enforced: Option<&'static str>,
    missing: &'static str,
}

impl ProtectionCheck {
    fn new(enforced: Option<&'static str>, missing: &'static str) -> Self {
        Self { enforced, missing }
    }
}
