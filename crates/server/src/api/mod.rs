//! The endpoints below `/api`, one file a noun. All of them act for the user who asks and see nothing else.

mod backup;
mod conversations;
mod data;
mod tasks;
mod tokens;

use serde::Serialize;
use store::page::Page;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;

pub(crate) use backup::RESTORE_PATH;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(tasks::list, tasks::create))
        .routes(routes!(tasks::undo))
        .routes(routes!(tasks::complete_several))
        .routes(routes!(tasks::delete_several))
        .routes(routes!(tasks::get, tasks::update, tasks::delete))
        .routes(routes!(tasks::complete))
        .routes(routes!(conversations::list))
        .routes(routes!(conversations::get, conversations::delete))
        .routes(routes!(data::export, data::import, data::erase))
        .routes(routes!(backup::backup))
        .routes(routes!(backup::restore))
        .routes(routes!(tokens::revoke))
}

/// The cursor of the next page as it is shown.
fn next_cursor<T>(page: &Page<T>) -> Option<String> {
    page.next.as_ref().map(store::page::Cursor::encode)
}

/// A change whose answer has no body.
#[derive(Serialize)]
enum NoBody {}
