//! Running it: health, metrics, logs, ids, traces, time limits, stopping.

use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::otlp::Collector;
use testkit::proxy::Proxy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::home;

#[tokio::test]
async fn health_metrics_and_documentation() {
    // OPS-2
    let home = home();
    let server = home.serve();
    let health: Value = server.get("/health").await.json().await.unwrap();
    assert_eq!((&health["status"], &health["dependencies"]["database"]["kind"]), (&json!("ok"), &json!("sqlite")));
    for path in ["/health/live", "/health/ready"] {
        assert_eq!(server.get(path).await.json::<Value>().await.unwrap(), json!({"status": "ok"}));
    }
    server.get("/api/tasks").await;
    server.get("/api/tasks/1").await;
    let metrics = server.get("/metrics").await.text().await.unwrap();
    for line in [
        r#"adjutant_http_requests_total{method="GET",route="/api/tasks",status="200"} 1"#,
        r#"adjutant_http_requests_total{method="GET",route="/api/tasks/{id}",status="422"} 1"#,
        r#"adjutant_http_request_duration_seconds_count{route="/api/tasks"} 1"#,
        "adjutant_store_waiting_writes 0",
        "# EOF",
    ] {
        assert!(metrics.contains(line), "{line} is missing in\n{metrics}");
    }
    let described: Value = server.get("/openapi.json").await.json().await.unwrap();
    assert!(described["paths"]["/api/tasks/{id}/complete"]["post"]["responses"]["404"].is_object());
    let page = server.get("/").await;
    assert_eq!(page.url().path(), "/docs/");
    let page = page.text().await.unwrap();
    assert!(!page.contains("src=\"http") && !page.contains("href=\"http"), "nothing comes from elsewhere: {page}");
}

#[tokio::test]
async fn the_description_covers_every_interface() {
    // OPS-1
    let home = home();
    let server = home.serve();
    let described: Value = server.get("/openapi.json").await.json().await.unwrap();
    for (path, method) in [
        ("/api/executions/{id}/artifacts/{name}", "get"),
        ("/agents", "get"),
        ("/agents/{agent}", "post"),
        ("/agents/{agent}/.well-known/agent-card.json", "get"),
        ("/agents/{agent}/v1/message:send", "post"),
        ("/agents/{agent}/v1/tasks/{task}:subscribe", "get"),
        ("/agents/{agent}/v1/envelope", "post"),
        ("/mcp", "post"),
        ("/mcp", "delete"),
    ] {
        let operation = &described["paths"][path][method];
        assert!(operation["responses"]["200"].is_object(), "{method} {path} is not described");
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        assert!(parameters.clone().all(|parameter| parameter["name"] != "Idempotency-Key"), "{method} {path}");
    }
}

#[tokio::test]
async fn runs_reminders_and_notifications_are_in_the_log() {
    // OPS-1: they are written by other crates than those of requests.
    let file = "[log]\nlevel = \"debug\"\nformat = \"json\"\n\
                [[agents]]\nid = \"cat\"\nexecutable_path = \"/bin/cat\"\n\
                [[notify]]\nname = \"desk\"\ntype = \"command\"\ncommand = \"true\"\n";
    let home = home().configured(file);
    let server = home.serve();
    let run = server.post("/api/agents/cat/executions", &json!({"input": "hello", "wait": true})).await;
    assert_eq!(run.status(), 200);
    let ended = server.logged("execution_ended").await;
    assert_eq!((&ended["level"], &ended["details"]["agent_id"]), (&json!("INFO"), &json!("cat")));
    let task: Value = server.post("/api/tasks", &json!({"title": "Call mom"})).await.json().await.unwrap();
    let soon = (model::Clock::system().now() + jiff::SignedDuration::from_secs(1)).to_string();
    let reminder = server.post("/api/reminders", &json!({"task_id": task["id"], "remind_at": soon})).await;
    assert_eq!(reminder.status(), 201, "{}", reminder.text().await.unwrap());
    server.logged("reminder_fired").await;
    let delivered = server.logged("notification_delivered").await;
    assert_eq!((&delivered["level"], &delivered["details"]["channel"]), (&json!("DEBUG"), &json!("desk")));
}

#[tokio::test]
async fn every_answer_has_an_id_and_so_has_its_log() {
    // CHAT-5, OPS-1
    let home = home();
    let server = home.serve();
    let made = server.get("/api/tasks?limit=3").await.headers()["x-request-id"].to_str().unwrap().to_owned();
    assert!(made.len() == 16 && made.starts_with("req_") && made[4..].bytes().all(|b| b.is_ascii_hexdigit()), "{made}");
    let ask = async |id: &str| {
        let request = server.request(Method::GET, "/health/live").header("x-request-id", id);
        request.send().await.unwrap().headers()["x-request-id"].to_str().unwrap().to_owned()
    };
    assert_eq!(ask("my-own_ID-1").await, "my-own_ID-1");
    for bad in ["with space", &"x".repeat(65), "a;b"] {
        assert!(ask(bad).await.starts_with("req_"), "{bad}");
    }
    let entries = server.log_of(&made).await;
    assert_eq!(
        entries.iter().map(|e| e["event"].as_str().unwrap()).collect::<Vec<_>>(),
        ["request_received", "request_completed"]
    );
    let received = &entries[0];
    let completed = &entries[1];
    assert_eq!(received["details"], json!({"method": "GET", "path": "/api/tasks", "input_length": 0}));
    assert_eq!(received["level"], "INFO");
    assert_eq!(completed["user_id"], "00000000-0000-7000-8000-000000000001");
    assert_eq!((&completed["details"]["success"], &completed["details"]["tools_called"]), (&json!(true), &json!([])));
    assert!(completed["details"]["total_duration_ms"].is_u64() && completed["duration_ms"].is_u64());
    let time = received["timestamp"].as_str().unwrap();
    assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
    let known = ["timestamp", "level", "request_id", "event", "duration_ms", "details", "user_id", "conversation_id"];
    for entry in server.log() {
        assert!(entry.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())), "{entry}");
    }
}

#[tokio::test]
async fn a_quiet_log_still_says_which_request() {
    // CHAT-5
    let home = home().configured("[server]\nrequest_timeout_seconds = 1\n[log]\nlevel = \"warning\"\n");
    let server = home.serve();
    let mut socket = tokio::net::TcpStream::connect(server.url.trim_start_matches("http://")).await.unwrap();
    let head = "POST /api/tasks HTTP/1.1\r\nhost: localhost\r\nx-request-id: mine\r\ncontent-length: 9\r\n\r\n{";
    socket.write_all(head.as_bytes()).await.unwrap();
    let error = server.logged("error_occurred").await;
    assert_eq!((&error["request_id"], &error["level"]), (&json!("mine"), &json!("ERROR")));
    assert!(server.log().iter().all(|entry| entry["event"] != "request_received"));
}

#[tokio::test]
async fn a_slow_request_is_answered_in_time() {
    let home = home().configured("[server]\nrequest_timeout_seconds = 1\n");
    let server = home.serve();
    let mut socket = tokio::net::TcpStream::connect(server.url.trim_start_matches("http://")).await.unwrap();
    let head =
        "POST /api/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\ncontent-type: application/json\r\n\r\n{";
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let n = socket.read(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..n]);
    assert!(answer.starts_with("HTTP/1.1 504") && answer.contains("application/problem+json"), "{answer}");
    let error = server.logged("error_occurred").await;
    assert_eq!((&error["details"]["error_type"], &error["details"]["recoverable"]), (&json!("timeout"), &json!(true)));
}

#[tokio::test]
async fn stopping_finishes_what_is_under_way() {
    // OPS-4
    let home = home();
    let mut server = home.serve();
    let mut socket = tokio::net::TcpStream::connect(server.url.trim_start_matches("http://")).await.unwrap();
    let head = "POST /api/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-length: 16\r\n\r\n{\"title\"";
    socket.write_all(head.as_bytes()).await.unwrap();
    server.logged("request_received").await;
    server.signal(Signal::SIGTERM);
    server.logged("server_stopping").await;
    socket.write_all(b":\"late\"}").await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    assert_eq!(server.wait(), 0);
    assert!(home.run(&["tasks", "list"]).ok().contains("late"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traces_reach_the_collector() {
    // OPS-2
    let collector = Collector::start().await;
    let home = home().configured(&format!("[telemetry]\notlp_endpoint = \"{}\"\n", collector.endpoint));
    let mut server = home.serve();
    server.get("/api/tasks").await;
    assert_eq!(server.stop(), 0, "what is left is sent before the end");
    let span = collector.span("GET /api/tasks").await;
    let attribute = |name: &str| format!("{:?}", span.attributes.iter().find(|attribute| attribute.key == name));
    assert!(attribute("http.response.status_code").contains("200"), "{span:?}");
    assert!(attribute("request_id").contains("req_"), "{span:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_goes_away_is_reported_and_comes_back() {
    // OPS-2
    let url = testkit::postgres::database().await.unwrap();
    let (host, rest) = url.split_once('@').unwrap().1.split_once('/').unwrap();
    let wire = Proxy::to(host).await;
    let home = home().with("ADJUTANT_DATABASE__URL", &format!("postgres://adjutant@{}/{rest}", wire.address));
    let server = home.serve();
    assert_eq!(server.post("/api/tasks", &json!({"title": "a"})).await.status(), 201);
    wire.cut();
    for path in ["/health", "/health/ready"] {
        assert_eq!(server.get(path).await.status(), 503, "{path}");
    }
    assert_eq!(server.get("/health/live").await.status(), 200);
    let refused = server.post("/api/tasks", &json!({"title": "b"})).await;
    assert_eq!((refused.status().as_u16(), refused.headers()["retry-after"].as_bytes()), (503, &b"1"[..]));
    let error = server.logged("error_occurred").await;
    assert_eq!(
        (&error["details"]["error_type"], &error["details"]["recoverable"]),
        (&json!("unavailable"), &json!(true))
    );
    wire.mend();
    assert_eq!(server.get("/health/ready").await.status(), 200);
    assert_eq!(server.get("/api/tasks").await.json::<Value>().await.unwrap()["count"], 1);
}

#[tokio::test]
async fn secrets_do_not_reach_the_log() {
    // SUP-9
    let home = home();
    let server = home.serve();
    let key = format!("sk-ant-api03-{}", "aB3".repeat(30));
    for path in [&key, "someone@example.org"] {
        let answer = server.get(&format!("/api/tasks/{path}")).await;
        server.log_of(answer.headers()["x-request-id"].to_str().unwrap()).await;
    }
    assert!(!server.raw_log().contains(&key) && !server.raw_log().contains("someone@example.org"));
    assert!(server.raw_log().contains("[redacted]"));
}

#[tokio::test]
async fn on_a_terminal_the_log_is_text() {
    // OPS-1
    let home = home().configured("[log]\nformat = \"text\"\n");
    let server = home.serve();
    server.get("/api/tasks").await;
    while !server.raw_log().contains("request_completed") {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(server.raw_log().contains("INFO    request_received"), "{}", server.raw_log());
}

#[tokio::test]
async fn one_users_rate_is_not_anothers() {
    // OPS-3
    let home = crate::home_with_auth().configured("[server]\nrate_limit_per_minute = 1\nrate_limit_burst = 3\n");
    let server = home.serve();
    let alice = crate::token(&home, crate::ALICE, &[]);
    let bob = crate::token(&home, crate::BOB, &[]);
    let statuses = async |token: &str, n: usize| {
        let mut statuses = Vec::new();
        for _ in 0..n {
            let answer = server.request(Method::GET, "/api/tasks").bearer_auth(token).send().await.unwrap();
            statuses.push(answer.status().as_u16());
        }
        statuses
    };
    assert_eq!(statuses(&alice, 4).await, [200, 200, 200, 429]);
    assert_eq!(statuses(&bob, 3).await, [200, 200, 200]);
}

#[tokio::test]
async fn two_nodes_on_one_database_are_one_adjutant() {
    // OPS-5
    let url = testkit::postgres::database().await.unwrap();
    let one = crate::home_with_auth();
    let other = crate::home_with_auth();
    let one = one.with("ADJUTANT_DATABASE__URL", &url);
    let other = other.with("ADJUTANT_DATABASE__URL", &url);
    let first = one.serve();
    let second = other.serve();
    let token = crate::token(&one, crate::ALICE, &[]);
    let create = |server: &testkit::app::Server| {
        let request = server.request(Method::POST, "/api/tasks").bearer_auth(&token).header("Idempotency-Key", "k");
        request.json(&json!({"title": "shared"})).send()
    };
    let made = create(&first).await.unwrap();
    let again = create(&second).await.unwrap();
    assert_eq!((made.status().as_u16(), again.status().as_u16()), (201, 201));
    assert_eq!(made.json::<Value>().await.unwrap(), again.json::<Value>().await.unwrap(), "one task, whoever is asked");
    assert!(other.run(&["tasks", "list", "--token", &token]).ok().contains("shared"));
    one.run(&["token", "revoke", &token, "--token", &token]).ok();
    let began = std::time::Instant::now();
    while crate::auth::status(&second, &token).await != 401 {
        assert!(began.elapsed().as_secs() < 10, "a revocation reaches the other node");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_database_that_is_away_is_not_a_server_fault() {
    let home = home();
    let url = "postgres://nobody@127.0.0.1:1/none";
    let refused = home.run(&["serve", "--listen", "127.0.0.1:0", "--database-url", url]);
    assert_eq!(refused.code(), 8, "{}", refused.err());
    assert!(refused.err().contains("not available"), "{}", refused.err());
}
