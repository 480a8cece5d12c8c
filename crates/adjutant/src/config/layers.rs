//! Collects values from the file, the environment and the flags, each with where it came from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::entries::{self, Entry as Several};
use super::secrets::Variables;
use super::settings::{self, Kind};
use super::tables::Entry;
use super::{Mistake, a2a, agents, config_file, mcp_servers, notify, schedules};
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

/// A value as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    Number(u64),
    Flag(bool),
    List(Vec<String>),
}

/// Sections of which there may be several, and what they are.
pub(crate) const SEVERAL: [(&str, &str); 4] = [
    ("mcp_servers", "MCP servers"),
    (agents::SECTION, "agents"),
    (schedules::SECTION, "schedules"),
    ("notify", "channels"),
];

/// The values that were given, by setting; later layers have replaced earlier ones.
#[derive(Clone, Default)]
pub(crate) struct Layers {
    pub(crate) file: Option<PathBuf>,
    pub(crate) values: BTreeMap<&'static str, (Value, Origin)>,
    /// As they stand in the file; nothing else adds to them.
    pub(crate) mcp_servers: Vec<Entry>,
    pub(crate) agents: Vec<Several>,
    pub(crate) schedules: Vec<Several>,
    /// What `[a2a]` says about the assistant.
    pub(crate) a2a: Option<Several>,
    pub(crate) notify: Vec<Entry>,
}

/// Without the values: a variable may hold a secret where a reference was wanted.
impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layers").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Layers {
    pub(crate) fn collect(
        global: &Global,
        listen: Option<&str>,
        variables: &Variables,
        mistakes: &mut Vec<Mistake>,
    ) -> Self {
        let mut layers = Self::default();
        let (path, named) = config_file(global);
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                layers.add_file(&path, &text, mistakes);
                layers.file = Some(path);
            }
            Err(error) if named || error.kind() != std::io::ErrorKind::NotFound => {
                let origin = Origin::File { path, line: 1 };
                mistakes.push(Mistake { origin, message: format!("the file cannot be read: {error}") });
            }
            Err(_) => {}
        }
        layers.add_variables(variables, mistakes);
        for (name, flag, value) in
            [("server.listen", "--listen", listen), ("database.url", "--database-url", global.database_url.as_deref())]
        {
            if let Some(value) = value {
                layers.values.insert(name, (Value::Text(value.to_owned()), Origin::Flag(flag)));
            }
        }
        layers
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
        for (section, content) in document.get_ref() {
            match section.get_ref().as_ref() {
                "mcp_servers" => self.mcp_servers = mcp_servers::SECTION.collect(section, content, &at, mistakes),
                "notify" => self.notify = notify::SECTION.collect(section, content, &at, mistakes),
                agents::SECTION => self.agents = entries::collect(agents::ABOUT, section, content, &at, mistakes),
                schedules::SECTION => {
                    self.schedules = entries::collect(schedules::ABOUT, section, content, &at, mistakes);
                }
                _ => self.add_section(section, content, &at, mistakes),
            }
        }
    }

    fn add_section(
        &mut self,
        section: &Spanned<DeString<'_>>,
        content: &Spanned<DeValue<'_>>,
        at: &dyn Fn(usize) -> Origin,
        mistakes: &mut Vec<Mistake>,
    ) {
        let DeValue::Table(keys) = content.get_ref() else {
            let origin = at(section.span().start);
            mistakes.push(match settings::is_section(section.get_ref()) {
                true => Mistake { origin, message: format!("{0} must be a section: [{0}]", section.get_ref()) },
                false => unknown(section.get_ref(), origin),
            });
            return;
        };
        for (key, value) in keys {
            let name = format!("{}.{}", section.get_ref(), key.get_ref());
            let origin = at(key.span().start);
            let Some(setting) = settings::find(&name) else {
                if section.get_ref() == a2a::SECTION {
                    let entry = self.a2a.get_or_insert_with(|| Several::new(at(section.span().start), a2a::SECTION));
                    entry.add(a2a::ONE, key.get_ref().to_string(), value.get_ref(), origin, mistakes);
                    continue;
                }
                mistakes.push(unknown(&name, origin));
                continue;
            };
            match from_toml(setting.kind, value.get_ref()) {
                Ok(value) => drop(self.values.insert(setting.name, (value, origin))),
                Err(wanted) => mistakes.push(Mistake { origin, message: format!("{name} must be {wanted}") }),
            }
        }
        if keys.is_empty() && !settings::is_section(section.get_ref()) {
            mistakes.push(unknown(section.get_ref(), at(section.span().start)));
        }
    }

    fn add_variables(&mut self, variables: &Variables, mistakes: &mut Vec<Mistake>) {
        for (variable, value) in variables.iter() {
            let Some(path) = variable.strip_prefix("ADJUTANT_").filter(|path| path.contains("__")) else { continue };
            let name = path.to_lowercase().replacen("__", ".", 1);
            let origin = Origin::Variable(variable.to_owned());
            let several = name.split('.').next().and_then(|section| SEVERAL.iter().find(|(name, _)| *name == section));
            if let Some((section, what)) = several {
                let message =
                    format!("{what} stand in the file, as [[{section}]]; variables cannot add or change them");
                mistakes.push(Mistake { origin, message });
                continue;
            }
            let Some(setting) = settings::find(&name) else {
                mistakes.push(match name.split_once('.') {
                    Some((a2a::SECTION, _)) => Mistake { origin, message: a2a::IN_THE_FILE.to_owned() },
                    _ => unknown(&name, origin),
                });
                continue;
            };
            let Some(text) = value.to_str() else {
                mistakes.push(Mistake { origin, message: "the value is not UTF-8".to_owned() });
                continue;
            };
            match from_text(setting.kind, text) {
                Ok(value) => drop(self.values.insert(setting.name, (value, origin))),
                Err(wanted) => mistakes.push(Mistake { origin, message: format!("{name} must be {wanted}") }),
            }
        }
    }
}

fn unknown(name: &str, origin: Origin) -> Mistake {
    let hint = settings::suggestion(name).map(|known| format!("; did you mean {known}?")).unwrap_or_default();
    Mistake { origin, message: format!("there is no setting {name}{hint}") }
}

fn from_toml(kind: Kind, value: &DeValue<'_>) -> Result<Value, &'static str> {
    match (kind, value) {
        (Kind::Text(_) | Kind::Secret, DeValue::String(text)) => Ok(Value::Text(text.to_string())),
        (Kind::Number(_), DeValue::Integer(number)) => {
            number.as_str().parse().ok().filter(|_| number.radix() == 10).map(Value::Number).ok_or(wanted(kind))
        }
        (Kind::Flag(_), DeValue::Boolean(flag)) => Ok(Value::Flag(*flag)),
        (Kind::Decimal(_), DeValue::String(text)) => Ok(Value::Text(text.to_string())),
        (Kind::Decimal(_), DeValue::Integer(number)) => Ok(Value::Text(number.as_str().to_owned())),
        (Kind::Decimal(_), DeValue::Float(number)) => Ok(Value::Text(number.as_str().to_owned())),
        (Kind::List(_) | Kind::Headers, DeValue::Array(items)) => {
            let texts = items.iter().map(|item| match item.get_ref() {
                DeValue::String(text) => Some(text.to_string()),
                _ => None,
            });
            texts.collect::<Option<_>>().map(Value::List).ok_or(wanted(kind))
        }
        _ => Err(wanted(kind)),
    }
}

fn from_text(kind: Kind, text: &str) -> Result<Value, &'static str> {
    match kind {
        Kind::Text(_) | Kind::Decimal(_) | Kind::Secret => Ok(Value::Text(text.to_owned())),
        Kind::Number(_) => text.trim().parse().map(Value::Number).map_err(|_| wanted(kind)),
        Kind::Flag(_) => text.trim().to_lowercase().parse().map(Value::Flag).map_err(|_| wanted(kind)),
        Kind::List(_) | Kind::Headers => {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            Ok(Value::List(items.map(str::to_owned).collect()))
        }
    }
}

fn wanted(kind: Kind) -> &'static str {
    match kind {
        Kind::Text(_) => "text in quotes",
        Kind::Number(_) => "a whole number",
        Kind::Flag(_) => "true or false",
        Kind::Decimal(_) => "a number",
        Kind::List(_) => "a list of texts",
        Kind::Headers => "a list of texts such as \"Name: value\"",
        Kind::Secret => "a reference in quotes: \"env:NAME\" or \"file:PATH\"",
    }
}
