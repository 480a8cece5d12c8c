//! `adjutant schedules`.

use serde_json::json;
use testkit::app::Home;

use super::AGENTS;

fn home() -> Home {
    crate::home().with_config(AGENTS).with_env("TZ", "UTC")
}

/// Runs the same checks without and with a server.
fn without_and_with_server(check: impl Fn(&Home)) {
    check(&home());
    let served = home();
    let _server = served.serve();
    check(&served);
}

#[test]
fn schedules_can_be_added_listed_edited_paused_and_removed() {
    // SCHED-2
    without_and_with_server(|home| {
        assert_eq!(home.run(&["schedules", "list"]).ok(), "");
        let add = ["schedules", "add", "cat", "Tidy the changelog.", "--name", "tidy", "--at", "2099-01-02T09:00"];
        assert_eq!(home.run(&add).ok(), "Added 'tidy', next at 2099-01-02 08:00:00\n");
        assert_eq!(home.run(&add).code(), 7, "the name is taken");
        let listed = home.run(&["schedules", "list"]).ok();
        let line = "\ttidy\tcat\tonce, 2099-01-02 08:00:00\tactive\t\t2099-01-02 08:00:00\n";
        assert!(listed.ends_with(line), "{listed}");
        let id = home.run(&["schedules", "list", "-q"]).ok();
        let suffix = &id.trim()[28..];
        let edit = ["schedules", "edit", suffix, "--cron", "0 9 1 1 *", "--time-zone", "UTC", "--param", "depth=3"];
        let edited = home.run(&edit).ok();
        assert!(edited.starts_with("Updated 'tidy', next at ") && edited.ends_with("-01-01 09:00:00\n"), "{edited}");
        let schedule = home.run(&["schedules", "list", "--json"]).json()["schedules"][0].clone();
        assert_eq!(schedule["input_parameters"], json!({"input": "Tidy the changelog.", "depth": 3}));
        let times = home.run(&["schedules", "next", "tidy", "-n", "2"]).ok();
        assert_eq!(times.lines().filter(|line| line.ends_with("-01-01 09:00:00")).count(), 2, "{times}");

        let paused = home.run(&["schedules", "pause", "tidy", "--reason", "holidays"]).ok();
        assert_eq!(paused, "Paused 'tidy': holidays\n");
        assert_eq!(home.run(&["schedules", "list", "--paused", "-q"]).ok().trim(), id.trim());
        let explained = home.run(&["schedules", "explain", "tidy"]).ok();
        assert!(explained.contains("holidays"), "{explained}");
        assert!(home.run(&["schedules", "resume", "tidy"]).ok().starts_with("Resumed 'tidy', next at "));

        let refused = home.run(&["schedules", "rm", "tidy"]);
        assert_eq!(refused.code(), 4, "{}", refused.err());
        assert_eq!(home.run(&["schedules", "rm", "tidy", "--yes"]).ok(), "Removed 'tidy'\n");
        for arguments in [&["schedules", "pause", "tidy"][..], &["schedules", "add", "unknown", "x", "--every", "1h"]] {
            assert_eq!(home.run(arguments).code(), 3, "{arguments:?}");
        }
        for arguments in [
            &["schedules", "add", "cat", "x"][..],
            &["schedules", "edit", "tidy"],
            &["schedules", "add", "cat", "--every", "1h", "--at", "x"],
        ] {
            assert_ne!(home.run(arguments).code(), 0, "{arguments:?}");
        }
    });
}

#[test]
fn a_name_is_generated_if_none_is_given() {
    let home = home();
    home.run(&["schedules", "add", "cat", "--every", "1h"]).ok();
    assert!(home.run(&["schedules", "add", "cat", "--every", "2h"]).ok().starts_with("Added 'cat-2', next at "));
    let wrong = home.run(&["schedules", "add", "cat", "--cron", "0 25 * * *"]);
    assert_eq!(wrong.code(), 2);
    assert!(wrong.err().contains("cron_expression") && wrong.err().contains("hour"), "{}", wrong.err());
}

#[test]
fn run_prints_the_output_of_the_agent() {
    // SCHED-2
    without_and_with_server(|home| {
        home.run(&["schedules", "add", "sh", "echo out; exit $code", "--name", "job", "--at", "2099-01-02T09:00"]).ok();
        home.run(&["schedules", "edit", "job", "--input", "echo out"]).ok();
        assert_eq!(home.run(&["schedules", "run", "job"]).ok(), "out\n");
        home.run(&["schedules", "edit", "job", "--input", "exit 3"]).ok();
        assert_eq!(home.run(&["schedules", "run", "job"]).code(), 1);
        let history = home.run(&["schedules", "history", "job"]).ok();
        assert_eq!(history.lines().filter(|line| line.contains("\trun\t")).count(), 2, "{history}");
        assert_eq!(home.run(&["schedules", "history", "job", "--json"]).json()["count"], 2);
    });
}
