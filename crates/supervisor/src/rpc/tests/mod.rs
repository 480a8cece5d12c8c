//! Agents of all kinds at the other end of a pipe.

mod acp;
mod plain;
mod wire;

use std::future::pending;
use std::time::Duration;

use model::agent::Draft;
use model::execution::Category;
use serde_json::json;
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split,
};

use super::*;

/// The agent's side of the pipe, written by hand.
struct Peer {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl Peer {
    async fn hear(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().expect("the client closed the connection");
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["jsonrpc"], "2.0");
        message
    }

    /// Hears a request or a notification of this name, and gives its id and its parameters.
    async fn expect(&mut self, method: &str) -> (Value, Value) {
        let mut message = self.hear().await;
        assert_eq!(message["method"], method, "{message}");
        (message["id"].take(), message["params"].take())
    }

    async fn write(&mut self, text: &str) {
        self.writer.write_all(text.as_bytes()).await.unwrap();
    }

    async fn say(&mut self, message: Value) {
        self.write(&format!("{message}\n")).await;
    }

    async fn notify(&mut self, method: &str, params: Value) {
        self.say(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    async fn answer(&mut self, id: &Value, result: Value) {
        self.say(json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    }

    async fn fail(&mut self, id: &Value, code: i64, message: &str) {
        self.say(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})).await;
    }

    /// Asks something of the client, and hears what it answers.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.say(json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": params})).await;
        let answer = self.hear().await;
        assert_eq!(answer["id"], "q");
        answer
    }
}

/// A pipe that holds `size` bytes.
fn pipe(size: usize) -> ((ReadHalf<DuplexStream>, WriteHalf<DuplexStream>), Peer) {
    let (ours, theirs) = duplex(size);
    let (reader, writer) = split(theirs);
    (split(ours), Peer { lines: BufReader::new(reader).lines(), writer })
}

fn agent(extra: Value) -> Agent {
    let mut value = json!({"id": "mine", "executable_path": "x", "agent_type": "json-rpc", "grace": 0.05});
    value.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    model::json::from_value::<Draft>(value).unwrap().check().unwrap()
}

fn ask(input: &str) -> Ask {
    let parameters = json!({"model": "large"}).as_object().unwrap().clone();
    Ask { input: input.to_owned(), parameters, execution_id: Uuid::from_u128(7) }
}

fn completed(text: &str) -> Answer {
    Answer { output: Clipped { text: text.to_owned(), truncated: false }, only_now: false, end: End::Completed }
}

fn failure(answer: Answer) -> Failure {
    match answer.end {
        End::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

/// Asks without ever wanting it to stop, and gives what was said on the way.
async fn prompt(dialogue: &mut Dialogue, input: &str) -> (Answer, Vec<Said>) {
    let mut said = Vec::new();
    let answer = dialogue.prompt(&ask(input), &mut |what| said.push(what), pending()).await;
    (answer, said)
}
