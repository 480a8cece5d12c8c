//! The interface between the bindings and the application: the handler, its requests and its responses.

use std::future::Future;
use std::time::Duration;

use a2a_types::{
    AgentCard, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest, GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, ListTasksRequest, ListTasksResponse, SendMessageRequest,
    SendMessageResponse, StreamResponse, SubscribeToTaskRequest, Task, TaskPushNotificationConfig,
};
use futures::stream::BoxStream;
use http::{Extensions, HeaderMap};

use crate::{Error, Version};

/// The updates of a task. The stream ends with the last update or with an error.
pub type UpdateStream = BoxStream<'static, Result<StreamResponse, Error>>;

/// Handles the requests of all bindings for all agents.
pub trait AgentHandler: Clone + Send + Sync + 'static {
    /// The authorized caller and the agent that is called.
    type Caller: Send + 'static;

    /// Authorizes a call before its content is decoded. Fails if the caller may not make it.
    fn authorize(&self, call: &CallContext) -> impl Future<Output = Result<Self::Caller, CallRejection>> + Send;

    /// Handles a valid request of an authorized caller and returns its response. Fails with the error to report.
    fn handle(
        &self,
        caller: Self::Caller,
        request: OperationRequest,
    ) -> impl Future<Output = Result<OperationResponse, Error>> + Send;

    /// Returns the public card of an agent. Fails if the agent is unknown.
    fn card(&self, call: &CallContext) -> impl Future<Output = Result<PublishedCard, CallRejection>> + Send;

    /// Returns the requested extensions that are active for this call. It is not called if none are requested.
    fn active_extensions(&self, _call: &CallContext) -> Vec<String> {
        Vec::new()
    }

    /// Returns the maximum size of a request, in bytes.
    fn max_request_bytes(&self) -> usize;
}

/// The properties of a call that are known before its content is decoded.
#[derive(Debug)]
pub struct CallContext {
    /// The agent that the path, the tenant or the metadata names. `None` means the default agent.
    pub agent: Option<String>,
    pub binding: Binding,
    pub version: Version,
    /// The tenant in the path, if it names one beside the agent. Requests also have their own tenant field.
    pub tenant: Option<String>,
    /// The URIs of the extensions that the caller requests.
    pub requested_extensions: Vec<String>,
    pub headers: HeaderMap,
    /// The values that outer layers attached to the request.
    pub extensions: Extensions,
}

/// An encoding of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binding {
    JsonRpc,
    HttpJson,
    Grpc,
}

impl Binding {
    /// All bindings.
    pub const ALL: [Self; 3] = [Self::JsonRpc, Self::HttpJson, Self::Grpc];

    /// Returns the name of the binding in agent cards.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::HttpJson => "HTTP+JSON",
            Self::Grpc => "GRPC",
        }
    }
}

/// The reason why a call is rejected. It is reported by the means of HTTP and gRPC, not by a protocol error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallRejection {
    /// The agent does not exist, or this caller may not see it.
    UnknownAgent,
    /// The credentials are missing or invalid. `challenge` is the value of `WWW-Authenticate`.
    Unauthenticated {
        challenge: String,
    },
    Forbidden(String),
    RateLimited {
        retry_after: Duration,
    },
    /// The caller is authorized, but the agent does not offer this call. Reported as a protocol error.
    NotOffered(Error),
}

/// A decoded request of any binding and version.
#[derive(Clone, Debug, PartialEq)]
pub enum OperationRequest {
    Send(SendMessageRequest),
    Stream(SendMessageRequest),
    Get(GetTaskRequest),
    List(ListTasksRequest),
    Cancel(CancelTaskRequest),
    Subscribe(SubscribeToTaskRequest),
    SetPush(TaskPushNotificationConfig),
    GetPush(GetTaskPushNotificationConfigRequest),
    ListPush(ListTaskPushNotificationConfigsRequest),
    DeletePush(DeleteTaskPushNotificationConfigRequest),
    ExtendedCard(GetExtendedAgentCardRequest),
}

/// An operation of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    Send,
    Stream,
    Get,
    List,
    Cancel,
    Subscribe,
    SetPush,
    GetPush,
    ListPush,
    DeletePush,
    ExtendedCard,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 11] = [
        Self::Send,
        Self::Stream,
        Self::Get,
        Self::List,
        Self::Cancel,
        Self::Subscribe,
        Self::SetPush,
        Self::GetPush,
        Self::ListPush,
        Self::DeletePush,
        Self::ExtendedCard,
    ];

    /// Returns the name of the method in version 1.x, which is the same in JSON-RPC and gRPC.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Send => "SendMessage",
            Self::Stream => "SendStreamingMessage",
            Self::Get => "GetTask",
            Self::List => "ListTasks",
            Self::Cancel => "CancelTask",
            Self::Subscribe => "SubscribeToTask",
            Self::SetPush => "CreateTaskPushNotificationConfig",
            Self::GetPush => "GetTaskPushNotificationConfig",
            Self::ListPush => "ListTaskPushNotificationConfigs",
            Self::DeletePush => "DeleteTaskPushNotificationConfig",
            Self::ExtendedCard => "GetExtendedAgentCard",
        }
    }

    /// Returns the name of the JSON-RPC method in 0.3, or `None` for listing tasks, which 0.3 does not have.
    pub fn v03_method(self) -> Option<&'static str> {
        match self {
            Self::Send => Some("message/send"),
            Self::Stream => Some("message/stream"),
            Self::Get => Some("tasks/get"),
            Self::List => None,
            Self::Cancel => Some("tasks/cancel"),
            Self::Subscribe => Some("tasks/resubscribe"),
            Self::SetPush => Some("tasks/pushNotificationConfig/set"),
            Self::GetPush => Some("tasks/pushNotificationConfig/get"),
            Self::ListPush => Some("tasks/pushNotificationConfig/list"),
            Self::DeletePush => Some("tasks/pushNotificationConfig/delete"),
            Self::ExtendedCard => Some("agent/getAuthenticatedExtendedCard"),
        }
    }

    /// Returns whether the response is a stream.
    pub fn is_streaming(self) -> bool {
        matches!(self, Self::Stream | Self::Subscribe)
    }
}

impl OperationRequest {
    /// Returns the operation of the request.
    pub fn operation(&self) -> Operation {
        match self {
            Self::Send(_) => Operation::Send,
            Self::Stream(_) => Operation::Stream,
            Self::Get(_) => Operation::Get,
            Self::List(_) => Operation::List,
            Self::Cancel(_) => Operation::Cancel,
            Self::Subscribe(_) => Operation::Subscribe,
            Self::SetPush(_) => Operation::SetPush,
            Self::GetPush(_) => Operation::GetPush,
            Self::ListPush(_) => Operation::ListPush,
            Self::DeletePush(_) => Operation::DeletePush,
            Self::ExtendedCard(_) => Operation::ExtendedCard,
        }
    }
}

/// The response to a request, before it is encoded.
pub enum OperationResponse {
    Sent(SendMessageResponse),
    Updates(UpdateStream),
    Task(Task),
    Tasks(ListTasksResponse),
    PushConfig(TaskPushNotificationConfig),
    PushConfigs(ListTaskPushNotificationConfigsResponse),
    /// The object was deleted. The response is empty.
    Deleted,
    Card(Box<AgentCard>),
}

/// An agent card with the time of its last change.
#[derive(Clone, Debug)]
pub struct PublishedCard {
    pub card: AgentCard,
    /// The time of the last change, in seconds since 1970.
    pub modified: u64,
    /// Only some callers may see the card.
    pub is_restricted: bool,
}
