//! Snapshots of the texts that people and models read: help, errors of commands, problems over HTTP, the API
//! description, tool descriptions, `doctor` and the configuration. A change of a text is a change of a snapshot:
//! `INSTA_UPDATE=always cargo nextest run --locked -E 'test(messages::)'`, then read the difference.

use std::fmt::Write as _;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::app::{CommandOutput, Home, Server};

use crate::mcp::request_result;
use crate::turn::find_uuid;
use crate::{ALICE, home, home_with_auth, token};

const ID: &str = "0190a6d2-7c00-7000-8000-000000000000";

/// An agent, a schedule and values that make every part of `doctor` and `config show` appear.
const CONFIG: &str = r#"
[[agents]]
id = "echo"
name = "Echo"
description = "repeats its input"
executable_path = "/bin/echo"
args = ["{{input}}"]
input_pattern = "args"

[[agents]]
id = "off"
name = "Off"
executable_path = "/bin/true"
enabled = false

[[agents]]
id = "gone"
name = "Gone"
executable_path = "no-such-program-anywhere"

[[schedules]]
name = "nightly"
agent_id = "echo"
cron_expression = "0 3 * * *"
input_parameters = { input = "good night" }
"#;

const BROKEN_CONFIG: &str = r#"
colour = "blue"

[server]
listen = 1
request_timeout = "soon"

[auth]
jwt_secret = "short"

[log]
level = "loud"

[[agents]]
id = "No Spaces"
executable_path = ""
mode = "file"
timeout = 0

[[agents]]
id = "twice"
executable_path = "/bin/true"
args = ["{{colour}}"]

[[agents]]
id = "twice"
executable_path = "/bin/true"

[[schedules]]
name = "broken"
agent_id = "nobody"
cron_expression = "61 * * * *"

[[notify.channels]]
type = "pigeon"

[[models]]
provider = "oracle"
"#;

/// Returns an empty home with a search path that does not depend on the machine.
fn plain_home() -> Home {
    home().with_env("PATH", "/usr/bin:/bin")
}

/// Replaces the path of the data directory, ids, ports and the version by placeholders. Leaves out the findings of
/// `doctor` about the kernel.
fn without_details(home: &Home, text: &str) -> String {
    let text = text.replace(&*home.path().to_string_lossy(), "$HOME");
    let text = text.replace(env!("CARGO_PKG_VERSION"), "$VERSION");
    let about_kernel = |line: &str| line.contains("\tisolation\t");
    let mut text: String = text.split_inclusive('\n').filter(|line| !about_kernel(line)).collect();
    while let Some(id) = find_uuid(&text).filter(|id| *id != ID) {
        text = text.replace(&id.to_owned(), "$ID");
    }
    let mut rest = text.as_str();
    let mut replaced = String::new();
    while let Some((before, after)) = rest.split_once("127.0.0.1:") {
        replaced.push_str(before);
        replaced.push_str("127.0.0.1:");
        let digits = after.len() - after.trim_start_matches(|character: char| character.is_ascii_digit()).len();
        replaced.push_str(if digits > 0 { "$PORT" } else { "" });
        rest = &after[digits..];
    }
    replaced + rest
}

/// Returns the output of a command for a snapshot.
fn transcript(home: &Home, arguments: &[&str], output: &CommandOutput) -> String {
    let text = format!("$ adjutant {}\n{}{}", arguments.join(" "), output.out(), output.err());
    let code = output.code();
    let end = if code == 0 { String::new() } else { format!("(exit code {code})\n") };
    without_details(home, &format!("{}\n{end}\n", text.trim_end()))
}

/// Adds the help of a command and of all commands below it.
fn add_help(home: &Home, path: &[String], text: &mut String) {
    let arguments: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
    let help = home.run(&arguments).ok();
    writeln!(text, "$ adjutant {}\n{}\n", arguments.join(" "), help.trim_end()).unwrap();
    let commands = help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    for line in commands.lines().take_while(|line| !line.is_empty()) {
        // Continuation lines of a description are indented further.
        if let Some(name) = line.strip_prefix("  ").filter(|line| !line.starts_with(' ')) {
            let name = name.split(' ').next().unwrap();
            if name != "help" {
                add_help(home, &[path, &[name.to_owned()]].concat(), text);
            }
        }
    }
}

#[test]
fn help_of_every_command() {
    let mut text = String::new();
    add_help(&home(), &[], &mut text);
    insta::assert_snapshot!("help", text);
}

#[test]
fn errors_of_commands() {
    let home = plain_home().with_config(CONFIG);
    home.run(&["tasks", "add", "Buy milk"]).ok();
    home.run(&["tasks", "add", "Buy bread"]).ok();
    std::fs::write(home.path().join("not-a-backup"), "nothing").unwrap();
    let mut text = String::new();
    for arguments in [
        &["nonsense"] as &[&str],
        &["tasks", "done", "Buy"],
        &["tasks", "done", "cheese"],
        &["tasks", "done", ID],
        &["tasks", "add", ""],
        &["tasks", "add", "x", "--due", "yesterweek"],
        &["tasks", "add", "x", "--priority", "urgent"],
        &["tasks", "add", "x", "--repeat", "sometimes"],
        &["tasks", "edit", "milk"],
        &["tasks", "rm", "milk"],
        &["tasks", "undo"],
        &["reminders", "add", "cheese", "tomorrow"],
        &["reminders", "rm", ID],
        &["run", "nobody", "hello"],
        &["run", "off", "hello"],
        &["run", "gone", "hello"],
        &["executions", "show", ID],
        &["executions", "cancel", "not-an-id"],
        &["executions", "retry", ID],
        &["schedules", "add", "echo", "--cron", "61 * * * *"],
        &["schedules", "add", "nobody", "--cron", "0 3 * * *"],
        &["schedules", "rm", "nightly"],
        &["schedules", "pause", "weekly"],
        &["agents", "show", "nobody"],
        &["agents", "rm", "echo"],
        &["agents", "add", "--preset", "nonsense"],
        &["a2a", "send", "http://127.0.0.1:9", "hello"],
        &["token", "create", "--user", "not a user"],
        &["token", "revoke", "not-a-token"],
        &["backup", "/no/such/directory/backup"],
        &["restore", "not-a-backup", "--yes"],
        &["import", "not-a-backup"],
        &["config", "show", "--config", "missing.toml"],
        &["--server", "http://127.0.0.1:9", "tasks", "list"],
        &["--database-url", "mysql://localhost/x", "tasks", "list"],
        &["serve", "--listen", "nowhere"],
        &["completions", "klingon"],
    ] {
        text += &transcript(&home, arguments, &home.run(arguments));
    }
    insta::assert_snapshot!("command_errors", text);
}

#[test]
fn configuration_and_doctor() {
    let fresh = plain_home();
    let mut text = String::new();
    for arguments in [&["config", "init"] as &[&str], &["config", "init"], &["config", "check"]] {
        text += &transcript(&fresh, arguments, &fresh.run(arguments));
    }
    let file = std::fs::read_to_string(fresh.path().join("config.toml")).unwrap();
    writeln!(text, "$ cat config.toml\n{}\n", without_details(&fresh, &file)).unwrap();
    for (name, config) in [("working", CONFIG), ("broken", BROKEN_CONFIG)] {
        let home = plain_home().with_config(config);
        writeln!(text, "# With a {name} configuration\n").unwrap();
        for arguments in [&["config", "check"] as &[&str], &["doctor"], &["tasks", "list"]] {
            text += &transcript(&home, arguments, &home.run(arguments));
        }
    }
    insta::assert_snapshot!("configuration", text);
}

/// Adds a response with an error: the request, the status, the detail and every violation.
async fn add_problem(
    server: &Server,
    token: Option<&str>,
    (method, path, body): (&str, &str, &str),
    text: &mut String,
) {
    let request = server.request(Method::from_bytes(method.as_bytes()).unwrap(), path);
    let request = match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    };
    let request = match body {
        "" => request,
        body => request.header("content-type", "application/json").body(body.to_owned()),
    };
    let answer = request.send().await.unwrap();
    assert!(!answer.status().is_success(), "{method} {path} {body}: {}", answer.status());
    let problem: Value = answer.json().await.unwrap();
    let kind = problem["type"].as_str().unwrap().rsplit('/').next().unwrap();
    writeln!(text, "{method} {path} {body}\n  {} {kind}: {}", problem["status"], problem["detail"].as_str().unwrap())
        .unwrap();
    for violation in problem["errors"].as_array().into_iter().flatten() {
        let [field, rule, message] = ["field", "rule", "message"].map(|key| violation[key].as_str().unwrap());
        writeln!(text, "  - {field} ({rule}): {message}").unwrap();
    }
    text.push('\n');
}

#[tokio::test]
async fn problems_over_http() {
    let home = home().with_config(CONFIG);
    let server = home.serve();
    let mut text = String::new();
    for request in [
        ("GET", "/nowhere", ""),
        ("PUT", "/api/tasks", ""),
        ("POST", "/api/tasks", ""),
        ("POST", "/api/tasks", "{"),
        ("POST", "/api/tasks", "[]"),
        ("POST", "/api/tasks", r#"{"x": 1}"#),
        (
            "POST",
            "/api/tasks",
            r#"{"title": "", "due_date": "soon", "priority": "urgent", "tags": [""], "recurrence": "daily"}"#,
        ),
        ("POST", "/api/tasks", r#"{"title": 5}"#),
        ("GET", "/api/tasks?limit=0&status=lost&colour=red", ""),
        ("GET", "/api/tasks?cursor=x", ""),
        ("GET", "/api/tasks/x", ""),
        ("GET", "/api/tasks/0190a6d2-7c00-7000-8000-000000000000", ""),
        ("POST", "/api/tasks/complete", r#"{"ids": []}"#),
        ("POST", "/api/tasks/undo", r#"{"a": 1}"#),
        ("POST", "/api/reminders", r#"{"task_id": "x", "remind_at": "2001-01-01T00:00:00Z"}"#),
        ("POST", "/chat", r#"{"input": ""}"#),
        ("POST", "/chat", r#"{"input": "hello", "conversation_id": "a b"}"#),
        ("POST", "/agent/run", r#"{"message": "hello", "conversation_history": [{"role": "king", "content": ""}]}"#),
        ("GET", "/api/conversations/x", ""),
        ("POST", "/api/agents", r#"{"id": "A b", "executable_path": ""}"#),
        ("POST", "/api/agents", r#"{"id": "echo", "name": "Echo", "executable_path": "/bin/echo"}"#),
        ("PUT", "/api/agents/assistant", r#"{"name": "Mine", "executable_path": "/bin/echo"}"#),
        ("DELETE", "/api/agents/assistant", ""),
        ("DELETE", "/api/agents/echo", ""),
        ("DELETE", "/api/agents/nobody", ""),
        ("POST", "/api/agents/nobody/executions", r#"{"input": "hello"}"#),
        ("POST", "/api/agents/off/executions", r#"{"input": "hello"}"#),
        ("POST", "/api/agents/echo/executions", r#"{"params": {"colour": "red"}, "wait": 1}"#),
        ("GET", "/api/executions/0190a6d2-7c00-7000-8000-000000000000/result", ""),
        ("POST", "/api/executions/0190a6d2-7c00-7000-8000-000000000000/cancel", ""),
        ("GET", "/api/executions?status=lost", ""),
        ("POST", "/api/schedules", r#"{"name": "", "agent_id": "nobody", "cron_expression": "61 * * * *"}"#),
        ("POST", "/api/schedules", r#"{"name": "a", "agent_id": "echo", "at": "2001-01-01T00:00:00Z"}"#),
        ("POST", "/api/schedules", r#"{"name": "a", "agent_id": "echo"}"#),
        ("POST", "/api/schedules/0190a6d2-7c00-7000-8000-000000000000/pause", ""),
        ("POST", "/api/sessions", r#"{"agent_id": "echo"}"#),
        ("POST", "/api/tokens/revoke", r#"{"token": "x"}"#),
        ("POST", "/api/restore", "nothing"),
        ("POST", "/api/data", r#"{"tasks": 5}"#),
    ] {
        add_problem(&server, None, request, &mut text).await;
    }
    let secured = home_with_auth();
    let server = secured.serve();
    let token = token(&secured, ALICE, &[]);
    for (token, request) in [
        (None, ("GET", "/api/tasks", "")),
        (Some("nonsense"), ("GET", "/api/tasks", "")),
        (Some(&*token), ("POST", "/api/agents", r#"{"id": "a", "name": "A", "executable_path": "/bin/true"}"#)),
        (Some(&*token), ("POST", "/chat", r#"{"input": "hello", "user_id": "bbbbbbbb-0000-4000-8000-00000000000b"}"#)),
    ] {
        add_problem(&server, token, request, &mut text).await;
    }
    insta::assert_snapshot!("problems", text);
}

/// Adds every `description` and `summary` below a value, with its path.
fn add_descriptions(path: &str, value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(description) if key == "description" || key == "summary" => {
                        writeln!(text, "{path}: {description}").unwrap();
                    }
                    value => add_descriptions(&format!("{path} {key}"), value, text),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                let name = item["name"].as_str().unwrap_or_default();
                add_descriptions(&format!("{path} {name}"), item, text);
            }
        }
        _ => {}
    }
}

#[tokio::test]
async fn descriptions_of_the_api() {
    let home = home();
    let server = home.serve();
    let document: Value = server.get("/openapi.json").await.json().await.unwrap();
    let mut text = String::new();
    for part in ["info", "paths", "components"] {
        add_descriptions(part, &document[part], &mut text);
    }
    insta::assert_snapshot!("openapi", text);
}

#[tokio::test]
async fn descriptions_and_errors_of_tools() {
    let home = home().with_config(CONFIG);
    let server = home.serve();
    let mut text = String::new();
    let listed = request_result(&server, None, "tools/list", json!({})).await;
    for tool in listed["tools"].as_array().unwrap() {
        let [name, title, description] = ["name", "title", "description"].map(|key| tool[key].as_str().unwrap());
        writeln!(text, "{name} ({title})\n{description}").unwrap();
        add_descriptions("-", &tool["inputSchema"]["properties"], &mut text);
        text.push('\n');
    }
    for (name, arguments) in [
        ("add_task", json!({})),
        ("add_task", json!({"title": "", "due_date": "soon", "priority": "urgent"})),
        ("list_tasks", json!({"status": "lost"})),
        ("complete_task", json!({"task_id": ID})),
        ("complete_task", json!({"task_id": "x"})),
        ("update_task", json!({"task_id": ID})),
        ("delete_task", json!({})),
        ("run_agent", json!({"agent_id": "nobody", "input": "hello"})),
        ("get_execution", json!({"execution_id": ID})),
        ("paint_task", json!({})),
    ] {
        let result = request_result(&server, None, "tools/call", json!({"name": name, "arguments": arguments})).await;
        let shown = result.get("structuredContent").unwrap_or(&result);
        writeln!(text, "{name} {arguments}\n  {shown}\n").unwrap();
    }
    insta::assert_snapshot!("tools", text);
}
