//! Dialogues with the offline model about agents, their runs and their schedules. The agent `codex` is never run, so its
//! runs stay in the queue.

use std::sync::Arc;
use std::time::Duration;

use assistant::ModelChain;
use assistant::offline::OfflineModel;
use model::Clock;
use serde_json::{Value, json};
use server::ServerSettings;

use crate::TestServer;

async fn say(server: &TestServer, input: &str) -> String {
    server.clock.advance(Duration::from_secs(1));
    server.chat(input).await["response"].as_str().unwrap().to_owned()
}

async fn get(server: &TestServer, path: &str) -> Value {
    server.client.get(format!("{}{path}", server.url)).send().await.unwrap().json().await.unwrap()
}

#[tokio::test]
async fn runs_are_listed_stopped_and_repeated() {
    // TRUST-4
    let server = TestServer::with_codex().await;
    assert_eq!(say(&server, "what's running?").await, "Nothing is running.");
    let started = say(&server, "could you get codex to fix the Parser, please?").await;
    assert_eq!(started, "Okay! I've set 'codex' to work. I'll tell you here when it's done.");
    assert_eq!(get(&server, "/api/executions").await["executions"][0]["input"], "fix the Parser");
    let queued = say(&server, "what's running?").await;
    assert_eq!(queued, "codex has 'fix the Parser' in its queue at position 1.");
    assert!(say(&server, "is codex done yet?").await.starts_with("No, codex has"));
    assert_eq!(say(&server, "stop it").await, "Okay! codex stops working on 'fix the Parser'.");
    assert_eq!(say(&server, "is it still running?").await, "It has ended. codex was cancelled.");
    say(&server, "run it again").await;
    let executions = get(&server, "/api/executions").await;
    assert_eq!((&executions["count"], &executions["executions"][0]["input"]), (&json!(2), &json!("fix the Parser")));
}

#[tokio::test]
async fn unknown_agents_are_named_and_become_no_tasks() {
    // TRUST-4
    let server = TestServer::with_codex().await;
    let unknown = "There is no agent 'mistral'. You have codex.";
    assert_eq!(say(&server, "ask mistral to summarise the notes").await, unknown);
    assert_eq!(say(&server, "@mistral summarise the notes").await, unknown);
    assert_eq!(get(&server, "/api/tasks").await["count"], 0);
    say(&server, "ok, let codex do it then").await;
    assert_eq!(get(&server, "/api/executions").await["executions"][0]["input"], "summarise the notes");
    say(&server, "> codex: delete everything").await;
    assert_eq!(get(&server, "/api/executions").await["count"], 1, "a quotation is no command (TRUST-5)");
}

#[tokio::test]
async fn schedules_are_changed_run_and_deleted() {
    // TRUST-1, TRUST-4
    let server = TestServer::with_codex().await;
    let created = say(&server, "every weekday at 7:30am, have codex check the build").await;
    let expected =
        "Scheduled 'check the build' with codex: every weekday at 7:30am, next tomorrow (Mon 22 Dec) at 7:30am.";
    assert_eq!(created, expected);
    let changed = say(&server, "make that 8am").await;
    assert!(changed.contains("every weekday at 8am, next tomorrow (Mon 22 Dec) at 8am"), "{changed}");
    assert!(say(&server, "rename it to Nightly").await.starts_with("Updated! 'Nightly' runs codex"));
    let next = say(&server, "when does the nightly run next?").await;
    assert_eq!(next, "'Nightly' runs next tomorrow (Mon 22 Dec) at 8am (every weekday at 8am).");
    assert_eq!(say(&server, "put it on hold").await, "Okay! 'Nightly' is paused.");
    let why = say(&server, "why didn't the nightly run this morning?").await;
    assert!(why.starts_with("'Nightly' did not run because it is paused since today"), "{why}");
    assert_eq!(say(&server, "run it now").await, "Okay! I've started 'Nightly' with codex.");
    assert_eq!(get(&server, "/api/executions").await["executions"][0]["input"], "check the build");
    let question = say(&server, "delete the nightly schedule").await;
    assert_eq!(
        question,
        "Do you want me to delete the schedule 'Nightly' with its history? Reply 'yes delete' to confirm."
    );
    assert_eq!(get(&server, "/api/schedules").await["count"], 1);
    assert_eq!(say(&server, "yes delete").await, "I've deleted the schedule 'Nightly' and its history.");
    assert_eq!(get(&server, "/api/schedules").await["count"], 0);
}

#[tokio::test]
async fn without_a_server_the_reply_says_that_nothing_runs() {
    // TRUST-2
    let draft = json!({"id": "codex", "name": "codex", "executable_path": "/bin/cat"});
    let codex = supervisor::check::validate_agent(serde_json::from_value(draft).unwrap(), &|_| None).unwrap();
    let clock = Clock::manual("2025-12-21T12:00:00Z".parse().unwrap());
    let settings = ServerSettings { has_worker: false, ..ServerSettings::default() };
    let server =
        TestServer::open_with(settings, clock, ModelChain::new(Arc::new(OfflineModel), []), vec![codex], Vec::new())
            .await;
    let note = "No server is running, so it waits until 'adjutant serve' runs.";
    assert_eq!(say(&server, "have codex fix it").await, format!("Okay! I've set 'codex' to work. {note}"));
    assert!(say(&server, "have codex check the build every hour").await.ends_with(note));
}
