//! Who is asking: the identity every read and write is bound to.

use std::fmt;
use std::str::FromStr;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Invalid;

/// The scope that lets a user configure what runs on the host (OPS-6).
pub const ADMIN_SCOPE: &str = "adjutant:admin";

/// Any UUID. Rows belong to it, and it is written in lower case everywhere so that one user is one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct UserId(Uuid);

impl UserId {
    /// The one user of an adjutant without authentication.
    pub const LOCAL: Self = Self(Uuid::from_u128(0x0000_0000_0000_7000_8000_0000_0000_0001));

    pub const fn new(id: Uuid) -> Self {
        Self(id)
    }
}

impl FromStr for UserId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        // The hyphenated form only: "urn:uuid:…" and braces would give one user several spellings.
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

/// An authenticated user for the length of one request.
#[derive(Clone, Debug)]
pub struct User {
    pub id: UserId,
    pub scopes: Vec<String>,
    /// Where dates without an offset are read and "today" begins.
    pub time_zone: TimeZone,
}

impl User {
    /// The local user, who may do everything.
    pub fn local(time_zone: TimeZone) -> Self {
        Self { id: UserId::LOCAL, scopes: vec![ADMIN_SCOPE.to_owned()], time_zone }
    }

    pub fn is_admin(&self) -> bool {
        self.scopes.iter().any(|s| s == ADMIN_SCOPE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_has_one_spelling() {
        let id: UserId = "123E4567-E89B-12D3-A456-426614174000".parse().unwrap();
        assert_eq!(id.to_string(), "123e4567-e89b-12d3-a456-426614174000");
        for wrong in ["", " ", "local", "123e4567e89b12d3a456426614174000", "{123e4567-e89b-12d3-a456-426614174000}"] {
            assert!(wrong.parse::<UserId>().is_err(), "{wrong}");
        }
    }
}
