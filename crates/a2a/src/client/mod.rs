//! A client for A2A agents of version 1.x or 0.3, over JSON-RPC, HTTP+JSON or gRPC. Its interface uses the types of
//! 1.x.
//!
//! [`A2aClient::discover`] fetches an agent card and selects the best interface on it ([`card`]): JSON-RPC before
//! HTTP+JSON, 1.x before 0.3, and gRPC last. Each call is an [`OperationRequest`]. One of [`json_rpc`], [`rest`] and
//! [`grpc`] encodes it. All bindings use one HTTP client ([`http`]), which limits time, sizes and redirects. gRPC uses
//! it as well, with TLS for `https` URLs.
//!
//! Every call fails if the agent cannot be reached in time, reports an error, or sends an invalid response.
//!
//! Cards and responses are not trusted. A card cannot direct the client to another host or from TLS to plain HTTP
//! unless [`ClientOptions::allow_other_hosts`] is set. Sizes are limited, and malformed data is an error. Credentials
//! are sent to the agent only. They are removed from errors and logs, even if the agent repeats them.
//!
//! The program must install a TLS provider of rustls, as for any use of `reqwest`.

pub mod card;
mod card_defaults;
mod error;
mod event_reader;
mod grpc;
mod http;
mod json_rpc;
mod responses;
mod rest;

use std::fmt;
use std::time::Duration;

use ::http::{HeaderMap, HeaderName};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use reqwest::Url;
use secrecy::SecretString;

use crate::types::{
    AgentCard, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest, GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, ListTasksRequest, ListTasksResponse, SendMessageRequest,
    SendMessageResponse, StreamResponse, SubscribeToTaskRequest, Task, TaskPushNotificationConfig,
};
use crate::{Binding, OperationRequest, OperationResponse, Version};

pub use error::Error;

use self::card::SelectedInterface;
use self::http::HttpTransport;

/// The updates of a task. The stream ends after the last possible update, even if the agent keeps the connection open.
/// The updates show whether the task has ended.
pub type TaskUpdates = BoxStream<'static, Result<StreamResponse, Error>>;

/// Options of a client.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    pub auth: Option<ClientAuth>,
    /// Selects only interfaces with this binding.
    pub binding: Option<Binding>,
    /// Selects only interfaces with this version.
    pub version: Option<Version>,
    /// Allows a card to name other hosts, or plain HTTP if it was fetched over TLS. Credentials are sent there as well.
    pub allow_other_hosts: bool,
    /// The URIs of the extensions to request.
    pub extensions: Vec<String>,
    /// Additional headers of every call, such as the metadata that names an agent in gRPC of 0.3. Secrets belong in
    /// `auth`.
    pub headers: HeaderMap,
    /// The value of the `User-Agent` header.
    pub user_agent: Option<String>,
    pub limits: ClientLimits,
}

/// The credentials of the client.
#[derive(Clone, Debug)]
pub enum ClientAuth {
    Bearer(SecretString),
    /// An API key, or any other credential in one header.
    Header(HeaderName, SecretString),
}

/// Time and size limits of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// The time limit for opening a connection.
    pub connect_timeout: Duration,
    /// The time limit for a whole response, or for the start of a stream.
    pub call_timeout: Duration,
    /// The time limit for the response to a message. Many agents answer only when the task has ended.
    pub send_timeout: Duration,
    /// The maximum time without any data on a stream.
    pub idle_timeout: Duration,
    /// The maximum size of a response and of one event of a stream, in bytes.
    pub max_response_bytes: usize,
    /// The maximum size of all events of a stream, in bytes.
    pub max_stream_bytes: usize,
}

impl Default for ClientLimits {
    /// Ten seconds for a connection, one minute for a call, ten minutes for a message and without data. 16 MiB for a
    /// response and 256 MiB for a stream.
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            call_timeout: Duration::from_secs(60),
            send_timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(600),
            max_response_bytes: 16 << 20,
            max_stream_bytes: 256 << 20,
        }
    }
}

/// A client of one agent.
#[derive(Clone)]
pub struct A2aClient {
    card: AgentCard,
    interface: SelectedInterface,
    transport: HttpTransport,
}

impl fmt::Debug for A2aClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SelectedInterface { url, binding, version, tenant } = &self.interface;
        let shown = (url.as_str(), binding.as_str(), version.as_str(), tenant);
        f.debug_struct("A2aClient").field("agent", &self.card.name).field("interface", &shown).finish_non_exhaustive()
    }
}

impl A2aClient {
    /// Fetches the card of an agent and returns a client for it.
    ///
    /// The address is that of the card, or a base URL with the card at `/.well-known/agent-card.json`. Fails if the
    /// card cannot be fetched or has no usable interface.
    pub async fn discover(address: &str, options: &ClientOptions) -> Result<Self, Error> {
        let (card, from) = card::fetch(address, options).await?;
        Self::from_card(card, &from, options)
    }

    /// Returns a client for the agent with this card. `from` is the URL of the card.
    ///
    /// Fails if the card has no usable interface.
    pub fn from_card(card: AgentCard, from: &Url, options: &ClientOptions) -> Result<Self, Error> {
        let interface = card::select(&card, from, options)?;
        let transport = HttpTransport::new(&interface.url, interface.binding == Binding::Grpc, options)?;
        Ok(Self { card, interface, transport })
    }

    /// Returns the card of the agent.
    pub fn card(&self) -> &AgentCard {
        &self.card
    }

    /// Returns the selected binding.
    pub fn binding(&self) -> Binding {
        self.interface.binding
    }

    /// Returns the selected version.
    pub fn version(&self) -> Version {
        self.interface.version
    }

    /// Returns the URL of the selected interface.
    pub fn url(&self) -> &Url {
        &self.interface.url
    }

    /// Sends a message and returns the response: a message, or a task that has ended, or a task that has just started
    /// if the request sets `return_immediately`. Waits at most for the send timeout.
    ///
    /// Like all calls, fails if the agent cannot be reached, rejects the call or reports an error.
    pub async fn send(&self, request: SendMessageRequest) -> Result<SendMessageResponse, Error> {
        match self.call(OperationRequest::Send(request)).await? {
            OperationResponse::Sent(sent) => Ok(sent),
            _ => Err(Error::unexpected()),
        }
    }

    /// Sends a message and returns the updates of its task. If the card does not declare streaming, waits for the
    /// response like [`Self::send`]; it is the only update. Otherwise the call timeout, not the send timeout, limits
    /// the start of the stream. Fails like [`Self::send`] before the stream starts. Later errors are its last item.
    pub async fn stream(&self, request: SendMessageRequest) -> Result<TaskUpdates, Error> {
        if self.card.capabilities.streaming == Some(true) {
            return self.stream_updates(OperationRequest::Stream(request)).await;
        }
        let update = match self.send(request).await? {
            SendMessageResponse::Task(task) => StreamResponse::Task(task),
            SendMessageResponse::Message(message) => StreamResponse::Message(message),
        };
        Ok(stream::iter([Ok(update)]).boxed())
    }

    /// Returns a task.
    pub async fn get(&self, request: GetTaskRequest) -> Result<Task, Error> {
        self.task(OperationRequest::Get(request)).await
    }

    /// Returns a page of tasks. Fails if the agent uses 0.3, which cannot list tasks.
    pub async fn list(&self, request: ListTasksRequest) -> Result<ListTasksResponse, Error> {
        match self.call(OperationRequest::List(request)).await? {
            OperationResponse::Tasks(tasks) => Ok(tasks),
            _ => Err(Error::unexpected()),
        }
    }

    /// Cancels a task and returns it.
    pub async fn cancel(&self, request: CancelTaskRequest) -> Result<Task, Error> {
        self.task(OperationRequest::Cancel(request)).await
    }

    /// Returns the updates of a task from now on. The card is not checked for the capability to stream.
    pub async fn subscribe(&self, request: SubscribeToTaskRequest) -> Result<TaskUpdates, Error> {
        self.stream_updates(OperationRequest::Subscribe(request)).await
    }

    /// Creates or replaces a push configuration and returns it.
    pub async fn set_push(&self, config: TaskPushNotificationConfig) -> Result<TaskPushNotificationConfig, Error> {
        self.push(OperationRequest::SetPush(config)).await
    }

    /// Returns a push configuration.
    pub async fn get_push(
        &self,
        request: GetTaskPushNotificationConfigRequest,
    ) -> Result<TaskPushNotificationConfig, Error> {
        self.push(OperationRequest::GetPush(request)).await
    }

    /// Returns the push configurations of a task.
    pub async fn list_push(
        &self,
        request: ListTaskPushNotificationConfigsRequest,
    ) -> Result<ListTaskPushNotificationConfigsResponse, Error> {
        match self.call(OperationRequest::ListPush(request)).await? {
            OperationResponse::PushConfigs(pushes) => Ok(pushes),
            _ => Err(Error::unexpected()),
        }
    }

    /// Deletes a push configuration.
    pub async fn delete_push(&self, request: DeleteTaskPushNotificationConfigRequest) -> Result<(), Error> {
        self.call(OperationRequest::DeletePush(request)).await.map(drop)
    }

    /// Returns the extended card, which is only for authenticated callers.
    pub async fn extended_card(&self) -> Result<AgentCard, Error> {
        match self.call(OperationRequest::ExtendedCard(GetExtendedAgentCardRequest { tenant: None })).await? {
            OperationResponse::Card(card) => Ok(*card),
            _ => Err(Error::unexpected()),
        }
    }

    /// Calls an operation that returns a task. Fails if the response is of another type.
    async fn task(&self, request: OperationRequest) -> Result<Task, Error> {
        match self.call(request).await? {
            OperationResponse::Task(task) => Ok(task),
            _ => Err(Error::unexpected()),
        }
    }

    /// Calls an operation that returns a push configuration. Fails if the response is of another type.
    async fn push(&self, request: OperationRequest) -> Result<TaskPushNotificationConfig, Error> {
        match self.call(request).await? {
            OperationResponse::PushConfig(push) => Ok(push),
            _ => Err(Error::unexpected()),
        }
    }

    /// Calls an operation over the selected binding, after [`Self::prepare`]. Fails with [`Error::Timeout`] after the
    /// send timeout for a message, and after the call timeout for other operations. Also fails if the call fails.
    async fn call(&self, mut request: OperationRequest) -> Result<OperationResponse, Error> {
        self.prepare(&mut request)?;
        let limits = self.transport.limits();
        let call_timeout =
            if matches!(request, OperationRequest::Send(_)) { limits.send_timeout } else { limits.call_timeout };
        let call = async {
            match self.interface.binding {
                Binding::JsonRpc => json_rpc::call(&self.transport, &self.interface, request).await,
                Binding::HttpJson => rest::call(&self.transport, &self.interface, request).await,
                Binding::Grpc => grpc::call(&self.transport, &self.interface, request).await,
            }
        };
        tokio::time::timeout(call_timeout, call).await.map_err(|_| Error::Timeout(call_timeout))?
    }

    /// Calls a streaming operation over the selected binding, after [`Self::prepare`]. The call timeout covers only the
    /// start of the stream. Fails if that fails; later errors are the last item of the stream.
    async fn stream_updates(&self, mut request: OperationRequest) -> Result<TaskUpdates, Error> {
        self.prepare(&mut request)?;
        let call_timeout = self.transport.limits().call_timeout;
        let call = async {
            match self.interface.binding {
                Binding::JsonRpc => json_rpc::stream_updates(&self.transport, &self.interface, request).await,
                Binding::HttpJson => rest::stream_updates(&self.transport, &self.interface, request).await,
                Binding::Grpc => grpc::stream_updates(&self.transport, &self.interface, request).await,
            }
        };
        tokio::time::timeout(call_timeout, call).await.map_err(|_| Error::Timeout(call_timeout))?
    }

    /// Sets the tenant of the request to that of the interface, unless the request names one. Fails with
    /// [`Error::Unsupported`] if the request lists tasks and the interface has version 0.3.
    fn prepare(&self, request: &mut OperationRequest) -> Result<(), Error> {
        if self.interface.version == Version::V03 && matches!(request, OperationRequest::List(_)) {
            return Err(Error::Unsupported("list tasks"));
        }
        let tenant = match request {
            OperationRequest::Send(request) | OperationRequest::Stream(request) => &mut request.tenant,
            OperationRequest::Get(request) => &mut request.tenant,
            OperationRequest::List(request) => &mut request.tenant,
            OperationRequest::Cancel(request) => &mut request.tenant,
            OperationRequest::Subscribe(request) => &mut request.tenant,
            OperationRequest::SetPush(config) => &mut config.tenant,
            OperationRequest::GetPush(request) => &mut request.tenant,
            OperationRequest::ListPush(request) => &mut request.tenant,
            OperationRequest::DeletePush(request) => &mut request.tenant,
            OperationRequest::ExtendedCard(request) => &mut request.tenant,
        };
        *tenant = tenant.take().or_else(|| self.interface.tenant.clone());
        Ok(())
    }
}

/// Returns true if no update can follow this one: a message, or a task or status with a final state. A request for
/// input is not final. In 0.3 updates also have a flag for that.
fn is_last(update: &StreamResponse) -> bool {
    match update {
        StreamResponse::Message(_) => true,
        StreamResponse::Task(task) => task.status.state.is_terminal(),
        StreamResponse::StatusUpdate(event) => event.status.state.is_terminal(),
        StreamResponse::ArtifactUpdate(_) => false,
    }
}
