//! Tests of push configurations: storage, validation and access.

use serde_json::{Value, json};
use server::ServerSettings;
use server::settings::AuthSettings;
use testkit::issuer::sign_hs256;

use super::{CREDENTIALS, DataDir, Receiver, TOKEN, allow_private, stored_config, wait_until};

const SET: &str = "CreateTaskPushNotificationConfig";
const GET: &str = "GetTaskPushNotificationConfig";
const LIST: &str = "ListTaskPushNotificationConfigs";
const DELETE: &str = "DeleteTaskPushNotificationConfig";

/// Returns the bytes of all files in a directory.
fn read_all_files(dir: &std::path::Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => all.extend(read_all_files(&path)),
            false => all.extend(std::fs::read(path).unwrap_or_default()),
        }
    }
    all
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn secrets_are_stored_encrypted() {
    // A2A-1: they are not in the database and not in responses, but reach the receiver, even after a restart
    let data_dir = DataDir::new();
    let receiver = Receiver::start().await;
    let node = data_dir.start().await;
    let mut push = receiver.push_config("a");
    push["url"] = json!(format!("{}?key=s3cr3t-in-the-query", receiver.url("a")));
    let task = node.send("ask", None, Some(push.clone())).await;
    wait_until("the task requires input", async || {
        receiver.updates("a").last().is_some_and(|last| last.ends_with("INPUT_REQUIRED"))
    })
    .await;
    push["taskId"] = json!(task);
    let set = node.v10(SET, push.clone()).await;
    let got = node.v10(GET, json!({"taskId": task, "id": "a"})).await;
    let list = node.v10(LIST, json!({"taskId": task})).await;
    let old = node.v03("tasks/pushNotificationConfig/get", json!({"id": task, "pushNotificationConfigId": "a"})).await;
    let shown =
        json!({"id": "a", "taskId": task, "url": push["url"], "token": TOKEN, "authentication": {"scheme": "Bearer"}});
    assert_eq!((&set["result"], &got["result"]), (&shown, &shown), "{set} {got}");
    assert_eq!(list["result"]["configs"], json!([shown]));
    assert_eq!(old["result"]["pushNotificationConfig"]["authentication"]["schemes"], json!(["Bearer"]), "{old}");
    for answer in [set, got, list, old] {
        assert!(!answer.to_string().contains(CREDENTIALS), "{answer}");
    }
    let row = stored_config(&node, &task, "a").await;
    assert_eq!((row.url.as_str(), row.scheme.as_deref()), (receiver.url("").trim_end_matches('/'), Some("Bearer")));
    let disk = read_all_files(data_dir.0.path());
    assert!(contains(&disk, &task), "the test reads the right files");
    for secret in [TOKEN, CREDENTIALS, "s3cr3t-in-the-query"] {
        assert!(!contains(&disk, secret), "{secret}");
    }
    node.stop().await;
    let node = data_dir.start().await;
    node.send("yes", Some(&task), None).await;
    wait_until("the end is delivered", async || {
        receiver.updates("a").last().is_some_and(|last| last.ends_with("COMPLETED"))
    })
    .await;
    let (_, headers, _) = receiver.requests("a").pop().unwrap();
    assert_eq!(headers["authorization"], format!("Bearer {CREDENTIALS}"));
}

#[tokio::test]
async fn invalid_configurations_are_rejected() {
    // A2A-1
    let data_dir = DataDir::new();
    let node = data_dir.start_with(ServerSettings::default()).await;
    let task = node.send("go", None, None).await;
    let long = "x".repeat(10_000);
    for (config, field) in [
        (json!({"url": "http://127.0.0.1:1/x"}), "url"),
        (json!({"url": "http://localhost/x"}), "url"),
        (json!({"url": "http://[::1]/x"}), "url"),
        (json!({"url": "http://169.254.169.254/latest/meta-data"}), "url"),
        (json!({"url": "http://10.0.0.1/x"}), "url"),
        (json!({"url": "ftp://hooks.example/x"}), "url"),
        (json!({"url": "nonsense"}), "url"),
        (json!({"url": ""}), "url"),
        (json!({"url": format!("https://hooks.example/{long}")}), "url"),
        (json!({"url": "https://hooks.example/", "id": long}), "id"),
        (json!({"url": "https://hooks.example/", "id": "a\nb"}), "id"),
        (json!({"url": "https://hooks.example/", "token": "a\r\nb: c"}), "token"),
        (json!({"url": "https://hooks.example/", "token": long}), "token"),
        (json!({"url": "https://hooks.example/", "authentication": {"scheme": "Not a word"}}), "authentication.scheme"),
        (
            json!({"url": "https://hooks.example/", "authentication": {"scheme": "Bearer", "credentials": "a\nb"}}),
            "authentication.credentials",
        ),
    ] {
        let mut given = config.clone();
        given["taskId"] = json!(task);
        let refused = node.v10(SET, given).await;
        assert_eq!(refused["error"]["code"], -32602, "{config}: {refused}");
        assert!(refused["error"]["message"].as_str().unwrap().starts_with(field), "{config}: {refused}");
        // The same configuration in a message: no task is created.
        let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "go"}]});
        let params = json!({"message": message, "configuration": {"taskPushNotificationConfig": config}});
        let refused = node.v10("SendMessage", params).await;
        assert_eq!(refused["error"]["code"], -32602, "{config}: {refused}");
        let path = format!("configuration.taskPushNotificationConfig.{field}");
        assert!(refused["error"]["message"].as_str().unwrap().starts_with(&path), "{config}: {refused}");
    }
    let tasks = node.v10("ListTasks", json!({})).await;
    assert_eq!(tasks["result"]["totalSize"], 1, "{tasks}");
    let valid = node.v10(SET, json!({"taskId": task, "url": "https://hooks.example/x"})).await;
    assert!(!valid["result"]["id"].as_str().unwrap().is_empty(), "{valid}");
}

#[tokio::test]
async fn configurations_can_be_set_listed_and_deleted() {
    // A2A-1: even after the task has ended
    let data_dir = DataDir::new();
    let node = data_dir.start_with(ServerSettings::default()).await;
    let task = node.send("go", None, None).await;
    wait_until("the task has ended", async || node.state(&task).await == "TASK_STATE_COMPLETED").await;
    for n in 0..20 {
        let set = node.v10(SET, json!({"taskId": task, "id": n.to_string(), "url": "https://hooks.example/x"})).await;
        assert_eq!(set["result"]["id"], n.to_string(), "{set}");
    }
    let more = node.v10(SET, json!({"taskId": task, "id": "more", "url": "https://hooks.example/x"})).await;
    assert_eq!(more["error"]["code"], -32602, "{more}");
    assert!(more["error"]["message"].as_str().unwrap().contains("has 20"), "{more}");
    let again = node.v10(SET, json!({"taskId": task, "id": "7", "url": "https://hooks.example/y"})).await;
    assert_eq!(again["result"]["url"], "https://hooks.example/y", "{again}");
    let mut ids = Vec::new();
    let mut token = Value::Null;
    loop {
        let page = node.v10(LIST, json!({"taskId": task, "pageSize": 7, "pageToken": token})).await;
        let configs = page["result"]["configs"].as_array().unwrap_or_else(|| panic!("{page}")).clone();
        ids.extend(configs.into_iter().map(|config| config["id"].clone()));
        token = page["result"]["nextPageToken"].clone();
        if token.as_str().is_none_or(str::is_empty) {
            break;
        }
    }
    assert_eq!(ids, (0..20).map(|n| json!(n.to_string())).collect::<Vec<_>>());
    for (params, field) in [(json!({"pageSize": -1}), "pageSize"), (json!({"pageToken": "zz"}), "pageToken")] {
        let mut params = params;
        params["taskId"] = json!(task);
        let refused = node.v10(LIST, params).await;
        assert!(refused["error"]["message"].as_str().unwrap().starts_with(field), "{refused}");
    }
    let one = json!({"taskId": task, "id": "7"});
    assert_eq!(node.v10(GET, one.clone()).await["result"]["url"], "https://hooks.example/y");
    for _ in 0..2 {
        let deleted = node.v10(DELETE, one.clone()).await;
        assert!(deleted.get("error").is_none(), "deleting an unknown configuration succeeds: {deleted}");
    }
    assert_eq!(node.v10(GET, one).await["error"]["code"], -32001);
    let unknown_task =
        json!({"taskId": "0190a6d2-7c00-7000-8000-000000000000", "id": "7", "url": "https://hooks.example/"});
    for method in [SET, GET, LIST, DELETE] {
        let missing = node.v10(method, unknown_task.clone()).await;
        assert_eq!(missing["error"]["code"], -32001, "{method}: {missing}");
    }
}

#[tokio::test]
async fn ids_are_optional_in_0_3() {
    // A2A-1
    let data_dir = DataDir::new();
    let node = data_dir.start_with(ServerSettings::default()).await;
    let task = node.send("go", None, None).await;
    for url in ["https://hooks.example/1", "https://hooks.example/2"] {
        let params = json!({"taskId": task, "pushNotificationConfig": {"url": url}});
        let set = node.v03("tasks/pushNotificationConfig/set", params).await;
        assert_eq!(set["result"]["pushNotificationConfig"]["url"], url, "{set}");
        for id in [Value::Null, json!("default"), set["result"]["pushNotificationConfig"]["id"].clone()] {
            let params = json!({"id": task, "pushNotificationConfigId": id});
            let got = node.v03("tasks/pushNotificationConfig/get", params).await;
            assert_eq!(got["result"]["pushNotificationConfig"]["url"], url, "{id}: {got}");
        }
        let list = node.v03("tasks/pushNotificationConfig/list", json!({"id": task})).await;
        assert_eq!(list["result"].as_array().unwrap().len(), 1, "{list}");
    }
}

#[tokio::test]
async fn a_rotation_of_the_token_secret_keeps_push_configurations() {
    // A2A-1, SEC-6: on a private database the sealing key is independent of the token secret
    let user = json!({"sub": "aaaaaaaa-0000-4000-8000-00000000000a", "exp": 4_000_000_000_i64});
    let data_dir = DataDir::new();
    let start = async |secret: &str| {
        let auth = AuthSettings { secret: Some(secret.into()), ..AuthSettings::default() };
        data_dir.start_with(ServerSettings { auth: Some(auth), ..allow_private() }).await
    };
    let first = "correct-horse-battery-staple-0123456789";
    let node = start(first).await;
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "go"}]});
    let push = json!({"id": "a", "url": "https://hooks.example/x"});
    let params = json!({"message": message, "configuration": {"taskPushNotificationConfig": push}});
    let sent = node.call_as(Some(&sign_hs256(first, &user)), "1.0", "SendMessage", params).await;
    let one = json!({"taskId": sent["result"]["task"]["id"], "id": "a"});
    node.stop().await;
    let second = "another-horse-battery-staple-0123456789";
    let node = start(second).await;
    let got = node.call_as(Some(&sign_hs256(second, &user)), "1.0", GET, one).await;
    assert_eq!(got["result"]["url"], "https://hooks.example/x", "{got}");
}

#[tokio::test]
async fn configurations_of_other_users_are_unreachable() {
    // A2A-1
    const SECRET: &str = "correct-horse-battery-staple-0123456789";
    let auth = AuthSettings { secret: Some(SECRET.into()), ..AuthSettings::default() };
    let data_dir = DataDir::new();
    let node = data_dir.start_with(ServerSettings { auth: Some(auth), ..allow_private() }).await;
    let jwt = |user: &str| sign_hs256(SECRET, &json!({"sub": user, "exp": 4_000_000_000_i64}));
    let alice = jwt("aaaaaaaa-0000-4000-8000-00000000000a");
    let bob = jwt("bbbbbbbb-0000-4000-8000-00000000000b");
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "go"}]});
    let push = json!({"id": "a", "url": "https://hooks.example/x"});
    let params = json!({"message": message, "configuration": {"taskPushNotificationConfig": push}});
    let sent = node.call_as(Some(&alice), "1.0", "SendMessage", params).await;
    let task = sent["result"]["task"]["id"].clone();
    let one = json!({"taskId": task, "id": "a", "url": "https://evil.example/"});
    for method in [SET, GET, LIST, DELETE] {
        let refused = node.call_as(Some(&bob), "1.0", method, one.clone()).await;
        assert_eq!(refused["error"]["code"], -32001, "{method}: {refused}");
    }
    let got = node.call_as(Some(&alice), "1.0", GET, one).await;
    assert_eq!(got["result"]["url"], "https://hooks.example/x", "{got}");
}
