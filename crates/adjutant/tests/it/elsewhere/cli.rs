//! `adjutant a2a`, without a data directory and a server of its own.

use serde_json::json;

use super::{TOKEN, far};
use crate::home;

#[tokio::test(flavor = "multi_thread")]
async fn any_agent_can_be_spoken_with() {
    // A2A-1
    let there = far();
    let there = there.serve();
    let here = home();
    let cat = format!("{}/agents/cat", there.url);
    let card = here.run(&["a2a", "card", &cat]).ok();
    assert!(card.contains("name         cat\n") && card.contains("spoken to    JSONRPC 1.0 at "), "{card}");
    assert_eq!(here.run(&["a2a", "card", &cat, "--json"]).json()["name"], "cat");
    for binding in ["jsonrpc", "rest", "grpc"] {
        for version in ["1.0", "0.3"] {
            if (binding, version) == ("grpc", "0.3") {
                // There is no place in 0.3 to say which of several agents is meant.
                continue;
            }
            let said = here.run(&["a2a", "send", &cat, "hello", "--binding", binding, "--version", version]);
            assert_eq!((said.code(), said.out().as_str()), (0, "hello\n"), "{binding} {version}: {}", said.err());
        }
    }
    let whole = here.run(&["a2a", "send", &cat, "hello", "--data", "{\"a\":1}", "--json", "--context", "c1"]).json();
    let task = &whole["task"];
    assert_eq!(
        (&task["status"]["state"], &task["contextId"]),
        (&json!("TASK_STATE_COMPLETED"), &json!("c1")),
        "{whole}"
    );
    let id = task["id"].as_str().unwrap();
    let got = here.run(&["a2a", "get", &cat, id, "--history", "5"]).ok();
    assert!(got.contains("state        completed\n") && got.contains("you said     hello"), "{got}");
    assert_eq!(
        here.run(&["a2a", "list", &cat, "-q", "--context", "c1", "--status", "completed"]).ok(),
        format!("{id}\n")
    );
    assert_eq!(here.run(&["a2a", "list", &cat, "--json", "--limit", "2"]).json()["tasks"].as_array().unwrap().len(), 2);
    // Events, one a line.
    let events = here.run(&["a2a", "send", &cat, "hello", "--json", "--stream"]).ok();
    assert!(events.lines().count() > 1 && events.starts_with("{\"task\""), "{events}");
    let slow = format!("{}/agents/slow", there.url);
    let begun = here.run(&["a2a", "send", &slow, "x", "--no-wait"]).ok();
    let cancelled = here.run(&["a2a", "cancel", &slow, begun.trim()]).ok();
    assert_eq!(cancelled, format!("{}\tcanceled\n", begun.trim()));
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_learn_by_the_code_how_it_ended() {
    // A2A-1
    let there = far();
    let there = there.serve();
    let url = |agent: &str| format!("{}/agents/{agent}", there.url);
    let here = home().with("ADJUTANT_TOKEN", TOKEN).with("KEY", &format!("Bearer {TOKEN}"));
    for (arguments, code) in [
        (vec!["send", &url("broken"), "x"], 1),
        (vec!["send", &url("cat")], 2),
        (vec!["send", &url("cat"), "--data", "{"], 2),
        (vec!["card", "ftp://x"], 2),
        (vec!["list", &url("cat"), "--status", "asleep"], 2),
        (vec!["card", &url("nobody")], 3),
        (vec!["get", &url("cat"), "00000000-0000-4000-8000-000000000000"], 3),
        (vec!["card", "http://127.0.0.1:1/"], 8),
        // The token for our own server is not shown to others.
        (vec!["send", &url("locked"), "x"], 9),
        (vec!["send", &url("locked"), "x", "--token", "another-one"], 9),
        (vec!["send", &url("locked"), "x", "--token", TOKEN], 0),
        (vec!["send", &url("locked"), "x", "--token", "env:ADJUTANT_TOKEN"], 0),
        (vec!["send", &url("locked"), "x", "--header", "Authorization=env:KEY"], 0),
        (vec!["send", &url("slow"), "x", "--timeout", "1"], 124),
    ] {
        let ran = here.run(&[&["a2a"], &arguments[..]].concat());
        assert_eq!(ran.code(), code, "{arguments:?}: {}{}", ran.out(), ran.err());
        assert!(!ran.err().contains(TOKEN) && !ran.err().contains("another-one"), "{}", ran.err());
    }
    assert!(std::fs::read_dir(here.path()).unwrap().next().is_none(), "nothing is written");
}
