//! The toolbox as an MCP server, for clients of both eras: 2026-07-28, where every request stands alone, and the
//! revisions before, which begin with a handshake.
//!
//! The user comes from the door ([`http`] or [`stdio`]) with every request, never from the client's words. What the
//! caller did wrong is an answer that a model can read; a protocol error is only what no tool could answer.

mod consent;
pub mod http;
mod sessions;
pub mod stdio;

use std::sync::Arc;

use ::http::request::Parts;
use model::User;
use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, ContentBlock, CustomRequest, CustomResult, ErrorCode, Implementation,
    ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod, ListResourceTemplatesResult,
    ListResourcesRequestMethod, ListResourcesResult, ListToolsRequestMethod, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use store::Store;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, Span};

use crate::answer::{Failure, UNAVAILABLE};
use crate::{Act, Answer, Arguments, Consent, Outcome, Spec, Tools, record};
use consent::{Consents, Verdict};

const INSTRUCTIONS: &str = "Tasks and reminders of one user. Take ids from the list of tasks, and do not show them to the \
                            user. Deleting, and changing several tasks at once, waits for the user's consent.";

/// For whom a request is, and under which settings.
#[derive(Clone, Debug)]
pub struct Asker {
    pub user: User,
    pub tools: Tools,
    /// What the log entries of this request belong to.
    pub span: Span,
}

/// Answers requests, whichever way they came.
#[derive(Clone)]
struct Handler {
    store: Store,
    consents: Arc<Consents>,
    /// Calls that are being carried out; not those that wait for the user.
    busy: TaskTracker,
    /// On stdio everything is for one user; over HTTP each request brings its own.
    always: Option<Arc<Asker>>,
}

impl Handler {
    fn asker(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Asker>, ErrorData> {
        let of_request = || context.extensions.get::<Parts>()?.extensions.get::<Arc<Asker>>().cloned();
        let asker = self.always.clone().or_else(of_request);
        asker.ok_or_else(|| ErrorData::internal_error("nobody is known to be asking", None))
    }

    async fn call(
        &self,
        asker: &Asker,
        mut request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.take().unwrap_or_default();
        let name = request.name.as_ref();
        let Some(spec) = asker.tools.ours(&asker.user).iter().find(|spec| spec.name == name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool named '{name}'"), None));
        };
        // The user's answer to a question that this call asked before.
        if spec.destructive && consent::is_modern(context) && request.input_responses.is_some() {
            match self.consents.redeem(asker, &request, &arguments) {
                Verdict::NotAsked => {}
                Verdict::Agreed(held) => return self.released(asker, spec, held).await,
                Verdict::Refused(failure) => return Ok(finish(spec, Answer::failed(failure))),
            }
        }
        // Only a client that cannot ask its user may speak for the user.
        let agreed = arguments.get("confirmation").and_then(serde_json::Value::as_bool) == Some(true);
        // Only what destroys can be held, and asked about.
        let called_with = if spec.destructive { arguments.clone() } else { Arguments::new() };
        match self.carry_out(asker, spec, arguments, Consent::Missing).await {
            Outcome::Done(answer) => Ok(finish(spec, answer)),
            Outcome::Held(act) => self.ask(asker, spec, &called_with, act, agreed, context).await,
        }
    }

    /// Asks the user in the way that the client understands.
    async fn ask(
        &self,
        asker: &Asker,
        spec: &Spec,
        arguments: &Arguments,
        act: Act,
        agreed: bool,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !consent::can_ask(context) {
            if agreed {
                return self.released(asker, spec, act.arguments).await;
            }
            return Ok(finish(spec, Answer::failed(consent::needed(&act))));
        }
        if consent::is_modern(context) {
            record::result(&spec.name, false, "waits for the user's consent");
            return self.consents.question(asker, arguments, &act).map(Into::into);
        }
        match consent::ask(&act, context).await {
            Ok(()) => self.released(asker, spec, act.arguments).await,
            Err(failure) => Ok(finish(spec, Answer::failed(failure))),
        }
    }

    /// The user has agreed to exactly these arguments.
    async fn released(&self, asker: &Asker, spec: &Spec, held: Arguments) -> Result<CallToolResponse, ErrorData> {
        match self.carry_out(asker, spec, held, Consent::Given).await {
            Outcome::Done(answer) => Ok(finish(spec, answer)),
            Outcome::Held(act) => Ok(finish(spec, Answer::failed(consent::needed(&act)))),
        }
    }

    async fn carry_out(&self, asker: &Asker, spec: &Spec, arguments: Arguments, consent: Consent) -> Outcome {
        let _busy = self.busy.token();
        let called = record::called(&spec.name, &arguments);
        let mut toolbox = asker.tools.for_user(&asker.user, &self.store);
        let outcome = toolbox.call(&spec.name, arguments, consent).await;
        called.log();
        outcome.unwrap_or_else(|error| {
            let error_message = &*redact::redact(&error.to_string()).into_owned();
            tracing::error!(event = "error_occurred", error_type = "unavailable", error_message, recoverable = true);
            let message = "The tasks cannot be reached right now; try again in a moment.";
            Outcome::Done(Answer::failed(Failure::new(UNAVAILABLE, message)))
        })
    }
}

/// The answer as MCP has it: as data, and as text for clients that do not read data.
fn finish(spec: &Spec, answer: Answer) -> CallToolResponse {
    let success = answer.is_success();
    let data = answer.into_data();
    let text = data.to_string();
    record::result(&spec.name, success, &text);
    let content = vec![ContentBlock::text(text)];
    let mut result = if success { CallToolResult::success(content) } else { CallToolResult::error(content) };
    result.structured_content = Some(data);
    result.into()
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let about = Implementation::new("adjutant", env!("CARGO_PKG_VERSION")).with_title("adjutant");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(about)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let asker = self.asker(&context)?;
        Ok(ListToolsResult::with_all_items(described(asker.tools.ours(&asker.user))))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let asker = self.asker(&context)?;
        self.call(&asker, request, &context).instrument(asker.span.clone()).await
    }

    // What follows would answer with empty lists, as if there were prompts and resources.

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    /// A request of a known method comes here too when its parameters have the wrong shape.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        use rmcp::model::ConstString;
        if [CallToolRequestMethod::VALUE, ListToolsRequestMethod::VALUE].contains(&request.method.as_str()) {
            let message = format!("the parameters of {} do not have the right shape", request.method);
            return Err(ErrorData::invalid_params(message, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None))
    }

    async fn on_initialized(&self, _: NotificationContext<RoleServer>) {}
}

/// The tools as a client sees them, in a fixed order.
fn described(specs: &[Spec]) -> Vec<Tool> {
    let describe = |spec: &Spec| {
        let hints = ToolAnnotations::with_title(&*spec.title)
            .read_only(spec.read_only)
            .destructive(spec.destructive)
            .idempotent(spec.idempotent)
            .open_world(false);
        Tool::new(spec.name.clone(), spec.description.clone(), spec.schema.clone())
            .with_title(&*spec.title)
            .with_annotations(hints)
    };
    specs.iter().map(describe).collect()
}
