//! When a schedule is due. Pure: the same settings give the same times on every node, whoever asks and whenever.

mod cron;
#[cfg(test)]
mod tests;
mod zone;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use model::Invalid;
use model::schedule::{Length, Settings};
use uuid::Uuid;

use cron::Cron;

/// The times of a schedule.
#[derive(Clone, Debug)]
pub struct When {
    rule: Rule,
    start_at: Option<Timestamp>,
    end_at: Option<Timestamp>,
}

#[derive(Clone, Debug)]
enum Rule {
    Cron {
        cron: Box<Cron>,
        zone: TimeZone,
    },
    /// In whole steps from the first; `first` itself only where somebody has named it.
    Every {
        first: Timestamp,
        named: bool,
        step: Length,
    },
    At(Timestamp),
}

impl When {
    /// `made` is when the schedule was made: intervals are counted from there unless it has a start.
    pub fn new(settings: &Settings, made: Timestamp) -> Result<Self, Invalid> {
        let Settings { cron_expression, every, at, time_zone, start_at, end_at, .. } = settings;
        let rule = match (cron_expression, every, at) {
            (Some(expression), _, _) => {
                let zone = TimeZone::get(time_zone);
                let zone = zone.map_err(|_| Invalid::one("time_zone", "time_zone", "is not known on this machine"))?;
                Rule::Cron { cron: Box::new(Cron::parse("cron_expression", expression)?), zone }
            }
            (None, Some(step), _) => {
                let first = start_at.unwrap_or(Timestamp::from_second(made.as_second()).unwrap_or(made));
                Rule::Every { first, named: start_at.is_some(), step: *step }
            }
            (None, None, Some(at)) => Rule::At(*at),
            (None, None, None) => {
                let message = "must be given, or else every, or at: exactly one of the three";
                return Err(Invalid::one("cron_expression", "one_of", message));
            }
        };
        Ok(Self { rule, start_at: *start_at, end_at: *end_at })
    }

    /// Whether an expression can be read, and if not, why.
    pub fn check_cron(expression: &str) -> Result<(), Invalid> {
        Cron::parse("cron_expression", expression).map(drop)
    }

    /// The first time after this one.
    pub fn after(&self, time: Timestamp) -> Option<Timestamp> {
        let just_before = |start: Timestamp| start.checked_sub(SignedDuration::from_micros(1)).unwrap_or(start);
        let time = self.start_at.map_or(time, |start| time.max(just_before(start)));
        let next = match &self.rule {
            Rule::Cron { cron, zone } => zone::next(cron, zone, time)?,
            Rule::Every { first, named, step } => every(*first, *named, *step, time)?,
            Rule::At(at) => Some(*at).filter(|at| *at > time)?,
        };
        Some(next).filter(|next| self.end_at.is_none_or(|end| *next <= end))
    }

    /// The first `count` times after this one.
    pub fn next_n(&self, time: Timestamp, count: usize) -> Vec<Timestamp> {
        std::iter::successors(self.after(time), |last| self.after(*last)).take(count).collect()
    }

    /// The last time after `after` and until `until`, found without going through all of them.
    pub fn last_within(&self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let within = |time: Timestamp| self.after(time).filter(|next| *next <= until);
        let mut last = within(after)?;
        let mut most = until;
        // There is one at `last` and none behind `most`.
        while let Some(next) = within(last) {
            last = next;
            let middle = last + SignedDuration::from_micros((most.as_microsecond() - last.as_microsecond()) / 2);
            match within(middle) {
                Some(next) => last = next,
                None => most = middle,
            }
        }
        Some(last)
    }
}

fn every(first: Timestamp, named: bool, step: Length, time: Timestamp) -> Option<Timestamp> {
    let step = i64::from(step.as_secs()) * 1_000_000;
    let passed = time.as_microsecond().checked_sub(first.as_microsecond())?;
    let steps = (passed.div_euclid(step) + 1).max(i64::from(!named));
    Timestamp::from_microsecond(first.as_microsecond().checked_add(steps.checked_mul(step)?)?).ok()
}

/// When a time is acted upon: put off by up to `most`, for each time of each schedule by something else, on all nodes alike.
pub fn put_off(id: Uuid, due: Timestamp, most: Option<Length>) -> Timestamp {
    let Some(most) = most else { return due };
    let (high, low) = id.as_u64_pair();
    let mixed = mix(mix(mix(high) ^ low) ^ due.as_microsecond().cast_unsigned());
    let range = u64::from(most.as_secs()) * 1_000_000;
    let by = SignedDuration::from_micros((mixed % range).cast_signed());
    due.checked_add(by).unwrap_or(due)
}

/// Every bit of the result depends on every bit of the number.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
