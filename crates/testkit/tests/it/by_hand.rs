//! The program for trying things by hand.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::{WIRES, body, body_with_result, hear, send};

#[tokio::test]
async fn it_adds_confirms_and_repeats() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_llm"));
    let mut child = command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.split_whitespace().last().unwrap();
    let mut heard = Vec::new();
    for wire in WIRES {
        let mut other = body(wire, true);
        other.as_object_mut().unwrap().remove("tools");
        for body in [body(wire, true), body_with_result(wire), other] {
            let answer = send(url, wire, &body).await.unwrap();
            heard.push(hear(wire, &answer.text().await.unwrap()));
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    for (wire, heard) in WIRES.into_iter().zip(heard.chunks(3)) {
        assert_eq!(heard[0].calls, [("add_task".to_owned(), "{\"title\":\"bread\"}".to_owned())], "{wire:?}");
        assert_eq!(heard[1].text, "Done, it is on your list.");
        assert_eq!(heard[2].text, "You said: add bread");
    }
}
