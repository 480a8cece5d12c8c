//! Has the linker write the program's relocations in the compact form, where the C library of this machine can read it
//! (2.36 and later): a tenth of the program's file need not be read at its start and kept in memory.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_native = std::env::var("HOST") == std::env::var("TARGET");
    if is_native && glibc().is_some_and(|version| version >= (2, 36)) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of the GNU C library, where there is one.
fn glibc() -> Option<(u32, u32)> {
    let answer = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
