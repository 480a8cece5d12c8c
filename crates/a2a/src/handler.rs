//! What stands behind every binding: one handler, one kind of request, one kind of answer.

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

/// What happens to a task, until there is nothing more to tell.
pub type Updates = BoxStream<'static, Result<StreamResponse, Error>>;

/// Whoever answers for the agents.
pub trait Handler: Clone + Send + Sync + 'static {
    /// Who calls, and whom.
    type Caller: Send + 'static;

    /// Whether this call may be made at all. Nothing of its content is believed before.
    fn admit(&self, call: &Call) -> impl Future<Output = Result<Self::Caller, Denied>> + Send;

    fn handle(&self, caller: Self::Caller, request: Request) -> impl Future<Output = Result<Answer, Error>> + Send;

    /// The card that everyone may see.
    fn card(&self, call: &Call) -> impl Future<Output = Result<Card, Denied>> + Send;

    /// Which of the extensions that the caller wants take part; nobody is asked where none is wanted.
    fn activates(&self, _call: &Call) -> Vec<String> {
        Vec::new()
    }

    /// How large a request may be, in bytes.
    fn max_request(&self) -> usize;
}

/// The circumstances of a request.
#[derive(Debug)]
pub struct Call {
    /// As the path, the tenant or the metadata name it; `None`: nobody in particular.
    pub agent: Option<String>,
    pub binding: Binding,
    pub version: Version,
    /// The tenant that a path names beside the agent. Requests carry one of their own, too.
    pub tenant: Option<String>,
    /// The extensions that the caller would like to use.
    pub extensions_wanted: Vec<String>,
    pub headers: HeaderMap,
    /// What layers further out have noted about the request.
    pub extensions: Extensions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binding {
    JsonRpc,
    HttpJson,
    Grpc,
}

impl Binding {
    pub const ALL: [Self; 3] = [Self::JsonRpc, Self::HttpJson, Self::Grpc];

    /// As cards call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::HttpJson => "HTTP+JSON",
            Self::Grpc => "GRPC",
        }
    }
}

/// Why a call is not answered, in words of HTTP and gRPC rather than of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// There is no such agent, or not for this caller.
    NoAgent,
    /// `challenge` is what `WWW-Authenticate` says.
    Unauthenticated {
        challenge: String,
    },
    Forbidden(String),
    TooMany {
        retry_after: Duration,
    },
    /// The caller is known, what is asked for is not offered.
    Refused(Error),
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
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

/// The name of what is asked for.
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

    /// As version 1.x calls it, in JSON-RPC and gRPC alike.
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

    /// As 0.3 calls it in JSON-RPC; it cannot list.
    pub fn as_v03(self) -> Option<&'static str> {
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

    /// Whether its answer is a stream.
    pub fn streams(self) -> bool {
        matches!(self, Self::Stream | Self::Subscribe)
    }
}

impl Request {
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

/// What is answered.
pub enum Answer {
    Sent(SendMessageResponse),
    Updates(Updates),
    Task(Task),
    Tasks(ListTasksResponse),
    Push(TaskPushNotificationConfig),
    Pushes(ListTaskPushNotificationConfigsResponse),
    /// It is gone, and there is nothing to say about it.
    Deleted,
    Card(Box<AgentCard>),
}

/// A card, and since when it says what it says.
#[derive(Clone, Debug)]
pub struct Card {
    pub card: AgentCard,
    /// Seconds since 1970.
    pub modified: u64,
}
