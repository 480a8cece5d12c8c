//! Turns with a model that takes its time: told while they happen, in a task of their own that outlives the connection.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use assistant::{AgentContext, AgentResult, AgentRunner, ErrorType, Event, Request};
use axum::response::Response;
use futures::FutureExt;
use jiff::Timestamp;
use model::User;
use model::conversation::{Id, Message};
use store::idempotency::{Key, Reply, claim, settle};
use tracing::Instrument;
use uuid::Uuid;

use super::live::Live;
use super::{Form, HISTORY, Place, Told, Turn, exchange, failure, milliseconds, respond, sse};
use crate::request::Ended;
use crate::{App, Problem};

/// Between two looks at whether another node has ended its turn.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// No turn is waited for longer than this.
const LONGEST_TURN: Duration = Duration::from_secs(3600);
/// What a turn may take beyond its limit, until it is written down.
const AFTERWARDS: Duration = Duration::from_secs(10);

pub(super) async fn carry_out(app: &App, runner: AgentRunner, turn: Turn) -> Result<Response, Problem> {
    let (form, seen) = (turn.form, turn.seen);
    if let Some(earlier) = earlier(app, &turn).await? {
        return Ok(match earlier {
            Earlier::Ended(reply) => respond(form, reply, true, seen, Ended::default()),
            Earlier::UnderWay(live) => answer(form, live, seen).await,
        });
    }
    let live = Live::new();
    if let Some(key) = &turn.key {
        app.turns().add(turn.user.id, &key.key, &live);
    }
    match begin(app, &turn.user, &turn.place).await {
        Ok(begun) => {
            let task = Task { app: app.clone(), runner, turn, live: live.clone() };
            app.tasks().spawn(task.run(begun).in_current_span());
            Ok(answer(form, live, seen).await)
        }
        Err(error) => {
            if let Some(key) = &turn.key {
                app.turns().remove(turn.user.id, &key.key);
                let (owner, key) = (turn.user.id, key.clone());
                app.store()
                    .write(move |conn| Box::pin(async move { store::idempotency::release(conn, owner, &key).await }))
                    .await?;
            }
            Err(Problem::from_store("conversation")(error))
        }
    }
}

enum Earlier {
    Ended(Reply),
    UnderWay(Arc<Live>),
}

/// The answer that this key has already, or the turn that is making it.
async fn earlier(app: &App, turn: &Turn) -> Result<Option<Earlier>, Problem> {
    let Some(key) = turn.key.clone() else { return Ok(None) };
    let (owner, now) = (turn.user.id, app.clock().now());
    let claimed = key.clone();
    let claimed = app.store().write(move |conn| Box::pin(async move { claim(conn, owner, &claimed, now).await })).await;
    match claimed {
        Ok(None) => Ok(None),
        Ok(Some(reply)) => Ok(Some(Earlier::Ended(reply))),
        Err(store::Error::KeyBusy) => match app.turns().find(owner, &key.key) {
            Some(live) => Ok(Some(Earlier::UnderWay(live))),
            None => Err(store::Error::KeyBusy.into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// What a turn needs before it can be told of.
pub(super) struct Begun {
    pub(super) context: AgentContext,
    asked: Timestamp,
    _place: Option<tokio::sync::OwnedMutexGuard<()>>,
    /// The turn among all nodes.
    holder: Option<Uuid>,
}

pub(super) async fn begin(app: &App, user: &User, place: &Place) -> store::Result<Begun> {
    let asked = app.clock().now();
    match place {
        Place::Given(context) => Ok(Begun { context: context.clone(), asked, _place: None, holder: None }),
        Place::Kept(id) => {
            let place = app.turns().take(id).await;
            let holder = take_among_nodes(app, id).await?;
            let history = match look_back(app, user, id).await {
                Ok(history) => history,
                Err(error) => {
                    // Somebody else's conversation, it may be: they must not wait for us.
                    give_back_among_nodes(app, id, holder).await?;
                    return Err(error);
                }
            };
            Ok(Begun { context: AgentContext::kept(user.clone(), history), asked, _place: Some(place), holder })
        }
    }
}

async fn look_back(app: &App, user: &User, id: &Id) -> store::Result<Vec<Message>> {
    let mut reader = app.store().reader().await?;
    store::conversations::open(&mut reader, user.id, id, HISTORY).await
}

async fn give_back_among_nodes(app: &App, id: &Id, holder: Option<Uuid>) -> store::Result<()> {
    let (Some(holder), id) = (holder, id.clone()) else { return Ok(()) };
    app.store().write(move |conn| Box::pin(async move { store::turns::give_back(conn, &id, holder).await })).await
}

/// Waits until no other node is at a turn of this conversation; one that is gone is waited for no longer than its turn
/// could have taken. On a database of our own nobody else can be.
async fn take_among_nodes(app: &App, id: &Id) -> store::Result<Option<Uuid>> {
    if !app.store().is_shared() {
        return Ok(None);
    }
    let (holder, limit) = (app.clock().id(), app.in_force().settings.request_timeout.min(LONGEST_TURN));
    let mut pause = FIRST_PAUSE;
    loop {
        let (id, now) = (id.clone(), app.clock().now());
        let end = now + limit + AFTERWARDS;
        let take = app
            .store()
            .write(move |conn| Box::pin(async move { store::turns::take(conn, &id, holder, now, end).await }));
        if take.await? {
            return Ok(Some(holder));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn answer(form: Form, live: Arc<Live>, seen: usize) -> Response {
    if matches!(form, Form::Stream) {
        let mut response = sse::respond(live.listen(seen));
        response.extensions_mut().insert(Ended::later());
        return response;
    }
    respond(form, live.reply().await, false, seen, Ended::later())
}

struct Task {
    app: App,
    runner: AgentRunner,
    turn: Turn,
    live: Arc<Live>,
}

impl Task {
    async fn run(self, begun: Begun) {
        let Self { app, runner, turn, live } = &self;
        let tools = app.tools();
        let mut toolbox = tools.for_user(&begun.context.user, app.store()).in_conversation(turn.place.id());
        let mut watch = |event: Event| self.tell(&event);
        let ran = runner.stream(&begun.context, &turn.request, &mut toolbox, &mut watch);
        // Whoever listens must hear an end, whatever happens here.
        let mut result = match AssertUnwindSafe(ran).catch_unwind().await {
            Ok(ran) => ran.unwrap_or_else(|error| self.lost(&error.to_string())),
            Err(_) => self.lost("panic"),
        };
        // `done` is the promise that the exchange is kept: it is told after it is.
        let reply = self.reply(&result);
        let answer = turn.key.clone().map(|key| (key, reply.clone()));
        let kept = keep(app, &turn.request, turn.place.id(), &begun, &result, answer);
        let reply = match Box::pin(kept).await {
            Ok(()) => reply,
            Err(error) => {
                result = self.lost(&error.to_string());
                self.reply(&result)
            }
        };
        let done = || sse::done(live.count() + 1, &self.told(&result)).unwrap_or_default();
        live.end(matches!(turn.form, Form::Stream).then(done), reply);
        if let Some(key) = &turn.key {
            app.turns().remove(turn.user.id, &key.key);
        }
        app.metrics().count_turn(&Ended::of(&result), tools.names);
        Ended::of(&result).log(true, turn.started);
    }

    fn told<'a>(&'a self, result: &'a AgentResult) -> Told<'a> {
        Told {
            result,
            request: &self.turn.request,
            conversation_id: self.turn.place.id(),
            request_id: &self.turn.request_id,
            model: result.answered_by.as_deref().unwrap_or(self.runner.models.first().name()),
            milliseconds: milliseconds(self.turn.started),
        }
    }

    /// The whole answer, as it is kept for its key; a stream without one has been told already.
    fn reply(&self, result: &AgentResult) -> Reply {
        let told = self.told(result);
        let body = match self.turn.form {
            Form::Stream if self.turn.key.is_none() => String::new(),
            Form::Stream => {
                let done = sse::done(self.live.count() + 1, &told).unwrap_or_default();
                format!("{}{done}", self.live.everything())
            }
            Form::Document(make) => make(&told).unwrap_or_default(),
        };
        Reply { status: 200, body }
    }

    fn tell(&self, event: &Event) {
        let block = sse::block(self.live.count() + 1, event.name(), event, &self.turn.request_id);
        self.live.tell(block.unwrap_or_default());
    }

    fn lost(&self, error_message: &str) -> AgentResult {
        tracing::error!(event = "error_occurred", error_type = "internal", error_message, recoverable = false);
        let result = AgentResult::failed(ErrorType::Internal, assistant::trouble());
        self.tell(&failure(&result));
        result
    }
}

/// The exchange and the answer to its key, in one write.
pub(super) async fn keep(
    app: &App,
    request: &Request,
    id: Option<&Id>,
    begun: &Begun,
    result: &AgentResult,
    answer: Option<(Key, Reply)>,
) -> store::Result<()> {
    let (owner, now) = (begun.context.user.id, app.clock().now());
    let kept = exchange(app.clock(), request, begun.asked, result);
    let (id, holder) = (id.cloned(), begun.holder);
    let write = app.store().write(move |conn| {
        Box::pin(async move {
            if let Some(id) = &id {
                store::conversations::append(conn, owner, id, &kept, now).await?;
                if let Some(holder) = holder {
                    store::turns::give_back(conn, id, holder).await?;
                }
            }
            match &answer {
                Some((key, reply)) => settle(conn, owner, key, now, reply).await,
                None => Ok(()),
            }
        })
    });
    write.await
}
