//! Has the linker write the program's relocations in the compact form, where the C library of this machine can read it
//! (2.36 and later): a tenth of the program's file need not be read at its start and kept in memory.
//!
//! Tells the program the names of all crates of the workspace: its log is filtered by them (`logging.rs`).

use std::path::Path;
use std::process::Command;

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let is_native = std::env::var("HOST") == std::env::var("TARGET");
    if is_native && glibc().is_some_and(|version| version >= (2, 36)) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    // It names every crate of the workspace, so that a new one changes it.
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    println!("cargo::rustc-env=ADJUTANT_CRATES={}", crates(Path::new(".."))?.join(" "));
    Ok(())
}

/// Returns the crates in a directory. Each has the name of its own directory.
fn crates(directory: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.path().join("Cargo.toml").exists() {
            names.push(entry.file_name().to_string_lossy().replace('-', "_"));
        }
    }
    names.sort();
    Ok(names)
}

/// The version of the GNU C library, where there is one.
fn glibc() -> Option<(u32, u32)> {
    let answer = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
