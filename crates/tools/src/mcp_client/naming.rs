//! Combines external tools with the built-in ones: unique names, confirmation rules and hidden arguments.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{DiscoveredTool, McpServerSettings, matches_pattern};
use crate::catalog::{self, TASK_ID_ARGUMENTS};
use crate::{ConfirmationPolicy, Consent, ToolKind, ToolSpec};

/// The longest tool name that every provider accepts.
const MAX_NAME_BYTES: usize = 64;

/// The additional data of an external tool in the toolbox.
#[derive(Debug)]
pub(crate) struct ExternalTool {
    pub(crate) tool: DiscoveredTool,
    confirmation: ConfirmationRule,
    /// True if the tool only reads. This is known only of recognised tools and of trusted servers.
    is_read_only: bool,
    /// True if the tool has an argument `user_id`. It is hidden from the caller and set by us.
    pub(crate) takes_user: bool,
    /// True if the tool has an argument `confirmation`. It is hidden from the caller and set by us.
    pub(crate) takes_confirmation: bool,
}

/// Determines the calls of a tool that need a confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConfirmationRule {
    /// The configuration requires it.
    Always,
    /// The tool may be destructive.
    IfDestructive,
    /// The tool deletes one task.
    Deletion,
    /// The configuration exempts the tool, also after foreign text.
    Exempt,
    Never,
}

impl ExternalTool {
    /// Returns true if the user can exempt the tool from confirmations: it may be destructive, but it is not a known
    /// tool for tasks, and the configuration does not require a confirmation.
    pub(crate) fn can_allow(&self) -> bool {
        self.confirmation == ConfirmationRule::IfDestructive
    }

    /// Returns true if a call must be held: it is not confirmed, and the rule of the tool requires it under this
    /// policy. A tool that the configuration lists in `ask` is held under every policy. A tool that may be destructive
    /// is held unless the policy is `Never`, and the deletion of a task only under `Destructive`. After foreign text,
    /// every tool that is not read-only is held, except those that the configuration lists in `never_ask`.
    pub(crate) fn needs_confirmation(&self, policy: ConfirmationPolicy, consent: Consent) -> bool {
        match (consent, self.confirmation) {
            (Consent::Given, _) => false,
            (_, ConfirmationRule::Always) => true,
            (Consent::AfterForeignText, rule) if !self.is_read_only => rule != ConfirmationRule::Exempt,
            (_, ConfirmationRule::IfDestructive) => policy != ConfirmationPolicy::Never,
            (_, ConfirmationRule::Deletion) => policy == ConfirmationPolicy::Destructive,
            (_, ConfirmationRule::Exempt | ConfirmationRule::Never) => false,
        }
    }
}

/// Returns the built-in tools followed by the discovered ones, all with unique names. `settings` returns the settings
/// of a server by its name. Tools of a server without settings are left out. A tool counts as a known tool for tasks
/// only if its server is trusted, or if no built-in tools for tasks exist.
pub(super) fn combine<'a>(
    built_in: &'static [ToolSpec],
    discovered: &[DiscoveredTool],
    settings: impl Fn(&str) -> Option<&'a McpServerSettings>,
) -> Arc<[ToolSpec]> {
    let mut namer = ToolNamer::new(built_in, discovered);
    // Without built-in tools for tasks, the operator has chosen an external server for them.
    let has_own_tasks = built_in.iter().any(|spec| spec.kind == Some(ToolKind::Add));
    let external = discovered.iter().filter_map(|tool| {
        let settings = settings(&tool.server)?;
        let kind = recognize(tool).filter(|_| settings.trusted || !has_own_tasks);
        Some(external_spec(tool, kind, namer.name(tool), settings))
    });
    built_in.iter().cloned().chain(external).collect()
}

/// Returns the specification of a tool of this kind under this name. Hides the argument `user_id`, and `confirmation`
/// of a known deletion, because only we may set them. Uses hints only of a trusted server. A known list tool is
/// read-only, and any other known tool is not, independent of the hints. The tool is destructive if its confirmation
/// rule is neither `Never` nor `Exempt`. The title defaults to the name of the tool at the server.
fn external_spec(
    tool: &DiscoveredTool,
    kind: Option<ToolKind>,
    name: String,
    settings: &McpServerSettings,
) -> ToolSpec {
    let confirmation = confirmation_rule(tool, kind, settings);
    let mut schema = tool.schema.clone();
    let takes_user = hide_argument(&mut schema, "user_id");
    let takes_confirmation = kind == Some(ToolKind::Delete) && hide_argument(&mut schema, "confirmation");
    let is_trusted = |hint: Option<bool>| settings.trusted && hint == Some(true);
    let is_read_only = kind == Some(ToolKind::List) || kind.is_none() && is_trusted(tool.hints.read_only);
    ToolSpec {
        kind,
        name: name.into(),
        title: tool.title.clone().unwrap_or_else(|| tool.name.clone()).into(),
        description: tool.description.clone().unwrap_or_default().into(),
        schema,
        read_only: is_read_only,
        destructive: !matches!(confirmation, ConfirmationRule::Never | ConfirmationRule::Exempt),
        idempotent: is_trusted(tool.hints.idempotent),
        external: Some(Arc::new(ExternalTool {
            tool: tool.clone(),
            confirmation,
            is_read_only,
            takes_user,
            takes_confirmation,
        })),
    }
}

/// Returns the confirmation rule of a tool: `ask` of the configuration, then `never_ask`, then the known kind, then the
/// hints of a trusted server. Of the known kinds, only a deletion needs a confirmation. A tool of an unknown kind needs
/// one unless the hints call it read-only or not destructive.
fn confirmation_rule(tool: &DiscoveredTool, kind: Option<ToolKind>, settings: &McpServerSettings) -> ConfirmationRule {
    let is_in = |patterns: &[String]| patterns.iter().any(|pattern| matches_pattern(pattern, &tool.name));
    let hints = tool.hints;
    match kind {
        _ if is_in(&settings.ask) => ConfirmationRule::Always,
        _ if is_in(&settings.never_ask) => ConfirmationRule::Exempt,
        Some(ToolKind::Delete) => ConfirmationRule::Deletion,
        Some(_) => ConfirmationRule::Never,
        None if settings.trusted && (hints.read_only == Some(true) || hints.destructive == Some(false)) => {
            ConfirmationRule::Never
        }
        None => ConfirmationRule::IfDestructive,
    }
}

/// The arguments of a task in S0 and S3.
const TASK_ARGUMENTS: [&str; 6] = ["title", "description", "due_date", "priority", "tags", "recurrence"];

/// Returns the kind of a tool if both its name and its arguments are those of S0 or S3. Examples are `create_todo` with
/// `title`, and `delete_task` with an id. Returns `None` if the name is unknown, a necessary argument is missing, or an
/// unknown argument is required. A list tool may require only `user_id`.
fn recognize(tool: &DiscoveredTool) -> Option<ToolKind> {
    let properties = tool.schema.get("properties").and_then(Value::as_object);
    let takes = |key: &str| properties.is_some_and(|properties| properties.contains_key(key));
    let id = TASK_ID_ARGUMENTS.into_iter().find(|key| takes(key));
    let (kind, known): (ToolKind, &[&str]) = match tool.name.as_str() {
        "create_todo" | "add_task" if takes("title") => (ToolKind::Add, &[]),
        "list_todos" | "list_tasks" => (ToolKind::List, &[]),
        "update_todo" | "update_task" if id.is_some() => (ToolKind::Update, &["status"]),
        "complete_todo" | "complete_task" if id.is_some() => (ToolKind::Complete, &[]),
        "delete_todo" | "delete_task" if id.is_some() => (ToolKind::Delete, &["confirmation"]),
        "schedule_reminder" if id.is_some() && takes("remind_at") => {
            (ToolKind::Remind, &["remind_at", "repeat_interval_minutes", "repeat_count"])
        }
        _ => return None,
    };
    let attributes: &[&str] = if matches!(kind, ToolKind::Add | ToolKind::Update) { &TASK_ARGUMENTS } else { &[] };
    let is_known = |key: &str| {
        key == "user_id"
            || kind != ToolKind::Add && Some(key) == id
            || known.contains(&key)
            || attributes.contains(&key)
    };
    let required = tool.schema.get("required").and_then(Value::as_array).into_iter().flatten();
    required
        .filter_map(Value::as_str)
        .all(|key| is_known(key) && kind != ToolKind::List || key == "user_id")
        .then_some(kind)
}

/// Removes an argument from the properties and the required arguments of a schema. Returns true if it was a property.
fn hide_argument(schema: &mut catalog::Schema, key: &str) -> bool {
    let removed = schema.get_mut("properties").and_then(Value::as_object_mut).and_then(|all| all.shift_remove(key));
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|required| required != key);
    }
    removed.is_some()
}

/// Assigns unique names: the name at the server or, if that is in use, with the name of the server as a prefix.
struct ToolNamer {
    taken: HashSet<String>,
    /// The number of servers with a tool of this name.
    name_counts: HashMap<String, usize>,
}

impl ToolNamer {
    fn new(built_in: &[ToolSpec], discovered: &[DiscoveredTool]) -> Self {
        let mut name_counts = HashMap::new();
        discovered.iter().for_each(|tool| *name_counts.entry(tool.name.clone()).or_default() += 1);
        Self { taken: built_in.iter().map(|spec| spec.name.to_string()).collect(), name_counts }
    }

    /// Returns the name of a tool and reserves it. Uses the name at the server if it is valid, free and unique among
    /// all servers, then `server__tool` if that is valid and free, then [`hashed_name`]. In `server__tool`, invalid
    /// characters of both names become underscores.
    fn name(&mut self, tool: &DiscoveredTool) -> String {
        let is_unique = self.name_counts.get(&tool.name) == Some(&1);
        let is_free = |name: &String| is_valid_name(name) && !self.taken.contains(name);
        let plain = || Some(tool.name.clone()).filter(|name| is_unique && is_free(name));
        let prefixed = || {
            let name = format!("{}__{}", sanitize(&tool.server), sanitize(&tool.name));
            Some(name).filter(is_free)
        };
        let name = plain().or_else(prefixed).unwrap_or_else(|| hashed_name(tool));
        self.taken.insert(name.clone());
        name
    }
}

/// Returns true if every provider accepts the name.
fn is_valid_name(name: &str) -> bool {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    // Gemini requires a letter or an underscore at the start.
    let has_valid_start = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    has_valid_start && name.len() <= MAX_NAME_BYTES && name.chars().all(is_valid)
}

fn sanitize(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).collect()
}

/// Returns a unique name: shortened, with a hash of the full name.
fn hashed_name(tool: &DiscoveredTool) -> String {
    let digest = Sha256::digest(format!("{}\0{}", tool.server, tool.name));
    let hash: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let name: String = format!("t_{}__{}", sanitize(&tool.server), sanitize(&tool.name));
    format!("{}_{hash}", &name[..name.len().min(MAX_NAME_BYTES - hash.len() - 1)])
}

#[cfg(test)]
mod tests {
    use crate::ToolNames;
    use serde_json::json;

    use super::*;
    use crate::mcp_client::{McpTransport, ToolHints};

    fn settings(name: &str) -> McpServerSettings {
        McpServerSettings::new(name, McpTransport::Http { url: String::new(), headers: Vec::new() })
    }

    fn tool(server: &str, name: &str, schema: Value) -> DiscoveredTool {
        DiscoveredTool {
            server: server.into(),
            name: name.into(),
            title: None,
            description: None,
            schema: schema.as_object().unwrap().clone(),
            hints: ToolHints::default(),
        }
    }

    fn external_names(names: ToolNames, tools: &[(&str, &str)]) -> Vec<String> {
        let tools: Vec<_> = tools.iter().map(|(server, name)| tool(server, name, json!({}))).collect();
        let settings = settings("x");
        let specs = combine(catalog::task_tools(names), &tools, |_| Some(&settings));
        specs.iter().filter(|spec| !spec.is_built_in()).map(|spec| spec.name.to_string()).collect()
    }

    #[test]
    fn names_do_not_collide() {
        // TASK-3
        let tools = [("notes", "search"), ("web", "search"), ("notes", "add_task"), ("notes", "open")];
        assert_eq!(
            external_names(ToolNames::Task, &tools),
            ["notes__search", "web__search", "notes__add_task", "open"],
            "built-in tools keep their names"
        );
        assert_eq!(external_names(ToolNames::None, &tools[2..]), ["add_task", "open"]);
        assert_eq!(external_names(ToolNames::None, &[("a", "b__c"), ("a__b", "c")]), ["b__c", "c"]);
        assert_eq!(external_names(ToolNames::None, &[("web", "get page"), ("web", "get.page")])[0], "web__get_page");
        let odd = external_names(
            ToolNames::None,
            &[("web", "get page"), ("web", "get.page"), ("w", "äöü"), ("w", &"x".repeat(100))],
        );
        assert_eq!(odd.iter().collect::<HashSet<_>>().len(), 4, "{odd:?}");
        assert!(odd.iter().all(|name| is_valid_name(name)), "{odd:?}");
    }

    #[test]
    fn tools_of_the_seeds_are_recognized_by_name_and_arguments() {
        // TASK-2
        let kind = |name: &str, properties: &[&str], required: &[&str]| {
            let properties: serde_json::Map<_, _> = properties.iter().map(|key| ((*key).into(), json!({}))).collect();
            recognize(&tool("s", name, json!({"properties": properties, "required": required})))
        };
        assert_eq!(kind("create_todo", &["title", "due_date"], &["title"]), Some(ToolKind::Add));
        assert_eq!(kind("add_task", &["user_id", "title"], &["user_id", "title"]), Some(ToolKind::Add));
        assert_eq!(kind("list_todos", &["status"], &[]), Some(ToolKind::List));
        assert_eq!(
            kind("delete_todo", &["todo_id", "confirmation"], &["todo_id", "confirmation"]),
            Some(ToolKind::Delete)
        );
        assert_eq!(kind("update_task", &["task_id", "title"], &["task_id"]), Some(ToolKind::Update));
        assert_eq!(kind("create_todo", &["text"], &["text"]), None, "another tool of the same name");
        assert_eq!(kind("create_todo", &["title", "board"], &["title", "board"]), None);
        assert_eq!(kind("list_tasks", &["project"], &["project"]), None);
        assert_eq!(kind("send_mail", &["title"], &[]), None);
    }

    #[test]
    fn confirmation_rules_follow_settings_kind_and_hints() {
        // AGENT-7, OPS-6
        let delete =
            json!({"properties": {"todo_id": {}, "confirmation": {}}, "required": ["todo_id", "confirmation"]});
        let create = json!({"properties": {"title": {}, "user_id": {}}, "required": ["title", "user_id"]});
        let mut search = tool("s", "search", json!({}));
        search.hints.read_only = Some(true);
        let tools =
            [tool("s", "delete_todo", delete), tool("s", "create_todo", create), search, tool("s", "send", json!({}))];
        let confirmed = |settings: &McpServerSettings| {
            let specs = combine(&[], &tools, |_| Some(settings));
            specs.iter().filter(|spec| spec.destructive).map(|spec| spec.name.to_string()).collect::<Vec<_>>()
        };
        let mut settings = settings("s");
        assert_eq!(confirmed(&settings), ["delete_todo", "search", "send"], "hints of an untrusted server are ignored");
        settings.trusted = true;
        assert_eq!(confirmed(&settings), ["delete_todo", "send"]);
        settings.never_ask = vec!["send".into()];
        settings.ask = vec!["search".into()];
        assert_eq!(confirmed(&settings), ["delete_todo", "search"], "the configuration has priority");
        let specs = combine(&[], &tools, |_| Some(&settings));
        assert!(!specs[1].has_argument("user_id") && specs[1].schema["required"] == json!(["title"]));
        assert!(!specs[0].has_argument("confirmation"));
    }
}
