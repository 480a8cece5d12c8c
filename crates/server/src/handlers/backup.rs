//! `/api/backup` and `/api/restore`: backs up and restores the whole database while the server runs (OPS-7). Both
//! require the scope `adjutant:admin`.
//!
//! A backup is sent while it is read. If it fails, the response is aborted. A restore first receives the whole body
//! into a temporary file, of any size. It fails with 422 if the body is incomplete or not a valid backup; then nothing
//! changes. Afterwards the revoked tokens are read again. Both add a record to the audit log, which a restore keeps.

use api::data::RestoreSummary;
use axum::Json;
use axum::extract::{Request, State};
use axum::response::Response;
use http_body_util::BodyExt;
use model::Invalid;
use model::audit::{AuditAction, AuditRecord};
use store::backup::Backup;
use tokio::io::AsyncWriteExt;

use super::stream;
use crate::audit::CurrentActor;
use crate::auth::{CurrentUser, require_admin};
use crate::{App, Problem};

/// Returns a backup of the whole database, as lines of JSON.
///
/// Requires the scope `adjutant:admin`.
#[utoipa::path(
    get,
    path = "/api/backup",
    tag = "data",
    responses((status = 200, description = "The backup", body = String, content_type = "application/x-ndjson"))
)]
pub(super) async fn backup(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    CurrentActor(actor): CurrentActor,
) -> Result<Response, Problem> {
    require_admin(&user)?;
    let record = AuditRecord::new(app.clock(), actor, AuditAction::BackupRead, "");
    app.store().transaction(async move |tx| store::audit::record(tx, &record).await).await?;
    let mut backup = Backup::begin(app.store(), app.clock().now()).await?;
    Ok(stream::respond("application/x-ndjson", |writer| async move {
        let written = async {
            while let Some(chunk) = backup.next().await? {
                writer.send(chunk).await?;
            }
            Ok(())
        };
        let written = written.await;
        (writer, written)
    }))
}

/// Replaces the whole database with a backup, in one transaction.
///
/// An incomplete backup changes nothing. Requires the scope `adjutant:admin`.
#[utoipa::path(
    post,
    path = "/api/restore",
    tag = "data",
    request_body(content = Vec<u8>, description = "The backup", content_type = "application/octet-stream"),
    responses((status = 200, description = "The database was replaced", body = RestoreSummary))
)]
pub(super) async fn restore(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    CurrentActor(actor): CurrentActor,
    request: Request,
) -> Result<Json<RestoreSummary>, Problem> {
    require_admin(&user)?;
    let failed = |error: std::io::Error| Problem::internal(format!("receiving the backup failed: {error}"));
    let (file, path) = tempfile::NamedTempFile::new().map_err(failed)?.into_parts();
    let mut file = tokio::fs::File::from_std(file);
    let mut body = request.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|_| Invalid::one("body", "complete", "must arrive completely; the connection was closed early"))?;
        if let Ok(bytes) = frame.into_data() {
            file.write_all(&bytes).await.map_err(failed)?;
        }
    }
    file.flush().await.map_err(failed)?;
    let record = AuditRecord::new(app.clock(), actor, AuditAction::BackupRestored, "");
    let rows = store::backup::restore(app.store(), path.to_path_buf(), Some(record)).await?;
    app.revocations().refresh(&app).await?;
    app.supervisor().refresh_stop_state().await?;
    tracing::info!(event = "backup_restored", rows, "the database was restored from a backup");
    Ok(Json(RestoreSummary { rows }))
}
