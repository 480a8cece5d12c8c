//! `adjutant mcp`: one message per line, with and without a server (TASK-3).

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use testkit::app::Home;

use super::LEGACY;
use crate::{ALICE, BOB, home, home_with_auth, token};

/// The program with its standard streams.
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

    /// Starts the program and initializes it as a client without elicitation.
    fn initialize(home: &Home, arguments: &[&str]) -> Self {
        let mut program = Self::start(home.command(&[&["mcp"], arguments].concat()));
        let params =
            json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "it", "version": "1"}});
        let hello = program.request("initialize", params);
        assert_eq!(hello["result"]["serverInfo"]["name"], "adjutant", "{hello}");
        program.write_line(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        program
    }

    fn write_line(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn read_message(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.write_line(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string());
        self.read_message()
    }

    fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": name, "arguments": arguments}))["result"]["structuredContent"].clone()
    }

    /// Closes its input. Returns the remaining output and the exit code.
    fn finish(mut self) -> (String, i32) {
        drop(self.input.take());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.output, &mut rest).unwrap();
        (rest, self.child.wait().unwrap().code().unwrap_or(-1))
    }
}

#[test]
fn without_a_server_the_data_directory_is_used() {
    // TASK-3
    let home = home();
    let mut program = Program::initialize(&home, &[]);
    assert_eq!(program.call("add_task", json!({"title": "milk"}))["success"], true);
    assert_eq!(program.finish(), (String::new(), 0), "the program ends with its input");
    assert!(home.run(&["tasks", "list"]).ok().contains("milk"));

    // `--user` selects the user.
    let mut program = Program::initialize(&home, &["--user", ALICE]);
    assert_eq!(program.call("list_tasks", json!({}))["count"], 0);
    program.finish();
    let wrong = home.run(&["mcp", "--user", "not a user"]);
    assert_eq!((wrong.code(), wrong.out()), (2, String::new()), "{}", wrong.err());
}

#[test]
fn several_programs_share_the_data_directory() {
    // SEC-1, OPS-4
    let home = home_with_auth();
    let alice = token(&home, ALICE, &[]);
    let mut first = Program::initialize(&home, &[]);
    let mut second = Program::initialize(&home, &[]);
    let mut of_alice = Program::initialize(&home, &["--token", &alice]);
    assert_eq!(first.call("add_task", json!({"title": "milk"}))["success"], true);
    assert_eq!(second.call("list_tasks", json!({}))["tasks"][0]["title"], "milk");
    assert_eq!(of_alice.call("list_tasks", json!({}))["count"], 0, "a token selects its user");
    assert!(home.run(&["tasks", "list"]).ok().contains("milk"), "other commands are served too");
    assert!(home.run(&["doctor"]).out().contains("held by another command"));

    // The first one ends. One of the others takes the data directory.
    assert_eq!(first.finish(), (String::new(), 0));
    assert_eq!(second.call("add_task", json!({"title": "bread"}))["success"], true);
    assert_eq!(of_alice.call("add_task", json!({"title": "tea"}))["success"], true);
    assert!(home.run(&["tasks", "list"]).ok().contains("bread"));

    // The second one is killed and leaves its socket.
    second.child.kill().unwrap();
    second.child.wait().unwrap();
    assert_eq!(of_alice.call("list_tasks", json!({}))["tasks"][0]["title"], "tea");
    let mut last = Program::initialize(&home, &[]);
    assert_eq!(last.call("list_tasks", json!({}))["count"], 2);
    assert_eq!(of_alice.finish(), (String::new(), 0));
    assert_eq!(last.call("list_tasks", json!({}))["count"], 2);
    assert_eq!(last.finish(), (String::new(), 0));
}

#[test]
fn a_signal_ends_the_program() {
    for with_server in [false, true] {
        let home = home();
        let _server = with_server.then(|| home.serve());
        let mut program = Program::initialize(&home, &[]);
        kill(Pid::from_raw(i32::try_from(program.child.id()).unwrap()), Signal::SIGTERM).unwrap();
        assert_eq!(program.child.wait().unwrap().code(), Some(0), "with a server: {with_server}");
    }
}

#[test]
fn with_a_server_messages_are_forwarded() {
    // OPS-3, TASK-3
    let home = home_with_auth();
    let _server = home.serve();
    let alice = token(&home, ALICE, &[]);
    let mut by_token = Program::initialize(&home, &["--token", &alice]);
    let mut by_name = Program::initialize(&home, &["--user", ALICE]);
    let mut another = Program::initialize(&home, &["--user", BOB]);
    assert_eq!(by_token.call("add_task", json!({"title": "milk"}))["success"], true);
    assert_eq!(by_name.call("list_tasks", json!({}))["tasks"][0]["title"], "milk");
    assert_eq!(another.call("list_tasks", json!({}))["count"], 0);
    for program in [by_token, by_name, another] {
        assert_eq!(program.finish(), (String::new(), 0));
    }
    // Without a token the server rejects the client with a reason.
    let mut anonymous = Program::start(home.command(&["mcp"]));
    let refused = anonymous.request("initialize", json!({"protocolVersion": LEGACY}));
    assert_eq!(refused["error"]["message"], "a valid token is required", "{refused}");
    assert_eq!(home.run(&["mcp", "--user", ALICE, "--token", &alice]).code(), 2);
}

#[test]
fn the_user_flag_requires_the_secret_of_the_server() {
    let home = home();
    let server = home.serve();
    let refused = home.run(&["mcp", "--user", ALICE, "--server", &server.url]);
    assert_eq!(refused.code(), 2);
    assert!(refused.err().contains("auth.jwt_secret"), "{}", refused.err());
}

#[test]
fn a_restart_of_the_server_is_survived() {
    let home = home();
    let mut server = home.serve();
    let mut program = Program::initialize(&home, &[]);
    program.call("add_task", json!({"title": "milk"}));
    assert_eq!(server.stop(), 0);
    let lost = program.request("tools/list", json!({}));
    assert!(lost["error"]["message"].as_str().unwrap().contains("cannot be reached"), "{lost}");
    let address = server.url.trim_start_matches("http://").to_owned();
    let _server = home.serve_with(&["--listen", &address]);
    assert_eq!(program.call("list_tasks", json!({}))["count"], 1, "the session is initialized again automatically");
}

#[test]
fn invalid_lines_do_not_end_the_program() {
    for with_server in [false, true] {
        let home = home();
        let _server = with_server.then(|| home.serve());
        let mut program = Program::initialize(&home, &[]);
        program.write_line("{nonsense");
        if with_server {
            assert_eq!(program.read_message()["error"]["code"], -32700);
        }
        assert_eq!(program.call("list_tasks", json!({}))["success"], true, "with a server: {with_server}");
    }
}
