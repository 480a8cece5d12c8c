//! The Unix socket of the data directory: the callers that it serves, and commands that share the directory (SEC-1).

#![expect(clippy::print_stderr, reason = "a test that cannot run must not be silent")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::app::{CommandOutput, Home, Server};

use crate::{ALICE, home, home_with_auth, token};

const SOCKET: &str = "adjutant.sock";
/// The user id of `nobody`.
const NOBODY: u32 = 65534;

/// Replaces the published address with one on which no process listens.
fn break_tcp_address(dir: &Path) {
    std::fs::write(dir.join("adjutant.lock"), "http://127.0.0.1:1").unwrap();
}

/// Waits until a file exists. Panics after 30 seconds.
fn wait_for(file: &Path) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !file.exists() {
        assert!(Instant::now() < deadline, "{} does not appear", file.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn commands_use_the_socket_and_not_tcp() {
    // SEC-1
    let home = home();
    let mut server = home.serve();
    let socket = home.path().join(SOCKET);
    assert_eq!(socket.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    break_tcp_address(home.path());
    home.run(&["tasks", "add", "milk"]).ok();
    assert!(home.run(&["tasks", "list"]).ok().contains("milk"));
    assert!(home.run(&["--server", &server.url, "tasks", "list"]).ok().contains("milk"), "--server uses TCP");
    std::fs::rename(&socket, home.path().join("moved")).unwrap();
    assert_eq!(home.run(&["tasks", "list"]).code(), 8, "without the socket, the address is used");
    std::fs::rename(home.path().join("moved"), &socket).unwrap();
    assert_eq!(server.stop(), 0);
    assert!(!socket.exists(), "the server removes its socket");
}

#[test]
fn a_stale_socket_is_replaced() {
    // SEC-1
    let home = home();
    let mut server = home.serve();
    home.run(&["tasks", "add", "milk"]).ok();
    server.kill();
    assert!(home.path().join(SOCKET).exists());
    assert!(home.run(&["tasks", "list"]).ok().contains("milk"), "without a server");
    let _server = home.serve();
    break_tcp_address(home.path());
    assert!(home.run(&["tasks", "list"]).ok().contains("milk"));
}

#[test]
fn a_data_directory_with_a_long_path_has_a_socket() {
    // SEC-1
    let home = home();
    let dir = home.path().join("d".repeat(100)).join("e".repeat(100));
    let dir = dir.to_str().unwrap();
    let _server = home.serve_with(&["--listen", "127.0.0.1:0", "--data-dir", dir]);
    break_tcp_address(Path::new(dir));
    home.run(&["--data-dir", dir, "tasks", "add", "milk"]).ok();
    assert!(home.run(&["--data-dir", dir, "tasks", "list"]).ok().contains("milk"));
}

#[test]
fn the_socket_needs_a_token_if_authentication_is_configured() {
    // SEC-1, OPS-3
    let home = home_with_auth();
    let alice = token(&home, ALICE, &[]);
    let _server = home.serve();
    break_tcp_address(home.path());
    assert_eq!(home.run(&["tasks", "list"]).code(), 9, "the local user is not trusted without a token");
    home.run(&["--token", &alice, "tasks", "list"]).ok();
}

#[test]
fn other_users_of_the_machine_cannot_use_the_socket() {
    // SEC-1
    use std::os::unix::process::CommandExt;
    if !nix::unistd::geteuid().is_root() {
        eprintln!("not run: only root can start a client as another user");
        return;
    }
    // Other users may not be able to read the directory of the build.
    let bin = tempfile::tempdir().unwrap();
    std::fs::set_permissions(bin.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let program = bin.path().join("client");
    std::fs::copy(testkit::agent::program(), &program).unwrap();
    for home in [home(), home_with_auth()] {
        let _server = home.serve();
        let socket = home.path().join(SOCKET);
        let request = |path: &str| {
            let mut client = Command::new(&program);
            client.arg("request").arg(&socket).arg(path).uid(NOBODY).gid(NOBODY);
            CommandOutput::from(client.output().unwrap())
        };
        assert_ne!(request("/health/live").code(), 0, "the file system refuses the connection");
        std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o666)).unwrap();
        assert_eq!(request("/api/tasks").out().trim(), "HTTP/1.1 403 Forbidden");
        assert_eq!(request("/health").out().trim(), "HTTP/1.1 403 Forbidden");
        assert_eq!(request("/health/live").out().trim(), "HTTP/1.1 200 OK");
    }
}

/// Runs agents that send requests to the socket and to the TCP address of their server in all ways, and checks that
/// they are refused.
async fn check_that_agents_are_refused(server: &Server, home: &Home) {
    let program = testkit::agent::program().display().to_string();
    // The data directory is hidden from agents, so the socket gets a second name.
    let socket = home.shared().join(SOCKET);
    std::fs::hard_link(home.path().join(SOCKET), &socket).unwrap();
    let socket = socket.display().to_string();
    let tcp = server.url.trim_start_matches("http://").to_owned();
    let addresses = [socket, tcp];
    for access in ["read-only", "read-write"] {
        for (number, address) in addresses.iter().enumerate() {
            let ask = |kind: &str, path: &str| format!("'{program}' {kind} '{address}' {path}");
            let script = [
                ask("request", "/api/tasks"),
                ask("request-hidden", "/api/tasks"),
                format!("{} \"$TMPDIR/answer\"", ask("request-detached", "/api/tasks")),
                ask("request", "/health/live"),
            ]
            .join("; ");
            let id = format!("caller-{access}-{number}");
            let agent = json!({"id": id, "executable_path": "sh", "args": ["-c", script], "access_type": access});
            assert_eq!(server.post("/api/agents", &agent).await.status(), StatusCode::CREATED);
            let path = format!("/api/agents/{id}/executions");
            let run: Value = server.post(&path, &json!({"input": "", "wait": true})).await.json().await.unwrap();
            let lines: Vec<_> = run["output"].as_str().unwrap().lines().collect();
            let refused = "HTTP/1.1 403 Forbidden";
            assert_eq!(lines, [refused, refused, refused, "HTTP/1.1 200 OK"], "{access} {address}: {run}");
        }
    }
    assert_eq!(server.get("/api/tasks").await.status(), StatusCode::OK, "the user is served");
}

#[tokio::test]
async fn agents_can_use_neither_the_socket_nor_the_address_of_their_server() {
    // SEC-1
    let home = home();
    let server = home.serve();
    check_that_agents_are_refused(&server, &home).await;
    assert!(home.run(&["agents", "list"]).ok().contains("caller-read-only-0"), "commands are served");
}

#[tokio::test]
async fn agents_are_recognised_by_their_ancestors_without_control_groups() {
    // SEC-1: the server runs as a user who cannot create control groups.
    if !nix::unistd::geteuid().is_root() {
        eprintln!("not run: only root can start a server as another user");
        return;
    }
    let bin = tempfile::tempdir().unwrap();
    std::fs::set_permissions(bin.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let program = bin.path().join("adjutant");
    let script = format!(
        "#!/bin/sh\nexec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups '{}' \"$@\"\n",
        env!("CARGO_BIN_EXE_adjutant")
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let home = Home::new(&program).with_env("HOME", "/nonexistent");
    std::os::unix::fs::chown(home.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let version = home.run(&["--version"]);
    if version.code() != 0 {
        eprintln!("not run: the user nobody cannot start the program: {}", version.err());
        return;
    }
    let server = home.serve();
    check_that_agents_are_refused(&server, &home).await;
    assert!(home.run(&["agents", "list"]).ok().contains("caller-read-only-0"), "commands are served");
}

/// Returns the configuration of an agent that creates the file `begun-NAME` and runs until the file `end-NAME` exists.
fn waiting_agent(dir: &Path, name: &str) -> String {
    let dir = dir.display();
    format!(
        "[[agents]]\nid = \"{name}\"\nexecutable_path = \"sh\"\naccess_type = \"read-write\"\ngrace = 0.2\nargs = [\"-c\", \"echo \
         begun; touch '{dir}/begun-{name}'; while ! [ -e '{dir}/end-{name}' ]; do sleep 0.05; done; echo done {name}\"]\n"
    )
}

fn start(home: &Home, arguments: &[&str]) -> Child {
    home.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn finish(child: Child) -> CommandOutput {
    CommandOutput::from(child.wait_with_output().unwrap())
}

#[test]
fn several_runs_share_the_data_directory() {
    // SEC-1, OPS-4
    let home = home();
    let config = ["one", "two", "three"].map(|name| waiting_agent(home.shared(), name)).concat();
    let home = home.with_config(&config);
    let first = start(&home, &["run", "one", ""]);
    wait_for(&home.shared().join("begun-one"));
    let second = start(&home, &["run", "two", ""]);
    wait_for(&home.shared().join("begun-two"));
    // Other commands are served meanwhile, and a run that must outlive the command is refused.
    home.run(&["tasks", "add", "milk"]).ok();
    let listed = home.run(&["executions", "list"]).ok();
    assert!(listed.contains("one") && listed.contains("two"), "{listed}");
    assert_eq!(home.run(&["run", "two", "", "--detach"]).code(), 2);

    // The first run ends. Its process waits for the second, and accepts a third.
    std::fs::write(home.shared().join("end-one"), "").unwrap();
    let third = start(&home, &["run", "three", ""]);
    wait_for(&home.shared().join("begun-three"));
    std::fs::write(home.shared().join("end-two"), "").unwrap();
    assert_eq!(finish(second).ok(), "begun\ndone two\n");
    std::fs::write(home.shared().join("end-three"), "").unwrap();
    assert_eq!(finish(third).ok(), "begun\ndone three\n");
    assert_eq!(finish(first).ok(), "begun\ndone one\n");
    assert!(home.run(&["tasks", "list"]).ok().contains("milk"));
}

#[test]
fn a_run_ends_with_a_reason_if_the_process_that_holds_the_data_directory_is_killed() {
    // SEC-1, OPS-4
    let home = home();
    let config = ["one", "two"].map(|name| waiting_agent(home.shared(), name)).concat();
    let home = home.with_config(&config);
    let mut first = start(&home, &["run", "one", ""]);
    wait_for(&home.shared().join("begun-one"));
    let second = start(&home, &["run", "two", ""]);
    wait_for(&home.shared().join("begun-two"));
    first.kill().unwrap();
    first.wait().unwrap();
    let second = finish(second);
    assert_eq!(second.code(), 1, "{}{}", second.out(), second.err());
    assert!(second.err().contains("adjutant was stopped while it ran"), "{}", second.err());
    std::fs::write(home.shared().join("end-two"), "").unwrap();
    assert_eq!(home.run(&["run", "two", ""]).ok(), "begun\ndone two\n", "the next run works");
}

#[test]
fn an_mcp_process_runs_agents_for_other_commands() {
    // SEC-1, OPS-4
    let home = home();
    let config = waiting_agent(home.shared(), "one");
    let home = home.with_config(&config);
    let mut mcp = home.command(&["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    wait_for(&home.path().join(SOCKET));
    let run = start(&home, &["run", "one", ""]);
    wait_for(&home.shared().join("begun-one"));
    // The client of the MCP process disconnects. The process waits for the run.
    drop(mcp.stdin.take());
    std::fs::write(home.shared().join("end-one"), "").unwrap();
    assert_eq!(finish(run).ok(), "begun\ndone one\n");
    assert_eq!(mcp.wait().unwrap().code(), Some(0));
}
