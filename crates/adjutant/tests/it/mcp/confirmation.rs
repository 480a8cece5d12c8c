//! Destructive calls require a confirmation (AGENT-7), in the form that the client supports.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Client, Messages, error_code};
use crate::{ALICE, BOB, home, home_with_auth, token};

/// Repeats a call with a reply to its confirmation request.
async fn call_with_reply(client: &Client<'_>, name: &str, arguments: &Value, state: &Value, action: &str) -> Value {
    let answers = json!({"confirm": {"action": action, "content": {}}});
    let params = json!({"name": name, "arguments": arguments, "inputResponses": answers, "requestState": state});
    client.request_result("tools/call", params).await
}

#[tokio::test]
async fn without_a_handshake_the_result_requests_the_confirmation() {
    // AGENT-7, TASK-1, TASK-3
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
    for action in ["decline", "cancel", "nonsense"] {
        let refused = call_with_reply(&client, "delete_task", &arguments, state, action).await;
        assert_eq!(error_code(&refused), "CONFIRMATION_REQUIRED", "{action}");
    }
    assert_eq!(client.titles().await, ["milk"]);
    let deleted = call_with_reply(&client, "delete_task", &arguments, state, "accept").await;
    assert_eq!((&deleted["isError"], &deleted["structuredContent"]["title"]), (&json!(false), &json!("milk")));
    assert!(client.titles().await.is_empty());
    client.call("undo_last_change", json!({})).await;
    let again = call_with_reply(&client, "delete_task", &arguments, state, "accept").await;
    assert_eq!(error_code(&again), "CONFIRMATION_REQUIRED", "a confirmation is valid once");
    assert_eq!(client.titles().await, ["milk"]);
}

#[tokio::test]
async fn a_confirmation_is_valid_for_one_user_and_one_call() {
    // AGENT-7, AGENT-3
    let home = home_with_auth();
    let server = home.serve();
    let alice = token(&home, ALICE, &[]);
    let bob = token(&home, BOB, &[]);
    let alice = Client::modern(&server, Some(&alice));
    let bob = Client::modern(&server, Some(&bob));
    let milk = json!({"task_id": alice.add("milk").await});
    let taxes = json!({"task_id": alice.add("taxes").await});
    // A reply to a request that was not sent.
    let answers = json!({"confirm": {"action": "accept", "content": {}}});
    let params = json!({"name": "delete_task", "arguments": milk, "inputResponses": answers});
    let asked = alice.request_result("tools/call", params).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let state = &asked["requestState"];
    let sealed = state.as_str().unwrap();
    let mut forged = sealed.to_owned();
    let last = if forged.pop() == Some('A') { 'B' } else { 'A' };
    forged.push(last);
    for wrong in [json!(forged), json!(""), json!("rs1.e30.e30"), json!(sealed.replace("rs1", "rs2"))] {
        let refused = call_with_reply(&alice, "delete_task", &milk, &wrong, "accept").await;
        assert_eq!(error_code(&refused), "CONFIRMATION_REQUIRED", "{wrong}");
    }
    let other_task = call_with_reply(&alice, "delete_task", &taxes, state, "accept").await;
    assert_eq!(error_code(&other_task), "CONFIRMATION_REQUIRED");
    let other_tool = call_with_reply(&alice, "delete_tasks", &json!({}), state, "accept").await;
    assert_eq!(error_code(&other_tool), "CONFIRMATION_REQUIRED");
    let other_user = call_with_reply(&bob, "delete_task", &milk, state, "accept").await;
    assert_eq!(error_code(&other_user), "CONFIRMATION_REQUIRED");
    assert_eq!(alice.titles().await, ["milk", "taxes"]);
    // The confirmation covers the tasks that existed when it was requested.
    let asked = alice.call("delete_tasks", json!({"status": "all"})).await;
    let message = &asked["inputRequests"]["confirm"]["params"]["message"];
    assert_eq!(message, "That's a big action: delete 'milk' and 'taxes'?");
    alice.add("added later").await;
    let all =
        call_with_reply(&alice, "delete_tasks", &json!({"status": "all"}), &asked["requestState"], "accept").await;
    assert_eq!(all["structuredContent"]["count"], 2, "{all}");
    assert_eq!(alice.titles().await, ["added later"]);
}

#[tokio::test]
async fn a_client_with_a_session_is_asked_during_the_call() {
    // AGENT-7, TASK-3
    let home = home().with_config("[server]\nrequest_timeout_seconds = 1\n");
    let server = home.serve();
    let client = Client::legacy(&server, None).await;
    let id = client.add("milk").await;
    for (action, delay) in [("decline", 0), ("cancel", 0), ("accept", 1500)] {
        let params = json!({"name": "delete_task", "arguments": {"task_id": id}});
        let mut messages = Messages::new(client.send("tools/call", params).await);
        let question = messages.next().await.unwrap();
        assert_eq!(question["method"], "elicitation/create");
        assert_eq!(question["params"]["message"], "Do you really want to delete 'milk'?");
        // Longer than the timeout of a request, which does not apply to the wait for the user.
        tokio::time::sleep(Duration::from_millis(delay)).await;
        assert_eq!(client.titles().await, ["milk"], "the task still exists, and other calls are not delayed");
        let result = json!({"action": action, "content": {}});
        client.notify(json!({"jsonrpc": "2.0", "id": question["id"], "result": result})).await;
        let answer = messages.next().await.unwrap();
        if action == "accept" {
            assert_eq!(answer["result"]["isError"], false, "{answer}");
        } else {
            assert_eq!(error_code(&answer["result"]), "CONFIRMATION_REQUIRED");
        }
    }
    assert!(client.titles().await.is_empty());
}

#[tokio::test]
async fn a_client_without_elicitation_must_pass_the_confirmation() {
    // AGENT-7
    let home = home();
    let server = home.serve();
    let modern = Client { can_elicit: false, ..Client::modern(&server, None) };
    for client in [modern, Client::legacy_with(false, &server, None).await] {
        let id = client.add("milk").await;
        for missing in [json!({"task_id": id}), json!({"task_id": id, "confirmation": "true"})] {
            let refused = client.call("delete_task", missing).await;
            assert_eq!(error_code(&refused), "CONFIRMATION_REQUIRED");
            let message = refused["structuredContent"]["error"]["message"].as_str().unwrap();
            assert!(message.contains("confirmation: true"), "{message}");
        }
        let deleted = client.call("delete_task", json!({"task_id": id, "confirmation": true})).await;
        assert_eq!(deleted["isError"], false, "{deleted}");
    }
    // The argument of a client with elicitation is ignored.
    let client = Client::modern(&server, None);
    let id = client.add("milk").await;
    let asked = client.call("delete_task", json!({"task_id": id, "confirmation": true})).await;
    assert_eq!(asked["resultType"], "input_required");
}

#[tokio::test]
async fn a_confirmation_is_accepted_by_another_node() {
    // OPS-5
    let url = testkit::postgres::create_database().await.unwrap();
    let first_home = home_with_auth();
    let second_home = home_with_auth();
    let first_home = first_home.with_env("ADJUTANT_DATABASE__URL", &url);
    let second_home = second_home.with_env("ADJUTANT_DATABASE__URL", &url);
    let first = first_home.serve();
    let second = second_home.serve();
    let alice = token(&first_home, ALICE, &[]);
    let client = Client::modern(&first, Some(&alice));
    let arguments = json!({"task_id": client.add("milk").await});
    let asked = client.call("delete_task", arguments.clone()).await;
    let client = Client::modern(&second, Some(&alice));
    let deleted = call_with_reply(&client, "delete_task", &arguments, &asked["requestState"], "accept").await;
    assert_eq!(deleted["isError"], false, "{deleted}");
}
