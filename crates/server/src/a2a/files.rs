//! Files of executions. Small files are included in artifacts, large ones are referenced by URL.

use ::a2a::types;
use ::a2a::{Binding, CallContext, CallRejection, Version};
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use store::a2a::A2aRun;
use tokio_util::io::ReaderStream;
use uuid::Uuid;

use super::authn;
use super::cards::BaseUrl;
use crate::{App, Problem};

/// The maximum size of an included file, in bytes. Larger files are referenced by URL.
const MAX_INLINE_BYTES: u64 = 1 << 20;
/// The maximum size of all included files of a task, in bytes.
const MAX_INLINE_TOTAL: u64 = 4 << 20;
/// The characters to encode in a path.
const PATH_ENCODED: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'`');

/// Returns the files of an ended run in order, each with its full name. A file is included if it can be read on this
/// node and has at most 1 MiB. All included files together have at most 4 MiB. Otherwise the part is a URL below
/// `base`. The part has the last segment of the name and a media type by extension.
pub(crate) async fn file_parts(app: &App, base: &BaseUrl, run: &A2aRun) -> Vec<(String, types::Part)> {
    let mut parts = Vec::with_capacity(run.artifacts.len());
    let mut total = 0;
    for artifact in &run.artifacts {
        let is_small = artifact.size <= MAX_INLINE_BYTES && total + artifact.size <= MAX_INLINE_TOTAL;
        let path = app.supervisor().artifact_path(run.execution.id, &artifact.name);
        // A file of another node is referenced by URL.
        let bytes = if is_small { tokio::fs::read(path).await.ok() } else { None };
        let part = match bytes.filter(|bytes| bytes.len() as u64 <= MAX_INLINE_BYTES) {
            Some(bytes) => {
                total += artifact.size;
                types::Part::raw(bytes)
            }
            None => types::Part::url(file_url(base, run, &artifact.name)),
        };
        let short = artifact.name.rsplit('/').next().unwrap_or_default();
        let part = part.with_filename(short).with_media_type(media_type(short));
        parts.push((artifact.name.clone(), part));
    }
    parts
}

/// Returns the URL at which [`download`] serves a file. Slashes in the name are kept.
fn file_url(base: &BaseUrl, run: &A2aRun, name: &str) -> String {
    let agent = &run.execution.agent_id;
    let id = run.execution.id;
    format!("{}/agents/{agent}/files/{id}/{}", base.0, utf8_percent_encode(name, PATH_ENCODED))
}

/// Returns the media type for the extension of a file name, ignoring case. Returns `application/octet-stream` if the
/// extension is missing or unknown.
fn media_type(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
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

/// Handles `GET /agents/{agent}/files/{execution}/{name}`: returns a file of a task of the caller, as an attachment.
/// The agent need not offer HTTP+JSON.
///
/// Fails with 401, 404 or 429 if the caller is rejected. Fails with 404 if the caller has no A2A task with this agent
/// and execution. Also fails with 404 if the name is not one of the artifacts, or the file is not on this node. Fails
/// with 500 or 503 if the database fails.
pub(crate) async fn download(
    State(app): State<App>,
    Path((agent, execution, name)): Path<(String, String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let call = CallContext {
        agent: Some(agent),
        binding: Binding::HttpJson,
        version: Version::V10,
        tenant: None,
        requested_extensions: Vec::new(),
        headers: parts.headers,
        extensions: parts.extensions,
    };
    let caller = authn::authenticate(&app, &call).await.map_err(|rejection| match rejection {
        CallRejection::UnknownAgent => Problem::not_found("agent"),
        CallRejection::Unauthenticated { .. } => Problem::unauthorized(),
        CallRejection::Forbidden(reason) => Problem::forbidden(reason),
        CallRejection::RateLimited { retry_after } => Problem::too_many_requests(retry_after),
        CallRejection::NotOffered(error) => Problem::forbidden(error.message),
    })?;
    let missing = || Problem::not_found("file");
    let id = Uuid::try_parse(&execution).map_err(|_| missing())?;
    let mut reader = app.store().reader().await?;
    let run = store::a2a::run_by_execution(&mut reader, caller.user.id, &caller.entry.agent.id, id).await;
    let run = run.map_err(Problem::from_store("file"))?;
    drop(reader);
    // Only listed names are accepted, so that a name cannot escape the directory.
    if !run.artifacts.iter().any(|artifact| artifact.name == name) {
        return Err(missing());
    }
    let file = tokio::fs::File::open(app.supervisor().artifact_path(id, &name)).await;
    let file = file.map_err(|_| Problem::not_found("file on this machine"))?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type(&name))),
        // Prevents browsers from rendering the file as a page of this server.
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    Ok((headers, Body::from_stream(ReaderStream::new(file))).into_response())
}
