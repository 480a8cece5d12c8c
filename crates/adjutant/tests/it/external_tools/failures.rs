//! External servers that die, hang or never start. The stream reports them, all other functions work, and the servers
//! recover (RES-1, RES-2).

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use testkit::llm::Reply;

use super::{ExternalServer, Fixture, Library, health, send, wait_for_exit, wait_until};
use crate::home;

fn kill_process(pid: u32) {
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL).unwrap();
}

#[tokio::test]
async fn a_failed_server_is_named_and_other_tools_work() {
    // RES-2
    let trusted = "trust = true\n";
    let mut fixture = Fixture::with_scripted_model(ExternalServer::over_http(Library::FastMcp), "", trusted).await;
    fixture.external.kill();
    // The failure is not detected yet.
    fixture.llm().script([
        Reply::call("list_todos", json!({})),
        Reply::call("add_task", json!({"title": "milk"})),
        Reply::text("The others are away, but milk is on the list."),
    ]);
    let turn = fixture.send("add milk and show me the others").await;
    assert_eq!(turn.calls(), [("list_todos", "failed"), ("add_task", "completed")], "{turn:?}");
    fixture.wait_for_phase("down").await;
    fixture.llm().script([Reply::call("add_task", json!({"title": "bread"})), Reply::text("Added.")]);
    let turn = fixture.send("add bread").await;
    assert_eq!((turn.errors(), turn.calls()), (vec![("mcp_unavailable", true)], vec![("add_task", "completed")]));
    let message = turn.events_named("error").next().unwrap()["message"].as_str().unwrap();
    assert_eq!(message, "MCP service temporarily unavailable: todos. Please try again in a moment.");
    assert!(turn.succeeded());
    let offered = fixture.llm().requests().last().unwrap().tool_names();
    assert!(!offered.iter().any(|tool| tool == "list_todos"), "{offered:?}");
    let down = fixture.health().await;
    assert_eq!((&down["status"], &down["tools"]), (&json!("unavailable"), &json!(0)), "{down}");
    let metrics = fixture.server.get("/metrics").await.text().await.unwrap();
    assert!(metrics.contains("adjutant_mcp_server_ready{service=\"todos\"} 0"), "{metrics}");
    fixture.external.start();
    fixture.wait_for_phase("ready").await;
    fixture.llm().script([Reply::call("list_todos", json!({})), Reply::text("They are back.")]);
    let turn = fixture.send("show me the others").await;
    assert_eq!((turn.errors(), turn.calls()), (vec![], vec![("list_todos", "completed")]));
}

#[tokio::test]
async fn a_killed_server_is_restarted() {
    // RES-2, TASK-3
    let fixture = Fixture::with_offline_model(ExternalServer::on_stdio(Library::FastMcp)).await;
    fixture.send("add buy milk").await;
    let first = *fixture.external.pids().last().unwrap();
    kill_process(first);
    fixture.server.wait_for_event("mcp_server_down").await;
    let lost = fixture.send("add buy bread").await;
    assert_eq!(lost.errors().first(), Some(&("mcp_unavailable", true)), "{lost:?}");
    assert!(fixture.external.calls_of("create_todo").len() == 1, "{lost:?}");
    let second =
        wait_until("another process", async || fixture.external.pids().last().copied().filter(|pid| *pid != first))
            .await;
    fixture.wait_for_phase("ready").await;
    assert_eq!(fixture.send("show my tasks").await.output(), "You have 1 task:\n1. ☐ buy milk");
    assert_ne!(first, second);
}

#[tokio::test]
async fn a_tool_that_crashes_its_server_is_not_called_twice() {
    // RES-2
    let fixture =
        Fixture::with_scripted_model(ExternalServer::on_stdio(Library::FastMcp), "", "never_ask = [\"*\"]\n").await;
    fixture.llm().script([
        Reply::call("fall_over", json!({})),
        Reply::call("add_task", json!({"title": "milk"})),
        Reply::text("That went wrong, but milk is on the list."),
    ]);
    let turn = fixture.send("fall over and add milk").await;
    assert_eq!(turn.calls(), [("fall_over", "failed"), ("add_task", "completed")], "{turn:?}");
    assert_eq!(fixture.external.calls_of("fall_over").len(), 1);
    let result = &fixture.llm().requests()[1].tool_results()[0];
    assert!(result.contains("todos"), "{result}");
    wait_until("another process", async || (fixture.external.pids().len() == 2).then_some(())).await;
    fixture.wait_for_phase("ready").await;
    assert_eq!(fixture.external.calls_of("fall_over").len(), 1);
}

#[tokio::test]
async fn five_failures_open_the_circuit_breaker() {
    // RES-1
    let extra = "never_ask = [\"*\"]\ncall_timeout_seconds = 1\n";
    let fixture = Fixture::with_scripted_model(ExternalServer::on_stdio(Library::FastMcp), "", extra).await;
    let ponder = || Reply::call("ponder", json!({"seconds": 60}));
    let started = Instant::now();
    fixture.llm().script([ponder(), ponder(), ponder(), ponder(), Reply::text("It takes too long.")]);
    let turn = fixture.send("ponder").await;
    assert_eq!(turn.calls(), [("ponder", "failed"); 4], "{turn:?}");
    assert!(started.elapsed() >= Duration::from_secs(4) && started.elapsed() < Duration::from_secs(25));
    assert_eq!(fixture.health().await["circuit_breaker"]["failure_count"], 4);
    fixture.llm().script([ponder(), ponder(), Reply::text("It takes too long.")]);
    let turn = fixture.send("ponder again").await;
    assert_eq!(fixture.external.calls_of("ponder").len(), 5, "the sixth call did not reach the server: {turn:?}");

    let health = fixture.health().await;
    assert_eq!((&health["status"], &health["circuit_breaker"]["state"]), (&json!("unavailable"), &json!("open")));
    let metrics = fixture.server.get("/metrics").await.text().await.unwrap();
    assert!(metrics.contains("circuit_breaker_state{service=\"mcp_server:todos\"} 2"), "{metrics}");
    let opened = fixture.server.wait_for_event("circuit_breaker_opened").await;
    let details = &opened["details"];
    assert_eq!((&details["service"], &details["failure_count"]), (&json!("mcp_server:todos"), &json!(5)), "{opened}");
    fixture.llm().script([Reply::call("add_task", json!({"title": "milk"})), Reply::text("Added.")]);
    let turn = fixture.send("add milk").await;
    assert_eq!((turn.errors(), turn.calls()), (vec![("mcp_unavailable", true)], vec![("add_task", "completed")]));
}

#[tokio::test]
async fn a_server_that_never_starts_does_not_delay_turns() {
    // RES-2
    let config = "[[mcp_servers]]\nname = \"silent\"\ncommand = \"sleep\"\nargs = [\"600\"]\n\
                  [[mcp_servers]]\nname = \"absent\"\ncommand = \"no-such-program\"\n";
    let home = home().with_config(config);
    let started = Instant::now();
    let mut server = home.serve();
    let turn = send(&server, "add buy milk").await;
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    assert_eq!(turn.output(), "Got it! Added 'buy milk' to your list. Anything else?");
    assert_eq!(turn.errors(), [("mcp_unavailable", true)], "{turn:?}");
    assert_eq!(health(&server, None).await["phase"], "starting");
    let down = server.wait_for_event("mcp_server_down").await;
    assert_eq!(down["details"]["server"], "absent", "{down}");
    let stopping = Instant::now();
    assert_eq!(server.stop(), 0);
    assert!(stopping.elapsed() < Duration::from_secs(15));
}

#[tokio::test]
async fn sighup_starts_and_stops_servers() {
    // AGENT-2, TASK-3
    let external = ExternalServer::on_stdio(Library::FastMcp);
    let home = home().with_config("");
    let server = home.serve();
    let servers = async || {
        let health: Value = server.get("/health").await.json().await.unwrap();
        health["dependencies"]["mcp_servers"].as_array().unwrap().clone()
    };
    assert!(servers().await.is_empty());
    home.write_config(&external.config_lines(""));
    server.signal(Signal::SIGHUP);
    wait_until("the server", async || servers().await.first().filter(|server| server["phase"] == "ready").cloned())
        .await;
    let pid = *external.pids().last().unwrap();
    // Unchanged settings do not restart the server.
    server.signal(Signal::SIGHUP);
    wait_until("the second reading", async || {
        (server.raw_log().matches("configuration_reloaded").count() >= 2).then_some(())
    })
    .await;
    assert_eq!(external.pids(), [pid]);
    home.write_config("");
    server.signal(Signal::SIGHUP);
    wait_until("its end", async || servers().await.is_empty().then_some(())).await;
    wait_for_exit(pid).await;
}
