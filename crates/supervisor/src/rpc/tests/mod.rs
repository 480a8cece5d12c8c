//! Tests with scripted agents at the other end of a pipe.

mod acp;
mod plain;
mod wire;

use std::future::pending;
use std::time::Duration;

use model::agent::AgentDraft;
use model::execution::ErrorCategory;
use serde_json::json;
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split,
};

use super::*;

/// The agent's side of the pipe.
struct TestPeer {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl TestPeer {
    async fn receive(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().expect("the client closed the connection");
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["jsonrpc"], "2.0");
        message
    }

    /// Receives a request or a notification with this method. Returns its id and its parameters.
    async fn expect(&mut self, method: &str) -> (Value, Value) {
        let mut message = self.receive().await;
        assert_eq!(message["method"], method, "{message}");
        (message["id"].take(), message["params"].take())
    }

    async fn write(&mut self, text: &str) {
        self.writer.write_all(text.as_bytes()).await.unwrap();
    }

    async fn send(&mut self, message: Value) {
        self.write(&format!("{message}\n")).await;
    }

    async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    async fn answer(&mut self, id: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    }

    async fn fail(&mut self, id: &Value, code: i64, message: &str) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})).await;
    }

    /// Sends a request to the client and returns its response.
    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.send(json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": params})).await;
        let answer = self.receive().await;
        assert_eq!(answer["id"], "q");
        answer
    }
}

/// Returns both ends of a pipe with a capacity of `size` bytes.
fn pipe(size: usize) -> ((ReadHalf<DuplexStream>, WriteHalf<DuplexStream>), TestPeer) {
    let (ours, theirs) = duplex(size);
    let (reader, writer) = split(theirs);
    (split(ours), TestPeer { lines: BufReader::new(reader).lines(), writer })
}

fn agent(extra: Value) -> Agent {
    let mut value = json!({"id": "mine", "executable_path": "x", "agent_type": "json-rpc", "grace": 0.05});
    value.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    model::json::from_value::<AgentDraft>(value).unwrap().check().unwrap()
}

fn rpc_prompt(input: &str) -> RpcPrompt {
    let parameters = json!({"model": "large"}).as_object().unwrap().clone();
    RpcPrompt { input: input.to_owned(), parameters, execution_id: Uuid::from_u128(7) }
}

fn completed(text: &str) -> PromptResult {
    PromptResult {
        output: ClippedText { text: text.to_owned(), truncated: false },
        replaces_output: false,
        end: PromptEnd::Completed,
    }
}

fn failure(result: PromptResult) -> RunFailure {
    match result.end {
        PromptEnd::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

/// Sends a prompt without a cancellation. Returns the result and the output.
async fn prompt(conversation: &mut RpcConversation, input: &str) -> (PromptResult, Vec<AgentOutput>) {
    let mut outputs = Vec::new();
    let result = conversation.prompt(&rpc_prompt(input), &mut |output| outputs.push(output), pending()).await;
    (result, outputs)
}
