//! Locates the scripted agent, a program of this crate, and builds it if necessary.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Returns the path of the scripted agent. Its commands are in `bin/agent.rs`.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build_if_stale("agent", "src/bin/agent.rs"))
}

/// Returns the path of a program of this crate. Builds it if it is missing or older than its source.
pub(crate) fn build_if_stale(name: &str, source: &str) -> PathBuf {
    // Test binaries are in `deps`, programs in its parent directory.
    let test = std::env::current_exe().unwrap();
    let directory = test.ancestors().nth(2).unwrap();
    let program = directory.join(name);
    // A build of the whole workspace creates the program. A build of a single crate may not.
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let modified = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    if modified(&program) < modified(&source) {
        build(directory, name);
    }
    program
}

fn build(directory: &Path, name: &str) {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--package", "testkit", "--bin", name, "--target-dir"]);
    cargo.arg(directory.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR"));
    if directory.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().unwrap().success(), "cannot build {name}");
}
