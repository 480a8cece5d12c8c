//! Independent clients: `mcp` and `fastmcp` for Python, and the command line of the inspector. Each lists and calls the
//! tools, provokes both kinds of errors, and deletes a task with, without and before a confirmation (TASK-3).

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use testkit::app::Home;

use crate::{ALICE, home, home_with_auth, token};

/// The reply of the user to a confirmation request. The last two clients do not support such requests.
const ACCEPT: &str = "accept";
const DECLINE: &str = "decline";
/// Passes the confirmation as an argument.
const AS_ARGUMENT: &str = "unable";
/// Does not pass a confirmation.
const WITHOUT_CONFIRMATION: &str = "untold";

const MODERN: &str = "modern";
const LEGACY: &str = "legacy";

/// Runs a client and checks its report.
fn run_client(home: &Home, library: &str, era: &str, reply: &str, target: &[&str]) {
    let scripts = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scripts/mcp-peers");
    let clients = super::peers();
    let mut command = Command::new(clients.join("bin/python"));
    match library {
        "inspector" => command.arg(scripts.join("inspector.py")).arg(&clients),
        _ => command.arg(scripts.join("client.py")).arg(library),
    };
    command.args([era, reply]).args(target).env("ADJUTANT_HOME", home.path()).current_dir(home.path());
    let done = command.output().unwrap();
    let context = format!("{library} {era} {reply} {target:?}");
    let out = String::from_utf8_lossy(&done.stdout);
    let report: Value = serde_json::from_str(out.trim())
        .unwrap_or_else(|_| panic!("{context}: {out}{}", String::from_utf8_lossy(&done.stderr)));
    check_report(&report, reply, &context);
}

fn check_report(report: &Value, reply: &str, context: &str) {
    let tools = report["tools"].as_object().unwrap();
    for name in ["add_task", "list_tasks", "complete_task", "delete_task", "update_task", "schedule_reminder"] {
        assert!(tools.contains_key(name), "{context}: {name}");
    }
    assert_eq!(tools["delete_task"]["destructiveHint"], true, "{context}");
    assert_eq!(tools["list_tasks"]["readOnlyHint"], true, "{context}");
    for call in ["added", "listed", "invalid", "deleted", "left"] {
        assert_eq!(report[call]["text_is_data"], true, "{context}: {call}");
    }
    assert_eq!(report["added"]["data"]["task"]["priority"], "high", "{context}");
    assert_eq!(report["listed"]["data"]["tasks"][0]["title"], "buy milk", "{context}");
    let invalid = &report["invalid"];
    assert_eq!((&invalid["is_error"], &invalid["data"]["error"]["code"]), (&json!(true), &json!("VALIDATION_ERROR")));
    if !report["unknown"].is_null() {
        assert_eq!(report["unknown"]["protocol_error"], -32602, "{context}: {}", report["unknown"]);
    }

    let deleted = [ACCEPT, AS_ARGUMENT].contains(&reply);
    assert_eq!(report["deleted"]["is_error"], !deleted, "{context}: {}", report["deleted"]);
    if !deleted {
        assert_eq!(report["deleted"]["data"]["error"]["code"], "CONFIRMATION_REQUIRED", "{context}");
    }
    assert_eq!(report["left"]["data"]["count"], u8::from(!deleted), "{context}");
    let question = json!(["Do you really want to delete 'buy milk'?"]);
    let asked = if [ACCEPT, DECLINE].contains(&reply) { question } else { json!([]) };
    assert_eq!(report["asked"], asked, "{context}");
}

fn check_over_http(library: &str, era: &str, replies: &[&str]) {
    for reply in replies {
        let home = home();
        let server = home.serve();
        run_client(&home, library, era, reply, &["http", &format!("{}/mcp", server.url)]);
    }
}

fn check_on_stdio(library: &str, era: &str) {
    for (reply, with_server) in [(ACCEPT, false), (DECLINE, false), (ACCEPT, true), (DECLINE, true)] {
        let home = home();
        let _server = with_server.then(|| home.serve());
        run_client(&home, library, era, reply, &["stdio", env!("CARGO_BIN_EXE_adjutant"), "mcp"]);
    }
}

#[test]
fn the_mcp_client_works_over_http() {
    // TASK-3
    check_over_http("mcp", MODERN, &[ACCEPT, DECLINE, AS_ARGUMENT, WITHOUT_CONFIRMATION]);
    check_over_http("mcp", LEGACY, &[ACCEPT, DECLINE, AS_ARGUMENT, WITHOUT_CONFIRMATION]);
}

#[test]
fn the_mcp_client_works_on_stdio() {
    check_on_stdio("mcp", MODERN);
    check_on_stdio("mcp", LEGACY);
}

#[test]
fn the_fastmcp_client_works_over_http() {
    check_over_http("fastmcp", MODERN, &[ACCEPT, DECLINE, WITHOUT_CONFIRMATION]);
    check_over_http("fastmcp", LEGACY, &[ACCEPT, DECLINE, AS_ARGUMENT]);
}

#[test]
fn the_fastmcp_client_works_on_stdio() {
    // TASK-3
    check_on_stdio("fastmcp", MODERN);
    check_on_stdio("fastmcp", LEGACY);
}

#[test]
fn the_inspector_works_over_http_without_a_handshake() {
    // TASK-3
    check_over_http("inspector", MODERN, &[ACCEPT, DECLINE]);
}

#[test]
fn the_inspector_works_over_http_with_a_handshake() {
    check_over_http("inspector", LEGACY, &[ACCEPT, DECLINE, AS_ARGUMENT]);
}

#[test]
fn the_inspector_works_on_stdio() {
    for (era, reply, with_server) in [(MODERN, ACCEPT, false), (LEGACY, DECLINE, false), (MODERN, DECLINE, true)] {
        let home = home();
        let _server = with_server.then(|| home.serve());
        run_client(&home, "inspector", era, reply, &["stdio", env!("CARGO_BIN_EXE_adjutant"), "mcp"]);
    }
}

#[test]
fn clients_authenticate_with_a_token() {
    // OPS-3
    let home = home_with_auth();
    let server = home.serve();
    let alice = token(&home, ALICE, &[]);
    for library in ["mcp", "fastmcp", "inspector"] {
        run_client(&home, library, MODERN, ACCEPT, &["http", &format!("{}/mcp", server.url), &alice]);
    }
}
