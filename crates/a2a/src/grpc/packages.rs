//! The methods of each package and the encoding of their messages, for server and client.

use bytes::Bytes;
use prost::Message;

use crate::proto::{v1, v03};
use crate::types::StreamResponse;
use crate::{Error, ErrorKind, Operation, OperationRequest, OperationResponse, Version};

/// A decoded request. Errors of its content are reported only after the caller is authorized.
pub(super) struct DecodedRequest {
    /// The tenant of the message. `None` if it is empty, and always in 0.3.
    pub(super) tenant: Option<String>,
    pub(super) request: Result<OperationRequest, Error>,
}

/// Invokes a macro with every operation that both packages have, and its request types in `lf.a2a.v1` and `a2a.v1`.
macro_rules! requests {
    ($macro:ident) => {
        $macro! {
            Send SendMessageRequest SendMessageRequest,
            Stream SendMessageRequest SendMessageRequest,
            Get GetTaskRequest GetTaskRequest,
            Cancel CancelTaskRequest CancelTaskRequest,
            Subscribe SubscribeToTaskRequest TaskSubscriptionRequest,
            SetPush TaskPushNotificationConfig CreateTaskPushNotificationConfigRequest,
            GetPush GetTaskPushNotificationConfigRequest GetTaskPushNotificationConfigRequest,
            ListPush ListTaskPushNotificationConfigsRequest ListTaskPushNotificationConfigRequest,
            DeletePush DeleteTaskPushNotificationConfigRequest DeleteTaskPushNotificationConfigRequest,
            ExtendedCard GetExtendedAgentCardRequest GetAgentCardRequest,
        }
    };
}

/// Returns the full name of the service of a version.
pub(crate) fn service(version: Version) -> &'static str {
    match version {
        Version::V10 => "lf.a2a.v1.A2AService",
        Version::V03 => "a2a.v1.A2AService",
    }
}

/// Returns the method of an operation. In 0.3, subscribing, listing push configurations and the extended card have
/// other names. Returns `None` for listing tasks in 0.3, which does not have it.
pub(crate) fn method(version: Version, operation: Operation) -> Option<&'static str> {
    match (version, operation) {
        (Version::V10, operation) => Some(operation.as_str()),
        (Version::V03, Operation::List) => None,
        (Version::V03, Operation::Subscribe) => Some("TaskSubscription"),
        (Version::V03, Operation::ListPush) => Some("ListTaskPushNotificationConfig"),
        (Version::V03, Operation::ExtendedCard) => Some("GetAgentCard"),
        (Version::V03, operation) => Some(operation.as_str()),
    }
}

/// Returns the operation of a method, or `None` if the method is unknown.
pub(super) fn operation(version: Version, name: &str) -> Option<Operation> {
    Operation::ALL.into_iter().find(|operation| method(version, *operation) == Some(name))
}

fn decode<P: Message + Default>(message: Bytes) -> Result<P, Error> {
    P::decode(message).map_err(|error| Error::new(ErrorKind::Parse, format!("the message cannot be decoded: {error}")))
}

fn encode(message: &impl Message) -> Bytes {
    message.encode_to_vec().into()
}

/// Returns the error for an unknown method.
pub(super) fn method_not_found() -> Error {
    Error::new(ErrorKind::MethodNotFound, "the method was not found")
}

/// Decodes a request and its tenant. Fails with `Parse` if the bytes are not a message of the operation, and with
/// `MethodNotFound` for listing tasks in 0.3. Invalid content is not a failure here: it is the error in `request`.
pub(super) fn decode_request(version: Version, operation: Operation, message: Bytes) -> Result<DecodedRequest, Error> {
    // Only messages of 1.x have a tenant.
    macro_rules! with_tenant {
        ($message:ident, $operation:ident) => {{
            let message: v1::$message = decode(message)?;
            let tenant = Some(message.tenant.clone()).filter(|tenant| !tenant.is_empty());
            DecodedRequest { tenant, request: message.try_into().map(OperationRequest::$operation) }
        }};
    }
    macro_rules! decoded {
        ($($operation:ident $v1:ident $v03:ident,)*) => {
            match (version, operation) {
                $((Version::V10, Operation::$operation) => with_tenant!($v1, $operation),)*
                (Version::V10, Operation::List) => with_tenant!(ListTasksRequest, List),
                $((Version::V03, Operation::$operation) => {
                    let request = decode::<v03::$v03>(message)?.try_into().map(OperationRequest::$operation);
                    DecodedRequest { tenant: None, request }
                })*
                (Version::V03, Operation::List) => return Err(method_not_found()),
            }
        };
    }
    Ok(requests!(decoded))
}

/// Returns the encoded request, or `None` for listing tasks in 0.3, which does not have it.
pub(crate) fn encode_request(version: Version, request: OperationRequest) -> Option<Bytes> {
    macro_rules! encoded {
        ($($operation:ident $v1:ident $v03:ident,)*) => {
            match (version, request) {
                $((Version::V10, OperationRequest::$operation(request)) => encode(&v1::$v1::from(request)),
                (Version::V03, OperationRequest::$operation(request)) => encode(&v03::$v03::from(request)),)*
                (Version::V10, OperationRequest::List(request)) => encode(&v1::ListTasksRequest::from(request)),
                (Version::V03, OperationRequest::List(_)) => return None,
            }
        };
    }
    Some(requests!(encoded))
}

/// Returns the encoded response, or `None` if it does not match the operation. A deletion is an empty message. A list
/// of tasks is always encoded in 1.x. Streams are not encoded here.
pub(super) fn encode_response(version: Version, operation: Operation, response: OperationResponse) -> Option<Bytes> {
    use Operation::{Cancel, DeletePush, ExtendedCard, Get, GetPush, List, ListPush, Send, SetPush};
    macro_rules! encoded {
        ($response:expr, $v1:ident, $v03:ident) => {
            match version {
                Version::V10 => encode(&v1::$v1::from($response)),
                Version::V03 => encode(&v03::$v03::from($response)),
            }
        };
    }
    Some(match (operation, response) {
        (Send, OperationResponse::Sent(sent)) => encoded!(sent, SendMessageResponse, SendMessageResponse),
        (Get | Cancel, OperationResponse::Task(task)) => encoded!(task, Task, Task),
        (List, OperationResponse::Tasks(tasks)) => encode(&v1::ListTasksResponse::from(tasks)),
        (SetPush | GetPush, OperationResponse::PushConfig(push)) => {
            encoded!(push, TaskPushNotificationConfig, TaskPushNotificationConfig)
        }
        (ListPush, OperationResponse::PushConfigs(pushes)) => {
            encoded!(pushes, ListTaskPushNotificationConfigsResponse, ListTaskPushNotificationConfigResponse)
        }
        (DeletePush, OperationResponse::Deleted) => Bytes::new(),
        (ExtendedCard, OperationResponse::Card(card)) => encoded!(*card, AgentCard, AgentCard),
        _ => return None,
    })
}

/// Decodes a response. The content of a deletion is ignored. Fails with `Parse` if the bytes are not a response to the
/// operation, and with `InvalidParams` if a field is invalid. Fails with `Internal` for a streaming operation.
pub(crate) fn decode_response(
    version: Version,
    operation: Operation,
    message: Bytes,
) -> Result<OperationResponse, Error> {
    macro_rules! decoded {
        ($v1:ident, $v03:ident) => {
            match version {
                Version::V10 => decode::<v1::$v1>(message)?.try_into()?,
                Version::V03 => decode::<v03::$v03>(message)?.try_into()?,
            }
        };
    }
    Ok(match operation {
        Operation::Send => OperationResponse::Sent(decoded!(SendMessageResponse, SendMessageResponse)),
        Operation::Get | Operation::Cancel => OperationResponse::Task(decoded!(Task, Task)),
        Operation::List => OperationResponse::Tasks(decode::<v1::ListTasksResponse>(message)?.try_into()?),
        Operation::SetPush | Operation::GetPush => {
            OperationResponse::PushConfig(decoded!(TaskPushNotificationConfig, TaskPushNotificationConfig))
        }
        Operation::ListPush => OperationResponse::PushConfigs(decoded!(
            ListTaskPushNotificationConfigsResponse,
            ListTaskPushNotificationConfigResponse
        )),
        Operation::DeletePush => OperationResponse::Deleted,
        Operation::ExtendedCard => OperationResponse::Card(Box::new(decoded!(AgentCard, AgentCard))),
        Operation::Stream | Operation::Subscribe => {
            return Err(Error::new(ErrorKind::Internal, "a streaming operation has no single response"));
        }
    })
}

/// Returns one encoded message of a stream.
pub(super) fn encode_update(version: Version, update: StreamResponse) -> Bytes {
    match version {
        Version::V10 => encode(&v1::StreamResponse::from(update)),
        Version::V03 => encode(&v03::StreamResponse::from(update)),
    }
}

/// Decodes one message of a stream. The flag is the `final` flag of status updates in 0.3, and always false in 1.x.
/// Fails with `Parse` if the bytes are not an update, and with `InvalidParams` if a field is invalid.
pub(crate) fn decode_update(version: Version, message: Bytes) -> Result<(StreamResponse, bool), Error> {
    match version {
        Version::V10 => Ok((decode::<v1::StreamResponse>(message)?.try_into()?, false)),
        Version::V03 => {
            let update: v03::StreamResponse = decode(message)?;
            let is_final = update.is_final();
            Ok((update.try_into()?, is_final))
        }
    }
}
