//! The network policy of agents (SEC-2). It applies to the thread that starts the program.
//!
//! - `none`: a network namespace without interfaces, or a filter of system calls that refuses network sockets.
//! - `ports`: Landlock limits TCP connections to these ports. A filter of system calls refuses the protocols that
//!   Landlock does not know, and UDP unless the ports contain 53, which name resolution needs.

use std::collections::BTreeMap;

use landlock::{AccessNet, CompatLevel, Compatible, NetPort, Ruleset, RulesetAttr, RulesetCreatedAttr};
use nix::libc;
use nix::sched::CloneFlags;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};
use serde::{Deserialize, Serialize};

use super::protections::{NoNetwork, Protections};

/// The port of name resolution.
const DNS: u16 = 53;
/// The part of the second argument of `socket` that is the type. The rest are flags.
const TYPE_MASK: u64 = 0xf;

/// The network access of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkPolicy {
    #[default]
    All,
    None,
    /// TCP connections to these ports only.
    Ports(Vec<u16>),
}

/// Returns true if the kernel can limit the ports of TCP connections (Landlock version 4).
pub(super) fn can_limit_ports() -> bool {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessNet::ConnectTcp)
        .and_then(Ruleset::create)
        .is_ok()
        && has_filters()
}

/// Returns true if the kernel and this architecture support filters of system calls.
pub(super) fn has_filters() -> bool {
    rustix::thread::secure_computing_mode().is_ok() && TargetArch::try_from(std::env::consts::ARCH).is_ok()
}

/// Applies the policy to the calling thread permanently, as far as this system can. Fails with the reason if the system
/// rejects it.
pub(super) fn restrict(policy: &NetworkPolicy, protections: &Protections) -> Result<(), String> {
    match (policy, protections.no_network) {
        (NetworkPolicy::None, NoNetwork::Namespace) => {
            nix::sched::unshare(CloneFlags::CLONE_NEWNET).map_err(|error| format!("no network namespace: {error}"))
        }
        (NetworkPolicy::None, NoNetwork::Filter) => filter(no_network()),
        (NetworkPolicy::Ports(ports), _) if protections.ports => {
            limit_ports(ports).map_err(|error| format!("the ports cannot be limited: {error}"))?;
            filter(only_tcp(ports.contains(&DNS)))
        }
        _ => Ok(()),
    }
}

fn limit_ports(ports: &[u16]) -> Result<(), landlock::RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessNet::ConnectTcp)?
        .create()?;
    for port in ports {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    rules.restrict_self().map(drop)
}

/// The rules of one system call: it is refused if all conditions of one rule hold.
type Refusals = BTreeMap<i64, Vec<SeccompRule>>;
type FilterResult<T> = Result<T, seccompiler::BackendError>;

/// Returns the rules that allow only local sockets and those of the kernel interface.
fn no_network() -> FilterResult<Refusals> {
    let rule = SeccompRule::new(vec![domain_is_not(libc::AF_UNIX)?, domain_is_not(libc::AF_NETLINK)?])?;
    Ok(with_io_uring(vec![rule]))
}

/// Returns the rules that allow TCP, local sockets, those of the kernel interface, and UDP with `udp`.
fn only_tcp(udp: bool) -> FilterResult<Refusals> {
    let mut rules = vec![SeccompRule::new(vec![
        domain_is_not(libc::AF_UNIX)?,
        domain_is_not(libc::AF_NETLINK)?,
        domain_is_not(libc::AF_INET)?,
        domain_is_not(libc::AF_INET6)?,
    ])?];
    for domain in [libc::AF_INET, libc::AF_INET6] {
        let domain_is = || condition(0, SeccompCmpOp::Eq, domain as u64);
        let type_is = |kind: libc::c_int| condition(1, SeccompCmpOp::MaskedEq(TYPE_MASK), kind as u64);
        let protocol_is_not = |protocol: libc::c_int| condition(2, SeccompCmpOp::Ne, protocol as u64);
        let mut refused = vec![libc::SOCK_RAW, libc::SOCK_RDM, libc::SOCK_SEQPACKET, libc::SOCK_DCCP];
        if !udp {
            refused.push(libc::SOCK_DGRAM);
        }
        for kind in refused {
            rules.push(SeccompRule::new(vec![domain_is()?, type_is(kind)?])?);
        }
        // Multipath TCP and SCTP are streams that Landlock does not limit.
        let is_stream = type_is(libc::SOCK_STREAM)?;
        rules.push(SeccompRule::new(vec![
            domain_is()?,
            is_stream,
            protocol_is_not(0)?,
            protocol_is_not(libc::IPPROTO_TCP)?,
        ])?);
    }
    Ok(with_io_uring(rules))
}

/// Adds a rule that refuses io_uring, which creates sockets without the system call `socket`.
fn with_io_uring(socket: Vec<SeccompRule>) -> Refusals {
    BTreeMap::from([(libc::SYS_socket, socket), (libc::SYS_io_uring_setup, Vec::new())])
}

fn domain_is_not(domain: libc::c_int) -> FilterResult<SeccompCondition> {
    condition(0, SeccompCmpOp::Ne, domain as u64)
}

fn condition(argument: u8, operation: SeccompCmpOp, value: u64) -> FilterResult<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value)
}

/// Installs a filter for the calling thread: refused calls fail with `EACCES`. System calls of another architecture end
/// the process.
fn filter(refusals: FilterResult<Refusals>) -> Result<(), String> {
    let failed = |error: String| format!("no filter of system calls: {error}");
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| failed(error.to_string()))?;
    let refusal = SeccompAction::Errno(libc::EACCES as u32);
    let program: BpfProgram = refusals
        .and_then(|refusals| SeccompFilter::new(refusals, SeccompAction::Allow, refusal, arch))
        .and_then(TryInto::try_into)
        .map_err(|error| failed(error.to_string()))?;
    seccompiler::apply_filter(&program).map_err(|error| failed(error.to_string()))
}
