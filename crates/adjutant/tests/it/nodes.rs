//! Two nodes on one database, with a model that takes its time: turns of one conversation still follow one another.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::app::{Home, Server};
use testkit::llm::{Llm, Reply};
use tokio::sync::Notify;

use crate::home;

fn node(database: &str, llm: &Llm) -> Home {
    home()
        .with("ADJUTANT_DATABASE__URL", database)
        .with("OPENAI_API_KEY", "sk-test-0123456789abcdef")
        .with("OPENAI_BASE_URL", &format!("{}/v1", llm.url()))
}

async fn say(server: &Server, words: &str) -> Value {
    let body = json!({"input": words, "conversation_id": "conv_shared"});
    server.post("/chat", &body).await.json().await.unwrap()
}

#[tokio::test]
async fn turns_of_one_conversation_follow_one_another_across_nodes() {
    // CHAT-7
    let llm = Llm::start().await;
    let database = testkit::postgres::database().await.unwrap();
    let homes = [node(&database, &llm), node(&database, &llm)];
    let [here, there] = homes.each_ref().map(Home::serve);
    let go_on = Arc::new(Notify::new());
    llm.script([Reply::text("one two three four").paused(go_on.clone()), Reply::text("second answer")]);
    let second = async {
        llm.asked(1).await;
        let answer = say(&there, "second words");
        let early = async {
            tokio::time::sleep(Duration::from_millis(400)).await;
            assert_eq!(llm.requests().len(), 1, "the other node waits for its turn");
            go_on.notify_one();
        };
        tokio::join!(answer, early).0
    };
    let (first, second) = tokio::join!(say(&here, "first words"), second);
    assert_eq!((&first["response"], &second["response"]), (&json!("one two three four"), &json!("second answer")));
    let asked = llm.requests().last().unwrap().body().to_string();
    assert!(asked.contains("first words") && asked.contains("one two three four"), "it knows what was said: {asked}");
}

#[tokio::test]
async fn a_node_that_is_gone_is_not_waited_for_for_ever() {
    // CHAT-7
    let llm = Llm::start().await;
    let database = testkit::postgres::database().await.unwrap();
    let short = |home: Home| home.configured("[server]\nrequest_timeout_seconds = 1\n");
    let homes = [short(node(&database, &llm)), short(node(&database, &llm))];
    let [mut here, there] = homes.each_ref().map(Home::serve);
    llm.script([Reply::text("never heard").paused(Arc::new(Notify::new()))]);
    tokio::select! {
        _ = say(&here, "first words") => panic!("it was to be killed before it answered"),
        () = llm.asked(1) => here.kill(),
    }
    llm.always(Reply::text("here I am"));
    let body = json!({"input": "second words", "conversation_id": "conv_shared"});
    let mut answer = Value::Null;
    // A request that waits too long is answered 504; the one after that finds the turn free.
    for _ in 0..30 {
        let response = there.post("/chat", &body).await;
        if response.status() == 200 {
            answer = response.json().await.unwrap();
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(answer["response"], "here I am");
}

#[tokio::test]
async fn agents_run_once_on_whichever_node_and_outlive_it() {
    // OPS-5, SUP-4, SUP-11
    let database = testkit::postgres::database().await.unwrap();
    let shared = tempfile::tempdir().unwrap();
    let dir = shared.path().display();
    // mkdir fails where two are at work at once.
    let script = format!("mkdir {dir}/lock || exit 9; sleep 0.2; echo $0 >> {dir}/done; rmdir {dir}/lock");
    let agents = format!(
        "[[agents]]\nid = \"alone\"\nexecutable_path = \"sh\"\nargs = [\"-c\", \"{script}\", \"{{{{input}}}}\"]\n\
         input_pattern = \"args\"\naccess_type = \"read-write\"\nqueue_depth = 100\n\
         [[agents]]\nid = \"slow\"\nexecutable_path = \"sleep\"\nargs = [\"60.0611\"]\naccess_type = \"read-write\"\n"
    );
    let home = || home().with("ADJUTANT_DATABASE__URL", &database).configured(&agents);
    let homes = [home(), home()];
    let [mut here, there] = homes.each_ref().map(Home::serve);
    let run = async |server: &Server, agent: &str, input: &str| -> String {
        let body = json!({"input": input});
        let answer = server.post(&format!("/api/agents/{agent}/executions"), &body).await;
        assert_eq!(answer.status(), 202);
        answer.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned()
    };
    for n in 0..10 {
        let server = if n % 2 == 0 { &here } else { &there };
        run(server, "alone", &format!("run-{n}")).await;
    }
    let idle = there.get("/api/agents/alone/status?wait=idle").await;
    assert_eq!(idle.json::<Value>().await.unwrap()["running"], 0);
    let mut done: Vec<_> =
        std::fs::read_to_string(shared.path().join("done")).unwrap().lines().map(str::to_owned).collect();
    done.sort();
    assert_eq!(done, (0..10).map(|n| format!("run-{n}")).collect::<Vec<_>>(), "each once, none beside another");

    // Whatever a node had at work when it died is found by the other. Which of them has it is not known.
    let id = run(&here, "slow", "").await;
    let path = format!("/api/executions/{id}");
    let state = async |server: &Server| -> Value { server.get(&path).await.json().await.unwrap() };
    for _ in 0..200 {
        if state(&there).await["state"] == "running" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", here.pid())).unwrap_or_default();
    let is_here = !children.trim().is_empty();
    here.kill();
    if is_here {
        // The lease of the dead node has to run out.
        for _ in 0..600 {
            if state(&there).await["state"] == "failed" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(state(&there).await["error_category"], "system_error");
    } else {
        assert_eq!(state(&there).await["state"], "running", "it is the other node's");
    }
}
