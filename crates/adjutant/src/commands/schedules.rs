//! `adjutant schedules`: list, add, edit, pause, resume, run, next, explain, history, rm.

use api::schedules::{
    Decision, ExplainAt, Explanation, ListDecisions, ListSchedules, NextTimes, Schedule, ScheduleDraft, SchedulePatch,
    SchedulePause, Times,
};
use model::schedule::INPUT;
use serde_json::{Map, Value};

use super::listing::{self, Named, named, or_empty, saturating, short, when};
use super::run::{alone, detach, parameters, watch};
use crate::cli::{Global, Schedules, Timing};
use crate::client::{Client, with_query};
use crate::exit::{Code, Exit};
use crate::{output, wire};

const PATH: &str = "/api/schedules";
/// The number of decisions shown by default.
const SHOWN: usize = 50;

pub(crate) fn run(global: &Global, command: Schedules) -> anyhow::Result<()> {
    // Ctrl-C cancels a run that is waited for, and ends every other command.
    let watches = matches!(command, Schedules::Run { detach: false, .. });
    let runtime = if watches { wire::own_runtime()? } else { wire::small_runtime()? };
    let ran = runtime.block_on(carry_out(global, command));
    runtime.shutdown_background();
    ran
}

async fn carry_out(global: &Global, command: Schedules) -> anyhow::Result<()> {
    let client = &Client::connect(global).await?;
    match command {
        Schedules::List { agent, paused, quiet } => {
            let agent_id = listing::agent_id(client, agent.as_deref()).await?;
            let enabled = paused.then_some(false);
            list(client, ListSchedules { agent_id, enabled, ..ListSchedules::default() }, quiet).await
        }
        Schedules::Add { agent, input, name, timing } => add(client, &agent, input, name, *timing).await,
        Schedules::Edit { schedule, name, agent, input, mut timing, clear } => {
            let given = std::mem::take(&mut timing.param);
            let agent_id = listing::agent_id(client, agent.as_deref()).await?;
            let patch = SchedulePatch { name, agent_id, ..patch(*timing, &clear) };
            edit(client, &schedule, patch, input, &given).await
        }
        Schedules::Pause { schedule, reason } => {
            let path = path(&resolve(client, &schedule).await?, "/pause");
            let answer = client.post(&path, &SchedulePause { reason }).await?;
            answer.show(|Schedule { settings, paused_reason, .. }| {
                output::say(&format!("Paused '{}': {}", settings.name, or_empty(paused_reason)))
            })
        }
        Schedules::Resume { schedule } => {
            let path = path(&resolve(client, &schedule).await?, "/resume");
            client.post_empty(&path).await?.show(|schedule| report("Resumed", &schedule))
        }
        Schedules::Run { schedule, detach } => run_now(client, &schedule, detach).await,
        Schedules::Next { schedule, count } => next(client, &schedule, count).await,
        Schedules::Explain { schedule, at } => {
            let path = path(&resolve(client, &schedule).await?, "/explain");
            let answer = client.get(&with_query(&path, &ExplainAt { at })?).await?;
            answer.show(|explanation: Explanation| output::say(&explanation.text))
        }
        Schedules::History { schedule, limit } => history(client, &schedule, limit).await,
        Schedules::Rm { schedules } => remove(client, &schedules, global.yes).await,
    }
}

async fn list(client: &Client, list: ListSchedules, quiet: bool) -> anyhow::Result<()> {
    let empty = "no schedules; `adjutant schedules add AGENT INPUT --cron \"0 17 * * FRI\"` makes one";
    let schedules = listing::to_show(client, PATH, list, usize::MAX, quiet, empty).await?;
    let Some(schedules) = schedules else { return Ok(()) };
    let rows: Vec<_> = schedules.iter().map(row).collect();
    output::table(&["ID", "NAME", "AGENT", "WHEN", "STATE", "LAST", "NEXT"], &rows)
}

fn row(schedule: &Schedule) -> Vec<String> {
    let last = match (schedule.last_execution, schedule.last_status) {
        (Some(last), Some(status)) => format!("{} {status}", when(last)),
        (last, _) => when(last),
    };
    vec![
        short(schedule.id),
        schedule.settings.name.clone(),
        schedule.settings.agent_id.clone(),
        timing(schedule),
        schedule.state.to_string(),
        last,
        when(schedule.next_execution),
    ]
}

/// Returns when it runs, as it was written.
fn timing(schedule: &Schedule) -> String {
    let settings = &schedule.settings;
    match (&settings.cron_expression, settings.every) {
        (Some(cron), _) => format!("{cron} ({})", settings.time_zone),
        (None, Some(every)) => format!("every {every}"),
        (None, None) => format!("once, {}", when(settings.at)),
    }
}

async fn add(
    client: &Client,
    agent: &str,
    input: Option<String>,
    name: Option<String>,
    timing: Timing,
) -> anyhow::Result<()> {
    if timing.cron.is_none() && timing.every.is_none() && timing.at.is_none() {
        return Err(Exit::new(Code::Usage, "say when: --cron EXPRESSION, --every LENGTH or --at TIME").into());
    }
    let agent = listing::agent(client, agent).await?.id().to_owned();
    let name = match name {
        Some(name) => name,
        None => free_name(client, &agent).await?,
    };
    let draft = ScheduleDraft {
        name: Some(name),
        agent_id: Some(agent),
        cron_expression: timing.cron,
        every: timing.every,
        at: timing.at,
        time_zone: timing.time_zone,
        input_parameters: Some(parameters(with_input(Map::new(), input), &timing.param)?),
        overlap: timing.overlap,
        missed: timing.missed,
        missed_window: timing.missed_window,
        jitter: timing.jitter,
        start_at: timing.start,
        end_at: timing.end,
        pause_after_failures: timing.pause_after,
        enabled: None,
    };
    client.post(PATH, &draft).await?.show(|schedule| {
        report("Added", &schedule)?;
        if client.supervisor().is_some() {
            output::note("no server runs; schedules are acted upon while one does: `adjutant serve`");
        }
        Ok(())
    })
}

/// Returns the agent's id, with a number if a schedule has that name.
async fn free_name(client: &Client, agent: &str) -> anyhow::Result<String> {
    let known = listing::all(client, PATH, ListSchedules::default(), usize::MAX).await?;
    let is_free = |name: &String| !known.iter().any(|schedule| schedule.settings.name.eq_ignore_ascii_case(name));
    let numbered = (2..).map(|n| format!("{agent}-{n}"));
    Ok(std::iter::once(agent.to_owned()).chain(numbered).find(is_free).unwrap_or_default())
}

/// Prints the change to a schedule and its next time.
fn report(verb: &str, schedule: &Schedule) -> anyhow::Result<()> {
    let next = or_empty(schedule.next_execution.map(|next| format!(", next at {}", when(next))));
    output::say(&format!("{verb} '{}'{next}", schedule.settings.name))
}

async fn edit(
    client: &Client,
    name: &str,
    mut patch: SchedulePatch,
    input: Option<String>,
    given: &[String],
) -> anyhow::Result<()> {
    let schedule = resolve(client, name).await?;
    if input.is_some() || !given.is_empty() {
        let known = schedule.settings.input_parameters.clone();
        patch.input_parameters = Some(parameters(with_input(known, input), given)?);
    }
    if patch == SchedulePatch::default() {
        return Err(Exit::new(Code::Usage, "nothing to change: give --cron, --input, … or --clear").into());
    }
    client.patch(&path(&schedule, ""), &patch).await?.show(|schedule| report("Updated", &schedule))
}

async fn run_now(client: &Client, name: &str, detached: bool) -> anyhow::Result<()> {
    if detached && client.supervisor().is_some() {
        return Err(alone("--detach"));
    }
    let schedule = resolve(client, name).await?;
    let path = path(&schedule, "/run");
    let request = client.post_empty(&path);
    if detached {
        return detach(request).await;
    }
    let agent = listing::agent(client, &schedule.settings.agent_id).await?;
    watch(client, &agent, request).await
}

async fn next(client: &Client, name: &str, count: usize) -> anyhow::Result<()> {
    let schedule = resolve(client, name).await?;
    let wanted = NextTimes { limit: Some(saturating(count)) };
    client.get(&with_query(&path(&schedule, "/next"), &wanted)?).await?.show(|answer: Times| {
        if !schedule.enabled {
            output::note(&format!("it is paused: {}", or_empty(schedule.paused_reason)));
        }
        if answer.times.is_empty() {
            output::note("it has no more times");
        }
        answer.times.iter().try_for_each(|time| output::say(&when(*time)))
    })
}

async fn history(client: &Client, name: &str, limit: Option<usize>) -> anyhow::Result<()> {
    let path = path(&resolve(client, name).await?, "/history");
    let list = ListDecisions { limit: limit.map(saturating), cursor: None };
    if client.json {
        return listing::page(client, &path, &list).await?.print();
    }
    let decisions = listing::all(client, &path, list, limit.unwrap_or(SHOWN)).await?;
    if decisions.is_empty() {
        output::note("none of its times has come");
        return Ok(());
    }
    let rows: Vec<_> = decisions.iter().map(decided).collect();
    output::table(&["DUE", "DECISION", "AT", "EXECUTION", "REASON"], &rows)
}

fn decided(decision: &Decision) -> Vec<String> {
    let until = or_empty(decision.until.map(|until| format!(" to {}", when(until))));
    vec![
        format!("{}{until}", when(decision.due_at)),
        decision.kind.to_string(),
        when(decision.decided_at),
        or_empty(decision.execution_id.map(short)),
        decision.reason.clone().unwrap_or_default(),
    ]
}

async fn remove(client: &Client, names: &[String], yes: bool) -> anyhow::Result<()> {
    let schedules = listing::each(names, async |name| resolve(client, name).await).await?;
    let titles: Vec<_> = schedules.iter().map(|schedule| format!("'{}'", schedule.settings.name)).collect();
    let titles = titles.join(", ");
    output::confirm(&format!("Remove {titles}, with the history?"), yes)?;
    for schedule in &schedules {
        client.delete(&path(schedule, "")).await?;
    }
    if client.json { Ok(()) } else { output::say(&format!("Removed {titles}")) }
}

named!("schedule": Schedule, |it| it.id, format!("{}, {}", it.settings.name, timing(it)));

/// Returns the schedule with this id, this name, or this part of an id.
async fn resolve(client: &Client, name: &str) -> anyhow::Result<Schedule> {
    let list = ListSchedules { reference: Some(name.trim().to_lowercase()), ..ListSchedules::default() };
    let found = listing::all(client, PATH, list, usize::MAX).await?;
    let is_named = |schedule: &Schedule, wanted: &str| schedule.settings.name.to_lowercase() == wanted;
    listing::one(name, &found, &[Named::has_id, is_named, Named::has_part]).cloned()
}

/// Returns the path of a schedule, or of something below it.
fn path(schedule: &Schedule, below: &str) -> String {
    format!("{PATH}/{}{below}", schedule.id)
}

/// Returns the changes that the flags ask for.
fn patch(timing: Timing, clear: &[String]) -> SchedulePatch {
    let mut patch = SchedulePatch {
        cron_expression: timing.cron.map(Some),
        every: timing.every.map(Some),
        at: timing.at.map(Some),
        time_zone: timing.time_zone,
        overlap: timing.overlap.map(Some),
        missed: timing.missed.map(Some),
        missed_window: timing.missed_window.map(Some),
        jitter: timing.jitter.map(Some),
        start_at: timing.start.map(Some),
        end_at: timing.end.map(Some),
        pause_after_failures: timing.pause_after.map(Some),
        ..SchedulePatch::default()
    };
    for field in clear {
        match field.as_str() {
            "overlap" => patch.overlap = Some(None),
            "missed" => patch.missed = Some(None),
            "missed-window" => patch.missed_window = Some(None),
            "jitter" => patch.jitter = Some(None),
            "start" => patch.start_at = Some(None),
            "end" => patch.end_at = Some(None),
            _ => patch.pause_after_failures = Some(None),
        }
    }
    patch
}

/// Returns the parameters with this input, if one is given.
fn with_input(mut parameters: Map<String, Value>, input: Option<String>) -> Map<String, Value> {
    parameters.extend(input.map(|input| (INPUT.to_owned(), input.into())));
    parameters
}
