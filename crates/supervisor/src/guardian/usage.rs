//! What an execution uses: samples of its living processes, and the exact account of those that have ended.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Of the whole process tree of an execution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// User and system time.
    pub cpu: Duration,
    /// Resident memory of the last sample. Pages that processes share are counted for each.
    pub rss: u64,
    /// The largest sample, or what one process alone had at its peak where that is more.
    pub peak_rss: u64,
    /// What storage was really asked for, not what came out of the page cache.
    pub read_bytes: u64,
    pub write_bytes: u64,
    /// Processes in the last sample.
    pub processes: u32,
}

/// The sum over processes at one moment, or over ended ones.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    pub(super) cpu: Duration,
    pub(super) rss: u64,
    pub(super) read: u64,
    pub(super) write: u64,
    pub(super) processes: u32,
}

#[derive(Debug, Default)]
pub(super) struct Account {
    ended: Sum,
    usage: Usage,
}

impl Account {
    /// A process that we reaped ourselves; it brings what it had reaped.
    pub(super) fn ended(&mut self, cpu: Duration, max_rss: u64, (read, write): (u64, u64)) {
        self.ended.cpu += cpu;
        self.ended.read += read;
        self.ended.write += write;
        self.usage.peak_rss = self.usage.peak_rss.max(max_rss);
        self.settle(Sum::default());
    }

    pub(super) fn sampled(&mut self, living: Sum) -> Usage {
        self.usage.rss = living.rss;
        self.usage.processes = living.processes;
        self.usage.peak_rss = self.usage.peak_rss.max(living.rss);
        self.settle(living);
        self.usage
    }

    pub(super) fn total(&self) -> Usage {
        self.usage
    }

    /// Nothing is left alive.
    pub(super) fn close(&mut self) -> Usage {
        self.usage.rss = 0;
        self.usage.processes = 0;
        self.usage
    }

    /// Figures never fall: a process whose parent does not wait for it takes its account with it, but was sampled.
    fn settle(&mut self, living: Sum) {
        self.usage.cpu = self.usage.cpu.max(self.ended.cpu + living.cpu);
        self.usage.read_bytes = self.usage.read_bytes.max(self.ended.read + living.read);
        self.usage.write_bytes = self.usage.write_bytes.max(self.ended.write + living.write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_never_fall_and_peaks_are_the_larger_of_both() {
        let mut account = Account::default();
        let second = Duration::from_secs(1);
        account.sampled(Sum { cpu: 3 * second, rss: 100, read: 10, write: 20, processes: 2 });
        account.sampled(Sum { cpu: second, rss: 50, read: 0, write: 0, processes: 1 });
        assert_eq!(account.total().cpu, 3 * second);
        assert_eq!((account.total().rss, account.total().peak_rss), (50, 100));
        account.ended(4 * second, 80, (30, 40));
        let usage = account.close();
        assert_eq!((usage.cpu, usage.rss, usage.peak_rss), (4 * second, 0, 100));
        assert_eq!((usage.read_bytes, usage.write_bytes), (30, 40));
        account.ended(second, 200, (1, 1));
        assert_eq!((account.total().cpu, account.total().peak_rss), (5 * second, 200));
    }
}
