//! Invalid requests on every binding: malformed JSON and protobuf, oversized and slow bodies. Each gets a client error, the
//! server keeps working, and its memory stays bounded (A2A-1).

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use testkit::conformance::{AGENT_ID, ConformanceOptions, settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client::{A2aClient, PROTOCOLS};
use super::{Conformance, message, schema, state};

/// A deterministic pseudorandom generator.
struct Rng(u64);

impl Rng {
    /// Returns a number below the limit.
    fn next_below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    /// Returns the bytes with random changes.
    fn mutate(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.next_below(4) {
            let at = self.next_below(bytes.len().max(1));
            match self.next_below(5) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at.min(bytes.len()), self.next_below(256) as u8),
                2 if at < bytes.len() => bytes[at] = self.next_below(256) as u8,
                3 if at < bytes.len() => drop(bytes.remove(at)),
                _ => {
                    let tail = bytes[at.min(bytes.len())..].to_vec();
                    bytes.extend(tail);
                }
            }
        }
        bytes
    }
}

/// Checks that the server still completes tasks on every protocol.
async fn assert_healthy(client: &A2aClient) {
    for protocol in PROTOCOLS {
        let answer = client.call(protocol, "SendMessage", json!({"message": message("tck-complete-task", "hi")})).await;
        assert_eq!(state(&answer.unwrap()["task"]), "COMPLETED", "{protocol:?}");
    }
}

fn nested(opening: &str, closing: &str, depth: usize) -> String {
    format!("{}1{}", opening.repeat(depth), closing.repeat(depth))
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_json_is_a_client_error() {
    // A2A-1
    let server = Conformance::start().await;
    let client = server.client();
    let task = "00000000-0000-4000-8000-000000000000";
    let request = |method: &str, params: &Value| {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
    };
    let newer = json!({"message": message("tck-1", "hi")});
    let older = json!({"message": {"kind": "message", "messageId": "tck-1", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}});
    let config =
        json!({"id": "x", "taskId": task, "url": "https://example.com/", "authentication": {"scheme": "Bearer"}});
    let seeds = [
        ("", "1.0", request("SendMessage", &newer)),
        (
            "",
            "1.0",
            request(
                "ListTasks",
                &json!({"pageSize": 3, "statusTimestampAfter": "2026-01-01T00:00:00Z", "status": "TASK_STATE_WORKING"}),
            ),
        ),
        ("", "1.0", request("CreateTaskPushNotificationConfig", &config)),
        ("", "1.0", request("SubscribeToTask", &json!({"id": task}))),
        ("", "0.3", request("message/send", &older)),
        (
            "",
            "0.3",
            request(
                "tasks/pushNotificationConfig/set",
                &json!({"taskId": task, "pushNotificationConfig": {"url": "https://example.com"}}),
            ),
        ),
        ("/message:send", "1.0", newer.to_string()),
        ("/message:stream", "1.0", newer.to_string()),
        (&*format!("/tasks/{task}/pushNotificationConfigs"), "1.0", config.to_string()),
        (
            "/v1/message:send",
            "0.3",
            json!({"message": {"messageId": "1", "role": "ROLE_USER", "content": [{"text": "hi"}]}}).to_string(),
        ),
        ("/v1/message:stream", "0.3", older.to_string()),
    ];
    let mut rng = Rng(0x5eed);
    let mut bodies = Vec::new();
    for (path, version, seed) in &seeds {
        for _ in 0..60 {
            bodies.push((*path, *version, rng.mutate(seed.as_bytes())));
        }
        for body in [
            String::new(),
            "null".to_owned(),
            "[]".to_owned(),
            "\"\"".to_owned(),
            "{}".to_owned(),
            "\u{feff}{}".to_owned(),
            "1e999".to_owned(),
            nested("[", "]", 100_000),
            nested("{\"a\":", "}", 100_000),
            seed.replacen("\"hi\"", &nested("[", "]", 5_000), 1),
            seed.replacen("tck-1", &"x".repeat(100_000), 1),
            seed.replacen("\"message\":{", "\"message\":{\"metadata\":{\"a\":{\"b\":[null,1e308,-0.0]}},", 1),
            seed.replacen("hi", "\\u0000\\ud800", 1),
        ] {
            bodies.push((*path, *version, body.into_bytes()));
        }
        bodies.push((*path, *version, vec![0xff, 0xfe, 0x00]));
    }
    for (path, version, body) in bodies {
        let request =
            client.http(Method::POST, path).header("A2A-Version", version).header("Content-Type", "application/json");
        let answer = request.timeout(Duration::from_secs(20)).body(body.clone()).send().await.unwrap();
        let status = answer.status().as_u16();
        let shown = String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned();
        assert!(status < 500, "{path} {version}: {status} for {shown}");
        let text = answer.text().await.unwrap();
        assert!(!text.contains("-32603") && !text.contains("INTERNAL"), "{path} {version}: {text} for {shown}");
    }
    for query in [
        "pageSize=-1",
        "pageSize=99999999999999999999",
        "pageToken=%ff%00",
        "status=NOTHING",
        "statusTimestampAfter=yesterday",
        "includeArtifacts=perhaps",
        "historyLength=1.5",
        "%%%",
        "contextId=%00",
    ] {
        let answer =
            client.http(Method::GET, &format!("/tasks?{query}")).header("A2A-Version", "1.0").send().await.unwrap();
        assert!(answer.status().as_u16() < 500, "{query}: {}", answer.status());
    }
    assert_healthy(&client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_protobuf_is_a_client_error() {
    // A2A-1
    let server = Conformance::start().await;
    let client = server.client();
    let mut rng = Rng(0xbadc0de);
    let newer = schema::v1()
        .encode("SendMessageRequest", &json!({"message": message("tck-1", "hi"), "metadata": {"a": [1, {"b": null}]}}));
    let older = schema::v03().encode(
        "SendMessageRequest",
        &json!({"message": {"messageId": "1", "role": "ROLE_USER", "content": [{"text": "hi"}]}}),
    );
    // Deeply nested lists, which exhaust the stack of a recursive decoder.
    let mut deep = Vec::new();
    for _ in 0..20_000 {
        let mut outer = vec![0x0a];
        let mut length = deep.len();
        while length >= 0x80 {
            outer.push(length as u8 | 0x80);
            length >>= 7;
        }
        outer.push(length as u8);
        outer.extend(&deep);
        deep = outer;
        if deep.len() > 60_000 {
            break;
        }
    }
    for (path, seed) in [
        ("/lf.a2a.v1.A2AService/SendMessage", &newer),
        ("/lf.a2a.v1.A2AService/SendStreamingMessage", &newer),
        ("/lf.a2a.v1.A2AService/ListTasks", &newer),
        ("/lf.a2a.v1.A2AService/CreateTaskPushNotificationConfig", &newer),
        ("/a2a.v1.A2AService/SendMessage", &older),
        ("/a2a.v1.A2AService/TaskSubscription", &older),
        ("/a2a.v1.A2AService/CreateTaskPushNotificationConfig", &older),
    ] {
        let mut bodies: Vec<_> = (0..100).map(|_| rng.mutate(seed)).collect();
        bodies.extend([
            Vec::new(),
            vec![0xff; 1000],
            vec![0x08; 1000],
            deep.clone(),
            [&[0x12, 0xff, 0xff, 0xff, 0xff, 0x0f], &seed[..]].concat(),
        ]);
        for body in bodies {
            if let Err(status) = client.raw_grpc(path, body.clone()).await {
                // Server errors: 2 unknown, 13 internal, 14 unavailable, 15 data loss.
                assert!(![2, 13, 14, 15].contains(&(status.code() as i32)), "{path}: {status:?} for {body:02x?}");
            }
        }
    }
    let unknown = client.raw_grpc("/lf.a2a.v1.A2AService/Nothing", Vec::new()).await.unwrap_err();
    assert_eq!(unknown.code() as i32, 12);
    assert_healthy(&client).await;
}

/// A server in its own process, so that its memory can be measured.
struct ServerProcess {
    child: Child,
    url: String,
}

impl ServerProcess {
    fn start() -> Self {
        use std::io::BufRead;
        let mut command = Command::new(testkit::conformance::program());
        let mut child = command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let url = format!("http://{}", line.split("http://").nth(1).unwrap().trim());
        Self { child, url }
    }

    /// Returns the resident memory in MiB.
    fn resident_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const OVERSIZED: usize = 256 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn oversized_bodies_are_rejected_with_bounded_memory() {
    // A2A-1
    let server = ServerProcess::start();
    let client = A2aClient::new(&format!("{}/agents/{AGENT_ID}", server.url), AGENT_ID);
    assert_healthy(&client).await;
    let before = server.resident_mib();
    let address = server.url.trim_start_matches("http://");
    for path in ["", "/message:send", "/v1/message:send"] {
        // With a known length, and in chunks.
        for head in [format!("Content-Length: {OVERSIZED}"), "Transfer-Encoding: chunked".to_owned()] {
            let mut connections = Vec::new();
            for _ in 0..4 {
                let mut stream = TcpStream::connect(address).await.unwrap();
                let head = format!(
                    "POST /agents/{AGENT_ID}{path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n{head}\r\n\r\n"
                );
                stream.write_all(head.as_bytes()).await.unwrap();
                connections.push(tokio::spawn(send_until_response(stream, head.contains("chunked"))));
            }
            for connection in connections {
                let answer = connection.await.unwrap();
                assert!(answer.starts_with("HTTP/1.1 4") || answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
                assert!(!answer.contains("-32603"), "{path}: {answer}");
            }
        }
    }
    // A gRPC message that exceeds the limit.
    for protocol in PROTOCOLS.into_iter().filter(|protocol| protocol.0 == super::client::Binding::Grpc) {
        let params = json!({"message": message("tck-1", &"x".repeat(48 << 20))});
        let error = client.call(protocol, "SendMessage", params).await.unwrap_err();
        // 3 invalid argument, 8 resource exhausted, 11 out of range.
        assert!([3, 8, 11].contains(&error.grpc.unwrap()), "{protocol:?}: {error:?}");
    }
    assert_healthy(&client).await;
    let after = server.resident_mib();
    assert!(after < before + 200, "from {before} to {after} MiB");
}

/// Sends a body until the server responds. Returns the head of the response.
async fn send_until_response(stream: TcpStream, in_chunks: bool) -> String {
    let (mut reader, mut writer) = stream.into_split();
    let sending = tokio::spawn(async move {
        let data = vec![b'a'; 64 << 10];
        let mut chunk = Vec::new();
        if in_chunks {
            chunk.extend(format!("{:x}\r\n", data.len()).into_bytes());
        }
        chunk.extend(&data);
        if in_chunks {
            chunk.extend(b"\r\n");
        }
        let mut sent = 0;
        while sent < OVERSIZED && writer.write_all(&chunk).await.is_ok() {
            sent += data.len();
        }
        writer
    });
    let mut answer = Vec::new();
    let reading = async {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = reader.read(&mut buffer).await {
            answer.extend_from_slice(&buffer[..read]);
            if answer.windows(4).any(|part| part == b"\r\n\r\n") {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), reading).await.unwrap();
    sending.abort();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_bodies_do_not_block_other_requests() {
    // A2A-1
    let settings = server::ServerSettings { request_timeout: Duration::from_secs(2), ..settings() };
    let server = Conformance::start_with(ConformanceOptions { settings, ..ConformanceOptions::default() }).await;
    let address = server.url().trim_start_matches("http://");
    let mut waiting = Vec::new();
    for path in ["", "/message:send", "/message:stream", "/v1/message:send"] {
        for _ in 0..20 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let head = format!(
                "POST /agents/{AGENT_ID}{path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            waiting.push(stream);
        }
    }
    // Other requests are not delayed.
    let started = Instant::now();
    assert_healthy(&server.client()).await;
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    for mut stream in waiting {
        let mut answer = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(40), stream.read_to_end(&mut answer)).await;
        assert!(read.is_ok(), "the server still waits for the body");
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
}
