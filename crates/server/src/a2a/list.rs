//! `GET /agents`: the cards of the agents that the caller may see.

use std::collections::HashMap;

use ::a2a::Version;
use api::agents::ListAgents;
use axum::Json;
use axum::extract::State;
use axum::http::{Extensions, HeaderMap};
use model::User;
use model::agent::endpoint::AUTHORIZATION;
use serde::Serialize;
use serde_json::Value;

use super::admission::{self, Offered, Way};
use super::cards::{self, Base};
use crate::input::Params;
use crate::{App, Problem, auth};

#[derive(Serialize)]
pub(super) struct Cards {
    agents: Vec<Value>,
    count: usize,
    /// There is one page only.
    next_cursor: Option<String>,
}

/// Those whom the server knows see the agents that they may run; a token of an agent's own shows that agent; and everyone
/// sees those that take calls from everyone.
pub(super) async fn list(
    State(app): State<App>,
    Params(_): Params<ListAgents>,
    headers: HeaderMap,
    extensions: Extensions,
) -> Result<Json<Cards>, Problem> {
    let in_force = app.in_force();
    let from = admission::address(&in_force, &extensions, &headers);
    if let Some(wait) = app.a2a().blocks.wait(from, app.clock().now()) {
        return Err(Problem::too_many_requests(wait));
    }
    let token = admission::presented_jwt(&headers);
    let user = match (&in_force.verifier, token) {
        (None, _) => Some(User::local(in_force.settings.time_zone.clone())),
        (Some(_), None) => None,
        (Some(_), Some(token)) => auth::identify(&app, Some(token)).await,
    };
    if let (Some(limiter), Some(user)) = (&in_force.limiter, &user) {
        limiter.take(&user.id).map_err(Problem::too_many_requests)?;
    }
    let base = extensions.get().cloned().unwrap_or_else(|| Base::of(&in_force.settings, &Default::default(), &headers));
    // What was presented must be good for something, or this would be a place to guess at.
    let mut presented = HashMap::new();
    if token.is_some() {
        presented.insert(AUTHORIZATION.to_ascii_lowercase(), user.is_some());
    }
    let mut agents = Vec::new();
    for offered in Offered::all(&app) {
        let mut seen = user.as_ref().is_some_and(|user| offered.entry.is_for(user)) || !offered.way().is_required();
        if let Way::Own(auth) = offered.way()
            && let Some(key) = admission::presented(auth, &headers)
        {
            let theirs = admission::is_theirs(&app, auth, key).await;
            *presented.entry(auth.header().unwrap_or_default().to_ascii_lowercase()).or_insert(false) |= theirs;
            seen |= theirs;
        }
        if seen {
            agents.push(shown(&offered, &base)?);
        }
    }
    if presented.values().any(|good| !good) {
        admission::failed(&app, from, None);
        return Err(Problem::unauthorized());
    }
    if agents.is_empty() && presented.is_empty() && user.is_none() {
        return Err(Problem::unauthorized());
    }
    Ok(Json(Cards { count: agents.len(), agents, next_cursor: None }))
}

/// As both versions read it.
fn shown(offered: &Offered, base: &Base) -> Result<Value, Problem> {
    let card = cards::card(offered, base).card;
    ::a2a::http::card_json(card, Version::V03).map_err(|error| Problem::internal(error.to_string()))
}
