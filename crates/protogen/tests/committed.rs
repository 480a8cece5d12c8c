//! The committed code is that of the committed definitions.
use std::collections::BTreeSet;

#[test]
fn committed_output_matches_the_definitions() {
    let generated = protogen::generate().unwrap();
    for (name, content) in &generated {
        let committed = std::fs::read(protogen::output().join(name)).unwrap();
        assert!(committed == *content, "{name} is out of date: cargo run -p protogen");
    }
    let expected: BTreeSet<_> = generated.iter().map(|(name, _)| (*name).to_owned()).collect();
    let entries = std::fs::read_dir(protogen::output()).unwrap();
    let found: BTreeSet<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(found, expected);
}
