//! Checks the transcripts and examples of the guide against the program. `UPDATE_GUIDE=1` updates the guide.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::TestServer;

fn page(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide").join(name)
}

#[tokio::test]
async fn assistant_transcripts_are_up_to_date() {
    // AGENT-6
    assert!(replay("assistant.md").await > 20);
}

#[tokio::test]
async fn schedule_transcripts_are_up_to_date() {
    // AGENT-6, SCHED-2
    assert!(replay("schedules.md").await > 5);
}

/// Replays the transcripts of a page. Returns the number of turns.
async fn replay(name: &str) -> usize {
    let written = std::fs::read_to_string(page(name)).unwrap();
    let mut replayed = String::new();
    let mut server = TestServer::offline().await;
    let mut inside = false;
    let mut turns = 0;
    for line in written.lines() {
        match line {
            "```chat" if name == "schedules.md" => (server, inside) = (TestServer::with_codex().await, true),
            "```chat" => (server, inside) = (TestServer::offline().await, true),
            "```chat more" => inside = true,
            "```" => inside = false,
            _ => {}
        }
        if inside && !line.starts_with("```") {
            // The replies on the page are replaced by the replies of this run.
            let Some(input) = line.strip_prefix("> ") else { continue };
            server.clock.advance(Duration::from_secs(1));
            let answer = server.chat(input).await;
            replayed.push_str(&format!("> {input}\n{}\n", answer["response"].as_str().unwrap()));
            turns += 1;
        } else {
            replayed.push_str(&format!("{line}\n"));
        }
    }
    if std::env::var_os("UPDATE_GUIDE").is_some() {
        std::fs::write(page(name), &replayed).unwrap();
    }
    assert_eq!(replayed, written, "run the test with UPDATE_GUIDE=1 and review the difference");
    turns
}

#[tokio::test]
async fn intent_examples_are_up_to_date() {
    // AGENT-9
    let server = TestServer::offline().await;
    let text = std::fs::read_to_string(page("intents.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let mut checked = 0;
    for (intent, row) in rows {
        let examples = row.rsplit(" | ").next().unwrap().trim_end_matches(" |").split(" · ");
        for example in examples.map(|example| example.trim_matches('`')) {
            let answer = server.post("/agent/run", &json!({"message": example})).await.json::<Value>().await.unwrap();
            assert_eq!(answer["metadata"]["intent"], intent, "{example}");
            checked += 1;
        }
    }
    assert!(checked > 15, "only {checked} examples were found");
}
