//! What each package calls the operations, and which messages go with them, for both ends of a call.

use bytes::Bytes;
use prost::Message;

use super::frame::framed;
use crate::proto::{v1, v03};
use crate::types::StreamResponse;
use crate::v03::rest::python;
use crate::{Answer, Error, Kind, Operation, Request, Version};

/// A request as it came. The content is only told to those who were admitted, and so is what is wrong with it.
pub(super) struct Asked {
    pub(super) tenant: Option<String>,
    pub(super) request: Result<Request, Error>,
}

pub(crate) fn service(version: Version) -> &'static str {
    match version {
        Version::V10 => "lf.a2a.v1.A2AService",
        Version::V03 => "a2a.v1.A2AService",
    }
}

/// As the package calls it; nothing, where it cannot do that.
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

pub(super) fn decode(version: Version, operation: Operation, message: Bytes) -> Result<Asked, Error> {
    match version {
        Version::V10 => decode_v1(operation, message),
        Version::V03 => decode_v03(operation, message),
    }
}

fn read<P: Message + Default>(message: Bytes) -> Result<P, Error> {
    P::decode(message).map_err(|error| Error::new(Kind::Parse, format!("the message cannot be read: {error}")))
}

fn decode_v1(operation: Operation, message: Bytes) -> Result<Asked, Error> {
    /// Reads it, takes the tenant out to look at it, and converts the rest.
    macro_rules! asked {
        ($message:ident, $to:expr) => {{
            let message: v1::$message = read(message)?;
            let tenant = Some(message.tenant.clone()).filter(|tenant| !tenant.is_empty());
            Ok(Asked { tenant, request: message.try_into().map_err(Error::from).map($to) })
        }};
    }
    match operation {
        Operation::Send => asked!(SendMessageRequest, Request::Send),
        Operation::Stream => asked!(SendMessageRequest, Request::Stream),
        Operation::Get => asked!(GetTaskRequest, Request::Get),
        Operation::List => asked!(ListTasksRequest, Request::List),
        Operation::Cancel => asked!(CancelTaskRequest, Request::Cancel),
        Operation::Subscribe => asked!(SubscribeToTaskRequest, Request::Subscribe),
        Operation::SetPush => asked!(TaskPushNotificationConfig, Request::SetPush),
        Operation::GetPush => asked!(GetTaskPushNotificationConfigRequest, Request::GetPush),
        Operation::ListPush => asked!(ListTaskPushNotificationConfigsRequest, Request::ListPush),
        Operation::DeletePush => asked!(DeleteTaskPushNotificationConfigRequest, Request::DeletePush),
        Operation::ExtendedCard => asked!(GetExtendedAgentCardRequest, Request::ExtendedCard),
    }
}

fn decode_v03(operation: Operation, message: Bytes) -> Result<Asked, Error> {
    macro_rules! asked {
        ($message:ident, $to:expr) => {{
            let message: v03::$message = read(message)?;
            Ok(Asked { tenant: None, request: message.try_into().map_err(Error::from).map($to) })
        }};
    }
    match operation {
        Operation::Send => asked!(SendMessageRequest, Request::Send),
        Operation::Stream => asked!(SendMessageRequest, Request::Stream),
        Operation::Get => asked!(GetTaskRequest, Request::Get),
        Operation::List => Err(Error::new(Kind::MethodNotFound, "there is no such method")),
        Operation::Cancel => asked!(CancelTaskRequest, Request::Cancel),
        Operation::Subscribe => asked!(TaskSubscriptionRequest, Request::Subscribe),
        Operation::SetPush => asked!(CreateTaskPushNotificationConfigRequest, Request::SetPush),
        Operation::GetPush => asked!(GetTaskPushNotificationConfigRequest, Request::GetPush),
        Operation::ListPush => asked!(ListTaskPushNotificationConfigRequest, Request::ListPush),
        Operation::DeletePush => asked!(DeleteTaskPushNotificationConfigRequest, Request::DeletePush),
        Operation::ExtendedCard => asked!(GetAgentCardRequest, Request::ExtendedCard),
    }
}

/// What an SDK that writes Base64 into bytes meant.
pub(super) fn meant(request: &mut Request) {
    if let Request::Send(request) | Request::Stream(request) = request {
        python::read(&mut request.message);
    }
}

/// The answer to a call; nothing, where it is not one to this operation.
pub(super) fn encode(version: Version, operation: Operation, answer: Answer) -> Option<Bytes> {
    use Operation::{Cancel, DeletePush, ExtendedCard, Get, GetPush, List, ListPush, Send, SetPush};
    macro_rules! framed {
        ($answer:expr, $v1:ident, $v03:ident) => {
            Some(match version {
                Version::V10 => framed(&v1::$v1::from($answer)),
                Version::V03 => framed(&v03::$v03::from($answer)),
            })
        };
    }
    match (operation, answer) {
        (Send, Answer::Sent(sent)) => framed!(sent, SendMessageResponse, SendMessageResponse),
        (Get | Cancel, Answer::Task(task)) => framed!(task, Task, Task),
        (List, Answer::Tasks(tasks)) => Some(framed(&v1::ListTasksResponse::from(tasks))),
        (SetPush | GetPush, Answer::Push(push)) => {
            framed!(push, TaskPushNotificationConfig, TaskPushNotificationConfig)
        }
        (ListPush, Answer::Pushes(pushes)) => {
            framed!(pushes, ListTaskPushNotificationConfigsResponse, ListTaskPushNotificationConfigResponse)
        }
        (DeletePush, Answer::Deleted) => Some(framed(&())),
        (ExtendedCard, Answer::Card(card)) => framed!(*card, AgentCard, AgentCard),
        _ => None,
    }
}

/// One message of a stream.
pub(super) fn update(version: Version, update: StreamResponse) -> Bytes {
    match version {
        Version::V10 => framed(&v1::StreamResponse::from(update)),
        Version::V03 => framed(&v03::StreamResponse::from(update)),
    }
}

/// A request, as it is sent; nothing, where the package has no word for it.
pub(crate) fn ask(version: Version, request: Request) -> Option<Bytes> {
    macro_rules! framed {
        ($request:expr, $v1:ident, $v03:ident) => {
            match version {
                Version::V10 => framed(&v1::$v1::from($request)),
                Version::V03 => framed(&v03::$v03::from($request)),
            }
        };
    }
    Some(match request {
        Request::Send(request) | Request::Stream(request) => framed!(request, SendMessageRequest, SendMessageRequest),
        Request::Get(request) => framed!(request, GetTaskRequest, GetTaskRequest),
        Request::List(_) if version == Version::V03 => return None,
        Request::List(request) => framed(&v1::ListTasksRequest::from(request)),
        Request::Cancel(request) => framed!(request, CancelTaskRequest, CancelTaskRequest),
        Request::Subscribe(request) => framed!(request, SubscribeToTaskRequest, TaskSubscriptionRequest),
        Request::SetPush(config) => {
            framed!(config, TaskPushNotificationConfig, CreateTaskPushNotificationConfigRequest)
        }
        Request::GetPush(request) => {
            framed!(request, GetTaskPushNotificationConfigRequest, GetTaskPushNotificationConfigRequest)
        }
        Request::ListPush(request) => {
            framed!(request, ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigRequest)
        }
        Request::DeletePush(request) => {
            framed!(request, DeleteTaskPushNotificationConfigRequest, DeleteTaskPushNotificationConfigRequest)
        }
        Request::ExtendedCard(request) => framed!(request, GetExtendedAgentCardRequest, GetAgentCardRequest),
    })
}

/// What was answered to a call.
pub(crate) fn answer(version: Version, operation: Operation, message: Bytes) -> Result<Answer, Error> {
    macro_rules! read {
        ($v1:ident, $v03:ident) => {
            match version {
                Version::V10 => read::<v1::$v1>(message)?.try_into()?,
                Version::V03 => read::<v03::$v03>(message)?.try_into()?,
            }
        };
    }
    Ok(match operation {
        Operation::Send => Answer::Sent(read!(SendMessageResponse, SendMessageResponse)),
        Operation::Get | Operation::Cancel => Answer::Task(read!(Task, Task)),
        Operation::List => Answer::Tasks(read::<v1::ListTasksResponse>(message)?.try_into()?),
        Operation::SetPush | Operation::GetPush => {
            Answer::Push(read!(TaskPushNotificationConfig, TaskPushNotificationConfig))
        }
        Operation::ListPush => {
            Answer::Pushes(read!(ListTaskPushNotificationConfigsResponse, ListTaskPushNotificationConfigResponse))
        }
        Operation::DeletePush => Answer::Deleted,
        Operation::ExtendedCard => Answer::Card(Box::new(read!(AgentCard, AgentCard))),
        Operation::Stream | Operation::Subscribe => {
            return Err(Error::new(Kind::Internal, "a stream is not answered at once"));
        }
    })
}

/// What one message of a stream tells, and whether it says to be the last.
pub(crate) fn news(version: Version, message: Bytes) -> Result<(StreamResponse, bool), Error> {
    match version {
        Version::V10 => Ok((read::<v1::StreamResponse>(message)?.try_into()?, false)),
        Version::V03 => {
            let update: v03::StreamResponse = read(message)?;
            let is_final = matches!(&update.payload, Some(v03::Update::Status(event)) if event.r#final);
            Ok((update.try_into()?, is_final))
        }
    }
}
