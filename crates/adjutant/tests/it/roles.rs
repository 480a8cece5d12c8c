//! Nodes that only serve and nodes that only run, on one database (OPS-5).

#![expect(clippy::print_stdout, reason = "how long hints take is worth knowing")]

use std::time::{Duration, Instant, SystemTime};

use futures::StreamExt;
use jiff::Timestamp;
use serde_json::{Value, json};
use testkit::app::{Home, Server};

use crate::home;
use crate::supervisor::{begin, get, until};

/// How long nobody needs to wait who is told: the tables are looked at every second without a hint.
const SOON: Duration = Duration::from_millis(500);

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
    home().with("ADJUTANT_DATABASE__URL", database).configured(&agents())
}

fn front(home: &Home) -> Server {
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
async fn one_node_serves_and_another_works() {
    let database = testkit::postgres::database().await.unwrap();
    let homes = [node(&database), node(&database)];
    let server = front(&homes[0]);
    let id = begin(&server, "double", "echo hello there").await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(get(&server, &format!("/api/executions/{id}")).await["queue_position"], 1, "nobody works here");
    let mut worker = homes[1].work_with(&[]);
    until(&server, &id, "completed", |execution| execution["state"] == "completed").await;
    assert_eq!(get(&server, &format!("/api/executions/{id}/result")).await["output"], "hello there\n");

    // Started elsewhere, and known here, long before anybody looks by themselves.
    let mut starts = Vec::new();
    let mut ends = Vec::new();
    for _ in 0..15 {
        // So that no look of the worker happens to come right.
        tokio::time::sleep(Duration::from_millis(70)).await;
        let asked = Instant::now();
        let body = json!({"input": "echo hello", "wait": true});
        let answer = server.post("/api/agents/double/executions", &body).await;
        assert_eq!(answer.status(), 200);
        let ran: Value = answer.json().await.unwrap();
        ends.push(asked.elapsed());
        let waited = time(&ran["start_time"]).duration_since(time(&ran["created_at"]));
        starts.push(waited.unsigned_abs());
    }
    let starts = median(starts);
    let ends = median(ends);
    println!("submitted here, begun there: {starts:?}; asked here, answered from there: {ends:?}");
    assert!(starts < SOON && ends < SOON * 2, "{starts:?} {ends:?}");

    // A follower here sees what is said there.
    let id = begin(&server, "double", "ticks 20 100").await;
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
    println!("said there, seen here: {delay:?}");
    assert!(delay < SOON, "{delay:?}");

    // Cancelled here, ended there.
    let id = begin(&server, "double", "hang").await;
    until(&server, &id, "running", |execution| execution["state"] == "running").await;
    let asked = Instant::now();
    assert_eq!(server.post(&format!("/api/executions/{id}/cancel"), &json!({})).await.status(), 200);
    until(&server, &id, "cancelled", |execution| execution["state"] == "cancelled").await;
    println!("cancelled here, ended there: {:?}", asked.elapsed());
    assert!(asked.elapsed() < SOON * 2, "{:?}", asked.elapsed());
    assert_eq!(worker.stop(), 0);
}

#[tokio::test]
async fn sessions_are_spoken_in_from_any_node() {
    // SUP-3, OPS-5
    let database = testkit::postgres::database().await.unwrap();
    let homes = [node(&database), node(&database)];
    let here = homes[0].serve();
    let there = front(&homes[1]);
    let refused = there.post("/api/sessions", &json!({"agent_id": "counter"})).await;
    assert_eq!(refused.status(), 409, "it has nobody to run it");
    let session: Value = here.post("/api/sessions", &json!({"agent_id": "counter"})).await.json().await.unwrap();
    let path = format!("/api/sessions/{}", session["id"].as_str().unwrap());
    let mut times = Vec::new();
    for n in 1..=9 {
        let server = if n % 3 == 0 { &here } else { &there };
        let asked = Instant::now();
        let answer = server.post(&format!("{path}/messages"), &json!({"input": "hello"})).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.json::<Value>().await.unwrap()["output"], format!("{n}: hello\n"));
        if n > 1 && n % 3 != 0 {
            times.push(asked.elapsed());
        }
        tokio::time::sleep(Duration::from_millis(70)).await;
    }
    let time = median(times);
    println!("said on one node, answered by the session of another: {time:?}");
    assert!(time < SOON * 2, "{time:?}");
    let asked = Instant::now();
    assert_eq!(there.request(reqwest::Method::DELETE, &path).send().await.unwrap().status(), 204);
    while get(&here, &path).await["state"] != "closed" {
        assert!(asked.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn what_a_conversation_asked_for_comes_back_from_another_node() {
    // TASK-6, OPS-5
    let database = testkit::postgres::database().await.unwrap();
    let homes = [node(&database), node(&database)];
    let server = front(&homes[0]);
    let _worker = homes[1].work_with(&[]);
    let body = json!({"input": "run the double agent on echo hello", "conversation_id": "conv_far"});
    assert_eq!(server.post("/chat", &body).await.status(), 200);
    for _ in 0..500 {
        let kept = get(&server, "/api/conversations/conv_far").await;
        let messages = kept["messages"].as_array().unwrap();
        if messages.len() > 2 {
            assert_eq!(messages.len(), 3, "it is told once");
            assert_eq!(messages[2]["content"], "double is done: hello");
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("nothing came back");
}

#[tokio::test]
async fn secrets_stay_where_they_are_used() {
    let database = testkit::postgres::database().await.unwrap();
    let home = node(&database);
    let server = front(&home);
    let answer =
        server.post("/api/agents/double/executions", &json!({"input": "echo password=hunter22hunter22"})).await;
    assert_eq!(answer.status(), 409);
    let problem: Value = answer.json().await.unwrap();
    assert!(problem["detail"].as_str().unwrap().contains("this node runs nothing"), "{problem}");
}

#[tokio::test]
async fn a_node_that_only_works_tells_how_it_is_and_nothing_else() {
    let database = testkit::postgres::database().await.unwrap();
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
fn one_machine_alone_shares_nothing() {
    let home = home();
    for arguments in [&["serve", "--no-work"][..], &["work"][..]] {
        let refused = home.run(arguments);
        assert_eq!(refused.code(), 2, "{arguments:?}");
        assert!(refused.err().contains("needs PostgreSQL"), "{}", refused.err());
    }
}
