//! Maps A2A contexts and tasks of this server to those of a remote agent, so that a follow-up continues the remote
//! task.

use std::collections::BTreeMap;

use model::UserId;
use serde::{Deserialize, Serialize};
use store::a2a::contexts::{self, ContextLink};
use store::executions::A2aTaskRef;
use supervisor::AgentRun;

use crate::App;

/// The stored form: the remote context and tasks. It belongs to a context of this server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct StoredLinks {
    context: Option<String>,
    /// The remote tasks that await input, by the ids of our tasks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    tasks: BTreeMap<String, String>,
}

/// The remote context and task of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RemoteLink {
    /// The A2A task of the run. `None` if the run does not belong to an A2A task.
    task_ref: Option<A2aTaskRef>,
    pub(super) context: Option<String>,
    /// The remote task that awaits the input of this run.
    pub(super) task: Option<String>,
}

/// Returns the link of a run. It is empty if the run does not belong to an A2A task. The remote context and task are
/// missing if none is stored or the stored link is malformed. Fails if the database fails.
pub(super) async fn load(app: &App, run: &AgentRun) -> store::Result<RemoteLink> {
    let owner = run.owner;
    let agent = run.agent.id.as_str();
    let mut reader = app.store().reader().await?;
    let task_ref = match store::a2a::run_by_execution(&mut reader, owner, agent, run.id).await {
        Ok(run) => run.task,
        Err(store::Error::NotFound) => return Ok(RemoteLink::default()),
        Err(error) => return Err(error),
    };
    let context = contexts::get(&mut reader, owner, agent, &task_ref.context_id).await?;
    let stored = context.map(|context| parse(&context.link)).unwrap_or_default();
    let task = stored.tasks.get(&task_ref.id.to_string()).cloned();
    Ok(RemoteLink { task_ref: Some(task_ref), context: stored.context, task })
}

/// Stores the remote context of a run, and the remote task if it awaits input. `link` is the link that was loaded. Has
/// no effect if nothing has changed or the run does not belong to an A2A task. A missing context of this server is
/// created. Fails if the database fails.
///
/// `context` of `None` keeps the stored one. `awaiting_task` of `None` removes the stored task.
pub(super) async fn save(
    app: &App,
    owner: UserId,
    agent: &str,
    link: RemoteLink,
    context: Option<String>,
    awaiting_task: Option<String>,
) -> store::Result<()> {
    let Some(task_ref) = link.task_ref else { return Ok(()) };
    if context == link.context && awaiting_task == link.task {
        return Ok(());
    }
    let agent = agent.to_owned();
    let now = app.clock().now();
    let job = app.store().owner_transaction(owner, async move |tx| {
        let mut context_link = contexts::get_or_create(tx, owner, &agent, &task_ref.context_id, now).await?.link;
        let mut stored = parse(&context_link);
        stored.context = context.clone().or(stored.context);
        stored.tasks.remove(&task_ref.id.to_string());
        stored.tasks.extend(awaiting_task.map(|task| (task_ref.id.to_string(), task)));
        context_link.remote_context = serde_json::to_string(&stored).ok();
        contexts::set_link(tx, owner, &agent, &task_ref.context_id, &context_link).await.map(drop)
    });
    job.await
}

/// Returns the stored links of a context, or empty links if there are none or they are malformed.
fn parse(link: &ContextLink) -> StoredLinks {
    link.remote_context.as_deref().and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}
