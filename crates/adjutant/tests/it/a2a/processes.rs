//! A2A tasks with real processes: restarts, several nodes, sessions and files.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testkit::app::{Home, Server};

use crate::home;

/// Configures an agent that writes a line, then waits for a file.
fn patient_agent(dir: &std::path::Path) -> String {
    let dir = dir.display();
    format!(
        "[[agents]]\nid = \"patient\"\nexecutable_path = \"sh\"\n\
         args = [\"-c\", \"echo begun; until test -e {dir}/go; do sleep 0.05; done; echo done\"]\n\
         access_type = \"read-write\"\nmax_retries = 3\nretry_delay = 0.1\n"
    )
}

async fn call(server: &Server, agent: &str, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = server.request(reqwest::Method::POST, &format!("/agents/{agent}")).header("A2A-Version", "1.0");
    request.json(&body).send().await.unwrap().json().await.unwrap()
}

async fn ok(server: &Server, agent: &str, method: &str, params: Value) -> Value {
    let mut answer = call(server, agent, method, params).await;
    assert!(answer.get("result").is_some(), "{method}: {answer}");
    answer["result"].take()
}

fn message(text: &str) -> Value {
    json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]})
}

async fn start(server: &Server, agent: &str, message: Value) -> Value {
    let params = json!({"message": message, "configuration": {"returnImmediately": true}});
    ok(server, agent, "SendMessage", params).await["task"].take()
}

/// Waits until a task has this state and this text.
async fn wait_for_task(server: &Server, agent: &str, id: &Value, state: &str, text: &str) -> Value {
    let mut task = Value::Null;
    for _ in 0..600 {
        task = ok(server, agent, "GetTask", json!({ "id": id })).await;
        if task["status"]["state"] == state
            && task["artifacts"][0]["parts"][0]["text"].as_str().unwrap_or_default() == text
        {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never {state}: {task}");
}

/// Returns all events of a subscription.
async fn subscribe(server: &Server, agent: &str, id: &Value) -> Vec<Value> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": id}});
    let request = server.request(reqwest::Method::POST, &format!("/agents/{agent}")).header("A2A-Version", "1.0");
    let text = request.json(&body).send().await.unwrap().text().await.unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    data.map(|data| serde_json::from_str::<Value>(data.trim()).unwrap()["result"].take()).collect()
}

/// Returns the text of the artifact after all events.
fn joined_text(events: &[Value]) -> String {
    let mut text = String::new();
    for event in events {
        if let Some(parts) = event["task"]["artifacts"][0]["parts"].as_array() {
            text = parts.iter().filter_map(|part| part["text"].as_str()).collect();
        } else if event.get("artifactUpdate").is_some() {
            let update = &event["artifactUpdate"];
            if update["append"] != true {
                text.clear();
            }
            text.push_str(update["artifact"]["parts"][0]["text"].as_str().unwrap());
        }
    }
    text
}

#[tokio::test]
async fn a_task_survives_a_restart() {
    // A2A-1, A2A-3
    let shared = tempfile::tempdir().unwrap();
    let home = home().with_config(&patient_agent(shared.path()));
    let mut server = home.serve();
    let task = start(&server, "patient", message("go")).await;
    let id = &task["id"];
    let before = wait_for_task(&server, "patient", id, "TASK_STATE_WORKING", "begun\n").await;
    server.kill();
    let mut server = home.serve();
    // The same task, with its next attempt.
    let after = wait_for_task(&server, "patient", id, "TASK_STATE_WORKING", "begun\n").await;
    assert_eq!((&after["contextId"], &after["history"]), (&before["contextId"], &before["history"]));
    let list = ok(&server, "patient", "ListTasks", json!({})).await;
    assert_eq!((&list["totalSize"], &list["tasks"][0]["id"]), (&json!(1), id));
    let following = subscribe(&server, "patient", id);
    let finish = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        std::fs::write(shared.path().join("go"), "").unwrap();
    };
    let (events, ()) = tokio::join!(following, finish);
    assert_eq!(joined_text(&events), "begun\ndone\n", "no output is lost or repeated");
    assert_eq!(events.last().unwrap()["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    // The task also survives a regular shutdown.
    assert_eq!(server.stop(), 0);
    let server = home.serve();
    let done = wait_for_task(&server, "patient", id, "TASK_STATE_COMPLETED", "begun\ndone\n").await;
    assert_eq!(done["history"], before["history"]);
}

#[tokio::test]
async fn every_node_serves_the_task() {
    // A2A-1, A2A-3, OPS-5
    let database = testkit::postgres::create_database().await.unwrap();
    let shared = tempfile::tempdir().unwrap();
    let node = || home().with_env("ADJUTANT_DATABASE__URL", &database).with_config(&patient_agent(shared.path()));
    let homes = [node(), node()];
    let [first_node, second_node] = homes.each_ref().map(Home::serve);
    let task = start(&first_node, "patient", message("go")).await;
    let id = &task["id"];
    wait_for_task(&second_node, "patient", id, "TASK_STATE_WORKING", "begun\n").await;
    let finish = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        std::fs::write(shared.path().join("go"), "").unwrap();
    };
    let (one, other, ()) =
        tokio::join!(subscribe(&first_node, "patient", id), subscribe(&second_node, "patient", id), finish);
    assert_eq!(one, other, "both nodes report the same events");
    assert_eq!(joined_text(&one), "begun\ndone\n");
    let [mine, theirs] = [
        ok(&first_node, "patient", "GetTask", json!({ "id": id })).await,
        ok(&second_node, "patient", "GetTask", json!({ "id": id })).await,
    ];
    assert_eq!(mine, theirs);
    std::fs::remove_file(shared.path().join("go")).unwrap();
    // The node that runs the task receives the cancellation.
    for (creator, canceller) in [(&first_node, &second_node), (&second_node, &first_node)] {
        let task = start(creator, "patient", message("go")).await;
        wait_for_task(canceller, "patient", &task["id"], "TASK_STATE_WORKING", "begun\n").await;
        let ended = ok(canceller, "patient", "CancelTask", json!({"id": task["id"]})).await;
        assert_eq!(ended["status"]["state"], "TASK_STATE_CANCELED");
    }
    let list = ok(&second_node, "patient", "ListTasks", json!({})).await;
    assert_eq!(list["totalSize"], 3);
}

#[tokio::test]
async fn a_context_of_an_interactive_agent_is_a_session() {
    // A2A-1
    let script =
        "n=0; while read -r line; do n=$((n+1)); echo \\\"$n $line\\\"; echo END; test $line = leave && exit 0; done";
    let agent = format!(
        "[[agents]]\nid = \"counter\"\nmode = \"interactive\"\nexecutable_path = \"sh\"\nargs = [\"-c\", \"{script}\"]\n\
         max_concurrent_executions = 2\n[agents.session]\nmarker = \"END\"\n"
    );
    let home = home().with_config(&agent);
    let server = home.serve();
    let send = async |context: Option<&Value>, text: &str| -> Value {
        let mut message = message(text);
        if let Some(context) = context {
            message["contextId"] = context.clone();
        }
        ok(&server, "counter", "SendMessage", json!({ "message": message })).await["task"].take()
    };
    let text_of = |task: &Value| task["artifacts"][0]["parts"][0]["text"].clone();
    let first = send(None, "a").await;
    assert_eq!(
        (text_of(&first), &first["status"]["state"]),
        (json!("1 a\n"), &json!("TASK_STATE_COMPLETED")),
        "{first}"
    );
    let context = &first["contextId"];
    assert_eq!(text_of(&send(Some(context), "b").await), "2 b\n", "the same process");
    let other = send(None, "c").await;
    assert_eq!(text_of(&other), "1 c\n", "another context has its own process");
    // A third session exceeds the limit.
    let busy = call(&server, "counter", "SendMessage", json!({"message": message("d")})).await;
    assert_eq!(busy["error"]["code"], -32000, "{busy}");
    // After the end of its session, the context continues with a new one.
    let sessions: Value = server.get("/api/sessions").await.json().await.unwrap();
    assert_eq!(sessions["count"], 2, "{sessions}");
    for session in sessions["sessions"].as_array().unwrap() {
        let path = format!("/api/sessions/{}", session["id"].as_str().unwrap());
        server.request(reqwest::Method::DELETE, &path).send().await.unwrap();
    }
    for _ in 0..200 {
        if server.get("/api/sessions").await.json::<Value>().await.unwrap()["count"] == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(text_of(&send(Some(context), "e").await), "1 e\n");
}

#[tokio::test]
async fn files_are_sent_and_received() {
    // A2A-1, A2A-3
    let script = "cat \\\"$ADJUTANT_FILES\\\"/in.txt > $0/out.txt; head -c 2000000 /dev/zero > $0/large.bin; echo made";
    let agent = format!(
        "[[agents]]\nid = \"maker\"\nexecutable_path = \"sh\"\nargs = [\"-c\", \"{script}\", \"{{{{output_dir}}}}\"]\n"
    );
    let home = home().with_config(&agent);
    let server = home.serve();
    let mut sent = message("make it");
    let file = json!({"raw": STANDARD.encode("content"), "filename": "in.txt", "mediaType": "text/plain"});
    sent["parts"].as_array_mut().unwrap().push(file);
    let task = ok(&server, "maker", "SendMessage", json!({ "message": sent })).await["task"].take();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    let artifact = |name: &str| {
        let all = task["artifacts"].as_array().unwrap();
        all.iter().find(|artifact| artifact["name"] == name).unwrap_or_else(|| panic!("{task}"))["parts"][0].clone()
    };
    let small = json!({"raw": STANDARD.encode("content"), "filename": "out.txt", "mediaType": "text/plain"});
    assert_eq!(artifact("out.txt"), small);
    let url = artifact("large.bin")["url"].as_str().unwrap().to_owned();
    assert!(url.starts_with(&format!("{}/agents/maker/files/", server.url)), "{url}");
    let fetched = server.client.get(&url).send().await.unwrap();
    assert_eq!(fetched.status(), 200);
    assert_eq!(fetched.bytes().await.unwrap().len(), 2_000_000);
    for wrong in ["../large.bin", "..%2Flarge.bin", "other", "%2Fetc%2Fpasswd"] {
        let path = url.replace("large.bin", wrong);
        assert_eq!(server.client.get(&path).send().await.unwrap().status(), 404, "{path}");
    }
    let another = url.replace("/agents/maker/", "/agents/assistant/");
    assert_eq!(server.client.get(&another).send().await.unwrap().status(), 404);
}
