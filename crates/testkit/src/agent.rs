//! Where the scripted agent is: a program of this crate, made where it is not there yet.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The program; what it can be told to do is written in `bin/agent.rs`.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| made("agent", "src/bin/agent.rs"))
}

/// A program of this crate.
pub(crate) fn made(name: &str, source: &str) -> PathBuf {
    // Tests are in `deps`, programs beside it.
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).unwrap();
    let program = folder.join(name);
    // With the whole workspace it was made; for the tests of one crate alone it may not have been.
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let time = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    if time(&program) < time(&source) {
        make(folder, name);
    }
    program
}

fn make(folder: &Path, name: &str) {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--package", "testkit", "--bin", name, "--target-dir"]);
    cargo.arg(folder.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR"));
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().unwrap().success(), "{name} cannot be made");
}
