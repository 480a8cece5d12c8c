//! Calls of external tools that take long: their progress is reported, and the limit of the caller is no failure of the
//! server.

use std::time::Duration;

use model::{Clock, User};
use serde_json::json;
use store::{Durability, Location, Store};
use tokio::time::Instant;
use tools::mcp_client::McpServers;
use tools::{ConfirmationPolicy, Consent, ToolNames, ToolOutcome, Tools};

use crate::stdio_servers::ready;
use crate::{arguments, state};

fn tools(servers: &McpServers) -> Tools {
    Tools {
        clock: Clock::system(),
        parser: understand::UtteranceParser::default(),
        limits: model::task::TaskLimits::default(),
        names: ToolNames::default(),
        confirmation: ConfirmationPolicy::default(),
        servers: Some(servers.clone()),
        supervisor: None,
        scheduler: None,
        has_worker: true,
    }
}

#[tokio::test]
async fn a_long_call_reports_its_progress_and_a_limit_of_the_caller_is_no_failure() {
    // RES-1
    let servers = ready(&[]).await;
    let tools = tools(&servers);
    let directory = tempfile::tempdir().unwrap();
    let location = Location::Sqlite(directory.path().join("test.db"));
    let store = Store::open(&location, Durability::Normal).await.unwrap();
    let user = User::local(jiff::tz::TimeZone::UTC);
    let mut toolbox = tools.for_user(&user, &store);
    let (progress, mut reports) = tokio::sync::mpsc::unbounded_channel();
    toolbox.set_progress(Some(progress));
    let outcome = toolbox.call("slow", arguments(json!({"steps": 20})), Consent::Given).await.unwrap();
    let ToolOutcome::Done(answer) = outcome else { panic!("{outcome:?}") };
    assert_eq!((answer.error(), answer.text(None).as_str()), (None, "done"));
    assert!(reports.try_recv().is_ok(), "the call took longer than the interval of the reports");

    toolbox.set_deadline(Some(Instant::now() + Duration::from_secs(6)));
    let outcome = toolbox.call("hang", arguments(json!({})), Consent::Given).await.unwrap();
    let ToolOutcome::Done(answer) = outcome else { panic!("{outcome:?}") };
    assert!(answer.error().is_some(), "{answer:?}");
    assert_eq!(
        state(&servers, "double").breaker.failure_count,
        0,
        "the limit of the turn says nothing about the server"
    );
    servers.stop().await;
}
