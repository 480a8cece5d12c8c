//! No secret of a run is stored (SUP-9).

use serde_json::json;

use super::run;
use crate::home;

const KEY: &str = "sk-proj-T3stS3cr3tT3stS3cr3tT3stS3cr3t42";
const OTHER: &str = "plain-looking-value-0815";

const AGENTS: &str = r#"
[[agents]]
id = "leaky"
executable_path = "sh"
args = ["-c", "read x; echo out $x; printf 'half %s%s' sk- proj-T3stS3cr3t; sleep 0.3; echo T3stS3cr3tT3stS3cr3t42; echo env $HIDDEN; echo err $x $HIDDEN >&2; echo \"$x $HIDDEN\" > \"$0\"; exit 3", "{{output_file}}"]
output_pattern = "file"
envs = { HIDDEN = "${OTHER_SECRET}" }
"#;

#[tokio::test]
async fn secrets_appear_in_no_response_log_or_file() {
    // SUP-9
    let home = home().with_env("OTHER_SECRET", OTHER).with_config(AGENTS);
    let mut server = home.serve();
    let done = run(&server, "leaky", &format!("{KEY} {OTHER}")).await;
    assert_eq!(done["exit_code"], 3);
    let id = done["id"].as_str().unwrap();
    let mut outputs = done.to_string();
    for path in ["", "/result", "/events"] {
        outputs.push_str(&server.get(&format!("/api/executions/{id}{path}")).await.text().await.unwrap());
    }
    assert!(outputs.contains("[redacted]"));
    let answer = server.post(&format!("/api/executions/{id}/retry"), &json!({})).await;
    assert_eq!(answer.status(), 409, "the input with secrets is not stored");
    assert_eq!(server.stop(), 0);
    outputs.push_str(&server.raw_log());
    for entry in files_below(home.path()) {
        if !entry.ends_with("config.toml") {
            outputs.push_str(&String::from_utf8_lossy(&std::fs::read(&entry).unwrap()));
        }
    }
    for secret in [KEY, OTHER, "T3stS3cr3tT3stS3cr3t42"] {
        assert!(!outputs.contains(secret), "{secret}");
    }
}

fn files_below(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}
