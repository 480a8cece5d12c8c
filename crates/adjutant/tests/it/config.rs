//! `adjutant config`, and the configuration of a running server.

use nix::sys::signal::Signal;

use crate::{SECRET, home, home_with_auth};

#[test]
fn config_can_be_initialized_checked_and_shown() {
    let home = home().with_env("ADJUTANT_SERVER__REQUEST_TIMEOUT_SECONDS", "7").with_env("TEST_SECRET", SECRET);
    home.run(&["config", "init"]).ok();
    assert_eq!(home.run(&["config", "init"]).code(), 7, "an existing file is left alone");
    home.run(&["config", "check"]).ok();
    home.write_config("[auth]\njwt_secret = \"env:TEST_SECRET\"\n");
    let shown = home.run(&["config", "show"]).ok();
    assert!(shown.contains("server.request_timeout_seconds\t7\tADJUTANT_SERVER__REQUEST_TIMEOUT_SECONDS"), "{shown}");
    assert!(shown.contains("auth.jwt_secret\tenv:TEST_SECRET\t") && shown.contains("config.toml:2"), "{shown}");
    assert!(!shown.contains(SECRET));
}

#[test]
fn models_and_mcp_servers_are_shown_without_secrets() {
    // MODEL-2: port 9 (discard) is closed.
    let file = "[model]\nfallback = []\n[[mcp_servers]]\nname = \"notes\"\ncommand = \"no-such-program\"\n\
                args = [\"notes-server\"]\nenv = { TOKEN = \"env:TEST_SECRET\" }\n";
    let home = home().with_config(file).with_env("TEST_SECRET", SECRET).with_env("OPENAI_API_KEY", SECRET);
    let home = home.with_env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    let shown = home.run(&["config", "show"]).ok();
    let model = "models[1]\topenai:gpt-4o at http://127.0.0.1:9/v1, key env:OPENAI_API_KEY\tOPENAI_API_KEY";
    assert!(shown.contains(model), "{shown}");
    assert!(shown.contains("mcp_servers[notes]\tno-such-program notes-server\t"), "{shown}");
    let json = home.run(&["config", "show", "--json"]).ok();
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code(), 1);
    for line in [
        "model\tgpt-4o of OpenAI at http://127.0.0.1:9/v1, because OPENAI_API_KEY is set; no fallback",
        "!!\tmodel\topenai:gpt-4o: http://127.0.0.1:9/v1 is unreachable",
        "!!\tMCP server\tnotes (no-such-program notes-server): could not be started",
    ] {
        assert!(doctor.out().contains(line), "{}", doctor.out());
    }
    for output in [&shown, &json, &doctor.out(), &doctor.err()] {
        assert!(!output.contains(SECRET), "{output}");
    }
}

#[test]
fn all_errors_are_reported_together() {
    let home = home().with_config("[server]\nlisten = \"nowhere\"\nport = 1\n[modle]\nname = \"x\"\n");
    let check = home.run(&["config", "check"]);
    assert_eq!(check.code(), 2);
    for position in ["config.toml:2", "config.toml:3", "config.toml:5"] {
        assert!(check.out().contains(position), "{}", check.out());
    }
    assert_eq!(home.run(&["serve"]).code(), 2);
    assert_eq!(home.run(&["tasks", "list"]).code(), 2);
}

#[test]
fn all_errors_of_an_entry_are_reported_together() {
    // SUP-1: each entry has at least three errors.
    let file = "\
[[agents]]
id = \"Not A Slug\"
executable_path = 5
input_pattern = \"mail\"
max_retries = -1
colour = \"red\"
timeout = 0
[[agents]]
id = \"b\"
preset = \"no-such-preset\"
queue_depth = \"deep\"
allow = [\"not-an-id\"]
[[schedules]]
name = \"tidy\"
agent_id = \"assistant\"
cron = \"0 9 * * *\"
overlap = \"often\"
pause_after_failures = \"three\"
jitter = \"long\"
[[mcp_servers]]
name = \"not a name\"
command = \"x\"
url = \"y\"
trust = \"yes\"
env = { API_KEY = \"hunter2\" }
[[notify]]
type = \"webhook\"
secret = \"hunter2\"
kinds = [\"birthday\", \"reminder\", \"holiday\"]
timeout_seconds = 0
[a2a]
transprots = [\"grpc\"]
rate = { per_minute = 0 }
version = 5
";
    let check = home().with_config(file).run(&["config", "check"]);
    assert_eq!(check.code(), 2);
    let out = check.out();
    let lines: Vec<_> = out.lines().map(|line| line.rsplit_once("config.toml:").unwrap().1).collect();
    let expected = [
        "2: agents[Not A Slug].id must have 1 to 64 characters of a-z, 0-9 and -",
        "3: agents[Not A Slug].executable_path has the wrong type or form",
        "4: agents[Not A Slug].input_pattern has the wrong type or form",
        "5: agents[Not A Slug].max_retries has the wrong type or form",
        "6: agents[Not A Slug].colour is not a known field",
        "7: agents[Not A Slug].timeout must be greater than 0",
        "10: agents[b].preset must be one of",
        "11: agents[b].queue_depth has the wrong type or form",
        "12: agents[b].allow[0] must be the id of a user",
        "16: schedules[tidy].cron is not a known field",
        "17: schedules[tidy].overlap must be one of",
        "18: schedules[tidy].pause_after_failures has the wrong type or form",
        "19: schedules[tidy].jitter must be a duration",
        "20: mcp_servers[not a name] has command and url: choose one",
        "21: mcp_servers[not a name].name must be 1 to 32 letters, digits, - or _",
        "24: mcp_servers[not a name].trust must be true or false",
        "25: mcp_servers[not a name].env.API_KEY must be a reference, not the secret",
        "26: notify[1] needs a name",
        "26: notify[1].url is required",
        "28: notify[1].secret must be a reference, not the secret",
        "29: notify[1].kinds has an entry that must be one of reminder, execution, schedule, not 'birthday', and has an \
         entry that must be one of reminder, execution, schedule, not 'holiday'",
        "30: notify[1].timeout_seconds must be between 1 and 600, not 0",
        "30: notify[1].timeout_seconds is not a setting of channels of type webhook",
        "32: a2a.transprots is not a known field",
        "33: a2a.rate.per_minute must be between",
        "34: a2a.version has the wrong type or form",
    ];
    for start in expected {
        assert!(lines.iter().any(|line| line.starts_with(start)), "{start}\n{}", lines.join("\n"));
    }
    // The missing `cron_expression` is reported in addition to the unknown `cron`.
    assert_eq!(lines.len(), expected.len() + 1, "{}", lines.join("\n"));
    for hint in ["did you mean cron_expression?", "did you mean transports?"] {
        assert!(out.contains(hint), "{out}");
    }
    assert!(!out.contains("hunter2"), "{out}");
}

#[test]
fn clients_do_not_need_the_secrets_of_the_server() {
    let home = home_with_auth();
    let server = home.serve();
    let token = crate::token(&home, crate::ALICE, &[]);
    let mut client = home.command(&["tasks", "list", "--token", &token]);
    assert!(client.env_remove("TEST_SECRET").status().unwrap().success());
    drop(server);
    assert_eq!(client.status().unwrap().code(), Some(2), "commands on the data directory need them");
}

#[test]
fn a_public_address_requires_authentication() {
    // OPS-3
    let refused = home().run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.code(), 2);
    assert!(refused.err().contains("no authentication is configured"), "{}", refused.err());
}

#[tokio::test]
async fn sighup_reloads_the_configuration() {
    // OPS-3
    let home = home_with_auth();
    let server = home.serve();
    let auth = "[auth]\njwt_secret = \"env:TEST_SECRET\"\n";
    let token = crate::token(&home, crate::ALICE, &[]);
    let ask = || server.request(reqwest::Method::GET, "/api/tasks").bearer_auth(&token).send();
    assert_eq!(ask().await.unwrap().status(), 200);

    home.write_config(&format!("{auth}[server]\nrate_limit_per_minute = 1\nrate_limit_burst = 1\n"));
    server.signal(Signal::SIGHUP);
    server.wait_for_event("configuration_reloaded").await;
    assert_eq!(ask().await.unwrap().status(), 200);
    let limited = ask().await.unwrap();
    assert_eq!(limited.status(), 429);
    let wait: u64 = limited.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=61).contains(&wait), "{wait}");

    for (toml, reason) in [("[server]\nlistne = 1\n", "server.listen"), ("", "authentication cannot be removed")] {
        home.write_config(toml);
        server.signal(Signal::SIGHUP);
        while !server.raw_log().contains(reason) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        server.wait_for_event("configuration_rejected").await;
        assert_eq!(server.get("/api/tasks").await.status(), 401, "no change of the file disables authentication");
    }
}
