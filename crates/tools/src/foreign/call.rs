//! Calling a tool of somebody else on behalf of a user: asked about first where that is needed, with what only we may say.

use std::time::Duration;

use model::User;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{CallError, Foreign, Servers, reading};
use crate::answer::{self, Answer, Failure};
use crate::{Act, Arguments, Confirm, Consent, Outcome, Spec, Target, Tool};

/// Every call is given this much time.
const LEAST: Duration = Duration::from_secs(1);

/// What a call needs besides the call itself.
pub(crate) struct Caller<'a> {
    pub(crate) servers: &'a Servers,
    pub(crate) user: &'a User,
    pub(crate) confirm: Confirm,
    /// All tools there are.
    pub(crate) specs: &'a [Spec],
    /// An answer that comes later is of no use.
    pub(crate) until: Option<Instant>,
}

impl Caller<'_> {
    /// `spec` is the tool's, `foreign` what it says about its home.
    pub(crate) async fn call(
        &self,
        spec: &Spec,
        foreign: &Foreign,
        mut arguments: Arguments,
        consent: Consent,
    ) -> Outcome {
        // Whose data it is, and whether the user agreed, is not for the caller to say.
        if foreign.takes_user {
            arguments.shift_remove("user_id");
        }
        if foreign.takes_confirmation {
            arguments.shift_remove("confirmation");
        }
        if foreign.must_ask(self.confirm, consent) {
            return self.hold(spec, foreign, arguments).await;
        }
        if foreign.takes_user {
            arguments.insert("user_id".to_owned(), json!(self.user.id));
        }
        if foreign.takes_confirmation {
            arguments.insert("confirmation".to_owned(), true.into());
        }
        Outcome::Done(self.answer(spec, foreign, arguments).await)
    }

    async fn answer(&self, spec: &Spec, foreign: &Foreign, mut arguments: Arguments) -> Answer {
        // Absent and null are the same to most models, but not to most servers.
        let optional = |key: &str| {
            !spec
                .schema
                .get("required")
                .and_then(Value::as_array)
                .is_some_and(|required| required.iter().any(|required| required == key))
        };
        arguments.retain(|key, value| !(value.is_null() && optional(key)));
        let most = self.until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()).max(LEAST));
        match self.servers.call_within(&foreign.found, arguments, most).await {
            Ok(called) => reading::answer(called, spec.tool),
            Err(error) => {
                let code = match error {
                    CallError::Refused(_) => answer::VALIDATION_ERROR,
                    CallError::Unavailable(_) | CallError::TimedOut => answer::UNAVAILABLE,
                };
                Answer::failed(Failure::new(code, format!("{} {error}", foreign.found.server)))
            }
        }
    }

    /// The act that waits, with the title of the task where it is about one.
    async fn hold(&self, spec: &Spec, foreign: &Foreign, arguments: Arguments) -> Outcome {
        if spec.tool != Some(Tool::Delete) {
            return Outcome::Held(Act::other(&spec.name, arguments));
        }
        let key = spec.id_key();
        let Some(id) = arguments.get(key).filter(|id| !id.is_null()).cloned() else {
            let failure = Failure::new(answer::VALIDATION_ERROR, format!("{key} is required"));
            return Outcome::Done(Answer::failed(failure));
        };
        match self.title(foreign, &id).await {
            Ok(Some(title)) => Outcome::Held(Act::one(&spec.name, key, Target { id, title })),
            // Nobody can be asked about what has no name: then by the call itself.
            Ok(None) => Outcome::Held(Act::other(&spec.name, arguments)),
            Err(answer) => Outcome::Done(answer),
        }
    }

    /// What a task is called, as its server lists it; an answer where there is no such task, nothing where it cannot say.
    async fn title(&self, foreign: &Foreign, id: &Value) -> Result<Option<String>, Answer> {
        let home = &foreign.found.server;
        let lists = |spec: &&Spec| {
            spec.tool == Some(Tool::List) && spec.foreign.as_ref().is_some_and(|other| other.found.server == *home)
        };
        let Some(list) = self.specs.iter().find(lists) else { return Ok(None) };
        let Some(other) = &list.foreign else { return Ok(None) };
        let mut arguments = Arguments::new();
        if list.takes("status") {
            arguments.insert("status".to_owned(), "all".into());
        }
        if other.takes_user {
            arguments.insert("user_id".to_owned(), json!(self.user.id));
        }
        let answer = self.answer(list, other, arguments).await;
        if answer.error().is_some() {
            return Err(answer);
        }
        let Some(tasks) = answer.data()["tasks"].as_array() else { return Ok(None) };
        match tasks.iter().find(|task| is_same(&task["id"], id)) {
            Some(task) => Ok(task["title"].as_str().map(str::to_owned)),
            None => Err(Answer::failed(Failure::new(answer::NOT_FOUND, "There is no such task."))),
        }
    }
}

/// A model may write a number as text.
fn is_same(one: &Value, other: &Value) -> bool {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text(one) == text(other)
}
