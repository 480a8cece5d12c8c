//! `{{name}}` in arguments and file names.
//!
//! Expanded once: a value that has `{{` in it stays as it is.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::Failure;

/// What stands for a name, and whether whoever asked for the run chose it.
#[derive(Clone, Debug)]
struct Entry<'a> {
    value: Cow<'a, str>,
    foreign: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Values<'a>(BTreeMap<&'a str, Entry<'a>>);

/// A template with values in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Expanded {
    pub(super) text: String,
    /// Whether its first character was chosen by whoever asked for the run.
    pub(super) foreign_start: bool,
}

impl<'a> Values<'a> {
    /// The run's parameters over the agent's own.
    pub(super) fn of(defaults: &'a BTreeMap<String, Value>, given: &'a Map<String, Value>) -> Self {
        let defaults = defaults.iter().map(|(name, value)| (name, value, false));
        let given = given.iter().map(|(name, value)| (name, value, true));
        let entries = defaults.chain(given);
        Self(entries.map(|(name, value, foreign)| (name.as_str(), Entry { value: shown(value), foreign })).collect())
    }

    /// Something of ours, which no parameter can replace.
    pub(super) fn set(&mut self, name: &'a str, value: impl Into<Cow<'a, str>>) {
        self.0.insert(name, Entry { value: value.into(), foreign: false });
    }

    pub(super) fn set_input(&mut self, input: &'a str) {
        self.0.insert("input", Entry { value: input.into(), foreign: true });
    }

    pub(super) fn expand(&self, field: &str, template: &str) -> Result<Expanded, Failure> {
        let mut expanded = Expanded { text: String::with_capacity(template.len()), foreign_start: false };
        let mut rest = template;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, behind)) = after.split_once("}}") else {
                return Err(Failure::permanent(format!("{field} has {{{{ without }}}}")));
            };
            expanded.text.push_str(before);
            let name = name.trim();
            let Some(entry) = self.0.get(name) else {
                return Err(self.unknown(field, name));
            };
            expanded.foreign_start |= expanded.text.is_empty() && entry.foreign && !entry.value.is_empty();
            expanded.text.push_str(&entry.value);
            rest = behind;
        }
        expanded.text.push_str(rest);
        Ok(expanded)
    }

    fn unknown(&self, field: &str, name: &str) -> Failure {
        let known: Vec<_> = self.0.keys().copied().collect();
        let known = known.join(", ");
        let message = format!("{field} has {{{{{name}}}}}, which nothing stands for: give a parameter of that name");
        Failure::permanent(format!("{message}, or use one of {known}"))
    }
}

/// The names in a template.
pub(super) fn names(template: &str) -> impl Iterator<Item = &str> {
    template.split("{{").skip(1).filter_map(|after| after.split_once("}}")).map(|(name, _)| name.trim())
}

fn shown(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => text.into(),
        Value::Null => "".into(),
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn values_are_put_in_once() {
        // SUP-2
        let defaults = map(json!({"a": "{{b}}", "b": 2, "c": true, "e": null})).into_iter().collect();
        let given = map(json!({"d": {"x": [1]}, "b": 3.5}));
        let mut values = Values::of(&defaults, &given);
        values.set("b-c", "built in");
        let text = |template| values.expand("args[0]", template).map(|expanded| expanded.text);
        assert_eq!(text("{{a}}-{{ b }}-{{c}}-{{d}}-{{e}}-{{b-c}}}").unwrap(), r#"{{b}}-3.5-true-{"x":[1]}--built in}"#);
        assert_eq!(text("no {braces} }}").unwrap(), "no {braces} }}");
        let unknown = text("x{{model}}").unwrap_err();
        let message = "args[0] has {{model}}, which nothing stands for: give a parameter of that name, or use one of a, b, b-c, c, d, e";
        assert_eq!(unknown, Failure::permanent(message));
        assert_eq!(text("{{a").unwrap_err().message, "args[0] has {{ without }}");
    }

    #[test]
    fn whoever_chose_the_beginning_is_known() {
        let defaults = map(json!({"own": "-x"})).into_iter().collect();
        let given = map(json!({"theirs": "-y", "empty": ""}));
        let values = Values::of(&defaults, &given);
        for (template, foreign) in
            [("{{own}}{{theirs}}", false), ("{{theirs}}", true), ("{{empty}}{{theirs}}", true), ("a{{theirs}}", false)]
        {
            assert_eq!(values.expand("x", template).unwrap().foreign_start, foreign, "{template}");
        }
    }
}
