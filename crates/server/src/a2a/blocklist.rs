//! Blocks addresses with repeated authentication failures for some time (A2A-2). Failures are counted per node, for a
//! limited number of addresses.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::peer;

/// The number of failures that block an address.
const MAX_FAILURES: usize = 10;
/// The time within which the failures must occur.
const FAILURE_WINDOW: SignedDuration = SignedDuration::from_mins(5);
/// The duration of a block.
const BLOCK_DURATION: SignedDuration = SignedDuration::from_mins(15);
/// The maximum number of recorded addresses.
const MAX_ADDRESSES: usize = 10_000;

/// The recorded addresses.
#[derive(Default)]
pub(crate) struct AddressBlocklist(Mutex<HashMap<IpAddr, FailureRecord>>);

/// The state of one address.
enum FailureRecord {
    /// The times of the failures, in order.
    Failing(VecDeque<Timestamp>),
    Blocked {
        until: Timestamp,
    },
}

impl FailureRecord {
    /// Returns when the record expires: the end of the block, or one failure window after the last failure.
    fn until(&self) -> Timestamp {
        match self {
            Self::Failing(at) => at.back().map_or(Timestamp::MIN, |last| *last + FAILURE_WINDOW),
            Self::Blocked { until } => *until,
        }
    }
}

impl AddressBlocklist {
    /// Returns the remaining time of a block, or `None` if the address is not blocked or its block has ended at `now`.
    /// IPv6 addresses count by their /64 network.
    pub(crate) fn remaining_block(&self, address: IpAddr, now: Timestamp) -> Option<Duration> {
        let records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match records.get(&peer::client_network(address)) {
            Some(FailureRecord::Blocked { until }) if *until > now => {
                Duration::try_from(until.duration_since(now)).ok()
            }
            _ => None,
        }
    }

    /// Records a failure at `now`. The tenth failure within five minutes starts a block of 15 minutes. Returns `true`
    /// only for that failure. Failures during a block are not counted, and the count starts again after it. IPv6
    /// addresses count by their /64 network.
    ///
    /// If the list is full, a new address evicts all expired records, or else the record that expires first.
    pub(crate) fn record_failure(&self, address: IpAddr, now: Timestamp) -> bool {
        let address = peer::client_network(address);
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if records.len() >= MAX_ADDRESSES && !records.contains_key(&address) {
            evict_one(&mut records, now);
        }
        let record = records.entry(address).or_insert_with(|| FailureRecord::Failing(VecDeque::new()));
        if record.until() <= now {
            *record = FailureRecord::Failing(VecDeque::new());
        }
        let FailureRecord::Failing(at) = record else { return false };
        at.retain(|at| *at + FAILURE_WINDOW > now);
        at.push_back(now);
        if at.len() < MAX_FAILURES {
            return false;
        }
        *record = FailureRecord::Blocked { until: now + BLOCK_DURATION };
        true
    }

    /// Removes expired records.
    pub(crate) fn remove_expired(&self, now: Timestamp) {
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        records.retain(|_, record| record.until() > now);
        records.shrink_to_fit();
    }
}

/// Removes all expired records. If 10,000 records are left, also removes the one that expires first, even if it is a
/// block.
fn evict_one(records: &mut HashMap<IpAddr, FailureRecord>, now: Timestamp) {
    records.retain(|_, record| record.until() > now);
    if records.len() < MAX_ADDRESSES {
        return;
    }
    let first_to_expire = records.iter().min_by_key(|(_, record)| record.until()).map(|(address, _)| *address);
    if let Some(address) = first_to_expire {
        records.remove(&address);
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
    fn ten_failures_in_five_minutes_block_for_fifteen_minutes() {
        // A2A-2
        let blocklist = AddressBlocklist::default();
        let one = address(1);
        let other = address(2);
        for second in 0..9 {
            assert!(!blocklist.record_failure(one, at(second)));
        }
        assert_eq!(blocklist.remaining_block(one, at(9)), None);
        assert!(blocklist.record_failure(one, at(9)));
        assert_eq!(blocklist.remaining_block(one, at(9)), Some(Duration::from_secs(900)));
        assert_eq!(blocklist.remaining_block(one, at(908)), Some(Duration::from_secs(1)));
        assert_eq!(blocklist.remaining_block(other, at(9)), None, "other addresses are not blocked");
        assert_eq!(blocklist.remaining_block(one, at(909)), None);
        assert!(!blocklist.record_failure(one, at(909)), "counting starts again");
    }

    #[test]
    fn occasional_failures_do_not_block() {
        let blocklist = AddressBlocklist::default();
        for time in 0..100 {
            assert!(!blocklist.record_failure(address(1), at(time * 34)));
        }
        assert_eq!(blocklist.remaining_block(address(1), at(3400)), None);
    }

    #[test]
    fn the_number_of_recorded_addresses_is_limited() {
        // A2A-2
        let blocklist = AddressBlocklist::default();
        for _ in 0..10 {
            blocklist.record_failure(address(0), at(0));
        }
        for last in 1..(MAX_ADDRESSES as u32 + 500) {
            blocklist.record_failure(address(last), at(1));
        }
        assert_eq!(blocklist.0.lock().unwrap().len(), MAX_ADDRESSES);
        assert!(blocklist.remaining_block(address(0), at(2)).is_some(), "blocked addresses stay blocked");
        blocklist.remove_expired(at(2000));
        assert!(blocklist.0.lock().unwrap().is_empty());
    }
}
