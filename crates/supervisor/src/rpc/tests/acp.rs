//! Tests of the Agent Client Protocol against an agent that is written from the specification.

use std::future::ready;

use tokio::sync::oneshot;

use super::*;

/// The agent's side of the handshake.
async fn handshake(peer: &mut TestPeer) {
    let (id, params) = peer.expect("initialize").await;
    assert_eq!((&params["protocolVersion"], &params["clientInfo"]["name"]), (&json!(1), &json!("adjutant")));
    let none = json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
    assert_eq!(params["clientCapabilities"], none);
    peer.answer(&id, json!({"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []})).await;
    let (id, params) = peer.expect("session/new").await;
    assert_eq!(params, json!({"cwd": "/work", "mcpServers": []}));
    peer.notify("session/update", json!({"sessionId": "s", "update": {"sessionUpdate": "available_commands_update"}}))
        .await;
    peer.answer(&id, json!({"sessionId": "s"})).await;
}

async fn expect_prompt(peer: &mut TestPeer) -> Value {
    let (id, params) = peer.expect("session/prompt").await;
    assert_eq!(params, json!({"sessionId": "s", "prompt": [{"type": "text", "text": "x"}]}));
    id
}

async fn update(peer: &mut TestPeer, kind: &str, more: Value) {
    let mut update = json!({"sessionUpdate": kind});
    update.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    peer.notify("session/update", json!({"sessionId": "s", "update": update})).await;
}

async fn chunk(peer: &mut TestPeer, text: &str) {
    update(peer, "agent_message_chunk", json!({"content": {"type": "text", "text": text}})).await;
}

async fn try_open(
    extra: Value,
    script: impl AsyncFnOnce(&mut TestPeer),
) -> (Result<RpcConversation, RunFailure>, TestPeer) {
    let ((reader, writer), mut peer) = pipe(256);
    let agent = agent(extra);
    let mut on_output = |_| {};
    let opened = RpcConversation::open(&agent, Path::new("/work"), reader, writer, &mut on_output);
    let (opened, ()) = tokio::join!(opened, script(&mut peer));
    (opened, peer)
}

async fn open(extra: Value) -> (RpcConversation, TestPeer) {
    let (opened, peer) = try_open(extra, handshake).await;
    (opened.unwrap(), peer)
}

#[tokio::test]
async fn sessions_have_many_prompts() {
    // SUP-2, SUP-3
    let (mut conversation, mut peer) = open(json!({})).await;
    let agent_side = async {
        let id = expect_prompt(&mut peer).await;
        peer.write("[debug] not of the protocol\n").await;
        update(&mut peer, "agent_thought_chunk", json!({"content": {"type": "text", "text": "hm"}})).await;
        chunk(&mut peer, "Let me ").await;
        chunk(&mut peer, "look.").await;
        let entries =
            json!([{"content": "a", "status": "completed"}, {"content": "look\n at it", "status": "in_progress"}]);
        update(&mut peer, "plan", json!({"entries": entries})).await;
        let call = json!({"toolCallId": "t", "title": "README.md", "kind": "read", "status": "pending"});
        update(&mut peer, "tool_call", call).await;
        update(&mut peer, "tool_call_update", json!({"toolCallId": "t", "status": "in_progress"})).await;
        update(&mut peer, "tool_call_update", json!({"toolCallId": "t", "status": "failed"})).await;
        peer.notify("session/update", json!({"sessionId": "other", "update": {"sessionUpdate": "plan"}})).await;
        chunk(&mut peer, "It is ").await;
        chunk(&mut peer, "gone.").await;
        peer.answer(&id, json!({"stopReason": "end_turn"})).await;
        let id = expect_prompt(&mut peer).await;
        chunk(&mut peer, "Yes.").await;
        peer.answer(&id, json!({"stopReason": "end_turn"})).await;
        peer
    };
    let client_side = async {
        let (result, outputs) = prompt(&mut conversation, "x").await;
        assert_eq!(result, completed("Let me look.\n\nIt is gone."));
        let output = |text: &str| AgentOutput::Output(text.to_owned());
        let progress = |text: &str| AgentOutput::Progress(text.to_owned());
        let expected = [
            AgentOutput::Plain("[debug] not of the protocol".to_owned()),
            AgentOutput::Thought("hm".to_owned()),
            output("Let me "),
            output("look."),
            progress("plan: 1 of 2 done, now: look at it"),
            progress("read: README.md"),
            progress("read: README.md (failed)"),
            output("\n\n"),
            output("It is "),
            output("gone."),
        ];
        assert_eq!(outputs, expected);
        assert_eq!(prompt(&mut conversation, "x").await.0, completed("Yes."));
    };
    tokio::join!(agent_side, client_side);
}

#[tokio::test]
async fn permissions_limit_tool_calls() {
    for (permissions, allowed) in [("read", [true, false, false]), ("allow", [true; 3]), ("deny", [false; 3])] {
        let (mut conversation, mut peer) = open(json!({"permissions": permissions})).await;
        let agent_side = async {
            let id = expect_prompt(&mut peer).await;
            // The kind is sent once and not repeated in the permission request.
            update(&mut peer, "tool_call", json!({"toolCallId": "r", "title": "a", "kind": "read"})).await;
            let options = json!([
                {"optionId": "yes", "name": "Yes", "kind": "allow_once"}, {"optionId": "no", "name": "No", "kind": "reject_once"},
            ]);
            let calls = [
                json!({"toolCallId": "r"}),
                json!({"toolCallId": "e", "kind": "edit", "title": "b"}),
                json!({"toolCallId": "?"}),
            ];
            for (call, allowed) in calls.into_iter().zip(allowed) {
                let params = json!({"sessionId": "s", "toolCall": call, "options": options});
                let answer = peer.call("session/request_permission", params).await;
                let chosen = json!({"outcome": "selected", "optionId": if allowed { "yes" } else { "no" }});
                assert_eq!(answer["result"]["outcome"], chosen);
            }
            for method in ["fs/read_text_file", "fs/write_text_file", "terminal/create", "_other"] {
                assert_eq!(peer.call(method, json!({"sessionId": "s"})).await["error"]["code"], -32601);
            }
            peer.answer(&id, json!({"stopReason": "end_turn"})).await;
            peer
        };
        let (_peer, (result, outputs)) = tokio::join!(agent_side, prompt(&mut conversation, "x"));
        assert_eq!(result.end, PromptEnd::Completed);
        let line = if allowed[1] { "allowed edit: b" } else { "not allowed edit: b" };
        assert!(outputs.contains(&AgentOutput::Progress(line.to_owned())), "{outputs:?}");
    }
}

#[tokio::test]
async fn stop_reasons_determine_the_end() {
    let (mut conversation, mut peer) = open(json!({})).await;
    let stops = ["refusal", "max_tokens", "max_turn_requests", "whim", "cancelled"];
    let agent_side = async {
        for stop in stops {
            let id = expect_prompt(&mut peer).await;
            chunk(&mut peer, "part").await;
            peer.answer(&id, json!({"stopReason": stop})).await;
        }
        let id = expect_prompt(&mut peer).await;
        peer.fail(&id, -32603, "Internal error").await;
        let id = expect_prompt(&mut peer).await;
        peer.fail(&id, -32000, "Authentication required").await;
        peer
    };
    let client_side = async {
        for stop in stops {
            let (result, _) = prompt(&mut conversation, "x").await;
            assert_eq!(result.output.text, "part");
            match stop {
                "cancelled" => assert_eq!(result.end, PromptEnd::Cancelled),
                _ => assert_eq!(failure(result).category, ErrorCategory::AgentError),
            }
        }
        let error = failure(prompt(&mut conversation, "x").await.0);
        assert_eq!(error, RunFailure::agent("the agent answered session/prompt with error -32603: Internal error"));
        assert_eq!(failure(prompt(&mut conversation, "x").await.0).category, ErrorCategory::Permanent);
    };
    tokio::join!(agent_side, client_side);
}

#[tokio::test]
async fn cancelled_prompts_end_when_the_agent_confirms() {
    let (mut conversation, mut peer) = open(json!({"grace": 60})).await;
    let (stop, stopped) = oneshot::channel::<()>();
    let agent_side = async {
        let id = expect_prompt(&mut peer).await;
        chunk(&mut peer, "so far").await;
        stop.send(()).unwrap();
        let (none, params) = peer.expect("session/cancel").await;
        assert_eq!((none, params), (Value::Null, json!({"sessionId": "s"})));
        let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "e"}, "options": []});
        let answer = peer.call("session/request_permission", params).await;
        assert_eq!(answer["result"], json!({"outcome": {"outcome": "cancelled"}}));
        peer.answer(&id, json!({"stopReason": "cancelled"})).await;
        let id = expect_prompt(&mut peer).await;
        peer.answer(&id, json!({"stopReason": "end_turn"})).await;
        peer
    };
    let client_side = async {
        let cancel = async { stopped.await.unwrap() };
        let result = conversation.prompt(&rpc_prompt("x"), &mut |_| {}, cancel).await;
        assert_eq!((result.output.text.as_str(), result.end), ("so far", PromptEnd::Cancelled));
        assert_eq!(prompt(&mut conversation, "x").await.0.end, PromptEnd::Completed);
    };
    tokio::join!(agent_side, client_side);
}

#[tokio::test]
async fn unconfirmed_cancellations_end_the_conversation() {
    let (mut conversation, mut peer) = open(json!({})).await;
    let agent_side = async {
        expect_prompt(&mut peer).await;
        peer.expect("session/cancel").await;
        peer
    };
    let client_side = async { conversation.prompt(&rpc_prompt("x"), &mut |_| {}, ready(())).await };
    let (_peer, result) = tokio::join!(agent_side, client_side);
    assert_eq!(result.end, PromptEnd::Cancelled);
    assert!(!conversation.is_usable());
}

#[tokio::test]
async fn dropped_prompts_leave_nothing_running() {
    let (mut conversation, mut peer) = open(json!({})).await;
    let short = Duration::from_millis(20);
    assert!(tokio::time::timeout(short, prompt(&mut conversation, "x")).await.is_err());
    expect_prompt(&mut peer).await;
    assert!(!conversation.is_usable());
    drop(conversation);
    assert_eq!(peer.lines.next_line().await.unwrap(), None);
}

#[tokio::test]
async fn other_protocol_versions_are_rejected() {
    let (opened, _peer) = try_open(json!({}), async |peer| {
        let (id, _) = peer.expect("initialize").await;
        peer.answer(&id, json!({"protocolVersion": 2})).await;
    })
    .await;
    let failure = opened.err().unwrap();
    assert_eq!(failure.category, ErrorCategory::Permanent);
    assert!(failure.message.starts_with("the agent uses version 2"), "{failure}");
}

#[tokio::test]
async fn missing_logins_are_reported() {
    let methods =
        json!([{"id": "oauth", "name": "Log in with a browser"}, {"id": "openai-api-key", "name": "Use a key"}]);
    let begin = async |peer: &mut TestPeer| {
        let (id, _) = peer.expect("initialize").await;
        peer.answer(&id, json!({"protocolVersion": 1, "authMethods": methods})).await;
        let (id, _) = peer.expect("session/new").await;
        peer.fail(&id, -32000, "Authentication required").await;
        peer.expect("authenticate").await
    };
    let (opened, _peer) = try_open(json!({}), async |peer| {
        let (id, params) = begin(peer).await;
        assert_eq!(params, json!({"methodId": "openai-api-key"}));
        peer.fail(&id, -32603, "no key").await;
    })
    .await;
    let failure = opened.err().unwrap();
    let message = "the agent is not logged in: Authentication required; log in with the command of the agent first \
        (Log in with a browser, Use a key), or set a key in envs";
    assert_eq!(failure, RunFailure::permanent(message));

    let (opened, _peer) = try_open(json!({}), async |peer| {
        let (id, _) = begin(peer).await;
        peer.answer(&id, json!({})).await;
        let (id, _) = peer.expect("session/new").await;
        peer.answer(&id, json!({"sessionId": "s"})).await;
    })
    .await;
    assert!(opened.is_ok());
}

#[tokio::test]
async fn agents_that_end_early_are_reported() {
    let ((reader, writer), mut peer) = pipe(256);
    let mut outputs = Vec::new();
    let agent = agent(json!({}));
    let mut on_output = |output| outputs.push(output);
    let opened = RpcConversation::open(&agent, Path::new("/work"), reader, writer, &mut on_output);
    let agent_side = async {
        peer.write("usage: agent [OPTIONS]\n").await;
        drop(peer);
    };
    let (opened, ()) = tokio::join!(opened, agent_side);
    let message = opened.err().unwrap().message;
    assert_eq!(
        message,
        "the agent ended before it answered initialize; check that it supports the Agent Client Protocol"
    );
    assert_eq!(outputs, [AgentOutput::Plain("usage: agent [OPTIONS]".to_owned())]);

    let (mut conversation, mut peer) = open(json!({})).await;
    let agent_side = async {
        expect_prompt(&mut peer).await;
        peer.write("{\"jsonrpc\":\"2.0\",\"id\":3,\"resu").await;
        drop(peer);
    };
    let ((), (result, outputs)) = tokio::join!(agent_side, prompt(&mut conversation, "x"));
    assert!(failure(result).message.starts_with("the agent closed the connection"));
    assert_eq!(outputs.len(), 1);
}
