//! What every section has in common: [`section!`] declares each setting once, with its type, its default, an example and a
//! sentence about it. The struct, the reading, `config init`, `config show` and the known names follow from that line.

use std::cell::RefCell;

use secrecy::SecretString;
use serde_json::Value;

use super::document::{Document, List, Origin, Table};
use super::form::Form;
use super::secrets::{self, Variables};
use super::{Mistake, settings};

/// What is known of a setting.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// As JSON; empty where there is none, which only an `Option` may have.
    pub(crate) default: &'static str,
    /// As TOML; empty where it is the default.
    pub(crate) example: &'static str,
    /// The entries that it is for; empty: all.
    pub(crate) of: &'static str,
    pub(crate) from_text: fn(&str) -> Value,
    pub(crate) shown: fn(&Value) -> Value,
}

impl Key {
    /// Returns `null` where there is none.
    pub(crate) fn default(&self) -> Value {
        serde_json::from_str(self.default).unwrap_or_default()
    }

    /// Returns the lines of the setting in the template.
    pub(crate) fn template(&self) -> String {
        let value = if self.example.is_empty() { self.default } else { self.example };
        format!("# {}\n# {} = {value}\n", self.about.trim(), self.name)
    }
}

/// A section, or an entry of a list, that is read from a table.
pub(crate) trait Section: Sized {
    const KEYS: &'static [Key];

    /// Reads the known keys. Notes a mistake for each value that is wrong, and takes its default. Returns nothing only if
    /// a default does not have the type of its key.
    fn read(table: &Table, reading: &Reading<'_>) -> Option<Self>;

    /// Reads the known keys and refuses all others.
    fn load(table: &Table, reading: &Reading<'_>) -> Option<Self> {
        for unknown in table.fields.keys().filter(|field| !Self::KEYS.iter().any(|key| key.name == *field)) {
            let path = format!("{}.{unknown}", table.title);
            let hint = match table.title.ends_with(']') {
                true => hint(unknown, Self::KEYS.iter().map(|key| key.name)),
                false => settings::hint(&path),
            };
            reading.complain(table.origin_of(unknown), format!("there is no setting {path}{hint}"));
        }
        Self::read(table, reading)
    }
}

/// `key: Type = default => example, Of;` under a doc comment. The default is JSON, the example TOML; `Of` names the kind of
/// entry that the key is for.
macro_rules! section {
    ($vis:vis struct $name:ident {
        $($(#[doc = $about:literal])+ $key:ident: $type:ty $(= $default:tt)? $(=> $example:tt)? $(, $of:ident)?;)+
    }) => {
        #[derive(Debug)]
        $vis struct $name { $($(#[doc = $about])+ $vis $key: $type),+ }

        impl $crate::config::section::Section for $name {
            const KEYS: &'static [$crate::config::section::Key] = &[$($crate::config::section::Key {
                name: $crate::config::section::plain(stringify!($key)),
                about: concat!($($about),+),
                default: concat!($(stringify!($default))?),
                example: concat!($(stringify!($example))?),
                of: concat!($(stringify!($of))?),
                from_text: <$type as $crate::config::form::Form>::from_text,
                shown: <$type as $crate::config::form::Form>::shown,
            }),+];

            fn read(
                table: &$crate::config::document::Table,
                reading: &$crate::config::section::Reading<'_>,
            ) -> Option<Self> {
                $(let $key = reading.value(table, Self::KEYS, $crate::config::section::plain(stringify!($key)));)+
                Some(Self { $($key: $key?),+ })
            }
        }
    };
}
pub(crate) use section;

/// Returns the name of a field without the mark of a keyword.
pub(crate) const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// Other names of settings, which people may try.
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

/// Returns a question for the name that may have been meant, or nothing.
pub(crate) fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let name = name.to_lowercase();
    let known: Vec<_> = known.collect();
    let alias = ALIASES.iter().find(|(alias, key)| *alias == name && known.contains(key)).map(|(_, key)| *key);
    let near = known.iter().map(|known| (strsim::damerau_levenshtein(&name, known), *known)).min();
    // A short name is near to everything.
    let limit = (name.len() / 3).clamp(1, 3);
    let near = near.filter(|(distance, _)| *distance <= limit).map(|(_, known)| known);
    alias.or(near).map(|meant| format!("; did you mean {meant}?")).unwrap_or_default()
}

/// The configuration while it is read: every mistake is noted, none ends the reading.
pub(crate) struct Reading<'a> {
    pub(crate) document: &'a Document,
    pub(crate) variables: &'a Variables,
    pub(crate) mistakes: RefCell<Vec<Mistake>>,
}

impl Reading<'_> {
    /// Notes that the value at `path` of a table is wrong.
    pub(crate) fn mistake(&self, table: &Table, path: &str, says: impl std::fmt::Display) {
        self.complain(table.origin_of(path), format!("{}.{path} {says}", table.title));
    }

    pub(crate) fn complain(&self, origin: Origin, message: String) {
        self.mistakes.borrow_mut().push(Mistake { origin, message });
    }

    /// Returns the value that was given. If it is wrong, that is a mistake; then, and if there is none, the default.
    pub(crate) fn value<T: Form>(&self, table: &Table, keys: &[Key], name: &str) -> Option<T> {
        let given = table.get(name).map(T::read);
        if let Some(Err(says)) = &given {
            self.mistake(table, name, says);
        }
        let default = || T::read(&keys.iter().find(|key| key.name == name)?.default()).ok();
        given.and_then(Result::ok).or_else(default)
    }

    /// Returns the secret that a reference points to.
    pub(crate) fn resolve(&self, table: &Table, path: &str, reference: &str) -> Option<SecretString> {
        secrets::resolve(self.variables, reference).map_err(|says| self.mistake(table, path, says)).ok()
    }

    /// Notes an entry that has no name.
    pub(crate) fn require_name(&self, table: &Table) {
        if table.get("name").is_none() {
            self.complain(table.origin.clone(), format!("{} needs a name", table.title));
        }
    }

    /// Notes each entry whose `key` has the value of an earlier one. Case does not count.
    pub(crate) fn unique<'t>(&self, list: &List, key: &str, entries: impl Iterator<Item = (&'t Table, String)>) {
        let mut seen: Vec<(String, &Table)> = Vec::new();
        for (table, value) in entries {
            let value = value.to_lowercase();
            match seen.iter().find(|(other, _)| *other == value) {
                Some((_, other)) => {
                    self.mistake(table, key, format!("is taken by the {} at {}", list.one, other.origin));
                }
                None if value.is_empty() => {}
                None => seen.push((value, table)),
            }
        }
    }
}
