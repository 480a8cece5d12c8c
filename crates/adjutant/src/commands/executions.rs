//! `adjutant executions`: list, show, logs, cancel, retry.

use api::executions::{EventParams, Execution, ExecutionResult, ListExecutions, OutputEvent, ResourceUsage};
use model::Clock;

use super::listing::{self, format_duration, limit_param, local_time, or_empty, short_id};
use super::run::{detach, needs_server, watch};
use super::watch::{EventFollower, gap_notice, rich_output_text};
use crate::cli::{ExecutionsCommand, GlobalOptions};
use crate::client::{Client, ServerEvent, with_query};
use crate::{output, wire};

const PATH: &str = "/api/executions";
/// The number of executions shown by default.
const DEFAULT_LIMIT: usize = 50;
/// The number of characters shown of an error or an input.
const MAX_LINE_CHARS: usize = 60;

/// Runs one subcommand in its own runtime and does not wait for remaining tasks at the end. Ctrl-C cancels the
/// execution of `retry --follow`, and ends the process in every other subcommand. Fails if the subcommand fails.
pub(crate) fn run(global: &GlobalOptions, command: ExecutionsCommand) -> anyhow::Result<()> {
    // Ctrl-C cancels a retry that is followed, and ends every other command.
    let watches = matches!(command, ExecutionsCommand::Retry { follow: true, .. });
    let runtime = if watches { wire::single_thread_runtime()? } else { wire::command_runtime()? };
    let result = runtime.block_on(execute(global, command));
    runtime.shutdown_background();
    result
}

/// Connects and runs one subcommand. Fails if the connection or a request fails, or if a name matches no execution or
/// agent, or several.
async fn execute(global: &GlobalOptions, command: ExecutionsCommand) -> anyhow::Result<()> {
    let client = &Client::connect(global).await?;
    match command {
        ExecutionsCommand::List { agent, state, limit, cursor, quiet } => {
            let agent_id = listing::agent_id(client, agent.as_deref()).await?;
            let limit = limit.map(limit_param);
            list(client, ListExecutions { agent_id, state, limit, cursor, ..ListExecutions::default() }, quiet).await
        }
        ExecutionsCommand::Show { execution } => show(client, &execution).await,
        ExecutionsCommand::Logs { execution, follow, stream } => logs(client, &execution, follow, &stream).await,
        ExecutionsCommand::Cancel { executions } => cancel(client, &executions).await,
        ExecutionsCommand::Retry { execution, follow } => retry(client, &execution, follow).await,
    }
}

/// Prints one page of the server as JSON with `--json`, ids (`quiet`), or a table. Ids and table have up to
/// [`DEFAULT_LIMIT`] executions without a limit in `list`, and a note follows a table of that length. Prints a note
/// instead of an empty table.
async fn list(client: &Client, list: ListExecutions, quiet: bool) -> anyhow::Result<()> {
    let is_limited = list.limit.is_some();
    let executions = listing::items_to_show(client, PATH, list, DEFAULT_LIMIT, quiet, "no executions").await?;
    let Some(executions) = executions else { return Ok(()) };
    let rows: Vec<_> = executions.iter().map(row).collect();
    output::print_table(&["ID", "AGENT", "STATE", "QUEUE", "STARTED", "TOOK", "ERROR"], &rows)?;
    if !is_limited && executions.len() == DEFAULT_LIMIT {
        output::note(&format!("the newest {DEFAULT_LIMIT}; --limit N shows more"));
    }
    Ok(())
}

/// Returns the row of an execution in a table: short id, agent, state, queue position, start, duration and the
/// shortened error. Empty cells stand for absent values.
fn row(execution: &Execution) -> Vec<String> {
    vec![
        short_id(execution.id),
        execution.agent_id.clone(),
        execution.state.to_string(),
        or_empty(execution.queue_position),
        local_time(execution.start_time),
        elapsed(execution),
        or_empty(execution.error_message.as_deref().map(shorten)),
    ]
}

fn has_ended(execution: &Execution) -> bool {
    execution.end_time.is_some()
}

/// Returns the time from the start to the end, or to now if it has not ended. Empty if it has not started.
fn elapsed(execution: &Execution) -> String {
    let Some(start) = execution.start_time else { return String::new() };
    let end = execution.end_time.unwrap_or_else(|| Clock::system().now());
    format_duration((end.as_millisecond() - start.as_millisecond()).max(0))
}

/// Returns the first line of a text, up to [`MAX_LINE_CHARS`] characters. Ends with `…` if text was left out.
fn shorten(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    let is_complete = first.chars().count() <= MAX_LINE_CHARS && text.lines().nth(1).is_none();
    if is_complete { first.to_owned() } else { first.chars().take(MAX_LINE_CHARS).chain(['…']).collect() }
}

/// Prints the properties of an execution that are not empty, its earlier attempts and its state changes. The result is
/// read only if the execution has ended. With `--json`, prints only the execution. Fails if `name` matches none or
/// several.
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
            output::print_line(&format!("{name:<12}{value}"))?;
        }
    }
    for attempt in &execution.previous_retries {
        let end = local_time(attempt.end_time);
        let error = or_empty(attempt.error.as_deref().map(shorten));
        output::print_line(&format!("{:<12}{}: {}, {end}  {error}", "attempt", attempt.attempt, attempt.status))?;
    }
    for step in &execution.state_transitions {
        output::print_line(&format!("{:<12}{}  {} → {}", "state", local_time(step.at), step.from, step.to))?;
    }
    Ok(())
}

/// Returns the names and values to print for an execution, in order. Absent values are empty. `result` is none before
/// the end. The input is shortened to one line. Of the output, only the size is shown.
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
        ("queued at", local_time(execution.created_at)),
        ("started", local_time(execution.start_time)),
        ("ended", local_time(execution.end_time)),
        ("took", elapsed(execution)),
        ("attempt", format!("{} of {}", execution.attempt, execution.max_retries + 1)),
        ("process", or_empty(execution.process_id)),
        ("used", or_empty(execution.resource_usage.map(format_usage))),
        ("input", shorten(&execution.input)),
        ("output", or_empty(result.map(output_size))),
        ("artifacts", artifacts.join(", ")),
    ]
}

fn output_size(result: &ExecutionResult) -> String {
    let cut = if result.truncated { ", the middle was discarded" } else { "" };
    format!("{} bytes{cut}", result.output.len())
}

fn format_usage(usage: ResourceUsage) -> String {
    let ResourceUsage { cpu_percent, peak_memory_mb, disk_read_mb, disk_write_mb, cpu_ms, .. } = usage;
    format!(
        "{cpu_ms} ms of CPU time ({cpu_percent} %), {peak_memory_mb} MB of memory at peak, \
         {disk_read_mb} MB read, {disk_write_mb} MB written"
    )
}

/// Prints the stored output of an execution. With `follow` and a server, also prints new output until the execution
/// ends. `follow` without a server prints a note and only the stored output if the execution has not ended.
/// `stream_filter` is the name of a stream, or `all`. Fails if `name` matches none or several, or if the events cannot
/// be read.
async fn logs(client: &Client, name: &str, follow: bool, stream_filter: &str) -> anyhow::Result<()> {
    let execution = listing::execution(client, name).await?;
    let ended = has_ended(&execution);
    if follow && !ended && client.holder().is_some() {
        output::note("no server is running, so the execution does not continue; its output so far:");
    }
    if !follow || ended || client.holder().is_some() {
        let events = with_query(&format!("{PATH}/{}/events", execution.id), &EventParams { follow: Some(false) })?;
        let mut stored = client.follow(&events, None).await?;
        while let Some(event) = stored.next().await? {
            print(client, stream_filter, &event)?;
        }
        return Ok(());
    }
    let mut follower = EventFollower::for_execution(client, execution.id);
    loop {
        let event = follower.next().await?;
        if event.name == "result" {
            return Ok(());
        }
        print(client, stream_filter, &event)?;
    }
}

/// Prints an event with output of the selected streams, with `--json` as JSON to standard output. Ignores other events.
/// Rich output belongs to `stdout`. Progress, `stderr` and the notice for discarded output go to standard error, and
/// everything else to standard output. Fails if an `output` event cannot be parsed.
fn print(client: &Client, stream_filter: &str, event: &ServerEvent) -> anyhow::Result<()> {
    if event.name == "said" && (stream_filter == "all" || stream_filter == "stdout") {
        if client.json {
            return output::print_line(&event.data);
        }
        let (answer, progress) = rich_output_text(event);
        output::print_stderr(progress.as_bytes());
        return output::print(answer.as_bytes());
    }
    if event.name != "output" {
        return Ok(());
    }
    let OutputEvent { stream, text, missing_bytes, .. } = event.read()?;
    if stream_filter != "all" && stream_filter != stream {
        return Ok(());
    }
    if client.json {
        return output::print_line(&event.data);
    }
    if let Some(missing) = missing_bytes {
        output::note(&gap_notice(missing));
    } else if stream == "stderr" {
        output::print_stderr(text.as_bytes());
    } else {
        output::print(text.as_bytes())?;
    }
    Ok(())
}

/// Requests the cancellation of executions. Prints one line for each: `Cancelled` if it has ended, else `Cancelling`,
/// with its short id; or with `--json` each response of the server. Cancels none if a name cannot be resolved; stops at
/// the first request that fails.
async fn cancel(client: &Client, names: &[String]) -> anyhow::Result<()> {
    // All names are resolved before the first execution is cancelled.
    for execution in listing::resolve_each(names, async |name| listing::execution(client, name).await).await? {
        let answer = client.post_empty(&format!("{PATH}/{}/cancel", execution.id)).await?;
        answer.show(|execution: Execution| {
            let state = if has_ended(&execution) { "Cancelled" } else { "Cancelling" };
            output::print_line(&format!("{state} {}", short_id(execution.id)))
        })?;
    }
    Ok(())
}

/// Runs the request of an execution again, as a new execution. With `follow`, prints the output and fails unless it
/// succeeds; otherwise prints the new id, or with `--json` the new execution. Fails with a usage error without a server
/// unless `follow` is set. Also fails if `name` matches none or several, or if the server refuses.
async fn retry(client: &Client, name: &str, follow: bool) -> anyhow::Result<()> {
    if !follow && !client.has_server() {
        return Err(needs_server("`retry` without --follow"));
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
