//! The program `llm`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::{WIRES, body, body_with_result, parse_reply, send};

#[tokio::test]
async fn adds_tasks_and_repeats_other_messages() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_llm"));
    let mut child = command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.split_whitespace().last().unwrap();
    let mut replies = Vec::new();
    for wire in WIRES {
        let mut without_tools = body(wire, true);
        without_tools.as_object_mut().unwrap().remove("tools");
        for body in [body(wire, true), body_with_result(wire), without_tools] {
            let answer = send(url, wire, &body).await.unwrap();
            replies.push(parse_reply(wire, &answer.text().await.unwrap()));
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    for (wire, replies) in WIRES.into_iter().zip(replies.chunks(3)) {
        assert_eq!(replies[0].calls, [("add_task".to_owned(), "{\"title\":\"bread\"}".to_owned())], "{wire:?}");
        assert_eq!(replies[1].text, "Done, it is on your list.");
        assert_eq!(replies[2].text, "You said: add bread");
    }
}
