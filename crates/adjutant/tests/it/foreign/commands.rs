//! Commands that start servers of others by themselves, and what is left of them afterwards: nothing.

use std::time::{Duration, Instant};

use super::{Library, Peer, Stage, is_running, until_gone};
use crate::home;

const NONE: &str = "[tasks]\ntool_names = \"none\"\n";

#[test]
fn chat_without_a_server_uses_them() {
    // TASK-3, OPS-4
    for library in [Library::FastMcp, Library::OldMcp] {
        let peer = Peer::on_stdio(library);
        let home = home().configured(&format!("{NONE}{}", peer.configured("")));
        let said = home.run(&["chat", "add buy milk"]).ok();
        assert!(said.contains("Added 'buy milk'"), "{said}");
        assert_eq!(peer.tasks().len(), 1);
        assert!(peer.pids().iter().all(|pid| !is_running(*pid)), "{library:?}");
        let asked = home.run(&["chat", "delete milk"]);
        assert_eq!((asked.code(), peer.tasks().len()), (4, 1), "{}{}", asked.out(), asked.err());
        home.run(&["chat", "--yes", "delete milk"]).ok();
        assert!(peer.tasks().is_empty());
        assert!(peer.pids().iter().all(|pid| !is_running(*pid)), "{library:?}");
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_killed_program() {
    // OPS-4
    for library in [Library::FastMcp, Library::OldMcp, Library::TypeScript] {
        let mut stage = Stage::alone(Peer::on_stdio(library)).await;
        let pid = *stage.peer.pids().last().unwrap();
        assert!(is_running(pid));
        stage.server.kill();
        until_gone(pid).await;
    }
}

#[tokio::test]
async fn a_program_that_is_stopped_takes_them_along() {
    // OPS-4
    let mut stage = Stage::alone(Peer::on_stdio(Library::FastMcp)).await;
    let pid = *stage.peer.pids().last().unwrap();
    assert_eq!(stage.server.stop(), 0);
    assert!(!is_running(pid));
}

#[test]
fn the_doctor_really_starts_them() {
    // OPS-2
    let peer = Peer::on_stdio(Library::FastMcp);
    let old = Peer::on_stdio(Library::OldMcp);
    let second = old.configured("").replace("\"todos\"", "\"tasks\"");
    let home = home().configured(&format!("{}{second}", peer.configured("")));
    let report = home.run(&["doctor", "--json"]).json();
    let found: Vec<&str> = report["checks"].as_array().unwrap().iter().filter_map(|c| c["detail"].as_str()).collect();
    let says = |name: &str, words: &str| found.iter().any(|line| line.starts_with(name) && line.ends_with(words));
    assert!(says("todos (", ": ready, 10 tools, protocol 2026-07-28"), "{report}");
    assert!(says("tasks (", ": ready, 6 tools, protocol 2025-11-25"), "{report}");
    assert_eq!(report["ok"], true);
    assert!(peer.pids().iter().chain(&old.pids()).all(|pid| !is_running(*pid)));
}

#[test]
fn the_doctor_does_not_wait_for_ever() {
    // OPS-2
    let config = "[[mcp_servers]]\nname = \"silent\"\ncommand = \"sleep\"\nargs = [\"600\"]\nstart_timeout_seconds = 2\n\
                  [[mcp_servers]]\nname = \"absent\"\ncommand = \"no-such-program\"\n\
                  [[mcp_servers]]\nname = \"closed\"\nurl = \"http://127.0.0.1:9/mcp\"\n";
    let home = home().configured(config);
    let began = Instant::now();
    let ran = home.run(&["doctor", "--json"]);
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    assert_eq!(ran.code(), 1, "{}{}", ran.out(), ran.err());
    let report = ran.json();
    let bad = report["checks"].as_array().unwrap().iter().filter(|check| check["ok"] == false);
    let bad: Vec<_> = bad.map(|check| check["detail"].as_str().unwrap().split(' ').next().unwrap()).collect();
    assert_eq!(bad, ["silent", "absent", "closed"], "{report}");
}
