//! `adjutant run` and `adjutant executions` with real programs: output, exit codes and cleanup.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::json;
use testkit::app::{CommandOutput, Home};
use testkit::proxy::TcpProxy;

use crate::home;

/// `sh` runs its input, `cat` prints it, `alone` is `sh` with one slot, `filed` writes its output to a file.
const AGENTS: &str = r#"
[[agents]]
id = "cat"
executable_path = "/bin/cat"

[[agents]]
id = "sh"
name = "Shell"
executable_path = "/bin/sh"
args = ["-c", "{{input}}"]
input_pattern = "args"
overrides = ["envs", "working_directory"]
grace = 1

[[agents]]
id = "alone"
executable_path = "/bin/sh"
args = ["-c", "{{input}}"]
input_pattern = "args"
access_type = "read-write"
queue_depth = 1

[[agents]]
id = "filed"
executable_path = "/bin/sh"
args = ["-c", "echo noise; cat > \"$0\"", "{{output_file}}"]
output_pattern = "file"

[[agents]]
id = "rpc"
executable_path = "/bin/sh"
args = ["-c", "read request; echo '{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": \"over the wire\"}'"]
input_pattern = "json-rpc"
protocol = "json-rpc"

[[agents]]
id = "flaky"
executable_path = "/bin/sh"
args = ["-c", "echo tried; exit 75"]
max_retries = 1
retry_delay = 0.01
exit_codes = { 75 = "transient" }
"#;

fn home_with_agents() -> Home {
    home().with_config(AGENTS)
}

/// Runs the same checks without and with a server.
fn without_and_with_server(check: impl Fn(&Home)) {
    check(&home_with_agents());
    let served = home_with_agents();
    let _server = served.serve();
    check(&served);
}

/// A running command.
struct RunningCommand {
    child: Child,
    out: BufReader<ChildStdout>,
}

fn start(home: &Home, arguments: &[&str]) -> RunningCommand {
    let mut command = home.command(arguments);
    // Like a job of a shell: a signal of the terminal goes to the whole process group.
    command.process_group(0);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    RunningCommand { child, out }
}

impl RunningCommand {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line
    }

    fn interrupt(&self) {
        killpg(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), Signal::SIGINT).unwrap();
    }

    /// Waits for the end. Returns the remaining stdout, the stderr and the exit code.
    fn finish(mut self) -> (String, String, i32) {
        let mut out = String::new();
        let mut err = String::new();
        self.out.read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (out, err, self.child.wait().unwrap().code().unwrap_or(-1))
    }
}

/// Waits until a condition holds that depends on another process.
fn wait_until(description: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(20), "timeout: {description}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn is_alive(pid: &str) -> bool {
    std::path::Path::new(&format!("/proc/{}", pid.trim())).exists()
}

/// Returns a script that prints `one`, waits for a file and prints `two`, and the path of the file.
fn two_part_script(home: &Home) -> (String, std::path::PathBuf) {
    let file = home.shared().join("go-on");
    (format!("echo one; until [ -e {} ]; do sleep 0.02; done; echo two", file.display()), file)
}

#[test]
fn output_is_printed_to_stdout_and_the_rest_to_stderr() {
    // SUP-10
    without_and_with_server(|home| {
        assert_eq!(home.run(&["run", "cat", "hello"]).ok(), "hello");
        let ran = home.run(&["run", "shell", "echo answer; echo remark >&2"]);
        assert_eq!((ran.out(), ran.err(), ran.code()), ("answer\n".to_owned(), "remark\n".to_owned(), 0));
        let filed = home.run(&["run", "filed", "in the file"]);
        assert_eq!((filed.out(), filed.err()), ("in the file".to_owned(), "noise\n".to_owned()));
        assert_eq!(home.run(&["run", "rpc", "ask"]).ok(), "over the wire");
        assert_eq!(home.run(&["run", "rpc", "ask", "--json"]).json()["output"], "over the wire");
        assert_eq!(home.run(&["executions", "list", "-q"]).ok().lines().count(), 5);
    });
}

#[test]
fn input_is_read_from_a_pipe() {
    without_and_with_server(|home| {
        for arguments in [&["run", "cat"][..], &["run", "cat", "-"]] {
            let mut command = home.command(arguments);
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all("zwei Zeilen\nüber Stdin\n".as_bytes()).unwrap();
            assert_eq!(CommandOutput::from(child.wait_with_output().unwrap()).ok(), "zwei Zeilen\nüber Stdin\n");
        }
        assert_eq!(home.run(&["run", "cat"]).ok(), "", "empty input is valid");
        let mut command = home.command(&["run", "cat"]);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"\xff\xfe").unwrap();
        assert_eq!(CommandOutput::from(child.wait_with_output().unwrap()).code(), 2, "input must be UTF-8");
    });
}

#[test]
fn output_is_printed_while_it_is_produced() {
    // SUP-10
    without_and_with_server(|home| {
        let (script, file) = two_part_script(home);
        let mut run = start(home, &["run", "sh", &script]);
        assert_eq!(run.line(), "one\n");
        assert!(run.child.try_wait().unwrap().is_none());
        std::fs::write(&file, "").unwrap();
        assert_eq!(run.finish(), ("two\n".to_owned(), String::new(), 0));
        std::fs::remove_file(file).unwrap();
    });
}

#[test]
fn the_exit_code_follows_the_result() {
    // SUP-7
    without_and_with_server(|home| {
        let failed = home.run(&["run", "sh", "echo sorry >&2; exit 3"]);
        assert_eq!(failed.code(), 1);
        assert!(failed.err().contains("sorry\n") && failed.err().contains("error: "), "{}", failed.err());
        let failed = home.run(&["run", "sh", "exit 3", "--json"]);
        let result = failed.json();
        assert_eq!((failed.code(), &result["status"], &result["exit_code"]), (1, &json!("failure"), &json!(3)));
        let slow = home.run(&["run", "sh", "sleep 60", "--timeout", "0.3"]);
        assert_eq!(slow.code(), 124);
        assert!(slow.err().contains("took longer than 0.3 s"), "{}", slow.err());
        let done = home.run(&["run", "cat", "--json", "hello"]);
        assert_eq!((done.code(), &done.json()["output"]), (0, &json!("hello")));
        assert_eq!(home.run(&["run", "unknown", "x"]).code(), 3);
    });
}

#[test]
fn references_can_be_ids_names_or_parts() {
    without_and_with_server(|home| {
        let ambiguous = home.run(&["run", "f", "x"]);
        assert_eq!(ambiguous.code(), 5);
        assert!(ambiguous.err().contains("filed") && ambiguous.err().contains("flaky"), "{}", ambiguous.err());
        for _ in 0..2 {
            home.run(&["run", "cat", "x"]).ok();
        }
        let ids = home.run(&["executions", "list", "-q"]).ok();
        let ids: Vec<_> = ids.lines().collect();
        let body = home.run(&["executions", "show", &ids[0][28..], "--json"]).json();
        assert_eq!(body["id"], json!(ids[0]));
        // Ids of close times share a prefix.
        let ambiguous = home.run(&["executions", "show", &ids[0][..3]]);
        assert_eq!(ambiguous.code(), 5);
        assert!(ids.iter().all(|id| ambiguous.err().contains(id)), "{}", ambiguous.err());
        for command in ["show", "logs", "cancel"] {
            assert_eq!(home.run(&["executions", command, "ffffffff"]).code(), 3, "{command}");
        }
    });
}

#[test]
fn overrides_and_parameters_of_a_run_are_checked() {
    without_and_with_server(|home| {
        let ran = home.run(&["run", "sh", "pwd; echo $MOOD", "--cwd", "/usr", "--env", "MOOD=fine"]);
        assert_eq!(ran.ok(), "/usr\nfine\n");
        assert_eq!(home.run(&["run", "cat", "x", "--cwd", "/usr"]).code(), 9, "the agent does not allow this override");
        assert_eq!(home.run(&["run", "cat", "x", "--param", "novalue"]).code(), 2);
        assert_eq!(home.run(&["run", "cat", "x", "--timeout", "0"]).code(), 2);
        assert_eq!(home.run(&["run", "cat", "x", "--param", "n=3"]).code(), 2, "the agent does not use it");
        home.run(&["agents", "add", "--id", "both", "--executable", "echo", "--arg", "{{n}}", "--arg", "{{s}}"]).ok();
        let ran = home.run(&["run", "both", "x", "--json", "--param", "n=3", "--param", "s=three"]).json();
        let shown = home.run(&["executions", "show", ran["id"].as_str().unwrap(), "--json"]).json();
        assert_eq!(shown["context"]["parameters"], json!({"n": 3, "s": "three"}));
    });
}

#[test]
fn ctrl_c_cancels_and_leaves_no_process() {
    // SUP-7
    without_and_with_server(|home| {
        let mut run = start(home, &["run", "sh", "sleep 300 & echo $$ $!; wait"]);
        let pids = run.line();
        let pids: Vec<_> = pids.split_whitespace().collect();
        assert!(pids.len() == 2 && pids.iter().all(|pid| is_alive(pid)), "{pids:?}");
        run.interrupt();
        let (_, err, code) = run.finish();
        assert_eq!(code, 130, "{err}");
        assert!(err.contains("cancelling"), "{err}");
        assert!(!pids.iter().any(|pid| is_alive(pid)), "no process is left after the command");
        let states = home.run(&["executions", "list", "--json"]).json();
        assert_eq!(states["executions"][0]["state"], "cancelled");
    });
}

#[test]
fn a_second_ctrl_c_exits_immediately() {
    without_and_with_server(|home| {
        // The agent ignores SIGTERM. The command does not wait for its grace period of one second.
        let mut run = start(home, &["run", "sh", "trap '' TERM; echo $$; while :; do sleep 0.1; done"]);
        let pid = run.line();
        run.interrupt();
        let mut err = BufReader::new(run.child.stderr.take().unwrap());
        let mut line = String::new();
        err.read_line(&mut line).unwrap();
        assert!(line.contains("cancelling"), "{line}");
        run.interrupt();
        assert_eq!(run.child.wait().unwrap().code(), Some(130));
        wait_until("the end of the agent", || !is_alive(&pid));
    });
}

#[test]
fn a_run_is_cancelled_if_its_output_pipe_is_closed() {
    without_and_with_server(|home| {
        let mut run = start(home, &["run", "sh", "while :; do echo line; sleep 0.01; done"]);
        assert_eq!(run.line(), "line\n");
        let RunningCommand { mut child, out } = run;
        drop(out);
        assert_eq!(child.wait().unwrap().code(), Some(0), "like any filter with a closed output");
        assert_eq!(home.run(&["executions", "list", "--json"]).json()["executions"][0]["state"], "cancelled");
    });
}

#[test]
fn a_detached_run_continues_in_the_server() {
    let home = home_with_agents();
    let refused = home.run(&["run", "cat", "x", "--detach"]);
    assert_eq!(refused.code(), 2);
    assert!(refused.err().contains("adjutant serve"), "{}", refused.err());
    assert_eq!(home.run(&["executions", "list", "-q"]).ok(), "", "no execution was created");

    let _server = home.serve();
    let (script, file) = two_part_script(&home);
    let id = home.run(&["run", "sh", "--detach", &script]).ok();
    let id = id.trim();
    let mut logs = start(&home, &["executions", "logs", "-f", id]);
    assert_eq!(logs.line(), "one\n");
    assert_eq!(home.run(&["executions", "logs", id]).ok(), "one\n", "the output so far");
    assert_eq!(home.run(&["executions", "list", "--state", "active", "-q"]).ok(), format!("{id}\n"));
    std::fs::write(&file, "").unwrap();
    assert_eq!(logs.finish(), ("two\n".to_owned(), String::new(), 0));
    assert_eq!(home.run(&["executions", "logs", "-f", id]).ok(), "one\ntwo\n");
    let refused = home.run(&["executions", "cancel", id]);
    assert_eq!((refused.code(), refused.err().as_str()), (7, "error: it has already ended\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_connection_is_resumed() {
    // SUP-10
    let home = home_with_agents();
    let server = home.serve();
    let proxy = TcpProxy::start(server.url.trim_start_matches("http://")).await;
    let (script, file) = two_part_script(&home);
    let url = format!("http://{}", proxy.address);
    let mut run = start(&home, &["run", "sh", &script, "--server", &url]);
    assert_eq!(run.line(), "one\n");
    proxy.cut();
    std::fs::write(&file, "").unwrap();
    wait_until("the end", || home.run(&["executions", "list", "--state", "completed", "-q"]).ok() != "");
    proxy.restore();
    assert_eq!(run.finish(), ("two\n".to_owned(), String::new(), 0), "no output is lost or repeated");
}

#[test]
fn a_full_queue_is_rejected_and_queued_runs_can_be_cancelled() {
    // SUP-4
    let home = home_with_agents();
    let _server = home.serve();
    let first = home.run(&["run", "alone", "--detach", "sleep 300"]).ok();
    wait_until("the start", || home.run(&["executions", "list", "--state", "running", "-q"]).ok() == first);
    let second = home.run(&["run", "alone", "--detach", "echo second"]).ok();
    let third = home.run(&["run", "alone", "--detach", "echo third"]);
    assert_eq!(third.code(), 6, "{}", third.err());
    let waiting = home.run(&["executions", "list", "--state", "idle"]).ok();
    let row: Vec<_> = waiting.trim_end_matches('\n').split('\t').collect();
    assert_eq!(row, [&second.trim()[28..], "alone", "idle", "1", "", "", ""]);
    let cancelled = home.run(&["executions", "cancel", second.trim(), &first.trim()[28..]]).ok();
    assert_eq!(cancelled, format!("Cancelled {}\nCancelling {}\n", &second.trim()[28..], &first.trim()[28..]));
    wait_until("both ends", || home.run(&["executions", "list", "--state", "active", "-q"]).ok().is_empty());
    let states = home.run(&["executions", "list", "--agent", "alone", "--json"]).json();
    let states: Vec<_> = states["executions"].as_array().unwrap().iter().map(|one| one["state"].clone()).collect();
    assert_eq!(states, ["cancelled", "cancelled"]);
}

#[test]
fn show_prints_attempts_transitions_and_usage() {
    // SUP-5, SUP-6
    without_and_with_server(|home| {
        let ran = home.run(&["run", "flaky", "x"]);
        assert_eq!((ran.code(), ran.out()), (1, "tried\ntried\n".to_owned()));
        assert!(ran.err().contains("· attempt 2\n"), "{}", ran.err());
        let id = home.run(&["executions", "list", "--limit", "1", "-q"]).ok();
        let shown = home.run(&["executions", "show", id.trim()]).ok();
        for part in [
            "agent       flaky\n",
            "state       failed\n",
            "result      failure\n",
            " (transient)\n",
            "exit code   75\n",
            "attempt     2 of 2\n",
            "attempt     1: failure, ",
            "  failed → starting\n",
            "  cleanup → idle\n",
            " ms of CPU time",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert_eq!(home.run(&["executions", "list", "--state", "nonsense"]).code(), 2);
    });
}

#[test]
fn logs_are_selected_by_stream() {
    // SUP-10
    without_and_with_server(|home| {
        home.run(&["run", "sh", "echo out; echo err >&2"]).ok();
        home.run(&["run", "filed", "answer"]).ok();
        let ids = home.run(&["executions", "list", "-q"]).ok();
        let (filed, both) = ids.trim().split_once('\n').unwrap();
        let logs = |id: &str, stream: &str| {
            let ran = home.run(&["executions", "logs", id, "--stream", stream]);
            (ran.out(), ran.err())
        };
        assert_eq!(logs(both, "all"), ("out\n".to_owned(), "err\n".to_owned()));
        assert_eq!(logs(both, "stdout"), ("out\n".to_owned(), String::new()));
        assert_eq!(logs(both, "stderr"), (String::new(), "err\n".to_owned()));
        assert_eq!(logs(filed, "file"), ("answer".to_owned(), String::new()));
        let lines = home.run(&["executions", "logs", both, "--json", "--stream", "stdout"]).json();
        assert_eq!((&lines["stream"], &lines["text"]), (&json!("stdout"), &json!("out\n")));
    });
}

#[test]
fn retry_repeats_the_request() {
    let home = home_with_agents();
    home.run(&["run", "cat", "again"]).ok();
    let id = home.run(&["executions", "list", "-q"]).ok();
    assert_eq!(home.run(&["executions", "retry", id.trim()]).code(), 2, "without a server nothing would run it");
    assert_eq!(home.run(&["executions", "retry", "--follow", id.trim()]).ok(), "again");
    let _server = home.serve();
    let repeated = home.run(&["executions", "retry", id.trim()]).ok();
    assert_ne!(repeated, id);
    assert_eq!(home.run(&["executions", "logs", "-f", repeated.trim()]).ok(), "again");
    assert_eq!(home.run(&["executions", "retry", "-f", repeated.trim()]).ok(), "again");
    assert_eq!(home.run(&["executions", "list", "-q"]).ok().lines().count(), 4);
}

#[test]
fn without_a_server_only_the_queue_of_the_agent_is_processed() {
    // SUP-11
    let home = home_with_agents();
    let mut server = home.serve();
    let running = home.run(&["run", "alone", "--detach", "sleep 300"]).ok();
    wait_until("the start", || home.run(&["executions", "list", "--state", "running", "-q"]).ok() == running);
    let waiting = home.run(&["run", "alone", "--detach", "echo later"]).ok();
    server.kill();
    home.run(&["run", "cat", "hello"]).ok();
    let states = home.run(&["executions", "list", "--agent", "alone", "--json"]).json();
    assert_eq!(states["executions"][0]["id"], json!(waiting.trim()));
    assert_eq!(states["executions"][0]["state"], "idle", "it is still queued");
    assert_eq!(states["executions"][1]["state"], "failed", "the execution of the killed server has failed");
    // A run of the same agent also processes the queue first.
    assert_eq!(home.run(&["run", "alone", "echo now"]).ok(), "now\n");
    assert_eq!(home.run(&["executions", "logs", waiting.trim()]).ok(), "later\n");
}

#[test]
fn executions_of_other_users_are_invisible() {
    // OPS-6
    let toml = "[auth]\njwt_secret = \"env:TEST_SECRET\"\n[[agents]]\nid = \"cat\"\nexecutable_path = \"/bin/cat\"\n\
                allow = [\"aaaaaaaa-0000-4000-8000-00000000000a\"]\n";
    let home = home().with_env("TEST_SECRET", crate::SECRET).with_config(toml);
    let _server = home.serve();
    let alice = crate::token(&home, crate::ALICE, &[]);
    let bob = crate::token(&home, crate::BOB, &[]);
    let run_as = |token: &str, arguments: &[&str]| home.run(&[arguments, &["--token", token]].concat());
    assert_eq!(run_as(&alice, &["run", "cat", "mine"]).ok(), "mine");
    assert_eq!(run_as(&bob, &["run", "cat", "mine"]).code(), 3);
    let id = run_as(&alice, &["executions", "list", "-q"]).ok();
    assert_eq!(run_as(&bob, &["executions", "list", "-q"]).ok(), "");
    assert_eq!(run_as(&bob, &["executions", "logs", id.trim()]).code(), 3);
    let listed = run_as(&alice, &["agents", "list"]).ok();
    assert!(listed.ends_with("\ncat\tcat\tenabled\tread-only\ttask\t\n"), "the executable is hidden: {listed}");
    assert_eq!(run_as(&alice, &["agents", "add", "--id", "b", "--executable", "cat"]).code(), 9);
    assert_eq!(home.run(&["run", "cat", "x"]).code(), 9, "without a token");
}
