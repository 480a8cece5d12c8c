//! Enumerations whose values are words: in JSON, in the database and on the command line alike.

/// Declares an enumeration of words that is part of the API description: `words! { pub enum Mode { Task = "task" } }`.
macro_rules! words {
    ($($declaration:tt)*) => {
        $crate::plain_words! { #[derive(utoipa::ToSchema)] $($declaration)* }
    };
}
pub(crate) use words;

/// Declares an enumeration of words with `as_str`, a `parse` whose error names the field, and serde in those words.
#[macro_export]
macro_rules! plain_words {
    ($(#[$attribute:meta])* pub enum $name:ident { $($(#[$of:meta])* $variant:ident = $word:tt),+ $(,)? }) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        $(#[$attribute])*
        pub enum $name {
            $($(#[$of])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            pub fn parse(field: &str, text: &str) -> Result<Self, $crate::Invalid> {
                let found = Self::ALL.iter().find(|value| value.as_str() == text);
                found.copied().ok_or_else(|| {
                    let words = [$($word),+].join(", ");
                    $crate::Invalid::one(field, "one_of", format!("must be one of {words}"))
                })
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use utoipa::PartialSchema;

    use crate::agent::AccessType;

    #[test]
    fn the_description_has_the_words() {
        let described = serde_json::to_value(AccessType::schema()).unwrap();
        assert_eq!(described["enum"], serde_json::json!(["read-only", "read-write"]));
        assert_eq!(serde_json::to_value(AccessType::ReadOnly).unwrap(), "read-only");
        assert_eq!(AccessType::parse("access_type", "read-write"), Ok(AccessType::ReadWrite));
    }
}
