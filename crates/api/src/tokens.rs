//! `/api/tokens`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A token to revoke: the token itself, or its id (`jti`) and its user.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Revocation {
    pub token: Option<String>,
    pub id: Option<String>,
    pub user_id: Option<String>,
}
