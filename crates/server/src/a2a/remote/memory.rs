//! What an agent elsewhere calls our contexts and tasks, so that a follow-up of ours goes on there.

use std::collections::BTreeMap;

use model::UserId;
use serde::{Deserialize, Serialize};
use store::a2a::contexts::{self, Link};
use store::executions::OfTask;
use supervisor::Run;

use crate::App;

/// As it is kept with a context of ours.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Kept {
    context: Option<String>,
    /// Those that ask something, by our ids of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    tasks: BTreeMap<String, String>,
}

/// What a run goes on with.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Known {
    /// What of ours it belongs to; nothing where it is no task of A2A.
    of: Option<OfTask>,
    pub(super) context: Option<String>,
    /// The task there that asked something, which this run answers.
    pub(super) task: Option<String>,
}

/// What is known when a run begins.
pub(super) async fn recall(app: &App, run: &Run) -> store::Result<Known> {
    let owner = run.owner;
    let agent = run.agent.id.as_str();
    let mut reader = app.store().reader().await?;
    let of = match store::a2a::run(&mut reader, owner, agent, run.id).await {
        Ok(run) => run.task,
        Err(store::Error::NotFound) => return Ok(Known::default()),
        Err(error) => return Err(error),
    };
    let context = contexts::get(&mut reader, owner, agent, &of.context_id).await?;
    let kept = context.map(|context| read(&context.link)).unwrap_or_default();
    let task = kept.tasks.get(&of.id.to_string()).cloned();
    Ok(Known { of: Some(of), context: kept.context, task })
}

/// Keeps what was learnt by a run. The task there only counts where it asks something.
pub(super) async fn keep(
    app: &App,
    owner: UserId,
    agent: &str,
    known: Known,
    context: Option<String>,
    asking: Option<String>,
) -> store::Result<()> {
    let Some(of) = known.of else { return Ok(()) };
    if context == known.context && asking == known.task {
        return Ok(());
    }
    let agent = agent.to_owned();
    let now = app.clock().now();
    let job = app.store().transaction(async move |tx| {
        let mut link = contexts::enter(tx, owner, &agent, &of.context_id, now).await?.link;
        let mut kept = read(&link);
        kept.context = context.clone().or(kept.context);
        kept.tasks.remove(&of.id.to_string());
        kept.tasks.extend(asking.map(|task| (of.id.to_string(), task)));
        link.remote_context = serde_json::to_string(&kept).ok();
        contexts::link(tx, owner, &agent, &of.context_id, &link).await.map(drop)
    });
    job.await
}

fn read(link: &Link) -> Kept {
    link.remote_context.as_deref().and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}
