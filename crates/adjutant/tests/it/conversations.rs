//! `/api/conversations` over HTTP. The test imports the conversations.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::home;

#[tokio::test]
async fn conversations_can_be_listed_read_searched_and_deleted() {
    // CHAT-7. The conversations are old, and housekeeping runs soon after the start.
    let home = home().with_env("ADJUTANT_RETENTION__CONVERSATION_DAYS", "0");
    let server = home.serve();
    let conversation = |n: u32, words: &str| {
        let message = |m: u32, role: &str, content: &str| {
            let id = format!("00000000-0000-7000-8000-{n:06}{m:06}");
            json!({"id": id, "role": role, "content": content, "timestamp": format!("2026-01-0{n}T00:00:00Z"),
                   "tool_calls": [{"tool_name": "add_task", "parameters": {}, "result": {}, "duration_ms": 1}]})
        };
        json!({"id": format!("conv_{n}"), "title": words, "message_count": 2,
               "created_at": format!("2026-01-0{n}T00:00:00Z"), "updated_at": format!("2026-01-0{n}T00:00:00Z"),
               "messages": [message(0, "user", words), message(1, "assistant", "Got it!")]})
    };
    let document =
        json!({"adjutant_export": 1, "conversations": [conversation(1, "add milk"), conversation(2, "what's up")]});
    assert_eq!(server.post("/api/data", &document).await.json::<Value>().await.unwrap()["conversations"]["added"], 2);

    let list: Value = server.get("/api/conversations?limit=1").await.json().await.unwrap();
    assert_eq!((&list["count"], &list["conversations"][0]["id"]), (&json!(1), &json!("conv_2")), "most recent first");
    let cursor = list["next_cursor"].as_str().unwrap();
    let rest: Value = server.get(&format!("/api/conversations?limit=1&cursor={cursor}")).await.json().await.unwrap();
    assert_eq!((&rest["conversations"][0]["id"], &rest["next_cursor"]), (&json!("conv_1"), &Value::Null));
    let found: Value = server.get("/api/conversations?q=MILK").await.json().await.unwrap();
    assert_eq!(found["count"], 1);

    let one: Value = server.get("/api/conversations/conv_1").await.json().await.unwrap();
    assert_eq!((&one["title"], &one["message_count"]), (&json!("add milk"), &json!(2)));
    assert_eq!(one["messages"][0]["role"], "user");
    assert_eq!(one["messages"][1]["tool_calls"][0]["tool_name"], "add_task");
    let page: Value = server.get("/api/conversations/conv_1?limit=1").await.json().await.unwrap();
    let next = page["next_cursor"].as_str().unwrap();
    let page: Value =
        server.get(&format!("/api/conversations/conv_1?limit=1&cursor={next}")).await.json().await.unwrap();
    assert_eq!((&page["messages"][0]["content"], &page["next_cursor"]), (&json!("Got it!"), &Value::Null));

    let delete = || server.request(Method::DELETE, "/api/conversations/conv_1").send();
    assert_eq!(delete().await.unwrap().status(), StatusCode::NO_CONTENT);
    assert_eq!(delete().await.unwrap().status(), StatusCode::NOT_FOUND);
    assert_eq!(server.get("/api/conversations/conv_1").await.status(), StatusCode::NOT_FOUND);
}
