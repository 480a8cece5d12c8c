//! Tells those who want to be told of tasks what comes next (A2A-1).
//!
//! On every node, and none of them leads: it looks at the tables when something was committed here, when an end was heard of
//! from elsewhere, and now and then. What comes next for somebody is put into the outbox in the transaction that says so
//! in their row, if nobody else has done it: whoever is killed leaves nothing half done.

use std::time::Duration;

use ::a2a::Version;
use ::a2a::types::Message;
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

/// How often there is a look although nothing was heard of.
const LOOK_SHARED: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_secs(10);
/// How long commits are gathered: whoever writes much must not be slowed down by those who look.
const BREATH_SHARED: Duration = Duration::from_millis(100);
const BREATH: Duration = Duration::from_millis(20);
/// After a look that failed.
const PAUSE: Duration = Duration::from_secs(1);
/// Read at once, and at work at the same time.
const BATCH: i64 = 200;
const TOGETHER: usize = 8;

/// Runs until the server stops.
pub(crate) async fn run(app: App) {
    let shared = app.store().is_shared();
    let (look, breath) = if shared { (LOOK_SHARED, BREATH_SHARED) } else { (LOOK, BREATH) };
    let mut commits = app.store().commits();
    let mut warned = false;
    loop {
        commits.mark_unchanged();
        let ended = app.supervisor().next_end();
        let failed = match look_after_all(&app).await {
            Ok(()) => false,
            Err(error) => {
                if !warned {
                    tracing::warn!(event = "pushes_wait", error = %error);
                }
                true
            }
        };
        warned = failed;
        let pause = async {
            if failed {
                tokio::time::sleep(PAUSE).await;
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(look) => {}
                () = ended => {}
                _ = commits.changed() => tokio::time::sleep(breath).await,
            }
        };
        if app.stopping().run_until_cancelled(pause).await.is_none() {
            return;
        }
    }
}

async fn look_after_all(app: &App) -> store::Result<()> {
    let (mut last, mut failed): (Option<Due>, _) = (None, None);
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
        return store
            .write(move |conn| Box::pin(async move { pushes::give_up(conn, &due, &error).await }))
            .await
            .map(drop);
    }
    let Some(now) = now(app, &due).await? else {
        // Its owner has erased it.
        let gone = store.write(move |conn| {
            Box::pin(async move { pushes::remove(conn, due.owner, &due.agent_id, due.task_id, &due.id).await })
        });
        return gone.await.map(drop);
    };
    let version = Version::named(&due.version).unwrap_or(Version::V10);
    let next = news::next(due.told, &now, version).map_err(|error| store::Error::Corrupt(error.to_string()))?;
    match next {
        Next::Wait => Ok(()),
        Next::Rest => store.write(move |conn| Box::pin(async move { pushes::rest(conn, &due).await })).await.map(drop),
        Next::Tell(seq, payload) => {
            let told = Told { execution: now.execution, seq };
            let (delivery, at) = (delivery(app, &due, payload)?, app.clock().now());
            let written =
                store.write(move |conn| Box::pin(async move { pushes::tell(conn, &due, told, &delivery, at).await }));
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
    let (task, story) = (following.task(None), following.story());
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
