//! The Agent Client Protocol against an agent written by hand from its specification.

use std::future::ready;

use tokio::sync::oneshot;

use super::*;

/// The agent's part of what comes before the first prompt.
async fn begin(peer: &mut Peer) {
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

async fn prompted(peer: &mut Peer) -> Value {
    let (id, params) = peer.expect("session/prompt").await;
    assert_eq!(params, json!({"sessionId": "s", "prompt": [{"type": "text", "text": "x"}]}));
    id
}

async fn update(peer: &mut Peer, kind: &str, more: Value) {
    let mut update = json!({"sessionUpdate": kind});
    update.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    peer.notify("session/update", json!({"sessionId": "s", "update": update})).await;
}

async fn chunk(peer: &mut Peer, text: &str) {
    update(peer, "agent_message_chunk", json!({"content": {"type": "text", "text": text}})).await;
}

async fn try_open(extra: Value, script: impl AsyncFnOnce(&mut Peer)) -> (Result<Dialogue, Failure>, Peer) {
    let ((reader, writer), mut peer) = pipe(256);
    let agent = agent(extra);
    let mut on = |_| {};
    let opened = Dialogue::open(&agent, Path::new("/work"), reader, writer, &mut on);
    let (opened, ()) = tokio::join!(opened, script(&mut peer));
    (opened, peer)
}

async fn open(extra: Value) -> (Dialogue, Peer) {
    let (opened, peer) = try_open(extra, begin).await;
    (opened.unwrap(), peer)
}

#[tokio::test]
async fn a_session_has_many_prompts() {
    // SUP-2, SUP-3
    let (mut dialogue, mut peer) = open(json!({})).await;
    let speak = async {
        let id = prompted(&mut peer).await;
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
        let id = prompted(&mut peer).await;
        chunk(&mut peer, "Yes.").await;
        peer.answer(&id, json!({"stopReason": "end_turn"})).await;
        peer
    };
    let listen = async {
        let (answer, said) = prompt(&mut dialogue, "x").await;
        assert_eq!(answer, completed("Let me look.\n\nIt is gone."));
        let output = |text: &str| Said::Output(text.to_owned());
        let progress = |text: &str| Said::Progress(text.to_owned());
        let expected = [
            Said::Plain("[debug] not of the protocol".to_owned()),
            Said::Thought("hm".to_owned()),
            output("Let me "),
            output("look."),
            progress("plan: 1 of 2 done, now: look at it"),
            progress("read: README.md"),
            progress("read: README.md (failed)"),
            output("\n\n"),
            output("It is "),
            output("gone."),
        ];
        assert_eq!(said, expected);
        assert_eq!(prompt(&mut dialogue, "x").await.0, completed("Yes."));
    };
    tokio::join!(speak, listen);
}

#[tokio::test]
async fn only_what_reads_is_allowed_to_who_reads() {
    for (permissions, allowed) in [("read", [true, false, false]), ("allow", [true; 3]), ("deny", [false; 3])] {
        let (mut dialogue, mut peer) = open(json!({"permissions": permissions})).await;
        let speak = async {
            let id = prompted(&mut peer).await;
            // Said once, and not again when it asks.
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
                let answer = peer.ask("session/request_permission", params).await;
                let chosen = json!({"outcome": "selected", "optionId": if allowed { "yes" } else { "no" }});
                assert_eq!(answer["result"]["outcome"], chosen);
            }
            for method in ["fs/read_text_file", "fs/write_text_file", "terminal/create", "_other"] {
                assert_eq!(peer.ask(method, json!({"sessionId": "s"})).await["error"]["code"], -32601);
            }
            peer.answer(&id, json!({"stopReason": "end_turn"})).await;
            peer
        };
        let (_peer, (answer, said)) = tokio::join!(speak, prompt(&mut dialogue, "x"));
        assert_eq!(answer.end, End::Completed);
        let told = if allowed[1] { "allowed edit: b" } else { "not allowed edit: b" };
        assert!(said.contains(&Said::Progress(told.to_owned())), "{said:?}");
    }
}

#[tokio::test]
async fn why_it_stopped_decides_how_it_ended() {
    let (mut dialogue, mut peer) = open(json!({})).await;
    let stops = ["refusal", "max_tokens", "max_turn_requests", "whim", "cancelled"];
    let speak = async {
        for stop in stops {
            let id = prompted(&mut peer).await;
            chunk(&mut peer, "part").await;
            peer.answer(&id, json!({"stopReason": stop})).await;
        }
        let id = prompted(&mut peer).await;
        peer.fail(&id, -32603, "Internal error").await;
        let id = prompted(&mut peer).await;
        peer.fail(&id, -32000, "Authentication required").await;
        peer
    };
    let listen = async {
        for stop in stops {
            let (answer, _) = prompt(&mut dialogue, "x").await;
            assert_eq!(answer.output.text, "part");
            match stop {
                "cancelled" => assert_eq!(answer.end, End::Cancelled),
                _ => assert_eq!(failure(answer).category, Category::AgentError),
            }
        }
        let error = failure(prompt(&mut dialogue, "x").await.0);
        assert_eq!(error, Failure::agent("the agent answered session/prompt with error -32603: Internal error"));
        assert_eq!(failure(prompt(&mut dialogue, "x").await.0).category, Category::Permanent);
    };
    tokio::join!(speak, listen);
}

#[tokio::test]
async fn a_cancelled_prompt_is_waited_for_until_it_has_stopped() {
    let (mut dialogue, mut peer) = open(json!({"grace": 60})).await;
    let (stop, stopped) = oneshot::channel::<()>();
    let speak = async {
        let id = prompted(&mut peer).await;
        chunk(&mut peer, "so far").await;
        stop.send(()).unwrap();
        let (none, params) = peer.expect("session/cancel").await;
        assert_eq!((none, params), (Value::Null, json!({"sessionId": "s"})));
        let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "e"}, "options": []});
        let answer = peer.ask("session/request_permission", params).await;
        assert_eq!(answer["result"], json!({"outcome": {"outcome": "cancelled"}}));
        peer.answer(&id, json!({"stopReason": "cancelled"})).await;
        let id = prompted(&mut peer).await;
        peer.answer(&id, json!({"stopReason": "end_turn"})).await;
        peer
    };
    let listen = async {
        let cancel = async { stopped.await.unwrap() };
        let answer = dialogue.prompt(&ask("x"), &mut |_| {}, cancel).await;
        assert_eq!((answer.output.text.as_str(), answer.end), ("so far", End::Cancelled));
        assert_eq!(prompt(&mut dialogue, "x").await.0.end, End::Completed);
    };
    tokio::join!(speak, listen);
}

#[tokio::test]
async fn one_that_does_not_stop_is_left() {
    let (mut dialogue, mut peer) = open(json!({})).await;
    let speak = async {
        prompted(&mut peer).await;
        peer.expect("session/cancel").await;
        peer
    };
    let listen = async { dialogue.prompt(&ask("x"), &mut |_| {}, ready(())).await };
    let (_peer, answer) = tokio::join!(speak, listen);
    assert_eq!(answer.end, End::Cancelled);
    assert!(!dialogue.is_usable());
}

#[tokio::test]
async fn a_dropped_prompt_leaves_nothing_running() {
    let (mut dialogue, mut peer) = open(json!({})).await;
    let short = Duration::from_millis(20);
    assert!(tokio::time::timeout(short, prompt(&mut dialogue, "x")).await.is_err());
    prompted(&mut peer).await;
    assert!(!dialogue.is_usable());
    drop(dialogue);
    assert_eq!(peer.lines.next_line().await.unwrap(), None);
}

#[tokio::test]
async fn another_version_is_not_spoken() {
    let (opened, _peer) = try_open(json!({}), async |peer| {
        let (id, _) = peer.expect("initialize").await;
        peer.answer(&id, json!({"protocolVersion": 2})).await;
    })
    .await;
    let failure = opened.err().unwrap();
    assert_eq!(failure.category, Category::Permanent);
    assert!(failure.message.starts_with("the agent speaks version 2"), "{failure}");
}

#[tokio::test]
async fn who_is_not_logged_in_is_told_so() {
    let methods =
        json!([{"id": "oauth", "name": "Log in with a browser"}, {"id": "openai-api-key", "name": "Use a key"}]);
    let begin = async |peer: &mut Peer| {
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
    let message = "the agent is not logged in: Authentication required; log in with its own command first \
        (Log in with a browser, Use a key), or give it a key in envs";
    assert_eq!(failure, Failure::permanent(message));

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
async fn an_agent_that_ends_early_is_named() {
    let ((reader, writer), mut peer) = pipe(256);
    let mut said = Vec::new();
    let agent = agent(json!({}));
    let mut on = |what| said.push(what);
    let opened = Dialogue::open(&agent, Path::new("/work"), reader, writer, &mut on);
    let speak = async {
        peer.write("usage: agent [OPTIONS]\n").await;
        drop(peer);
    };
    let (opened, ()) = tokio::join!(opened, speak);
    let message = opened.err().unwrap().message;
    assert_eq!(message, "the agent ended before it had answered initialize: does it speak the Agent Client Protocol?");
    assert_eq!(said, [Said::Plain("usage: agent [OPTIONS]".to_owned())]);

    let (mut dialogue, mut peer) = open(json!({})).await;
    let speak = async {
        prompted(&mut peer).await;
        peer.write("{\"jsonrpc\":\"2.0\",\"id\":3,\"resu").await;
        drop(peer);
    };
    let ((), (answer, said)) = tokio::join!(speak, prompt(&mut dialogue, "x"));
    assert!(failure(answer).message.starts_with("the agent closed the connection"));
    assert_eq!(said.len(), 1);
}
