//! Plain JSON-RPC: one request after another, and what stands in the output of an agent that has ended.

use std::future::ready;

use super::*;

async fn open(extra: Value) -> (Dialogue, Peer) {
    let ((reader, writer), peer) = pipe(256);
    let mut settings = json!({"protocol": "json-rpc", "rpc_method": "work"});
    settings.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    let dialogue = Dialogue::open(&agent(settings), Path::new("/"), reader, writer, &mut |_| {}).await.unwrap();
    (dialogue, peer)
}

#[tokio::test]
async fn a_request_is_answered_and_then_the_next() {
    // SUP-2, SUP-3
    let (mut dialogue, mut peer) = open(json!({})).await;
    let speak = async {
        let (id, params) = peer.expect("work").await;
        let execution_id = "00000000-0000-0000-0000-000000000007";
        assert_eq!(params, json!({"input": "one", "parameters": {"model": "large"}, "execution_id": execution_id}));
        peer.write("starting up\n").await;
        peer.notify("output", json!({"text": "half "})).await;
        peer.notify("heartbeat", json!({"text": "not this"})).await;
        peer.notify("log", json!("looking")).await;
        peer.answer(&json!(99), json!("of somebody else")).await;
        let refused = peer.ask("fs/read", json!({})).await;
        assert_eq!(refused["error"]["code"], -32601);
        peer.answer(&id, json!({"output": "half done", "cost": 3})).await;
        for result in [json!("two"), json!(null), json!({"n": 1}), json!([1])] {
            let (id, _) = peer.expect("work").await;
            peer.notify("output", json!({"text": "said"})).await;
            peer.answer(&id, result).await;
        }
        peer
    };
    let listen = async {
        let (answer, said) = prompt(&mut dialogue, "one").await;
        assert_eq!(answer, Answer { only_now: true, ..completed("half done") });
        let expected = [
            Said::Plain("starting up".to_owned()),
            Said::Output("half ".to_owned()),
            Said::Progress("looking".to_owned()),
        ];
        assert_eq!(said, expected);
        for text in ["two", "said", "{\"n\":1}", "[1]"] {
            assert_eq!(prompt(&mut dialogue, "more").await.0, Answer { only_now: text != "said", ..completed(text) });
        }
        assert!(dialogue.is_usable());
    };
    tokio::join!(speak, listen);
}

#[tokio::test]
async fn an_error_is_the_agents() {
    let (mut dialogue, mut peer) = open(json!({})).await;
    let speak = async {
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
    let listen = async {
        let first = failure(prompt(&mut dialogue, "x").await.0);
        assert_eq!(first, Failure::agent("the agent answered with error 17: out of ideas"));
        let second = failure(prompt(&mut dialogue, "x").await.0);
        assert_eq!(second, Failure::permanent("the agent does not know work (rpc_method): Method not found"));
        assert!(failure(prompt(&mut dialogue, "x").await.0).message.ends_with("Parse error"));
        let (last, _) = prompt(&mut dialogue, "x").await;
        assert_eq!(last.output.text, "so far");
        assert_eq!(failure(last).message, "the agent closed the connection before it had answered");
        assert!(!dialogue.is_usable());
        assert!(failure(prompt(&mut dialogue, "x").await.0).message.contains("not done with"));
    };
    tokio::join!(speak, listen);
}

#[tokio::test]
async fn an_agent_is_told_to_stop() {
    let (mut dialogue, mut peer) = open(json!({})).await;
    let speak = async {
        let (asked, _) = peer.expect("work").await;
        let (_, params) = peer.expect("$/cancelRequest").await;
        assert_eq!(params["id"], asked);
        peer.fail(&asked, -32800, "cancelled").await;
        peer.expect("work").await;
        peer.expect("$/cancelRequest").await;
        peer
    };
    let listen = async {
        let answer = dialogue.prompt(&ask("x"), &mut |_| {}, ready(())).await;
        assert_eq!(answer.end, End::Cancelled);
        assert!(dialogue.is_usable());
        // This time it does not listen.
        let answer = dialogue.prompt(&ask("x"), &mut |_| {}, ready(())).await;
        assert_eq!(answer.end, End::Cancelled);
        assert!(!dialogue.is_usable());
    };
    tokio::join!(speak, listen);
}

#[tokio::test]
async fn what_is_too_long_loses_its_middle() {
    let (mut dialogue, mut peer) = open(json!({"max_output_size": 10})).await;
    let speak = async {
        let (id, _) = peer.expect("work").await;
        peer.answer(&id, json!("aaaa bbbb cccc dddd")).await;
        peer
    };
    let (_peer, (answer, _)) = tokio::join!(speak, prompt(&mut dialogue, "x"));
    assert_eq!(answer.output, Clipped { text: "aaaa\n[… 11 bytes left out …]\ndddd".to_owned(), truncated: true });
}

#[test]
fn the_last_response_in_an_output_counts() {
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
    assert_eq!(error, Failure::agent("the agent answered with error 5: no"));
    for nothing in ["", "hello", "{}", "{\"id\":1}", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}"] {
        assert_eq!(response(nothing).unwrap_err().category, Category::AgentError, "{nothing}");
    }
}

#[tokio::test]
async fn a_dialogue_can_be_held_by_any_task() {
    let (mut dialogue, peer) = open(json!({})).await;
    drop(peer);
    let asked = tokio::spawn(async move {
        let mut said = 0;
        dialogue.prompt(&ask("x"), &mut |_| said += 1, pending()).await
    });
    assert!(matches!(asked.await.unwrap().end, End::Failed(_)));
}
