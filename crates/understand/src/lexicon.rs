//! Phrase lists by topic. The build script compiles them from `lexicon/*.toml`.

include!(concat!(env!("OUT_DIR"), "/lexicon.rs"));
