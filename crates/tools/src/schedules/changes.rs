//! The handlers of the tools that change, delete, run and explain one schedule. Only administrators have these tools.

use jiff::Timestamp;
use model::agent::{AccessType, RunConfirmation};
use model::audit::AuditAction;
use model::due::DueDate;
use model::schedule::{INPUT_KEY, Schedule, ScheduleExplanation, SchedulePatch};
use scheduler::ScheduleChange;
use serde::Deserialize;
use serde_json::{Value, json};
use store::executions::OwnerScope;
use store::{Conn, Transaction};

use super::{SelectArguments, audit, change_outcome, find, schedule_data, scheduler};
use crate::answer::{self, Error, ToolFailure};
use crate::catalog::{DELETE_SCHEDULE, RUN_SCHEDULE, UPDATE_SCHEDULE};
use crate::{BuiltInCall, ConfirmationPolicy, Consent, HeldCall, ToolAnswer, ToolArguments, ToolOutcome, agents};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScheduleUpdateArguments {
    schedule: String,
    name: Option<String>,
    input: Option<String>,
    when: Option<String>,
    cron_expression: Option<String>,
    every: Option<String>,
    at: Option<String>,
    start_at: Option<String>,
    end_at: Option<String>,
    time_zone: Option<String>,
}

/// Changes the name, the input or the times of a schedule, or holds the call if a model decided on it and the setting
/// `confirm` of the agent is not `never`. New times replace the old ones, with their start and end. Other parameters of
/// the runs stay. Fails if the schedule is not found or ambiguous, comes from the configuration file, or if the new
/// settings are invalid. Also fails if there is no scheduler, or if the user is not an administrator.
pub(crate) async fn update(mut call: BuiltInCall<'_>, tx: &mut Transaction) -> Result<ToolOutcome, Error> {
    let given = call.arguments.clone();
    let arguments: ScheduleUpdateArguments = call.parse_arguments()?;
    let found = find(&call, tx, &arguments.schedule).await?;
    let mut patch = SchedulePatch {
        name: arguments.name,
        when: arguments.when,
        time_zone: arguments.time_zone,
        ..SchedulePatch::default()
    };
    if arguments.cron_expression.is_some() || arguments.every.is_some() || arguments.at.is_some() {
        patch.cron_expression = Some(arguments.cron_expression);
        patch.every = Some(arguments.every);
        patch.at = Some(arguments.at);
        patch.start_at = Some(arguments.start_at);
        patch.end_at = Some(arguments.end_at);
    } else {
        patch.start_at = arguments.start_at.map(Some);
        patch.end_at = arguments.end_at.map(Some);
    }
    if let Some(input) = arguments.input {
        let mut parameters = found.settings.input_parameters.clone();
        parameters.insert(INPUT_KEY.to_owned(), input.into());
        patch.input_parameters = Some(parameters);
    }
    let checked = scheduler(&call)?.check_change(&call.user, &found, patch)?;
    if call.is_unconfirmed_decision(!is_exempt(&call, &found)) {
        return Ok(hold(UPDATE_SCHEDULE, &found, given));
    }
    let changed = scheduler(&call)?.change(tx, OwnerScope::AllUsers, found.id, &checked).await;
    let changed = changed.map_err(|error| change_failure(error, &found))?;
    let change = ScheduleChange { before: Some(&found), after: Some(&changed) };
    audit(&call, tx, AuditAction::ScheduleUpdated, change).await?;
    change_outcome(&changed, changed.settings != found.settings)
}

/// Deletes a schedule with its history. The call is held until the user has confirmed it, unless the policy is
/// [`ConfirmationPolicy::Never`], because the deletion cannot be undone. Fails like [`update`].
pub(crate) async fn delete(mut call: BuiltInCall<'_>, tx: &mut Transaction) -> Result<ToolOutcome, Error> {
    let SelectArguments { schedule, .. } = call.parse_arguments()?;
    let found = find(&call, tx, &schedule).await?;
    let is_held = match call.consent {
        Consent::Given => false,
        Consent::AfterForeignText => true,
        Consent::UserRequest | Consent::ModelDecision => call.tools.confirmation != ConfirmationPolicy::Never,
    };
    if is_held {
        return Ok(hold(DELETE_SCHEDULE, &found, ToolArguments::new()));
    }
    let removed = scheduler(&call)?.remove(tx, OwnerScope::AllUsers, found.id).await;
    let removed = removed.map_err(|error| change_failure(error, &found))?;
    audit(&call, tx, AuditAction::ScheduleRemoved, ScheduleChange { before: Some(&removed), after: None }).await?;
    Ok(ToolOutcome::Done(ToolAnswer::success(schedule_data(&removed))))
}

/// Runs a schedule now, also if it is paused, and returns the id of the execution. The next occurrence does not change.
/// Holds the call instead if a model decided on it and the setting `confirm` of the agent requires a confirmation.
/// Fails if the schedule is not found or ambiguous, if its agent cannot run now, or if everything is stopped.
pub(crate) async fn run(mut call: BuiltInCall<'_>, tx: &mut Transaction) -> Result<ToolOutcome, Error> {
    let SelectArguments { schedule, .. } = call.parse_arguments()?;
    let found = find(&call, tx, &schedule).await?;
    let supervisor = call.tools.supervisor.as_ref();
    let entry = supervisor.and_then(|supervisor| supervisor.agent(&found.settings.agent_id));
    let needs_user = entry.as_ref().is_none_or(|entry| match entry.agent.confirm {
        RunConfirmation::Always => true,
        RunConfirmation::Writes => entry.agent.access_type == AccessType::ReadWrite,
        RunConfirmation::Never => false,
    });
    if call.is_unconfirmed_decision(needs_user) {
        return Ok(hold(RUN_SCHEDULE, &found, ToolArguments::new()));
    }
    let now = call.tools.clock.now();
    let row = store::schedules::get_row(tx, OwnerScope::AllUsers, found.id, now).await?;
    let scheduler = scheduler(&call)?;
    let submission = scheduler.prepare_run(&row).map_err(agents::submit_failure)?;
    let execution = scheduler.run_now(tx, OwnerScope::AllUsers, found.id, submission).await;
    let execution = execution.map_err(|error| change_failure(error, &found))?;
    let mut data = schedule_data(&found);
    data["execution_id"] = json!(execution);
    data["agent"] = entry.map(|entry| entry.agent.name.clone()).into();
    agents::add_worker_note(&call, &mut data);
    Ok(ToolOutcome::Done(ToolAnswer::success(data)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExplainArguments {
    schedule: String,
    at: Option<String>,
}

/// Explains the last occurrence of a schedule until `at`, or until now: if it ran, or why not. Fails if the schedule is
/// not found or ambiguous, or if `at` is no time.
pub(crate) async fn explain(mut call: BuiltInCall<'_>, conn: &mut Conn) -> Result<ToolOutcome, Error> {
    let ExplainArguments { schedule, at } = call.parse_arguments()?;
    let found = find(&call, conn, &schedule).await?;
    let at = match at {
        None => call.tools.clock.now(),
        Some(at) => parse_time(&at, &call.user.time_zone)?,
    };
    let explained = scheduler(&call)?.explain(conn, OwnerScope::AllUsers, found.id, at).await?;
    let ScheduleExplanation { due_at, decision, by_hand, text, .. } = explained;
    let mut data = schedule_data(&found);
    data["explanation"] = text.into();
    data["due_at"] = json!(due_at);
    data["decision"] = json!(decision.as_ref().map(|decision| decision.kind));
    data["reason"] = json!(decision.as_ref().and_then(|decision| decision.reason.as_deref()));
    data["decided_at"] = json!(decision.as_ref().map(|decision| decision.decided_at));
    data["manual_run"] = json!(by_hand.map(|run| run.decided_at));
    data["paused_at"] = json!(found.paused_at);
    Ok(ToolOutcome::Done(ToolAnswer::success(data)))
}

/// Returns the time. Without an offset it is in `zone`. A day is its last second. Fails if it is neither.
fn parse_time(text: &str, zone: &jiff::tz::TimeZone) -> Result<Timestamp, Error> {
    match DueDate::parse("at", text, zone)? {
        DueDate::Moment { at, .. } => Ok(at),
        DueDate::Day(day) => {
            let end = day.at(23, 59, 59, 0).to_zoned(zone.clone());
            let invalid = |_| ToolFailure::new(answer::VALIDATION_ERROR, "at is out of range.");
            Ok(end.map_err(|error| Error::Failure(invalid(error)))?.timestamp())
        }
    }
}

/// Returns true if the agent of the schedule is exempt from the confirmation of schedules.
fn is_exempt(call: &BuiltInCall<'_>, schedule: &Schedule) -> bool {
    let agent = call.tools.supervisor.as_ref().and_then(|supervisor| supervisor.agent(&schedule.settings.agent_id));
    agent.is_some_and(|entry| entry.agent.confirm == RunConfirmation::Never)
}

/// Holds a call. The schedule is given by its name, so that the question names it.
fn hold(tool: &str, schedule: &Schedule, mut arguments: ToolArguments) -> ToolOutcome {
    arguments.insert("schedule".to_owned(), Value::from(schedule.settings.name.as_str()));
    arguments.remove("confirmation");
    ToolOutcome::Held(HeldCall::opaque(tool, arguments))
}

/// Converts an error of the store that the user can act on.
fn change_failure(error: store::Error, schedule: &Schedule) -> Error {
    let name = &schedule.settings.name;
    let failed = |code, message| Error::Failure(ToolFailure::new(code, message));
    match error {
        store::Error::NotFound => failed(answer::NOT_FOUND, format!("There is no schedule named '{name}'.")),
        store::Error::DefinedInConfig => {
            let message = format!("The schedule '{name}' is defined in the configuration file. Change it there.");
            failed(answer::VALIDATION_ERROR, message)
        }
        store::Error::AlreadyExists(_) => failed(
            answer::VALIDATION_ERROR,
            "A schedule with this name already exists. Choose another name.".to_owned(),
        ),
        store::Error::AlreadyEnded => {
            failed(answer::VALIDATION_ERROR, format!("The schedule '{name}' has no future occurrences."))
        }
        error @ store::Error::QueueFull { .. } => failed(answer::UNAVAILABLE, format!("The agent is busy: {error}.")),
        error @ store::Error::Stopped { .. } => failed(answer::UNAVAILABLE, format!("No agent can run: {error}.")),
        other => other.into(),
    }
}
