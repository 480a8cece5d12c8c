//! The handlers of the tools for schedules: create, list, pause and resume. [`changes`] has the others. A schedule runs
//! programs on this host, so only administrators have these tools (OPS-6).

pub(crate) mod changes;

use model::User;
use model::agent::RunConfirmation;
use model::audit::{Actor, AuditAction};
use model::schedule::{INPUT_KEY, Schedule, ScheduleDraft};
use scheduler::{ScheduleChange, Scheduler};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use store::executions::OwnerScope;
use store::schedules::ScheduleFilter;
use store::{Conn, Transaction};

use crate::answer::{self, Error, ToolFailure};
use crate::catalog::{RESUME_SCHEDULE, SCHEDULE_AGENT};
use crate::{BuiltInCall, HeldCall, ToolAnswer, ToolArguments, ToolOutcome, agents};

/// The maximum number of schedules in a list, and in a search by name.
const MAX_SCHEDULES: i64 = 200;
/// The maximum length of a generated name, in characters.
const MAX_GENERATED_NAME_CHARS: usize = 60;
/// The largest number that is appended to a generated name.
const MAX_NAME_SUFFIX: usize = 50;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateArguments {
    agent: String,
    #[serde(default)]
    input: String,
    name: Option<String>,
    when: Option<String>,
    cron_expression: Option<String>,
    every: Option<String>,
    at: Option<String>,
    start_at: Option<String>,
    end_at: Option<String>,
    time_zone: Option<String>,
}

/// Creates a schedule for the user, or holds the call if a model decided on it and the setting `confirm` of the agent
/// is not `never`. Without a name, the schedule gets one from [`generate_name`]. If that is in use, a number from 2 to
/// [`MAX_NAME_SUFFIX`] is appended. The answer contains the schedule and the name of its agent.
///
/// Fails if the agent is not found or ambiguous, or the settings are invalid. Fails if the chosen name or all numbers
/// are in use. Also fails if there is no scheduler, or if the user is not an administrator.
pub(crate) async fn create(mut call: BuiltInCall<'_>, tx: &mut Transaction) -> Result<ToolOutcome, Error> {
    let given = call.arguments.clone();
    let arguments: CreateArguments = call.parse_arguments()?;
    let scheduler = scheduler(&call)?;
    let entry = agents::find(&call, &arguments.agent)?;
    let name = arguments.name.filter(|name| !name.trim().is_empty());
    let is_chosen = name.is_some();
    let name = name.unwrap_or_else(|| generate_name(&arguments.input, &entry.agent.name));
    let draft = ScheduleDraft {
        name: Some(name.clone()),
        agent_id: Some(entry.agent.id.clone()),
        when: arguments.when,
        cron_expression: arguments.cron_expression,
        every: arguments.every,
        at: arguments.at,
        start_at: arguments.start_at,
        end_at: arguments.end_at,
        time_zone: arguments.time_zone,
        input_parameters: Some(Map::from_iter([(INPUT_KEY.to_owned(), arguments.input.into())])),
        ..ScheduleDraft::default()
    };
    let mut checked = scheduler.check(&call.user, draft)?;
    if call.is_unconfirmed_decision(entry.agent.confirm != RunConfirmation::Never) {
        let mut held = given;
        held.insert("agent".to_owned(), json!(entry.agent.id));
        return Ok(ToolOutcome::Held(HeldCall::opaque(SCHEDULE_AGENT, held)));
    }
    for n in 2.. {
        match scheduler.create(tx, call.user.id, &checked).await {
            Ok(schedule) => {
                let change = ScheduleChange { before: None, after: Some(&schedule) };
                audit(&call, tx, AuditAction::ScheduleCreated, change).await?;
                let mut data = schedule_data(&schedule);
                data["agent"] = entry.agent.name.as_str().into();
                agents::add_worker_note(&call, &mut data);
                return Ok(ToolOutcome::Done(ToolAnswer::success(data)));
            }
            // A generated name gets a number if it is in use.
            Err(store::Error::AlreadyExists(_)) if !is_chosen && n <= MAX_NAME_SUFFIX => {
                checked.settings.name = format!("{name} ({n})");
            }
            Err(store::Error::AlreadyExists(_)) => {
                let message = format!("A schedule named '{name}' already exists. Choose another name.");
                return Err(Error::Failure(ToolFailure::new(answer::VALIDATION_ERROR, message)));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::Failure(ToolFailure::new(answer::VALIDATION_ERROR, "No free name was found. Give the schedule a name.")))
}

/// Lists the schedules of all users, at most [`MAX_SCHEDULES`]. Fails if the user is not an administrator.
pub(crate) async fn list(call: BuiltInCall<'_>, conn: &mut Conn) -> Result<ToolOutcome, Error> {
    let schedules: Vec<_> = all_schedules(&call, conn).await?.iter().map(summary).collect();
    Ok(ToolOutcome::Done(ToolAnswer::success(
        json!({"success": true, "count": schedules.len(), "schedules": schedules}),
    )))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SelectArguments {
    schedule: String,
    reason: Option<String>,
}

/// Pauses a schedule of any user. `changed` is false in the answer if it was not enabled. Fails if the schedule is not
/// found.
pub(crate) async fn pause(mut call: BuiltInCall<'_>, tx: &mut Transaction) -> Result<ToolOutcome, Error> {
    let SelectArguments { schedule, reason } = call.parse_arguments()?;
    let found = find(&call, tx, &schedule).await?;
    let paused = scheduler(&call)?.pause(tx, OwnerScope::AllUsers, found.id, reason.as_deref()).await?;
    let change = ScheduleChange { before: Some(&found), after: Some(&paused) };
    audit(&call, tx, AuditAction::SchedulePaused, change).await?;
    change_outcome(&paused, found.enabled)
}

/// Resumes a schedule of any user, or holds the call if a model decided on it and the setting `confirm` of the agent is
/// not `never`. `changed` is false in the answer if it was enabled already. The argument `reason` is ignored. Fails if
/// the schedule is not found or ambiguous, or if it has no future occurrences. Also fails if there is no scheduler, or
/// if the user is not an administrator.
pub(crate) async fn resume(mut call: BuiltInCall<'_>, tx: &mut Transaction) -> Result<ToolOutcome, Error> {
    let SelectArguments { schedule, .. } = call.parse_arguments()?;
    let found = find(&call, tx, &schedule).await?;
    let agent = call.tools.supervisor.as_ref().and_then(|supervisor| supervisor.agent(&found.settings.agent_id));
    let is_exempt = agent.is_some_and(|entry| entry.agent.confirm == RunConfirmation::Never);
    if call.is_unconfirmed_decision(!is_exempt) {
        let held = ToolArguments::from_iter([("schedule".to_owned(), json!(found.settings.name))]);
        return Ok(ToolOutcome::Held(HeldCall::opaque(RESUME_SCHEDULE, held)));
    }
    match scheduler(&call)?.resume(tx, OwnerScope::AllUsers, found.id).await {
        Ok(resumed) => {
            let change = ScheduleChange { before: Some(&found), after: Some(&resumed) };
            audit(&call, tx, AuditAction::ScheduleResumed, change).await?;
            let mut data = schedule_data(&resumed);
            data["changed"] = (!found.enabled).into();
            agents::add_worker_note(&call, &mut data);
            Ok(ToolOutcome::Done(ToolAnswer::success(data)))
        }
        Err(store::Error::AlreadyEnded) => {
            let message = format!(
                "The schedule '{}' has no future occurrences. Change its cron expression, interval or end date first.",
                found.settings.name
            );
            Err(Error::Failure(ToolFailure::new(answer::VALIDATION_ERROR, message)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Adds a record of a change by the user to the audit log. Does nothing if the schedule is unchanged.
async fn audit(
    call: &BuiltInCall<'_>,
    tx: &mut Transaction,
    action: AuditAction,
    change: ScheduleChange<'_>,
) -> Result<(), Error> {
    Ok(scheduler(call)?.audit(tx, Actor::tool_user(call.user.id), action, change).await?)
}

fn change_outcome(schedule: &Schedule, changed: bool) -> Result<ToolOutcome, Error> {
    let mut data = schedule_data(schedule);
    data["changed"] = changed.into();
    Ok(ToolOutcome::Done(ToolAnswer::success(data)))
}

/// Returns the successful answer about one schedule: the main fields at the top level, and its summary as `schedule`.
fn schedule_data(schedule: &Schedule) -> Value {
    json!({
        "success": true,
        "schedule_id": schedule.id,
        "name": schedule.settings.name,
        "agent_id": schedule.settings.agent_id,
        "state": schedule.state,
        "next_execution": schedule.next_execution,
        "schedule": summary(schedule),
    })
}

/// Returns the fields of a schedule that are useful for a model: the input, the times, the state and the last
/// execution. Other parameters, the start, the end and the owner are not included. Leaves out fields without a value.
fn summary(schedule: &Schedule) -> Value {
    let settings = &schedule.settings;
    let mut summary = json!({
        "id": schedule.id,
        "name": settings.name,
        "agent_id": settings.agent_id,
        "input": settings.input_parameters.get(INPUT_KEY),
        "cron_expression": settings.cron_expression,
        "every": settings.every.map(|length| length.to_string()),
        "at": settings.at,
        "time_zone": settings.time_zone,
        "state": schedule.state,
        "paused_reason": schedule.paused_reason,
        "next_execution": schedule.next_execution,
        "last_execution": schedule.last_execution,
        "last_status": schedule.last_status,
        "paused_at": schedule.paused_at,
    });
    if let Some(fields) = summary.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    summary
}

/// Returns true if the user has these tools.
pub(crate) fn are_available(scheduler: Option<&Scheduler>, user: &User) -> bool {
    scheduler.is_some() && user.is_admin()
}

/// Returns the scheduler. Fails if there is none or if the user is not an administrator.
fn scheduler<'a>(call: &BuiltInCall<'a>) -> Result<&'a Scheduler, Error> {
    let missing =
        || Error::Failure(ToolFailure::new(answer::UNAVAILABLE, "Schedules are not available on this server."));
    call.tools.scheduler.as_ref().filter(|_| call.user.is_admin()).ok_or_else(missing)
}

/// Returns the schedules of all users, at most [`MAX_SCHEDULES`]. Fails if the user is not an administrator.
async fn all_schedules(call: &BuiltInCall<'_>, conn: &mut Conn) -> Result<Vec<Schedule>, Error> {
    scheduler(call)?;
    let filter = ScheduleFilter::default();
    let now = call.tools.clock.now();
    Ok(store::schedules::list(conn, OwnerScope::AllUsers, &filter, None, MAX_SCHEDULES, now).await?.rows)
}

/// Finds a schedule of any user by its id, its name or a unique part of its name, ignoring case. An exact match has
/// priority. Searches only [`MAX_SCHEDULES`] schedules. Fails with `NOT_FOUND` if none matches or `name` is blank, and
/// with `VALIDATION_ERROR` and the matching names if several match. Fails with `UNAVAILABLE` if there is no scheduler
/// or the user is not an administrator.
pub(crate) async fn find(call: &BuiltInCall<'_>, conn: &mut Conn, name: &str) -> Result<Schedule, Error> {
    let query = name.trim().to_lowercase();
    let known = all_schedules(call, conn).await?;
    let is_exact =
        |schedule: &&Schedule| schedule.settings.name.to_lowercase() == query || schedule.id.to_string() == query;
    if let Some(schedule) = known.iter().find(is_exact) {
        return Ok(schedule.clone());
    }
    let part = |schedule: &&Schedule| !query.is_empty() && schedule.settings.name.to_lowercase().contains(&query);
    let found: Vec<_> = known.iter().filter(part).collect();
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        [] => {
            let message = format!("There is no schedule named '{name}'.");
            Err(Error::Failure(ToolFailure::new(answer::NOT_FOUND, message)))
        }
        several => {
            let names: Vec<_> = several.iter().map(|schedule| format!("'{}'", schedule.settings.name)).collect();
            let message = format!("'{name}' is ambiguous. It matches {}.", names.join(" and "));
            Err(Error::Failure(ToolFailure::new(answer::VALIDATION_ERROR, message)))
        }
    }
}

/// Returns a name made of the first words of the input, without a final "." or "!". It has at most
/// [`MAX_GENERATED_NAME_CHARS`] characters. Returns the name of the agent if the input is empty or its first word is
/// too long.
fn generate_name(input: &str, agent: &str) -> String {
    let input = input.trim().trim_end_matches(['.', '!']);
    let mut name = String::new();
    for word in input.split_whitespace() {
        if name.chars().count() + word.chars().count() >= MAX_GENERATED_NAME_CHARS {
            break;
        }
        name = if name.is_empty() { word.to_owned() } else { format!("{name} {word}") };
    }
    if name.is_empty() { agent.to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_use_the_first_words_of_the_input() {
        assert_eq!(generate_name("tidy the changelog.", "Codex"), "tidy the changelog");
        assert_eq!(generate_name(" ", "Codex"), "Codex");
        assert_eq!(generate_name(&"word ".repeat(40), "Codex"), "word ".repeat(12).trim_end());
        assert_eq!(generate_name(&"x".repeat(200), "Codex"), "Codex");
    }
}
