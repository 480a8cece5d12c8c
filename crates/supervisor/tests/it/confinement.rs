//! The sandbox, limits and the terminal. SUP-4

use std::fs::File;
use std::io::Read;
use std::time::Duration;

use supervisor::guardian::{Cause, Error, How, Landlock, Launch, Limits, Sandbox, Stdio, landlock_support};

use crate::{double, guardian, output, quiet, scratch, shell, text};

fn confined(script: &str, write: &[&std::path::Path]) -> Launch {
    let mut launch = shell(script);
    launch.sandbox = Some(Sandbox { write: write.iter().map(|path| path.to_path_buf()).collect() });
    launch
}

#[tokio::test]
async fn a_read_only_agent_writes_only_where_it_may() {
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
    for limits in [Limits::default(), Limits { open_files: Some(128), ..Limits::default() }] {
        let mut launch = confined(&script, &[&granted]);
        launch.limits = limits;
        let (stdio, pipes) = Stdio::piped().unwrap();
        let mut child = guardian.spawn(launch, stdio).await.unwrap();
        assert!(child.confined);
        let said = crate::said(pipes).await;
        child.wait().await;
        assert!(said.starts_with("ok\nseen\nnull\n"), "{said}");
        assert_eq!(std::fs::read_to_string(other.join("file")).unwrap(), "seen");
        assert_eq!(std::fs::read_dir(&other).unwrap().count(), 1);
        assert_eq!(std::fs::read_dir(&granted).unwrap().count(), 1, "only the directory it made");
        std::fs::remove_dir(granted.join("sub")).unwrap();
    }
    // The guardian itself is not confined by it.
    let (exit, _) = output(&guardian, shell(&format!("echo 6 > {}/after", other.display()))).await;
    assert_eq!(exit.how, How::Code(0));
}

#[tokio::test]
async fn a_granted_path_that_is_missing_is_an_error() {
    let guardian = guardian().await;
    let (_dir, path) = scratch();
    let missing = path.join("missing");
    match guardian.spawn(confined("true", &[&missing]), Stdio::null().unwrap()).await {
        Err(Error::Refused(fault)) => {
            assert_eq!(fault.cause, Cause::Sandbox);
            assert!(fault.message.contains(text(&missing)) && fault.message.contains("does not exist"), "{fault}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn limits_hold() {
    let guardian = guardian().await;
    let (_dir, path) = scratch();
    let limited = |limits, mut launch: Launch| {
        launch.limits = limits;
        launch
    };
    let limits = Limits { open_files: Some(42), file_size: Some(512 * 100), ..Limits::default() };
    let (exit, said) = output(&guardian, limited(limits, shell("ulimit -n; ulimit -f; ulimit -c"))).await;
    assert_eq!((exit.how, said.as_str()), (How::Code(0), "42\n100\n0\n"));

    let file = path.join("large");
    let limits = Limits { file_size: Some(1 << 20), ..Limits::default() };
    let exit = quiet(&guardian, limited(limits, double(&["write", text(&file), "3"]))).await.wait().await;
    assert_eq!(exit.how, How::Signal(25), "XFSZ");
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 1 << 20);

    let limits = Limits { cpu_seconds: Some(1), ..Limits::default() };
    let exit = quiet(&guardian, limited(limits, double(&["burn", "60000"]))).await.wait().await;
    assert_eq!(exit.how, How::Signal(24), "XCPU");
    assert!(exit.usage.cpu < Duration::from_secs(3));

    let limits = Limits { memory: Some(64 << 20), ..Limits::default() };
    let exit = quiet(&guardian, limited(limits, double(&["hog", "200"]))).await.wait().await;
    assert_ne!(exit.how, How::Code(0));
}

#[tokio::test]
async fn a_terminal_controls_its_program() {
    let guardian = guardian().await;
    let (stdio, terminal) = Stdio::terminal(33, 111).unwrap();
    let mut launch = shell(
        "test -t 0 && test -t 1 && test -t 2 && tty && stty size && echo through > /dev/tty; ps -o tpgid= -p $$; echo $$",
    );
    launch.terminal = true;
    let mut child = guardian.spawn(launch, stdio).await.unwrap();
    let reader = tokio::task::spawn_blocking(move || {
        let mut said = Vec::new();
        // The end of a terminal is an error.
        let _ = File::from(terminal.master).read_to_end(&mut said);
        String::from_utf8(said).unwrap()
    });
    assert_eq!(child.wait().await.how, How::Code(0));
    let said = reader.await.unwrap();
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    assert!(lines[0].starts_with("/dev/pts/"), "{said}");
    assert_eq!(lines[1..3], ["33 111", "through"], "{said}");
    assert_eq!(lines.last(), Some(&child.pid.to_string().as_str()), "{said}");
}

#[tokio::test]
async fn a_terminal_that_is_none_is_an_error() {
    let guardian = guardian().await;
    let mut launch = shell("true");
    launch.terminal = true;
    match guardian.spawn(launch, Stdio::null().unwrap()).await {
        Err(Error::Refused(fault)) => assert_eq!(fault.cause, Cause::Terminal, "{fault}"),
        other => panic!("{other:?}"),
    }
}
