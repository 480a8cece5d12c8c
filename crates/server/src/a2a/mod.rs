//! The Agent2Agent protocol (A2A-1 … A2A-5): every enabled agent below `/agents`, by three bindings, in two versions.
//!
//! The crate `a2a` speaks the protocol; here it is decided who may call (`admission`, `blocks`, `limits`), what may be asked
//! (`terms`), what is told of an agent (`cards`), and what is done about it: a task is one execution after another (`send`),
//! of which everything that can be told is made from what is kept (`render`), now (`tasks`), as it happens
//! (`updates`), or by a call of ours where a client has said so (`push`, `pump`, `news`).
//! `envelope` is a door of its own for S2's messages. Nothing here reads a request before its caller is admitted.

mod admission;
mod blocks;
mod caller;
mod cards;
mod contexts;
mod envelope;
mod faults;
mod files;
mod limits;
mod list;
mod news;
pub(crate) mod pump;
pub(crate) mod push;
mod remote;
mod render;
mod send;
mod tasks;
mod terms;
mod tokens;
mod updates;

use ::a2a::{Answer, Call, Card, Denied, Error, Handler, Kind, Request};
use axum::Router;
use axum::extract::{Request as HttpRequest, State};
use axum::http::HeaderName;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use model::agent::Endpoint;

use self::admission::Offered;
use self::caller::Caller;
use self::cards::Base;
pub(crate) use self::remote::Elsewhere;
pub use self::remote::elsewhere;
use crate::App;

/// The metadata of gRPC that names the agent, where no tenant does.
const AGENT: HeaderName = HeaderName::from_static("x-adjutant-agent");

/// What of A2A is kept in memory.
#[derive(Default)]
pub(crate) struct Door {
    blocks: blocks::Blocks,
    limits: limits::Limits,
    streams: limits::Streams,
    tokens: tokens::Tokens,
}

impl Door {
    /// Forgets what does not matter any more.
    pub(crate) fn tidy(&self, now: jiff::Timestamp) {
        self.blocks.tidy(now);
        self.limits.tidy();
    }
}

/// What the configuration leaves open about the assistant: it understands text.
pub(crate) fn complete(assistant: &mut Endpoint) {
    let text = || ["text/plain", "text/markdown"].map(str::to_owned).to_vec();
    assistant.capabilities.supported_content_types.get_or_insert_with(text);
}

/// Everything there is of it. It has its own authentication.
pub(crate) fn routes(app: &App) -> Router<App> {
    let handler = A2a(app.clone());
    Router::new()
        .nest("/agents", ::a2a::http::router(handler.clone()).with_state(()))
        .route("/agents", get(list::list))
        .route("/agents/", get(list::list))
        .route("/agents/{agent}/v1/envelope", post(envelope::handle))
        .route("/agents/{agent}/files/{execution}/{*name}", get(files::fetch))
        .merge(::a2a::http::well_known(handler.clone()).with_state(()))
        .merge(::a2a::grpc::router(handler, AGENT).with_state(()))
        .layer(from_fn_with_state(app.clone(), note))
}

/// Notes where the server is reached.
async fn note(State(app): State<App>, mut request: HttpRequest, next: Next) -> Response {
    let base = Base::of(&app.in_force().settings, request.uri(), request.headers());
    request.extensions_mut().insert(base);
    next.run(request).await
}

/// Answers for all agents.
#[derive(Clone)]
struct A2a(App);

/// A caller, and where the server was reached.
struct Admitted {
    caller: Caller,
    base: Base,
}

impl Handler for A2a {
    type Caller = Admitted;

    async fn admit(&self, call: &Call) -> Result<Admitted, Denied> {
        let caller = admission::admit(&self.0, call).await?;
        Ok(Admitted { caller, base: base(call) })
    }

    async fn handle(&self, Admitted { caller, base }: Admitted, request: Request) -> Result<Answer, Error> {
        let app = &self.0;
        tracing::debug!(
            event = "a2a_call",
            agent_id = caller.entry.agent.id,
            operation = request.operation().as_str(),
            binding = caller.binding.as_str(),
            version = caller.version.as_str(),
        );
        if terms::tenant(&request).is_some_and(|tenant| admission::is_another(app, &caller.entry, tenant)) {
            return Err(Error::new(Kind::NotFound, "there is no such agent"));
        }
        let offered = Offered { entry: caller.entry.clone(), in_force: app.in_force() };
        terms::check(&caller, offered.endpoint(), offered.way(), &request)?;
        // Put aside: this has room for each of them, and is moved about with all of that.
        match request {
            Request::ExtendedCard(_) => Ok(Answer::Card(Box::new(cards::extended(&offered, &base)))),
            Request::SetPush(config) => Box::pin(push::set(app, &caller, config)).await.map(Answer::Push),
            Request::GetPush(request) => Box::pin(push::get(app, &caller, request)).await.map(Answer::Push),
            Request::ListPush(request) => Box::pin(push::list(app, &caller, request)).await.map(Answer::Pushes),
            Request::DeletePush(request) => {
                Box::pin(push::delete(app, &caller, request)).await.map(|()| Answer::Deleted)
            }
            Request::Send(request) => Box::pin(send::send(app, &caller, &base, request)).await.map(Answer::Sent),
            Request::Stream(request) => {
                Box::pin(updates::stream(app, &caller, &base, request)).await.map(Answer::Updates)
            }
            Request::Get(request) => Box::pin(tasks::get(app, &caller, &base, request)).await.map(Answer::Task),
            Request::List(request) => Box::pin(tasks::list(app, &caller, &base, request)).await.map(Answer::Tasks),
            Request::Cancel(request) => Box::pin(tasks::cancel(app, &caller, &base, request)).await.map(Answer::Task),
            Request::Subscribe(request) => {
                Box::pin(updates::subscribe(app, &caller, &base, request)).await.map(Answer::Updates)
            }
        }
    }

    async fn card(&self, call: &Call) -> Result<Card, Denied> {
        let offered = Offered::find(&self.0, call.agent.as_deref()).ok_or(Denied::NoAgent)?;
        Ok(cards::card(&offered, &base(call)))
    }

    /// What is sent in Base64 is a third longer, and there is something around it.
    fn max_request(&self) -> usize {
        const AROUND: u64 = 64 << 10;
        let largest = self.0.supervisor().largest_input();
        let largest = usize::try_from(largest / 3 * 4 + AROUND).unwrap_or(usize::MAX);
        largest.max(self.0.in_force().settings.max_body_bytes)
    }
}

fn base(call: &Call) -> Base {
    call.extensions.get().cloned().unwrap_or_else(|| Base("http://localhost".to_owned()))
}
