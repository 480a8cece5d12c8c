//! What may be asked of an agent (A2A-4): the operations, the media types and the sizes that its endpoint lists. What is not
//! listed is refused here, before anybody acts upon it.

use ::a2a::types::{Message, Part, PartContent};
use ::a2a::{Error, Kind, Operation, Request, Version};
use model::agent::endpoint::Method;
use model::agent::{Agent, Endpoint};

use super::admission::Way;
use super::{caller::Caller, cards};

/// Whether the request is one that this agent takes from this caller.
pub(crate) fn check(caller: &Caller, endpoint: &Endpoint, way: Way<'_>, request: &Request) -> Result<(), Error> {
    let operation = request.operation();
    if !endpoint.allows(method(operation)) {
        return Err(match operation {
            Operation::SetPush | Operation::GetPush | Operation::ListPush | Operation::DeletePush => {
                Error::new(Kind::PushNotificationNotSupported, "this agent tells nobody of its tasks")
            }
            _ => refused(operation.as_str()),
        });
    }
    match request {
        Request::ExtendedCard(_) if caller.anonymous || !cards::has_extended(endpoint, way) => {
            let kind = match caller.version {
                Version::V03 => Kind::ExtendedCardNotConfigured,
                Version::V10 => Kind::UnsupportedOperation,
            };
            Err(Error::new(kind, "there is no extended card for callers without authentication"))
        }
        Request::List(_) if caller.anonymous => {
            Err(Error::new(Kind::UnsupportedOperation, "callers without authentication cannot list tasks"))
        }
        Request::Send(sent) | Request::Stream(sent) => {
            if sent.configuration.as_ref().is_some_and(|given| given.task_push_notification_config.is_some())
                && !endpoint.allows(Method::SetPush)
            {
                return Err(Error::new(Kind::PushNotificationNotSupported, "this agent tells nobody of its tasks"));
            }
            message(endpoint, &caller.entry.agent, &sent.message)
        }
        _ => Ok(()),
    }
}

/// An operation that is not listed.
pub(crate) fn refused(name: &str) -> Error {
    Error::new(Kind::UnsupportedOperation, format!("this agent does not offer {name}"))
}

fn message(endpoint: &Endpoint, agent: &Agent, message: &Message) -> Result<(), Error> {
    for (at, part) in message.parts.iter().enumerate() {
        let media_type = media_type(part);
        if !endpoint.takes(media_type) {
            let shown: String = media_type.chars().take(100).collect();
            let takes = endpoint.content_types().join(", ");
            let text = format!("message.parts[{at}] is {shown}; this agent takes {takes}");
            return Err(Error::new(Kind::ContentTypeNotSupported, text));
        }
    }
    let limit = endpoint.max_input_size(agent);
    let size: u64 = message.parts.iter().map(size).fold(0, u64::saturating_add);
    if size > limit {
        return Err(too_large("message.parts", limit));
    }
    Ok(())
}

pub(crate) fn too_large(field: &str, limit: u64) -> Error {
    Error::invalid(field, format!("must have at most {limit} bytes"))
}

/// As the part says it, or as it must be.
fn media_type(part: &Part) -> &str {
    let usual = match part.content {
        PartContent::Text(_) => "text/plain",
        PartContent::Data(_) => "application/json",
        PartContent::Raw(_) | PartContent::Url(_) => "application/octet-stream",
    };
    part.media_type.as_deref().map(str::trim).filter(|media_type| !media_type.is_empty()).unwrap_or(usual)
}

fn size(part: &Part) -> u64 {
    let bytes = match &part.content {
        PartContent::Text(text) | PartContent::Url(text) => text.len(),
        PartContent::Raw(bytes) => bytes.len(),
        PartContent::Data(value) => serde_json::to_string(value).map_or(0, |json| json.len()),
    };
    bytes as u64
}

pub(crate) fn method(operation: Operation) -> Method {
    match operation {
        Operation::Send => Method::Send,
        Operation::Stream => Method::Stream,
        Operation::Get => Method::Get,
        Operation::List => Method::List,
        Operation::Cancel => Method::Cancel,
        Operation::Subscribe => Method::Subscribe,
        Operation::SetPush => Method::SetPush,
        Operation::GetPush => Method::GetPush,
        Operation::ListPush => Method::ListPush,
        Operation::DeletePush => Method::DeletePush,
        Operation::ExtendedCard => Method::ExtendedCard,
    }
}

/// The tenant that a request names.
pub(crate) fn tenant(request: &Request) -> Option<&str> {
    let tenant = match request {
        Request::Send(request) | Request::Stream(request) => &request.tenant,
        Request::Get(request) => &request.tenant,
        Request::List(request) => &request.tenant,
        Request::Cancel(request) => &request.tenant,
        Request::Subscribe(request) => &request.tenant,
        Request::SetPush(request) => &request.tenant,
        Request::GetPush(request) => &request.tenant,
        Request::ListPush(request) => &request.tenant,
        Request::DeletePush(request) => &request.tenant,
        Request::ExtendedCard(request) => &request.tenant,
    };
    tenant.as_deref().filter(|tenant| !tenant.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_methods_are_those_of_the_protocol() {
        // A2A-4
        for operation in Operation::ALL {
            assert_eq!(method(operation).as_str(), operation.as_str());
            let old: Option<Method> =
                operation.as_v03().map(|name| serde_json::from_value(serde_json::json!(name)).unwrap());
            assert!(old.is_none_or(|old| old == method(operation)));
        }
    }
}
