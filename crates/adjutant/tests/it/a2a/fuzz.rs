//! Nonsense on every binding: bad JSON, bad protobuf, bodies that are too large or too slow. Each gets an answer that blames
//! the one who sent it, nothing breaks, and memory stays within bounds (A2A-1).

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use testkit::conformance::{AGENT, Options, settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::speak::{Speaker, WAYS};
use super::{Conformance, message, schema, state};

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }

    /// The same bytes with something wrong about them.
    fn mutate(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.roll(4) {
            let at = self.roll(bytes.len().max(1));
            match self.roll(5) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at.min(bytes.len()), self.roll(256) as u8),
                2 if at < bytes.len() => bytes[at] = self.roll(256) as u8,
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

/// Whether it is still there and well.
async fn is_well(speaker: &Speaker) {
    for way in WAYS {
        let answer = speaker.ask(way, "SendMessage", json!({"message": message("tck-complete-task", "hi")})).await;
        assert_eq!(state(&answer.unwrap()["task"]), "COMPLETED", "{way:?}");
    }
}

fn nested(opening: &str, closing: &str, depth: usize) -> String {
    format!("{}1{}", opening.repeat(depth), closing.repeat(depth))
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_json_is_the_callers_fault() {
    // A2A-1
    let server = Conformance::start().await;
    let speaker = server.speaker();
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
    let mut dice = Dice(0x5eed);
    let mut bodies = Vec::new();
    for (path, version, seed) in &seeds {
        for _ in 0..60 {
            bodies.push((*path, *version, dice.mutate(seed.as_bytes())));
        }
        for odd in [
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
            bodies.push((*path, *version, odd.into_bytes()));
        }
        bodies.push((*path, *version, vec![0xff, 0xfe, 0x00]));
    }
    for (path, version, body) in bodies {
        let request =
            speaker.http(Method::POST, path).header("A2A-Version", version).header("Content-Type", "application/json");
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
            speaker.http(Method::GET, &format!("/tasks?{query}")).header("A2A-Version", "1.0").send().await.unwrap();
        assert!(answer.status().as_u16() < 500, "{query}: {}", answer.status());
    }
    is_well(&speaker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_protobuf_is_the_callers_fault() {
    // A2A-1
    let server = Conformance::start().await;
    let speaker = server.speaker();
    let mut dice = Dice(0xbadc0de);
    let newer = schema::v1()
        .encode("SendMessageRequest", &json!({"message": message("tck-1", "hi"), "metadata": {"a": [1, {"b": null}]}}));
    let older = schema::v03().encode(
        "SendMessageRequest",
        &json!({"message": {"messageId": "1", "role": "ROLE_USER", "content": [{"text": "hi"}]}}),
    );
    // A list in a list in a list: whoever follows it down needs as much stack.
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
        let mut bodies: Vec<_> = (0..100).map(|_| dice.mutate(seed)).collect();
        bodies.extend([
            Vec::new(),
            vec![0xff; 1000],
            vec![0x08; 1000],
            deep.clone(),
            [&[0x12, 0xff, 0xff, 0xff, 0xff, 0x0f], &seed[..]].concat(),
        ]);
        for body in bodies {
            if let Err(status) = speaker.raw_grpc(path, body.clone()).await {
                // 2 unknown, 13 internal, 14 unavailable, 15 data loss: the server's own.
                assert!(![2, 13, 14, 15].contains(&(status.code() as i32)), "{path}: {status:?} for {body:02x?}");
            }
        }
    }
    let unknown = speaker.raw_grpc("/lf.a2a.v1.A2AService/Nothing", Vec::new()).await.unwrap_err();
    assert_eq!(unknown.code() as i32, 12);
    is_well(&speaker).await;
}

/// A server of its own, so that its memory can be seen.
struct Process {
    child: Child,
    url: String,
}

impl Process {
    fn start() -> Self {
        use std::io::BufRead;
        let mut command = Command::new(testkit::conformance::program());
        let mut child = command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let url = format!("http://{}", line.split("http://").nth(1).unwrap().trim());
        Self { child, url }
    }

    /// Resident, in MiB.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const HUGE: usize = 256 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn huge_bodies_are_refused_before_they_are_read() {
    // A2A-1
    let server = Process::start();
    let speaker = Speaker::new(&format!("{}/agents/{AGENT}", server.url), AGENT);
    is_well(&speaker).await;
    let before = server.memory();
    let address = server.url.trim_start_matches("http://");
    for path in ["", "/message:send", "/v1/message:send"] {
        // With its length told, and in chunks without an end in sight.
        for head in [format!("Content-Length: {HUGE}"), "Transfer-Encoding: chunked".to_owned()] {
            let mut connections = Vec::new();
            for _ in 0..4 {
                let mut stream = TcpStream::connect(address).await.unwrap();
                let head = format!(
                    "POST /agents/{AGENT}{path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n{head}\r\n\r\n"
                );
                stream.write_all(head.as_bytes()).await.unwrap();
                connections.push(tokio::spawn(flood(stream, head.contains("chunked"))));
            }
            for connection in connections {
                let answer = connection.await.unwrap();
                assert!(answer.starts_with("HTTP/1.1 4") || answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
                assert!(!answer.contains("-32603"), "{path}: {answer}");
            }
        }
    }
    // A message whose length is told and who does not send it, and one that is too long.
    for way in WAYS.into_iter().filter(|way| way.0 == super::speak::Binding::Grpc) {
        let params = json!({"message": message("tck-1", &"x".repeat(48 << 20))});
        let refusal = speaker.ask(way, "SendMessage", params).await.unwrap_err();
        // 8 too large, 11 out of range; or the connection is given up.
        assert!([3, 8, 11].contains(&refusal.grpc.unwrap()), "{way:?}: {refusal:?}");
    }
    is_well(&speaker).await;
    let after = server.memory();
    assert!(after < before + 200, "from {before} to {after} MiB");
}

/// Sends until it is told to stop; gives what it was told.
async fn flood(stream: TcpStream, in_chunks: bool) -> String {
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
        while sent < HUGE && writer.write_all(&chunk).await.is_ok() {
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
async fn slow_bodies_do_not_hold_anything_for_long() {
    // A2A-1
    let settings = server::Settings { request_timeout: Duration::from_secs(2), ..settings() };
    let server = Conformance::start_with(Options { settings, ..Options::default() }).await;
    let address = server.url().trim_start_matches("http://");
    let mut waiting = Vec::new();
    for path in ["", "/message:send", "/message:stream", "/v1/message:send"] {
        for _ in 0..20 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let head = format!(
                "POST /agents/{AGENT}{path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            waiting.push(stream);
        }
    }
    // Nobody else waits for them.
    let began = Instant::now();
    is_well(&server.speaker()).await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    for mut stream in waiting {
        let mut answer = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(40), stream.read_to_end(&mut answer)).await;
        assert!(read.is_ok(), "it is still waited for");
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
}
