//! Reads values without a command: "saturday", "high priority", "the vet one is urgent" (TRUST-3).

use jiff::civil::{Date, Time};
use understand::{DayOrTime, Intent, ParsedCommand, TagOperation, TaskTarget};

use super::ContinuationResult;
use super::list::refined_list;
use crate::mentions::TaskMention;
use crate::offline::OfflinePolicy;
use crate::offline::dialogue::{LastAct, LastExchange};
use crate::offline::follow_up::ResolvedCommand;
use crate::offline::fragment::{self, Fragment};
use crate::offline::framing::Framing;
use crate::offline::lookup::named_task;
use crate::offline::matching::normalize;

/// Applies values without a name: to the task of the last exchange, or as a filter of the last list.
pub(super) fn values_alone(
    policy: &mut OfflinePolicy<'_>,
    framing: &Framing,
    last: &LastExchange<'_>,
    fragment: &Fragment,
) -> ContinuationResult {
    let is_plural = ["both", "them", "those", "these"]
        .iter()
        .any(|word| normalize(&framing.body).split(' ').any(|one| one == *word));
    let first = normalize(&framing.body).split(' ').next().unwrap_or_default().to_owned();
    if first == "only" && fragment.command.recurrence.is_none() && !matches!(last.act, LastAct::Listed) {
        return Ok(refined_list(policy, framing, last));
    }
    if framing.is_question && matches!(first.as_str(), "which" | "what" | "whats" | "how" | "any" | "anything") {
        return Ok(refined_list(policy, framing, last));
    }
    match last.act {
        LastAct::Listed if !fragment.states && !framing.replaces() => Ok(refined_list(policy, framing, last)),
        LastAct::Answered if framing.is_question => Ok(refined_list(policy, framing, last)),
        LastAct::Changed(..) | LastAct::Held(_) | LastAct::Answered | LastAct::Listed => {
            let mut values = fragment.command.clone();
            values.target = Some(if is_plural { TaskTarget::Them } else { TaskTarget::It });
            let focus = policy.last.clone();
            if let Some(number) = fragment.number {
                let Ok(time) = Time::new(number, 0, 0, 0) else { return Ok(None) };
                values.time_of_day = Some(time);
                values.when = Some(DayOrTime::Time(policy.prompt.request.now.date().to_datetime(time)));
            }
            swap_tags(&mut values, fragment, focus.as_ref());
            if let Some(day) = replaced_month(&framing.body, fragment, focus.as_ref()) {
                values.when = Some(DayOrTime::Day(day));
                values.time_of_day = None;
            }
            Ok(Some(vec![ResolvedCommand { drops_time: fragment.drops_time, ..ResolvedCommand::new(values) }]))
        }
        LastAct::Asked | LastAct::Nothing if framing.is_question => Ok(refined_list(policy, framing, last)),
        LastAct::Asked | LastAct::Nothing => Ok(None),
    }
}

/// Applies values to the task that the other words name: "the vet one is urgent", "leo's on friday".
pub(super) fn values_of_named_task(policy: &mut OfflinePolicy<'_>, fragment: &Fragment) -> ContinuationResult {
    let mut rest = fragment.rest.clone();
    if rest.split_whitespace().count() > 6 {
        return Ok(None);
    }
    let position = position_target(&rest);
    if let Some(target) = position {
        let values = ParsedCommand { target: Some(target), ..fragment.command.clone() };
        return Ok(Some(vec![ResolvedCommand { drops_time: fragment.drops_time, ..ResolvedCommand::new(values) }]));
    }
    if let Some(name) = rest.strip_suffix("'s").or(rest.strip_suffix("’s")) {
        rest = name.to_owned();
    }
    let Some(mention) = named_task(policy, &rest)? else { return Ok(None) };
    let values = ParsedCommand { target: Some(TaskTarget::It), ..fragment.command.clone() };
    Ok(Some(vec![ResolvedCommand {
        mention: Some(mention),
        drops_time: fragment.drops_time,
        ..ResolvedCommand::new(values)
    }]))
}

/// Replaces a tag: "not #car, #house".
fn swap_tags(values: &mut ParsedCommand, fragment: &Fragment, focus: Option<&TaskMention>) {
    let (Some(negated), Some(focus)) = (&fragment.negated, focus) else { return };
    let old = negated.trim_start_matches('#');
    if values.tags.is_empty() || !focus.tags.iter().any(|tag| tag.eq_ignore_ascii_case(old)) {
        return;
    }
    let kept = focus.tags.iter().filter(|tag| !tag.eq_ignore_ascii_case(old)).cloned();
    values.tags = kept.chain(std::mem::take(&mut values.tags)).collect();
    values.tag_operation = TagOperation::Set;
}

/// Returns the due day in another month: "april not may".
fn replaced_month(body: &str, fragment: &Fragment, focus: Option<&TaskMention>) -> Option<Date> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let month = |text: &str| {
        let text = normalize(text);
        let word = text.split(' ').next()?;
        let at = MONTHS.iter().position(|month| word.len() >= 3 && word.starts_with(month))?;
        i8::try_from(at + 1).ok()
    };
    let negated = fragment.negated.as_deref()?;
    let (new, old) = (month(body)?, month(negated)?);
    if negated.chars().any(|c| c.is_ascii_digit()) {
        return None;
    }
    let due: Date = focus?.due.as_deref()?.get(..10)?.parse().ok()?;
    (due.month() == old).then(|| Date::new(due.year(), new, due.day()).ok()).flatten()
}

/// Reads "tag the fee boat": the last word is the tag of the task that the other words name.
pub(super) fn tagged_by_name(policy: &mut OfflinePolicy<'_>, body: &str) -> ContinuationResult {
    let Some(rest) = ["tag the ", "tag my ", "label the "].iter().find_map(|start| body.strip_prefix(start)) else {
        return Ok(None);
    };
    let Some((name, tag)) = rest.rsplit_once(' ') else { return Ok(None) };
    let is_word = tag.chars().all(|c| c.is_alphanumeric() || c == '-');
    let links = ["as", "with", "to", "one", "and", "for"];
    if !is_word || name.split(' ').any(|word| links.contains(&word)) || name.split(' ').count() > 4 {
        return Ok(None);
    }
    let Some(mention) = named_task(policy, name)? else { return Ok(None) };
    let values = ParsedCommand {
        target: Some(TaskTarget::It),
        tags: vec![tag.to_owned()],
        tag_operation: TagOperation::Add,
        ..ParsedCommand::new(Intent::UpdateTask, 0.9)
    };
    Ok(Some(vec![ResolvedCommand { mention: Some(mention), ..ResolvedCommand::new(values) }]))
}

/// Returns the target that a position such as "first" or "other" selects.
pub(in crate::offline) fn position_target(text: &str) -> Option<TaskTarget> {
    const ORDINALS: [&str; 8] = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"];
    let word = normalize(text);
    let at = ORDINALS.iter().position(|ordinal| *ordinal == word);
    if let Some(count) = word.strip_prefix("first ").and_then(fragment::number).filter(|count| (2..=10).contains(count))
    {
        return Some(TaskTarget::Several((1..=usize::try_from(count).ok()?).map(TaskTarget::Position).collect()));
    }
    if let Some(count) = word.strip_prefix("last ").and_then(fragment::number).filter(|count| (2..=10).contains(count))
    {
        return Some(TaskTarget::LastN(usize::try_from(count).ok()?));
    }
    match word.as_str() {
        "last" => Some(TaskTarget::Last),
        "other" => Some(TaskTarget::Other),
        "middle" => Some(TaskTarget::Middle),
        "top" => Some(TaskTarget::Position(1)),
        "bottom" => Some(TaskTarget::Last),
        _ => at.map(|at| TaskTarget::Position(at + 1)),
    }
}
