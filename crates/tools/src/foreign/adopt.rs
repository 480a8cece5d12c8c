//! Tools of others among our own: what they are called here, what is asked about first, what is hidden of them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Found, Settings, matches};
use crate::catalog::{self, ID_KEYS};
use crate::{Confirm, Consent, Spec, Tool};

/// The longest name that every provider takes.
const LONGEST_NAME: usize = 64;

/// A tool of somebody else, as the toolbox needs it.
#[derive(Debug)]
pub(crate) struct Foreign {
    pub(crate) found: Found,
    asks: Asks,
    /// Arguments that nobody but us gives: whose data it is, and whether the user agreed.
    pub(crate) takes_user: bool,
    pub(crate) takes_confirmation: bool,
}

/// Whether the user is asked before a tool is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    /// The configuration says so.
    Always,
    /// It may destroy something.
    IfDestructive,
    /// It deletes one task.
    Deletion,
    Never,
}

impl Foreign {
    pub(crate) fn must_ask(&self, confirm: Confirm, consent: Consent) -> bool {
        consent == Consent::Missing
            && match self.asks {
                Asks::Always => true,
                Asks::IfDestructive => confirm != Confirm::Never,
                Asks::Deletion => confirm == Confirm::Destructive,
                Asks::Never => false,
            }
    }
}

pub(super) fn specs<'a>(
    ours: &'static [Spec],
    found: &[Found],
    settings: impl Fn(&str) -> Option<&'a Settings>,
) -> Arc<[Spec]> {
    let mut called = Called::new(ours, found);
    let theirs = found.iter().filter_map(|found| Some(adopt(found, called.name(found), settings(&found.server)?)));
    ours.iter().cloned().chain(theirs).collect()
}

fn adopt(found: &Found, name: String, settings: &Settings) -> Spec {
    let tool = recognise(found);
    let asks = asks(found, tool, settings);
    let mut schema = found.schema.clone();
    let takes_user = hide(&mut schema, "user_id");
    let takes_confirmation = tool == Some(Tool::Delete) && hide(&mut schema, "confirmation");
    let believed = |hint: Option<bool>| settings.trusted && hint == Some(true);
    Spec {
        tool,
        name: name.into(),
        title: found.title.clone().unwrap_or_else(|| found.name.clone()).into(),
        description: found.description.clone().unwrap_or_default().into(),
        schema,
        read_only: tool == Some(Tool::List) || tool.is_none() && believed(found.annotations.read_only),
        destructive: asks != Asks::Never,
        idempotent: believed(found.annotations.idempotent),
        foreign: Some(Arc::new(Foreign { found: found.clone(), asks, takes_user, takes_confirmation })),
    }
}

/// The user's rule first, then what we know, then what a trusted server says; else the user is asked.
fn asks(found: &Found, tool: Option<Tool>, settings: &Settings) -> Asks {
    let is_in = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, &found.name));
    let hints = found.annotations;
    match tool {
        _ if is_in(&settings.ask) => Asks::Always,
        _ if is_in(&settings.never_ask) => Asks::Never,
        Some(Tool::Delete) => Asks::Deletion,
        Some(_) => Asks::Never,
        None if settings.trusted && (hints.read_only == Some(true) || hints.destructive == Some(false)) => Asks::Never,
        None => Asks::IfDestructive,
    }
}

const ATTRIBUTES: [&str; 6] = ["title", "description", "due_date", "priority", "tags", "recurrence"];

/// What the tool does, if both its name and its parameters are those of S0 or S3.
fn recognise(found: &Found) -> Option<Tool> {
    let properties = found.schema.get("properties").and_then(Value::as_object);
    let takes = |key: &str| properties.is_some_and(|properties| properties.contains_key(key));
    let id = ID_KEYS.into_iter().find(|key| takes(key));
    let (tool, needs): (Tool, &[&str]) = match found.name.as_str() {
        "create_todo" | "add_task" if takes("title") => (Tool::Add, &[]),
        "list_todos" | "list_tasks" => (Tool::List, &[]),
        "update_todo" | "update_task" if id.is_some() => (Tool::Update, &["status"]),
        "complete_todo" | "complete_task" if id.is_some() => (Tool::Complete, &[]),
        "delete_todo" | "delete_task" if id.is_some() => (Tool::Delete, &["confirmation"]),
        "schedule_reminder" if id.is_some() && takes("remind_at") => {
            (Tool::Remind, &["remind_at", "repeat_interval_minutes", "repeat_count"])
        }
        _ => return None,
    };
    let attributes: &[&str] = if matches!(tool, Tool::Add | Tool::Update) { &ATTRIBUTES } else { &[] };
    let is_known = |key: &str| {
        key == "user_id" || tool != Tool::Add && Some(key) == id || needs.contains(&key) || attributes.contains(&key)
    };
    let required = found.schema.get("required").and_then(Value::as_array).into_iter().flatten();
    required
        .filter_map(Value::as_str)
        .all(|key| is_known(key) && tool != Tool::List || key == "user_id")
        .then_some(tool)
}

/// Takes an argument out of a schema; whether it was there.
fn hide(schema: &mut catalog::Schema, key: &str) -> bool {
    let taken = schema.get_mut("properties").and_then(Value::as_object_mut).and_then(|all| all.shift_remove(key));
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|required| required != key);
    }
    taken.is_some()
}

/// What tools are called here: as their server calls them, or where that is taken, with the server's name before it.
struct Called {
    taken: HashSet<String>,
    /// How many servers offer a tool of this name.
    offered: HashMap<String, usize>,
}

impl Called {
    fn new(ours: &[Spec], found: &[Found]) -> Self {
        let mut offered = HashMap::new();
        found.iter().for_each(|found| *offered.entry(found.name.clone()).or_default() += 1);
        Self { taken: ours.iter().map(|spec| spec.name.to_string()).collect(), offered }
    }

    fn name(&mut self, found: &Found) -> String {
        let is_alone = self.offered.get(&found.name) == Some(&1);
        let plain = || Some(found.name.clone()).filter(|name| is_alone && is_plain(name) && !self.taken.contains(name));
        let long = || {
            let name = format!("{}__{}", tidy(&found.server), tidy(&found.name));
            Some(name).filter(|name| is_plain(name) && !self.taken.contains(name))
        };
        let name = plain().or_else(long).unwrap_or_else(|| marked(found));
        self.taken.insert(name.clone());
        name
    }
}

fn is_plain(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    // Gemini wants a letter or an underscore first.
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && name.len() <= LONGEST_NAME && name.chars().all(is_plain)
}

fn tidy(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).collect()
}

/// A name that no other tool has: cut, with a mark made from the whole.
fn marked(found: &Found) -> String {
    let digest = Sha256::digest(format!("{}\0{}", found.server, found.name));
    let mark: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let name: String = format!("t_{}__{}", tidy(&found.server), tidy(&found.name));
    format!("{}_{mark}", &name[..name.len().min(LONGEST_NAME - mark.len() - 1)])
}

#[cfg(test)]
mod tests {
    use crate::Names;
    use serde_json::json;

    use super::*;
    use crate::foreign::{Annotations, Transport};

    fn settings(name: &str) -> Settings {
        Settings::new(name, Transport::Http { url: String::new(), headers: Vec::new() })
    }

    fn found(server: &str, name: &str, schema: Value) -> Found {
        Found {
            server: server.into(),
            name: name.into(),
            title: None,
            description: None,
            schema: schema.as_object().unwrap().clone(),
            annotations: Annotations::default(),
        }
    }

    fn named(names: Names, tools: &[(&str, &str)]) -> Vec<String> {
        let found: Vec<_> = tools.iter().map(|(server, tool)| found(server, tool, json!({}))).collect();
        let settings = settings("x");
        let specs = specs(catalog::of(names), &found, |_| Some(&settings));
        specs.iter().filter(|spec| !spec.is_ours()).map(|spec| spec.name.to_string()).collect()
    }

    #[test]
    fn names_do_not_collide() {
        // TASK-3
        let tools = [("notes", "search"), ("web", "search"), ("notes", "add_task"), ("notes", "open")];
        assert_eq!(
            named(Names::Task, &tools),
            ["notes__search", "web__search", "notes__add_task", "open"],
            "our own keep their names"
        );
        assert_eq!(named(Names::None, &tools[2..]), ["add_task", "open"]);
        assert_eq!(named(Names::None, &[("a", "b__c"), ("a__b", "c")]), ["b__c", "c"]);
        assert_eq!(named(Names::None, &[("web", "get page"), ("web", "get.page")])[0], "web__get_page");
        let odd =
            named(Names::None, &[("web", "get page"), ("web", "get.page"), ("w", "äöü"), ("w", &"x".repeat(100))]);
        assert_eq!(odd.iter().collect::<HashSet<_>>().len(), 4, "{odd:?}");
        assert!(odd.iter().all(|name| is_plain(name)), "{odd:?}");
    }

    #[test]
    fn the_tools_of_the_seeds_are_known_by_name_and_parameters() {
        // TASK-2
        let of = |name: &str, properties: &[&str], required: &[&str]| {
            let properties: serde_json::Map<_, _> = properties.iter().map(|key| ((*key).into(), json!({}))).collect();
            recognise(&found("s", name, json!({"properties": properties, "required": required})))
        };
        assert_eq!(of("create_todo", &["title", "due_date"], &["title"]), Some(Tool::Add));
        assert_eq!(of("add_task", &["user_id", "title"], &["user_id", "title"]), Some(Tool::Add));
        assert_eq!(of("list_todos", &["status"], &[]), Some(Tool::List));
        assert_eq!(of("delete_todo", &["todo_id", "confirmation"], &["todo_id", "confirmation"]), Some(Tool::Delete));
        assert_eq!(of("update_task", &["task_id", "title"], &["task_id"]), Some(Tool::Update));
        assert_eq!(of("create_todo", &["text"], &["text"]), None, "another tool of the same name");
        assert_eq!(of("create_todo", &["title", "board"], &["title", "board"]), None);
        assert_eq!(of("list_tasks", &["project"], &["project"]), None);
        assert_eq!(of("send_mail", &["title"], &[]), None);
    }

    #[test]
    fn who_is_asked_about_what() {
        // AGENT-7, OPS-6
        let delete =
            json!({"properties": {"todo_id": {}, "confirmation": {}}, "required": ["todo_id", "confirmation"]});
        let create = json!({"properties": {"title": {}, "user_id": {}}, "required": ["title", "user_id"]});
        let mut reads = found("s", "search", json!({}));
        reads.annotations.read_only = Some(true);
        let tools = [
            found("s", "delete_todo", delete),
            found("s", "create_todo", create),
            reads,
            found("s", "send", json!({})),
        ];
        let asked = |settings: &Settings| {
            let specs = specs(&[], &tools, |_| Some(settings));
            specs.iter().filter(|spec| spec.destructive).map(|spec| spec.name.to_string()).collect::<Vec<_>>()
        };
        let mut settings = settings("s");
        assert_eq!(asked(&settings), ["delete_todo", "search", "send"], "what a stranger says is not believed");
        settings.trusted = true;
        assert_eq!(asked(&settings), ["delete_todo", "send"]);
        settings.never_ask = vec!["send".into()];
        settings.ask = vec!["search".into()];
        assert_eq!(asked(&settings), ["delete_todo", "search"], "the user's rule comes first");
        let specs = specs(&[], &tools, |_| Some(&settings));
        assert!(!specs[1].takes("user_id") && specs[1].schema["required"] == json!(["title"]));
        assert!(!specs[0].takes("confirmation"));
    }
}
