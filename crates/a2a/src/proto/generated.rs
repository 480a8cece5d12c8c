//! The generated code. Nothing in it is edited by hand: `cargo run -p protogen`.

pub mod v03;
pub mod v1;
