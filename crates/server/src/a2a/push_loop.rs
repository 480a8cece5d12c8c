//! Creates the push notifications of tasks (A2A-1).
//!
//! The loop runs on every node, without a leader. It reads the tables after a local commit, after the end of an
//! execution on any node, and after the poll interval. One transaction adds the next notification to the outbox and
//! records the progress, unless another node did so first. A crash therefore loses and repeats nothing.

use std::time::Duration;

use ::a2a::Version;
use ::a2a::types::Message;
use background::reconcile;
use futures::StreamExt;
use model::execution::PublicStatus;
use notify::callback;
use store::a2a::pushes::{self, DuePush, PushProgress};
use store::outbox;

use super::cards::BaseUrl;
use super::projection::public_status;
use super::push::{PUSH_CALLBACK, PushTarget};
use super::push_payload::{self, PushStep, TaskSnapshot};
use super::updates::TaskFollower;
use crate::App;

/// The poll interval with a shared database.
const POLL_INTERVAL_SHARED: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// The delay after a commit. It combines the commits of frequent writers into one round.
const DEBOUNCE_SHARED: Duration = Duration::from_millis(100);
const DEBOUNCE: Duration = Duration::from_millis(20);
/// The delay after the end of an execution.
const END_DEBOUNCE: Duration = Duration::from_millis(5);
/// The number of configurations that are read at once.
const BATCH_SIZE: i64 = 200;
/// The number of configurations that are processed concurrently.
const CONCURRENCY: usize = 8;

/// Runs the loop until the server stops. A round starts after a commit and the debounce delay, and soon after the
/// end of an execution. It starts at the latest after the poll interval. A failed round is logged and repeated.
pub(crate) async fn run(app: App) {
    let shared = app.store().is_shared();
    let poll_interval = if shared { POLL_INTERVAL_SHARED } else { POLL_INTERVAL };
    let debounce = if shared { DEBOUNCE_SHARED } else { DEBOUNCE };
    let wake = || {
        let mut commits = app.store().commits();
        let ended = app.supervisor().next_end();
        async move {
            tokio::select! {
                () = ended => tokio::time::sleep(END_DEBOUNCE).await,
                _ = commits.changed() => tokio::time::sleep(debounce).await,
            }
        }
    };
    let work = || async { process_due(&app).await.map(|()| None) };
    reconcile::run("pushes_wait", poll_interval, app.stopping(), wake, work).await;
}

/// Performs one step of every due configuration, in batches of 200 and eight at a time. A failed step does not prevent
/// the remaining ones; the first error is returned at the end. Fails at once if a batch cannot be read.
async fn process_due(app: &App) -> store::Result<()> {
    let mut last: Option<DuePush> = None;
    let mut failed = None;
    loop {
        let due = pushes::due_pushes(&mut app.store().reader().await?, last.as_ref(), BATCH_SIZE).await?;
        let is_last_page = i64::try_from(due.len()).unwrap_or(i64::MAX) < BATCH_SIZE;
        last = due.last().cloned();
        // Boxed because the futures are large, and most rounds have none.
        let mut steps = futures::stream::iter(due).map(|due| Box::pin(process(app, due))).buffer_unordered(CONCURRENCY);
        while let Some(result) = steps.next().await {
            failed = failed.or(result.err());
        }
        if is_last_page {
            // An unreadable row does not block other rows.
            return failed.map_or(Ok(()), Err);
        }
    }
}

/// Performs the next step of one configuration. After a failed delivery it logs that and gives the configuration up. If
/// the task is deleted, it removes the configuration. Otherwise it takes the step of [`push_payload::next_step`]: it
/// adds a notification to the outbox and wakes the notifier, marks the configuration as idle, or does nothing.
///
/// Nothing is added if another node did so first. An unknown stored version counts as 1.0. Fails if the database fails
/// or the notification cannot be encoded.
async fn process(app: &App, due: DuePush) -> store::Result<()> {
    let store = app.store();
    if let Some(error) = due.delivery_error.clone() {
        tracing::info!(event = "push_given_up", task_id = %due.task_id, host = due.url, error);
        return store.transaction(async move |tx| pushes::give_up(tx, &due, &error).await).await.map(drop);
    }
    let Some(snapshot) = snapshot(app, &due).await? else {
        // The owner has erased the task.
        let removed =
            store.transaction(async move |tx| pushes::remove(tx, due.owner, &due.agent_id, due.task_id, &due.id).await);
        return removed.await.map(drop);
    };
    let version = Version::parse(&due.version).unwrap_or(Version::V10);
    let step = push_payload::next_step(due.progress, &snapshot, version)
        .map_err(|error| store::Error::Corrupt(error.to_string()))?;
    match step {
        PushStep::Wait => Ok(()),
        PushStep::Idle => store.transaction(async move |tx| pushes::mark_idle(tx, &due).await).await.map(drop),
        PushStep::Send(seq, payload) => {
            let progress = PushProgress { execution: snapshot.execution, seq };
            let delivery = new_delivery(app, &due, payload)?;
            let now = app.clock().now();
            let written =
                store.transaction(async move |tx| pushes::enqueue_delivery(tx, &due, progress, &delivery, now).await);
            if written.await? {
                app.notifier().wake();
            }
            Ok(())
        }
    }
}

/// Returns the current state of the task, or `None` if the task does not exist any more. URLs of files start with the
/// public URL, or with `http://localhost` if none is configured. The answer contains the task id. Fails if the database
/// fails.
async fn snapshot(app: &App, due: &DuePush) -> store::Result<Option<TaskSnapshot>> {
    let url = app.active_config().settings.public_url.clone();
    let base = BaseUrl(url.unwrap_or_else(|| "http://localhost".to_owned()));
    let follower = match TaskFollower::start(app, &base, due.owner, &due.agent_id, due.task_id).await {
        Err(store::Error::NotFound) => return Ok(None),
        follower => follower?,
    };
    let task = follower.task(None);
    let projection = follower.projection();
    let answer = projection.answer().map(|answer| Message { task_id: Some(task.id.clone()), ..answer });
    Ok(Some(TaskSnapshot {
        execution: follower.execution(),
        status: public_status(&task.status.state).unwrap_or(PublicStatus::Working),
        artifacts: projection.run_artifacts(),
        task,
        answer,
    }))
}

/// Returns the delivery of a payload to a configuration. It names the configuration; the URL and the secrets are
/// resolved when it is sent. It has no notification. Fails if the target cannot be encoded.
fn new_delivery(app: &App, due: &DuePush, payload: String) -> store::Result<outbox::NewDelivery> {
    let target = PushTarget {
        task: due.task_id,
        id: due.id.clone(),
        created_at: due.created_at.as_microsecond(),
        version: due.version.clone(),
    };
    let target = serde_json::to_string(&target).map_err(|error| store::Error::Corrupt(error.to_string()))?;
    Ok(outbox::NewDelivery {
        id: app.clock().id(),
        owner: due.owner,
        notification_id: None,
        channel: callback::channel_name(PUSH_CALLBACK, &due.url),
        target: Some(target),
        payload,
    })
}
