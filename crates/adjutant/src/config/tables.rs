//! Sections of which there may be several (`[[agents]]`, `[[mcp_servers]]`, `[[notify]]`), as they stand in the file: each
//! value with its line, of the right type where the section says of which, and nothing looked up yet. Only the file has
//! them: a variable cannot name one of several.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::{Mistake, Origin};

/// A key of an entry; `O` says which entries it is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<O> {
    pub(crate) name: &'static str,
    pub(crate) of: O,
    pub(crate) shape: Shape,
    pub(crate) example: &'static str,
    pub(crate) about: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    Text,
    Secret,
    List,
    /// One, or a list.
    Texts,
    Table,
    Flag,
    Number {
        default: u64,
        min: u64,
        max: u64,
    },
}

pub(crate) const fn key<O>(
    name: &'static str,
    of: O,
    shape: Shape,
    example: &'static str,
    about: &'static str,
) -> Key<O> {
    Key { name, of, shape, example, about }
}

/// A section whose keys are known.
pub(crate) struct Section<O: 'static> {
    pub(crate) name: &'static str,
    /// What is said where it is no list of tables.
    pub(crate) wrong: &'static str,
    pub(crate) keys: &'static [Key<O>],
    /// What others call a key.
    pub(crate) aliases: &'static [(&'static str, &'static str)],
}

/// An entry as it stands in the file.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) origin: Origin,
    /// In messages: by its name, where it has one.
    pub(crate) title: String,
    pub(crate) values: BTreeMap<&'static str, (Given, Origin)>,
}

#[derive(Clone, Debug)]
pub(crate) enum Given {
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

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.values.get(key) {
            Some((Given::Text(text), _)) => Some(text.trim()),
            _ => None,
        }
    }

    /// The text, unless it is empty.
    pub(crate) fn given(&self, key: &str) -> Option<&str> {
        self.text(key).filter(|text| !text.is_empty())
    }

    pub(crate) fn list(&self, key: &str) -> &[String] {
        match self.values.get(key) {
            Some((Given::List(items), _)) => items,
            _ => &[],
        }
    }

    pub(crate) fn table(&self, key: &str) -> &[(String, String, Origin)] {
        match self.values.get(key) {
            Some((Given::Table(items), _)) => items,
            _ => &[],
        }
    }

    pub(crate) fn flag(&self, key: &str, default: bool) -> bool {
        match self.values.get(key) {
            Some((Given::Flag(flag), _)) => *flag,
            _ => default,
        }
    }

    /// The number, or the default of its key; what is wrong with it otherwise.
    pub(crate) fn number<O>(&self, keys: &[Key<O>], key: &str) -> Result<u64, String> {
        let shape = keys.iter().find(|known| known.name == key).map(|known| known.shape);
        let Some(Shape::Number { default, min, max }) = shape else { return Ok(0) };
        match self.values.get(key) {
            Some((Given::Number(number), _)) if !(min..=max).contains(number) => {
                Err(format!("must be between {min} and {max}, not {number}"))
            }
            Some((Given::Number(number), _)) => Ok(*number),
            _ => Ok(default),
        }
    }

    pub(crate) fn is_wrong(&self, key: &str) -> bool {
        matches!(self.values.get(key), Some((Given::Wrong, _)))
    }

    pub(crate) fn origin_of(&self, key: &str) -> Origin {
        self.values.get(key).map_or(&self.origin, |(_, origin)| origin).clone()
    }

    pub(crate) fn path(&self, key: &str) -> String {
        format!("{}.{key}", self.title)
    }

    /// What is wrong with its name, if anything is: the whole message.
    pub(crate) fn fault_of_name(&self) -> Option<String> {
        let name = self.name();
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.is_wrong("name") {
            // Reported already.
            None
        } else if name.is_empty() {
            Some(format!("{} needs a name", self.title))
        } else if name.len() > 32 || !name.chars().all(fits) {
            Some(format!("{} must be 1 to 32 letters, digits, - or _", self.path("name")))
        } else {
            None
        }
    }
}

/// One table of a section that has a list of them.
pub(crate) struct Table<'a> {
    pub(crate) origin: Origin,
    /// In messages: by the first of `named_by` that it has.
    pub(crate) title: String,
    pub(crate) keys: Vec<(String, &'a DeValue<'a>, Origin)>,
}

/// The tables of a section; what is none is a mistake, reported in the words of `wrong`.
pub(crate) fn tables<'a>(
    (name, named_by, wrong): (&str, &[&str], &str),
    section: &Spanned<DeString<'_>>,
    content: &'a Spanned<DeValue<'a>>,
    at: &dyn Fn(usize) -> Origin,
    mistakes: &mut Vec<Mistake>,
) -> Vec<Table<'a>> {
    let DeValue::Array(tables) = content.get_ref() else {
        mistakes.push(Mistake { origin: at(section.span().start), message: wrong.to_owned() });
        return Vec::new();
    };
    let mut found = Vec::new();
    for (index, table) in tables.iter().enumerate() {
        let origin = at(table.span().start);
        let DeValue::Table(keys) = table.get_ref() else {
            mistakes.push(Mistake { origin, message: wrong.to_owned() });
            continue;
        };
        let called = named_by.iter().find_map(|key| keys.get(*key)?.get_ref().as_str());
        let title = match called.map(str::trim) {
            Some(called) if !called.is_empty() => format!("{name}[{called}]"),
            _ => format!("{name}[{}]", index + 1),
        };
        let keys = keys.iter().map(|(key, value)| (key.get_ref().to_string(), value.get_ref(), at(key.span().start)));
        found.push(Table { origin, title, keys: keys.collect() });
    }
    found
}

impl<O> Section<O> {
    /// Takes the entries out of the document; what has no place or the wrong type is a mistake.
    pub(crate) fn collect(
        &self,
        section: &Spanned<DeString<'_>>,
        content: &Spanned<DeValue<'_>>,
        at: &dyn Fn(usize) -> Origin,
        mistakes: &mut Vec<Mistake>,
    ) -> Vec<Entry> {
        let mut entries = Vec::new();
        for table in tables((self.name, &["name"], self.wrong), section, content, at, mistakes) {
            let (origin, title) = (table.origin, table.title);
            let mut values = BTreeMap::new();
            for (name, value, origin) in table.keys {
                let Some(key) = self.keys.iter().find(|key| key.name == name) else {
                    let message = format!("there is no setting {title}.{name}{}", self.suggestion(&name));
                    mistakes.push(Mistake { origin, message });
                    continue;
                };
                let given = given(key.shape, value, at).unwrap_or_else(|wanted| {
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

    fn suggestion(&self, name: &str) -> String {
        let name = name.to_lowercase();
        let alias = self.aliases.iter().find(|(alias, _)| *alias == name).map(|(_, key)| *key);
        let near = self.keys.iter().map(|key| (strsim::damerau_levenshtein(&name, key.name), key.name)).min();
        let near = near.filter(|(distance, _)| *distance <= 3).map(|(_, name)| name);
        alias.or(near).map(|name| format!("; did you mean {name}?")).unwrap_or_default()
    }
}

fn given(shape: Shape, value: &DeValue<'_>, at: &dyn Fn(usize) -> Origin) -> Result<Given, &'static str> {
    let given = match (shape, value) {
        (Shape::Text | Shape::Secret, DeValue::String(text)) => Some(Given::Text(text.to_string())),
        (Shape::Flag, DeValue::Boolean(flag)) => Some(Given::Flag(*flag)),
        (Shape::Number { .. }, DeValue::Integer(number)) if number.radix() == 10 => {
            number.as_str().parse().ok().map(Given::Number)
        }
        (Shape::Texts, DeValue::String(text)) => Some(Given::List(vec![text.to_string()])),
        (Shape::List | Shape::Texts, DeValue::Array(items)) => {
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
        Shape::Texts => "a text or a list of texts",
        Shape::Table => "a table of texts such as { NAME = \"value\" }",
        Shape::Flag => "true or false",
        Shape::Number { .. } => "a whole number",
    })
}
