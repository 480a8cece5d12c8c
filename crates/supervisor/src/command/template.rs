//! Placeholders such as `{{name}}` in arguments and file names.
//!
//! Templates are expanded once: `{{` in a value is not expanded.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::RunFailure;

/// The value of a placeholder.
#[derive(Clone, Debug)]
struct TemplateValue<'a> {
    value: Cow<'a, str>,
    /// The value comes from the request and not from the configuration.
    from_request: bool,
}

/// The values of all placeholders.
#[derive(Clone, Debug, Default)]
pub(super) struct Values<'a>(BTreeMap<&'a str, TemplateValue<'a>>);

/// An expanded template.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Expanded {
    pub(super) text: String,
    /// The first character comes from the request.
    pub(super) starts_with_request: bool,
}

impl<'a> Values<'a> {
    /// Returns the parameters of the agent, replaced by those of the run. A string is used as it is, null is empty, and
    /// any other value becomes JSON. Only values of the run count as values of the request.
    pub(super) fn new(defaults: &'a BTreeMap<String, Value>, given: &'a Map<String, Value>) -> Self {
        let defaults = defaults.iter().map(|(name, value)| (name, value, false));
        let given = given.iter().map(|(name, value)| (name, value, true));
        let entries = defaults.chain(given);
        Self(
            entries
                .map(|(name, value, from_request)| {
                    (name.as_str(), TemplateValue { value: to_text(value), from_request })
                })
                .collect(),
        )
    }

    /// Sets a built-in value. It replaces a parameter with the same name.
    pub(super) fn set(&mut self, name: &'a str, value: impl Into<Cow<'a, str>>) {
        self.0.insert(name, TemplateValue { value: value.into(), from_request: false });
    }

    /// Sets the input. It counts as a value of the request.
    pub(super) fn set_input(&mut self, input: &'a str) {
        self.0.insert("input", TemplateValue { value: input.into(), from_request: true });
    }

    /// Expands a template. Spaces around the name of a placeholder are ignored. `starts_with_request` is set if the
    /// first character comes from a value of the request. `field` names the setting in errors. Fails permanently if a
    /// placeholder is unknown or not closed.
    pub(super) fn expand(&self, field: &str, template: &str) -> Result<Expanded, RunFailure> {
        let mut expanded = Expanded { text: String::with_capacity(template.len()), starts_with_request: false };
        let mut rest = template;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, remaining)) = after.split_once("}}") else {
                return Err(RunFailure::permanent(format!("{field} contains {{{{ without }}}}")));
            };
            expanded.text.push_str(before);
            let name = name.trim();
            let Some(entry) = self.0.get(name) else {
                return Err(self.unknown(field, name));
            };
            expanded.starts_with_request |= expanded.text.is_empty() && entry.from_request && !entry.value.is_empty();
            expanded.text.push_str(&entry.value);
            rest = remaining;
        }
        expanded.text.push_str(rest);
        Ok(expanded)
    }

    /// Returns the failure for an unknown placeholder. Its message lists the known ones.
    fn unknown(&self, field: &str, name: &str) -> RunFailure {
        let known: Vec<_> = self.0.keys().copied().collect();
        let known = known.join(", ");
        let message = format!("{field} contains the unknown placeholder {{{{{name}}}}}");
        RunFailure::permanent(format!("{message}: define a parameter with this name, or use one of {known}"))
    }
}

/// Yields the names of the placeholders in a template. A placeholder that is not closed is left out.
pub(super) fn names(template: &str) -> impl Iterator<Item = &str> {
    template.split("{{").skip(1).filter_map(|after| after.split_once("}}")).map(|(name, _)| name.trim())
}

/// Returns a string as it is, null as an empty text, and any other value as JSON.
fn to_text(value: &Value) -> Cow<'_, str> {
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
    fn templates_are_expanded_once() {
        // SUP-2
        let defaults = map(json!({"a": "{{b}}", "b": 2, "c": true, "e": null})).into_iter().collect();
        let given = map(json!({"d": {"x": [1]}, "b": 3.5}));
        let mut values = Values::new(&defaults, &given);
        values.set("b-c", "built in");
        let text = |template| values.expand("args[0]", template).map(|expanded| expanded.text);
        assert_eq!(text("{{a}}-{{ b }}-{{c}}-{{d}}-{{e}}-{{b-c}}}").unwrap(), r#"{{b}}-3.5-true-{"x":[1]}--built in}"#);
        assert_eq!(text("no {braces} }}").unwrap(), "no {braces} }}");
        let unknown = text("x{{model}}").unwrap_err();
        let message = "args[0] contains the unknown placeholder {{model}}: define a parameter with this name, \
                       or use one of a, b, b-c, c, d, e";
        assert_eq!(unknown, RunFailure::permanent(message));
        assert_eq!(text("{{a").unwrap_err().message, "args[0] contains {{ without }}");
    }

    #[test]
    fn source_of_the_first_character_is_known() {
        let defaults = map(json!({"own": "-x"})).into_iter().collect();
        let given = map(json!({"given": "-y", "empty": ""}));
        let values = Values::new(&defaults, &given);
        for (template, from_request) in
            [("{{own}}{{given}}", false), ("{{given}}", true), ("{{empty}}{{given}}", true), ("a{{given}}", false)]
        {
            assert_eq!(values.expand("x", template).unwrap().starts_with_request, from_request, "{template}");
        }
    }
}
