//! Idle and slow connections do not stop the server (SEC-5). The processes have low limits of open files, so that few
//! sockets are needed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::app::Server;

use crate::home;

const AGENT: &str =
    "[[agents]]\nid = \"limit\"\nname = \"Limit\"\nexecutable_path = \"/bin/sh\"\nargs = [\"-c\", \"ulimit -Sn\"]\n";

/// Opens a connection and sends these bytes.
fn open(server: &Server, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(server.url.trim_start_matches("http://")).unwrap();
    // The server may refuse the connection at once.
    let _ = stream.write_all(bytes);
    stream
}

#[tokio::test]
async fn idle_connections_do_not_stop_the_server_and_its_agents() {
    // SEC-5
    const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let home = home().with_open_files(400, 512).with_config(AGENT);
    let server = home.serve();
    for bytes in [b"".as_slice(), b"GET /health HTTP/1.1\r\n", HTTP2] {
        // More than the server may have, since 512 descriptors allow 128 connections.
        let idle: Vec<_> = (0..300).map(|_| open(&server, bytes)).collect();
        for _ in 0..5 {
            assert_eq!(server.get("/health").await.status(), StatusCode::OK);
        }
        let run = server.post("/api/agents/limit/executions", &json!({"input": "", "wait": true})).await;
        let run: Value = run.json().await.unwrap();
        assert_eq!((&run["status"], &run["output"]), (&json!("success"), &json!("400\n")), "{run}");
        drop(idle);
    }
}

#[tokio::test]
async fn active_connections_are_not_closed_for_new_ones() {
    // SEC-5
    let home = home().with_open_files(512, 512);
    let server = home.serve();
    let mut stream = server.get("/api/notifications/stream").await;
    assert!(stream.chunk().await.unwrap().is_some());
    let idle: Vec<_> = (0..300).map(|_| open(&server, b"")).collect();
    assert_eq!(server.get("/health").await.status(), StatusCode::OK);
    let ended = tokio::time::timeout(Duration::from_secs(2), stream.chunk()).await;
    assert!(ended.is_err(), "the stream stays open: {ended:?}");
    drop(idle);
}

#[test]
fn connections_beyond_the_limit_get_a_response() {
    // SEC-5
    let home = home().with_open_files(512, 512).with_config("[quotas]\nstreams = 0\n");
    let server = home.serve();
    // Streams are never idle.
    let request = b"GET /api/notifications/stream HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let streams: Vec<_> = (0..128)
        .map(|_| {
            let mut stream = open(&server, request);
            let mut start = [0; 12];
            stream.read_exact(&mut start).unwrap();
            assert_eq!(&start, b"HTTP/1.1 200");
            stream
        })
        .collect();
    let mut refused = open(&server, b"");
    let mut response = String::new();
    refused.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 503 "), "{response}");
    drop(streams);
}

/// Sends a request as another user of this machine and returns the first line of the response. Returns `None` if the
/// test does not run as root, which alone can change users.
fn request_as_other_user(server: &Server, path: &str) -> Option<String> {
    use std::os::unix::process::CommandExt;
    if !nix::unistd::geteuid().is_root() {
        return None;
    }
    let address = server.url.trim_start_matches("http://").replace(':', "/");
    let script = format!(
        "exec 3<>/dev/tcp/{address}; printf 'GET {path} HTTP/1.1\\r\\nhost: localhost\\r\\nconnection: close\\r\\n\\r\\n' >&3; \
         read -r line <&3; printf %s \"$line\""
    );
    let output = std::process::Command::new("bash").args(["-c", &script]).uid(65534).gid(65534).output().unwrap();
    Some(String::from_utf8(output.stdout).unwrap().trim_end().to_owned())
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that cannot run must not be silent")]
fn other_users_of_the_machine_are_refused_without_authentication() {
    // SEC-1
    let local = home();
    let server = local.serve();
    let Some(refused) = request_as_other_user(&server, "/api/tasks") else {
        eprintln!("not run: only root can start a client as another user");
        return;
    };
    assert_eq!(refused, "HTTP/1.1 403 Forbidden");
    assert_eq!(request_as_other_user(&server, "/health/live").unwrap(), "HTTP/1.1 200 OK");
    let with_auth = crate::home_with_auth();
    let server = with_auth.serve();
    assert_eq!(request_as_other_user(&server, "/api/tasks").unwrap(), "HTTP/1.1 401 Unauthorized");
}

#[tokio::test]
#[expect(clippy::print_stderr, reason = "a test that cannot run must not be silent")]
async fn agents_cannot_use_the_server_that_runs_them() {
    // SEC-1
    if !supervisor::guardian::has_control_groups() {
        eprintln!("not run: agents are identified by control groups, and this user cannot create any");
        return;
    }
    let home = home();
    let server = home.serve();
    let address = server.url.trim_start_matches("http://").replace(':', "/");
    let request = |path: &str| format!("GET {path} HTTP/1.1\\r\\nhost: localhost\\r\\nconnection: close\\r\\n\\r\\n");
    // The second client has left its session and its parent.
    let script = format!(
        "ask() {{ exec 3<>/dev/tcp/{address}; printf \"$1\" >&3; read -r line <&3; printf '%s\\n' \"$line\"; }}; \
         ask '{}'; (setsid bash -c \"$(declare -f ask); ask '{}'\" &); sleep 1; ask '{}'",
        request("/api/tasks"),
        request("/api/agents"),
        request("/health/live")
    );
    for access in ["read-only", "read-write"] {
        let agent = json!({
            "id": format!("caller-{access}"), "executable_path": "bash", "args": ["-c", script], "access_type": access
        });
        assert_eq!(server.post("/api/agents", &agent).await.status(), StatusCode::CREATED);
        let path = format!("/api/agents/caller-{access}/executions");
        let run: Value = server.post(&path, &json!({"input": "", "wait": true})).await.json().await.unwrap();
        let lines: Vec<_> = run["output"].as_str().unwrap().lines().map(str::trim_end).collect();
        let expected = ["HTTP/1.1 403 Forbidden", "HTTP/1.1 403 Forbidden", "HTTP/1.1 200 OK"];
        assert_eq!(lines, expected, "{access}: {run}");
    }
    assert_eq!(server.get("/api/tasks").await.status(), StatusCode::OK, "the user is served");
}

#[test]
fn the_environment_of_the_server_cannot_be_read_by_its_user() {
    // SEC-2: agents run as the same user as the server.
    use std::os::unix::process::CommandExt;
    let home = home();
    let server = home.serve();
    let mut read = std::process::Command::new("cat");
    read.arg(format!("/proc/{}/environ", server.pid()));
    if nix::unistd::geteuid().is_root() {
        // Root may read everything with its capabilities. Without them it is an ordinary user.
        read = std::process::Command::new("setpriv");
        read.args(["--bounding-set=-all", "--inh-caps=-all", "cat", &format!("/proc/{}/environ", server.pid())]);
    }
    let output = read.process_group(0).output().unwrap();
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
}
