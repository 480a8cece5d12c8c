//! Tests of the isolation of agents from the system: files, processes, capabilities, network and users. SEC-2
//!
//! Each test runs with a guardian of this user. As root it runs again with a guardian of an unprivileged user, because
//! both use other mechanisms. The tests print the mechanisms in force.

#![expect(clippy::print_stdout, reason = "a test that cannot run must not be silent")]

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use supervisor::guardian::{
    Error, ExitReason, Guardian, GuardianOptions, Isolation, Launch, LaunchErrorCause, NetworkPolicy, NoNetwork,
    Protections, RunAs, Stdio,
};

use crate::{DOUBLE, output, shell, spawn_null};

/// A guardian with a directory that its user can read.
struct GuardedUser {
    guardian: Guardian,
    protections: Protections,
    /// The user is root.
    privileged: bool,
    dir: tempfile::TempDir,
}

impl GuardedUser {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Creates a file that the user of the guardian can read and write.
    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        for path in path.ancestors().take_while(|path| path.starts_with(self.dir.path())) {
            let mode = if path.is_dir() { 0o777 } else { 0o666 };
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        path
    }

    async fn run(&self, script: &str, isolation: Isolation) -> String {
        let mut launch = shell(script);
        launch.isolation = isolation;
        output(&self.guardian, launch).await.1
    }
}

/// Returns a guardian of this user, and as root one of the user `nobody` too.
async fn users() -> Vec<GuardedUser> {
    let is_root = is_root_user();
    let mut users = vec![start(DOUBLE.into(), is_root, tempfile::tempdir().unwrap()).await];
    if is_root {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let program = dir.path().join("guardian-double");
        std::fs::copy(DOUBLE, &program).unwrap();
        let wrapper = dir.path().join("wrapper");
        let script = format!(
            "#!/bin/sh\nexec setpriv --reuid 65534 --regid 65534 --clear-groups {} \"$@\"\n",
            program.display()
        );
        std::fs::write(&wrapper, script).unwrap();
        std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
        users.push(start(wrapper, false, dir).await);
    }
    users
}

async fn start(program: PathBuf, privileged: bool, dir: tempfile::TempDir) -> GuardedUser {
    let guardian = Guardian::start(GuardianOptions { program, ..GuardianOptions::default() }).await.unwrap();
    let protections = guardian.protections().await.unwrap();
    println!("privileged: {privileged}, {protections:?}");
    GuardedUser { guardian, protections, privileged, dir }
}

fn is_root_user() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|data| std::os::unix::fs::MetadataExt::uid(&data) == 0)
}

fn hide(hidden: &[&Path], visible: &[&Path]) -> Isolation {
    Isolation {
        hidden: hidden.iter().map(|path| path.to_path_buf()).collect(),
        visible: visible.iter().map(|path| path.to_path_buf()).collect(),
        ..Isolation::default()
    }
}

#[tokio::test]
async fn hidden_files_cannot_be_read_or_uncovered() {
    // SEC-2
    for user in users().await {
        if !user.protections.files {
            println!("not tested: no mount namespaces");
            continue;
        }
        user.file("data/adjutant.db", "DATABASE-SECRET");
        user.file("data/runs/2/other", "OTHER-RUN");
        user.file("data/runs/1/input", "own input");
        let config = user.file("conf/adjutant.toml", "CONFIG-SECRET");
        let beside = user.file("conf/notes", "readable");
        let data = user.path("data");
        let scratch = data.join("runs/1");
        let script = format!(
            "cat {data}/adjutant.db {data}/runs/2/other {config}; find {data} -type f; cat {scratch}/input; echo
             cat {beside}; echo; echo made > {scratch}/made; echo x > {data}/new; echo x > {config}
             umount {data}; umount -l {data}; unshare -Urm umount {data}; cat {data}/adjutant.db
             cat /proc/1/root{data}/adjutant.db /proc/[0-9]*/cwd{data}/adjutant.db",
            data = data.display(),
            config = config.display(),
            beside = beside.display(),
            scratch = scratch.display(),
        );
        let seen = user.run(&script, hide(&[&data, &config, &user.path("missing")], &[&scratch])).await;
        assert!(!seen.contains("SECRET") && !seen.contains("OTHER-RUN"), "{seen}");
        assert!(seen.contains("own input") && seen.contains("readable"), "{seen}");
        assert_eq!(
            std::fs::read_to_string(scratch.join("made")).unwrap(),
            "made\n",
            "the scratch directory is writable"
        );
        assert!(!data.join("new").exists());
        assert_eq!(std::fs::read_to_string(&config).unwrap(), "CONFIG-SECRET");
        let created = user.file("conf/later", "created later");
        let seen = user.run(&format!("cat {}", created.display()), hide(&[&data, &config], &[])).await;
        assert_eq!(seen, "created later");
    }
}

#[tokio::test]
async fn namespaces_are_used_again_only_by_the_same_user_and_only_while_everything_is_hidden() {
    // SEC-2
    let first_user = Some(model::UserId::new(uuid::Uuid::from_u128(1)));
    let second_user = Some(model::UserId::new(uuid::Uuid::from_u128(2)));
    for user in users().await {
        if !user.protections.files {
            println!("not tested: no mount namespaces");
            continue;
        }
        user.file("data/adjutant.db", "DATABASE-SECRET");
        let config = user.file("conf/adjutant.toml", "CONFIG-SECRET");
        let data = user.path("data");
        let run = async |of: Option<model::UserId>, name: &str| {
            let scratch = data.join("runs").join(name);
            user.file(&format!("data/runs/{name}/input"), "own input");
            let script = format!(
                "readlink /proc/self/ns/mnt; ls {data}/runs; cat {scratch}/input; echo; cat {config} {data}/adjutant.db",
                data = data.display(),
                scratch = scratch.display(),
                config = config.display(),
            );
            let isolation = Isolation { user: of, ..hide(&[&data, &config], &[&scratch]) };
            let seen = user.run(&script, isolation).await;
            assert!(seen.contains(&format!("\n{name}\nown input\n")), "only its own scratch directory: {seen}");
            assert!(!seen.contains("SECRET"), "{seen}");
            seen.lines().next().unwrap().to_owned()
        };
        let mut used = run(first_user, "1").await;
        let mut is_same = false;
        // The namespace is cleaned in the background.
        for attempt in 2..50 {
            let next = run(first_user, &attempt.to_string()).await;
            is_same = next == used;
            if is_same {
                break;
            }
            used = next;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        assert!(is_same, "a namespace is used again");
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        assert_ne!(run(second_user, "b").await, used, "another user");
        assert_ne!(run(None, "c").await, used, "without a user");
        // The kernel removes a cover if its file is removed, and the new file can have the same number.
        std::fs::remove_file(&config).unwrap();
        user.file("conf/adjutant.toml", "CONFIG-SECRET");
        run(first_user, "d").await;
    }
}

#[tokio::test]
async fn processes_of_other_runs_and_the_server_are_invisible() {
    // SEC-2, SEC-3
    for user in users().await {
        if !user.protections.processes {
            println!("not tested: processes are not hidden");
            continue;
        }
        let mut other = shell("exec sleep 61.25");
        other.env.push(("OTHER_SECRET".into(), "ENVIRONMENT-OF-ANOTHER-RUN".into()));
        let other = spawn_null(&user.guardian, other).await;
        let comm = format!("/proc/{}/comm", other.pid);
        let runs = || std::fs::read_to_string(&comm).is_ok_and(|name| name.trim() == "sleep");
        crate::eventually("the node knows the process id", std::time::Duration::from_secs(20), runs).await;
        let own = std::process::id();
        let script = format!(
            "grep -al '61[.]25' /proc/[0-9]*/cmdline; grep -a 'ENVIRONMENT-OF-[A]NOTHER' /proc/[0-9]*/environ
             cat /proc/{own}/environ /proc/1/environ; kill -9 {own} {other}; sleep 0.1; ls -d /proc/self >/dev/null && echo own",
            other = other.pid
        );
        let seen = user.run(&script, Isolation::default()).await;
        assert!(!seen.contains("/cmdline\n") && !seen.contains("OF-ANOTHER") && !seen.contains("PATH="), "{seen}");
        assert!(seen.ends_with("own\n") || seen.contains("own\n"), "{seen}");
        assert!(crate::alive(other.pid as i32), "the other run still runs");
        other.kill().await;
    }
}

#[tokio::test]
async fn agents_of_root_keep_no_dangerous_capabilities() {
    // SEC-2, SEC-3
    for user in users().await {
        let script = "grep CapEff /proc/self/status; grep CapBnd /proc/self/status
            for f in $(ls /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs); do echo $$ > $f && echo MOVED; done
            mknod /tmp/adjutant-test-disk b 8 0 && echo MKNOD";
        let seen = user.run(script, Isolation::default()).await;
        let bits = |name: &str| {
            let line = seen.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        const SYS_ADMIN: u64 = 1 << 21;
        const SYS_PTRACE: u64 = 1 << 19;
        const CHOWN: u64 = 1;
        assert_eq!(bits("CapEff:") & (SYS_ADMIN | SYS_PTRACE), 0);
        assert_eq!(bits("CapBnd:") & (SYS_ADMIN | SYS_PTRACE), 0);
        assert_eq!(bits("CapEff:") & CHOWN != 0, user.privileged);
        assert!(!seen.contains("MKNOD") && (!user.protections.files || !seen.contains("MOVED")), "{seen}");
    }
}

/// Prints the result of TCP connections to two ports, and of sockets of other kinds.
const NETWORK: &str = r#"
import socket, sys
def attempt(name, call):
    try:
        call(); print(name, "open")
    except OSError as error:
        print(name, "denied")
for port in sys.argv[1:]:
    attempt(port, lambda: socket.create_connection(("127.0.0.1", int(port)), 2))
attempt("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9)))
attempt("mptcp", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).connect(("127.0.0.1", int(sys.argv[2]))))
attempt("unix", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
"#;

#[tokio::test]
async fn the_network_policy_is_enforced() {
    // SEC-2
    let allowed = TcpListener::bind("127.0.0.1:0").unwrap();
    let denied = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    for user in users().await {
        let launch = |network: NetworkPolicy| {
            let mut launch = Launch::new(crate::id(), "python3", "/");
            launch.args = vec!["-c".into(), NETWORK.into()];
            launch.args.extend([port(&allowed).to_string().into(), port(&denied).to_string().into()]);
            launch.env = vec![("PATH".into(), std::env::var_os("PATH").unwrap())];
            launch.isolation.network = network;
            launch
        };
        let results = async |network| {
            let (exit, text) = output(&user.guardian, launch(network)).await;
            assert_eq!(exit.reason, ExitReason::Code(0), "{text}");
            text.lines().map(|line| line.ends_with("open")).collect::<Vec<_>>()
        };
        assert_eq!(results(NetworkPolicy::All).await[..3], [true, true, true], "allowed, denied, udp");
        if user.protections.no_network != NoNetwork::Missing {
            assert_eq!(results(NetworkPolicy::None).await, [false, false, false, false, true]);
        }
        if user.protections.ports {
            let only = NetworkPolicy::Ports(vec![port(&allowed)]);
            assert_eq!(results(only).await, [true, false, false, false, true]);
            let with_names = NetworkPolicy::Ports(vec![port(&allowed), 53]);
            assert_eq!(results(with_names).await, [true, false, true, false, true], "UDP for name resolution");
        }
    }
}

#[tokio::test]
async fn without_namespaces_network_filters_work_and_enforced_runs_are_refused() {
    // SEC-2
    let options = GuardianOptions { program: DOUBLE.into(), namespaces: false, ..GuardianOptions::default() };
    let guardian = Guardian::start(options).await.unwrap();
    let protections = guardian.protections().await.unwrap();
    assert!(!protections.files && protections.missing().iter().any(|text| text.contains("data directory")));
    let mut enforced = shell("true");
    enforced.isolation.enforce = true;
    match guardian.spawn(enforced, Stdio::null().unwrap()).await {
        Err(Error::Refused(error)) => {
            assert_eq!(error.cause, LaunchErrorCause::Sandbox);
            assert!(error.message.contains("no mount namespaces"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    if protections.no_network == NoNetwork::Filter {
        let mut launch = Launch::new(crate::id(), "python3", "/");
        launch.args = vec!["-c".into(), NETWORK.into(), "1".into(), "2".into()];
        launch.env = vec![("PATH".into(), std::env::var_os("PATH").unwrap())];
        launch.isolation.network = NetworkPolicy::None;
        let (_, text) = output(&guardian, launch).await;
        assert!(text.contains("udp denied") && text.contains("unix open"), "{text}");
    }
}

#[tokio::test]
async fn enforced_runs_start_where_everything_is_enforced() {
    // SEC-2
    for user in users().await {
        let mut launch = shell("true");
        launch.isolation.enforce = true;
        match user.guardian.spawn(launch, Stdio::null().unwrap()).await {
            Ok(mut child) => {
                assert!(user.protections.files && user.protections.processes);
                assert_eq!(child.wait().await.reason, ExitReason::Code(0));
            }
            Err(Error::Refused(error)) => assert!(!user.protections.missing().is_empty(), "{error}"),
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn agents_run_as_another_user() {
    // SEC-2
    for user in users().await {
        let run_as = Some(RunAs { uid: 65534, gid: 65534, groups: vec![65534] });
        let isolation = Isolation { run_as, ..Isolation::default() };
        if user.privileged && user.protections.run_as {
            let seen = user.run("id -u; id -g; cat /proc/1/environ", isolation).await;
            assert!(seen.starts_with("65534\n65534\n") && !seen.contains("PATH="), "{seen}");
        } else {
            let mut launch = shell("true");
            launch.isolation = isolation;
            let refused = user.guardian.spawn(launch, Stdio::null().unwrap()).await;
            assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
        }
    }
}

#[tokio::test]
async fn a_killed_guardian_takes_all_its_processes_with_it() {
    // SUP-7
    for user in users().await {
        let child = spawn_null(&user.guardian, shell("setsid sh -c 'sleep 62.5 & sleep 62.5' & sleep 62.5")).await;
        assert!(crate::alive(child.pid as i32));
        let guardian = user.guardian.pid().await.unwrap();
        std::process::Command::new("kill").args(["-9", &guardian.to_string()]).status().unwrap();
        crate::eventually("all processes have ended", std::time::Duration::from_secs(20), || {
            let found = std::process::Command::new("pgrep").args(["-f", "^sleep 62.5"]).output().unwrap();
            found.stdout.is_empty()
        })
        .await;
    }
}

#[tokio::test]
async fn a_fork_bomb_of_each_user_is_ended() {
    // SEC-3. Bounded: each execution may have 512 tasks, by control groups or by a limit of the user.
    for user in users().await {
        let mut bomb = shell("f(){ f|f& }; f; sleep 5");
        bomb.tree_limits.processes = Some(64);
        let (exit, _) = output(&user.guardian, bomb).await;
        let expected = ExitReason::LimitExceeded(supervisor::guardian::ExceededLimit::Processes(64));
        // Without control groups, the bomb may have collapsed at the limit of the user before the first sample.
        assert!(exit.reason == expected || !user.protections.control_groups, "{:?}", exit.reason);
        let (exit, text) = output(&user.guardian, shell("echo still here")).await;
        assert_eq!((exit.reason, text.as_str()), (ExitReason::Code(0), "still here\n"));
    }
}
