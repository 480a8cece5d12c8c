//! Commands that start external servers, and stop them at their end.

use std::time::{Duration, Instant};

use super::{ExternalServer, Fixture, Library, is_running, wait_for_exit};
use crate::home;

const NO_BUILT_IN_TASKS: &str = "[tasks]\ntool_names = \"none\"\n";

#[test]
fn chat_without_a_server_uses_mcp_servers() {
    // TASK-3, OPS-4
    for library in [Library::FastMcp, Library::OldMcp] {
        let external = ExternalServer::on_stdio(library);
        let home = home().with_config(&format!("{NO_BUILT_IN_TASKS}{}", external.config_lines("")));
        let reply = home.run(&["chat", "add buy milk"]).ok();
        assert!(reply.contains("Added 'buy milk'"), "{reply}");
        assert_eq!(external.tasks().len(), 1);
        assert!(external.pids().iter().all(|pid| !is_running(*pid)), "{library:?}");
        let question = home.run(&["chat", "delete milk"]);
        assert_eq!((question.code(), external.tasks().len()), (4, 1), "{}{}", question.out(), question.err());
        home.run(&["chat", "--yes", "delete milk"]).ok();
        assert!(external.tasks().is_empty());
        assert!(external.pids().iter().all(|pid| !is_running(*pid)), "{library:?}");
    }
}

#[tokio::test]
async fn mcp_servers_end_when_adjutant_is_killed() {
    // OPS-4
    for library in [Library::FastMcp, Library::OldMcp, Library::TypeScript] {
        let mut fixture = Fixture::with_offline_model(ExternalServer::on_stdio(library)).await;
        let pid = *fixture.external.pids().last().unwrap();
        assert!(is_running(pid));
        fixture.server.kill();
        wait_for_exit(pid).await;
    }
}

#[tokio::test]
async fn mcp_servers_end_when_adjutant_is_stopped() {
    // OPS-4
    let mut fixture = Fixture::with_offline_model(ExternalServer::on_stdio(Library::FastMcp)).await;
    let pid = *fixture.external.pids().last().unwrap();
    assert_eq!(fixture.server.stop(), 0);
    assert!(!is_running(pid));
}

#[test]
fn doctor_starts_mcp_servers() {
    // OPS-2
    let external = ExternalServer::on_stdio(Library::FastMcp);
    let legacy = ExternalServer::on_stdio(Library::OldMcp);
    let second = legacy.config_lines("").replace("\"todos\"", "\"tasks\"");
    let home = home().with_config(&format!("{}{second}", external.config_lines("")));
    let report = home.run(&["doctor", "--json"]).json();
    let found: Vec<&str> = report["checks"].as_array().unwrap().iter().filter_map(|c| c["detail"].as_str()).collect();
    let reports = |name: &str, words: &str| found.iter().any(|line| line.starts_with(name) && line.ends_with(words));
    assert!(reports("todos (", ": ready, 10 tools, protocol 2026-07-28"), "{report}");
    assert!(reports("tasks (", ": ready, 6 tools, protocol 2025-11-25"), "{report}");
    assert_eq!(report["ok"], true);
    assert!(external.pids().iter().chain(&legacy.pids()).all(|pid| !is_running(*pid)));
}

#[test]
fn doctor_limits_the_wait_for_mcp_servers() {
    // OPS-2
    let config = "[[mcp_servers]]\nname = \"silent\"\ncommand = \"sleep\"\nargs = [\"600\"]\nstart_timeout_seconds = 2\n\
                  [[mcp_servers]]\nname = \"absent\"\ncommand = \"no-such-program\"\n\
                  [[mcp_servers]]\nname = \"closed\"\nurl = \"http://127.0.0.1:9/mcp\"\n";
    let home = home().with_config(config);
    let started = Instant::now();
    let ran = home.run(&["doctor", "--json"]);
    assert!(started.elapsed() < Duration::from_secs(40), "{:?}", started.elapsed());
    assert_eq!(ran.code(), 1, "{}{}", ran.out(), ran.err());
    let report = ran.json();
    let failed = report["checks"].as_array().unwrap().iter().filter(|check| check["ok"] == false);
    let failed: Vec<_> = failed.map(|check| check["detail"].as_str().unwrap().split(' ').next().unwrap()).collect();
    assert_eq!(failed, ["silent", "absent", "closed"], "{report}");
}
