//! Dates, repetitions and texts in words: on the command line without quotes, and in fields over HTTP.

use jiff::ToSpan;
use jiff::civil::Date;
use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::app::Home;

use crate::home;

fn today() -> Date {
    model::Clock::system().now().to_zoned(jiff::tz::TimeZone::UTC).date()
}

fn tasks(home: &Home) -> Vec<Value> {
    home.run(&["tasks", "list", "--json"]).json()["tasks"].as_array().unwrap().clone()
}

#[test]
fn texts_need_no_quotes() {
    // TASK-1
    let home = home();
    let added = home.run(&["tasks", "add", "buy", "more", "milk", "--due", "tomorrow", "--repeat", "weekly"]).ok();
    assert_eq!(added, "Added 'buy more milk', due tomorrow, every week\n");
    home.run(&["tasks", "add", "--priority", "high", "call", "--", "--mom--"]).ok();
    let found = tasks(&home);
    assert_eq!(found[0]["due_date"], today().tomorrow().unwrap().to_string());
    assert_eq!((&found[0]["recurrence"], &found[1]["title"]), (&json!("FREQ=WEEKLY"), &json!("call --mom--")));
    let reply = home.run(&["chat", "add", "pay", "rent"]).ok();
    assert_eq!(reply, "Got it! Added 'pay rent' to your list. Anything else?\n");
    let added = home.run(&["reminders", "add", "milk", "tomorrow", "9am"]).ok();
    assert_eq!(added, "Added a reminder for 'buy more milk' for tomorrow at 9am\n");
    let daily = home.run(&["reminders", "add", "rent", "--repeat", "every day at 8am"]);
    assert!(daily.err().contains("no server is running"), "{}", daily.err());
    let daily = daily.ok();
    assert!(daily.ends_with(", every day\n"), "{daily}");
    let id = home.run(&["reminders", "list", "-q", "--task", "milk"]).ok();
    let snoozed = home.run(&["reminders", "snooze", id.trim(), "next", "week"]).ok();
    assert!(snoozed.starts_with("Snoozed the reminder until "), "{snoozed}");
}

#[test]
fn a_task_is_shown_with_everything() {
    let home = home();
    let add =
        ["tasks", "add", "dentist", "--due", "2090-01-31T15:00", "--tag", "health", "--description", "bring forms"];
    home.run(&add).ok();
    home.run(&["reminders", "add", "dentist", "--before", "1d"]).ok();
    let shown = home.run(&["tasks", "show", "dentist"]).ok();
    for part in [
        "dentist\n",
        "due          Tue 31 Jan 2090 at 3pm",
        "tags         health",
        "description  bring forms",
        "reminder     Mon 30 Jan 2090 at 3pm, 1 d before the due date",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let json = home.run(&["tasks", "show", "dentist", "--json"]).json();
    assert_eq!((&json["title"], &json["reminders"][0]["before_minutes"]), (&json!("dentist"), &json!(1440)));
}

#[test]
fn lists_are_sorted_and_name_overdue_tasks() {
    let home = home();
    for (title, due, priority) in
        [("later", Some("2090-01-31"), "high"), ("undated", None, "medium"), ("late", Some("2020-01-31"), "low")]
    {
        let mut arguments = vec!["tasks", "add", title, "--priority", priority];
        arguments.extend(due.iter().flat_map(|due| ["--due", due]));
        home.run(&arguments).ok();
    }
    let titles = |arguments: &[&str]| {
        let shown = home.run(&[&["tasks", "list"], arguments].concat()).ok();
        shown.lines().map(|line| line.split('\t').nth(2).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(titles(&[]), ["late", "later", "undated"]);
    assert_eq!(titles(&["--sort", "priority"]), ["later", "undated", "late"]);
    assert_eq!(titles(&["--sort", "created"]), ["later", "undated", "late"]);
    let shown = home.run(&["tasks", "list"]).ok();
    assert!(shown.lines().next().unwrap().contains("\toverdue since Fri 31 Jan 2020\t"), "{shown}");
    assert_eq!(tasks(&home)[0]["title"], "later", "JSON keeps the order of creation");
    let first = home.run(&["tasks", "list", "--sort", "due", "--limit", "2", "--json"]).json();
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = home.run(&["tasks", "list", "--sort", "due", "--cursor", cursor, "--json"]).json();
    assert_eq!((&second["count"], &second["tasks"][0]["title"]), (&json!(1), &json!("undated")));
    assert_eq!(home.run(&["tasks", "list", "--limit", "0"]).code(), 2);
    assert_eq!(home.run(&["tasks", "list", "--due", "next_week"]).code(), 0);
}

#[test]
fn single_messages_continue_the_last_conversation() {
    // TRUST-3
    let home = home();
    home.run(&["chat", "add call the bank"]).ok();
    let json = home.run(&["chat", "--json", "make it urgent"]).json();
    let id = json["conversation_id"].as_str().unwrap().to_owned();
    assert_eq!(tasks(&home)[0]["priority"], "high", "{json}");
    let new = home.run(&["chat", "--new", "--json", "hello"]).json();
    assert_ne!(new["conversation_id"], json!(id));
    let continued = home.run(&["chat", "--json", "--continue", "hello"]).json();
    assert_eq!(continued["conversation_id"], new["conversation_id"]);
    let asked = home.run(&["chat", "--new", "the first one is done"]).ok();
    assert!(asked.contains('?'), "{asked}");
    assert_eq!(tasks(&home)[0]["status"], "pending");
}

#[test]
fn mistyped_names_get_a_suggestion() {
    let home = home();
    home.run(&["tasks", "add", "see the dentist"]).ok();
    let missing = home.run(&["tasks", "done", "dentits"]);
    assert_eq!(missing.code(), 3);
    assert!(missing.err().contains("did you mean 'see the dentist'?"), "{}", missing.err());
    let missing = home.run(&["run", "assistnat", "hello"]);
    assert!(missing.err().contains("did you mean 'assistant'?"), "{}", missing.err());
    let problem = home.run(&["tasks", "done", "99999999", "--json"]);
    assert_eq!((problem.code(), &problem.json()["exit_code"]), (3, &json!(3)));
}

#[test]
fn tags_can_be_added_and_removed() {
    let home = home();
    home.run(&["tasks", "add", "paint", "--tag", "home", "--tag", "diy"]).ok();
    home.run(&["tasks", "edit", "paint", "--add-tag", "weekend", "--remove-tag", "#DIY"]).ok();
    assert_eq!(tasks(&home)[0]["tags"], json!(["home", "weekend"]));
    home.run(&["tasks", "done", "paint"]).ok();
    assert_eq!(home.run(&["tasks", "done", "paint"]).ok(), "'paint' was done already\n");
}

#[tokio::test]
async fn fields_accept_words_and_answer_with_the_value() {
    // TASK-1, TASK-4
    let home = home();
    let server = home.serve();
    let read = async |answer: reqwest::Response| answer.json::<Value>().await.unwrap();
    let draft = json!({"title": "report", "due_date": "tomorrow 9am", "recurrence": "every friday at 5pm"});
    let task = read(server.post("/api/tasks", &draft).await).await;
    assert_eq!(task["due_date"], format!("{}T09:00:00+00:00", today().tomorrow().unwrap()));
    assert_eq!(task["recurrence"], "FREQ=WEEKLY;BYDAY=FR");
    let path = format!("/api/tasks/{}", task["id"].as_str().unwrap());
    let patch = server.request(reqwest::Method::PATCH, &path).json(&json!({"due_date": "in 3 days"}));
    let patched = read(patch.send().await.unwrap()).await;
    assert_eq!(patched["due_date"], today().checked_add(3.days()).unwrap().to_string());
    let reminder = json!({"task_id": task["id"], "remind_at": "tomorrow at noon"});
    let reminder = read(server.post("/api/reminders", &reminder).await).await;
    assert_eq!(reminder["remind_at"], format!("{}T12:00:00Z", today().tomorrow().unwrap()));
    let listed = read(server.get("/api/tasks?due=in+3+days").await).await;
    assert_eq!(listed["count"], 1, "{listed}");
    for (path, body, field) in [
        ("/api/tasks", json!({"title": "x", "due_date": "whenever"}), "due_date"),
        ("/api/tasks", json!({"title": "x", "recurrence": "sometimes"}), "recurrence"),
        ("/api/reminders", json!({"task_id": task["id"], "remind_at": "soonish"}), "remind_at"),
        ("/api/schedules", json!({"name": "x", "agent_id": "assistant", "when": "rarely"}), "when"),
    ] {
        let answer = server.post(path, &body).await;
        assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY, "{body}");
        let problem = read(answer).await;
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
        assert!(problem["errors"][0]["message"].as_str().unwrap().contains("words such as"), "{problem}");
    }
    let schedule = json!({
        "name": "tidy", "agent_id": "assistant", "when": "every friday at 5pm",
        "input_parameters": {"input": "show my tasks"},
    });
    let schedule = read(server.post("/api/schedules", &schedule).await).await;
    assert_eq!(schedule["cron_expression"], "0 17 * * FRI");
}

#[test]
fn unknown_parameters_of_a_run_are_refused() {
    let home = home();
    home.run(&[
        "agents",
        "add",
        "--id",
        "greet",
        "--executable",
        "echo",
        "--arg",
        "{{greeting}}",
        "--arg",
        "{{input}}",
    ])
    .ok();
    let wrong = home.run(&["run", "greet", "world", "--param", "greetign=hi"]);
    assert_eq!(wrong.code(), 2);
    assert!(wrong.err().contains("'greet' has no parameter 'greetign'; it has greeting"), "{}", wrong.err());
    let said = home.run(&["run", "greet", "big", "wide", "world", "--param", "greeting=hello"]).ok();
    assert_eq!(said.trim(), "hello big wide world");
}
