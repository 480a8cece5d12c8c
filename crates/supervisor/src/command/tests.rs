//! Tests of the command that an agent and a run produce, and of their files.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use model::agent::AgentDraft;
use model::execution::{Artifact, ErrorCategory};
use serde_json::json;
use tempfile::TempDir;

use super::*;

fn agent(extra: Value) -> Agent {
    let mut value = json!({"id": "mine", "executable_path": "/bin/cat"});
    value.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    model::json::from_value::<AgentDraft>(value).unwrap().check().unwrap()
}

fn run(input: &str) -> CommandRequest {
    CommandRequest {
        execution_id: Uuid::from_u128(7),
        input: input.to_owned(),
        parameters: Map::new(),
        working_directory: None,
        envs: BTreeMap::new(),
        files: Vec::new(),
        started_at: "2026-01-02T03:04:05.6Z".parse().unwrap(),
    }
}

fn with(input: &str, parameters: Value) -> CommandRequest {
    CommandRequest { parameters: parameters.as_object().unwrap().clone(), ..run(input) }
}

fn own_variables(name: &str) -> Option<String> {
    let value = match name {
        "PATH" => "/usr/bin:/bin",
        "HOME" => "/home/me",
        "LC_ALL" => "C.UTF-8",
        "KEY" => "value-of-key",
        "OTHER" => "value-of-other",
        "HTTPS_PROXY" => "http://me:secret@proxy:3128",
        _ => return None,
    };
    Some(value.to_owned())
}

fn plan(agent: &Agent, run: &CommandRequest) -> Result<CommandPlan, RunFailure> {
    CommandPlan::make(agent, run, Path::new("/scratch/7"), own_variables)
}

fn args(extra: Value, run: &CommandRequest) -> Vec<String> {
    plan(&agent(extra), run).unwrap().args
}

/// Returns the message of the failure, which is always permanent.
fn refused(extra: Value, run: &CommandRequest) -> String {
    let failure = plan(&agent(extra), run).unwrap_err();
    assert_eq!(failure.category, ErrorCategory::Permanent);
    failure.message
}

#[test]
fn arguments_are_expanded_in_order() {
    // SUP-2
    let extra = json!({
        "args": ["-x", "{{execution_id}}", "{{timestamp}}/{{agent_id}}", "{{model}} {{n}}", "{{scratch}}", "{{output_dir}}"],
        "cli_args": {"zed": "{{list}}", "bare": "", "-a": "b"},
        "parameters": {"model": "small", "n": 1},
    });
    let expected = [
        "-x",
        "00000000-0000-0000-0000-000000000007",
        "20260102T030405Z/mine",
        "large {{n}} 1",
        "/scratch/7",
        "/scratch/7/artifacts",
        "-a",
        "b",
        "--bare",
        "--zed",
        "[1,{\"a\":true}]",
    ];
    let run = with("hello", json!({"model": "large {{n}}", "list": [1, {"a": true}], "spare": 1}));
    assert_eq!(args(extra.clone(), &run), expected);
    let plan = plan(&agent(extra), &run).unwrap();
    assert_eq!(plan.input, InputDelivery::Stdin("hello".to_owned()));
    assert_eq!((plan.input_file, plan.output_file, plan.unused), (None, None, vec!["spare".to_owned()]));
    let message = refused(json!({"args": ["{{modle}}"]}), &run);
    assert!(
        message.starts_with("args[0] contains the unknown placeholder {{modle}}")
            && message.contains("execution_id, files, input, list, model"),
        "{message}"
    );
}

#[test]
fn input_is_passed_by_the_configured_pattern() {
    // SUP-2
    let by_args = |args: &[&str]| json!({"input_pattern": "args", "args": args});
    assert_eq!(args(by_args(&["-p"]), &run("hello")), ["-p", "hello"]);
    assert_eq!(args(by_args(&["{{input}}", "-p"]), &run("{{x}}")), ["{{x}}", "-p"]);
    let last = json!({"input_pattern": "args", "cli_args": {"prompt": "{{input}}"}});
    assert_eq!(args(last, &run("hello")), ["--prompt", "hello"]);

    let by_file = agent(json!({"input_pattern": "file", "input_file_template": "in/{{n}}.md", "parameters": {"n": 3}}));
    let by_file = plan(&by_file, &run("hello")).unwrap();
    assert_eq!(by_file.args, ["/scratch/7/in/3.md"]);
    let file = InputFile { path: "/scratch/7/in/3.md".into(), text: "hello".to_owned() };
    assert_eq!((by_file.input, by_file.input_file), (InputDelivery::File, Some(file)));
    assert_eq!(
        args(json!({"input_pattern": "file", "args": ["{{input_file}}", "-x"]}), &run("")),
        ["/scratch/7/input.txt", "-x"]
    );
    let json_rpc = plan(&agent(json!({"agent_type": "json-rpc"})), &with("hello", json!({"a": 1}))).unwrap();
    assert_eq!((json_rpc.input, json_rpc.args.len(), json_rpc.unused.len()), (InputDelivery::JsonRpc, 0, 0));
}

#[test]
fn output_file_is_passed_or_configured() {
    // SUP-2
    let passed = plan(&agent(json!({"output_pattern": "file", "args": ["-o", "{{output_file}}"]})), &run("")).unwrap();
    assert_eq!(passed.args, ["-o", "/scratch/7/output.txt"]);
    assert_eq!(passed.output_file.unwrap(), Path::new("/scratch/7/output.txt"));
    let fixed = |extra: Value| plan(&agent(extra), &run("")).unwrap().output_file.unwrap();
    assert_eq!(
        fixed(json!({"output_pattern": "file", "output_file_template": "out.md"})),
        Path::new("/scratch/7/out.md")
    );
    let there = json!({"output_pattern": "file", "output_file_template": "out.md", "working_directory": "/tmp"});
    assert_eq!(fixed(there), Path::new("/tmp/out.md"));
    let absolute = json!({"output_pattern": "file", "output_file_template": "/tmp/{{agent_id}}.md"});
    assert_eq!(fixed(absolute), Path::new("/tmp/mine.md"));
    let message = refused(json!({"output_pattern": "file"}), &run(""));
    assert!(message.contains("put {{output_file}} into args"), "{message}");
}

#[test]
fn parameters_cannot_leave_the_directory() {
    for (template, name) in [
        ("{{name}}", "../6/input.txt"),
        ("{{name}}", "/etc/passwd"),
        ("a/{{name}}/b", "../../.."),
        ("{{name}}", "."),
        ("{{name}}", "a/"),
        ("{{name}}", ""),
        ("/data/out/{{name}}", "../x"),
        ("/data/out-{{name}}", "/../../x"),
    ] {
        let extra = json!({"input_pattern": "file", "input_file_template": template});
        let message = refused(extra, &with("", json!({"name": name})));
        assert!(message.contains("which is not a file inside"), "{template} {name}: {message}");
    }
    let inside = json!({"input_pattern": "file", "input_file_template": "{{scratch}}/a/{{name}}"});
    assert_eq!(args(inside, &with("", json!({"name": "../b..c"}))), ["/scratch/7/b..c"]);
}

#[test]
fn requests_cannot_add_options() {
    let by_args = |args: &[&str]| json!({"input_pattern": "args", "args": args});
    assert!(refused(by_args(&["-p"]), &run("--yolo")).starts_with("input begins with '-'"));
    assert!(refused(by_args(&["{{input}}"]), &run("- milk")).starts_with("args[0] begins with '-'"));
    assert!(refused(json!({"cli_args": {"m": "{{m}}"}}), &with("", json!({"m": "-x"}))).starts_with("cli_args.m"));
    assert_eq!(args(by_args(&["-p", "--"]), &run("--yolo")), ["-p", "--", "--yolo"]);
    assert_eq!(args(by_args(&["--prompt={{input}}"]), &run("--yolo")), ["--prompt=--yolo"]);
    for number in ["-1.5", "-3", "-.5", "-1e9"] {
        assert_eq!(args(by_args(&[]), &run(number)), [number]);
    }
    for option in ["-inf", "-nan", "-infinity", "-1x", "--1"] {
        assert!(refused(by_args(&[]), &run(option)).starts_with("input begins with '-'"), "{option}");
    }
    assert_eq!(args(json!({"args": ["{{m}}"], "parameters": {"m": "-x"}}), &run("")), ["-x"]);
}

#[test]
fn commands_beyond_system_limits_are_rejected() {
    let by_args = json!({"input_pattern": "args", "max_input_size": 3_000_000});
    let long = "x".repeat(MAX_ARGUMENT_BYTES);
    assert_eq!(args(by_args.clone(), &run(&long)), [long.as_str()]);
    assert!(refused(by_args.clone(), &run(&format!("{long}x"))).ends_with("by stdin or file (input_pattern)"));
    let mut many = by_args.clone();
    many["args"] = json!(vec!["{{input}}"; 20]);
    assert!(refused(many, &run(&long)).starts_with("arguments and variables have 262"));
    assert!(refused(by_args, &run("a\0b")).starts_with("input contains a NUL byte"));
    assert_eq!(plan(&agent(json!({})), &run("a\0b")).unwrap().input, InputDelivery::Stdin("a\0b".to_owned()));
    let message = refused(json!({"max_input_size": 4}), &run("hello"));
    assert_eq!(message, "the input has 5 bytes; max_input_size is 4");
}

#[test]
fn environment_combines_adjutant_agent_and_run() {
    // SUP-1, SUP-9
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "  of the file\n").unwrap();
    let extra = json!({"envs": {
        "A": "x ${KEY}-${OTHER}$", "B_TOKEN": "env:KEY", "C": format!("file:{}", file.path().display()),
        "D": "${HOME}/d", "PATH": "/nowhere:${PATH}", "E": "agent's",
    }});
    let envs = [("E", "${KEY}"), ("E_TOKEN", "run's secret")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let run = CommandRequest { envs: envs.into(), ..run("") };
    let plan = plan(&agent(extra), &run).unwrap();
    let expected = json!({
        "A": "x value-of-key-value-of-other$", "ADJUTANT_EXECUTION_ID": "00000000-0000-0000-0000-000000000007",
        "ADJUTANT_FILES": "/scratch/7/files",
        "B_TOKEN": "value-of-key", "C": "of the file", "D": "/home/me/d", "E": "${KEY}", "E_TOKEN": "run's secret",
        "HOME": "/home/me", "HTTPS_PROXY": "http://me:secret@proxy:3128", "LC_ALL": "C.UTF-8", "NO_COLOR": "1",
        "PATH": "/nowhere:/usr/bin:/bin", "TERM": "dumb", "TMPDIR": "/scratch/7/tmp",
    });
    assert_eq!(serde_json::to_value(&plan.env).unwrap(), expected);
    let secrets = ["http://me:secret@proxy:3128", "of the file", "run's secret", "value-of-key", "value-of-other"];
    assert_eq!(plan.secrets, secrets);
    assert!(!format!("{plan:?}").contains("value-of"));

    assert!(
        refused(json!({"envs": {"A": "${KEY} ${GONE}"}}), &self::run(""))
            .contains("the variable GONE, which is not set")
    );
    assert!(refused(json!({"envs": {"A": "env:GONE"}}), &self::run("")).contains("the variable GONE"));
    assert!(
        refused(json!({"envs": {"A": "file:/gone"}}), &self::run("")).contains("envs.A needs the file /gone: No such")
    );
    assert!(refused(json!({"envs": {"A": "${KEY"}}), &self::run("")).contains("${ without }"));
    let reserved = CommandRequest { envs: [("ADJUTANT_X".to_owned(), String::new())].into(), ..self::run("") };
    assert!(refused(json!({}), &reserved).contains("'ADJUTANT_X'"));
    let terminal = json!({"mode": "interactive", "session": {"terminal": true}});
    assert_eq!(self::plan(&agent(terminal), &self::run("")).unwrap().env["TERM"], "xterm-256color");
}

#[test]
fn program_is_found_on_the_path_of_the_agent() {
    // SUP-1
    let folder = TempDir::new().unwrap();
    let shown = folder.path().to_str().unwrap();
    let make = |name: &str, mode| {
        let path = folder.path().join(name);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    make("good", 0o700);
    make("plain", 0o600);
    let on_path = |program: &str| json!({"executable_path": program, "envs": {"PATH": format!(".:{shown}")}});
    let program = |extra: Value| plan(&agent(extra), &run("")).unwrap().program;
    assert_eq!(program(on_path("good")), folder.path().join("good"));
    assert!(refused(on_path("plain"), &run("")).contains("'plain' is not on the PATH"));
    let at_home = json!({"executable_path": "~/good", "envs": {"HOME": shown}});
    assert_eq!(program(at_home), folder.path().join("good"));
    let at = |path: String| refused(json!({"executable_path": path}), &run(""));
    assert!(at(format!("{shown}/plain")).ends_with("plain is not executable: make it executable with chmod +x"));
    assert!(at(format!("{shown}/gone")).contains("gone cannot be run: No such file"));
    assert!(at("/tmp/".to_owned()).ends_with("is a directory"));
}

#[test]
fn working_directory_comes_from_the_run_then_the_agent() {
    let cwd = |extra: Value, requested: Option<&str>| {
        plan(&agent(extra), &CommandRequest { working_directory: requested.map(PathBuf::from), ..run("") })
    };
    assert_eq!(cwd(json!({}), None).unwrap().cwd, Path::new("/scratch/7"));
    assert_eq!(cwd(json!({"working_directory": "/usr"}), None).unwrap().cwd, Path::new("/usr"));
    assert_eq!(cwd(json!({"working_directory": "/usr"}), Some("/tmp")).unwrap().cwd, Path::new("/tmp"));
    let gone = cwd(json!({"working_directory": "/gone"}), None).unwrap_err();
    assert!(gone.message.starts_with("the working directory /gone cannot be used"));
}

/// Returns a plan with a scratch directory on disk.
fn plan_on_disk(extra: Value) -> (TempDir, CommandPlan) {
    let folder = TempDir::new().unwrap();
    let plan = CommandPlan::make(&agent(extra), &run("hello"), &folder.path().join("a/b"), own_variables).unwrap();
    (folder, plan)
}

#[test]
fn files_are_private_and_read_back() {
    // SUP-2, SUP-9
    let (_folder, plan) =
        plan_on_disk(json!({"agent_type": "file-file", "args": ["{{input_file}}", "{{output_file}}"]}));
    let before = prepare_files(&plan).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let input = &plan.input_file.as_ref().unwrap().path;
    assert_eq!(fs::read_to_string(input).unwrap(), "hello");
    assert_eq!((mode(input), mode(&plan.scratch), mode(Path::new(&plan.env["TMPDIR"]))), (0o600, 0o700, 0o700));
    let absent = collect_files(&plan, &before, 100).unwrap_err();
    assert_eq!(absent.category, ErrorCategory::AgentError);
    assert!(absent.message.starts_with("the agent wrote no output file"));

    fs::write(plan.output_file.as_ref().unwrap(), "one two three four").unwrap();
    fs::create_dir_all(plan.output_dir.join("deep/er")).unwrap();
    fs::write(plan.output_dir.join("z.txt"), "12345").unwrap();
    fs::write(plan.output_dir.join("deep/er/a.txt"), "").unwrap();
    symlink("/etc/passwd", plan.output_dir.join("link")).unwrap();
    symlink("/etc", plan.output_dir.join("folder")).unwrap();
    let collected = collect_files(&plan, &before, 100).unwrap();
    assert_eq!(collected.output, Some(FileExcerpt { head: b"one two three four".into(), ..FileExcerpt::default() }));
    let artifact = |name: &str, size| Artifact { name: name.to_owned(), size };
    assert_eq!(collected.artifacts, [artifact("deep/er/a.txt", 0), artifact("z.txt", 5)]);
    let clipped = collect_files(&plan, &before, 12).unwrap().output.unwrap();
    assert_eq!(clipped, FileExcerpt { head: b"one ".into(), missing: 8, tail: b"e four".into() });
    // A file that existed before belongs to an earlier run.
    let again = prepare_files(&plan).unwrap();
    assert!(collect_files(&plan, &again, 100).is_err());
}

#[test]
fn links_and_pipes_are_not_read_as_output() {
    let (_folder, plan) =
        plan_on_disk(json!({"output_pattern": "file", "args": ["{{output_file}}"], "output_file_template": "o/x"}));
    let before = prepare_files(&plan).unwrap();
    let output = plan.output_file.as_ref().unwrap();
    let message = || collect_files(&plan, &before, 100).unwrap_err().message;
    symlink("/etc/passwd", output).unwrap();
    assert!(message().contains("cannot be read"), "{}", message());
    fs::remove_file(output).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, output, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert!(message().contains("is not a file"), "{}", message());
    fs::remove_file(output).unwrap();
    fs::remove_dir(output.parent().unwrap()).unwrap();
    symlink("/etc", output.parent().unwrap()).unwrap();
    let plan = CommandPlan { output_file: Some(plan.scratch.join("o/passwd")), ..plan };
    assert!(collect_files(&plan, &before, 100).unwrap_err().message.contains("wrote no output file"));
}
