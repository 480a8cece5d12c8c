//! The resource names of 0.3: `tasks/ID` and `tasks/ID/pushNotificationConfigs/ID`.

use crate::Error;

const TASKS: &str = "tasks/";
const CONFIGS: &str = "/pushNotificationConfigs";

/// Returns the resource name of a task.
pub(super) fn task_name(id: &str) -> String {
    format!("{TASKS}{id}")
}

/// Returns the resource name of a push configuration.
pub(super) fn config_name(task: &str, id: &str) -> String {
    format!("{TASKS}{task}{CONFIGS}/{id}")
}

/// Parses the name of a task and returns its id. Fails if the name has another form. The error names `field`.
pub(super) fn parse_task(name: &str, field: &str) -> Result<String, Error> {
    let id = name.strip_prefix(TASKS).filter(|id| is_id(id));
    id.map(ToOwned::to_owned).ok_or_else(|| Error::invalid(field, "must have the form tasks/ID"))
}

/// Parses the parent of a new configuration and returns the id of the task. Some clients append the collection.
///
/// Fails if the name has another form.
pub(super) fn parse_parent(name: &str, field: &str) -> Result<String, Error> {
    parse_task(name.strip_suffix(CONFIGS).unwrap_or(name), field)
}

/// Parses the name of a configuration in a request and returns the ids of the task and the configuration. Fails if the
/// name has another form, or if an id is empty or contains a slash. The error names `field`.
pub(super) fn parse_config(name: &str, field: &str) -> Result<(String, String), Error> {
    let parts = || {
        let (task, id) = name.strip_prefix(TASKS)?.split_once('/')?;
        let id = id.strip_prefix(&CONFIGS[1..])?.strip_prefix('/')?;
        (is_id(task) && is_id(id)).then(|| (task.to_owned(), id.to_owned()))
    };
    parts().ok_or_else(|| Error::invalid(field, "must have the form tasks/ID/pushNotificationConfigs/ID"))
}

/// Parses the name of a configuration in a response, where ids may have any form. The id of the configuration may be
/// empty. Returns both ids. Fails if the name has another form.
pub(super) fn parse_any_config(name: &str, field: &str) -> Result<(String, String), Error> {
    let ids = name.strip_prefix(TASKS).and_then(|rest| rest.split_once(CONFIGS));
    let ids = ids.and_then(|(task, id)| Some((task.to_owned(), id.strip_prefix('/')?.to_owned())));
    ids.ok_or_else(|| Error::invalid(field, "must have the form tasks/ID/pushNotificationConfigs/ID"))
}

/// Returns whether the text can be an id: it is not empty and has no slash.
fn is_id(text: &str) -> bool {
    !text.is_empty() && !text.contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_accepted_in_two_forms_only() {
        // A2A-1
        assert_eq!(parse_task(&task_name("a-1"), "name").unwrap(), "a-1");
        assert_eq!(parse_parent("tasks/a/pushNotificationConfigs", "parent").unwrap(), "a");
        assert_eq!(parse_config(&config_name("a", "b"), "name").unwrap(), ("a".to_owned(), "b".to_owned()));
        for name in ["", "a", "tasks", "tasks/", "tasks//", "tasks/a/", "tasks/a/b", "/tasks/a", "Tasks/a", "xtasks/a"]
        {
            assert_eq!(parse_task(name, "name").unwrap_err().violations[0].0, "name", "{name}");
        }
        for name in [
            "",
            "tasks/a",
            "tasks/a/pushNotificationConfigs",
            "tasks/a/pushNotificationConfigs/",
            "tasks//pushNotificationConfigs/b",
            "tasks/a/pushNotificationConfigs/b/",
            "tasks/a/pushNotificationConfigs/b/c",
            "tasks/a/pushNotificationConfigsX/b",
            "tasks/a/b/pushNotificationConfigs/c",
        ] {
            parse_config(name, "name").expect_err(name);
        }
    }
}
