//! A server that is killed between the end of a run and what is told of it: it is told once, all of it.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use model::UserId;
use model::conversation::Role;
use serde_json::json;
use server::results::Point;
use store::{Durability, Location, Store};

const NEVER: &str = "never";
const ASKED: &str = "run the tidy agent on the changelog";
const TOLD: &str = "Tidy is done: All sorted.";

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_tells_the_end_of_a_run_once() {
    // TASK-6
    let dir = tempfile::tempdir().unwrap();
    killed_at_every_point(Location::Sqlite(dir.path().join("adjutant.db")), dir.path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_tells_the_end_of_a_run_once() {
    // TASK-6
    let url = testkit::postgres::database().await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    killed_at_every_point(Location::Postgres(url), dir.path()).await;
}

async fn killed_at_every_point(location: Location, dir: &Path) {
    let store = Store::open(&location, Durability::Full).await.unwrap();
    let points = [Point::Seen, Point::Marked, Point::Notified, Point::Written, Point::Committed];
    for (n, point) in points.into_iter().enumerate() {
        let mut double = Double::start(&location, dir, &format!("{point:?}"));
        double.chat(n).await;
        assert_eq!(double.child.wait().unwrap().signal(), Some(9), "{point:?}");
        let committed = usize::from(point == Point::Committed);
        assert_eq!(said(&store, n).await.len(), 2 + committed, "{point:?}");
        assert_eq!(notified(&store).await, n + committed, "{point:?}");
        // Whoever comes next goes on from there.
        let _double = Double::start(&location, dir, NEVER);
        told(&store, n).await;
        assert_eq!(notified(&store).await, n + 1, "{point:?}");
    }
    // What ended first is told first: once this one is told, none of the others will be.
    let double = Double::start(&location, dir, NEVER);
    double.chat(points.len()).await;
    told(&store, points.len()).await;
    for n in 0..=points.len() {
        let said = said(&store, n).await;
        let answer = "Okay! I've set 'Tidy' to work. I'll tell you here when it's done.";
        let whole = [(Role::User, ASKED), (Role::Assistant, answer), (Role::Assistant, TOLD)];
        assert_eq!(said, whole.map(|(role, text)| (role, text.to_owned())), "conversation {n}");
    }
    assert_eq!(notified(&store).await, points.len() + 1);
}

/// The server, at its address; it ends with its input.
struct Double {
    child: Child,
    url: String,
    _input: ChildStdin,
}

impl Double {
    fn start(location: &Location, dir: &Path, point: &str) -> Self {
        let location = match location {
            Location::Sqlite(path) => format!("sqlite:{}", path.to_str().unwrap()),
            Location::Postgres(url) => url.clone(),
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_server-double"));
        command.arg(location).arg(dir).arg(point).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        // Who waits for a child closes its input, unless that is somebody else's.
        let input = child.stdin.take().unwrap();
        Self { child, url: line.trim().to_owned(), _input: input }
    }

    /// Asks for the run. The answer may be cut off with the server: the run has ended by then.
    async fn chat(&self, n: usize) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().unwrap();
        let body = json!({"input": ASKED, "conversation_id": format!("conv_{n}")});
        if let Ok(answer) = client.post(format!("{}/chat", self.url)).json(&body).send().await {
            assert_eq!(answer.status(), 200);
        }
    }
}

impl Drop for Double {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn said(store: &Store, n: usize) -> Vec<(Role, String)> {
    let id = format!("conv_{n}").parse().unwrap();
    let mut reader = store.reader().await.unwrap();
    let messages = store::conversations::open(&mut reader, UserId::LOCAL, &id, 50).await.unwrap();
    messages.into_iter().map(|message| (message.role, message.content)).collect()
}

/// Waits until the conversation has the end of its run.
async fn told(store: &Store, n: usize) {
    for _ in 0..1500 {
        if said(store, n).await.len() > 2 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("conversation {n} is never told: {:?}", said(store, n).await);
}

/// How many notifications there are, each of an execution of its own.
async fn notified(store: &Store) -> usize {
    let mut reader = store.reader().await.unwrap();
    let page = store::notifications::list(&mut reader, UserId::LOCAL, false, None, 50).await.unwrap();
    let about: HashSet<_> = page.rows.iter().map(|numbered| numbered.notification.execution_id.unwrap()).collect();
    assert_eq!(about.len(), page.rows.len(), "one is told of twice");
    page.rows.len()
}
