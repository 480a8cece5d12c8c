//! Handles `GET /agents`: returns the cards of the agents that the caller may use.

use std::collections::HashMap;

use ::a2a::Version;
use api::agents::ListAgents;
use axum::Json;
use axum::extract::State;
use axum::http::{Extensions, HeaderMap};
use model::agent::endpoint::AUTHORIZATION_HEADER;
use serde::Serialize;
use serde_json::Value;

use super::authn::{self, CallerAuth, OfferedAgent};
use super::cards::{self, BaseUrl};
use crate::input::QueryParams;
use crate::{App, Problem, auth};

#[derive(Serialize)]
pub(super) struct CardList {
    agents: Vec<Value>,
    count: usize,
    /// Always `null`, because all agents are on one page.
    next_cursor: Option<String>,
}

/// Returns the cards of the agents that the user may run, that accept a presented credential, or that require none.
/// Cards have the form of 0.3. Without a verifier the caller is the local user. `limit` and `cursor` have no effect.
///
/// Fails with 422 if another parameter is given, and with 429 if the rate limit of the user is exceeded. Fails with 401
/// if a presented credential is invalid for every agent, which is logged and counts for the block of the address. While
/// the address is blocked, this fails with 429. Also fails with 401 if a caller without credentials would get an empty
/// list.
pub(super) async fn list(
    State(app): State<App>,
    QueryParams(_): QueryParams<ListAgents>,
    headers: HeaderMap,
    extensions: Extensions,
) -> Result<Json<CardList>, Problem> {
    let config = app.active_config();
    let from = authn::client_address(&config, &extensions, &headers);
    let token = authn::presented_jwt(&headers);
    let user = auth::identify(&app, token).await;
    if let (Some(limiter), Some(user)) = (&config.limiter, &user) {
        limiter.check(&user.id).map_err(Problem::too_many_requests)?;
    }
    let base = extensions
        .get()
        .cloned()
        .unwrap_or_else(|| BaseUrl::from_request(&config.settings, &Default::default(), &headers));
    // Every presented credential must be valid for an agent. Otherwise this endpoint could be used to guess
    // credentials.
    let mut presented = HashMap::new();
    if token.is_some() {
        presented.insert(AUTHORIZATION_HEADER.to_ascii_lowercase(), user.is_some());
    }
    let mut agents = Vec::new();
    for offered in OfferedAgent::all(&app) {
        let mut is_visible = user.as_ref().is_some_and(|user| offered.entry.is_allowed_for(user))
            || !offered.caller_auth().is_required();
        if let CallerAuth::AgentCredential(auth) = offered.caller_auth()
            && let Some(key) = authn::presented_credential(auth, &headers)
        {
            let is_valid = authn::is_agent_credential(&app, auth, key).await;
            *presented.entry(auth.header().unwrap_or_default().to_ascii_lowercase()).or_insert(false) |= is_valid;
            is_visible |= is_valid;
        }
        if is_visible {
            agents.push(card_json(&offered, &base)?);
        }
    }
    if presented.values().any(|is_valid| !is_valid) {
        let blocked = authn::record_failure(&app, from, None);
        return Err(blocked.map_or_else(Problem::unauthorized, Problem::too_many_requests));
    }
    if agents.is_empty() && presented.is_empty() && user.is_none() {
        return Err(Problem::unauthorized());
    }
    Ok(Json(CardList { count: agents.len(), agents, next_cursor: None }))
}

/// Returns the card in the form of 0.3, which also contains the fields of 1.0.
fn card_json(offered: &OfferedAgent, base: &BaseUrl) -> Result<Value, Problem> {
    let card = cards::card(offered, base).card;
    ::a2a::http::card_json(card, Version::V03).map_err(|error| Problem::internal(error.to_string()))
}
