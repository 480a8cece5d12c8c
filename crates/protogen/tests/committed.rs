//! Compares the committed output with the definitions.
use std::collections::BTreeSet;

#[test]
fn committed_output_matches_the_definitions() {
    // A2A-1
    let generated = protogen::generate().unwrap();
    for (name, content) in &generated {
        let committed = std::fs::read(protogen::output().join(name)).unwrap();
        assert!(committed == *content, "{name} is out of date: run `cargo run -p protogen`");
    }
    let expected: BTreeSet<_> = generated.iter().map(|(name, _)| (*name).to_owned()).collect();
    let entries = std::fs::read_dir(protogen::output()).unwrap();
    let found: BTreeSet<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(found, expected);
}
