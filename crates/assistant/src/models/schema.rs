//! Adapts the JSON Schemas of tools to the dialect of each provider.
//!
//! Schemas of external tools may be recursive, allow several types, or use keywords that a provider rejects. A single
//! such tool would make every request fail.

use serde_json::{Map, Value, json};

use super::ModelProvider;

/// The maximum depth of a schema. Deeper parts, for example of recursive references, become any object.
const MAX_DEPTH: usize = 8;
/// The maximum number of subschemas.
const MAX_PARTS: usize = 2000;

/// Keywords that are removed for all providers.
const REMOVED_KEYWORDS: [&str; 6] = ["$schema", "$id", "$comment", "$defs", "definitions", "$anchor"];
/// Keywords that Gemini rejects.
const UNSUPPORTED_BY_GEMINI: [&str; 17] = [
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

/// Returns the schema of a tool's arguments for a provider. The result has the type `object` and `properties`, which
/// may be empty. Alternatives, `enum`, `const` and `not` at the top level are removed. The rest is adapted by
/// [`SchemaAdapter::part`].
pub(super) fn adapt(schema: &Map<String, Value>, provider: ModelProvider) -> Value {
    let root = Value::Object(schema.clone());
    let mut adapter = SchemaAdapter { root: &root, provider, parts: 0 };
    let mut adapted = adapter.part(&root, 0);
    if let Some(object) = adapted.as_object_mut() {
        object.insert("type".to_owned(), "object".into());
        object.entry("properties").or_insert_with(|| json!({}));
        // Arguments are a single object. No provider accepts alternatives at the top level.
        for key in ["anyOf", "oneOf", "allOf", "enum", "const", "not"] {
            object.shift_remove(key);
        }
    }
    adapted
}

struct SchemaAdapter<'a> {
    root: &'a Value,
    provider: ModelProvider,
    /// The number of subschemas so far.
    parts: usize,
}

impl SchemaAdapter<'_> {
    /// Adapts one subschema and all below it. `depth` is 0 at the root. Beyond [`MAX_DEPTH`] or [`MAX_PARTS`], returns
    /// the schema of any object. The schema `true` becomes an empty schema, and other values that are not objects
    /// remain as they are. References are replaced by their targets. Unsupported keywords and `null` types are removed.
    /// `const` becomes `enum`, and an array without `items` gets items of type string. For Gemini, `prefixItems`
    /// becomes `items` with its first schema, and `oneOf` and `allOf` become `anyOf`.
    fn part(&mut self, schema: &Value, depth: usize) -> Value {
        self.parts += 1;
        let Value::Object(object) = schema else {
            // The schema `true` accepts any value.
            return if schema == &Value::Bool(true) { json!({}) } else { schema.clone() };
        };
        if depth > MAX_DEPTH || self.parts > MAX_PARTS {
            return json!({"type": "object"});
        }
        if let Some(target) = object.get("$ref").and_then(Value::as_str) {
            return self.resolve_reference(target, object, depth);
        }
        let mut adapted = Map::new();
        for (key, value) in object {
            if REMOVED_KEYWORDS.contains(&key.as_str()) || self.is_unsupported(key, value) {
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
                ("prefixItems", Value::Array(items)) if self.provider == ModelProvider::Gemini => {
                    let first = items.first().map_or_else(|| json!({}), |item| self.part(item, depth + 1));
                    adapted.entry("items").or_insert(first);
                }
                ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(list)) => {
                    let list: Vec<_> = list.iter().map(|schema| self.part(schema, depth + 1)).collect();
                    adapted.insert(self.keyword(key), list.into());
                }
                ("const", value) => drop(adapted.insert("enum".to_owned(), json!([value]))),
                _ => drop(adapted.insert(key.clone(), value.clone())),
            }
        }
        self.remove_null_types(&mut adapted);
        if adapted.get("type") == Some(&json!("array")) {
            adapted.entry("items").or_insert_with(|| json!({"type": "string"}));
        }
        Value::Object(adapted)
    }

    /// Returns the adapted target of a reference within the schema. The description, title and default in `beside`
    /// override those of the target. All other keywords beside the reference are dropped. An external or missing target
    /// becomes any object.
    fn resolve_reference(&mut self, target: &str, beside: &Map<String, Value>, depth: usize) -> Value {
        // External references are not fetched.
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

    /// Returns `true` if the keyword is removed for this provider. Gemini also rejects every `format` except two.
    fn is_unsupported(&self, key: &str, value: &Value) -> bool {
        self.provider == ModelProvider::Gemini
            && (UNSUPPORTED_BY_GEMINI.contains(&key)
                || key == "format" && !matches!(value.as_str(), Some("date-time" | "enum")))
    }

    /// Returns the keyword for a list of schemas. Gemini supports only `anyOf`.
    fn keyword(&self, key: &str) -> String {
        if self.provider == ModelProvider::Gemini && matches!(key, "oneOf" | "allOf") { "anyOf" } else { key }
            .to_owned()
    }

    /// Removes `null` from a list of types if exactly one other type remains. For Gemini, a list of several types
    /// becomes the first that is not `null`. An `anyOf` or `oneOf` with `null` and one other schema is replaced by that
    /// schema. Its keywords do not override existing ones. Other lists keep `null`. Removes a `null` default.
    fn remove_null_types(&self, schema: &mut Map<String, Value>) {
        if let Some(Value::Array(types)) = schema.get("type") {
            let some: Vec<_> = types.iter().filter(|kind| *kind != "null").cloned().collect();
            match some.as_slice() {
                [one] => drop(schema.insert("type".to_owned(), one.clone())),
                [first, ..] if self.provider == ModelProvider::Gemini => {
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

    fn adapted(schema: Value, provider: ModelProvider) -> Value {
        adapt(schema.as_object().unwrap(), provider)
    }

    #[test]
    fn generated_schemas_are_simplified() {
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
        let gemini = adapted(schema.clone(), ModelProvider::Gemini);
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
        let openai = adapted(schema, ModelProvider::OpenAi);
        assert_eq!(openai["additionalProperties"], false);
        assert_eq!(openai["properties"]["due"], json!({"type": "string", "format": "date"}));
    }

    #[test]
    fn recursive_schemas_are_limited() {
        let node = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}});
        let schema =
            json!({"type": "object", "properties": {"head": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}});
        let text = adapted(schema, ModelProvider::OpenAi).to_string();
        assert!(!text.contains("$ref") && text.len() < 2000, "{text}");
        let wide: Map<_, _> = (0..20).map(|n| (format!("p{n}"), json!({"$ref": "#"}))).collect();
        let schema = json!({"type": "object", "properties": wide});
        assert!(adapted(schema, ModelProvider::Anthropic).to_string().len() < 1_000_000, "the size is limited");
    }

    #[test]
    fn external_references_become_objects_and_empty_schemas_are_valid() {
        let schema = json!({"properties": {"x": {"$ref": "https://example.com/schema.json"}}});
        assert_eq!(adapted(schema, ModelProvider::OpenAi)["properties"]["x"], json!({"type": "object"}));
        assert_eq!(adapted(json!({}), ModelProvider::Anthropic), json!({"type": "object", "properties": {}}));
        let top = json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": true}});
        let expected = json!({"properties": {"a": {}}, "type": "object"});
        assert_eq!(adapted(top, ModelProvider::Anthropic), expected);
    }
}
