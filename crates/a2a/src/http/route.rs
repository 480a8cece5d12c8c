//! Which path is what.
//!
//! Everything of an agent is below its base, with `v1` before it or not, in both versions, and with a slash at the end or
//! not. What stands before the rest is a tenant.

use http::Method;
use percent_encoding::percent_decode_str;

use crate::Operation;

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) agent: String,
    pub(super) tenant: Option<String>,
    pub(super) target: Target,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    JsonRpc,
    Card,
    Rest(Place),
}

/// What HTTP+JSON has a path for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    Send,
    Stream,
    Tasks,
    Task(String),
    Cancel(String),
    Subscribe(String),
    Pushes(String),
    Push(String, String),
    ExtendedCard,
}

impl Route {
    /// Of a path that begins with the agent.
    pub(super) fn of(path: &str) -> Option<Self> {
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
            target @ Target::Rest(_) => Some(Self { agent, tenant: Some(decode(tenant)?), target }),
            Target::JsonRpc | Target::Card => None,
        }
    }
}

fn target(segments: &[&str]) -> Option<Target> {
    match segments {
        [] => Some(Target::JsonRpc),
        [".well-known", "agent-card.json" | "agent.json"] => Some(Target::Card),
        ["message:send" | "message%3Asend"] => Some(Target::Rest(Place::Send)),
        ["message:stream" | "message%3Astream"] => Some(Target::Rest(Place::Stream)),
        ["extendedAgentCard" | "card"] | ["agent", "authenticatedExtendedCard"] => {
            Some(Target::Rest(Place::ExtendedCard))
        }
        ["tasks"] => Some(Target::Rest(Place::Tasks)),
        ["tasks", task] => task_or_verb(task).map(Target::Rest),
        ["tasks", task, "pushNotificationConfigs"] => decode(task).map(|task| Target::Rest(Place::Pushes(task))),
        ["tasks", task, "pushNotificationConfigs", config] => {
            decode(task).zip(decode(config)).map(|(task, config)| Target::Rest(Place::Push(task, config)))
        }
        _ => None,
    }
}

/// The last colon is before a verb, if it is one of those known here.
fn task_or_verb(segment: &str) -> Option<Place> {
    let before = |verb| {
        let task = segment.strip_suffix(verb)?;
        let task = [":", "%3A", "%3a"].iter().find_map(|colon| task.strip_suffix(colon))?;
        Some(task).filter(|task| !task.is_empty())
    };
    if let Some(task) = before("cancel") {
        return decode(task).map(Place::Cancel);
    }
    if let Some(task) = before("subscribe") {
        return decode(task).map(Place::Subscribe);
    }
    decode(segment).map(Place::Task)
}

fn decode(segment: &str) -> Option<String> {
    percent_decode_str(segment).decode_utf8().ok().map(|text| text.into_owned())
}

impl Place {
    /// What a method does here.
    pub(super) fn operation(&self, method: &Method) -> Option<Operation> {
        match (self, method) {
            (Self::Send, &Method::POST) => Some(Operation::Send),
            (Self::Stream, &Method::POST) => Some(Operation::Stream),
            (Self::Tasks, &Method::GET | &Method::HEAD) => Some(Operation::List),
            (Self::Task(_), &Method::GET | &Method::HEAD) => Some(Operation::Get),
            (Self::Cancel(_), &Method::POST) => Some(Operation::Cancel),
            (Self::Subscribe(_), &Method::GET | &Method::POST) => Some(Operation::Subscribe),
            (Self::Pushes(_), &Method::POST) => Some(Operation::SetPush),
            (Self::Pushes(_), &Method::GET | &Method::HEAD) => Some(Operation::ListPush),
            (Self::Push(..), &Method::GET | &Method::HEAD) => Some(Operation::GetPush),
            (Self::Push(..), &Method::DELETE) => Some(Operation::DeletePush),
            (Self::ExtendedCard, &Method::GET | &Method::HEAD) => Some(Operation::ExtendedCard),
            _ => None,
        }
    }

    /// What may be done here.
    pub(super) fn allowed(&self) -> &'static str {
        match self {
            Self::Send | Self::Stream | Self::Cancel(_) => "POST, OPTIONS",
            Self::Tasks | Self::Task(_) | Self::ExtendedCard => "GET, HEAD, OPTIONS",
            Self::Subscribe(_) => "GET, POST, OPTIONS",
            Self::Pushes(_) => "GET, HEAD, POST, OPTIONS",
            Self::Push(..) => "GET, HEAD, DELETE, OPTIONS",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str) -> Option<(Option<String>, Place)> {
        match Route::of(path)? {
            Route { agent, tenant, target: Target::Rest(place) } if agent == "a b" => Some((tenant, place)),
            _ => None,
        }
    }

    // A2A-1
    #[test]
    fn every_path_is_known_with_v1_and_without() {
        let text = str::to_owned;
        for base in ["/a%20b", "/a%20b/v1", "/a%20b/"] {
            for (path, expected) in [
                ("message:send", Place::Send),
                ("message:stream/", Place::Stream),
                ("tasks", Place::Tasks),
                ("tasks/", Place::Tasks),
                ("tasks/x%2Fy", Place::Task(text("x/y"))),
                ("tasks/x:y", Place::Task(text("x:y"))),
                ("tasks/x:cancel", Place::Cancel(text("x"))),
                ("tasks/x:y:subscribe", Place::Subscribe(text("x:y"))),
                ("tasks/x%3Acancel", Place::Cancel(text("x"))),
                ("tasks/:cancel", Place::Task(text(":cancel"))),
                ("tasks/x/pushNotificationConfigs", Place::Pushes(text("x"))),
                ("tasks/x/pushNotificationConfigs/y", Place::Push(text("x"), text("y"))),
                ("extendedAgentCard", Place::ExtendedCard),
                ("card", Place::ExtendedCard),
                ("agent/authenticatedExtendedCard", Place::ExtendedCard),
            ] {
                let path = format!("{base}/{path}");
                assert_eq!(place(&path), Some((None, expected)), "{path}");
            }
            assert_eq!(place(&format!("{base}/t%201/tasks/x")), Some((Some(text("t 1")), Place::Task(text("x")))));
            assert_eq!(place(&format!("{base}/t/message:send")), Some((Some(text("t")), Place::Send)));
        }
    }

    #[test]
    fn the_base_is_json_rpc_and_the_card_is_below_it() {
        let route = |path: &str| Route::of(path).map(|route| route.target);
        for path in ["/a", "/a/", "/a/v1", "/a/v1/"] {
            assert_eq!(route(path), Some(Target::JsonRpc), "{path}");
        }
        for path in ["/a/.well-known/agent-card.json", "/a/v1/.well-known/agent-card.json", "/a/.well-known/agent.json"]
        {
            assert_eq!(route(path), Some(Target::Card), "{path}");
        }
        for path in
            ["/", "", "/a/x", "/a/x/y", "/a/tenant/v1", "/a/tasks/x/y", "/a/t/.well-known/agent.json", "/a/tasks/%ff"]
        {
            assert_eq!(route(path), None, "{path}");
        }
    }
}
