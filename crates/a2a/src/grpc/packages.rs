//! The methods of each package and their messages, for both ends of a call.

use bytes::Bytes;
use prost::Message;

use crate::proto::{v1, v03};
use crate::types::StreamResponse;
use crate::{Answer, Error, Kind, Operation, Request, Version};

/// A request as it came. Its content is only looked at once the caller is admitted, and so are its errors.
pub(super) struct Decoded {
    pub(super) tenant: Option<String>,
    pub(super) request: Result<Request, Error>,
}

/// Passes every operation that both packages have to a macro, with its request in `lf.a2a.v1` and in `a2a.v1`.
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

pub(crate) fn service(version: Version) -> &'static str {
    match version {
        Version::V10 => "lf.a2a.v1.A2AService",
        Version::V03 => "a2a.v1.A2AService",
    }
}

/// Returns the name of an operation in a package, or nothing if the package does not have it.
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

pub(super) fn operation(version: Version, name: &str) -> Option<Operation> {
    Operation::ALL.into_iter().find(|operation| method(version, *operation) == Some(name))
}

fn read<P: Message + Default>(message: Bytes) -> Result<P, Error> {
    P::decode(message).map_err(|error| Error::new(Kind::Parse, format!("the message cannot be read: {error}")))
}

fn written(message: &impl Message) -> Bytes {
    message.encode_to_vec().into()
}

pub(super) fn no_such_method() -> Error {
    Error::new(Kind::MethodNotFound, "there is no such method")
}

pub(super) fn decode_request(version: Version, operation: Operation, message: Bytes) -> Result<Decoded, Error> {
    /// Only messages of 1.x have a tenant.
    macro_rules! with_tenant {
        ($message:ident, $operation:ident) => {{
            let message: v1::$message = read(message)?;
            let tenant = Some(message.tenant.clone()).filter(|tenant| !tenant.is_empty());
            Decoded { tenant, request: message.try_into().map(Request::$operation) }
        }};
    }
    macro_rules! decoded {
        ($($operation:ident $v1:ident $v03:ident,)*) => {
            match (version, operation) {
                $((Version::V10, Operation::$operation) => with_tenant!($v1, $operation),)*
                (Version::V10, Operation::List) => with_tenant!(ListTasksRequest, List),
                $((Version::V03, Operation::$operation) => {
                    Decoded { tenant: None, request: read::<v03::$v03>(message)?.try_into().map(Request::$operation) }
                })*
                (Version::V03, Operation::List) => return Err(no_such_method()),
            }
        };
    }
    Ok(requests!(decoded))
}

/// Returns a request as it is sent, or nothing if the package does not have it.
pub(crate) fn encode_request(version: Version, request: Request) -> Option<Bytes> {
    macro_rules! encoded {
        ($($operation:ident $v1:ident $v03:ident,)*) => {
            match (version, request) {
                $((Version::V10, Request::$operation(request)) => written(&v1::$v1::from(request)),
                (Version::V03, Request::$operation(request)) => written(&v03::$v03::from(request)),)*
                (Version::V10, Request::List(request)) => written(&v1::ListTasksRequest::from(request)),
                (Version::V03, Request::List(_)) => return None,
            }
        };
    }
    Some(requests!(encoded))
}

/// Returns the answer to a call, or nothing if it is not one to this operation.
pub(super) fn encode_answer(version: Version, operation: Operation, answer: Answer) -> Option<Bytes> {
    use Operation::{Cancel, DeletePush, ExtendedCard, Get, GetPush, List, ListPush, Send, SetPush};
    macro_rules! encoded {
        ($answer:expr, $v1:ident, $v03:ident) => {
            match version {
                Version::V10 => written(&v1::$v1::from($answer)),
                Version::V03 => written(&v03::$v03::from($answer)),
            }
        };
    }
    Some(match (operation, answer) {
        (Send, Answer::Sent(sent)) => encoded!(sent, SendMessageResponse, SendMessageResponse),
        (Get | Cancel, Answer::Task(task)) => encoded!(task, Task, Task),
        (List, Answer::Tasks(tasks)) => written(&v1::ListTasksResponse::from(tasks)),
        (SetPush | GetPush, Answer::Push(push)) => {
            encoded!(push, TaskPushNotificationConfig, TaskPushNotificationConfig)
        }
        (ListPush, Answer::Pushes(pushes)) => {
            encoded!(pushes, ListTaskPushNotificationConfigsResponse, ListTaskPushNotificationConfigResponse)
        }
        (DeletePush, Answer::Deleted) => Bytes::new(),
        (ExtendedCard, Answer::Card(card)) => encoded!(*card, AgentCard, AgentCard),
        _ => return None,
    })
}

/// Reads the answer to a call.
pub(crate) fn decode_answer(version: Version, operation: Operation, message: Bytes) -> Result<Answer, Error> {
    macro_rules! decoded {
        ($v1:ident, $v03:ident) => {
            match version {
                Version::V10 => read::<v1::$v1>(message)?.try_into()?,
                Version::V03 => read::<v03::$v03>(message)?.try_into()?,
            }
        };
    }
    Ok(match operation {
        Operation::Send => Answer::Sent(decoded!(SendMessageResponse, SendMessageResponse)),
        Operation::Get | Operation::Cancel => Answer::Task(decoded!(Task, Task)),
        Operation::List => Answer::Tasks(read::<v1::ListTasksResponse>(message)?.try_into()?),
        Operation::SetPush | Operation::GetPush => {
            Answer::Push(decoded!(TaskPushNotificationConfig, TaskPushNotificationConfig))
        }
        Operation::ListPush => {
            Answer::Pushes(decoded!(ListTaskPushNotificationConfigsResponse, ListTaskPushNotificationConfigResponse))
        }
        Operation::DeletePush => Answer::Deleted,
        Operation::ExtendedCard => Answer::Card(Box::new(decoded!(AgentCard, AgentCard))),
        Operation::Stream | Operation::Subscribe => {
            return Err(Error::new(Kind::Internal, "a stream is not answered at once"));
        }
    })
}

/// Returns one message of a stream.
pub(super) fn encode_update(version: Version, update: StreamResponse) -> Bytes {
    match version {
        Version::V10 => written(&v1::StreamResponse::from(update)),
        Version::V03 => written(&v03::StreamResponse::from(update)),
    }
}

/// Reads one message of a stream. The flag is set where 0.3 says that it is the last.
pub(crate) fn decode_update(version: Version, message: Bytes) -> Result<(StreamResponse, bool), Error> {
    match version {
        Version::V10 => Ok((read::<v1::StreamResponse>(message)?.try_into()?, false)),
        Version::V03 => {
            let update: v03::StreamResponse = read(message)?;
            let is_final = update.is_final();
            Ok((update.try_into()?, is_final))
        }
    }
}
