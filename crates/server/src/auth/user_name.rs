//! Derives the ids of users from their names.
//!
//! The id of a name is a UUID of version 8 from a SHA-256 digest of the name in lower case. So the same name has the same
//! id on every machine and in every release. Nothing is stored.

use model::UserId;
use sha2::{Digest, Sha256};

/// The longest name of a user, in bytes.
const MAX_NAME_BYTES: usize = 64;
/// Separates these digests from all others. It never changes.
const DIGEST_PREFIX: &str = "adjutant user name\n";

/// A user that was given by name or by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedUser {
    pub id: UserId,
    /// The name in lower case. `None` if the id was given.
    pub name: Option<String>,
}

impl NamedUser {
    /// Parses a UUID or the name of a user. A name has 1 to 64 ASCII letters, digits or `.`, `-`, `_`, `@`, and begins with
    /// a letter or a digit. Returns `None` for other texts. Also returns `None` for an incomplete UUID, which is a typing
    /// error and not a name.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(id) = text.parse() {
            return Some(Self { id, name: None });
        }
        let name = text.to_ascii_lowercase();
        let is_name_char = |c: char| c.is_ascii_alphanumeric() || ".-_@".contains(c);
        let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.len() <= MAX_NAME_BYTES
            && name.chars().all(is_name_char);
        (is_name && !resembles_uuid(&name)).then(|| Self { id: derive_id(&name), name: Some(name) })
    }
}

/// Returns the id of a name in lower case.
fn derive_id(name: &str) -> UserId {
    let digest = Sha256::digest(format!("{DIGEST_PREFIX}{name}"));
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(digest).for_each(|(byte, digest)| *byte = digest);
    UserId::new(uuid::Builder::from_custom_bytes(bytes).into_uuid())
}

/// Returns true for a text of at least 24 hexadecimal digits and hyphens.
fn resembles_uuid(text: &str) -> bool {
    text.len() >= 24 && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_id_forever() {
        // OPS-3
        let bob = NamedUser::parse("Bob").unwrap();
        assert_eq!(bob.name.as_deref(), Some("bob"));
        assert_eq!(bob.id.to_string(), "3c9e3540-7b25-8756-a510-1d8c0bdf1b6a", "this value never changes");
        assert_eq!(NamedUser::parse("bob").unwrap(), bob);
        assert_ne!(NamedUser::parse("bob2").unwrap().id, bob.id);
        let id = "7d9f1a52-3c1e-4b7a-9d42-5f0e6f1c2b3a";
        assert_eq!(NamedUser::parse(id), Some(NamedUser { id: id.parse().unwrap(), name: None }));
        let long = "x".repeat(65);
        for wrong in ["", " ", "bob smith", "-bob", "b\u{f6}b", &long, &id[..35], &id.replace('-', "")] {
            assert_eq!(NamedUser::parse(wrong), None, "{wrong}");
        }
    }
}
