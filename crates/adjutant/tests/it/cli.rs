//! The command line on the data directory and with a running server. Output and exit codes are the same.

use serde_json::json;
use testkit::app::Home;

use crate::home;

/// Runs the same checks without and with a server.
fn without_and_with_server(check: impl Fn(&Home)) {
    check(&home());
    let served = home();
    let _server = served.serve();
    check(&served);
}

#[test]
fn the_task_example_of_the_readme_works() {
    without_and_with_server(|home| {
        let add = ["tasks", "add", "pay rent", "--due", "2090-01-31", "--priority", "high", "--tag", "home"];
        let added = home.run(&add).ok();
        assert!(added.starts_with("Added 'pay rent', "), "{added}");
        assert!(added.ends_with(", high priority, tagged home\n"), "{added}");
        let line = home.run(&["tasks", "list"]).ok();
        assert!(line.ends_with("\t☐\tpay rent\tTue 31 Jan 2090\t\thigh\thome\n"), "{line}");
        let body = home.run(&["tasks", "list", "--json"]).json();
        assert_eq!((&body["count"], &body["next_cursor"]), (&json!(1), &json!(null)));
        let id = home.run(&["tasks", "list", "-q"]).ok().trim().to_owned();
        assert_eq!(body["tasks"][0]["id"], json!(id));
        assert!(id.ends_with(line.split('\t').next().unwrap()), "the table shows the suffix of the id");
    });
}

#[test]
fn tasks_can_be_completed_edited_removed_and_restored() {
    // AGENT-13
    without_and_with_server(|home| {
        home.run(&["tasks", "add", "Buy milk"]).ok();
        assert_eq!(home.run(&["tasks", "done", "milk"]).ok(), "Completed 'Buy milk'\n");
        assert_eq!(home.run(&["tasks", "list"]).ok(), "", "done tasks are not shown");
        assert_eq!(home.run(&["tasks", "undo"]).ok(), "'Buy milk' is open again\n");
        let edit = ["tasks", "edit", "milk", "--title", "Buy bread", "--due", "2091-02-01", "--repeat", "FREQ=WEEKLY"];
        assert_eq!(home.run(&edit).ok(), "Updated 'Buy bread', due Thu 1 Feb 2091, every week\n");
        home.run(&["tasks", "edit", "bread", "--clear", "due", "--clear", "repeat"]).ok();
        let task = home.run(&["tasks", "list", "--json"]).json()["tasks"][0].clone();
        assert_eq!((&task["due_date"], &task["recurrence"]), (&json!(null), &json!(null)));

        let refused = home.run(&["tasks", "rm", "bread"]);
        assert_eq!((refused.code(), refused.out()), (4, String::new()), "{}", refused.err());
        assert_eq!(home.run(&["tasks", "list", "-q"]).ok().lines().count(), 1);
        home.run(&["tasks", "rm", "bread", "--yes"]).ok();
        assert_eq!(home.run(&["tasks", "undo"]).ok(), "'Buy bread' is restored\n");
    });
}

#[test]
fn completing_a_recurring_task_creates_the_next_one() {
    without_and_with_server(|home| {
        // TASK-1
        home.run(&["tasks", "add", "pay rent", "--due", "2099-01-31", "--repeat", "FREQ=MONTHLY;BYMONTHDAY=-1"]).ok();
        let done = home.run(&["tasks", "done", "rent"]).ok();
        assert_eq!(done, "Completed 'pay rent'\n'pay rent' is due again Sat 28 Feb 2099\n");
        home.run(&["tasks", "add", "stand-up", "--due", "2099-01-31", "--repeat", "FREQ=DAILY;COUNT=1"]).ok();
        let done = home.run(&["tasks", "done", "rent", "stand-up"]).ok();
        let due = "'pay rent' is due again Tue 31 Mar 2099\n'stand-up' has no further occurrence\n";
        assert_eq!(done, format!("Completed 'pay rent', 'stand-up'\n{due}"));
        home.run(&["tasks", "undo"]).ok();
        let tasks = home.run(&["tasks", "list", "--json"]).json();
        assert_eq!((&tasks["count"], &tasks["tasks"][0]["due_date"]), (&json!(2), &json!("2099-02-28")));
        let edited = home.run(&["tasks", "edit", "rent", "--status", "completed"]).ok();
        assert_eq!(
            edited,
            "Updated 'pay rent', due Sat 28 Feb 2099, every month on the last day\n'pay rent' is due again Tue 31 Mar 2099\n"
        );
    });
}

#[test]
fn exit_codes_follow_the_documentation() {
    without_and_with_server(|home| {
        for title in ["call mum", "call dad"] {
            home.run(&["tasks", "add", title]).ok();
        }
        let code = |arguments: &[&str]| home.run(arguments).code();
        assert_eq!(code(&["tasks", "done", "call sister"]), 3);
        let ambiguous = home.run(&["tasks", "done", "call"]);
        assert_eq!(ambiguous.code(), 5);
        assert!(ambiguous.err().contains("call mum") && ambiguous.err().contains("call dad"), "{}", ambiguous.err());
        assert_eq!(code(&["tasks", "add", ""]), 2);
        assert_eq!(code(&["tasks", "add", "x", "--due", "soon"]), 2);
        assert_eq!(code(&["tasks", "edit", "call mum"]), 2, "nothing to change");
        assert_eq!(code(&["tasks", "fly"]), 2);
        assert_eq!(code(&["tasks", "list", "--server", "http://127.0.0.1:1"]), 8);
        assert_eq!(code(&["tasks", "list", "--server", "nonsense"]), 2);
        assert_eq!(code(&["restore", "no-such-file", "--yes"]), 3);
        assert_eq!(code(&["erase"]), 4);
        for _ in 0..2 {
            home.run(&["tasks", "undo"]).ok();
        }
        assert_eq!(code(&["tasks", "undo"]), 3, "nothing left to undo");
        let wrong = home.run(&["tasks", "add", "x", "--priority", "huge", "--json"]);
        assert_eq!(wrong.json()["errors"][0]["field"], "priority");
    });
}

#[test]
fn tasks_can_be_referenced_by_id_or_id_suffix() {
    without_and_with_server(|home| {
        for n in 0..3 {
            home.run(&["tasks", "add", &format!("task {n}")]).ok();
        }
        let ids = home.run(&["tasks", "list", "-q"]).ok();
        let ids: Vec<_> = ids.lines().collect();
        assert_eq!(home.run(&["tasks", "done", &ids[0][28..]]).ok(), "Completed 'task 0'\n");
        assert_eq!(home.run(&["tasks", "done", ids[1], ids[1]]).ok(), "Completed 'task 1'\n");
        assert_eq!(home.run(&["tasks", "done", &ids[2][..8]]).code(), 5, "ids of the same moment share a prefix");
    });
}

#[test]
fn a_change_of_several_tasks_is_one_undo_step() {
    // AGENT-13
    without_and_with_server(|home| {
        for title in ["one", "two", "three"] {
            home.run(&["tasks", "add", title]).ok();
        }
        assert_eq!(home.run(&["tasks", "done", "one", "two"]).ok(), "Completed 'one', 'two'\n");
        assert_eq!(home.run(&["tasks", "undo"]).ok(), "'one', 'two' are open again\n");
        home.run(&["tasks", "rm", "one", "three", "--yes"]).ok();
        assert_eq!(home.run(&["tasks", "list", "-q"]).ok().lines().count(), 1);
        assert_eq!(home.run(&["tasks", "undo"]).ok(), "'one', 'three' are restored\n");
        assert_eq!(home.run(&["tasks", "rm", "one", "nothing", "--yes"]).code(), 3);
        assert_eq!(home.run(&["tasks", "list", "-q"]).ok().lines().count(), 3, "all or none");
    });
}

#[test]
fn a_second_server_on_the_same_data_directory_is_rejected() {
    // OPS-4
    let home = home();
    let server = home.serve();
    let second = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.code(), 6);
    assert!(second.err().contains(&server.url), "{}", second.err());
}

#[test]
fn data_files_are_readable_only_by_their_owner() {
    use std::os::unix::fs::PermissionsExt;
    let home = home();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    home.run(&["tasks", "add", "a"]).ok();
    home.run(&["backup", "all.jsonl"]).ok();
    for file in ["adjutant.db", "adjutant.lock", "all.jsonl"] {
        let mode = std::fs::metadata(home.path().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{file}: {mode:o}");
    }
}

#[test]
fn a_port_in_use_is_reported() {
    let first = home();
    let server = first.serve();
    let address = server.url.trim_start_matches("http://").to_owned();
    let second = home().run(&["serve", "--listen", &address]);
    assert_eq!(second.code(), 1);
    assert!(second.err().contains("choose another with --listen"), "{}", second.err());
}

#[test]
fn completions_manual_and_doctor_produce_output() {
    let home = home();
    for shell in ["bash", "zsh", "fish"] {
        assert!(home.run(&["completions", shell]).ok().contains("adjutant"));
    }
    assert!(home.run(&["man"]).ok().contains(".TH adjutant"));
    assert_eq!(home.run(&["doctor", "--json"]).json()["ok"], true);
    let server = home.serve();
    assert!(home.run(&["doctor"]).ok().contains(&format!("running at {}", server.url)));
    drop(server);
    let broken = home.with_config("[server]\nlisten = 1\n").run(&["doctor"]);
    assert_eq!(broken.code(), 1);
    assert!(broken.out().contains("config.toml:2"), "{}", broken.out());
}

#[test]
fn help_lists_every_command() {
    insta::assert_snapshot!(home().run(&["--help"]).ok());
}
