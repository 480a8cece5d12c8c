//! No endpoint, id or filter reaches the data of another user (AGENT-3).

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::app::Server;

use crate::{ALICE, BOB, home_with_auth, token};

/// A client with the token of a user.
struct UserClient<'a> {
    server: &'a Server,
    token: String,
}

impl UserClient<'_> {
    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        let mut request = self.server.request(method, path).bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        (answer.status(), answer.json().await.unwrap_or_default())
    }
}

/// Returns all data of a user, without the time of the export.
async fn export(alice: &UserClient<'_>) -> Value {
    let (_, mut data) = alice.send(Method::GET, "/api/data", None).await;
    data["exported_at"] = Value::Null;
    data
}

#[tokio::test]
async fn data_of_other_users_is_unreachable() {
    // AGENT-3, CHAT-7
    // The conversation is old, and housekeeping runs soon after the start.
    let home = home_with_auth().with_env("ADJUTANT_RETENTION__CONVERSATION_DAYS", "0");
    let server = home.serve();
    let alice = UserClient { server: &server, token: token(&home, ALICE, &[]) };
    let bob = UserClient { server: &server, token: token(&home, BOB, &[]) };
    let draft = json!({"title": "alice's secret", "tags": ["private"], "priority": "high", "due_date": "2026-01-31"});
    let (_, task) = alice.send(Method::POST, "/api/tasks", Some(draft)).await;
    let id = task["id"].as_str().unwrap();
    let conversation = json!({
        "id": "conv_alice", "title": "hello", "message_count": 1,
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
        "messages": [{"id": id, "role": "user", "content": "hello", "timestamp": "2026-01-01T00:00:00Z"}],
    });
    let document = json!({"adjutant_export": 1, "conversations": [conversation]});
    assert_eq!(alice.send(Method::POST, "/api/data", Some(document.clone())).await.1["conversations"]["added"], 1);
    let before = export(&alice).await;

    let filters = ["status=all", "q=secret", "tag=private", "priority=high", "due=2026-01-31", &format!("ref={id}")];
    for filter in filters {
        let (status, list) = bob.send(Method::GET, &format!("/api/tasks?{filter}"), None).await;
        assert_eq!((status, &list["count"]), (StatusCode::OK, &json!(0)), "{filter}");
    }
    for filter in ["", "?q=hello"] {
        assert_eq!(bob.send(Method::GET, &format!("/api/conversations{filter}"), None).await.1["count"], 0);
    }
    for (method, path, body) in [
        (Method::GET, format!("/api/tasks/{id}"), None),
        (Method::PATCH, format!("/api/tasks/{id}"), Some(json!({"title": "bob was here"}))),
        (Method::POST, format!("/api/tasks/{id}/complete"), None),
        (Method::DELETE, format!("/api/tasks/{id}"), None),
        (Method::POST, "/api/tasks/complete".to_owned(), Some(json!({"ids": [id]}))),
        (Method::POST, "/api/tasks/delete".to_owned(), Some(json!({"ids": [id]}))),
        (Method::POST, "/api/tasks/undo".to_owned(), None),
        (Method::GET, "/api/conversations/conv_alice".to_owned(), None),
        (Method::DELETE, "/api/conversations/conv_alice".to_owned(), None),
    ] {
        let (status, answer) = bob.send(method.clone(), &path, body).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{method} {path}");
        assert!(!answer.to_string().contains("secret"), "{answer}");
    }
    // Imports and erasures of Bob do not affect the data of Alice.
    let page = alice.send(Method::GET, "/api/tasks?limit=1", None).await.1;
    assert_eq!(page["next_cursor"], Value::Null);
    assert_eq!(bob.send(Method::POST, "/api/data", Some(document)).await.1["conversations"]["skipped"], 1);
    let (_, taken) = bob.send(Method::POST, "/api/data", Some(json!({"adjutant_export": 1, "tasks": [task]}))).await;
    assert_eq!(taken["tasks"]["added"], 1, "an imported id creates a task of its importer");
    assert_eq!(bob.send(Method::DELETE, "/api/data", None).await.0, StatusCode::NO_CONTENT);
    assert_eq!(export(&alice).await, before);
    assert_eq!(bob.send(Method::GET, "/api/tasks?status=all", None).await.1["count"], 0);
}

#[tokio::test]
async fn backup_and_restore_require_an_administrator() {
    // OPS-3, OPS-6
    let home = home_with_auth();
    let server = home.serve();
    let bob = UserClient { server: &server, token: token(&home, BOB, &[]) };
    let admin = UserClient { server: &server, token: token(&home, ALICE, &["--scope", "adjutant:admin"]) };
    for (method, path) in [(Method::GET, "/api/backup"), (Method::POST, "/api/restore")] {
        assert_eq!(bob.send(method, path, None).await.0, StatusCode::FORBIDDEN, "{path}");
    }
    let token_of_alice = json!({"id": "some-id", "user_id": ALICE});
    assert_eq!(
        bob.send(Method::POST, "/api/tokens/revoke", Some(token_of_alice.clone())).await.0,
        StatusCode::FORBIDDEN
    );
    assert_eq!(admin.send(Method::GET, "/api/backup", None).await.0, StatusCode::OK);
    assert_eq!(admin.send(Method::POST, "/api/tokens/revoke", Some(token_of_alice)).await.0, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn agents_of_one_user_see_nothing_of_another() {
    // SEC-2, AGENT-3. Both users may run the same shell.
    let agent = "[[agents]]\nid = \"shell\"\nexecutable_path = \"sh\"\naccess_type = \"read-only\"\nallow = [\"*\"]\n";
    let home = home_with_auth().with_config(agent);
    let server = home.serve();
    let alice = UserClient { server: &server, token: token(&home, ALICE, &[]) };
    let bob = UserClient { server: &server, token: token(&home, BOB, &[]) };
    let title = "alice keeps QUOKKA-7";
    assert_eq!(alice.send(Method::POST, "/api/tasks", Some(json!({ "title": title }))).await.0, StatusCode::CREATED);
    // Alice's run is at work: its input, its file and its arguments contain the word.
    let input = "echo QUOKKA-7 > $TMPDIR/note; sh -c 'sleep 60; : QUOKKA-7' & echo started; wait";
    let (_, run) = alice.send(Method::POST, "/api/agents/shell/executions", Some(json!({ "input": input }))).await;
    let run = run["id"].as_str().unwrap();
    loop {
        let (_, execution) = alice.send(Method::GET, &format!("/api/executions/{run}"), None).await;
        if execution["state"] == "running" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let (_, status) = alice.send(Method::GET, "/api/agents/shell/status", None).await;
    let hides = status["isolation"]["not_enforced"] == json!([]);
    if hides {
        let data = home.path();
        let search = format!(
            "grep -ral 'QUOKKA-[7]' {data} 2>/dev/null; grep -al 'QUOKKA-[7]' /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null
             find {data} -type f 2>/dev/null | grep -v /runs/; echo searched",
            data = data.display()
        );
        let body = json!({ "input": search, "wait": true });
        let (_, found) = bob.send(Method::POST, "/api/agents/shell/executions", Some(body)).await;
        assert_eq!(found["output"], "searched\n", "{found}");
    }
    for path in ["", "/result", "/events"] {
        let (status, _) = bob.send(Method::GET, &format!("/api/executions/{run}{path}"), None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(bob.send(Method::GET, "/api/executions", None).await.1["count"], u64::from(hides));
    alice.send(Method::POST, &format!("/api/executions/{run}/cancel"), Some(json!({}))).await;
}

#[tokio::test]
async fn a_run_with_api_access_reaches_the_tasks_of_its_owner_and_nothing_else() {
    // SEC-1: two runs of different users. Each writes its token to a file that both see.
    let home = home_with_auth();
    let shared = home.shared().to_owned();
    let program = env!("CARGO_BIN_EXE_adjutant");
    let dir = shared.display();
    let agent = format!(
        "[[agents]]\nid = \"caller\"\nexecutable_path = \"bash\"\napi_access = true\nallow = [\"*\"]\n\
         write_paths = [\"{dir}\"]\nenvs = {{ PROGRAM = \"{program}\", SHARED = \"{dir}\" }}\n\
         [[agents]]\nid = \"other\"\nexecutable_path = \"sh\"\nallow = [\"*\"]\n\
         write_paths = [\"{dir}\"]\nenvs = {{ PROGRAM = \"{program}\", SHARED = \"{dir}\" }}\n"
    );
    let home = home.with_config(&agent);
    let server = home.serve();
    let alice = UserClient { server: &server, token: token(&home, ALICE, &[]) };
    let bob = UserClient { server: &server, token: token(&home, BOB, &[]) };
    let (_, task) = bob.send(Method::POST, "/api/tasks", Some(json!({"title": "bob's task"}))).await;
    let of_bob = task["id"].as_str().unwrap();

    let address = server.url.trim_start_matches("http://").replace(':', "/");
    let script = format!(
        r#"
        a() {{ "$PROGRAM" --data-dir "$TMPDIR/data" "$@" 2>&1; echo "[$?]"; }}
        get() {{
          exec 3<>/dev/tcp/{address}
          printf "GET $1 HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer $ADJUTANT_TOKEN\r\nconnection: close\r\n\r\n" >&3
          read -r line <&3
          echo "$line"
        }}
        echo "add: $(a tasks add 'written by the run' | tail -1)"
        id=$("$PROGRAM" --data-dir "$TMPDIR/data" tasks list -q)
        for command in "tasks edit $id --priority high" "tasks done $id" "tasks edit {of_bob} --priority high" \
          "tasks rm --yes $id" "tasks undo" "agents list" "run caller x" "executions list" "schedules list" \
          "chat hello" "reminders list" "export" "stop-all" "audit"
        do
          echo "${{command/$id/ID}}: $(a $command | tail -1)"
        done
        echo "own execution: $(get /api/executions/$ADJUTANT_EXECUTION_ID)"
        echo "health: $(get /health)"
        echo "MCP: $(get /mcp)"
        echo "token: $ADJUTANT_TOKEN"
        printf %s "$ADJUTANT_TOKEN" > "$SHARED/token"
        echo ready > "$SHARED/ready"
        until [ -e "$SHARED/end" ]; do sleep 0.05; done
        "#
    );
    let (_, run) = alice.send(Method::POST, "/api/agents/caller/executions", Some(json!({ "input": script }))).await;
    let run = run["id"].as_str().unwrap();
    while !shared.join("ready").exists() {
        let (_, record) = alice.send(Method::GET, &format!("/api/executions/{run}"), None).await;
        assert!(record["ended_at"].is_null(), "{record}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    // The token is valid in no other run, and for no client outside of the run.
    let stolen = std::fs::read_to_string(shared.join("token")).unwrap();
    let theft = format!(
        "a() {{ \"$PROGRAM\" --data-dir \"$TMPDIR/data\" --server {} --token {stolen} \"$@\" 2>&1; echo \"[$?]\"; }}; \
         a tasks list | tail -1",
        server.url
    );
    for agent in ["caller", "other"] {
        let path = format!("/api/agents/{agent}/executions");
        let (_, record) = bob.send(Method::POST, &path, Some(json!({"input": theft, "wait": true}))).await;
        assert_eq!(record["output"].as_str().unwrap().trim(), "[9]", "{agent}: {record}");
    }
    let outside = server.request(Method::GET, "/api/tasks").bearer_auth(&stolen).send().await.unwrap();
    assert_eq!(outside.status(), StatusCode::UNAUTHORIZED);
    std::fs::write(shared.join("end"), "").unwrap();
    let result = loop {
        let (status, result) = alice.send(Method::GET, &format!("/api/executions/{run}/result"), None).await;
        if status == StatusCode::OK {
            break result;
        }
        assert_eq!(status, StatusCode::CONFLICT, "{result}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    let output = result["output"].as_str().unwrap_or_default();
    insta::assert_snapshot!(output.replace('\r', "").replace(of_bob, "BOB"));
    let (_, tasks) = alice.send(Method::GET, "/api/tasks?status=all", None).await;
    assert_eq!(tasks["tasks"][0]["title"], "written by the run");
    assert_eq!(tasks["tasks"][0]["status"], "completed");
}
