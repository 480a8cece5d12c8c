//! The keys of a `[[mcp_servers]]`, and the entries as they stand in the file: each value of the right type, with its
//! line, and nothing looked up yet.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeString, DeValue};

use crate::config::{Mistake, Origin};

pub(crate) const SECTION: &str = "mcp_servers";

/// A key of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) of: Of,
    pub(super) shape: Shape,
    pub(crate) example: &'static str,
    pub(crate) about: &'static str,
}

/// Which servers a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Every,
    /// Those that are programs.
    Command,
    /// Those that are somewhere else.
    Url,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    Text,
    Secret,
    List,
    Table,
    Flag,
    Number { default: u64, min: u64, max: u64 },
}

const fn key(name: &'static str, of: Of, shape: Shape, example: &'static str, about: &'static str) -> Key {
    Key { name, of, shape, example, about }
}

const SECONDS: Shape = Shape::Number { default: 60, min: 1, max: 600 };

/// Every key there is, in the order of the template.
pub(crate) const KEYS: &[Key] = &[
    key("name", Of::Every, Shape::Text, "\"notes\"", "Its name here: letters, digits, - and _."),
    key("command", Of::Command, Shape::Text, "\"uvx\"", "The program that is started and spoken to."),
    key("args", Of::Command, Shape::List, "[\"notes-server\"]", "What the program is started with."),
    key(
        "env",
        Of::Command,
        Shape::Table,
        "{ NOTES_DIR = \"/srv/notes\", NOTES_TOKEN = \"env:NOTES_TOKEN\" }",
        "Variables of the program; secrets as references.",
    ),
    key("working_directory", Of::Command, Shape::Text, "\"/tmp\"", "Where the program works."),
    key("url", Of::Url, Shape::Text, "\"https://search.example/mcp\"", "Instead of a program: where the server is."),
    key("token", Of::Url, Shape::Secret, "\"env:SEARCH_TOKEN\"", "Sent as `Authorization: Bearer …`."),
    key("headers", Of::Url, Shape::Table, "{ X-Team = \"blue\" }", "Sent along; secrets as references."),
    key("allow", Of::Every, Shape::List, "[\"*\"]", "Which of its tools are taken."),
    key("deny", Of::Every, Shape::List, "[\"drop_*\"]", "Which of them are left out, even if allowed."),
    key("ask", Of::Every, Shape::List, "[\"send_*\"]", "Which tools the user is always asked about."),
    key("never_ask", Of::Every, Shape::List, "[\"read_*\"]", "Which tools the user is never asked about."),
    key("trust", Of::Every, Shape::Flag, "false", "Whether to believe what it says about its tools being harmless."),
    key("protocol", Of::Every, Shape::Text, "\"auto\"", "legacy (until 2025-11-25), modern, or auto: found by trying."),
    key("start_timeout_seconds", Of::Every, SECONDS, "60", "How long it may take to start."),
    key("call_timeout_seconds", Of::Every, SECONDS, "60", "How long a tool may be silent."),
    key(
        "max_result_bytes",
        Of::Every,
        Shape::Number { default: 50_000, min: 1000, max: 10_000_000 },
        "50000",
        "How much of a result is taken.",
    ),
    key("enabled", Of::Every, Shape::Flag, "true", "false leaves the server out."),
];

/// A server as it stands in the file.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) origin: Origin,
    /// In messages: by its name, where it has one.
    pub(super) title: String,
    pub(super) values: BTreeMap<&'static str, (Given, Origin)>,
}

#[derive(Clone, Debug)]
pub(super) enum Given {
    Text(String),
    Number(u64),
    Flag(bool),
    List(Vec<String>),
    Table(Vec<(String, String, Origin)>),
    /// Of the wrong type, which was reported.
    Wrong,
}

impl Entry {
    pub(crate) fn name(&self) -> &str {
        self.text("name").unwrap_or_default()
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.flag("enabled", true)
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match self.values.get(key) {
            Some((Given::Text(text), _)) => Some(text.trim()),
            _ => None,
        }
    }

    pub(super) fn list(&self, key: &str) -> &[String] {
        match self.values.get(key) {
            Some((Given::List(items), _)) => items,
            _ => &[],
        }
    }

    pub(super) fn table(&self, key: &str) -> &[(String, String, Origin)] {
        match self.values.get(key) {
            Some((Given::Table(items), _)) => items,
            _ => &[],
        }
    }

    pub(super) fn flag(&self, key: &str, default: bool) -> bool {
        match self.values.get(key) {
            Some((Given::Flag(flag), _)) => *flag,
            _ => default,
        }
    }

    pub(super) fn is_wrong(&self, key: &str) -> bool {
        matches!(self.values.get(key), Some((Given::Wrong, _)))
    }

    pub(super) fn origin_of(&self, key: &str) -> Origin {
        self.values.get(key).map_or(&self.origin, |(_, origin)| origin).clone()
    }
}

/// Takes the servers out of the document; what has no place or the wrong type is a mistake.
pub(crate) fn collect(
    section: &Spanned<DeString<'_>>,
    content: &Spanned<DeValue<'_>>,
    at: &dyn Fn(usize) -> Origin,
    mistakes: &mut Vec<Mistake>,
) -> Vec<Entry> {
    let wrong = "every MCP server is a [[mcp_servers]] of its own, with a name";
    let DeValue::Array(tables) = content.get_ref() else {
        mistakes.push(Mistake { origin: at(section.span().start), message: wrong.to_owned() });
        return Vec::new();
    };
    let mut entries = Vec::new();
    for (index, table) in tables.iter().enumerate() {
        let origin = at(table.span().start);
        let DeValue::Table(keys) = table.get_ref() else {
            mistakes.push(Mistake { origin, message: wrong.to_owned() });
            continue;
        };
        let title = match keys.get("name").map(Spanned::get_ref) {
            Some(DeValue::String(name)) if !name.trim().is_empty() => format!("{SECTION}[{}]", name.trim()),
            _ => format!("{SECTION}[{}]", index + 1),
        };
        let mut values = BTreeMap::new();
        for (name, value) in keys {
            let origin = at(name.span().start);
            let Some(key) = KEYS.iter().find(|key| key.name == name.get_ref()) else {
                let message = format!("there is no setting {title}.{}{}", name.get_ref(), suggestion(name.get_ref()));
                mistakes.push(Mistake { origin, message });
                continue;
            };
            let given = given(key.shape, value.get_ref(), at).unwrap_or_else(|wanted| {
                let message = format!("{title}.{} must be {wanted}", key.name);
                mistakes.push(Mistake { origin: origin.clone(), message });
                Given::Wrong
            });
            values.insert(key.name, (given, origin));
        }
        entries.push(Entry { origin, title, values });
    }
    entries
}

fn suggestion(name: &str) -> String {
    let name = name.to_lowercase();
    // What others call it.
    let alias = match name.as_str() {
        "cwd" | "directory" => Some("working_directory"),
        "environment" | "envs" => Some("env"),
        "timeout" | "timeout_seconds" => Some("call_timeout_seconds"),
        "disabled" => Some("enabled"),
        "trusted" => Some("trust"),
        _ => None,
    };
    let near = KEYS.iter().map(|key| (strsim::damerau_levenshtein(&name, key.name), key.name)).min();
    let near = near.filter(|(distance, _)| *distance <= 3).map(|(_, name)| name);
    alias.or(near).map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

fn given(shape: Shape, value: &DeValue<'_>, at: &dyn Fn(usize) -> Origin) -> Result<Given, &'static str> {
    let given = match (shape, value) {
        (Shape::Text | Shape::Secret, DeValue::String(text)) => Some(Given::Text(text.to_string())),
        (Shape::Flag, DeValue::Boolean(flag)) => Some(Given::Flag(*flag)),
        (Shape::Number { .. }, DeValue::Integer(number)) if number.radix() == 10 => {
            number.as_str().parse().ok().map(Given::Number)
        }
        (Shape::List, DeValue::Array(items)) => {
            let texts = items.iter().map(|item| item.get_ref().as_str().map(str::to_owned));
            texts.collect::<Option<_>>().map(Given::List)
        }
        (Shape::Table, DeValue::Table(items)) => {
            let texts = items.iter().map(|(name, value)| {
                Some((name.get_ref().to_string(), value.get_ref().as_str()?.to_owned(), at(name.span().start)))
            });
            texts.collect::<Option<_>>().map(Given::Table)
        }
        _ => None,
    };
    given.ok_or(match shape {
        Shape::Text => "text in quotes",
        Shape::Secret => "a reference in quotes: \"env:NAME\" or \"file:PATH\"",
        Shape::List => "a list of texts",
        Shape::Table => "a table of texts such as { NAME = \"value\" }",
        Shape::Flag => "true or false",
        Shape::Number { .. } => "a whole number",
    })
}
