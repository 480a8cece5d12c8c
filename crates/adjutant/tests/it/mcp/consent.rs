//! What destroys waits for the user (AGENT-7), in whichever way the client can ask.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Client, Messages, code};
use crate::{ALICE, BOB, home, home_with_auth, token};

/// The call again, with an answer to its question.
async fn answered(client: &Client<'_>, name: &str, arguments: &Value, state: &Value, action: &str) -> Value {
    let answers = json!({"confirm": {"action": action, "content": {}}});
    let params = json!({"name": name, "arguments": arguments, "inputResponses": answers, "requestState": state});
    client.ask("tools/call", params).await
}

#[tokio::test]
async fn without_a_handshake_the_question_is_the_answer() {
    // AGENT-7, TASK-3
    let home = home();
    let server = home.serve();
    let client = Client::modern(&server, None);
    let arguments = json!({"task_id": client.add("milk").await});
    let asked = client.call("delete_task", arguments.clone()).await;
    assert_eq!(asked["resultType"], "input_required");
    let question = &asked["inputRequests"]["confirm"];
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["message"], "Do you really want to delete 'milk'?");
    let state = &asked["requestState"];
    for no in ["decline", "cancel", "nonsense"] {
        let refused = answered(&client, "delete_task", &arguments, state, no).await;
        assert_eq!(code(&refused), "CONFIRMATION_REQUIRED", "{no}");
    }
    assert_eq!(client.titles().await, ["milk"]);
    let deleted = answered(&client, "delete_task", &arguments, state, "accept").await;
    assert_eq!((&deleted["isError"], &deleted["structuredContent"]["title"]), (&json!(false), &json!("milk")));
    assert!(client.titles().await.is_empty());
    client.call("undo_last_change", json!({})).await;
    let again = answered(&client, "delete_task", &arguments, state, "accept").await;
    assert_eq!(code(&again), "CONFIRMATION_REQUIRED", "consent is used up");
    assert_eq!(client.titles().await, ["milk"]);
}

#[tokio::test]
async fn consent_is_for_one_user_one_call_and_what_was_asked() {
    // AGENT-7, AGENT-3
    let home = home_with_auth();
    let server = home.serve();
    let alice = token(&home, ALICE, &[]);
    let bob = token(&home, BOB, &[]);
    let alice = Client::modern(&server, Some(&alice));
    let bob = Client::modern(&server, Some(&bob));
    let milk = json!({"task_id": alice.add("milk").await});
    let taxes = json!({"task_id": alice.add("taxes").await});
    // An answer to a question that was not asked.
    let answers = json!({"confirm": {"action": "accept", "content": {}}});
    let params = json!({"name": "delete_task", "arguments": milk, "inputResponses": answers});
    let asked = alice.ask("tools/call", params).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let state = &asked["requestState"];
    let sealed = state.as_str().unwrap();
    let mut forged = sealed.to_owned();
    let last = if forged.pop() == Some('A') { 'B' } else { 'A' };
    forged.push(last);
    for wrong in [json!(forged), json!(""), json!("rs1.e30.e30"), json!(sealed.replace("rs1", "rs2"))] {
        let refused = answered(&alice, "delete_task", &milk, &wrong, "accept").await;
        assert_eq!(code(&refused), "CONFIRMATION_REQUIRED", "{wrong}");
    }
    let other_task = answered(&alice, "delete_task", &taxes, state, "accept").await;
    assert_eq!(code(&other_task), "CONFIRMATION_REQUIRED");
    let other_tool = answered(&alice, "delete_tasks", &json!({}), state, "accept").await;
    assert_eq!(code(&other_tool), "CONFIRMATION_REQUIRED");
    let other_user = answered(&bob, "delete_task", &milk, state, "accept").await;
    assert_eq!(code(&other_user), "CONFIRMATION_REQUIRED");
    assert_eq!(alice.titles().await, ["milk", "taxes"]);
    // All tasks is what it was when the question was asked.
    let asked = alice.call("delete_tasks", json!({"status": "all"})).await;
    let message = &asked["inputRequests"]["confirm"]["params"]["message"];
    assert_eq!(message, "That's a big action: delete 2 tasks?");
    alice.add("added later").await;
    let all = answered(&alice, "delete_tasks", &json!({"status": "all"}), &asked["requestState"], "accept").await;
    assert_eq!(all["structuredContent"]["count"], 2, "{all}");
    assert_eq!(alice.titles().await, ["added later"]);
}

#[tokio::test]
async fn a_client_with_a_session_is_asked_and_waited_for() {
    // AGENT-7, TASK-3
    let home = home().configured("[server]\nrequest_timeout_seconds = 1\n");
    let server = home.serve();
    let client = Client::legacy(&server, None).await;
    let id = client.add("milk").await;
    for (action, patience) in [("decline", 0), ("cancel", 0), ("accept", 1500)] {
        let params = json!({"name": "delete_task", "arguments": {"task_id": id}});
        let mut messages = Messages::of(client.send("tools/call", params).await);
        let question = messages.next().await.unwrap();
        assert_eq!(question["method"], "elicitation/create");
        assert_eq!(question["params"]["message"], "Do you really want to delete 'milk'?");
        // Longer than a request may take: the user is not a request.
        tokio::time::sleep(Duration::from_millis(patience)).await;
        assert_eq!(client.titles().await, ["milk"], "nothing happens before the answer, and others are not held up");
        let result = json!({"action": action, "content": {}});
        client.tell(json!({"jsonrpc": "2.0", "id": question["id"], "result": result})).await;
        let answer = messages.next().await.unwrap();
        if action == "accept" {
            assert_eq!(answer["result"]["isError"], false, "{answer}");
        } else {
            assert_eq!(code(&answer["result"]), "CONFIRMATION_REQUIRED");
        }
    }
    assert!(client.titles().await.is_empty());
}

#[tokio::test]
async fn a_client_that_cannot_ask_must_say_that_the_user_agreed() {
    // AGENT-7
    let home = home();
    let server = home.serve();
    let modern = Client { can_ask: false, ..Client::modern(&server, None) };
    for client in [modern, Client::legacy_that(false, &server, None).await] {
        let id = client.add("milk").await;
        for missing in [json!({"task_id": id}), json!({"task_id": id, "confirmation": "true"})] {
            let refused = client.call("delete_task", missing).await;
            assert_eq!(code(&refused), "CONFIRMATION_REQUIRED");
            let message = refused["structuredContent"]["error"]["message"].as_str().unwrap();
            assert!(message.contains("confirmation: true"), "{message}");
        }
        let deleted = client.call("delete_task", json!({"task_id": id, "confirmation": true})).await;
        assert_eq!(deleted["isError"], false, "{deleted}");
    }
    // One that can ask is not believed.
    let client = Client::modern(&server, None);
    let id = client.add("milk").await;
    let asked = client.call("delete_task", json!({"task_id": id, "confirmation": true})).await;
    assert_eq!(asked["resultType"], "input_required");
}

#[tokio::test]
async fn one_node_asks_and_another_is_answered() {
    // OPS-5
    let url = testkit::postgres::database().await.unwrap();
    let one = home_with_auth();
    let other = home_with_auth();
    let one = one.with("ADJUTANT_DATABASE__URL", &url);
    let other = other.with("ADJUTANT_DATABASE__URL", &url);
    let first = one.serve();
    let second = other.serve();
    let alice = token(&one, ALICE, &[]);
    let client = Client::modern(&first, Some(&alice));
    let arguments = json!({"task_id": client.add("milk").await});
    let asked = client.call("delete_task", arguments.clone()).await;
    let client = Client::modern(&second, Some(&alice));
    let deleted = answered(&client, "delete_task", &arguments, &asked["requestState"], "accept").await;
    assert_eq!(deleted["isError"], false, "{deleted}");
}
