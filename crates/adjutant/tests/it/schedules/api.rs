//! `/api/schedules`.

use reqwest::Method;
use serde_json::{Value, json};

use super::{AGENTS, create, get, path, send, wait_until};
use crate::{ALICE, BOB, SECRET, home, token};

#[tokio::test]
async fn a_schedule_can_be_created_changed_paused_and_deleted() {
    // SCHED-1, SCHED-2
    let home = home().with_config(AGENTS);
    let server = home.serve();
    let draft = json!({
        "name": "tidy",
        "agent_id": "cat",
        "cron_expression": "0 17 * * FRI",
        "input_parameters": {"input": "Tidy the changelog."},
    });
    let schedule = create(&server, &draft).await;
    for field in
        "id name agent_id cron_expression enabled last_execution next_execution input_parameters active every at time_zone \
         overlap missed missed_window jitter start_at end_at pause_after_failures state"
            .split_whitespace()
    {
        assert!(schedule.get(field).is_some(), "{field}: {schedule}");
    }
    assert_eq!(
        (&schedule["state"], &schedule["active"], &schedule["enabled"]),
        (&json!("active"), &json!(true), &json!(true))
    );
    assert_eq!((&schedule["overlap"], &schedule["missed"]), (&json!("skip"), &json!("once")), "SCHED-3");
    assert_eq!(schedule["time_zone"], "Europe/Berlin", "the zone of the user");
    let next: jiff::Zoned = schedule["next_execution"]
        .as_str()
        .unwrap()
        .parse::<jiff::Timestamp>()
        .unwrap()
        .in_tz("Europe/Berlin")
        .unwrap();
    assert_eq!((next.weekday(), next.hour()), (jiff::civil::Weekday::Friday, 17));
    assert_eq!(get(&server, &path(&schedule, "")).await, schedule);
    let times = get(&server, &path(&schedule, "/next?limit=3")).await;
    assert_eq!((&times["count"], &times["times"][0]), (&json!(3), &schedule["next_execution"]));

    let (status, again) = send(&server, None, Method::POST, "/api/schedules", Some(&draft)).await;
    assert_eq!((status, &again["type"]), (409, &json!("urn:adjutant:problem:taken")));

    let patch = json!({"every": "90m", "overlap": "queue_one", "name": "Tidy up"});
    let (status, changed) = send(&server, None, Method::PATCH, &path(&schedule, ""), Some(&patch)).await;
    assert_eq!((status, &changed["every"], &changed["cron_expression"]), (200, &json!("1h30m"), &json!(null)));
    assert_ne!(changed["next_execution"], schedule["next_execution"], "an edit takes effect immediately");

    let reason = json!({"reason": "the changelog is being rewritten"});
    let (_, paused) = send(&server, None, Method::POST, &path(&schedule, "/pause"), Some(&reason)).await;
    assert_eq!(
        (&paused["state"], &paused["enabled"], &paused["active"]),
        (&json!("paused"), &json!(false), &json!(false))
    );
    assert_eq!((&paused["paused_reason"], &paused["next_execution"]), (&reason["reason"], &json!(null)));
    let explained = get(&server, &path(&schedule, "/explain")).await;
    assert!(explained["text"].as_str().unwrap().contains("the changelog is being rewritten"), "{explained}");
    let (_, resumed) = send(&server, None, Method::POST, &path(&schedule, "/resume"), None).await;
    assert_eq!((&resumed["state"], &resumed["paused_reason"]), (&json!("active"), &json!(null)));

    let list = get(&server, "/api/schedules?agent_id=cat&ref=tidy%20up").await;
    assert_eq!((&list["count"], &list["schedules"][0]["name"]), (&json!(1), &json!("Tidy up")));
    assert_eq!(send(&server, None, Method::DELETE, &path(&schedule, ""), None).await.0, 204);
    assert_eq!(send(&server, None, Method::GET, &path(&schedule, ""), None).await.0, 404);
    assert_eq!(get(&server, "/api/schedules").await, json!({"schedules": [], "count": 0, "next_cursor": null}));
}

#[tokio::test]
async fn a_schedule_fires_and_records_its_decisions() {
    // SCHED-2, SCHED-4
    let home = home().with_config(AGENTS);
    let server = home.serve();
    let draft = json!({"name": "often", "agent_id": "cat", "every": "1s", "input_parameters": {"input": "hello"}});
    let schedule = create(&server, &draft).await;
    let fired =
        |body: &Value| body["decisions"].as_array().unwrap().iter().filter(|d| d["kind"] == "fired").count() >= 2;
    let history = wait_until(&server, &path(&schedule, "/history"), "fired twice", fired).await;
    let first = history["decisions"].as_array().unwrap().last().unwrap();
    let late = |decision: &Value| {
        let time = |field: &str| decision[field].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        time("decided_at").duration_since(time("due_at")).as_secs_f64()
    };
    assert!(late(first) < 1.0, "within a second of its time: {first}");
    let ended = |body: &Value| body["executions"].as_array().unwrap().iter().any(|e| e["state"] == "completed");
    let executions = wait_until(&server, &path(&schedule, "/executions"), "completed", ended).await;
    assert_eq!(executions["executions"][0]["schedule_id"], schedule["id"]);
    let shown = wait_until(&server, &path(&schedule, ""), "successful", |body| body["last_status"] == "success").await;
    assert!(shown["last_execution"].is_string(), "{shown}");
}

#[tokio::test]
async fn a_schedule_can_be_run_immediately() {
    // SCHED-2
    let home = home().with_config(AGENTS);
    let server = home.serve();
    let draft =
        json!({"name": "later", "agent_id": "cat", "at": "2099-01-01T09:00", "input_parameters": {"input": "now"}});
    let schedule = create(&server, &draft).await;
    assert_eq!(schedule["at"], "2099-01-01T08:00:00Z", "in the zone of the user");
    send(&server, None, Method::POST, &path(&schedule, "/pause"), None).await;
    let wait = json!({"wait": true});
    let (status, done) = send(&server, None, Method::POST, &path(&schedule, "/run"), Some(&wait)).await;
    assert_eq!(
        (status, &done["status"], &done["output"]),
        (200, &json!("success"), &json!("now")),
        "a paused schedule can be run"
    );
    let history = get(&server, &path(&schedule, "/history")).await;
    assert_eq!(
        (&history["decisions"][0]["kind"], &history["decisions"][0]["execution_id"]),
        (&json!("run"), &done["id"])
    );
    // Two requests with the same key run once.
    let run = || server.request(Method::POST, &path(&schedule, "/run")).header("Idempotency-Key", "run-1").send();
    let first = run().await.unwrap();
    let second = run().await.unwrap();
    assert_eq!((first.status().as_u16(), second.status().as_u16()), (202, 202));
    assert_eq!(first.json::<Value>().await.unwrap()["id"], second.json::<Value>().await.unwrap()["id"]);
    assert_eq!(get(&server, &path(&schedule, "/executions")).await["count"], 2);
}

#[tokio::test]
async fn decisions_are_counted() {
    // SCHED-2, OPS-2
    let home = home().with_config(AGENTS);
    let server = home.serve();
    let count = async |kind: &str| {
        let metrics = server.get("/metrics").await.text().await.unwrap();
        let line = format!("adjutant_schedule_decisions_total{{kind=\"{kind}\"}} ");
        let count = metrics.lines().find_map(|text| text.strip_prefix(&line));
        count.unwrap_or_else(|| panic!("{line} is missing in\n{metrics}")).parse::<usize>().unwrap()
    };
    for kind in ["fired", "caught_up", "skipped", "missed", "paused", "refused", "queued", "run"] {
        assert_eq!(count(kind).await, 0, "{kind} exists from the start");
    }
    let draft = json!({"name": "busy", "agent_id": "sh", "every": "1s", "input_parameters": {"input": "sleep 60"}});
    let schedule = create(&server, &draft).await;
    let two = |body: &Value| body["decisions"].as_array().unwrap().len() > 1;
    wait_until(&server, &path(&schedule, "/history"), "skipped", two).await;
    send(&server, None, Method::POST, &path(&schedule, "/pause"), None).await;
    let history = get(&server, &path(&schedule, "/history")).await;
    let skipped = history["decisions"].as_array().unwrap().iter().filter(|d| d["kind"] == "skipped").count();
    assert!(skipped > 0, "{history}");
    send(&server, None, Method::POST, &path(&schedule, "/run"), None).await;
    assert_eq!((count("fired").await, count("skipped").await, count("run").await), (1, skipped, 1));
    assert_eq!((count("missed").await, count("refused").await), (0, 0));
}

#[tokio::test]
async fn invalid_input_names_the_field() {
    // SCHED-2
    let home = home().with_config(AGENTS);
    let server = home.serve();
    let fields = async |method: Method, path: &str, body: Value| {
        let (status, problem) = send(&server, None, method, path, Some(&body)).await;
        let errors = problem["errors"].as_array().cloned().unwrap_or_default();
        let mut fields: Vec<_> = errors.iter().map(|error| error["field"].as_str().unwrap().to_owned()).collect();
        fields.dedup();
        (status, fields.join(" "))
    };
    let good = json!({"name": "a", "agent_id": "cat", "every": "1h"});
    let with = |name: &str, value: Value| {
        let mut draft = good.clone();
        draft[name] = value;
        draft
    };
    for (draft, field) in [
        (json!({}), "name agent_id cron_expression"),
        (with("agent_id", json!("unknown")), "agent_id"),
        (with("agent_id", json!("off")), "agent_id"),
        (with("cron_expression", json!("0 9 * * *")), "cron_expression"),
        (json!({"name": "a", "agent_id": "cat", "cron_expression": "61 * * * *"}), "cron_expression"),
        (json!({"name": "a", "agent_id": "cat", "cron_expression": "0 0 31 2 *"}), "cron_expression"),
        (json!({"name": "a", "agent_id": "cat", "at": "2020-01-01T00:00"}), "at"),
        (with("every", json!("often")), "every"),
        (with("time_zone", json!("Mars/Olympus")), "time_zone"),
        (with("overlap", json!("sometimes")), "overlap"),
        (with("colour", json!("red")), "colour"),
        (with("input_parameters", json!({"input": 1})), "input_parameters.input"),
    ] {
        assert_eq!(fields(Method::POST, "/api/schedules", draft.clone()).await, (422, field.to_owned()), "{draft}");
    }
    let schedule = create(&server, &good).await;
    for (patch, field) in [
        (json!({}), "body"),
        (json!({"every": "0s"}), "every"),
        (json!({"agent_id": "unknown"}), "agent_id"),
        (json!({"every": null}), "cron_expression"),
        (json!({"name": null}), "name"),
    ] {
        let answer = fields(Method::PATCH, &path(&schedule, ""), patch.clone()).await;
        assert_eq!(answer, (422, field.to_owned()), "{patch}");
    }
    for (body, field) in [(json!({"why": 1}), "why"), (json!({"reason": "x".repeat(501)}), "reason")] {
        assert_eq!(fields(Method::POST, &path(&schedule, "/pause"), body).await, (422, field.to_owned()));
    }
    for (rest, field) in [("/next?limit=0", "limit"), ("/next?limit=201", "limit"), ("/explain?at=soon", "at")] {
        let (status, problem) = send(&server, None, Method::GET, &path(&schedule, rest), None).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!(field)), "{rest}");
    }
    // A schedule without future occurrences cannot be resumed.
    let at = model::Clock::system().now() + std::time::Duration::from_secs(2);
    let once = create(&server, &json!({"name": "once", "agent_id": "cat", "at": at.to_string()})).await;
    wait_until(&server, &path(&once, ""), "finished", |body| body["state"] == "paused").await;
    let (status, problem) = send(&server, None, Method::POST, &path(&once, "/resume"), None).await;
    assert_eq!(status, 409, "{problem}");
    assert_eq!(get(&server, &path(&once, "/executions")).await["count"], 1);
}

#[tokio::test]
async fn schedules_require_an_administrator() {
    // OPS-6
    let file = format!("[auth]\njwt_secret = \"env:TEST_SECRET\"\n{AGENTS}");
    let home = home().with_env("TEST_SECRET", SECRET).with_config(&file);
    let server = home.serve();
    let admin = token(&home, BOB, &["--scope", "adjutant:admin"]);
    let alice = token(&home, ALICE, &[]);
    let draft = json!({"name": "tidy", "agent_id": "cat", "every": "1h"});
    let (status, _) = send(&server, Some(&alice), Method::POST, "/api/schedules", Some(&draft)).await;
    assert_eq!(status, 403);
    let (status, schedule) = send(&server, Some(&admin), Method::POST, "/api/schedules", Some(&draft)).await;
    assert_eq!(status, 201, "{schedule}");
    for (method, rest, expected) in [
        (Method::GET, "", 404),
        (Method::GET, "/executions", 404),
        (Method::GET, "/history", 404),
        (Method::GET, "/next", 404),
        (Method::GET, "/explain", 404),
        (Method::PATCH, "", 403),
        (Method::DELETE, "", 403),
        (Method::POST, "/run", 403),
        (Method::POST, "/pause", 403),
        (Method::POST, "/resume", 403),
    ] {
        let body = (method == Method::PATCH).then(|| json!({"every": "2h"}));
        let (status, _) = send(&server, Some(&alice), method.clone(), &path(&schedule, rest), body.as_ref()).await;
        assert_eq!(status, expected, "{method} {rest}");
        let (status, _) = send(&server, None, method.clone(), &path(&schedule, rest), body.as_ref()).await;
        assert_eq!(status, 401, "{method} {rest}");
    }
    assert_eq!(send(&server, Some(&alice), Method::GET, "/api/schedules", None).await.1["count"], 0);
    assert_eq!(send(&server, Some(&admin), Method::GET, &path(&schedule, ""), None).await.1["every"], "1h");
}
