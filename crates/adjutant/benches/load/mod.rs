//! Shared by the benchmarks of conversations: the server process and a client with little overhead.

use std::io::BufRead;
use std::process::{Child, Stdio};
use std::time::Duration;

use testkit::app::Home;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The server with its log in a file, because reading the log would cost the benchmark too much CPU.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(home: &Home) -> Self {
        let log = std::fs::File::create(home.path().join("log")).unwrap();
        let mut command = home.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).unwrap().trim().to_owned();
        Self { child, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) async fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

pub(crate) async fn send(connection: &mut TcpStream, input: &str) {
    let body = format!("{{\"input\":\"{input}\"}}");
    let length = body.len();
    let request = format!(
        "POST /chat/stream HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    connection.write_all(request.as_bytes()).await.unwrap();
}

/// Runs one turn, from the request to the end of its stream.
pub(crate) async fn chat(connection: &mut TcpStream, input: &str) {
    send(connection, input).await;
    let mut buffer = [0; 8192];
    let mut read = 0;
    while !is_complete(&buffer[..read]) {
        let more = connection.read(&mut buffer[read..]).await.unwrap();
        assert!(more > 0, "the connection was closed");
        read += more;
    }
    let text = &buffer[..read];
    assert!(text.windows(14).any(|part| part == b"\"success\":true"), "{}", String::from_utf8_lossy(text));
}

/// Returns true if the response is complete. With the offline model, a stream has a `content-length`.
fn is_complete(response: &[u8]) -> bool {
    let Some(head) = response.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let headers = std::str::from_utf8(&response[..head]).unwrap();
    let length = headers.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    response.len() >= head + 4 + length.parse::<usize>().unwrap()
}

pub(crate) fn quantile(times: &mut [Duration], at: f64) -> Duration {
    times.sort();
    times[((times.len() - 1) as f64 * at) as usize]
}
