//! Tests with lines in chunks, lines that are too long, and lines that are not messages.

use proptest::prelude::*;

use super::super::wire::{IncomingMessage, RpcError, RpcWire};
use super::*;

#[tokio::test]
async fn other_lines_are_plain_output() {
    let ((reader, writer), mut peer) = pipe(64);
    let mut wire = RpcWire::new(reader, writer);
    let agent_side = async {
        peer.write("loading…\n\n  \n{\"level\":\"info\"}\n[1]\n{\"id\":1}\n{\"jsonrpc\":\"2.0\"").await;
        peer.write(",\"id\":1,\"result\":null}\n{\"id\":1,\"error\":{\"code\":3,\"message\":\"no\",\"data\":{\"details\":\"why\"}}}\n").await;
        peer.writer.write_all(b"\xff\xfe\n{\"method\":\"m\"}\r\nlast").await.unwrap();
        drop(peer);
    };
    let client_side = async {
        let mut received = Vec::new();
        while let Some(incoming) = wire.next().await.unwrap() {
            received.push(incoming);
        }
        received
    };
    let ((), received) = tokio::join!(agent_side, client_side);
    let plain = |text: &str| IncomingMessage::Plain(text.to_owned());
    let response = |outcome| IncomingMessage::Response { id: json!(1), outcome };
    let expected = [
        plain("loading…"),
        plain("{\"level\":\"info\"}"),
        plain("[1]"),
        plain("{\"id\":1}"),
        response(Ok(Value::Null)),
        response(Err(RpcError { code: 3, message: "no: why".to_owned() })),
        plain("\u{fffd}\u{fffd}"),
        IncomingMessage::Notification { method: "m".to_owned(), params: Value::Null },
        plain("last"),
    ];
    assert_eq!(received, expected);
}

#[tokio::test]
async fn overlong_lines_are_errors() {
    let ((reader, writer), mut peer) = pipe(1 << 20);
    let mut wire = RpcWire::new(reader, writer);
    let agent_side = async {
        let piece = [b'x'; 1 << 16];
        while peer.writer.write_all(&piece).await.is_ok() {}
    };
    let client_side = async {
        let failure = wire.next().await.unwrap_err();
        drop(wire);
        failure
    };
    let ((), failure) = tokio::join!(agent_side, client_side);
    assert_eq!(failure.message, "the agent wrote a line of more than 10485760 bytes");
}

#[tokio::test]
async fn full_pipes_do_not_deadlock() {
    let ((reader, writer), mut peer) = pipe(16);
    let mut wire = RpcWire::new(reader, writer);
    wire.request("m", &json!("x".repeat(100_000)));
    let agent_side = async {
        for _ in 0..1000 {
            peer.notify("n", json!("y")).await;
        }
        peer.expect("m").await;
        drop(peer);
    };
    let client_side = async {
        let mut received = 0;
        while wire.next().await.unwrap().is_some() {
            received += 1;
        }
        received
    };
    let ((), received) =
        tokio::time::timeout(Duration::from_secs(60), async { tokio::join!(agent_side, client_side) }).await.unwrap();
    assert_eq!(received, 1000);
}

#[tokio::test]
async fn dropped_futures_lose_nothing() {
    let ((reader, writer), mut peer) = pipe(1024);
    let mut wire = RpcWire::new(reader, writer);
    wire.request("m", &Value::Null);
    peer.write("{\"method\":").await;
    assert!(tokio::time::timeout(Duration::from_millis(10), wire.next()).await.is_err());
    peer.write("\"n\"}\n").await;
    let received = wire.next().await.unwrap();
    assert_eq!(received, Some(IncomingMessage::Notification { method: "n".to_owned(), params: Value::Null }));
    assert_eq!(peer.expect("m").await.0, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn messages_can_arrive_in_any_chunks(texts in prop::collection::vec("[a-zä\"\\\\\n ]{0,20}", 0..8), size in 1usize..40) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let ((reader, writer), mut peer) = pipe(size);
            let mut wire = RpcWire::new(reader, writer);
            let agent_side = async {
                for text in &texts {
                    peer.notify("t", json!(text)).await;
                }
                drop(peer);
            };
            let client_side = async {
                let mut received = Vec::new();
                while let Some(IncomingMessage::Notification { params, .. }) = wire.next().await.unwrap() {
                    received.push(params.as_str().unwrap().to_owned());
                }
                received
            };
            let ((), received) = tokio::join!(agent_side, client_side);
            assert_eq!(received, texts);
        });
    }
}
