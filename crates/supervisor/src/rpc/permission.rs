//! Answers permission requests of agents. The configuration decides, because no person is present.

use model::agent::Permissions;
use serde_json::{Value, json};

/// The kinds of tools that only read. `fetch` is not one of them: a URL can leak data that was read.
const READ_ONLY_KINDS: &[&str] = &["read", "search", "think"];

/// Returns true if the permissions allow a tool of this kind. With `Read`, a tool of unknown kind is not allowed.
pub(super) fn allows(permissions: Permissions, kind: Option<&str>) -> bool {
    match permissions {
        Permissions::Allow => true,
        Permissions::Read => kind.is_some_and(|kind| READ_ONLY_KINDS.contains(&kind)),
        Permissions::Deny => false,
    }
}

/// Returns the answer to a permission request: selects an option that allows the call, or one that rejects it if
/// `allowed` is false. Prefers the option that applies once. Cancels the request if no option fits.
pub(super) fn outcome(options: &Value, allowed: bool) -> Value {
    let kinds = if allowed { ["allow_once", "allow_always"] } else { ["reject_once", "reject_always"] };
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let chosen = kinds.iter().find_map(|kind| options.iter().find(|option| option["kind"] == **kind));
    match chosen {
        Some(option) => json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}}),
        None => cancelled(),
    }
}

/// Returns the answer that cancels a permission request.
pub(super) fn cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_decides_on_permissions() {
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
    fn options_that_apply_once_are_preferred() {
        let option = |id: &str, kind: &str| json!({"optionId": id, "name": id, "kind": kind});
        let all = json!([option("a", "allow_always"), option("b", "allow_once"), option("c", "reject_always")]);
        let chosen = |id: &str| json!({"outcome": {"outcome": "selected", "optionId": id}});
        assert_eq!((outcome(&all, true), outcome(&all, false)), (chosen("b"), chosen("c")));
        assert_eq!(outcome(&json!([option("a", "allow_always")]), false), cancelled());
        assert_eq!(outcome(&Value::Null, true), cancelled());
    }
}
