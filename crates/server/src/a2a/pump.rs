//! Tells those who want to be told of tasks what comes next (A2A-1).
//!
//! On every node, and none of them leads: it looks at the tables when something was committed here, when an end was heard of
//! from elsewhere, and now and then. What comes next for somebody is put into the outbox in the transaction that says so
//! in their row, if nobody else has done it: whoever is killed leaves nothing half done.

use std::time::Duration;

use ::a2a::Version;
use ::a2a::types::Message;
use background::reconcile;
use futures::StreamExt;
use model::execution::Standing;
use notify::callback;
use store::a2a::pushes::{self, Due, Told};
use store::outbox;

use super::cards::Base;
use super::news::{self, Next, Now};
use super::push::{NAME, Target};
use super::render::standing_of;
use super::updates::Following;
use crate::App;

/// The longest time between two rounds.
const POLL_INTERVAL_SHARED: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// The time for which commits are gathered: frequent writers must not be slowed down by rounds.
const DEBOUNCE_SHARED: Duration = Duration::from_millis(100);
const DEBOUNCE: Duration = Duration::from_millis(20);
/// Read at once, and at work at the same time.
const BATCH: i64 = 200;
const TOGETHER: usize = 8;

/// Runs until the server stops.
pub(crate) async fn run(app: App) {
    let shared = app.store().is_shared();
    let poll_interval = if shared { POLL_INTERVAL_SHARED } else { POLL_INTERVAL };
    let debounce = if shared { DEBOUNCE_SHARED } else { DEBOUNCE };
    let wake = || {
        let mut commits = app.store().commits();
        let ended = app.supervisor().next_end();
        async move {
            tokio::select! {
                () = ended => {}
                _ = commits.changed() => tokio::time::sleep(debounce).await,
            }
        }
    };
    let work = || async { look_after_all(&app).await.map(|()| None) };
    reconcile::run("pushes_wait", poll_interval, app.stopping(), wake, work).await;
}

async fn look_after_all(app: &App) -> store::Result<()> {
    let mut last: Option<Due> = None;
    let mut failed = None;
    loop {
        let due = pushes::due(&mut app.store().reader().await?, last.as_ref(), BATCH).await?;
        let is_last_page = i64::try_from(due.len()).unwrap_or(i64::MAX) < BATCH;
        last = due.last().cloned();
        let mut steps = futures::stream::iter(due).map(|due| step(app, due)).buffer_unordered(TOGETHER);
        while let Some(result) = steps.next().await {
            failed = failed.or(result.err());
        }
        if is_last_page {
            // One that cannot be read holds up nobody else.
            return failed.map_or(Ok(()), Err);
        }
    }
}

/// Does for one of them what is to be done, if anything is.
async fn step(app: &App, due: Due) -> store::Result<()> {
    let store = app.store();
    if let Some(error) = due.given_up.clone() {
        tracing::info!(event = "push_given_up", task_id = %due.task_id, host = due.url, error);
        return store.transaction(async move |tx| pushes::give_up(tx, &due, &error).await).await.map(drop);
    }
    let Some(now) = now(app, &due).await? else {
        // Its owner has erased it.
        let gone =
            store.transaction(async move |tx| pushes::remove(tx, due.owner, &due.agent_id, due.task_id, &due.id).await);
        return gone.await.map(drop);
    };
    let version = Version::named(&due.version).unwrap_or(Version::V10);
    let next = news::next(due.told, &now, version).map_err(|error| store::Error::Corrupt(error.to_string()))?;
    match next {
        Next::Wait => Ok(()),
        Next::Rest => store.transaction(async move |tx| pushes::rest(tx, &due).await).await.map(drop),
        Next::Tell(seq, payload) => {
            let told = Told { execution: now.execution, seq };
            let delivery = delivery(app, &due, payload)?;
            let at = app.clock().now();
            let written = store.transaction(async move |tx| pushes::tell(tx, &due, told, &delivery, at).await);
            if written.await? {
                app.notifier().wake();
            }
            Ok(())
        }
    }
}

/// How its task stands; `None`: it is gone.
async fn now(app: &App, due: &Due) -> store::Result<Option<Now>> {
    let url = app.in_force().settings.public_url.clone();
    let base = Base(url.unwrap_or_else(|| "http://localhost".to_owned()));
    let following = match Following::begin(app, &base, due.owner, &due.agent_id, due.task_id).await {
        Err(store::Error::NotFound) => return Ok(None),
        following => following?,
    };
    let task = following.task(None);
    let story = following.story();
    let answer = story.answer().map(|answer| Message { task_id: Some(task.id.clone()), ..answer });
    Ok(Some(Now {
        execution: following.execution(),
        standing: standing_of(&task.status.state).unwrap_or(Standing::Working),
        made: story.made(),
        task,
        answer,
    }))
}

fn delivery(app: &App, due: &Due, payload: String) -> store::Result<outbox::New> {
    let target = Target {
        task: due.task_id,
        id: due.id.clone(),
        made: due.created_at.as_microsecond(),
        version: due.version.clone(),
    };
    let target = serde_json::to_string(&target).map_err(|error| store::Error::Corrupt(error.to_string()))?;
    Ok(outbox::New {
        id: app.clock().id(),
        owner: due.owner,
        notification_id: None,
        channel: callback::channel(NAME, &due.url),
        target: Some(target),
        payload,
    })
}
