//! `[[schedules]]` in the configuration file.

use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::json;

use super::{AGENTS, get, path, send, wait_until};
use crate::home;

const TIDY: &str = "[[schedules]]\nname = \"tidy\"\nagent_id = \"cat\"\ncron_expression = \"0 17 * * FRI\"\n\
                    time_zone = \"Asia/Tokyo\"\ninput_parameters = { input = \"Tidy the changelog.\", depth = 2 }\n";

#[tokio::test]
async fn schedules_follow_the_configuration_file() {
    // SCHED-2
    let home = home().with_config(&format!("{AGENTS}{TIDY}"));
    let server = home.serve();
    let list = wait_until(&server, "/api/schedules", "there", |body| body["count"] == 1).await;
    let schedule = &list["schedules"][0];
    assert_eq!((&schedule["source"], &schedule["time_zone"]), (&json!("file"), &json!("Asia/Tokyo")));
    assert_eq!(schedule["input_parameters"], json!({"input": "Tidy the changelog.", "depth": 2}));
    // Schedules of the file can be paused and run, but not changed.
    let patch = json!({"every": "1h"});
    assert_eq!(send(&server, None, Method::PATCH, &path(schedule, ""), Some(&patch)).await.0, 409);
    assert_eq!(send(&server, None, Method::DELETE, &path(schedule, ""), None).await.0, 409);
    assert_eq!(send(&server, None, Method::POST, &path(schedule, "/pause"), None).await.0, 200);

    home.write_config(&format!("{AGENTS}{}", TIDY.replace("FRI", "MON")));
    server.signal(Signal::SIGHUP);
    let changed =
        wait_until(&server, &path(schedule, ""), "changed", |body| body["cron_expression"] == "0 17 * * MON").await;
    assert_eq!(changed["state"], "paused", "a paused schedule stays paused");
    home.write_config(AGENTS);
    server.signal(Signal::SIGHUP);
    wait_until(&server, "/api/schedules", "empty", |body| body["count"] == 0).await;
}

#[tokio::test]
async fn commands_without_a_server_do_not_apply_the_file() {
    let home = home().with_config(&format!("{AGENTS}{TIDY}"));
    let mut server = home.serve();
    wait_until(&server, "/api/schedules", "there", |body| body["count"] == 1).await;
    server.stop();
    home.write_config(AGENTS);
    assert_eq!(home.run(&["schedules", "list", "-q"]).ok().lines().count(), 1, "only a server applies the file");
    let server = home.serve();
    wait_until(&server, "/api/schedules", "empty", |body| body["count"] == 0).await;
    assert_eq!(get(&server, "/api/schedules").await["count"], 0);
}

#[test]
fn errors_are_reported_with_their_lines() {
    let wrong = "[[schedules]]\nname = \"a\"\nagent_id = \"cat\"\ncron = \"0 9 * * *\"\n\
                 [[schedules]]\nname = \"b\"\nagent_id = \"cat\"\ncron_expression = \"0 9 31 2 *\"\n\
                 [[schedules]]\nname = \"c\"\nagent_id = \"cat\"\nevery = \"1h\"\n\
                 [[schedules]]\nname = \"C\"\nagent_id = \"cat\"\nevery = \"1h\"\noverlap = \"often\"\n\
                 [[schedules]]\nname = \"C\"\nagent_id = \"cat\"\nevery = \"1h\"\n";
    let home = home().with_config(wrong).with_env("ADJUTANT_SCHEDULES__NAME", "x");
    let check = home.run(&["config", "check"]);
    assert_eq!(check.code(), 2);
    for line in [
        "config.toml:4: schedules[a].cron",
        "did you mean cron_expression?",
        "config.toml:8: schedules[b].cron_expression",
        "config.toml:17: schedules[C].overlap",
        "config.toml:19: schedules[C].name is already used by the schedule at",
        "config.toml:3: schedules[a].agent_id must be the id of an agent; there is no agent 'cat'",
        "schedules must be in the file, as [[schedules]]",
    ] {
        assert!(check.out().contains(line), "{line}\n{}", check.out());
    }
}

#[tokio::test]
async fn schedules_require_a_known_agent() {
    // SCHED-2
    let misspelt = TIDY.replace("\"cat\"", "\"cta\"");
    let wrong = "schedules[tidy].agent_id must be the id of an agent; there is no agent 'cta'; did you mean cat?";
    let home = home().with_config(&format!("{AGENTS}{misspelt}"));
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

    // A registered agent is known, with and without a server.
    home.run(&["agents", "add", "--id", "cta", "--executable", "cat"]).ok();
    home.run(&["config", "check"]).ok();
    let server = home.serve();
    home.run(&["config", "check"]).ok();
    let list = wait_until(&server, "/api/schedules", "there", |body| body["count"] == 1).await;
    assert_eq!(list["schedules"][0]["agent_id"], "cta");

    // A rejected reload changes nothing. An agent that is removed from the file is unknown.
    let without = AGENTS.replace("\"cat\"", "\"dog\"");
    home.write_config(&format!("{without}{TIDY}"));
    server.signal(Signal::SIGHUP);
    server.wait_for_event("configuration_rejected").await;
    let message = "schedules[tidy].agent_id must be the id of an agent; there is no agent 'cat'; did you mean cta?";
    assert!(server.raw_log().contains(message), "{}", server.raw_log());
    assert_eq!(get(&server, "/api/schedules").await["schedules"][0]["agent_id"], "cta");
    assert_eq!(get(&server, "/api/agents/cat").await["id"], "cat");
    home.write_config(&format!("{AGENTS}{}", TIDY.replace("\"cat\"", "\"assistant\"")));
    server.signal(Signal::SIGHUP);
    wait_until(&server, "/api/schedules", "changed", |body| body["schedules"][0]["agent_id"] == "assistant").await;
}

#[test]
fn config_show_lists_schedules() {
    let home = home().with_config(&format!("{AGENTS}{TIDY}enabled = false\n"));
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
