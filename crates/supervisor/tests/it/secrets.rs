//! Tests that no secret is stored.

use std::os::unix::fs::PermissionsExt;

use model::execution::{ExecutionStatus, StateName};
use serde_json::json;
use store::executions::OwnerScope;
use supervisor::{FollowEvent, RunDraft};

use crate::bench::{BenchBuilder, error, input_draft, script, succeeded};

/// Returns a key. It is assembled at run time, so that secret scanners do not report this file.
fn key(tail: &str) -> String {
    format!("{}{}{tail}", "gh", "p_")
}

/// Returns all bytes of the database files.
fn database(dir: &std::path::Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for name in ["db.sqlite", "db.sqlite-wal"] {
        bytes.extend(std::fs::read(dir.join(name)).unwrap_or_default());
    }
    assert!(!bytes.is_empty());
    bytes
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

// SUP-9
#[tokio::test]
async fn no_secret_is_stored() {
    let in_input = key("Aq1Sw2De3Fr4Gt5Hy6Ju7Ki8Lo9Zx0Cv1Bn2");
    let in_output = key("Zz9Yy8Xx7Ww6Vv5Uu4Tt3Ss2Rr1Qq0Pp9Oo8");
    let known = "correct-horse-battery";
    let run = "staple-of-the-run";
    let halves = in_output.split_at(17);
    // The key is written in two parts, the known value everywhere. Then the run fails with both and is retried.
    let text = format!(
        "cat; echo \"$KNOWN $RUN_TOKEN\"; printf 'key {}'; sleep 0.3; printf '{}\\n'; echo \"bad $KNOWN\" >&2; \
         echo 'mail me@somewhere.org'; echo \"$KNOWN\" > \"$0\"; exit 75",
        halves.0, halves.1
    );
    let more = json!({"envs": {"KNOWN": "${THE_KNOWN}"}, "overrides": ["envs"], "max_retries": 1, "retry_delay": 0.01,
        "agent_type": "stdin-file", "args": ["-c", text, "{{output_file}}"]});
    let fails = r#"import sys, json, os
m = json.loads(sys.stdin.readline())
print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "error": {"code": 75, "message": "denied " + os.environ["KNOWN"]}}))"#;
    let rpc = json!({"id": "rpc", "executable_path": "python3", "args": ["-c", fails], "agent_type": "json-rpc",
        "protocol": "json-rpc", "envs": {"KNOWN": "${THE_KNOWN}"}, "max_retries": 1, "retry_delay": 0.01,
        "error_patterns": [{"text": "denied", "category": "transient"}]});
    let bench = BenchBuilder::new(json!([script("leaks", "", more), rpc])).variable("THE_KNOWN", known).start().await;
    let envs = json!({"RUN_TOKEN": run});
    let draft = RunDraft {
        parameters: json!({"api_key": in_input}).as_object().cloned(),
        envs: serde_json::from_value(envs).unwrap(),
        ..input_draft(&format!("use {in_input} and {known}"))
    };
    let id = bench.submit("leaks", draft).await.unwrap();
    let mut follower = bench.supervisor.follow(OwnerScope::AllUsers, id, 0);
    let mut followed = String::new();
    while let Some(event) = follower.next().await.unwrap() {
        if let FollowEvent::Event(event) = event {
            followed.push_str(&event.text);
        }
    }
    let result = bench.result(id).await;
    let rpc = bench.run("rpc", "x").await;
    assert_eq!((result.status, rpc.status), (ExecutionStatus::Failure, ExecutionStatus::Failure));
    assert_eq!(rpc.previous_retries.len(), 1);
    assert!(error(&rpc).contains("denied [redacted]"), "{rpc:#?}");
    let record = format!("{result:?} {rpc:?} {:?}", bench.get(id).await);
    assert!(bench.output(id, "stdout").await.contains("key [redacted]\n"), "{followed}");
    assert_eq!(result.input, "use [redacted] and [redacted]");
    let dir = bench.stop().await;
    let stored = database(&dir.dir);
    for secret in [&in_input, &in_output, known, run, "me@somewhere.org", halves.0, halves.1] {
        assert!(!followed.contains(secret), "{secret} was sent to a follower");
        assert!(!record.contains(secret), "{secret} is on record");
        assert!(!has(&stored, secret), "{secret} is in the database");
    }
    assert!(std::fs::read_dir(dir.dir.join("runs")).map_or(0, Iterator::count) == 0, "scratch directories are removed");
}

// SUP-9, SUP-11
#[tokio::test]
async fn requests_with_secrets_survive_a_restart_in_the_spool() {
    let secret = key("Aq1Sw2De3Fr4Gt5Hy6Ju7Ki8Lo9Zx0Cv1Bn2");
    let folder = tempfile::tempdir().unwrap();
    // Prints only the length of its input, because the input is secret.
    let agents = json!([script("count", "wc -c", json!({}))]);
    let bench = BenchBuilder::new(agents.clone()).at(folder.path()).build().await;
    let id = bench.enqueue("count", &secret).await;
    let file = bench.file("spool").join(format!("{id}.json"));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!has(&database(folder.path()), &secret));
    drop(bench);
    let bench = BenchBuilder::new(agents).at(folder.path()).start().await;
    let result = bench.result(id).await;
    assert_eq!(succeeded(&result).trim(), secret.len().to_string());
    assert_eq!(result.input, "[redacted]");
    crate::bench::wait_until("the request is removed", async || !file.exists()).await;

    // A request that was not enqueued is removed when it is dropped.
    let new = bench.prepare("count", input_draft(&secret)).unwrap();
    let file = bench.file("spool").join(format!("{}.json", new.id()));
    assert!(file.exists());
    drop(new);
    assert!(!file.exists());
    let id = bench.enqueue("count", &secret).await;
    bench.wait(id).await;
    assert_eq!(bench.get(id).await.state_name(), StateName::Completed);
    let dir = bench.stop().await;
    assert!(!has(&database(&dir.dir), &secret));
}

// SUP-9
#[tokio::test]
async fn a_private_key_at_the_end_of_the_head_is_redacted() {
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
    // The configuration would reject a literal key.
    let begin = "${d}BEGIN PRIVATE KEY$d";
    let end = "${d}END PRIVATE KEY$d";
    // 20 lines of 64 characters around byte 1000, at which the head is full.
    let text = format!(
        "d=-----; i=0; while [ $i -lt 9 ]; do echo 'an ordinary line with nothing in it at all, this is number' $i; i=$((i+1)); done; \
         echo \"{begin}\"; i=0; while [ $i -lt 20 ]; do echo '{line}'; i=$((i+1)); done; echo \"{end}\"; echo done"
    );
    let bench = BenchBuilder::new(json!([script("key", &text, json!({"max_output_size": 2000}))])).start().await;
    let result = bench.run("key", "").await;
    assert!(result.output.ends_with("done\n"), "{}", result.output);
    let dir = bench.stop().await;
    assert!(!has(&database(&dir.dir), line), "{}", result.output);
}
