//! Tests of the recognition of messages about runs.

use super::*;

fn topic(text: &str) -> Option<(RunTopic, RunReference)> {
    let agents = [json!({"id": "codex", "name": "Codex"}), json!({"id": "slow-crawler", "name": "slow-crawler"})];
    find_topic(&agents, &Words::new(text).without_courtesy())
}

#[test]
fn questions_about_runs_are_recognized() {
    // TRUST-4
    use RunReference::{All, Latest, Mentioned};
    let codex = || RunReference::Agent("codex".to_owned());
    for (text, expected) in [
        ("what's running?", (RunTopic::Active, All)),
        ("is anything running at the moment", (RunTopic::Active, All)),
        ("and now, is there still something running?", (RunTopic::Active, All)),
        ("which agents are busy?", (RunTopic::Active, All)),
        ("is codex still running?", (RunTopic::State, codex())),
        ("has codex finished yet", (RunTopic::State, codex())),
        ("is it done?", (RunTopic::State, Mentioned)),
        ("what is codex doing?", (RunTopic::State, codex())),
        ("what did codex say?", (RunTopic::Result, codex())),
        ("what did Codex come up with?", (RunTopic::Result, codex())),
        ("what was its answer?", (RunTopic::Result, Mentioned)),
        ("whats the output", (RunTopic::Result, Latest)),
        ("show me codex's result", (RunTopic::Result, codex())),
        ("did it work?", (RunTopic::Result, Mentioned)),
        ("how did the run go?", (RunTopic::Result, Latest)),
        ("kill it", (RunTopic::Stop, Mentioned)),
        ("stop", (RunTopic::Stop, Mentioned)),
        ("ok cancel that run", (RunTopic::Stop, Mentioned)),
        ("stop slow pls", (RunTopic::Stop, RunReference::Agent("slow-crawler".to_owned()))),
        ("tell codex to stop", (RunTopic::Stop, codex())),
        ("stop all agents", (RunTopic::Stop, All)),
        ("run it again", (RunTopic::Again, Mentioned)),
        ("run codex again", (RunTopic::Again, codex())),
        ("once more please", (RunTopic::Again, Mentioned)),
    ] {
        assert_eq!(topic(text), Some(expected), "{text}");
    }
}

#[test]
fn messages_about_tasks_are_not_about_runs() {
    for text in [
        "stop the newspaper subscription",
        "cancel the dentist",
        "add codex to the budget",
        "what did I finish today?",
        "which tasks are active?",
        "is the report done?",
        "what's on my list?",
        "have codex stop the server",
        "run the dishwasher again",
        "what should I do?",
    ] {
        assert_eq!(topic(text), None, "{text}");
    }
}
