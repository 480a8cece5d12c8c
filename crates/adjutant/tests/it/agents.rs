//! `adjutant agents`, and the output of `config` and `doctor` about agents.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::app::{CommandOutput, Home};

use crate::home;

const ASSISTANT: &str = "assistant\tAssistant\tenabled\tread-only\ttask\tbuilt in\n";
const CAT: &str = "[[agents]]\nid = \"cat\"\nexecutable_path = \"/bin/cat\"\n";

/// Runs the same checks without and with a server.
fn without_and_with_server(home: impl Fn() -> Home, check: impl Fn(&Home)) {
    check(&home());
    let served = home();
    let _server = served.serve();
    check(&served);
}

/// Returns a home with a program of this name in the `PATH`. The program runs `script`.
fn with_program(name: &str, script: &str) -> Home {
    let home = home();
    let folder = home.shared().join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join(name);
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.display());
    home.with_env("PATH", &path)
}

/// Runs a command with input on stdin.
fn run_with_input(home: &Home, arguments: &[&str], input: &str) -> CommandOutput {
    let mut command = home.command(arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    CommandOutput::from(child.wait_with_output().unwrap())
}

#[test]
fn agents_can_be_added_listed_shown_and_removed() {
    // SUP-1
    without_and_with_server(home, |home| {
        assert_eq!(home.run(&["agents", "list"]).ok(), ASSISTANT);
        let add = ["agents", "add", "--id", "shout", "--name", "Shouter", "--executable", "tr", "--timeout", "7.5"];
        let more = ["--arg", "a-z", "--arg", "A-Z", "--env", "LANG=C", "--env", "KEY=env:SOME_KEY", "--cwd", "."];
        assert_eq!(home.run(&[&add[..], &more].concat()).ok(), "Added 'shout' (tr, read-only)\n");
        let listed = home.run(&["agents", "list"]).ok();
        assert_eq!(listed, format!("{ASSISTANT}shout\tShouter\tenabled\tread-only\ttask\ttr\n"));
        assert_eq!(home.run(&["agents", "list", "-q"]).ok(), "assistant\nshout\n");
        let listed = home.run(&["agents", "list", "--json"]).json();
        assert_eq!((&listed["count"], &listed["agents"][1]["source"]), (&json!(2), &json!("api")));
        let body = home.run(&["agents", "show", "shout", "--json"]).json();
        assert_eq!((&body["args"], &body["timeout"]), (&json!(["a-z", "A-Z"]), &json!(7.5)));
        assert_eq!(body["envs"], json!({"LANG": "C", "KEY": "env:SOME_KEY"}));
        let there = std::fs::canonicalize(home.path()).unwrap();
        assert_eq!(std::fs::canonicalize(body["working_directory"].as_str().unwrap()).unwrap(), there);
        let shown = home.run(&["agents", "show", "Shouter"]).ok();
        for line in ["args                       a-z A-Z\n", "now                        0 running, 0 queued\n"] {
            assert!(shown.contains(line), "{shown}");
        }
        let taken = home.run(&["agents", "add", "--id", "shout", "--executable", "cat"]);
        assert_eq!(taken.code(), 7, "{}", taken.err());

        let asked = home.run(&["agents", "rm", "shout"]);
        assert_eq!((asked.code(), asked.err().contains("'shout'")), (4, true), "{}", asked.err());
        assert_eq!(home.run(&["agents", "rm", "shout", "--yes"]).ok(), "Removed 'shout'; past executions are kept\n");
        assert_eq!(home.run(&["agents", "list", "-q"]).ok(), "assistant\n");
        assert_eq!(home.run(&["agents", "show", "shout"]).code(), 3);
    });
}

#[tokio::test]
async fn agents_of_the_configuration_file_cannot_be_changed() {
    // SUP-1
    without_and_with_server(
        || home().with_config(CAT),
        |home| {
            let refused = home.run(&["agents", "rm", "cat", "--yes"]);
            assert_eq!(refused.code(), 7);
            assert!(refused.err().contains("in the configuration file"), "{}", refused.err());
            let taken = home.run(&["agents", "add", "--id", "cat", "--executable", "tac"]);
            assert_eq!(taken.code(), 7, "{}", taken.err());
            let listed = home.run(&["agents", "list"]).ok();
            assert_eq!(listed, format!("{ASSISTANT}cat\tcat\tenabled\tread-only\ttask\t/bin/cat\n"));
        },
    );
    let home = home().with_config(CAT);
    let server = home.serve();
    let removed = server.request(Method::DELETE, "/api/agents/cat").send().await.unwrap();
    assert_eq!(removed.status(), 409);
    assert_eq!(removed.json::<Value>().await.unwrap()["type"], "urn:adjutant:problem:configured");
}

#[test]
fn agents_can_be_added_from_a_file() {
    without_and_with_server(home, |home| {
        let file = home.path().join("agent.toml");
        std::fs::write(&file, "id = \"one\"\nexecutable_path = \"cat\"\nmax_retries = 2\n").unwrap();
        home.run(&["agents", "add", "--file", "agent.toml", "--name", "First"]).ok();
        let one = home.run(&["agents", "show", "one", "--json"]).json();
        assert_eq!((&one["name"], &one["max_retries"]), (&json!("First"), &json!(2)), "flags win over the file");
        std::fs::write(&file, "[[agents]]\nid = \"two\"\nexecutable_path = \"cat\"\n").unwrap();
        home.run(&["agents", "add", "--file", "agent.toml"]).ok();
        let three =
            run_with_input(home, &["agents", "add", "--file", "-"], r#"{"id": "three", "executable_path": "cat"}"#);
        three.ok();
        assert_eq!(home.run(&["agents", "list", "-q"]).ok(), "assistant\none\nthree\ntwo\n");
        // The output of `show` can be added again.
        let body = home.run(&["agents", "show", "two", "--json"]).ok();
        home.run(&["agents", "rm", "two", "--yes"]).ok();
        run_with_input(home, &["agents", "add", "--file", "-"], &body).ok();
        assert_eq!(home.run(&["agents", "add", "--file", "missing.toml"]).code(), 3);
        assert_eq!(run_with_input(home, &["agents", "add", "--file", "-"], "not an agent").code(), 2);
        assert_eq!(home.run(&["agents", "add"]).code(), 2);
    });
}

#[test]
fn validation_errors_name_the_field() {
    without_and_with_server(home, |home| {
        for (flags, field) in [
            (&["--id", "Upper", "--executable", "cat"][..], "id"),
            (&["--id", "a", "--executable", "no-such-program"], "executable_path"),
            (&["--id", "a", "--executable", "cat", "--cwd", "/no/such/place"], "working_directory"),
            (&["--id", "a", "--executable", "cat", "--env", "API_KEY=sk-0123456789abcdef"], "envs.API_KEY"),
            (&["--preset", "no-such-preset"], "preset"),
        ] {
            let refused = home.run(&[&["agents", "add", "--json"], flags].concat());
            assert_eq!(refused.code(), 2, "{flags:?}");
            assert_eq!(refused.json()["errors"][0]["field"], field, "{flags:?}");
        }
        assert_eq!(home.run(&["agents", "add", "--executable", "cat", "--env", "novalue"]).code(), 2);
        assert_eq!(home.run(&["agents", "add", "--executable", "cat", "--input", "mail"]).code(), 2);
    });
}

#[test]
fn presets_are_detected_added_and_checked() {
    // SUP-1
    let home = with_program("codex", "[ \"$*\" = --version ] && echo codex 1.2.3");
    let presets = home.run(&["agents", "presets", "-q"]).ok();
    assert!(presets.lines().any(|preset| preset == "codex"), "{presets}");
    let all = home.run(&["agents", "presets", "--json"]).json();
    assert_eq!(all["count"], presets.lines().count());
    let found = home.run(&["agents", "detect"]).ok();
    assert!(found.contains("bin/codex\tadjutant agents add --preset codex\n"), "{found}");
    assert_eq!(home.run(&["agents", "detect", "-q"]).ok(), "codex\n");
    assert_eq!(home.run(&["agents", "detect", "--json"]).json()["presets"][0]["id"], "codex");

    assert_eq!(home.run(&["agents", "add", "--preset", "codex"]).ok(), "Added 'codex' (codex, read-only)\n");
    let checked = home.run(&["agents", "check"]).ok();
    assert!(checked.starts_with("ok\tcodex\t") && checked.ends_with(": codex 1.2.3\n"), "{checked}");
}

#[test]
fn check_reports_problems_and_remedies() {
    let file = "[[agents]]\nid = \"gone\"\nexecutable_path = \"no-such-program\"\n\
                [[agents]]\nid = \"keyless\"\nexecutable_path = \"cat\"\nenvs = { KEY = \"env:NOT_SET\" }\n\
                [[agents]]\nid = \"off\"\nexecutable_path = \"no-such-program\"\nenabled = false\n";
    without_and_with_server(
        || home().with_config(&format!("{CAT}{file}")),
        |home| {
            let checked = home.run(&["agents", "check"]);
            assert_eq!(checked.code(), 1);
            assert!(checked.err().contains("2 of 3 agents"), "{}", checked.err());
            for line in [
                "ok\tcat\t/bin/cat\n",
                "!!\tgone\tthe program 'no-such-program' is not on the PATH",
                "!!\tkeyless\tenvs.KEY needs the variable NOT_SET, which is not set: set it where adjutant runs\n",
            ] {
                assert!(checked.out().contains(line), "{}", checked.out());
            }
            home.run(&["agents", "check", "cat"]).ok();
            assert_eq!(
                home.run(&["agents", "check", "off"]).code(),
                1,
                "a named agent is checked even if it is disabled"
            );
            assert_eq!(home.run(&["agents", "check", "unknown"]).code(), 3);
            let body = home.run(&["agents", "check", "gone", "--json"]).json();
            assert_eq!((&body["ok"], &body["agents"][0]["id"]), (&json!(false), &json!("gone")));
        },
    );
    let broken = with_program("codex", "echo cannot >&2; exit 9").with_config("[[agents]]\npreset = \"codex\"\n");
    let checked = broken.run(&["agents", "check"]);
    assert_eq!(checked.code(), 1);
    assert!(checked.out().contains("--version` exited with exit status: 9: cannot"), "{}", checked.out());
}

#[test]
fn configuration_errors_have_a_file_a_line_and_a_field() {
    // SUP-1
    let file = "[[agents]]\nid = \"a\"\nexecutable_path = \"cat\"\ninput_pattern = \"mail\"\n\
                [[agents]]\nid = \"b\"\nexecutable_path = \"cat\"\ntimeout = 0\nenvs = { TOKEN = \"sk-0123456789abcdef\" }\n\
                [[agents]]\nid = \"c\"\nprogram = \"cat\"\n";
    let check = home().with_config(file).run(&["config", "check"]);
    assert_eq!(check.code(), 2);
    let lines: Vec<String> = check.out().lines().map(str::to_owned).collect();
    for (position, field) in [
        ("config.toml:4", "agents[a].input_pattern"),
        ("config.toml:8", "agents[b].timeout"),
        ("config.toml:9", "agents[b].envs.TOKEN"),
        ("config.toml:12", "agents[c].program"),
    ] {
        assert!(
            lines.iter().any(|line| line.contains(position) && line.contains(field)),
            "{position} {field}: {lines:#?}"
        );
    }
    assert!(!check.out().contains("0123456789abcdef"), "{}", check.out());
}

#[test]
fn an_agent_type_for_the_input_allows_any_output_pattern() {
    // SUP-2
    let file = "[[agents]]\nid = \"sorted\"\nexecutable_path = \"sh\"\nagent_type = \"file-input\"\n\
                args = [\"-c\", \"sort \\\"$0\\\" > \\\"$1\\\"\", \"{{input_file}}\", \"{{output_file}}\"]\n\
                output_pattern = \"file\"\n";
    let home = home().with_config(file);
    home.run(&["config", "check"]).ok();
    let shown = home.run(&["agents", "show", "sorted", "--json"]).json();
    let patterns = |agent: &Value| {
        ["agent_type", "input_pattern", "output_pattern"].map(|field| agent[field].as_str().unwrap().to_owned())
    };
    assert_eq!(patterns(&shown), ["file-input", "file", "file"]);
    assert_eq!(run_with_input(&home, &["run", "sorted"], "b\na\n").ok(), "a\nb\n");
    // The same holds for added agents, with and without an output pattern.
    for (id, output, expected) in
        [("a", json!("file"), "file"), ("b", json!("json-rpc"), "json-rpc"), ("c", Value::Null, "stdout")]
    {
        let draft = json!({"id": id, "executable_path": "cat", "agent_type": "file-input", "output_pattern": output});
        run_with_input(&home, &["agents", "add", "--file", "-"], &draft.to_string()).ok();
        let shown = home.run(&["agents", "show", id, "--json"]).json();
        assert_eq!(patterns(&shown), ["file-input", "file", expected]);
    }
    // A type with both patterns requires both. The message names the two settings.
    let wrong = file.replace("file-input", "file-stdout");
    let message = "agent_type 'file-stdout' requires output_pattern 'stdout', but output_pattern is 'file'";
    let check = crate::home().with_config(&wrong).run(&["config", "check"]);
    assert_eq!(check.code(), 2);
    assert!(check.out().contains(&format!("config.toml:4: agents[sorted].{message}")), "{}", check.out());
    let draft = json!({"executable_path": "cat", "id": "d", "agent_type": "file-stdout", "output_pattern": "file"});
    let refused = run_with_input(&home, &["agents", "add", "--file", "-"], &draft.to_string());
    assert!(refused.code() == 2 && refused.err().contains(message), "{}", refused.err());
}

#[test]
fn config_and_doctor_report_agents_without_secrets() {
    let file = "[[agents]]\nid = \"a\"\nexecutable_path = \"cat\"\nargs = [\"-u\"]\n\
                envs = { KEY = \"env:SOME_KEY\", MOOD = \"sunny\" }\n[[agents]]\nid = \"gone\"\nexecutable_path = \"/no/such\"\n";
    let home = home().with_config(file).with_env("SOME_KEY", "hunter2hunter2");
    let shown = home.run(&["config", "show"]).ok();
    assert!(shown.contains("agents[a]\tcat -u, read-only, with KEY env:SOME_KEY, MOOD set\t"), "{shown}");
    assert!(shown.contains("config.toml:1"), "{shown}");
    let body = home.run(&["config", "show", "--json"]).json();
    assert_eq!(body["agents"][0]["envs"], json!({"KEY": "env:SOME_KEY", "MOOD": "set"}));
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code(), 1);
    for line in ["ok\tagent\ta: ", "!!\tagent\tgone: the program /no/such cannot be run", "ok\tisolation\t"] {
        assert!(doctor.out().contains(line), "{}", doctor.out());
    }
    for output in [shown, body.to_string(), doctor.out()] {
        assert!(!output.contains("sunny") && !output.contains("hunter2"), "{output}");
    }
}
