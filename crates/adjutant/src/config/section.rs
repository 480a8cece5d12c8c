//! Declares sections: [`section!`] defines each setting once, with its type, default, example and description. The
//! struct, the parser, `config init`, `config show` and the suggestions are generated from it.

use std::cell::RefCell;

use secrecy::SecretString;
use serde_json::Value;

use super::document::{ConfigDocument, ConfigTable, ListSection, ValueOrigin};
use super::secrets::{self, EnvVariables};
use super::values::SettingValue;
use super::{ConfigMistake, settings};

/// The definition of a setting.
#[derive(Clone, Copy)]
pub(crate) struct SettingKey {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// JSON. Empty if there is no default, which requires an `Option`.
    pub(crate) default: &'static str,
    /// TOML. Empty if the default is the example.
    pub(crate) example: &'static str,
    /// The kind of entry that has this setting. Empty for all kinds.
    pub(crate) entry_kind: &'static str,
    pub(crate) from_text: fn(&str) -> Value,
    pub(crate) display_value: fn(&Value) -> Value,
}

impl SettingKey {
    /// Returns the default, or `null` without one.
    pub(crate) fn default(&self) -> Value {
        serde_json::from_str(self.default).unwrap_or_default()
    }

    /// Returns the lines of the setting in the template file.
    pub(crate) fn template(&self) -> String {
        let value = if self.example.is_empty() { self.default } else { self.example };
        format!("# {}\n# {} = {value}\n", self.description.trim(), self.name)
    }
}

/// A section, or an entry of a list.
pub(crate) trait ConfigSection: Sized {
    const KEYS: &'static [SettingKey];

    /// Reads the known keys. Reports each invalid value and uses its default. Returns none only if a default does not
    /// have the type of its key.
    fn read(table: &ConfigTable, reader: &ConfigReader<'_>) -> Option<Self>;

    /// Like [`ConfigSection::read`], and reports unknown keys with a suggestion. In an entry of a list, only its own
    /// keys are suggested; in a section, the settings of all sections.
    fn load(table: &ConfigTable, reader: &ConfigReader<'_>) -> Option<Self> {
        for unknown in table.fields.keys().filter(|field| !Self::KEYS.iter().any(|key| key.name == *field)) {
            let path = format!("{}.{unknown}", table.title);
            let hint = match table.title.ends_with(']') {
                true => hint(unknown, Self::KEYS.iter().map(|key| key.name)),
                false => settings::hint(&path),
            };
            reader.report(table.origin_of(unknown), format!("unknown setting {path}{hint}"));
        }
        Self::read(table, reader)
    }
}

/// `key: Type = default => example, Kind;` with a doc comment as description. The default is JSON, the example is TOML.
/// `Kind` is the kind of entry that has the key.
macro_rules! section {
    ($vis:vis struct $name:ident {
        $($(#[doc = $description:literal])+ $key:ident: $type:ty $(= $default:tt)? $(=> $example:tt)? $(, $kind:ident)?;)+
    }) => {
        #[derive(Debug)]
        $vis struct $name { $($(#[doc = $description])+ $vis $key: $type),+ }

        impl $crate::config::section::ConfigSection for $name {
            const KEYS: &'static [$crate::config::section::SettingKey] = &[$($crate::config::section::SettingKey {
                name: $crate::config::section::plain(stringify!($key)),
                description: concat!($($description),+),
                default: concat!($(stringify!($default))?),
                example: concat!($(stringify!($example))?),
                entry_kind: concat!($(stringify!($kind))?),
                from_text: <$type as $crate::config::values::SettingValue>::from_text,
                display_value: <$type as $crate::config::values::SettingValue>::display_value,
            }),+];

            fn read(
                table: &$crate::config::document::ConfigTable,
                reader: &$crate::config::section::ConfigReader<'_>,
            ) -> Option<Self> {
                $(let $key = reader.value(table, Self::KEYS, $crate::config::section::plain(stringify!($key)));)+
                Some(Self { $($key: $key?),+ })
            }
        }
    };
}
pub(crate) use section;

/// Returns the name of a field without `r#`.
pub(crate) const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// Alternative names for suggestions.
const ALIASES: [(&str, &str); 20] = [
    ("agent", "agent_id"),
    ("command", "executable_path"),
    ("cron", "cron_expression"),
    ("cwd", "working_directory"),
    ("directory", "working_directory"),
    ("disabled", "enabled"),
    ("environment", "env"),
    ("environment", "envs"),
    ("executable", "executable_path"),
    ("input", "input_parameters"),
    ("interval", "every"),
    ("parameters", "input_parameters"),
    ("path", "executable_path"),
    ("program", "command"),
    ("program", "executable_path"),
    ("schedule", "cron_expression"),
    ("timeout", "call_timeout_seconds"),
    ("timeout", "timeout_seconds"),
    ("timeout_seconds", "call_timeout_seconds"),
    ("tz", "time_zone"),
];

/// Returns a suggestion such as `; did you mean every?` for an unknown name, ignoring its case. If the name is in
/// [`ALIASES`] and `known` has the key of the alias, it is that key, else the most similar of the `known` names. Up to
/// one difference for every three bytes counts as similar, at least 1 and at most 3. Empty if none is similar enough.
pub(crate) fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let name = name.to_lowercase();
    let known: Vec<_> = known.collect();
    let alias = ALIASES.iter().find(|(alias, key)| *alias == name && known.contains(key)).map(|(_, key)| *key);
    let near = known.iter().map(|known| (strsim::damerau_levenshtein(&name, known), *known)).min();
    // Short names resemble too many keys, so they get a smaller limit.
    let limit = (name.len() / 3).clamp(1, 3);
    let near = near.filter(|(distance, _)| *distance <= limit).map(|(_, known)| known);
    alias.or(near).map(|meant| format!("; did you mean {meant}?")).unwrap_or_default()
}

/// Reads the configuration and collects all mistakes.
pub(crate) struct ConfigReader<'a> {
    pub(crate) document: &'a ConfigDocument,
    pub(crate) variables: &'a EnvVariables,
    pub(crate) mistakes: RefCell<Vec<ConfigMistake>>,
}

impl ConfigReader<'_> {
    /// Reports a mistake in the value at `path` of a table. `message` is the predicate of a sentence.
    pub(crate) fn mistake(&self, table: &ConfigTable, path: &str, message: impl std::fmt::Display) {
        self.report(table.origin_of(path), format!("{}.{path} {message}", table.title));
    }

    /// Reports a mistake.
    pub(crate) fn report(&self, origin: ValueOrigin, message: String) {
        self.mistakes.borrow_mut().push(ConfigMistake { origin, message });
    }

    /// Returns the value of the setting `name`, or its default if the value is absent, an empty text or invalid.
    /// Reports an invalid value. Returns `None` only if `keys` has no default of the type `T`.
    pub(crate) fn value<T: SettingValue>(&self, table: &ConfigTable, keys: &[SettingKey], name: &str) -> Option<T> {
        let given = table.get(name).map(T::parse);
        if let Some(Err(message)) = &given {
            self.mistake(table, name, message);
        }
        let default = || T::parse(&keys.iter().find(|key| key.name == name)?.default()).ok();
        given.and_then(Result::ok).or_else(default)
    }

    /// Returns the secret that a reference points to. Reports a reference that cannot be resolved and returns none.
    pub(crate) fn resolve(&self, table: &ConfigTable, path: &str, reference: &str) -> Option<SecretString> {
        secrets::resolve(self.variables, reference).map_err(|message| self.mistake(table, path, message)).ok()
    }

    /// Reports an entry without a name.
    pub(crate) fn require_name(&self, table: &ConfigTable) {
        if table.get("name").is_none() {
            self.report(table.origin.clone(), format!("{} needs a name", table.title));
        }
    }

    /// Reports each entry with the same value of `key` as an earlier entry, ignoring case. `entries` are the tables
    /// with their values. Empty values are ignored. The message contains the origin of the first entry with the value.
    pub(crate) fn unique<'t>(
        &self,
        list: &ListSection,
        key: &str,
        entries: impl Iterator<Item = (&'t ConfigTable, String)>,
    ) {
        let mut seen: Vec<(String, &ConfigTable)> = Vec::new();
        for (table, value) in entries {
            let value = value.to_lowercase();
            match seen.iter().find(|(other, _)| *other == value) {
                Some((_, other)) => {
                    self.mistake(table, key, format!("is already used by the {} at {}", list.singular, other.origin));
                }
                None if value.is_empty() => {}
                None => seen.push((value, table)),
            }
        }
    }
}
