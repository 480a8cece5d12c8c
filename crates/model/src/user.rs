//! Users: the identity that every read and write is bound to.

use std::fmt;
use std::str::FromStr;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Invalid;

/// The scope of operators. It allows a user to configure the programs that run on the host (OPS-6).
pub const ADMIN_SCOPE: &str = "adjutant:admin";

/// The id of a user. It is always written in lower case, so that each user has exactly one spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct UserId(Uuid);

impl UserId {
    /// The local user: the only user without authentication.
    pub const LOCAL: Self = Self(Uuid::from_u128(0x0000_0000_0000_7000_8000_0000_0000_0001));

    /// Returns the id of the user with this UUID.
    pub const fn new(id: Uuid) -> Self {
        Self(id)
    }
}

impl FromStr for UserId {
    type Err = Invalid;

    /// Parses a UUID with hyphens, in any case. Fails for every other form of a UUID.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        // `urn:uuid:` and braces would be further spellings of the same id.
        match Uuid::try_parse(text) {
            Ok(id) if text.len() == 36 => Ok(Self(id)),
            _ => Err(Invalid::one("user_id", "uuid", "must be a UUID")),
        }
    }
}

impl TryFrom<String> for UserId {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<UserId> for String {
    fn from(id: UserId) -> Self {
        id.to_string()
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The authenticated user of one request.
#[derive(Clone, Debug)]
pub struct User {
    pub id: UserId,
    pub scopes: Vec<String>,
    /// The time zone of dates without an offset and of the start of a day.
    pub time_zone: TimeZone,
}

impl User {
    /// Returns the local user, who has all scopes.
    pub fn local(time_zone: TimeZone) -> Self {
        Self { id: UserId::LOCAL, scopes: vec![ADMIN_SCOPE.to_owned()], time_zone }
    }

    /// Returns `true` if the user has the scope of operators.
    pub fn is_admin(&self) -> bool {
        self.scopes.iter().any(|s| s == ADMIN_SCOPE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_id_has_one_spelling() {
        // AGENT-1
        let id: UserId = "123E4567-E89B-12D3-A456-426614174000".parse().unwrap();
        assert_eq!(id.to_string(), "123e4567-e89b-12d3-a456-426614174000");
        for wrong in ["", " ", "local", "123e4567e89b12d3a456426614174000", "{123e4567-e89b-12d3-a456-426614174000}"] {
            assert!(wrong.parse::<UserId>().is_err(), "{wrong}");
        }
    }
}
