//! Tests of starting and ending programs with all their processes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant};

use supervisor::guardian::{
    ChildEvent, Error, ExitReason, Launch, LaunchError, LaunchErrorCause, ProcessLimits, Stdio,
};

use crate::{alive, double, eventually, guardian, output, pid_in, scratch, shell, spawn_null, text};

// SUP-7
#[tokio::test]
async fn exits_are_reported() {
    let guardian = guardian().await;
    for (script, reason) in [
        ("exit 0", ExitReason::Code(0)),
        ("exit 7", ExitReason::Code(7)),
        ("kill -KILL $$", ExitReason::Signal(9)),
        ("kill -TERM $$", ExitReason::Signal(15)),
        // A real-time signal has no name.
        ("kill -40 $$", ExitReason::Signal(40)),
    ] {
        assert_eq!(spawn_null(&guardian, shell(script)).await.wait().await.reason, reason, "{script}");
    }
    let mut child = spawn_null(&guardian, shell("exit 3")).await;
    assert!(matches!(child.next().await, Some(ChildEvent::Exited(exit)) if exit.reason == ExitReason::Code(3)));
    assert!(matches!(child.next().await, Some(ChildEvent::TreeEnded(_))));
    assert_eq!(child.next().await, None);
}

#[tokio::test]
async fn agents_run_with_lower_priority() {
    let guardian = guardian().await;
    let ours = rustix::process::getpriority_process(None).unwrap();
    let script = format!("until [ $(nice) -ge {} ]; do :; done; echo later", (ours + 10).min(19));
    for limits in [ProcessLimits::default(), ProcessLimits { open_files: Some(128), ..ProcessLimits::default() }] {
        let mut launch = shell(&script);
        launch.limits = limits;
        assert_eq!(output(&guardian, launch).await.1, "later\n");
    }
}

#[tokio::test]
async fn launch_errors_name_the_problem() {
    let guardian = guardian().await;
    let (_dir, path) = scratch();
    std::fs::write(path.join("plain"), "text").unwrap();
    let script = |name: &str, text: &str| {
        use std::os::unix::fs::PermissionsExt;
        let file = path.join(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    script("orphan", "#!/no/such/interpreter -x\n");
    script("noise", "\x01\x02 no program");
    let at = |program: &str| Launch::new(crate::id(), program, &path);
    let mut nul = at("/bin/true");
    nul.args = vec!["a\0b".into()];
    let mut long = at("/bin/true");
    long.args = vec!["x".repeat(9 << 20).into()];
    let mut lost = at("/bin/true");
    lost.cwd = path.join("nowhere");
    let mut file = at("/bin/true");
    file.cwd = path.join("plain");

    let cases = [
        (at("/no/such/program"), LaunchErrorCause::Program, ErrorKind::NotFound, "/no/such/program was not found"),
        (at("no-such-program"), LaunchErrorCause::Program, ErrorKind::NotFound, "was not found in PATH"),
        (at("./plain"), LaunchErrorCause::Program, ErrorKind::PermissionDenied, "plain is not executable"),
        (at("/usr"), LaunchErrorCause::Program, ErrorKind::PermissionDenied, "/usr is a directory"),
        (at("./orphan"), LaunchErrorCause::Program, ErrorKind::NotFound, "the interpreter /no/such/interpreter of"),
        (at("./noise"), LaunchErrorCause::Program, ErrorKind::Other, "is not executable: neither a binary"),
        (lost, LaunchErrorCause::Directory, ErrorKind::NotFound, "nowhere does not exist"),
        (file, LaunchErrorCause::Directory, ErrorKind::NotADirectory, "plain is not a directory"),
        (long, LaunchErrorCause::Arguments, ErrorKind::ArgumentListTooLong, "exceed the limit of the system"),
        (nul, LaunchErrorCause::Arguments, ErrorKind::Other, "zero byte"),
    ];
    for (launch, cause, kind, message) in cases {
        let name = message;
        let mut limited = launch.clone();
        limited.id = crate::id();
        limited.limits.open_files = Some(64);
        for launch in [launch, limited] {
            // The shim returns the same errors, except that it runs a script without #! with sh.
            if launch.limits.open_files.is_some() && message.contains("neither") {
                continue;
            }
            match guardian.spawn(launch, Stdio::null().unwrap()).await {
                Err(Error::Refused(error)) => {
                    assert_eq!(error.cause, cause, "{name}: {error}");
                    assert!(error.message.contains(message), "{name}: {error}");
                    if kind != ErrorKind::Other {
                        assert_eq!(error.kind(), kind, "{name}: {error}");
                    }
                }
                other => panic!("{name}: {other:?}"),
            }
        }
    }
    // The guardian still works.
    assert_eq!(spawn_null(&guardian, shell("true")).await.wait().await.reason, ExitReason::Code(0));
}

#[tokio::test]
async fn an_execution_id_runs_once_at_a_time() {
    let guardian = guardian().await;
    let launch = shell("sleep 100");
    let mut child = spawn_null(&guardian, launch.clone()).await;
    let again = guardian.spawn(launch.clone(), Stdio::null().unwrap()).await;
    assert!(matches!(again, Err(Error::Refused(LaunchError { cause: LaunchErrorCause::Id, .. }))));
    child.kill().await;
    assert_eq!(child.wait().await.reason, ExitReason::Signal(9));
    // Dropping the first child does not end the second.
    let mut second = spawn_null(&guardian, launch).await;
    drop(child);
    spawn_null(&guardian, shell("true")).await.wait().await;
    assert!(alive(second.pid as i32));
    second.kill().await;
    assert_eq!(second.wait().await.reason, ExitReason::Signal(9));
}

#[tokio::test]
async fn environment_is_the_given_one_plus_two_markers() {
    let guardian = guardian().await;
    let mut launch = Launch::new(crate::id(), "env", "/");
    let odd = OsString::from_vec(b"\xff\xfe=odd".to_vec());
    launch.env =
        vec![("PATH".into(), "/usr/bin:/bin".into()), ("GIVEN".into(), "x".into()), ("ODD".into(), odd.clone())];
    launch.args = vec!["-0".into()];
    let (stdio, pipes) = Stdio::piped().unwrap();
    let id = launch.id;
    let mut child = guardian.spawn(launch, stdio).await.unwrap();
    let mut bytes = Vec::new();
    let mut stdout = pipes.stdout;
    tokio::io::AsyncReadExt::read_to_end(&mut stdout, &mut bytes).await.unwrap();
    assert_eq!(child.wait().await.reason, ExitReason::Code(0));
    let variables: BTreeMap<Vec<u8>, Vec<u8>> = bytes
        .split(|byte| *byte == 0)
        .filter(|variable| !variable.is_empty())
        .map(|variable| {
            let at = variable.iter().position(|byte| *byte == b'=').unwrap();
            (variable[..at].to_vec(), variable[at + 1..].to_vec())
        })
        .collect();
    let names: Vec<&[u8]> = variables.keys().map(Vec::as_slice).collect();
    assert_eq!(names, [&b"ADJUTANT_EXECUTION_ID"[..], b"ADJUTANT_NODE", b"GIVEN", b"ODD", b"PATH"]);
    assert_eq!(variables[&b"ADJUTANT_EXECUTION_ID"[..]], id.to_string().into_bytes());
    assert_eq!(variables[&b"ODD"[..]], odd.into_vec());
    let node = String::from_utf8(variables[&b"ADJUTANT_NODE"[..]].clone()).unwrap();
    assert!(node.starts_with(&format!("{}.", std::process::id())), "{node}");
}

#[tokio::test]
async fn agents_inherit_no_descriptors_or_signals() {
    let guardian = guardian().await;
    for limited in [false, true] {
        // Open files, blocked and ignored signals. The fourth descriptor belongs to ls itself.
        let mut launch = shell("ls /proc/self/fd | wc -l; grep -E '^(SigBlk|SigIgn|NoNewPrivs)' /proc/self/status");
        if limited {
            launch.limits.file_size = Some(1 << 30);
        }
        let (exit, text) = output(&guardian, launch).await;
        assert_eq!(exit.reason, ExitReason::Code(0));
        let words: Vec<&str> = text.split_whitespace().collect();
        let [fds, "SigBlk:", blocked, "SigIgn:", ignored, "NoNewPrivs:", privileges] = words[..] else {
            panic!("{text}")
        };
        let ignored = u64::from_str_radix(ignored, 16).unwrap();
        assert_eq!((fds, u64::from_str_radix(blocked, 16), privileges), ("4", Ok(0), "1"), "{limited}: {text}");
        // The C library ignores its internal signals 32 and 33 in all child processes.
        assert_eq!(ignored & !(0b11 << 31), 0, "{limited}: {text}");
    }
}

// SUP-7
#[tokio::test]
async fn stopping_ends_detached_processes() {
    let guardian = guardian().await;
    let (_dir, path) = scratch();
    let file = path.join("pid");
    let mut launch = double(&["runaway", text(&file)]);
    launch.grace = Duration::from_millis(300);
    let mut child = spawn_null(&guardian, launch).await;
    let pid = pid_in(&file).await;
    let requested = Instant::now();
    child.stop().await;
    let exit = child.wait().await;
    assert!(!alive(pid) && !alive(child.pid as i32));
    assert_eq!(exit.reason, ExitReason::Signal(9));
    assert!(requested.elapsed() >= Duration::from_millis(300), "it had its grace");
    assert!(requested.elapsed() < Duration::from_secs(3), "{:?}", requested.elapsed());
}

#[tokio::test]
async fn stopped_processes_handle_the_termination_signal() {
    let guardian = guardian().await;
    let mut launch = shell("trap 'exit 9' TERM; kill -STOP $$; sleep 100 & wait");
    launch.grace = Duration::from_secs(30);
    let mut child = spawn_null(&guardian, launch).await;
    let stat = format!("/proc/{}/stat", child.pid);
    let stopped = || std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T "));
    eventually("it is stopped", Duration::from_secs(10), stopped).await;
    let requested = Instant::now();
    child.stop().await;
    assert_eq!(child.wait().await.reason, ExitReason::Code(9));
    assert!(requested.elapsed() < Duration::from_secs(10));
}

// SUP-7
#[tokio::test]
async fn daemons_of_an_ended_program_are_ended() {
    let guardian = guardian().await;
    // With a second execution, an orphan is not simply attributed to the only one.
    let mut other = spawn_null(&guardian, shell("sleep 100")).await;
    for kind in ["daemon", "hidden-daemon"] {
        let (_dir, path) = scratch();
        let file = path.join("pid");
        let mut launch = double(&[kind, text(&file)]);
        launch.grace = Duration::from_millis(100);
        let mut child = spawn_null(&guardian, launch).await;
        let exit = child.wait().await;
        assert_eq!(exit.reason, ExitReason::Code(0), "{kind}");
        let pid = pid_in(&file).await;
        eventually(kind, Duration::from_secs(3), || !alive(pid)).await;
    }
    assert!(alive(other.pid as i32), "processes of other executions are not ended");
    other.kill().await;
    other.wait().await;
}

// SUP-7
#[tokio::test]
async fn fork_bombs_are_ended() {
    let guardian = guardian().await;
    let (_dir, path) = scratch();
    let file = path.join("pid");
    let launch = double(&["bomb", text(&file)]);
    let mut child = spawn_null(&guardian, launch).await;
    pid_in(&file).await;
    let children = format!("/proc/{0}/task/{0}/children", child.pid);
    let many = || std::fs::read_to_string(&children).is_ok_and(|list| list.split_whitespace().count() > 50);
    eventually("there are many", Duration::from_secs(20), many).await;
    child.kill().await;
    assert_eq!(child.wait().await.reason, ExitReason::Signal(9));
    let left = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", guardian.pid().await.unwrap())).unwrap();
    assert_eq!(left, "", "no zombie is left either");
}

#[tokio::test]
async fn dropped_children_are_stopped() {
    let guardian = guardian().await;
    let child = spawn_null(&guardian, shell("sleep 100")).await;
    let pid = child.pid as i32;
    drop(child);
    eventually("it has ended", Duration::from_secs(10), || !alive(pid)).await;
}

#[tokio::test]
async fn stopping_the_guardian_ends_all_programs() {
    let guardian = guardian().await;
    let own = guardian.pid().await.unwrap() as i32;
    let (_dir, path) = scratch();
    let file = path.join("pid");
    let mut launch = double(&["runaway", text(&file)]);
    launch.grace = Duration::from_millis(100);
    let mut stubborn = spawn_null(&guardian, launch).await;
    let mut willing = spawn_null(&guardian, shell("sleep 100")).await;
    let pid = pid_in(&file).await;
    guardian.stop().await;
    assert!(!alive(own) && !alive(pid));
    assert_eq!(stubborn.wait().await.reason, ExitReason::Signal(9));
    assert_eq!(willing.wait().await.reason, ExitReason::Signal(15));
    let late = guardian.spawn(shell("true"), Stdio::null().unwrap()).await;
    assert!(matches!(late, Err(Error::Stopped)));
}

#[tokio::test]
async fn many_programs_run_concurrently() {
    let guardian = guardian().await;
    let mut running = tokio::task::JoinSet::new();
    for code in 0..200 {
        let guardian = guardian.clone();
        running.spawn(async move {
            let (exit, text) = output(&guardian, shell(&format!("echo {code}; sleep 0.2; exit {}", code % 100))).await;
            assert_eq!((exit.reason, text), (ExitReason::Code(code % 100), format!("{code}\n")));
        });
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
    let left = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", guardian.pid().await.unwrap())).unwrap();
    assert_eq!(left, "");
}
