//! `adjutant executions`: list, show, logs, cancel, retry.

use api::executions::{Execution, ExecutionResult, ListExecutions, OutputEvent, ReadEvents, ResourceUsage};
use model::Clock;

use super::listing::{self, lasting, or_empty, saturating, short, when};
use super::run::{alone, detach, watch};
use super::watch::{Following, gap, spoken};
use crate::cli::{Executions, Global};
use crate::client::{Client, Event, with_query};
use crate::{output, wire};

const PATH: &str = "/api/executions";
/// The number of executions shown by default.
const SHOWN: usize = 50;
/// The number of characters shown of an error or an input.
const LINE: usize = 60;

pub(crate) fn run(global: &Global, command: Executions) -> anyhow::Result<()> {
    // Ctrl-C cancels a retry that is followed, and ends every other command.
    let watches = matches!(command, Executions::Retry { follow: true, .. });
    let runtime = if watches { wire::own_runtime()? } else { wire::small_runtime()? };
    let ran = runtime.block_on(carry_out(global, command));
    runtime.shutdown_background();
    ran
}

async fn carry_out(global: &Global, command: Executions) -> anyhow::Result<()> {
    let client = &Client::connect(global).await?;
    match command {
        Executions::List { agent, state, limit, cursor, quiet } => {
            let agent_id = listing::agent_id(client, agent.as_deref()).await?;
            let limit = limit.map(saturating);
            list(client, ListExecutions { agent_id, state, limit, cursor, ..ListExecutions::default() }, quiet).await
        }
        Executions::Show { execution } => show(client, &execution).await,
        Executions::Logs { execution, follow, stream } => logs(client, &execution, follow, &stream).await,
        Executions::Cancel { executions } => cancel(client, &executions).await,
        Executions::Retry { execution, follow } => retry(client, &execution, follow).await,
    }
}

async fn list(client: &Client, list: ListExecutions, quiet: bool) -> anyhow::Result<()> {
    let is_limited = list.limit.is_some();
    let executions = listing::to_show(client, PATH, list, SHOWN, quiet, "no executions").await?;
    let Some(executions) = executions else { return Ok(()) };
    let rows: Vec<_> = executions.iter().map(row).collect();
    output::table(&["ID", "AGENT", "STATE", "QUEUE", "STARTED", "TOOK", "ERROR"], &rows)?;
    if !is_limited && executions.len() == SHOWN {
        output::note(&format!("the newest {SHOWN}; --limit N shows more"));
    }
    Ok(())
}

fn row(execution: &Execution) -> Vec<String> {
    vec![
        short(execution.id),
        execution.agent_id.clone(),
        execution.state.to_string(),
        or_empty(execution.queue_position),
        when(execution.start_time),
        took(execution),
        or_empty(execution.error_message.as_deref().map(line)),
    ]
}

fn has_ended(execution: &Execution) -> bool {
    execution.end_time.is_some()
}

/// Returns the time from the start to the end, or to now.
fn took(execution: &Execution) -> String {
    let Some(start) = execution.start_time else { return String::new() };
    let end = execution.end_time.unwrap_or_else(|| Clock::system().now());
    lasting((end.as_millisecond() - start.as_millisecond()).max(0))
}

/// Returns the first line of a text, shortened.
fn line(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    let whole = first.chars().count() <= LINE && text.lines().nth(1).is_none();
    if whole { first.to_owned() } else { first.chars().take(LINE).chain(['…']).collect() }
}

async fn show(client: &Client, name: &str) -> anyhow::Result<()> {
    let path = format!("{PATH}/{}", listing::execution(client, name).await?.id);
    let answer = client.get(&path).await?;
    if client.json {
        return answer.print();
    }
    let execution: Execution = answer.read()?;
    let result = match has_ended(&execution) {
        true => Some(client.get(&format!("{path}/result")).await?.read()?),
        false => None,
    };
    for (name, value) in details(&execution, result.as_ref()) {
        if !value.is_empty() {
            output::say(&format!("{name:<12}{value}"))?;
        }
    }
    for attempt in &execution.previous_retries {
        let end = when(attempt.end_time);
        let error = or_empty(attempt.error.as_deref().map(line));
        output::say(&format!("{:<12}{}: {}, {end}  {error}", "attempt", attempt.attempt, attempt.status))?;
    }
    for step in &execution.state_transitions {
        output::say(&format!("{:<12}{}  {} → {}", "state", when(step.at), step.from, step.to))?;
    }
    Ok(())
}

fn details(execution: &Execution, result: Option<&ExecutionResult>) -> Vec<(&'static str, String)> {
    let message = execution.error_message.as_deref().unwrap_or_default();
    let category = or_empty(execution.error_category.map(|category| format!(" ({category})")));
    let artifacts = result.iter().flat_map(|result| &result.artifacts);
    let artifacts: Vec<_> = artifacts.map(|artifact| artifact.name.as_str()).collect();
    vec![
        ("id", execution.id.to_string()),
        ("agent", execution.agent_id.clone()),
        ("state", execution.state.to_string()),
        ("result", or_empty(result.map(|result| result.status))),
        ("outcome", or_empty(execution.outcome)),
        ("error", format!("{message}{category}")),
        ("exit code", or_empty(execution.exit_code)),
        ("queue", or_empty(execution.queue_position)),
        ("asked", when(execution.created_at)),
        ("started", when(execution.start_time)),
        ("ended", when(execution.end_time)),
        ("took", took(execution)),
        ("attempt", format!("{} of {}", execution.attempt, execution.max_retries + 1)),
        ("process", or_empty(execution.process_id)),
        ("used", or_empty(execution.resource_usage.map(used))),
        ("input", line(&execution.input)),
        ("output", or_empty(result.map(size))),
        ("artifacts", artifacts.join(", ")),
    ]
}

fn size(result: &ExecutionResult) -> String {
    let cut = if result.truncated { ", its middle was not kept" } else { "" };
    format!("{} bytes{cut}", result.output.len())
}

fn used(usage: ResourceUsage) -> String {
    let ResourceUsage { cpu_percent, peak_memory_mb, disk_read_mb, disk_write_mb, cpu_ms, .. } = usage;
    format!(
        "{cpu_ms} ms of processor time ({cpu_percent} %), {peak_memory_mb} MB of memory at most, \
         {disk_read_mb} MB read, {disk_write_mb} MB written"
    )
}

async fn logs(client: &Client, name: &str, follow: bool, wanted: &str) -> anyhow::Result<()> {
    let execution = listing::execution(client, name).await?;
    let ended = has_ended(&execution);
    if follow && !ended && client.supervisor().is_some() {
        output::note("no server runs, so it does not go on; this is what it has said so far:");
    }
    if !follow || ended || client.supervisor().is_some() {
        let events = with_query(&format!("{PATH}/{}/events", execution.id), &ReadEvents { follow: Some(false) })?;
        let mut stored = client.follow(&events, None).await?;
        while let Some(event) = stored.next().await? {
            print(client, wanted, &event)?;
        }
        return Ok(());
    }
    let mut following = Following::of(client, execution.id);
    loop {
        let event = following.next().await?;
        if event.name == "result" {
            return Ok(());
        }
        print(client, wanted, &event)?;
    }
}

fn print(client: &Client, wanted: &str, event: &Event) -> anyhow::Result<()> {
    if event.name == "said" && (wanted == "all" || wanted == "stdout") {
        if client.json {
            return output::say(&event.data);
        }
        let (answer, aside) = spoken(event);
        output::put_err(aside.as_bytes());
        return output::put(answer.as_bytes());
    }
    if event.name != "output" {
        return Ok(());
    }
    let OutputEvent { stream, text, missing_bytes, .. } = event.read()?;
    if wanted != "all" && wanted != stream {
        return Ok(());
    }
    if client.json {
        return output::say(&event.data);
    }
    if let Some(missing) = missing_bytes {
        output::note(&gap(missing));
    } else if stream == "stderr" {
        output::put_err(text.as_bytes());
    } else {
        output::put(text.as_bytes())?;
    }
    Ok(())
}

async fn cancel(client: &Client, names: &[String]) -> anyhow::Result<()> {
    // All names are resolved before the first execution is cancelled.
    for execution in listing::each(names, async |name| listing::execution(client, name).await).await? {
        let answer = client.post_empty(&format!("{PATH}/{}/cancel", execution.id)).await?;
        answer.show(|execution: Execution| {
            let state = if has_ended(&execution) { "Cancelled" } else { "Cancelling" };
            output::say(&format!("{state} {}", short(execution.id)))
        })?;
    }
    Ok(())
}

async fn retry(client: &Client, name: &str, follow: bool) -> anyhow::Result<()> {
    if !follow && client.supervisor().is_some() {
        return Err(alone("`retry` without --follow"));
    }
    let execution = listing::execution(client, name).await?;
    let path = format!("{PATH}/{}/retry", execution.id);
    let request = client.post_empty(&path);
    if !follow {
        return detach(request).await;
    }
    let agent = listing::agent(client, &execution.agent_id).await?;
    watch(client, &agent, request).await
}
