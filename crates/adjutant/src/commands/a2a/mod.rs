//! `adjutant a2a`: speaks with any agent that speaks A2A. Needs no server and no data directory.

mod send;
mod show;

use ::a2a::client::{Auth, Client, Error, Options};
use ::a2a::types::{CancelTaskRequest, GetTaskRequest, ListTasksRequest, TaskState};
use ::a2a::{Binding, Kind, Version};
use anyhow::Context;
use reqwest::header::{HeaderName, HeaderValue};
use secrecy::SecretString;
use serde::Serialize;
use serde_json::Value;

use super::listing::pair;
use crate::cli::{A2a, A2aAt, Global};
use crate::exit::{Code, Exit};
use crate::output;

/// What is shown to agents where nothing else is said.
const TOKEN: &str = "ADJUTANT_A2A_TOKEN";

pub(crate) async fn run(global: &Global, command: A2a) -> anyhow::Result<()> {
    match command {
        A2a::Card { at } => {
            let client = connect(global, &at).await?;
            if global.json { json(client.card()) } else { show::card(&client) }
        }
        A2a::Send(message) => send::run(global, &message).await,
        A2a::Get { at, task, history } => {
            let client = connect(global, &at).await?;
            let request = GetTaskRequest { id: task, history_length: Some(history.unwrap_or(0)), tenant: None };
            let task = client.get(request).await.map_err(exit)?;
            if global.json { json(&task) } else { show::task(&task) }
        }
        A2a::List { at, context, status, limit, quiet } => {
            let status = status.as_deref().map(state).transpose()?;
            let client = connect(global, &at).await?;
            list(global, &client, context, status, limit, quiet).await
        }
        A2a::Cancel { at, task } => {
            let client = connect(global, &at).await?;
            let request = CancelTaskRequest { id: task, metadata: None, tenant: None };
            let task = client.cancel(request).await.map_err(exit)?;
            if global.json { json(&task) } else { output::say(&format!("{}\t{}", task.id, word(&task.status.state))) }
        }
    }
}

async fn list(
    global: &Global,
    client: &Client,
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
    let answer = client.list(request).await.map_err(exit)?;
    if global.json {
        return json(&answer);
    }
    if quiet {
        return answer.tasks.iter().try_for_each(|task| output::say(&task.id));
    }
    if answer.tasks.is_empty() {
        output::note("no tasks");
    }
    let rows: Vec<_> = answer.tasks.iter().map(show::row).collect();
    output::table(&["ID", "STATE", "SINCE", "CONTEXT"], &rows)?;
    if answer.total_size > i32::try_from(rows.len()).unwrap_or(i32::MAX) {
        output::note(&format!("{} of {}; --limit shows more", rows.len(), answer.total_size));
    }
    Ok(())
}

/// The agent at the address.
async fn connect(global: &Global, at: &A2aAt) -> anyhow::Result<Client> {
    Client::discover(&at.url, &options(global, at)?).await.map_err(|error| exit(error).into())
}

fn options(global: &Global, at: &A2aAt) -> anyhow::Result<Options> {
    // The token for our own server is not for others, unless it is given for this call.
    let given = global.token.clone().filter(|_| global.token_given);
    let token = given.or_else(|| std::env::var(TOKEN).ok()).filter(|token| !token.is_empty());
    let mut auth = token.map(|token| secret("the token", &token).map(Auth::Bearer)).transpose()?;
    let mut options = Options {
        other_hosts: at.other_hosts,
        user_agent: Some(format!("adjutant/{}", env!("CARGO_PKG_VERSION"))),
        ..Options::default()
    };
    for given in &at.header {
        let (name, value) = pair("--header", given)?;
        let wrong = |what: &str| Exit::new(Code::Usage, format!("--header {name}: {what}"));
        let header = HeaderName::try_from(name).map_err(|_| wrong("this is not the name of a header"))?;
        if is_reference(value) {
            let secret = secret(&format!("--header {name}"), value)?;
            if auth.replace(Auth::Header(header, secret)).is_some() {
                return Err(wrong("there is a token or a secret header already: an agent is shown one").into());
            }
        } else {
            let value = HeaderValue::from_str(value).map_err(|_| wrong("a header cannot have this value"))?;
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

fn is_reference(text: &str) -> bool {
    text.starts_with("env:") || text.starts_with("file:")
}

/// A secret, or what a reference stands for.
fn secret(what: &str, text: &str) -> anyhow::Result<SecretString> {
    let missing = |why: String| Exit::new(Code::Usage, format!("{what} refers to {why}"));
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

/// What an error means to a script.
fn exit(error: Error) -> Exit {
    let code = match &error {
        Error::Address(_) => Code::Usage,
        Error::Card(_) => Code::NotFound,
        Error::Unreachable(_) => Code::Unreachable,
        Error::Silent(_) => Code::Timeout,
        Error::Refused { status, .. } => Code::of_problem(*status, if *status == 429 { "busy" } else { "" }),
        Error::Agent(error) => match error.kind {
            Kind::TaskNotFound | Kind::NotFound => Code::NotFound,
            Kind::InvalidParams | Kind::InvalidRequest | Kind::ContentTypeNotSupported => Code::Usage,
            Kind::Internal | Kind::InvalidAgentResponse | Kind::Parse => Code::Failed,
            _ => Code::Refused,
        },
        Error::Unsupported(_) => Code::Refused,
        Error::Invalid(_) | Error::TooLarge(_) => Code::Failed,
    };
    Exit::new(code, error.to_string())
}

fn json(value: &impl Serialize) -> anyhow::Result<()> {
    output::say(&serde_json::to_string(value).context("failed to write JSON")?)
}

/// As people and 0.3 call a state.
fn word(state: &TaskState) -> String {
    let name = serde_json::to_value(state).unwrap_or(Value::Null);
    name.as_str().unwrap_or_default().trim_start_matches("TASK_STATE_").to_lowercase().replace('_', "-")
}

fn state(word: &str) -> anyhow::Result<TaskState> {
    let name = format!("TASK_STATE_{}", word.to_uppercase().replace('-', "_").replace("CANCELLED", "CANCELED"));
    let read = serde_json::from_value::<TaskState>(Value::String(name)).ok();
    read.filter(|state| *state != TaskState::Unspecified).ok_or_else(|| {
        let known = "submitted, working, completed, failed, canceled, input-required, rejected or auth-required";
        Exit::new(Code::Usage, format!("--status must be {known}, not '{word}'")).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_called_as_people_call_them() {
        for (said, is) in [("input-required", "input-required"), ("CANCELLED", "canceled"), ("working", "working")] {
            assert_eq!(word(&state(said).unwrap()), is);
        }
        assert!(state("asleep").is_err() && state("unspecified").is_err());
    }

    #[test]
    fn errors_end_as_scripts_expect() {
        let refused = |status| Error::Refused { status, message: String::new(), retry_after: None };
        let said = |kind| Error::Agent(::a2a::Error::new(kind, ""));
        for (error, code) in [
            (Error::Address("x".into()), Code::Usage),
            (Error::Unreachable("x".into()), Code::Unreachable),
            (refused(401), Code::NotAuthorised),
            (refused(404), Code::NotFound),
            (refused(429), Code::Busy),
            (said(Kind::TaskNotFound), Code::NotFound),
            (said(Kind::TaskNotCancelable), Code::Refused),
            (said(Kind::InvalidParams), Code::Usage),
            (said(Kind::Internal), Code::Failed),
        ] {
            let shown = error.to_string();
            assert_eq!(exit(error).code, code, "{shown}");
        }
    }
}
