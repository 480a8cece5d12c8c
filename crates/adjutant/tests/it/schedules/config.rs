//! `[[schedules]]` in the configuration file.

use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::json;

use super::{AGENTS, get, path, send, until};
use crate::home;

const TIDY: &str = "[[schedules]]\nname = \"tidy\"\nagent_id = \"cat\"\ncron_expression = \"0 17 * * FRI\"\n\
                    time_zone = \"Asia/Tokyo\"\ninput_parameters = { input = \"Tidy the changelog.\", depth = 2 }\n";

#[tokio::test]
async fn they_come_and_go_with_the_file() {
    // SCHED-2
    let home = home().configured(&format!("{AGENTS}{TIDY}"));
    let server = home.serve();
    let list = until(&server, "/api/schedules", "there", |body| body["count"] == 1).await;
    let schedule = &list["schedules"][0];
    assert_eq!((&schedule["source"], &schedule["time_zone"]), (&json!("file"), &json!("Asia/Tokyo")));
    assert_eq!(schedule["input_parameters"], json!({"input": "Tidy the changelog.", "depth": 2}));
    // It can be paused and run, but not changed.
    let patch = json!({"every": "1h"});
    assert_eq!(send(&server, None, Method::PATCH, &path(schedule, ""), Some(&patch)).await.0, 409);
    assert_eq!(send(&server, None, Method::DELETE, &path(schedule, ""), None).await.0, 409);
    assert_eq!(send(&server, None, Method::POST, &path(schedule, "/pause"), None).await.0, 200);

    home.write_config(&format!("{AGENTS}{}", TIDY.replace("FRI", "MON")));
    server.signal(Signal::SIGHUP);
    let changed =
        until(&server, &path(schedule, ""), "changed", |body| body["cron_expression"] == "0 17 * * MON").await;
    assert_eq!(changed["state"], "paused", "what somebody has paused stays so");
    home.write_config(AGENTS);
    server.signal(Signal::SIGHUP);
    until(&server, "/api/schedules", "empty", |body| body["count"] == 0).await;
}

#[tokio::test]
async fn a_command_without_a_server_leaves_them_alone() {
    let home = home().configured(&format!("{AGENTS}{TIDY}"));
    let mut server = home.serve();
    until(&server, "/api/schedules", "there", |body| body["count"] == 1).await;
    server.stop();
    home.write_config(AGENTS);
    assert_eq!(home.run(&["schedules", "list", "-q"]).ok().lines().count(), 1, "only a server takes the file in");
    let server = home.serve();
    until(&server, "/api/schedules", "gone", |body| body["count"] == 0).await;
    assert_eq!(get(&server, "/api/schedules").await["count"], 0);
}

#[test]
fn mistakes_are_named_with_their_lines() {
    let wrong = "[[schedules]]\nname = \"a\"\nagent_id = \"cat\"\ncron = \"0 9 * * *\"\n\
                 [[schedules]]\nname = \"b\"\nagent_id = \"cat\"\ncron_expression = \"0 9 31 2 *\"\n\
                 [[schedules]]\nname = \"c\"\nagent_id = \"cat\"\nevery = \"1h\"\n\
                 [[schedules]]\nname = \"C\"\nagent_id = \"cat\"\nevery = \"1h\"\noverlap = \"often\"\n\
                 [[schedules]]\nname = \"C\"\nagent_id = \"cat\"\nevery = \"1h\"\n";
    let home = home().configured(wrong).with("ADJUTANT_SCHEDULES__NAME", "x");
    let check = home.run(&["config", "check"]);
    assert_eq!(check.code(), 2);
    for line in [
        "config.toml:4: schedules[a].cron",
        "did you mean cron_expression?",
        "config.toml:8: schedules[b].cron_expression",
        "config.toml:17: schedules[C].overlap",
        "config.toml:19: schedules[C].name is taken by the schedule at",
        "config.toml:3: schedules[a].agent_id must be an agent: there is none called 'cat'",
        "schedules stand in the file, as [[schedules]]",
    ] {
        assert!(check.out().contains(line), "{line}\n{}", check.out());
    }
}

#[tokio::test]
async fn the_agent_of_each_is_known() {
    // SCHED-2
    let misspelt = TIDY.replace("\"cat\"", "\"cta\"");
    let wrong = "schedules[tidy].agent_id must be an agent: there is none called 'cta'; did you mean cat?";
    let home = home().configured(&format!("{AGENTS}{misspelt}"));
    let check = home.run(&["config", "check"]);
    assert_eq!(check.code(), 2);
    let line = AGENTS.lines().count() + 3;
    assert_eq!(check.out().lines().count(), 1, "{}", check.out());
    assert!(check.out().contains(&format!("config.toml:{line}: {wrong}")), "{}", check.out());
    let serve = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(serve.code(), 2);
    assert!(serve.err().contains(&format!("config.toml:{line}: {wrong}")), "{}", serve.err());
    assert!(home.run(&["doctor"]).out().contains(wrong));
    home.run(&["tasks", "list"]).ok();

    // An agent that is registered is known, with and without a server.
    home.run(&["agents", "add", "--id", "cta", "--executable", "cat"]).ok();
    home.run(&["config", "check"]).ok();
    let server = home.serve();
    home.run(&["config", "check"]).ok();
    let list = until(&server, "/api/schedules", "there", |body| body["count"] == 1).await;
    assert_eq!(list["schedules"][0]["agent_id"], "cta");

    // At a reload nothing changes; an agent that leaves the file is not known any more.
    let without = AGENTS.replace("\"cat\"", "\"dog\"");
    home.write_config(&format!("{without}{TIDY}"));
    server.signal(Signal::SIGHUP);
    server.logged("configuration_rejected").await;
    let said = "schedules[tidy].agent_id must be an agent: there is none called 'cat'; did you mean cta?";
    assert!(server.raw_log().contains(said), "{}", server.raw_log());
    assert_eq!(get(&server, "/api/schedules").await["schedules"][0]["agent_id"], "cta");
    assert_eq!(get(&server, "/api/agents/cat").await["id"], "cat");
    home.write_config(&format!("{AGENTS}{}", TIDY.replace("\"cat\"", "\"assistant\"")));
    server.signal(Signal::SIGHUP);
    until(&server, "/api/schedules", "changed", |body| body["schedules"][0]["agent_id"] == "assistant").await;
}

#[test]
fn they_are_shown() {
    let home = home().configured(&format!("{AGENTS}{TIDY}enabled = false\n"));
    home.run(&["config", "check"]).ok();
    let shown = home.run(&["config", "show"]).ok();
    assert!(shown.contains("schedules[tidy]\tcat, 0 17 * * FRI in Asia/Tokyo\t"), "{shown}");
    let shown = home.run(&["config", "show", "--json"]).json()["schedules"][0].clone();
    assert_eq!((&shown["settings"]["name"], &shown["enabled"]), (&json!("tidy"), &json!(false)));
    let init = crate::home();
    init.run(&["config", "init"]).ok();
    let written = std::fs::read_to_string(init.path().join("config.toml")).unwrap();
    assert!(written.contains("# [[schedules]]"), "{written}");
}
