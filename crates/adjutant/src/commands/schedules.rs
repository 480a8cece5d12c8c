//! `adjutant schedules`: list, add, edit, pause, resume, run, next, explain, history, rm.

use api::schedules::{
    Decision, ExplainParams, ListDecisions, ListSchedules, NextTimesParams, Schedule, ScheduleDraft,
    ScheduleExplanation, SchedulePatch, SchedulePause, Times,
};
use model::schedule::INPUT_KEY;
use serde_json::{Map, Value};

use super::listing::{self, Named, limit_param, local_time, named, or_empty, short_id};
use super::run::{detach, needs_server, parameters, watch};
use super::with_words;
use crate::cli::{GlobalOptions, ScheduleTiming, SchedulesCommand};
use crate::client::{Client, with_query};
use crate::exit::{ExitError, ExitStatus};
use crate::{output, wire};

const PATH: &str = "/api/schedules";
/// The number of decisions shown by default.
const DEFAULT_LIMIT: usize = 50;

/// Runs one subcommand in its own runtime and does not wait for remaining tasks at the end. Ctrl-C cancels the
/// execution of `run` without `--detach`, and ends the process in every other subcommand. Fails if the subcommand
/// fails.
pub(crate) fn run(global: &GlobalOptions, command: SchedulesCommand) -> anyhow::Result<()> {
    // Ctrl-C cancels a run that this command waits for, and ends every other command.
    let watches = matches!(command, SchedulesCommand::Run { detach: false, .. });
    let runtime = if watches { wire::single_thread_runtime()? } else { wire::command_runtime()? };
    let result = runtime.block_on(execute(global, command));
    runtime.shutdown_background();
    result
}

/// Connects and runs one subcommand. Fails if the connection or a request fails, or if a name matches no schedule or
/// agent, or several.
async fn execute(global: &GlobalOptions, command: SchedulesCommand) -> anyhow::Result<()> {
    let client = &Client::connect(global).await?;
    match command {
        SchedulesCommand::List { agent, paused, quiet } => {
            let agent_id = listing::agent_id(client, agent.as_deref()).await?;
            let enabled = paused.then_some(false);
            list(client, ListSchedules { agent_id, enabled, ..ListSchedules::default() }, quiet).await
        }
        SchedulesCommand::Add { agent, input, words, name, timing } => {
            add(client, &agent, with_words(input, &words), name, *timing).await
        }
        SchedulesCommand::Edit { schedule, name, agent, input, mut timing, clear } => {
            let given = std::mem::take(&mut timing.param);
            let agent_id = listing::agent_id(client, agent.as_deref()).await?;
            let patch = SchedulePatch { name, agent_id, ..patch(*timing, &clear) };
            edit(client, &schedule, patch, input, &given).await
        }
        SchedulesCommand::Pause { schedule, reason } => {
            let path = path(&resolve(client, &schedule).await?, "/pause");
            let answer = client.post(&path, &SchedulePause { reason }).await?;
            answer.show(|Schedule { settings, paused_reason, .. }| {
                output::print_line(&format!("Paused '{}': {}", settings.name, or_empty(paused_reason)))
            })
        }
        SchedulesCommand::Resume { schedule } => {
            let path = path(&resolve(client, &schedule).await?, "/resume");
            client.post_empty(&path).await?.show(|schedule| report("Resumed", &schedule))
        }
        SchedulesCommand::Run { schedule, detach } => run_now(client, &schedule, detach).await,
        SchedulesCommand::Next { schedule, count } => next(client, &schedule, count).await,
        SchedulesCommand::Explain { schedule, at } => {
            let path = path(&resolve(client, &schedule).await?, "/explain");
            let answer = client.get(&with_query(&path, &ExplainParams { at })?).await?;
            answer.show(|explanation: ScheduleExplanation| output::print_line(&explanation.text))
        }
        SchedulesCommand::History { schedule, limit } => history(client, &schedule, limit).await,
        SchedulesCommand::Rm { schedules } => remove(client, &schedules, global.yes).await,
    }
}

/// Prints all schedules that match `list` as ids (`quiet`) or as a table, or one page as JSON with `--json`. Prints a
/// note if there are none.
async fn list(client: &Client, list: ListSchedules, quiet: bool) -> anyhow::Result<()> {
    let empty = "no schedules; `adjutant schedules add AGENT INPUT --when \"every friday at 5pm\"` adds one";
    let schedules = listing::items_to_show(client, PATH, list, usize::MAX, quiet, empty).await?;
    let Some(schedules) = schedules else { return Ok(()) };
    let rows: Vec<_> = schedules.iter().map(row).collect();
    output::print_table(&["ID", "NAME", "AGENT", "WHEN", "STATE", "LAST", "NEXT"], &rows)
}

/// Returns the row of a schedule in a table: short id, name, agent, timing, state, last execution and next occurrence.
/// The last execution is its time and status. Empty cells stand for absent values.
fn row(schedule: &Schedule) -> Vec<String> {
    let last = match (schedule.last_execution, schedule.last_status) {
        (Some(last), Some(status)) => format!("{} {status}", local_time(last)),
        (last, _) => local_time(last),
    };
    vec![
        short_id(schedule.id),
        schedule.settings.name.clone(),
        schedule.settings.agent_id.clone(),
        timing(schedule),
        schedule.state.to_string(),
        last,
        local_time(schedule.next_execution),
    ]
}

/// Returns the timing of a schedule: the cron expression with its time zone, the interval, or the local time of its
/// single run.
fn timing(schedule: &Schedule) -> String {
    let settings = &schedule.settings;
    match (&settings.cron_expression, settings.every) {
        (Some(cron), _) => format!("{cron} ({})", settings.time_zone),
        (None, Some(every)) => format!("every {every}"),
        (None, None) => format!("once, {}", local_time(settings.at)),
    }
}

/// Adds a schedule and prints its name and next occurrence, and a note if no server runs. With `--json`, prints only
/// the response of the server. Without `name`, the schedule has the id of the agent as name, with a number if it is
/// taken. `agent` is an id, a name, or the beginning or end of an id.
///
/// Fails with a usage error if no cron expression, interval or time is given. Fails if no agent matches or several do,
/// if a parameter is not NAME=VALUE, or if the server rejects the schedule.
async fn add(
    client: &Client,
    agent: &str,
    input: Option<String>,
    name: Option<String>,
    timing: ScheduleTiming,
) -> anyhow::Result<()> {
    if timing.when.is_none() && timing.cron.is_none() && timing.every.is_none() && timing.at.is_none() {
        return Err(ExitError::new(
            ExitStatus::Usage,
            "no timing: give --when TIMES, --cron EXPRESSION, --every LENGTH or --at TIME",
        )
        .into());
    }
    let agent = listing::agent(client, agent).await?.id().to_owned();
    let name = match name {
        Some(name) => name,
        None => free_name(client, &agent).await?,
    };
    let draft = ScheduleDraft {
        name: Some(name),
        agent_id: Some(agent),
        when: timing.when,
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
        if !client.has_server() {
            output::note("no server is running; schedules run only while one does: start it with `adjutant serve`");
        }
        Ok(())
    })
}

/// Returns the id of the agent, or the id with the first free number from 2 if a schedule has that name already,
/// ignoring case. Fails if the schedules cannot be read.
async fn free_name(client: &Client, agent: &str) -> anyhow::Result<String> {
    let known = listing::all_items(client, PATH, ListSchedules::default(), usize::MAX).await?;
    let is_free = |name: &String| !known.iter().any(|schedule| schedule.settings.name.eq_ignore_ascii_case(name));
    let numbered = (2..).map(|n| format!("{agent}-{n}"));
    Ok(std::iter::once(agent.to_owned()).chain(numbered).find(is_free).unwrap_or_default())
}

/// Prints a change to a schedule and its next occurrence.
fn report(verb: &str, schedule: &Schedule) -> anyhow::Result<()> {
    let next = or_empty(schedule.next_execution.map(|next| format!(", next at {}", local_time(next))));
    output::print_line(&format!("{verb} '{}'{next}", schedule.settings.name))
}

/// Changes a schedule and prints its name and next occurrence, or with `--json` the response of the server. `input` and
/// the parameters in `given` override single parameters; the rest are kept. Fails with a usage error if nothing is to
/// be changed or a parameter is not NAME=VALUE. Fails if `name` matches no schedule or several, or if the server
/// rejects the change.
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
        return Err(ExitError::new(ExitStatus::Usage, "nothing to change: give --cron, --input, … or --clear").into());
    }
    client.patch(&path(&schedule, ""), &patch).await?.show(|schedule| report("Updated", &schedule))
}

/// Runs a schedule now and prints the output. With `detached`, prints only the id of the execution, or with `--json`
/// the execution. Fails with a usage error if `detached` is set without a server. Also fails if `name` matches no
/// schedule or several, if the server refuses, or if a followed execution does not succeed.
async fn run_now(client: &Client, name: &str, detached: bool) -> anyhow::Result<()> {
    if detached && !client.has_server() {
        return Err(needs_server("--detach"));
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

/// Prints up to `count` future occurrences in local time, with a note if the schedule is paused or has none. With
/// `--json`, prints only the response. Fails if `name` matches no schedule or several, or if the server rejects
/// `count`.
async fn next(client: &Client, name: &str, count: usize) -> anyhow::Result<()> {
    let schedule = resolve(client, name).await?;
    let params = NextTimesParams { limit: Some(limit_param(count)) };
    client.get(&with_query(&path(&schedule, "/next"), &params)?).await?.show(|answer: Times| {
        if !schedule.enabled {
            output::note(&format!("the schedule is paused: {}", or_empty(schedule.paused_reason)));
        }
        if answer.times.is_empty() {
            output::note("the schedule has no future occurrences");
        }
        answer.times.iter().try_for_each(|time| output::print_line(&local_time(*time)))
    })
}

/// Prints the decisions about past occurrences, [`DEFAULT_LIMIT`] unless `limit` is given, or a note if there are none.
/// With `--json`, prints one page as the server returns it. Fails if `name` matches no schedule or several.
async fn history(client: &Client, name: &str, limit: Option<usize>) -> anyhow::Result<()> {
    let path = path(&resolve(client, name).await?, "/history");
    let list = ListDecisions { limit: limit.map(limit_param), cursor: None };
    if client.json {
        return listing::page(client, &path, &list).await?.print();
    }
    let decisions = listing::all_items(client, &path, list, limit.unwrap_or(DEFAULT_LIMIT)).await?;
    if decisions.is_empty() {
        output::note("the schedule had no occurrences yet");
        return Ok(());
    }
    let rows: Vec<_> = decisions.iter().map(decision_row).collect();
    output::print_table(&["DUE", "DECISION", "AT", "EXECUTION", "REASON"], &rows)
}

/// Returns the row of a decision in a table: due time, decision, its time, short id of the execution and reason. The
/// due time of several occurrences is a period. Empty cells stand for absent values.
fn decision_row(decision: &Decision) -> Vec<String> {
    let until = or_empty(decision.until.map(|until| format!(" to {}", local_time(until))));
    vec![
        format!("{}{until}", local_time(decision.due_at)),
        decision.kind.to_string(),
        local_time(decision.decided_at),
        or_empty(decision.execution_id.map(short_id)),
        decision.reason.clone().unwrap_or_default(),
    ]
}

/// Removes schedules with their history after a confirmation, unless `yes` is set. Fails and removes nothing if a name
/// cannot be resolved or the removal is not confirmed. Stops at the first request that fails; the schedules before it
/// stay removed, and nothing is printed. Otherwise prints one line with all names, or nothing with `--json`.
async fn remove(client: &Client, names: &[String], yes: bool) -> anyhow::Result<()> {
    let schedules = listing::resolve_each(names, async |name| resolve(client, name).await).await?;
    let titles: Vec<_> = schedules.iter().map(|schedule| format!("'{}'", schedule.settings.name)).collect();
    let titles = titles.join(", ");
    output::confirm(&format!("Remove {titles} with all history?"), yes)?;
    for schedule in &schedules {
        client.delete(&path(schedule, "")).await?;
    }
    if client.json { Ok(()) } else { output::print_line(&format!("Removed {titles}")) }
}

named!("schedule": Schedule, |it| it.id, format!("{}, {}", it.settings.name, timing(it)), it.settings.name);

/// Returns the schedule with this id, name, or part of an id. Fails if no schedule matches or several do.
async fn resolve(client: &Client, name: &str) -> anyhow::Result<Schedule> {
    let list = ListSchedules { reference: Some(name.trim().to_lowercase()), ..ListSchedules::default() };
    let found = listing::all_items(client, PATH, list, usize::MAX).await?;
    let is_named = |schedule: &Schedule, wanted: &str| schedule.settings.name.to_lowercase() == wanted;
    let matchers = [Named::has_id, is_named, Named::has_part];
    listing::select_or_suggest(client, PATH, name, (&found, &matchers), ListSchedules::default()).await
}

/// Returns the path of a schedule, or of something below it.
fn path(schedule: &Schedule, below: &str) -> String {
    format!("{PATH}/{}{below}", schedule.id)
}

/// Returns the patch for the flags, without parameters. Absent flags change nothing. The fields in `clear` are reset to
/// their defaults, even if a flag sets them. They are `overlap`, `missed`, `missed-window`, `jitter`, `start` and
/// `end`; any other name resets `pause-after`.
fn patch(timing: ScheduleTiming, clear: &[String]) -> SchedulePatch {
    let mut patch = SchedulePatch {
        when: timing.when,
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

/// Returns the parameters with this input, if it is given.
fn with_input(mut parameters: Map<String, Value>, input: Option<String>) -> Map<String, Value> {
    parameters.extend(input.map(|input| (INPUT_KEY.to_owned(), input.into())));
    parameters
}
