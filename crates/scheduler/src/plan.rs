//! What is to be done about a schedule whose time has come: which of its times have, which of them are run, and which is
//! next. Pure; what else runs, and whether there is room, is seen when it is carried out.

use jiff::{SignedDuration, Timestamp};
use model::schedule::{Kind, Length, Missed};
use store::schedules::{Kept, Next};

use crate::when::{When, put_off};

/// Up to here a run is late, but not missed, as long as the next one has not come.
pub(crate) const PUNCTUAL: SignedDuration = SignedDuration::from_secs(60);
/// Times decided upon one by one; what comes behind them shares a decision.
const MOST: usize = 1000;
/// The smallest step of time.
const TICK: SignedDuration = SignedDuration::from_micros(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    pub(crate) next: Option<Next>,
}

/// A time that has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) due: Timestamp,
    /// Where it stands for several: the last of them.
    pub(crate) until: Option<Timestamp>,
    /// How it is to be run, or why it is not.
    pub(crate) verdict: Result<Kind, String>,
}

/// The times from `first` until `until`, both included: those behind the first thousand as one, but for the last.
pub(crate) fn occurrences(when: &When, first: Timestamp, until: Timestamp) -> Vec<(Timestamp, Option<Timestamp>)> {
    let mut times: Vec<_> = std::iter::successors(Some(first), |last| when.after(*last).filter(|next| *next <= until))
        .take(MOST)
        .map(|time| (time, None))
        .collect();
    let beyond = times.last().and_then(|(last, _)| when.after(*last)).filter(|next| *next <= until);
    if let Some(from) = beyond
        && let Some(last) = when.last_within(from - TICK, until)
    {
        if let Some(to) = when.last_within(from - TICK, last - TICK) {
            times.push((from, Some(to).filter(|to| *to > from)));
        }
        times.push((last, None));
    }
    times
}

pub(crate) fn plan(kept: &Kept, when: &When, due: Timestamp, now: Timestamp) -> Plan {
    let id = kept.schedule.id;
    let settings = &kept.schedule.settings;
    let acted = |time: Timestamp| put_off(id, time, settings.jitter);
    // With jitter, one whose time has come may still be put off; it is next then.
    let surely = now.checked_sub(settings.jitter.map_or(SignedDuration::ZERO, Length::signed)).unwrap_or(now);
    let mut times = occurrences(when, due, surely.max(due));
    let mut next = times.last().and_then(|(last, _)| when.after(*last));
    while let Some(time) = next.filter(|time| times.len() < 2 * MOST && acted(*time) <= now) {
        times.push((time, None));
        next = when.after(time);
    }
    let mut steps: Vec<_> =
        times.into_iter().map(|(due, until)| Step { due, until, verdict: Ok(Kind::Fired) }).collect();
    for step in steps.iter_mut().filter(|step| step.until.is_some()) {
        step.verdict = Err("too many were missed for a decision upon each".to_owned());
    }
    let newest = steps.len() - 1;
    for (at, step) in steps.iter_mut().enumerate().filter(|(_, step)| step.verdict.is_ok()) {
        step.verdict =
            verdict(settings.missed, settings.missed_window, now.duration_since(acted(step.due)), at == newest);
    }
    Plan { steps, next: next.map(|due_at| Next { due_at, at: acted(due_at) }) }
}

fn verdict(missed: Missed, window: Length, late: SignedDuration, newest: bool) -> Result<Kind, String> {
    if newest && late <= PUNCTUAL {
        return Ok(Kind::Fired);
    }
    let late_by = Length::from_secs(u32::try_from(late.as_secs()).unwrap_or(u32::MAX));
    match missed {
        Missed::None => Err(format!("it was {late_by} late, and missed runs are not made up for")),
        _ if late > window.signed() => Err(format!("it was {late_by} late, more than the {window} it may be")),
        Missed::Once if !newest => Err(format!("it was {late_by} late, and a later one stands for it")),
        Missed::Once | Missed::All => Ok(Kind::CaughtUp),
    }
}
