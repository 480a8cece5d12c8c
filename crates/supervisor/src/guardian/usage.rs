//! The resource usage of an execution: samples of running processes plus exact values of ended ones.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The resource usage of the process tree of an execution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// User and system CPU time.
    pub cpu: Duration,
    /// Resident memory in the last sample, in bytes. Shared pages are counted for each process.
    pub rss: u64,
    /// The largest sample, or the peak of a single process if that is larger.
    pub peak_rss: u64,
    /// Bytes read from storage. Reads from the page cache do not count.
    pub read_bytes: u64,
    pub write_bytes: u64,
    /// The number of processes in the last sample.
    pub processes: u32,
}

/// The sum over running or over ended processes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ResourceSum {
    pub(super) cpu: Duration,
    pub(super) rss: u64,
    pub(super) read: u64,
    pub(super) write: u64,
    pub(super) processes: u32,
}

/// Accumulates the usage of an execution.
#[derive(Debug, Default)]
pub(super) struct UsageTotals {
    ended: ResourceSum,
    usage: ProcessUsage,
}

impl UsageTotals {
    /// Adds a reaped process. Its values include the children that it has reaped.
    pub(super) fn add_ended(&mut self, cpu: Duration, max_rss: u64, (read, write): (u64, u64)) {
        self.ended.cpu += cpu;
        self.ended.read += read;
        self.ended.write += write;
        self.usage.peak_rss = self.usage.peak_rss.max(max_rss);
        self.update(ResourceSum::default());
    }

    /// Adds a sample of the running processes and returns the new totals.
    pub(super) fn add_sample(&mut self, running: ResourceSum) -> ProcessUsage {
        self.usage.rss = running.rss;
        self.usage.processes = running.processes;
        self.usage.peak_rss = self.usage.peak_rss.max(running.rss);
        self.update(running);
        self.usage
    }

    /// Returns the current totals.
    pub(super) fn total(&self) -> ProcessUsage {
        self.usage
    }

    /// Returns the totals after the last process has ended.
    pub(super) fn close(&mut self) -> ProcessUsage {
        self.usage.rss = 0;
        self.usage.processes = 0;
        self.usage
    }

    /// Updates the totals. They never decrease: the usage of a process that its parent does not reap is only known from
    /// samples.
    fn update(&mut self, running: ResourceSum) {
        self.usage.cpu = self.usage.cpu.max(self.ended.cpu + running.cpu);
        self.usage.read_bytes = self.usage.read_bytes.max(self.ended.read + running.read);
        self.usage.write_bytes = self.usage.write_bytes.max(self.ended.write + running.write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_never_decrease_and_peaks_are_maxima() {
        let mut totals = UsageTotals::default();
        let second = Duration::from_secs(1);
        totals.add_sample(ResourceSum { cpu: 3 * second, rss: 100, read: 10, write: 20, processes: 2 });
        totals.add_sample(ResourceSum { cpu: second, rss: 50, read: 0, write: 0, processes: 1 });
        assert_eq!(totals.total().cpu, 3 * second);
        assert_eq!((totals.total().rss, totals.total().peak_rss), (50, 100));
        totals.add_ended(4 * second, 80, (30, 40));
        let usage = totals.close();
        assert_eq!((usage.cpu, usage.rss, usage.peak_rss), (4 * second, 0, 100));
        assert_eq!((usage.read_bytes, usage.write_bytes), (30, 40));
        totals.add_ended(second, 200, (1, 1));
        assert_eq!((totals.total().cpu, totals.total().peak_rss), (5 * second, 200));
    }
}
