//! `adjutant config`, and the configuration of a running server.

use nix::sys::signal::Signal;

use crate::{SECRET, home, home_with_auth};

#[test]
fn init_check_and_show() {
    let home = home().with("ADJUTANT_SERVER__REQUEST_TIMEOUT_SECONDS", "7").with("TEST_SECRET", SECRET);
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
fn models_and_servers_are_shown_without_their_secrets() {
    // MODEL-2: nobody listens on the discard port.
    let file = "[model]\nfallback = []\n[[mcp_servers]]\nname = \"notes\"\ncommand = \"no-such-program\"\n\
                args = [\"notes-server\"]\nenv = { TOKEN = \"env:TEST_SECRET\" }\n";
    let home = home().configured(file).with("TEST_SECRET", SECRET).with("OPENAI_API_KEY", SECRET);
    let home = home.with("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    let shown = home.run(&["config", "show"]).ok();
    let model = "models[1]\topenai:gpt-4o at http://127.0.0.1:9/v1, key env:OPENAI_API_KEY\tOPENAI_API_KEY";
    assert!(shown.contains(model), "{shown}");
    assert!(shown.contains("mcp_servers[notes]\tno-such-program notes-server\t"), "{shown}");
    let json = home.run(&["config", "show", "--json"]).ok();
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code(), 1);
    for line in [
        "model\tgpt-4o of OpenAI at http://127.0.0.1:9/v1, because OPENAI_API_KEY is set; nothing takes its place",
        "!!\tmodel\topenai:gpt-4o: http://127.0.0.1:9/v1 cannot be reached",
        "!!\tMCP server\tnotes (no-such-program notes-server): could not be started",
    ] {
        assert!(doctor.out().contains(line), "{}", doctor.out());
    }
    for said in [&shown, &json, &doctor.out(), &doctor.err()] {
        assert!(!said.contains(SECRET), "{said}");
    }
}

#[test]
fn every_mistake_is_told_at_once() {
    let home = home().configured("[server]\nlisten = \"nowhere\"\nport = 1\n[modle]\nname = \"x\"\n");
    let check = home.run(&["config", "check"]);
    assert_eq!(check.code(), 2);
    for place in ["config.toml:2", "config.toml:3", "config.toml:5"] {
        assert!(check.out().contains(place), "{}", check.out());
    }
    assert_eq!(home.run(&["serve"]).code(), 2);
    assert_eq!(home.run(&["tasks", "list"]).code(), 2);
}

#[test]
fn a_client_need_not_know_the_servers_secrets() {
    let home = home_with_auth();
    let server = home.serve();
    let token = crate::token(&home, crate::ALICE, &[]);
    let mut client = home.command(&["tasks", "list", "--token", &token]);
    assert!(client.env_remove("TEST_SECRET").status().unwrap().success());
    drop(server);
    assert_eq!(client.status().unwrap().code(), Some(2), "the data directory itself does");
}

#[test]
fn a_public_address_without_authentication_is_refused() {
    // OPS-3
    let refused = home().run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.code(), 2);
    assert!(refused.err().contains("no authentication is configured"), "{}", refused.err());
}

#[tokio::test]
async fn the_configuration_is_read_again_on_hangup() {
    let home = home_with_auth();
    let server = home.serve();
    let login = "[auth]\njwt_secret = \"env:TEST_SECRET\"\n";
    let token = crate::token(&home, crate::ALICE, &[]);
    let ask = || server.request(reqwest::Method::GET, "/api/tasks").bearer_auth(&token).send();
    assert_eq!(ask().await.unwrap().status(), 200);

    home.write_config(&format!("{login}[server]\nrate_limit_per_minute = 1\nrate_limit_burst = 1\n"));
    server.signal(Signal::SIGHUP);
    server.logged("configuration_reloaded").await;
    assert_eq!(ask().await.unwrap().status(), 200);
    let limited = ask().await.unwrap();
    assert_eq!(limited.status(), 429);
    let wait: u64 = limited.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=61).contains(&wait), "{wait}");

    for (toml, why) in [("[server]\nlistne = 1\n", "server.listen"), ("", "cannot be switched off")] {
        home.write_config(toml);
        server.signal(Signal::SIGHUP);
        while !server.raw_log().contains(why) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        server.logged("configuration_rejected").await;
        assert_eq!(server.get("/api/tasks").await.status(), 401, "no change of the file opens the door");
    }
}
