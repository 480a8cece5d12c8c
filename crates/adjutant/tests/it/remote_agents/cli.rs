//! `adjutant a2a`, without a data directory and a local server.

use serde_json::json;

use super::{TOKEN, remote_home};
use crate::home;

#[tokio::test(flavor = "multi_thread")]
async fn a2a_commands_work_on_every_binding_and_version() {
    // A2A-1
    let remote = remote_home();
    let remote = remote.serve();
    let local = home();
    let cat = format!("{}/agents/cat", remote.url);
    let card = local.run(&["a2a", "card", &cat]).ok();
    assert!(card.contains("name         cat\n") && card.contains("connected    JSONRPC 1.0 at "), "{card}");
    assert_eq!(local.run(&["a2a", "card", &cat, "--json"]).json()["name"], "cat");
    for binding in ["jsonrpc", "rest", "grpc"] {
        for version in ["1.0", "0.3"] {
            if (binding, version) == ("grpc", "0.3") {
                // gRPC of 0.3 cannot select one of several agents.
                continue;
            }
            let sent = local.run(&["a2a", "send", &cat, "hello", "--binding", binding, "--version", version]);
            assert_eq!((sent.code(), sent.out().as_str()), (0, "hello\n"), "{binding} {version}: {}", sent.err());
        }
    }
    let whole = local.run(&["a2a", "send", &cat, "hello", "--data", "{\"a\":1}", "--json", "--context", "c1"]).json();
    let task = &whole["task"];
    assert_eq!(
        (&task["status"]["state"], &task["contextId"]),
        (&json!("TASK_STATE_COMPLETED"), &json!("c1")),
        "{whole}"
    );
    let id = task["id"].as_str().unwrap();
    let got = local.run(&["a2a", "get", &cat, id, "--history", "5"]).ok();
    assert!(got.contains("state        completed\n") && got.contains("you          hello"), "{got}");
    assert_eq!(
        local.run(&["a2a", "list", &cat, "-q", "--context", "c1", "--status", "completed"]).ok(),
        format!("{id}\n")
    );
    assert_eq!(
        local.run(&["a2a", "list", &cat, "--json", "--limit", "2"]).json()["tasks"].as_array().unwrap().len(),
        2
    );
    // One event per line.
    let events = local.run(&["a2a", "send", &cat, "hello", "--json", "--stream"]).ok();
    assert!(events.lines().count() > 1 && events.starts_with("{\"task\""), "{events}");
    let slow = format!("{}/agents/slow", remote.url);
    let started = local.run(&["a2a", "send", &slow, "x", "--no-wait"]).ok();
    let cancelled = local.run(&["a2a", "cancel", &slow, started.trim()]).ok();
    assert_eq!(cancelled, format!("{}\tcanceled\n", started.trim()));
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_codes_of_a2a_commands_tell_the_outcome() {
    // A2A-1
    let remote = remote_home();
    let remote = remote.serve();
    let url = |agent: &str| format!("{}/agents/{agent}", remote.url);
    let local = home().with_env("ADJUTANT_TOKEN", TOKEN).with_env("KEY", &format!("Bearer {TOKEN}"));
    for (arguments, code) in [
        (vec!["send", &url("broken"), "x"], 1),
        (vec!["send", &url("cat")], 2),
        (vec!["send", &url("cat"), "--data", "{"], 2),
        (vec!["card", "ftp://x"], 2),
        (vec!["list", &url("cat"), "--status", "asleep"], 2),
        (vec!["card", &url("unknown")], 3),
        (vec!["get", &url("cat"), "00000000-0000-4000-8000-000000000000"], 3),
        (vec!["card", "http://127.0.0.1:1/"], 8),
        // The token for the local server is not sent to remote agents.
        (vec!["send", &url("locked"), "x"], 9),
        (vec!["send", &url("locked"), "x", "--token", "another-one"], 9),
        (vec!["send", &url("locked"), "x", "--token", TOKEN], 0),
        (vec!["send", &url("locked"), "x", "--token", "env:ADJUTANT_TOKEN"], 0),
        (vec!["send", &url("locked"), "x", "--header", "Authorization=env:KEY"], 0),
        (vec!["send", &url("slow"), "x", "--timeout", "1"], 124),
    ] {
        let output = local.run(&[&["a2a"], &arguments[..]].concat());
        assert_eq!(output.code(), code, "{arguments:?}: {}{}", output.out(), output.err());
        assert!(!output.err().contains(TOKEN) && !output.err().contains("another-one"), "{}", output.err());
    }
    assert!(std::fs::read_dir(local.path()).unwrap().next().is_none(), "no file is written");
}
