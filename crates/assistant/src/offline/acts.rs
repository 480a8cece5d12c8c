//! What is done about each command, and what is said about it.

use jiff::civil::{Date, DateTime};
use jiff::{ToSpan, Unit, Zoned};
use model::due::Due;
use model::task::Status;
use redact::MARK;
use serde_json::{Value, json};
use tools::answer::NOT_FOUND;
use tools::{Arguments, Spec, Tool};
use understand::{Command, DueFilter, Field, Filter, Intent, Missing, Shift, StatusFilter, Tagging, Target, When};

use super::lookup::{Found, Prefer, current, find};
use super::{Ask, Policy, Reply, follow_up, small_talk, theirs};
use crate::shown::Mention;
use crate::wording;

/// The sentence about it; none where the loop asks for a confirmation instead.
type Said = Result<Option<String>, Ask>;

pub(super) fn carry_out(policy: &mut Policy<'_>, command: &follow_up::Wanted) -> Said {
    let follow_up::Wanted { command, pick, .. } = command;
    if let Some(missing) = command.missing {
        return Ok(Some(wording::missing(missing)));
    }
    match command.intent {
        Intent::CreateTask => create(policy, command),
        Intent::ListTasks => list(policy, command),
        Intent::CompleteTask => complete(policy, command, *pick),
        Intent::DeleteTask => delete(policy, command, *pick),
        Intent::UpdateTask => update(policy, command, *pick),
        Intent::ScheduleReminder => remind(policy, command, *pick),
        Intent::Undo => undo(policy),
        Intent::ClarificationNeeded => Ok(Some(wording::missing(Missing::Target))),
        Intent::Unknown => Ok(Some(small_talk::answer(&policy.prompt))),
    }
}

fn create(policy: &mut Policy<'_>, command: &Command) -> Said {
    let Some(title) = &command.title else { return Ok(Some(wording::missing(Missing::Title))) };
    let Some(spec) = policy.spec(Tool::Add) else { return Ok(Some(wording::trouble().to_owned())) };
    let (command, lost) = theirs::command(spec, command);
    let mut arguments = attributes(&command, &policy.prompt.request.now);
    arguments.insert("title".to_owned(), title.as_str().into());
    arguments.entry("priority").or_insert("medium".into());
    Ok(match policy.call(spec, arguments)? {
        Reply::Done(data) => {
            policy.last = Mention::of(task_of(data));
            Some(wording::but_no_place(wording::created(title_of(data, title)), &lost))
        }
        other => refused(other, title),
    })
}

fn list(policy: &mut Policy<'_>, command: &Command) -> Said {
    let Some(spec) = policy.spec(Tool::List) else { return Ok(Some(wording::trouble().to_owned())) };
    let filter = match spec.is_ours() {
        true => command.filter.clone(),
        false => theirs::filter(spec, &command.filter, policy.prompt.request.now.date()),
    };
    let arguments = filters(spec, &filter);
    let data = match policy.call(spec, arguments)? {
        Reply::Done(data) => data,
        other => return Ok(refused(other, "")),
    };
    let status = filter.status.unwrap_or(StatusFilter::Pending);
    let wanted = |task: &&Value| match status {
        // Another's list may not know the difference.
        _ if spec.is_ours() => true,
        StatusFilter::All => true,
        StatusFilter::Pending => task["status"] != "completed",
        StatusFilter::Completed => task["status"] == "completed",
    };
    let tasks: Vec<&Value> = data["tasks"].as_array().into_iter().flatten().filter(wanted).collect();
    let anything = Filter { status: None, ..filter.clone() } == Filter::default();
    if tasks.is_empty() && anything && filter.status != Some(StatusFilter::Completed) {
        return none_open(policy, spec, &filter);
    }
    let today = policy.prompt.request.now.date();
    let lines: Vec<_> = tasks.iter().map(|task| line(task, today)).collect();
    let total = data["total"].as_u64().and_then(|total| usize::try_from(total).ok()).filter(|_| spec.is_ours());
    let total = total.unwrap_or(tasks.len());
    let said = if filter.unsupported { &filter } else { &command.filter };
    let list = wording::list(&lines, total, said);
    Ok(Some(if filter.unsupported { format!("{}\n{list}", wording::unfiltered()) } else { list }))
}

/// No tasks at all, or none that is open: only another look can tell.
fn none_open(policy: &mut Policy<'_>, spec: &Spec, filter: &Filter) -> Said {
    if filter.status == Some(StatusFilter::All) {
        return Ok(Some(wording::no_tasks()));
    }
    let everything = Arguments::from_iter([("status".to_owned(), json!("all"))]);
    let any = match policy.call(spec, everything)? {
        Reply::Done(data) => data["tasks"].as_array().is_some_and(|tasks| !tasks.is_empty()),
        Reply::Refused(..) | Reply::Held => false,
    };
    Ok(Some(if any { wording::all_done() } else { wording::no_tasks() }))
}

/// Whether it is done, its title, and what is worth knowing besides.
fn line(task: &Value, today: Date) -> (bool, &str, Option<String>) {
    let done = task["status"] == "completed";
    let due = task["due_date"].as_str().filter(|_| !done).and_then(|due| wording::due_words(due, today));
    let extra = match (due, task["priority"] == "high" && !done) {
        (Some(due), true) => Some(format!("due {due}, high priority")),
        (Some(due), false) => Some(format!("due {due}")),
        (None, true) => Some("high priority".to_owned()),
        (None, false) => None,
    };
    (done, task["title"].as_str().unwrap_or_default(), extra)
}

fn complete(policy: &mut Policy<'_>, command: &Command, pick: Option<usize>) -> Said {
    let target = command.target.as_ref();
    if target == Some(&Target::All) || target.is_none() {
        return several(policy, Tool::CompleteSeveral, command, None);
    }
    let found = match target {
        Some(target) => find_done(policy, target, pick)?,
        None => Found::Nothing,
    };
    let mention = match one_of(found) {
        Ok(mention) => mention,
        Err(Miss::Several(mentions)) => return several(policy, Tool::CompleteSeveral, command, Some(mentions)),
        Err(Miss::Said(words)) => return Ok(Some(words)),
    };
    if mention.completed {
        return Ok(Some(wording::already_completed(&mention.title)));
    }
    let by_update = policy.spec(Tool::Update).filter(|spec| spec.takes("status"));
    let outcome = match (policy.spec(Tool::Complete), by_update) {
        (Some(spec), _) => policy.call(spec, of_task(spec, &mention))?,
        (None, Some(spec)) => {
            let mut arguments = of_task(spec, &mention);
            arguments.insert("status".to_owned(), Status::Completed.as_str().into());
            policy.call(spec, arguments)?
        }
        (None, None) => return Ok(Some(wording::trouble().to_owned())),
    };
    Ok(settled(policy, outcome, &mention, wording::completed, wording::already_completed))
}

/// "I paid the rent" may be about "pay the rent" or about "rent".
fn find_done(policy: &mut Policy<'_>, target: &Target, pick: Option<usize>) -> Result<Found, Ask> {
    let found = find(policy, target, Prefer::Open, pick)?;
    let (Target::Named(words), Found::None(_)) = (target, &found) else { return Ok(found) };
    let Some((_, object)) = words.split_once(' ') else { return Ok(found) };
    Ok(match find(policy, &Target::Named(object.to_owned()), Prefer::Open, pick)? {
        Found::None(_) => found,
        other => other,
    })
}

fn delete(policy: &mut Policy<'_>, command: &Command, pick: Option<usize>) -> Said {
    let target = command.target.as_ref();
    if target == Some(&Target::All) || target.is_none() {
        return several(policy, Tool::DeleteSeveral, command, None);
    }
    let found = match target {
        Some(target) => find(policy, target, Prefer::OpenOnTie, pick)?,
        None => Found::Nothing,
    };
    let mention = match one_of(found) {
        Ok(mention) => mention,
        Err(Miss::Several(mentions)) => return several(policy, Tool::DeleteSeveral, command, Some(mentions)),
        Err(Miss::Said(words)) => return Ok(Some(words)),
    };
    let Some(spec) = policy.spec(Tool::Delete) else { return Ok(Some(wording::trouble().to_owned())) };
    let outcome = policy.call(spec, of_task(spec, &mention))?;
    let said = settled(policy, outcome, &mention, wording::deleted, wording::unchanged);
    Ok(said)
}

/// All that the filter matches, or these.
fn several(policy: &mut Policy<'_>, tool: Tool, command: &Command, named: Option<Vec<Mention>>) -> Said {
    let Some(spec) = policy.spec(tool) else { return Ok(Some(wording::too_many_calls(&[]))) };
    if command.filter.unsupported {
        return Ok(Some(wording::no_such_filter()));
    }
    let arguments = match &named {
        Some(mentions) => {
            let ids: Vec<_> = mentions.iter().filter_map(|mention| mention.id.clone()).collect();
            let key = if spec.takes("todo_ids") { "todo_ids" } else { "task_ids" };
            Arguments::from_iter([(key.to_owned(), json!(ids))])
        }
        None => {
            let mut filter = command.filter.clone();
            // "delete all my tasks" means the completed ones too.
            if filter == Filter::default() {
                let all = tool == Tool::DeleteSeveral;
                filter.status = Some(if all { StatusFilter::All } else { StatusFilter::Pending });
            }
            filters(spec, &filter)
        }
    };
    Ok(match policy.call(spec, arguments)? {
        Reply::Done(data) => {
            let count = data["count"].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or_default();
            let today = policy.prompt.request.now.date();
            Some(match tool {
                Tool::CompleteSeveral => wording::with_again(wording::completed_several(count), data, today),
                _ => wording::deleted_several(count),
            })
        }
        Reply::Refused(NOT_FOUND, _) => Some(wording::list(&[], 0, &command.filter)),
        other => refused(other, ""),
    })
}

fn update(policy: &mut Policy<'_>, command: &Command, pick: Option<usize>) -> Said {
    let prefer = if command.status == Some(Status::Pending) { Prefer::Completed } else { Prefer::OpenOnTie };
    let found = match &command.target {
        Some(target) => find(policy, target, prefer, pick)?,
        None => Found::Nothing,
    };
    let mention = match one_of(found) {
        Ok(mention) => mention,
        Err(Miss::Several(_)) => return Ok(Some(wording::one_at_a_time())),
        Err(Miss::Said(words)) => return Ok(Some(words)),
    };
    let Some(spec) = policy.spec(Tool::Update) else { return Ok(Some(wording::trouble().to_owned())) };
    let (command, lost) = &theirs::command(spec, command);
    let mention = if builds_on(command) { current(policy, mention)? } else { mention };
    let command = &Command { when: moved(policy, command, mention.due.as_deref()), ..amended(command, &mention) };
    let mut arguments = of_task(spec, &mention);
    arguments.extend(attributes(command, &policy.prompt.request.now));
    if let Some(title) = &command.title {
        arguments.insert("title".to_owned(), title.as_str().into());
    }
    if let Some(status) = command.status {
        arguments.insert("status".to_owned(), status.as_str().into());
    }
    // The last of its tags may have gone.
    if command.tagging == Tagging::Remove {
        arguments.insert("tags".to_owned(), json!(command.tags));
    }
    for field in &command.clear {
        let (name, nothing) = match field {
            Field::Description => ("description", json!("")),
            Field::Due => ("due_date", json!("")),
            Field::Recurrence => ("recurrence", json!("")),
            Field::Tags => ("tags", json!([])),
        };
        arguments.insert(name.to_owned(), nothing);
    }
    let changes = changes(policy, command);
    if changes.is_empty() {
        return Ok(Some(if lost.is_empty() { wording::missing(Missing::Change) } else { wording::no_place(lost) }));
    }
    let outcome = policy.call(spec, arguments)?;
    // By the title that the user knows it by, unless the record of it was not to be kept.
    let known = (!mention.title.contains(MARK)).then(|| mention.title.clone());
    let words =
        |title: &str| wording::but_no_place(wording::updated(known.as_deref().unwrap_or(title), &changes), lost);
    Ok(settled(policy, outcome, &mention, words, wording::unchanged))
}

/// Whether what the task is to be depends on what it is now.
fn builds_on(command: &Command) -> bool {
    command.shift.is_some() || command.clock.is_some() || command.adds || command.tagging != Tagging::Set
}

/// With the tags and the description that the task has where the change only adds to them or takes some away.
fn amended(command: &Command, mention: &Mention) -> Command {
    let mut command = command.clone();
    let named = |tags: &[String], tag: &str| tags.iter().any(|known| known.eq_ignore_ascii_case(tag));
    match command.tagging {
        Tagging::Set => {}
        Tagging::Add => {
            let new = std::mem::take(&mut command.tags);
            let old = mention.tags.iter().filter(|tag| !named(&new, tag)).cloned();
            command.tags = old.chain(new.iter().cloned()).collect();
        }
        Tagging::Remove => {
            let gone = std::mem::take(&mut command.tags);
            command.tags = mention.tags.iter().filter(|tag| !named(&gone, tag)).cloned().collect();
        }
    }
    if let (true, Some(old), Some(new)) = (command.adds, &mention.description, &command.description) {
        command.description = Some(format!("{old}\n{new}"));
    }
    command
}

/// "two days later" and "at 5pm" are about the date that the task has; without one they are about now. Another day keeps
/// the time of day.
fn moved(policy: &Policy<'_>, command: &Command, due: Option<&str>) -> Option<When> {
    let zone = policy.prompt.request.now.time_zone();
    let due = due.and_then(|due| Due::parse("due_date", due, zone).ok());
    let from_now = command.when;
    let (day, time) = match due {
        None => return from_now,
        Some(Due::Day(day)) => (day, None),
        Some(Due::Moment { at, .. }) => {
            let local = at.to_zoned(zone.clone()).datetime();
            (local.date(), Some(local.time()))
        }
    };
    if let Some(Shift { months, days, minutes }) = command.shift {
        let span = months.months().days(days);
        return match time {
            Some(time) => {
                let moved = day.to_datetime(time).checked_add(span.minutes(minutes)).ok()?;
                Some(When::Time(moved))
            }
            // A day has no hours to move by.
            None if minutes != 0 => from_now,
            None => day.checked_add(span).ok().map(When::Day),
        };
    }
    match (command.clock, from_now, time) {
        (Some(clock), ..) => Some(When::Time(day.to_datetime(clock))),
        (None, Some(When::Day(new)), Some(time)) => Some(When::Time(new.to_datetime(time))),
        _ => from_now,
    }
}

/// What is new about a task, in words.
fn changes(policy: &Policy<'_>, command: &Command) -> Vec<String> {
    let today = policy.prompt.request.now.date();
    let mut changes = Vec::new();
    changes.extend(command.title.as_ref().map(|title| format!("the title '{title}'")));
    changes.extend(command.description.as_ref().map(|_| "a new description".to_owned()));
    changes.extend(command.when.map(|when| match when {
        When::Day(day) => format!("a due date {}", wording::when(day, None, today)),
        When::Time(time) => format!("a due date {}", wording::at(time, today)),
    }));
    changes.extend(command.recurrence.as_ref().map(|_| "a new repetition".to_owned()));
    changes.extend(command.priority.map(wording::priority));
    if command.tags.is_empty() && command.tagging == Tagging::Remove {
        changes.push("no tags".to_owned());
    }
    if !command.tags.is_empty() {
        changes.push(format!(
            "the {} {}",
            if command.tags.len() == 1 { "tag" } else { "tags" },
            wording::and(&command.tags)
        ));
    }
    changes.extend(command.status.map(|status| match status {
        Status::Pending => "an open status".to_owned(),
        Status::Completed => "a completed status".to_owned(),
    }));
    changes.extend(command.clear.iter().map(|field| match field {
        Field::Description => "no description".to_owned(),
        Field::Due => "no due date".to_owned(),
        Field::Recurrence => "no repetition".to_owned(),
        Field::Tags => "no tags".to_owned(),
    }));
    changes
}

fn remind(policy: &mut Policy<'_>, command: &Command, pick: Option<usize>) -> Said {
    let found = match &command.target {
        Some(target) => find(policy, target, Prefer::Open, pick)?,
        None => Found::Nothing,
    };
    let mention = match one_of(found) {
        Ok(mention) => mention,
        Err(Miss::Several(_)) => return Ok(Some(wording::one_at_a_time())),
        Err(Miss::Said(words)) => return Ok(Some(words)),
    };
    let now = &policy.prompt.request.now;
    let at = match (command.when, command.repeat_interval_minutes) {
        (Some(When::Time(at)), _) => at,
        // "Every half hour" begins in half an hour.
        (None, Some(minutes)) => now.saturating_add(minutes.minutes()).datetime(),
        _ => return Ok(Some(wording::missing(Missing::Time))),
    };
    let at = at.round(Unit::Second).unwrap_or(at);
    let Some(spec) = policy.spec(Tool::Remind) else { return Ok(Some(wording::trouble().to_owned())) };
    let mut arguments = of_task(spec, &mention);
    arguments.insert("remind_at".to_owned(), time_text(at, now).into());
    let numbers =
        [("repeat_interval_minutes", command.repeat_interval_minutes), ("repeat_count", command.repeat_count)];
    for (name, number) in numbers {
        arguments.extend(number.map(|number| (name.to_owned(), number.into())));
    }
    let when = wording::at(at, policy.prompt.request.now.date());
    let repeats = wording::repeats(command.repeat_interval_minutes, command.repeat_count);
    let outcome = policy.call(spec, arguments)?;
    Ok(settled(
        policy,
        outcome,
        &mention,
        |title| wording::reminder_set(title, &when, repeats.as_deref()),
        wording::unchanged,
    ))
}

fn undo(policy: &mut Policy<'_>) -> Said {
    let Some(spec) = policy.spec(Tool::Undo) else { return Ok(Some(wording::cannot_undo())) };
    Ok(Some(match policy.call(spec, Arguments::new())? {
        Reply::Done(data) => {
            let titles: Vec<_> =
                data["tasks"].as_array().into_iter().flatten().map(|task| title_of(task, "")).collect();
            wording::undone(data["undone"].as_str().unwrap_or_default(), &titles)
        }
        Reply::Refused(NOT_FOUND, _) => wording::nothing_to_undo(),
        Reply::Refused(..) | Reply::Held => wording::trouble().to_owned(),
    }))
}

/// Why there is not one task to act on.
enum Miss {
    Several(Vec<Mention>),
    Said(String),
}

fn one_of(found: Found) -> Result<Mention, Miss> {
    match found {
        Found::One(mention) => Ok(mention),
        Found::Several(mentions) => Err(Miss::Several(mentions)),
        Found::Ambiguous(query, options) => {
            let titles: Vec<_> = options.iter().map(|option| option.title.as_str()).collect();
            Err(Miss::Said(wording::ambiguous(&query, &titles)))
        }
        Found::None(query) => Err(Miss::Said(wording::not_found(&query))),
        Found::Nothing => Err(Miss::Said(wording::missing(Missing::Target))),
        Found::Failed => Err(Miss::Said(wording::trouble().to_owned())),
    }
}

/// The sentence about a call that was meant for one task.
fn settled(
    policy: &mut Policy<'_>,
    outcome: Reply<'_>,
    mention: &Mention,
    words: impl Fn(&str) -> String,
    unchanged: fn(&str) -> String,
) -> Option<String> {
    policy.last = Some(mention.clone());
    match outcome {
        Reply::Done(data) => {
            // Of one that repeats, the next is what is spoken of from here on.
            policy.last = Mention::of(&data["next_task"]).or(Mention::of(task_of(data))).or(policy.last.take());
            let title = title_of(data, &mention.title);
            let said = if data["changed"] == false { unchanged(title) } else { words(title) };
            Some(wording::with_again(said, data, policy.prompt.request.now.date()))
        }
        other => refused(other, &mention.title),
    }
}

fn refused(outcome: Reply<'_>, name: &str) -> Option<String> {
    match outcome {
        Reply::Held => None,
        Reply::Refused(NOT_FOUND, _) => Some(wording::not_found(name)),
        Reply::Refused(tools::answer::VALIDATION_ERROR, message) => Some(wording::refused(message)),
        Reply::Refused(..) | Reply::Done(_) => Some(wording::trouble().to_owned()),
    }
}

fn task_of(data: &Value) -> &Value {
    data.get("task").unwrap_or(data)
}

fn title_of<'v>(data: &'v Value, fallback: &'v str) -> &'v str {
    data["title"].as_str().or(data["task"]["title"].as_str()).unwrap_or(fallback)
}

/// The argument that names one task.
fn of_task(spec: &Spec, mention: &Mention) -> Arguments {
    let id = mention.id.clone().unwrap_or_default();
    Arguments::from_iter([(spec.id_key().to_owned(), id)])
}

/// What a command says about a task besides its title.
fn attributes(command: &Command, now: &Zoned) -> Arguments {
    let mut arguments = Arguments::new();
    let mut put = |name: &str, value: Option<Value>| arguments.extend(value.map(|value| (name.to_owned(), value)));
    put("description", command.description.as_deref().map(Value::from));
    put("due_date", command.when.map(|when| due_text(when, now).into()));
    put("priority", command.priority.map(|priority| priority.as_str().into()));
    put("recurrence", command.recurrence.as_deref().map(Value::from));
    put("tags", Some(json!(command.tags)).filter(|_| !command.tags.is_empty()));
    arguments
}

fn due_text(when: When, now: &Zoned) -> String {
    match when {
        When::Day(day) => day.to_string(),
        When::Time(time) => time_text(time, now),
    }
}

/// A time of the user's clock. Of an hour that the clock shows twice, the one that is still ahead is meant.
fn time_text(time: DateTime, now: &Zoned) -> String {
    let ambiguous = now.time_zone().to_ambiguous_zoned(time);
    let earlier = ambiguous.clone().earlier().ok();
    let later = ambiguous.later().ok().filter(|later| later.datetime() == time && later > now);
    match (earlier, later) {
        (Some(earlier), Some(later)) if earlier <= *now => later.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        _ => time.to_string(),
    }
}

/// A filter as the tool takes it.
fn filters(spec: &Spec, filter: &Filter) -> Arguments {
    let mut arguments = Arguments::new();
    let mut put = |name: &str, value: Option<Value>| arguments.extend(value.map(|value| (name.to_owned(), value)));
    put(
        "status",
        filter.status.map(|status| match status {
            StatusFilter::Pending => "pending".into(),
            StatusFilter::Completed => "completed".into(),
            StatusFilter::All => "all".into(),
        }),
    );
    put("priority", filter.priority.map(|priority| priority.as_str().into()));
    put(
        "due_date_filter",
        filter.due.map(|due| match due {
            DueFilter::Today => "today".into(),
            DueFilter::Tomorrow => "tomorrow".into(),
            DueFilter::ThisWeek => "this_week".into(),
            DueFilter::Overdue => "overdue".into(),
            DueFilter::Day(day) => day.to_string().into(),
            DueFilter::Between(first, last) => DueFilter::stretch(first, last).into(),
        }),
    );
    put("tags", Some(json!(filter.tags)).filter(|_| !filter.tags.is_empty()));
    put("query", filter.text.as_deref().map(Value::from).filter(|_| spec.takes("query")));
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_that_the_clock_shows_twice_is_the_one_ahead() {
        let told = |now: &str, time: &str| time_text(time.parse().unwrap(), &now.parse().unwrap());
        // Half an hour after 1:30 the clock of New York shows 1:00 again.
        let first_pass = "2025-11-02T01:30:00-04:00[America/New_York]";
        assert_eq!(told(first_pass, "2025-11-02T01:00:00"), "2025-11-02T01:00:00-05:00");
        assert_eq!(told(first_pass, "2025-11-02T01:45:00"), "2025-11-02T01:45:00");
        assert_eq!(told("2025-11-01T12:00:00-04:00[America/New_York]", "2025-11-02T01:00:00"), "2025-11-02T01:00:00");
        // A time that the clock leaves out is told as it was said.
        assert_eq!(told("2026-03-08T01:30:00-05:00[America/New_York]", "2026-03-08T02:30:00"), "2026-03-08T02:30:00");
    }
}
