//! Serves the enabled agents over the Agent2Agent protocol (A2A-1 … A2A-5), below `/agents`, in three bindings and two
//! versions.
//!
//! The crate `a2a` implements the protocol. This module implements its handler:
//!
//! - `authn`, `blocklist`, `limits`: authenticate callers and limit their calls.
//! - `policy`: checks operations, media types and sizes.
//! - `cards`, `list`: describe agents.
//! - `send`: enqueues messages. An A2A task is a sequence of executions.
//! - `projection`: computes tasks and updates from stored executions. `tasks` returns them, `updates` streams them.
//! - `push`, `push_loop`, `push_payload`: send push notifications.
//! - `envelope`: serves the messages of S2.
//! - `remote`: runs agents of other servers.
//!
//! The content of a request is decoded only after its caller is authorized.

mod authn;
mod blocklist;
mod caller;
mod cards;
mod contexts;
mod envelope;
mod errors;
mod files;
mod limits;
mod list;
mod policy;
mod projection;
pub(crate) mod push;
pub(crate) mod push_loop;
mod push_payload;
mod remote;
mod send;
mod tasks;
mod tokens;
mod updates;

use ::a2a::{
    AgentHandler, CallContext, CallRejection, Error, ErrorKind, OperationRequest, OperationResponse, PublishedCard,
};
use axum::Router;
use axum::extract::{Request as HttpRequest, State};
use axum::http::HeaderName;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use model::agent::Endpoint;

use self::authn::OfferedAgent;
use self::caller::A2aCaller;
use self::cards::BaseUrl;
pub(crate) use self::remote::RemoteAgentRunner;
pub use self::remote::discover_remote_agent;
use crate::App;

/// The gRPC metadata key that names the agent if no tenant does.
const AGENT_METADATA: HeaderName = HeaderName::from_static("x-adjutant-agent");

/// The in-memory state of the A2A endpoints.
#[derive(Default)]
pub(crate) struct A2aState {
    blocklist: blocklist::AddressBlocklist,
    limits: limits::CallRateLimits,
    tokens: tokens::TokenDigests,
}

impl A2aState {
    /// Removes expired records of failed authentications, and idle rate limiters.
    pub(crate) fn evict_expired(&self, now: jiff::Timestamp) {
        self.blocklist.remove_expired(now);
        self.limits.remove_idle();
    }
}

/// Sets the accepted media types of the assistant's endpoint to plain text and Markdown, unless they are configured.
pub(crate) fn fill_assistant_defaults(assistant: &mut Endpoint) {
    let text = || ["text/plain", "text/markdown"].map(str::to_owned).to_vec();
    assistant.capabilities.supported_content_types.get_or_insert_with(text);
}

/// Returns all A2A routes: the bindings below `/agents/{agent}`, gRPC, the card of the default agent, the list of
/// agents, envelopes and files. They have their own authentication. Every request gets a [`BaseUrl`] as an extension.
pub(crate) fn routes(app: &App) -> Router<App> {
    let handler = AppHandler(app.clone());
    Router::new()
        .nest("/agents", ::a2a::http::router(handler.clone()).with_state(()))
        .route("/agents", get(list::list))
        .route("/agents/", get(list::list))
        .route("/agents/{agent}/v1/envelope", post(envelope::handle))
        .route("/agents/{agent}/files/{execution}/{*name}", get(files::download))
        .merge(::a2a::http::well_known_router(handler.clone()).with_state(()))
        .merge(::a2a::grpc::router(handler, AGENT_METADATA).with_state(()))
        .layer(from_fn_with_state(app.clone(), attach_base_url))
}

/// Attaches the base URL of the server to the request.
async fn attach_base_url(State(app): State<App>, mut request: HttpRequest, next: Next) -> Response {
    let base = BaseUrl::from_request(&app.active_config().settings, request.uri(), request.headers());
    request.extensions_mut().insert(base);
    next.run(request).await
}

/// Handles the A2A requests for all agents.
#[derive(Clone)]
struct AppHandler(App);

/// An authorized caller and the base URL of the request.
struct AuthorizedCaller {
    caller: A2aCaller,
    base: BaseUrl,
}

impl AgentHandler for AppHandler {
    type Caller = AuthorizedCaller;

    async fn authorize(&self, call: &CallContext) -> Result<AuthorizedCaller, CallRejection> {
        let caller = authn::authorize(&self.0, call).await?;
        Ok(AuthorizedCaller { caller, base: base_url(call) })
    }

    /// Performs an operation for an authorized caller and logs it at debug level. Fails with `NotFound` if the tenant
    /// in the request is the id of another agent. Otherwise fails like [`policy::check`] or like the operation.
    async fn handle(
        &self,
        AuthorizedCaller { caller, base }: AuthorizedCaller,
        request: OperationRequest,
    ) -> Result<OperationResponse, Error> {
        let app = &self.0;
        tracing::debug!(
            event = "a2a_call",
            agent_id = caller.entry.agent.id,
            operation = request.operation().as_str(),
            binding = caller.binding.as_str(),
            version = caller.version.as_str(),
        );
        if policy::tenant(&request).is_some_and(|tenant| authn::names_other_agent(app, &caller.entry, tenant)) {
            return Err(Error::new(ErrorKind::NotFound, "the agent was not found"));
        }
        let offered = OfferedAgent { entry: caller.entry.clone(), config: app.active_config() };
        policy::check(&caller, offered.endpoint(), offered.caller_auth(), &request)?;
        // Boxed because the futures are large.
        match request {
            OperationRequest::ExtendedCard(_) => {
                Ok(OperationResponse::Card(Box::new(cards::extended_card(&offered, &base))))
            }
            OperationRequest::SetPush(config) => {
                Box::pin(push::set(app, &caller, config)).await.map(OperationResponse::PushConfig)
            }
            OperationRequest::GetPush(request) => {
                Box::pin(push::get(app, &caller, request)).await.map(OperationResponse::PushConfig)
            }
            OperationRequest::ListPush(request) => {
                Box::pin(push::list(app, &caller, request)).await.map(OperationResponse::PushConfigs)
            }
            OperationRequest::DeletePush(request) => {
                Box::pin(push::delete(app, &caller, request)).await.map(|()| OperationResponse::Deleted)
            }
            OperationRequest::Send(request) => {
                Box::pin(send::send(app, &caller, &base, request)).await.map(OperationResponse::Sent)
            }
            OperationRequest::Stream(request) => {
                Box::pin(updates::stream(app, &caller, &base, request)).await.map(OperationResponse::Updates)
            }
            OperationRequest::Get(request) => {
                Box::pin(tasks::get(app, &caller, &base, request)).await.map(OperationResponse::Task)
            }
            OperationRequest::List(request) => {
                Box::pin(tasks::list(app, &caller, &base, request)).await.map(OperationResponse::Tasks)
            }
            OperationRequest::Cancel(request) => {
                Box::pin(tasks::cancel(app, &caller, &base, request)).await.map(OperationResponse::Task)
            }
            OperationRequest::Subscribe(request) => {
                Box::pin(updates::subscribe(app, &caller, &base, request)).await.map(OperationResponse::Updates)
            }
        }
    }

    async fn card(&self, call: &CallContext) -> Result<PublishedCard, CallRejection> {
        let offered = authn::find_for_card(&self.0, call).await?;
        Ok(cards::card(&offered, &base_url(call)))
    }

    /// Returns the maximum size of a request in bytes: the largest input size of all agents in base64, plus 64 KiB for
    /// the remaining fields. At least the configured maximum body size.
    fn max_request_bytes(&self) -> usize {
        const ENVELOPE_BYTES: u64 = 64 << 10;
        let largest = self.0.supervisor().max_input_size();
        let largest = usize::try_from(largest / 3 * 4 + ENVELOPE_BYTES).unwrap_or(usize::MAX);
        largest.max(self.0.active_config().settings.max_body_bytes)
    }
}

/// Returns the base URL that is attached to the request, or `http://localhost` if there is none.
fn base_url(call: &CallContext) -> BaseUrl {
    call.extensions.get().cloned().unwrap_or_else(|| BaseUrl("http://localhost".to_owned()))
}
