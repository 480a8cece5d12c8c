//! The client of any agent that speaks A2A: version 1.x or 0.3, by JSON-RPC, HTTP+JSON or gRPC. Whatever is spoken, the
//! words of 1.x go in and come out.
//!
//! [`Client::discover`] reads a card and picks the best of the addresses on it ([`card`]): JSON-RPC before HTTP+JSON, 1.x
//! before 0.3, and gRPC where there is nothing else. Then every call is a [`Request`] that one of [`json_rpc`], [`rest`]
//! and [`grpc`] says in its own way, over one HTTP client ([`http`]) that keeps the limits: time, sizes, redirects only
//! within an origin. gRPC goes over that client, too, with TLS where the address has it.
//!
//! Cards and answers are written by others. A card leads to no other host than its own, nor from TLS to none, unless
//! [`Options::other_hosts`] allows it; nothing that comes can be too large or break anything; credentials are sent to the
//! agent and stand in no error and no log, even where the agent repeats them.
//!
//! The program must have installed a TLS provider of rustls, as for any other use of `reqwest`.

mod answers;
pub mod card;
mod error;
mod events;
mod grpc;
mod http;
mod json_rpc;
mod lenient;
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
use crate::{Answer, Binding, Request, Version};

pub use error::Error;

use self::card::Place;
use self::http::Wire;

/// What an agent tells of a task, until it has told everything. It ends after the last update, even where the agent
/// forgets to; whether the task has ended then is in what was told.
pub type News = BoxStream<'static, Result<StreamResponse, Error>>;

/// How agents are spoken to.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub auth: Option<Auth>,
    /// Only this one, where the card has several.
    pub binding: Option<Binding>,
    /// Only this one, where the card has several.
    pub version: Option<Version>,
    /// Whether a card may lead to other hosts than its own, and from TLS to none. Credentials go there, too.
    pub other_hosts: bool,
    /// The extensions to ask for, by their URIs.
    pub extensions: Vec<String>,
    /// What else goes along with every call, such as the metadata that names an agent of 0.3 over gRPC. No secrets: the
    /// one there is belongs into `auth`.
    pub headers: HeaderMap,
    /// What the caller calls itself.
    pub user_agent: Option<String>,
    pub limits: Limits,
}

/// How the caller shows who it is.
#[derive(Clone, Debug)]
pub enum Auth {
    Bearer(SecretString),
    /// An API key, or anything else that is one header.
    Header(HeaderName, SecretString),
}

/// How long things may take, and how large they may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub connect: Duration,
    /// From a call to the end of its answer, or to the begin of a stream.
    pub call: Duration,
    /// The same for sending a message, which many agents answer when they are done.
    pub send: Duration,
    /// How long a stream may say nothing, not even that it is alive.
    pub silence: Duration,
    /// The largest answer, and the largest event of a stream, in bytes.
    pub answer: usize,
    /// All events of a stream, in bytes.
    pub stream: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            call: Duration::from_secs(60),
            send: Duration::from_secs(600),
            silence: Duration::from_secs(600),
            answer: 16 << 20,
            stream: 256 << 20,
        }
    }
}

/// One agent.
#[derive(Clone)]
pub struct Client {
    card: AgentCard,
    place: Place,
    wire: Wire,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { url, binding, version, tenant } = &self.place;
        let place = (url.as_str(), binding.as_str(), version.as_str(), tenant);
        f.debug_struct("Client").field("agent", &self.card.name).field("place", &place).finish_non_exhaustive()
    }
}

impl Client {
    /// The agent behind an address: that of its card, or the one below which `/.well-known/agent-card.json` is.
    pub async fn discover(address: &str, options: &Options) -> Result<Self, Error> {
        let (card, from) = card::fetch(address, options).await?;
        Self::of(card, &from, options)
    }

    /// The agent that has this card; `from` is where it came from.
    pub fn of(card: AgentCard, from: &Url, options: &Options) -> Result<Self, Error> {
        let place = card::choose(&card, from, options)?;
        let wire = Wire::new(&place.url, place.binding == Binding::Grpc, options)?;
        Ok(Self { card, place, wire })
    }

    pub fn card(&self) -> &AgentCard {
        &self.card
    }

    pub fn binding(&self) -> Binding {
        self.place.binding
    }

    pub fn version(&self) -> Version {
        self.place.version
    }

    pub fn url(&self) -> &Url {
        &self.place.url
    }

    /// Sends a message and waits for what comes of it, or only for the task where the request wants no more.
    pub async fn send(&self, request: SendMessageRequest) -> Result<SendMessageResponse, Error> {
        match self.call(Request::Send(request)).await? {
            Answer::Sent(sent) => Ok(sent),
            _ => Err(Error::unexpected()),
        }
    }

    /// Sends a message and hears what happens. An agent that cannot tell that tells the end.
    pub async fn stream(&self, request: SendMessageRequest) -> Result<News, Error> {
        if self.card.capabilities.streaming == Some(true) {
            return self.listen(Request::Stream(request)).await;
        }
        let told = match self.send(request).await? {
            SendMessageResponse::Task(task) => StreamResponse::Task(task),
            SendMessageResponse::Message(message) => StreamResponse::Message(message),
        };
        Ok(stream::iter([Ok(told)]).boxed())
    }

    pub async fn get(&self, request: GetTaskRequest) -> Result<Task, Error> {
        self.task(Request::Get(request)).await
    }

    /// Not in 0.3.
    pub async fn list(&self, request: ListTasksRequest) -> Result<ListTasksResponse, Error> {
        match self.call(Request::List(request)).await? {
            Answer::Tasks(tasks) => Ok(tasks),
            _ => Err(Error::unexpected()),
        }
    }

    pub async fn cancel(&self, request: CancelTaskRequest) -> Result<Task, Error> {
        self.task(Request::Cancel(request)).await
    }

    /// Hears what happens to a task from now on.
    pub async fn subscribe(&self, request: SubscribeToTaskRequest) -> Result<News, Error> {
        self.listen(Request::Subscribe(request)).await
    }

    pub async fn set_push(&self, config: TaskPushNotificationConfig) -> Result<TaskPushNotificationConfig, Error> {
        self.push(Request::SetPush(config)).await
    }

    pub async fn get_push(
        &self,
        request: GetTaskPushNotificationConfigRequest,
    ) -> Result<TaskPushNotificationConfig, Error> {
        self.push(Request::GetPush(request)).await
    }

    pub async fn list_push(
        &self,
        request: ListTaskPushNotificationConfigsRequest,
    ) -> Result<ListTaskPushNotificationConfigsResponse, Error> {
        match self.call(Request::ListPush(request)).await? {
            Answer::Pushes(pushes) => Ok(pushes),
            _ => Err(Error::unexpected()),
        }
    }

    pub async fn delete_push(&self, request: DeleteTaskPushNotificationConfigRequest) -> Result<(), Error> {
        self.call(Request::DeletePush(request)).await.map(drop)
    }

    /// The card for those who are known to the agent.
    pub async fn extended_card(&self) -> Result<AgentCard, Error> {
        match self.call(Request::ExtendedCard(GetExtendedAgentCardRequest { tenant: None })).await? {
            Answer::Card(card) => Ok(*card),
            _ => Err(Error::unexpected()),
        }
    }

    async fn task(&self, request: Request) -> Result<Task, Error> {
        match self.call(request).await? {
            Answer::Task(task) => Ok(task),
            _ => Err(Error::unexpected()),
        }
    }

    async fn push(&self, request: Request) -> Result<TaskPushNotificationConfig, Error> {
        match self.call(request).await? {
            Answer::Push(push) => Ok(push),
            _ => Err(Error::unexpected()),
        }
    }

    async fn call(&self, mut request: Request) -> Result<Answer, Error> {
        self.prepare(&mut request)?;
        let limits = self.wire.limits();
        let patience = if matches!(request, Request::Send(_)) { limits.send } else { limits.call };
        let call = async {
            match self.place.binding {
                Binding::JsonRpc => json_rpc::call(&self.wire, &self.place, request).await,
                Binding::HttpJson => rest::call(&self.wire, &self.place, request).await,
                Binding::Grpc => grpc::call(&self.wire, &self.place, request).await,
            }
        };
        tokio::time::timeout(patience, call).await.map_err(|_| Error::Silent(patience))?
    }

    async fn listen(&self, mut request: Request) -> Result<News, Error> {
        self.prepare(&mut request)?;
        let patience = self.wire.limits().call;
        let call = async {
            match self.place.binding {
                Binding::JsonRpc => json_rpc::listen(&self.wire, &self.place, request).await,
                Binding::HttpJson => rest::listen(&self.wire, &self.place, request).await,
                Binding::Grpc => grpc::listen(&self.wire, &self.place, request).await,
            }
        };
        tokio::time::timeout(patience, call).await.map_err(|_| Error::Silent(patience))?
    }

    /// What every request says beside what is asked.
    fn prepare(&self, request: &mut Request) -> Result<(), Error> {
        if self.place.version == Version::V03 && matches!(request, Request::List(_)) {
            return Err(Error::Unsupported("list tasks"));
        }
        let tenant = match request {
            Request::Send(request) | Request::Stream(request) => &mut request.tenant,
            Request::Get(request) => &mut request.tenant,
            Request::List(request) => &mut request.tenant,
            Request::Cancel(request) => &mut request.tenant,
            Request::Subscribe(request) => &mut request.tenant,
            Request::SetPush(config) => &mut config.tenant,
            Request::GetPush(request) => &mut request.tenant,
            Request::ListPush(request) => &mut request.tenant,
            Request::DeletePush(request) => &mut request.tenant,
            Request::ExtendedCard(request) => &mut request.tenant,
        };
        *tenant = tenant.take().or_else(|| self.place.tenant.clone());
        Ok(())
    }
}

/// Whether nothing can come after it. 0.3 says so itself, too.
fn is_last(update: &StreamResponse) -> bool {
    match update {
        StreamResponse::Message(_) => true,
        StreamResponse::Task(task) => task.status.state.is_terminal(),
        StreamResponse::StatusUpdate(event) => event.status.state.is_terminal(),
        StreamResponse::ArtifactUpdate(_) => false,
    }
}
