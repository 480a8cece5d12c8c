//! JSON Schemas of tools in the form that each provider takes.
//!
//! Our own are plain already. What others write may refer to itself, allow several types, or use keywords that a provider
//! answers with an error, and with one such tool it would answer every turn so.

use serde_json::{Map, Value, json};

use super::Provider;

/// References are followed this deep; what refers to itself becomes any object below that.
const DEPTH: usize = 8;
/// And a schema has no more parts than this.
const PARTS: usize = 2000;

/// What no provider needs.
const NEEDLESS: [&str; 6] = ["$schema", "$id", "$comment", "$defs", "definitions", "$anchor"];
/// What Gemini does not know.
const NOT_GEMINI: [&str; 17] = [
    "additionalProperties",
    "contentEncoding",
    "contentMediaType",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "if",
    "multipleOf",
    "not",
    "patternProperties",
    "propertyNames",
    "then",
    "uniqueItems",
    "x-mcp-header",
];

pub(super) fn adapt(schema: &Map<String, Value>, provider: Provider) -> Value {
    let root = Value::Object(schema.clone());
    let mut adapter = Adapter { root: &root, provider, parts: 0 };
    let mut adapted = adapter.part(&root, 0);
    if let Some(object) = adapted.as_object_mut() {
        object.insert("type".to_owned(), "object".into());
        object.entry("properties").or_insert_with(|| json!({}));
        // Arguments are one object; alternatives of it nobody takes at the top.
        for key in ["anyOf", "oneOf", "allOf", "enum", "const", "not"] {
            object.shift_remove(key);
        }
    }
    adapted
}

struct Adapter<'a> {
    root: &'a Value,
    provider: Provider,
    parts: usize,
}

impl Adapter<'_> {
    fn part(&mut self, schema: &Value, depth: usize) -> Value {
        self.parts += 1;
        let Value::Object(object) = schema else {
            // `true` is a schema too: anything.
            return if schema == &Value::Bool(true) { json!({}) } else { schema.clone() };
        };
        if depth > DEPTH || self.parts > PARTS {
            return json!({"type": "object"});
        }
        if let Some(target) = object.get("$ref").and_then(Value::as_str) {
            return self.referred(target, object, depth);
        }
        let mut adapted = Map::new();
        for (key, value) in object {
            if NEEDLESS.contains(&key.as_str()) || self.refuses(key, value) {
                continue;
            }
            match (key.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    let properties =
                        properties.iter().map(|(name, schema)| (name.clone(), self.part(schema, depth + 1)));
                    adapted.insert(key.clone(), Value::Object(properties.collect()));
                }
                ("items" | "additionalProperties" | "not" | "if" | "then" | "else" | "contains", value) => {
                    adapted.insert(key.clone(), self.part(value, depth + 1));
                }
                ("prefixItems", Value::Array(items)) if self.provider == Provider::Gemini => {
                    let first = items.first().map_or_else(|| json!({}), |item| self.part(item, depth + 1));
                    adapted.entry("items").or_insert(first);
                }
                ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(list)) => {
                    let list: Vec<_> = list.iter().map(|schema| self.part(schema, depth + 1)).collect();
                    adapted.insert(self.named(key), list.into());
                }
                ("const", value) => drop(adapted.insert("enum".to_owned(), json!([value]))),
                _ => drop(adapted.insert(key.clone(), value.clone())),
            }
        }
        self.plain_type(&mut adapted);
        if adapted.get("type") == Some(&json!("array")) {
            adapted.entry("items").or_insert_with(|| json!({"type": "string"}));
        }
        Value::Object(adapted)
    }

    /// What stands at the place that is referred to, with what is said beside the reference.
    fn referred(&mut self, target: &str, beside: &Map<String, Value>, depth: usize) -> Value {
        // What is elsewhere is not fetched.
        let found = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        let mut adapted = match found {
            Some(found) => self.part(&found.clone(), depth + 1),
            None => json!({"type": "object"}),
        };
        if let Value::Object(object) = &mut adapted {
            for key in ["description", "title", "default"] {
                if let Some(value) = beside.get(key) {
                    object.insert(key.to_owned(), value.clone());
                }
            }
        }
        adapted
    }

    fn refuses(&self, key: &str, value: &Value) -> bool {
        self.provider == Provider::Gemini
            && (NOT_GEMINI.contains(&key) || key == "format" && !matches!(value.as_str(), Some("date-time" | "enum")))
    }

    fn named(&self, key: &str) -> String {
        if self.provider == Provider::Gemini && matches!(key, "oneOf" | "allOf") { "anyOf" } else { key }.to_owned()
    }

    /// "This or nothing" is simply this: an argument that is not required can be left out.
    fn plain_type(&self, schema: &mut Map<String, Value>) {
        if let Some(Value::Array(types)) = schema.get("type") {
            let some: Vec<_> = types.iter().filter(|kind| *kind != "null").cloned().collect();
            match some.as_slice() {
                [one] => drop(schema.insert("type".to_owned(), one.clone())),
                [first, ..] if self.provider == Provider::Gemini => {
                    drop(schema.insert("type".to_owned(), first.clone()));
                }
                _ => {}
            }
        }
        for key in ["anyOf", "oneOf"] {
            let Some(Value::Array(options)) = schema.get(key) else { continue };
            let some: Vec<_> = options.iter().filter(|option| option["type"] != "null").cloned().collect();
            if let ([Value::Object(only)], true) = (some.as_slice(), some.len() < options.len()) {
                let only = only.clone();
                schema.shift_remove(key);
                for (key, value) in only {
                    schema.entry(key).or_insert(value);
                }
            }
        }
        if schema.get("default") == Some(&Value::Null) {
            schema.shift_remove("default");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapted(schema: Value, provider: Provider) -> Value {
        adapt(schema.as_object().unwrap(), provider)
    }

    #[test]
    fn what_python_and_rust_write_becomes_plain() {
        // MODEL-2
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$defs": {"Level": {"type": "string", "enum": ["low", "high"], "description": "how much"}},
            "properties": {
                "level": {"$ref": "#/$defs/Level", "description": "how important"},
                "due": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": null},
                "count": {"type": ["integer", "null"], "exclusiveMinimum": 0},
                "kind": {"const": "todo"},
                "tags": {"type": "array"}
            },
            "required": ["level"],
            "additionalProperties": false
        });
        let gemini = adapted(schema.clone(), Provider::Gemini);
        let expected = json!({
            "type": "object",
            "properties": {
                "level": {"type": "string", "enum": ["low", "high"], "description": "how important"},
                "due": {"type": "string"},
                "count": {"type": "integer"},
                "kind": {"enum": ["todo"]},
                "tags": {"type": "array", "items": {"type": "string"}}
            },
            "required": ["level"]
        });
        assert_eq!(gemini, expected);
        let openai = adapted(schema, Provider::OpenAi);
        assert_eq!(openai["additionalProperties"], false);
        assert_eq!(openai["properties"]["due"], json!({"type": "string", "format": "date"}));
    }

    #[test]
    fn what_refers_to_itself_ends() {
        let node = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}});
        let schema =
            json!({"type": "object", "properties": {"head": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}});
        let text = adapted(schema, Provider::OpenAi).to_string();
        assert!(!text.contains("$ref") && text.len() < 2000, "{text}");
        let wide: Map<_, _> = (0..20).map(|n| (format!("p{n}"), json!({"$ref": "#"}))).collect();
        let schema = json!({"type": "object", "properties": wide});
        assert!(adapted(schema, Provider::Anthropic).to_string().len() < 1_000_000, "it does not explode");
    }

    #[test]
    fn elsewhere_is_not_looked_at_and_nothing_is_an_object_too() {
        let schema = json!({"properties": {"x": {"$ref": "https://example.com/schema.json"}}});
        assert_eq!(adapted(schema, Provider::OpenAi)["properties"]["x"], json!({"type": "object"}));
        assert_eq!(adapted(json!({}), Provider::Anthropic), json!({"type": "object", "properties": {}}));
        let top = json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": true}});
        let expected = json!({"properties": {"a": {}}, "type": "object"});
        assert_eq!(adapted(top, Provider::Anthropic), expected);
    }
}
