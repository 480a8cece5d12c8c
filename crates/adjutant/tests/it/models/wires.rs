//! Every provider × everything that a model can do (MODEL-2).

use serde_json::json;
use testkit::llm::{Entry, Reply};

use super::{HEADER_KEY, KEY, Kind, PLAIN_KEY, Stage, adding, find_uuid, has_uuid};

#[tokio::test]
async fn openai() {
    everything(Kind::OpenAi).await;
}

#[tokio::test]
async fn a_server_like_openai_with_its_key_in_a_header() {
    everything(Kind::Azure).await;
}

#[tokio::test]
async fn gemini() {
    everything(Kind::Gemini).await;
}

#[tokio::test]
async fn gemini_asked_as_openai_is() {
    everything(Kind::GeminiAsOpenAi).await;
}

#[tokio::test]
async fn anthropic() {
    everything(Kind::Anthropic).await;
}

async fn everything(kind: Kind) {
    let stage = Stage::new(kind).await;
    usage(&stage, kind).await;
    plain_answer(&stage, kind).await;
    one_tool(&stage, kind).await;
    parallel_tools(&stage, kind).await;
    three_rounds(&stage, kind).await;
    reasoning(&stage, kind).await;
    history(&stage, kind).await;
    torn(&stage, kind).await;
    let health = stage.health().await;
    assert_eq!((&health["name"], &health["status"]), (&json!(kind.label()), &json!("ok")), "{health}");
    assert_eq!(health["circuit_breaker"]["failure_count"], 0, "{health}");
}

/// First of all: the figures are of one turn.
async fn usage(stage: &Stage, kind: Kind) {
    stage.llm.script([adding("count tokens").usage(100, 20), Reply::text("Counted.").usage(130, 5)]);
    let turn = stage.say("add count tokens").await;
    let sum = json!({"input_tokens": 230, "output_tokens": 25, "reasoning_tokens": 0, "total_tokens": 255});
    assert_eq!(turn.done()["usage"], sum, "{kind:?}");
    let metrics = stage.metrics().await;
    let label = kind.label();
    for line in [
        format!("adjutant_model_calls_total{{model=\"{label}\",success=\"true\"}} 2"),
        format!("adjutant_model_tokens_total{{model=\"{label}\",kind=\"input\"}} 230"),
        format!("adjutant_model_tokens_total{{model=\"{label}\",kind=\"output\"}} 25"),
        format!("adjutant_circuit_breaker_state{{service=\"{label}\"}} 0"),
    ] {
        assert!(metrics.contains(&line), "{line}\n{metrics}");
    }
    stage.llm.script([Reply::text("Well.").usage(7, 3)]);
    let ran = stage.run("how are you?").await;
    let sum = json!({"input_tokens": 7, "output_tokens": 3, "reasoning_tokens": 0, "total_tokens": 10});
    assert_eq!(ran["metadata"]["usage"], sum, "{ran}");
    assert_eq!(ran["metadata"]["model"], label, "{ran}");
    stage.llm.script([Reply::text("Nobody counts.").without_usage()]);
    let turn = stage.say("hello").await;
    assert!(turn.succeeded() && turn.done().get("usage").is_none(), "{turn:?}");
}

async fn plain_answer(stage: &Stage, kind: Kind) {
    let before = stage.count();
    stage.llm.script([Reply::text("Good morning! What would you like to get done today?")]);
    let turn = stage.say("good morning").await;
    assert_eq!(turn.output(), "Good morning! What would you like to get done today?");
    assert!(turn.succeeded() && turn.errors().is_empty() && turn.calls().is_empty(), "{turn:?}");
    assert_eq!(turn.done()["model"], kind.label());
    assert!(turn.of("response_delta").count() > 1, "it comes while it is said: {turn:?}");
    let requests = stage.llm.requests();
    assert_eq!(requests.len(), before + 1);
    let asked = &requests[before];
    assert_eq!(asked.wire, kind.wire());
    assert!(asked.stream);
    assert_eq!(asked.temperature(), Some(0.0), "AGENT-12");
    let model = kind.label().split_once(':').unwrap().1;
    assert_eq!(asked.model, model);
    assert_eq!(asked.key(), Some(kind.secret()));
    if kind == Kind::Azure {
        assert_eq!((asked.header("authorization"), asked.header("x-team")), (None, Some("blue")));
    }
    let transcript = asked.transcript();
    let [Entry::System(system), Entry::User(said)] = transcript.as_slice() else { panic!("{transcript:?}") };
    assert_eq!(said, "good morning");
    assert!(system.contains("TaskManager"), "{system}");
    assert!(!has_uuid(system), "{system}");
    for secret in [KEY, PLAIN_KEY, HEADER_KEY] {
        assert!(!asked.body().to_string().contains(secret));
    }
    let tools = asked.tools();
    for name in ["add_task", "list_tasks", "complete_task", "delete_task", "update_task", "schedule_reminder"] {
        assert!(tools.iter().any(|tool| tool == name), "{tools:?}");
    }
    for tool in &tools {
        let schema = asked.tool_schema(tool).unwrap();
        assert!(!schema.to_string().contains("user_id"), "AGENT-3: {tool} {schema}");
        assert_eq!(schema["type"], "object", "{tool} {schema}");
    }
}

async fn one_tool(stage: &Stage, kind: Kind) {
    let before = stage.count();
    let title = "buy 2 l of milk, „fresh“ – at Müller's ☕";
    stage.llm.script([adding(title), Reply::text("Got it! Added it to your list.")]);
    let turn = stage.say("remember the milk").await;
    assert_eq!(turn.calls(), [("add_task", "completed")], "{kind:?} {turn:?}");
    assert_eq!(turn.done()["tools_called"], json!(["add_task"]));
    assert_eq!(turn.output(), "Got it! Added it to your list.");
    assert_eq!(stage.titles().await.last().unwrap(), title);
    let asked = &stage.llm.requests()[before + 1];
    let results = asked.tool_results();
    assert!(results.len() == 1 && results[0].contains(title) && has_uuid(&results[0]), "{results:?}");
    let transcript = asked.transcript();
    let call = Entry::Call { name: "add_task".to_owned(), arguments: json!({"title": title}) };
    assert!(transcript.contains(&call), "{transcript:?}");
}

async fn parallel_tools(stage: &Stage, kind: Kind) {
    let before = stage.count();
    let two = [("add_task", json!({"title": "first of two"})), ("add_task", json!({"title": "second of two"}))];
    stage.llm.script([Reply::calls(two), Reply::text("Both added.")]);
    let turn = stage.say("add two things").await;
    assert_eq!(turn.calls(), [("add_task", "completed"), ("add_task", "completed")], "{kind:?} {turn:?}");
    let titles = stage.titles().await;
    assert!(titles.ends_with(&["first of two".to_owned(), "second of two".to_owned()]), "{titles:?}");
    let results = stage.llm.requests()[before + 1].tool_results();
    assert_eq!(results.len(), 2, "{results:?}");
    assert!(results[0].contains("first of two") && results[1].contains("second of two"), "{results:?}");
}

async fn three_rounds(stage: &Stage, kind: Kind) {
    stage.llm.script([adding("read the book"), Reply::text("Added.")]);
    stage.say("add read the book").await;
    stage.llm.decide(|request| match request.tool_results().as_slice() {
        [] => Reply::call("list_tasks", json!({})).thinking("Which book?"),
        [list] => {
            let at = list.find("read the book").unwrap();
            // The id stands beside the title, before or after it.
            let line = list.lines().find(|line| line.contains("read the book")).unwrap_or(&list[at..]);
            let id = find_uuid(line).or(find_uuid(&list[at..])).unwrap();
            Reply::call("update_task", json!({"task_id": id, "priority": "high"}))
        }
        [_, updated] => Reply::text(if updated.contains("read the book") { "It is important now." } else { "Hm." }),
        more => panic!("{more:?}"),
    });
    let turn = stage.say("the book is important").await;
    assert_eq!(turn.calls(), [("list_tasks", "completed"), ("update_task", "completed")], "{kind:?} {turn:?}");
    assert_eq!(turn.output(), "It is important now.");
    let tasks = stage.tasks().await;
    let book = tasks["tasks"].as_array().unwrap().iter().find(|task| task["title"] == "read the book").unwrap();
    assert_eq!(book["priority"], "high");
    stage.llm.always(Reply::text("Hello."));
}

async fn reasoning(stage: &Stage, kind: Kind) {
    let before = stage.count();
    let thought = "The person wants bread. I will add it, and not more than that.";
    stage.llm.script([adding("buy bread").thinking(thought).usage(50, 30), Reply::text("Added bread.").usage(60, 4)]);
    let turn = stage.say("bread please").await;
    let thoughts: Vec<_> = turn.of("thinking").map(|event| event["content"].as_str().unwrap()).collect();
    assert!(thoughts[1..].join(" ").contains(thought), "{kind:?} {thoughts:?}");
    assert_eq!(turn.output(), "Added bread.", "thoughts are no answer");
    let usage = &turn.done()["usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(110), &json!(34)), "{kind:?}");
    if kind != Kind::Anthropic {
        assert_eq!(usage["reasoning_tokens"], 3, "{kind:?}: Anthropic does not count them apart");
    }
    let again = &stage.llm.requests()[before + 1];
    if kind.wire() != testkit::llm::Wire::OpenAi {
        assert_eq!(again.signatures(), [format!("c2lnbmVk{:08}", stage.llm.requests()[before].number)], "{kind:?}");
    }
}

async fn history(stage: &Stage, kind: Kind) {
    let before = stage.count();
    stage.llm.script([Reply::text("Your dog is called Rex."), Reply::text("Rex, as you said.")]);
    stage.say_in("conv_history", "my dog is called Rex").await;
    stage.say_in("conv_history", "what is my dog called?").await;
    let transcript = stage.llm.requests()[before + 1].transcript();
    let said = [
        Entry::User("my dog is called Rex".to_owned()),
        Entry::Assistant("Your dog is called Rex.".to_owned()),
        Entry::User("what is my dog called?".to_owned()),
    ];
    assert_eq!(transcript[1..], said, "{kind:?}");
}

/// Bytes come as the network likes.
async fn torn(stage: &Stage, kind: Kind) {
    let text = "Grüße! 你好 ☕ – that is all there is to say.";
    stage.llm.script([adding("Äpfel kaufen 🍎").torn(3), Reply::text(text).torn(1)]);
    let turn = stage.say("äpfel").await;
    assert_eq!(turn.output(), text, "{kind:?}");
    assert_eq!(stage.titles().await.last().unwrap(), "Äpfel kaufen 🍎");
}
