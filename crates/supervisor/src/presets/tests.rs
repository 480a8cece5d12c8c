//! Every preset produces the command that the documentation of the agent describes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use model::agent::{Agent, AgentProtocol};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use super::*;
use crate::command::{CommandPlan, CommandRequest, InputDelivery};

/// Returns a directory with an executable for each preset.
fn programs() -> TempDir {
    let folder = TempDir::new().unwrap();
    for name in all().iter().flat_map(|preset| &preset.executables) {
        let path = folder.path().join(name);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

fn draft(value: Value) -> AgentDraft {
    model::json::from_value(value).unwrap()
}

fn agent(id: &str, access: &str, path: &Path) -> Agent {
    let own_variables = |name: &str| (name == "PATH").then(|| path.to_str().unwrap().to_owned());
    apply(draft(json!({"preset": id, "access_type": access})), own_variables).unwrap().check().unwrap()
}

fn plan(agent: &Agent, path: &Path) -> CommandPlan {
    let run = CommandRequest {
        execution_id: Uuid::nil(),
        input: "hello".to_owned(),
        parameters: Map::new(),
        working_directory: None,
        envs: BTreeMap::new(),
        files: Vec::new(),
        started_at: "2026-01-02T03:04:05Z".parse().unwrap(),
    };
    let own_variables = |name: &str| (name == "PATH").then(|| path.to_str().unwrap().to_owned());
    CommandPlan::make(agent, &run, Path::new("/s"), own_variables).unwrap()
}

#[test]
fn presets_produce_the_documented_commands() {
    // SUP-1
    let folder = programs();
    const AIDER: &str = "aider --yes-always --no-pretty --no-stream --no-fancy-input --no-check-update \
        --no-show-release-notes --no-suggest-shell-commands --no-gitignore --chat-history-file /s/chat.md \
        --input-history-file /s/input.history";
    let same = |id: &'static str, line: &'static str| (id, line.to_owned(), line.to_owned());
    let two = |id: &'static str, read: &str, write: &str| (id, read.to_owned(), write.to_owned());
    let expected = [
        two(
            "claude-code",
            "claude -p --output-format text < hello",
            "claude -p --output-format text --permission-mode acceptEdits < hello",
        ),
        same("claude-code-acp", "claude-agent-acp"),
        two(
            "codex",
            "codex exec --skip-git-repo-check --color never --sandbox read-only - < hello",
            "codex exec --skip-git-repo-check --color never --sandbox workspace-write - < hello",
        ),
        same("codex-acp", "codex-acp"),
        two(
            "gemini",
            "gemini --output-format text < hello",
            "gemini --output-format text --approval-mode auto_edit < hello",
        ),
        same("gemini-acp", "gemini --acp"),
        same("goose", "goose run --no-session --quiet -i - < hello"),
        same("goose-acp", "goose acp"),
        two(
            "aider",
            &format!("{AIDER} --chat-mode ask --message-file /s/input.txt"),
            &format!("{AIDER} --no-auto-commits --no-dirty-commits --message-file /s/input.txt"),
        ),
        two("opencode", "opencode run --agent plan < hello", "opencode run < hello"),
        same("opencode-acp", "opencode acp"),
        two(
            "copilot",
            "copilot -s --no-ask-user --allow-all-tools --deny-tool=write --deny-tool=shell < hello",
            "copilot -s --no-ask-user --allow-all-tools < hello",
        ),
        same("copilot-acp", "copilot --acp"),
        two(
            "cursor-agent",
            "cursor-agent -p --output-format text --trust --mode ask -- hello",
            "cursor-agent -p --output-format text --trust --force -- hello",
        ),
        same("cursor-agent-acp", "cursor-agent acp"),
        two(
            "qwen-code",
            "qwen --output-format text < hello",
            "qwen --output-format text --approval-mode auto-edit < hello",
        ),
        same("qwen-code-acp", "qwen --acp"),
    ];
    let ids: Vec<_> = all().iter().map(|preset| preset.id.as_str()).collect();
    assert_eq!(ids, expected.each_ref().map(|(id, ..)| *id));
    for (id, read_only, read_write) in expected {
        for (access, line) in [("read-only", read_only), ("read-write", read_write)] {
            let agent = agent(id, access, folder.path());
            let plan = plan(&agent, folder.path());
            let mut command = plan.program.file_name().unwrap().to_str().unwrap().to_owned();
            plan.args.iter().for_each(|arg| command = format!("{command} {arg}"));
            if let InputDelivery::Stdin(input) = &plan.input {
                command = format!("{command} < {input}");
            }
            assert_eq!(command, line, "{id} {access}");
            assert_eq!(
                (plan.input == InputDelivery::JsonRpc, agent.protocol == AgentProtocol::Acp),
                (id.ends_with("-acp"), id.ends_with("-acp"))
            );
        }
    }
}

#[test]
fn presets_are_fully_described() {
    for preset in all() {
        let Preset { id, title, about, executables, version, variables, .. } = preset;
        assert!(!title.is_empty() && about.ends_with('.') && !executables.is_empty() && !version.is_empty(), "{id}");
        assert!(variables.iter().all(|variable| !variable.about.is_empty()), "{id}");
        assert_eq!(all().iter().filter(|other| other.id == *id).count(), 1);
        assert_eq!(get(id).unwrap().id, *id);
    }
}

#[test]
fn drafts_override_presets_and_set_variables_are_passed_on() {
    // SUP-1, SUP-9
    let own_variables = |name: &str| match name {
        "HOME" => Some("/home/me".to_owned()),
        "ANTHROPIC_API_KEY" => Some("secret".to_owned()),
        _ => None,
    };
    let filled =
        apply(draft(json!({"preset": "claude-code", "envs": {"A": "b"}, "timeout": 5})), own_variables).unwrap();
    let agent = filled.check().unwrap();
    assert_eq!((agent.id.as_str(), agent.name.as_str()), ("claude-code", "Claude Code"));
    assert_eq!((agent.executable_path.as_str(), agent.timeout), ("claude", model::agent::Seconds::new(5)));
    assert_eq!(
        serde_json::to_value(&agent.envs).unwrap(),
        json!({"A": "b", "ANTHROPIC_API_KEY": "env:ANTHROPIC_API_KEY"})
    );
    assert_eq!(agent.write_paths[0], "/home/me/.claude");
    let category = |text: &str| agent.error_patterns.iter().find(|pattern| pattern.text == text).unwrap().category;
    assert_eq!(
        (category("overloaded"), category("invalid api key")),
        (ErrorCategory::Transient, ErrorCategory::Permanent)
    );

    let own = apply(
        draft(json!({"preset": "codex", "name": "My own", "args": ["exec"], "executable_path": "/x"})),
        own_variables,
    );
    let own = own.unwrap().check().unwrap();
    assert_eq!((own.id.as_str(), own.executable_path.as_str(), own.args.len()), ("my-own", "/x", 1));
    let typed = apply(draft(json!({"preset": "codex", "agent_type": "args"})), own_variables).unwrap().check().unwrap();
    assert_eq!(typed.input_pattern, model::agent::InputPattern::Args);
    let unknown = apply(draft(json!({"preset": "hal"})), own_variables).unwrap_err();
    assert_eq!((unknown.violations[0].field.as_str(), unknown.violations[0].rule.as_ref()), ("preset", "one_of"));
    assert!(apply(draft(json!({"id": "x"})), own_variables).unwrap().executable_path.is_none());
}

#[test]
fn installed_programs_are_detected() {
    let home = TempDir::new().unwrap();
    let path = TempDir::new().unwrap();
    let put = |folder: PathBuf, name: &str| {
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), "").unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    put(path.path().to_owned(), "codex");
    put(home.path().join(".claude/local"), "claude");
    let found = detect(path.path().to_str().unwrap(), Some(home.path()));
    let found: Vec<_> = found.iter().map(|found| (found.preset.id.as_str(), found.on_path)).collect();
    assert_eq!(found, [("claude-code", false), ("codex", true)]);
    let own_variables = |name: &str| (name == "HOME").then(|| home.path().to_str().unwrap().to_owned());
    let filled = apply(draft(json!({"preset": "claude-code"})), own_variables).unwrap();
    assert_eq!(filled.executable_path.unwrap(), home.path().join(".claude/local/claude").to_str().unwrap());
    assert!(detect("", None).is_empty());
}
