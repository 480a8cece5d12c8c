//! `/api/backup` and `/api/restore`: the whole database, for administrators, while the server runs (OPS-7).

use api::data::Restored;
use axum::Json;
use axum::extract::{Request, State};
use axum::response::Response;
use http_body_util::BodyExt;
use model::Invalid;
use store::backup::Backup;
use tokio::io::AsyncWriteExt;

use super::stream;
use crate::auth::{Asking, require_admin};
use crate::{App, Problem};

/// A backup of everything, as lines of JSON.
#[utoipa::path(
    get,
    path = "/api/backup",
    tag = "data",
    responses((status = 200, description = "The backup", body = String, content_type = "application/x-ndjson"))
)]
pub(super) async fn backup(State(app): State<App>, Asking(user): Asking) -> Result<Response, Problem> {
    require_admin(&user)?;
    let mut backup = Backup::begin(app.store(), app.clock().now()).await?;
    Ok(stream::respond("application/x-ndjson", |out| async move {
        let written = async {
            while let Some(chunk) = backup.next().await? {
                out.send(chunk).await?;
            }
            Ok(())
        };
        let written = written.await;
        (out, written)
    }))
}

/// Replaces everything with a backup, in one step; a backup that is not whole changes nothing.
#[utoipa::path(
    post,
    path = "/api/restore",
    tag = "data",
    request_body(content = Vec<u8>, description = "The backup", content_type = "application/octet-stream"),
    responses((status = 200, body = Restored))
)]
pub(super) async fn restore(
    State(app): State<App>,
    Asking(user): Asking,
    request: Request,
) -> Result<Json<Restored>, Problem> {
    require_admin(&user)?;
    let failed = |error: std::io::Error| Problem::internal(format!("the backup was not received: {error}"));
    let (file, path) = tempfile::NamedTempFile::new().map_err(failed)?.into_parts();
    let mut file = tokio::fs::File::from_std(file);
    let mut body = request.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Invalid::one("body", "complete", "must arrive completely"))?;
        if let Ok(bytes) = frame.into_data() {
            file.write_all(&bytes).await.map_err(failed)?;
        }
    }
    file.flush().await.map_err(failed)?;
    let rows = store::backup::restore(app.store(), path.to_path_buf()).await?;
    app.revocations().refresh(&app).await?;
    tracing::info!(event = "backup_restored", rows, "the database was replaced by a backup");
    Ok(Json(Restored { rows }))
}
