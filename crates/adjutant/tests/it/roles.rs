//! Nodes that only serve and nodes that only run agents, on one database (OPS-5).

#![expect(clippy::print_stdout, reason = "the measured latencies of hints are useful")]

use std::time::{Duration, Instant, SystemTime};

use futures::StreamExt;
use jiff::Timestamp;
use serde_json::{Value, json};
use testkit::app::{Home, Server};

use crate::home;
use crate::supervisor::{get, start, wait_until};

/// The limit for a change that a hint announces. Without hints, nodes poll once per second.
const HINT_LIMIT: Duration = Duration::from_millis(500);

fn agents() -> String {
    let program = testkit::agent::program().display();
    format!(
        "[[agents]]\nid = \"double\"\nexecutable_path = \"{program}\"\nargs = [\"obey\"]\ngrace = 0.2\n\
         [[agents]]\nid = \"counter\"\nmode = \"interactive\"\nexecutable_path = \"sh\"\n\
         args = [\"-c\", \"n=0; while read line; do n=$((n+1)); echo $n: $line; echo EOT; done\"]\n\
         session = {{ marker = \"EOT\" }}\n"
    )
}

fn node(database: &str) -> Home {
    home().with_env("ADJUTANT_DATABASE__URL", database).with_config(&agents())
}

fn serve_only(home: &Home) -> Server {
    home.serve_with(&["--listen", "127.0.0.1:0", "--no-work"])
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn time(value: &Value) -> Timestamp {
    value.as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn one_node_serves_and_another_runs_agents() {
    // OPS-5
    let database = testkit::postgres::create_database().await.unwrap();
    let homes = [node(&database), node(&database)];
    let server = serve_only(&homes[0]);
    let id = start(&server, "double", "echo hello there").await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(get(&server, &format!("/api/executions/{id}")).await["queue_position"], 1, "this node runs no agents");
    let mut worker = homes[1].work_with(&[]);
    wait_until(&server, &id, "completed", |execution| execution["state"] == "completed").await;
    assert_eq!(get(&server, &format!("/api/executions/{id}/result")).await["output"], "hello there\n");

    // Hints are faster than the poll interval.
    let mut starts = Vec::new();
    let mut ends = Vec::new();
    for _ in 0..15 {
        // Avoids a coincidence with the poll of the worker.
        tokio::time::sleep(Duration::from_millis(70)).await;
        let requested_at = Instant::now();
        let body = json!({"input": "echo hello", "wait": true});
        let answer = server.post("/api/agents/double/executions", &body).await;
        assert_eq!(answer.status(), 200);
        let ran: Value = answer.json().await.unwrap();
        ends.push(requested_at.elapsed());
        let waited = time(&ran["start_time"]).duration_since(time(&ran["created_at"]));
        starts.push(waited.unsigned_abs());
    }
    let starts = median(starts);
    let ends = median(ends);
    println!("from submission to start on the worker: {starts:?}; from request to result: {ends:?}");
    assert!(starts < HINT_LIMIT && ends < HINT_LIMIT * 2, "{starts:?} {ends:?}");

    // A subscriber on this node receives output of the worker.
    let id = start(&server, "double", "ticks 20 100").await;
    let mut stream = server.get(&format!("/api/executions/{id}/events")).await.bytes_stream();
    let mut delays = Vec::new();
    let mut text = String::new();
    while let Some(piece) = stream.next().await {
        text.push_str(&String::from_utf8_lossy(&piece.unwrap()));
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap();
        while let Some((event, rest)) = text.split_once("\n\n").map(|(event, rest)| (event.to_owned(), rest.to_owned()))
        {
            text = rest;
            let data = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or("{}");
            let data: Value = serde_json::from_str(data).unwrap();
            let lines = data["text"].as_str().unwrap_or_default().lines();
            delays.extend(lines.map(|line| now.saturating_sub(Duration::from_micros(line.parse().unwrap()))));
        }
    }
    assert_eq!(delays.len(), 20);
    let delay = median(delays);
    println!("from output on the worker to the subscriber: {delay:?}");
    assert!(delay < HINT_LIMIT, "{delay:?}");

    // A cancellation on this node ends the execution on the worker.
    let id = start(&server, "double", "hang").await;
    wait_until(&server, &id, "running", |execution| execution["state"] == "running").await;
    let requested_at = Instant::now();
    assert_eq!(server.post(&format!("/api/executions/{id}/cancel"), &json!({})).await.status(), 200);
    wait_until(&server, &id, "cancelled", |execution| execution["state"] == "cancelled").await;
    println!("from cancellation to end on the worker: {:?}", requested_at.elapsed());
    assert!(requested_at.elapsed() < HINT_LIMIT * 2, "{:?}", requested_at.elapsed());
    assert_eq!(worker.stop(), 0);
}

#[tokio::test]
async fn sessions_are_reachable_from_any_node() {
    // SUP-3, OPS-5
    let database = testkit::postgres::create_database().await.unwrap();
    let homes = [node(&database), node(&database)];
    let first_node = homes[0].serve();
    let second_node = serve_only(&homes[1]);
    let refused = second_node.post("/api/sessions", &json!({"agent_id": "counter"})).await;
    assert_eq!(refused.status(), 409, "this node cannot run the session");
    let session: Value = first_node.post("/api/sessions", &json!({"agent_id": "counter"})).await.json().await.unwrap();
    let path = format!("/api/sessions/{}", session["id"].as_str().unwrap());
    let mut times = Vec::new();
    for n in 1..=9 {
        let server = if n % 3 == 0 { &first_node } else { &second_node };
        let requested_at = Instant::now();
        let answer = server.post(&format!("{path}/messages"), &json!({"input": "hello"})).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.json::<Value>().await.unwrap()["output"], format!("{n}: hello\n"));
        if n > 1 && n % 3 != 0 {
            times.push(requested_at.elapsed());
        }
        tokio::time::sleep(Duration::from_millis(70)).await;
    }
    let time = median(times);
    println!("from message to reply of a session on another node: {time:?}");
    assert!(time < HINT_LIMIT * 2, "{time:?}");
    let requested_at = Instant::now();
    assert_eq!(second_node.request(reqwest::Method::DELETE, &path).send().await.unwrap().status(), 204);
    while get(&first_node, &path).await["state"] != "closed" {
        assert!(requested_at.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn the_result_of_another_node_is_added_to_the_conversation() {
    // TASK-6, OPS-5
    let database = testkit::postgres::create_database().await.unwrap();
    let homes = [node(&database), node(&database)];
    let server = serve_only(&homes[0]);
    let _worker = homes[1].work_with(&[]);
    let body = json!({"input": "run the double agent on echo hello", "conversation_id": "conv_far"});
    assert_eq!(server.post("/chat", &body).await.status(), 200);
    for _ in 0..500 {
        let conversation = get(&server, "/api/conversations/conv_far").await;
        let messages = conversation["messages"].as_array().unwrap();
        if messages.len() > 2 {
            assert_eq!(messages.len(), 3, "the result is added once");
            assert_eq!(messages[2]["content"], "double is done: hello");
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the result was not added");
}

#[tokio::test]
async fn input_with_secrets_is_rejected_by_nodes_that_run_no_agents() {
    // OPS-5
    let database = testkit::postgres::create_database().await.unwrap();
    let home = node(&database);
    let server = serve_only(&home);
    let answer =
        server.post("/api/agents/double/executions", &json!({"input": "echo password=hunter22hunter22"})).await;
    assert_eq!(answer.status(), 409);
    let problem: Value = answer.json().await.unwrap();
    assert!(problem["detail"].as_str().unwrap().contains("this node runs no agents"), "{problem}");
}

#[tokio::test]
async fn a_worker_node_serves_only_health() {
    // OPS-5
    let database = testkit::postgres::create_database().await.unwrap();
    let home = node(&database);
    let mut worker = home.work_with(&["--listen", "127.0.0.1:0"]);
    assert_eq!(get(&worker, "/health").await["status"], "ok");
    assert_eq!(worker.get("/health/ready").await.status(), 200);
    for path in ["/api/tasks", "/docs/", "/mcp", "/"] {
        assert_eq!(worker.get(path).await.status(), 404, "{path}");
    }
    assert_eq!(worker.stop(), 0);
}

#[test]
fn split_roles_require_postgresql() {
    // OPS-5
    let home = home();
    for arguments in [&["serve", "--no-work"][..], &["work"][..]] {
        let refused = home.run(arguments);
        assert_eq!(refused.code(), 2, "{arguments:?}");
        assert!(refused.err().contains("needs a PostgreSQL database"), "{}", refused.err());
    }
}
