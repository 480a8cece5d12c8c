//! Files that a run left: small ones are told as they are, of large ones where they are found.

use ::a2a::types;
use ::a2a::{Binding, Call, Denied, Version};
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use store::a2a::Run;
use tokio_util::io::ReaderStream;
use uuid::Uuid;

use super::admission;
use super::cards::Base;
use crate::{App, Problem};

/// Larger ones are fetched by whoever wants them.
const MOST: u64 = 1 << 20;
/// All files of a task that are told as they are.
const MOST_TOGETHER: u64 = 4 << 20;
/// What cannot stand in a path.
const ODD: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'`');

/// The files of a run that has ended, by their names.
pub(crate) async fn parts(app: &App, base: &Base, run: &Run) -> Vec<(String, types::Part)> {
    let mut parts = Vec::with_capacity(run.artifacts.len());
    let mut together = 0;
    for artifact in &run.artifacts {
        let small = artifact.size <= MOST && together + artifact.size <= MOST_TOGETHER;
        let path = app.supervisor().artifact(run.execution.id, &artifact.name);
        // One that another machine has is fetched from there.
        let bytes = if small { tokio::fs::read(path).await.ok() } else { None };
        let part = match bytes.filter(|bytes| bytes.len() as u64 <= MOST) {
            Some(bytes) => {
                together += artifact.size;
                types::Part::raw(bytes)
            }
            None => types::Part::url(address(base, run, &artifact.name)),
        };
        let short = artifact.name.rsplit('/').next().unwrap_or_default();
        let part = part.with_filename(short).with_media_type(media_type(short));
        parts.push((artifact.name.clone(), part));
    }
    parts
}

fn address(base: &Base, run: &Run, name: &str) -> String {
    let agent = &run.execution.agent_id;
    let id = run.execution.id;
    format!("{}/agents/{agent}/files/{id}/{}", base.0, utf8_percent_encode(name, ODD))
}

/// What a name says about its file.
fn media_type(name: &str) -> &'static str {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    match ending.as_deref() {
        Some("txt" | "log" | "diff" | "patch") => "text/plain",
        Some("md") => "text/markdown",
        Some("csv") => "text/csv",
        Some("html" | "htm") => "text/html",
        Some("json") => "application/json",
        Some("pdf") => "application/pdf",
        Some("zip") => "application/zip",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("svg") => "image/svg+xml",
        Some("webp") => "image/webp",
        Some("mp3") => "audio/mpeg",
        Some("wav") => "audio/wav",
        Some("mp4") => "video/mp4",
        _ => "application/octet-stream",
    }
}

/// `GET /agents/{agent}/files/{execution}/{name}`: a file that a task of the caller left.
pub(crate) async fn fetch(
    State(app): State<App>,
    Path((agent, execution, name)): Path<(String, String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let call = Call {
        agent: Some(agent),
        binding: Binding::HttpJson,
        version: Version::V10,
        tenant: None,
        extensions_wanted: Vec::new(),
        headers: parts.headers,
        extensions: parts.extensions,
    };
    let caller = admission::enter(&app, &call).await.map_err(|denied| match denied {
        Denied::NoAgent => Problem::not_found("agent"),
        Denied::Unauthenticated { .. } => Problem::unauthorized(),
        Denied::Forbidden(why) => Problem::forbidden(why),
        Denied::TooMany { retry_after } => Problem::too_many_requests(retry_after),
        Denied::Refused(error) => Problem::forbidden(error.message),
    })?;
    let missing = || Problem::not_found("file");
    let id = Uuid::try_parse(&execution).map_err(|_| missing())?;
    let mut reader = app.store().reader().await?;
    let run = store::a2a::run(&mut reader, caller.user.id, &caller.entry.agent.id, id).await;
    let run = run.map_err(Problem::from_store("file"))?;
    drop(reader);
    // Only what was listed when the run ended: no name leads anywhere else.
    if !run.artifacts.iter().any(|artifact| artifact.name == name) {
        return Err(missing());
    }
    let file = tokio::fs::File::open(app.supervisor().artifact(id, &name)).await;
    let file = file.map_err(|_| Problem::not_found("file on this machine"))?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type(&name))),
        // Nobody's browser takes it for a page of ours.
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    Ok((headers, Body::from_stream(ReaderStream::new(file))).into_response())
}
