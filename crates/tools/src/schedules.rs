//! What the tools do with schedules: make one, list them, pause and resume. Whoever has a schedule runs programs on this
//! host, so all of it is for administrators (OPS-6); for others these tools are not there.

use model::User;
use model::schedule::{Draft, INPUT, Schedule};
use scheduler::Scheduler;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use store::executions::Whose;
use store::schedules::Filter;
use store::{Conn, Transaction};

use crate::answer::{self, Error, Failure};
use crate::{Answer, Call, Outcome, agents};

/// How many are looked through for a name, and how many a list has.
const MOST: i64 = 200;
/// How much of what an agent is asked for becomes the name of its schedule, in characters.
const NAME: usize = 60;
/// How many schedules may go by the same words.
const NAMESAKES: usize = 50;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    agent: String,
    #[serde(default)]
    input: String,
    name: Option<String>,
    cron_expression: Option<String>,
    every: Option<String>,
    at: Option<String>,
    start_at: Option<String>,
    end_at: Option<String>,
    time_zone: Option<String>,
}

pub(crate) async fn create(mut call: Call<'_>, tx: &mut Transaction) -> Result<Outcome, Error> {
    let wanted: Wanted = call.read()?;
    let scheduler = scheduler(&call)?;
    let entry = agents::named(&call, &wanted.agent)?;
    let name = wanted.name.filter(|name| !name.trim().is_empty());
    let is_given = name.is_some();
    let name = name.unwrap_or_else(|| name_of(&wanted.input, &entry.agent.name));
    let draft = Draft {
        name: Some(name.clone()),
        agent_id: Some(entry.agent.id.clone()),
        cron_expression: wanted.cron_expression,
        every: wanted.every,
        at: wanted.at,
        start_at: wanted.start_at,
        end_at: wanted.end_at,
        time_zone: wanted.time_zone,
        input_parameters: Some(Map::from_iter([(INPUT.to_owned(), wanted.input.into())])),
        ..Draft::default()
    };
    let mut checked = scheduler.check(&call.user, draft)?;
    for n in 2.. {
        match scheduler.create(tx, call.user.id, &checked).await {
            Ok(schedule) => {
                let mut data = about(&schedule);
                data["agent"] = entry.agent.name.as_str().into();
                return Ok(Outcome::Done(Answer::done(data)));
            }
            // A name that nobody has chosen gives way.
            Err(store::Error::Taken(_)) if !is_given && n <= NAMESAKES => {
                checked.settings.name = format!("{name} ({n})");
            }
            Err(store::Error::Taken(_)) => {
                let message = format!("There is a schedule named '{name}' already.");
                return Err(Error::Failure(Failure::new(answer::VALIDATION_ERROR, message)));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::Failure(Failure::new(answer::VALIDATION_ERROR, "There is no name left for it.")))
}

pub(crate) async fn list(call: Call<'_>, conn: &mut Conn) -> Result<Outcome, Error> {
    let schedules: Vec<_> = theirs(&call, conn).await?.iter().map(shown).collect();
    Ok(Outcome::Done(Answer::done(json!({"success": true, "count": schedules.len(), "schedules": schedules}))))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    schedule: String,
    reason: Option<String>,
}

pub(crate) async fn pause(mut call: Call<'_>, tx: &mut Transaction) -> Result<Outcome, Error> {
    let One { schedule, reason } = call.read()?;
    let found = find(&call, tx, &schedule).await?;
    let paused = scheduler(&call)?.pause(tx, Whose::Everyones, found.id, reason.as_deref()).await?;
    changed(&paused, found.enabled)
}

pub(crate) async fn resume(mut call: Call<'_>, tx: &mut Transaction) -> Result<Outcome, Error> {
    let One { schedule, .. } = call.read()?;
    let found = find(&call, tx, &schedule).await?;
    match scheduler(&call)?.resume(tx, Whose::Everyones, found.id).await {
        Ok(resumed) => changed(&resumed, !found.enabled),
        Err(store::Error::Ended) => {
            let message = format!("The schedule '{}' has no more times.", found.settings.name);
            Err(Error::Failure(Failure::new(answer::VALIDATION_ERROR, message)))
        }
        Err(error) => Err(error.into()),
    }
}

fn changed(schedule: &Schedule, changed: bool) -> Result<Outcome, Error> {
    let mut data = about(schedule);
    data["changed"] = changed.into();
    Ok(Outcome::Done(Answer::done(data)))
}

fn about(schedule: &Schedule) -> Value {
    json!({
        "success": true,
        "schedule_id": schedule.id,
        "name": schedule.settings.name,
        "agent_id": schedule.settings.agent_id,
        "state": schedule.state,
        "next_execution": schedule.next_execution,
        "schedule": shown(schedule),
    })
}

/// What is worth knowing about a schedule.
fn shown(schedule: &Schedule) -> Value {
    let settings = &schedule.settings;
    let mut shown = json!({
        "id": schedule.id,
        "name": settings.name,
        "agent_id": settings.agent_id,
        "input": settings.input_parameters.get(INPUT),
        "cron_expression": settings.cron_expression,
        "every": settings.every.map(|length| length.to_string()),
        "at": settings.at,
        "time_zone": settings.time_zone,
        "state": schedule.state,
        "paused_reason": schedule.paused_reason,
        "next_execution": schedule.next_execution,
        "last_execution": schedule.last_execution,
        "last_status": schedule.last_status,
    });
    if let Some(fields) = shown.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    shown
}

/// Whether the user has these tools.
pub(crate) fn are_there(scheduler: Option<&Scheduler>, user: &User) -> bool {
    scheduler.is_some() && user.is_admin()
}

fn scheduler<'a>(call: &Call<'a>) -> Result<&'a Scheduler, Error> {
    let missing = || Error::Failure(Failure::new(answer::UNAVAILABLE, "There are no schedules here."));
    call.tools.scheduler.as_ref().filter(|_| call.user.is_admin()).ok_or_else(missing)
}

/// All there are: administrators see everyone's.
async fn theirs(call: &Call<'_>, conn: &mut Conn) -> Result<Vec<Schedule>, Error> {
    scheduler(call)?;
    let filter = Filter::default();
    let now = call.tools.clock.now();
    Ok(store::schedules::list(conn, Whose::Everyones, &filter, None, MOST, now).await?.rows)
}

/// The schedule that is meant: by its id, its name, or a part of its name that only one has.
async fn find(call: &Call<'_>, conn: &mut Conn, name: &str) -> Result<Schedule, Error> {
    let wanted = name.trim().to_lowercase();
    let known = theirs(call, conn).await?;
    let is =
        |schedule: &&Schedule| schedule.settings.name.to_lowercase() == wanted || schedule.id.to_string() == wanted;
    if let Some(schedule) = known.iter().find(is) {
        return Ok(schedule.clone());
    }
    let part = |schedule: &&Schedule| !wanted.is_empty() && schedule.settings.name.to_lowercase().contains(&wanted);
    let found: Vec<_> = known.iter().filter(part).collect();
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        [] => {
            let message = format!("There is no schedule named '{name}'.");
            Err(Error::Failure(Failure::new(answer::NOT_FOUND, message)))
        }
        several => {
            let names: Vec<_> = several.iter().map(|schedule| format!("'{}'", schedule.settings.name)).collect();
            let message = format!("'{name}' could be {}.", names.join(" or "));
            Err(Error::Failure(Failure::new(answer::VALIDATION_ERROR, message)))
        }
    }
}

/// By what the agent is asked for, or by the agent.
fn name_of(input: &str, agent: &str) -> String {
    let input = input.trim().trim_end_matches(['.', '!']);
    let mut name = String::new();
    for word in input.split_whitespace() {
        if name.chars().count() + word.chars().count() >= NAME {
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
    fn a_schedule_goes_by_what_is_asked_for() {
        assert_eq!(name_of("tidy the changelog.", "Codex"), "tidy the changelog");
        assert_eq!(name_of(" ", "Codex"), "Codex");
        assert_eq!(name_of(&"word ".repeat(40), "Codex"), "word ".repeat(12).trim_end());
        assert_eq!(name_of(&"x".repeat(200), "Codex"), "Codex");
    }
}
