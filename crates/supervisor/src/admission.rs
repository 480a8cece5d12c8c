//! Whether the machine has room for another run. What has no room waits; it does not fail.

use std::path::{Path, PathBuf};

/// What must be left, or must not be exceeded. Nothing is asked for where nothing is set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Admission {
    /// The load average of the last minute, for each processor.
    pub max_load: Option<f64>,
    pub min_memory_mb: Option<u64>,
    pub min_disk_mb: Option<u64>,
    /// How many may run on this node at once.
    pub max_running: Option<usize>,
    /// Where disk space is looked for.
    pub disk: PathBuf,
}

impl Admission {
    /// Why nothing may start now, if so.
    pub fn refusal(&self, running: usize) -> Option<String> {
        if let Some(most) = self.max_running
            && running >= most
        {
            return Some(format!("{running} run already, and no more than {most} may"));
        }
        if let Some(most) = self.max_load
            && let Some(load) = load_per_processor()
            && load > most
        {
            return Some(format!("the load of the machine is {load:.1} a processor, more than {most}"));
        }
        if let Some(least) = self.min_memory_mb
            && let Some(free) = free_memory_mb()
            && free < least
        {
            return Some(format!("{free} MB of memory are free, less than {least}"));
        }
        if let Some(least) = self.min_disk_mb
            && let Some(free) = free_disk_mb(&self.disk)
            && free < least
        {
            return Some(format!("{free} MB of disk are free, less than {least}"));
        }
        None
    }
}

fn load_per_processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = text.split_whitespace().next()?.parse().ok()?;
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Some(load / processors as f64)
}

fn free_memory_mb() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes / 1024)
}

fn free_disk_mb(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize) >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_asked_for_refuses_nothing() {
        assert_eq!(Admission::default().refusal(1000), None);
    }

    #[test]
    fn each_rule_says_why() {
        let here = PathBuf::from("/");
        let of = |admission: Admission| Admission { disk: here.clone(), ..admission }.refusal(3).unwrap_or_default();
        assert!(of(Admission { max_running: Some(3), ..Admission::default() }).contains("3 run already"));
        assert!(of(Admission { max_load: Some(-1.0), ..Admission::default() }).contains("load"));
        assert!(of(Admission { min_memory_mb: Some(u64::MAX), ..Admission::default() }).contains("memory"));
        assert!(of(Admission { min_disk_mb: Some(u64::MAX), ..Admission::default() }).contains("disk"));
    }
}
