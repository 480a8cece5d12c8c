//! The control groups of runs (SEC-3). Every run has a group of its own, below one group of the guardian.
//!
//! ```text
//! <group of the node>/adjutant-<namespace>-<pid>/guardian     the guardian, and programs before they are moved
//!                                               /<execution>  all processes of one run
//! ```
//!
//! A version 2 group kills all its processes at once, needs no controller for it, and identifies the sockets of a run
//! (SEC-1). The limits of processes and memory come from version 2 controllers if they can be enabled, else from
//! version 1 hierarchies. Everything here is optional: a system without a writable group has none of it, and the
//! guardian samples and signals processes instead.

use std::fs;
use std::io;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::launch::TreeLimits;
use super::origin::ProcessOrigin;
use super::proc;

/// The beginning of the name of the group of a guardian. Its process id follows.
const GROUP_PREFIX: &str = "adjutant-";
/// The group of the node, if it had to leave its own group to enable controllers there.
const NODE_GROUP: &str = "adjutant-node";
/// The group of the guardian itself.
const GUARDIAN_GROUP: &str = "guardian";
/// The maximum number of groups that are compared with the group of a socket.
const MAX_COMPARED_GROUPS: usize = 4096;
/// The kernel counts threads where `limits.processes` counts processes. This many threads per process are allowed.
pub(super) const THREADS_PER_PROCESS: u64 = 8;

/// The groups of one guardian. Empty if the system offers none.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct RunGroups {
    /// This process has created the groups and removes them.
    #[serde(skip)]
    owned: bool,
    /// The group of this guardian in version 2. It kills and identifies runs.
    unified: Option<PathBuf>,
    /// The parent of the groups with a limit of processes.
    processes: Option<PathBuf>,
    memory: Option<MemoryGroups>,
}

/// The groups with a limit of memory.
#[derive(Debug, Serialize, Deserialize)]
struct MemoryGroups {
    parent: PathBuf,
    version: u8,
}

impl RunGroups {
    /// Creates the group of this guardian and moves the guardian into it. Removes groups of dead guardians, and kills
    /// the processes in them. Returns empty groups if the system does not allow any.
    pub(super) fn create() -> Self {
        let Some(files) = CgroupFiles::read() else { return Self::default() };
        let mut created = Self { owned: true, ..Self::default() };
        let name = &group_name(std::process::id());
        if let Some(own) = files.own_group(None) {
            remove_dead(&own);
            let group = own.join(name);
            if enter(&group).is_ok() {
                let enabled = enable_controllers(&own, &group);
                let has = |controller: &str| enabled.iter().any(|enabled| enabled == controller);
                created.processes = has("pids").then(|| group.clone());
                created.memory = has("memory").then(|| MemoryGroups { parent: group.clone(), version: 2 });
                created.unified = Some(group);
            }
        }
        let version_1 = |controller| {
            let own = files.own_group(Some(controller))?;
            remove_dead(&own);
            let group = own.join(name);
            enter(&group).ok().map(|()| group)
        };
        if created.processes.is_none() {
            created.processes = version_1("pids");
        }
        if created.memory.is_none() {
            created.memory = version_1("memory").map(|parent| MemoryGroups { parent, version: 1 });
        }
        created
    }

    /// Returns true if every run gets a version 2 group.
    pub(super) fn identify_runs(&self) -> bool {
        self.unified.is_some()
    }

    /// Returns true if the kernel limits the number of processes of a run.
    pub(super) fn limit_processes(&self) -> bool {
        self.processes.is_some()
    }

    /// Returns true if the kernel limits the memory of a run.
    pub(super) fn limit_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Creates the groups of a run with its limits. A group that cannot be created is left out.
    pub(super) fn add(&self, id: Uuid, limits: &TreeLimits) -> RunGroup {
        let mut group = RunGroup { guardian: self.unified.clone(), ..RunGroup::default() };
        let name = id.to_string();
        if let Some(parent) = &self.unified {
            group.unified = create(&parent.join(&name));
        }
        if let Some(parent) = &self.processes
            && let Some(dir) = create(&parent.join(&name))
        {
            if let Some(processes) = limits.processes {
                let tasks = processes.saturating_mul(THREADS_PER_PROCESS);
                let _ = fs::write(dir.join("pids.max"), tasks.to_string());
            }
            group.add(dir);
        }
        if let Some(memory) = &self.memory
            && let Some(dir) = create(&memory.parent.join(&name))
        {
            let bytes = limits.memory.unwrap_or(u64::MAX >> 1).to_string();
            if memory.version == 2 {
                let _ = fs::write(dir.join("memory.oom.group"), "1");
                let _ = fs::write(dir.join("memory.max"), bytes);
            } else {
                let _ = fs::write(dir.join("memory.limit_in_bytes"), bytes);
            }
            group.memory = Some(dir.clone());
            group.add(dir);
        }
        group
    }

    /// Moves the guardian back to the group of the node and removes the empty groups of this guardian, if this process has
    /// created them.
    pub(super) fn remove(&self) {
        if !self.owned {
            return;
        }
        let groups = [&self.unified, &self.processes, &self.memory.as_ref().map(|memory| memory.parent.clone())];
        for group in groups.into_iter().flatten() {
            if let Some(parent) = group.parent() {
                let _ = fs::write(parent.join("cgroup.procs"), std::process::id().to_string());
            }
            let _ = remove_tree(group);
        }
    }
}

/// The groups of one run.
///
/// A program that forks before it is in its groups would evade their limits. So it is started in them: the guardian enters
/// the version 2 group while it starts the program, and the thread that starts it enters the version 1 groups, where
/// threads can be moved.
#[derive(Debug, Default)]
pub(super) struct RunGroup {
    /// The version 2 group of the guardian.
    guardian: Option<PathBuf>,
    unified: Option<PathBuf>,
    /// Version 1 groups with controllers.
    others: Vec<PathBuf>,
    /// The group with the limit of memory.
    memory: Option<PathBuf>,
}

impl RunGroup {
    fn add(&mut self, dir: PathBuf) {
        if self.unified.as_ref() != Some(&dir) && !self.others.contains(&dir) {
            self.others.push(dir);
        }
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.unified.iter().chain(&self.others)
    }

    /// Moves the guardian into the version 2 group, so that the program starts in it.
    pub(super) fn enter_process(&self) {
        if let Some(dir) = &self.unified {
            let _ = fs::write(dir.join("cgroup.procs"), std::process::id().to_string());
        }
    }

    /// Moves the guardian back to its own group.
    pub(super) fn leave_process(&self) {
        if let Some(dir) = &self.guardian {
            let _ = fs::write(dir.join(GUARDIAN_GROUP).join("cgroup.procs"), std::process::id().to_string());
        }
    }

    /// Moves the calling thread into the version 1 groups, so that the program starts in them. 0 is the calling thread.
    /// For any other number the kernel locks all groups, which takes milliseconds.
    pub(super) fn enter_thread(&self) {
        for dir in &self.others {
            let _ = fs::write(dir.join("tasks"), "0");
        }
    }

    /// Moves a process into the groups. Its future children are in them too. A process that has ended is ignored.
    pub(super) fn attach(&self, pid: i32) {
        for dir in self.all() {
            let _ = fs::write(dir.join("cgroup.procs"), pid.to_string());
        }
    }

    /// Kills all processes of the run at once. Returns false if the system cannot do that.
    pub(super) fn kill(&self) -> bool {
        self.unified.as_ref().is_some_and(|dir| fs::write(dir.join("cgroup.kill"), "1").is_ok())
    }

    /// Returns true if the kernel has killed a process of the run because of its memory limit.
    pub(super) fn exceeded_memory(&self) -> bool {
        let Some(dir) = &self.memory else { return false };
        let events = fs::read_to_string(dir.join("memory.events"))
            .or_else(|_| fs::read_to_string(dir.join("memory.oom_control")))
            .unwrap_or_default();
        events.lines().any(|line| {
            let count = line.strip_prefix("oom_kill ").and_then(|count| count.trim().parse::<u64>().ok());
            count.is_some_and(|count| count > 0)
        })
    }

    /// Returns true if the kernel has refused a new process or thread of the run because of its limit.
    pub(super) fn exceeded_processes(&self) -> bool {
        self.all().any(|dir| {
            let events = fs::read_to_string(dir.join("pids.events")).unwrap_or_default();
            events.lines().any(|line| line.strip_prefix("max ").is_some_and(|count| count.trim() != "0"))
        })
    }

    /// Removes the groups. Returns false if a group still has a process.
    pub(super) fn remove(&self) -> bool {
        let mut removed = true;
        for dir in self.all() {
            removed &= remove_tree(dir);
        }
        removed
    }
}

/// Returns the origin of a socket by the id of its version 2 group. The sockets of all agents are in groups below that of
/// a guardian, which this process or another process in the same group has started. Returns `Other` if the system has no
/// such groups.
pub fn group_origin(id: u64) -> ProcessOrigin {
    static OWN: LazyLock<Option<PathBuf>> = LazyLock::new(|| CgroupFiles::read()?.own_group(None));
    let Some(own) = OWN.as_ref() else { return ProcessOrigin::Other };
    let mut pending: Vec<PathBuf> = guardian_groups(own).map(|(path, _)| path).collect();
    let mut compared = 0;
    while let Some(dir) = pending.pop() {
        for (path, inode) in subgroups(&dir) {
            compared += 1;
            if inode == id {
                return ProcessOrigin::Agent(run_below(own, &path).flatten());
            }
            // An agent may create groups without end. It is not trusted because of them.
            if compared > MAX_COMPARED_GROUPS {
                return ProcessOrigin::Agent(None);
            }
            pending.push(path);
        }
    }
    ProcessOrigin::Other
}

/// Returns the run of a process by the name of its version 2 group. The outer `None` means that the group belongs to no
/// guardian below the group of this process. The inner one means that the process is not in the group of a run yet.
pub(super) fn run_of(pid: i32) -> Option<Option<Uuid>> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = |groups: &str| groups.lines().find_map(|line| line.strip_prefix("0::")).map(PathBuf::from);
    let own = path(&own)?;
    let own = if own.ends_with(NODE_GROUP) { own.parent()?.to_owned() } else { own };
    run_below(&own, &path(&groups)?)
}

/// Returns the run in the path of a group, like [`run_of`].
fn run_below(own: &Path, group: &Path) -> Option<Option<Uuid>> {
    let mut names = group.strip_prefix(own).ok()?.iter().map(|name| name.to_str().unwrap_or_default());
    is_guardian_group(names.next()?).then(|| names.next().and_then(|name| Uuid::try_parse(name).ok()))
}

/// Returns true if every run gets a control group of its own on this system. It identifies the connections of agents, and
/// kills all processes of a run at once. Creates and removes a group to find out.
pub fn has_control_groups() -> bool {
    let Some(own) = CgroupFiles::read().and_then(|files| files.own_group(None)) else { return false };
    let probe = own.join(format!("{GROUP_PREFIX}probe-{}", std::process::id()));
    let is_possible = fs::create_dir(&probe).is_ok();
    remove_tree(&probe);
    is_possible
}

/// The files of `/proc` that describe the groups of this process.
struct CgroupFiles {
    mounts: String,
    groups: String,
}

impl CgroupFiles {
    fn read() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        Some(Self { mounts, groups: fs::read_to_string("/proc/self/cgroup").ok()? })
    }

    /// Returns the directory of the group of this process: of a version 1 controller, or of version 2 without one. If
    /// the node was moved to [`NODE_GROUP`], returns the parent of that group. Returns `None` if the hierarchy is not
    /// mounted, or if the group is outside of the mount.
    fn own_group(&self, controller: Option<&str>) -> Option<PathBuf> {
        let path = self.groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let controllers = fields.nth(1)?;
            let path = fields.next()?;
            let matches = match controller {
                Some(controller) => controllers.split(',').any(|name| name == controller),
                None => controllers.is_empty(),
            };
            matches.then_some(path)
        })?;
        let (root, mount) = self.mounts.lines().find_map(|line| {
            let (mount, filesystem) = line.split_once(" - ")?;
            let mut mount = mount.split(' ').skip(3);
            let mut filesystem = filesystem.split(' ');
            let kind = filesystem.next()?;
            let options = filesystem.nth(1)?;
            let matches = match controller {
                Some(controller) => kind == "cgroup" && options.split(',').any(|name| name == controller),
                None => kind == "cgroup2",
            };
            if matches { Some((mount.next()?, mount.next()?)) } else { None }
        })?;
        let below = Path::new(path).strip_prefix(root).ok()?;
        let own = Path::new(mount).join(below);
        if own.ends_with(NODE_GROUP) { own.parent().map(Path::to_owned) } else { Some(own) }
    }
}

/// Returns the name of the group of a guardian. Process ids are only valid in their namespace, so the name has both.
fn group_name(pid: u32) -> String {
    format!("{GROUP_PREFIX}{}-{pid}", proc::namespace())
}

/// Returns the groups of guardians below a group, with their inode numbers.
fn guardian_groups(own: &Path) -> impl Iterator<Item = (PathBuf, u64)> + use<> {
    let is_guardian = |path: &Path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_guardian_group);
    subgroups(own).into_iter().filter(move |(path, _)| is_guardian(path))
}

/// Returns true if a group with this name belongs to a guardian.
fn is_guardian_group(name: &str) -> bool {
    name.strip_prefix(GROUP_PREFIX).is_some_and(|rest| rest.split('-').all(|part| part.parse::<u64>().is_ok()))
}

/// Returns the groups directly below a group, with their inode numbers, which are also their ids.
fn subgroups(dir: &Path) -> Vec<(PathBuf, u64)> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let directories = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.map(|entry| (entry.path(), entry.ino())).collect()
}

/// Kills the processes of guardians that have died, and removes their groups. Leaves groups of other process id
/// namespaces alone.
fn remove_dead(own: &Path) {
    for (group, _) in guardian_groups(own) {
        let name = group.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let pid = name.rsplit('-').next().and_then(|pid| pid.parse::<u32>().ok());
        let Some(pid) = pid.filter(|pid| name == group_name(*pid)) else { continue };
        if !proc::is_guardian(pid) {
            let _ = fs::write(group.join("cgroup.kill"), "1");
            remove_tree(&group);
        }
    }
}

/// Kills the processes of dead guardians of this process and of other processes in the same group, and removes their
/// control groups.
pub(super) fn remove_dead_guardians() {
    let Some(files) = CgroupFiles::read() else { return };
    for controller in [None, Some("pids"), Some("memory")] {
        if let Some(own) = files.own_group(controller) {
            remove_dead(&own);
        }
    }
}

/// Creates a group. Returns its directory, also if it exists, or `None` if it cannot be created.
fn create(dir: &Path) -> Option<PathBuf> {
    match fs::create_dir(dir) {
        Ok(()) => Some(dir.to_owned()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Some(dir.to_owned()),
        Err(_) => None,
    }
}

/// Creates the group of a guardian with a subgroup, and moves this process into the subgroup. Fails if the system does
/// not allow it; no group is left then.
fn enter(group: &Path) -> io::Result<()> {
    let dir = group.join(GUARDIAN_GROUP);
    fs::create_dir(group)?;
    let entered =
        fs::create_dir(&dir).and_then(|()| fs::write(dir.join("cgroup.procs"), std::process::id().to_string()));
    if entered.is_err() {
        remove_tree(group);
    }
    entered
}

/// Enables the controllers of processes and memory for the subgroups of `group`, which is below `own`. A group with
/// processes cannot have controllers. If `own` contains only the node, the node is moved to a group of its own first.
/// Returns the controllers that are enabled.
fn enable_controllers(own: &Path, group: &Path) -> Vec<String> {
    let read = |file: PathBuf| fs::read_to_string(file).unwrap_or_default();
    let node = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string());
    let members = read(own.join("cgroup.procs"));
    if node.as_deref().is_some_and(|node| members.trim() == node)
        && let Some(dir) = create(&own.join(NODE_GROUP))
    {
        let _ = fs::write(dir.join("cgroup.procs"), members.trim());
    }
    for controller in ["+pids", "+memory"] {
        for dir in [own, group] {
            let _ = fs::write(dir.join("cgroup.subtree_control"), controller);
        }
    }
    read(group.join("cgroup.subtree_control")).split_whitespace().map(str::to_owned).collect()
}

/// Removes a group and its subgroups. Groups with processes stay. Returns true if the group does not exist any more.
fn remove_tree(dir: &Path) -> bool {
    let removed = || match fs::remove_dir(dir) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    // Most groups have no subgroups.
    removed() || {
        for (path, _) in subgroups(dir) {
            remove_tree(&path);
        }
        removed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(mounts: &str, groups: &str) -> CgroupFiles {
        CgroupFiles { mounts: mounts.to_owned(), groups: groups.to_owned() }
    }

    #[test]
    fn own_group_is_found_in_both_versions() {
        // SEC-3
        let mounts = "30 24 0:26 / /sys/fs/cgroup/unified rw,relatime shared:4 - cgroup2 cgroup2 rw\n\
                      33 24 0:29 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n\
                      34 24 0:30 /job /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";
        let found = files(mounts, "9:memory:/job/a\n8:pids:/\n0::/user/1\n");
        assert_eq!(found.own_group(None), Some("/sys/fs/cgroup/unified/user/1".into()));
        assert_eq!(found.own_group(Some("pids")), Some("/sys/fs/cgroup/pids".into()));
        assert_eq!(found.own_group(Some("memory")), Some("/sys/fs/cgroup/memory/a".into()));
        assert_eq!(found.own_group(Some("cpu")), None, "not mounted");
        let outside = files(mounts, "9:memory:/other\n0::/unit/adjutant-node\n");
        assert_eq!(outside.own_group(Some("memory")), None, "outside of the mount");
        assert_eq!(outside.own_group(None), Some("/sys/fs/cgroup/unified/unit".into()), "the group of the node");
    }

    #[test]
    fn the_run_of_a_group_is_found_by_its_path() {
        // SEC-1
        let id = Uuid::from_u128(7);
        let run = |own: &str, group: String| run_below(Path::new(own), Path::new(&group));
        assert_eq!(run("/unit", format!("/unit/adjutant-1-2/{id}")), Some(Some(id)));
        assert_eq!(run("/unit", format!("/unit/adjutant-1-2/{id}/below")), Some(Some(id)));
        assert_eq!(run("/", "/adjutant-1-2/guardian".to_owned()), Some(None));
        for other in
            ["/unit", "/unit/adjutant-node", "/other/adjutant-1-2/x", "/unit/x/adjutant-1-2", "/unitadjutant-1-2/x"]
        {
            assert_eq!(run("/unit", other.to_owned()), None, "{other}");
        }
    }

    #[test]
    fn groups_of_guardians_are_recognised_by_name() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["adjutant-4026531836-12", "adjutant-node", "adjutant-x-1", "other"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let names: Vec<_> = guardian_groups(dir.path()).map(|(path, _)| path).collect();
        assert_eq!(names, [dir.path().join("adjutant-4026531836-12")]);
    }
}
