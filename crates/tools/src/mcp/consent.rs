//! Asks the user of an MCP client to confirm a destructive call (AGENT-7).
//!
//! A client of the older revisions gets a question in an elicitation request. A client of 2026-07-28 gets the question
//! as the answer to its call, and calls again with the response and a sealed token. The token is valid for one user,
//! one call with the resolved tasks, five minutes and one use. A response without a question is ignored.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Zoned;
use model::words::join_with_and;
use rmcp::model::{
    CallToolRequestParams, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    InputRequest, InputRequests, InputRequiredResult, ProtocolVersion, RequestStateCodec, SealOptions,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::McpCaller;
use crate::answer::{CONFIRMATION_REQUIRED, ToolFailure};
use crate::{HeldCall, HeldCalls, ToolArguments};

/// The time for the user to respond.
const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// The key of the question in the input requests.
const QUESTION_KEY: &str = "confirm";

/// Creates and redeems confirmation tokens.
pub(super) struct ConsentTokens {
    codec: RequestStateCodec,
    /// The redeemed tokens, until they expire.
    used: Mutex<HashMap<Uuid, Instant>>,
}

/// The result of redeeming the response of a client.
pub(super) enum ConsentOutcome {
    /// The request contains no response to a question.
    NotAsked,
    /// The user has confirmed a call with these arguments.
    Confirmed(ToolArguments),
    Refused(ToolFailure),
}

/// The sealed content of a token: the call that the user was asked about.
#[derive(Serialize, Deserialize)]
struct ConsentPayload {
    id: Uuid,
    arguments: ToolArguments,
}

impl ConsentTokens {
    /// Creates the tokens of a node. Nodes with the same secret accept each other's tokens. Without a secret, the key
    /// is random and a token is valid only in this process. Each node records only the tokens that it has redeemed
    /// itself.
    pub(super) fn new(secret: Option<&[u8]>) -> Self {
        let mut key = Sha256::new_with_prefix("adjutant: consent of an MCP client");
        match secret {
            Some(secret) => key.update(secret),
            None => (0..4).for_each(|_| key.update(random_bytes())),
        }
        // The hash has the required length, independent of the secret.
        let codec = RequestStateCodec::new_unchecked(key.finalize().to_vec());
        Self { codec, used: Mutex::default() }
    }

    /// Returns the question as the answer to a call, with a sealed token. The token is bound to the user, the tool and
    /// the original arguments, contains the resolved arguments, and is valid for [`CONFIRMATION_TIMEOUT`]. Fails if the
    /// token cannot be sealed.
    pub(super) fn question(
        &self,
        caller: &McpCaller,
        original_arguments: &ToolArguments,
        held: &HeldCall,
    ) -> Result<InputRequiredResult, ErrorData> {
        let binding = token_binding(caller, &held.tool, original_arguments);
        let payload = ConsentPayload { id: caller.tools.clock.id(), arguments: held.arguments.clone() };
        let options = SealOptions::new().associated_data(&binding).ttl(CONFIRMATION_TIMEOUT);
        let sealed = self.codec.seal_json_with(&payload, &options);
        let state =
            sealed.map_err(|_| ErrorData::internal_error("the confirmation token could not be sealed", None))?;
        let question = InputRequest::Elicitation(ElicitRequest::new(elicitation_form(held, &local_now(caller))));
        Ok(InputRequiredResult::new(Some(InputRequests::from([(QUESTION_KEY.to_owned(), question)])), Some(state)))
    }

    /// Redeems the response of a client that repeats its call. Returns the resolved arguments of the question. Returns
    /// [`ConsentOutcome::NotAsked`] if the request has no response or no token. Refuses it if the token is invalid,
    /// expired, already used, or for another user, tool or arguments. Also refuses it if the user did not accept, which
    /// does not use up the token.
    pub(super) fn redeem(
        &self,
        caller: &McpCaller,
        request: &CallToolRequestParams,
        original_arguments: &ToolArguments,
    ) -> ConsentOutcome {
        let answer = request.input_responses.as_ref().and_then(|answers| answers.get(QUESTION_KEY));
        let (Some(answer), Some(state)) = (answer, &request.request_state) else { return ConsentOutcome::NotAsked };
        let binding = token_binding(caller, &request.name, original_arguments);
        let Ok(payload) = self.codec.open_json_with::<ConsentPayload>(state, &binding) else {
            let message = "The confirmation is not for this call, or it has expired. Nothing was changed. \
                           Call again to ask the user again.";
            return ConsentOutcome::Refused(ToolFailure::new(CONFIRMATION_REQUIRED, message));
        };
        let action = ElicitResult::deserialize(answer).map(|answer| answer.action);
        if !matches!(action, Ok(ElicitationAction::Accept)) {
            return ConsentOutcome::Refused(declined());
        }
        if !self.is_first_use(payload.id) {
            let message = "The confirmation was already used. Nothing was changed. Call again to ask the user again.";
            return ConsentOutcome::Refused(ToolFailure::new(CONFIRMATION_REQUIRED, message));
        }
        ConsentOutcome::Confirmed(payload.arguments)
    }

    /// Marks a token as used. Returns false if it was used within [`CONFIRMATION_TIMEOUT`].
    fn is_first_use(&self, id: Uuid) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|_, at| at.elapsed() < CONFIRMATION_TIMEOUT);
        used.insert(id, Instant::now()).is_none()
    }
}

/// Returns the data that a token is bound to: the user, the tool and the arguments. The keys are sorted, because a
/// client may repeat them in a different order.
fn token_binding(caller: &McpCaller, tool: &str, original_arguments: &ToolArguments) -> Vec<u8> {
    let sorted: BTreeMap<&String, &Value> = original_arguments.iter().collect();
    json!([caller.user.id, tool, sorted]).to_string().into_bytes()
}

#[expect(clippy::disallowed_methods, reason = "a key must be random, not an id")]
fn random_bytes() -> [u8; 16] {
    Uuid::new_v4().into_bytes()
}

/// Returns true for a client of 2026-07-28 or later, to which a server cannot send requests.
pub(super) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Returns true if the client can show a question to its user.
pub(super) fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    let elicitation = context.client_capabilities().and_then(|can| can.elicitation);
    // A client that names no mode uses an older revision, in which forms were the only mode.
    elicitation.is_some_and(|can| can.form.is_some() || can.url.is_none())
}

/// Asks the user through a client of the older revisions. Fails with `CONFIRMATION_REQUIRED` if the user does not
/// accept, if the request is cancelled, or if the client fails or does not respond within [`CONFIRMATION_TIMEOUT`]. The
/// last case is logged.
pub(super) async fn ask(held: &HeldCall, now: &Zoned, context: &RequestContext<RoleServer>) -> Result<(), ToolFailure> {
    let asked = context.peer.create_elicitation_with_timeout(elicitation_form(held, now), Some(CONFIRMATION_TIMEOUT));
    let answer = tokio::select! {
        answer = asked => answer,
        () = context.ct.cancelled() => return Err(declined()),
    };
    match answer {
        Ok(answer) if answer.action == ElicitationAction::Accept => Ok(()),
        Ok(_) => Err(declined()),
        Err(error) => {
            tracing::warn!(error = %error, "the client could not ask the user");
            let message = "The user could not be asked or did not respond. Nothing was changed.";
            Err(ToolFailure::new(CONFIRMATION_REQUIRED, message))
        }
    }
}

/// Returns the failure for a client that cannot show a question. Its message contains the question and asks the model
/// to call again with `confirmation: true`.
pub(super) fn confirmation_required(held: &HeldCall, now: &Zoned) -> ToolFailure {
    let message = format!(
        "{} Nothing was changed. Ask the user. If the user confirms, call {} again with confirmation: true.",
        question(held, now),
        held.tool
    );
    ToolFailure::new(CONFIRMATION_REQUIRED, message)
}

/// Returns the current time in the time zone of the caller.
pub(super) fn local_now(caller: &McpCaller) -> Zoned {
    caller.tools.clock.now().to_zoned(caller.user.time_zone.clone())
}

fn declined() -> ToolFailure {
    ToolFailure::new(CONFIRMATION_REQUIRED, "The user did not confirm. Nothing was changed.")
}

/// Returns an empty form. Accepting it is the confirmation.
fn elicitation_form(held: &HeldCall, now: &Zoned) -> ElicitRequestParams {
    let requested_schema = ElicitationSchema::new(BTreeMap::new());
    ElicitRequestParams::FormElicitationParams { meta: None, message: question(held, now), requested_schema }
}

/// Returns the question in the words of S1. A single call is always about a deletion and names the task. A bulk call
/// names up to five tasks and what is done to them (TRUST-6). Dates are relative to `now`.
fn question(held: &HeldCall, now: &Zoned) -> String {
    match held.targets.as_slice() {
        [] => format!("Do you want to {}?", held.describe()),
        [one] if !held.bulk => format!("Do you really want to delete '{}'?", one.title),
        _ => {
            let actions = HeldCalls::new(vec![held.clone()]).map(|held| held.actions(now)).unwrap_or_default();
            format!("That's a big action: {}?", join_with_and(&actions))
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use model::{Clock, User, task};

    use super::*;
    use crate::{CallTarget, ConfirmationPolicy, ToolNames, Tools};

    fn caller() -> McpCaller {
        let tools = Tools {
            clock: Clock::system(),
            limits: task::TaskLimits::default(),
            names: ToolNames::Task,
            confirmation: ConfirmationPolicy::Destructive,
            servers: None,
            supervisor: None,
            scheduler: None,
            has_worker: true,
            parser: understand::UtteranceParser::default(),
        };
        McpCaller { user: User::local(TimeZone::UTC), tools, span: tracing::Span::none() }
    }

    fn held_call(tool: &str, titles: &[&str], bulk: bool) -> HeldCall {
        let targets = titles.iter().map(|title| CallTarget { id: json!(title), title: (*title).to_owned() }).collect();
        let arguments = ToolArguments::from_iter([("task_id".to_owned(), json!(Uuid::nil()))]);
        HeldCall::with_targets(tool, arguments, targets, bulk)
    }

    #[test]
    fn questions_have_the_form_of_s1() {
        // AGENT-7
        for (held, expected) in [
            (held_call("delete_task", &["buy milk"], false), "Do you really want to delete 'buy milk'?"),
            (held_call("delete_tasks", &["a", "b"], true), "That's a big action: delete 'a' and 'b'?"),
            (held_call("delete_todos", &["a"], true), "That's a big action: delete 'a'?"),
            (
                held_call("complete_tasks", &["a", "b", "c"], true),
                "That's a big action: mark 'a', 'b' and 'c' as complete?",
            ),
        ] {
            let now = local_now(&caller());
            assert_eq!(question(&held, &now), expected);
            assert!(confirmation_required(&held, &now).message().contains(expected));
        }
    }

    #[test]
    fn nodes_with_the_same_secret_accept_each_others_tokens() {
        // AGENT-7, OPS-5
        let caller = caller();
        let held = held_call("delete_task", &["buy milk"], false);
        let redeemed = |asked: &ConsentTokens, answered: &ConsentTokens| {
            let state = asked.question(&caller, &held.arguments, &held).unwrap().request_state.unwrap();
            let answers = [(QUESTION_KEY.to_owned(), json!({"action": "accept"}))].into();
            let request = CallToolRequestParams::new("delete_task").with_input_responses(answers);
            answered.redeem(&caller, &request.with_request_state(state), &held.arguments)
        };
        let with = |secret: &str| ConsentTokens::new(Some(secret.as_bytes()));
        assert!(
            matches!(redeemed(&with("one"), &with("one")), ConsentOutcome::Confirmed(arguments) if arguments == held.arguments)
        );
        assert!(matches!(redeemed(&with("one"), &with("another")), ConsentOutcome::Refused(_)));
        assert!(matches!(redeemed(&ConsentTokens::new(None), &ConsentTokens::new(None)), ConsentOutcome::Refused(_)));
    }
}
