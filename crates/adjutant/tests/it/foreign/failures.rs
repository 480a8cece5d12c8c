//! Servers of others that die, hang or never start: the stream says so, everything else works, and they come back by
//! themselves (RES-1, RES-2).

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use testkit::llm::Reply;

use super::{Library, Peer, Stage, health, say, until, until_gone};
use crate::home;

fn kill_process(pid: u32) {
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL).unwrap();
}

#[tokio::test]
async fn what_is_down_is_named_and_the_rest_works() {
    // RES-2
    let mut peer = Peer::over_http(Library::FastMcp);
    let home = home().configured(&peer.configured(""));
    let stage = Stage::start(home, Peer::on_stdio(Library::FastMcp), None).await;
    peer.kill();
    // A call, or the stream that ended, makes it notice.
    until("the loss", async || {
        let phase = stage.health().await["phase"].clone();
        (phase != "ready").then_some(())
    })
    .await;
    let turn = stage.say("add buy milk").await;
    assert_eq!(turn.errors(), [("mcp_unavailable", true)], "{turn:?}");
    let message = turn.of("error").next().unwrap()["message"].as_str().unwrap();
    assert_eq!(message, "MCP service temporarily unavailable: todos. Please try again in a moment.");
    assert_eq!(turn.output(), "Got it! Added 'buy milk' to your list. Anything else?");
    assert!(turn.succeeded());
    let down = stage.health().await;
    assert_eq!((&down["status"], &down["tools"]), (&json!("unavailable"), &json!(0)), "{down}");
    peer.start();
    stage.until_phase("ready").await;
    assert!(stage.say("show my tasks").await.errors().is_empty());
}

#[tokio::test]
async fn a_program_that_was_killed_is_started_again() {
    // RES-2, TASK-3
    let stage = Stage::alone(Peer::on_stdio(Library::FastMcp)).await;
    stage.say("add buy milk").await;
    let first = *stage.peer.pids().last().unwrap();
    kill_process(first);
    stage.server.logged("mcp_server_down").await;
    let lost = stage.say("add buy bread").await;
    assert_eq!(lost.errors().first(), Some(&("mcp_unavailable", true)), "{lost:?}");
    assert!(stage.peer.asked("create_todo").len() == 1, "{lost:?}");
    let second = until("another process", async || stage.peer.pids().last().copied().filter(|pid| *pid != first)).await;
    stage.until_phase("ready").await;
    assert_eq!(stage.say("show my tasks").await.output(), "You have 1 task:\n1. ☐ buy milk");
    assert_ne!(first, second);
}

#[tokio::test]
async fn a_tool_that_takes_its_server_down_is_not_called_twice() {
    // RES-2
    let stage = Stage::beside(Peer::on_stdio(Library::FastMcp), "", "never_ask = [\"*\"]\n").await;
    stage.llm().script([
        Reply::call("fall_over", json!({})),
        Reply::call("add_task", json!({"title": "milk"})),
        Reply::text("That went wrong, but milk is on the list."),
    ]);
    let turn = stage.say("fall over and add milk").await;
    assert_eq!(turn.calls(), [("fall_over", "failed"), ("add_task", "completed")], "{turn:?}");
    assert_eq!(stage.peer.asked("fall_over").len(), 1);
    let told = &stage.llm().requests()[1].tool_results()[0];
    assert!(told.contains("todos"), "{told}");
    until("another process", async || (stage.peer.pids().len() == 2).then_some(())).await;
    stage.until_phase("ready").await;
    assert_eq!(stage.peer.asked("fall_over").len(), 1);
}

#[tokio::test]
async fn after_five_failures_it_is_left_alone() {
    // RES-1
    let more = "never_ask = [\"*\"]\ncall_timeout_seconds = 1\n";
    let stage = Stage::beside(Peer::on_stdio(Library::FastMcp), "", more).await;
    let ponder = || Reply::call("ponder", json!({"seconds": 60}));
    let began = Instant::now();
    stage.llm().script([ponder(), ponder(), ponder(), ponder(), Reply::text("It takes too long.")]);
    let turn = stage.say("ponder").await;
    assert_eq!(turn.calls(), [("ponder", "failed"); 4], "{turn:?}");
    assert!(began.elapsed() >= Duration::from_secs(4) && began.elapsed() < Duration::from_secs(25));
    assert_eq!(stage.health().await["circuit_breaker"]["failure_count"], 4);
    stage.llm().script([ponder(), ponder(), Reply::text("It takes too long.")]);
    let turn = stage.say("ponder again").await;
    assert_eq!(stage.peer.asked("ponder").len(), 5, "the sixth did not reach it: {turn:?}");

    let health = stage.health().await;
    assert_eq!((&health["status"], &health["circuit_breaker"]["state"]), (&json!("unavailable"), &json!("open")));
    let metrics = stage.server.get("/metrics").await.text().await.unwrap();
    assert!(metrics.contains("circuit_breaker_state{service=\"mcp_server:todos\"} 1"), "{metrics}");
    let opened = stage.server.logged("circuit_breaker_opened").await;
    let details = &opened["details"];
    assert_eq!((&details["service"], &details["failure_count"]), (&json!("mcp_server:todos"), &json!(5)), "{opened}");
    stage.llm().script([Reply::call("add_task", json!({"title": "milk"})), Reply::text("Added.")]);
    let turn = stage.say("add milk").await;
    assert_eq!((turn.errors(), turn.calls()), (vec![("mcp_unavailable", true)], vec![("add_task", "completed")]));
}

#[tokio::test]
async fn a_server_that_never_starts_delays_nobody() {
    // RES-2
    let config = "[[mcp_servers]]\nname = \"silent\"\ncommand = \"sleep\"\nargs = [\"600\"]\n\
                  [[mcp_servers]]\nname = \"absent\"\ncommand = \"no-such-program\"\n";
    let home = home().configured(config);
    let began = Instant::now();
    let mut server = home.serve();
    let turn = say(&server, "add buy milk").await;
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(turn.output(), "Got it! Added 'buy milk' to your list. Anything else?");
    assert_eq!(turn.errors(), [("mcp_unavailable", true)], "{turn:?}");
    assert_eq!(health(&server).await["phase"], "starting");
    let down = server.logged("mcp_server_down").await;
    assert_eq!(down["details"]["server"], "absent", "{down}");
    let stopping = Instant::now();
    assert_eq!(server.stop(), 0);
    assert!(stopping.elapsed() < Duration::from_secs(15));
}

#[tokio::test]
async fn a_hangup_brings_and_takes_servers() {
    // TASK-3
    let peer = Peer::on_stdio(Library::FastMcp);
    let home = home().configured("");
    let server = home.serve();
    let servers = async || {
        let health: Value = server.get("/health").await.json().await.unwrap();
        health["dependencies"]["mcp_servers"].as_array().unwrap().clone()
    };
    assert!(servers().await.is_empty());
    home.write_config(&peer.configured(""));
    server.signal(Signal::SIGHUP);
    until("the server", async || servers().await.first().filter(|server| server["phase"] == "ready").cloned()).await;
    let pid = *peer.pids().last().unwrap();
    // The same settings: it stays as it is.
    server.signal(Signal::SIGHUP);
    until("the second reading", async || (server.raw_log().matches("config_reloaded").count() >= 2).then_some(()))
        .await;
    assert_eq!(peer.pids(), [pid]);
    home.write_config("");
    server.signal(Signal::SIGHUP);
    until("its end", async || servers().await.is_empty().then_some(())).await;
    until_gone(pid).await;
}
