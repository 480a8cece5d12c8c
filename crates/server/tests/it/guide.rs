//! The guide's transcripts and examples are what the program does. `UPDATE_GUIDE=1` writes what it does into the guide.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Bench;

fn page(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide").join(name)
}

#[tokio::test]
async fn the_transcripts_of_the_guide_are_true() {
    // AGENT-6
    assert!(play("assistant.md").await > 20);
}

#[tokio::test]
async fn the_transcripts_about_schedules_are_true() {
    // AGENT-6, SCHED-2
    assert!(play("schedules.md").await > 5);
}

/// Plays a page, and gives how often something is said on it.
async fn play(name: &str) -> usize {
    let written = std::fs::read_to_string(page(name)).unwrap();
    let mut played = String::new();
    let mut bench = Bench::offline().await;
    let mut inside = false;
    let mut turns = 0;
    for line in written.lines() {
        match line {
            "```chat" if name == "schedules.md" => (bench, inside) = (Bench::with_codex().await, true),
            "```chat" => (bench, inside) = (Bench::offline().await, true),
            "```chat more" => inside = true,
            "```" => inside = false,
            _ => {}
        }
        if inside && !line.starts_with("```") {
            // What was answered when the page was written is answered anew.
            let Some(input) = line.strip_prefix("> ") else { continue };
            bench.clock.advance(Duration::from_secs(1));
            let answer = bench.chat(input).await;
            played.push_str(&format!("> {input}\n{}\n", answer["response"].as_str().unwrap()));
            turns += 1;
        } else {
            played.push_str(&format!("{line}\n"));
        }
    }
    if std::env::var_os("UPDATE_GUIDE").is_some() {
        std::fs::write(page(name), &played).unwrap();
    }
    assert_eq!(played, written, "play it again with UPDATE_GUIDE=1 and read the difference");
    turns
}

#[tokio::test]
async fn the_examples_of_the_intents_are_true() {
    // AGENT-9
    let bench = Bench::offline().await;
    let text = std::fs::read_to_string(page("intents.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let mut asked = 0;
    for (intent, row) in rows {
        let examples = row.rsplit(" | ").next().unwrap().trim_end_matches(" |").split(" · ");
        for example in examples.map(|example| example.trim_matches('`')) {
            let answer = bench.post("/agent/run", &json!({"message": example})).await.json::<Value>().await.unwrap();
            assert_eq!(answer["metadata"]["intent"], intent, "{example}");
            asked += 1;
        }
    }
    assert!(asked > 15, "only {asked} examples were found");
}
