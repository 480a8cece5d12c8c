//! Operation: health, metrics, logs, request ids, traces, timeouts and shutdown.

use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::otlp::TraceCollector;
use testkit::proxy::TcpProxy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::home;

#[tokio::test]
async fn health_metrics_and_documentation_are_served() {
    // OPS-2, TASK-5
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
        "# EOF",
    ] {
        assert!(metrics.contains(line), "{line} is missing in\n{metrics}");
    }
    // A background write may be in progress, so the gauge is read until it is zero.
    let mut metrics = metrics;
    for _ in 0..100 {
        if metrics.contains("adjutant_store_waiting_writes 0") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        metrics = server.get("/metrics").await.text().await.unwrap();
    }
    assert!(metrics.contains("adjutant_store_waiting_writes 0"), "{metrics}");
    let described: Value = server.get("/openapi.json").await.json().await.unwrap();
    assert!(described["paths"]["/api/tasks/{id}/complete"]["post"]["responses"]["404"].is_object());
    let page = server.get("/").await;
    assert_eq!(page.url().path(), "/docs/");
    let page = page.text().await.unwrap();
    assert!(
        !page.contains("src=\"http") && !page.contains("href=\"http"),
        "the page loads no external resources: {page}"
    );
}

#[tokio::test]
async fn openapi_covers_every_interface() {
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
async fn executions_reminders_and_notifications_are_logged() {
    // OPS-1: other crates write these events than those of requests.
    let file = "[log]\nlevel = \"debug\"\nformat = \"json\"\n\
                [[agents]]\nid = \"cat\"\nexecutable_path = \"/bin/cat\"\n\
                [[notify]]\nname = \"desk\"\ntype = \"command\"\ncommand = \"true\"\n";
    let home = home().with_config(file);
    let server = home.serve();
    let run = server.post("/api/agents/cat/executions", &json!({"input": "hello", "wait": true})).await;
    assert_eq!(run.status(), 200);
    let ended = server.wait_for_event("execution_ended").await;
    assert_eq!((&ended["level"], &ended["details"]["agent_id"]), (&json!("INFO"), &json!("cat")));
    let task: Value = server.post("/api/tasks", &json!({"title": "Call mom"})).await.json().await.unwrap();
    let soon = (model::Clock::system().now() + jiff::SignedDuration::from_secs(1)).to_string();
    let reminder = server.post("/api/reminders", &json!({"task_id": task["id"], "remind_at": soon})).await;
    assert_eq!(reminder.status(), 201, "{}", reminder.text().await.unwrap());
    server.wait_for_event("reminder_fired").await;
    let delivered = server.wait_for_event("notification_delivered").await;
    assert_eq!((&delivered["level"], &delivered["details"]["channel"]), (&json!("DEBUG"), &json!("desk")));
}

#[tokio::test]
async fn responses_have_security_headers() {
    // OPS-3
    let home = home();
    let server = home.serve();
    let docs = server.get("/docs/").await;
    assert!(docs.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
    assert!(docs.headers()["content-security-policy"].to_str().unwrap().contains("frame-ancestors 'none'"));
    assert_eq!(docs.headers()["x-frame-options"], "DENY");
    for (path, caching) in [("/docs/", None), ("/api/tasks", Some("no-store")), ("/api/nothing", Some("no-store"))] {
        let response = server.get(path).await;
        assert_eq!(response.headers()["x-content-type-options"], "nosniff", "{path}");
        let policy = response.headers().get("cache-control").map(|policy| policy.to_str().unwrap());
        assert_eq!(policy, caching, "{path}");
    }
}

#[tokio::test]
async fn every_response_and_log_entry_has_a_request_id() {
    // CHAT-5, OPS-1, OPS-3
    let home = home();
    let server = home.serve();
    let created = server.get("/api/tasks?limit=3").await.headers()["x-request-id"].to_str().unwrap().to_owned();
    assert!(
        created.len() == 16 && created.starts_with("req_") && created[4..].bytes().all(|b| b.is_ascii_hexdigit()),
        "{created}"
    );
    let ask = async |id: &str| {
        let request = server.request(Method::GET, "/health/live").header("x-request-id", id);
        request.send().await.unwrap().headers()["x-request-id"].to_str().unwrap().to_owned()
    };
    assert_eq!(ask("my-own_ID-1").await, "my-own_ID-1");
    for bad in ["with space", &"x".repeat(65), "a;b"] {
        assert!(ask(bad).await.starts_with("req_"), "{bad}");
    }
    let entries = server.request_log(&created).await;
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
async fn warnings_have_a_request_id() {
    // CHAT-5
    let home = home().with_config("[server]\nrequest_timeout_seconds = 1\n[log]\nlevel = \"warning\"\n");
    let server = home.serve();
    let mut socket = tokio::net::TcpStream::connect(server.url.trim_start_matches("http://")).await.unwrap();
    let head = "POST /api/tasks HTTP/1.1\r\nhost: localhost\r\nx-request-id: mine\r\ncontent-length: 9\r\n\r\n{";
    socket.write_all(head.as_bytes()).await.unwrap();
    let error = server.wait_for_event("error_occurred").await;
    assert_eq!((&error["request_id"], &error["level"]), (&json!("mine"), &json!("ERROR")));
    assert!(server.log().iter().all(|entry| entry["event"] != "request_received"));
}

#[tokio::test]
async fn slow_requests_time_out() {
    // CHAT-6, OPS-1
    let home = home().with_config("[server]\nrequest_timeout_seconds = 1\n");
    let server = home.serve();
    let mut socket = tokio::net::TcpStream::connect(server.url.trim_start_matches("http://")).await.unwrap();
    let head =
        "POST /api/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\ncontent-type: application/json\r\n\r\n{";
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let n = socket.read(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..n]);
    assert!(answer.starts_with("HTTP/1.1 504") && answer.contains("application/problem+json"), "{answer}");
    let error = server.wait_for_event("error_occurred").await;
    assert_eq!((&error["details"]["error_type"], &error["details"]["recoverable"]), (&json!("timeout"), &json!(true)));
}

#[tokio::test]
async fn shutdown_completes_running_requests() {
    // OPS-4
    let home = home();
    let mut server = home.serve();
    let mut socket = tokio::net::TcpStream::connect(server.url.trim_start_matches("http://")).await.unwrap();
    let head = "POST /api/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-length: 16\r\n\r\n{\"title\"";
    socket.write_all(head.as_bytes()).await.unwrap();
    server.wait_for_event("request_received").await;
    server.signal(Signal::SIGTERM);
    server.wait_for_event("server_stopping").await;
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
    let collector = TraceCollector::start().await;
    let home = home().with_config(&format!("[telemetry]\notlp_endpoint = \"{}\"\n", collector.endpoint));
    let mut server = home.serve();
    server.get("/api/tasks").await;
    assert_eq!(server.stop(), 0, "pending spans are sent before the exit");
    let span = collector.wait_for_span("GET /api/tasks").await;
    let attribute = |name: &str| format!("{:?}", span.attributes.iter().find(|attribute| attribute.key == name));
    assert!(attribute("http.response.status_code").contains("200"), "{span:?}");
    assert!(attribute("request_id").contains("req_"), "{span:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_outage_is_reported_and_recovered() {
    // OPS-2
    let url = testkit::postgres::create_database().await.unwrap();
    let (host, rest) = url.split_once('@').unwrap().1.split_once('/').unwrap();
    let proxy = TcpProxy::start(host).await;
    let home = home().with_env("ADJUTANT_DATABASE__URL", &format!("postgres://adjutant@{}/{rest}", proxy.address));
    let server = home.serve();
    assert_eq!(server.post("/api/tasks", &json!({"title": "a"})).await.status(), 201);
    proxy.cut();
    for path in ["/health", "/health/ready"] {
        assert_eq!(server.get(path).await.status(), 503, "{path}");
    }
    assert_eq!(server.get("/health/live").await.status(), 200);
    let refused = server.post("/api/tasks", &json!({"title": "b"})).await;
    assert_eq!((refused.status().as_u16(), refused.headers()["retry-after"].as_bytes()), (503, &b"1"[..]));
    let error = server.wait_for_event("error_occurred").await;
    assert_eq!(
        (&error["details"]["error_type"], &error["details"]["recoverable"]),
        (&json!("unavailable"), &json!(true))
    );
    proxy.restore();
    assert_eq!(server.get("/health/ready").await.status(), 200);
    assert_eq!(server.get("/api/tasks").await.json::<Value>().await.unwrap()["count"], 1);
}

#[tokio::test]
async fn secrets_are_redacted_in_the_log() {
    // SUP-9
    let home = home();
    let server = home.serve();
    let key = format!("sk-ant-api03-{}", "aB3".repeat(30));
    for path in [&key, "someone@example.org"] {
        let answer = server.get(&format!("/api/tasks/{path}")).await;
        server.request_log(answer.headers()["x-request-id"].to_str().unwrap()).await;
    }
    assert!(!server.raw_log().contains(&key) && !server.raw_log().contains("someone@example.org"));
    assert!(server.raw_log().contains("[redacted]"));
}

#[tokio::test]
async fn the_log_can_be_text() {
    // OPS-1
    let home = home().with_config("[log]\nformat = \"text\"\n");
    let server = home.serve();
    server.get("/api/tasks").await;
    while !server.raw_log().contains("request_completed") {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(server.raw_log().contains("INFO    request_received"), "{}", server.raw_log());
}

#[tokio::test]
async fn rate_limits_are_separate_per_user() {
    // OPS-3
    let home = crate::home_with_auth().with_config("[server]\nrate_limit_per_minute = 1\nrate_limit_burst = 3\n");
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
async fn nodes_share_tasks_idempotency_keys_and_revocations() {
    // OPS-5
    let url = testkit::postgres::create_database().await.unwrap();
    let first_home = crate::home_with_auth();
    let second_home = crate::home_with_auth();
    let first_home = first_home.with_env("ADJUTANT_DATABASE__URL", &url);
    let second_home = second_home.with_env("ADJUTANT_DATABASE__URL", &url);
    let first = first_home.serve();
    let second = second_home.serve();
    let token = crate::token(&first_home, crate::ALICE, &[]);
    let create = |server: &testkit::app::Server| {
        let request = server.request(Method::POST, "/api/tasks").bearer_auth(&token).header("Idempotency-Key", "k");
        request.json(&json!({"title": "shared"})).send()
    };
    let created = create(&first).await.unwrap();
    let again = create(&second).await.unwrap();
    assert_eq!((created.status().as_u16(), again.status().as_u16()), (201, 201));
    assert_eq!(created.json::<Value>().await.unwrap(), again.json::<Value>().await.unwrap(), "one task on both nodes");
    assert!(second_home.run(&["tasks", "list", "--token", &token]).ok().contains("shared"));
    first_home.run(&["token", "revoke", &token, "--token", &token]).ok();
    let started = std::time::Instant::now();
    while crate::auth::status(&second, &token).await != 401 {
        assert!(started.elapsed().as_secs() < 10, "a revocation reaches the other node");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn an_unreachable_database_has_its_own_exit_code() {
    let home = home();
    let url = "postgres://user@127.0.0.1:1/none";
    let refused = home.run(&["serve", "--listen", "127.0.0.1:0", "--database-url", url]);
    assert_eq!(refused.code(), 8, "{}", refused.err());
    assert!(refused.err().contains("the database is unavailable"), "{}", refused.err());
}
