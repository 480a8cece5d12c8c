//! The configuration as it was written: tables of values from the file, the environment and the flags, each value with its
//! origin. Nothing is checked here but the outline: which sections there are, and which of them are lists.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use super::secrets::Variables;
use super::{Mistake, config_file, settings};
use crate::cli::Global;

/// Where a value was written; in the order of a file's lines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    Default,
    File { path: PathBuf, line: usize },
    Variable(String),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A section of which there may be several. Only the file has them: a variable cannot name one of several.
pub(crate) struct List {
    pub(crate) name: &'static str,
    pub(crate) one: &'static str,
    form: &'static str,
}

pub(crate) const MCP_SERVERS: List =
    List { name: "mcp_servers", one: "MCP server", form: "a [[mcp_servers]] of its own, with a name" };
pub(crate) const AGENTS: List = List { name: "agents", one: "agent", form: "an [[agents]] of its own, with an id" };
pub(crate) const SCHEDULES: List =
    List { name: "schedules", one: "schedule", form: "a [[schedules]] of its own, with a name" };
pub(crate) const NOTIFY: List =
    List { name: "notify", one: "channel", form: "a [[notify]] of its own, with a name and a type" };
pub(crate) const LISTS: [List; 4] = [MCP_SERVERS, AGENTS, SCHEDULES, NOTIFY];

/// The values of a `[section]`, or of one `[[entry]]` of a list.
#[derive(Clone)]
pub(crate) struct Table {
    /// In messages: `server`, `mcp_servers[notes]`.
    pub(crate) title: String,
    pub(crate) origin: Origin,
    pub(crate) fields: Map<String, Value>,
    /// By path: `env`, `env.TOKEN`.
    origins: BTreeMap<String, Origin>,
}

impl Table {
    fn new(title: String, origin: Origin) -> Self {
        Self { title, origin, fields: Map::new(), origins: BTreeMap::new() }
    }

    /// Returns the value of a key; an empty text counts as not given.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.fields.get(key).filter(|value| value.as_str().is_none_or(|text| !text.trim().is_empty()))
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str().map(str::trim)
    }

    pub(crate) fn name(&self) -> &str {
        self.text("name").unwrap_or_default()
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.get("enabled") != Some(&Value::Bool(false))
    }

    /// Returns the place of `path`, or of the nearest field around it.
    pub(crate) fn origin_of(&self, path: &str) -> Origin {
        let mut path = path;
        loop {
            if let Some(origin) = self.origins.get(path) {
                return origin.clone();
            }
            let Some(end) = path.rfind(['.', '[']) else { return self.origin.clone() };
            path = path.get(..end).unwrap_or_default();
        }
    }

    fn set(&mut self, key: &str, value: Value, origin: Origin) {
        self.fields.insert(key.to_owned(), value);
        self.origins.insert(key.to_owned(), origin);
    }

    /// Moves the fields that `pick` chooses into a table of their own. Returns nothing if there are none.
    fn split_off(&mut self, pick: impl Fn(&str) -> bool) -> Option<Self> {
        let (picked, rest) = std::mem::take(&mut self.fields).into_iter().partition(|(key, _)| pick(key));
        self.fields = rest;
        Some(Self { fields: picked, ..self.clone() }).filter(|table| !table.fields.is_empty())
    }

    fn add(&mut self, content: &DeTable<'_>, at: &dyn Fn(usize) -> Origin) {
        for (key, value) in content {
            self.fields.insert(key.get_ref().to_string(), to_json(value.get_ref()));
        }
        self.note_origins("", content, at);
    }

    fn note_origins(&mut self, above: &str, content: &DeTable<'_>, at: &dyn Fn(usize) -> Origin) {
        for (key, value) in content {
            let path = format!("{above}{}", key.get_ref());
            if let DeValue::Table(inner) = value.get_ref() {
                self.note_origins(&format!("{path}."), inner, at);
            }
            self.origins.insert(path, at(key.span().start));
        }
    }
}

/// All tables. Later layers have replaced the values of earlier ones.
#[derive(Clone)]
pub(crate) struct Document {
    pub(crate) file: Option<PathBuf>,
    /// Every section that is known.
    sections: BTreeMap<&'static str, Table>,
    lists: BTreeMap<&'static str, Vec<Table>>,
    /// The part of `[a2a]` that says how the assistant is offered.
    pub(crate) endpoint: Option<Table>,
}

/// Without the values: a variable may hold a secret where a reference was wanted.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Document {
    pub(crate) fn collect(
        global: &Global,
        listen: Option<&str>,
        variables: &Variables,
        mistakes: &mut Vec<Mistake>,
    ) -> Self {
        let sections = settings::SECTIONS.iter().map(|(name, _)| *name);
        let sections = sections.map(|name| (name, Table::new(name.to_owned(), Origin::Default))).collect();
        let lists = LISTS.map(|list| (list.name, Vec::new())).into();
        let mut document = Self { file: None, sections, lists, endpoint: None };
        let (path, named) = config_file(global);
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                document.add_file(&path, &text, mistakes);
                document.file = Some(path);
            }
            Err(error) if named || error.kind() != std::io::ErrorKind::NotFound => {
                let origin = Origin::File { path, line: 1 };
                mistakes.push(Mistake { origin, message: format!("the file cannot be read: {error}") });
            }
            Err(_) => {}
        }
        document.add_variables(variables, mistakes);
        let url = global.database_url.as_deref();
        for (section, key, flag, value) in
            [("server", "listen", "--listen", listen), ("database", "url", "--database-url", url)]
        {
            if let (Some(value), Some(table)) = (value, document.sections.get_mut(section)) {
                table.set(key, value.into(), Origin::Flag(flag));
            }
        }
        document
    }

    /// Returns a section by the name that it has in [`settings::SECTIONS`].
    pub(crate) fn section(&self, name: &str) -> &Table {
        &self.sections[name]
    }

    pub(crate) fn list(&self, list: &List) -> &[Table] {
        self.lists.get(list.name).map_or(&[], Vec::as_slice)
    }

    fn add_file(&mut self, path: &Path, text: &str, mistakes: &mut Vec<Mistake>) {
        let at = |offset: usize| {
            let line = text.get(..offset).unwrap_or(text).matches('\n').count() + 1;
            Origin::File { path: path.to_owned(), line }
        };
        let (document, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            let offset = error.span().map_or(0, |span| span.start);
            mistakes.push(Mistake { origin: at(offset), message: format!("not TOML: {}", error.message()) });
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
                    mistakes.push(Mistake { origin, message: format!("{name} must be a section: [{name}]") });
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

    fn add_variables(&mut self, variables: &Variables, mistakes: &mut Vec<Mistake>) {
        for (variable, value) in variables.iter() {
            let Some(path) = variable.strip_prefix("ADJUTANT_").filter(|path| path.contains("__")) else { continue };
            let name = path.to_lowercase().replacen("__", ".", 1);
            let origin = Origin::Variable(variable.to_owned());
            let mut mistake = |message: &str| {
                mistakes.push(Mistake { origin: origin.clone(), message: message.to_owned() });
            };
            let (section, key) = name.split_once('.').unwrap_or_default();
            if let Some(List { name, one, .. }) = LISTS.iter().find(|list| list.name == section) {
                mistake(&format!("{one}s stand in the file, as [[{name}]]; variables cannot add or change them"));
                continue;
            }
            let known = settings::find(&name);
            match (self.sections.get_mut(section), known, value.to_str()) {
                (Some(table), Some(known), Some(text)) => table.set(key, (known.from_text)(text), origin),
                (Some(_), Some(_), None) => mistake("the value is not UTF-8"),
                (Some(_), None, _) if section == "a2a" => mistake(
                    "how the assistant is offered stands in the file, in [a2a]; only a2a.default_agent and \
                     a2a.allow_private_webhooks can be variables",
                ),
                _ => mistakes.push(settings::unknown(&name, origin)),
            }
        }
    }
}

/// Returns the tables of a list, each titled by its id or name, else by its number.
fn entries(
    list: &List,
    content: &DeValue<'_>,
    origin: &Origin,
    at: &dyn Fn(usize) -> Origin,
    mistakes: &mut Vec<Mistake>,
) -> Vec<Table> {
    let mut wrong = |origin: Origin| {
        mistakes.push(Mistake { origin, message: format!("every {} is {}", list.one, list.form) });
    };
    let DeValue::Array(items) = content else {
        wrong(origin.clone());
        return Vec::new();
    };
    let mut tables = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let origin = at(item.span().start);
        let DeValue::Table(content) = item.get_ref() else {
            wrong(origin);
            continue;
        };
        let mut table = Table::new(format!("{}[{}]", list.name, index + 1), origin);
        table.add(content, at);
        if let Some(called) = table.text("id").or(table.text("name")) {
            table.title = format!("{}[{called}]", list.name);
        }
        tables.push(table);
    }
    tables
}

/// Returns the value as JSON. A number that JSON cannot hold and a time become texts.
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
