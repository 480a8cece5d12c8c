//! Checks requests against the operations, media types and sizes that the endpoint of an agent allows (A2A-4). Other
//! requests are rejected before they have any effect.

use ::a2a::types::{Message, Part, PartContent};
use ::a2a::{Error, ErrorKind, Operation, OperationRequest, Version};
use model::agent::endpoint::A2aMethod;
use model::agent::{Agent, Endpoint};

use super::authn::CallerAuth;
use super::{caller::A2aCaller, cards};

/// Checks a request of a caller. `auth` is the authentication method of the endpoint. Fails with `UnsupportedOperation`
/// if the operation is disabled or an anonymous caller lists tasks. Fails with `PushNotificationNotSupported` if a push
/// operation is disabled, or a message has a push configuration and setting one is disabled.
///
/// An extended card that is enabled is rejected if the caller or `auth` is anonymous: with `ExtendedCardNotConfigured`
/// in 0.3, `UnsupportedOperation` in 1.x. Messages are checked by [`check_message`].
pub(crate) fn check(
    caller: &A2aCaller,
    endpoint: &Endpoint,
    auth: CallerAuth<'_>,
    request: &OperationRequest,
) -> Result<(), Error> {
    let operation = request.operation();
    if !endpoint.allows(method(operation)) {
        return Err(match operation {
            Operation::SetPush | Operation::GetPush | Operation::ListPush | Operation::DeletePush => {
                Error::new(ErrorKind::PushNotificationNotSupported, "push notifications are disabled for this agent")
            }
            _ => not_offered(operation.as_str()),
        });
    }
    match request {
        OperationRequest::ExtendedCard(_) if caller.is_anonymous || !cards::has_extended(endpoint, auth) => {
            let kind = match caller.version {
                Version::V03 => ErrorKind::ExtendedCardNotConfigured,
                Version::V10 => ErrorKind::UnsupportedOperation,
            };
            Err(Error::new(kind, "the extended card requires authentication"))
        }
        OperationRequest::List(_) if caller.is_anonymous => {
            Err(Error::new(ErrorKind::UnsupportedOperation, "listing tasks requires authentication"))
        }
        OperationRequest::Send(sent) | OperationRequest::Stream(sent) => {
            if sent.configuration.as_ref().is_some_and(|given| given.task_push_notification_config.is_some())
                && !endpoint.allows(A2aMethod::SetPush)
            {
                return Err(Error::new(
                    ErrorKind::PushNotificationNotSupported,
                    "push notifications are disabled for this agent",
                ));
            }
            check_message(endpoint, &caller.entry.agent, &sent.message)
        }
        _ => Ok(()),
    }
}

/// Returns the error for an operation that the agent does not offer.
pub(crate) fn not_offered(name: &str) -> Error {
    Error::new(ErrorKind::UnsupportedOperation, format!("this agent does not offer {name}"))
}

/// Fails with `ContentTypeNotSupported` for the first part with a media type that the endpoint does not accept. Fails
/// with an invalid `message.parts` if all parts together exceed the maximum input size.
fn check_message(endpoint: &Endpoint, agent: &Agent, message: &Message) -> Result<(), Error> {
    for (index, part) in message.parts.iter().enumerate() {
        let media_type = media_type(part);
        if !endpoint.accepts_media_type(media_type) {
            let shown: String = media_type.chars().take(100).collect();
            let accepted = endpoint.content_types().join(", ");
            let text = format!("message.parts[{index}] has the media type {shown}; this agent accepts {accepted}");
            return Err(Error::new(ErrorKind::ContentTypeNotSupported, text));
        }
    }
    let limit = endpoint.max_input_size(agent);
    let size: u64 = message.parts.iter().map(size).fold(0, u64::saturating_add);
    if size > limit {
        return Err(too_large("message.parts", limit));
    }
    Ok(())
}

/// Returns the error for an input of more than `limit` bytes.
pub(crate) fn too_large(field: &str, limit: u64) -> Error {
    Error::invalid(field, format!("must have at most {limit} bytes"))
}

/// Returns the declared media type of a part, trimmed. If it is missing or blank, returns plain text for text, JSON for
/// data, and `application/octet-stream` for bytes and URLs.
fn media_type(part: &Part) -> &str {
    let default = match part.content {
        PartContent::Text(_) => "text/plain",
        PartContent::Data(_) => "application/json",
        PartContent::Raw(_) | PartContent::Url(_) => "application/octet-stream",
    };
    part.media_type.as_deref().map(str::trim).filter(|media_type| !media_type.is_empty()).unwrap_or(default)
}

/// Returns the size of the content in bytes: of the text, the decoded file, the URL itself, or the data encoded as
/// JSON.
fn size(part: &Part) -> u64 {
    let bytes = match &part.content {
        PartContent::Text(text) | PartContent::Url(text) => text.len(),
        PartContent::Raw(bytes) => bytes.len(),
        PartContent::Data(value) => serde_json::to_string(value).map_or(0, |json| json.len()),
    };
    bytes as u64
}

/// Returns the method in the endpoint settings that enables the operation. Each operation has its own.
pub(crate) fn method(operation: Operation) -> A2aMethod {
    match operation {
        Operation::Send => A2aMethod::Send,
        Operation::Stream => A2aMethod::Stream,
        Operation::Get => A2aMethod::Get,
        Operation::List => A2aMethod::List,
        Operation::Cancel => A2aMethod::Cancel,
        Operation::Subscribe => A2aMethod::Subscribe,
        Operation::SetPush => A2aMethod::SetPush,
        Operation::GetPush => A2aMethod::GetPush,
        Operation::ListPush => A2aMethod::ListPush,
        Operation::DeletePush => A2aMethod::DeletePush,
        Operation::ExtendedCard => A2aMethod::ExtendedCard,
    }
}

/// Returns the tenant of a request, or `None` if it is missing or empty.
pub(crate) fn tenant(request: &OperationRequest) -> Option<&str> {
    let tenant = match request {
        OperationRequest::Send(request) | OperationRequest::Stream(request) => &request.tenant,
        OperationRequest::Get(request) => &request.tenant,
        OperationRequest::List(request) => &request.tenant,
        OperationRequest::Cancel(request) => &request.tenant,
        OperationRequest::Subscribe(request) => &request.tenant,
        OperationRequest::SetPush(request) => &request.tenant,
        OperationRequest::GetPush(request) => &request.tenant,
        OperationRequest::ListPush(request) => &request.tenant,
        OperationRequest::DeletePush(request) => &request.tenant,
        OperationRequest::ExtendedCard(request) => &request.tenant,
    };
    tenant.as_deref().filter(|tenant| !tenant.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_names_match_the_protocol() {
        // A2A-4
        for operation in Operation::ALL {
            assert_eq!(method(operation).as_str(), operation.as_str());
            let old: Option<A2aMethod> =
                operation.v03_method().map(|name| serde_json::from_value(serde_json::json!(name)).unwrap());
            assert!(old.is_none_or(|old| old == method(operation)));
        }
    }
}
