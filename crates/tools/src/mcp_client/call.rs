//! Calls an external tool for a user. Holds the call if it needs a confirmation, and sets the arguments that only we
//! may set.

use std::time::Duration;

use model::User;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use super::{ExternalCallError, ExternalTool, McpServers, normalize};
use crate::answer::{self, ToolAnswer, ToolFailure};
use crate::{CallTarget, ConfirmationPolicy, Consent, HeldCall, ToolArguments, ToolKind, ToolOutcome, ToolSpec};

/// The minimum time for a call, even if the deadline is closer.
const MIN_CALL_TIME: Duration = Duration::from_secs(1);

/// The context of calls to external tools.
pub(crate) struct ExternalCaller<'a> {
    pub(crate) servers: &'a McpServers,
    /// True if the user has exempted the tool from confirmations.
    pub(crate) is_allowed: bool,
    pub(crate) progress: Option<&'a UnboundedSender<String>>,
    pub(crate) user: &'a User,
    pub(crate) confirmation: ConfirmationPolicy,
    /// All tools of the user.
    pub(crate) specs: &'a [ToolSpec],
    /// The time until which an answer is useful.
    pub(crate) deadline: Option<Instant>,
}

impl ExternalCaller<'_> {
    /// Calls the tool, or holds the call if it needs a confirmation. `external` belongs to `spec`. If the tool takes
    /// `user_id` or `confirmation`, these are set here, and values of the caller are ignored. Failures become failed
    /// answers.
    pub(crate) async fn call(
        &self,
        spec: &ToolSpec,
        external: &ExternalTool,
        mut arguments: ToolArguments,
        consent: Consent,
    ) -> ToolOutcome {
        // The caller must not choose the user or give the confirmation.
        if external.takes_user {
            arguments.shift_remove("user_id");
        }
        if external.takes_confirmation {
            arguments.shift_remove("confirmation");
        }
        if !self.is_allowed && external.needs_confirmation(self.confirmation, consent) {
            let can_allow = external.can_allow() && consent != Consent::AfterForeignText;
            return match self.hold(spec, external, arguments).await {
                ToolOutcome::Held(held) => {
                    let can_allow = can_allow && held.is_opaque();
                    ToolOutcome::Held(HeldCall { can_allow, ..held })
                }
                done => done,
            };
        }
        if external.takes_user {
            arguments.insert("user_id".to_owned(), json!(self.user.id));
        }
        if external.takes_confirmation {
            arguments.insert("confirmation".to_owned(), true.into());
        }
        ToolOutcome::Done(self.answer(spec, external, arguments).await)
    }

    /// Calls the tool and converts its result. Leaves out null values of optional arguments. Waits until the deadline,
    /// but at least [`MIN_CALL_TIME`]. A rejected call becomes a `VALIDATION_ERROR`. A timeout and an unavailable
    /// server become `UNAVAILABLE`.
    async fn answer(&self, spec: &ToolSpec, external: &ExternalTool, mut arguments: ToolArguments) -> ToolAnswer {
        // Most models do not distinguish absent values from null, but most servers do.
        let is_optional = |key: &str| {
            !spec
                .schema
                .get("required")
                .and_then(Value::as_array)
                .is_some_and(|required| required.iter().any(|required| required == key))
        };
        arguments.retain(|key, value| !(value.is_null() && is_optional(key)));
        let max_wait = self
            .deadline
            .map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()).max(MIN_CALL_TIME));
        match self.servers.call_within(&external.tool, arguments, max_wait, self.progress).await {
            Ok(result) => normalize::answer(result, spec.kind),
            Err(error) => {
                let code = match error {
                    ExternalCallError::Refused(_) => answer::VALIDATION_ERROR,
                    ExternalCallError::Unavailable(_) | ExternalCallError::TimedOut => answer::UNAVAILABLE,
                };
                ToolAnswer::failed(ToolFailure::new(code, format!("The MCP server {} {error}.", external.tool.server)))
            }
        }
    }

    /// Returns the held call. The deletion of a task is resolved to the task with its title, and its other arguments
    /// are dropped. This calls the list tool of the server. Any other call, and a deletion without a usable list, is
    /// held with its arguments. Returns a failed answer if the id is missing, the task does not exist or the list
    /// cannot be read.
    async fn hold(&self, spec: &ToolSpec, external: &ExternalTool, arguments: ToolArguments) -> ToolOutcome {
        if spec.kind != Some(ToolKind::Delete) {
            return ToolOutcome::Held(HeldCall::opaque(&spec.name, arguments));
        }
        let key = spec.task_id_argument();
        let Some(id) = arguments.get(key).filter(|id| !id.is_null()).cloned() else {
            let failure = ToolFailure::new(answer::VALIDATION_ERROR, format!("{key} is required"));
            return ToolOutcome::Done(ToolAnswer::failed(failure));
        };
        match self.task_title(external, &id).await {
            Ok(Some(title)) => ToolOutcome::Held(HeldCall::single(&spec.name, key, CallTarget { id, title })),
            // Without a title, the question can only name the call itself.
            Ok(None) => ToolOutcome::Held(HeldCall::opaque(&spec.name, arguments)),
            Err(answer) => ToolOutcome::Done(answer),
        }
    }

    /// Returns the title of a task from the list of its server. Returns `None` if the server has no list tool, or if
    /// the list has no tasks or no title. Fails with an answer if the task is not in the list or the list cannot be
    /// read. Only the first page is read.
    async fn task_title(&self, external: &ExternalTool, id: &Value) -> Result<Option<String>, ToolAnswer> {
        let server = &external.tool.server;
        let is_list = |spec: &&ToolSpec| {
            spec.kind == Some(ToolKind::List)
                && spec.external.as_ref().is_some_and(|other| other.tool.server == *server)
        };
        let Some(list) = self.specs.iter().find(is_list) else { return Ok(None) };
        let Some(list_tool) = &list.external else { return Ok(None) };
        let mut arguments = ToolArguments::new();
        if list.has_argument("status") {
            arguments.insert("status".to_owned(), "all".into());
        }
        if list_tool.takes_user {
            arguments.insert("user_id".to_owned(), json!(self.user.id));
        }
        let answer = self.answer(list, list_tool, arguments).await;
        if answer.error().is_some() {
            return Err(answer);
        }
        let Some(tasks) = answer.data()["tasks"].as_array() else { return Ok(None) };
        match tasks.iter().find(|task| is_same_id(&task["id"], id)) {
            Some(task) => Ok(task["title"].as_str().map(str::to_owned)),
            None => Err(ToolAnswer::failed(ToolFailure::new(answer::NOT_FOUND, "There is no such task."))),
        }
    }
}

/// Compares ids. A model may write a number as text.
fn is_same_id(one: &Value, other: &Value) -> bool {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text(one) == text(other)
}
