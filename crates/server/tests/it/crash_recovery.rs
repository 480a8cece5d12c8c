//! Crash tests of the follow-up: the end of an execution is reported exactly once, even if the server is killed.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use model::UserId;
use model::conversation::MessageRole;
use serde_json::json;
use server::follow_up::FollowUpCrashPoint as CrashPoint;
use store::{Durability, Location, Store};

/// The name of no crash point: the server is not killed.
const NO_CRASH: &str = "never";
const REQUEST: &str = "run the tidy agent on the changelog";
const REPORT: &str = "Tidy is done: All sorted.";

#[tokio::test(flavor = "multi_thread")]
async fn ends_are_reported_once_on_sqlite() {
    // TASK-6
    let dir = tempfile::tempdir().unwrap();
    crash_at_every_point(Location::Sqlite(dir.path().join("adjutant.db")), dir.path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_are_reported_once_on_postgres() {
    // TASK-6
    let url = testkit::postgres::create_database().await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    crash_at_every_point(Location::postgres(url), dir.path()).await;
}

async fn crash_at_every_point(location: Location, dir: &Path) {
    let store = Store::open(&location, Durability::Full).await.unwrap();
    let points =
        [CrashPoint::Found, CrashPoint::Marked, CrashPoint::Notified, CrashPoint::Written, CrashPoint::Committed];
    for (n, point) in points.into_iter().enumerate() {
        let mut crashing = CrashServer::start(&location, dir, &format!("{point:?}"));
        crashing.chat(n).await;
        assert_eq!(crashing.child.wait().unwrap().signal(), Some(9), "{point:?}");
        let committed = usize::from(point == CrashPoint::Committed);
        assert_eq!(messages(&store, n).await.len(), 2 + committed, "{point:?}");
        assert_eq!(notification_count(&store).await, n + committed, "{point:?}");
        // The next server continues from there.
        let _restarted = CrashServer::start(&location, dir, NO_CRASH);
        wait_for_report(&store, n).await;
        assert_eq!(notification_count(&store).await, n + 1, "{point:?}");
    }
    // Ends are reported in order. Once the last one is reported, no earlier one can follow.
    let server = CrashServer::start(&location, dir, NO_CRASH);
    server.chat(points.len()).await;
    wait_for_report(&store, points.len()).await;
    for n in 0..=points.len() {
        let messages = messages(&store, n).await;
        let answer = "Okay! I've set 'Tidy' to work. I'll tell you here when it's done.";
        let expected =
            [(MessageRole::User, REQUEST), (MessageRole::Assistant, answer), (MessageRole::Assistant, REPORT)];
        assert_eq!(messages, expected.map(|(role, text)| (role, text.to_owned())), "conversation {n}");
    }
    assert_eq!(notification_count(&store).await, points.len() + 1);
}

/// A server process. It ends when its standard input is closed.
struct CrashServer {
    child: Child,
    url: String,
    _input: ChildStdin,
}

impl CrashServer {
    fn start(location: &Location, dir: &Path, point: &str) -> Self {
        let location = match location {
            Location::Sqlite(path) => format!("sqlite:{}", path.to_str().unwrap()),
            Location::Postgres(settings) => settings.url.clone(),
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_server-crash-test"));
        command.arg(location).arg(dir).arg(point).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        // `wait` closes the standard input of the child, unless it was taken.
        let input = child.stdin.take().unwrap();
        Self { child, url: line.trim().to_owned(), _input: input }
    }

    /// Asks for the execution. A crash may cut off the response, but the execution has ended by then.
    async fn chat(&self, n: usize) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().unwrap();
        let body = json!({"input": REQUEST, "conversation_id": format!("conv_{n}")});
        if let Ok(response) = client.post(format!("{}/chat", self.url)).json(&body).send().await {
            assert_eq!(response.status(), 200);
        }
    }
}

impl Drop for CrashServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn messages(store: &Store, n: usize) -> Vec<(MessageRole, String)> {
    let id = format!("conv_{n}").parse().unwrap();
    let mut reader = store.reader().await.unwrap();
    let messages = store::conversations::read_history(&mut reader, UserId::LOCAL, &id, 50).await.unwrap();
    messages.into_iter().map(|message| (message.role, message.content)).collect()
}

/// Waits until the end of the execution is reported in the conversation.
async fn wait_for_report(store: &Store, n: usize) {
    for _ in 0..1500 {
        if messages(store, n).await.len() > 2 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the end is never reported in conversation {n}: {:?}", messages(store, n).await);
}

/// Returns the number of notifications. Each must belong to a different execution.
async fn notification_count(store: &Store) -> usize {
    let mut reader = store.reader().await.unwrap();
    let page = store::notifications::list(&mut reader, UserId::LOCAL, false, None, 50).await.unwrap();
    let executions: HashSet<_> = page.rows.iter().map(|numbered| numbered.notification.execution_id.unwrap()).collect();
    assert_eq!(executions.len(), page.rows.len(), "an execution has two notifications");
    page.rows.len()
}
