//! The unvalidated configuration: tables of values from the file, the environment and the flags, each with its origin.
//! Only the structure is checked here: which sections exist, and which of them are lists.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use super::secrets::EnvVariables;
use super::{ConfigMistake, config_file, settings};
use crate::cli::GlobalOptions;

/// The origin of a value. Ordered by the lines of the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ValueOrigin {
    Default,
    File { path: PathBuf, line: usize },
    Variable(String),
    Flag(&'static str),
}

impl fmt::Display for ValueOrigin {
    /// Writes `default`, `PATH:LINE`, the name of the variable, or the flag.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A section with several entries. Only the file can define it, because a variable cannot name an entry.
pub(crate) struct ListSection {
    pub(crate) name: &'static str,
    /// One entry, for messages.
    pub(crate) singular: &'static str,
    /// The correct form of an entry, for messages.
    expected: &'static str,
}

pub(crate) const MCP_SERVERS: ListSection =
    ListSection { name: "mcp_servers", singular: "MCP server", expected: "a separate [[mcp_servers]] with a name" };
pub(crate) const AGENTS: ListSection =
    ListSection { name: "agents", singular: "agent", expected: "a separate [[agents]] with an id" };
pub(crate) const SCHEDULES: ListSection =
    ListSection { name: "schedules", singular: "schedule", expected: "a separate [[schedules]] with a name" };
pub(crate) const NOTIFY: ListSection =
    ListSection { name: "notify", singular: "channel", expected: "a separate [[notify]] with a name and a type" };
pub(crate) const LISTS: [ListSection; 4] = [MCP_SERVERS, AGENTS, SCHEDULES, NOTIFY];

/// The values of a `[section]`, or of one `[[entry]]` of a list.
#[derive(Clone)]
pub(crate) struct ConfigTable {
    /// The name in messages: `server`, `mcp_servers[notes]`.
    pub(crate) title: String,
    pub(crate) origin: ValueOrigin,
    pub(crate) fields: Map<String, Value>,
    /// Origins by path: `env`, `env.TOKEN`.
    origins: BTreeMap<String, ValueOrigin>,
}

impl ConfigTable {
    fn new(title: String, origin: ValueOrigin) -> Self {
        Self { title, origin, fields: Map::new(), origins: BTreeMap::new() }
    }

    /// Returns the value of a key. An empty text counts as missing.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.fields.get(key).filter(|value| value.as_str().is_none_or(|text| !text.trim().is_empty()))
    }

    /// Returns the trimmed text of a key. None if it is missing, empty or not a string.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str().map(str::trim)
    }

    /// Returns the name of an entry, or an empty text.
    pub(crate) fn name(&self) -> &str {
        self.text("name").unwrap_or_default()
    }

    /// Returns false only if `enabled` is `false`.
    pub(crate) fn is_enabled(&self) -> bool {
        self.get("enabled") != Some(&Value::Bool(false))
    }

    /// Returns the origin of a path such as `env.TOKEN` or `args[1]`, or of the closest enclosing field, or of the
    /// table.
    pub(crate) fn origin_of(&self, path: &str) -> ValueOrigin {
        let mut path = path;
        loop {
            if let Some(origin) = self.origins.get(path) {
                return origin.clone();
            }
            let Some(end) = path.rfind(['.', '[']) else { return self.origin.clone() };
            path = path.get(..end).unwrap_or_default();
        }
    }

    fn set(&mut self, key: &str, value: Value, origin: ValueOrigin) {
        self.fields.insert(key.to_owned(), value);
        self.origins.insert(key.to_owned(), origin);
    }

    /// Moves the fields that match `filter` to a new table with the same title and origins. Returns none if no field
    /// matches.
    fn split_off(&mut self, filter: impl Fn(&str) -> bool) -> Option<Self> {
        let (matching, rest) = std::mem::take(&mut self.fields).into_iter().partition(|(key, _)| filter(key));
        self.fields = rest;
        Some(Self { fields: matching, ..self.clone() }).filter(|table| !table.fields.is_empty())
    }

    /// Adds the fields of a TOML table. `at` returns the origin for a byte offset in the file.
    fn add(&mut self, content: &DeTable<'_>, at: &dyn Fn(usize) -> ValueOrigin) {
        for (key, value) in content {
            self.fields.insert(key.get_ref().to_string(), to_json(value.get_ref()));
        }
        self.record_origins("", content, at);
    }

    /// Records the origin of every field, also of nested tables, but not of tables in lists. `above` is the path of the
    /// enclosing field with a final dot, or empty.
    fn record_origins(&mut self, above: &str, content: &DeTable<'_>, at: &dyn Fn(usize) -> ValueOrigin) {
        for (key, value) in content {
            let path = format!("{above}{}", key.get_ref());
            if let DeValue::Table(inner) = value.get_ref() {
                self.record_origins(&format!("{path}."), inner, at);
            }
            self.origins.insert(path, at(key.span().start));
        }
    }
}

/// All tables. Later layers have replaced the values of earlier ones.
#[derive(Clone)]
pub(crate) struct ConfigDocument {
    /// The file that was read. None without a configuration file.
    pub(crate) file: Option<PathBuf>,
    /// All known sections.
    sections: BTreeMap<&'static str, ConfigTable>,
    lists: BTreeMap<&'static str, Vec<ConfigTable>>,
    /// The fields of `[a2a]` for the endpoint of the assistant.
    pub(crate) endpoint: Option<ConfigTable>,
}

/// Omits the values: a variable may contain a secret instead of a reference.
impl fmt::Debug for ConfigDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigDocument").field("file", &self.file).finish_non_exhaustive()
    }
}

impl ConfigDocument {
    /// Collects the values of all layers: the file, then variables, then the flags `--listen` and `--database-url`.
    /// Appends mistakes in the structure to `mistakes` and keeps the valid rest. A missing file is a mistake only if
    /// `--config` names it. A file that cannot be read for another reason is always a mistake.
    pub(crate) fn collect(
        global: &GlobalOptions,
        listen: Option<&str>,
        variables: &EnvVariables,
        mistakes: &mut Vec<ConfigMistake>,
    ) -> Self {
        let sections = settings::SECTIONS.iter().map(|(name, _)| *name);
        let sections = sections.map(|name| (name, ConfigTable::new(name.to_owned(), ValueOrigin::Default))).collect();
        let lists = LISTS.map(|list| (list.name, Vec::new())).into();
        let mut document = Self { file: None, sections, lists, endpoint: None };
        let (path, named) = config_file(global);
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                document.add_file(&path, &text, mistakes);
                document.file = Some(path);
            }
            Err(error) if named || error.kind() != std::io::ErrorKind::NotFound => {
                let origin = ValueOrigin::File { path, line: 1 };
                mistakes.push(ConfigMistake { origin, message: format!("failed to read the file: {error}") });
            }
            Err(_) => {}
        }
        document.add_variables(variables, mistakes);
        let url = global.database_url.as_deref();
        for (section, key, flag, value) in
            [("server", "listen", "--listen", listen), ("database", "url", "--database-url", url)]
        {
            if let (Some(value), Some(table)) = (value, document.sections.get_mut(section)) {
                table.set(key, value.into(), ValueOrigin::Flag(flag));
            }
        }
        document
    }

    /// Returns a section by its name in [`settings::SECTIONS`]. Panics if the name is unknown.
    pub(crate) fn section(&self, name: &str) -> &ConfigTable {
        &self.sections[name]
    }

    /// Returns the entries of a list.
    pub(crate) fn list(&self, list: &ListSection) -> &[ConfigTable] {
        self.lists.get(list.name).map_or(&[], Vec::as_slice)
    }

    /// Returns the files that agents must not see (SEC-2): the configuration file, and every file that a value refers to as
    /// `file:PATH`.
    pub(crate) fn secret_files(&self) -> Vec<PathBuf> {
        fn collect(value: &Value, files: &mut Vec<PathBuf>) {
            match value {
                Value::String(text) => files.extend(text.trim().strip_prefix("file:").map(|path| path.trim().into())),
                Value::Array(values) => values.iter().for_each(|value| collect(value, files)),
                Value::Object(fields) => fields.values().for_each(|value| collect(value, files)),
                _ => {}
            }
        }
        let mut files: Vec<PathBuf> = self.file.iter().cloned().collect();
        let tables = self.sections.values().chain(self.lists.values().flatten()).chain(&self.endpoint);
        for value in tables.flat_map(|table| table.fields.values()) {
            collect(value, &mut files);
        }
        files
    }

    /// Adds the sections and lists of the file. Fields of `[a2a]` that are no settings become the endpoint of the
    /// assistant.
    ///
    /// Reports TOML errors, sections that are not tables, wrong lists and unknown sections, and continues with the
    /// rest. Of an unknown section, each key is reported, or the section itself if it is empty or no table. Unknown
    /// keys of known sections are not reported here.
    fn add_file(&mut self, path: &Path, text: &str, mistakes: &mut Vec<ConfigMistake>) {
        let at = |offset: usize| {
            let line = text.get(..offset).unwrap_or(text).matches('\n').count() + 1;
            ValueOrigin::File { path: path.to_owned(), line }
        };
        let (document, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            let offset = error.span().map_or(0, |span| span.start);
            mistakes.push(ConfigMistake { origin: at(offset), message: format!("not TOML: {}", error.message()) });
        }
        for (name, content) in document.get_ref() {
            let origin = at(name.span().start);
            let name = name.get_ref().as_ref();
            let list = LISTS.iter().find(|list| list.name == name);
            match (list, self.sections.get_mut(name), content.get_ref()) {
                (Some(list), _, content) => {
                    self.lists.insert(list.name, entries(list, content, &origin, &at, mistakes));
                }
                (None, Some(section), DeValue::Table(content)) => {
                    section.origin = origin;
                    section.add(content, &at);
                    if name == "a2a" {
                        self.endpoint = section.split_off(|key| settings::find(&format!("a2a.{key}")).is_none());
                    }
                }
                (None, Some(_), _) => {
                    mistakes.push(ConfigMistake { origin, message: format!("{name} must be a section: [{name}]") });
                }
                (None, None, DeValue::Table(content)) if !content.is_empty() => {
                    mistakes.extend(
                        content
                            .keys()
                            .map(|key| settings::unknown(&format!("{name}.{}", key.get_ref()), at(key.span().start))),
                    );
                }
                (None, None, _) => mistakes.push(settings::unknown(name, origin)),
            }
        }
    }

    /// Adds the variables of the form `ADJUTANT_SECTION__KEY`, in the type of the setting, and ignores all other
    /// variables. They replace values of the file. The case of `SECTION__KEY` is ignored. Reports and skips unknown
    /// settings, entries of lists, fields of the A2A endpoint of the assistant, and values that are not UTF-8.
    fn add_variables(&mut self, variables: &EnvVariables, mistakes: &mut Vec<ConfigMistake>) {
        for (variable, value) in variables.iter() {
            let Some(path) = variable.strip_prefix("ADJUTANT_").filter(|path| path.contains("__")) else { continue };
            let name = path.to_lowercase().replacen("__", ".", 1);
            let origin = ValueOrigin::Variable(variable.to_owned());
            let mut mistake = |message: &str| {
                mistakes.push(ConfigMistake { origin: origin.clone(), message: message.to_owned() });
            };
            let (section, key) = name.split_once('.').unwrap_or_default();
            if let Some(ListSection { name, singular, .. }) = LISTS.iter().find(|list| list.name == section) {
                mistake(&format!(
                    "{singular}s must be in the file, as [[{name}]]; variables cannot add or change them"
                ));
                continue;
            }
            let known = settings::find(&name);
            match (self.sections.get_mut(section), known, value.to_str()) {
                (Some(table), Some(known), Some(text)) => table.set(key, (known.from_text)(text), origin),
                (Some(_), Some(_), None) => mistake("the value is not UTF-8"),
                (Some(_), None, _) if section == "a2a" => mistake(
                    "the endpoint of the assistant must be in the file, in [a2a]; only a2a.default_agent and \
                     a2a.allow_private_webhooks can be variables",
                ),
                _ => mistakes.push(settings::unknown(&name, origin)),
            }
        }
    }
}

/// Returns the tables of a list. The title of each is `list[id]`, with its id, else its name, else its number from 1.
/// Reports `content` that is not a list and returns nothing then. Reports entries that are not tables and leaves them
/// out. `origin` is the origin of the list, and `at` returns the origin for a byte offset in the file.
fn entries(
    list: &ListSection,
    content: &DeValue<'_>,
    origin: &ValueOrigin,
    at: &dyn Fn(usize) -> ValueOrigin,
    mistakes: &mut Vec<ConfigMistake>,
) -> Vec<ConfigTable> {
    let mut report = |origin: ValueOrigin| {
        mistakes.push(ConfigMistake { origin, message: format!("every {} must be {}", list.singular, list.expected) });
    };
    let DeValue::Array(items) = content else {
        report(origin.clone());
        return Vec::new();
    };
    let mut tables = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let origin = at(item.span().start);
        let DeValue::Table(content) = item.get_ref() else {
            report(origin);
            continue;
        };
        let mut table = ConfigTable::new(format!("{}[{}]", list.name, index + 1), origin);
        table.add(content, at);
        if let Some(name) = table.text("id").or(table.text("name")) {
            table.title = format!("{}[{name}]", list.name);
        }
        tables.push(table);
    }
    tables
}

/// Returns the value as JSON. Times, integers that do not fit 64 bits and floats that are not finite become texts.
fn to_json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Boolean(flag) => (*flag).into(),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => number.into(),
            Err(_) => number.as_str().into(),
        },
        DeValue::Float(number) => {
            let finite = number.as_str().parse().ok().and_then(serde_json::Number::from_f64);
            finite.map_or_else(|| number.as_str().into(), Value::Number)
        }
        DeValue::Array(items) => items.iter().map(|item| to_json(item.get_ref())).collect(),
        DeValue::Table(fields) => {
            fields.iter().map(|(key, value)| (key.get_ref().clone(), to_json(value.get_ref()))).collect()
        }
        DeValue::Datetime(time) => time.to_string().into(),
    }
}
