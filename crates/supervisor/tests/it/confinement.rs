//! Tests of the sandbox, limits and the terminal. SUP-4

use std::fs::File;
use std::io::Read;

use supervisor::guardian::{
    Error, ExitReason, Landlock, Launch, LaunchErrorCause, ProcessLimits, Sandbox, Stdio, landlock_support,
};

use crate::{double, guardian, output, scratch, shell, spawn_null, text};

fn confined(script: &str, write: &[&std::path::Path]) -> Launch {
    let mut launch = shell(script);
    launch.sandbox = Some(Sandbox { write: write.iter().map(|path| path.to_path_buf()).collect() });
    launch
}

#[tokio::test]
async fn read_only_agents_write_only_to_granted_paths() {
    if landlock_support() == Landlock::Missing {
        return;
    }
    let guardian = guardian().await;
    let (_dir, path) = scratch();
    let granted = path.join("granted");
    let other = path.join("other");
    std::fs::create_dir(&granted).unwrap();
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("file"), "seen").unwrap();
    let script = format!(
        "cd {granted} && echo 1 > new && mkdir sub && mv new sub/moved && rm sub/moved && echo ok
         cat {other}/file; echo
         echo 2 > {other}/new; echo 3 > {other}/file; rm {other}/file; mkdir {other}/dir; mv {other}/file {granted}/stolen
         echo 4 > /dev/null && echo null
         sh -c 'echo 5 > {other}/from-below'",
        granted = granted.display(),
        other = other.display()
    );
    for limits in [ProcessLimits::default(), ProcessLimits { open_files: Some(128), ..ProcessLimits::default() }] {
        let mut launch = confined(&script, &[&granted]);
        launch.limits = limits;
        let (stdio, pipes) = Stdio::piped().unwrap();
        let mut child = guardian.spawn(launch, stdio).await.unwrap();
        assert!(child.confined);
        let output = crate::read_all(pipes).await;
        child.wait().await;
        assert!(output.starts_with("ok\nseen\nnull\n"), "{output}");
        assert_eq!(std::fs::read_to_string(other.join("file")).unwrap(), "seen");
        assert_eq!(std::fs::read_dir(&other).unwrap().count(), 1);
        assert_eq!(std::fs::read_dir(&granted).unwrap().count(), 1, "only the directory it made");
        std::fs::remove_dir(granted.join("sub")).unwrap();
    }
    // The guardian itself is not confined.
    let (exit, _) = output(&guardian, shell(&format!("echo 6 > {}/after", other.display()))).await;
    assert_eq!(exit.reason, ExitReason::Code(0));
}

#[tokio::test]
async fn missing_granted_paths_are_errors() {
    let guardian = guardian().await;
    let (_dir, path) = scratch();
    let missing = path.join("missing");
    match guardian.spawn(confined("true", &[&missing]), Stdio::null().unwrap()).await {
        Err(Error::Refused(error)) => {
            assert_eq!(error.cause, LaunchErrorCause::Sandbox);
            assert!(error.message.contains(text(&missing)) && error.message.contains("does not exist"), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn limits_are_enforced() {
    let guardian = guardian().await;
    let (_dir, path) = scratch();
    let limited = |limits, mut launch: Launch| {
        launch.limits = limits;
        launch
    };
    let limits = ProcessLimits { open_files: Some(42), file_size: Some(512 * 100), ..ProcessLimits::default() };
    let (exit, printed) = output(&guardian, limited(limits, shell("ulimit -n; ulimit -f; ulimit -c"))).await;
    assert_eq!((exit.reason, printed.as_str()), (ExitReason::Code(0), "42\n100\n0\n"));

    let file = path.join("large");
    let limits = ProcessLimits { file_size: Some(1 << 20), ..ProcessLimits::default() };
    let exit = spawn_null(&guardian, limited(limits, double(&["write", text(&file), "3"]))).await.wait().await;
    assert_eq!(exit.reason, ExitReason::Signal(25), "XFSZ");
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 1 << 20);
}

#[tokio::test]
async fn terminals_control_their_program() {
    let guardian = guardian().await;
    let (stdio, terminal) = Stdio::terminal(33, 111).unwrap();
    let mut launch = shell(
        "test -t 0 && test -t 1 && test -t 2 && tty && stty size && echo through > /dev/tty; ps -o tpgid= -p $$; echo $$",
    );
    launch.terminal = true;
    let mut child = guardian.spawn(launch, stdio).await.unwrap();
    let reader = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        // Reading from a closed terminal returns an error.
        let _ = File::from(terminal.master).read_to_end(&mut bytes);
        String::from_utf8(bytes).unwrap()
    });
    assert_eq!(child.wait().await.reason, ExitReason::Code(0));
    let output = reader.await.unwrap();
    let lines: Vec<&str> = output.lines().map(str::trim).collect();
    assert!(lines[0].starts_with("/dev/pts/"), "{output}");
    assert_eq!(lines[1..3], ["33 111", "through"], "{output}");
    assert_eq!(lines.last(), Some(&child.pid.to_string().as_str()), "{output}");
}

#[tokio::test]
async fn terminals_require_a_pseudo_terminal() {
    let guardian = guardian().await;
    let mut launch = shell("true");
    launch.terminal = true;
    match guardian.spawn(launch, Stdio::null().unwrap()).await {
        Err(Error::Refused(error)) => assert_eq!(error.cause, LaunchErrorCause::Terminal, "{error}"),
        other => panic!("{other:?}"),
    }
}
