//! Tests of plain JSON-RPC: consecutive requests, and responses in the output of an ended agent.

use std::future::ready;

use super::*;

async fn open(extra: Value) -> (RpcConversation, TestPeer) {
    let ((reader, writer), peer) = pipe(256);
    let mut settings = json!({"protocol": "json-rpc", "rpc_method": "work"});
    settings.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    let conversation =
        RpcConversation::open(&agent(settings), Path::new("/"), reader, writer, &mut |_| {}).await.unwrap();
    (conversation, peer)
}

#[tokio::test]
async fn consecutive_requests_are_answered() {
    // SUP-2, SUP-3
    let (mut conversation, mut peer) = open(json!({})).await;
    let agent_side = async {
        let (id, params) = peer.expect("work").await;
        let execution_id = "00000000-0000-0000-0000-000000000007";
        assert_eq!(params, json!({"input": "one", "parameters": {"model": "large"}, "execution_id": execution_id}));
        peer.write("starting up\n").await;
        peer.notify("output", json!({"text": "half "})).await;
        peer.notify("heartbeat", json!({"text": "not this"})).await;
        peer.notify("log", json!("looking")).await;
        peer.answer(&json!(99), json!("another request")).await;
        let refused = peer.call("fs/read", json!({})).await;
        assert_eq!(refused["error"]["code"], -32601);
        peer.answer(&id, json!({"output": "half done", "cost": 3})).await;
        for result in [json!("two"), json!(null), json!({"n": 1}), json!([1])] {
            let (id, _) = peer.expect("work").await;
            peer.notify("output", json!({"text": "said"})).await;
            peer.answer(&id, result).await;
        }
        peer
    };
    let client_side = async {
        let (result, outputs) = prompt(&mut conversation, "one").await;
        assert_eq!(result, PromptResult { replaces_output: true, ..completed("half done") });
        let expected = [
            AgentOutput::Plain("starting up".to_owned()),
            AgentOutput::Output("half ".to_owned()),
            AgentOutput::Progress("looking".to_owned()),
        ];
        assert_eq!(outputs, expected);
        for text in ["two", "said", "{\"n\":1}", "[1]"] {
            assert_eq!(
                prompt(&mut conversation, "more").await.0,
                PromptResult { replaces_output: text != "said", ..completed(text) }
            );
        }
        assert!(conversation.is_usable());
    };
    tokio::join!(agent_side, client_side);
}

#[tokio::test]
async fn errors_are_failures_of_the_agent() {
    let (mut conversation, mut peer) = open(json!({})).await;
    let agent_side = async {
        let (id, _) = peer.expect("work").await;
        peer.fail(&id, 17, "out of ideas").await;
        let (id, _) = peer.expect("work").await;
        peer.fail(&id, -32601, "Method not found").await;
        let (_, _) = peer.expect("work").await;
        peer.fail(&Value::Null, -32700, "Parse error").await;
        peer.expect("work").await;
        peer.notify("output", json!({"text": "so far"})).await;
        drop(peer);
    };
    let client_side = async {
        let first = failure(prompt(&mut conversation, "x").await.0);
        assert_eq!(first, RunFailure::agent("the agent answered with error 17: out of ideas"));
        let second = failure(prompt(&mut conversation, "x").await.0);
        assert_eq!(
            second,
            RunFailure::permanent("the agent does not support the method work (rpc_method): Method not found")
        );
        assert!(failure(prompt(&mut conversation, "x").await.0).message.ends_with("Parse error"));
        let (last, _) = prompt(&mut conversation, "x").await;
        assert_eq!(last.output.text, "so far");
        assert_eq!(failure(last).message, "the agent closed the connection before it answered");
        assert!(!conversation.is_usable());
        assert!(failure(prompt(&mut conversation, "x").await.0).message.contains("has not finished"));
    };
    tokio::join!(agent_side, client_side);
}

#[tokio::test]
async fn agents_are_requested_to_stop() {
    let (mut conversation, mut peer) = open(json!({})).await;
    let agent_side = async {
        let (request, _) = peer.expect("work").await;
        let (_, params) = peer.expect("$/cancelRequest").await;
        assert_eq!(params["id"], request);
        peer.fail(&request, -32800, "cancelled").await;
        peer.expect("work").await;
        peer.expect("$/cancelRequest").await;
        peer
    };
    let client_side = async {
        let result = conversation.prompt(&rpc_prompt("x"), &mut |_| {}, ready(())).await;
        assert_eq!(result.end, PromptEnd::Cancelled);
        assert!(conversation.is_usable());
        // This time the agent does not answer.
        let result = conversation.prompt(&rpc_prompt("x"), &mut |_| {}, ready(())).await;
        assert_eq!(result.end, PromptEnd::Cancelled);
        assert!(!conversation.is_usable());
    };
    tokio::join!(agent_side, client_side);
}

#[tokio::test]
async fn long_answers_lose_their_middle() {
    let (mut conversation, mut peer) = open(json!({"max_output_size": 10})).await;
    let agent_side = async {
        let (id, _) = peer.expect("work").await;
        peer.answer(&id, json!("aaaa bbbb cccc dddd")).await;
        peer
    };
    let (_peer, (result, _)) = tokio::join!(agent_side, prompt(&mut conversation, "x"));
    assert_eq!(result.output, ClippedText { text: "aaaa\n[… 11 bytes left out …]\ndddd".to_owned(), truncated: true });
}

#[test]
fn the_last_response_in_the_output_counts() {
    // SUP-2
    for (stdout, text) in [
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"a\"}", "a"),
        ("log\n{\"id\":1,\"result\":\"a\"}\n{\"id\":1,\"result\":{\"text\":\"b\"}}\nbye {\n", "b"),
        ("{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"result\": {\n    \"content\": \"c\"\n  }\n}\n", "c"),
        ("starting\n{\n  \"id\": 1,\n  \"result\": 4\n}\n", "4"),
        (
            "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n{\"id\":1,\"result\":\"d\",\"error\":null}\n{\"level\":\"info\"}",
            "d",
        ),
    ] {
        assert_eq!(response(stdout).unwrap(), text, "{stdout}");
    }
    let error = response("{\"id\":1,\"error\":{\"code\":5,\"message\":\"no\"}}").unwrap_err();
    assert_eq!(error, RunFailure::agent("the agent answered with error 5: no"));
    for stdout in ["", "hello", "{}", "{\"id\":1}", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}"] {
        assert_eq!(response(stdout).unwrap_err().category, ErrorCategory::AgentError, "{stdout}");
    }
}

#[tokio::test]
async fn conversations_can_move_between_tasks() {
    let (mut conversation, peer) = open(json!({})).await;
    drop(peer);
    let prompted = tokio::spawn(async move {
        let mut outputs = 0;
        conversation.prompt(&rpc_prompt("x"), &mut |_| outputs += 1, pending()).await
    });
    assert!(matches!(prompted.await.unwrap().end, PromptEnd::Failed(_)));
}
