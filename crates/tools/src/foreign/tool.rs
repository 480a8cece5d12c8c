//! What a server says it can do: its tools, checked one by one. A tool that is not fit for use is left out with a
//! reason and never spoils the others.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use super::Settings;
use super::wire;

/// How many tools of one server are taken.
pub(super) const MOST_TOOLS: usize = 1000;
/// How large the schema of one tool may be.
const LARGEST_SCHEMA: usize = 64 * 1024;
const LONGEST_NAME: usize = 128;
const LONGEST_DESCRIPTION: usize = 8 * 1024;

/// A tool of somebody else's server.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The server, as the configuration calls it.
    pub server: Arc<str>,
    /// As the server calls it; unique there.
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    /// Of the arguments; its type is `object`.
    pub schema: Map<String, Value>,
    pub annotations: Annotations,
}

/// What the server says about a tool. To be believed only of a trusted server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
}

/// A tool that cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    pub name: String,
    pub reason: String,
}

/// The tools of one server, as they come page by page.
#[derive(Default)]
pub(super) struct Listed {
    pub(super) found: Vec<Found>,
    pub(super) left_out: Vec<LeftOut>,
    names: HashSet<String>,
}

impl Listed {
    pub(super) fn is_full(&self) -> bool {
        self.found.len() + self.left_out.len() >= MOST_TOOLS
    }

    pub(super) fn leave_out(&mut self, name: &str, reason: impl Into<String>) {
        let name = name.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect();
        self.left_out.push(LeftOut { name, reason: reason.into() });
    }

    /// What is neither allowed nor fit is not taken; what is not allowed is not worth a word.
    pub(super) fn add(&mut self, settings: &Settings, server: &Arc<str>, tool: rmcp::model::Tool) {
        if !settings.admits(&tool.name) {
            return;
        }
        match self.check(server, &tool) {
            Ok(found) => {
                self.names.insert(found.name.clone());
                self.found.push(found);
            }
            Err(reason) => self.leave_out(&tool.name, reason),
        }
    }

    pub(super) fn sorted(mut self) -> (Arc<[Found]>, Vec<LeftOut>) {
        self.found.sort_by(|one, other| one.name.cmp(&other.name));
        (self.found.into(), self.left_out)
    }

    fn check(&self, server: &Arc<str>, tool: &rmcp::model::Tool) -> Result<Found, String> {
        if let Some(reason) = wire::reason(tool) {
            return Err(reason);
        }
        if tool.name.trim().is_empty() {
            return Err("has no name".to_owned());
        }
        if tool.name.len() > LONGEST_NAME || tool.name.chars().any(char::is_control) {
            return Err("has a name that is too long or not printable".to_owned());
        }
        if self.names.contains(&*tool.name) {
            return Err("is offered twice".to_owned());
        }
        let schema = (*tool.input_schema).clone();
        if schema.get("type").is_some_and(|kind| kind != "object") {
            return Err("has a schema that is not of an object".to_owned());
        }
        let size = serde_json::to_vec(&schema).map_or(usize::MAX, |written| written.len());
        if size > LARGEST_SCHEMA {
            return Err(format!("has a schema of {} kB; the limit is 64 kB", size / 1024));
        }
        let hints = tool.annotations.clone().unwrap_or_default();
        Ok(Found {
            server: server.clone(),
            name: tool.name.clone().into_owned(),
            title: tool.title.clone().or(hints.title).map(cut),
            description: tool.description.clone().map(|text| cut(text.into_owned())),
            schema,
            annotations: Annotations {
                read_only: hints.read_only_hint,
                destructive: hints.destructive_hint,
                idempotent: hints.idempotent_hint,
            },
        })
    }
}

fn cut(text: String) -> String {
    super::result::bounded(text, LONGEST_DESCRIPTION)
}

impl Settings {
    /// Whether this tool of the server is to be used.
    pub fn admits(&self, tool: &str) -> bool {
        let is_in = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, tool));
        (self.allow.is_empty() || is_in(&self.allow)) && !is_in(&self.deny)
    }
}

/// Whether a pattern, in which `*` stands for anything, is this name.
pub fn matches(pattern: &str, name: &str) -> bool {
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
    use crate::foreign::Transport;
    use serde_json::json;

    fn settings() -> Settings {
        Settings::new("notes", Transport::Http { url: String::new(), headers: Vec::new() })
    }

    fn listed(settings: &Settings, tools: &Value) -> (Vec<String>, Vec<(String, String)>) {
        let page = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).to_string();
        let message: rmcp::model::ServerJsonRpcMessage = wire::read(page.as_bytes()).unwrap();
        let rmcp::model::ServerJsonRpcMessage::Response(response) = message else { panic!() };
        let rmcp::model::ServerResult::ListToolsResult(list) = response.result else { panic!() };
        let mut listed = Listed::default();
        for tool in list.tools {
            listed.add(settings, &"notes".into(), tool);
        }
        let (found, left_out) = listed.sorted();
        let left_out = left_out.into_iter().map(|tool| (tool.name, tool.reason)).collect();
        (found.iter().map(|found| found.name.clone()).collect(), left_out)
    }

    #[test]
    fn a_pattern_is_a_name_with_stars() {
        let fits = [
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
        let not = [("add", "add_task"), ("", "a"), ("b*", "add"), ("*b", "add"), ("a*b*c", "acb"), ("aa*aa", "aaa")];
        assert!(fits.iter().all(|(pattern, name)| matches(pattern, name)));
        assert!(not.iter().all(|(pattern, name)| !matches(pattern, name)));
    }

    #[test]
    fn what_is_denied_is_denied_whatever_is_allowed() {
        let mut settings = settings();
        assert!(settings.admits("add"));
        settings.allow = vec!["add*".into(), "list".into()];
        settings.deny = vec!["*_all".into()];
        let admitted = ["add", "list", "lists", "add_all"].map(|tool| settings.admits(tool));
        assert_eq!(admitted, [true, true, false, false]);
    }

    #[test]
    fn one_bad_tool_does_not_spoil_the_others() {
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
        let (found, left_out) = listed(&settings(), &tools);
        assert_eq!(found, ["alpha", "zeta"]);
        let names: Vec<_> = left_out.iter().map(|(name, _)| name.chars().take(5).collect::<String>()).collect();
        assert_eq!(names, ["", "text", "none", "list", "large", "alpha", "xxxxx", "hints", "", ""]);
        assert!(left_out[1].1.contains("schema"), "{left_out:?}");
        let mut only = settings();
        only.allow = vec!["zeta".into()];
        assert_eq!(listed(&only, &tools), (vec!["zeta".to_owned()], vec![]));
    }
}
