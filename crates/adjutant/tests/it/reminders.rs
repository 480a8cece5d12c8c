//! Reminders and notifications over HTTP, on the command line and through channels.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use hmac::{Hmac, KeyInit, Mac};
use nix::sys::signal::Signal;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::Sha256;
use testkit::app::{Home, Server};

use crate::{ALICE, BOB, SECRET, home, home_with_auth, token};

/// A webhook receiver.
#[derive(Clone, Default)]
struct Receiver {
    got: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
    status: Arc<AtomicU16>,
}

impl Receiver {
    async fn start(&self) -> u16 {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = Router::new().route("/hook", post(Self::receive)).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        port
    }

    async fn receive(State(receiver): State<Self>, headers: HeaderMap, body: Bytes) -> StatusCode {
        receiver.got.lock().unwrap().push((headers, body));
        StatusCode::from_u16(receiver.status.load(Ordering::Relaxed)).unwrap_or(StatusCode::OK)
    }

    fn count(&self) -> usize {
        self.got.lock().unwrap().len()
    }

    /// Returns the id and the content of a delivery.
    fn delivery(&self, index: usize) -> (String, Value) {
        let (headers, body) = self.got.lock().unwrap()[index].clone();
        let id = headers["x-adjutant-delivery"].to_str().unwrap().to_owned();
        (id, serde_json::from_slice(&body).unwrap())
    }
}

async fn wait_until(description: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition().await {
        assert!(Instant::now() < deadline, "not within 30 seconds: {description}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the time in this many seconds.
fn seconds_from_now(seconds: i64) -> String {
    (model::Clock::system().now() + jiff::SignedDuration::from_secs(seconds)).to_string()
}

async fn create(server: &Server, path: &str, body: Value) -> Value {
    let answer = server.post(path, &body).await;
    let status = answer.status();
    let answer: Value = answer.json().await.unwrap();
    assert_eq!(status, StatusCode::CREATED, "{answer}");
    answer
}

async fn notifications(server: &Server) -> Vec<Value> {
    let list: Value = server.get("/api/notifications").await.json().await.unwrap();
    list["notifications"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_reminder_fires_once_and_is_notified() {
    // TASK-4
    let home = home();
    let server = home.serve();
    let task = create(&server, "/api/tasks", json!({"title": "water the plants"})).await;
    let draft = json!({"task_id": task["id"], "remind_at": seconds_from_now(2)});
    let reminder = create(&server, "/api/reminders", draft).await;
    let fields = "id task_id remind_at repeat_interval_minutes repeat_count fired_count status recurrence before_minutes \
                  time_zone snoozed_until next_at";
    let names: Vec<_> = fields.split(' ').collect();
    assert_eq!(reminder.as_object().unwrap().keys().collect::<Vec<_>>(), names);
    let path = format!("/api/reminders/{}", reminder["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.json::<Value>().await.unwrap(), reminder);

    // A subscriber receives it at its time.
    let mut stream = server.get("/api/notifications/stream").await;
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let mut received = String::new();
    while !received.contains("event: notification") {
        received.push_str(&String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap()));
    }
    let at: jiff::Timestamp = reminder["remind_at"].as_str().unwrap().parse().unwrap();
    let data = received.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let notification: Value = serde_json::from_str(data).unwrap();
    assert_eq!((&notification["kind"], &notification["task_id"]), (&json!("reminder"), &task["id"]));
    assert_eq!(
        (&notification["title"], &notification["read_at"]),
        (&json!("Reminder: water the plants"), &json!(null))
    );
    let created_at: jiff::Timestamp = notification["created_at"].as_str().unwrap().parse().unwrap();
    assert!(
        created_at >= at && created_at.duration_since(at) < jiff::SignedDuration::from_millis(500),
        "{created_at} for {at}"
    );
    assert_eq!(notifications(&server).await, std::slice::from_ref(&notification));
    assert_eq!(server.get(&path).await.json::<Value>().await.unwrap()["status"], "done");
    let list: Value = server.get("/api/reminders").await.json().await.unwrap();
    assert_eq!(list["count"], 0, "the default filter is scheduled reminders");
    let list: Value = server.get("/api/reminders?status=all").await.json().await.unwrap();
    assert_eq!(list["reminders"][0]["fired_count"], 1);

    // The read time is set once. The stream can be resumed from any event.
    let read = format!("/api/notifications/{}/read", notification["id"].as_str().unwrap());
    let once: Value = server.post(&read, &json!({})).await.json().await.unwrap();
    assert!(once["read_at"].is_string());
    assert_eq!(server.post(&read, &json!({})).await.json::<Value>().await.unwrap(), once);
    let unread: Value = server.get("/api/notifications?unread=true").await.json().await.unwrap();
    assert_eq!(unread["count"], 0);
    let again = server.request(Method::GET, "/api/notifications/stream").header("last-event-id", "0").send();
    let mut again = again.await.unwrap();
    let mut received = String::new();
    while !received.contains("event: notification") {
        received.push_str(&String::from_utf8_lossy(&again.chunk().await.unwrap().unwrap()));
    }
    let metrics = server.get("/metrics").await.text().await.unwrap();
    assert!(metrics.contains("adjutant_reminders_fired_total 1"), "{metrics}");

    assert_eq!(server.request(Method::DELETE, &path).send().await.unwrap().status(), StatusCode::NO_CONTENT);
    assert_eq!(server.request(Method::DELETE, &path).send().await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn invalid_input_names_the_field() {
    // TASK-1
    let home = home();
    let server = home.serve();
    let task = create(&server, "/api/tasks", json!({"title": "a"})).await;
    for (body, field) in [
        (json!({"task_id": task["id"], "remind_at": "2020-01-01T00:00:00Z"}), "remind_at"),
        (json!({"task_id": "x", "remind_at": seconds_from_now(60)}), "task_id"),
        (
            json!({"task_id": task["id"], "remind_at": seconds_from_now(60), "repeat_interval_minutes": 0}),
            "repeat_interval_minutes",
        ),
        (json!({"task_id": task["id"], "remind_at": seconds_from_now(60), "at": 1}), "at"),
    ] {
        let answer = server.post("/api/reminders", &body).await;
        assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY, "{body}");
        assert_eq!(answer.json::<Value>().await.unwrap()["errors"][0]["field"], field, "{body}");
    }
    for (path, field) in [
        ("/api/reminders?status=late", "status"),
        ("/api/reminders?task_id=1", "task_id"),
        ("/api/notifications?unread=maybe", "unread"),
        ("/api/notifications?read=true", "read"),
    ] {
        let answer = server.get(path).await;
        assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY, "{path}");
        assert_eq!(answer.json::<Value>().await.unwrap()["errors"][0]["field"], field, "{path}");
    }
    let stream = server.request(Method::GET, "/api/notifications/stream").header("last-event-id", "x").send();
    assert_eq!(stream.await.unwrap().status(), StatusCode::UNPROCESSABLE_ENTITY);
    let other = json!({"task_id": "0190a6d2-7c00-7000-8000-000000000000", "remind_at": seconds_from_now(60)});
    assert_eq!(server.post("/api/reminders", &other).await.status(), StatusCode::NOT_FOUND);
    let id = task["id"].as_str().unwrap();
    server.post(&format!("/api/tasks/{id}/complete"), &json!({})).await;
    let done = json!({"task_id": id, "remind_at": seconds_from_now(60)});
    assert_eq!(server.post("/api/reminders", &done).await.status(), StatusCode::CONFLICT, "it is completed");
}

#[tokio::test]
async fn completing_a_task_drops_its_reminders_and_undo_restores_them() {
    // TASK-4, AGENT-13
    let home = home();
    let server = home.serve();
    let task = create(&server, "/api/tasks", json!({"title": "a"})).await;
    let id = task["id"].as_str().unwrap();
    create(&server, "/api/reminders", json!({"task_id": id, "remind_at": seconds_from_now(3600)})).await;
    let status = async || {
        server.get("/api/reminders?status=all").await.json::<Value>().await.unwrap()["reminders"][0]["status"].clone()
    };
    server.post(&format!("/api/tasks/{id}/complete"), &json!({})).await;
    assert_eq!(status().await, "dropped");
    server.post("/api/tasks/undo", &json!({})).await;
    assert_eq!(status().await, "scheduled");
    server.request(Method::DELETE, &format!("/api/tasks/{id}")).send().await.unwrap();
    assert_eq!(status().await, "dropped");
    server.post("/api/tasks/undo", &json!({})).await;
    assert_eq!(status().await, "scheduled");
}

#[tokio::test]
async fn reminders_of_other_users_are_invisible() {
    // AGENT-3, TASK-4
    let home = home_with_auth();
    let server = home.serve();
    let [alice, bob] = [ALICE, BOB].map(|user| token(&home, user, &[]));
    let send = async |who: &str, method: Method, path: &str, body: Value| {
        let answer = server.request(method, path).bearer_auth(who).json(&body).send().await.unwrap();
        (answer.status(), answer.json::<Value>().await.unwrap_or_default())
    };
    let (_, task) =
        send(&alice, Method::POST, "/api/tasks", json!({"title": "hers", "due_date": seconds_from_now(2)})).await;
    let draft = json!({"task_id": task["id"], "remind_at": seconds_from_now(3600)});
    let (refused, _) = send(&bob, Method::POST, "/api/reminders", draft.clone()).await;
    assert_eq!(refused, StatusCode::NOT_FOUND);
    let (_, reminder) = send(&alice, Method::POST, "/api/reminders", draft).await;
    let mut notification = json!(null);
    wait_until("the notification exists", async || {
        notification = send(&alice, Method::GET, "/api/notifications", json!({})).await.1["notifications"][0].clone();
        notification.is_object()
    })
    .await;
    assert_eq!(notification["title"], "Due now: hers");
    assert_eq!(send(&bob, Method::GET, "/api/notifications", json!({})).await.1["count"], 0);
    assert_eq!(send(&bob, Method::GET, "/api/reminders?status=all", json!({})).await.1["count"], 0);
    let reminder = reminder["id"].as_str().unwrap();
    let notification = notification["id"].as_str().unwrap();
    for (method, path) in [
        (Method::GET, format!("/api/reminders/{reminder}")),
        (Method::DELETE, format!("/api/reminders/{reminder}")),
        (Method::POST, format!("/api/notifications/{notification}/read")),
    ] {
        assert_eq!(send(&bob, method, &path, json!({})).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    let stream =
        server.request(Method::GET, "/api/notifications/stream").bearer_auth(&bob).header("last-event-id", "0");
    let mut stream = stream.send().await.unwrap();
    let listened = tokio::time::timeout(Duration::from_secs(1), async {
        let mut received = String::new();
        while let Ok(Some(chunk)) = stream.chunk().await {
            received.push_str(&String::from_utf8_lossy(&chunk));
            assert!(!received.contains("hers"), "{received}");
        }
    });
    assert!(listened.await.is_err(), "the stream stays open");
    assert_eq!(server.get("/api/notifications").await.status(), StatusCode::UNAUTHORIZED);
}

#[test]
fn reminders_can_be_managed_from_the_shell() {
    // TASK-4
    for with_server in [false, true] {
        let home = home();
        let _server = with_server.then(|| home.serve());
        home.run(&["tasks", "add", "water the plants"]).ok();
        let at = seconds_from_now(7200);
        let added = home.run(&["reminders", "add", "plants", &at, "--every", "30", "--times", "3"]).ok();
        assert!(
            added.starts_with("Added a reminder for 'water the plants' for ")
                && added.contains("every 30 min, 3 times"),
            "{added}"
        );
        home.run(&["reminders", "add", "plants", &at]).ok();
        assert_eq!(home.run(&["reminders", "add", "plants", "2020-01-01T10:00"]).code(), 2);
        assert_eq!(home.run(&["reminders", "add", "nothing", &at]).code(), 3);
        let shown = home.run(&["reminders", "list"]).ok();
        assert_eq!(shown.lines().count(), 2, "{shown}");
        assert!(shown.contains("water the plants") && shown.contains("scheduled"), "{shown}");
        let ids = home.run(&["reminders", "list", "-q", "--task", "plants"]).ok();
        let ids: Vec<_> = ids.lines().collect();
        assert_eq!(home.run(&["reminders", "rm", ids[0]]).code(), 4, "a confirmation is required");
        assert_eq!(home.run(&["reminders", "rm", &ids[0][28..], "--yes"]).ok(), "Removed the reminder\n");
        assert_eq!(home.run(&["reminders", "rm", ids[0], "--yes"]).code(), 3);
        assert_eq!(home.run(&["reminders", "list", "--json"]).json()["count"], 1);
        assert_eq!(home.run(&["notifications", "--json"]).json()["count"], 0);
        assert_eq!(home.run(&["notifications"]).err(), "no notifications\n");
    }
}

#[test]
fn reminders_can_be_changed_from_the_shell() {
    // TRUST-2, AGENT-13
    let home = home();
    home.run(&["tasks", "add", "flight", "--due", "2099-02-02T18:00"]).ok();
    let added = home.run(&["reminders", "add", "flight", "--before", "2h"]).ok();
    assert!(added.contains(", 2 h before the due date"), "{added}");
    home.run(&["reminders", "add", "flight", "--recurrence", "FREQ=DAILY;BYHOUR=8;BYMINUTE=0"]).ok();
    assert_eq!(home.run(&["reminders", "add", "flight"]).code(), 2, "a time is needed");
    let list = home.run(&["reminders", "list", "--json"]).json();
    let [before, daily] = list["reminders"].as_array().unwrap().as_slice() else { panic!("{list}") };
    assert_eq!((&before["before_minutes"], &before["next_at"]), (&json!(120), &before["remind_at"]));
    assert_eq!(daily["recurrence"], "FREQ=DAILY;BYHOUR=8;BYMINUTE=0");
    let shown = home.run(&["reminders", "list"]).ok();
    assert!(shown.contains("every day at 8am") && shown.contains("2 h"), "{shown}");
    let edited = home.run(&["reminders", "edit", before["id"].as_str().unwrap(), "--before", "1d", "--json"]).json();
    assert_eq!(edited["before_minutes"], 1440);
    home.run(&["reminders", "snooze", daily["id"].as_str().unwrap(), "2099-01-01T10:00"]).ok();
    let list = home.run(&["reminders", "list", "--json"]).json();
    assert_eq!(list["reminders"][1]["next_at"], list["reminders"][1]["snoozed_until"]);
    home.run(&["tasks", "undo"]).ok();
    home.run(&["tasks", "undo"]).ok();
    let list = home.run(&["reminders", "list", "--json"]).json();
    assert_eq!(list["reminders"].as_array().unwrap().as_slice(), [before.clone(), daily.clone()]);
    home.run(&["tasks", "edit", "flight", "--clear", "due"]).ok();
    assert_eq!(home.run(&["reminders", "list", "--json"]).json()["count"], 1, "one has no due date any more");
    assert_eq!(home.run(&["reminders", "edit", daily["id"].as_str().unwrap()]).code(), 2, "nothing to change");
    assert_eq!(home.run(&["reminders", "snooze", daily["id"].as_str().unwrap(), "2001-01-01T10:00"]).code(), 2);
}

#[tokio::test]
async fn notifications_can_be_followed_from_the_shell() {
    // Without a server, the command itself fires due reminders.
    for with_server in [true, false] {
        let home = home();
        let server = with_server.then(|| home.serve());
        home.run(&["tasks", "add", "call mum"]).ok();
        let task = home.run(&["tasks", "list", "-q"]).ok();
        home.run(&["reminders", "add", task.trim(), &seconds_from_now(3)]).ok();
        let mut child = home
            .command(&["notifications", "-f", "--mark-read"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let read = tokio::task::spawn_blocking(move || {
            out.read_line(&mut line).unwrap();
            line
        });
        let line = tokio::time::timeout(Duration::from_secs(30), read).await.unwrap().unwrap();
        assert!(line.ends_with("Reminder: call mum\n"), "{line}");
        if with_server {
            wait_until("it is marked as read", async || {
                home.run(&["notifications", "--unread", "--json"]).json()["count"] == 0
            })
            .await;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let shown = home.run(&["notifications"]).ok();
        assert!(shown.contains("reminder\tReminder: call mum"), "{shown}");
        drop(server);
    }
}

fn home_with_webhook(port: u16) -> Home {
    let file = format!(
        "[[notify]]\nname = \"hook\"\ntype = \"webhook\"\nurl = \"http://127.0.0.1:{port}/hook\"\n\
         secret = \"env:HOOK_SECRET\"\nallow_private = true\n"
    );
    home().with_env("HOOK_SECRET", SECRET).with_config(&file)
}

/// Creates a task that is due in two seconds.
async fn create_due_task(server: &Server, title: &str) {
    create(server, "/api/tasks", json!({"title": title, "due_date": seconds_from_now(2)})).await;
}

#[tokio::test]
async fn deliveries_are_resumed_after_a_kill() {
    // TASK-4, TASK-5: the server is killed between firing and delivery
    let receiver = Receiver::default();
    receiver.status.store(503, Ordering::Relaxed);
    let home = home_with_webhook(receiver.start().await);
    let mut server = home.serve();
    create_due_task(&server, "pay").await;
    wait_until("it fires, and cannot be delivered", async || receiver.count() > 0).await;
    server.kill();
    let before = receiver.count();
    receiver.status.store(200, Ordering::Relaxed);
    let server = home.serve();
    wait_until("it is delivered", async || receiver.count() > before).await;
    let first = receiver.delivery(0);
    let last = receiver.delivery(before);
    assert_eq!(first, last, "the retry has the same id and content");
    assert_eq!(last.1["title"], "Due now: pay");
    assert_eq!(notifications(&server).await.len(), 1, "one notification is stored");

    let (headers, body) = receiver.got.lock().unwrap()[before].clone();
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(format!("{}.", header("x-adjutant-timestamp")).as_bytes());
    mac.update(&body);
    assert_eq!(header("x-adjutant-signature"), format!("sha256={}", model::text::hex(&mac.finalize().into_bytes())));
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(receiver.count(), before + 1, "it is delivered once");
    let metrics = server.get("/metrics").await.text().await.unwrap();
    assert!(metrics.contains("adjutant_deliveries_total{channel=\"hook\",outcome=\"delivered\"} 1"), "{metrics}");
}

#[tokio::test]
async fn reminders_due_during_downtime_fire_at_the_start() {
    // TASK-4
    let home = home();
    let mut server = home.serve();
    create_due_task(&server, "late").await;
    let task = create(&server, "/api/tasks", json!({"title": "also late"})).await;
    let draft = json!({"task_id": task["id"], "remind_at": seconds_from_now(2), "repeat_interval_minutes": 60});
    create(&server, "/api/reminders", draft).await;
    server.kill();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let server = home.serve();
    wait_until("both are notified", async || notifications(&server).await.len() == 2).await;
    let list: Value = server.get("/api/reminders").await.json().await.unwrap();
    assert_eq!(
        (&list["count"], &list["reminders"][0]["fired_count"]),
        (&json!(1), &json!(1)),
        "the repetition continues"
    );
}

#[tokio::test]
async fn sighup_adds_and_removes_channels() {
    let receiver = Receiver::default();
    let dir = tempfile::tempdir().unwrap();
    let port = receiver.start().await;
    let home = home().with_env("HOOK_SECRET", SECRET).with_config("");
    let server = home.serve();
    create_due_task(&server, "before").await;
    wait_until("it is notified", async || notifications(&server).await.len() == 1).await;
    let file = dir.path().join("titles");
    let more = format!(
        "[[notify]]\nname = \"desk\"\ntype = \"command\"\ncommand = \"sh\"\n\
         args = [\"-c\", \"echo $ADJUTANT_NOTIFICATION_TITLE >> {}\"]\nkinds = [\"reminder\"]\n",
        file.display()
    );
    let hook = format!(
        "[[notify]]\nname = \"hook\"\ntype = \"webhook\"\nurl = \"http://127.0.0.1:{port}/hook\"\n\
         secret = \"env:HOOK_SECRET\"\nallow_private = true\n"
    );
    home.write_config(&format!("{hook}{more}"));
    server.signal(Signal::SIGHUP);
    server.wait_for_event("configuration_reloaded").await;
    create_due_task(&server, "after").await;
    wait_until("both are notified", async || {
        receiver.count() == 1 && std::fs::read_to_string(&file).unwrap_or_default() == "Due now: after\n"
    })
    .await;
    let health: Value = server.get("/health").await.json().await.unwrap();
    let channels = &health["dependencies"]["channels"];
    assert_eq!((&channels[0]["name"], &channels[0]["type"]), (&json!("hook"), &json!("webhook")));
    assert_eq!((&channels[1]["name"], &channels[1]["status"]), (&json!("desk"), &json!("ok")));
    let shown = home.run(&["config", "show"]).ok();
    assert!(shown.contains(&format!("notify[hook]\twebhook at 127.0.0.1:{port}\t")), "{shown}");
    assert!(home.run(&["doctor"]).out().contains("desk (command sh"), "{}", home.run(&["doctor"]).out());
    let log = server.raw_log();
    for output in [&shown, &log, &home.run(&["config", "show", "--json"]).ok(), &home.run(&["doctor"]).out()] {
        assert!(!output.contains(SECRET), "{output}");
    }
}

#[tokio::test]
async fn a_failing_channel_is_disabled_and_reported() {
    let receiver = Receiver::default();
    receiver.status.store(410, Ordering::Relaxed);
    let home = home_with_webhook(receiver.start().await);
    let server = home.serve();
    for n in 0..3 {
        create_due_task(&server, &n.to_string()).await;
    }
    server.wait_for_event("channel_disabled").await;
    let health: Value = server.get("/health").await.json().await.unwrap();
    assert_eq!(health["status"], "ok", "a failed channel does not affect the health of the server");
    let channel = &health["dependencies"]["channels"][0];
    assert_eq!(
        (&channel["status"], &channel["last_error"]),
        (&json!("unavailable"), &json!("the server responded with 410 Gone"))
    );
    assert!(channel["disabled_until"].is_string(), "{channel}");
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code(), 1);
    assert!(doctor.out().contains("hook is disabled until"), "{}", doctor.out());
}

#[tokio::test]
async fn two_nodes_notify_once_and_both_stream() {
    // TASK-4, OPS-5
    let database = testkit::postgres::create_database().await.unwrap();
    let node = || home().with_env("ADJUTANT_DATABASE__URL", &database);
    let homes = [node(), node()];
    let [first_node, second_node] = homes.each_ref().map(Home::serve);
    let mut streams =
        [first_node.get("/api/notifications/stream").await, second_node.get("/api/notifications/stream").await];
    for n in 0..20 {
        let server = if n % 2 == 0 { &first_node } else { &second_node };
        create_due_task(server, &n.to_string()).await;
    }
    for stream in &mut streams {
        let mut received = String::new();
        let all = async {
            while received.matches("event: notification").count() < 20 {
                received.push_str(&String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap()));
            }
        };
        tokio::time::timeout(Duration::from_secs(20), all).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let stored = notifications(&first_node).await;
    let mut titles: Vec<_> =
        stored.iter().map(|notification| notification["title"].as_str().unwrap().to_owned()).collect();
    titles.sort();
    titles.dedup();
    assert_eq!((stored.len(), titles.len()), (20, 20));
}
