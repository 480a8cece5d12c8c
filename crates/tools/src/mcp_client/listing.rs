//! Validates the tools of a server one by one. An invalid tool is rejected with a reason and does not affect the rest.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use super::McpServerSettings;
use super::wire;

/// The maximum number of tools of one server.
pub(super) const MAX_TOOLS: usize = 1000;
/// The maximum size of the schema of one tool.
const MAX_SCHEMA_BYTES: usize = 64 * 1024;
const MAX_NAME_BYTES: usize = 128;
const MAX_DESCRIPTION_BYTES: usize = 8 * 1024;

/// A valid tool of an external server.
#[derive(Clone, Debug, PartialEq)]
pub struct DiscoveredTool {
    /// The name of the server in the configuration.
    pub server: Arc<str>,
    /// The name of the tool, unique on the server.
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    /// The JSON Schema of the arguments. Its type is `object`.
    pub schema: Map<String, Value>,
    pub hints: ToolHints,
}

/// The hints of a server about a tool. Used only if the server is trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolHints {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
}

/// A tool that cannot be used, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RejectedTool {
    pub name: String,
    pub reason: String,
}

/// Collects the tools of one server, page by page.
#[derive(Default)]
pub(super) struct ToolListing {
    pub(super) tools: Vec<DiscoveredTool>,
    pub(super) rejected: Vec<RejectedTool>,
    names: HashSet<String>,
}

impl ToolListing {
    /// Returns true if the maximum number of tools is reached.
    pub(super) fn is_full(&self) -> bool {
        self.tools.len() + self.rejected.len() >= MAX_TOOLS
    }

    /// Records a tool that cannot be used.
    pub(super) fn reject(&mut self, name: &str, reason: impl Into<String>) {
        let name = name.chars().filter(|c| !c.is_control()).take(MAX_NAME_BYTES).collect();
        self.rejected.push(RejectedTool { name, reason: reason.into() });
    }

    /// Adds a tool if the settings allow it and it is valid. An invalid tool is recorded with a reason. A tool that the
    /// settings do not allow is ignored and does not count for the limit.
    pub(super) fn add(&mut self, settings: &McpServerSettings, server: &Arc<str>, tool: rmcp::model::Tool) {
        if !settings.allows(&tool.name) {
            return;
        }
        match self.check(server, &tool) {
            Ok(tool) => {
                self.names.insert(tool.name.clone());
                self.tools.push(tool);
            }
            Err(reason) => self.reject(&tool.name, reason),
        }
    }

    /// Returns the valid tools, sorted by name, and the rejected ones.
    pub(super) fn into_sorted(mut self) -> (Arc<[DiscoveredTool]>, Vec<RejectedTool>) {
        self.tools.sort_by(|left, right| left.name.cmp(&right.name));
        (self.tools.into(), self.rejected)
    }

    /// Converts a tool, with a title and a description of at most [`MAX_DESCRIPTION_BYTES`]. The title may come from
    /// the hints. Fails with the reason if the tool is marked as invalid, or is listed twice. Also fails if its name is
    /// blank, not printable or longer than [`MAX_NAME_BYTES`], or if its schema has a type other than `object` or
    /// exceeds [`MAX_SCHEMA_BYTES`].
    fn check(&self, server: &Arc<str>, tool: &rmcp::model::Tool) -> Result<DiscoveredTool, String> {
        if let Some(reason) = wire::rejection_reason(tool) {
            return Err(reason);
        }
        if tool.name.trim().is_empty() {
            return Err("it has no name".to_owned());
        }
        if tool.name.len() > MAX_NAME_BYTES || tool.name.chars().any(char::is_control) {
            return Err("its name is too long or not printable".to_owned());
        }
        if self.names.contains(&*tool.name) {
            return Err("the server lists it twice".to_owned());
        }
        let schema = (*tool.input_schema).clone();
        if schema.get("type").is_some_and(|kind| kind != "object") {
            return Err("its schema does not have the type object".to_owned());
        }
        let size = serde_json::to_vec(&schema).map_or(usize::MAX, |json| json.len());
        if size > MAX_SCHEMA_BYTES {
            return Err(format!("its schema has {} kB; the limit is 64 kB", size / 1024));
        }
        let hints = tool.annotations.clone().unwrap_or_default();
        Ok(DiscoveredTool {
            server: server.clone(),
            name: tool.name.clone().into_owned(),
            title: tool.title.clone().or(hints.title).map(shorten),
            description: tool.description.clone().map(|text| shorten(text.into_owned())),
            schema,
            hints: ToolHints {
                read_only: hints.read_only_hint,
                destructive: hints.destructive_hint,
                idempotent: hints.idempotent_hint,
            },
        })
    }
}

fn shorten(text: String) -> String {
    super::result::shorten(text, MAX_DESCRIPTION_BYTES)
}

impl McpServerSettings {
    /// Returns true if the settings allow the tool. `deny` has priority over `allow`, and an empty `allow` allows all
    /// tools.
    pub fn allows(&self, tool: &str) -> bool {
        let is_in = |patterns: &[String]| patterns.iter().any(|pattern| matches_pattern(pattern, tool));
        (self.allow.is_empty() || is_in(&self.allow)) && !is_in(&self.deny)
    }
}

/// Returns true if the name matches a pattern in which `*` matches any text, also an empty one. A pattern without `*`
/// must be equal. Case matters.
pub fn matches_pattern(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(head) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return name.ends_with(part);
        }
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp_client::McpTransport;
    use serde_json::json;

    fn settings() -> McpServerSettings {
        McpServerSettings::new("notes", McpTransport::Http { url: String::new(), headers: Vec::new() })
    }

    fn listed(settings: &McpServerSettings, tools: &Value) -> (Vec<String>, Vec<(String, String)>) {
        let page = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).to_string();
        let message: rmcp::model::ServerJsonRpcMessage = wire::parse(page.as_bytes()).unwrap();
        let rmcp::model::ServerJsonRpcMessage::Response(response) = message else { panic!() };
        let rmcp::model::ServerResult::ListToolsResult(list) = response.result else { panic!() };
        let mut listing = ToolListing::default();
        for tool in list.tools {
            listing.add(settings, &"notes".into(), tool);
        }
        let (tools, rejected) = listing.into_sorted();
        let rejected = rejected.into_iter().map(|tool| (tool.name, tool.reason)).collect();
        (tools.iter().map(|tool| tool.name.clone()).collect(), rejected)
    }

    #[test]
    fn stars_in_patterns_match_any_text() {
        let matching = [
            ("add", "add"),
            ("*", ""),
            ("*", "add"),
            ("add_*", "add_task"),
            ("*_task", "add_task"),
            ("a*_*k", "add_task"),
            ("a**k", "add_task"),
            ("*dd*", "add_task"),
            ("aa*aa", "aaaa"),
        ];
        let different =
            [("add", "add_task"), ("", "a"), ("b*", "add"), ("*b", "add"), ("a*b*c", "acb"), ("aa*aa", "aaa")];
        assert!(matching.iter().all(|(pattern, name)| matches_pattern(pattern, name)));
        assert!(different.iter().all(|(pattern, name)| !matches_pattern(pattern, name)));
    }

    #[test]
    fn deny_has_priority_over_allow() {
        let mut settings = settings();
        assert!(settings.allows("add"));
        settings.allow = vec!["add*".into(), "list".into()];
        settings.deny = vec!["*_all".into()];
        let allowed = ["add", "list", "lists", "add_all"].map(|tool| settings.allows(tool));
        assert_eq!(allowed, [true, true, false, false]);
    }

    #[test]
    fn invalid_tools_do_not_affect_valid_ones() {
        let large = json!({"type": "object", "description": "x".repeat(70_000)});
        let tools = json!([
            {"name": "zeta", "inputSchema": {"type": "object"}},
            {"name": "", "inputSchema": {"type": "object"}},
            {"name": "text", "inputSchema": "no"},
            {"name": "none"},
            {"name": "list", "inputSchema": {"type": "array"}},
            {"name": "large", "inputSchema": large},
            {"name": "alpha", "inputSchema": {}},
            {"name": "alpha", "inputSchema": {}},
            {"name": "x".repeat(200), "inputSchema": {}},
            {"name": "hints", "inputSchema": {}, "annotations": {"readOnlyHint": "yes"}},
            "rubbish",
            {"name": 3},
        ]);
        let (accepted, rejected) = listed(&settings(), &tools);
        assert_eq!(accepted, ["alpha", "zeta"]);
        let names: Vec<_> = rejected.iter().map(|(name, _)| name.chars().take(5).collect::<String>()).collect();
        assert_eq!(names, ["", "text", "none", "list", "large", "alpha", "xxxxx", "hints", "", ""]);
        assert!(rejected[1].1.contains("schema"), "{rejected:?}");
        let mut only = settings();
        only.allow = vec!["zeta".into()];
        assert_eq!(listed(&only, &tools), (vec!["zeta".to_owned()], vec![]));
    }
}
