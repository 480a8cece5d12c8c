//! `adjutant a2a`: a client for A2A agents. Needs no server and no data directory.

mod send;
mod show;

use ::a2a::client::{A2aClient, ClientAuth, ClientOptions, Error};
use ::a2a::types::{CancelTaskRequest, GetTaskRequest, ListTasksRequest, TaskState};
use ::a2a::{Binding, ErrorKind, Version};
use anyhow::Context;
use reqwest::header::{HeaderName, HeaderValue};
use secrecy::SecretString;
use serde::Serialize;
use serde_json::Value;

use super::listing::split_pair;
use crate::cli::{A2aCommand, GlobalOptions, RemoteAgentArgs};
use crate::exit::{ExitError, ExitStatus};
use crate::output;

/// The variable with the token for A2A agents.
const TOKEN_VARIABLE: &str = "ADJUTANT_A2A_TOKEN";

/// Runs one subcommand against the agent at the given URL and prints the result, as JSON with `--json`. `get` shows no
/// history unless `--history` is given. Fails if an option is invalid, if the agent cannot be discovered, or if it
/// refuses the request or does not support it.
pub(crate) async fn run(global: &GlobalOptions, command: A2aCommand) -> anyhow::Result<()> {
    match command {
        A2aCommand::Card { at } => {
            let client = connect(global, &at).await?;
            if global.json { print_json(client.card()) } else { show::card(&client) }
        }
        A2aCommand::Send(message) => send::run(global, &message).await,
        A2aCommand::Get { at, task, history } => {
            let client = connect(global, &at).await?;
            let request = GetTaskRequest { id: task, history_length: Some(history.unwrap_or(0)), tenant: None };
            let task = client.get(request).await.map_err(exit_error)?;
            if global.json { print_json(&task) } else { show::task(&task) }
        }
        A2aCommand::List { at, context, status, limit, quiet } => {
            let status = status.as_deref().map(parse_state).transpose()?;
            let client = connect(global, &at).await?;
            list(global, &client, context, status, limit, quiet).await
        }
        A2aCommand::Cancel { at, task } => {
            let client = connect(global, &at).await?;
            let request = CancelTaskRequest { id: task, metadata: None, tenant: None };
            let task = client.cancel(request).await.map_err(exit_error)?;
            if global.json {
                print_json(&task)
            } else {
                output::print_line(&format!("{}\t{}", task.id, state_name(&task.status.state)))
            }
        }
    }
}

/// Prints the first page of tasks, without their history and artifacts, 50 unless `limit` is given: as JSON, as ids
/// (`quiet`), or as a table. With a table, a note reports that there are no tasks, or that there are more. `context_id`
/// and `status` select tasks. Fails if the request fails.
async fn list(
    global: &GlobalOptions,
    client: &A2aClient,
    context_id: Option<String>,
    status: Option<TaskState>,
    limit: Option<i32>,
    quiet: bool,
) -> anyhow::Result<()> {
    let request = ListTasksRequest {
        context_id,
        status,
        page_size: Some(limit.unwrap_or(50)),
        page_token: None,
        history_length: Some(0),
        status_timestamp_after: None,
        include_artifacts: Some(false),
        tenant: None,
    };
    let page = client.list(request).await.map_err(exit_error)?;
    if global.json {
        return print_json(&page);
    }
    if quiet {
        return page.tasks.iter().try_for_each(|task| output::print_line(&task.id));
    }
    if page.tasks.is_empty() {
        output::note("no tasks");
    }
    let rows: Vec<_> = page.tasks.iter().map(show::row).collect();
    output::print_table(&["ID", "STATE", "SINCE", "CONTEXT"], &rows)?;
    if page.total_size > i32::try_from(rows.len()).unwrap_or(i32::MAX) {
        output::note(&format!("{} of {} tasks; --limit N shows more", rows.len(), page.total_size));
    }
    Ok(())
}

/// Discovers the agent. Fails if its card cannot be read or used.
async fn connect(global: &GlobalOptions, at: &RemoteAgentArgs) -> anyhow::Result<A2aClient> {
    A2aClient::discover(&at.url, &options(global, at)?).await.map_err(|error| exit_error(error).into())
}

/// Returns the connection options. The token comes from `--token` on the command line, else from [`TOKEN_VARIABLE`],
/// never from `ADJUTANT_TOKEN`. An empty token is not sent; an empty `--token` also turns the variable off. A token or
/// header value that is a reference is resolved and sent as a secret. Of plain headers with the same name, the last is
/// sent. Without `--binding` and `--version`, the client chooses.
///
/// Fails with a usage error if a header is invalid, if a reference cannot be resolved, or if there is more than one
/// token or secret header.
fn options(global: &GlobalOptions, at: &RemoteAgentArgs) -> anyhow::Result<ClientOptions> {
    // ADJUTANT_TOKEN is for our own server only. A token on the command line is for this agent.
    let given = global.token.clone().filter(|_| global.token_given);
    let token = given.or_else(|| std::env::var(TOKEN_VARIABLE).ok()).filter(|token| !token.is_empty());
    let mut auth = token.map(|token| secret("the token", &token).map(ClientAuth::Bearer)).transpose()?;
    let mut options = ClientOptions {
        allow_other_hosts: at.other_hosts,
        user_agent: Some(format!("adjutant/{}", env!("CARGO_PKG_VERSION"))),
        ..ClientOptions::default()
    };
    for given in &at.header {
        let (name, value) = split_pair("--header", given)?;
        let usage_error = |why: &str| ExitError::new(ExitStatus::Usage, format!("--header {name}: {why}"));
        let header = HeaderName::try_from(name).map_err(|_| usage_error("not a valid header name"))?;
        if is_reference(value) {
            let secret = secret(&format!("--header {name}"), value)?;
            if auth.replace(ClientAuth::Header(header, secret)).is_some() {
                return Err(usage_error("only one token or secret header can be sent").into());
            }
        } else {
            let value = HeaderValue::from_str(value).map_err(|_| usage_error("not a valid header value"))?;
            options.headers.insert(header, value);
        }
    }
    options.auth = auth;
    options.binding = at.binding.as_deref().map(|binding| match binding {
        "rest" => Binding::HttpJson,
        "grpc" => Binding::Grpc,
        _ => Binding::JsonRpc,
    });
    options.version = at.version.as_deref().map(|version| if version == "0.3" { Version::V03 } else { Version::V10 });
    Ok(options)
}

/// Returns true if the text refers to a variable (`env:`) or a file (`file:`).
fn is_reference(text: &str) -> bool {
    text.starts_with("env:") || text.starts_with("file:")
}

/// Returns `text` as a secret. If it is a reference (`env:` or `file:`), returns the content of the variable or file
/// instead. In both cases, surrounding whitespace is removed, and the result may be empty. `name` is the name of the
/// option in errors. Fails with a usage error if the variable or the file is missing or not UTF-8, or cannot be read.
fn secret(name: &str, text: &str) -> anyhow::Result<SecretString> {
    let missing = |why: String| ExitError::new(ExitStatus::Usage, format!("{name} refers to {why}"));
    let value = match text.split_once(':') {
        Some(("env", name)) => {
            std::env::var(name).map_err(|_| missing(format!("the variable {name}, which is not set")))?
        }
        Some(("file", path)) => std::fs::read_to_string(path)
            .map_err(|error| missing(format!("the file {path}, which cannot be read: {error}")))?,
        _ => text.to_owned(),
    };
    Ok(SecretString::from(value.trim().to_owned()))
}

/// Returns the message of an error with the exit code for its kind:
///
/// - An invalid address is `Usage`, an unusable card `NotFound`, an unsupported operation `Refused`.
/// - `Unreachable` and `Timeout` keep their names. An invalid or too large response is `Failed`.
/// - An HTTP status follows [`ExitStatus::from_problem`], with 429 as `Busy`.
/// - An error of the agent is `NotFound` for an unknown task or resource. It is `Usage` for an invalid request, invalid
///   parameters or a content type, and `Failed` for an internal, parse or response error. Every other one is `Refused`.
fn exit_error(error: Error) -> ExitError {
    let code = match &error {
        Error::Address(_) => ExitStatus::Usage,
        Error::Card(_) => ExitStatus::NotFound,
        Error::Unreachable(_) => ExitStatus::Unreachable,
        Error::Timeout(_) => ExitStatus::Timeout,
        Error::Refused { status, .. } => ExitStatus::from_problem(*status, if *status == 429 { "busy" } else { "" }),
        Error::Agent(error) => match error.kind {
            ErrorKind::TaskNotFound | ErrorKind::NotFound => ExitStatus::NotFound,
            ErrorKind::InvalidParams | ErrorKind::InvalidRequest | ErrorKind::ContentTypeNotSupported => {
                ExitStatus::Usage
            }
            ErrorKind::Internal | ErrorKind::InvalidAgentResponse | ErrorKind::Parse => ExitStatus::Failed,
            _ => ExitStatus::Refused,
        },
        Error::Unsupported(_) => ExitStatus::Refused,
        Error::Invalid(_) | Error::TooLarge(_) => ExitStatus::Failed,
    };
    ExitError::new(code, error.to_string())
}

fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    output::print_line(&serde_json::to_string(value).context("failed to serialise JSON")?)
}

/// Returns the name of a state as in 0.3, for example `input-required`.
fn state_name(state: &TaskState) -> String {
    let name = serde_json::to_value(state).unwrap_or(Value::Null);
    name.as_str().unwrap_or_default().trim_start_matches("TASK_STATE_").to_lowercase().replace('_', "-")
}

/// Parses the name of a state as in 0.3, such as `input-required`, in any case. Also accepts `_` for `-`, and
/// "cancelled". Fails with a usage error for every other name, also for "unspecified".
fn parse_state(name: &str) -> anyhow::Result<TaskState> {
    let wire_name = format!("TASK_STATE_{}", name.to_uppercase().replace('-', "_").replace("CANCELLED", "CANCELED"));
    let parsed = serde_json::from_value::<TaskState>(Value::String(wire_name)).ok();
    parsed.filter(|state| *state != TaskState::Unspecified).ok_or_else(|| {
        let known = "submitted, working, completed, failed, canceled, input-required, rejected or auth-required";
        ExitError::new(ExitStatus::Usage, format!("--status must be {known}, not '{name}'")).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_names_survive_a_round_trip() {
        for (given, expected) in
            [("input-required", "input-required"), ("CANCELLED", "canceled"), ("working", "working")]
        {
            assert_eq!(state_name(&parse_state(given).unwrap()), expected);
        }
        assert!(parse_state("asleep").is_err() && parse_state("unspecified").is_err());
    }

    #[test]
    fn errors_map_to_exit_codes() {
        let refused = |status| Error::Refused { status, message: String::new(), retry_after: None };
        let reported = |kind| Error::Agent(::a2a::Error::new(kind, ""));
        for (error, code) in [
            (Error::Address("x".into()), ExitStatus::Usage),
            (Error::Unreachable("x".into()), ExitStatus::Unreachable),
            (refused(401), ExitStatus::NotAuthorised),
            (refused(404), ExitStatus::NotFound),
            (refused(429), ExitStatus::Busy),
            (reported(ErrorKind::TaskNotFound), ExitStatus::NotFound),
            (reported(ErrorKind::TaskNotCancelable), ExitStatus::Refused),
            (reported(ErrorKind::InvalidParams), ExitStatus::Usage),
            (reported(ErrorKind::Internal), ExitStatus::Failed),
        ] {
            let shown = error.to_string();
            assert_eq!(exit_error(error).code, code, "{shown}");
        }
    }
}
