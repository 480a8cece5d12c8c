//! Lines in pieces, too long, or not of the protocol at all.

use proptest::prelude::*;

use super::super::wire::{Fault, Incoming, Wire};
use super::*;

#[tokio::test]
async fn rubbish_is_plain_output() {
    let ((reader, writer), mut peer) = pipe(64);
    let mut wire = Wire::new(reader, writer);
    let speak = async {
        peer.write("loading…\n\n  \n{\"level\":\"info\"}\n[1]\n{\"id\":1}\n{\"jsonrpc\":\"2.0\"").await;
        peer.write(",\"id\":1,\"result\":null}\n{\"id\":1,\"error\":{\"code\":3,\"message\":\"no\",\"data\":{\"details\":\"why\"}}}\n").await;
        peer.writer.write_all(b"\xff\xfe\n{\"method\":\"m\"}\r\nlast").await.unwrap();
        drop(peer);
    };
    let listen = async {
        let mut heard = Vec::new();
        while let Some(incoming) = wire.next().await.unwrap() {
            heard.push(incoming);
        }
        heard
    };
    let ((), heard) = tokio::join!(speak, listen);
    let plain = |text: &str| Incoming::Plain(text.to_owned());
    let response = |outcome| Incoming::Response { id: json!(1), outcome };
    let expected = [
        plain("loading…"),
        plain("{\"level\":\"info\"}"),
        plain("[1]"),
        plain("{\"id\":1}"),
        response(Ok(Value::Null)),
        response(Err(Fault { code: 3, message: "no: why".to_owned() })),
        plain("\u{fffd}\u{fffd}"),
        Incoming::Notification { method: "m".to_owned(), params: Value::Null },
        plain("last"),
    ];
    assert_eq!(heard, expected);
}

#[tokio::test]
async fn an_endless_line_is_an_error() {
    let ((reader, writer), mut peer) = pipe(1 << 20);
    let mut wire = Wire::new(reader, writer);
    let speak = async {
        let piece = [b'x'; 1 << 16];
        while peer.writer.write_all(&piece).await.is_ok() {}
    };
    let listen = async {
        let failure = wire.next().await.unwrap_err();
        drop(wire);
        failure
    };
    let ((), failure) = tokio::join!(speak, listen);
    assert_eq!(failure.message, "the agent wrote a line of more than 10485760 bytes");
}

#[tokio::test]
async fn neither_side_waits_for_the_other_with_full_pipes() {
    let ((reader, writer), mut peer) = pipe(16);
    let mut wire = Wire::new(reader, writer);
    wire.request("m", &json!("x".repeat(100_000)));
    let speak = async {
        for _ in 0..1000 {
            peer.notify("n", json!("y")).await;
        }
        peer.expect("m").await;
        drop(peer);
    };
    let listen = async {
        let mut heard = 0;
        while wire.next().await.unwrap().is_some() {
            heard += 1;
        }
        heard
    };
    let ((), heard) =
        tokio::time::timeout(Duration::from_secs(60), async { tokio::join!(speak, listen) }).await.unwrap();
    assert_eq!(heard, 1000);
}

#[tokio::test]
async fn a_dropped_future_loses_nothing() {
    let ((reader, writer), mut peer) = pipe(1024);
    let mut wire = Wire::new(reader, writer);
    wire.request("m", &Value::Null);
    peer.write("{\"method\":").await;
    assert!(tokio::time::timeout(Duration::from_millis(10), wire.next()).await.is_err());
    peer.write("\"n\"}\n").await;
    let heard = wire.next().await.unwrap();
    assert_eq!(heard, Some(Incoming::Notification { method: "n".to_owned(), params: Value::Null }));
    assert_eq!(peer.expect("m").await.0, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn it_does_not_matter_how_messages_are_cut(texts in prop::collection::vec("[a-zä\"\\\\\n ]{0,20}", 0..8), size in 1usize..40) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let ((reader, writer), mut peer) = pipe(size);
            let mut wire = Wire::new(reader, writer);
            let speak = async {
                for text in &texts {
                    peer.notify("t", json!(text)).await;
                }
                drop(peer);
            };
            let listen = async {
                let mut heard = Vec::new();
                while let Some(Incoming::Notification { params, .. }) = wire.next().await.unwrap() {
                    heard.push(params.as_str().unwrap().to_owned());
                }
                heard
            };
            let ((), heard) = tokio::join!(speak, listen);
            assert_eq!(heard, texts);
        });
    }
}
