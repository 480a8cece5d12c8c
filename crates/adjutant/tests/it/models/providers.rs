//! All functions of a model with every provider (MODEL-2).

use serde_json::json;
use testkit::llm::{Reply, TranscriptEntry};

use super::{Fixture, HEADER_KEY, KEY, PLAIN_KEY, Provider, add_task, find_uuid, has_uuid};

#[tokio::test]
async fn openai_works() {
    // AGENT-12, MODEL-2
    check_provider(Provider::OpenAi).await;
}

#[tokio::test]
async fn an_openai_compatible_server_with_a_header_key_works() {
    // MODEL-2
    check_provider(Provider::Azure).await;
}

#[tokio::test]
async fn gemini_works() {
    // AGENT-12, MODEL-2
    check_provider(Provider::Gemini).await;
}

#[tokio::test]
async fn gemini_works_with_the_openai_protocol() {
    // MODEL-2
    check_provider(Provider::GeminiAsOpenAi).await;
}

#[tokio::test]
async fn anthropic_works() {
    // AGENT-12, MODEL-2
    check_provider(Provider::Anthropic).await;
}

async fn check_provider(provider: Provider) {
    let fixture = Fixture::new(provider).await;
    usage(&fixture, provider).await;
    plain_answer(&fixture, provider).await;
    one_tool(&fixture, provider).await;
    parallel_tools(&fixture, provider).await;
    three_rounds(&fixture, provider).await;
    reasoning(&fixture, provider).await;
    history(&fixture, provider).await;
    small_chunks(&fixture, provider).await;
    let health = fixture.health().await;
    assert_eq!((&health["name"], &health["status"]), (&json!(provider.label()), &json!("ok")), "{health}");
    assert_eq!(health["circuit_breaker"]["failure_count"], 0, "{health}");
}

/// Runs first, because it checks totals.
async fn usage(fixture: &Fixture, provider: Provider) {
    fixture.llm.script([add_task("count tokens").usage(100, 20), Reply::text("Counted.").usage(130, 5)]);
    let turn = fixture.send("add count tokens").await;
    let sum = json!({"input_tokens": 230, "output_tokens": 25, "reasoning_tokens": 0, "total_tokens": 255});
    assert_eq!(turn.done()["usage"], sum, "{provider:?}");
    let metrics = fixture.metrics().await;
    let label = provider.label();
    for line in [
        format!("adjutant_model_calls_total{{model=\"{label}\",success=\"true\"}} 2"),
        format!("adjutant_model_tokens_total{{model=\"{label}\",kind=\"input\"}} 230"),
        format!("adjutant_model_tokens_total{{model=\"{label}\",kind=\"output\"}} 25"),
        format!("adjutant_circuit_breaker_state{{service=\"{label}\"}} 0"),
    ] {
        assert!(metrics.contains(&line), "{line}\n{metrics}");
    }
    fixture.llm.script([Reply::text("Well.").usage(7, 3)]);
    let ran = fixture.run("how are you?").await;
    let sum = json!({"input_tokens": 7, "output_tokens": 3, "reasoning_tokens": 0, "total_tokens": 10});
    assert_eq!(ran["metadata"]["usage"], sum, "{ran}");
    assert_eq!(ran["metadata"]["model"], label, "{ran}");
    fixture.llm.script([Reply::text("No figures.").without_usage()]);
    let turn = fixture.send("hello").await;
    assert!(turn.succeeded() && turn.done().get("usage").is_none(), "{turn:?}");
}

async fn plain_answer(fixture: &Fixture, provider: Provider) {
    let before = fixture.request_count();
    fixture.llm.script([Reply::text("Good morning! What would you like to get done today?")]);
    let turn = fixture.send("good morning").await;
    assert_eq!(turn.output(), "Good morning! What would you like to get done today?");
    assert!(turn.succeeded() && turn.errors().is_empty() && turn.calls().is_empty(), "{turn:?}");
    assert_eq!(turn.done()["model"], provider.label());
    assert!(turn.events_named("response_delta").count() > 1, "the reply is streamed: {turn:?}");
    let requests = fixture.llm.requests();
    assert_eq!(requests.len(), before + 1);
    let asked = &requests[before];
    assert_eq!(asked.wire, provider.wire());
    assert!(asked.stream);
    assert_eq!(asked.temperature(), Some(0.0), "AGENT-12");
    let model = provider.label().split_once(':').unwrap().1;
    assert_eq!(asked.model, model);
    assert_eq!(asked.api_key(), Some(provider.secret()));
    if provider == Provider::Azure {
        assert_eq!((asked.header("authorization"), asked.header("x-team")), (None, Some("blue")));
    }
    let transcript = asked.transcript();
    let [TranscriptEntry::System(system), TranscriptEntry::User(text)] = transcript.as_slice() else {
        panic!("{transcript:?}")
    };
    assert_eq!(text, "good morning");
    assert!(system.contains("TaskManager"), "{system}");
    assert!(!has_uuid(system), "{system}");
    for secret in [KEY, PLAIN_KEY, HEADER_KEY] {
        assert!(!asked.body().to_string().contains(secret));
    }
    let tools = asked.tool_names();
    for name in ["add_task", "list_tasks", "complete_task", "delete_task", "update_task", "schedule_reminder"] {
        assert!(tools.iter().any(|tool| tool == name), "{tools:?}");
    }
    for tool in &tools {
        let schema = asked.tool_schema(tool).unwrap();
        assert!(!schema.to_string().contains("user_id"), "AGENT-3: {tool} {schema}");
        assert_eq!(schema["type"], "object", "{tool} {schema}");
    }
}

async fn one_tool(fixture: &Fixture, provider: Provider) {
    let before = fixture.request_count();
    let title = "buy 2 l of milk, „fresh“ – at Müller's ☕";
    let text = format!("Got it! Added '{title}' to your list.");
    fixture.llm.script([add_task(title), Reply::text(&text)]);
    let turn = fixture.send("remember the milk").await;
    assert_eq!(turn.calls(), [("add_task", "completed")], "{provider:?} {turn:?}");
    assert_eq!(turn.done()["tools_called"], json!(["add_task"]));
    assert_eq!(turn.output(), text);
    assert_eq!(fixture.titles().await.last().unwrap(), title);
    let asked = &fixture.llm.requests()[before + 1];
    let results = asked.tool_results();
    assert!(results.len() == 1 && results[0].contains(title) && has_uuid(&results[0]), "{results:?}");
    let transcript = asked.transcript();
    let call = TranscriptEntry::Call { name: "add_task".to_owned(), arguments: json!({"title": title}) };
    assert!(transcript.contains(&call), "{transcript:?}");
}

async fn parallel_tools(fixture: &Fixture, provider: Provider) {
    let before = fixture.request_count();
    let two = [("add_task", json!({"title": "first of two"})), ("add_task", json!({"title": "second of two"}))];
    fixture.llm.script([Reply::calls(two), Reply::text("Both added.")]);
    let turn = fixture.send("add two things").await;
    assert_eq!(turn.calls(), [("add_task", "completed"), ("add_task", "completed")], "{provider:?} {turn:?}");
    let titles = fixture.titles().await;
    assert!(titles.ends_with(&["first of two".to_owned(), "second of two".to_owned()]), "{titles:?}");
    let results = fixture.llm.requests()[before + 1].tool_results();
    assert_eq!(results.len(), 2, "{results:?}");
    assert!(results[0].contains("first of two") && results[1].contains("second of two"), "{results:?}");
}

async fn three_rounds(fixture: &Fixture, provider: Provider) {
    fixture.llm.script([add_task("read the book"), Reply::text("Added.")]);
    fixture.send("add read the book").await;
    fixture.llm.reply_with(|request| match request.tool_results().as_slice() {
        [] => Reply::call("list_tasks", json!({})).thinking("Which book?"),
        [list] => {
            let at = list.find("read the book").unwrap();
            // The id is next to the title, before or after it.
            let line = list.lines().find(|line| line.contains("read the book")).unwrap_or(&list[at..]);
            let id = find_uuid(line).or(find_uuid(&list[at..])).unwrap();
            Reply::call("update_task", json!({"task_id": id, "priority": "high"}))
        }
        [_, updated] => Reply::text(if updated.contains("read the book") {
            "You have to read the book with high priority."
        } else {
            "Hm."
        }),
        more => panic!("{more:?}"),
    });
    let turn = fixture.send("the book is important").await;
    assert_eq!(turn.calls(), [("list_tasks", "completed"), ("update_task", "completed")], "{provider:?} {turn:?}");
    assert_eq!(turn.output(), "You have to read the book with high priority.");
    let tasks = fixture.tasks().await;
    let book = tasks["tasks"].as_array().unwrap().iter().find(|task| task["title"] == "read the book").unwrap();
    assert_eq!(book["priority"], "high");
    fixture.llm.always(Reply::text("Hello."));
}

async fn reasoning(fixture: &Fixture, provider: Provider) {
    let before = fixture.request_count();
    let thought = "The person wants bread. I will add it, and not more than that.";
    fixture
        .llm
        .script([add_task("buy bread").thinking(thought).usage(50, 30), Reply::text("Added bread.").usage(60, 4)]);
    let turn = fixture.send("bread please").await;
    let thoughts: Vec<_> = turn.events_named("thinking").map(|event| event["content"].as_str().unwrap()).collect();
    assert!(thoughts[1..].join(" ").contains(thought), "{provider:?} {thoughts:?}");
    assert_eq!(turn.output(), "Added bread.", "thoughts are not part of the reply");
    let usage = &turn.done()["usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(110), &json!(34)), "{provider:?}");
    if provider != Provider::Anthropic {
        assert_eq!(usage["reasoning_tokens"], 3, "{provider:?}: Anthropic does not report them separately");
    }
    let again = &fixture.llm.requests()[before + 1];
    if provider.wire() != testkit::llm::Wire::OpenAi {
        assert_eq!(
            again.thought_signatures(),
            [format!("c2lnbmVk{:08}", fixture.llm.requests()[before].number)],
            "{provider:?}"
        );
    }
}

async fn history(fixture: &Fixture, provider: Provider) {
    let before = fixture.request_count();
    fixture.llm.script([Reply::text("Your dog is called Rex."), Reply::text("Rex, as you said.")]);
    fixture.send_in("conv_history", "my dog is called Rex").await;
    fixture.send_in("conv_history", "what is my dog called?").await;
    let transcript = fixture.llm.requests()[before + 1].transcript();
    let messages = [
        TranscriptEntry::User("my dog is called Rex".to_owned()),
        TranscriptEntry::Assistant("Your dog is called Rex.".to_owned()),
        TranscriptEntry::User("what is my dog called?".to_owned()),
    ];
    assert_eq!(transcript[1..], messages, "{provider:?}");
}

/// The response arrives in small chunks.
async fn small_chunks(fixture: &Fixture, provider: Provider) {
    let text = "Grüße! 你好 ☕ – 'Äpfel kaufen 🍎' is all there is to say.";
    fixture.llm.script([add_task("Äpfel kaufen 🍎").chunked(3), Reply::text(text).chunked(1)]);
    let turn = fixture.send("äpfel").await;
    assert_eq!(turn.output(), text, "{provider:?}");
    assert_eq!(fixture.titles().await.last().unwrap(), "Äpfel kaufen 🍎");
}
