//! Enums with one spelling for JSON, the database and the command line.

/// Declares a `string_enum!` that is part of the API description: `schema_enum! { pub enum Mode { Task = "task" } }`.
macro_rules! schema_enum {
    ($($declaration:tt)*) => {
        $crate::string_enum! { #[derive(utoipa::ToSchema)] $($declaration)* }
    };
}
pub(crate) use schema_enum;

/// Declares an enum with a string for each variant, `ALL`, `as_str`, `parse` and the serde implementations.
///
/// `parse` fails with a violation that names the field and lists the accepted strings.
#[macro_export]
macro_rules! string_enum {
    ($(#[$attribute:meta])* pub enum $name:ident { $($(#[$of:meta])* $variant:ident = $word:tt),+ $(,)? }) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        $(#[$attribute])*
        pub enum $name {
            $($(#[$of])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// All variants in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the string of the variant.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            /// Returns the variant with exactly this string. Fails with the rule `one_of` for `field` if no variant has
            /// it.
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
    fn the_schema_lists_the_strings() {
        let schema = serde_json::to_value(AccessType::schema()).unwrap();
        assert_eq!(schema["enum"], serde_json::json!(["read-only", "read-write"]));
        assert_eq!(serde_json::to_value(AccessType::ReadOnly).unwrap(), "read-only");
        assert_eq!(AccessType::parse("access_type", "read-write"), Ok(AccessType::ReadWrite));
    }
}
