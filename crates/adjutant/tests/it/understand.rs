//! `adjutant understand`: text output for one utterance, JSON for many lines.

use std::io::{BufRead, BufReader, Write};
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::home;

const NOW: &str = "2025-12-21T12:00:00Z";

fn pipe(arguments: &[&str], input: &[u8]) -> Output {
    let home = home();
    let mut command = home.command(arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

fn results(output: &Output) -> Vec<Value> {
    str::from_utf8(&output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn one_utterance_is_printed_as_text() {
    // AGENT-9
    let text = "add pay rent tomorrow at 5pm #home, high priority, and delete the milk task";
    let output = home().run(&["understand", "--now", NOW, text]).ok();
    let lines: Vec<_> = output.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let commands: Vec<_> = lines.iter().filter(|line| line.ends_with(')') && line.contains('_')).collect();
    assert!(commands[0].starts_with("create_task (") && commands[1].starts_with("delete_task ("), "{output}");
    for line in ["title pay rent", "due 2025-12-22 17:00 (Monday)", "priority high", "tags home", "task milk"] {
        assert!(lines.iter().any(|printed| printed == line), "{line} in {output}");
    }
    let output = home().run(&["understand", "show completed tasks tagged work"]).ok();
    assert!(output.contains("status: completed, tags: work"), "{output}");
    let output = home().run(&["understand", "add a task"]).ok();
    assert!(
        output.starts_with("clarification_needed") && output.contains("more details about what the task is?"),
        "{output}"
    );
}

#[test]
fn dates_are_printed_and_numeric_dates_follow_the_setting() {
    let home = home();
    let arguments = ["understand", "--now", NOW, "pay rent on 3/4 and every friday"];
    let output = home.run(&arguments).ok();
    assert!(output.contains("due         2026-03-04 (Wednesday)"), "{output}");
    assert!(output.contains("date 'on 3/4'\n  2026-03-04 (Wednesday)\n  precision day\n"), "{output}");
    assert!(output.contains("  FREQ=WEEKLY;BYDAY=FR\n"), "{output}");
    let mut day_first = home.command(&arguments);
    day_first.env("ADJUTANT_ASSISTANT__NUMERIC_DATES", "day_first");
    let output = day_first.output().unwrap();
    let output = str::from_utf8(&output.stdout).unwrap();
    assert!(output.contains("due         2026-04-03 (Friday)"), "{output}");
}

#[test]
fn every_line_gets_one_result_in_order() {
    // AGENT-9
    let input = [
        "buy milk tomorrow\n".as_bytes(),
        b"{\"text\": \"call mom at 9am\", \"now\": \"2026-03-01T08:00:00+05:30\"}\r\n",
        b"\n",
        b"{\"text\": \"call mom\"\n",
        b"{\"text\": \"hello\", \"now\": \"soon\"}\n",
        b"\xff\xfe delete the milk task\n",
        format!("{}\n", "a ".repeat(2501)).as_bytes(),
        format!("{}\n", "b".repeat(3 << 20)).as_bytes(),
        b"delete the milk task",
    ]
    .concat();
    let output = pipe(&["understand", "--json", "--now", NOW], &input);
    let results = results(&output);
    assert_eq!(results.len(), 9);
    assert_eq!(results[0]["extracted_params"]["due_date"], json!("2025-12-22"));
    assert_eq!(results[1]["extracted_params"]["due_date"], json!("2026-03-01T09:00:00"));
    assert_eq!(results[2]["intent"], json!("unknown"));
    for (at, words) in [(3, "line 4: "), (4, "line 5: now: \"soon\""), (6, "longer than 5000"), (7, "longer than 5000")]
    {
        let message = results[at]["error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(results[8]["extracted_params"]["task_ref"], json!("milk"));
    assert_eq!(output.status.code(), Some(2), "lines were rejected");
    assert!(String::from_utf8_lossy(&output.stderr).contains("4 of 9 lines"));
}

#[test]
fn results_are_flushed_after_each_line() {
    let home = home();
    let mut command = home.command(&["understand", "--json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..2 {
        input.write_all(b"undo that\n").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["intent"], json!("undo"));
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn an_invalid_time_is_rejected() {
    let ran = home().run(&["understand", "--now", "yesterday", "hello"]);
    assert_eq!((ran.code(), ran.out()), (2, String::new()));
    assert!(ran.err().contains("--now: \"yesterday\" is not a time such as"), "{}", ran.err());
    let zoned =
        home().run(&["understand", "--json", "--now", "2025-12-31T20:00:00-05:00[America/New_York]", "pay tomorrow"]);
    assert_eq!(zoned.json()["extracted_params"]["due_date"], json!("2026-01-01"));
}

#[test]
fn the_guide_shows_the_actual_output() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/intents.md")).unwrap();
    let (_, shown) = page.split_once("$ adjutant understand ").unwrap();
    let (command, shown) = shown.split_once('\n').unwrap();
    let (options, text) = command.split_once(" \"").unwrap();
    let arguments: Vec<_> =
        ["understand"].into_iter().chain(options.split(' ')).chain([text.trim_end_matches('"')]).collect();
    // Confidence values change with every training.
    let without_confidence =
        |text: &str| text.lines().map(|line| line.split(" (0.").next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(
        without_confidence(&home().run(&arguments).ok()),
        without_confidence(shown.split_once("```").unwrap().0)
    );
}
