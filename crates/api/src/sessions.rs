//! `/api/sessions`.

pub use model::session::{Session, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

page! {
    /// Sessions.
    Sessions { sessions: Session }
}

list! {
    /// Selects sessions.
    ListSessions -> Sessions {
        /// `true`: those that have ended too.
        ended: bool,
    }
}

/// A request to open a session.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionDraft {
    pub agent_id: String,
}
