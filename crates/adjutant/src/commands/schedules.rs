//! `adjutant schedules`: list, add, edit, pause, resume, run, next, explain, history, rm.

use reqwest::Method;
use serde_json::{Map, Value, json};

use super::listing::{self, pair, query, short, text, when};
use super::run::{alone, finish, parameter};
use super::watch::{Show, Watch};
use crate::cli::{Global, Schedules, Timing};
use crate::client::Client;
use crate::exit::{Code, Exit};
use crate::{output, wire};

/// Shown where nobody says how many.
const SHOWN: usize = 50;

pub(crate) fn run(global: &Global, command: Schedules) -> anyhow::Result<()> {
    // Whoever waits for a run cancels it by Ctrl-C; all others just end.
    let watches = matches!(command, Schedules::Run { detach: false, .. });
    let runtime = if watches { wire::own_runtime()? } else { wire::small_runtime()? };
    let ran = runtime.block_on(carry_out(global, command));
    runtime.shutdown_background();
    ran
}

async fn carry_out(global: &Global, command: Schedules) -> anyhow::Result<()> {
    let client = Client::connect(global).await?;
    match command {
        Schedules::List { agent, paused, quiet } => list(&client, global, agent, paused, quiet).await,
        Schedules::Add { agent, input, name, timing } => add(&client, global, &agent, input, name, &timing).await,
        Schedules::Edit { schedule, name, agent, input, timing, clear } => {
            let mut fields = fields(&timing);
            fields.extend(name.map(|name| ("name".to_owned(), name.into())));
            if let Some(agent) = agent {
                fields.insert("agent_id".to_owned(), listing::agent(&client, &agent).await?["id"].clone());
            }
            fields.extend(clear.iter().map(|field| (field_of(field).to_owned(), Value::Null)));
            edit(&client, global, &schedule, fields, input, &timing.param).await
        }
        Schedules::Pause { schedule, reason } => {
            let body = reason.map(|reason| json!({"reason": reason}));
            change(&client, global, &schedule, "pause", body).await
        }
        Schedules::Resume { schedule } => change(&client, global, &schedule, "resume", None).await,
        Schedules::Run { schedule, detach } => run_now(&client, global, &schedule, detach).await,
        Schedules::Next { schedule, count } => next(&client, global, &schedule, count).await,
        Schedules::Explain { schedule, at } => explain(&client, global, &schedule, at.as_deref()).await,
        Schedules::History { schedule, limit } => history(&client, global, &schedule, limit).await,
        Schedules::Rm { schedules } => remove(&client, global, &schedules).await,
    }
}

async fn list(
    client: &Client,
    global: &Global,
    agent: Option<String>,
    paused: bool,
    quiet: bool,
) -> anyhow::Result<()> {
    let agent = match agent {
        Some(name) => Some(text(&listing::agent(client, &name).await?, "id").to_owned()),
        None => None,
    };
    let filters = [("agent_id", agent.as_deref()), ("enabled", paused.then_some("false"))];
    let query = query(filters.iter().filter_map(|(name, value)| Some((*name, (*value)?))));
    if global.json {
        return output::say(&client.get(&format!("/api/schedules?{query}")).await?.text());
    }
    let schedules = listing::all(client, "/api/schedules", "schedules", &query, usize::MAX).await?;
    if quiet {
        return schedules.iter().try_for_each(|schedule| output::say(text(schedule, "id")));
    }
    if schedules.is_empty() {
        output::note("no schedules; `adjutant schedules add AGENT INPUT --cron \"0 17 * * FRI\"` makes one");
        return Ok(());
    }
    let rows: Vec<_> = schedules.iter().map(row).collect();
    output::table(&["ID", "NAME", "AGENT", "WHEN", "STATE", "LAST", "NEXT"], &rows)
}

fn row(schedule: &Value) -> Vec<String> {
    let last = match (when(&schedule["last_execution"]), text(schedule, "last_status")) {
        (last, status) if last.is_empty() || status.is_empty() => last,
        (last, status) => format!("{last} {status}"),
    };
    vec![
        short(text(schedule, "id")).to_owned(),
        text(schedule, "name").to_owned(),
        text(schedule, "agent_id").to_owned(),
        timing(schedule),
        text(schedule, "state").to_owned(),
        last,
        when(&schedule["next_execution"]),
    ]
}

/// When it runs, as it was written.
fn timing(schedule: &Value) -> String {
    match (schedule["cron_expression"].as_str(), schedule["every"].as_str()) {
        (Some(cron), _) => format!("{cron} ({})", text(schedule, "time_zone")),
        (None, Some(every)) => format!("every {every}"),
        (None, None) => format!("once, {}", when(&schedule["at"])),
    }
}

async fn add(
    client: &Client,
    global: &Global,
    agent: &str,
    input: Option<String>,
    name: Option<String>,
    timing: &Timing,
) -> anyhow::Result<()> {
    if timing.cron.is_none() && timing.every.is_none() && timing.at.is_none() {
        return Err(Exit::new(Code::Usage, "say when: --cron EXPRESSION, --every LENGTH or --at TIME").into());
    }
    let agent = text(&listing::agent(client, agent).await?, "id").to_owned();
    let mut fields = fields(timing);
    let name = match name {
        Some(name) => name,
        None => free_name(client, &agent).await?,
    };
    fields.insert("name".to_owned(), name.into());
    fields.insert("agent_id".to_owned(), agent.into());
    fields.insert("input_parameters".to_owned(), parameters(Map::new(), input, &timing.param)?);
    let answer = client.post("/api/schedules", &Value::Object(fields)).await?;
    if global.json {
        return output::say(&answer.text());
    }
    let schedule = answer.json()?;
    output::say(&format!("Added '{}'{}", text(&schedule, "name"), upcoming(&schedule)))?;
    if client.supervisor().is_some() {
        output::note("no server runs; schedules are acted upon while one does: `adjutant serve`");
    }
    Ok(())
}

/// The agent's id, with a number where that is taken.
async fn free_name(client: &Client, agent: &str) -> anyhow::Result<String> {
    let known = listing::all(client, "/api/schedules", "schedules", "", usize::MAX).await?;
    let is_free = |name: &String| !known.iter().any(|schedule| text(schedule, "name").eq_ignore_ascii_case(name));
    let numbered = (2..).map(|n| format!("{agent}-{n}"));
    Ok(std::iter::once(agent.to_owned()).chain(numbered).find(is_free).unwrap_or_default())
}

fn upcoming(schedule: &Value) -> String {
    match when(&schedule["next_execution"]) {
        next if next.is_empty() => String::new(),
        next => format!(", next at {next}"),
    }
}

async fn edit(
    client: &Client,
    global: &Global,
    name: &str,
    mut fields: Map<String, Value>,
    input: Option<String>,
    given: &[String],
) -> anyhow::Result<()> {
    let schedule = resolve(client, name).await?;
    if input.is_some() || !given.is_empty() {
        let known = schedule["input_parameters"].as_object().cloned().unwrap_or_default();
        fields.insert("input_parameters".to_owned(), parameters(known, input, given)?);
    }
    if fields.is_empty() {
        return Err(Exit::new(Code::Usage, "nothing to change: give --cron, --input, … or --clear").into());
    }
    let path = format!("/api/schedules/{}", text(&schedule, "id"));
    let answer = client.send(Method::PATCH, &path, Some(&Value::Object(fields))).await?;
    if global.json {
        return output::say(&answer.text());
    }
    let schedule = answer.json()?;
    output::say(&format!("Updated '{}'{}", text(&schedule, "name"), upcoming(&schedule)))
}

async fn change(client: &Client, global: &Global, name: &str, verb: &str, body: Option<Value>) -> anyhow::Result<()> {
    let schedule = resolve(client, name).await?;
    let path = format!("/api/schedules/{}/{verb}", text(&schedule, "id"));
    let answer = client.send(Method::POST, &path, body.as_ref()).await?;
    if global.json {
        return output::say(&answer.text());
    }
    let schedule = answer.json()?;
    match verb {
        "pause" => output::say(&format!("Paused '{}': {}", text(&schedule, "name"), text(&schedule, "paused_reason"))),
        _ => output::say(&format!("Resumed '{}'{}", text(&schedule, "name"), upcoming(&schedule))),
    }
}

async fn run_now(client: &Client, global: &Global, name: &str, detach: bool) -> anyhow::Result<()> {
    if detach && client.supervisor().is_some() {
        return Err(alone("--detach"));
    }
    let schedule = resolve(client, name).await?;
    let path = format!("/api/schedules/{}/run", text(&schedule, "id"));
    if detach {
        let answer = client.send(Method::POST, &path, None).await?;
        return if global.json { output::say(&answer.text()) } else { output::say(text(&answer.json()?, "id")) };
    }
    let agent = listing::agent(client, text(&schedule, "agent_id")).await?;
    let mut watch = Watch::begin(client, text(&agent, "id")).await?;
    let ended = async {
        let execution = client.send(Method::POST, &path, None).await?.json()?;
        let show = if global.json { Show::Nothing } else { Show::answer_of(&agent) };
        finish(&mut watch, client, global, text(&execution, "id"), show).await
    };
    let ended = ended.await;
    watch.end().await;
    ended
}

async fn next(client: &Client, global: &Global, name: &str, count: usize) -> anyhow::Result<()> {
    let schedule = resolve(client, name).await?;
    let answer = client.get(&format!("/api/schedules/{}/next?limit={count}", text(&schedule, "id"))).await?;
    if global.json {
        return output::say(&answer.text());
    }
    if schedule["enabled"] == false {
        output::note(&format!("it is paused: {}", text(&schedule, "paused_reason")));
    }
    let answer = answer.json()?;
    let times = answer["times"].as_array().map(Vec::as_slice).unwrap_or_default();
    if times.is_empty() {
        output::note("it has no more times");
    }
    times.iter().try_for_each(|time| output::say(&when(time)))
}

async fn explain(client: &Client, global: &Global, name: &str, at: Option<&str>) -> anyhow::Result<()> {
    let schedule = resolve(client, name).await?;
    let query = query(at.map(|at| ("at", at)));
    let answer = client.get(&format!("/api/schedules/{}/explain?{query}", text(&schedule, "id"))).await?;
    if global.json {
        return output::say(&answer.text());
    }
    output::say(text(&answer.json()?, "text"))
}

async fn history(client: &Client, global: &Global, name: &str, limit: Option<usize>) -> anyhow::Result<()> {
    let schedule = resolve(client, name).await?;
    let path = format!("/api/schedules/{}/history", text(&schedule, "id"));
    if global.json {
        let limit = limit.map(|limit| format!("?limit={limit}")).unwrap_or_default();
        return output::say(&client.get(&format!("{path}{limit}")).await?.text());
    }
    let decisions = listing::all(client, &path, "decisions", "", limit.unwrap_or(SHOWN)).await?;
    if decisions.is_empty() {
        output::note("none of its times has come");
        return Ok(());
    }
    let rows: Vec<_> = decisions.iter().map(decided).collect();
    output::table(&["DUE", "DECISION", "AT", "EXECUTION", "REASON"], &rows)
}

fn decided(decision: &Value) -> Vec<String> {
    let due = match when(&decision["until"]) {
        until if until.is_empty() => when(&decision["due_at"]),
        until => format!("{} to {until}", when(&decision["due_at"])),
    };
    vec![
        due,
        text(decision, "kind").to_owned(),
        when(&decision["decided_at"]),
        short(text(decision, "execution_id")).to_owned(),
        text(decision, "reason").to_owned(),
    ]
}

async fn remove(client: &Client, global: &Global, names: &[String]) -> anyhow::Result<()> {
    let mut schedules: Vec<Value> = Vec::new();
    for name in names {
        let schedule = resolve(client, name).await?;
        if !schedules.iter().any(|known| known["id"] == schedule["id"]) {
            schedules.push(schedule);
        }
    }
    let titles: Vec<_> = schedules.iter().map(|schedule| format!("'{}'", text(schedule, "name"))).collect();
    let titles = titles.join(", ");
    output::confirm(&format!("Remove {titles}, with the history?"), global.yes)?;
    for schedule in &schedules {
        client.send(Method::DELETE, &format!("/api/schedules/{}", text(schedule, "id")), None).await?;
    }
    if global.json { Ok(()) } else { output::say(&format!("Removed {titles}")) }
}

/// The one schedule that a person means by its name or a part of its id.
async fn resolve(client: &Client, name: &str) -> anyhow::Result<Value> {
    let wanted = name.trim().to_lowercase();
    let query = query([("ref", wanted.as_str())]);
    let found = listing::all(client, "/api/schedules", "schedules", &query, usize::MAX).await?;
    let id = |schedule: &Value| text(schedule, "id") == wanted;
    let named = |schedule: &Value| text(schedule, "name").to_lowercase() == wanted;
    let part = |schedule: &Value| text(schedule, "id").starts_with(&wanted) || text(schedule, "id").ends_with(&wanted);
    let title = |schedule: &Value| format!("{}, {}", text(schedule, "name"), timing(schedule));
    listing::one("schedule", name, &found, &[&id, &named, &part], title)
}

/// What is said of the times and their policies.
fn fields(timing: &Timing) -> Map<String, Value> {
    let Timing { cron, every, at, time_zone, overlap, missed, missed_window, jitter, start, end, pause_after, .. } =
        timing;
    let texts = [
        ("cron_expression", cron),
        ("every", every),
        ("at", at),
        ("time_zone", time_zone),
        ("overlap", overlap),
        ("missed", missed),
        ("missed_window", missed_window),
        ("jitter", jitter),
        ("start_at", start),
        ("end_at", end),
    ];
    let given = texts.iter().filter_map(|(name, value)| Some(((*name).to_owned(), value.as_deref()?.into())));
    let mut fields: Map<String, Value> = given.collect();
    fields.extend(pause_after.map(|count| ("pause_after_failures".to_owned(), count.into())));
    fields
}

/// What is known of them, with the input and the parameters of the flags.
fn parameters(mut known: Map<String, Value>, input: Option<String>, given: &[String]) -> anyhow::Result<Value> {
    known.extend(input.map(|input| ("input".to_owned(), input.into())));
    for given in given {
        let (name, value) = pair("--param", given)?;
        known.insert(name.to_owned(), parameter(value));
    }
    Ok(Value::Object(known))
}

fn field_of(flag: &str) -> &'static str {
    match flag {
        "overlap" => "overlap",
        "missed" => "missed",
        "missed-window" => "missed_window",
        "jitter" => "jitter",
        "start" => "start_at",
        "end" => "end_at",
        _ => "pause_after_failures",
    }
}
