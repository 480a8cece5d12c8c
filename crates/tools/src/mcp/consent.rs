//! How the user of an MCP client is asked before something is destroyed (AGENT-7).
//!
//! A client of the older revisions is sent a question and waited for. One of 2026-07-28 gets the question as its answer
//! and calls again: what it then brings along is sealed, so that consent is for one user, one call and the tasks it was
//! resolved to, for five minutes, once. An answer to a question that was not asked counts for nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

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

use super::Asker;
use crate::answer::{CONFIRMATION_REQUIRED, Failure};
use crate::{Act, Arguments};

/// How long the user may think.
const PATIENCE: Duration = Duration::from_secs(5 * 60);
/// What the question is called among those of one answer.
const QUESTION: &str = "confirm";

pub(super) struct Consents {
    codec: RequestStateCodec,
    /// Consent that was made use of, until it would have expired.
    used: Mutex<HashMap<Uuid, Instant>>,
}

/// What a client's answer comes to.
pub(super) enum Verdict {
    /// There was no question, so this is no answer.
    NotAsked,
    /// To a call with these arguments.
    Agreed(Arguments),
    Refused(Failure),
}

/// What the user was asked about.
#[derive(Serialize, Deserialize)]
struct Sealed {
    id: Uuid,
    arguments: Arguments,
}

impl Consents {
    /// Nodes with the same secret understand one another; without one this process understands only itself.
    pub(super) fn new(secret: Option<&[u8]>) -> Self {
        let mut key = Sha256::new_with_prefix("adjutant: consent of an MCP client");
        match secret {
            Some(secret) => key.update(secret),
            None => (0..4).for_each(|_| key.update(chance())),
        }
        // Its length is right, whatever the secret's.
        let codec = RequestStateCodec::new_unchecked(key.finalize().to_vec());
        Self { codec, used: Mutex::default() }
    }

    /// The question as an answer to the call.
    pub(super) fn question(
        &self,
        asker: &Asker,
        called_with: &Arguments,
        act: &Act,
    ) -> Result<InputRequiredResult, ErrorData> {
        let bound = bound_to(asker, &act.tool, called_with);
        let sealed = Sealed { id: asker.tools.clock.id(), arguments: act.arguments.clone() };
        let options = SealOptions::new().associated_data(&bound).ttl(PATIENCE);
        let sealed = self.codec.seal_json_with(&sealed, &options);
        let state = sealed.map_err(|_| ErrorData::internal_error("the question could not be written", None))?;
        let question = InputRequest::Elicitation(ElicitRequest::new(form(act)));
        Ok(InputRequiredResult::new(Some(InputRequests::from([(QUESTION.to_owned(), question)])), Some(state)))
    }

    /// What a client says that calls again.
    pub(super) fn redeem(&self, asker: &Asker, request: &CallToolRequestParams, called_with: &Arguments) -> Verdict {
        let answer = request.input_responses.as_ref().and_then(|answers| answers.get(QUESTION));
        let (Some(answer), Some(state)) = (answer, &request.request_state) else { return Verdict::NotAsked };
        let bound = bound_to(asker, &request.name, called_with);
        let Ok(sealed) = self.codec.open_json_with::<Sealed>(state, &bound) else {
            let message = "This consent is not for this call, or too old. Nothing was changed; call again to ask anew.";
            return Verdict::Refused(Failure::new(CONFIRMATION_REQUIRED, message));
        };
        let action = ElicitResult::deserialize(answer).map(|answer| answer.action);
        if !matches!(action, Ok(ElicitationAction::Accept)) {
            return Verdict::Refused(declined());
        }
        if !self.is_first_use(sealed.id) {
            let message = "This consent was used already. Nothing was changed; call again to ask anew.";
            return Verdict::Refused(Failure::new(CONFIRMATION_REQUIRED, message));
        }
        Verdict::Agreed(sealed.arguments)
    }

    fn is_first_use(&self, id: Uuid) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|_, at| at.elapsed() < PATIENCE);
        used.insert(id, Instant::now()).is_none()
    }
}

/// What a seal is good for. The keys are sorted: a client need not send them in the order it sent them before.
fn bound_to(asker: &Asker, tool: &str, called_with: &Arguments) -> Vec<u8> {
    let sorted: BTreeMap<&String, &Value> = called_with.iter().collect();
    json!([asker.user.id, tool, sorted]).to_string().into_bytes()
}

#[expect(clippy::disallowed_methods, reason = "a key must be random, not an id")]
fn chance() -> [u8; 16] {
    Uuid::new_v4().into_bytes()
}

/// Whether the client speaks 2026-07-28, where a server asks nothing by itself.
pub(super) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Whether the client can show its user a question.
pub(super) fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    let elicitation = context.client_capabilities().and_then(|can| can.elicitation);
    // One that names no form at all is of the revision that knew no other.
    elicitation.is_some_and(|can| can.form.is_some() || can.url.is_none())
}

/// Asks a client of the older revisions, and waits.
pub(super) async fn ask(act: &Act, context: &RequestContext<RoleServer>) -> Result<(), Failure> {
    let asked = context.peer.create_elicitation_with_timeout(form(act), Some(PATIENCE));
    let answer = tokio::select! {
        answer = asked => answer,
        () = context.ct.cancelled() => return Err(declined()),
    };
    match answer {
        Ok(answer) if answer.action == ElicitationAction::Accept => Ok(()),
        Ok(_) => Err(declined()),
        Err(error) => {
            tracing::warn!(error = %error, "a client could not ask its user");
            let message = "The user could not be asked, or did not answer. Nothing was changed.";
            Err(Failure::new(CONFIRMATION_REQUIRED, message))
        }
    }
}

/// For a client that cannot ask.
pub(super) fn needed(act: &Act) -> Failure {
    let message = format!(
        "{} Nothing was changed. Ask the user; if the user agrees, call {} again with confirmation: true.",
        question(act),
        act.tool
    );
    Failure::new(CONFIRMATION_REQUIRED, message)
}

fn declined() -> Failure {
    Failure::new(CONFIRMATION_REQUIRED, "The user did not agree. Nothing was changed.")
}

/// Accepting it is the consent; there is nothing to fill in.
fn form(act: &Act) -> ElicitRequestParams {
    let requested_schema = ElicitationSchema::new(BTreeMap::new());
    ElicitRequestParams::FormElicitationParams { meta: None, message: question(act), requested_schema }
}

/// S1's words.
fn question(act: &Act) -> String {
    match act.targets.as_slice() {
        [one] if !act.bulk => format!("Do you really want to delete '{}'?", one.title),
        several => {
            let verb = if act.tool.starts_with("complete") { "complete" } else { "delete" };
            let tasks = if several.len() == 1 { "task" } else { "tasks" };
            format!("That's a big action: {verb} {} {tasks}?", several.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use model::{Clock, User, task};

    use super::*;
    use crate::{Confirm, Names, Target, Tools};

    fn asker() -> Asker {
        let tools = Tools {
            clock: Clock::system(),
            limits: task::Limits::default(),
            names: Names::Task,
            confirm: Confirm::Destructive,
            servers: None,
            supervisor: None,
            scheduler: None,
        };
        Asker { user: User::local(TimeZone::UTC), tools, span: tracing::Span::none() }
    }

    fn act(tool: &str, titles: &[&str], bulk: bool) -> Act {
        let targets =
            titles.iter().map(|title| Target { id: json!(Uuid::nil()), title: (*title).to_owned() }).collect();
        let arguments = Arguments::from_iter([("task_id".to_owned(), json!(Uuid::nil()))]);
        Act { tool: tool.to_owned(), arguments, targets, bulk }
    }

    #[test]
    fn the_question_names_what_would_happen() {
        // AGENT-7
        for (act, words) in [
            (act("delete_task", &["buy milk"], false), "Do you really want to delete 'buy milk'?"),
            (act("delete_tasks", &["a", "b"], true), "That's a big action: delete 2 tasks?"),
            (act("delete_todos", &["a"], true), "That's a big action: delete 1 task?"),
            (act("complete_tasks", &["a", "b", "c"], true), "That's a big action: complete 3 tasks?"),
        ] {
            assert_eq!(question(&act), words);
            assert!(needed(&act).message().contains(words));
        }
    }

    #[test]
    fn nodes_understand_one_another_by_their_secret() {
        // AGENT-7, OPS-5
        let asker = asker();
        let held = act("delete_task", &["buy milk"], false);
        let redeemed = |asked: &Consents, answered: &Consents| {
            let state = asked.question(&asker, &held.arguments, &held).unwrap().request_state.unwrap();
            let answers = [(QUESTION.to_owned(), json!({"action": "accept"}))].into();
            let request = CallToolRequestParams::new("delete_task").with_input_responses(answers);
            answered.redeem(&asker, &request.with_request_state(state), &held.arguments)
        };
        let with = |secret: &str| Consents::new(Some(secret.as_bytes()));
        assert!(
            matches!(redeemed(&with("one"), &with("one")), Verdict::Agreed(arguments) if arguments == held.arguments)
        );
        assert!(matches!(redeemed(&with("one"), &with("another")), Verdict::Refused(_)));
        assert!(matches!(redeemed(&Consents::new(None), &Consents::new(None)), Verdict::Refused(_)));
    }
}
