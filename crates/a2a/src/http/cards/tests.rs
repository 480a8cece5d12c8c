//! The members of cards by version.

use serde_json::json;

use super::*;

fn card(versions: &[&str]) -> AgentCard {
    let interfaces = versions
        .iter()
        .map(|version| json!({"url": "https://example.org", "protocolBinding": "JSONRPC", "protocolVersion": version}));
    let interfaces: Vec<Value> = interfaces.collect();
    let card = json!({"name": "a", "version": "1", "capabilities": {}, "supportedInterfaces": interfaces});
    serde_json::from_value(card).unwrap()
}

// A2A-1
#[test]
fn members_of_0_3_are_present_if_an_interface_supports_it() {
    for (versions, asked, both) in [
        (&["1.0", "0.3"][..], Version::V03, true),
        (&["0.3.0"], Version::V03, true),
        (&["1.0"], Version::V03, false),
        (&["1.0", "0.3"], Version::V10, false),
    ] {
        let value = value(card(versions), asked).unwrap();
        assert_eq!(value.get("url").is_some(), both, "{versions:?}: {value}");
        assert_eq!(value.get("protocolVersion").is_some(), both, "{versions:?}: {value}");
        assert_eq!(value["supportedInterfaces"].as_array().unwrap().len(), versions.len());
    }
}
