//! What an agent is told when it asks whether it may do something. Nobody is there to ask, so the configuration says.

use model::agent::Permissions;
use serde_json::{Value, json};

/// The kinds of tool that only read. `fetch` is not among them: an address can carry away what was read.
const READING: &[&str] = &["read", "search", "think"];

pub(super) fn allows(permissions: Permissions, kind: Option<&str>) -> bool {
    match permissions {
        Permissions::Allow => true,
        Permissions::Read => kind.is_some_and(|kind| READING.contains(&kind)),
        Permissions::Deny => false,
    }
}

/// The outcome: of the options that say yes, or no, the one that says it once; nothing where there is none.
pub(super) fn outcome(options: &Value, allowed: bool) -> Value {
    let kinds = if allowed { ["allow_once", "allow_always"] } else { ["reject_once", "reject_always"] };
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let chosen = kinds.iter().find_map(|kind| options.iter().find(|option| option["kind"] == **kind));
    match chosen {
        Some(option) => json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}}),
        None => cancelled(),
    }
}

pub(super) fn cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_answers() {
        for (kind, read) in [
            (Some("read"), true),
            (Some("search"), true),
            (Some("think"), true),
            (Some("fetch"), false),
            (Some("edit"), false),
            (Some("execute"), false),
            (Some("switch_mode"), false),
            (None, false),
        ] {
            assert!(allows(Permissions::Allow, kind) && !allows(Permissions::Deny, kind));
            assert_eq!(allows(Permissions::Read, kind), read, "{kind:?}");
        }
    }

    #[test]
    fn once_is_enough() {
        let option = |id: &str, kind: &str| json!({"optionId": id, "name": id, "kind": kind});
        let all = json!([option("a", "allow_always"), option("b", "allow_once"), option("c", "reject_always")]);
        let chosen = |id: &str| json!({"outcome": {"outcome": "selected", "optionId": id}});
        assert_eq!((outcome(&all, true), outcome(&all, false)), (chosen("b"), chosen("c")));
        assert_eq!(outcome(&json!([option("a", "allow_always")]), false), cancelled());
        assert_eq!(outcome(&Value::Null, true), cancelled());
    }
}
