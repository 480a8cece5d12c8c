//! The MCP server for the toolbox. It supports revision 2026-07-28 with independent requests, and the earlier revisions
//! with a handshake.
//!
//! The transport ([`http`] or [`stdio`]) sets the user of every request, never the client. Mistakes of the caller are
//! answers that a model can read. Protocol errors are only for requests that no tool can answer.

mod consent;
pub mod http;
mod sessions;
pub mod stdio;

use std::sync::Arc;
use std::time::Instant;

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

use crate::answer::{ToolFailure, UNAVAILABLE};
use crate::catalog::ToolKind;
use crate::{Consent, HeldCall, ToolAnswer, ToolArguments, ToolOutcome, ToolSpec, Tools, call_log};
use consent::{ConsentOutcome, ConsentTokens};

const INSTRUCTIONS: &str = "Tasks and reminders of one user. Take ids from the list of tasks, and do not show them to the \
                            user. The user must confirm deletions and changes to several tasks.";

/// The user of a request and the configuration of the tools.
#[derive(Clone, Debug)]
pub struct McpCaller {
    pub user: User,
    pub tools: Tools,
    /// The span for the log entries of the request.
    pub span: Span,
}

/// Handles MCP requests of all transports.
#[derive(Clone)]
struct McpHandler {
    store: Store,
    consents: Arc<ConsentTokens>,
    /// The calls in progress, without those that wait for the user.
    running_calls: TaskTracker,
    /// The caller of all requests on stdio. Over HTTP, each request has its own.
    fixed_caller: Option<Arc<McpCaller>>,
}

impl McpHandler {
    /// Returns the caller of a request. Fails if the transport has not set one.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Arc<McpCaller>, ErrorData> {
        let request_caller = || context.extensions.get::<Parts>()?.extensions.get::<Arc<McpCaller>>().cloned();
        let caller = self.fixed_caller.clone().or_else(request_caller);
        caller.ok_or_else(|| ErrorData::internal_error("the request has no caller", None))
    }

    /// Carries out a call of a built-in tool, asks the user for a confirmation if it is held, or redeems the response
    /// to an earlier question. A response counts only for a destructive tool and a client of 2026-07-28. A refused
    /// response becomes a failed answer. External tools are not offered. Fails if the user has no such tool, or if the
    /// question cannot be created.
    async fn call(
        &self,
        caller: &McpCaller,
        mut request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.take().unwrap_or_default();
        let name = request.name.as_ref();
        let Some(spec) = caller.tools.built_in(&caller.user).iter().find(|spec| spec.name == name) else {
            return Err(ErrorData::invalid_params(format!("the tool '{name}' does not exist"), None));
        };
        // The response of the user to the question of an earlier call.
        if spec.destructive && consent::is_modern(context) && request.input_responses.is_some() {
            match self.consents.redeem(caller, &request, &arguments) {
                ConsentOutcome::NotAsked => {}
                ConsentOutcome::Confirmed(arguments) => return self.call_confirmed(caller, spec, arguments).await,
                ConsentOutcome::Refused(failure) => return Ok(finish(spec, ToolAnswer::failed(failure))),
            }
        }
        // Only a client that cannot show a question may confirm on behalf of the user.
        let is_confirmed = arguments.get("confirmation").and_then(serde_json::Value::as_bool) == Some(true);
        // Only destructive calls can be held.
        let original_arguments = if spec.destructive { arguments.clone() } else { ToolArguments::new() };
        match self.carry_out(caller, spec, arguments, Consent::ModelDecision).await {
            ToolOutcome::Done(answer) => Ok(finish(spec, answer)),
            ToolOutcome::Held(held) => self.ask(caller, spec, &original_arguments, held, is_confirmed, context).await,
        }
    }

    /// Asks the user for a confirmation, in the form that the client supports, and carries out the call once it is
    /// confirmed. A client of 2026-07-28 gets the question as the answer. A refusal becomes a failed answer.
    /// `arguments` are those of the client. `is_confirmed` is set if they contain `confirmation: true`. This counts
    /// only if the client cannot ask. Without it, such a client gets `CONFIRMATION_REQUIRED`. Fails if the question
    /// cannot be created.
    async fn ask(
        &self,
        caller: &McpCaller,
        spec: &ToolSpec,
        arguments: &ToolArguments,
        held: HeldCall,
        is_confirmed: bool,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !consent::can_ask(context) {
            if is_confirmed {
                return self.call_confirmed(caller, spec, held.arguments).await;
            }
            return Ok(finish(
                spec,
                ToolAnswer::failed(consent::confirmation_required(&held, &consent::local_now(caller))),
            ));
        }
        if consent::is_modern(context) {
            call_log::log_result(&spec.name, false, "waits for the confirmation of the user");
            return self.consents.question(caller, arguments, &held).map(Into::into);
        }
        match consent::ask(&held, &consent::local_now(caller), context).await {
            Ok(()) => self.call_confirmed(caller, spec, held.arguments).await,
            Err(failure) => Ok(finish(spec, ToolAnswer::failed(failure))),
        }
    }

    /// Carries out a call that the user has confirmed with these arguments. Never asks again.
    async fn call_confirmed(
        &self,
        caller: &McpCaller,
        spec: &ToolSpec,
        arguments: ToolArguments,
    ) -> Result<CallToolResponse, ErrorData> {
        match self.carry_out(caller, spec, arguments, Consent::Given).await {
            ToolOutcome::Done(answer) => Ok(finish(spec, answer)),
            ToolOutcome::Held(held) => {
                Ok(finish(spec, ToolAnswer::failed(consent::confirmation_required(&held, &consent::local_now(caller)))))
            }
        }
    }

    /// Carries out or holds a call, and logs it with its arguments and duration. A failure of the database is logged
    /// and becomes an `UNAVAILABLE` answer. While it runs, the call counts as running, so that the transport waits for
    /// it.
    async fn carry_out(
        &self,
        caller: &McpCaller,
        spec: &ToolSpec,
        arguments: ToolArguments,
        consent: Consent,
    ) -> ToolOutcome {
        let _running = self.running_calls.token();
        let log_entry = call_log::start(&spec.name, &arguments);
        let started = Instant::now();
        let mut toolbox = caller.tools.for_user(&caller.user, &self.store);
        let outcome = toolbox.call(&spec.name, arguments, consent).await;
        log_entry.finish(started.elapsed());
        outcome.unwrap_or_else(|error| {
            let error_message = &*redact::redact(&error.to_string()).into_owned();
            tracing::error!(event = "error_occurred", error_type = "unavailable", error_message, recoverable = true);
            let message = "The tasks cannot be reached right now. Try again in a moment.";
            ToolOutcome::Done(ToolAnswer::failed(ToolFailure::new(UNAVAILABLE, message)))
        })
    }
}

/// Logs an answer and converts it to an MCP result: structured data, and the same as JSON text for clients that do not
/// read data. A failed answer is marked as an error of the tool.
fn finish(spec: &ToolSpec, answer: ToolAnswer) -> CallToolResponse {
    let success = answer.is_success();
    let data = answer.into_data();
    let text = data.to_string();
    call_log::log_result(&spec.name, success, &text);
    let content = vec![ContentBlock::text(text)];
    let mut result = if success { CallToolResult::success(content) } else { CallToolResult::error(content) };
    result.structured_content = Some(data);
    result.into()
}

impl ServerHandler for McpHandler {
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
        let caller = self.caller(&context)?;
        Ok(ListToolsResult::with_all_items(describe_tools(caller.tools.built_in(&caller.user))))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = self.caller(&context)?;
        self.call(&caller, request, &context).instrument(caller.span.clone()).await
    }

    // The default implementations of the following methods return empty lists, as if prompts and resources were
    // supported.

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

    /// Rejects all requests. Also called for a known method with invalid parameters. For calls and lists of tools, the
    /// error is then "invalid params". For any other method it is "method not found".
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        use rmcp::model::ConstString;
        if [CallToolRequestMethod::VALUE, ListToolsRequestMethod::VALUE].contains(&request.method.as_str()) {
            let message = format!("the parameters of {} are invalid", request.method);
            return Err(ErrorData::invalid_params(message, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None))
    }

    async fn on_initialized(&self, _: NotificationContext<RoleServer>) {}
}

/// Returns the tools in the form of MCP, in the same order, with their hints. Only those that start an agent are
/// marked as open-world, because an agent can reach anything.
fn describe_tools(specs: &[ToolSpec]) -> Vec<Tool> {
    let describe = |spec: &ToolSpec| {
        let starts_agents = matches!(
            spec.kind,
            Some(
                ToolKind::RunAgent
                    | ToolKind::ScheduleAgent
                    | ToolKind::ResumeSchedule
                    | ToolKind::UpdateSchedule
                    | ToolKind::RunSchedule
            )
        );
        let hints = ToolAnnotations::with_title(&*spec.title)
            .read_only(spec.read_only)
            .destructive(spec.destructive)
            .idempotent(spec.idempotent)
            .open_world(starts_agents);
        Tool::new(spec.name.clone(), spec.description.clone(), spec.schema.clone())
            .with_title(&*spec.title)
            .with_annotations(hints)
    };
    specs.iter().map(describe).collect()
}
