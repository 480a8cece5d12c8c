//! `adjutant mcp`: a line a message, with a server or without (TASK-3).

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use testkit::app::Home;

use super::LEGACY;
use crate::{ALICE, BOB, home, home_with_auth, token};

/// The program, with both ends of its standard streams in our hands.
struct Program {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output }
    }

    /// Shakes hands as a client that cannot ask.
    fn greet(home: &Home, arguments: &[&str]) -> Self {
        let mut program = Self::start(home.command(&[&["mcp"], arguments].concat()));
        let params =
            json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "it", "version": "1"}});
        let hello = program.ask("initialize", params);
        assert_eq!(hello["result"]["serverInfo"]["name"], "adjutant", "{hello}");
        program.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        program
    }

    fn say(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.say(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string());
        self.hear()
    }

    fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": name, "arguments": arguments}))["result"]["structuredContent"].clone()
    }

    /// Closes its input; what it still says, and its exit code.
    fn finish(mut self) -> (String, i32) {
        drop(self.input.take());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.output, &mut rest).unwrap();
        (rest, self.child.wait().unwrap().code().unwrap_or(-1))
    }
}

#[test]
fn without_a_server_it_works_on_the_data_directory() {
    let home = home();
    let mut program = Program::greet(&home, &[]);
    assert_eq!(program.call("add_task", json!({"title": "milk"}))["success"], true);
    assert_eq!(program.finish(), (String::new(), 0), "the end of input is its end");
    assert!(home.run(&["tasks", "list"]).ok().contains("milk"));

    // With --user the tasks are that user's.
    let mut program = Program::greet(&home, &["--user", ALICE]);
    assert_eq!(program.call("list_tasks", json!({}))["count"], 0);
    program.finish();
    let wrong = home.run(&["mcp", "--user", "me"]);
    assert_eq!((wrong.code(), wrong.out()), (2, String::new()), "{}", wrong.err());
}

#[test]
fn a_signal_ends_it_too() {
    for with_server in [false, true] {
        let home = home();
        let _server = with_server.then(|| home.serve());
        let mut program = Program::greet(&home, &[]);
        kill(Pid::from_raw(i32::try_from(program.child.id()).unwrap()), Signal::SIGTERM).unwrap();
        assert_eq!(program.child.wait().unwrap().code(), Some(0), "with a server: {with_server}");
    }
}

#[test]
fn with_a_server_it_goes_through_it() {
    // OPS-3
    let home = home_with_auth();
    let _server = home.serve();
    let alice = token(&home, ALICE, &[]);
    let mut by_token = Program::greet(&home, &["--token", &alice]);
    let mut by_name = Program::greet(&home, &["--user", ALICE]);
    let mut another = Program::greet(&home, &["--user", BOB]);
    assert_eq!(by_token.call("add_task", json!({"title": "milk"}))["success"], true);
    assert_eq!(by_name.call("list_tasks", json!({}))["tasks"][0]["title"], "milk");
    assert_eq!(another.call("list_tasks", json!({}))["count"], 0);
    for program in [by_token, by_name, another] {
        assert_eq!(program.finish(), (String::new(), 0));
    }
    // Without a token the server lets nobody in, and the client learns why.
    let mut nobody = Program::start(home.command(&["mcp"]));
    let refused = nobody.ask("initialize", json!({"protocolVersion": LEGACY}));
    assert_eq!(refused["error"]["message"], "a valid token is required", "{refused}");
    assert_eq!(home.run(&["mcp", "--user", ALICE, "--token", &alice]).code(), 2);
}

#[test]
fn a_user_needs_a_token_where_the_server_wants_one() {
    let home = home();
    let server = home.serve();
    let refused = home.run(&["mcp", "--user", ALICE, "--server", &server.url]);
    assert_eq!(refused.code(), 2);
    assert!(refused.err().contains("auth.jwt_secret"), "{}", refused.err());
}

#[test]
fn a_server_that_starts_anew_is_no_end() {
    let home = home();
    let mut server = home.serve();
    let mut program = Program::greet(&home, &[]);
    program.call("add_task", json!({"title": "milk"}));
    assert_eq!(server.stop(), 0);
    let lost = program.ask("tools/list", json!({}));
    assert!(lost["error"]["message"].as_str().unwrap().contains("cannot be reached"), "{lost}");
    let address = server.url.trim_start_matches("http://").to_owned();
    let _server = home.serve_with(&["--listen", &address]);
    assert_eq!(program.call("list_tasks", json!({}))["count"], 1, "it shakes hands again by itself");
}

#[test]
fn what_is_no_message_does_not_end_it() {
    for with_server in [false, true] {
        let home = home();
        let _server = with_server.then(|| home.serve());
        let mut program = Program::greet(&home, &[]);
        program.say("{nonsense");
        if with_server {
            assert_eq!(program.hear()["error"]["code"], -32700);
        }
        assert_eq!(program.call("list_tasks", json!({}))["success"], true, "with a server: {with_server}");
    }
}
