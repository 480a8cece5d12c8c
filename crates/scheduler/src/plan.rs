//! Plans the firing of a due schedule: which occurrences are due, which of them run, and which one is next. Pure. The
//! overlap policy and the limits of the queue are applied later, in [`crate::firing`].

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};
use model::schedule::{DecisionKind, MissedPolicy, TimeSpan};
use model::stop_state::StopState;
use store::schedules::{NextOccurrence, ScheduleRow};

use crate::occurrences::{OccurrenceRule, apply_jitter};

/// The newest due occurrence is on time, not missed, if it is at most this late.
pub(crate) const MAX_DELAY_ON_TIME: SignedDuration = SignedDuration::from_secs(60);
/// The number of occurrences that get their own decisions. The ones before them share a decision.
const MAX_SINGLE_DECISIONS: usize = 1000;
/// The resolution of occurrences.
const TICK: SignedDuration = SignedDuration::from_micros(1);

/// The due occurrences of a schedule and the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FiringPlan {
    pub(crate) occurrences: Vec<PlannedOccurrence>,
    pub(crate) next: Option<NextOccurrence>,
}

/// A due occurrence, or a series of them that shares a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedOccurrence {
    pub(crate) due: Timestamp,
    /// The last occurrence of the series. `None` for a single occurrence.
    pub(crate) until: Option<Timestamp>,
    /// The kind of the run, or the reason why it does not run.
    pub(crate) verdict: Result<DecisionKind, String>,
    /// The reason why it runs late, if it is known.
    pub(crate) note: Option<String>,
}

/// Returns the occurrences from `first` to `until`, both included. `first` is always returned. The second value is the
/// end of a series, `None` for a single occurrence. The newest thousand occurrences are single. The ones before them are
/// combined into one series, or into a single occurrence if there is only one.
pub(crate) fn due_occurrences(
    rule: &OccurrenceRule,
    first: Timestamp,
    until: Timestamp,
) -> Vec<(Timestamp, Option<Timestamp>)> {
    let oldest: Vec<_> =
        std::iter::successors(Some(first), |last| rule.next_after(*last).filter(|next| *next <= until))
            .take(MAX_SINGLE_DECISIONS + 1)
            .collect();
    let newest = match oldest.get(MAX_SINGLE_DECISIONS) {
        Some(beyond) => newest_occurrences(rule, first, until, beyond.duration_since(first)),
        None => return oldest.into_iter().map(|time| (time, None)).collect(),
    };
    let before = newest.first().and_then(|oldest| rule.last_within(first - TICK, *oldest - TICK));
    let series = before.map(|last| (first, Some(last).filter(|last| *last > first)));
    series.into_iter().chain(newest.into_iter().map(|time| (time, None))).collect()
}

/// Returns the last thousand occurrences from `first` to `until`, in order. There must be as many. `span` is an estimate of
/// the time that they take.
fn newest_occurrences(
    rule: &OccurrenceRule,
    first: Timestamp,
    until: Timestamp,
    span: SignedDuration,
) -> Vec<Timestamp> {
    let mut span = span;
    loop {
        let from = until.checked_sub(span).unwrap_or(first).max(first);
        let mut newest = VecDeque::with_capacity(MAX_SINGLE_DECISIONS);
        let mut next = rule.next_after(from - TICK).filter(|next| *next <= until);
        while let Some(time) = next {
            if newest.len() == MAX_SINGLE_DECISIONS {
                newest.pop_front();
            }
            newest.push_back(time);
            next = rule.next_after(time).filter(|next| *next <= until);
        }
        if newest.len() == MAX_SINGLE_DECISIONS || from == first {
            return newest.into();
        }
        // The occurrences are rarer here.
        span = span.saturating_mul(2);
    }
}

/// Plans the firing of a schedule. `due` is its first due occurrence and always part of the plan, even if it is after
/// `now`. Later occurrences are part of it if their time with jitter has passed. The first one that jitter delays
/// beyond `now` becomes the next one. If more than a thousand were missed, the ones before the newest thousand form a
/// series, which never runs. At most 2000 entries are planned; the occurrence after
/// them is the next one. All other verdicts come from [`verdict`], with the delay since the time with jitter.
pub(crate) fn plan(row: &ScheduleRow, rule: &OccurrenceRule, due: Timestamp, now: Timestamp) -> FiringPlan {
    let id = row.schedule.id;
    let settings = &row.schedule.settings;
    let runs_at = |time: Timestamp| apply_jitter(id, time, settings.jitter);
    // Jitter may delay an occurrence that is due. It is the next one then.
    let certainly_due =
        now.checked_sub(settings.jitter.map_or(SignedDuration::ZERO, TimeSpan::signed_duration)).unwrap_or(now);
    let mut times = due_occurrences(rule, due, certainly_due.max(due));
    let mut next = times.last().and_then(|(last, _)| rule.next_after(*last));
    while let Some(time) = next.filter(|time| times.len() < 2 * MAX_SINGLE_DECISIONS && runs_at(*time) <= now) {
        times.push((time, None));
        next = rule.next_after(time);
    }
    let mut occurrences: Vec<_> = times
        .into_iter()
        .map(|(due, until)| PlannedOccurrence { due, until, verdict: Ok(DecisionKind::Fired), note: None })
        .collect();
    for series in occurrences.iter_mut().filter(|occurrence| occurrence.until.is_some()) {
        series.verdict = Err("too many occurrences were missed to decide on each of them".to_owned());
    }
    let newest = occurrences.len() - 1;
    for (index, occurrence) in occurrences.iter_mut().enumerate().filter(|(_, occurrence)| occurrence.verdict.is_ok()) {
        let delay = now.duration_since(runs_at(occurrence.due));
        occurrence.verdict = verdict(settings.missed, settings.missed_window, delay, index == newest);
    }
    FiringPlan { occurrences, next: next.map(|due_at| NextOccurrence { due_at, fire_at: runs_at(due_at) }) }
}

impl FiringPlan {
    /// Adds the reason to the occurrences that were due during a stop of everything.
    pub(crate) fn explain_stop(&mut self, stop: &StopState) {
        for occurrence in self.occurrences.iter_mut().filter(|occurrence| stop.contains(occurrence.due)) {
            let reason = stop.reason.as_deref().map_or(String::new(), |reason| format!(": {reason}"));
            let note = format!("everything was stopped at that time{reason}");
            match &mut occurrence.verdict {
                Err(why) => *why = format!("{note}; {why}"),
                Ok(DecisionKind::CaughtUp) => occurrence.note = Some(note),
                Ok(_) => {}
            }
        }
    }
}

/// Returns the kind of run for an occurrence that is `delay` late, or the reason why it does not run. The newest one is
/// `Fired` if it is at most [`MAX_DELAY_ON_TIME`] late. Any other counts as missed. It does not run if `missed` is
/// `None`, if `delay` exceeds `window`, or if `missed` is `Once` and it is not the newest. Otherwise it is `CaughtUp`.
fn verdict(
    missed: MissedPolicy,
    window: TimeSpan,
    delay: SignedDuration,
    is_newest: bool,
) -> Result<DecisionKind, String> {
    if is_newest && delay <= MAX_DELAY_ON_TIME {
        return Ok(DecisionKind::Fired);
    }
    let late_by = TimeSpan::from_secs(u32::try_from(delay.as_secs()).unwrap_or(u32::MAX));
    match missed {
        MissedPolicy::None => Err(format!("it was {late_by} late, and the schedule does not catch up on missed runs")),
        _ if delay > window.signed_duration() => Err(format!("it was {late_by} late; the limit is {window}")),
        MissedPolicy::Once if !is_newest => Err(format!("it was {late_by} late, and a later occurrence replaces it")),
        MissedPolicy::Once | MissedPolicy::All => Ok(DecisionKind::CaughtUp),
    }
}
