//! `/api/sessions`.

pub use model::session::{Session, SessionState};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

page! {
    /// Sessions.
    Sessions { sessions: Session }
}

list! {
    /// Selects sessions.
    ListSessions -> Sessions {
        /// `true`: includes ended sessions.
        ended: bool,
    }
}

/// A request to open a session.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionDraft {
    pub agent_id: String,
}
