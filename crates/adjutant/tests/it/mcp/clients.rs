//! Clients that others wrote: Python's `mcp` and `fastmcp`, and the inspector's command line. Each finds the tools, calls
//! them, meets both kinds of errors, and deletes a task with its user's consent, without it, and unasked (TASK-3).

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use testkit::app::Home;

use crate::{ALICE, home, home_with_auth, token};

/// What the client's user does when asked; the last two cannot be.
const ACCEPT: &str = "accept";
const DECLINE: &str = "decline";
const UNABLE: &str = "unable";
const UNTOLD: &str = "untold";

const MODERN: &str = "modern";
const LEGACY: &str = "legacy";

/// Runs a client to its end and judges its report.
fn drive(home: &Home, library: &str, era: &str, consent: &str, target: &[&str]) {
    let scripts = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scripts/mcp-peers");
    let clients = super::peers();
    let mut command = Command::new(clients.join("bin/python"));
    match library {
        "inspector" => command.arg(scripts.join("inspector.py")).arg(&clients),
        _ => command.arg(scripts.join("client.py")).arg(library),
    };
    command.args([era, consent]).args(target).env("ADJUTANT_HOME", home.path()).current_dir(home.path());
    let done = command.output().unwrap();
    let about = format!("{library} {era} {consent} {target:?}");
    let out = String::from_utf8_lossy(&done.stdout);
    let report: Value = serde_json::from_str(out.trim())
        .unwrap_or_else(|_| panic!("{about}: {out}{}", String::from_utf8_lossy(&done.stderr)));
    judge(&report, consent, &about);
}

fn judge(report: &Value, consent: &str, about: &str) {
    let tools = report["tools"].as_object().unwrap();
    for name in ["add_task", "list_tasks", "complete_task", "delete_task", "update_task", "schedule_reminder"] {
        assert!(tools.contains_key(name), "{about}: {name}");
    }
    assert_eq!(tools["delete_task"]["destructiveHint"], true, "{about}");
    assert_eq!(tools["list_tasks"]["readOnlyHint"], true, "{about}");
    for call in ["added", "listed", "invalid", "deleted", "left"] {
        assert_eq!(report[call]["text_is_data"], true, "{about}: {call}");
    }
    assert_eq!(report["added"]["data"]["task"]["priority"], "high", "{about}");
    assert_eq!(report["listed"]["data"]["tasks"][0]["title"], "buy milk", "{about}");
    let invalid = &report["invalid"];
    assert_eq!((&invalid["is_error"], &invalid["data"]["error"]["code"]), (&json!(true), &json!("VALIDATION_ERROR")));
    if !report["unknown"].is_null() {
        assert_eq!(report["unknown"]["protocol_error"], -32602, "{about}: {}", report["unknown"]);
    }

    let deleted = [ACCEPT, UNABLE].contains(&consent);
    assert_eq!(report["deleted"]["is_error"], !deleted, "{about}: {}", report["deleted"]);
    if !deleted {
        assert_eq!(report["deleted"]["data"]["error"]["code"], "CONFIRMATION_REQUIRED", "{about}");
    }
    assert_eq!(report["left"]["data"]["count"], u8::from(!deleted), "{about}");
    let question = json!(["Do you really want to delete 'buy milk'?"]);
    let asked = if [ACCEPT, DECLINE].contains(&consent) { question } else { json!([]) };
    assert_eq!(report["asked"], asked, "{about}");
}

fn over_http(library: &str, era: &str, consents: &[&str]) {
    for consent in consents {
        let home = home();
        let server = home.serve();
        drive(&home, library, era, consent, &["http", &format!("{}/mcp", server.url)]);
    }
}

fn on_stdio(library: &str, era: &str) {
    for (consent, with_server) in [(ACCEPT, false), (DECLINE, false), (ACCEPT, true), (DECLINE, true)] {
        let home = home();
        let _server = with_server.then(|| home.serve());
        drive(&home, library, era, consent, &["stdio", env!("CARGO_BIN_EXE_adjutant"), "mcp"]);
    }
}

#[test]
fn mcp_over_http() {
    over_http("mcp", MODERN, &[ACCEPT, DECLINE, UNABLE, UNTOLD]);
    over_http("mcp", LEGACY, &[ACCEPT, DECLINE, UNABLE, UNTOLD]);
}

#[test]
fn mcp_on_stdio() {
    on_stdio("mcp", MODERN);
    on_stdio("mcp", LEGACY);
}

#[test]
fn fastmcp_over_http() {
    over_http("fastmcp", MODERN, &[ACCEPT, DECLINE, UNTOLD]);
    over_http("fastmcp", LEGACY, &[ACCEPT, DECLINE, UNABLE]);
}

#[test]
fn fastmcp_on_stdio() {
    on_stdio("fastmcp", MODERN);
    on_stdio("fastmcp", LEGACY);
}

#[test]
fn inspector_over_http_without_a_handshake() {
    over_http("inspector", MODERN, &[ACCEPT, DECLINE]);
}

#[test]
fn inspector_over_http_with_a_handshake() {
    over_http("inspector", LEGACY, &[ACCEPT, DECLINE, UNABLE]);
}

#[test]
fn inspector_on_stdio() {
    for (era, consent, with_server) in [(MODERN, ACCEPT, false), (LEGACY, DECLINE, false), (MODERN, DECLINE, true)] {
        let home = home();
        let _server = with_server.then(|| home.serve());
        drive(&home, "inspector", era, consent, &["stdio", env!("CARGO_BIN_EXE_adjutant"), "mcp"]);
    }
}

#[test]
fn all_of_them_show_a_token() {
    // OPS-3
    let home = home_with_auth();
    let server = home.serve();
    let alice = token(&home, ALICE, &[]);
    for library in ["mcp", "fastmcp", "inspector"] {
        drive(&home, library, MODERN, ACCEPT, &["http", &format!("{}/mcp", server.url), &alice]);
    }
}
