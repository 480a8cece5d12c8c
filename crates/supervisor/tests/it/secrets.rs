//! Nothing secret is kept, whichever way it came.

use std::os::unix::fs::PermissionsExt;

use model::execution::{StateName, Status};
use serde_json::json;
use store::executions::Whose;
use supervisor::{Draft, Told};

use crate::bench::{Setting, asking, error, script, succeeded};

/// Put together here, so that no search for keys finds this file.
fn key(tail: &str) -> String {
    format!("{}{}{tail}", "gh", "p_")
}

/// Every byte of the database.
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
async fn no_secret_is_kept() {
    let asked = key("Aq1Sw2De3Fr4Gt5Hy6Ju7Ki8Lo9Zx0Cv1Bn2");
    let said = key("Zz9Yy8Xx7Ww6Vv5Uu4Tt3Ss2Rr1Qq0Pp9Oo8");
    let known = "correct-horse-battery";
    let run = "staple-of-the-run";
    let halves = said.split_at(17);
    // The key comes in two writes; the known value everywhere; then it fails with both, and is tried again.
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
    let bench = Setting::new(json!([script("leaks", "", more), rpc])).variable("THE_KNOWN", known).work().await;
    let envs = json!({"RUN_TOKEN": run});
    let draft = Draft {
        parameters: json!({"api_key": asked}).as_object().cloned(),
        envs: serde_json::from_value(envs).unwrap(),
        ..asking(&format!("use {asked} and {known}"))
    };
    let id = bench.submit("leaks", draft).await.unwrap();
    let mut follower = bench.supervisor.follow(Whose::Everyones, id, 0);
    let mut told = String::new();
    while let Some(what) = follower.next().await.unwrap() {
        if let Told::Event(event) = what {
            told.push_str(&event.text);
        }
    }
    let result = bench.result(id).await;
    let rpc = bench.run("rpc", "x").await;
    assert_eq!((result.status, rpc.status), (Status::Failure, Status::Failure));
    assert_eq!(rpc.previous_retries.len(), 1);
    assert!(error(&rpc).contains("denied [redacted]"), "{rpc:#?}");
    let record = format!("{result:?} {rpc:?} {:?}", bench.get(id).await);
    assert!(bench.output(id, "stdout").await.contains("key [redacted]\n"), "{told}");
    assert_eq!(result.input, "use [redacted] and [redacted]");
    let dir = bench.stop().await;
    let kept = database(&dir.dir);
    for secret in [&asked, &said, known, run, "me@somewhere.org", halves.0, halves.1] {
        assert!(!told.contains(secret), "{secret} was told");
        assert!(!record.contains(secret), "{secret} is on record");
        assert!(!has(&kept, secret), "{secret} is in the database");
    }
    assert!(std::fs::read_dir(dir.dir.join("runs")).map_or(0, Iterator::count) == 0, "nothing of the runs is left");
}

// SUP-9, SUP-11
#[tokio::test]
async fn a_request_with_secrets_survives_a_restart_outside_of_the_database() {
    let secret = key("Aq1Sw2De3Fr4Gt5Hy6Ju7Ki8Lo9Zx0Cv1Bn2");
    let folder = tempfile::tempdir().unwrap();
    // Says how long its input is, since it may not say what it is.
    let agents = json!([script("count", "wc -c", json!({}))]);
    let bench = Setting::new(agents.clone()).at(folder.path()).resting().await;
    let id = bench.ask("count", &secret).await;
    let file = bench.file("spool").join(format!("{id}.json"));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!has(&database(folder.path()), &secret));
    drop(bench);
    let bench = Setting::new(agents).at(folder.path()).work().await;
    let result = bench.result(id).await;
    assert_eq!(succeeded(&result).trim(), secret.len().to_string());
    assert_eq!(result.input, "[redacted]");
    crate::bench::until("the request is gone", async || !file.exists()).await;

    // One that the queue did not take is gone too, at the latest with the next start.
    let new = bench.prepare("count", asking(&secret)).unwrap();
    let file = bench.file("spool").join(format!("{}.json", new.id()));
    assert!(file.exists());
    drop(new);
    assert!(!file.exists());
    let id = bench.ask("count", &secret).await;
    bench.wait(id).await;
    assert_eq!(bench.get(id).await.state_name(), StateName::Completed);
    let dir = bench.stop().await;
    assert!(!has(&database(&dir.dir), &secret));
}

// SUP-9
#[tokio::test]
async fn a_private_key_is_not_seen_where_the_beginning_ends_in_it() {
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
    // In a configuration it would be refused.
    let begin = "${d}BEGIN PRIVATE KEY$d";
    let end = "${d}END PRIVATE KEY$d";
    // 20 lines of 64 letters around the 1000th byte, where the beginning is full.
    let text = format!(
        "d=-----; i=0; while [ $i -lt 9 ]; do echo 'an ordinary line with nothing in it at all, this is number' $i; i=$((i+1)); done; \
         echo \"{begin}\"; i=0; while [ $i -lt 20 ]; do echo '{line}'; i=$((i+1)); done; echo \"{end}\"; echo done"
    );
    let bench = Setting::new(json!([script("key", &text, json!({"max_output_size": 2000}))])).work().await;
    let result = bench.run("key", "").await;
    assert!(result.output.ends_with("done\n"), "{}", result.output);
    let dir = bench.stop().await;
    assert!(!has(&database(&dir.dir), line), "{}", result.output);
}
