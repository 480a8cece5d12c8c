//! Parses the paths below the base path of an agent.
//!
//! In both versions `v1` may follow the agent, and a path may end with a slash. In HTTP+JSON a tenant may come next:
//! `/agent/v1/tenant/tasks`. JSON-RPC and agent cards have no tenant in the path.

use http::Method;
use percent_encoding::percent_decode_str;

use crate::Operation;

/// A parsed path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AgentRoute {
    pub(super) agent: String,
    pub(super) tenant: Option<String>,
    pub(super) target: RouteTarget,
}

/// The endpoint that a path names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RouteTarget {
    JsonRpc,
    Card,
    Rest(RestResource),
}

/// The resource of a path in HTTP+JSON.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RestResource {
    Send,
    Stream,
    Tasks,
    Task(String),
    Cancel(String),
    Subscribe(String),
    /// The configurations of this task.
    PushConfigs(String),
    /// The ids of the task and of the configuration.
    PushConfig(String, String),
    ExtendedCard,
}

impl AgentRoute {
    /// Parses a path that starts with the agent, for any HTTP method. Empty segments are ignored, and one `v1` after
    /// the agent is skipped. If the rest is unknown, its first segment is a tenant, but only in HTTP+JSON. Returns
    /// `None` if the path is unknown or a segment is not UTF-8.
    pub(super) fn parse(path: &str) -> Option<Self> {
        let mut segments = path.split('/').filter(|segment| !segment.is_empty());
        let agent = decode(segments.next()?)?;
        let mut rest: Vec<&str> = segments.collect();
        if rest.first() == Some(&"v1") {
            rest.remove(0);
        }
        if let Some(target) = target(&rest) {
            return Some(Self { agent, tenant: None, target });
        }
        let (tenant, rest) = rest.split_first()?;
        match target(rest)? {
            target @ RouteTarget::Rest(_) => Some(Self { agent, tenant: Some(decode(tenant)?), target }),
            RouteTarget::JsonRpc | RouteTarget::Card => None,
        }
    }
}

/// Returns the endpoint of the segments after the agent, the version and the tenant. No segments mean JSON-RPC. Paths
/// of both versions are accepted, and the colon of `message:send` may be encoded as `%3A`. Returns `None` if the path
/// is unknown or an id is not UTF-8.
fn target(segments: &[&str]) -> Option<RouteTarget> {
    match segments {
        [] => Some(RouteTarget::JsonRpc),
        [".well-known", "agent-card.json" | "agent.json"] => Some(RouteTarget::Card),
        ["message:send" | "message%3Asend"] => Some(RouteTarget::Rest(RestResource::Send)),
        ["message:stream" | "message%3Astream"] => Some(RouteTarget::Rest(RestResource::Stream)),
        ["extendedAgentCard" | "card"] | ["agent", "authenticatedExtendedCard"] => {
            Some(RouteTarget::Rest(RestResource::ExtendedCard))
        }
        ["tasks"] => Some(RouteTarget::Rest(RestResource::Tasks)),
        ["tasks", task] => task_or_verb(task).map(RouteTarget::Rest),
        ["tasks", task, "pushNotificationConfigs"] => {
            decode(task).map(|task| RouteTarget::Rest(RestResource::PushConfigs(task)))
        }
        ["tasks", task, "pushNotificationConfigs", config] => decode(task)
            .zip(decode(config))
            .map(|(task, config)| RouteTarget::Rest(RestResource::PushConfig(task, config))),
        _ => None,
    }
}

/// Parses the segment after `tasks`: a task, optionally followed by a colon, plain or encoded, and `cancel` or
/// `subscribe`. Any other verb is part of the id, and so is a verb without a task. Returns `None` if the segment is not
/// UTF-8.
fn task_or_verb(segment: &str) -> Option<RestResource> {
    let before = |verb| {
        let task = segment.strip_suffix(verb)?;
        let task = [":", "%3A", "%3a"].iter().find_map(|colon| task.strip_suffix(colon))?;
        Some(task).filter(|task| !task.is_empty())
    };
    if let Some(task) = before("cancel") {
        return decode(task).map(RestResource::Cancel);
    }
    if let Some(task) = before("subscribe") {
        return decode(task).map(RestResource::Subscribe);
    }
    decode(segment).map(RestResource::Task)
}

/// Returns the segment without percent encoding, or `None` if it is not UTF-8.
fn decode(segment: &str) -> Option<String> {
    percent_decode_str(segment).decode_utf8().ok().map(|text| text.into_owned())
}

impl RestResource {
    /// Returns the operation of an HTTP method on this resource, or `None` if the method is not supported. HEAD counts
    /// as GET, except for a subscription, which supports GET and POST.
    pub(super) fn operation(&self, method: &Method) -> Option<Operation> {
        match (self, method) {
            (Self::Send, &Method::POST) => Some(Operation::Send),
            (Self::Stream, &Method::POST) => Some(Operation::Stream),
            (Self::Tasks, &Method::GET | &Method::HEAD) => Some(Operation::List),
            (Self::Task(_), &Method::GET | &Method::HEAD) => Some(Operation::Get),
            (Self::Cancel(_), &Method::POST) => Some(Operation::Cancel),
            (Self::Subscribe(_), &Method::GET | &Method::POST) => Some(Operation::Subscribe),
            (Self::PushConfigs(_), &Method::POST) => Some(Operation::SetPush),
            (Self::PushConfigs(_), &Method::GET | &Method::HEAD) => Some(Operation::ListPush),
            (Self::PushConfig(..), &Method::GET | &Method::HEAD) => Some(Operation::GetPush),
            (Self::PushConfig(..), &Method::DELETE) => Some(Operation::DeletePush),
            (Self::ExtendedCard, &Method::GET | &Method::HEAD) => Some(Operation::ExtendedCard),
            _ => None,
        }
    }

    /// Returns the supported HTTP methods as the value of an `Allow` header, such as `GET, HEAD, OPTIONS`.
    pub(super) fn allowed(&self) -> &'static str {
        match self {
            Self::Send | Self::Stream | Self::Cancel(_) => "POST, OPTIONS",
            Self::Tasks | Self::Task(_) | Self::ExtendedCard => "GET, HEAD, OPTIONS",
            Self::Subscribe(_) => "GET, POST, OPTIONS",
            Self::PushConfigs(_) => "GET, HEAD, POST, OPTIONS",
            Self::PushConfig(..) => "GET, HEAD, DELETE, OPTIONS",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> Option<(Option<String>, RestResource)> {
        match AgentRoute::parse(path)? {
            AgentRoute { agent, tenant, target: RouteTarget::Rest(resource) } if agent == "a b" => {
                Some((tenant, resource))
            }
            _ => None,
        }
    }

    // A2A-1
    #[test]
    fn every_path_is_accepted_with_and_without_v1() {
        let text = str::to_owned;
        for base in ["/a%20b", "/a%20b/v1", "/a%20b/"] {
            for (path, expected) in [
                ("message:send", RestResource::Send),
                ("message:stream/", RestResource::Stream),
                ("tasks", RestResource::Tasks),
                ("tasks/", RestResource::Tasks),
                ("tasks/x%2Fy", RestResource::Task(text("x/y"))),
                ("tasks/x:y", RestResource::Task(text("x:y"))),
                ("tasks/x:cancel", RestResource::Cancel(text("x"))),
                ("tasks/x:y:subscribe", RestResource::Subscribe(text("x:y"))),
                ("tasks/x%3Acancel", RestResource::Cancel(text("x"))),
                ("tasks/:cancel", RestResource::Task(text(":cancel"))),
                ("tasks/x/pushNotificationConfigs", RestResource::PushConfigs(text("x"))),
                ("tasks/x/pushNotificationConfigs/y", RestResource::PushConfig(text("x"), text("y"))),
                ("extendedAgentCard", RestResource::ExtendedCard),
                ("card", RestResource::ExtendedCard),
                ("agent/authenticatedExtendedCard", RestResource::ExtendedCard),
            ] {
                let path = format!("{base}/{path}");
                assert_eq!(resource(&path), Some((None, expected)), "{path}");
            }
            assert_eq!(
                resource(&format!("{base}/t%201/tasks/x")),
                Some((Some(text("t 1")), RestResource::Task(text("x"))))
            );
            assert_eq!(resource(&format!("{base}/t/message:send")), Some((Some(text("t")), RestResource::Send)));
        }
    }

    #[test]
    fn the_base_path_is_json_rpc_and_the_card_is_below_it() {
        let route = |path: &str| AgentRoute::parse(path).map(|route| route.target);
        for path in ["/a", "/a/", "/a/v1", "/a/v1/"] {
            assert_eq!(route(path), Some(RouteTarget::JsonRpc), "{path}");
        }
        for path in ["/a/.well-known/agent-card.json", "/a/v1/.well-known/agent-card.json", "/a/.well-known/agent.json"]
        {
            assert_eq!(route(path), Some(RouteTarget::Card), "{path}");
        }
        for path in
            ["/", "", "/a/x", "/a/x/y", "/a/tenant/v1", "/a/tasks/x/y", "/a/t/.well-known/agent.json", "/a/tasks/%ff"]
        {
            assert_eq!(route(path), None, "{path}");
        }
    }
}
