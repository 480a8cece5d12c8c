//! Two nodes on one database: turns of a conversation with a slow model, and executions.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::app::{Home, Server};
use testkit::llm::{Llm, Reply};
use tokio::sync::Notify;

use crate::home;

fn node(database: &str, llm: &Llm) -> Home {
    home()
        .with_env("ADJUTANT_DATABASE__URL", database)
        .with_env("OPENAI_API_KEY", "sk-test-0123456789abcdef")
        .with_env("OPENAI_BASE_URL", &format!("{}/v1", llm.url()))
}

async fn send(server: &Server, input: &str) -> Value {
    let body = json!({"input": input, "conversation_id": "conv_shared"});
    server.post("/chat", &body).await.json().await.unwrap()
}

#[tokio::test]
async fn turns_of_a_conversation_are_serialized_across_nodes() {
    // CHAT-7
    let llm = Llm::start().await;
    let database = testkit::postgres::create_database().await.unwrap();
    let homes = [node(&database, &llm), node(&database, &llm)];
    let [first_node, second_node] = homes.each_ref().map(Home::serve);
    let resume = Arc::new(Notify::new());
    llm.script([Reply::text("one two three four").paused(resume.clone()), Reply::text("second answer")]);
    let second = async {
        llm.wait_for_requests(1).await;
        let answer = send(&second_node, "second words");
        let check_waiting = async {
            tokio::time::sleep(Duration::from_millis(400)).await;
            assert_eq!(llm.requests().len(), 1, "the other node waits for the first turn");
            resume.notify_one();
        };
        tokio::join!(answer, check_waiting).0
    };
    let (first, second) = tokio::join!(send(&first_node, "first words"), second);
    assert_eq!((&first["response"], &second["response"]), (&json!("one two three four"), &json!("second answer")));
    let request_body = llm.requests().last().unwrap().body().to_string();
    assert!(
        request_body.contains("first words") && request_body.contains("one two three four"),
        "the request contains the first turn: {request_body}"
    );
}

#[tokio::test]
async fn a_turn_of_a_dead_node_is_released() {
    // CHAT-7
    let llm = Llm::start().await;
    let database = testkit::postgres::create_database().await.unwrap();
    let short = |home: Home| home.with_config("[server]\nrequest_timeout_seconds = 1\n");
    let homes = [short(node(&database, &llm)), short(node(&database, &llm))];
    let [mut first_node, second_node] = homes.each_ref().map(Home::serve);
    llm.script([Reply::text("never received").paused(Arc::new(Notify::new()))]);
    tokio::select! {
        _ = send(&first_node, "first words") => panic!("the node answered before it was killed"),
        () = llm.wait_for_requests(1) => first_node.kill(),
    }
    llm.always(Reply::text("here I am"));
    let body = json!({"input": "second words", "conversation_id": "conv_shared"});
    let mut answer = Value::Null;
    // Requests time out with 504 until the turn of the dead node is released.
    for _ in 0..30 {
        let response = second_node.post("/chat", &body).await;
        if response.status() == 200 {
            answer = response.json().await.unwrap();
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(answer["response"], "here I am");
}

#[tokio::test]
async fn executions_run_on_one_node_and_survive_its_death() {
    // OPS-5, SUP-4, SUP-11
    let database = testkit::postgres::create_database().await.unwrap();
    let shared = tempfile::tempdir().unwrap();
    let dir = shared.path().display();
    // mkdir fails if two executions run at the same time.
    let script = format!("mkdir {dir}/lock || exit 9; sleep 0.2; echo $0 >> {dir}/done; rmdir {dir}/lock");
    let agents = format!(
        "[[agents]]\nid = \"alone\"\nexecutable_path = \"sh\"\nargs = [\"-c\", \"{script}\", \"{{{{input}}}}\"]\n\
         input_pattern = \"args\"\naccess_type = \"read-write\"\nqueue_depth = 100\n\
         [[agents]]\nid = \"slow\"\nexecutable_path = \"sleep\"\nargs = [\"60.0611\"]\naccess_type = \"read-write\"\n"
    );
    let home = || home().with_env("ADJUTANT_DATABASE__URL", &database).with_config(&agents);
    let homes = [home(), home()];
    let [mut first_node, second_node] = homes.each_ref().map(Home::serve);
    let run = async |server: &Server, agent: &str, input: &str| -> String {
        let body = json!({"input": input});
        let answer = server.post(&format!("/api/agents/{agent}/executions"), &body).await;
        assert_eq!(answer.status(), 202);
        answer.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned()
    };
    for n in 0..10 {
        let server = if n % 2 == 0 { &first_node } else { &second_node };
        run(server, "alone", &format!("run-{n}")).await;
    }
    let idle = second_node.get("/api/agents/alone/status?wait=idle").await;
    assert_eq!(idle.json::<Value>().await.unwrap()["running"], 0);
    let mut done: Vec<_> =
        std::fs::read_to_string(shared.path().join("done")).unwrap().lines().map(str::to_owned).collect();
    done.sort();
    assert_eq!(done, (0..10).map(|n| format!("run-{n}")).collect::<Vec<_>>(), "each input ran once, one at a time");

    // The other node detects the executions of a dead node. Either node may have claimed this one.
    let id = run(&first_node, "slow", "").await;
    let path = format!("/api/executions/{id}");
    let state = async |server: &Server| -> Value { server.get(&path).await.json().await.unwrap() };
    for _ in 0..200 {
        if state(&second_node).await["state"] == "running" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let children =
        std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", first_node.pid())).unwrap_or_default();
    let runs_on_first_node = !children.trim().is_empty();
    first_node.kill();
    if runs_on_first_node {
        // The lease of the dead node must expire first.
        for _ in 0..600 {
            if state(&second_node).await["state"] == "failed" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(state(&second_node).await["error_category"], "system_error");
    } else {
        assert_eq!(state(&second_node).await["state"], "running", "the other node runs it");
    }
}
