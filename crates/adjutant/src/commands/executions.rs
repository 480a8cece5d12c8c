//! `adjutant executions`: what agents were asked, what came of it, and what is happening.

use model::Clock;
use reqwest::Method;
use serde_json::Value;

use super::listing::{self, lasting, query, short, text, timestamp, when};
use super::run::{alone, finish};
use super::watch::{Following, Show, Watch, gap, spoken};
use crate::cli::{Executions, Global};
use crate::client::Client;
use crate::{output, wire};

/// Shown where nobody says how many.
const SHOWN: usize = 50;
/// What of an error or an input fits into a line.
const LINE: usize = 60;

pub(crate) fn run(global: &Global, command: Executions) -> anyhow::Result<()> {
    // Whoever follows a retry cancels it by Ctrl-C; all others just end.
    let watches = matches!(command, Executions::Retry { follow: true, .. });
    let runtime = if watches { wire::own_runtime()? } else { wire::small_runtime()? };
    let ran = runtime.block_on(carry_out(global, command));
    runtime.shutdown_background();
    ran
}

async fn carry_out(global: &Global, command: Executions) -> anyhow::Result<()> {
    let client = Client::connect(global).await?;
    match command {
        Executions::List { agent, state, limit, cursor, quiet } => {
            let agent = match agent {
                Some(name) => Some(text(&listing::agent(&client, &name).await?, "id").to_owned()),
                None => None,
            };
            let filters = [("agent_id", agent), ("state", state), ("cursor", cursor)];
            let query = query(filters.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))));
            list(&client, global, &query, quiet, limit).await
        }
        Executions::Show { execution } => show(&client, global, &execution).await,
        Executions::Logs { execution, follow, stream } => logs(&client, global, &execution, follow, &stream).await,
        Executions::Cancel { executions } => cancel(&client, global, &executions).await,
        Executions::Retry { execution, follow } => retry(&client, global, &execution, follow).await,
    }
}

async fn list(client: &Client, global: &Global, query: &str, quiet: bool, limit: Option<usize>) -> anyhow::Result<()> {
    if global.json {
        let limit = limit.map(|limit| format!("&limit={limit}")).unwrap_or_default();
        let answer = client.get(&format!("/api/executions?{query}{limit}")).await?;
        return output::say(&answer.text());
    }
    let executions = listing::all(client, "/api/executions", "executions", query, limit.unwrap_or(SHOWN)).await?;
    if quiet {
        return executions.iter().try_for_each(|execution| output::say(text(execution, "id")));
    }
    if executions.is_empty() {
        output::note("no executions");
        return Ok(());
    }
    let rows: Vec<_> = executions.iter().map(row).collect();
    output::table(&["ID", "AGENT", "STATE", "QUEUE", "STARTED", "TOOK", "ERROR"], &rows)?;
    if limit.is_none() && executions.len() == SHOWN {
        output::note(&format!("the newest {SHOWN}; --limit N shows more"));
    }
    Ok(())
}

fn row(execution: &Value) -> Vec<String> {
    vec![
        short(text(execution, "id")).to_owned(),
        text(execution, "agent_id").to_owned(),
        text(execution, "state").to_owned(),
        execution["queue_position"].as_i64().map(|position| position.to_string()).unwrap_or_default(),
        when(&execution["start_time"]),
        took(execution),
        line(text(execution, "error_message")),
    ]
}

/// From its start to its end, or to now.
fn took(execution: &Value) -> String {
    let Some(start) = timestamp(&execution["start_time"]) else { return String::new() };
    let end = timestamp(&execution["end_time"]).unwrap_or_else(|| Clock::system().now());
    lasting((end.as_millisecond() - start.as_millisecond()).max(0))
}

fn line(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    let whole = first.chars().count() <= LINE && text.lines().nth(1).is_none();
    if whole { first.to_owned() } else { first.chars().take(LINE).chain(['…']).collect() }
}

async fn show(client: &Client, global: &Global, name: &str) -> anyhow::Result<()> {
    let execution = listing::execution(client, name).await?;
    let answer = client.get(&format!("/api/executions/{}", text(&execution, "id"))).await?;
    if global.json {
        return output::say(&answer.text());
    }
    let execution = answer.json()?;
    let result = match execution["end_time"].as_str() {
        Some(_) => client.get(&format!("/api/executions/{}/result", text(&execution, "id"))).await?.json()?,
        None => Value::Null,
    };
    for (name, value) in details(&execution, &result) {
        if !value.is_empty() {
            output::say(&format!("{name:<12}{value}"))?;
        }
    }
    for attempt in execution["previous_retries"].as_array().into_iter().flatten() {
        let number = attempt["attempt"].as_i64().unwrap_or_default();
        let status = text(attempt, "status");
        let error = line(text(attempt, "error"));
        output::say(&format!("{:<12}{number}: {status}, {}  {error}", "attempt", when(&attempt["end_time"])))?;
    }
    for step in execution["state_transitions"].as_array().into_iter().flatten() {
        let from = text(step, "from");
        let to = text(step, "to");
        output::say(&format!("{:<12}{}  {from} → {to}", "state", when(&step["at"])))?;
    }
    Ok(())
}

fn details(execution: &Value, result: &Value) -> Vec<(&'static str, String)> {
    let number = |field: &str| execution[field].as_i64().map(|number| number.to_string()).unwrap_or_default();
    let tries = execution["max_retries"].as_i64().unwrap_or_default() + 1;
    let category = match text(execution, "error_category") {
        "" => String::new(),
        category => format!(" ({category})"),
    };
    let artifacts = result["artifacts"].as_array().into_iter().flatten();
    let artifacts: Vec<_> = artifacts.map(|artifact| text(artifact, "name")).collect();
    let size = result["output"].as_str().map(|output| format!("{} bytes", output.len())).unwrap_or_default();
    let cut = if result["truncated"] == true { ", its middle was not kept" } else { "" };
    vec![
        ("id", text(execution, "id").to_owned()),
        ("agent", text(execution, "agent_id").to_owned()),
        ("state", text(execution, "state").to_owned()),
        ("result", text(result, "status").to_owned()),
        ("outcome", text(execution, "outcome").to_owned()),
        ("error", [text(execution, "error_message"), &category].concat()),
        ("exit code", number("exit_code")),
        ("queue", number("queue_position")),
        ("asked", when(&execution["created_at"])),
        ("started", when(&execution["start_time"])),
        ("ended", when(&execution["end_time"])),
        ("took", took(execution)),
        ("attempt", format!("{} of {tries}", number("attempt"))),
        ("process", number("process_id")),
        ("used", used(&execution["resource_usage"])),
        ("input", line(text(execution, "input"))),
        ("output", if size.is_empty() { size } else { format!("{size}{cut}") }),
        ("artifacts", artifacts.join(", ")),
    ]
}

fn used(usage: &Value) -> String {
    if usage.is_null() {
        return String::new();
    }
    let number = |field: &str| usage[field].as_u64().unwrap_or_default();
    format!(
        "{} ms of processor time ({} %), {} MB of memory at most, {} MB read, {} MB written",
        number("cpu_ms"),
        usage["cpu_percent"].as_f64().unwrap_or_default(),
        number("peak_memory_mb"),
        number("disk_read_mb"),
        number("disk_write_mb"),
    )
}

async fn logs(client: &Client, global: &Global, name: &str, follow: bool, wanted: &str) -> anyhow::Result<()> {
    let execution = listing::execution(client, name).await?;
    let id = text(&execution, "id");
    let ended = execution["end_time"].is_string();
    if follow && !ended && client.supervisor().is_some() {
        output::note("no server runs, so it does not go on; this is what it has said so far:");
    }
    if !follow || ended || client.supervisor().is_some() {
        let mut stored = client.follow(&format!("/api/executions/{id}/events?follow=false"), None).await?;
        while let Some(event) = stored.next().await? {
            print(global, wanted, &event.name, &event.data)?;
        }
        return Ok(());
    }
    let mut following = Following::of(client, id);
    loop {
        let event = following.next().await?;
        if event.name == "result" {
            return Ok(());
        }
        print(global, wanted, &event.name, &event.data)?;
    }
}

fn print(global: &Global, wanted: &str, event: &str, data: &str) -> anyhow::Result<()> {
    if event == "said" && (wanted == "all" || wanted == "stdout") {
        if global.json {
            return output::say(data);
        }
        let (answer, aside) = spoken(&serde_json::from_str(data)?);
        output::put_err(aside.as_bytes());
        return output::put(answer.as_bytes());
    }
    if event != "output" {
        return Ok(());
    }
    let output: Value = serde_json::from_str(data)?;
    let stream = text(&output, "stream");
    if wanted != "all" && wanted != stream {
        return Ok(());
    }
    if global.json {
        return output::say(data);
    }
    if let Some(missing) = output["missing_bytes"].as_u64() {
        output::note(&gap(missing));
    } else if stream == "stderr" {
        output::put_err(text(&output, "text").as_bytes());
    } else {
        output::put(text(&output, "text").as_bytes())?;
    }
    Ok(())
}

async fn cancel(client: &Client, global: &Global, names: &[String]) -> anyhow::Result<()> {
    let mut ids: Vec<String> = Vec::new();
    // All of them are there before the first one is stopped.
    for name in names {
        let id = text(&listing::execution(client, name).await?, "id").to_owned();
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    for id in ids {
        let answer = client.send(Method::POST, &format!("/api/executions/{id}/cancel"), None).await?;
        if global.json {
            output::say(&answer.text())?;
            continue;
        }
        let state = if answer.json()?["end_time"].is_string() { "Cancelled" } else { "Cancelling" };
        output::say(&format!("{state} {}", short(&id)))?;
    }
    Ok(())
}

async fn retry(client: &Client, global: &Global, name: &str, follow: bool) -> anyhow::Result<()> {
    if !follow && client.supervisor().is_some() {
        return Err(alone("`retry` without --follow"));
    }
    let execution = listing::execution(client, name).await?;
    let path = format!("/api/executions/{}/retry", text(&execution, "id"));
    if !follow {
        let answer = client.send(Method::POST, &path, None).await?;
        return if global.json { output::say(&answer.text()) } else { output::say(text(&answer.json()?, "id")) };
    }
    let agent = listing::agent(client, text(&execution, "agent_id")).await?;
    let mut watch = Watch::begin(client, text(&agent, "id")).await?;
    let ended = async {
        let new = client.send(Method::POST, &path, None).await?.json()?;
        let show = if global.json { Show::Nothing } else { Show::answer_of(&agent) };
        finish(&mut watch, client, global, text(&new, "id"), show).await
    };
    let ended = ended.await;
    watch.end().await;
    ended
}
