//! Decides if the machine has capacity for another run. Executions without capacity wait in the queue; they do not
//! fail.

use std::path::{Path, PathBuf};

/// Limits of the machine. `None` means no limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Admission {
    /// The maximum load average of the last minute, per processor.
    pub max_load: Option<f64>,
    pub min_memory_mb: Option<u64>,
    pub min_disk_mb: Option<u64>,
    /// The maximum number of concurrent executions on this node.
    pub max_running: Option<usize>,
    /// A path on the file system that `min_disk_mb` applies to.
    pub disk: PathBuf,
}

impl Admission {
    /// Returns the reason why no further execution may start beside `running` ones, or `None` if one may start. Checks
    /// `max_running`, the load, the free memory and the free disk space, and returns the first limit that is exceeded.
    /// A limit does not apply if its value cannot be measured.
    pub fn refusal(&self, running: usize) -> Option<String> {
        if let Some(limit) = self.max_running
            && running >= limit
        {
            return Some(format!("{running} executions are running; the limit is {limit}"));
        }
        if let Some(limit) = self.max_load
            && let Some(load) = load_per_processor()
            && load > limit
        {
            return Some(format!("the load per processor is {load:.1}; the limit is {limit}"));
        }
        if let Some(least) = self.min_memory_mb
            && let Some(free) = free_memory_mb()
            && free < least
        {
            return Some(format!("{free} MB of memory are free; at least {least} MB are required"));
        }
        if let Some(least) = self.min_disk_mb
            && let Some(free) = free_disk_mb(&self.disk)
            && free < least
        {
            return Some(format!("{free} MB of disk space are free; at least {least} MB are required"));
        }
        None
    }
}

/// Returns the load average of the last minute, divided by the number of processors. Returns `None` if it cannot be
/// read.
fn load_per_processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = text.split_whitespace().next()?.parse().ok()?;
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Some(load / processors as f64)
}

/// Returns the available memory of the machine. Returns `None` if it cannot be read.
fn free_memory_mb() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes / 1024)
}

/// Returns the disk space that is available to this user. Returns `None` if it cannot be read.
fn free_disk_mb(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize) >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limits_admit_everything() {
        assert_eq!(Admission::default().refusal(1000), None);
    }

    #[test]
    fn each_limit_gives_a_reason() {
        let here = PathBuf::from("/");
        let of = |admission: Admission| Admission { disk: here.clone(), ..admission }.refusal(3).unwrap_or_default();
        assert!(of(Admission { max_running: Some(3), ..Admission::default() }).contains("3 executions are running"));
        assert!(of(Admission { max_load: Some(-1.0), ..Admission::default() }).contains("load"));
        assert!(of(Admission { min_memory_mb: Some(u64::MAX), ..Admission::default() }).contains("memory"));
        assert!(of(Admission { min_disk_mb: Some(u64::MAX), ..Admission::default() }).contains("disk"));
    }
}
