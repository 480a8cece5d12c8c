//! Computes the occurrences of a schedule. Pure: the same settings give the same occurrences on every node.

mod cron;
#[cfg(test)]
mod tests;
mod zone;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use model::Invalid;
use model::schedule::{ScheduleSettings, TimeSpan};
use uuid::Uuid;

use cron::CronExpression;

/// Determines the occurrences of a schedule.
#[derive(Clone, Debug)]
pub struct OccurrenceRule {
    timing: OccurrenceTiming,
    start_at: Option<Timestamp>,
    end_at: Option<Timestamp>,
}

#[derive(Clone, Debug)]
enum OccurrenceTiming {
    Cron {
        cron: Box<CronExpression>,
        zone: TimeZone,
    },
    /// Every multiple of `interval` after `first`. `first` itself is an occurrence only if the schedule has a start.
    Every {
        first: Timestamp,
        includes_first: bool,
        interval: TimeSpan,
    },
    At(Timestamp),
}

impl OccurrenceRule {
    /// Creates the rule of a schedule. A cron expression takes precedence over an interval, and an interval over a
    /// single time. Intervals are counted from the start of the schedule, which is an occurrence itself. Without a
    /// start, they are counted from the second of `created_at`, which is not. Fails if the cron expression is invalid,
    /// if the time zone of a cron expression is unknown on this machine, or if no timing is given.
    pub fn new(settings: &ScheduleSettings, created_at: Timestamp) -> Result<Self, Invalid> {
        let ScheduleSettings { cron_expression, every, at, time_zone, start_at, end_at, .. } = settings;
        let timing = match (cron_expression, every, at) {
            (Some(expression), _, _) => {
                let zone = TimeZone::get(time_zone);
                let zone =
                    zone.map_err(|_| Invalid::one("time_zone", "time_zone", "is not a time zone of this machine"))?;
                OccurrenceTiming::Cron { cron: Box::new(CronExpression::parse("cron_expression", expression)?), zone }
            }
            (None, Some(interval), _) => {
                let first = start_at.unwrap_or(Timestamp::from_second(created_at.as_second()).unwrap_or(created_at));
                OccurrenceTiming::Every { first, includes_first: start_at.is_some(), interval: *interval }
            }
            (None, None, Some(at)) => OccurrenceTiming::At(*at),
            (None, None, None) => {
                let message = "must be given unless every or at is given: exactly one of the three is required";
                return Err(Invalid::one("cron_expression", "one_of", message));
            }
        };
        Ok(Self { timing, start_at: *start_at, end_at: *end_at })
    }

    /// Validates a cron expression. Fails with a message that names the wrong field.
    pub fn check_cron(expression: &str) -> Result<(), Invalid> {
        CronExpression::parse("cron_expression", expression).map(drop)
    }

    /// Returns the first occurrence after `time`, or `None` if there are no more or the next one is out of range.
    /// Occurrences before the start or after the end of the schedule do not count. Both limits are inclusive.
    pub fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        let just_before = |start: Timestamp| start.checked_sub(SignedDuration::from_micros(1)).unwrap_or(start);
        let time = self.start_at.map_or(time, |start| time.max(just_before(start)));
        let next = match &self.timing {
            OccurrenceTiming::Cron { cron, zone } => zone::next(cron, zone, time)?,
            OccurrenceTiming::Every { first, includes_first, interval } => {
                next_interval(*first, *includes_first, *interval, time)?
            }
            OccurrenceTiming::At(at) => Some(*at).filter(|at| *at > time)?,
        };
        Some(next).filter(|next| self.end_at.is_none_or(|end| *next <= end))
    }

    /// Returns the first `count` occurrences after `time`, or fewer if there are no more.
    pub fn next_n(&self, time: Timestamp, count: usize) -> Vec<Timestamp> {
        std::iter::successors(self.next_after(time), |last| self.next_after(*last)).take(count).collect()
    }

    /// Returns the last occurrence after `after` and not after `until`, or `None` if there is none. Uses a binary
    /// search.
    pub fn last_within(&self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let within = |time: Timestamp| self.next_after(time).filter(|next| *next <= until);
        let mut last = within(after)?;
        let mut upper = until;
        // Invariant: `last` is an occurrence, and none is after `upper`.
        while let Some(next) = within(last) {
            last = next;
            let middle = last + SignedDuration::from_micros((upper.as_microsecond() - last.as_microsecond()) / 2);
            match within(middle) {
                Some(next) => last = next,
                None => upper = middle,
            }
        }
        Some(last)
    }
}

/// Returns the first occurrence after `time`: `first` plus a multiple of `interval`, never before `first`. Returns
/// `None` if it is out of range.
fn next_interval(first: Timestamp, includes_first: bool, interval: TimeSpan, time: Timestamp) -> Option<Timestamp> {
    let interval = i64::from(interval.as_secs()) * 1_000_000;
    let passed = time.as_microsecond().checked_sub(first.as_microsecond())?;
    let count = (passed.div_euclid(interval) + 1).max(i64::from(!includes_first));
    Timestamp::from_microsecond(first.as_microsecond().checked_add(count.checked_mul(interval)?)?).ok()
}

/// Returns the time at which an occurrence runs: `due` plus a delay of less than `max`, in microseconds. Returns `due`
/// if `max` is `None` or the sum is out of range. `max` must not be zero. The delay is derived from the schedule and
/// the occurrence, so it is the same on all nodes.
pub fn apply_jitter(id: Uuid, due: Timestamp, max: Option<TimeSpan>) -> Timestamp {
    let Some(max) = max else { return due };
    let (high, low) = id.as_u64_pair();
    let mixed = mix(mix(mix(high) ^ low) ^ due.as_microsecond().cast_unsigned());
    let range = u64::from(max.as_secs()) * 1_000_000;
    let delay = SignedDuration::from_micros((mixed % range).cast_signed());
    due.checked_add(delay).unwrap_or(due)
}

/// Mixes the bits of a number (splitmix64). Every bit of the result depends on every bit of the input.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
