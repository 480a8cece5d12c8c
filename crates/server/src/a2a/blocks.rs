//! Addresses that failed to prove who they are, again and again, and are not listened to for a while (A2A-2). Counted on
//! this node; however many try, only so many are remembered.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::peer;

/// So many failures
const FAILURES: usize = 10;
/// within so long
const WINDOW: SignedDuration = SignedDuration::from_mins(5);
/// shut an address out for so long.
const BLOCK: SignedDuration = SignedDuration::from_mins(15);
/// Addresses that are remembered.
const MOST: usize = 10_000;

#[derive(Default)]
pub(crate) struct Blocks(Mutex<HashMap<IpAddr, Record>>);

enum Record {
    /// When it failed, the last at the end.
    Failing(VecDeque<Timestamp>),
    Blocked {
        until: Timestamp,
    },
}

impl Record {
    /// When it stops to matter.
    fn until(&self) -> Timestamp {
        match self {
            Self::Failing(at) => at.back().map_or(Timestamp::MIN, |last| *last + WINDOW),
            Self::Blocked { until } => *until,
        }
    }
}

impl Blocks {
    /// For how much longer the address is not listened to.
    pub(crate) fn wait(&self, address: IpAddr, now: Timestamp) -> Option<Duration> {
        let records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match records.get(&peer::network(address)) {
            Some(Record::Blocked { until }) if *until > now => Duration::try_from(until.duration_since(now)).ok(),
            _ => None,
        }
    }

    /// It has failed once more; says whether that is too often now.
    pub(crate) fn failed(&self, address: IpAddr, now: Timestamp) -> bool {
        let address = peer::network(address);
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if records.len() >= MOST && !records.contains_key(&address) {
            make_room(&mut records, now);
        }
        let record = records.entry(address).or_insert_with(|| Record::Failing(VecDeque::new()));
        if record.until() <= now {
            *record = Record::Failing(VecDeque::new());
        }
        let Record::Failing(at) = record else { return false };
        at.retain(|at| *at + WINDOW > now);
        at.push_back(now);
        if at.len() < FAILURES {
            return false;
        }
        *record = Record::Blocked { until: now + BLOCK };
        true
    }

    /// Forgets what does not matter any more.
    pub(crate) fn tidy(&self, now: Timestamp) {
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        records.retain(|_, record| record.until() > now);
        records.shrink_to_fit();
    }
}

/// What is over, else what is over first.
fn make_room(records: &mut HashMap<IpAddr, Record>, now: Timestamp) {
    records.retain(|_, record| record.until() > now);
    if records.len() < MOST {
        return;
    }
    let first = records.iter().min_by_key(|(_, record)| record.until()).map(|(address, _)| *address);
    if let Some(first) = first {
        records.remove(&first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn address(last: u32) -> IpAddr {
        std::net::Ipv4Addr::from_bits(0xc633_6400 + last).into()
    }

    #[test]
    fn ten_failures_in_five_minutes_block_for_fifteen() {
        // A2A-2
        let blocks = Blocks::default();
        let one = address(1);
        let other = address(2);
        for second in 0..9 {
            assert!(!blocks.failed(one, at(second)));
        }
        assert_eq!(blocks.wait(one, at(9)), None);
        assert!(blocks.failed(one, at(9)));
        assert_eq!(blocks.wait(one, at(9)), Some(Duration::from_secs(900)));
        assert_eq!(blocks.wait(one, at(908)), Some(Duration::from_secs(1)));
        assert_eq!(blocks.wait(other, at(9)), None, "others are not meant");
        assert_eq!(blocks.wait(one, at(909)), None);
        assert!(!blocks.failed(one, at(909)), "it begins anew");
    }

    #[test]
    fn those_who_fail_now_and_then_are_heard() {
        let blocks = Blocks::default();
        for time in 0..100 {
            assert!(!blocks.failed(address(1), at(time * 34)));
        }
        assert_eq!(blocks.wait(address(1), at(3400)), None);
    }

    #[test]
    fn no_more_than_so_many_are_remembered() {
        let blocks = Blocks::default();
        for _ in 0..10 {
            blocks.failed(address(0), at(0));
        }
        for last in 1..(MOST as u32 + 500) {
            blocks.failed(address(last), at(1));
        }
        assert_eq!(blocks.0.lock().unwrap().len(), MOST);
        assert!(blocks.wait(address(0), at(2)).is_some(), "who is shut out stays so");
        blocks.tidy(at(2000));
        assert!(blocks.0.lock().unwrap().is_empty());
    }
}
